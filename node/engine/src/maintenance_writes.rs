//! Writes of maintenance: links between duplicate entries, the journal, and the progress of each
//! service.
//!
//! Services search a snapshot; the engine checks each result again in the commit that acts on it,
//! because the entries may have changed since. A service's progress is stored in the same commit as
//! its results, so a crash neither skips nor repeats work.

use super::command::{MaintenanceCommand, MaintenanceNote, MaintenanceReceipt, Receipt, Rejection};
use super::record_intake::Transaction;
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::time::Hlc;
use klnode_store::maintenance_journal::{MaintenanceRow, Matter, Service, ServiceRow, Stage};
use klnode_store::{Batch, Damage, Error};
use std::collections::BTreeSet;

impl Transaction<'_> {
    pub(super) fn maintenance(
        &mut self,
        batch: &Batch,
        act: &MaintenanceCommand,
    ) -> Result<Receipt, Rejection> {
        let done = match act {
            MaintenanceCommand::Pass { service, row, notes, over, faded, edges } => {
                for entry in edges {
                    self.refresh_edges(batch, *entry)?;
                }
                for (one, two) in faded {
                    batch.drop_pair(*one, *two)?;
                }
                // Check before any link is withdrawn: that changes no text but counts as a change.
                let mut fresh = Vec::new();
                for note in notes {
                    if is_fresh(batch, note)? {
                        fresh.push(note);
                    }
                }
                for number in over {
                    self.close(batch, *number)?;
                }
                let mut numbers = Vec::new();
                for note in fresh {
                    numbers.extend(self.note(batch, *service, note)?);
                }
                let noted = batch.service(*service)?.noted + numbers.len() as u64;
                batch.put_service(*service, ServiceRow { noted, ..*row })?;
                MaintenanceReceipt::Noted(numbers)
            }
            MaintenanceCommand::Undo(number) => self.undo(batch, *number)?,
            MaintenanceCommand::Accept(number) => self.accept(batch, *number)?,
            MaintenanceCommand::Dismiss(number) => self.dismiss(batch, *number)?,
        };
        Ok(Receipt::Maintenance(done))
    }

    /// Adds a result to the journal and merges the entries if it says so. Returns the row's number,
    /// or `None` if the journal has such a row already or is full.
    fn note(
        &mut self,
        batch: &Batch,
        service: Service,
        note: &MaintenanceNote,
    ) -> Result<Option<u64>, Rejection> {
        let mut entries: Vec<EntryId> = note.entries.iter().map(|(entry, _)| *entry).collect();
        if batch.noted(note.matter, &entries)?.is_some() || batch.is_maintenance_full()? {
            return Ok(None);
        }
        if note.matter == Matter::Sameness {
            let Some(pair) = pair(batch, &entries)? else { return Ok(None) };
            entries = vec![pair.survivor, pair.other];
            if note.stage == Stage::Made && !self.is_own(&pair) {
                return Ok(None);
            }
            if note.stage == Stage::Made && !self.link_duplicate(batch, &entries)? {
                return Ok(None);
            }
        }
        let row = MaintenanceRow {
            service,
            matter: note.matter,
            stage: note.stage,
            at: self.now,
            entries,
            why: note.why.clone(),
            is_foreign: note.is_foreign,
            decided: None,
        };
        Ok(Some(batch.append_maintenance(&row)?))
    }

    /// Whether this person created both entries. Entries of others are never merged without a
    /// decision of this person, even if the pass asks for it.
    fn is_own(&self, pair: &DuplicatePair) -> bool {
        let is_own = |origin: &Origin| {
            origin.creator().is_none_or(|creator| self.writer.mine.contains(&creator))
        };
        pair.origins.iter().all(is_own)
    }

    /// Links the second entry to the first as its duplicate. Returns false if the entry accepts no
    /// more links.
    fn link_duplicate(&mut self, batch: &Batch, entries: &[EntryId]) -> Result<bool, Rejection> {
        let [survivor, other] = entries else { return Ok(false) };
        let link = Link { relation: Relation::SAME_AS, to: *survivor };
        match self.claim(batch, *other, &[ClaimEdit::Link(link)]) {
            Ok(_) => Ok(true),
            Err(fault @ Rejection::Store(_)) => Err(fault),
            Err(_) => Ok(false),
        }
    }

    /// Closes a journal row that no longer applies. A link that maintenance added on its own is
    /// withdrawn; one that a person accepted stays.
    fn close(&mut self, batch: &Batch, number: u64) -> Result<(), Rejection> {
        let Some(row) = batch.maintenance_row(number)? else { return Ok(()) };
        match row.stage {
            Stage::Open | Stage::Proposed => {}
            Stage::Made if row.decided.is_none() => self.withdraw(batch, &row)?,
            _ => return Ok(()),
        }
        batch.put_maintenance(number, &MaintenanceRow { stage: Stage::Over, ..row })?;
        Ok(())
    }

    /// Withdraws the duplicate link of a merge.
    fn withdraw(&mut self, batch: &Batch, row: &MaintenanceRow) -> Result<(), Rejection> {
        if let [survivor, other] = row.entries[..] {
            let link = Link { relation: Relation::SAME_AS, to: survivor };
            self.claim(batch, other, &[ClaimEdit::Unlink(link)])?;
        }
        Ok(())
    }

    fn undo(&mut self, batch: &Batch, number: u64) -> Result<MaintenanceReceipt, Rejection> {
        let row = self.row(batch, number)?;
        if row.stage != Stage::Made {
            let problem = match row.matter {
                Matter::Staleness => {
                    "it only reports a stale entry and changed nothing; confirm the entry, or \
                     observe a success"
                        .to_owned()
                }
                _ => format!("it is {}, so there is nothing to undo", row.stage.name()),
            };
            return Err(Rejection::UnfitMaintenanceRow { verb: "undo", number, problem });
        }
        self.withdraw(batch, &row)?;
        self.decide(batch, number, row, Stage::Undone)
    }

    fn accept(&mut self, batch: &Batch, number: u64) -> Result<MaintenanceReceipt, Rejection> {
        let row = self.row(batch, number)?;
        let unfit = |problem: &str| Rejection::UnfitMaintenanceRow {
            verb: "accept",
            number,
            problem: problem.to_owned(),
        };
        if row.stage != Stage::Proposed {
            return Err(unfit(&format!("it is {} and not proposed", row.stage.name())));
        }
        // An entry may have changed since. Two entries cannot be duplicates and contradict each
        // other.
        if let Some((Stage::Open, other)) = batch.noted(Matter::Contradiction, &row.entries)? {
            return Err(unfit(&format!(
                "its entries contradict each other according to row {other}; dismiss the row \
                 that is wrong"
            )));
        }
        let pair = pair(batch, &row.entries)?;
        let pair =
            pair.ok_or_else(|| unfit("its entries no longer belong to one workspace and memory"))?;
        let entries = vec![pair.survivor, pair.other];
        if !self.link_duplicate(batch, &entries)? {
            return Err(unfit("the entry accepts no more links"));
        }
        self.decide(batch, number, MaintenanceRow { entries, ..row }, Stage::Made)
    }

    fn dismiss(&mut self, batch: &Batch, number: u64) -> Result<MaintenanceReceipt, Rejection> {
        let row = self.row(batch, number)?;
        if !matches!(row.stage, Stage::Proposed | Stage::Open) {
            let problem = format!("it is {} and needs no decision", row.stage.name());
            return Err(Rejection::UnfitMaintenanceRow { verb: "dismiss", number, problem });
        }
        self.decide(batch, number, row, Stage::Dismissed)
    }

    fn row(&self, batch: &Batch, number: u64) -> Result<MaintenanceRow, Rejection> {
        batch.maintenance_row(number)?.ok_or(Rejection::NoSuchMaintenanceRow(number))
    }

    fn decide(
        &self,
        batch: &Batch,
        number: u64,
        row: MaintenanceRow,
        stage: Stage,
    ) -> Result<MaintenanceReceipt, Rejection> {
        let row = MaintenanceRow { stage, decided: Some(self.now), ..row };
        batch.put_maintenance(number, &row)?;
        Ok(MaintenanceReceipt::Decided(number, Box::new(row)))
    }

    /// Updates the index of duplicate links, in both directions, after an own record was merged.
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

    /// Rebuilds the index of duplicate links after this person's set of keys changed.
    pub(super) fn refresh_all_edges(&self, batch: &Batch) -> Result<(), Error> {
        let entries = batch.same_entries()?;
        entries.into_iter().try_for_each(|entry| self.refresh_edges(batch, entry))
    }

    /// Rebuilds the index of the duplicate links on one entry from this person's claims.
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

/// Whether the entries of a result are unchanged since the pass. A later pass handles changed ones.
fn is_fresh(batch: &Batch, note: &MaintenanceNote) -> Result<bool, Error> {
    for (entry, seen) in &note.entries {
        let Some(row) = batch.view_row(*entry)?.filter(|row| !row.is_forgotten) else {
            return Ok(false);
        };
        // An observation affects staleness but not the text.
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

/// Two possible duplicates, the survivor created first.
struct DuplicatePair {
    survivor: EntryId,
    other: EntryId,
    origins: [Origin; 2],
}

/// The two entries ordered by creation. `None` unless they share workspace and memory.
fn pair(batch: &Batch, entries: &[EntryId]) -> Result<Option<DuplicatePair>, Error> {
    let [one, two] = entries else { return Ok(None) };
    let mut origins = Vec::new();
    for entry in [one, two] {
        let Some(origin) = batch.entry(*entry)?.origin else { return Ok(None) };
        origins.push((created(batch, *entry, &origin)?, *entry, origin));
    }
    origins.sort_by_key(|(created, entry, _)| (*created, *entry));
    let [(_, survivor, first), (_, other, second)] =
        <[_; 2]>::try_from(origins).expect("there are two entries");
    let share_place = first.workspace() == second.workspace() && first.memory() == second.memory();
    let pair = DuplicatePair { survivor, other, origins: [first, second] };
    Ok((share_place && survivor != other).then_some(pair))
}

/// Sort key for the survivor: whether the entry is an import, and its creation stamp. An import has
/// no creation stamp, so the time this node first saw it counts, and imports sort after created
/// entries.
fn created(batch: &Batch, entry: EntryId, origin: &Origin) -> Result<(bool, Hlc), Error> {
    match origin {
        Origin::Created { stamp, .. } => Ok((false, *stamp)),
        Origin::Imported { .. } => {
            let seen = batch.view_row(entry)?.map(|row| row.first_seen).unwrap_or_default();
            Ok((true, Hlc::new(seen, 0)))
        }
    }
}
