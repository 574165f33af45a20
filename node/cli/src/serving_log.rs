//! `klnode status usage --log`: the serving log, which has the caller, the query and the entries of each
//! answer.

use super::api_path::escape;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{Reply, VerbError};
use klnode_api_types::{ServedAnswer, ServingLog};
use klnode_client::Client;
use std::fmt::Write;

/// Prints the newest answers, or only answers that contain an entry.
pub(super) async fn run(
    entry: Option<&str>,
    limit: Option<usize>,
    client: &Client,
) -> Result<Reply, VerbError> {
    let limit = limit.map(|limit| format!("limit={limit}"));
    let only = entry.map(|entry| format!("entry={}", escape(entry)));
    let query: Vec<String> = limit.into_iter().chain(only).collect();
    let served: ServingLog = client.get(&format!("/v1/served?{}", query.join("&"))).await?;
    let text = text(&served, entry);
    Ok(Reply::new(&served, text))
}

fn text(served: &ServingLog, entry: Option<&str>) -> String {
    let mut text = String::new();
    match (served.answers.is_empty(), entry) {
        (false, _) => {}
        (true, Some(entry)) => {
            let _ = writeln!(text, "The serving log has no answer with {}.", printable(entry));
        }
        (true, None) => {
            text.push_str("The serving log is empty. Run `klnode search` to ask the node.\n");
        }
    }
    for answer in &served.answers {
        put(&mut text, answer);
    }
    if served.more {
        text.push_str("There are older answers; use -n to list more.\n");
    }
    text
}

fn put(text: &mut String, answer: &ServedAnswer) {
    let asked = match (&answer.query, answer.unasked) {
        (Some(query), false) => format!("\"{}\"", printable(query)),
        (Some(query), true) => format!("unprompted: {}", printable(query)),
        (None, true) => "unprompted".to_owned(),
        // An entry in the answer was forgotten since, which erased the query too.
        (None, false) => "(query erased)".to_owned(),
    };
    let _ = write!(text, "{}  {}  {asked}", moment(answer.at), printable(&answer.caller));
    if let Some(task) = &answer.task {
        let _ = write!(text, "  (task {task})");
    }
    let codes: Vec<&str> = answer.entries.iter().map(|entry| entry.code.as_str()).collect();
    let codes = match (codes.is_empty(), answer.weak) {
        (true, true) => "titles of weak matches".to_owned(),
        (true, false) => "no entries".to_owned(),
        (false, true) => format!("{}  (weak match)", codes.join("  ")),
        (false, false) => codes.join("  "),
    };
    let _ = writeln!(text, "\n    {codes}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_api_types::EntryIdentity;

    fn answer() -> ServedAnswer {
        ServedAnswer {
            at: 1_790_000_000_000,
            caller: "claude-code".into(),
            session: None,
            task: None,
            query: Some("why does\u{1b} it fail".into()),
            unasked: false,
            weak: false,
            entries: vec![EntryIdentity { id: "1".into(), code: "L-7F3K".into() }],
        }
    }

    #[test]
    fn an_answer_is_printed_with_its_query_and_without_control_characters() {
        let served = ServingLog { as_of: 0, answers: vec![answer()], more: true };
        let told = text(&served, None);
        assert!(told.starts_with("2026-09-21 14:13:20  claude-code  \"why does"), "{told}");
        assert!(told.contains("it fail\"\n    L-7F3K\nThere are older answers"), "{told}");
        assert!(!told.contains('\u{1b}'));
    }

    #[test]
    fn unprompted_erased_empty_and_weak_answers_differ() {
        let of = |query: Option<&str>, unasked, entries: Vec<EntryIdentity>| {
            let query = query.map(str::to_owned);
            let answer =
                ServedAnswer { query, unasked, entries, task: Some("7".into()), ..answer() };
            text(&ServingLog { as_of: 0, answers: vec![answer], more: false }, None)
        };
        assert!(of(None, true, answer().entries).contains("  unprompted  (task 7)\n    L-7F3K\n"));
        assert!(of(Some("x"), true, Vec::new()).contains("  unprompted: x  (task 7)"));
        assert!(
            of(None, false, Vec::new()).ends_with("(query erased)  (task 7)\n    no entries\n")
        );
        let weak = ServedAnswer { weak: true, ..answer() };
        let told = text(&ServingLog { as_of: 0, answers: vec![weak], more: false }, None);
        assert!(told.ends_with("    L-7F3K  (weak match)\n"), "{told}");
    }

    #[test]
    fn an_empty_log_is_a_sentence() {
        let none = ServingLog { as_of: 0, answers: Vec::new(), more: false };
        assert_eq!(
            text(&none, None),
            "The serving log is empty. Run `klnode search` to ask the node.\n"
        );
        assert_eq!(text(&none, Some("L-7F3K")), "The serving log has no answer with L-7F3K.\n");
    }
}
