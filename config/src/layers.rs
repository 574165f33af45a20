//! Merges the configuration layers: default < file < environment < flags.
//!
//! The caller passes in all texts. This module opens no file and does not read the process
//! environment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use toml::Value;

use crate::config_errors::{ConfigError, ConfigProblem, GivenSetting, Problems, shorten};
use crate::constraints::{self, Constraint};
use crate::resolved_config::{Layered, Setting};
use crate::schema::Schema;
use crate::sections::Config;
use crate::setting_path::{ENVIRONMENT_PREFIX, Key};
use crate::source_reader::{Assignment, SourceReader};
use crate::value_source::ValueSource;

/// Maximum size of a configuration file in bytes. The complete defaults take about a tenth of it.
pub const FILE_BYTES_MAX: usize = 256 * 1024;

/// The inputs of a configuration. Flags override the environment, the environment overrides files,
/// and files override the defaults, independently of the order of the calls.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    files: Vec<(PathBuf, String)>,
    environment: Vec<(OsString, OsString)>,
    flags: Vec<(String, String)>,
}

impl Layers {
    /// Starts with the defaults and no other layer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a file. `path` is used only in messages. A later file overrides an earlier
    /// one.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        self.files.push((path.into(), text.into()));
        self
    }

    /// Adds environment variables, such as `std::env::vars_os()`. Ignores names that do not begin
    /// with `KLNODE__`.
    #[must_use]
    pub fn environment<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<OsStr>,
        V: AsRef<OsStr>,
    {
        let variables = variables
            .into_iter()
            .filter(|(name, _)| name.as_ref().to_string_lossy().starts_with(ENVIRONMENT_PREFIX))
            .map(|(name, value)| (name.as_ref().to_owned(), value.as_ref().to_owned()));
        self.environment.extend(variables);
        // The system guarantees no order of variables; sorting makes the order of problems stable.
        self.environment.sort();
        self
    }

    /// Adds overrides. Each has the name of its flag and a text `key=value`: `("--set",
    /// "trust.hop_max=2")`. A later override wins over an earlier one.
    #[must_use]
    pub fn flags<N, T>(mut self, overrides: impl IntoIterator<Item = (N, T)>) -> Self
    where
        N: Into<String>,
        T: Into<String>,
    {
        let overrides = overrides.into_iter().map(|(name, text)| (name.into(), text.into()));
        self.flags.extend(overrides);
        self
    }

    /// Merges all layers into one configuration.
    ///
    /// # Errors If any input is invalid. The error lists all problems, not only the first.
    pub fn resolve(&self) -> Result<Layered, ConfigError> {
        let SourceReader { assignments, mut problems } = self.read();
        let mut settings = defaults();
        let mut refused = BTreeSet::new();
        for assignment in assignments {
            match misfit(&assignment) {
                None => {
                    let Assignment { key, value, origin } = assignment;
                    settings.insert(key, Setting { value, origin });
                }
                Some(must) => {
                    problems.add(|| unfit(&assignment, must));
                    refused.insert(assignment.key);
                }
            }
        }
        let config = configured(&settings);
        for rule in constraints::rules(&config) {
            if let Some(must) = rule.broken() {
                judge(&rule, must, &settings, &refused, &mut problems);
            }
        }
        problems.into_result()?;
        Ok(Layered::new(config, settings))
    }

    fn read(&self) -> SourceReader {
        let mut reader = SourceReader::default();
        for (path, text) in &self.files {
            if text.len() > FILE_BYTES_MAX {
                let (path, bytes) = (path.clone(), text.len());
                let bytes_max = FILE_BYTES_MAX;
                reader.problems.add(|| ConfigProblem::TooLarge { path, bytes, bytes_max });
            } else {
                reader.file(path, text);
            }
        }
        for (name, value) in &self.environment {
            reader.variable(name, value);
        }
        for (name, text) in &self.flags {
            reader.flag(name, text);
        }
        reader
    }
}

/// The requirement that the value of an assignment violates; `None` if it fits. Each value is tried
/// alone on top of the defaults, so that one invalid value does not hide another.
fn misfit(assignment: &Assignment) -> Option<String> {
    let table = Schema::embedded().overlaid([(&assignment.key, &assignment.value)]);
    Config::from_table(table).err().map(|error| error.message().to_owned())
}

fn configured(settings: &BTreeMap<Key, Setting>) -> Config {
    let values = settings.iter().map(|(key, setting)| (key, &setting.value));
    Config::from_table(Schema::embedded().overlaid(values))
        .expect("each value was tried alone, and no type looks at more than one of them")
}

fn defaults() -> BTreeMap<Key, Setting> {
    let setting = |value: &Value| Setting { value: value.clone(), origin: ValueSource::Default };
    Schema::embedded().known().map(|(key, known)| (key.clone(), setting(&known.value))).collect()
}

fn unfit(assignment: &Assignment, must: String) -> ConfigProblem {
    let Assignment { key, value, origin } = assignment;
    let known = Schema::embedded().setting(key).expect("only settings that exist are assigned");
    let mut given = given(key, value, origin);
    if MAYBE_SECRET.iter().any(|secret| *key == Key::new(*secret)) {
        given.value = "(not shown)".to_owned();
    }
    ConfigProblem::Unfit { given, must, default: shorten(&known.value.to_string()) }
}

/// Reports a broken rule, unless one of its values was refused. In that case the default stands in
/// for the refused value, and the rule may hold once the user has corrected it.
fn judge(
    rule: &Constraint,
    must: String,
    settings: &BTreeMap<Key, Setting>,
    refused: &BTreeSet<Key>,
    problems: &mut Problems,
) {
    if rule.keys().any(|key| refused.contains(key)) {
        return;
    }
    let given = rule
        .keys()
        .filter_map(|key| Some((key, settings.get(key)?)))
        .filter(|(_, setting)| rule.shows_defaults() || setting.origin != ValueSource::Default)
        .map(|(key, setting)| given(key, &setting.value, &setting.origin))
        .collect();
    problems.add(|| ConfigProblem::Unsound { given, must });
}

/// Settings into which a user may put a secret by mistake. Messages do not repeat an invalid value
/// of these. A valid value is the name of a variable, or a URL without a password.
const MAYBE_SECRET: [[&str; 2]; 2] = [["embedder", "key_variable"], ["embedder", "url"]];

fn given(key: &Key, value: &Value, origin: &ValueSource) -> GivenSetting {
    GivenSetting {
        key: shorten(&key.to_string()),
        value: shorten(&value.to_string()),
        origin: origin.clone(),
    }
}
