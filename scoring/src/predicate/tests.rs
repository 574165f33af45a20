//! Tests of predicates, against an in-memory checkout that panics on any unlisted path.

mod confinement;
mod docs_examples;
mod evaluation;
mod manifests;
mod parsing;
mod properties;
mod versions;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{AtomReason, Checkout, Params, Predicate, PredicateOutcome, ReadFailure, evaluate};

/// An in-memory checkout that counts reads.
#[derive(Default)]
struct Memory {
    tracked: Vec<String>,
    contents: BTreeMap<String, Result<Vec<u8>, ReadFailure>>,
    reads: RefCell<Vec<String>>,
}

impl Memory {
    fn of(files: &[(&str, &str)]) -> Self {
        let mut memory = Memory::default();
        for (path, text) in files {
            memory.put(path, Ok(text.as_bytes().to_vec()));
        }
        memory
    }

    fn put(&mut self, path: &str, content: Result<Vec<u8>, ReadFailure>) {
        self.contents.insert(path.to_owned(), content);
        self.tracked = self.contents.keys().cloned().collect();
    }

    fn reads(&self) -> usize {
        self.reads.borrow().len()
    }

    #[track_caller]
    fn assert_tracked(&self, path: &str) {
        assert!(self.tracked.iter().any(|of| of == path), "asked for {path}");
    }
}

impl Checkout for Memory {
    fn tracked(&self) -> &[String] {
        &self.tracked
    }

    fn exists(&self, path: &str) -> Result<bool, ReadFailure> {
        self.assert_tracked(path);
        match self.contents[path] {
            Err(ReadFailure::Missing) => Ok(false),
            Err(ReadFailure::Failed) => Err(ReadFailure::Failed),
            _ => Ok(true),
        }
    }

    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, ReadFailure> {
        self.assert_tracked(path);
        self.reads.borrow_mut().push(path.to_owned());
        match &self.contents[path] {
            Ok(content) if content.len() > bytes_max => Err(ReadFailure::TooLarge),
            Ok(content) => Ok(Cow::Borrowed(content)),
            Err(unreadable) => Err(*unreadable),
        }
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        digest(bytes)
    }
}

/// Stands in for the digest, which the checkout provides: FNV-1a, four times.
fn digest(bytes: &[u8]) -> [u8; 32] {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut digest = [0; 32];
    for part in digest.chunks_mut(8) {
        for byte in bytes.iter().chain(b"#") {
            state = (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        part.copy_from_slice(&state.to_be_bytes());
    }
    digest
}

#[track_caller]
fn parsed(text: &str) -> Predicate {
    Predicate::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// `holds`, `broken` or `unknown`, with the reasons in order.
fn judge(text: &str, checkout: &Memory) -> (&'static str, Vec<AtomReason>) {
    match evaluate(&parsed(text), checkout, &Params::default()) {
        PredicateOutcome::Holds => ("holds", Vec::new()),
        PredicateOutcome::Broken { because } => {
            ("broken", because.iter().map(|of| of.reason).collect())
        }
        PredicateOutcome::Unknown { because } => {
            ("unknown", because.iter().map(|of| of.reason).collect())
        }
    }
}
