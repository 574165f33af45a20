//! Interface through which predicates read a checkout.
//!
//! The node implements it over a real checkout. The evaluation passes only paths that the checkout
//! itself has listed, so that a path in a predicate can never lead elsewhere.

use std::borrow::Cow;

/// A checkout as predicates see it: the files that git tracks, and their bytes.
///
/// An implementation keeps it confined: it follows no symbolic link, neither in a file's name nor
/// in its parent folders, opens only plain files, and runs nothing.
pub trait Checkout {
    /// Paths that git tracks, relative to the root of the checkout, with forward slashes, sorted by
    /// bytes as in git's index.
    fn tracked(&self) -> &[String];

    /// Whether a tracked path still exists, as a file of any type.
    ///
    /// # Errors
    /// [`ReadFailure::Failed`] if the check failed.
    fn exists(&self, path: &str) -> Result<bool, ReadFailure>;

    /// The bytes of a tracked file, unless it has more than `bytes_max`.
    ///
    /// # Errors
    /// The reason why the file cannot be read.
    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, ReadFailure>;

    /// BLAKE3 digest of the given bytes.
    fn digest(&self, bytes: &[u8]) -> [u8; 32];
}

/// Reason why a tracked file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadFailure {
    /// The file was deleted in the working tree.
    Missing,
    /// The file has more bytes than the caller allowed.
    TooLarge,
    /// The path is a symbolic link, a submodule, a folder or a device, or lies behind a link.
    NotAFile,
    /// The read failed for another reason.
    Failed,
}
