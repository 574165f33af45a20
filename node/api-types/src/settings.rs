//! Response types of the settings of a running node.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The settings with which the node was started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeSettings {
    /// The settings, in the order of `config/default.toml`.
    pub settings: Vec<NodeSetting>,
}

/// A setting of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeSetting {
    /// The key, as in `klnode.toml`.
    pub key: String,
    /// The value in effect, as TOML.
    pub value: String,
    /// The default value, as TOML.
    pub default: String,
    /// The source of the value: `default`, a file with the line, an environment variable, or a
    /// flag.
    pub origin: String,
    /// The environment variable that sets it.
    pub variable: String,
    /// The purpose of the setting and the reason for its default.
    pub comment: String,
}
