//! The gate of `docs/conformance.md`: every statement of the seeds has a row, and every row that
//! claims `works` names a test that calls `conforms` with its id.
//!
//! The calls are read from the sources, also from the checks of the page in Python. Only a call that
//! stands alone in the body of a `#[test]` function counts, or in a check that `check_page.py` runs:
//! such a call runs whenever the test passes. The rules are pure functions, tried on this repository
//! and on planted violations.

use crate::support::conformance::{Statement, statements};
use klnode_tests::repo_source::{ROOT, Source, Violation, assert_none, repository, split};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

const PAGE: &str = "docs/conformance.md";
/// The folder with the checks of the page, and the program that runs them.
const PAGE_CHECKS: &str = "tests/page";
const PAGE_RUNNER: &str = "check_page.py";
/// The states of a row.
const STATES: [&str; 3] = ["works", "differs", "not built"];

/// One row of the table.
#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    line: usize,
    id: &'a str,
    text: String,
    state: &'a str,
    /// Tests of a row that works; else the reason.
    last: &'a str,
}

/// A call of `conforms` in a test.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    path: String,
    line: usize,
    /// Module and function, as a row names them; `None` outside the body of a test.
    test: Option<String>,
    id: String,
}

#[test]
fn every_statement_has_a_row_and_every_row_that_works_has_a_test() {
    let sources = &repository().sources;
    let page = sources.iter().find(|source| source.path == PAGE).expect("the page exists");
    let rows = rows(&page.text);
    let calls: Vec<Call> = sources.iter().flat_map(calls).chain(calls_of_page_checks()).collect();
    let mut violations = unknown_calls(&statements(), &calls);
    violations.extend(wrong_rows(&statements(), &rows));
    violations.extend(unproved_rows(&rows, &calls));
    assert_none(&violations);
    // Written past the capture of the test harness, so that every run of the gate prints it.
    let counts = counts(&statements(), &rows);
    writeln!(std::io::stderr(), "{}", counts.join("\n")).unwrap();
    for line in counts {
        assert!(page.text.contains(&line), "{PAGE} lacks the line `{line}`");
    }
}

/// The rows of the page.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut found = Vec::new();
    for (at, line) in page.lines().enumerate() {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            continue;
        };
        if let [id, text, state, last] = cells.split(" | ").collect::<Vec<_>>()[..]
            && id != "id"
        {
            found.push(Row { line: at + 1, id, text: text.replace("\\|", "|"), state, last });
        }
    }
    found
}

/// The calls of `conforms` in one file of the suite.
fn calls(source: &Source) -> Vec<Call> {
    let Some(module) = source.path.strip_prefix("tests/suite/") else { return Vec::new() };
    let module = module.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    let code = split(&source.text).code;
    let (mut depth, mut is_test, mut test) = (0_usize, false, None::<String>);
    let mut found = Vec::new();
    for (at, (line, whole)) in code.lines().zip(source.text.lines()).enumerate() {
        let trimmed = line.trim();
        if depth == 0 {
            is_test |= trimmed == "#[test]";
            if let Some(rest) = trimmed.strip_prefix("fn ") {
                let name = rest.split('(').next().unwrap_or_default();
                test = is_test.then(|| format!("{module}::{name}"));
                is_test = false;
            }
        }
        let id =
            whole.trim().strip_prefix("conforms(\"").and_then(|rest| rest.strip_suffix("\");"));
        if let Some(id) = id.filter(|_| trimmed.starts_with("conforms(")) {
            let test = test.clone().filter(|_| depth == 1);
            found.push(Call { path: source.path.clone(), line: at + 1, test, id: id.to_owned() });
        }
        depth += line.matches('{').count();
        depth = depth.saturating_sub(line.matches('}').count());
    }
    found
}

/// The calls in the checks of the page.
fn calls_of_page_checks() -> Vec<Call> {
    let folder = std::path::Path::new(ROOT).join(PAGE_CHECKS);
    let runner = std::fs::read_to_string(folder.join(PAGE_RUNNER)).expect("it is there");
    let files = std::fs::read_dir(&folder).expect("it is a folder").map(|file| file.unwrap());
    let mut names: Vec<String> =
        files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".py"));
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(folder.join(&name)).expect("it is text");
        python_calls(&Source::new(&format!("{PAGE_CHECKS}/{name}"), &text), &runner)
    };
    names.into_iter().flat_map(read).collect()
}

/// The calls in one file of checks. A call counts if it is in the body of a function that the runner
/// calls.
fn python_calls(source: &Source, runner: &str) -> Vec<Call> {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let module = name.trim_end_matches(".py");
    let (mut check, mut found) = (None::<&str>, Vec::new());
    for (at, line) in source.text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("def ") {
            check = rest.split('(').next();
        }
        let call = line.trim_start().strip_prefix("conforms(\"");
        let Some(id) = call.and_then(|rest| rest.strip_suffix("\")")) else { continue };
        let is_in_body = line.starts_with("    conforms(");
        let is_run = |check: &&str| is_in_body && runner.contains(&format!("{module}.{check}("));
        let test = check.filter(is_run).map(|check| format!("{module}::{check}"));
        found.push(Call { path: source.path.clone(), line: at + 1, test, id: id.to_owned() });
    }
    found
}

/// Calls with an unknown id, and calls that a passing test may skip.
fn unknown_calls(known: &[Statement], calls: &[Call]) -> Vec<Violation> {
    let ids: BTreeSet<&str> = known.iter().map(|one| one.id).collect();
    let mut found = Vec::new();
    for Call { path, line, test, id } in calls {
        if !ids.contains(id.as_str()) {
            let way_out = "name a statement of tests/fixtures/statements.tsv";
            found.push(Violation::new(path, *line, format!("{id} is no statement"), way_out));
        }
        if test.is_none() {
            let what = format!("conforms(\"{id}\") may be skipped");
            let way_out = "call it on its own line in the body of a #[test] function";
            found.push(Violation::new(path, *line, what, way_out));
        }
    }
    found
}

/// Statements without a row, rows without a statement, doubled rows and unknown states.
fn wrong_rows(known: &[Statement], rows: &[Row<'_>]) -> Vec<Violation> {
    let texts: BTreeMap<&str, &str> = known.iter().map(|one| (one.id, one.text)).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for row in rows {
        let mut wrong = |what: String, way_out: &str| {
            found.push(Violation::new(PAGE, row.line, what, way_out));
        };
        match texts.get(row.id) {
            None => wrong(format!("{} is no statement", row.id), "remove the row"),
            Some(text) if *text != row.text => {
                wrong(format!("{} reads otherwise", row.id), "copy the statement from the list");
            }
            Some(_) => {}
        }
        if !seen.insert(row.id) {
            wrong(format!("{} has two rows", row.id), "keep one of them");
        }
        if !STATES.contains(&row.state) || row.last.trim().is_empty() {
            let what = format!("{} is `{}` with `{}`", row.id, row.state, row.last);
            wrong(what, "write works, differs or not built, and the tests or the reason");
        }
    }
    let missing = known.iter().filter(|one| !seen.contains(one.id));
    found.extend(
        missing.map(|one| Violation::new(PAGE, 1, format!("{} has no row", one.id), "add one")),
    );
    found
}

/// Rows that claim `works` without a test that calls `conforms` with their id, and calls for rows that
/// claim less.
fn unproved_rows(rows: &[Row<'_>], calls: &[Call]) -> Vec<Violation> {
    let made: BTreeSet<(&str, &str)> =
        calls.iter().filter_map(|call| Some((call.id.as_str(), call.test.as_deref()?))).collect();
    let mut found = Vec::new();
    for row in rows {
        let mut tests = row.last.split('`').skip(1).step_by(2).filter(|name| name.contains("::"));
        if row.state == "works" {
            let unmade = tests.clone().find(|test| !made.contains(&(row.id, *test)));
            if tests.next().is_none() || unmade.is_some() {
                let what = format!(
                    "{} works, but {} does not say so",
                    row.id,
                    unmade.unwrap_or("no test")
                );
                let way_out = "name the test whose body calls conforms with this id";
                found.push(Violation::new(PAGE, row.line, what, way_out));
            }
        } else if let Some((_, test)) = made.iter().find(|(id, _)| *id == row.id) {
            let what = format!("{} is `{}`, but {test} proves it", row.id, row.state);
            found.push(Violation::new(PAGE, row.line, what, "write works, or remove the call"));
        }
    }
    found
}

/// A line for each seed, and one for all: the number of rows in each state.
fn counts(known: &[Statement], rows: &[Row<'_>]) -> Vec<String> {
    let states: BTreeMap<&str, &str> = rows.iter().map(|row| (row.id, row.state)).collect();
    let line = |name: &str, of: &[&Statement]| {
        let count =
            |state: &str| of.iter().filter(|one| states.get(one.id) == Some(&state)).count();
        let [works, differs, missing] = STATES.map(count);
        format!("| {name} | {} | {works} | {differs} | {missing} |", of.len())
    };
    let seeds: BTreeSet<&str> = known.iter().map(|one| one.seed).collect();
    let mut lines: Vec<String> = seeds
        .into_iter()
        .map(|seed| line(seed, &known.iter().filter(|one| one.seed == seed).collect::<Vec<_>>()))
        .collect();
    lines.push(line("all", &known.iter().collect::<Vec<_>>()));
    lines
}

#[cfg(test)]
mod planted_violations {
    use super::*;

    const KNOWN: [Statement; 2] = [
        Statement { id: "S1-1", seed: "1", text: "A a|b" },
        Statement { id: "S1-2", seed: "1", text: "C" },
    ];

    fn planted(text: &str) -> Vec<Call> {
        calls(&Source::new("tests/suite/scene.rs", text))
    }

    fn whats(found: Vec<Violation>) -> Vec<String> {
        found.into_iter().map(|one| format!("{} {}", one.place, one.what)).collect()
    }

    #[test]
    fn only_a_call_in_the_body_of_a_test_counts() {
        let text = "#[test]\nfn one() {\n    conforms(\"S1-1\");\n    if x {\n        conforms(\"S1-2\");\n    }\n}\n\
            fn two() {\n    conforms(\"S1-3\");\n}\n// conforms(\"S1-4\");\n";
        let found: Vec<(String, Option<String>)> =
            planted(text).into_iter().map(|call| (call.id, call.test)).collect();
        let one = |id: &str, test: Option<&str>| (id.to_owned(), test.map(str::to_owned));
        assert_eq!(found, [one("S1-1", Some("scene::one")), one("S1-2", None), one("S1-3", None)]);
        let told = whats(unknown_calls(&KNOWN, &planted(text)));
        assert_eq!(
            told,
            [
                "tests/suite/scene.rs:5 conforms(\"S1-2\") may be skipped",
                "tests/suite/scene.rs:9 S1-3 is no statement",
                "tests/suite/scene.rs:9 conforms(\"S1-3\") may be skipped",
            ]
        );
    }

    #[test]
    fn a_call_in_a_check_counts_if_the_runner_calls_it() {
        let text = "def check_one(page):\n    conforms(\"S1-1\")\n    if page:\n        conforms(\"S1-2\")\n\
            def check_two(page):\n    conforms(\"S1-2\")\n";
        let source = Source::new("tests/page/some_checks.py", text);
        let found = python_calls(&source, "steps = [lambda: some_checks.check_one(page)]\n");
        let found: Vec<(String, Option<String>)> =
            found.into_iter().map(|call| (call.id, call.test)).collect();
        let one = |id: &str, test: Option<&str>| (id.to_owned(), test.map(str::to_owned));
        let first = one("S1-1", Some("some_checks::check_one"));
        assert_eq!(found, [first, one("S1-2", None), one("S1-2", None)]);
    }

    #[test]
    fn a_missing_a_doubled_and_an_altered_row_are_found() {
        let page = "| id | statement | state | tests |\n| S1-1 | A a\\|b | works | `scene::one` |\n\
            | S1-1 | A | works | `scene::one` |\n| S1-9 | Z | maybe | |\n";
        let told = whats(wrong_rows(&KNOWN, &rows(page)));
        let expected = ["S1-1 reads otherwise", "S1-1 has two rows", "S1-2 has no row"];
        for part in expected {
            assert!(told.iter().any(|one| one.ends_with(part)), "{part}: {told:?}");
        }
        let fine = "| S1-1 | A a\\|b | works | `scene::one` |\n| S1-2 | C | differs | so |\n";
        assert_eq!(whats(wrong_rows(&KNOWN, &rows(fine))), [] as [String; 0]);
    }

    #[test]
    fn a_row_that_works_without_its_test_is_found() {
        let text = "#[test]\nfn one() {\n    conforms(\"S1-1\");\n}\n";
        let told = |page: &str| whats(unproved_rows(&rows(page), &planted(text)));
        assert_eq!(told("| S1-1 | A | works | `scene::one` |\n"), [] as [String; 0]);
        for (row, part) in [
            ("| S1-1 | A | works | `scene::two` |\n", "scene::two does not say so"),
            ("| S1-1 | A | works | by hand |\n", "no test does not say so"),
            ("| S1-2 | C | works | `scene::one` |\n", "scene::one does not say so"),
            ("| S1-1 | A | differs | why |\n", "scene::one proves it"),
        ] {
            let told = told(row);
            assert!(told.len() == 1 && told[0].ends_with(part), "{row}: {told:?}");
        }
    }

    #[test]
    fn rows_are_counted_by_seed_and_state() {
        let page = "| S1-1 | A | works | `scene::one` |\n| S1-2 | C | not built | why |\n";
        let expected = ["| 1 | 2 | 1 | 0 | 1 |", "| all | 2 | 1 | 0 | 1 |"];
        assert_eq!(counts(&KNOWN, &rows(page)), expected);
    }
}
