//! Entry types and citation codes.
//!
//! An entry stores its type by name in [`Register::TYPE`](crate::register::Register::TYPE). A node keeps
//! and forwards type names of later versions, but has no [`EntryType`] for them.

use crate::ids::EntryId;

/// The type of an entry. Each type has a name, a letter for citation codes, and its own sub-types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryType {
    /// A technique that can be used again.
    Skill,
    /// An observation, a decision or a convention.
    Experience,
    /// A conclusion drawn from experience.
    Lesson,
    /// An experiment and its outcome.
    Spike,
    /// A defect or a fact found in a review.
    Finding,
    /// A rule for the way the team works.
    Norm,
    /// A thing that other entries refer to, such as a service or a module.
    Entity,
    /// A relation between two things.
    Relation,
    /// A signal, recorded without interpretation.
    Signal,
    /// An obstacle in the work, such as a tool error or a redo, recorded without interpretation.
    Friction,
    /// A note on the behaviour of an agent, recorded without interpretation.
    Calibration,
    /// A longer text with instructions for a procedure.
    Playbook,
}

impl EntryType {
    /// All types, each with its name, the letter of its citation code, and its sub-types.
    pub const ALL: [(Self, &'static str, char, &'static [&'static str]); 12] = [
        (Self::Skill, "skill", 'K', &["technique", "pattern", "anti_pattern"]),
        (Self::Experience, "experience", 'E', &["decision", "convention", "learning", "bug"]),
        (Self::Lesson, "lesson", 'L', &[]),
        (Self::Spike, "spike", 'S', &[]),
        (Self::Finding, "finding", 'F', &[]),
        (Self::Norm, "norm", 'N', &["commit", "pr", "expectation", "risk"]),
        (Self::Entity, "entity", 'T', &[]),
        (Self::Relation, "relation", 'R', &[]),
        (Self::Signal, "signal", 'G', &[]),
        (Self::Friction, "friction", 'X', &["tool_error", "redo", "validation_fail"]),
        (Self::Calibration, "calibration", 'C', &[]),
        (Self::Playbook, "playbook", 'P', &[]),
    ];

    /// The outcomes that a spike may have.
    pub const OUTCOMES: [&'static str; 4] = ["confirmed", "rejected", "partial", "inconclusive"];

    fn row(self) -> &'static (Self, &'static str, char, &'static [&'static str]) {
        Self::ALL.iter().find(|row| row.0 == self).expect("every kind has a row")
    }

    /// The name stored in the type register, such as `lesson`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The type with this name; `None` for types of later versions.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// True for raw types. Raw entries are recorded as they happen and belong to episodic memory.
    pub fn is_raw(self) -> bool {
        matches!(self, Self::Signal | Self::Friction | Self::Calibration)
    }

    /// The sub-types of this type; empty if it has none.
    pub fn sub_types(self) -> &'static [&'static str] {
        self.row().3
    }

    /// The sub-types of all types, without their types.
    pub fn all_sub_types() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().flat_map(|row| row.3).copied()
    }

    /// The citation code of an entry of this type, such as `L-7F3KQ2MX`, which is easy to say and
    /// to search for. The letter is only a hint. The eight characters encode the first 40 bits of
    /// the id.
    pub fn code(self, entry: EntryId) -> String {
        format!("{}-{}", self.row().2, code_digits(entry))
    }
}

/// The eight base-32 characters of an entry's citation code: the first 40 bits of its id.
pub fn code_digits(entry: EntryId) -> String {
    data_encoding::BASE32_NOPAD.encode(&entry.as_bytes()[..5])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_letter_and_eight_characters() {
        let code = EntryType::Lesson.code(EntryId::from_bytes([0xFF; 16]));
        assert_eq!(code, "L-77777777");
    }

    #[test]
    fn names_and_letters_of_types_are_unique() {
        for row in EntryType::ALL {
            assert_eq!(EntryType::parse(row.1), Some(row.0));
            assert_eq!(EntryType::ALL.iter().filter(|other| other.2 == row.2).count(), 1);
        }
    }
}
