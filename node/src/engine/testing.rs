//! What unit tests of the writer, and of those who read what it wrote, begin with: an engine on a store
//! in memory, whose random numbers count up, and a lesson to write.

use super::{Command, Engine, NewEntry, Receipt, Setup, Source, TaskParams, Verdict};
use crate::store::{Durability, Store};
use klnode_crdt::claims::Citation;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::kind::Kind;
use klnode_crdt::origin::Memory;
use klnode_crdt::record::Record;
use klnode_crdt::time::WallTime;
use klnode_scoring::cooccurrence;

/// When everything happens.
pub(crate) const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);
/// Whose key the engine has.
pub(crate) const OWN: u32 = 1;

/// The key of an author, each with a number.
pub(crate) fn key(number: u32) -> SecretKey {
    let mut bytes = [3; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_bytes(&bytes)
}

/// A store that holds nothing.
pub(crate) fn store() -> Store {
    Store::in_memory()
}

/// A node that holds nothing.
pub(crate) fn engine() -> Engine {
    engine_with(|_| Verdict::Admit)
}

/// The same, with a judge of its own.
pub(crate) fn engine_with(judge: fn(&Record) -> Verdict) -> Engine {
    engine_on(store(), judge)
}

/// The same, on a store that is there already.
pub(crate) fn engine_on(store: Store, judge: fn(&Record) -> Verdict) -> Engine {
    let mut drawn = 0_u64;
    let setup = Setup {
        key: key(OWN),
        entropy: Box::new(move |bytes: &mut [u8]| {
            drawn += 1;
            bytes.fill(0);
            let count = bytes.len().min(8);
            bytes[..count].copy_from_slice(&drawn.to_le_bytes()[..count]);
        }),
        judge: Box::new(move |record: &Record, _: Source| judge(record)),
        durability: Durability::Durable,
        cooccurrence: cooccurrence::Params::default(),
        tasks: TaskParams::default(),
    };
    Engine::start(store, setup, NOW).unwrap()
}

/// A lesson that somebody wants to write.
pub(crate) fn lesson(title: &str) -> NewEntry {
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
        kind: Kind::Lesson,
        title: title.into(),
        content: format!("Seen with {title}."),
        registers: Vec::new(),
        claims: Vec::new(),
        citations: vec![citation],
        source: None,
    }
}

/// Writes an entry.
pub(crate) fn create(engine: &mut Engine, new: NewEntry) -> EntryId {
    match engine.step(&[Command::Create(Box::new(new))], NOW).remove(0) {
        Ok(Receipt::Created(entry)) => entry,
        other => panic!("the entry was not created: {other:?}"),
    }
}
