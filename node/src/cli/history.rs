//! `klnode history`: what was said about an entry, when and by whom.

use super::harmless::printable;
use super::read::{may_speak, path};
use super::when::moment;
use super::{Reply, Terminal, VerbError};
use crate::api::Client;
use crate::api::types::{Act, Change, DayCount, History, HistoryCaller, HistoryRecord};
use std::fmt::Write;

/// Characters of a text that are shown of it; `klnode show` has the whole.
const TEXT_CHARS_MAX: usize = 72;

/// Whose history to show.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Its id, its code, or an unambiguous beginning of the code.
    pub entry: String,
    /// Everything that was said. So it is on a terminal; a pipe gets only what may speak unasked.
    #[arg(long)]
    pub all: bool,
}

impl Args {
    pub(super) async fn run(self, client: &Client, terminal: Terminal) -> Result<Reply, VerbError> {
        let mut history: History = client.get(&path(&self.entry, "/history")?).await?;
        if !self.all && terminal == Terminal::Pipe {
            let History { foreign, gate, status, code, .. } = &history;
            may_speak("show the history of", code, (*foreign, gate, status))?;
            for record in history.records.iter_mut().filter(|record| !record.heard) {
                record.changes.clear();
            }
        }
        let mut text = format!("{}  ({})\n", history.code, history.id);
        for record in &history.records {
            put(&mut text, record);
        }
        Ok(Reply::new(&history, text))
    }
}

fn put(text: &mut String, record: &HistoryRecord) {
    let author = match record.own {
        true => "this node".to_owned(),
        false => printable(&record.author_name),
    };
    let what = match record.facet.as_str() {
        "claims" if record.erased => "said what it took back",
        "claims" if !record.heard && record.changes.is_empty() => "said what a pipe does not get",
        "claims" => "said",
        "tally" => "counted",
        "retraction" => "took back what it had said",
        "tombstone" => "forgot the entry",
        other => other,
    };
    let (at, by) = (moment(record.at), record.caller.as_ref().map(caller).unwrap_or_default());
    let (generation, counter) = (record.generation, record.counter);
    let _ = writeln!(text, "{at}  {author} {what}{by}  ({generation}.{counter})");
    for change in &record.changes {
        let _ = writeln!(text, "  {}", said(change));
    }
    for count in &record.observations {
        let _ = writeln!(text, "  {}", counted(count));
    }
}

fn caller(caller: &HistoryCaller) -> String {
    let client = caller.client.as_ref().map(|client| format!(", as {client}")).unwrap_or_default();
    match (caller.uid, caller.pid) {
        (Some(uid), Some(pid)) => format!(", for user {uid}, process {pid}{client}"),
        (Some(uid), None) => format!(", for user {uid}{client}"),
        _ => format!(", for a caller over TCP{client}"),
    }
}

fn said(Change { at, field, act, value }: &Change) -> String {
    let sign = match act {
        Act::Set => ' ',
        Act::Added => '+',
        Act::Withdrawn => '-',
    };
    let line = value.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(TEXT_CHARS_MAX).collect();
    let more = if shown.len() < value.trim_end().len() { " ..." } else { "" };
    format!("{}  {sign} {field:<12} {shown}{more}", moment(*at))
}

fn counted(count: &DayCount) -> String {
    let day = count.day.as_deref().unwrap_or("long ago");
    let amounts = [
        (count.successes, "successes"),
        (count.failures, "failures"),
        (count.confirmations, "confirmations"),
    ];
    let amounts = amounts.iter().filter(|(amount, _)| *amount > 0.0);
    let amounts: Vec<String> = amounts.map(|(amount, name)| format!("{name} {amount}")).collect();
    format!("{day:<19}  {}", amounts.join(", "))
}
