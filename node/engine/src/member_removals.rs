//! Removals: keeps the stored records of a removed key to the cut.
//!
//! [`klnode_crdt::member_removal`] explains the cut. While a key is out, this module
//!
//! - refuses the key's claims outside the cut, and its tombstones by an admin's grant, whichever
//!   peer delivers them;
//! - moves such records that the node accepted before it knew of the removal into quarantine, so
//!   that they are neither shown nor passed on. Records in the cut that they had covered come back
//!   from peers, because a comparison finds them missing;
//! - lifts such tombstones.
//!
//! When the cut grows or the removal no longer stands, the quarantined records return, and refused
//! records are requested again. The records follow the removal in the transaction that stores it.
//!
//! The node's own key is exempt on its own node: the records stay there, but no new ones are signed.

use super::command::{IngestOutcome, Receipt, RecordSource, Rejection, RemovalCommand};
use super::record_intake::{Screening, Transaction};
use klnode_crdt::claims::{Claims, TextSet};
use klnode_crdt::entry::Entry;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::header::{Facet, SignedHeader};
use klnode_crdt::ids::{AuthorId, Digest, EntryId, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::member_removal::{self, CUT_DIGESTS_MAX};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::{MvRegister, Register};
use klnode_crdt::removal_page_origin::{self, PAGES_MAX, RemovalPage};
use klnode_crdt::time::WallTime;
use klnode_crdt::workspace_charter::{self, Charter};
use klnode_store::peers::row_types::RefusalRow;
use klnode_store::peers::{Cut, RemovalRow};
use klnode_store::row_types::{QuarantineRow, ViewRow};
use klnode_store::{Batch, Damage, Error};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reason for refusing or quarantining a record of a removed key. Stored rows are compared with it,
/// so the text must not change.
pub const REMOVED: &str = "its author was removed from the workspace";

impl Transaction<'_> {
    /// The reason to refuse a record because its author was removed from the entry's workspace.
    pub(super) fn removal_violation(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<Option<&'static str>, Error> {
        let author = record.author();
        if author == self.writer.key.author() && source != RecordSource::Local {
            return Ok(None);
        }
        let is_bound = match record.header().facet {
            Facet::Claims => true,
            Facet::Tombstone => record.tombstone_rank().is_by_grant,
            // Whether an edit counts is decided when its document is merged.
            Facet::Edit | Facet::Tally | Facet::Retraction => false,
        };
        if !is_bound {
            return Ok(None);
        }
        let Some(workspace) = workspace_of(batch, record)? else { return Ok(None) };
        let cut = self.cut(batch, workspace, author)?;
        Ok((!cut.keeps(record.digest())).then_some(REMOVED))
    }

    /// Whether the reason of a refusal is void: a removal that ended, a cut that grew, or an edit
    /// that waits for the refused one, in the delivery that also brought the refused record.
    pub(super) fn is_void(&mut self, batch: &Batch, refusal: &RefusalRow) -> Result<bool, Error> {
        if refusal.reason != REMOVED {
            return Ok(self.is_edit_refusal_void(refusal));
        }
        let signed = SignedHeader::read_back(&refusal.header, refusal.signature);
        let Ok(author) = signed.map(|signed| signed.header().author) else { return Ok(false) };
        for workspace in batch.workspaces_removing(author)? {
            if !self.cut(batch, workspace, author)?.keeps(refusal.digest) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The effect of a removal on a key's records, read once per step.
    pub(super) fn cut(
        &mut self,
        batch: &Batch,
        workspace: WorkspaceId,
        member: AuthorId,
    ) -> Result<Arc<Cut>, Error> {
        if let Some(cut) = self.removals.cuts.get(&(workspace, member)) {
            return Ok(Arc::clone(cut));
        }
        let row = Error::unless_damaged(batch.removal(workspace, member))?.flatten();
        let cut = match row {
            Some(row) => match Error::unless_damaged(batch.charter(workspace, self.now))? {
                Some(charter) => read_cut(batch, &charter, (workspace, member), &row)?,
                // While a record of the charter is damaged, the applied state stays.
                None => {
                    let digests = batch.cut_digests((workspace, member, row.pages), &row.by)?;
                    Cut { is_out: row.is_out, digests }
                }
            },
            None => Cut::default(),
        };
        let cut = Arc::new(cut);
        self.removals.cuts.insert((workspace, member), Arc::clone(&cut));
        Ok(cut)
    }

    /// Notes that a merged record may change the members of a workspace, and updates the row of a
    /// removal if the record is on one of its pages.
    pub(super) fn note_removals(&mut self, batch: &Batch, record: &Record) -> Result<(), Error> {
        let Some(origin) = origin_of(record) else { return Ok(()) };
        if let Some(page) = RemovalPage::of(origin) {
            let (workspace, member) = (page.workspace, page.member);
            let held = Error::unless_damaged(batch.removal(workspace, member))?.flatten();
            let mut row = held.unwrap_or_else(|| RemovalRow::new(self.now));
            row.pages = row.pages.max(page.number + 1);
            if page.number == 0 {
                let records = batch.whole_records(page.entry())?;
                row.by = page.stated_by(&Entry::assemble(records.iter()));
            }
            batch.put_removal(workspace, member, &row)?;
        } else if workspace_charter::origin(origin.workspace()) != *origin {
            return Ok(());
        }
        self.members_changed(origin.workspace());
        Ok(())
    }

    /// Notes that the members of a workspace may have changed in this step.
    pub(super) fn members_changed(&mut self, workspace: WorkspaceId) {
        self.removals.cuts.retain(|(of, _), _| *of != workspace);
        self.removals.changed.insert(workspace);
        self.note_document_members(workspace);
    }

    /// Notes that the workspace of an entry became known after some of its records.
    pub(super) fn note_placed(&mut self, entry: EntryId) {
        self.documents.edits.entry(entry).or_default();
        self.removals.placed.insert(entry);
    }

    /// Makes the stored records follow the removals that this step changed.
    pub(super) fn apply_removals(&mut self, batch: &Batch) -> Result<(), Error> {
        // A record that returns from quarantine may be on a charter and change the members again.
        while let Some(workspace) = self.removals.changed.pop_first() {
            // While a record of the charter is damaged the members are unknown; a peer delivers the
            // record again.
            let Some(charter) = Error::unless_damaged(batch.charter(workspace, self.now))? else {
                continue;
            };
            if charter.owner.is_none() {
                continue;
            }
            let mut changed = BTreeMap::new();
            for (member, row) in batch.removals(workspace)? {
                let cut = read_cut(batch, &charter, (workspace, member), &row)?;
                if !row.has_applied(&cut) {
                    batch.put_removal(workspace, member, &row.applying(&cut))?;
                    changed.insert(member, cut);
                }
            }
            if changed.is_empty() {
                continue;
            }
            self.writer.membership_changes += 1;
            // The node's own records stay on this node.
            changed.remove(&self.writer.key.author());
            let mut held = batch.bound_records(&changed.keys().copied().collect())?;
            for (member, cut) in changed {
                let held = held.remove(&member).unwrap_or_default();
                self.apply_cut(batch, (workspace, member), &cut, &held)?;
            }
        }
        for entry in std::mem::take(&mut self.removals.placed) {
            let Some(row) = batch.view_row(entry)? else { continue };
            let Some(workspace) = row.workspace else { continue };
            let own = self.writer.key.author();
            for (member, _) in batch.removals(workspace)?.into_iter().filter(|of| of.0 != own) {
                let cut = self.cut(batch, workspace, member)?;
                self.set_aside(batch, (entry, &row), member, &cut)?;
            }
        }
        Ok(())
    }

    fn apply_cut(
        &mut self,
        batch: &Batch,
        (workspace, member): (WorkspaceId, AuthorId),
        cut: &Cut,
        held: &[(EntryId, Digest)],
    ) -> Result<(), Error> {
        let void = held.iter().filter(|(_, digest)| !cut.keeps(*digest));
        for entry in void.map(|(entry, _)| *entry).collect::<BTreeSet<_>>() {
            if let Some(row) = row_in(batch, entry, workspace)? {
                self.set_aside(batch, (entry, &row), member, cut)?;
            }
        }
        for row in batch.quarantined_by(member, REMOVED)? {
            let Ok(record) = Record::read_back(&row.record, Absence::Stripped) else { continue };
            if workspace_of(batch, &record)? == Some(workspace) && cut.keeps(record.digest()) {
                // The node admitted the record before, as if from a file: no peer delivers it now.
                let source = RecordSource::Peer(self.writer.key.author());
                let outcome = self.take(batch, &record, source, Screening::Nobody)?;
                // A record that cannot be merged yet stays in quarantine.
                if matches!(outcome, IngestOutcome::Merged(_) | IngestOutcome::Known) {
                    batch.drop_quarantined(&record)?;
                }
            }
        }
        // Refused records that count now are requested again.
        let is_readmitted = |digest: Digest, header: &[u8], signature| {
            let signed = SignedHeader::read_back(header, signature);
            signed.is_ok_and(|of| of.header().author == member) && cut.keeps(digest)
        };
        for offer in batch.offers_read()? {
            let is_lifted = batch.drop_refusals(offer, |row| {
                row.reason == REMOVED && is_readmitted(row.digest, &row.header, row.signature)
            })?;
            if is_lifted {
                batch.request_reread(offer.peer)?;
            }
        }
        Ok(())
    }

    /// Moves the records of an entry that a removed key wrote outside the cut into quarantine, and
    /// lifts its tombstone.
    fn set_aside(
        &mut self,
        batch: &Batch,
        (entry, row): (EntryId, &ViewRow),
        member: AuthorId,
        cut: &Cut,
    ) -> Result<(), Error> {
        if row.is_forgotten {
            let tombstone = Error::unless_damaged(batch.tombstone(entry))?.flatten();
            let is_void = |of: &Record| {
                let is_by_grant = of.tombstone_rank().is_by_grant;
                of.author() == member && is_by_grant && !cut.keeps(of.digest())
            };
            return match tombstone.filter(is_void) {
                Some(tombstone) => batch.drop_tombstone(&tombstone),
                None => Ok(()),
            };
        }
        let claims = &[Facet::Claims][..];
        let names = batch.held_names((entry, member, claims))?;
        if names.iter().all(|digest| cut.keeps(*digest)) {
            return Ok(());
        }
        let facets = &[Facet::Claims, Facet::Retraction][..];
        let before = batch.holding(entry, member, facets, Damage::PassedOver)?;
        let (kept, void): (Vec<&Record>, Vec<&Record>) = before.records().partition(|record| {
            record.header().facet != Facet::Claims || cut.keeps(record.digest())
        });
        for record in &void {
            batch.drop_record(record)?;
            if record.payload().is_some() {
                let (from, at, reason) = (member, self.now, REMOVED.to_owned());
                let row = QuarantineRow { record: record.to_raw(), from, at, reason };
                // Beyond the limit of the quarantine the records are gone until a peer delivers
                // them again.
                batch.put_quarantined(record, &row, true)?;
            }
        }
        let after = LiveRecords::from_held(kept.into_iter().cloned());
        self.update_hints(batch, (&before, &after), (entry, member))?;
        let gone = u32::try_from(void.len()).unwrap_or(u32::MAX);
        let mut row = row.clone();
        row.records = row.records.saturating_sub(gone);
        batch.put_view_row(entry, &row)?;
        self.covered.erased.push(entry);
        self.forget_read(entry);
        Ok(())
    }

    /// Runs a command of the operator.
    pub(super) fn run_removal(
        &mut self,
        batch: &Batch,
        command: &RemovalCommand,
    ) -> Result<Receipt, Rejection> {
        match command {
            RemovalCommand::Remove { workspace, member, keep } => {
                self.remove_member(batch, *workspace, *member, keep)
            }
            RemovalCommand::Adopt(digest) => self.adopt(batch, *digest),
            RemovalCommand::Reinstate { workspace, member } => {
                let page = RemovalPage { workspace: *workspace, member: *member, number: 0 };
                let row = batch.removal(*workspace, *member)?;
                if !row.is_some_and(|row| row.by.contains(&self.writer.key.author())) {
                    return Err(Rejection::NoRemoval);
                }
                self.claim_on_page(batch, page, &[page.withdrawal()])
            }
        }
    }

    fn remove_member(
        &mut self,
        batch: &Batch,
        workspace: WorkspaceId,
        member: AuthorId,
        keep: &[AuthorId],
    ) -> Result<Receipt, Rejection> {
        let (own, charter) = (self.writer.key.author(), batch.charter(workspace, self.now)?);
        if !charter.may_remove(own, member) {
            return Err(Rejection::MayNotRemove);
        }
        self.write_removal(batch, (workspace, member), &BTreeSet::new())?;
        // Removals that only this admin stated would end with it, and all cuts would shrink by its
        // digests.
        for (key, by) in charter.removed.iter().filter(|(key, _)| **key != member) {
            let of_admin = match charter.admins.contains(&member) {
                true => batch.cut_digests((workspace, *key, PAGES_MAX), &[member].into())?,
                false => BTreeSet::new(),
            };
            if !of_admin.is_empty() || by.iter().all(|author| *author == member) {
                self.write_removal(batch, (workspace, *key), &of_admin)?;
            }
        }
        let held = batch.entry(workspace_charter::entry(workspace))?;
        if charter.admins.contains(&member) {
            // Members that leave with the admin must not keep writing either.
            let dropped = charter.listed_only_by(member, &held);
            for key in dropped.iter().filter(|key| **key != own && !keep.contains(key)) {
                self.write_removal(batch, (workspace, *key), &BTreeSet::new())?;
            }
        }
        let lists = |set: TextSet, key: &AuthorId| {
            let texts = held.claims.get(&own).and_then(|claims| claims.texts.get(&set));
            texts.is_some_and(|texts| texts.present().any(|text| *text == key.to_string()))
        };
        let sets = [TextSet::MEMBERS, TextSet::ADMINS];
        let listed = sets.into_iter().filter(|set| lists(*set, &member));
        let mut claims: Vec<ClaimEdit> =
            listed.map(|set| ClaimEdit::Withdraw(set, member.to_string())).collect();
        let kept = keep.iter().filter(|key| !lists(TextSet::MEMBERS, key));
        claims.extend(kept.map(|key| ClaimEdit::Add(TextSet::MEMBERS, key.to_string())));
        match claims.is_empty() {
            true => Ok(Receipt::Done(batch.head()?)),
            false => self.claim(batch, workspace_charter::entry(workspace), &claims),
        }
    }

    /// Writes this node's removal of a key: the statement, and a cut of all records held here. Then
    /// digests in a cut of another author are added as far as they fit: that author may have filled
    /// its cut with invented ones, and they must not prevent the removal.
    fn write_removal(
        &mut self,
        batch: &Batch,
        (workspace, member): (WorkspaceId, AuthorId),
        also: &BTreeSet<Digest>,
    ) -> Result<(), Rejection> {
        let own = self.writer.key.author();
        let page = |number| RemovalPage { workspace, member, number };
        let held = held_digests(batch, workspace, member)?;
        let known = batch.cut_digests((workspace, member, PAGES_MAX), &[own].into())?;
        let of_others = also.difference(&held).filter(|digest| !known.contains(*digest));
        let new: Vec<Digest> = held.difference(&known).chain(of_others).copied().collect();
        let needed = held.difference(&known).count();
        let mut written = 0;
        let (mut rest, mut writes) = (&new[..], Vec::new());
        for number in 0..PAGES_MAX {
            let room = member_removal::room(&batch.entry(page(number).entry())?, own);
            let (here, later) = rest.split_at(room.min(rest.len()));
            written += here.len();
            let mut claims = member_removal::cut_claims(here);
            if number == 0 {
                claims.push(page(0).statement());
            }
            if !claims.is_empty() {
                writes.push((page(number), claims));
            }
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        if written < needed {
            return Err(Rejection::CutTooLong { found: held.len(), max: CUT_DIGESTS_MAX });
        }
        for (page, claims) in writes {
            self.claim_on_page(batch, page, &claims)?;
        }
        Ok(())
    }

    /// States the claims of a record that was set aside as claims of this node.
    fn adopt(&mut self, batch: &Batch, digest: Digest) -> Result<Receipt, Rejection> {
        let row = batch.quarantined(digest)?.filter(|row| row.reason == REMOVED);
        let row = row.ok_or(Rejection::NotQuarantined(digest))?;
        let record = Record::read_back(&row.record, Absence::Stripped)?;
        let Some(Payload::Claims { origin, claims }) = record.payload() else {
            return Err(Rejection::NotQuarantined(digest));
        };
        // A charter or a page of a removal is no proposal: stated by this node, it would change who
        // is a member.
        let held = batch.entry(record.entry())?;
        if origin.iter().chain(&held.origin).any(removal_page_origin::is_internal) {
            return Err(Rejection::NotQuarantined(digest));
        }
        let (entry, edits) = (record.entry(), edits_of(claims, self.now));
        let receipt = if held.origin.is_some() {
            self.claim(batch, entry, &edits)?
        } else {
            let origin = origin.as_ref().ok_or(Rejection::NotQuarantined(digest))?;
            self.must_be_in(batch, origin.workspace())?;
            let origin = self.new_origin(origin.workspace(), origin.memory());
            self.write(batch, origin.id(), |writer, stamp| {
                writer.claim(&Entry::default(), Some(origin.clone()), &edits, stamp)
            })?;
            Receipt::Created(origin.id())
        };
        batch.drop_quarantined(&record)?;
        Ok(receipt)
    }

    /// Adds claims to a page of a removal, which this node may be the first to write.
    fn claim_on_page(
        &mut self,
        batch: &Batch,
        page: RemovalPage,
        claims: &[ClaimEdit],
    ) -> Result<Receipt, Rejection> {
        let held = batch.entry(page.entry())?;
        let own = held.claims.get(&self.writer.key.author());
        let texts = [
            (Register::TITLE, format!("Removal of {}", &page.member.to_string()[..8])),
            (Register::CONTENT, "Records of this key outside the cut do not count.".to_owned()),
            (Register::TYPE, EntryType::Signal.name().to_owned()),
        ];
        let texts = texts.into_iter().filter(|_| own.is_none());
        let texts = texts.map(|(register, text)| ClaimEdit::Set(register, text));
        let claims: Vec<ClaimEdit> = texts.chain(claims.iter().cloned()).collect();
        self.write(batch, page.entry(), |writer, stamp| {
            writer.claim(&held, Some(page.origin()), &claims, stamp)
        })
    }

    /// Rejects a local write into a workspace that this node was removed from.
    pub(super) fn must_be_in(
        &mut self,
        batch: &Batch,
        workspace: WorkspaceId,
    ) -> Result<(), Rejection> {
        let cut = self.cut(batch, workspace, self.writer.key.author())?;
        if cut.is_out { Err(Rejection::RemovedHere(workspace)) } else { Ok(()) }
    }
}

/// The claims that state the same texts, sets, citations and links.
fn edits_of(claims: &Claims, now: WallTime) -> Vec<ClaimEdit> {
    let registers = claims.registers.iter().filter_map(|(register, values)| {
        let shown = MvRegister::shown_of(values.iter().collect(), now)?;
        Some(ClaimEdit::Set(*register, shown.value.text.clone()))
    });
    let sets = claims
        .texts
        .iter()
        .flat_map(|(set, texts)| texts.present().map(|text| ClaimEdit::Add(*set, text.clone())));
    let citations = claims.citations.present().cloned().map(ClaimEdit::Cite);
    let links = claims.links.present().copied().map(ClaimEdit::Link);
    registers.chain(sets).chain(citations).chain(links).collect()
}

/// The effect of a removal, given the charter.
fn read_cut(
    batch: &Batch,
    charter: &Charter,
    (workspace, member): (WorkspaceId, AuthorId),
    row: &RemovalRow,
) -> Result<Cut, Error> {
    let is_out = charter.removed.contains_key(&member);
    let digests = match is_out {
        true => batch.cut_digests((workspace, member, row.pages), &charter.cut_authors())?,
        false => BTreeSet::new(),
    };
    Ok(Cut { is_out, digests })
}

/// The digests of a key's claims and tombstones in a workspace that this node holds.
fn held_digests(
    batch: &Batch,
    workspace: WorkspaceId,
    member: AuthorId,
) -> Result<BTreeSet<Digest>, Error> {
    let mut digests = BTreeSet::new();
    for (entry, digest) in batch.bound_records(&[member].into())?.into_values().flatten() {
        if row_in(batch, entry, workspace)?.is_some() {
            digests.insert(digest);
        }
    }
    Ok(digests)
}

/// The row of an entry, if the entry is in this workspace. If the node never held the entry, its
/// tombstone says so.
fn row_in(batch: &Batch, entry: EntryId, workspace: WorkspaceId) -> Result<Option<ViewRow>, Error> {
    let Some(row) = Error::unless_damaged(batch.view_row(entry))?.flatten() else {
        return Ok(None);
    };
    let is_there = match row.workspace {
        None if row.is_forgotten => {
            let tombstone = Error::unless_damaged(batch.tombstone(entry))?.flatten();
            tombstone.as_ref().and_then(origin_of).map(Origin::workspace) == Some(workspace)
        }
        of => of == Some(workspace),
    };
    Ok(is_there.then_some(row))
}

/// The workspace of a record's entry, if it is known and shared.
fn workspace_of(batch: &Batch, record: &Record) -> Result<Option<WorkspaceId>, Error> {
    let said = origin_of(record).map(Origin::workspace);
    let workspace = match said {
        Some(workspace) => Some(workspace),
        None => Error::unless_damaged(batch.view_row(record.entry()))?
            .flatten()
            .and_then(|row| row.workspace),
    };
    Ok(workspace.filter(|workspace| !workspace.is_personal()))
}

/// The origin that a record carries.
fn origin_of(record: &Record) -> Option<&Origin> {
    match record.payload()? {
        Payload::Claims { origin, .. } | Payload::Retraction { origin, .. } => origin.as_ref(),
        Payload::Tombstone(tombstone) => Some(&tombstone.origin),
        Payload::Tally(_) | Payload::Edit(_) => None,
    }
}
