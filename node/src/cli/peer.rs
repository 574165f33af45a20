//! `klnode peer` and `sync`: other nodes, what they may have, and how far they are in sync.

use super::harmless::printable;
use super::invite::path;
use super::when::moment;
use super::{Reply, VerbError, finite};
use crate::api::Client;
use crate::api::types::peers::{
    Decide, Decision, Filter, Filters, Peer, Peers, Preview, Previewed, SetFilters, Sync, Synced,
    Trust,
};
use crate::query::count::{counted, entries, records};
use hyper::Method;
use klnode_crdt::kind::Kind;
use std::fmt::Write;
use std::path::PathBuf;

/// What to do about other nodes.
#[derive(Debug, clap::Subcommand)]
pub enum PeerVerb {
    /// List other nodes.
    ///
    /// Example: klnode peer list
    List,
    /// Show one, with filters, trust and how far it is in sync.
    ///
    /// Example: klnode peer show alice
    Show(OnePeer),
    /// Let a node that waits talk to this one.
    ///
    /// Example: klnode peer approve alice
    Approve(OnePeer),
    /// Say no to a node that waits.
    ///
    /// Example: klnode peer refuse 1a2b3c4d
    Refuse(OnePeer),
    /// Refuse what a key signs from now on; what it takes back is still heard.
    ///
    /// Example: klnode peer block alice
    Block(OnePeer),
    /// Take what a key signs again, and ask for what was refused.
    ///
    /// Example: klnode peer unblock alice
    Unblock(OnePeer),
    /// Talk to a node no longer.
    ///
    /// Example: klnode peer remove alice
    Remove(OnePeer),
    /// Set what a node is sent, or with --from-peer what is taken from it.
    ///
    /// Without a flag that says what to set, it shows what is set, and changes nothing.
    ///
    /// Example: klnode peer filter alice --deny-tag private --min-confidence 0.5
    Filter(Box<FilterArgs>),
    /// Show what a node has, what it is about to get, and what is held back by which rule.
    ///
    /// Example: klnode peer preview alice
    Preview(OnePeer),
}

/// One node.
#[derive(Debug, clap::Args)]
pub struct OnePeer {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
}

/// What passes.
#[derive(Debug, clap::Args)]
pub struct FilterArgs {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
    /// Set what is taken from it, not what is sent to it.
    ///
    /// Each of the flags below replaces what was set with it before; an empty word clears it, as in
    /// --deny-tag "". How far an entry is believed, and its status, is found once it is here: that is
    /// asked of what is sent alone.
    #[arg(long)]
    pub from_peer: bool,
    /// Only these workspaces; may be given more than once.
    #[arg(long = "workspace", value_name = "NAME")]
    pub workspaces: Vec<String>,
    /// Only entries with one of these tags.
    #[arg(long = "allow-tag", value_name = "TAG")]
    pub tags_allow: Vec<String>,
    /// No entries with one of these tags.
    #[arg(long = "deny-tag", value_name = "TAG")]
    pub tags_deny: Vec<String>,
    /// Only entries believed at least so far, from 0 to 1.
    #[arg(long = "min-confidence", value_name = "MEAN", value_parser = finite, conflicts_with = "from_peer")]
    pub confidence_min: Option<f64>,
    /// Only these types.
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only these memories.
    #[arg(long = "memory", value_name = "MEMORY")]
    pub memories: Vec<String>,
    /// Nothing of these threads.
    #[arg(long = "exclude-thread", value_name = "THREAD")]
    pub threads_exclude: Vec<String>,
    /// created_here, or also_relayed.
    #[arg(long, value_name = "REACH")]
    pub reach: Option<String>,
    /// Only these statuses.
    #[arg(long = "status", value_name = "STATUS", conflicts_with = "from_peer")]
    pub statuses: Vec<String>,
    /// Take the filters from a JSON file with `egress` and `ingress`.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only say what would change.
    #[arg(long)]
    pub dry_run: bool,
}

impl PeerVerb {
    pub(super) fn needs_person(&self) -> bool {
        match self {
            Self::List | Self::Show(_) | Self::Preview(_) => false,
            Self::Filter(filter) => !filter.dry_run && !filter.is_question(),
            Self::Approve(_)
            | Self::Refuse(_)
            | Self::Block(_)
            | Self::Unblock(_)
            | Self::Remove(_) => true,
        }
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::List => {
                let peers: Peers = client.get("/v1/peers").await?;
                Ok(Reply::new(&peers, list(&peers)))
            }
            Self::Show(one) => {
                let peer: Peer = client.get(&path(&one.peer, "")?).await?;
                Ok(Reply::new(&peer, whole(&peer)))
            }
            Self::Approve(one) => one.decide(client, Decision::Approve, "may talk now").await,
            Self::Refuse(one) => one.decide(client, Decision::Refuse, "was told no").await,
            Self::Block(one) => one.decide(client, Decision::Block, "is blocked").await,
            Self::Unblock(one) => one.decide(client, Decision::Unblock, "is heard again").await,
            Self::Remove(one) => one.decide(client, Decision::Remove, "was sent away").await,
            Self::Filter(filter) => filter.run(client).await,
            Self::Preview(one) => {
                let path = path(&one.peer, "/preview")?;
                let set = SetFilters::default();
                let seen: Preview = client.send_json(Method::POST, &path, &set).await?;
                let text = preview(&seen);
                Ok(Reply::new(&seen, text))
            }
        }
    }
}

impl OnePeer {
    async fn decide(
        self,
        client: &Client,
        decision: Decision,
        what: &str,
    ) -> Result<Reply, VerbError> {
        let path = path(&self.peer, "/decision")?;
        let peer: Peer = client.send_json(Method::POST, &path, &Decide { decision }).await?;
        let text = format!("{}  {what}\n", called(&peer));
        Ok(Reply::new(&peer, text))
    }
}

impl FilterArgs {
    /// Whether nothing is to be set: then somebody wants to know what is.
    fn is_question(&self) -> bool {
        let lists = [
            &self.workspaces,
            &self.tags_allow,
            &self.tags_deny,
            &self.types,
            &self.memories,
            &self.threads_exclude,
            &self.statuses,
        ];
        let is_alone = self.confidence_min.is_none() && self.reach.is_none() && self.file.is_none();
        is_alone && lists.into_iter().all(Vec::is_empty)
    }

    /// Shows what is set, as `peer show` has it; of one direction alone where that is asked for.
    async fn show(self, client: &Client) -> Result<Reply, VerbError> {
        let peer: Peer = client.get(&path(&self.peer, "")?).await?;
        let Filters { egress, ingress } = peer.filters.unwrap_or_default();
        let filters = Filters { egress: egress.filter(|_| !self.from_peer), ingress };
        let text = rows(&filters).into_iter().map(|(name, passes)| {
            let passes = Some(passes).filter(|passes| !passes.is_empty());
            let passes = passes.unwrap_or_else(|| "no filter holds anything back".to_owned());
            format!("{name:<13} {passes}\n")
        });
        let text = text.collect();
        Ok(Reply::new(&filters, text))
    }

    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if self.is_question() {
            return self.show(client).await;
        }
        // An empty word stands for a list without any.
        let some = |list: Vec<String>| {
            let is_given = !list.is_empty();
            is_given.then(|| list.into_iter().filter(|word| !word.is_empty()).collect())
        };
        let mut filters = Filters::default();
        if let Some(file) = &self.file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| VerbError::Input(format!("read {}: {error}", file.display())))?;
            filters = serde_json::from_str(&text)
                .map_err(|error| VerbError::Input(format!("read {}: {error}", file.display())))?;
        }
        let typed = Filter {
            workspaces: some(self.workspaces),
            tags_allow: some(self.tags_allow),
            tags_deny: some(self.tags_deny),
            confidence_min: self.confidence_min,
            types: some(self.types),
            memories: some(self.memories),
            threads_exclude: some(self.threads_exclude),
            reach: self.reach,
            statuses: some(self.statuses),
        };
        if typed != Filter::default() {
            match self.from_peer {
                true => filters.ingress = Some(typed),
                false => filters.egress = Some(typed),
            }
        }
        let Filters { egress, ingress } = filters;
        let set = SetFilters { egress, ingress };
        let path = path(&self.peer, if self.dry_run { "/preview" } else { "/filter" })?;
        let seen: Preview = client.send_json(Method::POST, &path, &set).await?;
        let will = if self.dry_run { "would" } else { "will" };
        let mut text = format!(
            "{} {will} now be sent that {} not before, {} no longer.\n",
            entries(seen.would_be.len() as u64),
            if seen.would_be.len() == 1 { "was" } else { "were" },
            seen.would_end.len(),
        );
        for one in &seen.would_be {
            let _ = writeln!(text, "  + {}  {}", one.code, printable(&one.title));
        }
        for one in &seen.would_end {
            let _ = writeln!(text, "  - {}  {}", one.code, printable(&one.title));
        }
        Ok(Reply::new(&seen, text))
    }
}

/// With whom to replicate now.
#[derive(Debug, clap::Args)]
pub struct SyncArgs {
    /// Its name, its key or peer id, or the beginning of its key; all, if none is given.
    pub peer: Option<String>,
}

impl SyncArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let sync = Sync { peer: self.peer };
        let synced: Synced = client.send_json(Method::POST, "/v1/sync", &sync).await?;
        let mut text = String::new();
        for peer in &synced.peers {
            let _ = writeln!(text, "{}  {}", called(peer), state(peer));
        }
        if synced.peers.is_empty() {
            text.push_str("Nobody to replicate with. `klnode invite --help` shows how to pair.\n");
        }
        let _ = writeln!(text, "{} came in.", records(synced.received));
        let is_equal = synced.peers.iter().all(|peer| peer.connected && peer.sync == "equal");
        Ok(Reply::new(&synced, text).ending(u8::from(!is_equal)))
    }
}

fn called(peer: &Peer) -> String {
    format!("{} ({})", peer.name, &peer.peer[..8])
}

/// How far a peer is in sync, in words that are true.
pub(super) fn state(peer: &Peer) -> String {
    let last = || match peer.sync_at {
        Some(at) => format!("; last equal at {} UTC", moment(at)),
        None => String::new(),
    };
    let refused = match peer.refused {
        0 => String::new(),
        count => format!(", {} refused", records(count)),
    };
    let known = match (peer.sync.as_str(), peer.differs, peer.sync_at) {
        ("equal", _, Some(at)) if peer.connected => format!("equal at {} UTC", moment(at)),
        ("equal", _, Some(at)) => format!("last equal at {} UTC", moment(at)),
        ("differs", Some(count), Some(at)) => {
            format!("{} differed at {} UTC", records(count), moment(at))
        }
        ("reading", _, Some(at)) if !peer.connected => format!("last equal at {} UTC", moment(at)),
        ("reading", ..) => format!("reading{}", last()),
        ("refused", ..) => {
            format!("does not talk: {}", peer.reason.as_deref().unwrap_or("no reason given"))
        }
        _ => format!("not compared yet{}", last()),
    };
    let connected = if peer.connected { "connected" } else { "not connected" };
    format!("{connected}, {known}{refused}")
}

fn list(peers: &Peers) -> String {
    let mut text = String::new();
    for address in &peers.addresses {
        let _ = writeln!(text, "reachable at  {address}");
    }
    for peer in &peers.peers {
        let what = match (peer.state.as_str(), peer.mine, peer.workspaces.as_slice()) {
            ("waiting", ..) => "waits for `klnode peer approve`".to_owned(),
            ("refused", ..) => "refused".to_owned(),
            (_, true, _) => "yours".to_owned(),
            (_, false, []) => "paired".to_owned(),
            (_, false, shared) => format!("member of {}", shared.join(", ")),
        };
        let code = peer.code.as_ref().map(|code| format!(", code {code}")).unwrap_or_default();
        let blocked = if peer.blocked { ", blocked" } else { "" };
        let _ = writeln!(text, "{}  {what}{blocked}{code}; {}", called(peer), state(peer));
    }
    if peers.peers.is_empty() {
        text.push_str("Nobody yet. `klnode invite --help` shows how to pair.\n");
    }
    for away in &peers.turned_away {
        let _ = writeln!(
            text,
            "turned away {} at {} UTC: {}",
            &away.peer[..8],
            moment(away.at),
            away.reason
        );
    }
    text
}

fn whole(peer: &Peer) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<13} {value}");
        }
    };
    put("name", peer.name.clone());
    put("key", peer.peer.clone());
    let kind = if peer.mine { "another machine of yours" } else { peer.state.as_str() };
    put("state", format!("{kind}{}", if peer.blocked { ", blocked" } else { "" }));
    put("workspaces", peer.workspaces.join(", "));
    put("sync", state(peer));
    for refused in &peer.refused_for {
        put("refused", format!("{}: {}", records(refused.records), refused.reason));
    }
    put("released", format!("{} to it, {} from it", entries(peer.released), peer.offered));
    for address in &peer.addresses {
        put("address", address.clone());
    }
    put("code", peer.code.clone().unwrap_or_default());
    if let Some(ahead) = peer.clock_ahead.filter(|ahead| ahead.unsigned_abs() > 60_000) {
        put("clock", format!("{} this node's", off_by(ahead)));
    }
    put("known since", format!("{} UTC", moment(peer.since)));
    if let Some(trust) = &peer.trust {
        put("trust", trusted(trust));
        put("weight", weighed(trust));
        put("last 60 days", format!("{}  (full height is 1)", plot(&trust.series)));
    }
    if let Some(filters) = &peer.filters {
        for (name, passes) in rows(filters) {
            put(name, passes);
        }
    }
    text
}

/// How far one clock is ahead of another, whose name follows.
pub(super) fn off_by(ahead_millis: i64) -> String {
    let which = if ahead_millis < 0 { "behind" } else { "ahead of" };
    format!("{} s {which}", ahead_millis.unsigned_abs() / 1_000)
}

/// How far its texts are trusted, and why.
fn trusted(trust: &Trust) -> String {
    let mut text = format!(
        "{:.2}: {} of its texts helped here, {} misled",
        trust.value, trust.successes, trust.failures
    );
    let _ = write!(
        text,
        " (Beta({:.1}, {:.1}), 10 % bound {:.2}; of the last {}: {:.2})",
        trust.alpha, trust.beta, trust.of_all, trust.recent_outcomes, trust.of_recent
    );
    if trust.successes_ignored > 0 {
        let _ = write!(text, ", {} successes beyond five a day", trust.successes_ignored);
    }
    if trust.left < 0.995 {
        let _ = write!(text, ", {:.0} % of it has not faded", trust.left * 100.0);
    }
    text
}

fn weighed(trust: &Trust) -> String {
    match trust.hop {
        Some(0) => "1.00: it counts as this node".to_owned(),
        Some(hop) => {
            let hops = counted(u64::from(hop), "hop", "hops");
            format!("{:.2} of an own observation, {hops} away", trust.weight)
        }
        None => "0.00: nobody near says how far away it is".to_owned(),
    }
}

/// Numbers from 0 to 1 as a row of bars, two days each.
fn plot(series: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |days: &[f64]| {
        let highest = days.iter().copied().fold(0.0, f64::max);
        let step = (highest * BARS.len() as f64) as usize;
        BARS[step.min(BARS.len() - 1)]
    };
    series.chunks(2).map(bar).collect()
}

/// What passes, both ways, each in one line.
fn rows(filters: &Filters) -> Vec<(&'static str, String)> {
    let both = [("is sent", &filters.egress), ("is taken", &filters.ingress)];
    both.into_iter().filter_map(|(name, of)| Some((name, passes(of.as_ref()?)))).collect()
}

/// A filter in one line: what differs from taking everything.
fn passes(filter: &Filter) -> String {
    let mut parts = Vec::new();
    let mut list = |name: &str, words: &Option<Vec<String>>| {
        if let Some(words) = words.as_ref().filter(|words| !words.is_empty()) {
            parts.push(format!("{name} {}", words.join(", ")));
        }
    };
    list("workspaces", &filter.workspaces);
    list("with tags", &filter.tags_allow);
    list("not with tags", &filter.tags_deny);
    list("not of threads", &filter.threads_exclude);
    let types = filter.types.as_ref().filter(|types| types.len() < Kind::ALL.len());
    let chosen = [
        ("types", types),
        ("memories", filter.memories.as_ref()),
        ("statuses", filter.statuses.as_ref()),
    ];
    for (name, words) in chosen {
        // An empty list of these lets nothing pass.
        parts.extend(words.map(|words| match words.is_empty() {
            true => format!("no {name}"),
            false => format!("{name} {}", words.join(", ")),
        }));
    }
    if let Some(least) = filter.confidence_min.filter(|least| *least > 0.0) {
        parts.push(format!("believed at least {least:.2}"));
    }
    if filter.reach.as_deref() == Some("created_here") {
        parts.push("created by the sender".to_owned());
    }
    parts.join("; ")
}

fn preview(seen: &Preview) -> String {
    let mut text = String::new();
    let mut part = |title: &str, entries: &[Previewed]| {
        if entries.is_empty() {
            return;
        }
        let _ = writeln!(text, "{title} ({}):", entries.len());
        for one in entries {
            let reason =
                one.reason.as_ref().map(|reason| format!("  ({reason})")).unwrap_or_default();
            let _ = writeln!(text, "  {}  {}{reason}", one.code, printable(&one.title));
        }
    };
    part("Has", &seen.released);
    part("Is about to get", &seen.would_be);
    part("Will get no more of", &seen.would_end);
    part("Does not get", &seen.held);
    if text.is_empty() {
        text.push_str("There is nothing to share.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_ahead_or_behind_and_never_ahead_by_less_than_nothing() {
        assert_eq!(off_by(3_600_500), "3600 s ahead of");
        assert_eq!(off_by(-3_600_500), "3600 s behind");
    }

    #[test]
    fn a_filter_says_what_it_keeps_out_and_an_empty_list_is_not_everything() {
        let all = |of: Vec<&str>| Some(of.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let every: Vec<&str> = Kind::ALL.iter().map(|row| row.1).collect();
        let reach = Some("also_relayed".to_owned());
        let open = Filter { types: all(every), reach, ..Filter::default() };
        assert_eq!(passes(&open), "");
        let narrow = Filter { types: all(vec!["lesson"]), memories: all(vec![]), ..open };
        assert_eq!(passes(&narrow), "types lesson; no memories");
    }

    #[test]
    fn a_title_takes_one_row_of_a_preview_whatever_is_in_it() {
        let (id, code, title) = ("ab".into(), "L-7F3KQ2MX".into(), "Told\nHas (9):".into());
        let one = Previewed { id, code, title, rule: None, reason: None };
        let seen = Preview {
            filters: Filters::default(),
            released: vec![one],
            would_be: Vec::new(),
            would_end: Vec::new(),
            held: Vec::new(),
        };
        assert_eq!(preview(&seen).lines().count(), 2, "{}", preview(&seen));
    }
}
