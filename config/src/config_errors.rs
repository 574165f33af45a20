//! Configuration errors, each with a hint for the fix.
//!
//! Several modules report problems; [`Problems`] collects them, so that one run shows all of them.
//! A problem holds at most one line of each offending value.

use std::fmt;
use std::path::PathBuf;

use crate::value_source::ValueSource;

/// Maximum number of problems that are kept. Further ones are only counted.
const PROBLEMS_MAX: usize = 64;

/// The configuration is invalid. Holds all problems, in the order of the layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<ConfigProblem>,
    omitted: usize,
}

impl ConfigError {
    /// The problems; at least one.
    #[must_use]
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }

    /// The number of further problems that were not kept.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The configuration is invalid:")?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n  Further problems: {}.", self.omitted)?;
        }
        Ok(())
    }
}

/// One problem of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// A file is too large to be a configuration.
    #[error(
        "{} has {bytes} bytes; a configuration file has at most {bytes_max}. Check that it is the \
         right file.",
        path.display()
    )]
    TooLarge {
        /// The path of the file.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        bytes_max: usize,
    },
    /// A file is not valid TOML.
    #[error("{origin} is not valid TOML: {message}.")]
    Syntax {
        /// The file and line of the error.
        origin: ValueSource,
        /// The message of the TOML parser.
        message: String,
    },
    /// The argument of a flag is not of the form `key=value`.
    #[error(
        "`{text}` of {origin} is not an assignment. Write `key=value`, such as `trust.hop_max=2`."
    )]
    Malformed {
        /// The flag that got the argument.
        origin: ValueSource,
        /// The argument of the flag.
        text: String,
    },
    /// The key does not exist.
    #[error(
        "Unknown key `{key}` in {origin}. {}",
        match nearest {
            Some(nearest) => format!("Did you mean `{nearest}`?"),
            None => "Run `klnode config` to list all keys.".to_owned(),
        }
    )]
    Unknown {
        /// The key, as spelled in a file.
        key: String,
        /// The place that sets the key.
        origin: ValueSource,
        /// The most similar existing key, in the spelling of this source.
        nearest: Option<String>,
    },
    /// The key is of an earlier version and has another name now.
    #[error("`{key}` in {origin} is now called `{present}`. Rename it; its value stays valid.")]
    Moved {
        /// The old key, as spelled in a file.
        key: String,
        /// The place that sets the key.
        origin: ValueSource,
        /// The present key, in the spelling of this source.
        present: String,
    },
    /// A section was given a value.
    #[error(
        "`{key}` in {origin} is a section, not a value. Set a key inside it, such as `{inside}`."
    )]
    Section {
        /// The key of the section.
        key: String,
        /// The place that sets the section.
        origin: ValueSource,
        /// Example of a key inside the section.
        inside: String,
    },
    /// A value has the wrong type or is out of range.
    #[error("{given} {must}. The default is {default}.")]
    Unfit {
        /// The key and its value.
        given: GivenSetting,
        /// The requirement, as words that follow the value.
        must: String,
        /// The default of the key, as TOML.
        default: String,
    },
    /// Several values contradict each other.
    #[error("{}: {must}. Change these keys together, or remove your values.", listed(given))]
    Unsound {
        /// The keys of the rule with their values. For a sum, only those that are not defaults.
        given: Vec<GivenSetting>,
        /// The rule and the actual state.
        must: String,
    },
}

/// A key with its value and origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSetting {
    /// The key, as spelled in a file.
    pub key: String,
    /// The value as TOML, shortened to one line.
    pub value: String,
    /// The place that set the value.
    pub origin: ValueSource,
}

impl fmt::Display for GivenSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} = {}` ({})", self.key, self.value, self.origin)
    }
}

fn listed(given: &[GivenSetting]) -> String {
    let given: Vec<String> = given.iter().map(ToString::to_string).collect();
    given.join(", ")
}

/// Collects problems up to a limit.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<ConfigProblem>,
    omitted: usize,
}

impl Problems {
    /// Adds a problem, or only counts it above the limit. Above the limit the closure does not run:
    /// computing a suggestion for each of 100,000 unknown keys would take seconds.
    pub(crate) fn add(&mut self, problem: impl FnOnce() -> ConfigProblem) {
        if self.found.len() < PROBLEMS_MAX {
            self.found.push(problem());
        } else {
            self.omitted = self.omitted.saturating_add(1);
        }
    }

    pub(crate) fn into_result(self) -> Result<(), ConfigError> {
        if self.found.is_empty() {
            Ok(())
        } else {
            Err(ConfigError { problems: self.found, omitted: self.omitted })
        }
    }
}

/// Shortens a text to 80 characters and replaces control characters by spaces.
pub(crate) fn shorten(text: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    let mut characters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = characters.by_ref().take(CHARACTERS_MAX).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_shortened_and_short_text_is_not() {
        assert_eq!(shorten("0.5"), "0.5");
        assert_eq!(shorten(&"ü".repeat(80)), "ü".repeat(80));
        assert_eq!(shorten(&"ü".repeat(81)), format!("{}…", "ü".repeat(80)));
    }

    #[test]
    fn a_shortened_text_has_no_control_characters() {
        assert_eq!(shorten("a\n\u{1b}[2Jb"), "a  [2Jb");
    }

    #[test]
    fn problems_beyond_the_limit_are_only_counted() {
        let mut problems = Problems::default();
        for _ in 0..PROBLEMS_MAX {
            problems.add(|| ConfigProblem::Malformed {
                origin: ValueSource::Default,
                text: String::new(),
            });
        }
        problems.add(|| panic!("made although there are enough"));
        let error = problems.into_result().unwrap_err();
        assert_eq!((error.problems().len(), error.omitted()), (PROBLEMS_MAX, 1));
        assert!(error.to_string().ends_with("Further problems: 1."));
    }
}
