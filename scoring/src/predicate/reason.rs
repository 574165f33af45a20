//! Why an atom was judged as it was: for people, and without a word of what a file says.

use std::fmt;

/// What one atom contributed to an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The atom, as it is written.
    pub atom: String,
    /// Why it was judged so.
    pub reason: Reason,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.atom, self.reason)
    }
}

/// Why an atom holds, is broken, or cannot be told.
///
/// Of several reasons to call one atom broken, the last in this order is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// It holds: among the findings of a broken predicate, under `NOT`.
    Holds,
    /// Git tracks no such file.
    NotTracked,
    /// Git tracks no manifest of that kind.
    NoManifest,
    /// The file is tracked and has been deleted.
    Missing,
    /// No manifest declares the package.
    NotDeclared,
    /// The package is declared, and its lowest version is another.
    OtherVersion,
    /// No text of the file matches the pattern.
    OtherText,
    /// The file has fewer lines.
    TooFewLines,
    /// The digest is another.
    OtherDigest,
    /// Cannot be told: the package is declared without a lowest version.
    NoVersion,
    /// Cannot be told: a manifest is not understood.
    NotUnderstood,
    /// Cannot be told: a file is too large.
    TooLarge,
    /// Cannot be told: a path is a link, a submodule or no plain file.
    NotAFile,
    /// Cannot be told: reading failed.
    Unreadable,
    /// Cannot be told: more files match than are looked at.
    TooManyFiles,
    /// Cannot be told: it would take more work than is done.
    TooMuchWork,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Holds => "holds",
            Reason::NotTracked => "git tracks no such file",
            Reason::NoManifest => "git tracks no such manifest",
            Reason::Missing => "the file has been deleted",
            Reason::NotDeclared => "no manifest declares it",
            Reason::OtherVersion => "it is declared with another lowest version",
            Reason::OtherText => "nothing matches the pattern",
            Reason::TooFewLines => "the file has fewer lines",
            Reason::OtherDigest => "the content has changed",
            Reason::NoVersion => "it is declared without a lowest version",
            Reason::NotUnderstood => "a manifest is not understood",
            Reason::TooLarge => "a file is too large",
            Reason::NotAFile => "it is a link, a submodule or no plain file",
            Reason::Unreadable => "reading failed",
            Reason::TooManyFiles => "it means too many files",
            Reason::TooMuchWork => "it takes too much work",
        })
    }
}
