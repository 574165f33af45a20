//! `POST /v1/backup` and `GET /v1/doctor`: the node looks after itself while it goes on.

use super::stream;
use super::types::BackupOrder;
use crate::api::caller::Caller;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::Body;
use crate::api::server::Service;
use crate::index::embed::EmbedError;
use crate::query::count;
use crate::query::doctor::{self, Finding};
use crate::store::backup::{self, About, BackupError};
use crate::store::{Existing, Layout};
use axum::extract::State;
use axum::response::Response;
use klnode_crdt::key::SecretKey;
use std::path::Path;
use zeroize::Zeroizing;

/// Writes a backup of the whole store to a file, while the node goes on.
#[utoipa::path(post, path = "/v1/backup", request_body = BackupOrder,
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn backup(
    State(service): State<Service>,
    caller: Caller,
    Body(order): Body<BackupOrder>,
) -> Result<Response, ApiError> {
    if caller.uid.is_none() {
        let message = "write a file for a caller over TCP";
        return Err(ApiError::new(Kind::Refused, message, Some("ask over the socket")));
    }
    let path = Path::new(&order.path).to_owned();
    if !path.is_absolute() {
        let message = format!("write the backup {}: it is no absolute path", path.display());
        return Err(ApiError::new(Kind::Invalid, message, None));
    }
    let existing = if order.replace { Existing::Replace } else { Existing::Keep };
    let key = match order.without_key {
        true => None,
        false => Some(key(&service)?),
    };
    stream::news(move |watch| {
        let about = About {
            node: service.author,
            store: service.engine.store().id(),
            now: (service.now)(),
            klnode: env!("CARGO_PKG_VERSION"),
            key: key.as_ref(),
        };
        let snapshot = service.snapshot()?;
        Ok(backup::write(&snapshot, &path, existing, &about, watch)?)
    })
}

/// The node's key, from its home: the service itself does not hold it.
fn key(service: &Service) -> Result<SecretKey, ApiError> {
    let path = Layout::new(&**service.home).key_file();
    let failed = |why: String| {
        let message = format!("read the node's key {}: {why}", path.display());
        ApiError::new(Kind::Failed, message, Some("leave it out with --without-key"))
    };
    let bytes = std::fs::read(&path).map(Zeroizing::new).map_err(|e| failed(e.to_string()))?;
    let bytes: &[u8; 32] =
        bytes.as_slice().try_into().map_err(|_| failed("it is not 32 bytes long".into()))?;
    let key = SecretKey::from_bytes(bytes);
    match key.author() == service.author {
        true => Ok(key),
        false => Err(failed("it is another node's".into())),
    }
}

impl From<BackupError> for ApiError {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::Exists { .. } => {
                Self::new(Kind::Invalid, message, Some("--force replaces it"))
            }
            BackupError::Foreign { .. } | BackupError::NotAFile { .. } => {
                Self::new(Kind::Invalid, message, Some("choose another name"))
            }
            _ => Self::new(Kind::Failed, message, None),
        }
    }
}

/// Asks whether everything is in order.
#[utoipa::path(get, path = "/v1/doctor",
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn doctor(State(service): State<Service>) -> Result<Response, ApiError> {
    stream::news(move |watch| {
        let mut findings = doctor::home(&Layout::new(&**service.home));
        findings.push(Finding::ok("socket", "a node answers"));
        let (own, now) = (Some(service.author), (service.now)());
        findings.extend(doctor::store(&service.snapshot()?, own, now, watch)?);
        findings.extend(index(&service));
        Ok(findings)
    })
}

/// What there is to say of the index.
fn index(service: &Service) -> Vec<Finding> {
    let state = service.index.state();
    let documents = service.index.words().documents();
    let finding = match (state.fault, state.rebuild) {
        (Some(fault), _) => {
            let way_out = way_out(state.embedder_fault.as_ref());
            Finding::warn("index", format!("it cannot {fault}"), way_out)
        }
        (None, Some(job)) => {
            Finding::ok("index", format!("vectors are being made: {} of {}", job.done, job.total))
        }
        (None, None) => {
            let documents = count::counted(documents, "document is", "documents are");
            Finding::ok("index", format!("{documents} to be found"))
        }
    };
    vec![finding]
}

/// What to do about an index that stands still. Building it anew brings no embedder back.
fn way_out(embedder: Option<&EmbedError>) -> String {
    let set = "`klnode config embedder` shows what is set, and where";
    match embedder {
        // Of the address no more than name and port.
        Some(EmbedError::Unreachable { server, .. }) => format!(
            "the embedding server at {server} does not answer; once it does, the node goes on by \
             itself; {set}"
        ),
        Some(_) => format!("{set}; a change counts from the node's next start"),
        None => {
            let anew = "stop the node and delete `index` in its home to build it anew";
            format!("it tries again by itself; {anew}")
        }
    }
}
