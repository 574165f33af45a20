//! Every example on the documentation page is valid, and every refused example is invalid.

use super::parsed;
use crate::predicate::Predicate;

const PAGE: &str = include_str!("../../../../docs/reference/predicates.md");

/// Lines of all fenced blocks of one kind.
fn fenced(kind: &str) -> Vec<&'static str> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in PAGE.lines() {
        if let Some(tag) = line.strip_prefix("```") {
            inside = tag == kind;
        } else if inside && !line.trim().is_empty() {
            found.push(line);
        }
    }
    found
}

#[test]
fn every_documented_example_is_a_predicate() {
    let examples = fenced("predicate");
    assert!(examples.len() >= 20, "{}", examples.len());
    for example in examples {
        parsed(example);
    }
}

#[test]
fn every_atom_in_the_documentation_prose_is_a_predicate() {
    let prose = PAGE.split("```").step_by(2).flat_map(|text| text.split('`').skip(1).step_by(2));
    let begins = |code: &&str| {
        ["path:", "hash:", "text:", "dep:", "NOT "].iter().any(|of| code.starts_with(of))
    };
    let atoms: Vec<&str> = prose.filter(begins).filter(|code| !code.ends_with(':')).collect();
    assert!(atoms.len() >= 4, "{}", atoms.len());
    for atom in atoms {
        parsed(atom);
    }
}

#[test]
fn examples_documented_as_refused_are_refused() {
    let examples = fenced("refused");
    assert!(examples.len() >= 8, "{}", examples.len());
    for example in examples {
        assert!(Predicate::parse(example).is_err(), "{example}");
    }
}
