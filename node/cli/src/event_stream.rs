//! `klnode list --follow`: prints each event of the node as it happens.

use super::VerbError;
use super::join::wanted;
use super::sanitize::{harmless_json, printable};
use super::timestamp::moment;
use klnode_api_types::joins::JoiningNode;
use klnode_api_types::{JournalItem, RecordEvent};
use klnode_client::{Client, ClientError};
use klnode_text::truncate::truncate;
use std::fmt::Write;

/// The most characters of a value in one line.
const VALUE_CHARACTERS_MAX: usize = 80;

/// A subscription to the events of the node.
#[derive(Debug, Default)]
pub struct Watch {
    /// The position in the feed to start after; `None` for events from now on.
    pub since: Option<u64>,
}

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchFormat {
    /// Columns for people.
    Text,
    /// One JSON object per line, for programs.
    Json,
}

impl Watch {
    /// Passes every event to `print` as a line, until the node stops or `print` fails.
    pub async fn run<E: From<VerbError>>(
        self,
        client: &Client,
        lines: WatchFormat,
        mut print: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let since = self.since.map(|since| format!("?since={since}")).unwrap_or_default();
        let path = format!("/v1/events{since}");
        let mut following = client.events(&path).await.map_err(VerbError::from)?;
        while let Some((name, data)) = following.next().await.map_err(VerbError::from)? {
            match lines {
                WatchFormat::Json => print(&(harmless_json(named(&name, &data)?) + "\n"))?,
                WatchFormat::Text => print(&line(&name, &data)?)?,
            }
        }
        Err(VerbError::Client(ClientError::Ended).into())
    }
}

/// The JSON object of an event with its name added, on one line.
fn named(name: &str, data: &str) -> Result<String, VerbError> {
    let garbled = |error| ClientError::Garbled(format!("an event: {error}"));
    let mut event: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(data).map_err(garbled)?;
    event.insert("event".to_owned(), name.into());
    Ok(serde_json::Value::Object(event).to_string())
}

fn line(name: &str, data: &str) -> Result<String, VerbError> {
    let garbled = |error| ClientError::Garbled(format!("an event: {error}"));
    if name == "maintenance" {
        let noted: JournalItem = serde_json::from_str(data).map_err(garbled)?;
        let (at, number) = (moment(noted.at), noted.number.unwrap_or_default());
        let codes: Vec<String> = noted.entries.into_iter().map(|entry| entry.code).collect();
        let (matter, stage) = (noted.matter, noted.stage);
        return Ok(format!(
            "{:>8}  {at}  {name:<11}  {}  {matter} {stage}, number {number}\n",
            "-",
            codes.join(", ")
        ));
    }
    if name == "join" {
        let asked: JoiningNode = serde_json::from_str(data).map_err(garbled)?;
        let (who, key, want) = (printable(&asked.name), &asked.peer[..8], wanted(&asked.request));
        let code = asked.request.code.unwrap_or_default();
        return Ok(format!("{:>8}  {who} ({key}) asks to be {want}, code {code}\n", "-"));
    }
    let event: RecordEvent = serde_json::from_str(data).map_err(garbled)?;
    let at = moment(event.at);
    let entry = event.code.unwrap_or(event.entry);
    let author = printable(&event.author_name);
    let mut text = format!("{:>8}  {at}  {name:<11}  {entry}  by {author}\n", event.seq);
    // The confidence says as much as its counters.
    let is_counter = |field: &str| ["alpha", "beta"].contains(&field);
    let changes = event.changes.iter().flatten();
    for change in changes.filter(|change| !is_counter(&change.field)) {
        let value = |text: &Option<String>| match text {
            Some(text) => {
                format!("\"{}\"", truncate(&printable(text), VALUE_CHARACTERS_MAX))
            }
            None => "none".to_owned(),
        };
        let (old, new) = (value(&change.old), value(&change.new));
        let _ = match change.old {
            Some(_) => writeln!(text, "{:>10}{}: {old} -> {new}", "", change.field),
            None => writeln!(text, "{:>10}{}: {new}", "", change.field),
        };
    }
    Ok(text)
}
