//! Converts the records of an entry to its history.

use klnode_api_types::{ClaimEffect, DayCount, HistoryCaller, HistoryItem, HistoryRecord};
use klnode_crdt::claims::Claims;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::lww_set::{ElementState, LwwSet, Presence};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::tally::{Observation, Tally};
use klnode_crdt::time::{Day, WallTime};
use klnode_store::row_types::{CallerRow, Seq};
use std::collections::BTreeMap;

pub(crate) fn facet_name(facet: Facet) -> &'static str {
    match facet {
        Facet::Claims => "claims",
        Facet::Tally => "tally",
        Facet::Edit => "edit",
        Facet::Retraction => "retraction",
        Facet::Tombstone => "tombstone",
    }
}

/// The history of one record.
pub(crate) fn record(
    seq: Seq,
    record: &Record,
    caller: Option<CallerRow>,
    own: AuthorId,
) -> HistoryRecord {
    let header = record.header();
    let (mut changes, mut observations) = (Vec::new(), Vec::new());
    match record.payload() {
        Some(Payload::Claims { claims, .. }) => changes = claim_changes(claims),
        Some(Payload::Tally(tally)) => observations = counts_by_day(tally),
        Some(Payload::Edit(_) | Payload::Retraction { .. } | Payload::Tombstone(_)) | None => {}
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

/// The claims in the order in which they were made. Fields that this version does not know are left
/// out.
fn claim_changes(claims: &Claims) -> Vec<HistoryItem> {
    let mut changes = Vec::new();
    for (register, values) in &claims.registers {
        let Some(name) = register.name() else { continue };
        changes.extend(values.iter().map(|(_, value)| HistoryItem {
            at: value.stamp.wall().as_millis(),
            field: name.into(),
            act: ClaimEffect::Set,
            value: value.text.clone(),
        }));
    }
    for (set, elements) in &claims.texts {
        let Some(name) = set.name() else { continue };
        changes.extend(set_changes(name, elements, String::clone));
    }
    changes.extend(set_changes("evidence", &claims.citations, |citation| {
        format!("{}:{}", citation.evidence_type, citation.evidence_ref)
    }));
    for (link, word) in claims.links.iter() {
        let Some(name) = link.relation.name() else { continue };
        changes.push(change(name, word, link.to.to_string()));
    }
    if let Some(word) = &claims.archival {
        let value = if word.presence == Presence::Present { "yes" } else { "no" };
        changes
            .push(HistoryItem { act: ClaimEffect::Set, ..change("archived", word, value.into()) });
    }
    changes.sort_by_key(|change| change.at);
    changes
}

fn set_changes<E: Ord>(
    name: &str,
    set: &LwwSet<E>,
    text: impl Fn(&E) -> String,
) -> Vec<HistoryItem> {
    set.iter().map(|(element, word)| change(name, word, text(element))).collect()
}

fn change(name: &str, word: &ElementState, value: String) -> HistoryItem {
    let act = match word.presence {
        Presence::Present => ClaimEffect::Added,
        Presence::Withdrawn => ClaimEffect::Withdrawn,
    };
    HistoryItem { at: word.stamp.wall().as_millis(), field: name.into(), act, value }
}

/// The observations by day, without boots that a reset declared void.
fn counts_by_day(tally: &Tally) -> Vec<DayCount> {
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

/// The date of a time in UTC, such as 2026-11-15.
pub(crate) fn date(at: WallTime) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(at) => at.strftime("%Y-%m-%d").to_string(),
        // Outside the range of the calendar, the milliseconds are returned.
        Err(_) => at.as_millis().to_string(),
    }
}
