//! As how much it counts what is read to compare.

use super::*;
use crate::engine::Verdict;

#[test]
fn what_is_read_to_compare_counts_by_its_bytes_and_with_what_waits_and_was_refused() {
    let mut node = testing::engine_with(|record| match record.header().facet {
        Facet::Tally => Verdict::Quarantine("it waits".into()),
        _ => Verdict::Admit,
    });
    let new = NewEntry { content: "x".repeat(40 * 1_024), ..lesson("Retries") };
    let entry = testing::create(&mut node, new);
    note(&mut node, PeerAct::Release(peer(KNOWS), entry, true));
    let (items, rows) = compared(&node);
    assert_eq!(items, 1);
    assert_eq!(rows, 3, "one, and one for each sixteen KiB");
    let (key, own, stamp) = (key(KNOWS), Holding::default(), Hlc::new(NOW, 1));
    let writer = Writer { key: &key, boot: Boot(1), entry, own: &own };
    let of = Observation::Success;
    let record = writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap();
    let arrival = Arrival { record, from: peer(KNOWS) };
    node.step(&[Command::Ingest(vec![arrival])], NOW).remove(0).expect("it waits");
    assert_eq!(compared(&node), (2, rows + 1));
    let [elsewhere, _] = twins(EntryId::from_bytes([9; 16]));
    let (slot, row) = refusal(&elsewhere, "its author is blocked".into());
    let offer = Offerer { peer: peer(KNOWS), store: StoreId::default() };
    note(&mut node, PeerAct::Refuse(offer, slot, Box::new(row)));
    assert_eq!(compared(&node), (2, rows + 2));
}
