//! What manifests declare: for each package, the lowest version that is admitted.
//!
//! A manifest says which versions may be used, not which one is. What it does promise is that the
//! lowest version it admits is enough, so that is the version a `dep:` atom is held against: with
//! `tokio = "1.40"`, `>=1.40` holds and `>=1.45` does not, whatever a lock file has settled on.
//! Text goes in and declarations come out; nothing of the text is quoted anywhere.

mod cargo;
mod go;
mod npm;
mod pypi;
mod range;

use std::collections::BTreeMap;

use super::version::Version;

/// A kind of manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ecosystem {
    Cargo,
    Npm,
    Pypi,
    Go,
}

impl Ecosystem {
    pub(super) const ALL: [Self; 4] = [Self::Cargo, Self::Npm, Self::Pypi, Self::Go];

    /// Its name in predicates.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Go => "go",
        }
    }

    /// What its manifests are called.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Cargo => "Cargo.toml",
            Self::Npm => "package.json",
            Self::Pypi => "pyproject.toml",
            Self::Go => "go.mod",
        }
    }

    /// The one spelling of a package's name.
    pub(super) fn normal(self, name: &str) -> String {
        match self {
            Self::Pypi => pypi::normal(name),
            Self::Cargo | Self::Npm | Self::Go => name.to_owned(),
        }
    }
}

/// The lowest version that one declaration admits; none where it states no such version: any will
/// do, or it comes from a folder, a repository or an address.
pub(super) type Lowest = Option<Version>;

/// What one manifest declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Each package and what its declarations admit.
    pub(super) declared: BTreeMap<String, Vec<Lowest>>,
    /// Keys that this manifest takes from its workspace (Cargo only).
    pub(super) inherited: Vec<String>,
    /// What it lends to the members of its workspace: package and version by key (Cargo only).
    pub(super) lent: Option<BTreeMap<String, (String, Lowest)>>,
}

impl Manifest {
    /// Reads a manifest; none where it is not understood.
    pub(super) fn read(ecosystem: Ecosystem, text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match ecosystem {
            Ecosystem::Cargo => cargo::read(text),
            Ecosystem::Npm => npm::read(text),
            Ecosystem::Pypi => pypi::read(text),
            Ecosystem::Go => go::read(text),
        }
    }

    fn add(&mut self, package: String, lowest: Lowest) {
        self.declared.entry(package).or_default().push(lowest);
    }
}
