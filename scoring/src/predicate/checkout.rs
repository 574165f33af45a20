//! What a predicate may ask of a checkout, and nothing more.
//!
//! The node implements this over a real checkout; here it is only asked. It is asked for paths that
//! it has listed itself and for no other, so that what a predicate names can never lead elsewhere.

use std::borrow::Cow;

/// A checkout, as predicates see it: the files that git tracks, and their bytes.
///
/// Whoever implements it keeps it confined: it follows no symbolic link, neither in a file's name
/// nor on the way to it, opens nothing but plain files, and runs nothing.
pub trait Checkout {
    /// The paths that git tracks, relative to the root of the checkout, with forward slashes, in
    /// the order of their bytes: the order of git's index.
    fn tracked(&self) -> &[String];

    /// Whether a tracked path is still there, as whatever it is.
    ///
    /// # Errors
    /// [`Unreadable::Failed`] if that could not be told.
    fn exists(&self, path: &str) -> Result<bool, Unreadable>;

    /// The bytes of a tracked file, unless it has more than `bytes_max`.
    ///
    /// # Errors
    /// Why there are none.
    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, Unreadable>;

    /// The BLAKE3 digest of some bytes.
    fn digest(&self, bytes: &[u8]) -> [u8; 32];
}

/// Why the bytes of a tracked file could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It has been deleted in the working tree.
    Missing,
    /// It has more bytes than were asked for.
    TooLarge,
    /// It is a symbolic link, a submodule, a folder or a device, or lies behind a link.
    NotAFile,
    /// Reading failed.
    Failed,
}
