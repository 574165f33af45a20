//! How many authors of whom this node knows nothing may have a say about one entry, and how many bytes
//! anyone may have there.
//!
//! Keys cost nothing, and whoever reads an entry has all of it in memory, where a record takes up many
//! times its bytes. What a crowd weighs is bounded where it is judged; what it takes up is bounded here:
//! for each peer that brings authors, for each author, and for all together.

use super::command::Source;
use super::ingest::{Ask, Ingest};
use super::run::Limits;
use crate::store::peers::rows::Approval;
use crate::store::rows::ViewRow;
use crate::store::{Batch, Error};
use klnode_crdt::charter;
use klnode_crdt::claims::TextSet;
use klnode_crdt::header::Facet;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{AuthorId, Digest, EntryId, Nonce, WorkspaceId};
use klnode_crdt::limits::{HEADER_BYTES_MAX, PAYLOAD_BYTES_MAX};
use klnode_crdt::origin::Origin;
use klnode_crdt::payload::Payload;
use klnode_crdt::record::Record;
use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};

/// Why a record is refused whose author says too much.
const TOO_LONG: &str = "its author has too many bytes here";
/// Why one is refused of an author known here, if all of these say too much.
const FULL_OF_KNOWN: &str = "the entry has too many bytes of known authors";
/// The same of authors who are unknown.
const FULL_OF_UNKNOWN: &str = "the entry has too many bytes of unknown authors";

/// What a step has counted.
#[derive(Default)]
pub(super) struct Crowds {
    /// By entry and peer: unknown authors of the entry, and those of them that the peer has brought.
    counted: BTreeMap<(EntryId, AuthorId), (usize, usize)>,
    /// Bytes that are held of an entry, by author.
    bytes: BTreeMap<EntryId, BTreeMap<AuthorId, u64>>,
    /// What was held and was dropped for being damaged: a whole one finds the room that it had.
    dropped: BTreeSet<Digest>,
    /// Peers that may talk and are listened to, and how often it had become another who is who when
    /// they were read.
    peers: Option<(u64, BTreeSet<AuthorId>)>,
    /// Who belongs to workspaces, likewise.
    members: BTreeMap<(WorkspaceId, u64), Members>,
}

/// Who belongs to a workspace.
#[derive(Clone)]
struct Members {
    /// Whom its id proves to own it, once that is known.
    owner: Option<AuthorId>,
    /// Admins who are listened to.
    admins: BTreeSet<AuthorId>,
    /// All members who are.
    heard: BTreeSet<AuthorId>,
}

/// Who is known here, where an entry is concerned.
struct Known {
    /// Who has the first word: the entry's creator, or of a charter owner and admins of the workspace.
    principals: BTreeSet<AuthorId>,
    /// The person's own, the principals, and members of the workspace who are listened to. Where it is
    /// not known who belongs there, peers that may talk: anyone may knock.
    authors: BTreeSet<AuthorId>,
}

impl Ingest<'_> {
    /// Why a record would be one author too many, if it would be. Whoever is known here, and
    /// whoever has a say about the entry already, is heard in any case.
    pub(super) fn crowds(
        &mut self,
        batch: &Batch,
        record: &Record,
        source: Source,
    ) -> Result<Option<String>, Error> {
        let (entry, author) = (record.entry(), record.author());
        let Source::Peer(from) = source else { return Ok(None) };
        let Some(row) = batch.view_row(entry)? else { return Ok(None) };
        // There are no more authors than records.
        let is_small = (row.records as usize) < Limits::AUTHORS_BROUGHT_MAX;
        let is_mended = self.crowds.dropped.contains(&record.digest());
        if is_small || is_mended || author == from || batch.has_word_of(author, entry)? {
            return Ok(None);
        }
        let known = self.known(batch, record, &row)?.authors;
        if known.contains(&author) {
            return Ok(None);
        }
        let (unknown, brought) = match self.crowds.counted.get(&(entry, from)) {
            Some(counted) => *counted,
            None => {
                let (unknown, brought) = batch.unknown_authors(entry, from, &known)?;
                // Which of them came in a file is not kept: all may have.
                (unknown, if self.bringer(source).is_some() { brought } else { unknown })
            }
        };
        let over = if brought >= Limits::AUTHORS_BROUGHT_MAX {
            Some(("its bringer has brought", Limits::AUTHORS_BROUGHT_MAX))
        } else if unknown >= Limits::AUTHORS_UNKNOWN_MAX {
            Some(("the entry has", Limits::AUTHORS_UNKNOWN_MAX))
        } else {
            None
        };
        // Kept for one that is refused, too: whoever brings many more has them counted once.
        let more = usize::from(over.is_none());
        self.crowds.counted.insert((entry, from), (unknown + more, brought + more));
        Ok(over.map(|(who, max)| format!("{who} {max} unknown authors here already")))
    }

    /// Why an entry would hold too many bytes with a record, if it would: of its author in that facet,
    /// or of all who are known here as its author is, or unknown. What takes up no more than it
    /// replaces is always taken, and so is what takes back, if it is short. The person's own are not
    /// counted, and whoever has the first word is kept out by nobody else's. Who says much for the first
    /// time fills half of the room, who says it anew a quarter more, and the rest is for those who say
    /// little.
    pub(super) fn overfills(
        &mut self,
        batch: &Batch,
        record: &Record,
        ask: Ask,
        (before, after): (&Holding, &Holding),
    ) -> Result<Option<&'static str>, Error> {
        let (entry, author, facet) = (record.entry(), record.author(), record.header().facet);
        let is_mended = self.crowds.dropped.contains(&record.digest());
        if is_mended || self.writer.mine.contains(&author) {
            return Ok(None);
        }
        let said = bytes(after.facet(facet));
        if said > Limits::AUTHOR_BYTES_MAX && said > bytes(before.facet(facet)) {
            return Ok(Some(TOO_LONG));
        }
        let grown = bytes(after.records()).saturating_sub(bytes(before.records()));
        let takes_back = facet == Facet::Retraction && said <= Limits::SHORT_BYTES_MAX;
        if ask == Ask::Nobody || grown == 0 || takes_back {
            return Ok(None);
        }
        let Some(row) = batch.view_row(entry)? else { return Ok(None) };
        // Nearly all entries are far from it, and are not gone through.
        let most = u64::from(row.records) * (HEADER_BYTES_MAX + PAYLOAD_BYTES_MAX) as u64;
        if most + grown <= Limits::UNKNOWN_BYTES_MAX / 2 {
            return Ok(None);
        }
        let held = self.bytes_of(batch, entry)?;
        let (all, own) = (held.values().sum::<u64>(), held.get(&author).copied());
        if all + grown <= Limits::UNKNOWN_BYTES_MAX / 2 {
            return Ok(None);
        }
        let Known { principals, authors: known } = self.known(batch, record, &row)?;
        let (is_known, mine) = (known.contains(&author), self.writer.mine.clone());
        let of_author = if is_known { said } else { own.unwrap_or_default() + grown };
        let is_short = of_author <= Limits::SHORT_BYTES_MAX;
        // There are only so many who are unknown: if each says little there is room for all.
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

    /// Who is known where the entry of a record is concerned, by what is held and by what the record
    /// proves: others may have filled the entry before its origin came. Blocked and convicted authors
    /// are not, so that blocking who fills the room of the known leaves it to the others; nor are peers
    /// where they are no members, so that nobody takes the members' room from outside.
    fn known(&mut self, batch: &Batch, record: &Record, row: &ViewRow) -> Result<Known, Error> {
        let (workspace, is_first) = proved(record);
        let first = row.creator.or_else(|| is_first.then(|| record.author()));
        let mut principals: BTreeSet<AuthorId> = first.into_iter().collect();
        let workspace = row.workspace.or(workspace);
        let members = workspace.map(|workspace| self.members(batch, workspace)).transpose()?;
        let mut authors = match members.filter(|members| members.owner.is_some()) {
            None => self.approved(batch)?,
            Some(Members { owner, admins, heard }) => {
                if workspace.map(charter::entry) == Some(record.entry()) {
                    principals.extend(owner.into_iter().chain(admins));
                }
                heard
            }
        };
        authors.extend(self.writer.mine.iter().chain(&principals));
        Ok(Known { principals, authors })
    }

    /// Who belongs to a workspace, read once for as long as everybody is who they are.
    fn members(&mut self, batch: &Batch, workspace: WorkspaceId) -> Result<Members, Error> {
        let members = match self.crowds.members.entry((workspace, self.writer.society_changes)) {
            Slot::Occupied(members) => members.into_mut(),
            Slot::Vacant(slot) => {
                let charter = Error::unless_damaged(batch.charter(workspace, self.now))?;
                let charter = charter.unwrap_or_default();
                let owner = charter.owner.map(|(owner, _)| owner);
                let heard = batch.heard_among(charter.members)?;
                let admins = charter.admins.intersection(&heard).copied().collect();
                slot.insert(Members { owner, admins, heard })
            }
        };
        Ok(members.clone())
    }

    /// Peers that may talk and are listened to, likewise.
    fn approved(&mut self, batch: &Batch) -> Result<BTreeSet<AuthorId>, Error> {
        let changes = self.writer.society_changes;
        if let Some((at, peers)) = &self.crowds.peers
            && *at == changes
        {
            return Ok(peers.clone());
        }
        let mut approved = Vec::new();
        for peer in batch.peers()? {
            let row = Error::unless_damaged(batch.peer(peer))?.flatten();
            if row.is_some_and(|row| row.approval == Approval::Approved) {
                approved.push(peer);
            }
        }
        let peers = batch.heard_among(approved)?;
        self.crowds.peers = Some((changes, peers.clone()));
        Ok(peers)
    }

    /// How many bytes each author has about an entry, read once a step.
    fn bytes_of(
        &mut self,
        batch: &Batch,
        entry: EntryId,
    ) -> Result<&BTreeMap<AuthorId, u64>, Error> {
        let held = match self.crowds.bytes.entry(entry) {
            Slot::Occupied(held) => held.into_mut(),
            Slot::Vacant(slot) => slot.insert(batch.bytes_by_author(entry)?),
        };
        Ok(held)
    }

    /// What an author has about an entry is something else now.
    pub(super) fn follow_bytes(&mut self, record: &Record, (before, after): (&Holding, &Holding)) {
        if let Some(held) = self.crowds.bytes.get_mut(&record.entry()) {
            let of_author = held.entry(record.author()).or_default();
            let all = of_author.saturating_add(bytes(after.records()));
            *of_author = all.saturating_sub(bytes(before.records()));
        }
    }

    /// What is damaged was dropped.
    pub(super) fn note_dropped(&mut self, entry: EntryId, dropped: Vec<Digest>) {
        if !dropped.is_empty() {
            self.crowds.bytes.remove(&entry);
            self.crowds.dropped.extend(dropped);
        }
    }

    /// Whoever belongs to a workspace may be somebody else, if what was written is its charter.
    pub(super) fn follow_charter(&mut self, written: EntryId) {
        self.crowds.members.retain(|(workspace, _), _| charter::entry(*workspace) != written);
    }
}

/// What a verified record proves: in which workspace its entry is, and whether its author has the first
/// word there. The creator carries the origin, and an owner what the id of its workspace is made of.
fn proved(record: &Record) -> (Option<WorkspaceId>, bool) {
    let (origin, claims) = match record.payload() {
        Some(Payload::Claims { origin, claims }) => (origin.as_ref(), Some(claims)),
        Some(Payload::Retraction { origin, .. }) => (origin.as_ref(), None),
        _ => (None, None),
    };
    let nonces = claims.and_then(|claims| claims.texts.get(&TextSet::OWNER_NONCES));
    let mut nonces = nonces.into_iter().flat_map(|nonces| nonces.present());
    let owned = |text: &String| Some(WorkspaceId::of(record.author(), Nonce::from_hex(text)?));
    let is_owner =
        nonces.any(|text| owned(text).is_some_and(|of| charter::entry(of) == record.entry()));
    let is_creator = origin.and_then(Origin::creator) == Some(record.author());
    (origin.map(Origin::workspace), is_creator || is_owner)
}

/// What records take up, as they are stored.
fn bytes<'r>(records: impl Iterator<Item = &'r Record>) -> u64 {
    let of_payload =
        |record: &Record| record.payload().map_or(0, |_| record.header().payload_bytes);
    let each = records.map(|one| one.signed().bytes().len() as u64 + u64::from(of_payload(one)));
    each.sum()
}

#[cfg(test)]
mod tests;
