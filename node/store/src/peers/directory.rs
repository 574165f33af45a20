//! The writer's view of other nodes and authors: peers, workspaces and their members, invitation
//! tickets, equivocation proofs, distances, and outcomes of texts.

use super::super::batch::Batch;
use super::super::error::Error;
use super::super::row_types::{self, ProvenRow, UseRow};
use super::super::shared_reads::{self, Damage};
use super::super::tables::{
    DISTANCES, EQUIVOCATIONS, HELD, INVITATIONS, OUTCOMES, PEERS, RECORDS, WORKSPACES, key, part,
    span,
};
use super::charters;
use super::row_types::{OutcomeRow, PeerRow, WorkspaceRow};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::time::WallTime;
use klnode_crdt::workspace_charter::Charter;
use klnode_federation::proto::pairing::Invitation;
use redb::{ReadableTable, ReadableTableMetadata};
use std::collections::BTreeSet;
use std::time::Duration;

/// How long an expired ticket is kept: its bearer is told that it has expired, and a node that has
/// used it is accepted again.
const EXPIRED_KEPT: Duration = Duration::from_secs(24 * 3_600);

/// Most outcomes stored per author. Older ones have decayed; their results are kept with the entry.
const OUTCOMES_MAX: usize = 1_000;

impl Batch {
    // Peers.

    pub fn put_peer(&self, peer: AuthorId, row: &PeerRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(PEERS)?;
        table.insert(peer.as_bytes(), row_types::encode(row).as_slice())?;
        Ok(())
    }

    pub fn peer(&self, peer: AuthorId) -> Result<Option<PeerRow>, Error> {
        shared_reads::row("peers", &self.transaction.open_table(PEERS)?, peer.as_bytes())
    }

    pub fn has_peer(&self, peer: AuthorId) -> Result<bool, Error> {
        Ok(self.transaction.open_table(PEERS)?.get(peer.as_bytes())?.is_some())
    }

    pub fn peers(&self) -> Result<Vec<AuthorId>, Error> {
        let table = self.transaction.open_table(PEERS)?;
        table.iter()?.map(|row| Ok(AuthorId::from_bytes(*row?.0.value()))).collect()
    }

    /// The other nodes of this person.
    pub fn mine(&self) -> Result<Vec<AuthorId>, Error> {
        let mut mine = Vec::new();
        for peer in self.peers()? {
            let row = self.peer(peer)?;
            if row.is_some_and(|row| row.counts_as_mine()) {
                mine.push(peer);
            }
        }
        Ok(mine)
    }

    // Workspaces and tickets.

    pub fn put_workspace(&self, id: WorkspaceId, row: &WorkspaceRow) -> Result<(), Error> {
        let mut table = self.transaction.open_table(WORKSPACES)?;
        table.insert(id.as_bytes(), row_types::encode(row).as_slice())?;
        Ok(())
    }

    /// The local name of a workspace; `None` if it is not known here.
    pub fn workspace_name(&self, id: WorkspaceId) -> Result<Option<String>, Error> {
        let table = self.transaction.open_table(WORKSPACES)?;
        let row = shared_reads::row::<WorkspaceRow, 16>("workspaces", &table, id.as_bytes());
        Ok(Error::unless_damaged(row)?.flatten().map(|row| row.name))
    }

    /// All workspaces with a local name.
    pub fn workspaces(&self) -> Result<Vec<WorkspaceId>, Error> {
        let table = self.transaction.open_table(WORKSPACES)?;
        table.iter()?.map(|row| Ok(WorkspaceId::from_bytes(*row?.0.value()))).collect()
    }

    /// The charter of a workspace; empty if the workspace is not known here, as for readers.
    pub fn charter(&self, id: WorkspaceId, now: WallTime) -> Result<Charter, Error> {
        let table = self.transaction.open_table(WORKSPACES)?;
        let row = shared_reads::row::<WorkspaceRow, 16>("workspaces", &table, id.as_bytes());
        let owner = match Error::unless_damaged(row)? {
            Some(None) => return Ok(Charter::default()),
            Some(Some(row)) => row.owner,
            None => None,
        };
        let held = self.transaction.open_table(HELD)?;
        let records = self.transaction.open_table(RECORDS)?;
        let removals = self.removal_statements(id)?;
        charters::charter((&held, &records), (id, owner, &removals), now, Damage::Told)
    }

    /// The authors whose claims count in a workspace: members and removed keys that are neither
    /// blocked nor convicted.
    pub fn entitled(&self, id: WorkspaceId, now: WallTime) -> Result<BTreeSet<AuthorId>, Error> {
        self.unblocked_authors(self.charter(id, now)?.entitled())
    }

    /// Members of a workspace that are neither blocked nor convicted.
    pub fn unblocked_members(
        &self,
        id: WorkspaceId,
        now: WallTime,
    ) -> Result<BTreeSet<AuthorId>, Error> {
        self.unblocked_authors(self.charter(id, now)?.members)
    }

    /// The authors among these that are neither blocked nor convicted.
    pub fn unblocked_authors(
        &self,
        authors: impl IntoIterator<Item = AuthorId>,
    ) -> Result<BTreeSet<AuthorId>, Error> {
        let mut heard = BTreeSet::new();
        for author in authors {
            // If the row is damaged, the author may be blocked, so treat it as blocked.
            let row = Error::unless_damaged(self.peer(author))?;
            let is_blocked = row.is_none_or(|row| row.is_some_and(|row| row.is_blocked));
            if !is_blocked && !self.has_proof(author)? {
                heard.insert(author);
            }
        }
        Ok(heard)
    }

    /// Stores an invitation ticket. Tickets that expired long enough ago are removed.
    pub fn put_invitation(&self, row: &Invitation, now: WallTime) -> Result<(), Error> {
        let mut table = self.transaction.open_table(INVITATIONS)?;
        let is_kept = |row: &[u8]| {
            let row = row_types::decode::<Invitation>("invitations", row);
            row.is_ok_and(|row| row.expires.plus(EXPIRED_KEPT) >= now)
        };
        table.retain(|_, row| is_kept(row))?;
        table.insert(&row.secret.name(), row_types::encode(row).as_slice())?;
        Ok(())
    }

    // Authors.

    /// The number of authors with a proof of equivocation.
    pub fn proof_count(&self) -> Result<u64, Error> {
        Ok(self.transaction.open_table(EQUIVOCATIONS)?.len()?)
    }

    pub(crate) fn has_proof(&self, author: AuthorId) -> Result<bool, Error> {
        Ok(self.transaction.open_table(EQUIVOCATIONS)?.get(author.as_bytes())?.is_some())
    }

    /// The entry that the proof against an author concerns; `None` without a readable proof.
    pub fn proof_entry(&self, author: AuthorId) -> Result<Option<EntryId>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        let Some(row) = table.get(author.as_bytes())? else { return Ok(None) };
        let raw =
            Error::unless_damaged(row_types::decode::<RawProof>("equivocations", row.value()))?;
        let signed = |raw: RawProof| SignedHeader::read_back(&raw.headers.0, raw.signatures.0).ok();
        Ok(raw.and_then(signed).map(|signed| signed.header().entry))
    }

    /// All authors with a proof of equivocation.
    pub fn proofs(&self) -> Result<Vec<AuthorId>, Error> {
        let table = self.transaction.open_table(EQUIVOCATIONS)?;
        table.iter()?.map(|row| Ok(AuthorId::from_bytes(*row?.0.value()))).collect()
    }

    /// Whether any peer has stated a distance for an author.
    pub fn has_distance(&self, author: AuthorId) -> Result<bool, Error> {
        let (first, last) = span::<64>(author.as_bytes());
        let table = self.transaction.open_table(DISTANCES)?;
        Ok(table.range::<&[u8; 64]>(&first..=&last)?.next().transpose()?.is_some())
    }

    pub fn put_distance(&self, author: AuthorId, peer: AuthorId, hop: u8) -> Result<(), Error> {
        let at = key::<64>(&[author.as_bytes(), peer.as_bytes()]);
        let mut table = self.transaction.open_table(DISTANCES)?;
        if table.get(&at)?.is_none_or(|held| held.value() != hop) {
            table.insert(&at, hop)?;
        }
        Ok(())
    }

    /// Stores an outcome of a text, once per task and entry, and outside tasks once a day. If the
    /// entry has a new text since, the existing row is changed to the new one.
    pub fn put_outcome(&self, author: AuthorId, row: &OutcomeRow) -> Result<(), Error> {
        let (first, last) = span::<40>(author.as_bytes());
        let mut table = self.transaction.open_table(OUTCOMES)?;
        let (mut held, mut same) = (Vec::new(), None);
        for one in table.range::<&[u8; 40]>(&first..=&last)? {
            let (at, one) = one?;
            held.push(*at.value());
            // A damaged row is ignored and removed in its turn.
            let one =
                Error::unless_damaged(row_types::decode::<OutcomeRow>("outcomes", one.value()))?;
            let Some(one) = one else { continue };
            let is_same = one.entry == row.entry
                && one.task == row.task
                && (one.task.is_some() || (one.day, one.is_success) == (row.day, row.is_success));
            if is_same && one.text == row.text {
                return Ok(());
            }
            if is_same {
                same = Some((*at.value(), OutcomeRow { text: row.text, ..one }));
            }
        }
        let next = held.last().map_or(0, |at| u64::from_be_bytes(part(at, 32)) + 1);
        let next = key::<40>(&[author.as_bytes(), &next.to_be_bytes()]);
        if let (Some((at, row)), Some(newest)) = (same, held.last()) {
            table.insert(&at, row_types::encode(&row).as_slice())?;
            // Readers cache outcomes by the last number, so a changed row must raise it: the newest
            // row moves to the next number, which keeps the order.
            let moved = table.remove(newest)?.map(|row| row.value().to_vec());
            if let Some(moved) = moved {
                table.insert(&next, moved.as_slice())?;
            }
            return Ok(());
        }
        table.insert(&next, row_types::encode(row).as_slice())?;
        if held.len() >= OUTCOMES_MAX {
            let gone = table.remove(&held[0])?;
            let gone = gone.map(|row| row_types::decode::<OutcomeRow>("outcomes", row.value()));
            if let Some(gone) = Error::unless_damaged(gone.transpose())?.flatten() {
                self.summarise_outcome(author, &gone)?;
            }
        }
        Ok(())
    }

    /// Adds a removed outcome to the summary stored with its entry, so that proven texts stay
    /// proven however much their author writes. There is one summary per stored entry, for its last
    /// text, so it does not grow; keeping the rows themselves would let the table grow with every
    /// text of the author.
    fn summarise_outcome(&self, author: AuthorId, gone: &OutcomeRow) -> Result<(), Error> {
        let row = Error::unless_damaged(self.view_row(gone.entry))?.flatten();
        let is_held = row.is_some_and(|row| !row.is_forgotten);
        let Some(text) = gone.text.filter(|_| is_held) else { return Ok(()) };
        let Some(uses) = Error::unless_damaged(self.uses(gone.entry))? else { return Ok(()) };
        let known = uses.proven.filter(|known| (known.author, known.text) == (author, text));
        let before = known.map_or(0, |known| known.successes);
        let successes = before.saturating_add(u32::from(gone.is_success));
        let since = known.map_or(gone.day, |known| known.since.min(gone.day));
        let proven = Some(ProvenRow { author, text, successes, since });
        self.put_uses(gone.entry, UseRow { proven, ..uses })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Durability, Store};
    use klnode_crdt::ids::Digest;
    use klnode_crdt::time::Day;
    use klnode_federation::proto::ticket::{JoinOffer, Secret};

    const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn expired_tickets_are_removed_when_the_next_is_made() {
        let store = Store::in_memory();
        let ticket = |number: u8, expires: WallTime| Invitation {
            secret: Secret::from_bytes([number; 16]),
            offer: JoinOffer::Mine,
            expires,
            must_confirm: false,
            used_by: None,
            joiner: None,
        };
        let tickets = [ticket(1, NOW.minus(25 * HOUR)), ticket(2, NOW.minus(HOUR)), ticket(3, NOW)];
        let batch = store.batch(Durability::Durable).unwrap();
        for ticket in &tickets {
            batch.put_invitation(ticket, NOW.minus(48 * HOUR)).unwrap();
        }
        let table = batch.transaction.open_table(INVITATIONS).unwrap();
        assert_eq!(table.len().unwrap(), 3);
        drop(table);
        batch.put_invitation(&ticket(4, NOW.plus(HOUR)), NOW).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        let kept = tickets.map(|one| snapshot.invitation(one.secret.name()).unwrap().is_some());
        assert_eq!(kept, [false, true, true]);
    }

    /// A success on day 20,000.
    fn outcome(number: u8) -> OutcomeRow {
        OutcomeRow {
            day: Day(20_000),
            is_success: true,
            entry: EntryId::from_bytes([number; 16]),
            task: None,
            text: None,
            is_joint: false,
        }
    }

    #[test]
    fn every_change_of_an_authors_outcomes_raises_the_last_number() {
        let (store, author) = (Store::in_memory(), AuthorId::from_bytes([2; 32]));
        let of_text = |number, text| {
            let text = Some(Digest::from_bytes([text; 32]));
            OutcomeRow { text, ..outcome(number) }
        };
        let put = |row: &OutcomeRow| {
            let batch = store.batch(Durability::Durable).unwrap();
            batch.put_outcome(author, row).unwrap();
            batch.commit().unwrap();
            let snapshot = store.snapshot().unwrap();
            (snapshot.outcomes(author).unwrap(), snapshot.last_outcome(author).unwrap())
        };
        let [one, two, three] = [1, 2, 3].map(|number| of_text(number, 1));
        assert_eq!(put(&one).1, Some(0));
        assert_eq!(put(&two).1, Some(1));
        let newer = of_text(1, 2);
        let expect = (vec![newer.clone(), two], Some(2));
        assert_eq!(put(&newer), expect, "the row keeps its place");
        assert_eq!(put(&newer), expect, "nothing has changed");
        let last = of_text(2, 2);
        assert_eq!(put(&last), (vec![newer.clone(), last.clone()], Some(3)));
        assert_eq!(put(&three), (vec![newer, last, three], Some(4)));
    }

    #[test]
    fn a_damaged_outcome_affects_no_other() {
        let (store, author) = (Store::in_memory(), AuthorId::from_bytes([2; 32]));
        let batch = store.batch(Durability::Durable).unwrap();
        batch.put_outcome(author, &outcome(1)).unwrap();
        let at = key::<40>(&[author.as_bytes(), &1_u64.to_be_bytes()]);
        let mut damaged = row_types::encode(&outcome(2));
        damaged[0] ^= 0x20;
        batch.transaction.open_table(OUTCOMES).unwrap().insert(&at, damaged.as_slice()).unwrap();
        batch.put_outcome(author, &outcome(3)).unwrap();
        batch.put_outcome(author, &outcome(1)).unwrap();
        batch.commit().unwrap();
        let snapshot = store.snapshot().unwrap();
        assert_eq!(snapshot.outcomes(author).unwrap(), [outcome(1), outcome(3)]);
        let last = snapshot.last_outcome(author).unwrap();
        assert_eq!(last, Some(2), "its number is not reused");
    }
}
