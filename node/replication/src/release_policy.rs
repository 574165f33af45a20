//! Decides which entries are released to a peer. Release, ingress and preview call the same
//! function on the same facts.

use klnode_config::sections as config;
use klnode_config::units::{self, BoundedList, ScopeName};
use klnode_crdt::claims::{Claims, TextSet};
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_view::{EntryView, State};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::register::Register;
use klnode_crdt::removal_page_origin::RemovalPage;
use klnode_crdt::time::WallTime;
use klnode_crdt::workspace_charter;
use klnode_federation::proto::entry_filter::{
    Acquaintance, FilterDecision, FilterRule, FilterSubject, PeerFilter, Reach, STATUSES,
};
use klnode_query::{AssessedEntry, ReadContext, Reader};
use klnode_store::peers::Membership;
use klnode_store::peers::row_types::{PeerRow, ReleaseState};
use klnode_store::{Error, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Decides which entries pass.
#[derive(Clone, Debug)]
pub struct ReleasePolicy {
    reader: Arc<Reader>,
    egress: config::Egress,
    ingress: config::Ingress,
}

/// An entry that is held back, with the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The id of the entry that is held back.
    pub entry: EntryId,
    /// The rule of the filter that holds the entry back.
    pub rule: FilterRule,
}

/// The effect of a filter on the releases to a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasePreview {
    /// Entries that are released and stay released.
    pub released: Vec<EntryId>,
    /// Entries that are not released now and that the filter would release.
    pub would_be: Vec<EntryId>,
    /// Entries that are released now and whose release the filter would end.
    pub would_end: Vec<EntryId>,
    /// Entries that are held back, with the rule.
    pub held: Vec<HeldBack>,
}

/// The facts of an entry for filters. A claim of a fellow member may hold this person's entries
/// back but not release them, so an entry must pass twice: as displayed, and as this person placed
/// it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ExaminedEntry {
    /// The facts as displayed.
    pub(super) shown: FilterSubject,
    /// The facts of an entry that this person created or imported, with thread, type and tags by
    /// this person only.
    pub(super) placed: FilterSubject,
    /// Whether the operator has to decide about the entry before peers get it.
    pub(super) is_held: bool,
}

/// The change of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReleaseChange {
    Open,
    End,
    Stay(Option<FilterRule>),
}

impl ReleasePolicy {
    /// Uses these configured filters for peers without own filters.
    pub fn new(reader: Arc<Reader>, filters: &config::Filters) -> Self {
        Self { reader, egress: filters.egress.clone(), ingress: filters.ingress.clone() }
    }

    /// The filter for entries sent to a peer.
    pub fn egress(&self, row: &PeerRow, membership: &Membership) -> PeerFilter {
        row.egress.clone().unwrap_or_else(|| given(sent(&self.egress, membership), row))
    }

    /// The filter for entries accepted from a peer.
    pub fn ingress(&self, row: &PeerRow, membership: &Membership) -> PeerFilter {
        row.ingress.clone().unwrap_or_else(|| given(taken(&self.ingress, membership), row))
    }

    /// The read context in which the filter is evaluated.
    pub(super) fn reading<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        membership: &Arc<Membership>,
        now: WallTime,
    ) -> ReadContext<'a> {
        self.reader.with_membership(snapshot, Arc::clone(membership), now)
    }

    /// The facts of an entry for filters; `None` if it has no live text.
    pub(super) fn subject(
        &self,
        reading: &ReadContext<'_>,
        entry: EntryId,
    ) -> Result<Option<ExaminedEntry>, Error> {
        let Some(found) = reading.read(entry)? else { return Ok(None) };
        if found.view.state != State::Live {
            return Ok(None);
        }
        let Some(mut subject) = facts(&found.view, entry) else { return Ok(None) };
        add_assessment(&mut subject, &found);
        if !subject.is_charter && subject.removes.is_none() {
            subject.creator_hop = distance(reading, entry, &found.view)?;
        }
        let placed = placed(reading, entry, &found.view, &subject)?;
        let is_held = found.assessment.is_held;
        Ok(Some(ExaminedEntry { shown: subject, placed, is_held }))
    }

    /// The change of the release of an entry to a peer by a filter. `peer` is computed once for
    /// many entries.
    pub(super) fn turn(
        &self,
        examined: Option<&ExaminedEntry>,
        filter: &PeerFilter,
        membership: &Membership,
        peer: &Acquaintance,
        out: ReleaseState,
    ) -> ReleaseChange {
        let Some(ExaminedEntry { shown, placed, is_held }) = examined else {
            return ReleaseChange::Stay(None);
        };
        // The members are uncertain, so no release is opened or ended.
        if membership.is_damaged(shown.workspace) {
            return ReleaseChange::Stay(None);
        }
        let rule = |of: &FilterSubject| match filter.verdict(of, peer) {
            FilterDecision::Pass => None,
            FilterDecision::Hold(rule) => Some(rule),
        };
        // The first rule by order; rules that only open a release come last.
        let held = is_held.then_some(FilterRule::Disclosure);
        match ([shown, placed].into_iter().filter_map(rule).min().or(held), out) {
            (None, ReleaseState::Open) => ReleaseChange::Stay(None),
            (None, _) => ReleaseChange::Open,
            (Some(rule), ReleaseState::Open) if !rule.only_opens() => ReleaseChange::End,
            (Some(rule), _) => ReleaseChange::Stay(Some(rule)),
        }
    }

    /// The effect of a filter on a peer; of its own filter if none is given. Examines one entry if
    /// it is given, else all entries.
    pub fn preview(
        &self,
        snapshot: &Snapshot,
        membership: &Arc<Membership>,
        peer: AuthorId,
        filter: Option<&PeerFilter>,
        (now, only): (WallTime, Option<EntryId>),
    ) -> Result<ReleasePreview, Error> {
        let reading = self.reading(snapshot, membership, now);
        let row = membership.peers.get(&peer).cloned().unwrap_or_default();
        let own = self.egress(&row, membership);
        let filter = filter.unwrap_or(&own);
        let acquaintance = membership.acquaintance(peer);
        let mut preview = ReleasePreview::default();
        let (first, last) = match only {
            Some(entry) => (*entry.as_bytes(), *entry.as_bytes()),
            None => ([0; 16], [0xFF; 16]),
        };
        for entry in snapshot.entries_between(first, last)? {
            let (entry, view) = entry?;
            if view.is_forgotten || view.is_parked() {
                continue;
            }
            // The release of a damaged entry stays unchanged.
            let subject = Error::unless_damaged(self.subject(&reading, entry))?.flatten();
            let out = snapshot.release(peer, entry)?.out;
            match self.turn(subject.as_ref(), filter, membership, &acquaintance, out) {
                ReleaseChange::Open => preview.would_be.push(entry),
                ReleaseChange::End => preview.would_end.push(entry),
                ReleaseChange::Stay(_) if out == ReleaseState::Open => preview.released.push(entry),
                ReleaseChange::Stay(Some(rule)) => preview.held.push(HeldBack { entry, rule }),
                ReleaseChange::Stay(None) => {}
            }
        }
        Ok(preview)
    }
}

/// The facts in a view, without confidence, status and distance.
pub(super) fn facts(view: &EntryView, entry: EntryId) -> Option<FilterSubject> {
    let origin = view.origin.as_ref()?;
    let tags = view.texts.get(&TextSet::TAGS);
    Some(FilterSubject {
        workspace: origin.workspace(),
        memory: origin.memory(),
        kind: view.text(Register::TYPE).unwrap_or_default().to_owned(),
        thread: view.text(Register::THREAD).filter(|thread| !thread.is_empty()).map(str::to_owned),
        tags: tags.map(|tags| tags.keys().cloned().collect()).unwrap_or_default(),
        confidence: 1.0,
        status: "candidate".into(),
        creator_hop: Some(0),
        is_charter: workspace_charter::entry(origin.workspace()) == entry,
        removes: RemovalPage::of(origin).map(|page| page.member),
    })
}

/// The facts without claims of fellow members.
fn placed(
    reading: &ReadContext<'_>,
    entry: EntryId,
    view: &EntryView,
    shown: &FilterSubject,
) -> Result<FilterSubject, Error> {
    let creator = view.origin.as_ref().and_then(|origin| origin.creator());
    // An entry of another person was already released to this node by its creator.
    if creator.is_some_and(|creator| !reading.membership.mine.contains(&creator)) {
        return Ok(shown.clone());
    }
    let places = |by: &AuthorId| reading.membership.mine.contains(by);
    let tags = view.texts.get(&TextSet::TAGS).into_iter().flatten();
    let tags = tags.filter(|(_, by)| by.iter().any(places)).map(|(tag, _)| tag.clone());
    let mut of = FilterSubject { tags: tags.collect(), ..shown.clone() };
    let is_moved =
        |register| view.registers.get(&register).is_some_and(|shown| !places(&shown.value.author));
    // Rarely needed: the entry is read again without the claims of others.
    if is_moved(Register::THREAD) || is_moved(Register::TYPE) {
        let without = reading.own_view(entry)?;
        let without = facts(&without, entry).filter(|_| without.text(Register::TYPE).is_some());
        // The importer decides about an entry that only others imported.
        let Some(without) = without else { return Ok(shown.clone()) };
        (of.thread, of.kind) = (without.thread, without.kind);
    }
    Ok(of)
}

/// The distance of an entry: that of its creator, or of the nearest author who imported it.
fn distance(
    reading: &ReadContext<'_>,
    entry: EntryId,
    view: &EntryView,
) -> Result<Option<u8>, Error> {
    let far = |author| hop(reading.snapshot, &reading.membership, author);
    if let Some(creator) = view.origin.as_ref().and_then(|origin| origin.creator()) {
        return far(creator);
    }
    // In most cases the displayed text comes from this person.
    let shown = view.registers.get(&Register::TYPE).map(|shown| shown.value.author);
    if shown.is_some_and(|by| reading.membership.mine.contains(&by)) {
        return Ok(Some(0));
    }
    let held = reading.snapshot.entry(entry)?.to_entry();
    let hops: Result<Vec<Option<u8>>, Error> = importers(&held).map(far).collect();
    Ok(hops?.into_iter().flatten().min())
}

/// The authors who imported an entry without a creator. An importer sets the type; authors who only
/// add a tag or a link do not count.
pub(super) fn importers(held: &Entry) -> impl Iterator<Item = AuthorId> + '_ {
    let has_type = |(_, said): &(&AuthorId, &Claims)| said.registers.contains_key(&Register::TYPE);
    held.claims.iter().filter(has_type).map(|(author, _)| *author)
}

fn add_assessment(subject: &mut FilterSubject, found: &AssessedEntry) {
    // Without prior evidence from an import, which must not release anything.
    subject.confidence = found.assessment.facts.posterior.mean();
    subject.status = found.assessment.standing.status.name().to_owned();
}

/// The distance of an author; `None` if no approved peer reports one.
pub(super) fn hop(
    snapshot: &Snapshot,
    membership: &Membership,
    author: AuthorId,
) -> Result<Option<u8>, Error> {
    if membership.mine.contains(&author) {
        return Ok(Some(0));
    }
    if membership.is_approved(author) || membership.is_fellow(author) {
        return Ok(Some(1));
    }
    let said = snapshot.distances(author)?;
    let is_heard = |peer: &AuthorId| membership.peers.get(peer).is_some_and(|row| !row.is_blocked);
    let near = said.into_iter().filter(|(peer, _)| membership.is_approved(*peer) && is_heard(peer));
    Ok(near.map(|(_, hop)| hop.saturating_add(1).max(2)).min())
}

/// The filter for a peer without an own filter. Between a person's own nodes, raw, doubted and
/// archived entries pass as well.
fn given(filter: PeerFilter, row: &PeerRow) -> PeerFilter {
    if !row.counts_as_mine() {
        return filter;
    }
    PeerFilter {
        confidence_min: 0.0,
        memories: Memory::ALL.iter().map(|(memory, _)| memory.code()).collect(),
        statuses: all_statuses(),
        ..filter
    }
}

fn all_statuses() -> BTreeSet<String> {
    STATUSES.iter().map(|status| (*status).to_owned()).collect()
}

fn words<T>(list: &BoundedList<T>, word: impl Fn(&T) -> &str) -> BTreeSet<String> {
    list.as_slice().iter().map(|one| word(one).to_owned()).collect()
}

/// The configured filter for sent entries.
fn sent(from: &config::Egress, membership: &Membership) -> PeerFilter {
    PeerFilter {
        confidence_min: from.confidence_min.get(),
        statuses: words(&from.statuses, |one| one.as_str()),
        ..taken(&from.structural_criteria(), membership)
    }
}

/// The configured filter for accepted entries, with workspaces by id.
fn taken(from: &config::Ingress, membership: &Membership) -> PeerFilter {
    // An unknown name must not mean all workspaces.
    let id = |name: &ScopeName| membership.workspace(name.as_str()).unwrap_or(NOWHERE);
    let code = |memory: &units::Memory| Memory::parse(memory.as_str()).map(Memory::code);
    PeerFilter {
        workspaces: from.workspaces.as_slice().iter().map(id).collect(),
        tags_allow: words(&from.tags_allow, ScopeName::as_str),
        tags_deny: words(&from.tags_deny, ScopeName::as_str),
        confidence_min: 0.0,
        types: words(&from.types, |one| one.as_str()),
        memories: from.memories.as_slice().iter().filter_map(code).collect(),
        threads_exclude: words(&from.threads_exclude, ScopeName::as_str),
        reach: match from.reach {
            units::Reach::CreatedHere => Reach::CreatedHere,
            units::Reach::AlsoRelayed => Reach::AlsoRelayed,
        },
        statuses: all_statuses(),
    }
}

/// An id that no workspace has.
const NOWHERE: WorkspaceId = WorkspaceId::from_bytes([0xFF; 16]);

#[cfg(test)]
mod tests;
