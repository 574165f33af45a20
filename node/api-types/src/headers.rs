//! Request headers by which callers name themselves.

/// The header with the client's name.
pub const CLIENT_HEADER: &str = "klnode-client";
/// The header with the client's session name.
pub const SESSION_HEADER: &str = "klnode-session";

/// The header of a program that relays requests of clients it does not know.
pub const RELAY_HEADER: &str = "klnode-relay";
/// The client name of the command line.
pub const COMMAND_LINE: &str = "cli";
