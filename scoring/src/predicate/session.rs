//! One look at a checkout: each file is read once, and no more work is done than allowed.
//!
//! Separate from the judging, which asks as if files were free. What was read is kept only as long
//! as the predicates of one batch are judged.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::glob::Glob;
use super::manifest::{Ecosystem, Manifest};
use super::{Checkout, Reason, Unreadable};

/// How much predicates may ask of a checkout.
///
/// A step is one byte that is looked at: of a path for wildcards, of a text for a pattern or a
/// digest. A byte that is matched with a pattern counts once for each byte of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The largest file that is read, in bytes.
    pub file_bytes_max: usize,
    /// The most files that one atom looks into.
    pub files_per_atom_max: usize,
    /// The most bytes that one batch reads.
    pub read_bytes_max: usize,
    /// The most steps that one predicate takes.
    pub steps_per_predicate_max: u64,
    /// The most steps that one batch takes.
    pub steps_max: u64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            file_bytes_max: 1 << 20,
            files_per_atom_max: 256,
            read_bytes_max: 32 << 20,
            // At worst, a pattern made to be slow takes a quarter of a second for these.
            steps_per_predicate_max: 16 << 20,
            steps_max: 128 << 20,
        }
    }
}

/// The tracked files that a path means, in order.
#[derive(Clone, Debug)]
pub(super) struct Files<'c> {
    pub(super) paths: Rc<[&'c str]>,
    /// Whether there are more, which are not looked into.
    pub(super) has_more: bool,
}

/// The bytes of a file, or why there are none.
type Content<'c> = Result<Rc<Cow<'c, [u8]>>, Reason>;

pub(super) struct Session<'c> {
    pub(super) checkout: &'c dyn Checkout,
    params: &'c Params,
    contents: BTreeMap<&'c str, Content<'c>>,
    manifests: BTreeMap<(Ecosystem, &'c str), Result<Rc<Manifest>, Reason>>,
    files: BTreeMap<String, Files<'c>>,
    read_bytes: usize,
    steps: u64,
    steps_of_predicate: u64,
}

impl<'c> Session<'c> {
    pub(super) fn new(checkout: &'c dyn Checkout, params: &'c Params) -> Self {
        Session {
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

    /// Lets the next predicate take its own share of steps.
    pub(super) fn begin_predicate(&mut self) {
        self.steps_of_predicate = 0;
    }

    /// Takes so many steps, if they are left.
    pub(super) fn take_steps(&mut self, steps: usize) -> Result<(), Reason> {
        let steps = u64::try_from(steps).unwrap_or(u64::MAX);
        let of_predicate = self.steps_of_predicate.saturating_add(steps);
        let of_all = self.steps.saturating_add(steps);
        if of_predicate > self.params.steps_per_predicate_max || of_all > self.params.steps_max {
            return Err(Reason::TooMuchWork);
        }
        self.steps_of_predicate = of_predicate;
        self.steps = of_all;
        Ok(())
    }

    /// The tracked path that is written like this one: the checkout's own, never the predicate's.
    pub(super) fn tracked(&self, path: &str) -> Option<&'c str> {
        let tracked = self.checkout.tracked();
        let at = tracked.binary_search_by(|probe| probe.as_str().cmp(path)).ok()?;
        Some(tracked[at].as_str())
    }

    /// The tracked files that a path means.
    pub(super) fn files(&mut self, glob: &Glob) -> Result<Files<'c>, Reason> {
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

    /// The bytes of a tracked file, read at most once.
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
            Ok(_) | Err(Unreadable::TooLarge) if bytes_max < self.params.file_bytes_max => {
                Err(Reason::TooMuchWork)
            }
            Ok(_) | Err(Unreadable::TooLarge) => Err(Reason::TooLarge),
            Err(Unreadable::Missing) => Err(Reason::Missing),
            Err(Unreadable::NotAFile) => Err(Reason::NotAFile),
            Err(Unreadable::Failed) => Err(Reason::Unreadable),
        };
        self.contents.insert(path, content.clone());
        content
    }

    /// What a tracked manifest declares, understood at most once.
    pub(super) fn manifest(
        &mut self,
        ecosystem: Ecosystem,
        path: &'c str,
    ) -> Result<Rc<Manifest>, Reason> {
        if let Some(known) = self.manifests.get(&(ecosystem, path)) {
            return known.clone();
        }
        let manifest = self.content(path).and_then(|content| {
            self.take_steps(content.len())?;
            Manifest::read(ecosystem, &content).map(Rc::new).ok_or(Reason::NotUnderstood)
        });
        if manifest != Err(Reason::TooMuchWork) {
            self.manifests.insert((ecosystem, path), manifest.clone());
        }
        manifest
    }
}
