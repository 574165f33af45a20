//! What the suites of klnode are built from: a disk that fails on demand, engines with a clock and
//! a seed, served APIs, checkouts, scripts and sample records; peers and workspaces around a node, and
//! clusters of whole nodes under seeded schedules; a hostile peer, and one that says what a test puts
//! on it; knowledge attacks, the targets of fuzzing; timing, texts and filled stores for benchmarks;
//! the sessions that documents show, and the repository's own source, read for its rules.

pub mod attacks;
pub mod checkout;
pub mod cluster;
pub mod disk;
pub mod filled;
pub mod fuzzing;
pub mod hostile;
pub mod measure;
pub mod node;
pub mod puppet;
pub mod samples;
pub mod schedule;
pub mod script;
pub mod served;
pub mod society;
pub mod source;
pub mod texts;
pub mod transcript;
