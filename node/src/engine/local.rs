//! From a command of this node to a signed record.

use super::command::{Ingested, NewEntry, Receipt, Rejection, Source, SourceKey};
use super::ingest::Ingest;
use super::validate;
use crate::store::rows::UseRow;
use crate::store::sessions::Recipient;
use crate::store::{Batch, Damage};
use klnode_crdt::charter::{self, Charter};
use klnode_crdt::entry::Entry;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::Facet;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{Boot, EntryId, Nonce, TaskId, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::kind::code_digits;
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Origin;
use klnode_crdt::record::{Record, Refusal};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Authority, Grounds, Tombstone};
use klnode_crdt::writer::{Claim, Writer};

impl Ingest<'_> {
    pub(super) fn create(&mut self, batch: &Batch, new: &NewEntry) -> Result<Receipt, Rejection> {
        // A fresh id is held by nobody; an import may meet what others, or this node, said before.
        let held = match &new.source {
            None => Entry::default(),
            Some(source) => batch.entry(imported(new, source).id())?,
        };
        let own = held.claims.get(&self.writer.key.author());
        let is_said = own.is_some_and(|claims| !claims.is_empty());
        // What was taken before is known, whatever would be refused by now.
        if !is_said {
            validate::new_entry(new)?;
            if new.source.is_some() {
                validate::imported(new)?;
            }
        }
        let origin = self.origin(new);
        let entry = origin.id();
        if batch.tombstone(entry)?.is_some() {
            return Err(Rejection::Forgotten(code_digits(entry)));
        }
        if is_said {
            return Ok(Receipt::Known(entry));
        }
        let claims = claims_of(new);
        self.write(batch, entry, |writer, stamp| {
            writer.claim(&held, Some(origin.clone()), &claims, stamp)
        })?;
        // Who wrote it confirms nothing by saying it again.
        if let Some(session) = self.session() {
            batch.prime(Recipient::session(&session), &[entry], self.now)?;
        }
        Ok(Receipt::Created(entry))
    }

    fn origin(&mut self, new: &NewEntry) -> Origin {
        if let Some(source) = &new.source {
            return imported(new, source);
        }
        let (workspace, memory) = (new.workspace, new.memory);
        let mut nonce = [0; Nonce::LEN];
        (self.writer.entropy)(&mut nonce);
        let stamp = self.writer.clock.stamp(self.now);
        let creator = self.writer.key.author();
        Origin::Created { creator, stamp, nonce: Nonce::from_bytes(nonce), workspace, memory }
    }

    pub(super) fn claim(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        claims: &[Claim],
    ) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        let held = batch.entry(entry)?;
        validate::claims(claims)?;
        if validate::may_misfit(claims)
            && let Some(view) = self.view(batch, entry)?
        {
            validate::edit(&view, claims)?;
        }
        let origin = self.own_origin(&held);
        let claims = [claims, &self.grants(entry, &held, claims)].concat();
        self.write(batch, entry, |writer, stamp| {
            writer.claim(&held, origin.clone(), &claims, stamp)
        })
    }

    /// What the owner of a workspace says beside other claims on its charter.
    fn grants(&self, entry: EntryId, held: &Entry, claims: &[Claim]) -> Vec<Claim> {
        let workspace = held.origin.as_ref().map(Origin::workspace);
        let is_charter = |id: &WorkspaceId| charter::entry(*id) == entry;
        let Some(workspace) = workspace.filter(is_charter) else { return Vec::new() };
        Charter::read(workspace, held, self.now).grants(&self.writer.key, held, claims)
    }

    pub(super) fn observe(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        (of, amount): (Observation, Thousandths),
        task: Option<TaskId>,
    ) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        let today = self.now.day();
        let before = self.before(batch, entry)?;
        let amount = self.restored(batch, entry, &before, (of, amount))?;
        let receipt =
            self.write(batch, entry, |writer, stamp| writer.observe(of, amount, today, stamp))?;
        self.note_observed(batch, entry, &before, (of, amount))?;
        if let Some(view) = &before.view {
            self.note_outcome(batch, (entry, view), of, task)?;
        }
        Ok(receipt)
    }

    pub(super) fn reset(&mut self, batch: &Batch, entry: EntryId) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        let receipt = self.write(batch, entry, |writer, stamp| writer.reset(stamp))?;
        // It starts anew: there is nothing to restore.
        let uses = batch.uses(entry)?;
        batch.put_uses(entry, UseRow { alpha_peak: None, ..uses })?;
        // What is counted from now on must not fall under the reset.
        self.draw_boot(batch)?;
        Ok(receipt)
    }

    pub(super) fn retract(&mut self, batch: &Batch, entry: EntryId) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        let own = batch.holding(entry, self.writer.key.author(), &Facet::ALL, Damage::Told)?;
        let writer = Writer { key: &self.writer.key, boot: self.writer.boot, entry, own: &own };
        if !writer.has_claims() {
            let code = batch.entry(entry)?.code(entry);
            return Err(Rejection::NothingToRetract(code));
        }
        let origin = self.own_origin(&batch.entry(entry)?);
        self.write(batch, entry, |writer, stamp| writer.retract(origin.clone(), stamp))
    }

    pub(super) fn forget(&mut self, batch: &Batch, entry: EntryId) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        // What is damaged can be forgotten, as long as something tells whose it is.
        let records = batch.whole_records(entry)?;
        let held = Entry::assemble(records.iter());
        let refused = || Rejection::NotEntitled(held.code(entry));
        let origin = held.origin.clone().ok_or_else(refused)?;
        let grounds = self.grounds(batch, &origin)?;
        let tombstone = Tombstone { origin, grounds };
        if tombstone.authority(self.writer.key.author(), entry) == Authority::None {
            return Err(refused());
        }
        // Its slots are apart from those of everything else: only what stands there must be seen.
        self.write_beside(batch, entry, &[Facet::Tombstone], |writer, stamp| {
            writer.forget(tombstone.clone(), stamp)
        })
    }

    /// Why this node may forget what it did not create: it owns the workspace, or administers it.
    fn grounds(&self, batch: &Batch, origin: &Origin) -> Result<Grounds, Rejection> {
        let (own, workspace) = (self.writer.key.author(), origin.workspace());
        if origin.creator() == Some(own) || workspace.is_personal() {
            return Ok(Grounds::Origin);
        }
        let held = batch.entry(charter::entry(workspace))?;
        let charter = Charter::read(workspace, &held, self.now);
        if let Some((_, nonce)) = charter.owner.filter(|(owner, _)| *owner == own) {
            return Ok(Grounds::Owner(nonce));
        }
        Ok(charter.granted(&held, own).map_or(Grounds::Origin, Grounds::Admin))
    }

    pub(super) fn must_hold(&self, batch: &Batch, entry: EntryId) -> Result<(), Rejection> {
        match batch.view_row(entry)? {
            Some(row) if row.is_forgotten => Err(Rejection::Forgotten(code_digits(entry))),
            Some(_) => Ok(()),
            None => Err(Rejection::NoSuchEntry(code_digits(entry))),
        }
    }

    /// The origin, where this node is the one to carry it.
    fn own_origin(&self, held: &Entry) -> Option<Origin> {
        let own = self.writer.key.author();
        held.origin.clone().filter(|origin| origin.creator().is_none_or(|by| by == own))
    }

    /// Signs what `make` makes of this node's own records, and merges it like any other.
    fn write(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        make: impl Fn(&Writer<'_>, Hlc) -> Result<Record, Refusal>,
    ) -> Result<Receipt, Rejection> {
        self.write_beside(batch, entry, &Facet::ALL, make)
    }

    /// The same of those in some facets, whatever is damaged of the others.
    fn write_beside(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        facets: &[Facet],
        make: impl Fn(&Writer<'_>, Hlc) -> Result<Record, Refusal>,
    ) -> Result<Receipt, Rejection> {
        let own = batch.holding(entry, self.writer.key.author(), facets, Damage::Told)?;
        let writer = Writer { key: &self.writer.key, boot: self.writer.boot, entry, own: &own };
        let stamp = self.writer.clock.stamp(self.now);
        let record = make(&writer, stamp)?;
        match self.ingest(batch, &record, Source::Local)? {
            Ingested::Merged(seq) => Ok(Receipt::Done(seq)),
            Ingested::Quarantined(why) | Ingested::Refused(why) | Ingested::Deferred(why) => {
                Err(Rejection::Judged(why))
            }
            Ingested::Forgotten => Err(Rejection::Forgotten(code_digits(entry))),
            Ingested::Known => Ok(Receipt::Done(batch.head()?)),
        }
    }
}

/// Everything a new entry claims.
fn claims_of(new: &NewEntry) -> Vec<Claim> {
    let texts = [
        (Register::TITLE, new.title.clone()),
        (Register::CONTENT, new.content.clone()),
        (Register::TYPE, new.kind.name().to_owned()),
    ];
    let registers = texts.into_iter().chain(new.registers.iter().cloned());
    let mut claims: Vec<Claim> = registers.map(|(at, text)| Claim::Set(at, text)).collect();
    claims.extend(new.claims.iter().cloned());
    claims.extend(new.citations.iter().cloned().map(Claim::Cite));
    claims
}

/// Says what would be wrong with an imported entry, by the rules and by the limits of the format,
/// without writing it: it is signed with a key that is nobody's, to be looked at and thrown away.
pub fn rehearse(new: &NewEntry, source: &SourceKey) -> Result<Record, Rejection> {
    validate::new_entry(new)?;
    validate::imported(new)?;
    let origin = imported(new, source);
    let (key, own) = (SecretKey::from_bytes(&[1; 32]), Holding::default());
    let writer = Writer { key: &key, boot: Boot(1), entry: origin.id(), own: &own };
    Ok(writer.claim(&Entry::default(), Some(origin), &claims_of(new), Hlc::default())?)
}

fn imported(new: &NewEntry, source: &SourceKey) -> Origin {
    let SourceKey { format, key } = source.clone();
    Origin::Imported { workspace: new.workspace, memory: new.memory, format, key }
}
