//! The outcome, the sub-type and the decay class of an entry, as a hit tells them.
//!
//! An author can write any text into these registers. A label stands outside of the quoted text, so
//! only words that this version knows become labels.

use super::Found;
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_scoring::decay::Class;

/// The labels of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The outcome of a spike.
    pub outcome: Option<String>,
    /// The sub-type.
    pub sub_type: Option<String>,
    /// The decay class, where one is set.
    pub decay_class: Option<String>,
}

impl Labels {
    /// The labels of a found entry.
    #[must_use]
    pub fn of(found: &Found) -> Self {
        Self::from_registers(|register| {
            let shown = found.view.registers.get(&register)?;
            let is_own = found.voices.contains(&shown.value.author);
            is_own.then_some(shown.value.text.as_str())
        })
    }

    /// The labels of registers, without words that this version does not know.
    pub fn from_registers<'a>(text: impl Fn(Register) -> Option<&'a str>) -> Self {
        let known = |register, is_known: fn(&str) -> bool| {
            text(register).filter(|word| is_known(word)).map(str::to_owned)
        };
        Self {
            outcome: known(Register::OUTCOME, |word| Kind::OUTCOMES.contains(&word)),
            sub_type: known(Register::SUB_TYPE, |word| Kind::all_sub_types().any(|of| of == word)),
            decay_class: known(Register::DECAY_CLASS, |word| Class::named(word).is_some()),
        }
    }

    /// The labels as short phrases. The default decay class says nothing and is left out.
    #[must_use]
    pub fn phrases(&self) -> Vec<String> {
        let fades = self
            .decay_class
            .as_ref()
            .filter(|name| Class::named(name).is_some_and(|class| class != Class::default()));
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
    fn only_known_words_become_labels_and_the_default_class_is_not_told() {
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
