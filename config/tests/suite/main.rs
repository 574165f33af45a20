//! Tests of the crate's public interface.
//!
//! All tests are in one binary, because linking takes longer than running them. They do not read
//! the environment of the test process.

mod defaults;
mod hostile;
mod layers;
mod problems;
mod samples;
