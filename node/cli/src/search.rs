//! `klnode search`: ranked entries with labels, caveats and explanations.

use super::add::read;
use super::api_path::task_path;
use super::render_entry::prior_evidence;
use super::sanitize::{harmless, printable};
use super::timestamp::day;
use super::{OutputReader, Reply, VerbError, adopted_entries, anchors, diff_query};
use anstyle::{AnsiColor, Style};
use hyper::Method;
use klnode_api_types::search::{Explained, Hit, Search, SearchResponse, TOO_LONG, TOO_MANY};
use klnode_api_types::{Task, TaskConclusion};
use klnode_client::Client;
use klnode_crdt::entry_ref::EntryRef;
use klnode_crdt::entry_type::EntryType;
use klnode_integrations::hooks::quote_frame::{self, DisclaimerState, Quote};
use klnode_scoring::hop::Hop;
use klnode_text::plural::entries;
use std::fmt::Write;
use std::path::PathBuf;

/// The most bytes of a diff.
const DIFF_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The question, and limits on the answer.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The question, in plain words; symbols, paths and error codes are welcome.
    #[arg(required_unless_present = "diff")]
    pub query: Vec<String>,
    /// Ask about a unified diff in this file, or `-` for standard input: about its paths, and the
    /// names, imports and calls of its added lines. Words of a question are added.
    #[arg(long, value_name = "FILE")]
    pub diff: Option<PathBuf>,
    /// The most hits [default: 5].
    #[arg(short = 'n', long = "limit", value_name = "COUNT")]
    pub limit: Option<usize>,
    /// The length of each hit: summary, standard, full or auto.
    #[arg(long)]
    pub tier: Option<String>,
    /// The most tokens of all hits together.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: Option<u32>,
    /// Your role: researcher, planner, debugger, reviewer or executor. Entries for this role rank a
    /// little higher.
    #[arg(long)]
    pub role: Option<String>,
    /// Deviate from the plan. An executor gets an answer only with this flag.
    #[arg(long)]
    pub deviating: bool,
    /// How an executor deviates: bug, missing, blocking or architecture. It gets an answer for the
    /// first three; a change of the architecture is for its planner.
    #[arg(long, value_name = "RULE")]
    pub deviation: Option<String>,
    /// The reviewer that asks, such as security: its own entries rank higher, entries of other
    /// reviewers are left out [default: the reviewer of the task].
    #[arg(long, value_name = "NAME")]
    pub reviewer: Option<String>,
    /// Only entries of this type; may be given more than once.
    #[arg(long = "type", value_name = "TYPE")]
    pub kinds: Vec<String>,
    /// Only entries of this sub-type, such as bug; may be given more than once.
    #[arg(long = "sub-type", value_name = "SUB_TYPE")]
    pub sub_types: Vec<String>,
    /// Only entries with this tag or one below it; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only entries of this workspace; may be given more than once.
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    pub workspaces: Vec<String>,
    /// Only entries of this memory: semantic or procedural.
    #[arg(long = "memory", value_name = "MEMORY")]
    pub memories: Vec<String>,
    /// Your thread, whose entries are included and preferred [default: that of the task or branch].
    #[arg(long)]
    pub thread: Option<String>,
    /// Include entries of every thread.
    #[arg(long, conflicts_with = "only_thread")]
    pub all_threads: bool,
    /// Only entries of that thread.
    #[arg(long, requires = "thread")]
    pub only_thread: bool,
    /// The task you ask in, as `task begin` printed it.
    #[arg(long)]
    pub task: Option<String>,
    /// Include stale entries.
    #[arg(long)]
    pub stale: bool,
    /// Include archived entries.
    #[arg(long)]
    pub archived: bool,
    /// Also print untrusted entries into a pipe. A terminal always shows them, with a label.
    #[arg(long)]
    pub all: bool,
    /// Explain the score: the share of each signal.
    #[arg(long)]
    pub explain: bool,
    /// Rank by the mean of the confidence, not by a sample of it.
    #[arg(long)]
    pub deterministic: bool,
    /// Also show near misses, which are not relevant enough.
    #[arg(long)]
    pub nearest: bool,
    /// Print the hits as a quoted block for a prompt, below the heading "Knowledge Context".
    ///
    /// In a task the block begins with the conclusions of earlier parts of the work, and all blocks
    /// of the task together have at most `retrieval.entries_max` entries.
    #[arg(long, conflicts_with_all = ["explain", "nearest", "debug"])]
    pub context: bool,
    /// List everything that was considered, and why each entry was dropped.
    #[arg(long)]
    pub debug: bool,
    /// The search engine: hybrid, or keyword, vectors or equal for comparison.
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
}

impl Args {
    /// The words of the question, and those of the diff.
    fn question(&self) -> Result<String, VerbError> {
        let mut words = self.query.join(" ");
        let Some(file) = &self.diff else { return Ok(words) };
        let diff = read(file, DIFF_BYTES_MAX)?;
        match diff_query::question(&diff) {
            Some(asked) => words.extend([" ".to_owned(), asked]),
            None if words.is_empty() => {
                let message = "Cannot ask about the diff: it adds no path, name or import.";
                return Err(VerbError::Input(message.to_owned()));
            }
            None => {}
        }
        Ok(words.trim().to_owned())
    }

    pub(super) async fn run(
        self,
        client: &Client,
        terminal: OutputReader,
    ) -> Result<Reply, VerbError> {
        let also = [(self.stale, "stale"), (self.archived, "archived")];
        let search = Search {
            query: self.question()?,
            limit: self.limit,
            tier: self.tier,
            budget: self.budget,
            role: self.role,
            deviating: self.deviating,
            deviation: self.deviation,
            reviewer: self.reviewer,
            context: self.context,
            // A prompt has no use for titles that may not help.
            strong_only: self.context,
            debug: self.debug,
            kinds: self.kinds,
            sub_types: self.sub_types,
            tags: self.tags,
            workspaces: self.workspaces,
            memories: self.memories,
            only_thread: self.thread.clone().filter(|_| self.only_thread),
            thread: self.thread,
            all_threads: self.all_threads,
            task: self.task,
            also: also.iter().filter(|(on, _)| *on).map(|(_, name)| (*name).to_owned()).collect(),
            all: self.all || terminal == OutputReader::Person,
            explain: self.explain,
            deterministic: self.deterministic,
            nearest: self.nearest,
            engine: self.engine,
            checkout: anchors::here(),
            ..Search::default()
        };
        let answer: SearchResponse = client.send_json(Method::POST, "/v1/search", &search).await?;
        if self.context {
            let upstream = match &search.task {
                Some(task) => client.get::<Task>(&task_path(task, "")?).await?.upstream,
                None => Vec::new(),
            };
            let reply = Reply::new(&answer, context_block(&answer, &upstream));
            return Ok(if answer.hits.is_empty() { reply.with_exit_code(1) } else { reply });
        }
        let text = text(&answer) + &left_out(&answer, self.budget) + &withheld(&answer);
        let text = text + &other_threads(&answer) + &by_code(&answer, &search);
        let text = text + &considered(&answer, self.debug);
        let reply = Reply::styled(&answer, text);
        Ok(if answer.hits.is_empty() { reply.with_exit_code(1) } else { reply })
    }
}

const CODE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// When the result of a spike may replace an experiment, for an agent that is given one.
const SPIKE_RULES: &str = "
A spike (S-…) applies if the technology, the constraints and the scale are the same and the code has \
not changed significantly since. If it applies, cite it and say in one sentence why. If it answers \
only a part, adopt that part and name the gap. If you combine several spikes, say that they were not \
tested together. If its hypothesis was another one, trust the answer less.
";

/// The hits as a block for a prompt: a heading, and the quotation that hooks also use.
fn context_block(answer: &SearchResponse, upstream: &[TaskConclusion]) -> String {
    let quotes: Vec<Quote<'_>> = answer.hits.iter().map(Quote::of_hit).collect();
    let body = match (&answer.reason, quotes.is_empty()) {
        (Some(reason), true) => printable(reason),
        (None, true) => "No relevant entries.".to_owned(),
        (_, false) => quote_frame::quotes(&quotes, DisclaimerState::First),
    };
    let concluded = match adopted_entries::conclusions(upstream) {
        lines if lines.is_empty() => lines,
        lines => format!("Conclusions of earlier parts of this work:\n{lines}\n"),
    };
    let has_spike = answer.hits.iter().any(|hit| hit.kind == EntryType::Spike.name());
    let rules = if has_spike { SPIKE_RULES } else { "" };
    format!("## Knowledge Context\n\n{concluded}{}\n{rules}", body.trim_end())
}

fn text(answer: &SearchResponse) -> String {
    let mut text = String::new();
    if answer.is_weak() && !answer.hits.is_empty() {
        text.push_str("No sure answer. Near the topic (`klnode show CODE` prints one):\n");
    }
    for hit in &answer.hits {
        match answer.is_weak() {
            true => put_title(&mut text, hit),
            false => put_hit(&mut text, hit),
        }
    }
    if let Some(reason) = &answer.reason {
        let _ = writeln!(text, "{}", printable(reason));
    }
    if !answer.nearest.is_empty() {
        text.push_str("Nearest:\n");
        for hit in &answer.nearest {
            let title = printable(&hit.title);
            let _ = writeln!(text, "  {}  {:.2}  {title}", hit.code, hit.relevance);
            let label = hit.foreign.then(|| author(hit));
            put_labels(&mut text, label.as_slice());
            put_caveats(&mut text, hit);
        }
    }
    if let Some(fallback) = &answer.fallback {
        let (engine, reason) = (&fallback.engine, harmless(&fallback.reason));
        let _ = writeln!(text, "{WARN}By {engine} alone: {reason}{WARN:#}");
    }
    if let Some(from) = answer.weights_from.as_deref().filter(|from| *from != "the configuration") {
        let _ = writeln!(text, "{DIM}Weights by {from}.{DIM:#}");
    }
    text
}

/// Everything that the search considered, a line each.
fn considered(answer: &SearchResponse, is_debug: bool) -> String {
    if !is_debug {
        return String::new();
    }
    let mut text = format!("Considered {}:\n", entries(answer.considered.len() as u64));
    for one in &answer.considered {
        let what = match (one.place, &one.dropped) {
            (Some(place), _) => format!("hit {place}"),
            (None, Some(reason)) => format!("dropped: {}", printable(reason)),
            (None, None) => "dropped".to_owned(),
        };
        let title = one.title.as_deref().map(printable).unwrap_or_default();
        let _ = writeln!(text, "  {}  {:.2}  {what}  {title}", one.code, one.relevance);
    }
    text
}

/// A hint for a query that is a code.
fn by_code(answer: &SearchResponse, search: &Search) -> String {
    let code = search.query.trim();
    let is_code = code.contains('-') && code.parse::<EntryRef>().is_ok_and(|of| of.is_whole());
    match is_code && answer.hits.is_empty() {
        true => format!("Run `klnode show {code}` to show an entry by its code.\n"),
        false => String::new(),
    }
}

/// The number of hits beyond the budget, with the flag that shows them.
fn left_out(answer: &SearchResponse, budget: Option<u32>) -> String {
    if answer.left_out.is_empty() || (answer.is_weak() && !answer.hits.is_empty()) {
        return String::new();
    }
    let count = answer.left_out.len();
    let said = match budget {
        Some(tokens) if answer.hits.is_empty() => {
            format!("{count} found, but none fits the budget; --budget N, now {tokens}.")
        }
        _ if answer.hits.is_empty() => format!("{count} found, but none fits the budget."),
        _ if answer.left_out.values().any(|why| why == TOO_LONG) => {
            format!("{count} more did not fit; --budget N makes room.")
        }
        _ if answer.left_out.values().any(|why| why == TOO_MANY) => {
            format!("{count} more found; -n N shows more.")
        }
        _ => format!("{count} more are untried; --all shows them."),
    };
    format!("{DIM}{said}{DIM:#}\n")
}

/// The number of untrusted hits that were hidden from a pipe, if there are no other hits.
fn withheld(answer: &SearchResponse) -> String {
    if answer.withheld == 0 || !answer.hits.is_empty() {
        return String::new();
    }
    let count = entries(answer.withheld as u64);
    let hidden = format!("{count} hidden as untrusted because output is not a terminal");
    format!("{DIM}{hidden}; use --all to show them.{DIM:#}\n")
}

/// The number of relevant entries in other threads, with the flag that shows them.
fn other_threads(answer: &SearchResponse) -> String {
    if answer.other_threads == 0 {
        return String::new();
    }
    let count = entries(answer.other_threads as u64);
    format!("{DIM}{count} in other threads hidden; use --all-threads to show them.{DIM:#}\n")
}

/// Adds a hit of a weak answer, as one line.
fn put_title(text: &mut String, hit: &Hit) {
    let marks: String = hit.title_marks().iter().map(|mark| format!("  ({mark})")).collect();
    let title = printable(&hit.title);
    let _ = writeln!(text, "{CODE}{}{CODE:#}  {title}{WARN}{marks}{WARN:#}", hit.citation());
    put_explained(text, hit);
}

fn put_hit(text: &mut String, hit: &Hit) {
    let _ = writeln!(
        text,
        "{CODE}{}{CODE:#}  {:<9}  {:>3.0} %  {}{}",
        hit.citation(),
        hit.status,
        hit.mean * 100.0,
        printable(&hit.title),
        if hit.pinned { "  (pinned)" } else { "" },
    );
    // A bar before each line keeps content apart from the labels below it.
    for line in harmless(hit.content.trim_end()).lines() {
        let _ = writeln!(text, "{}", format!("    | {line}").trim_end());
    }
    let mut labels = hit.labels();
    labels.extend((!hit.tags.is_empty()).then(|| hit.tags.join(", ")));
    let cited = hit.citations.iter().map(|of| format!("{}:{}", of.evidence_type, of.evidence_ref));
    let cited: Vec<String> = cited.collect();
    labels.extend((!cited.is_empty()).then(|| cited.join(", ")));
    labels.extend(hit.foreign.then(|| author(hit)));
    labels.extend(hit.updated.map(day));
    labels.extend(hit.note.clone().map(|note| format!("note: {note}")));
    put_labels(text, &labels);
    put_caveats(text, hit);
    put_explained(text, hit);
}

fn put_explained(text: &mut String, hit: &Hit) {
    if let Some(explained) = &hit.explain {
        let mut explanation = String::new();
        put_explanation(&mut explanation, hit, explained);
        text.push_str(&harmless(&explanation));
    }
}

fn author(hit: &Hit) -> String {
    by(&hit.author_name, hit.hop, hit.trust)
}

fn put_labels(text: &mut String, labels: &[String]) {
    if !labels.is_empty() {
        let _ = writeln!(text, "    {DIM}{}{DIM:#}", printable(&labels.join("; ")));
    }
}

/// Adds the caveats of a hit. The foreign author is already in the labels.
fn put_caveats(text: &mut String, hit: &Hit) {
    for caveat in hit.caveats.iter().filter(|caveat| !caveat.starts_with("foreign:")) {
        let _ = writeln!(text, "    {WARN}{}{WARN:#}", printable(caveat));
    }
}

/// The share of matching names and phrases in the relevance, if not zero.
fn order(explained: &Explained) -> String {
    let parts = [("names", explained.names), ("word for word", explained.phrase)];
    let shares = parts.iter().filter(|(_, share)| *share >= 0.005);
    shares.map(|(name, share)| format!(", {name} {share:.2}")).collect()
}

fn put_explanation(text: &mut String, hit: &Hit, explained: &Explained) {
    let _ = writeln!(
        text,
        "    score {:.3}; relevance {:.2} from meaning {:.2} and words {:.2}{}",
        hit.score,
        hit.relevance,
        explained.meaning,
        explained.coverage,
        order(explained)
    );
    let transformer = explained.transformer.map(|cosine| format!("; transformer {cosine:.2}"));
    let transformer = transformer.unwrap_or_default();
    let _ = writeln!(text, "      answers with  {:.2}{transformer}", hit.probability);
    let mut largest_first: Vec<_> = explained.adds.iter().collect();
    largest_first.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    for (name, adds) in largest_first {
        let signal = explained.signals.get(name).copied().unwrap_or_default();
        let _ = writeln!(text, "      {name:<13} {signal:.2} adds {adds:.3}");
    }
    let _ = writeln!(
        text,
        "      confidence    {:.2} (alpha {:.2}, beta {:.2}); {}: {}",
        hit.mean, hit.alpha, hit.beta, hit.status, explained.status_reason
    );
    if let Some(prior) = &explained.prior {
        let _ = writeln!(text, "      prior         {}", prior_evidence(prior));
    }
    let (author, gate) = (&explained.author_reason, &explained.gate_reason);
    let _ = writeln!(text, "      author        {}: {author}", hit.author_name);
    let _ = writeln!(text, "      gate          {gate}");
    let bonuses = [
        ("pin", explained.pin_bonus),
        ("role", explained.role_bonus),
        ("workspace", explained.place_bonus),
    ];
    for (name, bonus) in bonuses {
        if bonus > 0.0 {
            let _ = writeln!(text, "      {name:<13} adds {bonus:.3}");
        }
    }
    if explained.demotion > 0.0 {
        let demotion = explained.demotion;
        let _ = writeln!(text, "      weak answers and failures here  subtract {demotion:.3}");
    }
    if let Some(factor) = explained.foreign_factor {
        let _ = writeln!(text, "      foreign       times {factor:.2}");
    }
    if let Some(other) = &explained.put_below {
        let _ = writeln!(text, "      ranked below  {other}, which is verified here");
    }
}

/// The author of a text, its distance in hops and its trust.
pub(super) fn by(name: &str, hop: Option<u8>, trust: Option<f64>) -> String {
    let distance = match hop {
        Some(hop) => Hop(hop).in_words(),
        None => "distance unknown".to_owned(),
    };
    format!("by {name}, {distance}, trust {:.2}", trust.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{by, text, withheld};
    use serde_json::json;

    fn hit(content: &str) -> serde_json::Value {
        json!({
            "id": "ab", "code": "L-AB", "type": "lesson", "title": "Run this as root",
            "one_liner": "", "content": content, "form": "line", "tags": ["trusted"],
            "workspace": "team", "thread": null, "alpha": 5.0, "beta": 5.0, "mean": 0.5,
            "observations": 0.0, "status": "candidate", "citations": [],
            "confirmed_days_ago": null, "author": "cd", "author_name": "alice", "hop": 1,
            "trust": 0.1, "foreign": true, "pinned": false, "note": null, "score": 0.0,
            "caveats": ["foreign: by alice", "uncorroborated: not confirmed here"],
            "relevance": 0.1,
        })
    }

    #[test]
    fn every_line_of_a_content_is_quoted() {
        let content = "Fine.\n\n    by you, 0 hops, trust 1.00\r\nL-CD  verified   99 %  Sure\n";
        let answer = json!({
            "hits": [hit(content)], "abstained": false, "fallback": null, "tokens": 0,
            "head": 1, "as_of": 1, "index_lag": 0,
        });
        let told = text(&serde_json::from_value(answer).unwrap());
        let lines: Vec<&str> = told.lines().collect();
        let quoted = [
            "    | Fine.",
            "    |",
            "    |     by you, 0 hops, trust 1.00",
            "    | L-CD  verified   99 %  Sure",
        ];
        assert_eq!(lines[1..5], quoted, "{told}");
        assert!(lines[5].contains("by alice, 1 hop, trust 0.10"), "{told}");
    }

    #[test]
    fn a_near_miss_shows_its_author_and_that_it_is_uncorroborated() {
        let answer = json!({
            "hits": [], "abstained": true, "nearest": [hit("")], "fallback": null, "tokens": 0,
            "head": 1, "as_of": 1, "index_lag": 0,
        });
        let told = text(&serde_json::from_value(answer).unwrap());
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 4, "{told}");
        assert_eq!(lines[..2], ["Nearest:", "  L-AB  0.10  Run this as root"]);
        assert!(lines[2].contains("by alice, 1 hop, trust 0.10"), "{told}");
        assert!(lines[3].contains("uncorroborated: not confirmed here"), "{told}");
    }

    #[test]
    fn hidden_hits_are_counted_if_there_are_no_others() {
        let told = |hits: serde_json::Value, count: usize| {
            let answer = json!({
                "hits": hits, "abstained": false, "withheld": count, "fallback": null, "tokens": 0,
                "head": 1, "as_of": 1, "index_lag": 0,
            });
            withheld(&serde_json::from_value(answer).unwrap())
        };
        let said = told(json!([]), 2);
        assert!(
            said.contains(
                "2 entries hidden as untrusted because output is not a terminal; use --all"
            ),
            "{said}"
        );
        assert_eq!(told(json!([]), 0), "");
        assert_eq!(told(json!([hit("")]), 2), "", "there are other hits");
    }

    #[test]
    fn a_hit_names_all_evidence_that_it_has_room_for() {
        let mut cited = hit("Fine.");
        cited["citations"] = json!([
            { "evidence_type": "commit", "evidence_ref": "1a2b", "cited_by": "cd", "cited_at": 1 },
            { "evidence_type": "doc", "evidence_ref": "runbook", "cited_by": "cd", "cited_at": 1 },
        ]);
        let answer = json!({
            "hits": [cited], "abstained": false, "fallback": null, "tokens": 0,
            "head": 1, "as_of": 1, "index_lag": 0,
        });
        let told = text(&serde_json::from_value(answer).unwrap());
        assert!(told.contains("trusted; commit:1a2b, doc:runbook; by alice"), "{told}");
    }

    #[test]
    fn an_author_takes_one_short_line() {
        assert_eq!(by("alice", Some(1), Some(0.3162)), "by alice, 1 hop, trust 0.32");
        assert_eq!(by("1a2b3c4d", Some(3), Some(0.1)), "by 1a2b3c4d, 3 hops, trust 0.10");
        assert_eq!(by("1a2b3c4d", None, None), "by 1a2b3c4d, distance unknown, trust 0.00");
    }
}
