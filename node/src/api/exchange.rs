//! How values travel: JSON or MessagePack, in and out, errors included.
//!
//! A handler takes a [`Body`] and gives an [`Answer`]; which of the two formats either of them is
//! in, it never learns. MessagePack names its fields, so both formats carry the same types.

use super::errors::{ApiError, DESCRIPTION_HINT, Kind};
use super::token::Way;
use axum::body::Bytes;
use axum::extract::{self, FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A format that bodies are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text, for people and most programs.
    #[default]
    Json,
    /// Binary, with named fields.
    MessagePack,
}

impl Format {
    /// Its media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MessagePack => "application/msgpack",
        }
    }

    /// The one that a media type names; what follows a semicolon does not matter.
    fn named(media_type: &str) -> Option<Self> {
        let name = media_type.split(';').next().unwrap_or_default().trim();
        let is_it = |format: &Self| name.eq_ignore_ascii_case(format.media_type());
        [Self::Json, Self::MessagePack].into_iter().find(is_it)
    }

    /// What the answer to a request is to be in: what the caller accepts, else what it speaks.
    fn wanted(headers: &HeaderMap) -> Self {
        let accepted = header_text(headers, header::ACCEPT).unwrap_or_default();
        let spoken = header_text(headers, header::CONTENT_TYPE).unwrap_or_default();
        accepted
            .split(',')
            .find_map(Self::named)
            .or_else(|| Self::named(spoken))
            .unwrap_or_default()
    }

    /// A value as bytes.
    pub fn write(self, value: &impl Serialize) -> Result<Vec<u8>, String> {
        match self {
            Self::Json => serde_json::to_vec(value).map_err(|error| error.to_string()),
            Self::MessagePack => rmp_serde::to_vec_named(value).map_err(|error| error.to_string()),
        }
    }

    /// The value that these bytes are, and nothing beside it.
    pub fn read<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, String> {
        match self {
            Self::Json => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
            Self::MessagePack => {
                let mut reader = rmp_serde::Deserializer::new(std::io::Cursor::new(bytes));
                let value = T::deserialize(&mut reader).map_err(|error| error.to_string())?;
                match bytes.len() as u64 - reader.position() {
                    0 => Ok(value),
                    rest => Err(format!("{rest} bytes follow the value")),
                }
            }
        }
    }
}

/// The text of a header, if it has one.
pub(super) fn header_text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

tokio::task_local! {
    /// What the answer to the request under way is to be in. An error can come up wherever a
    /// request passes: so it is kept beside the request and not handed from one to the next.
    static WANTED: Format;
}

/// Finds out once per request what its answer is to be in.
pub(super) async fn negotiate(request: Request, next: Next) -> Response {
    WANTED.scope(Format::wanted(request.headers()), next.run(request)).await
}

/// What a request brings.
#[derive(Clone, Copy, Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let named = header_text(request.headers(), header::CONTENT_TYPE).unwrap_or("nothing");
        // What curl says of its own accord. No web page reaches the socket.
        let is_unsaid = ["nothing", "application/x-www-form-urlencoded"].contains(&named);
        let is_local = request.extensions().get::<Way>() == Some(&Way::Socket);
        let unsaid = (is_unsaid && is_local).then_some(Format::Json);
        let format = Format::named(named).or(unsaid).ok_or_else(|| {
            let [json, packed] = [Format::Json, Format::MessagePack].map(Format::media_type);
            let message = format!(
                "read the request: its Content-Type is {named}; it must be {json} or {packed}"
            );
            let hint = "say what it is, as with curl's -H 'Content-Type: application/json'";
            ApiError::new(Kind::Unsupported, message, Some(hint))
        })?;
        let bytes = Bytes::from_request(request, state).await?;
        let value = format.read(&bytes).map_err(|problem| {
            let message = format!("read the request: {problem}");
            ApiError::new(Kind::Invalid, message, Some(DESCRIPTION_HINT))
        })?;
        Ok(Self(value))
    }
}

/// What a request names in its path. The description of the API knows it by this name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self(extract::Path::from_request_parts(parts, state).await?.0))
    }
}

/// What a request asks for after the question mark.
#[derive(Clone, Copy, Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        Ok(Self(Query::from_request_parts(parts, state).await?.0))
    }
}

/// What a request is answered.
#[derive(Clone, Copy, Debug)]
pub struct Answer<T>(pub T);

/// What a handler returns.
pub(super) type Answered<T> = Result<Answer<T>, ApiError>;

impl<T: Serialize> IntoResponse for Answer<T> {
    fn into_response(self) -> Response {
        let format = WANTED.try_with(|wanted| *wanted).unwrap_or_default();
        match format.write(&self.0) {
            Ok(bytes) => {
                let media_type = HeaderValue::from_static(format.media_type());
                ([(header::CONTENT_TYPE, media_type)], bytes).into_response()
            }
            // An error is of plain texts, which both formats can write: this does not come again.
            Err(problem) => {
                let message = format!("write the answer: {problem}");
                ApiError::new(Kind::Failed, message, None).into_response()
            }
        }
    }
}
