//! What the configuration promises to those who use it, through its public interface alone.
//!
//! One binary for all of it, since linking costs more than running. Nothing here reads the
//! environment of the test process.

mod defaults;
mod hostile;
mod layers;
mod problems;
mod samples;
