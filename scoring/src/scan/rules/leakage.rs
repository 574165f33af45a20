//! Credentials that a sentence gives away.

use crate::scan::rule::{Check, Pattern, Reading, Rule};
use crate::scan::{Axis, Severity};

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "password-in-prose",
        axis: Axis::Leakage,
        severity: Severity::High,
        what: "a sentence that says what a password is",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &["password", "passphrase", "passwd", "passcode"],
            expression: concat!(
                r"(?i)pass(?:word|phrase|wd|code)(?: (?:for|of|on|to|in) [^\n.:;]{1,40}?)? ",
                "(?:is|was|to|will be)(?: now| still| set to",
                r#"| currently)?:? ["'`]?([^\s"'`]{6,128})"#
            ),
            check: Check::ProsePassword,
        },
    },
    Rule {
        name: "token-in-prose",
        axis: Axis::Leakage,
        severity: Severity::High,
        what: "a sentence that says what a key or token is",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &[
                "api key",
                "access key",
                "secret key",
                "auth key",
                "api-key",
                "api_key",
                "token",
                "secret",
            ],
            expression: concat!(
                "(?i)(?:(?:api|access|secret|auth)[ _-]key|token|secret)(?: (?:for|of|on|to",
                r"|in) [^\n.:;]{1,40}?)? ",
                r#"(?:is|was|will be)(?: now| still| currently)?:? ["'`]?([^\s"'`]{12,128})"#
            ),
            check: Check::ProseToken,
        },
    },
    Rule {
        name: "login-in-prose",
        axis: Axis::Leakage,
        severity: Severity::High,
        what: "a sentence that says how to log in, with the password",
        pattern: Pattern {
            reading: Reading::Raw,
            hints: &[
                "log in",
                "login",
                "logged in",
                "sign in",
                "connect",
                "ssh ",
                "credentials",
                "creds",
            ],
            expression: concat!(
                "(?i)(?:(?:log(?:ged)? ?in|sign in|connect|ssh)(?: (?:as|with|using|to|via",
                r"|into))? [^\n]{1,60}? ",
                r#"(?:password|pass|pw|pwd)[: =]{1,2}["'`]?([^\s"'`]{6,128})"#,
                "|(?:credentials|creds)(?: are",
                r#"| is)?:? ["'`]?[a-z0-9._@-]{2,40} ?[/:] ?["'`]?([^\s"'`/]{6,128}))"#
            ),
            check: Check::ProsePassword,
        },
    },
];
