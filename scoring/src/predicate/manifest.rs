//! Package manifests: for each declared package, the lowest version that is admitted.
//!
//! A manifest says which versions may be used, not which one is. It does promise that the lowest
//! admitted version is enough, so a `dep:` atom compares against that version: with `tokio =
//! "1.40"`, `>=1.40` holds and `>=1.45` does not, regardless of the lock file. The parsers
//! return declarations only; no text of a manifest is quoted anywhere.

mod cargo;
mod go;
mod npm;
mod pypi;
mod version_range;

use std::collections::BTreeMap;

use super::version::PackageVersion;

/// Package ecosystem, which determines the manifest format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ecosystem {
    Cargo,
    Npm,
    Pypi,
    Go,
}

impl Ecosystem {
    pub(super) const ALL: [Self; 4] = [Self::Cargo, Self::Npm, Self::Pypi, Self::Go];

    /// Name used in predicates.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Go => "go",
        }
    }

    /// File name of the ecosystem's manifests.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Cargo => "Cargo.toml",
            Self::Npm => "package.json",
            Self::Pypi => "pyproject.toml",
            Self::Go => "go.mod",
        }
    }

    /// Canonical spelling of a package name.
    pub(super) fn normal(self, name: &str) -> String {
        match self {
            Self::Pypi => pypi::normal(name),
            Self::Cargo | Self::Npm | Self::Go => name.to_owned(),
        }
    }
}

/// Lowest version that one declaration admits; `None` if it states no version: any version is
/// allowed, or the package comes from a folder, a repository or a URL.
pub(super) type LowestVersion = Option<PackageVersion>;

/// Declarations of one manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PackageManifest {
    /// Lowest versions by package; a package may be declared more than once.
    pub(super) declared: BTreeMap<String, Vec<LowestVersion>>,
    /// Keys that this manifest inherits from its workspace (Cargo only).
    pub(super) inherited: Vec<String>,
    /// Declarations that workspace members can inherit: package and version by key (Cargo only).
    pub(super) lent: Option<BTreeMap<String, (String, LowestVersion)>>,
}

impl PackageManifest {
    /// Parses a manifest; `None` if it is invalid.
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

    fn add(&mut self, package: String, lowest: LowestVersion) {
        self.declared.entry(package).or_default().push(lowest);
    }
}
