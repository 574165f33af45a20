//! What is written about peers: what goes in its time, and what damage costs.

use super::super::rows as stored;
use super::super::tables::{INVITATIONS, OUTCOMES, key};
use super::rows::OutcomeRow;
use crate::store::{Durability, MemoryMedium, Options, Store};
use klnode_crdt::ids::{AuthorId, EntryId, StoreId};
use klnode_crdt::time::{Day, WallTime};
use klnode_federation::proto::pairing::Invitation;
use klnode_federation::proto::ticket::{Offer, Secret};
use redb::ReadableTableMetadata;
use std::time::Duration;

const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);

fn store() -> Store {
    let options = Options::new(StoreId::from_bytes([1; 16]));
    Store::open(Box::new(MemoryMedium), &options).unwrap()
}

#[test]
fn tickets_that_have_expired_go_when_the_next_is_made() {
    let store = store();
    let ticket = |number: u8, expires: WallTime| Invitation {
        secret: Secret::from_bytes([number; 16]),
        offer: Offer::Mine,
        expires,
        must_confirm: false,
        used_by: None,
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

#[test]
fn a_damaged_outcome_costs_itself() {
    let (store, author) = (store(), AuthorId::from_bytes([2; 32]));
    let outcome = |number: u8| OutcomeRow {
        day: Day(20_000),
        is_success: true,
        entry: EntryId::from_bytes([number; 16]),
        task: None,
        text: None,
        is_joint: false,
    };
    let batch = store.batch(Durability::Durable).unwrap();
    batch.put_outcome(author, &outcome(1)).unwrap();
    let at = key::<40>(&[author.as_bytes(), &1_u64.to_be_bytes()]);
    let mut damaged = stored::encode(&outcome(2));
    damaged[0] ^= 0x20;
    batch.transaction.open_table(OUTCOMES).unwrap().insert(&at, damaged.as_slice()).unwrap();
    batch.put_outcome(author, &outcome(3)).unwrap();
    batch.put_outcome(author, &outcome(1)).unwrap();
    batch.commit().unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.outcomes(author).unwrap(), [outcome(1), outcome(3)]);
    assert_eq!(snapshot.last_outcome(author).unwrap(), Some(2), "its number is not given again");
}
