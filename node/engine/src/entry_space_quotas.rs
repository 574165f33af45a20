//! Author quotas: how many unknown authors may have records about one entry, and how many bytes
//! each author and each group of authors may store there.
//!
//! Keys cost nothing to create, and reading an entry loads all of its records into memory, where a
//! record takes many times its stored size. Scoring bounds the influence of a crowd of authors;
//! this module bounds the space it takes: per delivering peer, per author, and over all authors.

use super::command::RecordSource;
use super::engine_thread::Limits;
use super::quota_counts::WorkspaceMembers;
use super::record_intake::{Screening, Transaction};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry_origin::Origin;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, Nonce, WorkspaceId};
use klnode_crdt::limits::{HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use klnode_crdt::workspace_charter;
use klnode_store::peers::row_types::PeerApproval;
use klnode_store::row_types::ViewRow;
use klnode_store::{Batch, Error};
use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};

/// Reason for refusing a record whose author exceeds its byte quota on the entry.
const TOO_LONG: &str = "its author has used up its bytes on this entry";
/// Reason for refusing a known author's record when the quota of all known authors is used up.
const FULL_OF_KNOWN: &str = "the entry's byte quota for known authors is used up";
/// Reason for refusing an unknown author's record when the quota of all unknown authors is used up.
const FULL_OF_UNKNOWN: &str = "the entry's byte quota for unknown authors is used up";

/// The known authors, as far as one entry is concerned.
struct KnownAuthors {
    /// Authors with precedence: the entry's creator, or on a charter the workspace's owner and
    /// admins.
    principals: BTreeSet<AuthorId>,
    /// This person's keys, the principals, and the workspace's members that are neither blocked nor
    /// convicted. If the owner of the workspace is not known, approved peers take the members'
    /// place; a peer that only asked for approval does not count.
    authors: BTreeSet<AuthorId>,
}

impl Transaction<'_> {
    /// Returns the reason if the record would add one unknown author too many. Known authors, and
    /// authors that already have a record about the entry, are always accepted.
    pub(super) fn author_quota_violation(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: RecordSource,
    ) -> Result<Option<String>, Error> {
        let (entry, author) = (record.entry(), record.author());
        let RecordSource::Peer(from) = source else { return Ok(None) };
        let Some(row) = batch.view_row(entry)? else { return Ok(None) };
        // An entry has at most as many authors as records.
        let is_small = (row.records as usize) < Limits::AUTHORS_BROUGHT_MAX;
        let is_mended = self.quota.dropped.contains(&record.digest());
        if is_small || is_mended || author == from || batch.has_word_of(author, entry)? {
            return Ok(None);
        }
        let known = self.known(batch, record, &row)?.authors;
        if known.contains(&author) {
            return Ok(None);
        }
        let (unknown, brought) = match self.quota.counted.get(&(entry, from)) {
            Some(counted) => *counted,
            None => {
                let (unknown, brought) = batch.unknown_authors(entry, from, &known)?;
                // The store does not keep which authors came from an imported file, so all of them
                // may have.
                (unknown, if self.bringer(source).is_some() { brought } else { unknown })
            }
        };
        let excess = if brought >= Limits::AUTHORS_BROUGHT_MAX {
            Some(("the delivering peer has brought this entry", Limits::AUTHORS_BROUGHT_MAX))
        } else if unknown >= Limits::AUTHORS_UNKNOWN_MAX {
            Some(("the entry has", Limits::AUTHORS_UNKNOWN_MAX))
        } else {
            None
        };
        // Counts refused records too, so that a peer that delivers many more has its authors
        // counted only once.
        let more = usize::from(excess.is_none());
        self.quota.counted.insert((entry, from), (unknown + more, brought + more));
        Ok(excess.map(|(subject, max)| format!("{subject} {max} unknown authors already")))
    }

    /// Returns the reason if the record would exceed a byte quota of the entry: that of its author
    /// in the record's facet, or that of all known or all unknown authors, depending on which group
    /// its author belongs to. A record that takes no more space than the records it replaces is
    /// always accepted, and so is a short retraction. This person's keys are not counted, and the
    /// quota of the other authors never excludes a principal. Long records of new authors may fill
    /// half of the quota, long records that replace older ones a further quarter; the rest is
    /// reserved for short records.
    pub(super) fn byte_quota_violation(
        &mut self,
        batch: &Batch,
        record: &Record,
        ask: Screening,
        (before, after): (&LiveRecords, &LiveRecords),
    ) -> Result<Option<&'static str>, Error> {
        let (entry, author, facet) = (record.entry(), record.author(), record.header().facet);
        let is_mended = self.quota.dropped.contains(&record.digest());
        if is_mended || self.writer.mine.contains(&author) {
            return Ok(None);
        }
        let facet_bytes = bytes(after.facet(facet));
        if facet_bytes > Limits::AUTHOR_BYTES_MAX && facet_bytes > bytes(before.facet(facet)) {
            return Ok(Some(TOO_LONG));
        }
        let grown = bytes(after.records()).saturating_sub(bytes(before.records()));
        let takes_back = facet == Facet::Retraction && facet_bytes <= Limits::SHORT_BYTES_MAX;
        if ask == Screening::Nobody || grown == 0 || takes_back {
            return Ok(None);
        }
        let Some(row) = batch.view_row(entry)? else { return Ok(None) };
        // Cheap upper bound: nearly all entries stay far below it and are not read.
        let most = u64::from(row.records) * (HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX) as u64;
        if most + grown <= Limits::UNKNOWN_BYTES_MAX / 2 {
            return Ok(None);
        }
        let held = self.bytes_of(batch, entry)?;
        let (all, own) = (held.values().sum::<u64>(), held.get(&author).copied());
        if all + grown <= Limits::UNKNOWN_BYTES_MAX / 2 {
            return Ok(None);
        }
        let KnownAuthors { principals, authors: known } = self.known(batch, record, &row)?;
        let (is_known, mine) = (known.contains(&author), self.writer.mine.clone());
        let of_author = if is_known { facet_bytes } else { own.unwrap_or_default() + grown };
        let is_short = of_author <= Limits::SHORT_BYTES_MAX;
        // The number of unknown authors is limited, so if each is short there is room for all of
        // them.
        if principals.contains(&author) || (is_short && !is_known) {
            return Ok(None);
        }
        let is_counted = |by: &AuthorId| !principals.contains(by) && !mine.contains(by);
        let is_like = |by: &AuthorId| known.contains(by) == is_known && is_counted(by);
        let held = self.bytes_of(batch, entry)?.iter().filter(|(by, _)| is_like(by));
        let held: u64 = held.map(|(_, bytes)| bytes).sum();
        let (max, reason) = match is_known {
            true => (Limits::KNOWN_BYTES_MAX, FULL_OF_KNOWN),
            false => (Limits::UNKNOWN_BYTES_MAX, FULL_OF_UNKNOWN),
        };
        let replaces = before.records().any(|old| after.get(old.digest()).is_none());
        let max = match replaces {
            _ if is_short => max,
            true => max / 4 * 3,
            false => max / 2,
        };
        Ok((held + grown > max).then_some(reason))
    }

    /// Returns the known authors for the entry of a record, from stored data and from facts the
    /// record proves: other authors may have filled the entry before its origin arrived. Blocked
    /// and convicted authors are not known, so blocking an author that fills the quota of known
    /// authors frees its share. Peers that are no members of the workspace are not known either, so
    /// outsiders cannot use up the members' quota.
    fn known(
        &mut self,
        batch: &Batch,
        record: &Record,
        row: &ViewRow,
    ) -> Result<KnownAuthors, Error> {
        let (workspace, is_first) = proven_facts(record);
        let first = row.creator.or_else(|| is_first.then(|| record.author()));
        let mut principals: BTreeSet<AuthorId> = first.into_iter().collect();
        let workspace = row.workspace.or(workspace);
        let members = workspace.map(|workspace| self.members(batch, workspace)).transpose()?;
        let mut authors = match members.filter(|members| members.owner.is_some()) {
            None => self.approved(batch)?,
            Some(WorkspaceMembers { owner, admins, heard }) => {
                let is_charter = workspace.map(workspace_charter::entry) == Some(record.entry());
                if is_charter || row.is_internal(record.entry()) {
                    principals.extend(owner.into_iter().chain(admins));
                }
                heard
            }
        };
        authors.extend(self.writer.mine.iter().chain(&principals));
        Ok(KnownAuthors { principals, authors })
    }

    /// Returns the members of a workspace, cached until the membership revision changes.
    fn members(
        &mut self,
        batch: &Batch,
        workspace: WorkspaceId,
    ) -> Result<WorkspaceMembers, Error> {
        let members = match self.quota.members.entry((workspace, self.writer.membership_changes)) {
            Slot::Occupied(members) => members.into_mut(),
            Slot::Vacant(slot) => {
                let charter = Error::unless_damaged(batch.charter(workspace, self.now))?;
                let charter = charter.unwrap_or_default();
                let owner = charter.owner.map(|(owner, _)| owner);
                let heard = batch.unblocked_authors(charter.members)?;
                let admins = charter.admins.intersection(&heard).copied().collect();
                slot.insert(WorkspaceMembers { owner, admins, heard })
            }
        };
        Ok(members.clone())
    }

    /// Returns the approved peers that are neither blocked nor convicted, cached until the
    /// membership revision changes.
    fn approved(&mut self, batch: &Batch) -> Result<BTreeSet<AuthorId>, Error> {
        let changes = self.writer.membership_changes;
        if let Some((at, peers)) = &self.quota.peers
            && *at == changes
        {
            return Ok(peers.clone());
        }
        let mut approved = Vec::new();
        for peer in batch.peers()? {
            let row = Error::unless_damaged(batch.peer(peer))?.flatten();
            if row.is_some_and(|row| row.approval == PeerApproval::Approved) {
                approved.push(peer);
            }
        }
        let peers = batch.unblocked_authors(approved)?;
        self.quota.peers = Some((changes, peers.clone()));
        Ok(peers)
    }

    /// Returns the bytes that each author stores about an entry, read once per step.
    fn bytes_of(
        &mut self,
        batch: &Batch,
        entry: EntryId,
    ) -> Result<&BTreeMap<AuthorId, u64>, Error> {
        let held = match self.quota.bytes.entry(entry) {
            Slot::Occupied(held) => held.into_mut(),
            Slot::Vacant(slot) => slot.insert(batch.bytes_by_author(entry)?),
        };
        Ok(held)
    }

    /// Updates the cached byte count of a record's author after a merge.
    pub(super) fn update_author_bytes(
        &mut self,
        record: &Record,
        (before, after): (&LiveRecords, &LiveRecords),
    ) {
        if let Some(held) = self.quota.bytes.get_mut(&record.entry()) {
            let of_author = held.entry(record.author()).or_default();
            let all = of_author.saturating_add(bytes(after.records()));
            *of_author = all.saturating_sub(bytes(before.records()));
        }
    }

    /// Drops the cached byte counts of an entry.
    pub(super) fn forget_bytes(&mut self, entry: EntryId) {
        self.quota.bytes.remove(&entry);
    }

    /// Notes that damaged records of an entry were dropped.
    pub(super) fn note_dropped(&mut self, entry: EntryId, dropped: Vec<Digest>) {
        if !dropped.is_empty() {
            self.quota.bytes.remove(&entry);
            self.quota.dropped.extend(dropped);
        }
    }

    /// Drops the cached members of a workspace if the written entry is its charter.
    pub(super) fn invalidate_members(&mut self, written: EntryId) {
        self.quota
            .members
            .retain(|(workspace, _), _| workspace_charter::entry(*workspace) != written);
    }
}

/// Returns the facts that a verified record proves: the workspace of its entry, and whether its
/// author has precedence there. The creator's record carries the entry's origin, the owner's record
/// the nonce from which the workspace id is derived.
fn proven_facts(record: &Record) -> (Option<WorkspaceId>, bool) {
    let (origin, claims) = match record.payload() {
        Some(Payload::Claims { origin, claims }) => (origin.as_ref(), Some(claims)),
        Some(Payload::Retraction { origin, .. }) => (origin.as_ref(), None),
        _ => (None, None),
    };
    let nonces = claims.and_then(|claims| claims.texts.get(&TextSet::OWNER_NONCES));
    let mut nonces = nonces.into_iter().flat_map(|nonces| nonces.present());
    let owned = |text: &String| Some(WorkspaceId::of(record.author(), Nonce::from_hex(text)?));
    let is_owner = nonces
        .any(|text| owned(text).is_some_and(|of| workspace_charter::entry(of) == record.entry()));
    let is_creator = origin.and_then(Origin::creator) == Some(record.author());
    (origin.map(Origin::workspace), is_creator || is_owner)
}

/// Stored size of the records, in bytes.
fn bytes<'r>(records: impl Iterator<Item = &'r Record>) -> u64 {
    let of_payload =
        |record: &Record| record.payload().map_or(0, |_| record.header().payload_bytes);
    let each =
        records.map(|one| one.signed_header().bytes().len() as u64 + u64::from(of_payload(one)));
    each.sum()
}

#[cfg(test)]
mod tests;
