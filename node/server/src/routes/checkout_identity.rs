//! The identity of the repository of a checkout, which maps the checkout to a workspace.

use crate::errors::ApiError;
use crate::service::Service;
use klnode_api_types::ErrorKind;
use klnode_git::{Repository, RepositoryIdentity};
use std::path::Path;

/// The identity of the repository of a checkout, and the checkout's root folder.
pub(super) fn identity(
    service: &Service,
    folder: &Path,
) -> Result<(RepositoryIdentity, String), ApiError> {
    let invalid = |message: String, hint| ApiError::new(ErrorKind::Invalid, message, hint);
    let repository = Repository::open(folder).map_err(|error| invalid(error.to_string(), None))?;
    let identity = service.reader.identity(&repository);
    let root = repository.path().display().to_string();
    if let Some(format) = repository.unread_refs() {
        let message = format!(
            "The repository of {root} is unknown: it keeps its references as {format}, which \
             is unsupported."
        );
        let hint = "Run `git refs migrate --ref-format=files`, or retry in a clone with references \
                    in files. Until then, only its remote identifies the repository.";
        return Err(invalid(message, Some(hint)));
    }
    if identity.is_empty() {
        let message = format!(
            "The repository of {root} is unknown: it has neither a root commit nor a remote."
        );
        let hint = "Make a commit first; a shallow clone needs a remote named origin.";
        return Err(invalid(message, Some(hint)));
    }
    Ok((identity, root))
}
