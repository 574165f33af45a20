//! Targets for text input of people and other programs: files, predicates, and scanned texts.

use super::seeds;
use crate::test_engine::START;
use klnode_api_types::NewEntry;
use klnode_config::{Layered, Layers, SettingReport, ValueSource};
use klnode_crdt::header::SignedHeader;
use klnode_engine::{SourceKey, dry_run_import};
use klnode_scoring::content_scan::disclosure::Border;
use klnode_scoring::content_scan::{ScanReport, Scanner};
use klnode_scoring::predicate::{
    Checkout, Params, Predicate, ReadFailure, TEXT_BYTES_MAX, evaluate, evaluate_all,
};
use klnode_server::transfer::jsonl_line::{JsonlLine, PLAIN, SignedRecord};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::LazyLock;

/// Size limit of front matter.
const FRONT_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of lines read from one input.
const LINES_MAX: usize = 8;
/// Maximum length of a flag.
const FLAG_BYTES_MAX: usize = 256;
/// Step limit that covers every file of the test checkout and ends soon.
const STEPS_MAX: u64 = 1 << 18;

pub(super) fn front_matter(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(new) = klnode_cli::front_matter::read(text) else { return };
    let written = markdown(&new);
    if written.len() > FRONT_BYTES_MAX {
        return;
    }
    let again = klnode_cli::front_matter::read(&written);
    let again = again.unwrap_or_else(|why| panic!("{written}\ndoes not read again: {why}"));
    assert_eq!(json(&again), json(&new), "{written}");
}

fn json(new: &NewEntry) -> Value {
    serde_json::to_value(new).expect("an entry is JSON")
}

/// An entry as front matter only, with every text quoted.
fn markdown(new: &NewEntry) -> String {
    let mut text = "---\n".to_owned();
    let fields = json(new);
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value {
            Value::String(value) => {
                let _ = writeln!(text, "{name}: {}", quoted(value));
            }
            Value::Array(values) if !values.is_empty() => {
                let _ = writeln!(text, "{name}:");
                for value in values.iter().filter_map(Value::as_str) {
                    let _ = writeln!(text, "  - {}", quoted(value));
                }
            }
            _ => {}
        }
    }
    text.push_str("---\n");
    text
}

/// Escapes all characters with a meaning in YAML, and all outside ASCII.
fn quoted(value: &str) -> String {
    let mut text = "\"".to_owned();
    for c in value.chars() {
        if c.is_ascii_alphanumeric() || c == ' ' {
            text.push(c);
        } else {
            let _ = write!(text, "\\U{:08X}", u32::from(c));
        }
    }
    text.push('"');
    text
}

pub(super) fn import_lines(data: &[u8]) {
    let lines = data.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.trim_ascii().is_empty()).take(LINES_MAX) {
        import_line(line);
    }
}

fn import_line(bytes: &[u8]) {
    let line = match JsonlLine::parse(bytes) {
        Ok(line) => line,
        Err(why) => return assert!(!why.is_empty(), "a refusal says why"),
    };
    let written = serde_json::to_vec(&line).expect("a line is JSON");
    assert_eq!(JsonlLine::parse(&written).as_ref(), Ok(&line), "it round-trips");
    for record in &line.records {
        if let Ok(verified) = record.verify() {
            assert_eq!(SignedRecord::of(&verified), *record, "its bytes are unchanged");
        }
    }
    let source = SourceKey { format: PLAIN.to_owned(), key: line.source_key() };
    if let Ok(new) = line.into_entry(seeds::author().author(), START, "import#1") {
        assert_eq!(dry_run_import(&new, &source).ok(), dry_run_import(&new, &source).ok());
    }
}

/// A checkout of a few files, sorted by path bytes.
struct Files {
    tracked: Vec<String>,
}

const FILES: [(&str, &str); 6] = [
    ("Cargo.toml", "[workspace.dependencies]\ntokio = \"1.41\"\n[dependencies]\nx = \"1\"\n"),
    ("docs/a page.md", "say \"no\"\n"),
    ("go.mod", "module m\nrequire golang.org/x/net v0.20.0\n"),
    ("package.json", "{\"dependencies\": {\"react\": \"^18.2\"}}"),
    ("pyproject.toml", "[project]\ndependencies = [\"numpy>=2.0\"]\n"),
    ("src/lib.rs", "fn verify() {}\nabababababab\n"),
];

impl Checkout for Files {
    fn tracked(&self) -> &[String] {
        &self.tracked
    }

    fn exists(&self, path: &str) -> Result<bool, ReadFailure> {
        assert!(self.tracked.iter().any(|tracked| tracked == path), "asked for {path}");
        Ok(true)
    }

    fn read(&self, path: &str, bytes_max: usize) -> Result<Cow<'_, [u8]>, ReadFailure> {
        let found = FILES.iter().find(|(tracked, _)| *tracked == path);
        let (_, text) = found.unwrap_or_else(|| panic!("asked for {path}"));
        match text.len() <= bytes_max {
            true => Ok(Cow::Borrowed(text.as_bytes())),
            false => Err(ReadFailure::TooLarge),
        }
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        *SignedHeader::digest_of(bytes).as_bytes()
    }
}

pub(super) fn predicates(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let predicate = match Predicate::parse(text) {
        Ok(predicate) => predicate,
        Err(error) => {
            assert!(error.at <= text.len() && !error.expected.is_empty());
            return;
        }
    };
    let shown = predicate.to_string();
    if shown.len() <= TEXT_BYTES_MAX {
        assert_eq!(Predicate::parse(&shown).as_ref(), Ok(&predicate), "{shown}");
    }
    let files = Files { tracked: FILES.iter().map(|(path, _)| (*path).to_owned()).collect() };
    let params = Params { steps_per_predicate_max: STEPS_MAX, ..Params::default() };
    let alone = evaluate(&predicate, &files, &params);
    assert_eq!(evaluate_all(&[predicate], &files, &params), [alone], "alone or in a batch");
}

static SCANNER: LazyLock<Scanner> = LazyLock::new(Scanner::new);
static BORDER: LazyLock<Border> = LazyLock::new(|| Border::new(&["Acme"], &["acme/widgets"]));

pub(super) fn scan(data: &[u8]) {
    let text = &String::from_utf8_lossy(data);
    let report = SCANNER.scan(text);
    let mut end_of_secret = 0;
    for finding in &report.findings {
        assert!(!finding.span.is_empty() && text.get(finding.span.clone()).is_some());
        if finding.rule.axis.is_secret() {
            assert!(finding.span.start >= end_of_secret, "secrets do not overlap");
            end_of_secret = finding.span.end;
        }
    }
    let worst = report.findings.iter().map(|finding| finding.rule.severity).max();
    assert!(worst.is_none_or(|worst| report.verdict >= worst));
    assert_redacts(text, &report);
    for flag in BORDER.flags(text) {
        assert!(!flag.span.is_empty() && text.get(flag.span.clone()).is_some());
    }
}

fn assert_redacts(text: &str, report: &ScanReport) {
    let redacted = SCANNER.redact(text, report);
    let again = SCANNER.scan(&redacted);
    assert!(!again.has_secret(), "a secret is left in {redacted}");
    assert_eq!(SCANNER.redact(&redacted, &again), redacted, "redacting again changes nothing");
    if !report.has_secret() {
        assert_eq!(redacted, text, "a text without a secret is unchanged");
    }
}

pub(super) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.len() <= FLAG_BYTES_MAX && !text.contains('\n') {
        let _ = Layers::new().flags([("--set", text)]).resolve();
    }
    match Layers::new().file("klnode.toml", text).resolve() {
        Ok(layered) => assert_reads_again(&layered),
        Err(error) => {
            assert!(!error.problems().is_empty() && !error.to_string().is_empty());
        }
    }
}

/// The displayed settings, written to a file, give the same settings.
fn assert_reads_again(layered: &Layered) {
    let is_set = |setting: &&SettingReport| setting.origin != ValueSource::Default;
    let mut text = String::new();
    for SettingReport { key, value, .. } in layered.explain().iter().filter(is_set) {
        let _ = writeln!(text, "{key} = {value}");
    }
    let again = Layers::new().file("klnode.toml", text.as_str()).resolve();
    let again = again.unwrap_or_else(|error| panic!("{text}\ndoes not read again: {error}"));
    assert_eq!(again.config(), layered.config(), "{text}");
}
