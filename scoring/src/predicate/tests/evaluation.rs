//! Tests of the evaluation: truth tables, each atom, each reason, and the work limits.

use super::{Memory, digest, judge, parsed};
use crate::predicate::AtomReason::{
    Holds, Missing, NotAFile, NotTracked, OtherDigest, OtherText, TooFewLines, TooLarge,
    TooManyFiles, TooMuchWork,
};
use crate::predicate::evaluate::COMPILING_STEPS;
use crate::predicate::{
    AnchorState, AtomReason, AtomResult, BrokenPredicate, Checkout, Params, Predicate,
    PredicateOutcome, ReadFailure, check, evaluate, evaluate_all,
};

/// Steps that compiling a pattern costs.
const COMPILING: u64 = COMPILING_STEPS as u64;

const H: &str = "path:there";
const B: &str = "path:gone";
const U: &str = "text:link~\"x\"";

fn three() -> Memory {
    let mut checkout = Memory::of(&[("there", "")]);
    checkout.put("link", Err(ReadFailure::NotAFile));
    checkout
}

#[test]
fn unknown_stays_unknown_unless_the_other_operand_decides() {
    let truth = |text: &str| judge(text, &three()).0;
    for (atom, of, negated) in
        [(H, "holds", "broken"), (B, "broken", "holds"), (U, "unknown", "unknown")]
    {
        assert_eq!(truth(atom), of);
        assert_eq!(truth(&format!("NOT {atom}")), negated);
        assert_eq!(truth(&format!("NOT NOT {atom}")), of);
    }
    for (one, two, and, or) in [
        (H, H, "holds", "holds"),
        (H, B, "broken", "holds"),
        (H, U, "unknown", "holds"),
        (B, B, "broken", "broken"),
        (B, U, "broken", "unknown"),
        (U, U, "unknown", "unknown"),
    ] {
        for (one, two) in [(one, two), (two, one)] {
            assert_eq!(truth(&format!("{one} AND {two}")), and, "{one} AND {two}");
            assert_eq!(truth(&format!("{one} OR {two}")), or, "{one} OR {two}");
            let dual = format!("NOT (NOT {one} OR NOT {two})");
            assert_eq!(truth(&dual), and, "{dual}");
        }
    }
}

#[test]
fn the_atoms_that_decided_are_named() {
    for (text, expect) in [
        ("path:gone", "path:gone: git tracks no such file"),
        ("path:there AND path:gone", "path:gone: git tracks no such file"),
        ("NOT path:there", "path:there: holds"),
        (
            "path:gone OR path:lost",
            "path:gone: git tracks no such file; path:lost: git tracks no such file",
        ),
        ("NOT (path:there OR path:gone)", "path:there: holds"),
        (
            "path:there AND text:link~\"x\"",
            "text:link~\"x\": it is a link, a submodule or no plain file",
        ),
        ("path:gone AND text:link~\"x\"", "path:gone: git tracks no such file"),
    ] {
        let outcome = evaluate(&parsed(text), &three(), &Params::default());
        let because = match outcome {
            PredicateOutcome::Holds => Vec::new(),
            PredicateOutcome::Broken { because } | PredicateOutcome::Unknown { because } => because,
        };
        let given: Vec<String> = because.iter().map(AtomResult::to_string).collect();
        assert_eq!(given.join("; "), expect, "{text}");
    }
}

#[test]
fn a_path_holds_as_long_as_the_file_exists() {
    let mut checkout = Memory::of(&[("src/a.rs", ""), ("src/deep/b.rs", "")]);
    checkout.put("src/deleted.rs", Err(ReadFailure::Missing));
    checkout.put("src/link.rs", Err(ReadFailure::NotAFile));
    checkout.put("src/broken.rs", Err(ReadFailure::Failed));
    for (text, truth, reasons) in [
        ("path:src/a.rs", "holds", vec![]),
        ("path:src/*.rs", "holds", vec![]),
        ("path:src/**", "holds", vec![]),
        ("path:src/link.rs", "holds", vec![]),
        ("path:src/deleted.rs", "broken", vec![Missing]),
        ("path:src/d*.rs", "broken", vec![Missing]),
        ("path:src/broken.rs", "unknown", vec![AtomReason::Unreadable]),
        ("path:src", "broken", vec![NotTracked]),
        ("path:src/*.py", "broken", vec![NotTracked]),
    ] {
        assert_eq!(judge(text, &checkout), (truth, reasons), "{text}");
    }
    assert_eq!(checkout.reads(), 0, "checking existence reads no file");
}

#[test]
fn a_text_is_matched_by_lines_and_bytes() {
    let unix = "use a;\n  pub fn verify(x: u8) {}\n// Ende: schön\n";
    let mut checkout = Memory::of(&[("a.rs", unix), ("b.rs", &unix.replace('\n', "\r\n"))]);
    checkout.put("c.bin", Ok(vec![0xff, b'K', 0, b'Y', 0xfe]));
    for (pattern, expect) in [
        ("verify", true),
        (r"verify\(", true),
        (r"fn\s+verify", true),
        (r"^\s*pub fn", true),
        (r"^use a;$", true),
        (r"\{\}$", true),
        ("^verify", false),
        ("VERIFY", false),
        ("(?i)VERIFY", true),
        ("schön$", true),
        ("sch.*n", true),
        ("a;.*pub", false),
        ("(?s)a;.*pub", true),
        ("absent|verify", true),
        (r"\bfn\b", true),
        (r"\bver\b", false),
    ] {
        for file in ["a.rs", "b.rs"] {
            let text = format!("text:{file}~\"{pattern}\"");
            let expect = if expect { ("holds", vec![]) } else { ("broken", vec![OtherText]) };
            assert_eq!(judge(&text, &checkout), expect, "{text}");
        }
    }
    assert_eq!(judge(r#"text:c.bin~"K.Y""#, &checkout).0, "holds");
    assert_eq!(judge(r#"text:*.rs~"verify""#, &checkout).0, "holds");
    assert_eq!(judge(r#"text:*.py~"verify""#, &checkout), ("broken", vec![NotTracked]));
}

#[test]
fn a_digest_ignores_line_endings() {
    let five = "one\ntwo\nthree\nfour\nfive";
    let of = |lines| Predicate::of_content("a.rs", lines, five.as_bytes(), digest);
    let whole = of(None).expect("a digest of the file");
    let middle = of(Some((2, 3))).expect("a digest of two lines");
    let last = of(Some((5, 5))).expect("a digest of the last line");
    let digits: String = digest(b"two\nthree\n").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(middle.to_string(), format!("hash:a.rs#2-3=blake3:{digits}"));
    for lines in [(0, 1), (3, 2), (5, 6), (6, 6)] {
        assert_eq!(of(Some(lines)), None, "{lines:?}");
    }
    let check = |predicate: &Predicate, text: &str, expect: Option<AtomReason>| {
        let outcome = evaluate(predicate, &Memory::of(&[("a.rs", text)]), &Params::default());
        let reason = match outcome {
            PredicateOutcome::Holds => None,
            PredicateOutcome::Broken { because } => Some(because[0].reason),
            PredicateOutcome::Unknown { .. } => panic!("{predicate} is known"),
        };
        assert_eq!(reason, expect, "{predicate} of {text:?}");
    };
    check(&whole, five, None);
    check(&whole, &format!("{five}\n"), Some(OtherDigest));
    for text in [
        five,
        &format!("{five}\n"),
        &five.replace('\n', "\r\n"),
        "0\ntwo\nthree\n",
        "0\ntwo\nthree",
    ] {
        check(&middle, text, None);
    }
    check(&middle, "one\nzwei\nthree\nfour\nfive", Some(OtherDigest));
    check(&middle, "zero\none\ntwo\nthree\nfour\nfive", Some(OtherDigest));
    check(&middle, "one\ntwo", Some(TooFewLines));
    check(&middle, "", Some(TooFewLines));
    check(&last, &format!("{five}\n"), None);
    check(&last, &format!("{five}\r\n"), None);
    let short = parsed(&format!("hash:a.rs#2-3=blake3:{}", &digits[..16]));
    check(&short, five, None);
}

#[test]
fn unreadable_files_give_unknown() {
    for (unreadable, truth, reason) in [
        (ReadFailure::Missing, "broken", Missing),
        (ReadFailure::TooLarge, "unknown", TooLarge),
        (ReadFailure::NotAFile, "unknown", NotAFile),
        (ReadFailure::Failed, "unknown", AtomReason::Unreadable),
    ] {
        let mut checkout = Memory::of(&[("b/Cargo.toml", "")]);
        checkout.put("Cargo.toml", Err(unreadable));
        for text in [
            "text:Cargo.toml~\"x\"",
            "hash:Cargo.toml=blake3:9f86d081884c7d65",
            "dep:cargo:x in Cargo.toml",
        ] {
            assert_eq!(
                judge(text, &checkout),
                (truth, vec![reason]),
                "{text} where {unreadable:?}"
            );
        }
        // One file that holds is enough; one that cannot be read leaves the result unknown.
        checkout.put("z.toml", Ok(b"x".to_vec()));
        assert_eq!(judge("text:*.toml~\"x\"", &checkout).0, "holds");
        let open = if truth == "broken" { OtherText } else { reason };
        assert_eq!(judge("text:*.toml~\"y\"", &checkout), (truth, vec![open]));
    }
}

#[test]
fn results_never_quote_file_contents() {
    let secret = "S3CR3T";
    let mut checkout = Memory::of(&[
        ("a.rs", &format!("key = {secret}")),
        ("Cargo.toml", &format!("[dependencies]\nx = \"1.0.0-{secret}\"\ny = \"{secret}\"\n")),
        ("package.json", &format!("{{ {secret}")),
    ]);
    checkout.put("big.rs", Ok(format!("{secret}\n").repeat(200_000).into_bytes()));
    let answers: Vec<String> = [
        "NOT text:a.rs~\"key = \\w+\"",
        "text:a.rs~\"other\"",
        "hash:a.rs=blake3:9f86d081884c7d65",
        "hash:a.rs#9=blake3:9f86d081884c7d65",
        "text:big.rs~\"x\"",
        "dep:cargo:x>=2",
        "dep:cargo:y>=2",
        "dep:cargo:z",
        "dep:npm:z",
    ]
    .iter()
    .map(|text| format!("{:?}", evaluate(&parsed(text), &checkout, &Params::default())))
    .collect();
    for answer in answers {
        assert!(answer.contains("because"), "{answer}");
        assert!(!answer.contains(secret), "{answer}");
    }
}

/// Reason of the only finding.
fn reason(text: &str, checkout: &Memory, params: &Params) -> AtomReason {
    match evaluate(&parsed(text), checkout, params) {
        PredicateOutcome::Holds => Holds,
        PredicateOutcome::Broken { because } | PredicateOutcome::Unknown { because } => {
            because[0].reason
        }
    }
}

#[test]
fn work_is_bounded_by_files_bytes_and_steps() {
    let names: Vec<String> = (0..40).map(|at| format!("src/f{at:02}.rs")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "0123456789")).collect();
    let checkout = Memory::of(&files);
    let full = Params::default();
    let of = |text: &str, params: &Params| reason(text, &checkout, params);

    let small = Params { file_bytes_max: 9, ..full };
    assert_eq!(of("text:src/f00.rs~\"x\"", &small), TooLarge);
    assert_eq!(of("text:src/f00.rs~\"x\"", &Params { file_bytes_max: 10, ..full }), OtherText);

    let few = Params { files_per_atom_max: 39, ..full };
    assert_eq!(of("text:src/*.rs~\"x\"", &few), TooManyFiles);
    assert_eq!(of("text:src/*.rs~\"5\"", &few), Holds);
    assert_eq!(of("text:src/*.rs~\"x\"", &Params { files_per_atom_max: 40, ..full }), OtherText);

    let little = Params { read_bytes_max: 399, ..full };
    assert_eq!(of("text:src/*.rs~\"x\"", &little), TooMuchWork);
    assert_eq!(of("text:src/*.rs~\"x\"", &Params { read_bytes_max: 400, ..full }), OtherText);

    // 40 paths of 10 bytes, then 40 texts of 10 bytes; a pattern of 3 bytes counts three times.
    for (text, steps) in [
        ("text:src/*.rs~\"x\"", COMPILING + 800),
        ("text:src/*.rs~\"x+z\"", COMPILING + 1600),
        ("path:src/*.py", 400),
    ] {
        for (given, expect) in [(steps, false), (steps - 1, true)] {
            let each = Params { steps_per_predicate_max: given, ..full };
            let all = Params { steps_max: given, ..full };
            for params in [each, all] {
                assert_eq!(of(text, &params) == TooMuchWork, expect, "{text} with {given}");
            }
        }
    }
}

#[test]
fn an_expensive_predicate_does_not_affect_the_others() {
    let checkout = Memory::of(&[("a", &"0".repeat(100)), ("b", "1")]);
    let params = Params { steps_per_predicate_max: COMPILING + 100, ..Params::default() };
    // The first uses all of its steps, the third needs more than it has.
    let texts = ["text:a~\"1\"", "text:b~\"1\"", "text:a~\"1+\"", "text:b~\"1\"", "path:a"];
    let outcomes = evaluate_all(&texts.map(parsed), &checkout, &params);
    let reasons = outcomes.into_iter().map(|outcome| match outcome {
        PredicateOutcome::Holds => Holds,
        PredicateOutcome::Broken { because } | PredicateOutcome::Unknown { because } => {
            because[0].reason
        }
    });
    assert_eq!(reasons.collect::<Vec<_>>(), [OtherText, Holds, TooMuchWork, Holds, Holds]);
}

/// A hundred typical predicates over twenty files.
fn typical() -> (Memory, Vec<Predicate>) {
    let body = "use std::fmt;\n\npub fn item(x: u8) -> u8 {\n    x + 1\n}\n".repeat(40);
    let names: Vec<String> = (0..20).map(|at| format!("src/part{at}/mod.rs")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), body.as_str())).collect();
    files.push(("Cargo.toml", "[dependencies]\ntokio = \"1.40\"\nserde = \"1\"\n"));
    files.push(("node/Cargo.toml", "[dependencies]\naxum = \"0.8\"\n"));
    files.push(("package.json", "{\"dependencies\": {\"react\": \"^18.2\"}}"));
    let checkout = Memory::of(&files);
    let span = Predicate::of_content("src/part0/mod.rs", Some((3, 5)), body.as_bytes(), digest);
    let digits =
        span.expect("three lines").to_string().split_off("hash:src/part0/mod.rs#3-5=blake3:".len());
    let predicates = (0..100).map(|at| {
        let file = &names[at % 20];
        parsed(&match at % 5 {
            0 => format!("path:{file} AND NOT path:src/old/mod.rs"),
            1 => format!("text:{file}~\"pub fn item\\(\""),
            2 => format!("hash:{file}#3-5=blake3:{digits}"),
            3 => "dep:cargo:tokio>=1.40,<2 AND NOT dep:cargo:openssl".to_owned(),
            _ => "text:src/**/*.rs~\"^pub fn item\" OR dep:npm:react^18".to_owned(),
        })
    });
    (checkout, predicates.collect())
}

#[test]
fn a_hundred_predicates_read_each_file_once() {
    let (checkout, predicates) = typical();
    let outcomes = evaluate_all(&predicates, &checkout, &Params::default());
    assert!(outcomes.iter().all(|of| *of == PredicateOutcome::Holds), "{outcomes:?}");
    let mut reads = checkout.reads.borrow().clone();
    assert!(reads.len() <= checkout.tracked().len(), "{} reads", reads.len());
    reads.sort();
    reads.dedup();
    assert_eq!(reads.len(), checkout.reads(), "each file once");
}

#[test]
fn an_entry_holds_if_all_predicates_hold_and_is_broken_if_one_is() {
    let check = |texts: &[&str]| {
        let predicates: Vec<Predicate> = texts.iter().map(|text| parsed(text)).collect();
        let checked = check(&evaluate_all(&predicates, &three(), &Params::default()));
        (
            checked.check,
            checked.flags.iter().map(|flag: &BrokenPredicate| flag.predicate).collect::<Vec<_>>(),
        )
    };
    assert_eq!(check(&[]), (AnchorState::Nothing, vec![]));
    assert_eq!(check(&[H, H]), (AnchorState::Holds, vec![]));
    assert_eq!(check(&[H, U, H, U]), (AnchorState::Unchecked, vec![1, 3]));
    assert_eq!(check(&[H, U, B, B]), (AnchorState::Broken, vec![2, 3]));
}

#[test]
fn patterns_are_compiled_at_evaluation_within_the_step_limit() {
    let checkout = Memory::of(&[("there", "a text")]);
    let read = |text: &str| Predicate::read(text).unwrap();
    // The pattern is invalid, which shows only if there is a file to search.
    let (nowhere, somewhere) = (read(r#"text:gone~"(x""#), read(r#"text:there~"(x""#));
    assert!(Predicate::parse(r#"text:gone~"(x""#).is_err());
    let reasons = |of: &Predicate| match evaluate(of, &checkout, &Params::default()) {
        PredicateOutcome::Broken { because } | PredicateOutcome::Unknown { because } => {
            because[0].reason
        }
        PredicateOutcome::Holds => Holds,
    };
    assert_eq!((reasons(&nowhere), reasons(&somewhere)), (NotTracked, AtomReason::NotUnderstood));
    let many: Vec<Predicate> = (0..600).map(|n| read(&format!(r#"text:there~"x{n}""#))).collect();
    let outcomes = evaluate_all(&many, &checkout, &Params::default());
    let compiled =
        outcomes.iter().filter(|of| matches!(of, PredicateOutcome::Broken { .. })).count();
    assert!((400..=512).contains(&compiled), "{compiled} were compiled");
}
