//! Errors at the edge: the one table from what went wrong to status code and way out.

use super::exchange::Answer;
use super::types::{ErrorBody, ErrorDetail};
use crate::engine::Rejection;
use crate::query::{CompareError, ReferenceError, SearchError, redacted};
use crate::store;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of error, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ErrorKind)]
pub enum Kind {
    /// The input is wrong.
    Invalid,
    /// The input is in a format that is not spoken here.
    Unsupported,
    /// The input is too large.
    TooLarge,
    /// The caller has not shown the token.
    Unauthorised,
    /// There is no such thing.
    NotFound,
    /// Several things are meant.
    Ambiguous,
    /// It was forgotten.
    Forgotten,
    /// Policy says no.
    Refused,
    /// It took too long or there is too much to do.
    Busy,
    /// The store or the disk failed.
    Failed,
}

impl Kind {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Invalid => StatusCode::BAD_REQUEST,
            Self::Unsupported => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unauthorised => StatusCode::UNAUTHORIZED,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Ambiguous => StatusCode::CONFLICT,
            Self::Forgotten => StatusCode::GONE,
            Self::Refused => StatusCode::FORBIDDEN,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What it means, in a sentence.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Invalid => "The input is wrong.",
            Self::Unsupported => "The input is in a format that is not spoken here.",
            Self::TooLarge => "The input is too large.",
            Self::Unauthorised => "The caller came over TCP and has not shown the token.",
            Self::NotFound => "There is no such thing.",
            Self::Ambiguous => "Several things are meant.",
            Self::Forgotten => "It was forgotten.",
            Self::Refused => "Policy says no.",
            Self::Busy => "It took too long, there is too much to do, or the node is stopping.",
            Self::Failed => "The store or the disk failed.",
        }
    }

    /// The exit code of a command that met it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid | Self::Unsupported | Self::TooLarge | Self::Ambiguous => 2,
            Self::NotFound | Self::Forgotten | Self::Busy | Self::Failed => 1,
            Self::Refused | Self::Unauthorised => 4,
        }
    }
}

/// An error that is answered.
#[derive(Debug)]
pub struct ApiError {
    kind: Kind,
    message: String,
    hint: Option<&'static str>,
}

impl ApiError {
    /// An error with a way out. Messages repeat what was typed, and are printed and logged: whatever
    /// in them looks like a secret is taken out here, once for all.
    pub fn new(kind: Kind, message: impl Into<String>, hint: Option<&'static str>) -> Self {
        let mut message = message.into();
        if let Some((at, _)) = message.char_indices().nth(MESSAGE_CHARACTERS_MAX) {
            message.truncate(at);
            message.push('…');
        }
        Self { kind, message: redacted(&message), hint }
    }

    /// As it travels: in a sentence, since whoever reads it may be no program of ours.
    pub(super) fn into_detail(self) -> ErrorDetail {
        let hint = self.hint.map(str::to_owned);
        ErrorDetail { kind: self.kind, message: format!("{CANNOT}{}", self.message), hint }
    }

    /// What could not be done; fits after "cannot".
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// What stands before every message, once: here where it leaves the node, and not where it came up.
pub(super) const CANNOT: &str = "cannot ";

/// The way out for whoever asks for what there is not, or sends what cannot be read.
pub(super) const DESCRIPTION_HINT: &str = "/v1/openapi.json says what each path takes";

/// Characters of a message. It may repeat what was typed, which may be long.
const MESSAGE_CHARACTERS_MAX: usize = 2_000;

/// So that a stream can end in one.
impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = self.kind;
        let error = ErrorBody { error: self.into_detail() };
        let mut response = (kind.status(), Answer(error)).into_response();
        if kind == Kind::Unauthorised {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// The way out for whoever names a task that is not there.
pub(super) const TASKS_HINT: &str = "`klnode task list` shows those there are";

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let (kind, hint) = match &rejection {
            Rejection::Invalid { .. }
            | Rejection::InvalidTask { .. }
            | Rejection::InvalidFinding { .. }
            | Rejection::Refused(_)
            | Rejection::Judged(_) => (Kind::Invalid, None),
            Rejection::NoSuchUpkeep(_) => {
                (Kind::NotFound, Some("`klnode maintain list` shows the numbers"))
            }
            Rejection::UnfitUpkeep { .. } => {
                (Kind::Invalid, Some("`klnode maintain list` says what each number is"))
            }
            Rejection::NoSuchTask(_) => (Kind::NotFound, Some(TASKS_HINT)),
            Rejection::NoSuchFinding { .. } => {
                (Kind::NotFound, Some("`klnode task findings` shows those there are"))
            }
            Rejection::UnfitFinding { .. } => {
                (Kind::Invalid, Some("`klnode task findings` says what became of each"))
            }
            Rejection::TaskEnded { .. } => {
                (Kind::Invalid, Some("`klnode task begin` begins another"))
            }
            Rejection::NoSuchEntry(_) | Rejection::NotQuarantined(_) => (Kind::NotFound, None),
            Rejection::Forgotten(_) => {
                (Kind::Forgotten, Some("what was forgotten stays so; add it as a new entry"))
            }
            Rejection::NotEntitled(_) | Rejection::NothingToRetract(_) => (Kind::Refused, None),
            Rejection::Stopping => (Kind::Busy, None),
            Rejection::Store(error) => (Kind::Failed, store_hint(error)),
            Rejection::Reopen(_) => (Kind::Failed, None),
        };
        Self::new(kind, rejection.to_string(), hint)
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        let hint = store_hint(&error);
        Self::new(Kind::Failed, error.to_string(), hint)
    }
}

fn store_hint(error: &store::Error) -> Option<&'static str> {
    match error {
        store::Error::Full | store::Error::NoRoom => Some("make room; the node goes on by itself"),
        store::Error::Damaged { .. } => Some("restore the home from a backup"),
        store::Error::Busy => Some("try again when nothing reads"),
        store::Error::Io(_) | store::Error::Closed | store::Error::Abandoned => None,
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        let message = error.to_string();
        match error {
            SearchError::Store(error) => error.into(),
            SearchError::Keyword(_) => Self::new(
                Kind::Failed,
                message,
                Some("stop the node and delete `index` in its home; it is built again"),
            ),
            SearchError::GivenUp => Self::new(Kind::Busy, message, None),
        }
    }
}

impl From<CompareError> for ApiError {
    fn from(error: CompareError) -> Self {
        let message = error.to_string();
        match error {
            CompareError::Store(error) => error.into(),
            CompareError::Embed(_) => {
                Self::new(Kind::Failed, message, Some("try again once the embedder answers"))
            }
            CompareError::NotReady => Self::new(Kind::Busy, message, Some("try again in a moment")),
        }
    }
}

impl From<ReferenceError> for ApiError {
    fn from(error: ReferenceError) -> Self {
        let (kind, hint) = match &error {
            ReferenceError::Malformed(_) => (Kind::Invalid, Some("`klnode list` shows codes")),
            ReferenceError::Unknown(_) => {
                (Kind::NotFound, Some("`klnode list` shows what this node holds"))
            }
            ReferenceError::Ambiguous { .. } => (Kind::Ambiguous, Some("type one more character")),
            ReferenceError::Store(_) => (Kind::Failed, None),
        };
        Self::new(kind, error.to_string(), hint)
    }
}

impl From<BytesRejection> for ApiError {
    fn from(rejection: BytesRejection) -> Self {
        Self::new(Kind::Invalid, format!("read the request: {}", rejection.body_text()), None)
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        let message = format!("read the request: {}", rejection.body_text());
        Self::new(Kind::Invalid, message, Some(DESCRIPTION_HINT))
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        let message = format!("read the request: {}", rejection.body_text());
        Self::new(Kind::Invalid, message, Some(DESCRIPTION_HINT))
    }
}
