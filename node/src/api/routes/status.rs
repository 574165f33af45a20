//! How the node is.

use crate::api::apart::apart;
use crate::api::exchange::{Answer, Answered};
use crate::api::server::Service;
use crate::api::types::{IndexStatus, Rebuild, Status, Stopping};
use crate::store::rows::Seq;
use axum::extract::State;
use klnode_crdt::time::FUTURE_SKEW_MAX;

fn index(service: &Service, head: Seq) -> IndexStatus {
    let (state, meaning) = (service.index.state(), service.index.meaning());
    let at = state.vectors.map_or(state.keyword, |vectors| vectors.min(state.keyword));
    IndexStatus {
        documents: service.index.words().documents(),
        vectors: meaning.as_ref().map_or(0, |meaning| meaning.vectors.len() as u64),
        model: meaning.map(|meaning| meaning.embedder.identity().to_owned()),
        lag: head.0.saturating_sub(at.0),
        rebuild: state.rebuild.map(|job| Rebuild { done: job.done, total: job.total }),
        is_settled: state.is_settled,
        fault: state.fault,
    }
}

/// How far most peers are ahead of this clock by what each is ahead, where that is more than a stamp may
/// be: then what is written here, or there, is not due for the others.
fn most_ahead(mut each: Vec<i64>) -> Option<i64> {
    each.sort_unstable();
    let skew_max = i64::try_from(FUTURE_SKEW_MAX.as_millis()).unwrap_or(i64::MAX);
    // The middle one; of an even number the nearer, so that it is most of them and not half.
    let (low, high) = (each.len().checked_sub(1)? / 2, each.len() / 2);
    match (*each.get(low)?, *each.get(high)?) {
        (low, _) if low > skew_max => Some(low),
        (_, high) if high < -skew_max => Some(high),
        _ => None,
    }
}

/// Says how the node is.
#[utoipa::path(get, path = "/v1/status", responses((status = 200, body = Status)))]
pub(super) async fn status(State(service): State<Service>) -> Answered<Status> {
    // What passed between this node and each peer is counted row by row.
    apart(move |_| {
        let snapshot = service.snapshot()?;
        let (addresses, peers) = service.peers_now()?;
        Ok(Status {
            node: service.author.to_string(),
            version: env!("CARGO_PKG_VERSION").into(),
            home: service.home.display().to_string(),
            entries: service.society(&snapshot)?.entries(&snapshot)?,
            head: snapshot.head().0,
            quarantined: snapshot.quarantined_count()?,
            index: index(&service, snapshot.head()),
            addresses,
            clocks_ahead: most_ahead(peers.iter().filter_map(|peer| peer.clock_ahead).collect()),
            peers,
            is_unprotected: service.person.is_absent(),
            as_of: (service.now)().as_millis(),
        })
    })
    .await
    .map(Answer)
}

/// Stops the node: what is under way is finished first.
#[utoipa::path(post, path = "/v1/stop", responses((status = 200, body = Stopping)))]
pub(super) async fn stop(State(service): State<Service>) -> Answered<Stopping> {
    service.stop.notify_one();
    let home = std::path::absolute(&*service.home).unwrap_or_else(|_| service.home.to_path_buf());
    Ok(Answer(Stopping { home: home.display().to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_disagrees_with_most_peers_and_not_with_half_of_them() {
        const HOUR: i64 = 3_600_000;
        let cases: [(&[i64], Option<i64>); 8] = [
            (&[], None),
            (&[HOUR], Some(HOUR)),
            (&[-HOUR], Some(-HOUR)),
            (&[300_000], None),
            (&[0, HOUR], None),
            (&[-HOUR, HOUR], None),
            (&[2 * HOUR, 0, HOUR], Some(HOUR)),
            (&[-2 * HOUR, -HOUR, 0, -3 * HOUR], Some(-HOUR)),
        ];
        for (each, expect) in cases {
            assert_eq!(most_ahead(each.to_vec()), expect, "{each:?}");
        }
    }
}
