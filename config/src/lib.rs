//! Configuration of klnode: embedded defaults, layers, validation, and the origin of every value.
//!
//! This crate is a leaf: it depends on no other crate of the workspace. The other crates take their
//! settings as arguments, so each of them can be used without this one. The crate never reads the
//! environment, the disk or the command line; the binary passes in their contents.
//!
//! ```
//! use klnode_config::Layers;
//!
//! let layered = Layers::new()
//!     .file("klnode.toml", "[trust]\nhop_max = 2\n")
//!     .environment([("KLNODE__LOG__LEVEL", "debug")])
//!     .flags([("--set", "retrieval.entries_max=3")])
//!     .resolve()?;
//!
//! assert_eq!(layered.config().trust.hop_max.get(), 2);
//! let origin = layered.origin("log.level").expect("the key exists");
//! assert_eq!(origin.to_string(), "environment variable KLNODE__LOG__LEVEL");
//! # Ok::<(), klnode_config::ConfigError>(())
//! ```
//!
//! The file `default.toml` is the only source of defaults. It documents every key, and
//! [`Config::default`] parses it. The environment variable of a key is `KLNODE__` followed by its
//! sections and its name in capitals, joined by two underscores: `trust.hop_max` is
//! `KLNODE__TRUST__HOP_MAX`. Keys that few operators need are below `tuning`, in the file and in
//! their names; the fields of [`Config`] leave that part out.
//!
//! Resolving a configuration has three steps. [`Layers`] splits its texts into assignments of
//! values to keys. It checks each assignment alone against the types of the [`Config`] structs, so
//! that one run reports all errors. Then it overlays the valid assignments on the defaults and
//! checks the constraints between several keys.

#![warn(missing_docs)]

mod config_errors;
mod constraints;
mod layers;
mod old_keys;
mod resolved_config;
mod schema;
pub mod sections;
mod setting_path;
mod source_reader;
pub mod units;
mod value_source;

pub use config_errors::{ConfigError, ConfigProblem, GivenSetting};
pub use layers::{FILE_BYTES_MAX, Layers};
pub use resolved_config::{Layered, SettingReport};
pub use sections::Config;
pub use value_source::ValueSource;

/// The embedded `default.toml`: every key with its default and a comment. `klnode config` prints
/// it.
pub const DEFAULT_TOML: &str = include_str!("../default.toml");
