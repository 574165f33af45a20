//! The local API: HTTP over a Unix socket, in JSON or MessagePack. It is the only access to a
//! running node.
//!
//! A connection takes a slot in the connection table. Each request passes through middleware in
//! this order: request log, format, authentication, caller names, body and concurrency limits. Then
//! its handler runs. Handlers are in `routes`; everything around them is in this module.

mod blocking_pool;
mod body_format;
mod caller;
mod client_identity;
mod client_registry;
mod codec;
pub mod convert;
mod disclosure_check;
mod edit_check;
mod edit_conflicts;
mod errors;
mod limits;
mod listener;
pub mod maintenance;
mod metrics;
mod norm_check;
mod openapi;
pub mod overlay_seal;
mod page_listener;
pub mod person_auth;
mod process_tree;
mod record_changes;
mod request_limits;
mod request_log;
mod routes;
pub mod sampling_seed;
mod server;
mod service;
mod serving_log;
mod tcp_auth;
pub mod transfer;
mod write_target;

pub use body_format::Format;
pub use caller::Caller;
pub use codec::{ApiReply, Body, QueryParams};
pub use errors::ApiError;
pub use limits::Limits;
pub use listener::{BoundListener, ServeError};
pub use metrics::Metrics;
pub use routes::document;
pub use service::Service;
