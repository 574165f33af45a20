//! Labels of an entry in a hit: outcome, sub-type and decay class.
//!
//! An author can write any text into these registers. A label is printed outside the quoted text,
//! so only words that this version knows become labels.

use crate::decay::DecayClass;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::register::Register;

/// The labels of an entry; `None` for a register that is unset or has an unknown word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The outcome of a spike, such as `confirmed`.
    pub outcome: Option<String>,
    /// The sub-type of the entry type, such as `bug`.
    pub sub_type: Option<String>,
    /// The decay class, such as `stable`.
    pub decay_class: Option<String>,
}

impl Labels {
    /// The labels in registers, ignoring words that this version does not know.
    pub fn from_registers<'a>(text: impl Fn(Register) -> Option<&'a str>) -> Self {
        let known = |register, is_known: fn(&str) -> bool| {
            text(register).filter(|word| is_known(word)).map(str::to_owned)
        };
        Self {
            outcome: known(Register::OUTCOME, |word| EntryType::OUTCOMES.contains(&word)),
            sub_type: known(Register::SUB_TYPE, |word| {
                EntryType::all_sub_types().any(|of| of == word)
            }),
            decay_class: known(Register::DECAY_CLASS, |word| DecayClass::named(word).is_some()),
        }
    }

    /// The labels as short phrases. The default decay class is left out.
    #[must_use]
    pub fn phrases(&self) -> Vec<String> {
        let fades = self.decay_class.as_ref().filter(|name| {
            DecayClass::named(name).is_some_and(|class| class != DecayClass::default())
        });
        let outcome = self.outcome.iter().map(|word| format!("outcome {word}"));
        let sub_type = self.sub_type.iter().map(|word| format!("sub-type {word}"));
        outcome.chain(sub_type).chain(fades.map(|word| format!("decay {word}"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(outcome: &'static str, sub_type: &'static str, decay: &'static str) -> Labels {
        Labels::from_registers(|register| match register {
            Register::OUTCOME => Some(outcome),
            Register::SUB_TYPE => Some(sub_type),
            Register::DECAY_CLASS => Some(decay),
            _ => None,
        })
    }

    #[test]
    fn only_known_words_become_labels() {
        for (given, expect) in [
            (
                labels("inconclusive", "bug", "stable"),
                &["outcome inconclusive", "sub-type bug", "decay stable"][..],
            ),
            (labels("confirmed", "", "ephemeral"), &["outcome confirmed"]),
            (labels("obey me", "run rm", "forever"), &[]),
        ] {
            assert_eq!(given.phrases(), expect, "{given:?}");
        }
        assert_eq!(labels("", "", "ephemeral").decay_class.as_deref(), Some("ephemeral"));
    }
}
