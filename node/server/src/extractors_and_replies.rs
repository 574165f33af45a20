//! Extracts request bodies and parameters, and encodes responses.
//!
//! A handler takes a [`Body`] and returns an [`ApiReply`] and never sees the format of either.

use super::body_format::{self, Format};
use super::errors::{ApiError, DESCRIPTION_HINT, unreadable};
use super::tcp_auth::Transport;
use axum::body::Bytes;
use axum::extract::{self, FromRequest, FromRequestParts, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use klnode_api_types::ErrorKind;
use klnode_http::header_text;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The decoded body of a request.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let named = header_text(request.headers(), header::CONTENT_TYPE).unwrap_or("nothing");
        // curl sends this type by default. Web pages cannot reach the socket, so the default is
        // safe there.
        let is_unsaid = ["nothing", "application/x-www-form-urlencoded"].contains(&named);
        let is_local = request.extensions().get::<Transport>() == Some(&Transport::Socket);
        let unsaid = (is_unsaid && is_local).then_some(Format::Json);
        let format = Format::named(named).or(unsaid).ok_or_else(|| {
            let [json, packed] = [Format::Json, Format::MessagePack].map(Format::media_type);
            let message =
                format!("The request has the Content-Type {named}; it must be {json} or {packed}.");
            let hint = "Set the header, for example with curl -H 'Content-Type: application/json'.";
            ApiError::new(ErrorKind::Unsupported, message, Some(hint))
        })?;
        let bytes = Bytes::from_request(request, state).await?;
        let value = format.read(&bytes).map_err(|problem| {
            let message = unreadable(&problem);
            ApiError::new(ErrorKind::Invalid, message, Some(DESCRIPTION_HINT))
        })?;
        Ok(Self(value))
    }
}

/// The decoded path parameters of a request. utoipa recognises the extractor by this name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self(extract::Path::from_request_parts(parts, state).await?.0))
    }
}

/// The decoded query parameters of a request.
#[derive(Clone, Copy, Debug)]
pub struct QueryParams<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self(Query::from_request_parts(parts, state).await?.0))
    }
}

/// The body of a response.
#[derive(Clone, Copy, Debug)]
pub struct ApiReply<T>(pub T);

/// The return type of handlers.
pub(super) type ApiResult<T> = Result<ApiReply<T>, ApiError>;

impl<T: Serialize> IntoResponse for ApiReply<T> {
    fn into_response(self) -> Response {
        body_format::encode(&self.0).unwrap_or_else(|problem| {
            let message = format!("The response could not be encoded: {problem}.");
            ApiError::new(ErrorKind::Failed, message, None).into_response()
        })
    }
}
