//! The local API: HTTP over a Unix socket, in JSON or MessagePack. It is the only access to a
//! running node.
//!
//! A connection takes a slot in the connection table. Each request passes through middleware in
//! this order: request log, format, authentication, caller names, body and concurrency limits. Then
//! its handler runs. Handlers are in `routes`; everything around them is in this module.

mod blocking_pool;
mod body_format;
mod caller;
mod client_process_lookup;
mod client_registry;
pub mod convert;
mod disclosure_check;
mod edit_check;
mod edit_conflicts;
mod entry_differences;
mod errors;
pub mod exported_marks;
mod extractors_and_replies;
mod limits;
mod listener;
pub mod maintenance_pass;
mod metrics;
mod new_entry_defaults;
mod norm_check;
mod openapi;
mod page_listener;
pub mod person_auth;
mod process_tree;
mod request_limits;
mod request_log;
mod routes;
pub mod sampling_seed;
mod server;
mod service;
mod serving_log;
mod tcp_auth;
pub mod transfer;

pub use body_format::Format;
pub use caller::Caller;
pub use errors::ApiError;
pub use extractors_and_replies::{ApiReply, Body, QueryParams};
pub use limits::Limits;
pub use listener::{BoundListener, ServeError};
pub use metrics::Metrics;
pub use routes::document;
pub use service::Service;
