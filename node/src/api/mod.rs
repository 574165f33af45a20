//! The local API: HTTP over a Unix socket, in JSON or MessagePack; the only way into a running node.
//!
//! A connection takes a seat; a request on it is accounted for, its format found out, its caller
//! checked, its body received, and given a place; then its handler runs. Handlers are in `routes`;
//! everything around them is here.

mod account;
mod ancestry;
mod apart;
mod bound;
mod caller;
mod changes;
mod client;
mod clients;
mod conflicts;
mod description;
mod errors;
mod exchange;
mod filters;
mod gate;
mod history;
mod joining;
mod limits;
mod metrics;
pub mod person;
mod places;
pub mod portable;
mod process_tree;
mod routes;
pub mod sampling;
pub mod search;
mod seats;
mod served;
mod server;
mod sharing;
mod steady;
mod token;
mod translate;
pub mod types;
pub mod upkeep;

pub use bound::{Bound, ServeError};
pub use caller::{CLIENT_HEADER, COMMAND_LINE, Caller, SESSION_HEADER};
pub use client::{Client, ClientError, Following, escape, part};
pub use description::document;
pub use errors::{ApiError, Kind};
pub use exchange::{Answer, Body, Format, Params};
pub use limits::Limits;
pub use metrics::Metrics;
pub(crate) use seats::{Busy, Seat, Seats};
pub use server::Service;
pub(crate) use steady::Steady;
pub use token::Token;
