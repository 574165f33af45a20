//! Entries and questions from the labelled sets, which people wrote for other purposes.
//!
//! They keep the search from finding an answer by the words of a template: half of the questions have
//! few words in common with their answer, and some have no answer at all.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const SETS: [&str; 3] = [
    include_str!("../../../node/model/sets/errors.dev.jsonl"),
    include_str!("../../../node/model/sets/questions.dev.jsonl"),
    include_str!("../../../node/model/sets/compiler.dev.jsonl"),
];

/// Most characters of a content.
const CONTENT_CHARACTERS_MAX: usize = 600;

/// An entry with the questions that it answers.
#[derive(Clone, Debug)]
pub(super) struct LabelledEntry {
    pub(super) title: String,
    pub(super) content: String,
    pub(super) questions: Vec<String>,
}

/// The entries that answer a question, and the questions that no entry answers.
pub(super) struct QuestionBank {
    pub(super) entries: Vec<LabelledEntry>,
    pub(super) unanswerable: Vec<String>,
}

/// All sets, read once.
pub(super) fn question_bank() -> &'static QuestionBank {
    static BANK: OnceLock<QuestionBank> = OnceLock::new();
    BANK.get_or_init(read)
}

fn read() -> QuestionBank {
    let mut bank = QuestionBank { entries: Vec::new(), unanswerable: Vec::new() };
    for set in SETS {
        let lines: Vec<Value> =
            set.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
        let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let mut questions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in lines.iter().filter(|line| line["query"].is_string()) {
            let relevant = line["relevant"].as_array().map(Vec::as_slice).unwrap_or_default();
            match relevant {
                [] => bank.unanswerable.push(text(line, "query")),
                [one] => {
                    let id = one.as_str().unwrap_or_default().to_owned();
                    questions.entry(id).or_default().push(text(line, "query"));
                }
                _ => {}
            }
        }
        for line in lines.iter().filter(|line| line["content"].is_string()) {
            let Some(questions) = questions.remove(&text(line, "id")) else { continue };
            let content = text(line, "content").chars().take(CONTENT_CHARACTERS_MAX).collect();
            let title: String = text(line, "title").chars().take(180).collect();
            let entry = LabelledEntry { title, content, questions };
            let texts = [("title", &entry.title), ("content", &entry.content)];
            // The scan refuses some texts about secrets and instructions.
            if texts.iter().all(|(field, text)| klnode_query::complaint(field, text).is_none()) {
                bank.entries.push(entry);
            }
        }
    }
    bank
}
