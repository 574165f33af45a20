//! `klnode peer filter` and `preview`: what passes between two nodes, and what does not.

use super::super::harmless::printable;
use super::super::invite::path;
use super::super::{Reply, VerbError, bounded, finite};
use crate::api::Client;
use crate::api::types::peers::{Filter, Filters, Peer, Preview, Previewed, SetFilters};
use crate::query::count::entries;
use hyper::Method;
use klnode_crdt::kind::Kind;
use std::fmt::Write;
use std::path::PathBuf;

/// Filters are a few lines; more is a mistake.
const FILTERS_BYTES_MAX: usize = 256 * 1024;

/// Of what a rule holds back so many are named.
const HELD_SHOWN: usize = 3;

/// What passes.
#[derive(Debug, clap::Args)]
pub struct FilterArgs {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
    /// Set what is taken from it, not what is sent to it.
    ///
    /// Each of the flags below replaces what was set with it before; an empty word clears it, as in
    /// --deny-tag "", and of types, memories and statuses brings back the configuration's. How far an entry is believed, and its status, is found once it is here: that is
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
    /// Begin with the filter of the configuration, which applies again if nothing else is set.
    #[arg(long)]
    pub reset: bool,
    /// Take the filters from a JSON file with `egress` and `ingress`.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only say what would change.
    #[arg(long)]
    pub dry_run: bool,
}

impl FilterArgs {
    /// Whether nothing is to be set: then somebody wants to know what is.
    pub(super) fn is_question(&self) -> bool {
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
        let is_alone = is_alone && !self.reset;
        is_alone && lists.into_iter().all(Vec::is_empty)
    }

    /// Shows what is set, as `peer show` has it; of one direction alone where that is asked for.
    async fn show(self, client: &Client) -> Result<Reply, VerbError> {
        let peer: Peer = client.get(&path(&self.peer, "")?).await?;
        let Filters { egress, ingress } = peer.filters.unwrap_or_default();
        let filters = Filters { egress: egress.filter(|_| !self.from_peer), ingress };
        let text = rows(&filters)
            .into_iter()
            .map(|(name, passes)| format!("{name:<13} {}\n", said(passes)));
        let text = text.collect();
        Ok(Reply::new(&filters, text))
    }

    /// What is to be set.
    fn set(self) -> Result<SetFilters, VerbError> {
        let way = if self.from_peer { "ingress" } else { "egress" };
        let mut reset: Vec<String> = self.reset.then(|| way.to_owned()).into_iter().collect();
        // An empty word stands for a list without any.
        let some = |list: Vec<String>| {
            let is_given = !list.is_empty();
            is_given.then(|| list.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>())
        };
        // A list of these without any would let nothing pass, which nobody means by a word less.
        let mut given = |name: &str, list: Vec<String>| {
            let words = some(list);
            if words.as_ref().is_some_and(Vec::is_empty) {
                reset.push(format!("{way}.{name}"));
            }
            words.filter(|words| !words.is_empty())
        };
        let typed = Filter {
            types: given("types", self.types),
            memories: given("memories", self.memories),
            statuses: given("statuses", self.statuses),
            workspaces: some(self.workspaces),
            tags_allow: some(self.tags_allow),
            tags_deny: some(self.tags_deny),
            confidence_min: self.confidence_min,
            threads_exclude: some(self.threads_exclude),
            reach: self.reach,
        };
        let mut filters = Filters::default();
        if let Some(file) = &self.file {
            let text = bounded::file(file, FILTERS_BYTES_MAX)
                .map_err(|error| VerbError::Input(format!("read {}: {error}", file.display())))?;
            filters = serde_json::from_str(&text)
                .map_err(|error| VerbError::Input(format!("read {}: {error}", file.display())))?;
        }
        if typed != Filter::default() {
            match self.from_peer {
                true => filters.ingress = Some(typed),
                false => filters.egress = Some(typed),
            }
        }
        let Filters { egress, ingress } = filters;
        Ok(SetFilters { egress, ingress, reset })
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if self.is_question() {
            return self.show(client).await;
        }
        let is_dry = self.dry_run;
        let of_peer = path(&self.peer, "")?;
        let path = path(&self.peer, if is_dry { "/preview" } else { "/filter" })?;
        let set = self.set()?;
        let peer: Peer = client.get(&of_peer).await?;
        let seen: Preview = client.send_json(Method::POST, &path, &set).await?;
        let text = turned(&set, &seen, has_approval(&peer), is_dry);
        Ok(Reply::new(&seen, text))
    }
}

/// Whether a node may talk. One that may already may still wait to be what it was offered.
fn has_approval(peer: &Peer) -> bool {
    match peer.state.as_str() {
        "waiting" => peer.sync != "unknown",
        state => state == "approved",
    }
}

/// What changes by new filters.
fn turned(set: &SetFilters, seen: &Preview, is_approved: bool, is_dry: bool) -> String {
    let mut text = String::new();
    let is_of = |way: &str| set.reset.iter().any(|word| word.starts_with(way));
    let is_taken = set.ingress.is_some() || is_of("ingress");
    if let Some(ingress) = seen.filters.ingress.as_ref().filter(|_| is_taken) {
        let changes = if is_dry { "would change" } else { "has changed" };
        let _ = writeln!(text, "What is taken from it {changes}: {}.", said(passes(ingress)));
    }
    if is_taken && set.egress.is_none() && !is_of("egress") {
        return text;
    }
    let will = if is_dry { "would" } else { "will" };
    let (once, now) = if is_approved { ("", " now") } else { ("Once it is approved, ", "") };
    let _ = writeln!(
        text,
        "{once}{} {will}{now} be sent that {} not before, {} no longer.",
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
    text
}

/// What passes, also where nothing is held back.
fn said(passes: String) -> String {
    match passes.is_empty() {
        true => "no filter holds anything back".to_owned(),
        false => passes,
    }
}

/// What passes, both ways, each in one line.
pub(super) fn rows(filters: &Filters) -> Vec<(&'static str, String)> {
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

/// Of which node to show what passes.
#[derive(Debug, clap::Args)]
pub struct PreviewArgs {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
    /// List all that is held back, not the first few by each rule.
    #[arg(long)]
    pub all: bool,
}

impl PreviewArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let peer: Peer = client.get(&path(&self.peer, "")?).await?;
        let path = path(&self.peer, "/preview")?;
        let seen: Preview = client.send_json(Method::POST, &path, &SetFilters::default()).await?;
        let text = preview(&seen, has_approval(&peer), self.all);
        Ok(Reply::new(&seen, text))
    }
}

fn preview(seen: &Preview, is_approved: bool, is_whole: bool) -> String {
    let mut text = String::new();
    let part = |text: &mut String, title: &str, entries: &[Previewed]| {
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
    // What is released was put out; only the peer knows how far it has come.
    part(&mut text, "Has, or fetches when it can", &seen.released);
    let next = if is_approved { "Is about to get" } else { "Gets once it is approved" };
    part(&mut text, next, &seen.would_be);
    part(&mut text, "Will get no more of", &seen.would_end);
    match is_whole {
        true => part(&mut text, "Does not get", &seen.held),
        false => held(&mut text, &seen.held),
    }
    if text.is_empty() {
        text.push_str("There is nothing to share.\n");
    }
    text
}

/// What is held back, rule by rule, the first few by each.
fn held(text: &mut String, entries: &[Previewed]) {
    let mut rules: Vec<(&str, Vec<&Previewed>)> = Vec::new();
    for one in entries {
        let reason = one.reason.as_deref().unwrap_or_default();
        match rules.iter_mut().find(|(rule, _)| *rule == reason) {
            Some((_, by)) => by.push(one),
            None => rules.push((reason, vec![one])),
        }
    }
    if !entries.is_empty() {
        let _ = writeln!(text, "Does not get ({}):", entries.len());
    }
    for (rule, by) in rules {
        let _ = writeln!(text, "  {rule} ({}):", by.len());
        for one in by.iter().take(HELD_SHOWN) {
            let _ = writeln!(text, "    {}  {}", one.code, printable(&one.title));
        }
        let more = by.len().saturating_sub(HELD_SHOWN);
        if more > 0 {
            let _ = writeln!(text, "    and {more} more; --all lists them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn previewed(reason: Option<&str>) -> Previewed {
        let (id, code, title) = ("ab".into(), "L-7F3KQ2MX".into(), "Told\nHas (9):".into());
        Previewed { id, code, title, rule: None, reason: reason.map(str::to_owned) }
    }

    fn seen(released: Vec<Previewed>, held: Vec<Previewed>) -> Preview {
        let (would_be, would_end) = (Vec::new(), Vec::new());
        Preview { filters: Filters::default(), released, would_be, would_end, held }
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
        let text = preview(&seen(vec![previewed(None)], Vec::new()), true, false);
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn what_one_rule_holds_back_does_not_drown_what_another_does() {
        let mut held: Vec<Previewed> = (0..68).map(|_| previewed(Some("main"))).collect();
        held.push(previewed(Some("a denied tag")));
        let of = seen(Vec::new(), held);
        let text = preview(&of, true, false);
        assert!(text.starts_with("Does not get (69):\n  main (68):\n"), "{text}");
        assert!(
            text.contains("    and 65 more; --all lists them\n  a denied tag (1):\n"),
            "{text}"
        );
        assert_eq!(preview(&of, true, true).lines().count(), 70);
    }
}
