//! Between what travels over the socket about peers and what the node knows of them.

use super::errors::{ApiError, Kind};
use super::places::mapped;
use super::server::Service;
use super::types::MappedCheckout;
use super::types::peers::{self as types, Member, Peer, Previewed};
use crate::query::{Found, Numbers, TrustReport, name_of};
use crate::replicate::{Live, PairError, Preview};
use crate::store::Snapshot;
use crate::store::peers::Society;
use crate::store::peers::rows::{Approval, PeerRow, Way};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::kind::{self, Kind as EntryKind};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_federation::net;
use klnode_federation::proto::filter::{Filter, Reach, STATUSES};
use klnode_federation::proto::{Offerer, SyncState};
use std::collections::BTreeSet;

impl From<PairError> for ApiError {
    fn from(error: PairError) -> Self {
        let (kind, hint) = match &error {
            PairError::Write(rejection) => return rejection.clone().into(),
            PairError::NoSuchPeer(_) | PairError::NoSuchWorkspace(_) => (Kind::NotFound, None),
            PairError::Ambiguous(_) => (Kind::Ambiguous, None),
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
            | PairError::Oneself
            | PairError::NameTaken(_)
            | PairError::BadName(_)
            | PairError::Personal(_)
            | PairError::NoAddress => (Kind::Invalid, None),
        };
        ApiError::new(kind, error.to_string(), hint)
    }
}

/// The peer that somebody means: by name, by key, or by peer id, whole or as far as it is clear.
pub(super) fn find_peer(society: &Society, text: &str) -> Result<AuthorId, PairError> {
    if let Some(key) = net::author_of(text).or_else(|| AuthorId::from_hex(text)) {
        return Ok(key);
    }
    let is_meant = |(key, row): &(&AuthorId, &PeerRow)| {
        row.name == text || (text.len() >= 4 && key.to_string().starts_with(text))
    };
    let mut meant = society.peers.iter().filter(is_meant).map(|(key, _)| *key);
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(PairError::Ambiguous(text.to_owned())),
        _ => Err(PairError::NoSuchPeer(text.to_owned())),
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

    /// The workspace that somebody means, or the one where new entries go, by its id.
    pub(super) fn workspace_for(&self, name: Option<&str>) -> Result<String, ApiError> {
        let snapshot = self.snapshot()?;
        let society = self.society(&snapshot)?;
        let id = match name {
            Some(name) => find_workspace(&society, name)?,
            None => society.current(),
        };
        Ok(id.to_string())
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
    for one in snapshot.releases(key)? {
        let (entry, one) = one?;
        if society.is_charter(entry) {
            continue;
        }
        released += u64::from(one.out == Way::Open);
        offered += u64::from(one.back == Way::Open);
    }
    let state = live.states.get(&key).cloned().unwrap_or_default();
    let equal_at = row.equal_at.map(|at| at.as_millis());
    let (sync, sync_at, differs, reason) = match state {
        SyncState::Equal(at) => ("equal", Some(at.as_millis()), None, None),
        SyncState::Differs(count, at) => {
            ("differs", Some(at.as_millis()), Some(count as u64), None)
        }
        SyncState::Reading => ("reading", equal_at, None, None),
        SyncState::Refused(why) => ("refused", equal_at, None, Some(why)),
        SyncState::Unknown => ("unknown", equal_at, None, None),
    };
    let refused = match snapshot.cursor(key)? {
        Some(cursor) => {
            let offer = Offerer { peer: key, store: cursor.store };
            snapshot.refusals(offer)?.count() as u64
        }
        None => 0,
    };
    let shared = society.acquaintance(key).shared;
    Ok(Peer {
        peer: key.to_string(),
        name: row.name.clone(),
        state: match row.approval {
            Approval::Approved => "approved",
            Approval::Waiting => "waiting",
            Approval::Refused => "refused",
        }
        .to_owned(),
        mine: row.is_mine,
        blocked: row.is_blocked,
        connected: live.connected.contains_key(&key),
        addresses: row.addresses.clone(),
        workspaces: shared.iter().map(|id| society.name(*id)).collect(),
        sync: sync.to_owned(),
        sync_at,
        differs,
        reason,
        refused,
        released,
        offered,
        code: row.code.clone(),
        clock_ahead: live.clocks.get(&key).copied(),
        since: row.since.as_millis(),
        filters: None,
        trust: None,
    })
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
    let role = |key: AuthorId| match () {
        () if owner == Some(key) => "owner",
        () if charter.admins.contains(&key) => "admin",
        () => "member",
    };
    let members = charter.members.iter().map(|key| Member {
        key: key.to_string(),
        name: name_of(society, *key),
        role: role(*key).to_owned(),
    });
    let mut entries = 0;
    for row in snapshot.entries()? {
        let (entry, row) = row?;
        let is_told = !row.is_forgotten && !society.is_charter(entry);
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
    })
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

/// A filter, as it is answered.
pub(super) fn filter(of: &Filter, society: &Society) -> types::Filter {
    let words = |set: &BTreeSet<String>| Some(set.iter().cloned().collect());
    let memory = |code: &u8| Memory::from_code(*code).map(|memory| memory.to_string());
    types::Filter {
        workspaces: Some(of.workspaces.iter().map(|id| society.name(*id)).collect()),
        tags_allow: words(&of.tags_allow),
        tags_deny: words(&of.tags_deny),
        confidence_min: Some(of.confidence_min),
        types: words(&of.types),
        memories: Some(of.memories.iter().filter_map(memory).collect()),
        threads_exclude: words(&of.threads_exclude),
        reach: Some(
            match of.reach {
                Reach::CreatedHere => "created_here",
                Reach::AlsoRelayed => "also_relayed",
            }
            .to_owned(),
        ),
        statuses: words(&of.statuses),
    }
}

fn known(field: &str, words: Vec<String>, all: &[&str]) -> Result<BTreeSet<String>, ApiError> {
    for word in &words {
        if !all.contains(&word.as_str()) {
            let message =
                format!("set the filter: {field} has `{word}`; there are {}", all.join(", "));
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
    }
    Ok(words.into_iter().collect())
}

/// A filter with some fields changed.
pub(super) fn changed(
    mut of: Filter,
    by: types::Filter,
    society: &Society,
) -> Result<Filter, ApiError> {
    if let Some(names) = by.workspaces {
        let ids = names.iter().map(|name| find_workspace(society, name));
        of.workspaces = ids.collect::<Result<_, _>>()?;
    }
    let set = |words: Vec<String>| words.into_iter().collect::<BTreeSet<String>>();
    of.tags_allow = by.tags_allow.map(set).unwrap_or(of.tags_allow);
    of.tags_deny = by.tags_deny.map(set).unwrap_or(of.tags_deny);
    of.threads_exclude = by.threads_exclude.map(set).unwrap_or(of.threads_exclude);
    if let Some(least) = by.confidence_min {
        if !(0.0..=1.0).contains(&least) {
            let message = format!("set the filter: confidence_min is {least}; use 0 to 1");
            return Err(ApiError::new(Kind::Invalid, message, None));
        }
        of.confidence_min = least;
    }
    if let Some(types) = by.types {
        let all: Vec<&str> = EntryKind::ALL.iter().map(|row| row.1).collect();
        of.types = known("types", types, &all)?;
    }
    if let Some(statuses) = by.statuses {
        of.statuses = known("statuses", statuses, &STATUSES)?;
    }
    if let Some(memories) = by.memories {
        let all: Vec<&str> = Memory::ALL.iter().map(|row| row.1).collect();
        let names = known("memories", memories, &all)?;
        of.memories =
            names.iter().filter_map(|name| Memory::parse(name)).map(Memory::code).collect();
    }
    if let Some(reach) = by.reach {
        let all = ["created_here", "also_relayed"];
        known("reach", vec![reach.clone()], &all)?;
        of.reach = if reach == all[0] { Reach::CreatedHere } else { Reach::AlsoRelayed };
    }
    Ok(of)
}

/// A preview, with what people call the entries.
pub(super) fn preview(
    service: &Service,
    snapshot: &Snapshot,
    society: &Society,
    of: &Preview,
    filters: types::Filters,
) -> Result<types::Preview, ApiError> {
    let named = |entry: EntryId| -> Result<Previewed, ApiError> {
        let read = service.reader.read(snapshot, entry, (service.now)());
        let found = crate::store::Error::unless_damaged(read)?.flatten();
        let code = found.as_ref().map_or_else(|| kind::code_digits(entry), Found::code);
        let title = found.as_ref().and_then(|found| found.view.text(Register::TITLE));
        let (id, title) = (entry.to_string(), title.unwrap_or_default().to_owned());
        Ok(Previewed { id, code, title, rule: None, reason: None })
    };
    let is_told = |entry: &&EntryId| !society.is_charter(**entry);
    let all = |entries: &[EntryId]| entries.iter().filter(is_told).map(|e| named(*e)).collect();
    let mut held: Vec<Previewed> = Vec::new();
    for one in of.held.iter().filter(|one| !society.is_charter(one.entry)) {
        let (rule, reason) = (Some(one.rule.name().to_owned()), Some(one.rule.to_string()));
        held.push(Previewed { rule, reason, ..named(one.entry)? });
    }
    let (released, would_be) = (all(&of.released), all(&of.would_be));
    let would_end: Result<Vec<Previewed>, ApiError> = all(&of.would_end);
    Ok(types::Preview {
        filters,
        released: released?,
        would_be: would_be?,
        would_end: would_end?,
        held,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Rejection;
    use crate::store::Error;

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
