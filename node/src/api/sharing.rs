//! Between what travels over the socket about peers and what the node knows of them.

use super::errors::{ApiError, Kind};
use super::joining::{offers, open_request, request};
use super::places::mapped;
use super::server::Service;
use super::types::MappedCheckout;
use super::types::joins::WorkspaceOffer;
use super::types::peers::{self as types, Member, Peer, RefusedFor};
use crate::query::characters::is_seen;
use crate::query::{Numbers, TrustReport, cleaned, name_of, short_key};
use crate::replicate::{Live, PairError, Side};
use crate::store::peers::Society;
use crate::store::peers::rows::{Approval, PeerRow, RefusalRow, Way};
use crate::store::{Error, Snapshot};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_federation::net;
use klnode_federation::proto::sas::End;
use klnode_federation::proto::ticket::Offer;
use klnode_federation::proto::{Offerer, SyncState};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// So many reasons are told for which records of one peer are refused.
const REASONS_MAX: usize = 8;

const WRONG_CODE_HINT: &str =
    "run `klnode join` again; if the new digits differ too, another node is in between";

impl From<PairError> for ApiError {
    fn from(error: PairError) -> Self {
        let (kind, hint) = match &error {
            PairError::Write(rejection) => return rejection.clone().into(),
            PairError::NoSuchPeer(_) | PairError::NoSuchWorkspace(_) => (Kind::NotFound, None),
            PairError::Ambiguous(_) => (Kind::Ambiguous, None),
            PairError::SameName { .. } => {
                (Kind::Ambiguous, Some("give the beginning of its key instead"))
            }
            PairError::NotWaiting(_) => {
                (Kind::Invalid, Some("`klnode peer remove` sends away one that may talk already"))
            }
            PairError::VouchForSilent(_) => {
                (Kind::Refused, Some("`klnode peer approve` or `klnode peer unblock` lets it talk"))
            }
            PairError::VouchForConvicted(_) => (Kind::Refused, None),
            PairError::WrongCode => (Kind::Refused, Some(WRONG_CODE_HINT)),
            PairError::OtherCode => {
                (Kind::Refused, Some("compare the digits in `klnode peer list` on both machines"))
            }
            PairError::CodeNeeded(_) => {
                (Kind::Invalid, Some("add --code with the six digits that the other machine shows"))
            }
            PairError::KeyNeeded(_) => (
                Kind::Invalid,
                Some("compare its key with `klnode status` there, and give it whole"),
            ),
            PairError::BadCode(_) => (Kind::Invalid, None),
            PairError::Older => (
                Kind::Failed,
                Some("upgrade it, or let its operator make a ticket: `klnode invite --help`"),
            ),
            PairError::WantWithTicket => {
                (Kind::Invalid, Some("leave --mine and --member out, or join by address"))
            }
            PairError::NoWorkspaceToGrant(_) => (
                Kind::NotFound,
                Some("`klnode workspace new` makes it; then approve again with the same code"),
            ),
            PairError::NotPaired(_) => {
                (Kind::Invalid, Some("`klnode invite NAME` makes a ticket for a node that is not"))
            }
            PairError::AlreadyMember(_) | PairError::TooManyOffers(_) => (Kind::Invalid, None),
            PairError::NoSuchOffer(_) => (Kind::NotFound, None),
            PairError::SeveralOffers { .. } => {
                (Kind::Ambiguous, Some("say which with --from PEER"))
            }
            PairError::Ended(end) => ended(*end),
            PairError::Refused(_)
            | PairError::Impostor
            | PairError::MayNotInvite(_)
            | PairError::StillListed(_) => (Kind::Refused, None),
            PairError::Unreachable { .. } => {
                (Kind::Failed, Some("is it running, and can this machine reach its addresses?"))
            }
            PairError::Stopping | PairError::UnderWay => (Kind::Busy, None),
            PairError::Store(_) => (Kind::Failed, None),
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
            | PairError::NoAddress => (Kind::Invalid, None),
        };
        ApiError::new(kind, error.to_string(), hint)
    }
}

/// What kind of failure the end of an attempt to join by address is, and what to do.
fn ended(end: End) -> (Kind, Option<&'static str>) {
    match end {
        End::WrongCode => {
            (Kind::Refused, Some("run `klnode join` again, and compare the new digits"))
        }
        End::Refused => (Kind::Refused, None),
        End::Expired => (
            Kind::Failed,
            Some("run `klnode join` again, and have `klnode peer approve` typed there in time"),
        ),
        End::Cancelled => (Kind::Failed, None),
        End::Unknown => (Kind::Failed, Some("run `klnode join` again")),
        End::Mismatch => {
            (Kind::Refused, Some("another node may be in between; use a ticket instead"))
        }
        End::TooMany => (Kind::Busy, Some("wait some minutes, or use a ticket")),
        End::BadWant => (Kind::Invalid, None),
    }
}

/// The peer that somebody means: by name, as it is shown or as the peer says it, by key, or by peer
/// id, whole or as far as it is clear.
pub(super) fn find_peer(society: &Society, text: &str) -> Result<AuthorId, PairError> {
    if let Some(key) = net::author_of(text).or_else(|| AuthorId::from_hex(text)) {
        return Ok(key);
    }
    // Before all else as it is shown, with the beginning of its key: another may say that as its name.
    let is_shown = |(key, row): &(&AuthorId, &PeerRow)| {
        text == format!("{} ({})", cleaned(&row.name), short_key(**key))
    };
    let is_called = |row: &PeerRow| row.name == text || cleaned(&row.name) == text;
    let is_meant = |(key, row): &(&AuthorId, &PeerRow)| {
        is_called(row) || (text.len() >= 4 && key.to_string().starts_with(text))
    };
    let mut meant: Vec<_> = society.peers.iter().filter(is_shown).collect();
    if meant.is_empty() {
        meant = society.peers.iter().filter(is_meant).collect();
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

/// The workspace that somebody means.
pub(super) fn find_workspace(society: &Society, text: &str) -> Result<WorkspaceId, PairError> {
    let by_id = || WorkspaceId::from_hex(text).filter(|id| society.workspaces.contains_key(id));
    society
        .workspace(text)
        .or_else(by_id)
        .ok_or_else(|| PairError::NoSuchWorkspace(text.to_owned()))
}

impl Service {
    /// Who is who now.
    pub(super) fn society(&self, snapshot: &Snapshot) -> Result<Society, ApiError> {
        Ok(Society::read(snapshot, self.author, (self.now)())?)
    }

    /// The workspace that somebody means, or the one where new entries go.
    pub(super) fn workspace_for(&self, name: Option<&str>) -> Result<WorkspaceId, ApiError> {
        let snapshot = self.snapshot()?;
        let society = self.society(&snapshot)?;
        match name {
            Some(name) => Ok(find_workspace(&society, name)?),
            None => Ok(society.current()),
        }
    }

    /// Replication, where there is any.
    pub(super) fn replication(&self) -> Result<&crate::replicate::Handle, ApiError> {
        self.peers.as_ref().ok_or_else(|| {
            ApiError::new(Kind::Failed, "talk to peers: this node has no network", None)
        })
    }
}

/// A peer, as it is answered.
pub(super) fn peer(
    snapshot: &Snapshot,
    society: &Society,
    live: &Live,
    key: AuthorId,
    row: &PeerRow,
) -> Result<Peer, ApiError> {
    let (mut released, mut offered) = (0, 0);
    let charters = society.charters();
    for one in snapshot.releases(key)? {
        let (entry, one) = one?;
        if charters.contains(&entry) {
            continue;
        }
        released += u64::from(one.out == Way::Open);
        offered += u64::from(one.back == Way::Open);
    }
    let state = live.states.get(&key).cloned().unwrap_or_default();
    let equal_at = row.equal_at.map(|at| at.as_millis());
    let (sync, sync_at, differs, reason) = match state {
        // What came since is on its way there.
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
    let shared = society.acquaintance(key).shared;
    let join = open_request(live, key);
    let is_asking = join.is_some_and(|join| join.side == Side::Theirs);
    let is_asked = join.is_some_and(|join| join.side == Side::Ours);
    // Whoever has greeted, or compared since, has said yes.
    let has_talked =
        live.clocks.contains_key(&key) || row.equal_at.is_some_and(|at| at >= row.since);
    Ok(Peer {
        peer: key.to_string(),
        name: cleaned(&row.name),
        state: match (row.approval, row.is_waiting()) {
            _ if is_asking => "waiting",
            (Approval::Refused, _) => "refused",
            (_, true) => "waiting",
            (_, false) => "approved",
        }
        .to_owned(),
        asked: is_asked || (row.is_asked && !has_talked),
        mine: row.is_mine,
        blocked: row.is_blocked,
        connected: live.connected.contains_key(&key),
        addresses: row.places(),
        workspaces: shared.iter().map(|id| society.name(*id)).collect(),
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
        offers: offers_of(society, live.now, key),
        clock_ahead: live.clocks.get(&key).copied(),
        since: row.since.as_millis(),
        filters: None,
        trust: None,
    })
}

/// Membership that a peer offers.
fn offers_of(society: &Society, now: WallTime, peer: AuthorId) -> Vec<WorkspaceOffer> {
    let all = offers(society, now).into_iter();
    let of_peer = all.filter(|(ticket, _)| ticket.inviter == peer);
    of_peer.map(|(_, offer)| offer).collect()
}

/// How far an author is trusted, as it is answered.
pub(super) fn trust(report: &TrustReport) -> types::Trust {
    types::Trust {
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
        vouched: report
            .vouched
            .map(|(day, successes)| types::Vouched { since: day.start().as_millis(), successes }),
        series: report.series.iter().map(|(_, trust)| *trust).collect(),
    }
}

/// A workspace, as it is answered.
pub(super) fn workspace(
    snapshot: &Snapshot,
    society: &Society,
    numbers: &Numbers,
    id: WorkspaceId,
) -> Result<types::Workspace, ApiError> {
    let (weights, weights_from) = numbers.weights_in(society, id);
    let shared = society.workspaces.get(&id);
    let charter = shared.map(|shared| shared.charter.clone()).unwrap_or_default();
    let owner = charter.owner.map(|(owner, _)| owner);
    let role = |key: AuthorId| match charter.admins.contains(&key) {
        _ if owner == Some(key) => "owner",
        true => "admin",
        false => "member",
    };
    let members = charter.members.iter().map(|key| Member {
        key: key.to_string(),
        name: name_of(society, *key),
        role: role(*key).to_owned(),
    });
    let mut entries = 0;
    let charters = society.charters();
    for row in snapshot.entries()? {
        let (entry, row) = row?;
        let is_told = !row.is_forgotten && !charters.contains(&entry);
        entries += u64::from(row.workspace == Some(id) && is_told);
    }
    Ok(types::Workspace {
        id: id.to_string(),
        name: society.name(id),
        current: society.current() == id,
        here: false,
        owner: owner.map(|owner| owner.to_string()),
        members: members.collect(),
        settings: charter.settings.clone(),
        weights: weights
            .per_signal()
            .named()
            .map(|(name, weight)| (name.to_owned(), weight))
            .into(),
        weights_from: weights_from.name().to_owned(),
        entries,
        damaged: society.is_damaged(id),
        checkouts: checkouts_of(snapshot, id)?,
        offered: charter.checkouts.iter().filter_map(|line| mapped(line)).collect(),
        invited: invited(snapshot, society, id)?,
    })
}

/// Peers that were offered membership in a workspace and have not answered.
fn invited(
    snapshot: &Snapshot,
    society: &Society,
    id: WorkspaceId,
) -> Result<Vec<Member>, ApiError> {
    let is_of = |offer: &Offer| matches!(offer, Offer::Member(of, _) if *of == id);
    let all = snapshot.invitations()?.into_iter();
    // What was declined or taken back has no expiry left.
    let open = all.filter(|one| is_of(&one.offer) && one.used_by.is_none());
    let peers = open.filter(|one| one.expires > WallTime::from_millis(0));
    let members = peers.filter_map(|one| one.joiner).map(|key| Member {
        key: key.to_string(),
        name: name_of(society, key),
        role: "invited".to_owned(),
    });
    Ok(members.collect())
}

/// Checkouts that are mapped to a workspace here.
fn checkouts_of(snapshot: &Snapshot, id: WorkspaceId) -> Result<Vec<MappedCheckout>, ApiError> {
    let rows = snapshot.checkouts()?.into_iter().filter(|(_, row)| row.workspace == id);
    let checkouts = rows.filter_map(|(_, row)| {
        let (folder, since) = (Some(row.folder), Some(row.since.as_millis()));
        Some(MappedCheckout { folder, since, ..mapped(&row.identity)? })
    });
    Ok(checkouts.collect())
}

/// What is refused of the store that a peer was last read from.
fn refusals(
    snapshot: &Snapshot,
    peer: AuthorId,
) -> Result<Option<impl Iterator<Item = Result<RefusalRow, Error>>>, Error> {
    let Some(cursor) = snapshot.cursor(peer)? else { return Ok(None) };
    snapshot.refusals(Offerer { peer, store: cursor.store }).map(Some)
}

/// Why records of a peer are refused, the most frequent reason first.
pub(super) fn refused_for(snapshot: &Snapshot, peer: AuthorId) -> Result<Vec<RefusedFor>, Error> {
    let mut reasons = BTreeMap::<String, u64>::new();
    for row in refusals(snapshot, peer)?.into_iter().flatten() {
        if let Some(row) = Error::unless_damaged(row)? {
            *reasons.entry(row.reason).or_default() += 1;
        }
    }
    let mut counted: Vec<RefusedFor> =
        reasons.into_iter().map(|(reason, records)| RefusedFor { reason, records }).collect();
    counted.sort_by_key(|one| Reverse(one.records));
    counted.truncate(REASONS_MAX);
    Ok(counted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Rejection;
    use crate::engine::testing::store;
    use crate::store::Durability;
    use crate::store::peers::Workspace;
    use crate::store::peers::rows::ReleaseRow;
    use klnode_crdt::charter;
    use klnode_crdt::ids::EntryId;

    #[test]
    fn a_peer_is_shown_and_found_by_a_name_that_ends_no_label() {
        let [own, key] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let said = "al\u{200B}ice (yours); equal";
        let row = PeerRow { name: said.into(), ..PeerRow::default() };
        let society = Society { own, peers: [(key, row.clone())].into(), ..Society::default() };
        let held = store();
        let snapshot = held.snapshot().unwrap();
        let shown = peer(&snapshot, &society, &Live::default(), key, &row).unwrap();
        assert_eq!(shown.name, "alice _yours__ equal");
        for name in [said, &shown.name, "0202"] {
            assert_eq!(find_peer(&society, name).unwrap(), key, "{name}");
        }
        assert!(matches!(find_peer(&society, "bob"), Err(PairError::NoSuchPeer(_))));
    }

    #[test]
    fn of_several_of_one_name_each_is_found_as_it_is_shown_and_the_name_tells_their_keys() {
        let [own, one, other, third] = [1, 2, 3, 4].map(|byte| AuthorId::from_bytes([byte; 32]));
        let called = |name: &str| PeerRow { name: name.into(), ..PeerRow::default() };
        // The third says what is shown of the first.
        let peers = [(one, called("vm")), (other, called("vm")), (third, called("vm (02020202)"))];
        let society = Society { own, peers: peers.into(), ..Society::default() };
        for (text, expect) in [
            ("vm (02020202)", one),
            ("vm (03030303)", other),
            ("vm _02020202_ (04040404)", third),
            ("0303", other),
        ] {
            assert_eq!(find_peer(&society, text).unwrap(), expect, "{text}");
        }
        let several = ApiError::from(find_peer(&society, "vm").unwrap_err()).into_detail();
        assert_eq!(several.kind, Kind::Ambiguous);
        let expect = "cannot tell which peer is meant: 2 are called `vm`: 02020202, 03030303";
        assert_eq!(several.message, expect);
        assert!(several.hint.is_some());
    }

    #[test]
    fn charters_are_no_entries_that_pass_to_a_peer_or_from_it() {
        let [own, key] = [1, 2].map(|byte| AuthorId::from_bytes([byte; 32]));
        let ids = [7, 8, 9].map(|byte| WorkspaceId::from_bytes([byte; 16]));
        let entries = [3, 4, 5].map(|byte| EntryId::from_bytes([byte; 16]));
        let (row, held) = (PeerRow::default(), store());
        let batch = held.batch(Durability::Durable).unwrap();
        for entry in entries.into_iter().chain(ids.map(charter::entry)) {
            let back = if entry == entries[0] { Way::Ended } else { Way::Open };
            let release = ReleaseRow { out: Way::Open, back, ..ReleaseRow::default() };
            batch.put_release(key, entry, release).unwrap();
        }
        batch.commit().unwrap();
        let snapshot = held.snapshot().unwrap();
        // That of a workspace that is not known here is an entry like any other.
        for (known, expect) in [(0, (6, 5)), (1, (5, 4)), (3, (3, 2))] {
            let workspaces = ids[..known].iter().map(|id| (*id, Workspace::default())).collect();
            let society = Society { own, workspaces, ..Society::default() };
            let shown = peer(&snapshot, &society, &Live::default(), key, &row).unwrap();
            assert_eq!((shown.released, shown.offered), expect, "{known} are known");
        }
    }

    #[test]
    fn what_the_writer_cannot_do_is_no_fault_of_whoever_asked() {
        for (rejection, expect) in [
            (Rejection::from(Error::Full), Kind::Failed),
            (Rejection::Stopping, Kind::Busy),
            (Rejection::NoSuchEntry("LSN-1".into()), Kind::NotFound),
        ] {
            let told = ApiError::from(PairError::Write(rejection.clone())).into_detail();
            assert_eq!(told.kind, expect, "{rejection}");
            let plainly = ApiError::from(rejection).into_detail();
            assert_eq!((told.message, told.hint), (plainly.message, plainly.hint));
        }
    }
}
