//! Credentials stated in a sentence.

use crate::content_scan::rule_definition::{ScanPattern, ScanRule, TextForm, ValueCheck};
use crate::content_scan::{ScanAxis, Severity};

pub(super) const RULES: &[ScanRule] = &[
    ScanRule {
        name: "password-in-prose",
        axis: ScanAxis::Leakage,
        severity: Severity::High,
        what: "a sentence that says what a password is",
        pattern: ScanPattern {
            reading: TextForm::Raw,
            hints: &["password", "passphrase", "passwd", "passcode"],
            expression: concat!(
                r"(?i)pass(?:word|phrase|wd|code)(?: (?:for|of|on|to|in) [^\n.:;]{1,40}?)? ",
                "(?:is|was|to|will be)(?: now| still| set to",
                r#"| currently)?:? ["'`]?([^\s"'`]{6,128})"#
            ),
            check: ValueCheck::ProsePassword,
        },
    },
    ScanRule {
        name: "token-in-prose",
        axis: ScanAxis::Leakage,
        severity: Severity::High,
        what: "a sentence that says what a key or token is",
        pattern: ScanPattern {
            reading: TextForm::Raw,
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
            check: ValueCheck::ProseToken,
        },
    },
    ScanRule {
        name: "login-in-prose",
        axis: ScanAxis::Leakage,
        severity: Severity::High,
        what: "a sentence that says how to log in, with the password",
        pattern: ScanPattern {
            reading: TextForm::Raw,
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
            check: ValueCheck::ProsePassword,
        },
    },
];
