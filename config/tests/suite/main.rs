//! Tests of the crate's public interface.
//!
//! All tests are in one binary, because linking takes longer than running them. They do not read
//! the environment of the test process.

mod defaults;
mod error_messages;
mod layers;
mod malformed_input;
mod moved_keys;
mod sample_files;
