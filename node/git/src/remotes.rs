//! Chooses the remote that names a repository and normalises its address.
//!
//! Included configuration files are not read. User name and password in an address are dropped
//! first, because some users keep tokens there.

/// Maximum length of an address in bytes.
pub(super) const REMOTE_BYTES_MAX: usize = 512;
/// Maximum number of remotes inspected per configuration.
const REMOTES_MAX: usize = 256;

/// The address that names a repository, from its configuration text: that of `origin`, or of the
/// only remote. `None` if it is a folder on this machine, which means nothing elsewhere.
pub(super) fn named_by(config: &str) -> Option<String> {
    let remotes = remotes(config);
    let origin = remotes.iter().find(|(name, _)| name == "origin");
    let only = || remotes.first().filter(|_| remotes.len() == 1);
    normalised(&origin.or_else(only)?.1)
}

/// The reference storage format from the configuration text; `None` for the usual files, loose or
/// packed.
pub(super) fn ref_storage(config: &str) -> Option<String> {
    let settings = settings(config).into_iter();
    let mut of = settings.filter(|of| of.is("extensions", "refstorage") && of.name.is_empty());
    let format = plain(of.next_back()?.value);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_fit = (1..=32).contains(&format.len()) && format.chars().all(is_word);
    let format = if is_fit { format } else { "an unknown format".to_owned() };
    (!format.eq_ignore_ascii_case("files")).then_some(format)
}

/// The remotes of a configuration, each with its first address.
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

/// One setting of a configuration.
struct ConfigLine<'c> {
    /// Type of its section.
    kind: &'c str,
    /// Name of the section, in quotes in the file.
    name: &'c str,
    key: &'c str,
    value: &'c str,
}

impl ConfigLine<'_> {
    fn is(&self, kind: &str, key: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind) && self.key.eq_ignore_ascii_case(key)
    }
}

/// All settings of a configuration.
fn settings(config: &str) -> Vec<ConfigLine<'_>> {
    let (mut settings, mut within) = (Vec::new(), None);
    for line in config.lines().map(str::trim) {
        let mut line = line;
        if line.starts_with('[') {
            let section = section(line);
            within = section.map(|(kind, name, _)| (kind, name));
            line = section.map_or("", |(_, _, rest)| rest);
        }
        if let (Some((kind, name)), Some((key, value))) = (within, line.split_once('=')) {
            settings.push(ConfigLine { kind, name, key: key.trim(), value });
        }
    }
    settings
}

/// Type and name of a section, and the rest of its line.
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

/// A value without quotes and trailing comment.
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

/// Normalises an address to host and path, without scheme, user, password, port and `.git`. `None`
/// for folders on this machine.
pub(super) fn normalised(address: &str) -> Option<String> {
    let (host, path) = match address.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("file") => return None,
        Some((_, rest)) => rest.split_once('/')?,
        // The scp form has no slash before the colon; with one it would be a folder.
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
    fn all_addresses_of_a_repository_normalise_to_one() {
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
    fn folders_and_malformed_addresses_are_not_remotes() {
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
    fn reference_storage_follows_the_configuration() {
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
    fn origin_or_the_only_remote_names_a_repository() {
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
