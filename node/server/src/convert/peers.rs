//! Converts peers and workspaces between the types of the API and those of the store.

use super::joins::{offers, open_request, request};
use crate::errors::ApiError;
use klnode_api_types::ErrorKind;
use klnode_api_types::MappedCheckout;
use klnode_api_types::joins::WorkspaceOffer;
use klnode_api_types::peers::{Member, Peer, RejectionCount, RemovedMember};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_federation::net;
use klnode_federation::proto::sas::AttemptEnd;
use klnode_federation::proto::ticket::JoinOffer;
use klnode_federation::proto::{Offerer, SyncState};
use klnode_git::RepositoryIdentity;
use klnode_query::{ScoringParams, TrustReport, clean_name, name_of, short_key};
use klnode_replication::{JoinDirection, LiveState, PairError};
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::{PeerApproval, PeerRow, RefusalRow, ReleaseState};
use klnode_store::{Error, Snapshot};
use klnode_text::unicode::is_seen;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of reasons listed for the rejected records of one peer.
const REASONS_MAX: usize = 8;

const KEY_NEEDED_HINT: &str =
    "Compare its key with `klnode status` on that machine and give the whole key.";
const SILENT_HINT: &str = "Run `klnode peer approve` or `klnode peer unblock` first.";
const CODE_NEEDED_HINT: &str = "Add --code with the six digits that the other machine shows.";
const NEW_NODE_HINT: &str = "Run `klnode peer invite NAME` to make a ticket for a new node.";
const MEMBERS_HINT: &str = "Run `klnode workspace members NAME` to see the members.";
const DEPENDANTS_HINT: &str = "Add --keep-members to list them yourself, or --drop-members.";
const WRONG_CODE_HINT: &str =
    "Run `klnode peer join` again; if the new digits differ too, another node is in between.";

impl From<PairError> for ApiError {
    fn from(error: PairError) -> Self {
        let (kind, hint) = match &error {
            PairError::Write(rejection) => return rejection.clone().into(),
            PairError::NoSuchPeer(_) | PairError::NoSuchWorkspace(_) => (ErrorKind::NotFound, None),
            PairError::Ambiguous(_) => (ErrorKind::Ambiguous, None),
            PairError::SameName { .. } => {
                (ErrorKind::Ambiguous, Some("Give the start of its key instead."))
            }
            PairError::NotWaiting(_) => (
                ErrorKind::Invalid,
                Some("Run `klnode peer remove` to end the pairing with a paired node."),
            ),
            PairError::VouchForSilent(_) => (ErrorKind::Refused, Some(SILENT_HINT)),
            PairError::VouchForConvicted(_) => (ErrorKind::Refused, None),
            PairError::WrongCode => (ErrorKind::Refused, Some(WRONG_CODE_HINT)),
            PairError::OtherCode => (
                ErrorKind::Refused,
                Some("Compare the digits in `klnode peer list` on both machines."),
            ),
            PairError::CodeNeeded(_) => (ErrorKind::Invalid, Some(CODE_NEEDED_HINT)),
            PairError::KeyNeeded(_) => (ErrorKind::Invalid, Some(KEY_NEEDED_HINT)),
            PairError::BadCode(_) => (ErrorKind::Invalid, None),
            PairError::Older => (
                ErrorKind::Failed,
                Some("Upgrade it, or ask its operator for a ticket: `klnode peer invite --help`."),
            ),
            PairError::WantWithTicket => {
                (ErrorKind::Invalid, Some("Omit --mine and --member, or join by address."))
            }
            PairError::NoWorkspaceToGrant(_) => (
                ErrorKind::NotFound,
                Some("Run `klnode workspace new`, then approve again with the same code."),
            ),
            PairError::NotPaired(_) => (ErrorKind::Invalid, Some(NEW_NODE_HINT)),
            PairError::AlreadyMember(_) | PairError::TooManyOffers(_) => (ErrorKind::Invalid, None),
            PairError::NoSuchOffer(_) => (ErrorKind::NotFound, None),
            PairError::SeveralOffers { .. } => {
                (ErrorKind::Ambiguous, Some("Name the peer with --from PEER."))
            }
            PairError::Ended(end) => ended(*end),
            PairError::Refused(_)
            | PairError::Impostor
            | PairError::MayNotInvite(_)
            | PairError::StillRemoved(..) => (ErrorKind::Refused, None),
            PairError::NotMember(_) => (ErrorKind::NotFound, Some(MEMBERS_HINT)),
            PairError::AloneLists(..) => (ErrorKind::Refused, Some(DEPENDANTS_HINT)),
            PairError::Unreachable { .. } => (
                ErrorKind::Failed,
                Some("Check that it runs and that this machine can reach its addresses."),
            ),
            PairError::Stopping | PairError::UnderWay => (ErrorKind::Busy, None),
            PairError::Store(_) => (ErrorKind::Failed, None),
            PairError::Ticket(_)
            | PairError::NotATarget(_)
            | PairError::Expired
            | PairError::Oneself(_)
            | PairError::NotBlocked(_)
            | PairError::NotVouched(_)
            | PairError::VouchForOwn(_)
            | PairError::NameTaken(_)
            | PairError::BadName(_)
            | PairError::Personal(_)
            | PairError::NoAddress => (ErrorKind::Invalid, None),
        };
        ApiError::new(kind, error.to_string(), hint)
    }
}

/// The kind of error and the hint for a failed attempt to join by address.
fn ended(end: AttemptEnd) -> (ErrorKind, Option<&'static str>) {
    match end {
        AttemptEnd::WrongCode => {
            (ErrorKind::Refused, Some("Run `klnode peer join` again and compare the new digits."))
        }
        AttemptEnd::Refused => (ErrorKind::Refused, None),
        AttemptEnd::Expired => (
            ErrorKind::Failed,
            Some("Run `klnode peer join` again, then `klnode peer approve` there in time."),
        ),
        AttemptEnd::Cancelled => (ErrorKind::Failed, None),
        AttemptEnd::Unknown => (ErrorKind::Failed, Some("Run `klnode peer join` again.")),
        AttemptEnd::Mismatch => {
            (ErrorKind::Refused, Some("Another node may be in between; use a ticket instead."))
        }
        AttemptEnd::TooMany => (ErrorKind::Busy, Some("Wait a few minutes, or use a ticket.")),
        AttemptEnd::BadWant => (ErrorKind::Invalid, None),
    }
}

/// Finds a peer by its name (as displayed or as the peer gives it), its key, its peer id, or an
/// unambiguous prefix of its key.
pub(crate) fn find_peer(membership: &Membership, text: &str) -> Result<AuthorId, PairError> {
    if let Some(key) = net::author_of(text).or_else(|| AuthorId::from_hex(text)) {
        return Ok(key);
    }
    // The displayed form with the start of the key takes precedence: another peer may have chosen
    // that text as its name.
    let is_shown = |(key, row): &(&AuthorId, &PeerRow)| {
        text == format!("{} ({})", clean_name(&row.name), short_key(**key))
    };
    let is_called = |row: &PeerRow| row.name == text || clean_name(&row.name) == text;
    let is_meant = |(key, row): &(&AuthorId, &PeerRow)| {
        is_called(row) || (text.len() >= 4 && key.to_string().starts_with(text))
    };
    let mut meant: Vec<_> = membership.peers.iter().filter(is_shown).collect();
    if meant.is_empty() {
        meant = membership.peers.iter().filter(is_meant).collect();
    }
    match meant.as_slice() {
        [] => Err(PairError::NoSuchPeer(text.to_owned())),
        [(one, _)] => Ok(**one),
        several if several.iter().all(|(_, row)| is_called(row)) => {
            let keys: Vec<String> = several.iter().map(|(key, _)| short_key(**key)).collect();
            let (name, count) = (text.to_owned(), several.len());
            Err(PairError::SameName { name, count, keys: keys.join(", ") })
        }
        _ => Err(PairError::Ambiguous(text.to_owned())),
    }
}

/// Finds a workspace by name or id.
pub(crate) fn find_workspace(
    membership: &Membership,
    text: &str,
) -> Result<WorkspaceId, PairError> {
    let by_id = || WorkspaceId::from_hex(text).filter(|id| membership.workspaces.contains_key(id));
    membership
        .workspace(text)
        .or_else(by_id)
        .ok_or_else(|| PairError::NoSuchWorkspace(text.to_owned()))
}

/// A peer in the form of the API.
pub(crate) fn peer(
    snapshot: &Snapshot,
    membership: &Membership,
    live: &LiveState,
    key: AuthorId,
    row: &PeerRow,
) -> Result<Peer, ApiError> {
    let (mut released, mut offered) = (0, 0);
    let charters = membership.internal_entries();
    for one in snapshot.releases(key)? {
        let (entry, one) = one?;
        if charters.contains(&entry) {
            continue;
        }
        released += u64::from(one.out == ReleaseState::Open);
        offered += u64::from(one.back == ReleaseState::Open);
    }
    let state = live.states.get(&key).cloned().unwrap_or_default();
    let equal_at = row.equal_at.map(|at| at.as_millis());
    let (sync, sync_at, differs, reason) = match state {
        // Newer records are being sent to the peer.
        SyncState::Equal(at) if live.news_for.contains(&key) => {
            ("reading", Some(at.as_millis()), None, None)
        }
        SyncState::Equal(at) => ("equal", Some(at.as_millis()), None, None),
        SyncState::Differs(count, at) => {
            ("differs", Some(at.as_millis()), Some(count as u64), None)
        }
        SyncState::Reading => ("reading", equal_at, None, None),
        SyncState::Refused(why) => {
            let seen = why.chars().filter(|c| is_seen(*c)).collect();
            ("refused", equal_at, None, Some(seen))
        }
        SyncState::Unknown => ("unknown", equal_at, None, None),
    };
    let refused = refusals(snapshot, key)?.map_or(0, |rows| rows.count() as u64);
    let shared = membership.acquaintance(key).shared;
    let join = open_request(live, key);
    let is_asking = join.is_some_and(|join| join.side == JoinDirection::Theirs);
    let is_asked = join.is_some_and(|join| join.side == JoinDirection::Ours);
    // A peer that completed a handshake or a comparison since then has approved this node.
    let has_talked =
        live.clocks.contains_key(&key) || row.equal_at.is_some_and(|at| at >= row.since);
    Ok(Peer {
        peer: key.to_string(),
        name: clean_name(&row.name),
        state: match (row.approval, row.is_waiting()) {
            _ if is_asking => "waiting",
            (PeerApproval::Refused, _) => "refused",
            (_, true) => "waiting",
            (_, false) => "approved",
        }
        .to_owned(),
        asked: is_asked || (row.is_asked && !has_talked),
        mine: row.is_mine,
        blocked: row.is_blocked,
        connected: live.connected.contains_key(&key),
        addresses: row.places(),
        workspaces: shared.iter().map(|id| membership.name(*id)).collect(),
        sync: sync.to_owned(),
        sync_at,
        differs,
        reason,
        refused,
        refused_for: Vec::new(),
        released,
        offered,
        code: join.map_or_else(|| row.code.clone(), |join| join.code.clone()),
        request: join.map(request),
        offers: offers_of(membership, live.now, key),
        clock_ahead: live.clocks.get(&key).copied(),
        since: row.since.as_millis(),
        filters: None,
        trust: None,
    })
}

/// Offers of membership by one peer.
fn offers_of(membership: &Membership, now: WallTime, peer: AuthorId) -> Vec<WorkspaceOffer> {
    let all = offers(membership, now).into_iter();
    let of_peer = all.filter(|(ticket, _)| ticket.inviter == peer);
    of_peer.map(|(_, offer)| offer).collect()
}

/// The trust in an author in the form of the API, with the evidence behind it.
pub(crate) fn trust(report: &TrustReport) -> klnode_api_types::peers::Trust {
    klnode_api_types::peers::Trust {
        value: report.standing.trust,
        weight: report.standing.weight.value,
        hop: report.standing.hop.map(|hop| hop.0),
        successes: report.successes,
        failures: report.failures,
        successes_ignored: report.successes_ignored,
        alpha: report.alpha,
        beta: report.beta,
        of_all: report.of_all,
        of_recent: report.of_recent,
        recent_outcomes: report.recent_outcomes as u64,
        left: report.fading.left,
        earned: report.standing.earned.trust,
        vouched: report.vouched.map(|(day, successes)| klnode_api_types::peers::VouchState {
            since: day.start().as_millis(),
            successes,
        }),
        series: report.series.iter().map(|(_, trust)| *trust).collect(),
    }
}

/// A workspace in the form of the API.
pub(crate) fn workspace(
    snapshot: &Snapshot,
    membership: &Membership,
    numbers: &ScoringParams,
    id: WorkspaceId,
) -> Result<klnode_api_types::peers::Workspace, ApiError> {
    let (weights, weights_from) = numbers.weights_in(membership, id);
    let shared = membership.workspaces.get(&id);
    let charter = shared.map(|shared| shared.charter.clone()).unwrap_or_default();
    let owner = charter.owner.map(|(owner, _)| owner);
    let role = |key: AuthorId| match charter.admins.contains(&key) {
        _ if owner == Some(key) => "owner",
        true => "admin",
        false => "member",
    };
    let compared = |key: AuthorId| {
        let equal_at = membership.peers.get(&key).and_then(|row| row.equal_at);
        equal_at.map(|at| at.as_millis())
    };
    let members = charter.members.iter().map(|key| Member {
        key: key.to_string(),
        name: name_of(membership, *key),
        role: role(*key).to_owned(),
        compared_at: compared(*key),
    });
    let removed = shared.into_iter().flat_map(|shared| {
        let of = |(key, by): (&AuthorId, &BTreeSet<AuthorId>)| RemovedMember {
            key: key.to_string(),
            name: name_of(membership, *key),
            by: by.iter().map(|author| name_of(membership, *author)).collect(),
            records: shared.removals.get(key).map_or(0, |row| row.digests),
            since: shared.removals.get(key).map_or(0, |row| row.since.as_millis()),
        };
        shared.charter.removed.iter().map(of).collect::<Vec<_>>()
    });
    let mut entries = 0;
    let charters = membership.internal_entries();
    for row in snapshot.entries()? {
        let (entry, row) = row?;
        let is_counted = !row.is_forgotten && !charters.contains(&entry);
        entries += u64::from(row.workspace == Some(id) && is_counted);
    }
    Ok(klnode_api_types::peers::Workspace {
        id: id.to_string(),
        name: membership.name(id),
        current: membership.current() == id,
        here: false,
        owner: owner.map(|owner| owner.to_string()),
        members: members.collect(),
        removed: removed.collect(),
        removed_here: charter.removed.contains_key(&membership.own),
        settings: charter.settings.clone(),
        weights: weights
            .per_signal()
            .named()
            .map(|(name, weight)| (name.to_owned(), weight))
            .into(),
        weights_from: weights_from.name().to_owned(),
        entries,
        damaged: membership.is_damaged(id),
        checkouts: checkouts_of(snapshot, id)?,
        offered: charter.checkouts.iter().filter_map(|line| mapped(line)).collect(),
        invited: invited(snapshot, membership, id)?,
    })
}

/// Peers that were offered membership in a workspace and have not answered.
fn invited(
    snapshot: &Snapshot,
    membership: &Membership,
    id: WorkspaceId,
) -> Result<Vec<Member>, ApiError> {
    let is_of = |offer: &JoinOffer| matches!(offer, JoinOffer::Member(of, _) if *of == id);
    let all = snapshot.invitations()?.into_iter();
    // A declined or withdrawn offer has no expiry time.
    let open = all.filter(|one| is_of(&one.offer) && one.used_by.is_none());
    let peers = open.filter(|one| one.expires > WallTime::from_millis(0));
    let members = peers.filter_map(|one| one.joiner).map(|key| Member {
        key: key.to_string(),
        name: name_of(membership, key),
        role: "invited".to_owned(),
        compared_at: None,
    });
    Ok(members.collect())
}

/// Checkouts that this node maps to a workspace.
fn checkouts_of(snapshot: &Snapshot, id: WorkspaceId) -> Result<Vec<MappedCheckout>, ApiError> {
    let rows = snapshot.checkouts()?.into_iter().filter(|(_, row)| row.workspace == id);
    let checkouts = rows.filter_map(|(_, row)| {
        let (folder, since) = (Some(row.folder), Some(row.since.as_millis()));
        Some(MappedCheckout { folder, since, ..mapped(&row.identity)? })
    });
    Ok(checkouts.collect())
}

/// The refusals for the store from which the peer was last read.
fn refusals(
    snapshot: &Snapshot,
    peer: AuthorId,
) -> Result<Option<impl Iterator<Item = Result<RefusalRow, Error>>>, Error> {
    let Some(cursor) = snapshot.cursor(peer)? else { return Ok(None) };
    snapshot.refusals(Offerer { peer, store: cursor.store }).map(Some)
}

/// The reasons why records of a peer are rejected, most frequent first.
pub(crate) fn refused_for(
    snapshot: &Snapshot,
    peer: AuthorId,
) -> Result<Vec<RejectionCount>, Error> {
    let mut reasons = BTreeMap::<String, u64>::new();
    for row in refusals(snapshot, peer)?.into_iter().flatten() {
        if let Some(row) = Error::unless_damaged(row)? {
            *reasons.entry(row.reason).or_default() += 1;
        }
    }
    let mut counted: Vec<RejectionCount> =
        reasons.into_iter().map(|(reason, records)| RejectionCount { reason, records }).collect();
    counted.sort_by_key(|one| Reverse(one.records));
    counted.truncate(REASONS_MAX);
    Ok(counted)
}

/// Parses the stored identity of a checkout; `None` if it is empty or malformed.
fn mapped(line: &str) -> Option<MappedCheckout> {
    let identity: RepositoryIdentity = line.parse().ok()?;
    Some(MappedCheckout {
        roots: identity.roots().iter().cloned().collect(),
        remote: identity.remote().map(str::to_owned),
        folder: None,
        since: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_crdt::ids::EntryId;
    use klnode_crdt::workspace_charter;
    use klnode_engine::Rejection;
    use klnode_engine::testing::store;
    use klnode_store::Durability;
    use klnode_store::peers::SharedWorkspace;
    use klnode_store::peers::row_types::ReleaseRow;

    #[test]
    fn a_peer_name_is_sanitised_and_still_finds_the_peer() {
        let [own, key] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let said = "al\u{200B}ice (yours); equal";
        let row = PeerRow { name: said.into(), ..PeerRow::default() };
        let membership =
            Membership { own, peers: [(key, row.clone())].into(), ..Membership::default() };
        let held = store();
        let snapshot = held.snapshot().unwrap();
        let shown = peer(&snapshot, &membership, &LiveState::default(), key, &row).unwrap();
        assert_eq!(shown.name, "alice _yours__ equal");
        for name in [said, &shown.name, "0202"] {
            assert_eq!(find_peer(&membership, name).unwrap(), key, "{name}");
        }
        assert!(matches!(find_peer(&membership, "bob"), Err(PairError::NoSuchPeer(_))));
    }

    #[test]
    fn peers_with_one_name_are_found_by_their_displayed_form() {
        let [own, one, other, third] = [1, 2, 3, 4].map(|byte| AuthorId::from_bytes([byte; 32]));
        let called = |name: &str| PeerRow { name: name.into(), ..PeerRow::default() };
        // The third peer chose the displayed form of the first as its name.
        let peers = [(one, called("vm")), (other, called("vm")), (third, called("vm (02020202)"))];
        let membership = Membership { own, peers: peers.into(), ..Membership::default() };
        for (text, expect) in [
            ("vm (02020202)", one),
            ("vm (03030303)", other),
            ("vm _02020202_ (04040404)", third),
            ("0303", other),
        ] {
            assert_eq!(find_peer(&membership, text).unwrap(), expect, "{text}");
        }
        let several = ApiError::from(find_peer(&membership, "vm").unwrap_err()).into_detail();
        assert_eq!(several.kind, ErrorKind::Ambiguous);
        let expect = "2 peers are called `vm`: 02020202, 03030303.";
        assert_eq!(several.message, expect);
        assert!(several.hint.is_some());
    }

    #[test]
    fn charters_are_not_counted_as_released_or_offered() {
        let [own, key] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let ids = [7, 8, 9].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let entries = [3, 4, 5].map(|byte| EntryId::from_bytes([byte; 16]));
        let (row, held) = (PeerRow::default(), store());
        let batch = held.batch(Durability::Durable).unwrap();
        for entry in entries.into_iter().chain(ids.map(workspace_charter::entry)) {
            let back = if entry == entries[0] { ReleaseState::Ended } else { ReleaseState::Open };
            let release = ReleaseRow { out: ReleaseState::Open, back, ..ReleaseRow::default() };
            batch.put_release(key, entry, release).unwrap();
        }
        batch.commit().unwrap();
        let snapshot = held.snapshot().unwrap();
        // The charter of an unknown workspace counts as an ordinary entry.
        for (known, expect) in [(0, (6, 5)), (1, (5, 4)), (3, (3, 2))] {
            let workspaces =
                ids[..known].iter().map(|id| (*id, SharedWorkspace::default())).collect();
            let membership = Membership { own, workspaces, ..Membership::default() };
            let shown = peer(&snapshot, &membership, &LiveState::default(), key, &row).unwrap();
            assert_eq!((shown.released, shown.offered), expect, "{known} known workspaces");
        }
    }

    #[test]
    fn errors_of_the_writer_keep_their_kind_message_and_hint() {
        for (rejection, expect) in [
            (Rejection::from(Error::Full), ErrorKind::Failed),
            (Rejection::Stopping, ErrorKind::Busy),
            (Rejection::NoSuchEntry("LSN-1".into()), ErrorKind::NotFound),
        ] {
            let error = ApiError::from(PairError::Write(rejection.clone())).into_detail();
            assert_eq!(error.kind, expect, "{rejection}");
            let direct = ApiError::from(rejection).into_detail();
            assert_eq!((error.message, error.hint), (direct.message, direct.hint));
        }
    }
}
