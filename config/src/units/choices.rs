//! Enumerations: settings that accept one of a few words, and booleans.
//!
//! Other crates have domain types with the same names. This crate is a leaf, so it repeats the
//! words that users type, and gives them no behaviour.

use serde::Deserialize;
use toml::Value;

use super::InvalidValue;

/// Declares an enum with a word for each variant.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(try_from = "Value")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All variants, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word, as written in a configuration file.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl TryFrom<Value> for $name {
            type Error = InvalidValue;

            fn try_from(value: Value) -> Result<Self, InvalidValue> {
                let given = value.as_str().unwrap_or_default();
                let found = Self::ALL.iter().copied().find(|word| word.as_str() == given);
                found.ok_or_else(|| one_of(&[$($word),+]))
            }
        }
    };
}

/// A boolean setting, written as `true` or `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Switch(bool);

impl Switch {
    /// True if the setting is `true`.
    #[must_use]
    pub fn is_on(self) -> bool {
        self.0
    }
}

impl TryFrom<Value> for Switch {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        value.as_bool().map(Self).ok_or_else(|| InvalidValue::new("true or false"))
    }
}

fn one_of(words: &[&str]) -> InvalidValue {
    InvalidValue::new(format!("one of \"{}\"", words.join("\", \"")))
}

words!(
    /// The thread to use if the caller names none.
    ThreadDefault {
        /// No thread: the whole workspace.
        None = "none",
        /// The name of the branch that is checked out at the caller's location.
        Branch = "branch",
    }
);

words!(
    /// The treatment of entries for a shared workspace that name hosts, paths, customers or
    /// weaknesses.
    DisclosureRule {
        /// They are shared; the author sees a warning.
        Warn = "warn",
        /// They wait in the inbox until the operator releases or rephrases them.
        Hold = "hold",
        /// They are not written.
        Refuse = "refuse",
    }
);

words!(
    /// Minimum severity of logged messages.
    LogLevel {
        /// No messages at all.
        Off = "off",
        /// Operations that failed.
        Error = "error",
        /// Events that a person must act on.
        Warn = "warn",
        /// Normal events of operation.
        Info = "info",
        /// Decisions and their reasons.
        Debug = "debug",
        /// Every input and output.
        Trace = "trace",
    }
);

words!(
    /// Format of log lines.
    LogFormat {
        /// Plain text, for people.
        Text = "text",
        /// One JSON object per line, for programs.
        Json = "json",
    }
);

words!(
    /// The component that computes vectors of texts.
    EmbedderKind {
        /// The table and the transformer in the program.
        Transformer = "transformer",
        /// The table in the program alone.
        Static = "static",
        /// A server with the embeddings API of OpenAI.
        OpenAi = "openai",
        /// A server with the API of Ollama.
        Ollama = "ollama",
    }
);

words!(
    /// Rate at which observations of an entry lose weight.
    DecayClass {
        /// For entries that age with the code.
        Ephemeral = "ephemeral",
        /// For entries that age over months.
        Stable = "stable",
        /// For entries that do not age.
        Permanent = "permanent",
    }
);

words!(
    /// The memory that an entry belongs to.
    Memory {
        /// Durable facts; the default for most entry types.
        Semantic = "semantic",
        /// Norms and expectations about the way of working.
        Procedural = "procedural",
        /// Raw observations, which no search returns.
        Episodic = "episodic",
    }
);

words!(
    /// The status of an entry on this node.
    Status {
        /// New and not tried yet; can be retrieved.
        Candidate = "candidate",
        /// Helped at least once on this node.
        Active = "active",
        /// Helped repeatedly on this node.
        Verified = "verified",
        /// Unused for long, or often a wrong match.
        Stale = "stale",
        /// Archived: kept, but not retrieved by default.
        Archived = "archived",
        /// Rejected by the scanner or by admission.
        Rejected = "rejected",
        /// Retracted by its author.
        Retracted = "retracted",
    }
);

words!(
    /// Origin of the entries that pass a filter.
    Reach {
        /// Only entries that the sending node created.
        CreatedHere = "created_here",
        /// Entries of other nodes, too.
        AlsoRelayed = "also_relayed",
    }
);

words!(
    /// The type of an entry.
    EntryType {
        /// A technique, a pattern or an anti-pattern.
        Skill = "skill",
        /// A decision, a convention, a learning or a bug.
        Experience = "experience",
        /// A conclusion drawn from experience.
        Lesson = "lesson",
        /// An experiment and its outcome.
        Spike = "spike",
        /// A defect or fact found in the code, with anchors.
        Finding = "finding",
        /// A rule for the way the team works.
        Norm = "norm",
        /// A thing that other entries refer to.
        Entity = "entity",
        /// A relation between two things.
        Relation = "relation",
        /// A raw signal.
        Signal = "signal",
        /// A raw report of an obstacle in the work.
        Friction = "friction",
        /// A raw note on the behaviour of an agent.
        Calibration = "calibration",
        /// A longer text with instructions for a procedure.
        Playbook = "playbook",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_displayed_word_parses_to_the_same_value() {
        for &word in EntryType::ALL {
            assert_eq!(EntryType::try_from(Value::String(word.as_str().into())), Ok(word));
        }
    }

    #[test]
    fn a_switch_is_true_or_false_and_nothing_else() {
        assert_eq!(Switch::try_from(Value::Boolean(true)).map(Switch::is_on), Ok(true));
        assert_eq!(Switch::try_from(Value::Boolean(false)).map(Switch::is_on), Ok(false));
        for value in [Value::String("true".into()), Value::Integer(1)] {
            assert_eq!(Switch::try_from(value).unwrap_err().to_string(), "must be true or false");
        }
    }

    #[test]
    fn a_wrong_word_is_answered_with_all_right_ones() {
        for value in [Value::String("epsodic".into()), Value::Integer(1), Value::String("".into())]
        {
            assert_eq!(
                Memory::try_from(value).unwrap_err().to_string(),
                "must be one of \"semantic\", \"procedural\", \"episodic\""
            );
        }
    }
}
