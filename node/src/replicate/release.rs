//! Which entries a peer may have. Decided here and nowhere else: release, ingress and preview call
//! the same function on the same facts.

use crate::query::{Found, Reader, Reading};
use crate::store::peers::Society;
use crate::store::peers::rows::{PeerRow, Way};
use crate::store::{Error, Snapshot};
use klnode_config::sections as config;
use klnode_config::units::{self, List, Name};
use klnode_crdt::charter;
use klnode_crdt::claims::{Claims, TextSet};
use klnode_crdt::entry::Entry;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::WallTime;
use klnode_crdt::view::{State, View};
use klnode_federation::proto::filter::{
    Acquaintance, Filter, Reach, Rule, STATUSES, Subject, Verdict,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Decides what passes.
#[derive(Clone, Debug)]
pub struct Examiner {
    reader: Arc<Reader>,
    egress: config::Egress,
    ingress: config::Ingress,
}

/// What is held back, and by which rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which entry.
    pub entry: EntryId,
    /// The rule.
    pub rule: Rule,
}

/// What a peer may have, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preview {
    /// Released already.
    pub released: Vec<EntryId>,
    /// Would be released by the filter that is asked about.
    pub would_be: Vec<EntryId>,
    /// Is released, and would not be any more.
    pub would_end: Vec<EntryId>,
    /// Held back, with the rule.
    pub held: Vec<Held>,
}

/// What filters look at of an entry. A fellow member may say of this person's entries what holds them
/// back, and nothing that lets them go: they have to pass as they are shown, and as they were placed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Examined {
    /// As it is shown.
    pub(super) shown: Subject,
    /// What this person created or imported, with thread, type and tags as this person says.
    pub(super) placed: Subject,
}

/// What is to change for one peer and entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Open,
    End,
    Stay(Option<Rule>),
}

impl Examiner {
    /// With the filters of the configuration for peers that have none of their own.
    pub fn new(reader: Arc<Reader>, filters: &config::Filters) -> Self {
        Self { reader, egress: filters.egress.clone(), ingress: filters.ingress.clone() }
    }

    /// What is sent to a peer.
    pub fn egress(&self, row: &PeerRow, society: &Society) -> Filter {
        row.egress.clone().unwrap_or_else(|| given(sent(&self.egress, society), row))
    }

    /// What is taken from a peer.
    pub fn ingress(&self, row: &PeerRow, society: &Society) -> Filter {
        row.ingress.clone().unwrap_or_else(|| given(taken(&self.ingress, society), row))
    }

    /// Begins to read what is examined.
    pub(super) fn reading<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        society: &Arc<Society>,
        now: WallTime,
    ) -> Reading<'a> {
        self.reader.among(snapshot, Arc::clone(society), now)
    }

    /// The facts of an entry that filters look at; none if it has nothing to show.
    pub(super) fn subject(
        &self,
        reading: &Reading<'_>,
        entry: EntryId,
    ) -> Result<Option<Examined>, Error> {
        let Some(found) = reading.read(entry)? else { return Ok(None) };
        if found.view.state != State::Live {
            return Ok(None);
        }
        let Some(mut subject) = facts(&found.view, entry) else { return Ok(None) };
        judged(&mut subject, &found);
        if !subject.is_charter {
            subject.creator_hop = distance(reading, entry, &found.view)?;
        }
        let placed = placed(reading, entry, &found.view, &subject)?;
        Ok(Some(Examined { shown: subject, placed }))
    }

    /// What is to change about the release of an entry to a peer, by a filter. Whoever asks about many
    /// entries finds out once what the peer is to this node.
    pub(super) fn turn(
        &self,
        examined: Option<&Examined>,
        filter: &Filter,
        society: &Society,
        peer: &Acquaintance,
        out: Way,
    ) -> Turn {
        let Some(Examined { shown, placed }) = examined else { return Turn::Stay(None) };
        // Who belongs there is not known for certain: nothing is opened, and nothing ended.
        if society.is_damaged(shown.workspace) {
            return Turn::Stay(None);
        }
        let rule = |of: &Subject| match filter.verdict(of, peer) {
            Verdict::Pass => None,
            Verdict::Hold(rule) => Some(rule),
        };
        // The first rule: those that only open a release come last.
        match ([shown, placed].into_iter().filter_map(rule).min(), out) {
            (None, Way::Open) => Turn::Stay(None),
            (None, _) => Turn::Open,
            (Some(rule), Way::Open) if !rule.only_opens() => Turn::End,
            (Some(rule), _) => Turn::Stay(Some(rule)),
        }
    }

    /// What a peer has, would have by a filter (its own, if none is given), and has not.
    pub fn preview(
        &self,
        snapshot: &Snapshot,
        society: &Arc<Society>,
        peer: AuthorId,
        filter: Option<&Filter>,
        now: WallTime,
    ) -> Result<Preview, Error> {
        let reading = self.reading(snapshot, society, now);
        let row = society.peers.get(&peer).cloned().unwrap_or_default();
        let own = self.egress(&row, society);
        let filter = filter.unwrap_or(&own);
        let acquaintance = society.acquaintance(peer);
        let mut preview = Preview::default();
        for entry in snapshot.entries()? {
            let (entry, view) = entry?;
            if view.is_forgotten || view.is_parked() {
                continue;
            }
            // What is damaged stays as it is.
            let subject = Error::unless_damaged(self.subject(&reading, entry))?.flatten();
            let out = snapshot.release(peer, entry)?.out;
            match self.turn(subject.as_ref(), filter, society, &acquaintance, out) {
                Turn::Open => preview.would_be.push(entry),
                Turn::End => preview.would_end.push(entry),
                Turn::Stay(_) if out == Way::Open => preview.released.push(entry),
                Turn::Stay(Some(rule)) => preview.held.push(Held { entry, rule }),
                Turn::Stay(None) => {}
            }
        }
        Ok(preview)
    }
}

/// What is in a view, before anything is judged.
pub(super) fn facts(view: &View, entry: EntryId) -> Option<Subject> {
    let origin = view.origin.as_ref()?;
    let tags = view.texts.get(&TextSet::TAGS);
    Some(Subject {
        workspace: origin.workspace(),
        memory: origin.memory(),
        kind: view.text(Register::TYPE).unwrap_or_default().to_owned(),
        thread: view.text(Register::THREAD).filter(|thread| !thread.is_empty()).map(str::to_owned),
        tags: tags.map(|tags| tags.keys().cloned().collect()).unwrap_or_default(),
        confidence: 1.0,
        status: "candidate".into(),
        creator_hop: Some(0),
        is_charter: charter::entry(origin.workspace()) == entry,
    })
}

/// The same facts, less what fellow members say of them.
fn placed(
    reading: &Reading<'_>,
    entry: EntryId,
    view: &View,
    shown: &Subject,
) -> Result<Subject, Error> {
    let creator = view.origin.as_ref().and_then(|origin| origin.creator());
    // What another person created came here because somebody let it go.
    if creator.is_some_and(|creator| !reading.society.mine.contains(&creator)) {
        return Ok(shown.clone());
    }
    let places = |by: &AuthorId| reading.society.mine.contains(by);
    let tags = view.texts.get(&TextSet::TAGS).into_iter().flatten();
    let tags = tags.filter(|(_, by)| by.iter().any(places)).map(|(tag, _)| tag.clone());
    let mut of = Subject { tags: tags.collect(), ..shown.clone() };
    let is_moved =
        |register| view.registers.get(&register).is_some_and(|shown| !places(&shown.value.author));
    // Seldom: what others wrote over is read again without them.
    if is_moved(Register::THREAD) || is_moved(Register::TYPE) {
        let without = reading.placed(entry)?;
        let without = facts(&without, entry).filter(|_| without.text(Register::TYPE).is_some());
        // An import by others is theirs to place.
        let Some(without) = without else { return Ok(shown.clone()) };
        (of.thread, of.kind) = (without.thread, without.kind);
    }
    Ok(of)
}

/// How far whoever stands for an entry is: its creator, or the nearest who imported it.
fn distance(reading: &Reading<'_>, entry: EntryId, view: &View) -> Result<Option<u8>, Error> {
    let far = |author| hop(reading.snapshot, &reading.society, author);
    if let Some(creator) = view.origin.as_ref().and_then(|origin| origin.creator()) {
        return far(creator);
    }
    // Mostly what is shown tells.
    let shown = view.registers.get(&Register::TYPE).map(|shown| shown.value.author);
    if shown.is_some_and(|by| reading.society.mine.contains(&by)) {
        return Ok(Some(0));
    }
    let held = reading.snapshot.entry(entry)?.to_entry();
    let hops: Result<Vec<Option<u8>>, Error> = importers(&held).map(far).collect();
    Ok(hops?.into_iter().flatten().min())
}

/// Who imported an entry that has no creator: whoever does says of which type it is. A tag or an edge
/// that others add makes it nobody's.
pub(super) fn importers(held: &Entry) -> impl Iterator<Item = AuthorId> + '_ {
    let has_type = |(_, said): &(&AuthorId, &Claims)| said.registers.contains_key(&Register::TYPE);
    held.claims.iter().filter(has_type).map(|(author, _)| *author)
}

fn judged(subject: &mut Subject, found: &Found) {
    // Without prior evidence from an import: that lets nothing go.
    subject.confidence = found.judged.facts.posterior.mean();
    subject.status = found.judged.standing.status.name().to_owned();
}

/// How far an author is; none if nobody near says.
pub(super) fn hop(
    snapshot: &Snapshot,
    society: &Society,
    author: AuthorId,
) -> Result<Option<u8>, Error> {
    if society.mine.contains(&author) {
        return Ok(Some(0));
    }
    if society.is_approved(author) || society.is_fellow(author) {
        return Ok(Some(1));
    }
    let said = snapshot.distances(author)?;
    let is_heard = |peer: &AuthorId| society.peers.get(peer).is_some_and(|row| !row.is_blocked);
    let near = said.into_iter().filter(|(peer, _)| society.is_approved(*peer) && is_heard(peer));
    Ok(near.map(|(_, hop)| hop.saturating_add(1).max(2)).min())
}

/// A filter for a peer of which the operator has said nothing. Between a person's own machines nothing
/// stays behind for where it stands: what is raw, doubted or archived is the person's as well.
fn given(filter: Filter, row: &PeerRow) -> Filter {
    if !row.counts_as_mine() {
        return filter;
    }
    Filter {
        confidence_min: 0.0,
        memories: Memory::ALL.iter().map(|(memory, _)| memory.code()).collect(),
        statuses: all_statuses(),
        ..filter
    }
}

fn all_statuses() -> BTreeSet<String> {
    STATUSES.iter().map(|status| (*status).to_owned()).collect()
}

fn words<T>(list: &List<T>, word: impl Fn(&T) -> &str) -> BTreeSet<String> {
    list.as_slice().iter().map(|one| word(one).to_owned()).collect()
}

/// What the configuration says is sent.
fn sent(from: &config::Egress, society: &Society) -> Filter {
    Filter {
        confidence_min: from.confidence_min.get(),
        statuses: words(&from.statuses, |one| one.as_str()),
        ..taken(&from.unjudged(), society)
    }
}

/// What the configuration says is taken, its workspaces by id.
fn taken(from: &config::Ingress, society: &Society) -> Filter {
    // A name that nothing carries must not stand for everything.
    let id = |name: &Name| society.workspace(name.as_str()).unwrap_or(NOWHERE);
    let code = |memory: &units::Memory| Memory::parse(memory.as_str()).map(Memory::code);
    Filter {
        workspaces: from.workspaces.as_slice().iter().map(id).collect(),
        tags_allow: words(&from.tags_allow, Name::as_str),
        tags_deny: words(&from.tags_deny, Name::as_str),
        confidence_min: 0.0,
        types: words(&from.types, |one| one.as_str()),
        memories: from.memories.as_slice().iter().filter_map(code).collect(),
        threads_exclude: words(&from.threads_exclude, Name::as_str),
        reach: match from.reach {
            units::Reach::CreatedHere => Reach::CreatedHere,
            units::Reach::AlsoRelayed => Reach::AlsoRelayed,
        },
        statuses: all_statuses(),
    }
}

/// The id of no workspace.
const NOWHERE: WorkspaceId = WorkspaceId::from_bytes([0xFF; 16]);

#[cfg(test)]
mod tests;
