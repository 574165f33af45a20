//! `klnode status`, `show` and `list`.

use super::harmless::printable;
use super::peer::{off_by, standing};
use super::{Reply, Terminal, VerbError, anchors, entry};
pub(super) use crate::api::escape;
use crate::api::types::peers::Peer;
use crate::api::types::{self, Entry, IndexStatus, Status};
use crate::api::{self, Client};
use crate::query::count::{entries, records};
use crate::query::shell;
use serde::Serialize;
use std::fmt::Write;

pub(super) async fn status(client: &Client) -> Result<Reply, VerbError> {
    let status: Status = client.get("/v1/status").await?;
    let text = screen(&status);
    Ok(Reply::new(&status, text))
}

/// The node on one screen.
fn screen(status: &Status) -> String {
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
        true => "  person none: the node is unprotected; `klnode person new` changes that\n",
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

/// Whether anything wants the operator's attention, and what.
fn health(attention: &[String]) -> String {
    let things = match attention.len() {
        0 => return "in order".to_owned(),
        1 => "1 thing wants".to_owned(),
        many => format!("{many} things want"),
    };
    format!("{things} your attention: {}", printable(&attention.join("; ")))
}

/// That this clock disagrees with most: it is likelier than they to be wrong.
fn clock(ahead_millis: i64) -> String {
    let off_by = off_by(ahead_millis.saturating_neg());
    format!("  clock  {off_by} those of most peers: is it set right?\n")
}

fn index(index: &IndexStatus) -> String {
    let mut parts = match (index.lag, &index.fault) {
        // It may be that nothing is behind because nothing could be begun.
        (0, Some(_)) => Vec::new(),
        (0, None) => vec!["up to date".to_owned()],
        (lag, _) => vec![format!("{} behind, which searches read from the store", records(lag))],
    };
    if let Some(rebuild) = &index.rebuild {
        parts.push(format!("making vectors: {} of {}", rebuild.done, rebuild.total));
    }
    if let Some(fault) = &index.fault {
        parts.push(format!("cannot {fault}; it tries again by itself"));
    }
    parts.join("; ")
}

/// Which entry to show.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Whatever it is. So it is on a terminal; a pipe gets only what may speak unasked.
    #[arg(long)]
    pub all: bool,
    /// Say why it may be retrieved, or may not: the score, what each signal adds, and which rules of
    /// the scan matched.
    #[arg(long)]
    pub explain: bool,
}

impl Show {
    pub(super) async fn run(self, client: &Client, terminal: Terminal) -> Result<Reply, VerbError> {
        let checkout = anchors::here().map(|here| format!("?checkout={}", escape(&here)));
        let path = path(&self.entry, checkout.as_deref().unwrap_or_default())?;
        let mut found: Entry = client.get(&path).await?;
        if !self.all && terminal == Terminal::Pipe {
            let Entry { foreign, gate, status, code, .. } = &found;
            may_speak("show", code, (*foreign, gate, status))?;
            // They are counted, or told by a caveat: what they say is not what is shown.
            found.proposed.clear();
            found.rivals.clear();
            // A version that a program may not read unasked is still listed, with author and time.
            for version in found.versions.iter_mut().filter(|of| of.gate == "shut" && !of.shown) {
                version.text.clear();
            }
        }
        let mut text = entry::whole(&found);
        if self.explain {
            text.push_str(&entry::explained(&found));
        }
        Ok(Reply::new(&found, text))
    }
}

/// Why an entry may not enter an answer that nobody looks at first.
fn kept_back((foreign, gate, status): (bool, &str, &str)) -> Option<&'static str> {
    match (foreign, gate, status) {
        (true, "shut", _) => {
            Some("it is by no member of its workspace, and nobody here has seen it work")
        }
        (true, _, "rejected") => Some("the node rejects it"),
        _ => None,
    }
}

/// Refuses what a person alone may look at: what is not a terminal may be an agent.
pub(super) fn may_speak(
    verb: &str,
    code: &str,
    judged: (bool, &str, &str),
) -> Result<(), VerbError> {
    let Some(why) = kept_back(judged) else { return Ok(()) };
    Err(VerbError::Failed(format!(
        "{verb} {code}: {why}; a person can read it on a terminal, or with --all"
    )))
}

/// Which entries to list.
#[derive(Debug, clap::Args)]
pub struct List {
    /// At most so many, from 1 to 1000 [default: 50].
    #[arg(short = 'n', long)]
    pub limit: Option<usize>,
    /// Those after this entry.
    #[arg(long, value_name = "ENTRY")]
    pub after: Option<String>,
    /// Newest change first, instead of in the order of ids.
    #[arg(long)]
    pub recent: bool,
    /// Those of this workspace, by name or id.
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// Those of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Those of this sub-type, such as bug.
    #[arg(long)]
    pub sub_type: Option<String>,
    /// Those of this memory: semantic, procedural or episodic.
    #[arg(long)]
    pub memory: Option<String>,
    /// Those with this tag, or one below it.
    #[arg(long)]
    pub tag: Option<String>,
    /// Those of this thread.
    #[arg(long)]
    pub thread: Option<String>,
    /// Those that stand so here. What was taken back is listed with `retracted` alone.
    #[arg(long)]
    pub status: Option<String>,
    /// Those that are only proposed: nobody whose word is shown here says them; `klnode accept` does.
    #[arg(long)]
    pub proposed: bool,
    /// Those that you muted or invalidated: no search finds them.
    #[arg(long)]
    pub hidden: bool,
    /// Everything, labelled. So it is on a terminal; a pipe gets only what may speak unasked.
    #[arg(long)]
    pub all: bool,
}

/// A page of a listing, as it is printed.
#[derive(Serialize)]
struct Page {
    #[serde(flatten)]
    list: types::List,
    /// Entries of the page that may not speak unasked, which a pipe does not get.
    left_out: usize,
}

impl List {
    pub(super) async fn run(
        self,
        client: &Client,
        terminal: Terminal,
        program: &str,
    ) -> Result<Reply, VerbError> {
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
            again.push_str(&format!(" --{flag} {}", shell::word(&value)));
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
        let mut list: types::List = client.get(&format!("/v1/entries?{}", query.join("&"))).await?;
        let (count, last) = (list.entries.len(), list.entries.last().map(|last| last.code.clone()));
        if !self.all && terminal == Terminal::Pipe {
            list.entries.retain(|of| {
                // What is proposed is others' word, whatever else is known of the entry.
                !entry::is_only_proposed(of)
                    && kept_back((of.foreign, &of.gate, &of.status)).is_none()
            });
        }
        let mut text: String = list.entries.iter().map(entry::line).collect();
        if count == 0 {
            text.push_str(nothing(client, is_chosen, is_first).await?);
        }
        let (left_out, mut notes) = (count - list.entries.len(), String::new());
        if left_out > 0 {
            let left_out = entries(left_out as u64);
            let _ = writeln!(
                notes,
                "Left out of a pipe: {left_out} that may not speak unasked; `--all` lists them."
            );
        }
        if let Some(last) = list.next.as_ref().and(last) {
            let all = if self.all { " --all" } else { "" };
            let _ = writeln!(notes, "More with: {program} list{again}{all} --after {last}");
        }
        // Of a later page nobody knows here what the pages before it held.
        let is_missed = count == 0 && is_chosen && is_first;
        let reply = Reply::new(&Page { list, left_out }, text).noting(notes);
        Ok(if is_missed { reply.ending(1) } else { reply })
    }
}

/// What is said where nothing is listed.
async fn nothing(
    client: &Client,
    is_chosen: bool,
    is_first: bool,
) -> Result<&'static str, VerbError> {
    match (is_chosen, is_first) {
        (true, _) => return Ok("Nothing is like that.\n"),
        (false, false) => return Ok("Nothing comes after it.\n"),
        (false, true) => {}
    }
    // What was taken back is held, and `status` counts it.
    let gone: types::List = client.get("/v1/entries?status=retracted&limit=1").await?;
    Ok(match gone.entries.is_empty() {
        true => "Nothing yet. `klnode add --help` shows how to write the first entry.\n",
        false => "Nothing but what was taken back: `klnode list --status retracted` lists it.\n",
    })
}

/// The path of an entry.
pub(super) fn path(entry: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(entry, "an entry", "a code, an id or its beginning is wanted")?;
    Ok(format!("/v1/entries/{name}{rest}"))
}

/// What was typed as the name of something, as one part of a path.
pub(super) fn part(name: &str, of: &str, wanted: &str) -> Result<String, VerbError> {
    api::part(name, of, wanted).map_err(VerbError::Input)
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
                "fault": "reach the embedder",
            },
            "addresses": ["/ip4/10.0.0.1/tcp/4600"],
            "peers": [
                peer("aa", &paired), peer("bb", &waiting), peer("cc", &asked), peer("dd", &gone),
            ],
            "attention": ["3 records in quarantine", "v\nm (bbbbbbbb) waits"],
        })
    }

    #[test]
    fn the_whole_status_is_one_line_for_each_thing_that_is_told() {
        let status: Status = serde_json::from_value(among_peers()).expect("a status");
        let told = "\
klnode 1.2.3 is running.
  node   0f0f
  home   /home/you/klnode
  store  2 entries, 3 records in quarantine
  index  4 records behind, which searches read from the store; making vectors: 1 of 2; cannot reach the embedder; it tries again by itself
  health 2 things want your attention: 3 records in quarantine; v m (bbbbbbbb) waits
  person none: the node is unprotected; `klnode person new` changes that
  reach  /ip4/10.0.0.1/tcp/4600
  peer   laptop (aaaaaaaa): connected, equal at 1970-01-01 00:00:00 UTC
  peer   v m (bbbbbbbb): waits for `klnode peer approve`
  peer   hub (cccccccc): asked, its operator has not said yes
  peer   nas (dddddddd): not connected, last equal at 1970-01-01 00:00:00 UTC, 2 records refused
";
        assert_eq!(screen(&status), told);
    }

    #[test]
    fn the_status_of_a_node_that_is_in_order_says_so_and_nothing_that_is_not_the_case() {
        let mut quiet = among_peers();
        quiet["quarantined"] = json!(0);
        quiet["index"] = json!({"documents": 2, "vectors": 2, "lag": 0});
        quiet["is_unprotected"] = json!(false);
        quiet["clocks_ahead"] = json!(3_600_000);
        for name in ["addresses", "peers", "attention"] {
            quiet[name] = json!([]);
        }
        let status: Status = serde_json::from_value(quiet).expect("a status");
        let told = "\
klnode 1.2.3 is running.
  node   0f0f
  home   /home/you/klnode
  store  2 entries
  index  up to date
  health in order
  clock  3600 s behind those of most peers: is it set right?
";
        assert_eq!(screen(&status), told);
        assert!(health(&["one".to_owned()]).starts_with("1 thing wants your attention: one"));
    }

    #[test]
    fn status_says_which_way_this_clock_is_off() {
        let told = "  clock  3600 s behind those of most peers: is it set right?\n";
        assert_eq!(clock(3_600_000), told);
        assert_eq!(clock(-3_600_000), told.replace("behind", "ahead of"));
    }
}
