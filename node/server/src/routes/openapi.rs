//! `GET /v1/openapi.json`: the OpenAPI document.

use axum::http::{HeaderName, header};
use std::sync::LazyLock;

/// Built once; it does not change while the node runs.
static DOCUMENT: LazyLock<String> = LazyLock::new(super::document);

/// Returns the OpenAPI document of this API.
#[utoipa::path(get, path = "/v1/openapi.json",
    responses((status = 200, body = Object, content_type = "application/json")))]
pub(super) async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], &DOCUMENT)
}
