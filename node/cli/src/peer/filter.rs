//! `klnode peer filter` and `preview`: the entries that two nodes exchange, and those held back.

use super::super::api_path::peer_path;
use super::super::sanitize::printable;
use super::super::{Reply, VerbError, finite, read_limited};
use hyper::Method;
use klnode_api_types::peers::{Filter, FilterUpdate, Filters, Peer, Preview, PreviewedEntry};
use klnode_client::Client;
use klnode_crdt::entry_type::EntryType;
use klnode_text::plural::entries;
use std::fmt::Write;
use std::path::PathBuf;

/// The most bytes of a filter file, which has a few lines.
const FILTERS_BYTES_MAX: usize = 256 * 1024;

/// The most entries named for each rule that holds entries back.
const HELD_SHOWN: usize = 3;

/// The rules to set.
#[derive(Debug, clap::Args)]
pub struct FilterArgs {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
    /// Set the filter for entries accepted from the peer, instead of those sent to it.
    ///
    /// Each flag below replaces its earlier value. An empty value clears it, as in --deny-tag "";
    /// for types, memories and statuses it restores the configured value. Confidence and status are
    /// computed on this node, so they can filter only entries that are sent.
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
    /// Only entries with at least this confidence, from 0 to 1.
    #[arg(long = "min-confidence", value_name = "MEAN", value_parser = finite, conflicts_with = "from_peer")]
    pub confidence_min: Option<f64>,
    /// Only these types.
    #[arg(long = "type", value_name = "TYPE")]
    pub types: Vec<String>,
    /// Only these memories.
    #[arg(long = "memory", value_name = "MEMORY")]
    pub memories: Vec<String>,
    /// No entries of these threads.
    #[arg(long = "exclude-thread", value_name = "THREAD")]
    pub threads_exclude: Vec<String>,
    /// created_here, or also_relayed.
    #[arg(long, value_name = "REACH")]
    pub reach: Option<String>,
    /// Only these statuses.
    #[arg(long = "status", value_name = "STATUS", conflicts_with = "from_peer")]
    pub statuses: Vec<String>,
    /// Start from the filter of the configuration.
    #[arg(long)]
    pub reset: bool,
    /// Read the filters from a JSON file with `egress` and `ingress`.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Show the effect without changing the filter.
    #[arg(long)]
    pub dry_run: bool,
}

impl FilterArgs {
    /// Whether no rule was given, so that the present filter is shown.
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

    /// Shows the present filters, or only the one for accepted entries.
    async fn show(self, client: &Client) -> Result<Reply, VerbError> {
        let peer: Peer = client.get(&peer_path(&self.peer, "")?).await?;
        let Filters { egress, ingress } = peer.filters.unwrap_or_default();
        let filters = Filters { egress: egress.filter(|_| !self.from_peer), ingress };
        let text = rows(&filters)
            .into_iter()
            .map(|(name, passes)| format!("{name:<13} {}\n", or_everything(passes)));
        let text = text.collect();
        Ok(Reply::new(&filters, text))
    }

    /// The filters to send to the node.
    fn set(self) -> Result<FilterUpdate, VerbError> {
        let way = if self.from_peer { "ingress" } else { "egress" };
        let mut reset: Vec<String> = self.reset.then(|| way.to_owned()).into_iter().collect();
        // An empty value stands for an empty list.
        let some = |list: Vec<String>| {
            let is_given = !list.is_empty();
            is_given.then(|| list.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>())
        };
        // An empty list of these would block every entry, so it restores the configured value.
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
            let text = read_limited::file(file, FILTERS_BYTES_MAX).map_err(|error| {
                VerbError::Input(format!("Cannot read {}: {error}.", file.display()))
            })?;
            filters = serde_json::from_str(&text).map_err(|error| {
                VerbError::Input(format!("Cannot read {}: {error}.", file.display()))
            })?;
        }
        if typed != Filter::default() {
            match self.from_peer {
                true => filters.ingress = Some(typed),
                false => filters.egress = Some(typed),
            }
        }
        let Filters { egress, ingress } = filters;
        Ok(FilterUpdate { egress, ingress, reset })
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        if self.is_question() {
            return self.show(client).await;
        }
        let is_dry = self.dry_run;
        let of_peer = peer_path(&self.peer, "")?;
        let path = peer_path(&self.peer, if is_dry { "/preview" } else { "/filter" })?;
        let set = self.set()?;
        let peer: Peer = client.get(&of_peer).await?;
        let seen: Preview = client.send_json(Method::POST, &path, &set).await?;
        let text = effect(&set, &seen, has_approval(&peer), is_dry);
        Ok(Reply::new(&seen, text))
    }
}

/// Whether a node is paired. A paired node may still wait for the role it was offered.
fn has_approval(peer: &Peer) -> bool {
    match peer.state.as_str() {
        "waiting" => peer.sync != "unknown",
        state => state == "approved",
    }
}

/// The effect of new filters.
fn effect(set: &FilterUpdate, seen: &Preview, is_approved: bool, is_dry: bool) -> String {
    let mut text = String::new();
    let is_of = |way: &str| set.reset.iter().any(|word| word.starts_with(way));
    let is_taken = set.ingress.is_some() || is_of("ingress");
    if let Some(ingress) = seen.filters.ingress.as_ref().filter(|_| is_taken) {
        let changes = if is_dry { "would change" } else { "has changed" };
        let _ = writeln!(
            text,
            "The filter for accepted entries {changes}: {}.",
            or_everything(passes(ingress))
        );
    }
    if is_taken && set.egress.is_none() && !is_of("egress") {
        return text;
    }
    let will = if is_dry { "would" } else { "will" };
    let (once, now) = if is_approved { ("", " now") } else { ("Once it is approved, ", "") };
    let _ = writeln!(
        text,
        "{once}{} {will}{now} be sent that {} not sent before; {} {will} no longer be sent.",
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

/// The rules of a filter, or a note that there is none.
fn or_everything(passes: String) -> String {
    match passes.is_empty() {
        true => "everything".to_owned(),
        false => passes,
    }
}

/// The filters in both directions, one line each.
pub(super) fn rows(filters: &Filters) -> Vec<(&'static str, String)> {
    let both = [("is sent", &filters.egress), ("is accepted", &filters.ingress)];
    both.into_iter().filter_map(|(name, of)| Some((name, passes(of.as_ref()?)))).collect()
}

/// The rules of a filter on one line; empty if every entry passes.
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
    let types = filter.types.as_ref().filter(|types| types.len() < EntryType::ALL.len());
    let chosen = [
        ("types", types),
        ("memories", filter.memories.as_ref()),
        ("statuses", filter.statuses.as_ref()),
    ];
    for (name, words) in chosen {
        // An empty list of these blocks every entry.
        parts.extend(words.map(|words| match words.is_empty() {
            true => format!("no {name}"),
            false => format!("{name} {}", words.join(", ")),
        }));
    }
    if let Some(least) = filter.confidence_min.filter(|least| *least > 0.0) {
        parts.push(format!("confidence at least {least:.2}"));
    }
    if filter.reach.as_deref() == Some("created_here") {
        parts.push("created by the sender".to_owned());
    }
    parts.join("; ")
}

/// The peer to preview.
#[derive(Debug, clap::Args)]
pub struct PreviewArgs {
    /// Its name, its key or peer id, or the beginning of its key.
    pub peer: String,
    /// List all entries that are held back, not the first few of each rule.
    #[arg(long)]
    pub all: bool,
}

impl PreviewArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let peer: Peer = client.get(&peer_path(&self.peer, "")?).await?;
        let path = peer_path(&self.peer, "/preview")?;
        let seen: Preview = client.send_json(Method::POST, &path, &FilterUpdate::default()).await?;
        let text = preview(&seen, has_approval(&peer), self.all);
        Ok(Reply::new(&seen, text))
    }
}

fn preview(seen: &Preview, is_approved: bool, is_whole: bool) -> String {
    let mut text = String::new();
    let part = |text: &mut String, title: &str, entries: &[PreviewedEntry]| {
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
    // Released entries may not have arrived yet; only the peer knows.
    part(&mut text, "Has, or fetches when connected", &seen.released);
    let next = if is_approved { "Will get" } else { "Will get once it is approved" };
    part(&mut text, next, &seen.would_be);
    part(&mut text, "Will get no more updates of", &seen.would_end);
    match is_whole {
        true => part(&mut text, "Does not get", &seen.held),
        false => held(&mut text, &seen.held),
    }
    if text.is_empty() {
        text.push_str("There are no entries to share.\n");
    }
    text
}

/// The entries that are held back, by rule, the first few of each.
fn held(text: &mut String, entries: &[PreviewedEntry]) {
    let mut rules: Vec<(&str, Vec<&PreviewedEntry>)> = Vec::new();
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
            let _ = writeln!(text, "    and {more} more; use --all to list them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn previewed(reason: Option<&str>) -> PreviewedEntry {
        let (id, code, title) = ("ab".into(), "L-7F3KQ2MX".into(), "Told\nHas (9):".into());
        PreviewedEntry { id, code, title, rule: None, reason: reason.map(str::to_owned) }
    }

    fn seen(released: Vec<PreviewedEntry>, held: Vec<PreviewedEntry>) -> Preview {
        let (would_be, would_end) = (Vec::new(), Vec::new());
        Preview { filters: Filters::default(), released, would_be, would_end, held }
    }

    #[test]
    fn a_filter_lists_its_rules_and_an_empty_list_blocks_all() {
        let all = |of: Vec<&str>| Some(of.into_iter().map(str::to_owned).collect::<Vec<_>>());
        let every: Vec<&str> = EntryType::ALL.iter().map(|row| row.1).collect();
        let reach = Some("also_relayed".to_owned());
        let open = Filter { types: all(every), reach, ..Filter::default() };
        assert_eq!(passes(&open), "");
        let narrow = Filter { types: all(vec!["lesson"]), memories: all(vec![]), ..open };
        assert_eq!(passes(&narrow), "types lesson; no memories");
    }

    #[test]
    fn a_title_takes_one_row_of_a_preview() {
        let text = preview(&seen(vec![previewed(None)], Vec::new()), true, false);
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn each_rule_lists_only_its_first_entries() {
        let mut held: Vec<PreviewedEntry> = (0..68).map(|_| previewed(Some("main"))).collect();
        held.push(previewed(Some("a denied tag")));
        let of = seen(Vec::new(), held);
        let text = preview(&of, true, false);
        assert!(text.starts_with("Does not get (69):\n  main (68):\n"), "{text}");
        assert!(
            text.contains("    and 65 more; use --all to list them\n  a denied tag (1):\n"),
            "{text}"
        );
        assert_eq!(preview(&of, true, true).lines().count(), 70);
    }
}
