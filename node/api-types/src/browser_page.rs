//! `/v1/page`: opens the browser page.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A one-time code for the browser page.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PageTicket {
    /// The address of the page: a random port of the loopback interface.
    pub address: String,
    /// The code. It is valid once and for `lifetime_seconds`.
    pub code: String,
    /// The seconds in which the code must be traded.
    pub lifetime_seconds: u64,
    /// Sessions of the page that were opened before, since the start of the node.
    pub opened: u64,
}

/// The state of the browser page.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PageState {
    /// The address of the page; absent until a code was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Sessions of the page that were opened since the start of the node.
    pub opened: u64,
}
