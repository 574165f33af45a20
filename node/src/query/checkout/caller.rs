//! The checkout that a caller works in: its files, and the repository they belong to.

use super::{CheckoutError, GitCheckout, Identity, Repository, Roots};
use std::path::Path;

/// The checkout that a caller works in.
#[derive(Debug)]
pub struct CallerCheckout {
    identity: Identity,
    files: Option<GitCheckout>,
}

impl CallerCheckout {
    /// Opens the checkout that a folder lies in.
    ///
    /// # Errors
    /// If there is none, or its files cannot be listed.
    pub fn open(folder: &Path, roots: &Roots) -> Result<Self, CheckoutError> {
        let files = GitCheckout::open(folder)?;
        let identity = Repository::open(folder)?.identity(roots);
        Ok(Self { identity, files: Some(files) })
    }

    /// The same, but without its files where they cannot be listed: predicates of this repository are
    /// then unknown. None outside of any checkout.
    pub(crate) fn open_any(folder: &Path, roots: &Roots) -> Option<Self> {
        let identity = Repository::open(folder).ok()?.identity(roots);
        Some(Self { identity, files: GitCheckout::open(folder).ok() })
    }

    /// The repository that it is of.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Its files; none if they cannot be listed.
    pub fn files(&self) -> Option<&GitCheckout> {
        self.files.as_ref()
    }
}
