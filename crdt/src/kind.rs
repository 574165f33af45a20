//! Types of entries and their citation codes.

use crate::ids::EntryId;

/// What sort of knowledge an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A technique that can be used again.
    Skill,
    /// What was observed, decided or agreed.
    Experience,
    /// What was learned from it.
    Lesson,
    /// An experiment with an outcome.
    Spike,
    /// Something found in a review.
    Finding,
    /// How the team works.
    Norm,
    /// A thing that other entries speak of.
    Entity,
    /// How two things are related.
    Relation,
    /// A raw signal.
    Signal,
    /// Raw operational friction.
    Friction,
    /// A raw note on how an agent behaves.
    Calibration,
    /// A longer text: how something is done.
    Playbook,
}

impl Kind {
    /// All types: name, letter of the citation code, sub-types.
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

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// From its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Whether it is raw: noted as it happened, and of the episodic memory.
    pub fn is_raw(self) -> bool {
        matches!(self, Self::Signal | Self::Friction | Self::Calibration)
    }

    /// Its sub-types; empty if it has none.
    pub fn sub_types(self) -> &'static [&'static str] {
        self.row().3
    }

    /// The sub-types of all types.
    pub fn all_sub_types() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().flat_map(|row| row.3).copied()
    }

    /// The citation code of an entry of this type, such as `L-7F3KQ2MX`: easy to say and to
    /// search for. The letter is a hint; the eight characters are the first 40 bits of the id.
    pub fn code(self, entry: EntryId) -> String {
        format!("{}-{}", self.row().2, code_digits(entry))
    }
}

/// The eight base-32 characters of an entry's code.
pub fn code_digits(entry: EntryId) -> String {
    data_encoding::BASE32_NOPAD.encode(&entry.as_bytes()[..5])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_letter_and_eight_characters() {
        let code = Kind::Lesson.code(EntryId::from_bytes([0xFF; 16]));
        assert_eq!(code, "L-77777777");
    }

    #[test]
    fn names_and_letters_of_types_are_unique() {
        for row in Kind::ALL {
            assert_eq!(Kind::parse(row.1), Some(row.0));
            assert_eq!(Kind::ALL.iter().filter(|other| other.2 == row.2).count(), 1);
        }
    }
}
