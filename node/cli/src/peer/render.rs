//! Text about other nodes: their role, sync state and trust.

use super::super::join::wanted;
use super::super::sanitize::printable;
use super::super::timestamp::{day, moment};
use super::filter::rows;
use klnode_api_types::joins::PendingJoin;
use klnode_api_types::peers::{Peer, Peers, Trust, VouchState};
use klnode_text::plural::{counted, entries, records};
use std::fmt::Write;

/// The role of a node that asked to join this one.
const WAITS: &str = "waits for `klnode peer approve`";

/// The role of a node that this one asked to join. A refusal is not sent, so the state stays.
const ASKED: &str = "asked; its operator has not approved yet";

/// The name of a peer with the beginning of its key, or the whole key if it has no name.
pub(super) fn peer_label(peer: &Peer) -> String {
    match peer.name.is_empty() {
        true => peer.peer.clone(),
        false => format!("{} ({})", printable(&peer.name), &peer.peer[..8]),
    }
}

/// The sync state of a peer, with the time of the last comparison.
pub(super) fn state(peer: &Peer) -> String {
    let last = || match peer.sync_at {
        Some(at) => format!("; last in sync at {} UTC", moment(at)),
        None => String::new(),
    };
    let refused = match peer.refused {
        0 => String::new(),
        count => format!(", {} refused", records(count)),
    };
    let known = match (peer.sync.as_str(), peer.differs, peer.sync_at) {
        ("equal", _, Some(at)) if peer.connected => format!("in sync at {} UTC", moment(at)),
        ("equal", _, Some(at)) => format!("last in sync at {} UTC", moment(at)),
        ("unanswered", _, Some(at)) if !peer.connected => {
            format!("last in sync at {} UTC", moment(at))
        }
        ("unanswered", ..) => format!("did not answer{}", last()),
        ("differs", Some(count), Some(at)) => {
            format!("{} differed at {} UTC", records(count), moment(at))
        }
        ("reading", _, Some(at)) if !peer.connected => {
            format!("last in sync at {} UTC", moment(at))
        }
        ("reading", ..) => format!("reading{}", last()),
        ("refused", ..) => {
            let reason = peer.reason.as_deref().unwrap_or("no reason given");
            format!("does not answer: {}", printable(reason))
        }
        _ => format!("not compared yet{}", last()),
    };
    let connected = if peer.connected { "connected" } else { "not connected" };
    format!("{connected}, {known}{refused}")
}

/// A request to join by address, and its next step.
fn requested(request: &PendingJoin) -> String {
    let code = request.code.as_deref().unwrap_or("not known yet");
    let what = wanted(request);
    let is_ours = request.from == "here";
    let next = match (request.confirmed, is_ours && request.wants != "mine") {
        (true, _) => "confirmed here, the other operator must type the code",
        (false, true) => "its operator decides",
        (false, false) => "`klnode peer approve NAME --code DIGITS`, with the digits shown there",
    };
    match is_ours {
        true => format!("asked to be {what}, code {code}: {next}"),
        false => format!("asks to be {what}, code {code}: {next}"),
    }
}

/// The pending decision about a peer, if there is one, and its sync state.
pub(crate) fn standing(peer: &Peer) -> String {
    if let Some(request) = &peer.request {
        return requested(request);
    }
    let waits = match peer.state.as_str() {
        "waiting" => WAITS,
        _ if peer.asked => ASKED,
        _ => return state(peer),
    };
    let blocked = if peer.blocked { ", blocked" } else { "" };
    match peer.sync.as_str() {
        // A waiting node is never compared, so an unknown sync state means nothing.
        "unknown" => format!("{waits}{blocked}"),
        _ => format!("{waits}{blocked}; {}", state(peer)),
    }
}

pub(super) fn list(peers: &Peers) -> String {
    let mut text = String::new();
    for address in &peers.addresses {
        let _ = writeln!(text, "reachable at  {address}");
    }
    for peer in &peers.peers {
        let what = match (peer.state.as_str(), peer.mine, peer.workspaces.as_slice()) {
            ("waiting", ..) => WAITS.to_owned(),
            ("refused", ..) => "refused".to_owned(),
            _ if peer.asked => ASKED.to_owned(),
            (_, true, _) => "yours".to_owned(),
            (_, false, []) => "paired".to_owned(),
            (_, false, shared) => format!("member of {}", shared.join(", ")),
        };
        let blocked = if peer.blocked { ", blocked" } else { "" };
        if let Some(request) = &peer.request {
            let _ = writeln!(text, "{}  {}{blocked}", peer_label(peer), requested(request));
            continue;
        }
        let code = peer.code.as_ref().map(|code| format!(", code {code}")).unwrap_or_default();
        let _ = writeln!(text, "{}  {what}{blocked}{code}; {}", peer_label(peer), state(peer));
        for offer in &peer.offers {
            let name = printable(&offer.name);
            let _ =
                writeln!(text, "  offers membership of `{name}`: `klnode workspace accept {name}`");
        }
    }
    if peers.peers.is_empty() {
        text.push_str("No peers yet. `klnode peer invite --help` shows how to pair.\n");
    }
    // A node that is approved now was admitted after it was turned away.
    let is_in =
        |key: &str| peers.peers.iter().any(|one| one.peer == key && one.state == "approved");
    for away in peers.turned_away.iter().filter(|away| !is_in(&away.peer)) {
        let _ = writeln!(
            text,
            "turned away {} at {} UTC: {}",
            &away.peer[..8],
            moment(away.at),
            printable(&away.reason)
        );
    }
    text
}

pub(super) fn whole(peer: &Peer) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<13} {}", printable(&value));
        }
    };
    put("name", peer.name.clone());
    put("key", peer.peer.clone());
    let kind = match peer.state.as_str() {
        _ if peer.asked => ASKED,
        _ if peer.mine => "another machine of yours",
        state => state,
    };
    put("state", format!("{kind}{}", if peer.blocked { ", blocked" } else { "" }));
    put("request", peer.request.as_ref().map(requested).unwrap_or_default());
    put("workspaces", peer.workspaces.join(", "));
    for offer in &peer.offers {
        put("offers", format!("membership of `{0}`: `klnode workspace accept {0}`", offer.name));
    }
    put("sync", state(peer));
    for refused in &peer.refused_for {
        put("refused", format!("{}: {}", records(refused.records), refused.reason));
    }
    put("released", format!("{} to it, {} from it", entries(peer.released), peer.offered));
    for address in &peer.addresses {
        put("address", address.clone());
    }
    put("code", peer.code.clone().unwrap_or_default());
    if let Some(ahead) = peer.clock_ahead.filter(|ahead| ahead.unsigned_abs() > 60_000) {
        put("clock", format!("{} this node's", off_by(ahead)));
    }
    put("known since", format!("{} UTC", moment(peer.since)));
    if let Some(trust) = &peer.trust {
        put("trust", trusted(trust));
        put("vouched", trust.vouched.map(|of| vouched(&of, trust)).unwrap_or_default());
        put("weight", weighed(trust));
        put("last 60 days", format!("{}  (full height is 1)", plot(&trust.series)));
    }
    if let Some(filters) = &peer.filters {
        for (name, passes) in rows(filters) {
            put(name, passes);
        }
    }
    text
}

/// The difference between two clocks; the name of the second follows.
pub(crate) fn off_by(ahead_millis: i64) -> String {
    let which = if ahead_millis < 0 { "behind" } else { "ahead of" };
    format!("{} s {which}", ahead_millis.unsigned_abs() / 1_000)
}

/// The trust in the entries of a peer, and its reasons.
fn trusted(trust: &Trust) -> String {
    if trust.hop == Some(0) {
        return format!("{:.2}: it is your own node", trust.value);
    }
    let mut text = format!(
        "{:.2}: {} of its entries helped here, {} misled",
        trust.value, trust.successes, trust.failures
    );
    let _ = write!(
        text,
        " (Beta({:.1}, {:.1}), lower bound {:.2}; of the last {}: {:.2})",
        trust.alpha, trust.beta, trust.of_all, trust.recent_outcomes, trust.of_recent
    );
    if trust.successes_ignored > 0 {
        let _ = write!(text, ", {} successes ignored by the daily limit", trust.successes_ignored);
    }
    if trust.left < 0.995 {
        let _ = write!(text, ", {:.0} % of it remains after decay", trust.left * 100.0);
    }
    text
}

/// The date and the effect of the operator's vouch.
fn vouched(of: &VouchState, trust: &Trust) -> String {
    format!(
        "by you since {}: counts as {:.1} successes today, on this node alone; trust without it \
         {:.2}",
        day(of.since),
        of.successes,
        trust.earned
    )
}

fn weighed(trust: &Trust) -> String {
    match trust.hop {
        Some(0) => "1.00: it counts as this node".to_owned(),
        Some(hop) => {
            let hops = counted(u64::from(hop), "hop", "hops");
            format!("{:.2} of an own observation, {hops} away", trust.weight)
        }
        None => "0.00: its distance is unknown".to_owned(),
    }
}

/// Numbers from 0 to 1 as a row of bars, two days each.
fn plot(series: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let bar = |days: &[f64]| {
        let highest = days.iter().copied().fold(0.0, f64::max);
        let step = (highest * BARS.len() as f64) as usize;
        BARS[step.min(BARS.len() - 1)]
    };
    series.chunks(2).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn peer(of: &serde_json::Value) -> Peer {
        let mut all = json!({
            "peer": "ab".repeat(32), "name": "alice", "state": "approved", "mine": false,
            "blocked": false, "connected": true, "addresses": [], "workspaces": [],
            "sync": "unknown", "refused": 0, "released": 0, "offered": 0, "since": 0,
        });
        let fields = of.as_object().expect("fields");
        all.as_object_mut().expect("fields").extend(fields.clone());
        serde_json::from_value(all).expect("a peer")
    }

    #[test]
    fn a_clock_ahead_or_behind_is_shown_with_a_positive_number() {
        assert_eq!(off_by(3_600_500), "3600 s ahead of");
        assert_eq!(off_by(-3_600_500), "3600 s behind");
    }

    #[test]
    fn an_unanswered_sync_shows_when_the_nodes_were_last_equal() {
        let at = "1970-01-01 00:00:00 UTC";
        for (connected, sync, expect) in [
            (true, "equal", format!("connected, in sync at {at}")),
            (true, "reading", format!("connected, reading; last in sync at {at}")),
            (true, "unanswered", format!("connected, did not answer; last in sync at {at}")),
            (false, "unanswered", format!("not connected, last in sync at {at}")),
        ] {
            let one = peer(&json!({"connected": connected, "sync": sync, "sync_at": 0}));
            assert_eq!(state(&one), expect);
        }
    }

    #[test]
    fn a_waiting_peer_shows_its_decision_and_its_sync() {
        let at = "1970-01-01 00:00:00 UTC";
        for (of, expect) in [
            (json!({"state": "waiting"}), WAITS.to_owned()),
            (json!({"state": "waiting", "blocked": true}), format!("{WAITS}, blocked")),
            (json!({"asked": true, "connected": false}), ASKED.to_owned()),
            // It may talk already, and waits to be more.
            (
                json!({"state": "waiting", "sync": "equal", "sync_at": 0}),
                format!("{WAITS}; connected, in sync at {at}"),
            ),
            (json!({}), "connected, not compared yet".to_owned()),
        ] {
            assert_eq!(standing(&peer(&of)), expect);
        }
    }

    #[test]
    fn a_text_from_a_peer_cannot_begin_a_line() {
        let away = json!([{"at": 0, "peer": "cd".repeat(32), "reason": "x\nbob  yours"}]);
        let forged = "x\nstate         another machine of yours";
        let one = peer(&json!({
            "name": "alice\nbob", "sync": "refused", "reason": "no\nbob (0b0b0b0b)  yours",
            "addresses": [forged], "refused_for": [{"reason": forged, "records": 1}],
        }));
        let shown = whole(&one);
        let states = shown.lines().filter(|line| line.starts_with("state")).count();
        assert_eq!(states, 1, "{shown}");
        let turned_away = serde_json::from_value(away).expect("one");
        let text = list(&Peers { addresses: Vec::new(), peers: vec![one], turned_away });
        assert_eq!(text.lines().count(), 2, "{text}");
    }

    #[test]
    fn a_peer_that_is_asked_or_paired_is_not_listed_as_turned_away() {
        let away = |key: &str| json!({"at": 0, "peer": key.repeat(32), "reason": "used"});
        let peers = Peers {
            addresses: Vec::new(),
            peers: vec![peer(&json!({"asked": true}))],
            turned_away: serde_json::from_value(json!([away("ab"), away("cd")])).expect("two"),
        };
        let text = list(&peers);
        assert!(!text.contains("turned away abab") && text.contains("turned away cdcd"), "{text}");
        assert!(text.contains(ASKED) && !text.contains("paired"), "{text}");
        assert_eq!(peer_label(&peer(&json!({"name": ""}))), "ab".repeat(32));
    }
}
