//! What the suites of klnode are built from: a disk that fails on demand and the repository's own
//! source, read for its rules.

pub mod disk;
pub mod source;
