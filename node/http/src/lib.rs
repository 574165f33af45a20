//! Parts of an HTTP listener: the table of open connections, the write timeout, the token check of
//! callers over TCP, and the status of an error.
//!
//! The API server and the MCP server both listen with these parts. They are a crate of their own, so
//! that the MCP server does not depend on the API server and on the store below it.

mod connections;
mod error_status;
mod tcp_token;
mod write_timeout;

pub use connections::{ConnectionSlot, ConnectionTable, RequestGuard};
pub use error_status::{error_response, status_of};
pub use tcp_token::{BearerToken, authenticate, header_text};
pub use write_timeout::WriteTimeout;
