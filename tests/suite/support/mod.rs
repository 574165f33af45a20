//! Code that several tests share: real processes, paired nodes, homes, repositories, clients, and the
//! statements that tests prove.

pub(crate) mod conformance;
pub(crate) mod event_stream;
pub(crate) mod git_repos;
pub(crate) mod homes;
pub(crate) mod mcp_client;
pub(crate) mod node_process;
pub(crate) mod node_with_home;
pub(crate) mod peer_processes;
pub(crate) mod person_key;
pub(crate) mod playbook_team;
pub(crate) mod row_damage;
