//! The checkout a caller works in: its files and the identity of its repository.

use super::{CheckoutError, GitCheckout, Repository, RepositoryIdentity, Roots};
use std::path::Path;

/// The checkout a caller works in.
#[derive(Debug)]
pub struct CallerCheckout {
    identity: RepositoryIdentity,
    files: Option<GitCheckout>,
}

impl CallerCheckout {
    /// Opens the checkout that contains a folder.
    ///
    /// # Errors
    /// If there is none, or its files cannot be listed.
    pub fn open(folder: &Path, roots: &Roots) -> Result<Self, CheckoutError> {
        let files = GitCheckout::open(folder)?;
        let identity = Repository::open(folder)?.identity(roots);
        Ok(Self { identity, files: Some(files) })
    }

    /// Opens the checkout even if its files cannot be listed; predicates about this repository are
    /// then unknown. `None` outside of any checkout.
    pub fn open_any(folder: &Path, roots: &Roots) -> Option<Self> {
        let identity = Repository::open(folder).ok()?.identity(roots);
        Some(Self { identity, files: GitCheckout::open(folder).ok() })
    }

    /// Identity of the checkout's repository.
    pub fn identity(&self) -> &RepositoryIdentity {
        &self.identity
    }

    /// The tracked files; `None` if they cannot be listed.
    pub fn files(&self) -> Option<&GitCheckout> {
        self.files.as_ref()
    }
}
