//! What upkeep writes: edges between entries that say the same, its journal, and how far it is.
//!
//! What is found is found elsewhere, from a snapshot; here it is looked at again in the commit that
//! would act on it, because the entries may have changed since. The place of a service moves in the
//! same commit as what it did: after a crash nothing is left out and nothing is done twice.

use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use crate::store::rows::Seq;
use crate::store::upkeep::{Matter, Service, ServiceRow, Stage, UpkeepRow};
use crate::store::{Batch, Damage, Error};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::origin::Origin;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::time::Hlc;
use klnode_crdt::writer::Claim;
use std::collections::BTreeSet;

/// One thing to do about upkeep.
#[derive(Clone, Debug)]
pub enum UpkeepAct {
    /// Takes in what a pass of a service found, and how far it is now.
    Pass {
        /// Which service.
        service: Service,
        /// Where it stands after the pass.
        row: ServiceRow,
        /// What it found.
        notes: Vec<Note>,
        /// Rows of the journal that are no longer the case; a merge among them is withdrawn.
        over: Vec<u64>,
        /// Pairs that have faded.
        faded: Vec<(EntryId, EntryId)>,
        /// Entries with own edges that are not followed yet: their author became *mine* after
        /// they came.
        edges: Vec<EntryId>,
    },
    /// Undoes what was done, for good.
    Undo(u64),
    /// Does what was proposed.
    Accept(u64),
    /// Drops what was proposed or found, for good.
    Dismiss(u64),
}

impl UpkeepAct {
    /// Whether losing it in a power cut only means looking again.
    pub(super) fn is_incidental(&self) -> bool {
        match self {
            Self::Pass { notes, over, .. } => notes.is_empty() && over.is_empty(),
            _ => false,
        }
    }
}

/// Something that a pass found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// About what.
    pub matter: Matter,
    /// What is to become of it: [`Stage::Made`] merges.
    pub stage: Stage,
    /// Which entries, and the newest change of what each was looked at for: of its text, or of all
    /// that makes it stale.
    pub entries: Vec<(EntryId, Seq)>,
    /// Why. It quotes numbers and words of klnode's own lists, and nothing else of what they say.
    pub why: String,
    /// One of them is not this node's own.
    pub is_foreign: bool,
}

/// What upkeep did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpkeepDone {
    /// A pass was taken in; the rows that it wrote.
    Noted(Vec<u64>),
    /// A row has this stage now.
    Decided(u64, Box<UpkeepRow>),
}

impl Ingest<'_> {
    pub(super) fn upkeep(&mut self, batch: &Batch, act: &UpkeepAct) -> Result<Receipt, Rejection> {
        let done = match act {
            UpkeepAct::Pass { service, row, notes, over, faded, edges } => {
                for entry in edges {
                    self.refresh_edges(batch, *entry)?;
                }
                for (one, two) in faded {
                    batch.drop_pair(*one, *two)?;
                }
                // Before any edge is withdrawn: that changes no text, but it counts as a change.
                let mut fresh = Vec::new();
                for note in notes {
                    if is_fresh(batch, note)? {
                        fresh.push(note);
                    }
                }
                for number in over {
                    self.end(batch, *number)?;
                }
                let mut numbers = Vec::new();
                for note in fresh {
                    numbers.extend(self.note(batch, *service, note)?);
                }
                let noted = batch.service(*service)?.noted + numbers.len() as u64;
                batch.put_service(*service, ServiceRow { noted, ..*row })?;
                UpkeepDone::Noted(numbers)
            }
            UpkeepAct::Undo(number) => self.undo(batch, *number)?,
            UpkeepAct::Accept(number) => self.accept(batch, *number)?,
            UpkeepAct::Dismiss(number) => self.dismiss(batch, *number)?,
        };
        Ok(Receipt::Upkeep(done))
    }

    /// Writes a note to the journal, and merges if it says so; returns its number. None if the pair was
    /// noted before.
    fn note(
        &mut self,
        batch: &Batch,
        service: Service,
        note: &Note,
    ) -> Result<Option<u64>, Rejection> {
        let mut entries: Vec<EntryId> = note.entries.iter().map(|(entry, _)| *entry).collect();
        if batch.noted(note.matter, &entries)?.is_some() || batch.is_upkeep_full()? {
            return Ok(None);
        }
        if note.matter == Matter::Sameness {
            let Some(pair) = pair(batch, &entries)? else { return Ok(None) };
            entries = vec![pair.survivor, pair.other];
            if note.stage == Stage::Made && !self.is_own(&pair) {
                return Ok(None);
            }
            if note.stage == Stage::Made && !self.draw(batch, &entries)? {
                return Ok(None);
            }
        }
        let row = UpkeepRow {
            service,
            matter: note.matter,
            stage: note.stage,
            at: self.now,
            entries,
            why: note.why.clone(),
            is_foreign: note.is_foreign,
            decided: None,
        };
        Ok(Some(batch.append_upkeep(&row)?))
    }

    /// Whether both were created here: whatever was looked at before, nothing of others is merged
    /// unasked.
    fn is_own(&self, pair: &Pair) -> bool {
        let is_own = |origin: &Origin| {
            origin.creator().is_none_or(|creator| self.writer.mine.contains(&creator))
        };
        pair.origins.iter().all(is_own)
    }

    /// Draws the edge from the second to the first. False if the entry takes no more.
    fn draw(&mut self, batch: &Batch, entries: &[EntryId]) -> Result<bool, Rejection> {
        let [survivor, other] = entries else { return Ok(false) };
        let link = Link { relation: Relation::SAME_AS, to: *survivor };
        match self.claim(batch, *other, &[Claim::Link(link)]) {
            Ok(_) => Ok(true),
            Err(fault @ Rejection::Store(_)) => Err(fault),
            Err(_) => Ok(false),
        }
    }

    /// Ends a row that is no longer the case. An edge that upkeep drew unasked is withdrawn; one that
    /// a person accepted stays.
    fn end(&mut self, batch: &Batch, number: u64) -> Result<(), Rejection> {
        let Some(row) = batch.upkeep_row(number)? else { return Ok(()) };
        match row.stage {
            Stage::Open | Stage::Proposed => {}
            Stage::Made if row.decided.is_none() => self.withdraw(batch, &row)?,
            _ => return Ok(()),
        }
        batch.put_upkeep(number, &UpkeepRow { stage: Stage::Over, ..row })?;
        Ok(())
    }

    /// Takes back the edge of a merge.
    fn withdraw(&mut self, batch: &Batch, row: &UpkeepRow) -> Result<(), Rejection> {
        if let [survivor, other] = row.entries[..] {
            let link = Link { relation: Relation::SAME_AS, to: survivor };
            self.claim(batch, other, &[Claim::Unlink(link)])?;
        }
        Ok(())
    }

    fn undo(&mut self, batch: &Batch, number: u64) -> Result<UpkeepDone, Rejection> {
        let row = self.row(batch, number)?;
        if row.stage != Stage::Made {
            let problem = match row.matter {
                Matter::Staleness => {
                    "it tells what has become stale, and changed nothing; confirm the entry, or \
                     observe a success"
                        .to_owned()
                }
                _ => format!("it is {}, and there is nothing to take back", row.stage.name()),
            };
            return Err(Rejection::UnfitUpkeep { verb: "undo", number, problem });
        }
        self.withdraw(batch, &row)?;
        self.decide(batch, number, row, Stage::Undone)
    }

    fn accept(&mut self, batch: &Batch, number: u64) -> Result<UpkeepDone, Rejection> {
        let row = self.row(batch, number)?;
        let unfit = |problem: &str| Rejection::UnfitUpkeep {
            verb: "accept",
            number,
            problem: problem.to_owned(),
        };
        if row.stage != Stage::Proposed {
            return Err(unfit(&format!("it is {}, and not proposed", row.stage.name())));
        }
        // One may have been changed since. Nothing is the same and the opposite at once.
        if let Some((Stage::Open, other)) = batch.noted(Matter::Contradiction, &row.entries)? {
            return Err(unfit(&format!(
                "its entries contradict each other, says number {other}; dismiss the one that is \
                 wrong"
            )));
        }
        let pair = pair(batch, &row.entries)?;
        let pair = pair.ok_or_else(|| unfit("its entries are no longer in one place"))?;
        let entries = vec![pair.survivor, pair.other];
        if !self.draw(batch, &entries)? {
            return Err(unfit("the entry takes no more edges"));
        }
        self.decide(batch, number, UpkeepRow { entries, ..row }, Stage::Made)
    }

    fn dismiss(&mut self, batch: &Batch, number: u64) -> Result<UpkeepDone, Rejection> {
        let row = self.row(batch, number)?;
        if !matches!(row.stage, Stage::Proposed | Stage::Open) {
            let problem = format!("it is {}, and waits for no word", row.stage.name());
            return Err(Rejection::UnfitUpkeep { verb: "dismiss", number, problem });
        }
        self.decide(batch, number, row, Stage::Dismissed)
    }

    fn row(&self, batch: &Batch, number: u64) -> Result<UpkeepRow, Rejection> {
        batch.upkeep_row(number)?.ok_or(Rejection::NoSuchUpkeep(number))
    }

    fn decide(
        &self,
        batch: &Batch,
        number: u64,
        row: UpkeepRow,
        stage: Stage,
    ) -> Result<UpkeepDone, Rejection> {
        let row = UpkeepRow { stage, decided: Some(self.now), ..row };
        batch.put_upkeep(number, &row)?;
        Ok(UpkeepDone::Decided(number, Box::new(row)))
    }

    /// Keeps the edges that own records draw findable from both ends.
    pub(super) fn follow_edges(&self, batch: &Batch, record: &Record) -> Result<(), Error> {
        let can_change = matches!(record.header().facet, Facet::Claims | Facet::Retraction);
        if !can_change || !self.writer.mine.contains(&record.author()) {
            return Ok(());
        }
        let entry = record.entry();
        let has_edge = match record.payload() {
            Some(Payload::Claims { claims, .. }) => {
                claims.links.iter().any(|(link, _)| link.relation == Relation::SAME_AS)
            }
            _ => false,
        };
        if !has_edge && !batch.has_same(entry)? {
            return Ok(());
        }
        self.refresh_edges(batch, entry)
    }

    /// Whose edges apply has changed: those of somebody who is no longer *mine* go.
    pub(super) fn refresh_all_edges(&self, batch: &Batch) -> Result<(), Error> {
        let entries = batch.same_entries()?;
        entries.into_iter().try_for_each(|entry| self.refresh_edges(batch, entry))
    }

    /// Reads anew which own edges stand on an entry.
    fn refresh_edges(&self, batch: &Batch, entry: EntryId) -> Result<(), Error> {
        let mut edges = BTreeSet::new();
        for author in &self.writer.mine {
            let facets = [Facet::Claims, Facet::Retraction];
            let own = batch.holding(entry, *author, &facets, Damage::PassedOver)?;
            let held = own.to_entry();
            let Some(claims) = held.claims.get(author) else { continue };
            let claims = match held.marks.get(author) {
                Some(marks) => claims.clone().without_suppressed(marks),
                None => claims.clone(),
            };
            let drawn = claims.links.present().filter(|link| link.relation == Relation::SAME_AS);
            edges.extend(drawn.map(|link| link.to));
        }
        batch.set_same(entry, &edges)
    }
}

/// Whether the entries of a note are as the pass saw them. Others are looked at again later.
fn is_fresh(batch: &Batch, note: &Note) -> Result<bool, Error> {
    for (entry, seen) in &note.entries {
        let Some(row) = batch.view_row(*entry)?.filter(|row| !row.is_forgotten) else {
            return Ok(false);
        };
        // An observation changes whether an entry is stale, but not its text.
        let newest = match note.matter {
            Matter::Sameness | Matter::Contradiction => batch.text_seq(*entry)?,
            Matter::Staleness => row.seq,
        };
        if newest != *seen {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Two entries that may be the same.
struct Pair {
    survivor: EntryId,
    other: EntryId,
    origins: [Origin; 2],
}

/// Two entries of one workspace and memory, the first that was created first; none if they are not.
fn pair(batch: &Batch, entries: &[EntryId]) -> Result<Option<Pair>, Error> {
    let [one, two] = entries else { return Ok(None) };
    let mut origins = Vec::new();
    for entry in [one, two] {
        let Some(origin) = batch.entry(*entry)?.origin else { return Ok(None) };
        origins.push((created(batch, *entry, &origin)?, *entry, origin));
    }
    origins.sort_by_key(|(created, entry, _)| (*created, *entry));
    let [(_, survivor, first), (_, other, second)] =
        <[_; 2]>::try_from(origins).expect("there are two entries");
    let is_one_place = first.workspace() == second.workspace() && first.memory() == second.memory();
    let pair = Pair { survivor, other, origins: [first, second] };
    Ok((is_one_place && survivor != other).then_some(pair))
}

/// Whether an entry was imported, and when it was created, by its creator's clock. Nobody's clock says
/// that of an import: it counts from when it was first seen here, and comes after all that was created.
fn created(batch: &Batch, entry: EntryId, origin: &Origin) -> Result<(bool, Hlc), Error> {
    match origin {
        Origin::Created { stamp, .. } => Ok((false, *stamp)),
        Origin::Imported { .. } => {
            let seen = batch.view_row(entry)?.map(|row| row.first_seen).unwrap_or_default();
            Ok((true, Hlc::new(seen, 0)))
        }
    }
}
