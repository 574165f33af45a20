//! What stands between the node and other programs: each speaks their language and uses the API.

pub mod connect;
pub mod hook;
pub mod mcp;
