//! `klnode status`, `show` and `list`.

use super::harmless::printable;
use super::peer::{off_by, state};
use super::{Reply, Terminal, VerbError, anchors, entry};
use crate::api::Client;
pub(super) use crate::api::escape;
use crate::api::types::peers::Peer;
use crate::api::types::{self, Entry, IndexStatus, Status};
use crate::query::count::{entries, records};
use crate::query::shell;
use serde::Serialize;
use std::fmt::Write;

pub(super) async fn status(client: &Client) -> Result<Reply, VerbError> {
    let status: Status = client.get("/v1/status").await?;
    let waiting = match status.quarantined {
        0 => String::new(),
        count => format!(", {} in quarantine", records(count)),
    };
    let peer = |peer: &Peer| {
        let (name, key) = (printable(&peer.name), &peer.peer[..8]);
        format!("  peer   {name} ({key}): {}\n", state(peer))
    };
    let peers: String = status.peers.iter().map(peer).collect();
    let addresses: String =
        status.addresses.iter().map(|address| format!("  reach  {address}\n")).collect();
    let person = match status.is_unprotected {
        true => "  person none: the node is unprotected; `klnode person new` changes that\n",
        false => "",
    };
    let clock = status.clocks_ahead.map(clock).unwrap_or_default();
    let text = format!(
        "klnode {} is running.\n  node   {}\n  home   {}\n  store  {}{waiting}\n  index  {}\n{person}{clock}{addresses}{peers}",
        status.version,
        status.node,
        status.home,
        entries(status.entries),
        index(&status.index),
    );
    Ok(Reply::new(&status, text))
}

/// That this clock disagrees with most: it is likelier than they to be wrong.
fn clock(ahead_millis: i64) -> String {
    let off_by = off_by(ahead_millis.saturating_neg());
    format!("  clock  {off_by} those of most peers: is it set right?\n")
}

fn index(index: &IndexStatus) -> String {
    let mut text = match index.lag {
        0 => "up to date".to_owned(),
        lag => format!("{} behind, which searches read from the store", records(lag)),
    };
    if let Some(rebuild) = &index.rebuild {
        text.push_str(&format!("; making vectors: {} of {}", rebuild.done, rebuild.total));
    }
    if let Some(fault) = &index.fault {
        text.push_str(&format!("; cannot {fault}; it tries again by itself"));
    }
    text
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
    /// At most so many [default: 50].
    #[arg(short = 'n', long)]
    pub limit: Option<usize>,
    /// Those after this entry.
    #[arg(long, value_name = "ENTRY")]
    pub after: Option<String>,
    /// Those of this workspace, by name or id.
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// Those of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
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
        let limit = at_least_one(self.limit)?.map(|limit| limit.to_string());
        let which = [
            ("workspace", self.workspace),
            ("type", self.kind),
            ("tag", self.tag),
            ("thread", self.thread),
            ("status", self.status),
        ];
        let mut again = limit.as_ref().map(|limit| format!(" -n {limit}")).unwrap_or_default();
        let mut query: Vec<(&str, String)> = Vec::new();
        for (name, value) in which {
            let Some(value) = value else { continue };
            again.push_str(&format!(" --{name} {}", shell::word(&value)));
            query.push((name, value));
        }
        let flags = [("proposed", self.proposed), ("hidden", self.hidden)];
        for (name, _) in flags.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            again.push_str(&format!(" --{name}"));
            query.push((name, "true".to_owned()));
        }
        let is_chosen = !query.is_empty();
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
        if count == 0 && is_chosen {
            text.push_str("Nothing is like that.\n");
        } else if count == 0 {
            text.push_str("Nothing yet. `klnode add --help` shows how to write the first entry.\n");
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

/// The path of an entry.
pub(super) fn path(entry: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(entry, "an entry", "a code, an id or its beginning is wanted")?;
    Ok(format!("/v1/entries/{name}{rest}"))
}

/// What was typed as the name of something, as one part of a path. Nothing would be another path.
pub(super) fn part(name: &str, of: &str, wanted: &str) -> Result<String, VerbError> {
    match name.trim().is_empty() {
        true => Err(VerbError::Input(format!("find {of} without a name: {wanted}"))),
        false => Ok(escape(name)),
    }
}

/// How many are to be listed: at least one.
pub(super) fn at_least_one(limit: Option<usize>) -> Result<Option<usize>, VerbError> {
    match limit {
        Some(0) => Err(VerbError::Input("list nothing: -n is 0; it must be 1 or more".to_owned())),
        limit => Ok(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_says_which_way_this_clock_is_off() {
        let told = "  clock  3600 s behind those of most peers: is it set right?\n";
        assert_eq!(clock(3_600_000), told);
        assert_eq!(clock(-3_600_000), told.replace("behind", "ahead of"));
    }
}
