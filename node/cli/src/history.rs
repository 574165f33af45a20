//! `klnode show --history`: the records of an entry, with author, time and caller of each.

use super::api_path::entry_path;
use super::pipe_gate::allow_in_pipe;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{OutputReader, Reply, VerbError};
use klnode_api_types::{ClaimEffect, DayCount, History, HistoryCaller, HistoryItem, HistoryRecord};
use klnode_client::Client;
use std::fmt::Write;

/// The most characters of a value in one line; `klnode show` prints the whole.
const TEXT_CHARS_MAX: usize = 72;

/// Prints the records of an entry. Without `all`, a pipe gets only changes by trusted authors.
pub(super) async fn run(
    entry: &str,
    all: bool,
    client: &Client,
    terminal: OutputReader,
) -> Result<Reply, VerbError> {
    let mut history: History = client.get(&entry_path(entry, "/history")?).await?;
    if !all && terminal == OutputReader::Pipe {
        let History { foreign, gate, status, code, .. } = &history;
        allow_in_pipe(code, (*foreign, gate, status))?;
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

fn put(text: &mut String, record: &HistoryRecord) {
    let author = match record.own {
        true => "this node".to_owned(),
        false => printable(&record.author_name),
    };
    let what = match record.facet.as_str() {
        "claims" if record.erased => "stated claims that it later retracted",
        "claims" if !record.heard && record.changes.is_empty() => {
            "stated claims (hidden in a pipe)"
        }
        "claims" => "stated",
        "tally" => "counted",
        "edit" => "edited the text",
        "retraction" => "retracted its claims",
        "tombstone" => "forgot the entry",
        other => other,
    };
    let (at, by) = (moment(record.at), record.caller.as_ref().map(caller).unwrap_or_default());
    let (generation, counter) = (record.generation, record.counter);
    let _ = writeln!(text, "{at}  {author} {what}{by}  ({generation}.{counter})");
    for change in &record.changes {
        let _ = writeln!(text, "  {}", change_line(change));
    }
    for count in &record.observations {
        let _ = writeln!(text, "  {}", count_line(count));
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

fn change_line(HistoryItem { at, field, act, value }: &HistoryItem) -> String {
    let sign = match act {
        ClaimEffect::Set => ' ',
        ClaimEffect::Added => '+',
        ClaimEffect::Withdrawn => '-',
    };
    let line = value.lines().next().unwrap_or_default();
    let shown: String = line.chars().take(TEXT_CHARS_MAX).collect();
    let more = if shown.len() < value.trim_end().len() { " ..." } else { "" };
    format!("{}  {sign} {field:<12} {shown}{more}", moment(*at))
}

fn count_line(count: &DayCount) -> String {
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
