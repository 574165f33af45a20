//! The HTTP status and the headers of an error.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use klnode_api_types::ErrorKind;

/// The HTTP status of an error kind.
pub fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Unauthorised => StatusCode::UNAUTHORIZED,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Ambiguous => StatusCode::CONFLICT,
        ErrorKind::Forgotten => StatusCode::GONE,
        ErrorKind::Refused => StatusCode::FORBIDDEN,
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Adds the status and the headers of an error to its encoded body.
pub fn error_response(kind: ErrorKind, body: impl IntoResponse) -> Response {
    let mut response = (status_of(kind), body).into_response();
    if kind == ErrorKind::Unauthorised {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}
