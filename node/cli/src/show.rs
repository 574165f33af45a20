//! `klnode status`, `show` and `list`: the state of the node, one entry, or a page of entries.

use super::api_path::{entry_path, escape};
use super::event_stream::Watch;
use super::peer::{off_by, standing};
use super::pipe_gate::{allow_in_pipe, untrusted_because};
use super::sanitize::printable;
use super::{
    OutputReader, Reply, VerbError, anchors, entry_links, history, promotion_ledger, render_entry,
};
use klnode_api_types::peers::Peer;
use klnode_api_types::{self, Entry, IndexStatus, NodeStatus};
use klnode_client::Client;
use klnode_text::plural::{entries, records};
use klnode_text::shell_quote;
use serde::Serialize;
use std::fmt::Write;

pub(super) async fn status(client: &Client) -> Result<Reply, VerbError> {
    let status: NodeStatus = client.get("/v1/status").await?;
    let text = screen(&status);
    Ok(Reply::new(&status, text))
}

/// The state of the node on one screen.
fn screen(status: &NodeStatus) -> String {
    let waiting = match status.quarantined {
        0 => String::new(),
        count => format!(", {} in quarantine", records(count)),
    };
    let peer = |peer: &Peer| {
        let (name, key) = (printable(&peer.name), &peer.peer[..8]);
        format!("  peer   {name} ({key}): {}\n", standing(peer))
    };
    let peers: String = status.peers.iter().map(peer).collect();
    let addresses: String =
        status.addresses.iter().map(|address| format!("  reach  {address}\n")).collect();
    let person = match status.is_unprotected {
        true => {
            "  person none: your user account alone protects this node (see `klnode identity new`)\n"
        }
        false => "",
    };
    let clock = status.clocks_ahead.map(clock).unwrap_or_default();
    format!(
        "klnode {} is running.\n  node   {}\n  home   {}\n  store  {}{waiting}\n  index  {}\n  health {}\n{person}{clock}{addresses}{peers}",
        status.version,
        status.node,
        status.home,
        entries(status.entries),
        index(&status.index),
        health(&status.attention),
    )
}

/// A line with everything that needs the operator's attention.
fn health(attention: &[String]) -> String {
    let things = match attention.len() {
        0 => return "in order".to_owned(),
        1 => "1 thing needs".to_owned(),
        many => format!("{many} things need"),
    };
    format!("{things} your attention: {}", printable(&attention.join("; ")))
}

/// A warning that this clock differs from the clocks of most peers, so it is probably wrong.
fn clock(ahead_millis: i64) -> String {
    let off_by = off_by(ahead_millis.saturating_neg());
    format!("  clock  {off_by} the clocks of most peers; check that it is set correctly\n")
}

fn index(index: &IndexStatus) -> String {
    let mut parts = match (index.lag, &index.fault) {
        // A faulty index may report no lag because it has not started.
        (0, Some(_)) => Vec::new(),
        (0, None) => vec!["up to date".to_owned()],
        (lag, _) => vec![format!("{} behind; searches read them from the store", records(lag))],
    };
    if let Some(rebuild) = &index.rebuild {
        parts.push(format!("making vectors: {} of {}", rebuild.done, rebuild.total));
    }
    if let Some(of) = index.transformer.as_ref().filter(|of| of.done < of.total) {
        parts.push(format!("transformer: {} of {} entries done (until then, words and the built-in table find the others)", of.done, of.total));
    }
    if let Some(fault) = &index.fault {
        parts
            .push(format!("stalled ({}); the node retries by itself", fault.trim_end_matches('.')));
    }
    parts.join("; ")
}

/// The entry to show.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The entry: id, code or unambiguous prefix of the code.
    pub entry: String,
    /// Also print untrusted text into a pipe. A terminal always shows it.
    #[arg(long)]
    pub all: bool,
    /// Explain why it may be retrieved or not: the score, the share of each signal, and the
    /// matching rules of the content scan.
    #[arg(long)]
    pub explain: bool,
    /// Show the records of the entry instead: each statement with author, time and caller.
    #[arg(long, conflicts_with = "explain")]
    pub history: bool,
    /// Show the typed links around the entry instead, in both directions.
    #[arg(long, conflicts_with_all = ["explain", "history"])]
    pub links: bool,
    /// With --links: the most steps from the entry, from 1 to 8 [default: 1].
    #[arg(long, value_name = "STEPS", requires = "links")]
    pub depth: Option<usize>,
    /// With --links: only links of this relation, such as uses.
    #[arg(long, value_name = "NAME", requires = "links")]
    pub relation: Option<String>,
}

impl Show {
    pub(super) async fn run(
        self,
        client: &Client,
        terminal: OutputReader,
    ) -> Result<Reply, VerbError> {
        if self.history {
            return history::run(&self.entry, self.all, client, terminal).await;
        }
        if self.links {
            let relation = self.relation.as_deref();
            return entry_links::run(&self.entry, self.depth, relation, client).await;
        }
        let checkout = anchors::here().map(|here| format!("?checkout={}", escape(&here)));
        let path = entry_path(&self.entry, checkout.as_deref().unwrap_or_default())?;
        let mut found: Entry = client.get(&path).await?;
        if !self.all && terminal == OutputReader::Pipe {
            let Entry { foreign, gate, status, code, .. } = &found;
            allow_in_pipe(code, (*foreign, gate, status))?;
            // Proposals and contradictions are only counted, or named in a caveat.
            found.proposed.clear();
            found.rivals.clear();
            // An untrusted version is still listed, with author and time but without its text.
            for version in found.versions.iter_mut().filter(|of| of.gate == "shut" && !of.shown) {
                version.text.clear();
            }
        }
        let mut text = render_entry::whole(&found);
        if self.explain {
            text.push_str(&render_entry::explained(&found));
        }
        Ok(Reply::new(&found, text))
    }
}

/// The entries to list.
#[derive(Debug, Default, clap::Args)]
pub struct EntryListArgs {
    /// The most entries to list, from 1 to 1000 [default: 50].
    #[arg(short = 'n', long)]
    pub limit: Option<usize>,
    /// Start after this entry.
    #[arg(long, value_name = "ENTRY")]
    pub after: Option<String>,
    /// Order by the last change, newest first, instead of by id.
    #[arg(long)]
    pub recent: bool,
    /// Only entries of this workspace, by name or id.
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// Only entries of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Only entries of this sub-type, such as bug.
    #[arg(long)]
    pub sub_type: Option<String>,
    /// Only entries of this memory: semantic, procedural or episodic.
    #[arg(long)]
    pub memory: Option<String>,
    /// Only entries with this tag, or a tag below it.
    #[arg(long)]
    pub tag: Option<String>,
    /// Only entries of this thread.
    #[arg(long)]
    pub thread: Option<String>,
    /// Only entries with this status. Retracted entries are listed only with `retracted`.
    #[arg(long)]
    pub status: Option<String>,
    /// Only proposals: no author that is shown here states them. `klnode inbox accept` accepts one.
    #[arg(long)]
    pub proposed: bool,
    /// Only entries that you muted or marked wrong: no search finds them.
    #[arg(long)]
    pub hidden: bool,
    /// List promotions instead: the source, the new entry, its evidence, the approver and the
    /// reason of each.
    #[arg(long, conflicts_with_all = ["limit", "after", "recent", "workspace", "kind", "sub_type",
        "memory", "tag", "thread", "status", "proposed", "hidden", "all", "follow"])]
    pub promoted: bool,
    /// Also print untrusted entries into a pipe. A terminal always shows them, with a label.
    #[arg(long)]
    pub all: bool,
    /// Print a line for each change as it happens, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["limit", "after", "recent", "workspace", "kind", "sub_type",
        "memory", "tag", "thread", "status", "proposed", "hidden", "all"])]
    pub follow: bool,
    /// With --follow: start after this position in the feed [default: changes from now on].
    #[arg(long, value_name = "SEQ", requires = "follow")]
    pub since: Option<u64>,
}

/// The JSON form of a page.
#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    list: klnode_api_types::EntryPage,
    /// Untrusted entries of the page that were not printed into a pipe.
    left_out: usize,
}

impl EntryListArgs {
    /// The subscription, if the command line asks to follow changes.
    pub fn watch(&self) -> Option<Watch> {
        self.follow.then_some(Watch { since: self.since })
    }

    pub(super) async fn run(
        self,
        client: &Client,
        terminal: OutputReader,
        program: &str,
    ) -> Result<Reply, VerbError> {
        if self.promoted {
            return promotion_ledger::list(client).await;
        }
        let limit = self.limit.map(|limit| limit.to_string());
        let which = [
            ("workspace", self.workspace),
            ("type", self.kind),
            ("sub_type", self.sub_type),
            ("memory", self.memory),
            ("tag", self.tag),
            ("thread", self.thread),
            ("status", self.status),
        ];
        let mut again = limit.as_ref().map(|limit| format!(" -n {limit}")).unwrap_or_default();
        let mut query: Vec<(&str, String)> = Vec::new();
        for (name, value) in which {
            let Some(value) = value else { continue };
            let flag = name.replace('_', "-");
            again.push_str(&format!(" --{flag} {}", shell_quote::word(&value)));
            query.push((name, value));
        }
        let flags = [("proposed", self.proposed), ("hidden", self.hidden)];
        for (name, _) in flags.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            again.push_str(&format!(" --{name}"));
            query.push((name, "true".to_owned()));
        }
        let is_chosen = !query.is_empty();
        if self.recent {
            again.push_str(" --recent");
            query.push(("recent", "true".to_owned()));
        }
        let is_first = self.after.is_none();
        query.extend(limit.map(|limit| ("limit", limit)));
        query.extend(self.after.map(|after| ("after", after)));
        let query: Vec<String> =
            query.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
        let mut list: klnode_api_types::EntryPage =
            client.get(&format!("/v1/entries?{}", query.join("&"))).await?;
        let (count, last) = (list.entries.len(), list.entries.last().map(|last| last.code.clone()));
        if !self.all && terminal == OutputReader::Pipe {
            list.entries.retain(|of| {
                // A proposal is text of other authors, so it is untrusted.
                !render_entry::is_only_proposed(of)
                    && untrusted_because((of.foreign, &of.gate, &of.status)).is_none()
            });
        }
        let mut text: String = list.entries.iter().map(render_entry::line).collect();
        if count == 0 {
            text.push_str(nothing(client, is_chosen, is_first).await?);
        }
        let (left_out, mut notes) = (count - list.entries.len(), String::new());
        if left_out > 0 {
            let left_out = entries(left_out as u64);
            let _ = writeln!(
                notes,
                "{left_out} hidden as untrusted because output is not a terminal; use --all to \
                 list them."
            );
        }
        if let Some(last) = list.next.as_ref().and(last) {
            let all = if self.all { " --all" } else { "" };
            let _ = writeln!(notes, "For more, run: {program} list{again}{all} --after {last}");
        }
        // An empty later page is no miss: earlier pages may have held entries.
        let is_missed = count == 0 && is_chosen && is_first;
        let reply = Reply::new(&Page { list, left_out }, text).with_notes(notes);
        Ok(if is_missed { reply.with_exit_code(1) } else { reply })
    }
}

/// The text for an empty page.
async fn nothing(
    client: &Client,
    is_chosen: bool,
    is_first: bool,
) -> Result<&'static str, VerbError> {
    match (is_chosen, is_first) {
        (true, _) => return Ok("No entry matches.\n"),
        (false, false) => return Ok("No entry comes after it.\n"),
        (false, true) => {}
    }
    // The store still holds retracted entries, and `klnode status` counts them.
    let gone: klnode_api_types::EntryPage =
        client.get("/v1/entries?status=retracted&limit=1").await?;
    Ok(match gone.entries.is_empty() {
        true => "No entries yet. `klnode add --help` shows how to write the first one.\n",
        false => "Only retracted entries. `klnode list --status retracted` lists them.\n",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn peer(byte: &str, of: &Value) -> Value {
        let mut all = json!({
            "peer": byte.repeat(32), "name": "", "state": "approved", "mine": false,
            "blocked": false, "connected": true, "addresses": [], "workspaces": [],
            "sync": "unknown", "refused": 0, "released": 0, "offered": 0, "since": 0,
        });
        let fields = of.as_object().expect("fields");
        all.as_object_mut().expect("fields").extend(fields.clone());
        all
    }

    /// A node with a peer of each sort.
    fn among_peers() -> Value {
        let paired = json!({"name": "laptop", "mine": true, "sync": "equal", "sync_at": 0});
        let waiting = json!({"name": "v\nm", "state": "waiting"});
        let asked = json!({"name": "hub", "asked": true});
        let gone =
            json!({"name": "nas", "connected": false, "sync": "equal", "sync_at": 0, "refused": 2});
        json!({
            "node": "0f0f", "version": "1.2.3", "home": "/home/you/klnode", "entries": 2,
            "head": 9, "quarantined": 3, "is_unprotected": true, "as_of": 0,
            "index": {
                "documents": 2, "vectors": 1, "lag": 4, "rebuild": {"done": 1, "total": 2},
                "fault": "The embedder cannot be reached.",
            },
            "addresses": ["/ip4/10.0.0.1/tcp/4600"],
            "peers": [
                peer("aa", &paired), peer("bb", &waiting), peer("cc", &asked), peer("dd", &gone),
            ],
            "attention": ["3 records in quarantine", "v\nm (bbbbbbbb) waits"],
        })
    }

    #[test]
    fn the_status_has_one_line_per_fact() {
        let status: NodeStatus = serde_json::from_value(among_peers()).expect("a status");
        let told = "\
klnode 1.2.3 is running.
  node   0f0f
  home   /home/you/klnode
  store  2 entries, 3 records in quarantine
  index  4 records behind; searches read them from the store; making vectors: 1 of 2; stalled (The embedder cannot be reached); the node retries by itself
  health 2 things need your attention: 3 records in quarantine; v m (bbbbbbbb) waits
  person none: your user account alone protects this node (see `klnode identity new`)
  reach  /ip4/10.0.0.1/tcp/4600
  peer   laptop (aaaaaaaa): connected, in sync at 1970-01-01 00:00:00 UTC
  peer   v m (bbbbbbbb): waits for `klnode peer approve`
  peer   hub (cccccccc): asked; its operator has not approved yet
  peer   nas (dddddddd): not connected, last in sync at 1970-01-01 00:00:00 UTC, 2 records refused
";
        assert_eq!(screen(&status), told);
    }

    #[test]
    fn the_status_of_a_healthy_node_has_no_warnings() {
        let mut quiet = among_peers();
        quiet["quarantined"] = json!(0);
        quiet["index"] = json!({"documents": 2, "vectors": 2, "lag": 0});
        quiet["is_unprotected"] = json!(false);
        quiet["clocks_ahead"] = json!(3_600_000);
        for name in ["addresses", "peers", "attention"] {
            quiet[name] = json!([]);
        }
        let status: NodeStatus = serde_json::from_value(quiet).expect("a status");
        let told = "\
klnode 1.2.3 is running.
  node   0f0f
  home   /home/you/klnode
  store  2 entries
  index  up to date
  health in order
  clock  3600 s behind the clocks of most peers; check that it is set correctly
";
        assert_eq!(screen(&status), told);
        assert!(health(&["one".to_owned()]).starts_with("1 thing needs your attention: one"));
    }

    #[test]
    fn status_says_whether_the_clock_is_ahead_or_behind() {
        let told =
            "  clock  3600 s behind the clocks of most peers; check that it is set correctly\n";
        assert_eq!(clock(3_600_000), told);
        assert_eq!(clock(-3_600_000), told.replace("behind", "ahead of"));
    }
}
