//! What is wrong with a configuration, in sentences that say the way out.
//!
//! Separate because problems are gathered in many places and shown in one. A problem never stops the
//! search for further ones, and never holds more of a value than a line can show.

use std::fmt;
use std::path::PathBuf;

use crate::origin::Origin;

/// How many problems are kept; of further ones only the number is told.
const PROBLEMS_MAX: usize = 64;

/// The configuration cannot be used. Holds everything that is wrong with it, in the order of the
/// layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    problems: Vec<Problem>,
    omitted: usize,
}

impl ConfigError {
    /// The problems; never none.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many more there are, beyond those that are kept.
    #[must_use]
    pub fn omitted(&self) -> usize {
        self.omitted
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("use this configuration:")?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        if self.omitted > 0 {
            write!(f, "\n  and {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A file is too large to be a configuration.
    #[error(
        "{} has {bytes} bytes, and a configuration has at most {bytes_max}; is it the right file?",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A file is not TOML.
    #[error("{origin} is not valid TOML: {message}")]
    Syntax {
        /// The file, and the line.
        origin: Origin,
        /// What the parser says.
        message: String,
    },
    /// A flag is not of the form `key=value`.
    #[error("{origin} was given `{text}`, and takes `key=value`, such as `trust.hop_max=2`")]
    Malformed {
        /// The flag.
        origin: Origin,
        /// What it was given.
        text: String,
    },
    /// There is no such setting.
    #[error(
        "unknown key `{key}` in {origin}; {}",
        match nearest {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => "`klnode config` lists every key".to_owned(),
        }
    )]
    Unknown {
        /// The key, as it is spelled in a file.
        key: String,
        /// Where it was found.
        origin: Origin,
        /// The known key that resembles it most, spelled as it would be where this one was found.
        nearest: Option<String>,
    },
    /// A section was given a value.
    #[error(
        "`{key}` in {origin} is a section, not a value; set a key inside it, such as `{inside}`"
    )]
    Section {
        /// The section.
        key: String,
        /// Where it was given a value.
        origin: Origin,
        /// A key inside it.
        inside: String,
    },
    /// A value is of the wrong type or outside its limits.
    #[error("{given} {must}; the default is {default}")]
    Unfit {
        /// The key and its value.
        given: Given,
        /// What the value must be, as words that follow it.
        must: String,
        /// The default of the key, as TOML.
        default: String,
    },
    /// Values do not go together.
    #[error("{}: {must}; change them together, or leave out what you set", listed(given))]
    Unsound {
        /// The keys involved, each with its value; of many only those that were set.
        given: Vec<Given>,
        /// What must hold, and what is the case.
        must: String,
    },
}

/// A key with the value it was given, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The key, as it is spelled in a file.
    pub key: String,
    /// The value as TOML, shortened to what a line can show.
    pub value: String,
    /// Where it came from.
    pub origin: Origin,
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{} = {}` ({})", self.key, self.value, self.origin)
    }
}

fn listed(given: &[Given]) -> String {
    let given: Vec<String> = given.iter().map(ToString::to_string).collect();
    given.join(", ")
}

/// Problems as they are found.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Problem>,
    omitted: usize,
}

impl Problems {
    /// Takes a problem, or only counts it. It is not even made when there are enough: a suggestion
    /// for each of a hundred thousand wrong keys would take seconds.
    pub(crate) fn add(&mut self, problem: impl FnOnce() -> Problem) {
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

/// Shortens text to what fits in a line, without control characters.
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
    fn a_shortened_text_is_one_line_that_moves_no_cursor() {
        assert_eq!(shorten("a\n\u{1b}[2Jb"), "a  [2Jb");
    }

    #[test]
    fn problems_beyond_the_limit_are_counted_and_not_made() {
        let mut problems = Problems::default();
        for _ in 0..PROBLEMS_MAX {
            problems.add(|| Problem::Malformed { origin: Origin::Default, text: String::new() });
        }
        problems.add(|| panic!("made although there are enough"));
        let error = problems.into_result().unwrap_err();
        assert_eq!((error.problems().len(), error.omitted()), (PROBLEMS_MAX, 1));
        assert!(error.to_string().ends_with("and 1 more"));
    }
}
