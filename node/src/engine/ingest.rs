//! The one path into the store, for records written here and records brought by peers.
//!
//! A record arrives verified. If its entry was forgotten it is swallowed; if it is a tombstone it
//! erases; otherwise the judge speaks, and then it is merged with its author's other records on the
//! entry: covered ones go, retracted payloads are erased, and the feed gets a row.

use super::command::{Ingested, Source, Verdict};
use super::step::{Judge, Own};
use crate::store::rows::{QuarantineRow, ViewRow};
use crate::store::{Batch, Error};
use klnode_crdt::header::Facet;
use klnode_crdt::holding::{Changes, Holding, Outcome};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_crdt::tombstone::Authority;
use klnode_crdt::writer::Writer;

/// Everything a record meets on its way in.
pub(super) struct Ingest<'a> {
    pub(super) writer: &'a mut Own,
    pub(super) judge: &'a mut dyn Judge,
    pub(super) now: WallTime,
}

impl Ingest<'_> {
    /// Takes in a verified record.
    pub(super) fn ingest(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
    ) -> Result<Ingested, Error> {
        if record.header().facet == Facet::Tombstone {
            return self.bury(batch, record);
        }
        if batch.tombstone(record.entry())?.is_some() {
            return Ok(Ingested::Forgotten);
        }
        let held = batch.holding(record.entry(), record.author())?;
        if held.get(record.digest()).is_some_and(|held| held.payload().is_some()) {
            return Ok(Ingested::Known);
        }
        // What is taken back is always heard, whoever takes it back.
        if record.header().facet != Facet::Retraction {
            match self.judge.judge(record, source) {
                Verdict::Admit => {}
                Verdict::Quarantine(reason) => {
                    return self.quarantine(batch, record, source, reason);
                }
                Verdict::Refuse(reason) => return Ok(Ingested::Refused(reason)),
            }
        }
        self.merge(batch, held, record, source)
    }

    /// Merges an admitted record.
    pub(super) fn merge(
        &mut self,
        batch: &Batch,
        mut held: Holding,
        record: &Record,
        source: Source,
    ) -> Result<Ingested, Error> {
        let before = held.clone();
        let merge = held.merge(record.clone());
        if let Some(proof) = &merge.proof {
            batch.put_proof(proof)?;
        }
        let changes = match merge.outcome {
            Outcome::Known => return Ok(Ingested::Known),
            Outcome::Unexplained => {
                return Ok(Ingested::Deferred("its payload is missing, unexplained".into()));
            }
            Outcome::OverQuota => {
                return Ok(Ingested::Deferred("its author has too many live records here".into()));
            }
            Outcome::Merged(changes) => changes,
        };
        let ingested = self.apply(batch, &before, &held, record, &changes)?;
        if source != Source::Local && record.author() == self.writer.key.author() {
            self.meet_own_past(batch, &before, record)?;
        }
        Ok(ingested)
    }

    fn apply(
        &mut self,
        batch: &Batch,
        before: &Holding,
        after: &Holding,
        record: &Record,
        changes: &Changes,
    ) -> Result<Ingested, Error> {
        for covered in changes.covered.iter().filter_map(|digest| before.get(*digest)) {
            batch.drop_record(covered)?;
        }
        let others = changes.erased.iter().filter(|digest| **digest != record.digest());
        for erased in others.filter_map(|digest| after.get(*digest)) {
            batch.erase_payload(erased)?;
        }
        if let Some(stripped) = before.get(record.digest()) {
            batch.drop_record(stripped)?;
        }
        let live = after.get(record.digest()).expect("a merged record is live");
        let seq = batch.put_record(live)?;

        let row = batch.view_row(record.entry())?;
        let mut row = row.unwrap_or_else(|| ViewRow::new(self.now));
        if let Some(
            Payload::Claims { origin: Some(origin), .. }
            | Payload::Retraction { origin: Some(origin), .. },
        ) = record.payload()
        {
            row.learn(origin);
        }
        let gone = before.records().len() as u32;
        row.records = row.records.saturating_sub(gone).saturating_add(after.records().len() as u32);
        row.seq = seq;
        batch.put_view_row(record.entry(), &row)?;
        Ok(Ingested::Merged(seq))
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
        self.draw_boot(batch)?;
        let facet = record.header().facet;
        let version = record.version();
        let is_aged = |held: &Record| version.covers_by_age_alone(&held.version());
        if !before.facet(facet).any(is_aged) {
            return Ok(());
        }
        let both = Holding::from_held(before.records().cloned().chain([record.clone()]));
        let entry = record.entry();
        let writer = Writer { key: &self.writer.key, boot: self.writer.boot, entry, own: &both };
        let stamp = self.writer.clock.stamp(self.now, writer.newest());
        let carried =
            writer.carry_over(facet, stamp).map_err(Error::refused("this node's own records"))?;
        let held = batch.holding(entry, carried.author())?;
        self.merge(batch, held, &carried, Source::Local)?;
        Ok(())
    }

    /// Draws a new boot: nothing this life writes from now on meets what it wrote before.
    pub(super) fn draw_boot(&mut self, batch: &Batch) -> Result<(), Error> {
        self.writer.draw_boot();
        batch.begin_epoch(self.writer.boot, self.now)
    }

    /// Forgets an entry.
    fn bury(&mut self, batch: &Batch, tombstone: &Record) -> Result<Ingested, Error> {
        let is_entitled = match tombstone.authority() {
            Authority::Proved => true,
            Authority::IfMine => self.writer.mine.contains(&tombstone.author()),
            Authority::None => false,
        };
        if !is_entitled {
            return Ok(Ingested::Refused("its author may not forget the entry".into()));
        }
        let entry = tombstone.entry();
        let held = batch.tombstone(entry)?;
        if held.is_some_and(|held| held.digest() <= tombstone.digest()) {
            return Ok(Ingested::Known);
        }
        let row = batch.view_row(entry)?.unwrap_or_else(|| ViewRow::new(self.now));
        Ok(Ingested::Merged(batch.put_tombstone(tombstone, &row)?))
    }

    fn quarantine(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
        reason: String,
    ) -> Result<Ingested, Error> {
        let from = match source {
            Source::Local => None,
            Source::Peer(peer) => Some(peer),
        };
        let row =
            QuarantineRow { record: record.to_raw(), from, at: self.now, reason: reason.clone() };
        batch.put_quarantined(record, &row)?;
        Ok(Ingested::Quarantined(reason))
    }
}
