//! `GET /v1/usage`: served answers with their cost and benefit.

use crate::blocking_pool::run_blocking;
use crate::convert::history::date;
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::ErrorKind;
use klnode_api_types::{Usage, UsageDay, UsageGroup, UsageNumbers, UsageQuery};
use klnode_config::units::Days;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::time::Day;
use klnode_query::name_of;
use klnode_store::daily_usage::{Amount, UsageAxis};
use klnode_store::peers::Membership;
use std::collections::BTreeMap;

/// Default length of the period, in days.
const DAYS_DEFAULT: u32 = 7;
/// Maximum length of the period, in days: usage is kept this long.
const DAYS_MAX: u32 = 400;

/// Returns the cost and benefit of answers in a period.
#[utoipa::path(get, path = "/v1/usage", params(UsageQuery),
    responses((status = 200, body = Usage)))]
pub(super) async fn usage(
    State(service): State<Service>,
    QueryParams(UsageQuery { since }): QueryParams<UsageQuery>,
) -> ApiResult<Usage> {
    let days = since.as_deref().map_or(Ok(DAYS_DEFAULT), |text| days("since", text))?;
    run_blocking(move |_| account(&service, days)).await.map(ApiReply)
}

/// Parses a period such as `7d`, `7 days`, `4w` or `4 weeks`.
pub(super) fn days(field: &str, text: &str) -> Result<u32, ApiError> {
    let bare = || text.parse::<u32>().ok();
    let days = text.parse::<Days>().ok().map(Days::get).or_else(bare);
    days.filter(|days| (1..=DAYS_MAX).contains(days)).ok_or_else(|| {
        let message = format!("`{field}` is `{text}`; it must be 1d to {DAYS_MAX}d.");
        ApiError::new(ErrorKind::Invalid, message, Some("Write it as 7d or 4w."))
    })
}

fn account(service: &Service, days: u32) -> Result<Usage, ApiError> {
    let (snapshot, now) = (service.snapshot()?, (service.now)());
    let membership = service.membership(&snapshot)?;
    let today = now.day();
    let since = Day(today.0.saturating_sub(days - 1));
    let mut by_day: BTreeMap<Day, Amount> =
        (since.0..=today.0).map(|day| (Day(day), Amount::default())).collect();
    let mut by_name: BTreeMap<(UsageAxis, String), Amount> = BTreeMap::new();
    let mut total = Amount::default();
    for row in snapshot.usage_since(since)? {
        let (day, axis, row) = row?;
        if axis == UsageAxis::Caller {
            total.add(&row.amount);
            by_day.entry(day).or_default().add(&row.amount);
        }
        by_name.entry((axis, row.name)).or_default().add(&row.amount);
    }
    let of = |axis: UsageAxis| {
        let rows = by_name.iter().filter(|((of, _), _)| *of == axis);
        let mut rows: Vec<UsageGroup> =
            rows.map(|((_, name), amount)| named(axis, name, amount, &membership)).collect();
        rows.sort_by(|a, b| b.used.tokens.cmp(&a.used.tokens).then(a.name.cmp(&b.name)));
        rows
    };
    let day =
        |(day, amount): (&Day, &Amount)| UsageDay { day: date(day.start()), used: to_used(amount) };
    Ok(Usage {
        as_of: now.as_millis(),
        since: date(since.start()),
        total: to_used(&total),
        days: by_day.iter().map(day).collect(),
        callers: of(UsageAxis::Caller),
        authors: of(UsageAxis::Author),
        peers: of(UsageAxis::Peer),
    })
}

fn named(axis: UsageAxis, name: &str, amount: &Amount, membership: &Membership) -> UsageGroup {
    let key = AuthorId::from_hex(name).filter(|_| axis != UsageAxis::Caller);
    UsageGroup {
        name: key.map_or_else(|| name.to_owned(), |key| name_of(membership, key)),
        key: key.map(|key| key.to_string()),
        used: to_used(amount),
    }
}

fn to_used(amount: &Amount) -> UsageNumbers {
    let Amount { answers, tokens, hits, used, harmful, abstentions, millis, dismissed, avoided } =
        *amount;
    UsageNumbers { answers, tokens, hits, used, harmful, abstentions, millis, dismissed, avoided }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_store::peers::row_types::PeerRow;

    #[test]
    fn a_peer_named_you_is_shown_by_its_key() {
        let [own, peer] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let row = PeerRow { name: "you".into(), ..PeerRow::default() };
        let membership = Membership { own, peers: [(peer, row)].into(), ..Membership::default() };
        for (author, expect) in [(own, "you"), (peer, "02020202")] {
            let row =
                named(UsageAxis::Author, &author.to_string(), &Amount::default(), &membership);
            assert_eq!(row.name, expect);
        }
    }

    #[test]
    fn a_period_is_given_in_days_or_weeks_up_to_the_limit() {
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
            assert_eq!(days("since", text).unwrap(), expect, "{text}");
        }
        for text in ["", "d", "0d", "401d", "58w", "-1d", "1m", "1h", "99999999999w"] {
            let error = days("since", text).unwrap_err();
            assert!(error.message().ends_with("it must be 1d to 400d."), "{error}");
        }
    }
}
