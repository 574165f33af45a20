//! `klnode quarantine`: what peers brought and the scan holds back.

use super::harmless::printable;
use super::read::part;
use super::when::moment;
use super::{Reply, VerbError};
use crate::api::Client;
use crate::api::types::{Decided, Quarantine, Quarantined};
use hyper::Method;
use std::fmt::Write;

/// Digits of a digest or key that tell most records apart.
const SHORT_DIGITS: usize = 12;

/// What to do about what waits.
#[derive(Debug, clap::Subcommand)]
pub enum QuarantineVerb {
    /// List what waits, oldest first, with the reason.
    ///
    /// Example: klnode quarantine list
    List,
    /// Show one record, without secrets and without what would instruct a reader.
    ///
    /// Example: klnode quarantine show 3f9a1c
    Show(OneRecord),
    /// Take a record in, whatever the scan says. It is shown and passed on from then on.
    ///
    /// Example: klnode quarantine release 3f9a1c
    Release(OneRecord),
    /// Throw a record away; where it was offered it is not asked for again.
    ///
    /// Example: klnode quarantine reject 3f9a1c
    Reject(OneRecord),
}

/// One record that waits.
#[derive(Debug, clap::Args)]
pub struct OneRecord {
    /// Its digest, or an unambiguous beginning of 4 digits or more.
    pub digest: String,
}

impl QuarantineVerb {
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::Release(_) | Self::Reject(_))
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::List => {
                let waiting: Quarantine = client.get("/v1/quarantine").await?;
                Ok(Reply::new(&waiting, list(&waiting)))
            }
            Self::Show(one) => {
                let waiting: Quarantined = client.get(&one.path("")?).await?;
                Ok(Reply::new(&waiting, whole(&waiting)))
            }
            Self::Release(one) => one.decide(client, "/release").await,
            Self::Reject(one) => one.decide(client, "/reject").await,
        }
    }
}

impl OneRecord {
    fn path(&self, rest: &str) -> Result<String, VerbError> {
        let name = part(&self.digest, "a record", "its digest, or its beginning is wanted")?;
        Ok(format!("/v1/quarantine/{name}{rest}"))
    }

    async fn decide(self, client: &Client, how: &str) -> Result<Reply, VerbError> {
        let path = self.path(how)?;
        let decided: Decided = client.send_json(Method::POST, &path, &()).await?;
        let what = match decided.outcome.as_str() {
            "merged" => "released: it is taken in",
            "known" => "released: a newer record of its author says as much",
            "forgotten" => "thrown away: its entry was forgotten",
            _ => "rejected: it is thrown away",
        };
        let text = format!("{}  {what}  (entry {})\n", short(&decided.digest), decided.entry);
        Ok(Reply::new(&decided, text))
    }
}

fn short(digits: &str) -> &str {
    digits.get(..SHORT_DIGITS).unwrap_or(digits)
}

fn list(waiting: &Quarantine) -> String {
    if waiting.records.is_empty() {
        return "Nothing waits. What peers bring is scanned first; what is grave would wait here.\n\
                `klnode peer list` shows who brings something.\n"
            .to_owned();
    }
    let mut text = format!(
        "{:<SHORT_DIGITS$}  {:<SHORT_DIGITS$}  {:<14}  {:<14}  SINCE (UTC)\n",
        "RECORD", "ENTRY", "AUTHOR", "FROM"
    );
    for one in &waiting.records {
        let _ = writeln!(
            text,
            "{:<SHORT_DIGITS$}  {:<SHORT_DIGITS$}  {:<14.14}  {:<14.14}  {:<19}\n    {}",
            short(&one.digest),
            short(&one.entry),
            printable(&one.author_name),
            printable(&one.peer_name),
            moment(one.since),
            one.reason,
        );
    }
    text.push_str("`klnode quarantine show RECORD` shows one, and what can be done.\n");
    let listed = waiting.records.len() as u64;
    if waiting.total > listed {
        let _ = writeln!(text, "{} more wait.", waiting.total - listed);
    }
    text
}

fn whole(one: &Quarantined) -> String {
    let mut text = format!(
        "record  {}\nentry   {}\nauthor  {} ({})\nfrom    {} ({})\nsince   {} UTC\nreason  {}\n",
        one.digest,
        one.entry,
        printable(&one.author_name),
        short(&one.author),
        printable(&one.peer_name),
        short(&one.peer),
        moment(one.since),
        one.reason,
    );
    for said in &one.texts {
        let _ = writeln!(text, "{}", said.field);
        for line in said.text.lines() {
            let _ = writeln!(text, "  | {}", printable(line));
        }
    }
    let name = short(&one.digest);
    let _ =
        writeln!(text, "`klnode quarantine release {name}` or `klnode quarantine reject {name}`");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::types::QuarantinedText;

    fn waiting() -> Quarantined {
        Quarantined {
            digest: "3f".repeat(32),
            entry: "ab".repeat(16),
            author: "01".repeat(32),
            author_name: "alice".into(),
            peer: "02".repeat(32),
            peer_name: "bob\u{1b}[2J".into(),
            since: 1_790_000_000_000,
            reason: "the scan found content: jwt".into(),
            texts: vec![QuarantinedText {
                field: "content".into(),
                text: "first\nsecond [redacted: jwt]".into(),
            }],
        }
    }

    #[test]
    fn nothing_that_waits_says_so_and_a_list_names_the_record_and_the_reason() {
        let none = Quarantine { total: 0, records: Vec::new() };
        assert!(list(&none).starts_with("Nothing waits."));
        let text = list(&Quarantine { total: 3, records: vec![waiting()] });
        assert!(text.contains("3f3f3f3f3f3f  abababababab  alice"), "{text}");
        assert!(text.contains("2026-09-21 14:13:20\n    the scan found content: jwt\n"), "{text}");
        assert!(text.ends_with("2 more wait.\n") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_shown_record_quotes_its_texts_line_by_line_and_says_what_can_be_done() {
        let text = whole(&waiting());
        assert!(text.contains("content\n  | first\n  | second [redacted: jwt]\n"), "{text}");
        assert!(text.ends_with("reject 3f3f3f3f3f3f`\n"), "{text}");
    }
}
