//! Configuration of klnode: embedded defaults, layers over them, validation, and the origin of
//! every value.
//!
//! A separate crate, and a leaf: it knows no other crate of the workspace, so that each of them can
//! be used without it and none of them reads a setting behind its caller's back. It never reads the
//! environment, the disk or the command line itself; the binary hands it their contents.
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
//! The values live in `default.toml` and nowhere else: it documents every key, and
//! [`Config::default`] reads it. The environment variable of a key is `KLNODE__`, its sections and
//! its name in capitals, joined by two underscores: `trust.hop_max` is `KLNODE__TRUST__HOP_MAX`.
//!
//! How a configuration comes about: [`Layers`] takes the texts apart into assignments, each tried
//! alone against the types of the [`Config`] structs, so that all mistakes are found at once; the
//! ones that fit are laid over the defaults; then the rules that concern several keys are checked.

mod assignment;
mod key;
mod layered;
mod layers;
mod origin;
mod problem;
mod rules;
mod schema;
pub mod sections;
pub mod units;

pub use layered::{Explained, Layered};
pub use layers::{FILE_BYTES_MAX, Layers};
pub use origin::Origin;
pub use problem::{ConfigError, Given, Problem};
pub use sections::Config;

/// The embedded `default.toml`: every key with its default and its reason, for `klnode config` to
/// print.
pub const DEFAULT_TOML: &str = include_str!("../default.toml");
