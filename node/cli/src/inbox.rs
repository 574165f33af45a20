//! `klnode inbox`: records that the content scan put in quarantine, own entries that are held back,
//! and proposals of other authors.

use super::accept_proposal::Accept;
use super::api_path::part;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{ConfirmPrompt, Reply, VerbError};
use hyper::Method;
use klnode_api_types::{
    HeldDecision, HeldEntries, HeldEntry, Quarantine, QuarantineDecision, QuarantinedRecord,
    RejectRequest, RejectResult,
};
use klnode_client::Client;
use klnode_text::plural::records;
use serde::Serialize;
use std::fmt::Write;

/// Digits of a digest or key in a table, enough to distinguish most records.
const SHORT_DIGITS: usize = 12;
/// Digits of a key after an ambiguous author name.
const NAMED_DIGITS: usize = 8;

/// The action on quarantined records or proposals.
#[derive(Debug, clap::Subcommand)]
pub enum InboxVerb {
    /// List quarantined records, oldest first, with the reason, and held entries.
    ///
    /// An entry is held if it is yours, its workspace has other members, and its text names a host, a
    /// path, a customer or a weakness. Neither peers nor agents get it until you decide.
    ///
    /// Example: klnode inbox list
    List(ListArgs),
    /// Show a quarantined record, with secrets and instructions to the reader redacted.
    ///
    /// Example: klnode inbox show 3f9a1c
    Show(OneRecord),
    /// Release a record from quarantine, or a held entry. From then on it is shown and sent to peers.
    ///
    /// To rephrase a held entry instead, edit it: `klnode edit L-7F3K --content TEXT`.
    ///
    /// Example: klnode inbox release 3f9a1c
    ///
    /// Example: klnode inbox release L-7F3K
    Release(ReleaseArgs),
    /// Delete a quarantined record, or all records from one peer. The node will not request them
    /// again.
    ///
    /// With `--from` the command asks first; without a terminal it needs `--yes`.
    ///
    /// Example: klnode inbox reject --from alice
    Reject(RejectArgs),
    /// Accept another author's proposal for an entry, so that this node states it too.
    ///
    /// `klnode list --proposed` lists entries with proposals, and `klnode show` prints them.
    ///
    /// Example: klnode inbox accept L-7F3K --from alice --field title
    Accept(Accept),
}

/// The records to list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only records from this peer: its name, its key or the beginning of its key; `you` for
    /// records from an imported file.
    #[arg(long, value_name = "PEER")]
    pub from: Option<String>,
}

/// The records to delete.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["digest", "from"])))]
pub struct RejectArgs {
    /// Its digest, or an unambiguous beginning of 4 digits or more.
    pub digest: Option<String>,
    /// All records from this peer: its name, its key or the beginning of its key; `you` for records
    /// from an imported file.
    #[arg(long, value_name = "PEER")]
    pub from: Option<String>,
    /// Do not ask for confirmation.
    #[arg(long, requires = "from")]
    pub yes: bool,
}

/// The record or the held entry to release.
#[derive(Debug, clap::Args)]
pub struct ReleaseArgs {
    /// The digest of a record, or an unambiguous beginning of 4 digits or more; or the code of a held
    /// entry.
    #[arg(value_name = "RECORD|ENTRY")]
    pub what: String,
}

/// The JSON form of the list.
#[derive(Serialize)]
struct InboxList<'a> {
    #[serde(flatten)]
    waiting: &'a Quarantine,
    /// Own entries that wait for the operator before they are shared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<HeldEntry>,
}

/// One quarantined record.
#[derive(Debug, clap::Args)]
pub struct OneRecord {
    /// Its digest, or an unambiguous beginning of 4 digits or more.
    pub digest: String,
}

impl InboxVerb {
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::Release(_) | Self::Reject(_))
    }

    pub(super) async fn run(
        self,
        client: &Client,
        ask: ConfirmPrompt<'_>,
    ) -> Result<Reply, VerbError> {
        match self {
            Self::List(ListArgs { from }) => {
                let waiting = waiting(client, from.as_deref()).await?;
                let held: HeldEntries = match from {
                    None => client.get("/v1/held").await?,
                    Some(_) => HeldEntries::default(),
                };
                let mut text = match held.entries.is_empty() || !waiting.records.is_empty() {
                    true => list(&waiting, from.as_deref()),
                    false => String::new(),
                };
                text.push_str(&held_text(&held));
                Ok(Reply::new(&InboxList { waiting: &waiting, held: held.entries }, text))
            }
            Self::Show(one) => {
                let waiting: QuarantinedRecord = client.get(&one.path("")?).await?;
                Ok(Reply::new(&waiting, whole(&waiting)))
            }
            Self::Release(one) => one.run(client).await,
            Self::Reject(reject) => reject.run(client, ask).await,
            Self::Accept(accept) => accept.run(client).await,
        }
    }
}

impl ReleaseArgs {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        // A digest has no dash; the code of an entry has one.
        if !self.what.contains('-') {
            return OneRecord { digest: self.what }.decide(client, "/release").await;
        }
        let name = part(&self.what, "an entry", "give its code")?;
        let path = format!("/v1/held/{name}/release");
        let done: HeldDecision = client.send_json(Method::POST, &path, &()).await?;
        let mut text = format!("{}  released; peers and agents get it from now on\n", done.code);
        for flag in &done.flags {
            let _ = writeln!(text, "    {} ({})", printable(&flag.text), printable(&flag.topic));
        }
        Ok(Reply::new(&done, text))
    }
}

/// The held entries, each with its flagged passages.
fn held_text(held: &HeldEntries) -> String {
    let mut text = String::new();
    for one in &held.entries {
        let (code, workspace) = (&one.code, printable(&one.workspace));
        let _ = writeln!(text, "{code}  held in {workspace}: {}", printable(&one.title));
        for flag in &one.flags {
            let (field, topic) = (printable(&flag.field), printable(&flag.topic));
            let _ = writeln!(text, "    {field}: {} ({topic})", printable(&flag.text));
        }
    }
    if held.has_more {
        text.push_str("More entries are held.\n");
    }
    if !held.entries.is_empty() {
        text.push_str(
            "Rephrase one with `klnode edit ENTRY`, or release it with `klnode inbox release \
             ENTRY`.\n",
        );
    }
    text
}

impl OneRecord {
    fn path(&self, rest: &str) -> Result<String, VerbError> {
        let name = part(&self.digest, "a record", "give its digest, or the beginning of it")?;
        Ok(format!("/v1/quarantine/{name}{rest}"))
    }

    async fn decide(self, client: &Client, how: &str) -> Result<Reply, VerbError> {
        let path = self.path(how)?;
        let decided: QuarantineDecision = client.send_json(Method::POST, &path, &()).await?;
        let what = match decided.outcome.as_str() {
            "merged" => "released and stored",
            "known" => "released: a newer record of its author already contains it",
            "forgotten" => "deleted: its entry was forgotten",
            _ => "rejected and deleted",
        };
        let text = format!("{}  {what}  (entry {})\n", short(&decided.digest), decided.entry);
        Ok(Reply::new(&decided, text))
    }
}

impl RejectArgs {
    async fn run(self, client: &Client, ask: ConfirmPrompt<'_>) -> Result<Reply, VerbError> {
        let from = match (self.digest, self.from) {
            (Some(digest), _) => return OneRecord { digest }.decide(client, "/reject").await,
            (None, from) => from.unwrap_or_default(),
        };
        let waiting = waiting(client, Some(&from)).await?;
        // Use the key from here on: a name may be given to another peer meanwhile.
        let Some((peer, name)) = waiting.records.first().map(|one| (&one.peer, &one.peer_name))
        else {
            let text = nothing(Some(&from));
            let (peer, peer_name) = (String::new(), from);
            let done = RejectResult { peer, peer_name, rejected: 0, left: 0 };
            return Ok(Reply::new(&done, text));
        };
        let (total, count, name) = (waiting.total, records(waiting.total), printable(name));
        if !self.yes {
            let question = format!("Delete {count} from {name} for good?");
            let Some(ask) = ask else {
                let message = format!("Rejecting {count} from `{name}` needs a confirmation.");
                return Err(VerbError::NeedsConfirmation(message));
            };
            if !ask(&question) {
                return Err(VerbError::Declined("No record was deleted."));
            }
        }
        let done = delete(client, peer, total).await?;
        let mut text = format!("{} from {name} deleted\n", records(done.rejected));
        if done.left > 0 {
            let _ = writeln!(text, "{} more in quarantine.", done.left);
        }
        Ok(Reply::new(&done, text))
    }
}

/// Fetches quarantined records, of one peer if one is named.
async fn waiting(client: &Client, from: Option<&str>) -> Result<Quarantine, VerbError> {
    let query = match from {
        None => String::new(),
        Some(from) => {
            let wanted = "give its name, or the beginning of its key";
            format!("?from={}", part(from, "a peer", wanted)?)
        }
    };
    Ok(client.get(&format!("/v1/quarantine{query}")).await?)
}

/// Deletes at most `total` records from a peer, the oldest first. Records that arrive meanwhile
/// were not part of the question and stay.
async fn delete(client: &Client, from: &str, total: u64) -> Result<RejectResult, VerbError> {
    let mut rejected = 0;
    loop {
        let limit = Some(total.saturating_sub(rejected));
        let reject = RejectRequest { from: from.to_owned(), limit };
        let path = "/v1/quarantine/reject";
        let answer = client.send_json(Method::POST, path, &reject).await;
        let done: RejectResult = match answer {
            Err(error) if rejected == 0 => return Err(error.into()),
            // Report the records that were deleted before the failure.
            Err(_) => {
                let (peer, left) = (from.to_owned(), total.saturating_sub(rejected));
                return Ok(RejectResult { peer_name: peer.clone(), peer, rejected, left });
            }
            Ok(done) => done,
        };
        rejected += done.rejected;
        if done.rejected == 0 || done.left == 0 || rejected >= total {
            return Ok(RejectResult { rejected, ..done });
        }
    }
}

fn short(digits: &str) -> &str {
    digits.get(..SHORT_DIGITS).unwrap_or(digits)
}

/// The answer for an empty quarantine.
fn nothing(from: Option<&str>) -> String {
    match from {
        None => {
            "No record is in quarantine. The node scans every record from a peer and holds back \
             dangerous ones.\n"
                .to_owned()
        }
        Some("you") => "No record from an imported file is in quarantine.\n".to_owned(),
        Some(name) => format!("No record from {} is in quarantine.\n", printable(name)),
    }
}

fn list(waiting: &Quarantine, from: Option<&str>) -> String {
    if waiting.records.is_empty() {
        return nothing(from);
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
    text.push_str("Run `klnode inbox show RECORD` to read one.\n");
    let listed = waiting.records.len() as u64;
    if waiting.total > listed {
        let _ = writeln!(text, "{} more in quarantine.", waiting.total - listed);
    }
    text
}

/// A name with the beginning of its key, unless the name already contains it.
fn with_key(name: &str, key: &str) -> String {
    let name = printable(name);
    let has = |digits: &str| name == digits || name.ends_with(&format!("({digits})"));
    match key.get(..NAMED_DIGITS).is_some_and(has) {
        true => name,
        false => format!("{name} ({})", short(key)),
    }
}

fn whole(one: &QuarantinedRecord) -> String {
    let mut text = format!(
        "record  {}\nentry   {}\nauthor  {}\nfrom    {}\nsince   {} UTC\nreason  {}\n",
        one.digest,
        one.entry,
        with_key(&one.author_name, &one.author),
        with_key(&one.peer_name, &one.peer),
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
    let _ = writeln!(
        text,
        "Run `klnode inbox release {name}` to store it, or `klnode inbox reject {name}` to delete \
         it."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_api_types::QuarantinedText;

    fn waiting() -> QuarantinedRecord {
        QuarantinedRecord {
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
    fn an_empty_list_says_so_and_a_full_one_names_record_and_reason() {
        let none = Quarantine { total: 0, records: Vec::new() };
        assert!(list(&none, None).starts_with("No record is in quarantine."));
        let text = list(&Quarantine { total: 3, records: vec![waiting()] }, None);
        assert!(text.contains("3f3f3f3f3f3f  abababababab  alice"), "{text}");
        assert!(text.contains("2026-09-21 14:13:20\n    the scan found content: jwt\n"), "{text}");
        assert!(text.ends_with("2 more in quarantine.\n") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_shown_record_quotes_its_texts_line_by_line_and_names_the_next_commands() {
        let text = whole(&waiting());
        assert!(text.contains("\nauthor  alice (010101010101)\nfrom    bob"), "{text}");
        let named = QuarantinedRecord { author_name: "alice (01010101)".into(), ..waiting() };
        assert!(whole(&named).contains("\nauthor  alice (01010101)\nfrom"), "named once");
        assert!(text.contains("content\n  | first\n  | second [redacted: jwt]\n"), "{text}");
        assert!(text.ends_with("reject 3f3f3f3f3f3f` to delete it.\n"), "{text}");
    }
}
