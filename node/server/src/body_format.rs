//! The two formats of bodies, JSON and MessagePack, and the choice between them.
//!
//! It is separate from `codec`, because error responses are encoded with it and the extractors of
//! `codec` return errors. MessagePack bodies name their fields, so both formats carry the same types.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use klnode_http::header_text;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The format of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Text, the default.
    #[default]
    Json,
    /// Binary, with named fields.
    MessagePack,
}

impl Format {
    /// The media type for `Content-Type` and `Accept`.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::MessagePack => "application/msgpack",
        }
    }

    /// The format of a media type; parameters after a semicolon are ignored.
    pub(super) fn named(media_type: &str) -> Option<Self> {
        let name = media_type.split(';').next().unwrap_or_default().trim();
        let is_it = |format: &Self| name.eq_ignore_ascii_case(format.media_type());
        [Self::Json, Self::MessagePack].into_iter().find(is_it)
    }

    /// The format of the response: the one in `Accept`, else that of the request.
    fn wanted(headers: &HeaderMap) -> Self {
        let accepted = header_text(headers, header::ACCEPT).unwrap_or_default();
        let spoken = header_text(headers, header::CONTENT_TYPE).unwrap_or_default();
        accepted
            .split(',')
            .find_map(Self::named)
            .or_else(|| Self::named(spoken))
            .unwrap_or_default()
    }

    /// Encodes a value.
    pub fn write(self, value: &impl Serialize) -> Result<Vec<u8>, String> {
        match self {
            Self::Json => serde_json::to_vec(value).map_err(|error| error.to_string()),
            Self::MessagePack => rmp_serde::to_vec_named(value).map_err(|error| error.to_string()),
        }
    }

    /// Decodes one value; trailing bytes are an error.
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

tokio::task_local! {
    /// The format of the response to the current request. It is task-local because an error can
    /// occur in any layer.
    static WANTED: Format;
}

/// Middleware that determines the format of the response.
pub(super) async fn negotiate(request: Request, next: Next) -> Response {
    WANTED.scope(Format::wanted(request.headers()), next.run(request)).await
}

/// Encodes the body of a response in the format of the current request.
pub(super) fn encode(value: &impl Serialize) -> Result<Response, String> {
    let format = WANTED.try_with(|wanted| *wanted).unwrap_or_default();
    let bytes = format.write(value)?;
    let media_type = HeaderValue::from_static(format.media_type());
    Ok(([(header::CONTENT_TYPE, media_type)], bytes).into_response())
}
