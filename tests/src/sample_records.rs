//! Sample records: sources of the golden bytes and of the fuzz corpora.

use crate::test_engine::START;
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, EntryId, Nonce, WorkspaceId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::{ClaimEdit, RecordBuilder};
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::testing::{key, origin};
use klnode_crdt::time::{Day, Hlc};
use klnode_crdt::tombstone::{AdminGrant, Grounds, Tombstone};

const SOUND: &str = "a record that keeps the limits";

/// A stamp at the start time, distinguished by its counter.
pub fn stamp(count: u16) -> Hlc {
    Hlc::new(START, count)
}

/// Records of every facet, by name, using every field.
pub fn every_facet() -> Vec<(&'static str, Record)> {
    let (author, entry) = (key(1), origin(1).id());
    let none = LiveRecords::default();
    let writer = RecordBuilder { key: &author, boot: Boot(0xB007), entry, own: &none };
    let retraction = writer.retract(Some(origin(1)), stamp(1)).expect(SOUND);
    let after = LiveRecords::from_held([retraction.clone()].into_iter());
    let writer = RecordBuilder { own: &after, ..writer };
    let citation = Citation {
        evidence_type: "commit".into(),
        evidence_ref: "1a2b3c4".into(),
        cited_by: "agent".into(),
        cited_at: START,
        is_context: true,
    };
    let link = Link { relation: Relation::SUPERSEDES, to: EntryId::from_bytes([7; 16]) };
    let claims = [
        ClaimEdit::Set(Register::TITLE, "Check ctx.Err() after upstream calls".into()),
        ClaimEdit::Add(TextSet::TAGS, "auth/jwt".into()),
        ClaimEdit::Withdraw(TextSet::TAGS, "auth".into()),
        ClaimEdit::Cite(citation),
        ClaimEdit::Link(link),
        ClaimEdit::Archive(Presence::Present),
    ];
    let claim = writer.claim(&after.to_entry(), Some(origin(1)), &claims, stamp(2)).expect(SOUND);
    let later = LiveRecords::from_held([retraction.clone(), claim.clone()].into_iter());
    let writer = RecordBuilder { own: &later, boot: Boot(0xB008), ..writer };
    let edit = [ClaimEdit::Set(Register::TITLE, "Check ctx.Err()".into())];
    let edited = writer.claim(&later.to_entry(), Some(origin(1)), &edit, stamp(3)).expect(SOUND);
    let tally = writer
        .observe(Observation::Success, Thousandths(1_500), Day(20_717), stamp(4))
        .expect(SOUND);
    let counted = LiveRecords::from_held([tally.clone()].into_iter());
    let writer = RecordBuilder { own: &counted, ..writer };
    let reset = writer.reset(stamp(5)).expect(SOUND);

    let nonce = Nonce::from_bytes([3; 16]);
    let workspace = WorkspaceId::of(key(9).author(), nonce);
    let memory = Memory::Procedural;
    let (format, source) = ("jsonl".to_owned(), "row 1".to_owned());
    let origin = Origin::Imported { workspace, memory, format, key: source };
    let grounds = Grounds::Admin(AdminGrant::sign(&key(9), nonce, author.author()));
    let writer = RecordBuilder { key: &author, boot: Boot(1), entry: origin.id(), own: &none };
    let tombstone = writer.forget(Tombstone { origin, grounds }, stamp(6)).expect(SOUND);
    vec![
        ("claims", claim),
        ("claims-absorbing", edited),
        ("tally", tally),
        ("tally-reset", reset),
        ("retraction", retraction),
        ("tombstone", tombstone),
    ]
}
