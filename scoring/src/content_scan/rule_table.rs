//! The table of rules, in order of precedence.
//!
//! If several rules find a secret at the same place, the first rule names it, so rules for a
//! specific issuer come before generic ones.

use super::rule_definition::ScanRule;

mod credential;
mod exfiltration;
mod harmful_code;
mod prompt_injection;
mod stated_credentials;

/// Rules grouped by axis.
const TABLES: [&[ScanRule]; 5] = [
    credential::RULES,
    stated_credentials::RULES,
    prompt_injection::RULES,
    exfiltration::RULES,
    harmful_code::RULES,
];

/// All rules, in order of precedence.
pub fn all() -> impl Iterator<Item = &'static ScanRule> {
    TABLES.into_iter().flatten()
}

/// The rule with this name, to explain a stored finding.
#[must_use]
pub fn named(name: &str) -> Option<&'static ScanRule> {
    all().find(|rule| rule.name == name)
}
