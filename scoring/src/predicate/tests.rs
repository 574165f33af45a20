//! Tests of predicates, against a checkout in memory that refuses to be asked for anything else.

mod confinement;
mod evaluation;
mod laws;
mod manifests;
mod page;
mod parsing;
mod versions;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Checkout, Outcome, Params, Predicate, Reason, Unreadable, evaluate};

/// A checkout in memory, which counts what it is asked for.
#[derive(Default)]
struct Memory {
    tracked: Vec<String>,
    contents: BTreeMap<String, Result<Vec<u8>, Unreadable>>,
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

    fn put(&mut self, path: &str, content: Result<Vec<u8>, Unreadable>) {
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

    fn exists(&self, path: &str) -> Result<bool, Unreadable> {
        self.assert_tracked(path);
        match self.contents[path] {
            Err(Unreadable::Missing) => Ok(false),
            Err(Unreadable::Failed) => Err(Unreadable::Failed),
            _ => Ok(true),
        }
    }

    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, Unreadable> {
        self.assert_tracked(path);
        self.reads.borrow_mut().push(path.to_owned());
        match &self.contents[path] {
            Ok(content) if content.len() > bytes_max => Err(Unreadable::TooLarge),
            Ok(content) => Ok(Cow::Borrowed(content)),
            Err(unreadable) => Err(*unreadable),
        }
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        digest(bytes)
    }
}

/// Stands in for the digest, which is the checkout's affair: FNV-1a, four times over.
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
    Predicate::parse(text).unwrap_or_else(|error| panic!("{text}: cannot {error}"))
}

/// `holds`, `broken` or `unknown`, with the reasons in order.
fn judge(text: &str, checkout: &Memory) -> (&'static str, Vec<Reason>) {
    match evaluate(&parsed(text), checkout, &Params::default()) {
        Outcome::Holds => ("holds", Vec::new()),
        Outcome::Broken { because } => ("broken", because.iter().map(|of| of.reason).collect()),
        Outcome::Unknown { because } => ("unknown", because.iter().map(|of| of.reason).collect()),
    }
}
