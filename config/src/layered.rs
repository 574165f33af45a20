//! The outcome of layering: the configuration, and for each of its values where it came from.
//!
//! Separate from the layers because it outlives them: a running node keeps it to explain itself.
//! It holds only what was found to be right, and never changes.

use std::collections::BTreeMap;

use toml::Value;

use crate::key::Key;
use crate::origin::Origin;
use crate::schema::Schema;
use crate::sections::Config;

/// A configuration that knows where its values came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Layered {
    config: Config,
    settings: BTreeMap<Key, Setting>,
}

/// A value that won over those of the layers below.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A setting as it is shown to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Its key, as it is spelled in a file.
    pub key: String,
    /// Its value, as TOML.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
    /// What the value would be if it were not set, as TOML.
    pub default: String,
    /// What it is for and why its default is what it is.
    pub comment: String,
    /// The environment variable that sets it.
    pub variable: String,
}

impl Layered {
    pub(crate) fn new(config: Config, settings: BTreeMap<Key, Setting>) -> Self {
        Self { config, settings }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Where the value of a key came from. `None` if there is no such key.
    #[must_use]
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        Some(&self.settings.get(&Key::parse(key)?)?.origin)
    }

    /// Every setting, in the order of `default.toml`.
    #[must_use]
    pub fn explain(&self) -> Vec<Explained> {
        let known = |key| Schema::embedded().setting(key);
        let mut known: Vec<_> = self
            .settings
            .iter()
            .filter_map(|(key, setting)| Some((key, setting, known(key)?)))
            .collect();
        // Tables that users named follow the common one, whose lines they share.
        known.sort_by_key(|(key, _, known)| (known.line, key.parts().len()));
        let explained = known.into_iter().map(|(key, setting, known)| Explained {
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
