//! Flags content that is no secret but should not leave an organisation: paths, hosts, addresses,
//! names, vulnerabilities.
//!
//! Flags are shown to the person who shares an entry. They change no verdict and hold nothing back;
//! the caller decides how to act on them.

use super::matcher::Matcher;
use super::rule_definition::{ScanPattern, TextForm, ValueCheck};
use aho_corasick::AhoCorasick;
use std::ops::Range;

/// The topic of content-scan findings. The flag's text then names severity and rule, and quotes
/// nothing from the field.
pub const SCAN_TOPIC: &str = "scan";

/// Category of a flag. The order is that of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// A path in a home folder, which contains the name of a person.
    HomePath,
    /// A repository other than the entry's own.
    ForeignRepository,
    /// A host name that is known only in its own network.
    Hostname,
    /// An address in a private network.
    InternalEndpoint,
    /// A configured name of a customer or an organisation.
    Name,
    /// An unfixed vulnerability, or a way to exploit one.
    Weakness,
}

impl Topic {
    /// Name shown to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Topic::HomePath => "home path",
            Topic::ForeignRepository => "foreign repository",
            Topic::Hostname => "hostname",
            Topic::InternalEndpoint => "internal endpoint",
            Topic::Name => "name",
            Topic::Weakness => "weakness",
        }
    }
}

/// One passage to review before sharing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureFlag {
    /// Category of the flag.
    pub topic: Topic,
    /// Byte range in the text, on character boundaries.
    pub span: Range<usize>,
}

/// Detector of content that should not be shared. Build it once for each set of names.
#[derive(Debug)]
pub struct Border {
    matcher: Matcher,
    names: Option<AhoCorasick>,
    /// Repositories whose paths and addresses the readers already know.
    own: Vec<String>,
}

impl Border {
    /// Detects these names of customers or organisations, as whole words in any case. Paths and
    /// addresses that begin with one of the `own` repositories (`host/owner/name` or a path) are
    /// not flagged. Empty names are ignored.
    #[must_use]
    pub fn new(names: &[&str], own: &[&str]) -> Self {
        let names: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
        let automaton = || AhoCorasick::builder().ascii_case_insensitive(true).build(&names).ok();
        let patterns: Vec<&'static ScanPattern> =
            TABLE.iter().map(|(_, pattern)| pattern).collect();
        Self {
            matcher: Matcher::new(&patterns),
            names: if names.is_empty() { None } else { automaton() },
            own: own.iter().filter(|own| !own.is_empty()).map(|own| (*own).to_owned()).collect(),
        }
    }

    /// Passages to review before sharing the text, sorted by position.
    #[must_use]
    pub fn flags(&self, text: &str) -> Vec<DisclosureFlag> {
        self.flags_beside(text, &[])
    }

    /// As [`Border::flags`], with further repositories that the readers know.
    #[must_use]
    pub fn flags_beside(&self, text: &str, own: &[String]) -> Vec<DisclosureFlag> {
        let found = self.matcher.find(text).into_iter();
        let mut flags: Vec<DisclosureFlag> = found
            .map(|found| flag(TABLE[found.pattern].0, text, found.span))
            .filter(|flag| !self.own.iter().chain(own).any(|own| is_under(own, flag, text)))
            .collect();
        let names = self.names.iter().flat_map(|names| names.find_iter(text));
        flags.extend(
            names
                .filter(|name| is_whole_word(text, name.range()))
                .map(|name| DisclosureFlag { topic: Topic::Name, span: name.range() }),
        );
        flags.sort_by_key(|flag| (flag.span.start, flag.span.end, flag.topic));
        flags.dedup();
        flags
    }
}

/// Whether a flag refers to a repository or a path in it.
fn is_under(own: &str, flag: &DisclosureFlag, text: &str) -> bool {
    let place = text[flag.span.clone()].replace(':', "/");
    let begins = |place: &str| place.strip_prefix(own).is_some_and(ends_part);
    begins(&place) || begins(place.trim_start_matches("git@"))
}

/// Builds a flag. For a host name the pattern matches only the last label, so the span is extended
/// to its beginning.
fn flag(topic: Topic, text: &str, span: Range<usize>) -> DisclosureFlag {
    const HOSTNAME_BYTES_MAX: usize = 253;
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let before = text.as_bytes()[..span.start].iter().rev().take(HOSTNAME_BYTES_MAX);
    let length = if topic == Topic::Hostname { before.take_while(is_part).count() } else { 0 };
    DisclosureFlag { topic, span: span.start - length..span.end }
}

/// Whether the text after a repository name does not continue the name.
fn ends_part(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/') || rest.starts_with(".git")
}

fn is_whole_word(text: &str, span: Range<usize>) -> bool {
    let before = text[..span.start].chars().next_back();
    let after = text[span.end..].chars().next();
    !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
}

const fn raw(hints: &'static [&'static str], expression: &'static str) -> ScanPattern {
    ScanPattern { reading: TextForm::Raw, hints, expression, check: ValueCheck::Any }
}

const fn words(hints: &'static [&'static str], expression: &'static str) -> ScanPattern {
    ScanPattern { reading: TextForm::Words, hints, expression, check: ValueCheck::Any }
}

/// Patterns of each topic.
const TABLE: &[(Topic, ScanPattern)] = &[
    (
        Topic::HomePath,
        raw(
            &["/home/", "/Users/", "C:\\Users\\", "/root/"],
            concat!(
                r"(?i)(?:(?:/home|/Users)/[a-z0-9._-]{1,40}|C:\\Users\\[a-z0-9._-]{1,40}|/root)",
                r"(?:[/\\][^\s\x22'`)<>]{0,120})?"
            ),
        ),
    ),
    (
        Topic::ForeignRepository,
        raw(
            &["git@", "github.com", "gitlab.com", "bitbucket.org", "codeberg.org"],
            concat!(
                r"(?i)(?:git@[a-z0-9.-]{1,60}|(?:github|gitlab)\.com|bitbucket\.org|codeberg\.org)",
                r"[:/][a-z0-9._-]{1,40}/[a-z0-9._-]{1,60}"
            ),
        ),
    ),
    (
        Topic::Hostname,
        raw(
            &[
                ".internal",
                ".corp",
                ".local",
                ".lan",
                ".intra",
                ".intranet",
                ".home.arpa",
                ".localdomain",
            ],
            concat!(
                r"(\.(?:internal|corp|local|lan|intra|intranet|home\.arpa|localdomain))",
                r"(?:[^A-Za-z0-9_(.-]|\.[^A-Za-z]|$)"
            ),
        ),
    ),
    (
        Topic::InternalEndpoint,
        raw(
            &["10.", "192.168.", "172."],
            concat!(
                r"(?:10\.[0-9]{1,3}|192\.168|172\.(?:1[6-9]|2[0-9]|3[01]))\.[0-9]{1,3}\.[0-9]{1,3}",
                r"(?::[0-9]{1,5}|/[^\s]{0,60})?"
            ),
        ),
    ),
    (
        Topic::Weakness,
        words(
            &[
                "unpatched",
                "not yet patched",
                "not patched",
                "not yet fixed",
                "zero day",
                "0day",
                "0 day",
                "proof of concept",
                "vulnerable to",
                "exploit",
                "can be bypassed",
                "default credentials",
                "no rate limit",
                "without authentication",
                "remote code execution",
            ],
            concat!(
                "(?:unpatched|not (?:yet )?(?:patched|fixed)|(?:zero|0) day|proof of concept exploit",
                "|vulnerable to|exploit(?:able|ed|s)? (?:by|via|with|for|using|the)|can be bypassed",
                "|default credentials (?:are|still|work)|no rate limit(?:ing)? on",
                "|without authentication|remote code execution (?:in|via|through|by))"
            ),
        ),
    ),
];

#[cfg(test)]
mod tests {
    use super::Topic::{ForeignRepository, HomePath, Hostname, InternalEndpoint, Name, Weakness};
    use super::{Border, Topic};

    fn check(text: &str, expect: &[(Topic, &str)]) {
        let border =
            Border::new(&["Acme", "Blue Harbour"], &["github.com/own/repo", "/home/ci/repo"]);
        let flags = border.flags(text);
        let found: Vec<(Topic, &str)> =
            flags.iter().map(|flag| (flag.topic, &text[flag.span.clone()])).collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn internal_details_are_flagged() {
        check("see /home/ada/work/x.rs here", &[(HomePath, "/home/ada/work/x.rs")]);
        check("C:\\Users\\ada\\x", &[(HomePath, "C:\\Users\\ada\\x")]);
        check("git@github.com:them/thing", &[(ForeignRepository, "git@github.com:them/thing")]);
        check("https://gitlab.com/a/b", &[(ForeignRepository, "gitlab.com/a/b")]);
        check("on db1.prod.internal, port 1", &[(Hostname, "db1.prod.internal")]);
        check("at 10.1.2.3:8080 now", &[(InternalEndpoint, "10.1.2.3:8080")]);
        check("for ACME and blue harbour.", &[(Name, "ACME"), (Name, "blue harbour")]);
        check("It is still unpatched", &[(Weakness, "unpatched")]);
        check("the parser is vulnerable to it", &[(Weakness, "vulnerable to")]);
    }

    #[test]
    fn public_details_are_not_flagged() {
        for text in [
            "cargo test in src/main.rs",
            "https://github.com/own/repo/issues/1 and git@github.com:own/repo.git",
            "/home/ci/repo/src/lib.rs",
            "127.0.0.1:8080, localhost, 172.40.1.1, version 10.2.3",
            "acmeism, self.local_value, foo.internal()",
            "we fixed and released it",
            "",
        ] {
            check(text, &[]);
        }
    }

    #[test]
    fn a_repository_that_shares_a_name_prefix_is_foreign() {
        check("github.com/own/repository", &[(ForeignRepository, "github.com/own/repository")]);
    }
}
