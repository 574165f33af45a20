//! Runs the sessions that documents show, and compares what is printed with what they promise.
//!
//! A session is a fenced block of kind `console` in which lines that begin with `$ ` are typed and
//! the lines after them are what is printed. Ids and citation codes differ from run to run: where
//! the document shows one and another is printed, the printed one stands for it from then on. An
//! ellipsis `…` stands for whatever is printed there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// One typed line and what it promises to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The line.
    pub typed: String,
    /// What is printed.
    pub printed: Vec<String>,
}

/// The steps of every session in a document.
pub fn sessions(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    // Where the block under way began in `steps`; none outside of blocks.
    let mut block = None;
    for line in document.lines() {
        match (line.strip_prefix("$ "), block) {
            (Some(typed), Some(_)) => {
                let typed = typed.to_owned();
                steps.push(Step { typed, printed: Vec::new() });
            }
            _ if line.starts_with("```") => block = (line == "```console").then_some(steps.len()),
            (None, Some(first)) if steps.len() > first => {
                steps.last_mut().expect("longer than").printed.push(line.to_owned());
            }
            _ => {}
        }
    }
    steps
}

/// What a document shows, and what stands for it in this run.
pub type Names = BTreeMap<String, String>;

/// Runs the steps in a shell that finds `klnode` in `programs` and the node in `home`.
///
/// # Panics
/// If something else is printed than was promised.
pub fn run(steps: &[Step], programs: &Path, home: &Path) {
    go_on(steps, programs, home, &mut Names::new());
}

/// The same, for a part of a longer session: names that were learned before hold, and those that it
/// shows first are learned.
///
/// # Panics
/// If something else is printed than was promised.
pub fn go_on(steps: &[Step], programs: &Path, home: &Path, names: &mut Names) {
    for step in steps {
        let typed = substitute(&step.typed, names);
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1; {typed}"))
            .env("PATH", format!("{}:/usr/bin:/bin", programs.display()))
            .env("KLNODE_HOME", home)
            .current_dir(home.parent().expect("a home is in a folder"))
            .output()
            .expect("sh runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let printed: Vec<&str> = printed.lines().collect();
        for (shown, found) in step.printed.iter().zip(&printed) {
            learn(shown, found, names);
        }
        let promised: Vec<String> =
            step.printed.iter().map(|line| substitute(line, names)).collect();
        let is_kept = promised.len() == printed.len()
            && promised.iter().zip(&printed).all(|(promised, printed)| fits(promised, printed));
        assert!(is_kept, "`{}` prints {printed:#?}, not {promised:#?}", step.typed);
    }
}

/// Whether a printed line is the promised one, in which `…` stands for anything.
fn fits(promised: &str, printed: &str) -> bool {
    let Some((before, after)) = promised.split_once('…') else { return promised == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.into_iter().any(|at| fits(after, &rest[at..]))
}

/// Whether a word is an id or a citation code.
fn is_name(word: &str) -> bool {
    let is_id = matches!(word.len(), 32 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digits = word.split_once('-').filter(|(letter, _)| letter.len() == 1).map(|(_, of)| of);
    let is_code = digits.is_some_and(|digits| {
        let base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
        digits.len() == 8 && digits.bytes().all(base32)
    });
    is_id || is_code
}

fn words(line: &str) -> Vec<&str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).collect()
}

fn learn(shown: &str, found: &str, names: &mut Names) {
    for (shown, found) in words(shown).into_iter().zip(words(found)) {
        if is_name(shown) && is_name(found) {
            names.entry(shown.to_owned()).or_insert_with(|| found.to_owned());
        }
    }
}

fn substitute(line: &str, names: &Names) -> String {
    names.iter().fold(line.to_owned(), |line, (shown, found)| line.replace(shown, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_from_its_document() {
        let document = "text\n```console\n$ klnode list\nNothing yet.\n```\n$ no\n```console\ncargo test\n```\n";
        let step = Step { typed: "klnode list".into(), printed: vec!["Nothing yet.".into()] };
        assert_eq!(sessions(document), [step]);
    }

    #[test]
    fn an_ellipsis_stands_for_anything() {
        assert!(fits("a … c", "a b b c") && fits("a…", "a") && fits("…b…", "abc"));
        assert!(!fits("a … c", "a b b d") && !fits("a", "ab") && !fits("a…b", "b"));
    }

    #[test]
    fn a_printed_code_stands_for_the_one_in_the_document() {
        let mut names = BTreeMap::new();
        learn("L-7F3KQ2MX  title", "L-ABCDEFGH  title", &mut names);
        assert_eq!(substitute("show L-7F3KQ2MX", &names), "show L-ABCDEFGH");
        learn("no code", "at all", &mut names);
        assert_eq!(names.len(), 1);
    }
}
