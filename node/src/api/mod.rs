//! The local API: HTTP with JSON over a Unix socket, the only way into a running node.

mod client;
mod errors;
pub mod portable;
mod routes;
mod server;
mod translate;
pub mod types;

pub use client::{Client, ClientError};
pub use errors::{ApiError, Kind};
pub use server::{Bound, ServeError, Service};
