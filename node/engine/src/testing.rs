//! Fixtures for unit tests of the writer and its readers: an engine on an in-memory store with a
//! counting random source, and a sample lesson.

use super::{Command, Engine, NewEntry, Receipt, RecordSource, ScreenDecision, Setup, TaskParams};
use klnode_crdt::claims::Citation;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_scoring::cooccurrence;
use klnode_store::{Durability, Store};

/// The time of all test steps.
pub const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
/// The number of the engine's own key.
pub const OWN: u32 = 1;

/// The key of the author with this number.
pub fn key(number: u32) -> SecretKey {
    let mut bytes = [3; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_bytes(&bytes)
}

pub fn store() -> Store {
    Store::in_memory()
}

/// An engine on an empty store.
pub fn engine() -> Engine {
    engine_with(|_| ScreenDecision::Admit)
}

/// An engine on an empty store, with a judge.
pub fn engine_with(judge: fn(&Record) -> ScreenDecision) -> Engine {
    engine_on(store(), judge)
}

/// An engine on an existing store, with a judge.
pub(crate) fn engine_on(store: Store, judge: fn(&Record) -> ScreenDecision) -> Engine {
    let mut drawn = 0_u64;
    let setup = Setup {
        key: key(OWN),
        entropy: Box::new(move |bytes: &mut [u8]| {
            drawn += 1;
            bytes.fill(0);
            let count = bytes.len().min(8);
            bytes[..count].copy_from_slice(&drawn.to_le_bytes()[..count]);
        }),
        judge: Box::new(move |record: &Record, _: RecordSource| judge(record)),
        durability: Durability::Durable,
        cooccurrence: cooccurrence::Params::default(),
        tasks: TaskParams::default(),
    };
    Engine::start(store, setup, NOW).expect("a store in memory opens")
}

/// A valid lesson entry.
pub fn lesson(title: &str) -> NewEntry {
    let citation = Citation {
        evidence_type: "commit".into(),
        evidence_ref: "1a2b3c4".into(),
        cited_by: "test".into(),
        cited_at: NOW,
        is_context: false,
    };
    NewEntry {
        workspace: WorkspaceId::MAIN,
        memory: Memory::Semantic,
        kind: EntryType::Lesson,
        title: title.into(),
        content: format!("Seen with {title}."),
        registers: Vec::new(),
        claims: Vec::new(),
        citations: vec![citation],
        source: None,
    }
}

pub fn create(engine: &mut Engine, new: NewEntry) -> EntryId {
    match engine.step(&[Command::Create(Box::new(new))], NOW).remove(0) {
        Ok(Receipt::Created(entry)) => entry,
        other => panic!("the entry was not created: {other:?}"),
    }
}
