//! `klnode served`: to whom the node gave what, and what had been asked.

use super::harmless::printable;
use super::read::escape;
use super::when::moment;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{Served, ServedAnswer};
use std::fmt::Write;

/// Which answers.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only answers with this entry: its code, its id, or an unambiguous beginning of the code.
    pub entry: Option<String>,
    /// At most so many, from 1 to 1000 [default: 20].
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
}

impl Args {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let limit = self.limit.map(|limit| format!("limit={limit}"));
        let entry = self.entry.as_deref().map(|entry| format!("entry={}", escape(entry)));
        let query: Vec<String> = limit.into_iter().chain(entry).collect();
        let served: Served = client.get(&format!("/v1/served?{}", query.join("&"))).await?;
        let text = text(&served, self.entry.as_deref());
        Ok(Reply::new(&served, text))
    }
}

fn text(served: &Served, entry: Option<&str>) -> String {
    let mut text = String::new();
    match (served.answers.is_empty(), entry) {
        (false, _) => {}
        (true, Some(entry)) => {
            let _ = writeln!(text, "Nobody was given {} lately.", printable(entry));
        }
        (true, None) => text.push_str("Nothing was served yet. `klnode search` asks.\n"),
    }
    for answer in &served.answers {
        put(&mut text, answer);
    }
    if served.more {
        text.push_str("There are older ones: -n lists more.\n");
    }
    text
}

fn put(text: &mut String, answer: &ServedAnswer) {
    let asked = match (&answer.query, answer.unasked) {
        (Some(query), false) => format!("\"{}\"", printable(query)),
        (Some(query), true) => format!("unasked: {}", printable(query)),
        (None, true) => "unasked".to_owned(),
        // What it found was forgotten since, and the question with it.
        (None, false) => "a question that is not kept".to_owned(),
    };
    let _ = write!(text, "{}  {}  {asked}", moment(answer.at), printable(&answer.caller));
    if let Some(task) = &answer.task {
        let _ = write!(text, "  (task {task})");
    }
    let codes: Vec<&str> = answer.entries.iter().map(|entry| entry.code.as_str()).collect();
    let codes = match (codes.is_empty(), answer.weak) {
        (true, _) => "nothing".to_owned(),
        (false, true) => format!("{}  (hardly relevant)", codes.join("  ")),
        (false, false) => codes.join("  "),
    };
    let _ = writeln!(text, "\n    {codes}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::types::Named;

    fn answer() -> ServedAnswer {
        ServedAnswer {
            at: 1_790_000_000_000,
            caller: "claude-code".into(),
            session: None,
            task: None,
            query: Some("why does\u{1b} it fail".into()),
            unasked: false,
            weak: false,
            entries: vec![Named { id: "1".into(), code: "L-7F3K".into() }],
        }
    }

    #[test]
    fn an_answer_is_told_with_its_question_and_nothing_in_it_is_obeyed() {
        let served = Served { as_of: 0, answers: vec![answer()], more: true };
        let told = text(&served, None);
        assert!(told.starts_with("2026-09-21 14:13:20  claude-code  \"why does"), "{told}");
        assert!(told.contains("it fail\"\n    L-7F3K\nThere are older ones"), "{told}");
        assert!(!told.contains('\u{1b}'));
    }

    #[test]
    fn what_nobody_asked_for_what_was_forgotten_and_what_found_nothing_are_told_apart() {
        let of = |query: Option<&str>, unasked, entries: Vec<Named>| {
            let query = query.map(str::to_owned);
            let answer =
                ServedAnswer { query, unasked, entries, task: Some("7".into()), ..answer() };
            text(&Served { as_of: 0, answers: vec![answer], more: false }, None)
        };
        assert!(of(None, true, answer().entries).contains("  unasked  (task 7)\n    L-7F3K\n"));
        assert!(of(Some("x"), true, Vec::new()).contains("  unasked: x  (task 7)"));
        assert!(of(None, false, Vec::new()).ends_with("not kept  (task 7)\n    nothing\n"));
        let weak = ServedAnswer { weak: true, ..answer() };
        let told = text(&Served { as_of: 0, answers: vec![weak], more: false }, None);
        assert!(told.ends_with("    L-7F3K  (hardly relevant)\n"), "{told}");
    }

    #[test]
    fn an_empty_ledger_is_a_sentence() {
        let none = Served { as_of: 0, answers: Vec::new(), more: false };
        assert_eq!(text(&none, None), "Nothing was served yet. `klnode search` asks.\n");
        assert_eq!(text(&none, Some("L-7F3K")), "Nobody was given L-7F3K lately.\n");
    }
}
