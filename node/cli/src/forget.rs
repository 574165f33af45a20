//! `klnode forget`: erases an entry on every node, or retracts this node's own statements about it.

use super::api_path::entry_path;
use super::sanitize::printable;
use super::timestamp::moment;
use super::wait_progress::waiting;
use super::{ConfirmPrompt, ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::ErrorKind;
use klnode_api_types::peers::{PeerReceipt, Receipts};
use klnode_api_types::{ChangeResult, Entry};
use klnode_client::{Client, ClientError};
use klnode_crdt::entry_ref::EntryRef;
use klnode_crdt::ids::EntryId;
use klnode_text::plural;

/// The entry to erase, and how.
#[derive(Debug, clap::Args)]
pub struct Forget {
    /// The entry: id, code or unambiguous prefix of the code.
    pub entry: String,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// Wait until no file of the home contains its text any more.
    #[arg(long)]
    pub now: bool,
    /// Only show which peers have erased an entry that was forgotten.
    #[arg(long, conflicts_with = "now")]
    pub status: bool,
    /// Withdraw only the statements of this node. Their text is erased on every node that receives
    /// the retraction; statements of other authors stay.
    #[arg(long, conflicts_with_all = ["now", "status"])]
    pub retract: bool,
}

impl Forget {
    pub(super) async fn run(
        self,
        client: &Client,
        ask: ConfirmPrompt<'_>,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        if self.retract {
            return self.retract(client, ask).await;
        }
        if self.status {
            let receipts: Receipts = client.get(&entry_path(&self.entry, "/receipts")?).await?;
            let text = erased(&receipts);
            return Ok(Reply::new(&receipts, text));
        }
        let question = "Forget it for good, here and on every node that hears of it?";
        let entry = match self.yes {
            true => self.entry,
            false => confirmed(("forget", question), self.entry, client, ask).await?,
        };
        let (rest, under_way) = match self.now {
            true => ("/forget?now=true", "rewriting the store"),
            false => ("/forget", "forgetting"),
        };
        let path = entry_path(&entry, rest)?;
        let asked = client.send_json(Method::POST, &path, &());
        let done: ChangeResult = waiting(under_way, progress, asked).await?;
        let what = match (done.before, self.now) {
            (false, false) => "forgotten",
            (false, true) => "forgotten and erased from every file of this node",
            (true, false) => "was forgotten before",
            (true, true) => "was forgotten before, and is erased from every file of this node",
        };
        let reply = removal_reply(&done, what);
        let note = format!(
            "Run `klnode forget {} --status` to see which peers have erased it.\n",
            done.code
        );
        Ok(if done.before { reply.with_notes(note) } else { reply })
    }

    async fn retract(self, client: &Client, ask: ConfirmPrompt<'_>) -> Result<Reply, VerbError> {
        let question =
            "Retract the statements of this node, here and on every node that hears of it?";
        let entry = match self.yes {
            true => self.entry,
            false => confirmed(("retract", question), self.entry, client, ask).await?,
        };
        let done: ChangeResult =
            client.send_json(Method::POST, &entry_path(&entry, "/retract")?, &()).await?;
        let Some(author) = &done.remains_by else { return Ok(removal_reply(&done, "retracted")) };
        let text = format!(
            "{}  only your own statements were withdrawn: the text by {} is not yours to retract \
             and stays\n",
            done.code,
            printable(author)
        );
        Ok(Reply::new(&done, text))
    }
}

/// The entry to change irrevocably, after the person at the terminal has agreed. Without a terminal
/// only a whole code is accepted, since an abbreviated one may name another entry than intended.
async fn confirmed(
    (verb, question): (&str, &str),
    entry: String,
    client: &Client,
    ask: ConfirmPrompt<'_>,
) -> Result<String, VerbError> {
    let Some(ask) = ask else {
        // The node rejects a text that is no name of an entry.
        if entry.parse::<EntryRef>().is_ok_and(|name| !name.is_whole()) {
            return Err(VerbError::Input(format!(
                "Cannot {verb} `{entry}`: it is not the whole code, and there is no terminal to \
                 ask on. Type the whole code, or add --yes."
            )));
        }
        return Ok(entry);
    };
    let found: Result<Entry, ClientError> = client.get(&entry_path(&entry, "")?).await;
    let (id, shown) = match found {
        // The id in an imported file shows an entry, and only its code removes it: the node rejects
        // the id.
        Ok(found) if !is_code_of(&entry, &found.id) => return Ok(entry),
        Ok(found) => (found.id, format!("{}  {}", found.code, printable(&found.title))),
        Err(ClientError::Refused(why)) => match why.kind {
            // The entry is already gone, so there is no decision left.
            ErrorKind::Forgotten => return Ok(entry),
            // A damaged entry can still be forgotten.
            ErrorKind::Failed => (entry.clone(), format!("{}  cannot be read", printable(&entry))),
            _ => return Err(ClientError::Refused(why).into()),
        },
        Err(error) => return Err(error.into()),
    };
    match ask(&format!("{shown}\n{question}")) {
        true => Ok(id),
        false if verb == "forget" => Err(VerbError::Declined("Nothing was forgotten.")),
        false => Err(VerbError::Declined("Nothing was retracted.")),
    }
}

/// True if a text is the id or code of an entry, or the beginning of the code.
fn is_code_of(text: &str, id: &str) -> bool {
    let range = text.parse::<EntryRef>().map(|name| name.range());
    let id = EntryId::from_hex(id);
    range.is_ok_and(|(first, last)| id.is_some_and(|id| (first..=last).contains(id.as_bytes())))
}

/// The reply for an entry that is gone, with its title.
fn removal_reply(done: &ChangeResult, what: &str) -> Reply {
    let title = done.title.as_deref().map(|title| format!(": {}", printable(title)));
    Reply::new(done, format!("{}  {what}{}\n", done.code, title.unwrap_or_default()))
}

/// Lists the peers that had a forgotten entry, and when each erased it.
fn erased(receipts: &Receipts) -> String {
    let line = |one: &PeerReceipt| {
        let what = match one.erased {
            Some(at) => format!("erased at {} UTC", moment(at)),
            None => "has not confirmed yet".to_owned(),
        };
        let told = match one.told {
            0 => String::new(),
            told => {
                let others = plural::counted(u64::from(told), "other", "others");
                format!("; it told {others}, and {} erased it", one.acknowledged)
            }
        };
        format!("{} ({})  {what}{told}\n", printable(&one.name), &one.peer[..8])
    };
    match receipts.peers.is_empty() {
        true => "No other node ever had it.\n".to_owned(),
        false => receipts.peers.iter().map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_peer_is_singular() {
        let of = |told| PeerReceipt {
            peer: "ab".repeat(32),
            name: "vm".to_owned(),
            erased: None,
            told,
            acknowledged: 0,
        };
        let text = erased(&Receipts { id: String::new(), peers: vec![of(1), of(2)] });
        assert!(text.contains("; it told 1 other, and 0 erased it\n"), "{text}");
        assert!(text.contains("; it told 2 others, and 0 erased it\n"), "{text}");
    }
}
