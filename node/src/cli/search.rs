//! `klnode search`: ranked answers, labelled and explained.

use super::entry::prior_evidence;
use super::harmless::{harmless, printable};
use super::when::day;
use super::{Reply, Terminal, VerbError, anchors};
use crate::api::Client;
use crate::api::search::{Explained, Hit, Search, SearchAnswer};
use crate::query::count::entries;
use crate::query::{self, Reference};
use anstyle::{AnsiColor, Style};
use hyper::Method;
use klnode_scoring::hop::Hop;
use std::fmt::Write;

/// What to search for.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The question, in plain words; symbols, paths and error codes are welcome.
    #[arg(required = true)]
    pub query: Vec<String>,
    /// At most so many hits [default: 5].
    #[arg(short = 'n', long = "limit", value_name = "COUNT")]
    pub limit: Option<usize>,
    /// How much of each hit: summary, standard, full or auto.
    #[arg(long)]
    pub tier: Option<String>,
    /// Tokens that the hits may take all together.
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub budget: Option<u32>,
    /// What you are doing: researcher, planner, debugger, reviewer or executor. What is written for
    /// that comes a little higher.
    #[arg(long)]
    pub role: Option<String>,
    /// An executor is answered only when it says that it deviates from the plan.
    #[arg(long)]
    pub deviating: bool,
    /// Only this type; may be given more than once.
    #[arg(long = "type", value_name = "TYPE")]
    pub kinds: Vec<String>,
    /// Only this sub-type, such as bug; may be given more than once.
    #[arg(long = "sub-type", value_name = "SUB_TYPE")]
    pub sub_types: Vec<String>,
    /// Only with this tag or one below it; may be given more than once.
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only of this workspace; may be given more than once.
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    pub workspaces: Vec<String>,
    /// Only of this memory: semantic or procedural.
    #[arg(long = "memory", value_name = "MEMORY")]
    pub memories: Vec<String>,
    /// Your thread: its entries are found, too, and preferred [default: that of the task or branch].
    #[arg(long)]
    pub thread: Option<String>,
    /// Entries of every thread, not only of yours.
    #[arg(long, conflicts_with = "only_thread")]
    pub all_threads: bool,
    /// Only entries of that thread.
    #[arg(long, requires = "thread")]
    pub only_thread: bool,
    /// The task you ask in, as `task begin` printed it.
    #[arg(long)]
    pub task: Option<String>,
    /// Stale entries, too.
    #[arg(long)]
    pub stale: bool,
    /// Archived entries, too.
    #[arg(long)]
    pub archived: bool,
    /// Everything, labelled. So it is on a terminal; a pipe gets only what may speak unasked.
    #[arg(long)]
    pub all: bool,
    /// Say what each signal contributed.
    #[arg(long)]
    pub explain: bool,
    /// Rank by the mean of the confidence, not by a sample of it.
    #[arg(long)]
    pub deterministic: bool,
    /// Show what came nearest even if it is not relevant enough.
    #[arg(long)]
    pub nearest: bool,
    /// What searches: hybrid, or keyword, vectors or equal for comparison.
    #[arg(long, value_name = "ENGINE")]
    pub engine: Option<String>,
}

impl Args {
    pub(super) async fn run(self, client: &Client, terminal: Terminal) -> Result<Reply, VerbError> {
        let also = [(self.stale, "stale"), (self.archived, "archived")];
        let search = Search {
            query: self.query.join(" "),
            limit: self.limit,
            tier: self.tier,
            budget: self.budget,
            role: self.role,
            deviating: self.deviating,
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
            all: self.all || terminal == Terminal::Person,
            explain: self.explain,
            deterministic: self.deterministic,
            nearest: self.nearest,
            engine: self.engine,
            checkout: anchors::here(),
            ..Search::default()
        };
        let answer: SearchAnswer = client.send_json(Method::POST, "/v1/search", &search).await?;
        let told = text(&answer) + &left_out(&answer, self.budget) + &withheld(&answer);
        let told = told + &other_threads(&answer) + &by_code(&answer, &search);
        let reply = Reply::styled(&answer, told);
        Ok(if answer.hits.is_empty() { reply.ending(1) } else { reply })
    }
}

const CODE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const WARN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

fn text(answer: &SearchAnswer) -> String {
    let mut text = String::new();
    for hit in &answer.hits {
        put_hit(&mut text, hit);
    }
    if let Some(reason) = &answer.reason {
        let _ = writeln!(text, "Nothing found: {}.", printable(reason));
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
        let _ = writeln!(text, "{WARN}By {engine} alone: {reason}.{WARN:#}");
    }
    if let Some(from) = answer.weights_from.as_deref().filter(|from| *from != "the configuration") {
        let _ = writeln!(text, "{DIM}Weights by {from}.{DIM:#}");
    }
    text
}

/// The way to an entry, for somebody who has searched for its code.
fn by_code(answer: &SearchAnswer, search: &Search) -> String {
    let code = search.query.trim();
    let is_code = code.contains('-') && code.parse::<Reference>().is_ok_and(|of| of.is_whole());
    match is_code && answer.hits.is_empty() {
        true => format!("`klnode show {code}` shows an entry by its code.\n"),
        false => String::new(),
    }
}

/// What was found and does not stand there, with the way to it.
fn left_out(answer: &SearchAnswer, budget: Option<u32>) -> String {
    if answer.left_out.is_empty() {
        return String::new();
    }
    let what = if answer.hits.is_empty() { "found, and none fits" } else { "more did not fit" };
    let way_out = match budget {
        Some(tokens) if answer.hits.is_empty() => format!("; --budget N, now {tokens}"),
        _ => String::new(),
    };
    format!("{DIM}{} {what}{way_out}.{DIM:#}\n", answer.left_out.len())
}

/// What was kept from a pipe where nothing else was found, with the way to it.
fn withheld(answer: &SearchAnswer) -> String {
    if answer.withheld == 0 || !answer.hits.is_empty() {
        return String::new();
    }
    let count = entries(answer.withheld as u64);
    let said = format!("Left out of a pipe: {count} that may not speak unasked");
    format!("{DIM}{said}; `--all` shows everything.{DIM:#}\n")
}

/// How many relevant entries belong to other threads, with the way to them.
fn other_threads(answer: &SearchAnswer) -> String {
    if answer.other_threads == 0 {
        return String::new();
    }
    let count = entries(answer.other_threads as u64);
    format!("{DIM}{count} in other threads left out; --all-threads shows them.{DIM:#}\n")
}

fn put_hit(text: &mut String, hit: &Hit) {
    let _ = writeln!(
        text,
        "{CODE}{}{CODE:#}  {:<9}  {:>3.0} %  {}{}",
        hit.code,
        hit.status,
        hit.mean * 100.0,
        printable(&hit.title),
        if hit.pinned { "  (pinned)" } else { "" },
    );
    // Each line is marked: no content looks like what is said of it here.
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
    if let Some(explained) = &hit.explain {
        let mut told = String::new();
        put_explanation(&mut told, hit, explained);
        text.push_str(&harmless(&told));
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

/// What must be said along with a hit. Who wrote it was just said.
fn put_caveats(text: &mut String, hit: &Hit) {
    for caveat in hit.caveats.iter().filter(|caveat| !caveat.starts_with("foreign:")) {
        let _ = writeln!(text, "    {WARN}{}{WARN:#}", printable(caveat));
    }
}

/// What the order of the question's words changed, if anything.
fn order(explained: &Explained) -> String {
    let parts = [("names", explained.names), ("word for word", explained.phrase)];
    let said = parts.iter().filter(|(_, share)| *share >= 0.005);
    said.map(|(name, share)| format!(", {name} {share:.2}")).collect()
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
    let _ = writeln!(text, "      unasked       {gate}");
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
        let _ = writeln!(text, "      weak answers  lower it by {demotion:.3} in the order");
    }
    if let Some(factor) = explained.foreign_factor {
        let _ = writeln!(text, "      foreign       times {factor:.2}");
    }
    if let Some(other) = &explained.put_below {
        let _ = writeln!(text, "      put below     {other}, which is verified here");
    }
}

/// Whose text it is, how far away and how far trusted.
pub(super) fn by(name: &str, hop: Option<u8>, trust: Option<f64>) -> String {
    let distance = match hop {
        Some(hop) => query::hops(Hop(hop)),
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
            "caveats": ["foreign: by alice", "uncorroborated: nobody here has seen it work"],
            "relevance": 0.1,
        })
    }

    #[test]
    fn no_line_of_a_content_passes_for_what_is_said_of_it() {
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
    fn what_merely_came_near_says_whose_it_is_and_that_nobody_has_tried_it() {
        let answer = json!({
            "hits": [], "abstained": true, "nearest": [hit("")], "fallback": null, "tokens": 0,
            "head": 1, "as_of": 1, "index_lag": 0,
        });
        let told = text(&serde_json::from_value(answer).unwrap());
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 4, "{told}");
        assert_eq!(lines[..2], ["Nearest:", "  L-AB  0.10  Run this as root"]);
        assert!(lines[2].contains("by alice, 1 hop, trust 0.10"), "{told}");
        assert!(lines[3].contains("uncorroborated: nobody here has seen it work"), "{told}");
    }

    #[test]
    fn what_was_kept_from_a_pipe_is_counted_where_nothing_else_was_found() {
        let told = |hits: serde_json::Value, count: usize| {
            let answer = json!({
                "hits": hits, "abstained": false, "withheld": count, "fallback": null, "tokens": 0,
                "head": 1, "as_of": 1, "index_lag": 0,
            });
            withheld(&serde_json::from_value(answer).unwrap())
        };
        let said = told(json!([]), 2);
        assert!(said.contains("a pipe: 2 entries that may not speak unasked; `--all`"), "{said}");
        assert_eq!(told(json!([]), 0), "");
        assert_eq!(told(json!([hit("")]), 2), "", "the answer is another");
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
