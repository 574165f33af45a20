//! The one suite binary of the workspace: one link instead of many.
//!
//! Most modules are tests. What these share has modules of its own: `program` (a node as a real
//! process, and what is typed at it), `peer` (such nodes, paired), `homes` (what lies on their
//! disks), `ground` (repositories, and what is typed in them), `agent` and `followed` (clients),
//! `person_key` (what a person signs with) and `strikes` (rows that are damaged). Nodes within this
//! process are made by the crate's library.

#![expect(clippy::unwrap_used, reason = "in a suite, whatever does not unwrap has failed")]

mod agent;
mod agent_answers;
mod anchors;
mod api;
mod api_limits;
mod api_reads;
mod architecture;
mod attacks;
mod attacks_counted;
mod attacks_ranked;
mod attacks_shown;
mod backup;
mod border;
mod briefing;
mod connect;
mod crash;
mod credit;
mod damage;
mod decided;
mod doctor;
mod erased;
mod eval;
mod event_values;
mod examples;
mod findings;
mod followed;
mod foreign_files;
mod forgetting;
mod full_disk;
mod fuzzing;
mod gate;
mod golden;
mod ground;
mod homes;
mod hooks;
mod hostile;
mod hostile_peers;
mod index;
mod kills;
mod laws;
mod lifecycle;
mod lives;
mod mcp;
mod mcp_sessions;
mod pairing;
mod partition;
mod peer;
mod person;
mod person_key;
mod places;
mod portable;
mod prior_evidence;
mod process;
mod program;
mod promised;
mod readmitted;
mod replication;
mod replication_costs;
mod replication_hostile;
mod replication_lives;
mod replication_releases;
mod rules;
mod rules_answered;
mod scene;
mod schedules;
mod search;
mod session;
mod settling;
mod shown;
mod signatures;
mod society;
mod spoken;
mod standing;
mod store;
mod strikes;
mod survey;
mod tasks;
mod thread_scope;
mod tickets;
mod tidy;
mod together;
mod typed;
mod unheard;
mod upkeep;
mod upkeep_rules;
mod usage;
mod verbs;
mod waiting;
mod whose_home;
mod writers;
mod writing;
