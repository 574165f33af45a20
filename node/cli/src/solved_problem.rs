//! `klnode add --solved` and `klnode compound`: guide the write-up of a solved problem.
//!
//! The parts are those that a later reader needs: problem, cause, solution, a place in the code and a
//! step that checks it. Flags give them, or on a terminal the editor with a form. Separate from
//! `add`, which takes any text as it is.

use super::VerbError;
use super::editor::{Draft, Editor};
use super::entry_fields::OWN_WORD;
use super::front_matter;
use klnode_api_types::NewEntry;
use std::fmt::Write;

/// Tag of an entry that was written up in this way.
const SOLVED_TAG: &str = "solved-problem";
/// The parts of the text: heading, flag, hint in the form, and whether it must be filled in.
const PARTS: [(&str, &str, &str, bool); 4] = [
    ("Problem", "--problem", "What was seen, and where: symptom and error message.", true),
    ("Cause", "--cause", "Why it happened, in one or two sentences.", true),
    ("Solution", "--solution", "The change that solved it, and what did not work.", true),
    ("Prevention", "--prevention", "How it is noticed earlier next time. May stay empty.", false),
];

/// The flags of a write-up.
#[derive(Debug, Default, clap::Args)]
pub struct SolvedArgs {
    /// Write up a solved problem: problem, cause, solution, a place (--anchor) and a check
    /// (--verify). On a terminal the editor opens with a form for the missing parts.
    #[arg(long, conflicts_with_all = ["given", "content", "from"])]
    pub solved: bool,
    /// With --solved: what was seen, and where.
    #[arg(long, value_name = "TEXT", requires = "solved", allow_hyphen_values = true)]
    pub problem: Option<String>,
    /// With --solved: why it happened.
    #[arg(long, value_name = "TEXT", requires = "solved", allow_hyphen_values = true)]
    pub cause: Option<String>,
    /// With --solved: the change that solved it.
    #[arg(long, value_name = "TEXT", requires = "solved", allow_hyphen_values = true)]
    pub solution: Option<String>,
    /// With --solved: how it is noticed earlier next time.
    #[arg(long, value_name = "TEXT", requires = "solved", allow_hyphen_values = true)]
    pub prevention: Option<String>,
}

/// An entry that was written up, and its draft if it was written in the editor.
pub(super) struct WriteUp {
    pub(super) entry: NewEntry,
    pub(super) draft: Option<Draft>,
}

impl SolvedArgs {
    /// The entry from the flags, or from the editor if a part is missing. `given` has the other
    /// fields of the command line. A first sentence becomes the title if none is given.
    pub(super) fn write_up(
        &self,
        given: &NewEntry,
        editor: Option<Editor<'_>>,
        title_of: fn(&str) -> String,
    ) -> Result<WriteUp, VerbError> {
        let parts = [&self.problem, &self.cause, &self.solution, &self.prevention];
        let parts = parts.map(|part| part.as_deref().unwrap_or_default().trim().to_owned());
        let mut entry = NewEntry { content: text(&parts), ..given.clone() };
        let missing = missing(&entry, &parts);
        if missing.is_empty() {
            if entry.title.is_empty() {
                entry.title = title_of(&parts[0]);
            }
            return Ok(WriteUp { entry: tagged(entry), draft: None });
        }
        let Some(mut editor) = editor else {
            return Err(VerbError::Input(format!(
                "Cannot write up the problem: {} missing. Give each part with its flag, or run the command on a terminal.",
                listed(&missing)
            )));
        };
        let draft = Draft::write(&editor.folder, "solved", &form(&entry, &parts))?;
        let Some(edited) = draft.edit(&mut editor.open)? else {
            draft.remove();
            return Err(VerbError::Declined("Nothing was written."));
        };
        match read(&edited, title_of) {
            Ok(entry) => Ok(WriteUp { entry: tagged(entry), draft: Some(draft) }),
            Err(problem) => Err(draft.keep(&format!("Cannot read the text: {problem}."))),
        }
    }
}

/// Without other evidence the entry cites the word of its author, like every typed text.
fn tagged(mut entry: NewEntry) -> NewEntry {
    entry.source = Some(OWN_WORD.to_owned());
    entry.tags.push(SOLVED_TAG.to_owned());
    entry
}

/// The flags whose parts are missing.
fn missing(entry: &NewEntry, parts: &[String; 4]) -> Vec<&'static str> {
    let unfilled =
        PARTS.iter().zip(parts).filter(|((.., is_needed), text)| *is_needed && text.is_empty());
    let mut missing: Vec<&str> = unfilled.map(|((_, flag, ..), _)| *flag).collect();
    missing.extend(entry.anchors.is_empty().then_some("--anchor"));
    missing.extend(entry.verify_steps.is_empty().then_some("--verify"));
    missing
}

fn listed(flags: &[&str]) -> String {
    match flags {
        [one] => format!("{one} is"),
        _ => format!("{} are", flags.join(", ")),
    }
}

/// The content of the entry: each part below its heading.
fn text(parts: &[String; 4]) -> String {
    let mut text = String::new();
    for ((heading, ..), part) in PARTS.iter().zip(parts).filter(|(_, part)| !part.is_empty()) {
        let _ = write!(text, "## {heading}\n\n{part}\n\n");
    }
    text.trim_end().to_owned()
}

/// The form for the editor: fields as front matter, and each part with its hint.
fn form(entry: &NewEntry, parts: &[String; 4]) -> String {
    // JSON strings and lists are valid YAML.
    let list = |values: &[String]| serde_json::json!(values).to_string();
    let mut form = format!(
        "---\ntitle: {}\ntags: {}\nevidence: {}\nanchors: {}\nverify_steps: {}\n---\n",
        serde_json::json!(entry.title),
        list(&entry.tags),
        list(&entry.evidence),
        list(&entry.anchors),
        list(&entry.verify_steps),
    );
    form.push_str(
        "<!-- anchors: places such as path:src/auth.go; verify_steps: how to check -->\n",
    );
    for ((heading, _, hint, _), part) in PARTS.iter().zip(parts) {
        let _ = write!(form, "\n## {heading}\n\n<!-- {hint} -->\n{part}\n");
    }
    form
}

/// The entry from the filled form. Messages follow "Cannot read the text:".
fn read(form: &str, title_of: fn(&str) -> String) -> Result<NewEntry, String> {
    let is_hint = |line: &&str| line.starts_with("<!--") && line.ends_with("-->");
    let without: Vec<&str> = form.lines().filter(|line| !is_hint(line)).collect();
    let mut entry = front_matter::read(&without.join("\n"))?;
    let mut parts: [String; 4] = Default::default();
    let mut at = None;
    for line in entry.content.lines() {
        let heading = line.strip_prefix("## ").map(str::trim);
        let part = heading.and_then(|name| PARTS.iter().position(|(known, ..)| *known == name));
        match (part, at) {
            (Some(part), _) => at = Some(part),
            (None, Some(part)) => {
                let part: &mut String = &mut parts[part];
                part.push_str(line);
                part.push('\n');
            }
            (None, None) => {}
        }
    }
    let parts = parts.map(|part| part.trim().to_owned());
    let missing = missing(&entry, &parts);
    if !missing.is_empty() {
        let names: Vec<&str> = missing.iter().map(|flag| flag.trim_start_matches('-')).collect();
        return Err(format!("{} missing", listed(&names)));
    }
    if entry.title.trim().is_empty() {
        entry.title = title_of(&parts[0]);
    }
    entry.content = text(&parts);
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title_of(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn a_filled_form_is_an_entry_and_an_empty_one_names_its_gaps() {
        let given = NewEntry { tags: vec!["go".into()], ..NewEntry::default() };
        let parts: [String; 4] = Default::default();
        let empty = form(&given, &parts);
        let told = read(&empty, title_of).unwrap_err();
        assert_eq!(told, "problem, cause, solution, anchor, verify are missing");
        let mut filled = empty.replace("anchors: []", "anchors: [\"path:a.go\"]");
        filled = filled.replace("verify_steps: []", "verify_steps: [\"run it\"]");
        for (heading, said) in
            [("Problem", "It hung."), ("Cause", "A lock."), ("Solution", "Drop it.")]
        {
            filled = filled.replace(&format!("## {heading}\n"), &format!("## {heading}\n{said}\n"));
        }
        let entry = read(&filled, title_of).unwrap();
        assert_eq!(entry.title, "It hung.");
        assert_eq!(
            entry.content,
            "## Problem\n\nIt hung.\n\n## Cause\n\nA lock.\n\n## Solution\n\nDrop it."
        );
        assert_eq!((entry.anchors.len(), entry.tags), (1, vec!["go".to_owned()]));
    }
}
