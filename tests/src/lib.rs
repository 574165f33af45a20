//! Building blocks of klnode's test suites: a disk that fails on demand, engines with a simulated
//! clock and a seed, served APIs, checkouts, scripts and sample records; peers and workspaces
//! around a node, and clusters of whole nodes under seeded schedules; a hostile peer, and a peer that
//! holds the records that a test chooses; a replay of a team; knowledge attacks and fuzz targets; timing,
//! texts and filled stores for benchmarks; the sessions in documents, and the repository's own source
//! for the house rules.

pub mod bench_timing;
pub mod benchmark_node;
pub mod checkout;
pub mod cluster;
pub mod disk;
pub mod documented_sessions;
pub mod fuzzing;
pub mod hostile_peer;
pub mod knowledge_attacks;
pub mod peer_with_chosen_records;
pub mod repo_source;
pub mod sample_records;
pub mod sample_texts;
pub mod schedule;
pub mod seeded_writes;
pub mod team;
pub mod test_engine;
pub mod test_server;
pub mod workspace_fixture;
