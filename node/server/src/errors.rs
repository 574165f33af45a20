//! API errors: one table maps every error to its kind, its HTTP status and a hint.

use super::body_format;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::response::{IntoResponse, Response};
use klnode_api_types::{ErrorBody, ErrorDetail, ErrorKind};
use klnode_engine::Rejection;
use klnode_http::error_response;
use klnode_query::{CompareError, ReferenceError, SearchError};

/// The description of this kind's HTTP status in the OpenAPI document.
pub(super) fn meaning_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "The request is malformed, or a value in it is not allowed.",
        ErrorKind::Unsupported => "The `Content-Type` of the body is not supported.",
        ErrorKind::TooLarge => "The body is larger than `tuning.api.body_bytes_max`.",
        ErrorKind::Unauthorised => "The request came over TCP without the token.",
        ErrorKind::NotFound => "The node holds no object of this name.",
        ErrorKind::Ambiguous => "The given name matches several objects.",
        ErrorKind::Forgotten => "The entry was forgotten.",
        ErrorKind::Refused => "The caller lacks the rights, or a policy forbids the operation.",
        ErrorKind::Busy => "The node is overloaded or stopping, or the request timed out.",
        ErrorKind::Failed => "The store, the disk or another part of the node failed.",
    }
}

/// An error response: its kind, a message and an optional hint.
#[derive(Debug)]
pub struct ApiError(ErrorDetail);

impl ApiError {
    /// Creates an error; see [`ErrorDetail::new`].
    pub fn new(kind: ErrorKind, message: impl Into<String>, hint: Option<&'static str>) -> Self {
        Self(ErrorDetail::new(kind, message, hint))
    }

    /// The error as the API sends it.
    pub(super) fn into_detail(self) -> ErrorDetail {
        self.0
    }

    /// A whole sentence with the failure and its cause.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl From<ErrorDetail> for ApiError {
    fn from(detail: ErrorDetail) -> Self {
        Self(detail)
    }
}

/// Hint for a request with an unknown path or a malformed body.
pub(super) const DESCRIPTION_HINT: &str = "See /v1/openapi.json for the parameters of each path.";

/// Needed as the error type of a response stream.
impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for ApiError {}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let kind = self.0.kind;
        // Both formats can encode an error, which consists of plain text.
        let body = body_format::encode(&ErrorBody { error: self.0 });
        error_response(kind, body.unwrap_or_else(IntoResponse::into_response))
    }
}

/// Hint for a request that names an unknown task.
pub(super) const TASKS_HINT: &str = "Run `klnode task list` to see tasks.";

impl From<Rejection> for ApiError {
    fn from(rejection: Rejection) -> Self {
        let (kind, hint) = match &rejection {
            Rejection::Invalid { .. }
            | Rejection::InvalidTask { .. }
            | Rejection::InvalidFinding { .. }
            | Rejection::Refused(_)
            | Rejection::Judged(_) => (ErrorKind::Invalid, None),
            Rejection::NoSuchMaintenanceRow(_) => {
                (ErrorKind::NotFound, Some("Run `klnode maintain list` to see the numbers."))
            }
            Rejection::UnfitMaintenanceRow { .. } => {
                (ErrorKind::Invalid, Some("Run `klnode maintain list` to see each number."))
            }
            Rejection::NoSuchTask(_) => (ErrorKind::NotFound, Some(TASKS_HINT)),
            Rejection::NoSuchFinding { .. } => {
                (ErrorKind::NotFound, Some("Run `klnode task findings` to see findings."))
            }
            Rejection::UnfitFinding { .. } => {
                (ErrorKind::Invalid, Some("Run `klnode task findings` to see each state."))
            }
            Rejection::TaskEnded { .. } => {
                (ErrorKind::Invalid, Some("Start another with `klnode task begin`."))
            }
            Rejection::NoSuchEntry(_) | Rejection::NotQuarantined(_) => (ErrorKind::NotFound, None),
            Rejection::Forgotten(_) => {
                (ErrorKind::Forgotten, Some("Forgetting is final; add a new entry instead."))
            }
            Rejection::NoDocument(_) => {
                (ErrorKind::Invalid, Some("Run `klnode playbook list` to see playbooks."))
            }
            Rejection::IsDocument(_) => (ErrorKind::Invalid, Some("Use `klnode playbook edit`.")),
            Rejection::NotEdited(_) => (
                ErrorKind::Invalid,
                Some("Run `klnode playbook show` to read the present version."),
            ),
            Rejection::NotEntitled(_) | Rejection::NothingToRetract(_) => {
                (ErrorKind::Refused, None)
            }
            Rejection::RemovedHere(_) => (
                ErrorKind::Refused,
                Some("See `klnode workspace list`; write with `--workspace` to another workspace."),
            ),
            Rejection::NotMember(_) => (
                ErrorKind::Refused,
                Some("Ask the owner or an admin of the workspace to invite this node."),
            ),
            Rejection::MayNotRemove | Rejection::NoRemoval => (ErrorKind::Refused, None),
            Rejection::CutTooLong { .. } => (ErrorKind::Invalid, None),
            Rejection::Stopping => (ErrorKind::Busy, None),
            Rejection::Store(error) => (ErrorKind::Failed, store_hint(error)),
            Rejection::Reopen(_) => (ErrorKind::Failed, None),
        };
        Self::new(kind, rejection.to_string(), hint)
    }
}

impl From<klnode_store::Error> for ApiError {
    fn from(error: klnode_store::Error) -> Self {
        let hint = store_hint(&error);
        Self::new(ErrorKind::Failed, error.to_string(), hint)
    }
}

fn store_hint(error: &klnode_store::Error) -> Option<&'static str> {
    match error {
        klnode_store::Error::Full | klnode_store::Error::NoRoom => {
            Some("Free disk space; the node recovers by itself.")
        }
        klnode_store::Error::Damaged { .. } => Some("Restore the home from a backup."),
        klnode_store::Error::Busy => Some("Retry when no reader is active."),
        klnode_store::Error::Io(_)
        | klnode_store::Error::Closed
        | klnode_store::Error::Abandoned => None,
    }
}

impl From<SearchError> for ApiError {
    fn from(error: SearchError) -> Self {
        let message = error.to_string();
        match error {
            SearchError::Store(error) => error.into(),
            SearchError::Keyword(_) => Self::new(
                ErrorKind::Failed,
                message,
                Some("Stop the node and delete `index` in its home; it is rebuilt."),
            ),
            SearchError::GivenUp => Self::new(ErrorKind::Busy, message, None),
        }
    }
}

impl From<CompareError> for ApiError {
    fn from(error: CompareError) -> Self {
        let message = error.to_string();
        match error {
            CompareError::Store(error) => error.into(),
            CompareError::Embed(_) => {
                Self::new(ErrorKind::Failed, message, Some("Retry when the embedder responds."))
            }
            CompareError::NotReady => {
                Self::new(ErrorKind::Busy, message, Some("Retry in a moment."))
            }
        }
    }
}

impl From<ReferenceError> for ApiError {
    fn from(error: ReferenceError) -> Self {
        let (kind, hint) = match &error {
            ReferenceError::Malformed(_) => {
                (ErrorKind::Invalid, Some("Run `klnode list` to see codes."))
            }
            ReferenceError::Section(_) => (ErrorKind::Invalid, None),
            ReferenceError::Unknown(_) => {
                (ErrorKind::NotFound, Some("Run `klnode list` to see entries."))
            }
            ReferenceError::Ambiguous { .. } => {
                (ErrorKind::Ambiguous, Some("Type one more character."))
            }
            ReferenceError::Store(_) => (ErrorKind::Failed, None),
        };
        Self::new(kind, error.to_string(), hint)
    }
}

/// The message for a request that could not be parsed.
pub(super) fn unreadable(problem: &str) -> String {
    format!("The request could not be read: {}.", problem.trim_end_matches('.'))
}

impl From<BytesRejection> for ApiError {
    fn from(rejection: BytesRejection) -> Self {
        Self::new(ErrorKind::Invalid, unreadable(&rejection.body_text()), None)
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        let message = unreadable(&rejection.body_text());
        Self::new(ErrorKind::Invalid, message, Some(DESCRIPTION_HINT))
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        let message = unreadable(&rejection.body_text());
        Self::new(ErrorKind::Invalid, message, Some(DESCRIPTION_HINT))
    }
}
