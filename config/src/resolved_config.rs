//! The resolved configuration, with the origin of each value.
//!
//! A running node keeps it to explain its settings. It holds only valid values and is immutable.

use std::collections::BTreeMap;

use toml::Value;

use crate::schema::Schema;
use crate::sections::Config;
use crate::setting_path::Key;
use crate::value_source::ValueSource;

/// A resolved configuration that knows the origin of its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Layered {
    config: Config,
    settings: BTreeMap<Key, Setting>,
}

/// The effective value of a setting, from the highest layer that sets it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) origin: ValueSource,
}

/// A setting with all information that `klnode config` shows about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingReport {
    /// The key, as spelled in a file.
    pub key: String,
    /// The effective value, as TOML.
    pub value: String,
    /// The layer that set the value.
    pub origin: ValueSource,
    /// The default value, as TOML.
    pub default: String,
    /// The comment in `default.toml`: the purpose of the setting and the reason for its default.
    pub comment: String,
    /// The environment variable that sets it.
    pub variable: String,
}

impl Layered {
    pub(crate) fn new(config: Config, settings: BTreeMap<Key, Setting>) -> Self {
        Self { config, settings }
    }

    /// The typed configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The origin of the value of a key; `None` if the key does not exist.
    #[must_use]
    pub fn origin(&self, key: &str) -> Option<&ValueSource> {
        Some(&self.settings.get(&Key::parse(key)?)?.origin)
    }

    /// Every setting, in the order of `default.toml`.
    #[must_use]
    pub fn explain(&self) -> Vec<SettingReport> {
        let known = |key| Schema::embedded().setting(key);
        let mut known: Vec<_> = self
            .settings
            .iter()
            .filter_map(|(key, setting)| Some((key, setting, known(key)?)))
            .collect();
        // Tables with user-defined names share the lines of the common table and follow it.
        known.sort_by_key(|(key, _, known)| (known.line, key.parts().len()));
        let explained = known.into_iter().map(|(key, setting, known)| SettingReport {
            key: key.to_string(),
            value: setting.value.to_string(),
            origin: setting.origin.clone(),
            default: known.value.to_string(),
            comment: known.comment.clone(),
            variable: key.to_environment(),
        });
        explained.collect()
    }
}
