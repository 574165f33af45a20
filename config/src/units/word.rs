//! Values that are one word out of a few.
//!
//! Separate from the domain types of the same names in other crates: this crate is a leaf and knows
//! only the words, which are the ones users type. What a word means is never decided here.

use serde::Deserialize;
use toml::Value;

use super::Unfit;

/// Declares an enum whose variants are written as words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        #[serde(try_from = "Value")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// All of them, in the order in which they are declared.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as it is written in a file.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl TryFrom<Value> for $name {
            type Error = Unfit;

            fn try_from(value: Value) -> Result<Self, Unfit> {
                let given = value.as_str().unwrap_or_default();
                let found = Self::ALL.iter().copied().find(|word| word.as_str() == given);
                found.ok_or_else(|| one_of(&[$($word),+]))
            }
        }
    };
}

/// Something that is on or off, written as true or false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct Switch(bool);

impl Switch {
    /// Whether it is on.
    #[must_use]
    pub fn is_on(self) -> bool {
        self.0
    }
}

impl TryFrom<Value> for Switch {
    type Error = Unfit;

    fn try_from(value: Value) -> Result<Self, Unfit> {
        value.as_bool().map(Self).ok_or_else(|| Unfit::new("true or false"))
    }
}

fn one_of(words: &[&str]) -> Unfit {
    Unfit::new(format!("one of \"{}\"", words.join("\", \"")))
}

words!(
    /// The thread where none is named.
    ThreadDefault {
        /// None.
        None = "none",
        /// The branch that is checked out.
        Branch = "branch",
    }
);

words!(
    /// How much is logged.
    LogLevel {
        /// Nothing.
        Off = "off",
        /// What failed.
        Error = "error",
        /// What a person must act on.
        Warn = "warn",
        /// What happened.
        Info = "info",
        /// What was decided, and why.
        Debug = "debug",
        /// Every input and output.
        Trace = "trace",
    }
);

words!(
    /// What lines of the log look like.
    LogFormat {
        /// For people.
        Text = "text",
        /// For programs: an object on each line.
        Json = "json",
    }
);

words!(
    /// What turns texts into vectors.
    EmbedderKind {
        /// The table in the program.
        BuiltIn = "built_in",
        /// A transformer in a local folder.
        Folder = "folder",
        /// A server that speaks as OpenAI's does.
        OpenAi = "openai",
        /// A server that speaks as Ollama does.
        Ollama = "ollama",
    }
);

words!(
    /// How quickly observations of an entry lose weight.
    DecayClass {
        /// Ages with the code.
        Ephemeral = "ephemeral",
        /// Ages over months.
        Stable = "stable",
        /// Does not age.
        Permanent = "permanent",
    }
);

words!(
    /// The kind of memory an entry belongs to.
    Memory {
        /// What is so.
        Semantic = "semantic",
        /// How it is done.
        Procedural = "procedural",
        /// What happened, raw.
        Episodic = "episodic",
    }
);

words!(
    /// The status of an entry on this node.
    Status {
        /// New: may be retrieved, has not been tried.
        Candidate = "candidate",
        /// Has helped here.
        Active = "active",
        /// Has proved itself here.
        Verified = "verified",
        /// Out of use or out of date.
        Stale = "stale",
        /// Put away, kept whole.
        Archived = "archived",
        /// Refused by the scanner or by admission.
        Rejected = "rejected",
        /// Taken back by its author.
        Retracted = "retracted",
    }
);

words!(
    /// Whose entries pass a filter.
    Reach {
        /// Those created by the sending node.
        CreatedHere = "created_here",
        /// Those of others as well.
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
        /// What should be done differently.
        Lesson = "lesson",
        /// The outcome of trying something.
        Spike = "spike",
        /// Something found in the code, with anchors.
        Finding = "finding",
        /// A rule for the work.
        Norm = "norm",
        /// A thing that other entries speak of.
        Entity = "entity",
        /// How two things are related.
        Relation = "relation",
        /// A raw signal.
        Signal = "signal",
        /// A raw report of friction.
        Friction = "friction",
        /// A raw calibration.
        Calibration = "calibration",
        /// A longer text: how something is done.
        Playbook = "playbook",
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_back_from_what_it_is_written_as() {
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
