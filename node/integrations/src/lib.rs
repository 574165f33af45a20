//! Adapters between the node and other programs. Each speaks the protocol or file format of its
//! program and reaches the node through the API only.

pub mod client_config;
pub mod hooks;
pub mod mcp;
