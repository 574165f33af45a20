//! The read cost of a comparison.

use super::*;
use klnode_engine::ScreenDecision;

#[test]
fn read_cost_counts_bytes_quarantined_and_refused_records() {
    let mut node = testing::engine_with(|record| match record.header().facet {
        Facet::Tally => ScreenDecision::Quarantine("it waits".into()),
        _ => ScreenDecision::Admit,
    });
    let new = NewEntry { content: "x".repeat(40 * 1_024), ..lesson("Retries") };
    let entry = testing::create(&mut node, new);
    note(&mut node, PeerCommand::Release(peer(KNOWS), entry, true));
    let (items, rows) = compared(&node);
    assert_eq!(items, 1);
    assert_eq!(rows, 3, "one, plus one for each sixteen KiB");
    let (key, own, stamp) = (key(KNOWS), LiveRecords::default(), Hlc::new(NOW, 1));
    let writer = RecordBuilder { key: &key, boot: Boot(1), entry, own: &own };
    let of = Observation::Success;
    let record = writer.observe(of, Thousandths::ONE, NOW.day(), stamp).unwrap();
    let arrival = DeliveredRecord { record, from: peer(KNOWS) };
    node.step(&[Command::Ingest(vec![arrival])], NOW).remove(0).expect("it waits");
    assert_eq!(compared(&node), (2, rows + 1));
    let [elsewhere, _] = twins(EntryId::from_bytes([9; 16]));
    let (slot, row) = refusal(&elsewhere, "its author is blocked".into());
    let offer = Offerer { peer: peer(KNOWS), store: StoreId::default() };
    note(&mut node, PeerCommand::Refuse(offer, slot, Box::new(row)));
    assert_eq!(compared(&node), (2, rows + 2));
}
