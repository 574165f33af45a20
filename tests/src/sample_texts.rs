//! Texts to fill large stores with, and questions about them: those of the labelled sets, and any
//! number of mixtures of them.

use crate::test_engine::Seeded;
use klnode_query::complaint;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Shortest and longest question, in words.
const QUERY_WORDS: (u64, u64) = (2, 12);

/// Length limit of a title.
const TITLE_CHARACTERS_MAX: usize = 200;

/// Texts and questions of the labelled sets.
pub struct Texts {
    entries: Vec<(String, String)>,
    queries: Vec<String>,
}

impl Texts {
    /// Reads all sets of the repository.
    pub fn read() -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/model/sets");
        let files = fs::read_dir(folder).expect("the sets are there");
        let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
        files.sort();
        let mut texts = Self { entries: Vec::new(), queries: Vec::new() };
        for file in files.iter().filter(|file| file.extension().is_some_and(|of| of == "jsonl")) {
            for line in fs::read_to_string(file).expect("text").lines() {
                let line: Value = serde_json::from_str(line).expect("JSON");
                let text = |name: &str| line[name].as_str().map(str::to_owned);
                texts.entries.extend(text("title").zip(text("content")));
                texts.queries.extend(text("query"));
            }
        }
        // A node would refuse such texts, and with them the whole import.
        let is_fine = |text: &String| complaint("text", text).is_none();
        texts.entries.retain(|(title, content)| is_fine(title) && is_fine(content));
        texts
    }

    /// Title and content of an entry. Beyond the number of texts in the sets, entries are mixtures:
    /// the beginning of one and the end of another, with a unique name, as real stores have many.
    pub fn entry(&self, number: usize) -> (String, String) {
        let (title, content) = &self.entries[number % self.entries.len()];
        let round = number / self.entries.len();
        if round == 0 {
            return (title.clone(), content.clone());
        }
        let mut random = Seeded(number as u64);
        let (other_title, other) = &self.entries[random.below(self.entries.len() as u64) as usize];
        let last = other_title.split_whitespace().next_back().unwrap_or_default();
        let half = |text: &str| text.split_whitespace().count() / 2;
        let head: Vec<&str> = content.split_whitespace().take(half(content)).collect();
        let tail: Vec<&str> = other.split_whitespace().skip(half(other)).collect();
        let name = format!("{}_{:x}", last.replace(' ', "_"), random.below(1 << 24));
        let title: String =
            format!("{last} {round} {title}").chars().take(TITLE_CHARACTERS_MAX).collect();
        let mixed = format!("{} {name} {}", head.join(" "), tail.join(" "));
        // Two halves may form a phrase that neither had, and that a node refuses.
        let is_fine = complaint("text", &mixed).is_none() && complaint("text", &title).is_none();
        if is_fine { (title, mixed) } else { (format!("{round} {name}"), content.clone()) }
    }

    /// An entry as a plain import line.
    pub fn line(&self, number: usize) -> String {
        let (title, content) = self.entry(number);
        json!({ "key": number.to_string(), "title": title, "content": content }).to_string()
    }

    /// A question of 2 to 12 words, cut from one of the sets.
    pub fn query(&self, random: &mut Seeded) -> String {
        let (least, most) = QUERY_WORDS;
        loop {
            let query = &self.queries[random.below(self.queries.len() as u64) as usize];
            let words: Vec<&str> = query.split_whitespace().collect();
            let wanted = (least + random.below(most - least + 1)) as usize;
            if words.len() >= least as usize {
                let wanted = wanted.min(words.len());
                let first = random.below((words.len() - wanted + 1) as u64) as usize;
                return words[first..first + wanted].join(" ");
            }
        }
    }
}
