//! The one path into the store, for records written here and records brought by peers.
//!
//! A record arrives verified. If its entry was forgotten it is swallowed; if it is a tombstone it
//! erases; otherwise the judge speaks, and then it is merged with its author's other records on the
//! entry: covered ones go, retracted payloads are erased, and the feed gets a row.

use super::command::{Ingested, Source, Verdict};
use super::covered::{Covered, CoveredInStep};
use super::crowd::Crowds;
use super::hints::Unsaid;
use super::peers::TOO_MANY_WAIT;
use super::step::{Judge, Own};
use crate::store::peers::rows::{ReleaseRow, Way};
use crate::store::rows::{CallerRow, QuarantineRow, ViewRow};
use crate::store::{Batch, Error, Label, Waiting};
use klnode_crdt::entry::Entry;
use klnode_crdt::header::Facet;
use klnode_crdt::holding::{Changes, Holding, Outcome};
use klnode_crdt::ids::{AuthorId, WorkspaceId};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::tombstone::Authority;
use klnode_crdt::writer::Writer;

mod kept;

pub(super) use kept::Kept;

/// Why a record without a payload is not taken yet.
const UNEXPLAINED: &str = "its payload is missing, unexplained";
/// Why one is not taken whose author has as many as there may be.
const OVER_QUOTA: &str = "its author has too many live records here";

/// Everything a record meets on its way in.
pub(super) struct Ingest<'a> {
    pub(super) writer: &'a mut Own,
    pub(super) judge: &'a mut dyn Judge,
    pub(super) now: WallTime,
    /// On whose behalf, if anybody asks at all: of a caller nothing may be known.
    pub(super) caller: Option<CallerRow>,
    /// Whether another life of this home has shown in this step, or something of its own was dropped
    /// as damaged: one new boot is enough.
    pub(super) has_met_past: bool,
    /// How many authors unknown here each peer has brought, and how much is held of entries, as far as
    /// this step has looked.
    pub(super) crowds: Crowds,
    /// What was read for the record before, and may do for the next.
    pub(super) kept: Kept,
    /// Hints that a record of this step no longer gives.
    pub(super) unsaid: Unsaid,
    /// Records that those of this step cover, for readers of the feed.
    pub(super) covered: CoveredInStep,
}

/// Whether the judge has a say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// It has.
    Judge,
    /// The operator has decided, or it was admitted before.
    Nobody,
}

impl Ingest<'_> {
    /// The session in which somebody asks, if it has a name.
    pub(super) fn session(&self) -> Option<Label> {
        self.caller.and_then(|caller| caller.session)
    }

    /// Takes in a verified record, if the judge admits it.
    pub(super) fn ingest(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
    ) -> Result<Ingested, Error> {
        self.take(batch, record, source, Ask::Judge)
    }

    pub(super) fn take(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
        ask: Ask,
    ) -> Result<Ingested, Error> {
        if record.header().facet == Facet::Tombstone {
            return self.bury(batch, record, source);
        }
        // One that is damaged says as much: nothing else is written in its place.
        match Error::unless_damaged(batch.tombstone(record.entry()))? {
            Some(None) => {}
            told => {
                self.answer_with(batch, told.flatten().as_ref(), source)?;
                return Ok(Ingested::Forgotten);
            }
        }
        if source != Source::Local
            && let Some(ingested) = self.one_too_many(batch, record)?
        {
            return Ok(ingested);
        }
        let before = self.held_beside(batch, record, source)?;
        if ask == Ask::Judge
            && let Some(reason) = self.crowds(batch, record, source)?
        {
            return Ok(Ingested::Refused(reason));
        }
        let (ingested, after) = self.merge(batch, record, (source, ask), &before)?;
        if source != Source::Local {
            self.keep(record, after.unwrap_or(before));
        }
        Ok(ingested)
    }

    /// Merges a record with what is held beside it: what becomes of it, and what is held then, if that
    /// is something else.
    fn merge(
        &mut self,
        batch: &Batch,
        record: &Record,
        (source, ask): (Source, Ask),
        before: &Holding,
    ) -> Result<(Ingested, Option<Holding>), Error> {
        let mut after = before.clone();
        let merge = after.merge(record.clone());
        if let Some(proof) = &merge.proof {
            // What is held of the two does not depend on whether the proof is kept.
            let from = self.bringer(source).unwrap_or(self.writer.key.author());
            self.hear_proof(batch, from, proof)?;
        }
        let is_own_past = source != Source::Local && record.author() == self.writer.key.author();
        let changes = match merge.outcome {
            Outcome::Merged(changes) => changes,
            // A twin of what this life has signed comes from another life in the same slot. Once
            // this life writes elsewhere it tells nothing new, however often it is brought.
            Outcome::Known if is_own_past && merge.proof.is_some() => {
                if record.header().place.boot == self.writer.boot {
                    self.meet_own_past(batch, before, record)?;
                }
                return Ok((Ingested::Known, None));
            }
            Outcome::Known => {
                self.note_bringer(batch, record, source)?;
                return Ok((Ingested::Known, None));
            }
            Outcome::Unexplained => return Ok((Ingested::Deferred(UNEXPLAINED.into()), None)),
            Outcome::OverQuota => return Ok((Ingested::Refused(OVER_QUOTA.into()), None)),
        };
        // Only what would be shown is judged: a payload that a retraction takes away at once is
        // not, and what is taken back is always heard, whoever takes it back.
        let stays = after.get(record.digest()).is_some_and(|live| live.payload().is_some());
        if ask == Ask::Judge && stays && record.header().facet != Facet::Retraction {
            match self.judge.judge(record, source) {
                Verdict::Admit => {}
                Verdict::Quarantine(reason) => {
                    return Ok((self.quarantine(batch, record, source, reason)?, None));
                }
                Verdict::Refuse(reason) => return Ok((Ingested::Refused(reason), None)),
            }
        }
        if source != Source::Local
            && let Some(reason) = self.overfills(batch, record, ask, (before, &after))?
        {
            return Ok((Ingested::Refused(reason.into()), None));
        }
        let ingested = self.apply(batch, before, &after, record, &changes)?;
        self.follow_bytes(record, (before, &after));
        self.follow_edges(batch, record)?;
        self.pass_on(batch, record, source)?;
        if is_own_past {
            self.meet_own_past(batch, before, record)?;
        }
        Ok((ingested, Some(after)))
    }

    fn apply(
        &mut self,
        batch: &Batch,
        before: &Holding,
        after: &Holding,
        record: &Record,
        changes: &Changes,
    ) -> Result<Ingested, Error> {
        let mut covered = Vec::new();
        for record in changes.covered.iter().filter_map(|digest| before.get(*digest)) {
            covered.extend(batch.drop_record(record)?.map(|from| (from, record.clone())));
        }
        if !changes.erased.is_empty() {
            self.covered.erased.push(record.entry());
        }
        let others = changes.erased.iter().filter(|digest| **digest != record.digest());
        for erased in others.filter_map(|digest| after.get(*digest)) {
            batch.erase_payload(erased)?;
        }
        if let Some(stripped) = before.get(record.digest()) {
            batch.drop_record(stripped)?;
        }
        // What a retraction strips at once, and what is held covers then, leaves no trace.
        let live = after.get(record.digest());
        let seq = live.map(|live| batch.put_record(live)).transpose()?;
        let until = seq.map_or_else(|| batch.head(), Ok)?;
        self.covered.covered.extend(covered.into_iter().map(|(from, record)| Covered {
            from,
            until,
            entry: record.entry(),
            record: Some(record),
        }));
        if record.header().facet == Facet::Retraction {
            // What waits of this author says what was taken back: it need not wait any longer.
            let (entry, author) = (record.entry(), record.author());
            let claims = [Facet::Claims.code()];
            let under = [&entry.as_bytes()[..], &author.as_bytes()[..], &claims].concat();
            batch.drop_quarantined_under(&under)?;
        }

        let row = batch.view_row(record.entry())?;
        let is_reworded = match &row {
            // A tally says nothing in words, and may be long to go through.
            Some(row) if record.header().facet != Facet::Tally => {
                self.rewords(batch, row, record.author(), (before, after))?
            }
            _ => false,
        };
        let mut row = row.unwrap_or_else(|| ViewRow::new(self.now));
        row.reworded = if is_reworded { Some(self.now) } else { row.reworded };
        if let Some(
            Payload::Claims { origin: Some(origin), .. }
            | Payload::Retraction { origin: Some(origin), .. },
        ) = live.and_then(Record::payload)
        {
            row.learn(origin);
        }
        self.follow_hints(batch, (before, after), (record.entry(), record.author()))?;
        let gone = before.records().len() as u32;
        row.records = row.records.saturating_sub(gone).saturating_add(after.records().len() as u32);
        row.seq = seq.unwrap_or(row.seq);
        batch.put_view_row(record.entry(), &row)?;
        Ok(seq.map_or(Ingested::Known, Ingested::Merged))
    }

    /// Whether somebody else whose word is shown says something else now as content, title or summary
    /// of an entry that is known: what was confirmed until now was another text.
    fn rewords(
        &self,
        batch: &Batch,
        row: &ViewRow,
        author: AuthorId,
        (before, after): (&Holding, &Holding),
    ) -> Result<bool, Error> {
        let texts = |held: &Holding| Entry::assemble(held.records()).texts_by(author);
        if self.writer.mine.contains(&author) || texts(before) == texts(after) {
            return Ok(false);
        }
        match row.workspace {
            _ if row.creator == Some(author) => Ok(true),
            Some(workspace) if !workspace.is_personal() => {
                Ok(batch.heard_members(workspace, self.now)?.contains(&author))
            }
            _ => Ok(false),
        }
    }

    /// An own record this node did not know comes from another life of its home: a clone, or what
    /// was written before an old copy was restored. From now on this life writes into fresh slots,
    /// and what the other's age would cover is signed again.
    fn meet_own_past(
        &mut self,
        batch: &Batch,
        before: &Holding,
        record: &Record,
    ) -> Result<(), Error> {
        self.leave_slots(batch)?;
        let facet = record.header().facet;
        let version = record.version();
        let is_aged = |held: &Record| version.covers_by_age_alone(&held.version());
        if !before.facet(facet).any(is_aged) {
            return Ok(());
        }
        let both = Holding::from_held(before.records().cloned().chain([record.clone()]));
        let entry = record.entry();
        let writer = Writer { key: &self.writer.key, boot: self.writer.boot, entry, own: &both };
        let stamp = self.writer.clock.stamp(self.now);
        match writer.carry_over(facet, stamp) {
            Ok(carried) => self.take(batch, &carried, Source::Local, Ask::Nobody).map(|_| ()),
            // Too much to say in one record: then both stay with whoever holds them.
            Err(refusal) => {
                tracing::warn!(%entry, %refusal, "own records of two lives do not fit together");
                Ok(())
            }
        }
    }

    /// From now on this life writes into fresh slots.
    fn leave_slots(&mut self, batch: &Batch) -> Result<(), Error> {
        if self.has_met_past {
            return Ok(());
        }
        self.has_met_past = true;
        self.draw_boot(batch)
    }

    /// Draws a new boot: nothing this life writes from now on meets what it wrote before.
    pub(super) fn draw_boot(&mut self, batch: &Batch) -> Result<(), Error> {
        self.writer.draw_boot();
        batch.begin_epoch(self.writer.boot, self.now)
    }

    /// Forgets an entry.
    fn bury(
        &mut self,
        batch: &Batch,
        tombstone: &Record,
        source: Source,
    ) -> Result<Ingested, Error> {
        let is_entitled = match tombstone.authority() {
            Authority::Proved => true,
            Authority::IfMine => self.is_own_word(batch, tombstone.author(), source)?,
            Authority::None => false,
        };
        if !is_entitled {
            return Ok(Ingested::Refused("its author may not forget the entry".into()));
        }
        let entry = tombstone.entry();
        // A damaged one is replaced.
        let held = Error::unless_damaged(batch.tombstone(entry))?.flatten();
        let is_known = held.is_some_and(|held| held.digest() <= tombstone.digest());
        if let Some(from) = self.bringer(source) {
            batch.owe_receipt(from, entry)?;
        }
        if is_known {
            self.note_bringer(batch, tombstone, source)?;
            return Ok(Ingested::Known);
        }
        let row = batch.view_row(entry)?.unwrap_or_else(|| ViewRow::new(self.now));
        let seq = batch.put_tombstone(tombstone, &row)?;
        self.covered.erased.push(entry);
        self.pass_on(batch, tombstone, source)?;
        Ok(Ingested::Merged(seq))
    }

    /// Gives whoever brings something of an entry that is forgotten here the tombstone, if it was not
    /// among those who were told: it holds the entry. Where the entry is none of its business it cannot
    /// hold it, and would learn that it was here.
    fn answer_with(
        &self,
        batch: &Batch,
        tombstone: Option<&Record>,
        source: Source,
    ) -> Result<(), Error> {
        let (Some(from), Some(tombstone)) = (self.bringer(source), tombstone) else {
            return Ok(());
        };
        let entry = tombstone.entry();
        let row = Error::unless_damaged(batch.view_row(entry))?.flatten();
        let is_mine = self.writer.mine.contains(&from);
        if batch.release(from, entry)?.has_passed()
            || is_apart(place(row.as_ref(), tombstone), is_mine)
        {
            return Ok(());
        }
        batch.brought_of(from, entry, true, self.now)?;
        batch.queue(from, tombstone.digest(), false, self.writer.boot)
    }

    /// Whether a tombstone that only the person may write is the person's: one of its machines wrote it,
    /// or brought it, and has honoured it then. A lost one that is blocked here has no word by way of
    /// another either.
    fn is_own_word(&self, batch: &Batch, author: AuthorId, source: Source) -> Result<bool, Error> {
        let is_mine = |author| self.writer.mine.contains(&author);
        if is_mine(author) {
            return Ok(true);
        }
        let is_blocked = batch.peer(author)?.is_some_and(|row| row.is_blocked);
        Ok(!is_blocked && self.bringer(source).is_some_and(is_mine))
    }

    /// The peer that brought a record. What stands in a file comes in this node's own name: nobody
    /// brought it.
    pub(super) fn bringer(&self, source: Source) -> Option<AuthorId> {
        match source {
            Source::Peer(from) if from != self.writer.key.author() => Some(from),
            Source::Peer(_) | Source::Local => None,
        }
    }

    /// Notes that the peer which brought a record has it.
    fn note_bringer(&self, batch: &Batch, record: &Record, source: Source) -> Result<(), Error> {
        let Some(from) = self.bringer(source) else { return Ok(()) };
        let returns = takes_back(record) || record.author() == self.writer.key.author();
        let (entry, digest) = (record.entry(), record.digest());
        match batch.brought(from, (entry, digest), returns, self.now)? {
            true => batch.tell_proofs(from, entry, self.writer.boot),
            false => Ok(()),
        }
    }

    /// Gives what was just merged to every peer that may have it, but for the one that brought it.
    fn pass_on(&mut self, batch: &Batch, record: &Record, source: Source) -> Result<(), Error> {
        let (entry, digest) = (record.entry(), record.digest());
        self.members_may_change(Some(entry));
        self.follow_charter(entry);
        self.note_bringer(batch, record, source)?;
        let takes_back = takes_back(record);
        let row = if takes_back { batch.view_row(entry) } else { Ok(None) };
        let place = place(Error::unless_damaged(row)?.flatten().as_ref(), record);
        let mine = &self.writer.mine;
        let is_told = |peer: AuthorId, release: ReleaseRow| {
            takes_back && hears(release, is_apart(place, mine.contains(&peer)))
        };
        batch.pass_on((entry, digest), self.writer.boot, is_told)
    }

    fn quarantine(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
        reason: String,
    ) -> Result<Ingested, Error> {
        // What was written here is not kept against its writer's word: it is told no, and its slot
        // stays free for what it writes instead.
        let Source::Peer(from) = source else { return Ok(Ingested::Refused(reason)) };
        let (record_bytes, at) = (record.to_raw(), self.now);
        let row = QuarantineRow { record: record_bytes, from, at, reason: reason.clone() };
        let has_room = self.has_room_to_wait(batch, source)?;
        let before = batch.quarantined_count()?;
        match batch.put_quarantined(record, &row, has_room)? {
            Waiting::Kept => {
                self.note_waiting(source, batch.quarantined_count()? > before);
                self.note_bringer(batch, record, source)?;
                Ok(Ingested::Quarantined(reason))
            }
            Waiting::Full => Ok(Ingested::Refused(TOO_MANY_WAIT.into())),
        }
    }
}

/// Whether a record takes something back: it goes wherever its entry has been.
pub(crate) fn takes_back(record: &Record) -> bool {
    record.header().facet.takes_back()
}

/// Whether an entry is this person's alone, as far as somebody goes who is one of the person's machines
/// or is not.
pub(crate) fn is_apart(workspace: Option<WorkspaceId>, is_mine: bool) -> bool {
    match workspace {
        Some(WorkspaceId::LOCAL) => true,
        Some(WorkspaceId::MAIN) => !is_mine,
        _ => false,
    }
}

/// Where an entry is that a record takes back, by what is noted of it. Where nothing else of it ever was
/// here the tombstone tells, of what was imported: the name of what was created nobody can guess.
pub(crate) fn place(row: Option<&ViewRow>, record: &Record) -> Option<WorkspaceId> {
    match (row.and_then(|row| row.workspace), record.payload()) {
        (None, Some(Payload::Tombstone(stone))) if stone.origin.creator().is_none() => {
            Some(stone.origin.workspace())
        }
        (noted, _) => noted,
    }
}

/// Whether a peer hears of what takes an entry back: something of it has passed. Where the entry is none
/// of its business something has to have gone out. What the peer says, or brings, tells nothing then:
/// anyone may guess a name before the entry is here.
pub(crate) fn hears(release: ReleaseRow, is_apart: bool) -> bool {
    release.out != Way::Never || (release.back != Way::Never && !is_apart)
}

/// The facets that the merge of a record looks at: its own, and what takes claims back.
pub(crate) fn beside(record: &Record) -> &'static [Facet] {
    match record.header().facet {
        Facet::Tally => &[Facet::Tally],
        _ => &[Facet::Claims, Facet::Retraction],
    }
}

#[cfg(test)]
mod tests;
