//! Two authors work on one entry: it is written here, transferred as bytes, observed there and read
//! back.
//!
//! `cargo run -p klnode-examples --bin remember`

use klnode_crdt::claims::Citation;
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::entry_view::Entitlement;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, StoreId, WorkspaceId};
use klnode_crdt::record::Record;
use klnode_crdt::register::Register;
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::WallTime;
use klnode_engine::{
    Command, DeliveredRecord, Engine, NewEntry, Receipt, RecordSource, ScreenDecision, Setup,
    TaskParams,
};
use klnode_store::{Durability, MemoryMedium, Options, Store};
use std::error::Error;

const NOW: WallTime = WallTime::from_millis(1_790_000_000_000);

/// An engine on a store in memory. A real node generates its key and its entropy randomly.
fn engine(seed: u8) -> Result<Engine, Box<dyn Error>> {
    let store =
        Store::open(Box::new(MemoryMedium), &Options::new(StoreId::from_bytes([seed; 16])))?;
    let setup = Setup {
        key: SecretKey::from_bytes(&[seed; 32]),
        entropy: Box::new(move |bytes: &mut [u8]| bytes.fill(seed)),
        judge: Box::new(|_: &Record, _: RecordSource| ScreenDecision::Admit),
        durability: Durability::Durable,
        cooccurrence: klnode_scoring::cooccurrence::Params::default(),
        tasks: TaskParams::default(),
    };
    Ok(Engine::start(store, setup, NOW)?)
}

fn run(engine: &mut Engine, command: Command) -> Result<Receipt, Box<dyn Error>> {
    Ok(engine.step(&[command], NOW).remove(0)?)
}

fn lesson() -> NewEntry {
    NewEntry {
        workspace: WorkspaceId::MAIN,
        memory: Memory::Semantic,
        kind: EntryType::Lesson,
        title: "Check ctx.Err() after upstream calls".into(),
        content: "Auth middleware often swallows context cancellation.".into(),
        registers: Vec::new(),
        claims: Vec::new(),
        citations: vec![Citation {
            evidence_type: "commit".into(),
            evidence_ref: "1a2b3c4".into(),
            cited_by: "reviewer".into(),
            cited_at: NOW,
            is_context: false,
        }],
        source: None,
    }
}

/// Sends all records of an entry as bytes, which the receiver verifies.
fn send(from: &Engine, entry: EntryId, to: &mut Engine) -> Result<(), Box<dyn Error>> {
    let held = from.store().snapshot()?.holding(entry, from.author())?;
    let mut arrivals = Vec::new();
    for record in held.records() {
        let record = Record::verify(&record.to_raw())?;
        arrivals.push(DeliveredRecord { record, from: from.author() });
    }
    run(to, Command::Ingest(arrivals))?;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Box<dyn Error>> {
    let (mut here, mut there) = (engine(1)?, engine(2)?);
    let Receipt::Created(entry) = run(&mut here, Command::Create(Box::new(lesson())))? else {
        return Err("no entry was created".into());
    };
    println!("written here as {}", EntryType::Lesson.code(entry));

    send(&here, entry, &mut there)?;
    let of = Observation::Success;
    run(&mut there, Command::Observe { entry, of, amount: Thousandths::ONE })?;
    send(&there, entry, &mut here)?;

    let joined = here.store().snapshot()?.entry(entry)?.to_entry();
    let view = joined.view(NOW, &Entitlement::default());
    let title = view.text(Register::TITLE).unwrap_or_default();
    println!("read here: \"{title}\", observed by {} other", view.counts.len());
    assert_eq!(view.counts.len(), 1);
    Ok(())
}
