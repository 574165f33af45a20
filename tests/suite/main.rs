//! The one suite binary of the workspace: one link instead of many.

#![expect(clippy::unwrap_used, reason = "in a suite, whatever does not unwrap has failed")]

mod anchors;
mod api;
mod api_limits;
mod architecture;
mod attacks;
mod backup;
mod border;
mod crash;
mod doctor;
mod forgetting;
mod full_disk;
mod fuzzing;
mod golden;
mod hostile;
mod hostile_peers;
mod index;
mod kills;
mod laws;
mod lives;
mod pairing;
mod person;
mod portable;
mod process;
mod replication;
mod replication_hostile;
mod schedules;
mod search;
mod session;
mod signatures;
mod society;
mod store;
mod tasks;
mod tidy;
mod upkeep;
mod upkeep_rules;
mod writers;
