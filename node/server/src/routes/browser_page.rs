//! Routes that open the browser page.

use crate::caller::Caller;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult};
use crate::page_listener::PageListener;
use axum::Extension;
use klnode_api_types::{ErrorKind, PageState, PageTicket};

/// Issues a one-time code for the browser page, and starts its listener if necessary. Only callers
/// over the socket may open the page; its session acts as their user.
#[utoipa::path(post, path = "/v1/page", responses((status = 200, body = PageTicket)))]
pub(super) async fn open(
    caller: Caller,
    Extension(page): Extension<PageListener>,
) -> ApiResult<PageTicket> {
    match caller.uid.filter(|_| !caller.is_page) {
        Some(uid) => Ok(ApiReply(page.open(uid).await?)),
        None => {
            let message = "Only a caller over the socket may open the page.";
            Err(ApiError::new(ErrorKind::Refused, message, Some("Run `klnode ui`.")))
        }
    }
}

/// Returns the address of the browser page and the number of sessions that were opened.
#[utoipa::path(get, path = "/v1/page", responses((status = 200, body = PageState)))]
pub(super) async fn state(Extension(page): Extension<PageListener>) -> ApiResult<PageState> {
    Ok(ApiReply(page.state().await))
}
