//! Cache and work limits for one batch of predicates: each file is read once.
//!
//! Separate from the evaluation, which asks as if files were free. The cached contents live only as
//! long as the batch is evaluated.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::glob::Glob;
use super::manifest::{Ecosystem, PackageManifest};
use super::{AtomReason, Checkout, ReadFailure};

/// Limits on the work that predicates may cause.
///
/// A step is one byte examined: of a path for wildcards, of a text for a pattern or a digest. A
/// byte that is matched with a pattern counts once for each byte of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Maximum size in bytes of a file that is read.
    pub file_bytes_max: usize,
    /// Maximum number of files that one atom reads.
    pub files_per_atom_max: usize,
    /// Maximum number of bytes that one batch reads.
    pub read_bytes_max: usize,
    /// Maximum number of steps of one predicate.
    pub steps_per_predicate_max: u64,
    /// Maximum number of steps of one batch.
    pub steps_max: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            file_bytes_max: 1 << 20,
            files_per_atom_max: 256,
            read_bytes_max: 32 << 20,
            // The slowest possible pattern takes a quarter of a second for this many steps.
            steps_per_predicate_max: 16 << 20,
            steps_max: 128 << 20,
        }
    }
}

/// Tracked files that a path matches, in order.
#[derive(Clone, Debug)]
pub(super) struct Files<'c> {
    pub(super) paths: Rc<[&'c str]>,
    /// Whether more files match than the limit allows.
    pub(super) has_more: bool,
}

/// Bytes of a file, or the reason why it cannot be read.
type Content<'c> = Result<Rc<Cow<'c, [u8]>>, AtomReason>;

pub(super) struct ReadCache<'c> {
    pub(super) checkout: &'c dyn Checkout,
    params: &'c Params,
    contents: BTreeMap<&'c str, Content<'c>>,
    manifests: BTreeMap<(Ecosystem, &'c str), Result<Rc<PackageManifest>, AtomReason>>,
    files: BTreeMap<String, Files<'c>>,
    read_bytes: usize,
    steps: u64,
    steps_of_predicate: u64,
}

impl<'c> ReadCache<'c> {
    pub(super) fn new(checkout: &'c dyn Checkout, params: &'c Params) -> Self {
        ReadCache {
            checkout,
            params,
            contents: BTreeMap::new(),
            manifests: BTreeMap::new(),
            files: BTreeMap::new(),
            read_bytes: 0,
            steps: 0,
            steps_of_predicate: 0,
        }
    }

    /// Resets the step count of a single predicate.
    pub(super) fn begin_predicate(&mut self) {
        self.steps_of_predicate = 0;
    }

    /// Consumes `steps` steps, or fails if the limit would be exceeded.
    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), AtomReason> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let of_predicate = self.steps_of_predicate.saturating_add(steps);
        let of_all = self.steps.saturating_add(steps);
        if of_predicate > self.params.steps_per_predicate_max || of_all > self.params.steps_max {
            return Err(AtomReason::TooMuchWork);
        }
        self.steps_of_predicate = of_predicate;
        self.steps = of_all;
        Ok(())
    }

    /// The tracked path equal to this one; the returned string belongs to the checkout, not the
    /// predicate.
    pub(super) fn tracked(&self, path: &str) -> Option<&'c str> {
        let tracked = self.checkout.tracked();
        let at = tracked.binary_search_by(|probe| probe.as_str().cmp(path)).ok()?;
        Some(tracked[at].as_str())
    }

    /// Tracked files that the path matches.
    pub(super) fn files(&mut self, glob: &Glob) -> Result<Files<'c>, AtomReason> {
        if glob.is_plain() {
            let paths = self.tracked(glob.as_str()).into_iter().collect();
            return Ok(Files { paths, has_more: false });
        }
        if let Some(known) = self.files.get(glob.as_str()) {
            return Ok(known.clone());
        }
        let tracked = self.checkout.tracked();
        let first = tracked.partition_point(|path| path.as_str() < glob.prefix());
        let mut found = Vec::new();
        let mut has_more = false;
        for path in tracked[first..].iter().take_while(|path| path.starts_with(glob.prefix())) {
            self.take_steps(path.len())?;
            if glob.matches(path) {
                has_more = found.len() == self.params.files_per_atom_max;
                if has_more {
                    break;
                }
                found.push(path.as_str());
            }
        }
        let files = Files { paths: found.into(), has_more };
        self.files.insert(glob.as_str().to_owned(), files.clone());
        Ok(files)
    }

    /// Bytes of a tracked file, read at most once.
    pub(super) fn content(&mut self, path: &'c str) -> Content<'c> {
        if let Some(known) = self.contents.get(path) {
            return known.clone();
        }
        let left = self.params.read_bytes_max - self.read_bytes;
        let bytes_max = self.params.file_bytes_max.min(left);
        let content = match self.checkout.read(path, bytes_max) {
            Ok(content) if content.len() <= bytes_max => {
                self.read_bytes += content.len();
                Ok(Rc::new(content))
            }
            Ok(_) | Err(ReadFailure::TooLarge) if bytes_max < self.params.file_bytes_max => {
                Err(AtomReason::TooMuchWork)
            }
            Ok(_) | Err(ReadFailure::TooLarge) => Err(AtomReason::TooLarge),
            Err(ReadFailure::Missing) => Err(AtomReason::Missing),
            Err(ReadFailure::NotAFile) => Err(AtomReason::NotAFile),
            Err(ReadFailure::Failed) => Err(AtomReason::Unreadable),
        };
        self.contents.insert(path, content.clone());
        content
    }

    /// Declarations of a tracked manifest, parsed at most once.
    pub(super) fn manifest(
        &mut self,
        ecosystem: Ecosystem,
        path: &'c str,
    ) -> Result<Rc<PackageManifest>, AtomReason> {
        if let Some(known) = self.manifests.get(&(ecosystem, path)) {
            return known.clone();
        }
        let manifest = self.content(path).and_then(|content| {
            self.take_steps(content.len())?;
            PackageManifest::read(ecosystem, &content).map(Rc::new).ok_or(AtomReason::NotUnderstood)
        });
        if manifest != Err(AtomReason::TooMuchWork) {
            self.manifests.insert((ecosystem, path), manifest.clone());
        }
        manifest
    }
}
