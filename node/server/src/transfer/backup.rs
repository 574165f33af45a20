//! `POST /v1/backup` and `GET /v1/doctor`: back up and check the store while the node runs.

use super::streaming_response;
use crate::caller::Caller;
use crate::convert;
use crate::errors::ApiError;
use crate::extractors_and_replies::Body;
use crate::service::Service;
use axum::extract::State;
use axum::response::Response;
use klnode_api_types::ErrorKind;
use klnode_api_types::health_check::CheckResult;
use klnode_api_types::transfer::BackupOrder;
use klnode_crdt::signing_key::SecretKey;
use klnode_embed::EmbedError;
use klnode_home::{Existing, Layout};
use klnode_store::backup::{self, BackupError, BackupFacts};
use klnode_text::plural;
use std::path::Path;
use zeroize::Zeroizing;

/// Writes a backup of the whole store to a file while the node keeps running.
#[utoipa::path(post, path = "/v1/backup", request_body = BackupOrder,
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn backup(
    State(service): State<Service>,
    caller: Caller,
    Body(order): Body<BackupOrder>,
) -> Result<Response, ApiError> {
    if caller.uid.is_none() {
        let message = "A caller over TCP may not write a backup.";
        return Err(ApiError::new(ErrorKind::Refused, message, Some("Use the socket.")));
    }
    let path = Path::new(&order.path).to_owned();
    if !path.is_absolute() {
        let message = format!("The backup path {} is not absolute.", path.display());
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let existing = if order.replace { Existing::Replace } else { Existing::Keep };
    let key = match order.without_key {
        true => None,
        false => Some(key(&service)?),
    };
    streaming_response::news(move |watch| {
        let about = BackupFacts {
            node: service.author,
            store: service.engine.store().id(),
            now: (service.now)(),
            klnode: env!("CARGO_PKG_VERSION"),
            key: key.as_ref(),
        };
        let snapshot = service.snapshot()?;
        let manifest = backup::write(&snapshot, &path, existing, &about, watch)?;
        Ok(convert::backup::summary(manifest))
    })
}

/// Reads the node's key from its home; the service does not hold it.
fn key(service: &Service) -> Result<SecretKey, ApiError> {
    let path = Layout::new(&**service.home).key_file();
    let failed = |why: String| {
        let message = format!("The node's key {} could not be read: {why}.", path.display());
        ApiError::new(ErrorKind::Failed, message, Some("Leave the key out with --without-key."))
    };
    let bytes = std::fs::read(&path).map(Zeroizing::new).map_err(|e| failed(e.to_string()))?;
    let bytes: &[u8; 32] =
        bytes.as_slice().try_into().map_err(|_| failed("it is not 32 bytes long".into()))?;
    let key = SecretKey::from_bytes(bytes);
    match key.author() == service.author {
        true => Ok(key),
        false => Err(failed("it is the key of another node".into())),
    }
}

impl From<BackupError> for ApiError {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::Exists { .. } => {
                Self::new(ErrorKind::Invalid, message, Some("Replace it with --force."))
            }
            BackupError::Foreign { .. } | BackupError::NotAFile { .. } => {
                Self::new(ErrorKind::Invalid, message, Some("Choose another name."))
            }
            _ => Self::new(ErrorKind::Failed, message, None),
        }
    }
}

/// Checks the home, the store and the index, and streams the findings.
#[utoipa::path(get, path = "/v1/doctor",
    responses((status = 200, content_type = "application/x-ndjson", body = String)))]
pub(super) async fn doctor(State(service): State<Service>) -> Result<Response, ApiError> {
    streaming_response::news(move |watch| {
        let mut findings = klnode_doctor::home(&Layout::new(&**service.home));
        findings.push(CheckResult::ok("socket", "a node answers"));
        let (own, now) = (Some(service.author), (service.now)());
        findings.extend(klnode_doctor::store(&service.snapshot()?, own, now, watch)?);
        findings.extend(index(&service));
        Ok(findings)
    })
}

/// The findings about the index.
fn index(service: &Service) -> Vec<CheckResult> {
    let state = service.index.state();
    let documents = service.index.words().documents();
    let finding = match (state.fault, state.rebuild) {
        (Some(fault), _) => {
            let way_out = way_out(state.embedder_fault.as_ref());
            CheckResult::warn("index", format!("Indexing is stalled: {fault}"), way_out)
        }
        (None, Some(job)) => CheckResult::ok(
            "index",
            format!("vectors are being built: {} of {}", job.done, job.total),
        ),
        (None, None) => {
            let documents = plural::counted(documents, "document", "documents");
            CheckResult::ok("index", format!("{documents} indexed"))
        }
    };
    vec![finding]
}

/// The hint for a stalled index. A rebuild does not help if the embedder is the problem.
fn way_out(embedder: Option<&EmbedError>) -> String {
    let set = "`klnode config embedder` shows the settings and their source";
    match embedder {
        // The address is reduced to host name and port.
        Some(EmbedError::Unreachable { server, .. }) => format!(
            "The embedding server at {server} does not respond; the node recovers by itself when \
             it does; {set}."
        ),
        Some(_) => format!("{set}; a change takes effect at the next start of the node."),
        None => {
            let anew = "stop the node and delete `index` in its home to rebuild it";
            format!("The node retries by itself; {anew}.")
        }
    }
}
