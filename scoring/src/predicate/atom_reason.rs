//! Reasons for the value of an atom, shown to people; they never quote file contents.

use std::fmt;

/// Contribution of one atom to a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtomResult {
    /// The atom in predicate syntax.
    pub atom: String,
    /// Reason for its value.
    pub reason: AtomReason,
}

impl fmt::Display for AtomResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.atom, self.reason)
    }
}

/// Why an atom holds, is broken, or is unknown.
///
/// If several reasons apply to one atom, the last in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AtomReason {
    /// The atom holds; it appears in a broken predicate under `NOT`.
    Holds,
    /// Broken: git tracks no such file.
    NotTracked,
    /// Broken: git tracks no manifest of this ecosystem.
    NoManifest,
    /// Broken: the file is tracked but was deleted.
    Missing,
    /// Broken: no manifest declares the package.
    NotDeclared,
    /// Broken: the package is declared with another lowest version.
    OtherVersion,
    /// Broken: no text of the file matches the pattern.
    OtherText,
    /// Broken: the file has fewer lines.
    TooFewLines,
    /// Broken: the content has another digest.
    OtherDigest,
    /// Unknown: the package is declared without a lowest version.
    NoVersion,
    /// Unknown: a manifest or a pattern is invalid.
    NotUnderstood,
    /// Unknown: a file is too large.
    TooLarge,
    /// Unknown: a path is a link, a submodule or not a plain file.
    NotAFile,
    /// Unknown: reading failed.
    Unreadable,
    /// Unknown: more files match than the limit allows.
    TooManyFiles,
    /// Unknown: the evaluation exceeded its work limit.
    TooMuchWork,
}

impl fmt::Display for AtomReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AtomReason::Holds => "holds",
            AtomReason::NotTracked => "git tracks no such file",
            AtomReason::NoManifest => "git tracks no such manifest",
            AtomReason::Missing => "the file has been deleted",
            AtomReason::NotDeclared => "no manifest declares it",
            AtomReason::OtherVersion => "it is declared with another lowest version",
            AtomReason::OtherText => "nothing matches the pattern",
            AtomReason::TooFewLines => "the file has fewer lines",
            AtomReason::OtherDigest => "the content has changed",
            AtomReason::NoVersion => "it is declared without a lowest version",
            AtomReason::NotUnderstood => "a manifest is not understood",
            AtomReason::TooLarge => "a file is too large",
            AtomReason::NotAFile => "it is a link, a submodule or no plain file",
            AtomReason::Unreadable => "reading failed",
            AtomReason::TooManyFiles => "it means too many files",
            AtomReason::TooMuchWork => "it takes too much work",
        })
    }
}
