//! Properties: parsing never panics, display round-trips, evaluation is total, repeatable and
//! bounded.

use quickcheck::{Arbitrary, Gen, QuickCheck, TestResult};

use super::{Memory, parsed};
use crate::predicate::{
    Atom, Checkout, Expression, Params, Predicate, PredicateOutcome, ReadFailure, evaluate,
    evaluate_all,
};

/// Fragments of the language, and of near misses.
const PIECES: [&str; 58] = [
    "path:",
    "hash:",
    "text:",
    "dep:",
    "cargo:",
    "npm:",
    "pypi:",
    "go:",
    "NOT",
    "AND",
    "OR",
    "not",
    " ",
    "  ",
    "(",
    ")",
    "\"",
    "\\",
    "/",
    "..",
    ".",
    "*",
    "**",
    "?",
    "#",
    "=",
    "~",
    "~=",
    ">=",
    "<",
    "^",
    ",",
    "in",
    "1",
    "10-24",
    "1.40",
    "v0.20",
    "-rc.1",
    "blake3:",
    "9f86d081884c7d65",
    "src/lib.rs",
    "Cargo.toml",
    "package.json",
    "go.mod",
    "tokio",
    "@types/node",
    "golang.org/x/net",
    ".git",
    "fn\\s+",
    "(?i)",
    "{9}",
    "[a",
    "]",
    "|",
    "ü",
    "\u{200d}",
    "\0",
    "+",
];

/// A text made of such fragments.
#[derive(Clone, Debug)]
struct Near(String);

impl Arbitrary for Near {
    fn arbitrary(g: &mut Gen) -> Self {
        let pieces = usize::arbitrary(g) % 14;
        Near((0..pieces).map(|_| *g.choose(&PIECES).expect("pieces")).collect())
    }
}

const ATOMS: [&str; 17] = [
    "path:a",
    "path:src/*.rs",
    "path:\"a b/(c)~#=.md\"",
    "path:gone",
    "path:**",
    "hash:a=blake3:9f86d081884c7d65",
    "hash:src/a.rs#2-3=blake3:9f86d081884c7d65",
    "text:a~\"x\"",
    "text:**~\"fn \\w+\\(\"",
    "text:**/*.rs~\"(a|b)*c\"",
    "text:link~\"say \\\"no\\\"\"",
    "dep:cargo:tokio>=1.40,<2",
    "dep:cargo:x in **/Cargo.toml",
    "dep:npm:react^18",
    "dep:pypi:numpy>=2.0rc1",
    "dep:go:git.sr.ht/~user/x~1.2",
    "dep:go:x>=0.0.0-2023-a in m/go.mod",
];

impl Arbitrary for Predicate {
    fn arbitrary(g: &mut Gen) -> Self {
        Predicate { root: expression(g, 3) }
    }
}

fn expression(g: &mut Gen, levels: usize) -> Expression {
    let parts =
        |g: &mut Gen| (0..2 + usize::arbitrary(g) % 2).map(|_| expression(g, levels - 1)).collect();
    match u8::arbitrary(g) % 4 {
        1 if levels > 0 => Expression::Not(Box::new(expression(g, levels - 1))),
        2 if levels > 0 => Expression::All(parts(g)),
        3 if levels > 0 => Expression::Any(parts(g)),
        _ => parsed(g.choose(&ATOMS).expect("atoms")).root,
    }
}

fn atoms(expression: &Expression) -> Vec<&Atom> {
    match expression {
        Expression::Atom(atom) => vec![atom],
        Expression::Not(inner) => atoms(inner),
        Expression::All(parts) | Expression::Any(parts) => parts.iter().flat_map(atoms).collect(),
    }
}

/// A checkout of random files, some of which cannot be read.
#[derive(Clone, Debug)]
struct Drawn(Vec<(usize, Result<String, u8>)>);

const PATHS: [&str; 9] = [
    "a",
    "a b/(c)~#=.md",
    "src/a.rs",
    "src/b.rs",
    "link",
    "Cargo.toml",
    "m/go.mod",
    "package.json",
    "x/Cargo.toml",
];

const CONTENTS: [&str; 8] = [
    "",
    "x\nfn f(\nabc\n",
    "[dependencies]\ntokio = \"1.41\"\nx.workspace = true\n",
    "[workspace.dependencies]\nx = \"1\"\n",
    "{\"dependencies\": {\"react\": \"^18.2\"}}",
    "module m\nrequire x v0.1.0\n",
    "say \"no\"",
    "abababababababababababab",
];

impl Arbitrary for Drawn {
    fn arbitrary(g: &mut Gen) -> Self {
        let files = PATHS
            .iter()
            .enumerate()
            .filter(|_| bool::arbitrary(g))
            .map(|(at, _)| at)
            .collect::<Vec<_>>();
        let content = |g: &mut Gen| match u8::arbitrary(g) % 6 {
            kind @ 0..2 => Err(kind),
            2 => Ok(String::arbitrary(g)),
            _ => Ok((*g.choose(&CONTENTS).expect("contents")).to_owned()),
        };
        Drawn(files.into_iter().map(|at| (at, content(g))).collect())
    }
}

impl Drawn {
    fn checkout(&self) -> Memory {
        let mut memory = Memory::default();
        for (at, content) in &self.0 {
            let content = content.clone().map(String::into_bytes);
            let content = content.map_err(|kind| {
                if kind == 0 { ReadFailure::Missing } else { ReadFailure::NotAFile }
            });
            memory.put(PATHS[*at], content);
        }
        memory
    }
}

#[test]
fn parsing_never_panics_and_the_display_form_round_trips() {
    fn law(text: &str) -> bool {
        match Predicate::parse(text) {
            Ok(predicate) => {
                let shown = predicate.to_string();
                Predicate::parse(&shown)
                    .is_ok_and(|again| again == predicate && again.to_string() == shown)
            }
            Err(error) => {
                error.at <= text.len() && !error.expected.is_empty() && !error.example.is_empty()
            }
        }
    }
    QuickCheck::new().tests(2_000).quickcheck((|text: String| law(&text)) as fn(String) -> bool);
    QuickCheck::new().tests(20_000).quickcheck((|near: Near| law(&near.0)) as fn(Near) -> bool);
}

#[test]
fn every_predicate_parses_back_from_its_display_form() {
    fn law(predicate: &Predicate) -> TestResult {
        let shown = predicate.to_string();
        if shown.len() > crate::predicate::TEXT_BYTES_MAX {
            return TestResult::discard();
        }
        TestResult::from_bool(Predicate::parse(&shown).as_ref() == Ok(predicate))
    }
    QuickCheck::new()
        .tests(2_000)
        .quickcheck((|of: Predicate| law(&of)) as fn(Predicate) -> TestResult);
}

#[test]
fn evaluation_is_total_and_repeatable_alone_and_in_a_batch() {
    fn law(predicates: &[Predicate], drawn: &Drawn) -> bool {
        let params = Params::default();
        let checkout = drawn.checkout();
        let batch = evaluate_all(predicates, &checkout, &params);
        let alone: Vec<PredicateOutcome> =
            predicates.iter().map(|of| evaluate(of, &drawn.checkout(), &params)).collect();
        batch == alone && batch == evaluate_all(predicates, &checkout, &params)
    }
    QuickCheck::new().tests(500).quickcheck(
        (|of: Vec<Predicate>, drawn: Drawn| law(&of, &drawn)) as fn(Vec<Predicate>, Drawn) -> bool,
    );
}

#[test]
fn findings_name_atoms_of_the_predicate() {
    fn law(predicate: &Predicate, drawn: &Drawn) -> bool {
        let names: Vec<String> = atoms(&predicate.root).iter().map(ToString::to_string).collect();
        match evaluate(predicate, &drawn.checkout(), &Params::default()) {
            PredicateOutcome::Holds => true,
            PredicateOutcome::Broken { because } | PredicateOutcome::Unknown { because } => {
                !because.is_empty() && because.iter().all(|finding| names.contains(&finding.atom))
            }
        }
    }
    QuickCheck::new().tests(2_000).quickcheck(
        (|of: Predicate, drawn: Drawn| law(&of, &drawn)) as fn(Predicate, Drawn) -> bool,
    );
}

#[test]
fn no_batch_reads_a_file_twice_or_more_bytes_than_allowed() {
    fn law(predicates: &[Predicate], drawn: &Drawn, read_bytes_max: u8) -> bool {
        let params = Params { read_bytes_max: usize::from(read_bytes_max), ..Params::default() };
        let checkout = drawn.checkout();
        let _ = evaluate_all(predicates, &checkout, &params);
        let mut reads = checkout.reads.borrow().clone();
        let count = reads.len();
        reads.sort();
        reads.dedup();
        reads.len() == count && count <= checkout.tracked().len()
    }
    QuickCheck::new().tests(500).quickcheck(
        (|of: Vec<Predicate>, drawn: Drawn, bytes: u8| law(&of, &drawn, bytes))
            as fn(Vec<Predicate>, Drawn, u8) -> bool,
    );
}

#[test]
fn a_negation_inverts_the_result() {
    fn law(predicate: &Predicate, drawn: &Drawn) -> bool {
        let negated = Predicate { root: Expression::Not(Box::new(predicate.root.clone())) };
        let params = Params::default();
        let given = evaluate(predicate, &drawn.checkout(), &params);
        let turned = evaluate(&negated, &drawn.checkout(), &params);
        match given {
            PredicateOutcome::Holds => matches!(turned, PredicateOutcome::Broken { .. }),
            PredicateOutcome::Broken { .. } => turned == PredicateOutcome::Holds,
            PredicateOutcome::Unknown { .. } => turned == given,
        }
    }
    QuickCheck::new().tests(2_000).quickcheck(
        (|of: Predicate, drawn: Drawn| law(&of, &drawn)) as fn(Predicate, Drawn) -> bool,
    );
}
