//! The local API: HTTP over a Unix socket, in JSON or MessagePack; the only way into a running node.

mod caller;
mod client;
mod errors;
mod exchange;
pub mod portable;
mod routes;
pub mod search;
mod server;
mod translate;
pub mod types;

pub use caller::Caller;
pub use client::{Client, ClientError};
pub use errors::{ApiError, Kind};
pub use exchange::{Answer, Body, Format, Params};
pub use server::{Bound, ServeError, Service};
