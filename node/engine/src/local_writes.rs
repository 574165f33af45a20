//! Turns commands of this node into signed records.

use super::command::{IngestOutcome, NewEntry, Receipt, RecordSource, Rejection, SourceKey};
use super::entry_validation;
use super::record_intake::Transaction;
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::entry_type::code_digits;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Boot, EntryId, Nonce, TaskId, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::{Record, RecordError};
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::Hlc;
use klnode_crdt::tombstone::{Authority, Grounds, Tombstone};
use klnode_crdt::workspace_charter::{self, Charter};
use klnode_store::peers::Membership;
use klnode_store::row_types::UseRow;
use klnode_store::served_sessions::Recipient;
use klnode_store::{Batch, Damage, Error, Snapshot};

impl Transaction<'_> {
    pub(super) fn create(&mut self, batch: &Batch, new: &NewEntry) -> Result<Receipt, Rejection> {
        // A fresh id exists nowhere yet; an import may meet earlier records of other authors or of
        // this node.
        let held = match &new.source {
            None => Entry::default(),
            Some(source) => batch.entry(imported(new, source).id())?,
        };
        let own = held.claims.get(&self.writer.key.author());
        let is_known = own.is_some_and(|claims| !claims.is_empty());
        // An earlier import stays valid even if today's rules would refuse it.
        if !is_known {
            entry_validation::new_entry(new)?;
            self.check_form(batch, new)?;
            if new.source.is_some() {
                entry_validation::check_imported_links(new)?;
            }
        }
        let origin = self.origin(new);
        let entry = origin.id();
        if batch.tombstone(entry)?.is_some() {
            return Err(Rejection::Forgotten(code_digits(entry)));
        }
        if is_known {
            return Ok(Receipt::Known(entry));
        }
        self.must_be_in(batch, origin.workspace())?;
        let claims = claims_of(new);
        self.write(batch, entry, |writer, stamp| {
            writer.claim(&held, Some(origin.clone()), &claims, stamp)
        })?;
        // The author's session is primed: repeating one's own text confirms nothing.
        if let Some(session) = self.session() {
            batch.mark_served(Recipient::session(&session), &[entry], self.now)?;
        }
        Ok(Receipt::Created(entry))
    }

    fn origin(&mut self, new: &NewEntry) -> Origin {
        if let Some(source) = &new.source {
            return imported(new, source);
        }
        self.new_origin(new.workspace, new.memory)
    }

    /// The origin of an entry that this node creates now.
    pub(super) fn new_origin(&mut self, workspace: WorkspaceId, memory: Memory) -> Origin {
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
        claims: &[ClaimEdit],
    ) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        let held = batch.entry(entry)?;
        entry_validation::claims(claims)?;
        let sets_content =
            |claim: &ClaimEdit| matches!(claim, ClaimEdit::Set(Register::CONTENT, _));
        if claims.iter().any(sets_content) && self.is_playbook(batch, entry, &held)? {
            // The text of the document would hide it.
            return Err(Rejection::IsDocument(held.code(entry)));
        }
        if entry_validation::may_break_rules(claims)
            && let Some(view) = self.view(batch, entry)?
        {
            entry_validation::edit(&view, claims)?;
            if let Some(after) = entry_validation::edited_entry(&view, claims) {
                self.check_form(batch, &after)?;
            }
        }
        if let Some(origin) = &held.origin {
            self.must_be_in(batch, origin.workspace())?;
        }
        let origin = self.own_origin(&held);
        let claims = [claims, &self.grants(batch, entry, &held, claims)?].concat();
        self.write(batch, entry, |writer, stamp| {
            writer.claim(&held, origin.clone(), &claims, stamp)
        })
    }

    /// The grants that a workspace owner adds to other claims on its charter.
    fn grants(
        &self,
        batch: &Batch,
        entry: EntryId,
        held: &Entry,
        claims: &[ClaimEdit],
    ) -> Result<Vec<ClaimEdit>, Rejection> {
        let workspace = held.origin.as_ref().map(Origin::workspace);
        let is_charter = |id: &WorkspaceId| workspace_charter::entry(*id) == entry;
        let Some(workspace) = workspace.filter(is_charter) else { return Ok(Vec::new()) };
        let removals = batch.removal_statements(workspace)?;
        let charter = Charter::read(workspace, held, &removals, self.now);
        Ok(charter.grants(&self.writer.key, held, claims))
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
        let amount = self.with_restoration(batch, entry, &before, (of, amount))?;
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
        // After a reset there is no earlier peak to restore.
        let uses = batch.uses(entry)?;
        batch.put_uses(entry, UseRow { alpha_peak: None, ..uses })?;
        // Later observations must not fall under the reset, so they need a new boot.
        self.draw_boot(batch)?;
        Ok(receipt)
    }

    pub(super) fn retract(&mut self, batch: &Batch, entry: EntryId) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        let own = batch.holding(entry, self.writer.key.author(), &Facet::OF_ENTRY, Damage::Told)?;
        let writer =
            RecordBuilder { key: &self.writer.key, boot: self.writer.boot, entry, own: &own };
        if !writer.has_claims() {
            let code = batch.entry(entry)?.code(entry);
            return Err(Rejection::NothingToRetract(code));
        }
        batch.forget_import(entry)?;
        let origin = self.own_origin(&batch.entry(entry)?);
        self.write(batch, entry, |writer, stamp| writer.retract(origin.clone(), stamp))
    }

    pub(super) fn forget(&mut self, batch: &Batch, entry: EntryId) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        // A damaged entry can be forgotten as long as its origin is readable.
        let records = batch.whole_records(entry)?;
        let held = Entry::assemble(records.iter());
        let refused = || Rejection::NotEntitled(held.code(entry));
        let origin = held.origin.clone().ok_or_else(refused)?;
        let grounds = self.grounds(batch, &origin)?;
        let tombstone = Tombstone { origin, grounds };
        if tombstone.authority(self.writer.key.author(), entry) == Authority::None {
            return Err(refused());
        }
        // Tombstones have their own slots, so only those have to be read.
        self.write_beside(batch, entry, &[Facet::Tombstone], |writer, stamp| {
            writer.forget(tombstone.clone(), stamp)
        })
    }

    /// The grounds on which this node may forget an entry: as its creator, or as owner or admin of
    /// the workspace.
    fn grounds(&self, batch: &Batch, origin: &Origin) -> Result<Grounds, Rejection> {
        let (own, workspace) = (self.writer.key.author(), origin.workspace());
        if origin.creator() == Some(own) || workspace.is_personal() {
            return Ok(Grounds::Origin);
        }
        let held = batch.entry(workspace_charter::entry(workspace))?;
        let removals = batch.removal_statements(workspace)?;
        let charter = Charter::read(workspace, &held, &removals, self.now);
        Ok(grounds_in(&charter, &held, own))
    }

    pub(super) fn must_hold(&self, batch: &Batch, entry: EntryId) -> Result<(), Rejection> {
        match batch.view_row(entry)? {
            Some(row) if row.is_forgotten => Err(Rejection::Forgotten(code_digits(entry))),
            Some(_) => Ok(()),
            None => Err(Rejection::NoSuchEntry(code_digits(entry))),
        }
    }

    /// The origin, if this node's records have to carry it.
    fn own_origin(&self, held: &Entry) -> Option<Origin> {
        let own = self.writer.key.author();
        held.origin.clone().filter(|origin| origin.creator().is_none_or(|by| by == own))
    }

    /// Signs the record that `make` builds from this node's records on the entry, and merges it.
    pub(super) fn write(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        make: impl Fn(&RecordBuilder<'_>, Hlc) -> Result<Record, RecordError>,
    ) -> Result<Receipt, Rejection> {
        self.write_beside(batch, entry, &Facet::OF_ENTRY, make)
    }

    /// Like [`Self::write`], reading only the given facets, so that damage in the others does not
    /// matter.
    fn write_beside(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        facets: &[Facet],
        make: impl Fn(&RecordBuilder<'_>, Hlc) -> Result<Record, RecordError>,
    ) -> Result<Receipt, Rejection> {
        let own = batch.holding(entry, self.writer.key.author(), facets, Damage::Told)?;
        let writer =
            RecordBuilder { key: &self.writer.key, boot: self.writer.boot, entry, own: &own };
        let stamp = self.writer.clock.stamp(self.now);
        let record = make(&writer, stamp)?;
        match self.ingest(batch, &record, RecordSource::Local)? {
            IngestOutcome::Merged(seq) => Ok(Receipt::Done(seq)),
            IngestOutcome::Quarantined(why)
            | IngestOutcome::Refused(why)
            | IngestOutcome::Deferred(why) => Err(Rejection::Judged(why)),
            IngestOutcome::Forgotten => Err(Rejection::Forgotten(code_digits(entry))),
            IngestOutcome::Known => Ok(Receipt::Done(batch.head()?)),
        }
    }
}

/// The grounds on which a key may forget the entries of a shared workspace that others created.
fn grounds_in(charter: &Charter, held: &Entry, own: AuthorId) -> Grounds {
    if let Some((_, nonce)) = charter.owner.filter(|(owner, _)| *owner == own) {
        return Grounds::Owner(nonce);
    }
    charter.admin_grant(held, own).map_or(Grounds::Origin, Grounds::Admin)
}

/// Whether this node may forget an entry, for a caller that has to write something else first.
///
/// # Errors
///
/// The snapshot cannot be read.
pub fn may_forget(
    snapshot: &Snapshot,
    membership: &Membership,
    entry: EntryId,
) -> Result<bool, Error> {
    let Some(origin) = snapshot.entry(entry)?.to_entry().origin else { return Ok(false) };
    let (own, workspace) = (membership.own, origin.workspace());
    let grounds = if origin.creator() == Some(own) || workspace.is_personal() {
        Grounds::Origin
    } else {
        let held = snapshot.entry(workspace_charter::entry(workspace))?.to_entry();
        let shared = membership.workspaces.get(&workspace);
        shared.map_or(Grounds::Origin, |shared| grounds_in(&shared.charter, &held, own))
    };
    Ok(Tombstone { origin, grounds }.authority(own, entry) != Authority::None)
}

/// All claims of a new document: the text is in its edits.
pub(super) fn document_claims(new: &NewEntry) -> Vec<ClaimEdit> {
    let mut claims = claims_of(new);
    claims.retain(|claim| !matches!(claim, ClaimEdit::Set(Register::CONTENT, _)));
    claims
}

/// All claims of a new entry.
fn claims_of(new: &NewEntry) -> Vec<ClaimEdit> {
    let texts = [
        (Register::TITLE, new.title.clone()),
        (Register::CONTENT, new.content.clone()),
        (Register::TYPE, new.kind.name().to_owned()),
    ];
    let registers = texts.into_iter().chain(new.registers.iter().cloned());
    let mut claims: Vec<ClaimEdit> = registers.map(|(at, text)| ClaimEdit::Set(at, text)).collect();
    claims.extend(new.claims.iter().cloned());
    claims.extend(new.citations.iter().cloned().map(ClaimEdit::Cite));
    claims
}

/// Checks an imported entry against the rules and the limits of the format without writing it. The
/// record is signed with a dummy key and discarded by the caller.
pub fn dry_run_import(new: &NewEntry, source: &SourceKey) -> Result<Record, Rejection> {
    entry_validation::new_entry(new)?;
    entry_validation::check_imported_links(new)?;
    let origin = imported(new, source);
    let (key, own) = (SecretKey::from_bytes(&[1; 32]), LiveRecords::default());
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry: origin.id(), own: &own };
    Ok(writer.claim(&Entry::default(), Some(origin), &claims_of(new), Hlc::default())?)
}

fn imported(new: &NewEntry, source: &SourceKey) -> Origin {
    let SourceKey { format, key } = source.clone();
    Origin::Imported { workspace: new.workspace, memory: new.memory, format, key }
}
