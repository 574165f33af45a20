//! What the suites of klnode are built from: a disk that fails on demand, engines with a clock and
//! a seed, timing, texts and filled stores for benchmarks, sample records, the targets of fuzzing, and the repository's own source,
//! read for its rules.

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
