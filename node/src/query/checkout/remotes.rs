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

/// How a repository stores its references, by the text of its configuration; none if in files, each
/// of its own or packed.
pub(super) fn ref_storage(config: &str) -> Option<String> {
    let settings = settings(config).into_iter();
    let mut of = settings.filter(|of| of.is("extensions", "refstorage") && of.name.is_empty());
    let format = plain(of.next_back()?.value);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_fit = (1..=32).contains(&format.len()) && format.chars().all(is_word);
    let format = if is_fit { format } else { "an unknown format".to_owned() };
    (!format.eq_ignore_ascii_case("files")).then_some(format)
}

/// The remotes of a configuration with their first addresses.
fn remotes(config: &str) -> Vec<(String, String)> {
    let mut remotes: Vec<(String, String)> = Vec::new();
    for of in settings(config).into_iter().filter(|of| of.is("remote", "url")) {
        let is_known = remotes.iter().any(|(known, _)| known == of.name);
        if !is_known && remotes.len() < REMOTES_MAX {
            remotes.push((of.name.to_owned(), plain(of.value)));
        }
    }
    remotes
}

/// One line of a configuration that sets something.
struct Setting<'c> {
    /// The kind of its section.
    kind: &'c str,
    /// What the section is about: the name in quotes.
    name: &'c str,
    key: &'c str,
    value: &'c str,
}

impl Setting<'_> {
    fn is(&self, kind: &str, key: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind) && self.key.eq_ignore_ascii_case(key)
    }
}

/// Everything that a configuration sets.
fn settings(config: &str) -> Vec<Setting<'_>> {
    let (mut settings, mut within) = (Vec::new(), None);
    for line in config.lines().map(str::trim) {
        let mut line = line;
        if line.starts_with('[') {
            let section = section(line);
            within = section.map(|(kind, name, _)| (kind, name));
            line = section.map_or("", |(_, _, rest)| rest);
        }
        if let (Some((kind, name)), Some((key, value))) = (within, line.split_once('=')) {
            settings.push(Setting { kind, name, key: key.trim(), value });
        }
    }
    settings
}

/// The kind of a section, what it is about, and the rest of its line.
fn section(line: &str) -> Option<(&str, &str, &str)> {
    let inner = line.strip_prefix('[')?;
    let is_named = inner.find('"').is_some_and(|quote| inner[..quote].find(']').is_none());
    let (kind, name, rest) = if is_named {
        let (kind, rest) = inner.split_once('"')?;
        let (name, rest) = rest.split_once('"')?;
        (kind, name, rest.trim_start().strip_prefix(']')?)
    } else {
        let (kind, rest) = inner.split_once(']')?;
        (kind, "", rest)
    };
    Some((kind.trim(), name, rest.trim()))
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
    fn references_are_in_files_unless_the_configuration_says_where() {
        for (config, format) in [
            ("[core]\n\tbare = false\n", None),
            ("[extensions]\n\trefstorage = files\n", None),
            (
                "[core]\nbare = false\n[extensions]\n\tRefStorage = reftable ; new\n",
                Some("reftable"),
            ),
            ("[Extensions] refstorage = \"reftable\"", Some("reftable")),
            ("[extensions \"x\"]\nrefstorage = reftable", None),
            ("[remote \"extensions\"]\nrefstorage = reftable", None),
            ("[extensions]\nrefstorage = a\u{1b}[2Jb", Some("an unknown format")),
        ] {
            assert_eq!(ref_storage(config).as_deref(), format, "{config}");
        }
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
