//! From an entry's records to the history that is answered.

use super::types::{Act, Change, DayCount, HistoryCaller, HistoryRecord};
use crate::store::rows::{CallerRow, Seq};
use klnode_crdt::claims::{Claims, Relation};
use klnode_crdt::gset::{GSet, Presence, Word};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::tally::{Observation, Tally};
use klnode_crdt::time::{Day, WallTime};
use std::collections::BTreeMap;

/// The name of a facet.
pub(super) fn facet_name(facet: Facet) -> &'static str {
    match facet {
        Facet::Claims => "claims",
        Facet::Tally => "tally",
        Facet::Retraction => "retraction",
        Facet::Tombstone => "tombstone",
    }
}

/// One record as a line of history.
pub(super) fn record(
    seq: Seq,
    record: &Record,
    caller: Option<CallerRow>,
    own: AuthorId,
) -> HistoryRecord {
    let header = record.header();
    let (mut changes, mut observations) = (Vec::new(), Vec::new());
    match record.payload() {
        Some(Payload::Claims { claims, .. }) => changes = said(claims),
        Some(Payload::Tally(tally)) => observations = counted(tally),
        Some(Payload::Retraction { .. } | Payload::Tombstone(_)) | None => {}
    }
    HistoryRecord {
        seq: seq.0,
        facet: facet_name(header.facet).into(),
        author: header.author.to_string(),
        author_name: String::new(),
        own: header.author == own,
        heard: header.author == own,
        at: header.stamp.wall().as_millis(),
        generation: header.place.generation.0.into(),
        counter: header.counter,
        erased: record.absence() == Some(Absence::Erased),
        changes,
        observations,
        caller: caller.map(|CallerRow { uid, pid, client, session, .. }| HistoryCaller {
            way: if uid.is_some() { "socket" } else { "tcp" }.into(),
            uid,
            pid,
            client: client.map(|client| client.to_string()),
            session: session.map(|session| session.to_string()),
        }),
    }
}

/// What claims say, in the order in which it was said. What this version has no name for is left
/// out, as it is elsewhere.
fn said(claims: &Claims) -> Vec<Change> {
    let mut changes = Vec::new();
    for (register, values) in &claims.registers {
        let Some(name) = register.name() else { continue };
        changes.extend(values.iter().map(|(_, value)| Change {
            at: value.stamp.wall().as_millis(),
            field: name.into(),
            act: Act::Set,
            value: value.text.clone(),
        }));
    }
    for (set, elements) in &claims.texts {
        let Some(name) = set.name() else { continue };
        changes.extend(words(name, elements, String::clone));
    }
    changes.extend(words("evidence", &claims.citations, |citation| {
        format!("{}:{}", citation.evidence_type, citation.evidence_ref)
    }));
    for (link, word) in claims.links.iter() {
        let name = match link.relation {
            Relation::DERIVED_FROM => "derived_from",
            Relation::SUPERSEDES => "supersedes",
            Relation::SAME_AS => "same_as",
            Relation::RELATED => "related",
            _ => continue,
        };
        changes.push(change(name, word, link.to.to_string()));
    }
    if let Some(word) = &claims.archival {
        let value = if word.presence == Presence::Present { "yes" } else { "no" };
        changes.push(Change { act: Act::Set, ..change("archived", word, value.into()) });
    }
    changes.sort_by_key(|change| change.at);
    changes
}

fn words<E: Ord>(name: &str, set: &GSet<E>, text: impl Fn(&E) -> String) -> Vec<Change> {
    set.iter().map(|(element, word)| change(name, word, text(element))).collect()
}

fn change(name: &str, word: &Word, value: String) -> Change {
    let act = match word.presence {
        Presence::Present => Act::Added,
        Presence::Withdrawn => Act::Withdrawn,
    };
    Change { at: word.stamp.wall().as_millis(), field: name.into(), act, value }
}

/// What was counted, by day; boots that a reset declared void do not count.
fn counted(tally: &Tally) -> Vec<DayCount> {
    let mut days = BTreeMap::<Option<Day>, DayCount>::new();
    for of in [Observation::Success, Observation::Failure, Observation::Confirmation] {
        let counter = tally.counter(of);
        let cells = counter.cells().map(|(boot, day, amount)| (boot, Some(day), amount));
        let folds = counter.folds().map(|(boot, amount)| (boot, None, amount));
        for (boot, day, amount) in cells.chain(folds) {
            if tally.reset.contains(&boot) {
                continue;
            }
            let count = days.entry(day).or_insert_with(|| DayCount {
                day: day.map(|day| date(day.start())),
                successes: 0.0,
                failures: 0.0,
                confirmations: 0.0,
            });
            *match of {
                Observation::Success => &mut count.successes,
                Observation::Failure => &mut count.failures,
                Observation::Confirmation => &mut count.confirmations,
            } += amount.observations();
        }
    }
    days.into_values().collect()
}

/// A day as people write it, in UTC.
pub(super) fn date(at: WallTime) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => at.strftime("%Y-%m-%d").to_string(),
        // Beyond the calendar: the number is better than nothing.
        Err(_) => at.as_millis().to_string(),
    }
}
