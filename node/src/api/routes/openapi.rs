//! The description of the API, served by the API.

use crate::api::description;
use axum::http::{HeaderName, header};
use std::sync::LazyLock;

/// Made once: it does not change while the node runs.
static DOCUMENT: LazyLock<String> = LazyLock::new(description::document);

/// Describes this API, in OpenAPI.
#[utoipa::path(get, path = "/v1/openapi.json",
    responses((status = 200, body = Object, content_type = "application/json")))]
pub(super) async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], &DOCUMENT)
}
