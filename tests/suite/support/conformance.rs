//! The statements of the seeds, and the call that ties a test to one of them.
//!
//! `suite/conformance.rs` compares the calls in the sources with `docs/conformance.md`.

use std::collections::BTreeSet;
use std::sync::OnceLock;

/// All statements: id, seed and text, separated by tabs, below one heading.
const STATEMENTS: &str = include_str!("../../fixtures/statements.tsv");

/// One statement of a seed or of the design card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) id: &'static str,
    pub(crate) seed: &'static str,
    pub(crate) text: &'static str,
}

/// All statements, in the order of the list.
pub(crate) fn statements() -> Vec<Statement> {
    let parse = |line: &'static str| match line.split('\t').collect::<Vec<_>>()[..] {
        [id, seed, text] => Statement { id, seed, text },
        _ => panic!("a statement has three fields: {line}"),
    };
    STATEMENTS.lines().skip(1).map(parse).collect()
}

/// States that the test which calls this proves the statement with this id. The test must fail if
/// klnode no longer does as the statement says.
#[track_caller]
pub(crate) fn conforms(id: &str) {
    static IDS: OnceLock<BTreeSet<&str>> = OnceLock::new();
    let ids = IDS.get_or_init(|| statements().iter().map(|one| one.id).collect());
    assert!(ids.contains(id), "there is no statement {id}; see tests/fixtures/statements.tsv");
}
