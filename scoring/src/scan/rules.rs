//! The table of rules, in the order in which they are asked.
//!
//! Of several findings of secrets at the same place the first rule's counts, so what names an issuer
//! comes before what only sounds secret.

use super::rule::Rule;

mod code;
mod credential;
mod exfiltration;
mod injection;
mod leakage;

/// The tables, by axis.
const TABLES: [&[Rule]; 5] =
    [credential::RULES, leakage::RULES, injection::RULES, exfiltration::RULES, code::RULES];

/// Every rule.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    TABLES.into_iter().flatten()
}

/// The rule of that name, to explain a stored finding.
#[must_use]
pub fn named(name: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.name == name)
}
