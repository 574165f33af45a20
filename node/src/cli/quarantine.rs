//! `klnode quarantine`: what peers brought and the scan holds back.

use super::harmless::printable;
use super::read::part;
use super::when::moment;
use super::{Ask, Reply, VerbError};
use crate::api::Client;
use crate::api::types::{Decided, Quarantine, Quarantined, RejectFrom, RejectedFrom};
use crate::query::count::records;
use hyper::Method;
use std::fmt::Write;

/// Digits of a digest or key that tell most records apart.
const SHORT_DIGITS: usize = 12;
/// Digits of a key in the name of an author whose name is not enough.
const NAMED_DIGITS: usize = 8;

/// What to do about what waits.
#[derive(Debug, clap::Subcommand)]
pub enum QuarantineVerb {
    /// List what waits, oldest first, with the reason.
    ///
    /// Example: klnode quarantine list
    List(ListArgs),
    /// Show one record, without the secrets that the scan knows and without what would instruct a reader.
    ///
    /// Example: klnode quarantine show 3f9a1c
    Show(OneRecord),
    /// Take a record in, whatever the scan says. It is shown and passed on from then on.
    ///
    /// Example: klnode quarantine release 3f9a1c
    Release(OneRecord),
    /// Throw a record away, or all that one node has brought; where it was offered it is not asked for
    /// again.
    ///
    /// With `--from` it asks first. Where there is no terminal `--yes` is needed.
    ///
    /// Example: klnode quarantine reject --from alice
    Reject(RejectArgs),
}

/// Which of what waits to list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only what this node has brought: its name, its key or the beginning of its key; `you` for what
    /// came out of a file.
    #[arg(long, value_name = "PEER")]
    pub from: Option<String>,
}

/// What to throw away.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("which").required(true).args(["digest", "from"])))]
pub struct RejectArgs {
    /// Its digest, or an unambiguous beginning of 4 digits or more.
    pub digest: Option<String>,
    /// Everything that this node has brought: its name, its key or the beginning of its key; `you` for
    /// what came out of a file.
    #[arg(long, value_name = "PEER")]
    pub from: Option<String>,
    /// Do not ask.
    #[arg(long, requires = "from")]
    pub yes: bool,
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

    pub(super) async fn run(self, client: &Client, ask: Ask<'_>) -> Result<Reply, VerbError> {
        match self {
            Self::List(ListArgs { from }) => {
                let waiting = waiting(client, from.as_deref()).await?;
                Ok(Reply::new(&waiting, list(&waiting, from.as_deref())))
            }
            Self::Show(one) => {
                let waiting: Quarantined = client.get(&one.path("")?).await?;
                Ok(Reply::new(&waiting, whole(&waiting)))
            }
            Self::Release(one) => one.decide(client, "/release").await,
            Self::Reject(reject) => reject.run(client, ask).await,
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

impl RejectArgs {
    async fn run(self, client: &Client, ask: Ask<'_>) -> Result<Reply, VerbError> {
        let from = match (self.digest, self.from) {
            (Some(digest), _) => return OneRecord { digest }.decide(client, "/reject").await,
            (None, from) => from.unwrap_or_default(),
        };
        let waiting = waiting(client, Some(&from)).await?;
        // By its key from here on: a name may come to mean another.
        let Some((peer, name)) = waiting.records.first().map(|one| (&one.peer, &one.peer_name))
        else {
            let text = nothing(Some(&from));
            let (peer, peer_name) = (String::new(), from);
            let done = RejectedFrom { peer, peer_name, rejected: 0, left: 0 };
            return Ok(Reply::new(&done, text));
        };
        let (total, count, name) = (waiting.total, records(waiting.total), printable(name));
        if !self.yes {
            let question = format!("Throw away {count} that {name} has brought, for good?");
            let Some(ask) = ask else {
                let told = format!("reject {count} that `{name}` has brought without a yes");
                return Err(VerbError::Unsaid(told));
            };
            if !ask(&question) {
                return Err(VerbError::Declined("Nothing was thrown away."));
            }
        }
        let done = throw_away(client, peer, total).await?;
        let mut text = format!("{} that {name} has brought: thrown away\n", records(done.rejected));
        if done.left > 0 {
            let _ = writeln!(text, "{} more wait.", done.left);
        }
        Ok(Reply::new(&done, text))
    }
}

/// What waits; of what one node has brought, if one is named.
async fn waiting(client: &Client, from: Option<&str>) -> Result<Quarantine, VerbError> {
    let query = match from {
        None => String::new(),
        Some(from) => {
            let wanted = "its name, or the beginning of its key is wanted";
            format!("?from={}", part(from, "a peer", wanted)?)
        }
    };
    Ok(client.get(&format!("/v1/quarantine{query}")).await?)
}

/// Throws away so many of what a node has brought, the oldest first: what comes meanwhile was not
/// asked about.
async fn throw_away(client: &Client, from: &str, total: u64) -> Result<RejectedFrom, VerbError> {
    let mut rejected = 0;
    loop {
        let limit = Some(total.saturating_sub(rejected));
        let reject = RejectFrom { from: from.to_owned(), limit };
        let path = "/v1/quarantine/reject";
        let answer = client.send_json(Method::POST, path, &reject).await;
        let done: RejectedFrom = match answer {
            Err(error) if rejected == 0 => return Err(error.into()),
            // What is left cannot be thrown away; that much was.
            Err(_) => {
                let (peer, left) = (from.to_owned(), total.saturating_sub(rejected));
                return Ok(RejectedFrom { peer_name: peer.clone(), peer, rejected, left });
            }
            Ok(done) => done,
        };
        rejected += done.rejected;
        if done.rejected == 0 || done.left == 0 || rejected >= total {
            return Ok(RejectedFrom { rejected, ..done });
        }
    }
}

fn short(digits: &str) -> &str {
    digits.get(..SHORT_DIGITS).unwrap_or(digits)
}

/// That nothing waits, of what one node has brought if one is named.
fn nothing(from: Option<&str>) -> String {
    match from {
        None => {
            "Nothing waits. What peers bring is scanned first; what is grave would wait here.\n\
                 `klnode peer list` shows who brings something.\n"
                .to_owned()
        }
        Some("you") => "Nothing waits that came out of a file.\n".to_owned(),
        Some(name) => format!("Nothing waits that {} has brought.\n", printable(name)),
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
    text.push_str("`klnode quarantine show RECORD` shows one, and what can be done.\n");
    let listed = waiting.records.len() as u64;
    if waiting.total > listed {
        let _ = writeln!(text, "{} more wait.", waiting.total - listed);
    }
    text
}

/// A name beside the beginning of its key, unless the name has that already.
fn known(name: &str, key: &str) -> String {
    let name = printable(name);
    let has = |digits: &str| name == digits || name.ends_with(&format!("({digits})"));
    match key.get(..NAMED_DIGITS).is_some_and(has) {
        true => name,
        false => format!("{name} ({})", short(key)),
    }
}

fn whole(one: &Quarantined) -> String {
    let mut text = format!(
        "record  {}\nentry   {}\nauthor  {}\nfrom    {}\nsince   {} UTC\nreason  {}\n",
        one.digest,
        one.entry,
        known(&one.author_name, &one.author),
        known(&one.peer_name, &one.peer),
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
        assert!(list(&none, None).starts_with("Nothing waits."));
        let text = list(&Quarantine { total: 3, records: vec![waiting()] }, None);
        assert!(text.contains("3f3f3f3f3f3f  abababababab  alice"), "{text}");
        assert!(text.contains("2026-09-21 14:13:20\n    the scan found content: jwt\n"), "{text}");
        assert!(text.ends_with("2 more wait.\n") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn a_shown_record_quotes_its_texts_line_by_line_and_says_what_can_be_done() {
        let text = whole(&waiting());
        assert!(text.contains("\nauthor  alice (010101010101)\nfrom    bob"), "{text}");
        let named = Quarantined { author_name: "alice (01010101)".into(), ..waiting() };
        assert!(whole(&named).contains("\nauthor  alice (01010101)\nfrom"), "named once");
        assert!(text.contains("content\n  | first\n  | second [redacted: jwt]\n"), "{text}");
        assert!(text.ends_with("reject 3f3f3f3f3f3f`\n"), "{text}");
    }
}
