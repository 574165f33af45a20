//! Conversions between the types of the API and those of the store, the queries and replication.

mod admission;
pub mod backup;
pub(crate) mod entries;
pub(crate) mod formicos;
pub(crate) mod history;
pub(crate) mod insights;
pub(crate) mod joins;
pub(crate) mod peer_filters;
pub(crate) mod peers;
pub mod search;
