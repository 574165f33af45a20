//! The browser page of a node: its embedded bundle, its sessions, and the checks of its requests.
//!
//! The server owns the listener and the routes; this crate decides which requests of a browser they
//! answer. It reads neither the store nor a file.

mod bundle;
mod request_check;
mod sessions;

pub use bundle::file_response;
pub use request_check::{check_request, protect};
pub use sessions::{CODE_LIFETIME, PageCode, Sessions};
