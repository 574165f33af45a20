//! Remotes of a repository: which one names it, and in which form two ways to reach it are one.
//!
//! What git's configuration includes from elsewhere is not read. A name and a password in an address
//! are dropped before anything else is done with it: some keep tokens there.

/// The longest address that is kept, in bytes.
pub(super) const REMOTE_BYTES_MAX: usize = 512;
/// Remotes of one configuration that are looked at.
const REMOTES_MAX: usize = 256;

/// The address that names a repository, by the text of its configuration: that of `origin`, else of
/// the only remote. None if that is a folder on this machine, which names nothing elsewhere.
pub(super) fn named_by(config: &str) -> Option<String> {
    let remotes = remotes(config);
    let origin = remotes.iter().find(|(name, _)| name == "origin");
    let only = || remotes.first().filter(|_| remotes.len() == 1);
    normalised(&origin.or_else(only)?.1)
}

/// The remotes of a configuration with their first addresses.
fn remotes(config: &str) -> Vec<(String, String)> {
    let mut remotes: Vec<(String, String)> = Vec::new();
    let mut within: Option<String> = None;
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            within = section(line);
            continue;
        }
        let Some(name) = &within else { continue };
        let Some((key, value)) = line.split_once('=') else { continue };
        let is_known = remotes.iter().any(|(known, _)| known == name);
        if key.trim().eq_ignore_ascii_case("url") && !is_known && remotes.len() < REMOTES_MAX {
            remotes.push((name.clone(), plain(value)));
        }
    }
    remotes
}

/// The name of the remote that a section is about.
fn section(line: &str) -> Option<String> {
    let inner = line.strip_prefix('[')?;
    let (kind, rest) = inner.split_once('"')?;
    let (name, _) = rest.split_once('"')?;
    kind.trim().eq_ignore_ascii_case("remote").then(|| name.to_owned())
}

/// A value without its quotes and without a comment after it.
fn plain(value: &str) -> String {
    let mut text = String::new();
    let (mut is_quoted, mut is_escaped) = (false, false);
    for c in value.trim().chars() {
        match c {
            _ if is_escaped => {
                text.push(c);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            '#' | ';' if !is_quoted => break,
            c => text.push(c),
        }
    }
    text.trim().to_owned()
}

/// An address as host and path: the same for every way to reach it, without user, password, port
/// and `.git`. None for folders on this machine.
pub(super) fn normalised(address: &str) -> Option<String> {
    let (host, path) = match address.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // As scp has it: no slash before the colon, which would make it a folder.
        None => {
            let (host, path) = address.split_once(':')?;
            if host.contains('/') || host.len() < 2 {
                return None;
            }
            (host, path)
        }
    };
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let host = match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) => name,
        _ => host,
    };
    let path = path.split(['?', '#']).next()?.trim_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path).trim_end_matches('/');
    let is_clean = |text: &str| !text.is_empty() && !text.contains(char::is_control);
    let whole = format!("{}/{path}", host.to_ascii_lowercase());
    let fits = is_clean(host) && is_clean(path) && whole.len() <= REMOTE_BYTES_MAX;
    fits.then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_reach_a_repository_has_one_form() {
        for address in [
            "https://github.com/acme/shop.git",
            "https://GitHub.com/acme/shop/",
            "https://somebody:a-token@github.com/acme/shop.git",
            "ssh://git@github.com:22/acme/shop.git",
            "git@github.com:acme/shop.git",
            "github.com:/acme/shop",
            "git://github.com/acme/shop?depth=1",
        ] {
            assert_eq!(normalised(address).as_deref(), Some("github.com/acme/shop"), "{address}");
        }
        let other = normalised("https://github.com/fork/shop").unwrap();
        assert_eq!(other, "github.com/fork/shop");
    }

    #[test]
    fn folders_and_nonsense_name_nothing() {
        for address in [
            "/srv/git/shop.git",
            "../shop",
            "file:///srv/shop",
            "./a:b",
            "C:\\shop",
            "",
            "https://",
        ] {
            assert_eq!(normalised(address), None, "{address}");
        }
        assert_eq!(normalised(&format!("https://h/{}", "x".repeat(600))), None);
        assert_eq!(normalised("https://h/a\u{1b}b"), None);
    }

    #[test]
    fn origin_names_a_repository_and_else_the_only_remote() {
        let of =
            |name: &str, url: &str| format!("[remote \"{name}\"]\n\tURL = {url}\n\tfetch = x\n");
        let (one, two) = (of("origin", "https://h/a"), of("upstream", "\"https://h/b\" # theirs"));
        assert_eq!(named_by(&format!("[core]\nbare = false\n{two}{one}")).as_deref(), Some("h/a"));
        assert_eq!(named_by(&two).as_deref(), Some("h/b"));
        assert_eq!(named_by(&format!("{two}{}", of("third", "https://h/c"))), None);
        assert_eq!(named_by("[remote \"origin\"\nurl\n[["), None);
        assert_eq!(named_by(&of("origin", "/srv/shop")), None);
    }
}
