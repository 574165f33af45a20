//! The account of cost and use.

use crate::api::apart::apart;
use crate::api::errors::{ApiError, Kind};
use crate::api::exchange::{Answer, Answered, Params};
use crate::api::history::date;
use crate::api::server::Service;
use crate::api::types::{Usage, UsageBy, UsageDay, UsageQuery, Used};
use crate::query::name_of;
use crate::store::peers::Society;
use crate::store::usage::{Amount, Axis};
use axum::extract::State;
use klnode_config::units::Days;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;
use std::collections::BTreeMap;

/// How far back, unless the caller says otherwise.
const DAYS_DEFAULT: u32 = 7;
/// How far back at most: so long it is kept.
const DAYS_MAX: u32 = 400;

/// Tells what was asked, served and used here.
#[utoipa::path(get, path = "/v1/usage", params(UsageQuery),
    responses((status = 200, body = Usage)))]
pub(super) async fn usage(
    State(service): State<Service>,
    Params(UsageQuery { since }): Params<UsageQuery>,
) -> Answered<Usage> {
    let days = since.as_deref().map_or(Ok(DAYS_DEFAULT), days)?;
    apart(move |_| account(&service, days)).await.map(Answer)
}

/// How many days a text means, as in `7d`, `7 days`, `4w` or `4 weeks`.
fn days(text: &str) -> Result<u32, ApiError> {
    let bare = || text.parse::<u32>().ok();
    let days = text.parse::<Days>().ok().map(Days::get).or_else(bare);
    days.filter(|days| (1..=DAYS_MAX).contains(days)).ok_or_else(|| {
        let message = format!("count since `{text}`: since must be from 1d to {DAYS_MAX}d");
        ApiError::new(Kind::Invalid, message, Some("write it as 7d or 4w"))
    })
}

fn account(service: &Service, days: u32) -> Result<Usage, ApiError> {
    let (snapshot, now) = (service.snapshot()?, (service.now)());
    let society = service.society(&snapshot)?;
    let today = now.day();
    let since = Day(today.0.saturating_sub(days - 1));
    let mut by_day: BTreeMap<Day, Amount> =
        (since.0..=today.0).map(|day| (Day(day), Amount::default())).collect();
    let mut by_name: BTreeMap<(Axis, String), Amount> = BTreeMap::new();
    let mut total = Amount::default();
    for row in snapshot.usage_since(since)? {
        let (day, axis, row) = row?;
        if axis == Axis::Caller {
            total.add(&row.amount);
            by_day.entry(day).or_default().add(&row.amount);
        }
        by_name.entry((axis, row.name)).or_default().add(&row.amount);
    }
    let of = |axis: Axis| {
        let rows = by_name.iter().filter(|((of, _), _)| *of == axis);
        let mut rows: Vec<UsageBy> =
            rows.map(|((_, name), amount)| named(axis, name, amount, &society)).collect();
        rows.sort_by(|a, b| b.used.tokens.cmp(&a.used.tokens).then(a.name.cmp(&b.name)));
        rows
    };
    let day = |(day, amount): (&Day, &Amount)| UsageDay {
        day: date(day.start()),
        used: travelling(amount),
    };
    Ok(Usage {
        as_of: now.as_millis(),
        since: date(since.start()),
        total: travelling(&total),
        days: by_day.iter().map(day).collect(),
        callers: of(Axis::Caller),
        authors: of(Axis::Author),
        peers: of(Axis::Peer),
    })
}

fn named(axis: Axis, name: &str, amount: &Amount, society: &Society) -> UsageBy {
    let key = AuthorId::from_hex(name).filter(|_| axis != Axis::Caller);
    UsageBy {
        name: key.map_or_else(|| name.to_owned(), |key| name_of(society, key)),
        key: key.map(|key| key.to_string()),
        used: travelling(amount),
    }
}

fn travelling(amount: &Amount) -> Used {
    let Amount { answers, tokens, hits, used, harmful, abstentions, millis, dismissed, avoided } =
        *amount;
    Used { answers, tokens, hits, used, harmful, abstentions, millis, dismissed, avoided }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::peers::rows::PeerRow;

    #[test]
    fn no_peer_is_counted_as_whoever_reads_the_account() {
        let [own, peer] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let row = PeerRow { name: "you".into(), ..PeerRow::default() };
        let society = Society { own, peers: [(peer, row)].into(), ..Society::default() };
        for (author, expect) in [(own, "you"), (peer, "02020202")] {
            let told = named(Axis::Author, &author.to_string(), &Amount::default(), &society);
            assert_eq!(told.name, expect);
        }
    }

    #[test]
    fn a_span_is_days_or_weeks_within_what_is_kept() {
        for (text, expect) in [
            ("1d", 1),
            ("7", 7),
            ("30d", 30),
            ("4w", 28),
            ("400d", 400),
            ("7 d", 7),
            ("1 day", 1),
            ("2 weeks", 14),
        ] {
            assert_eq!(days(text).unwrap(), expect, "{text}");
        }
        for text in ["", "d", "0d", "401d", "58w", "-1d", "1m", "1h", "99999999999w"] {
            let told = days(text).unwrap_err();
            assert!(told.message().ends_with("since must be from 1d to 400d"), "{told}");
        }
    }
}
