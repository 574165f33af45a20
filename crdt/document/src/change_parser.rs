//! Parses the chunk of a change and refuses everything but splices of the one text.
//!
//! This parser runs before automerge. It reads the
//! [binary format](https://automerge.org/automerge-binary-format-spec/) strictly: every number, run
//! and list must have its one shortest form, so that a change has exactly one encoding.
//!
//! ```text
//! header    magic (4 bytes), checksum (4), chunk type (1), length of the body
//! body      dependencies   count, then 32 bytes each, ascending
//!           actor          length, bytes
//!           sequence, start operation, time, message
//!           other actors   count, then length and bytes each, ascending
//!           columns        count, then specification and length each, ascending
//!           column data    in the order of the columns
//! ```
//!
//! An operation is one row over all columns. Two kinds are accepted:
//!
//! | | insertion | deletion |
//! |---|---|---|
//! | object | the text | the text |
//! | key | the element to the left, or the head | the deleted element |
//! | action | 1 (set) | 3 (delete) |
//! | value | a string of one code point | null |
//! | predecessors | none | the deleted element |
//!
//! An **element** is a code point, named by the actor and the counter of the operation that inserted
//! it. The parser returns the elements of earlier changes as [`TargetRun`]s. Automerge panics if one
//! of them is missing, so [`change_graph`](crate::change_graph) looks each of them up.

use crate::change_error::ChangeError;
use crate::change_hash::ChangeHash;
use crate::edit_identity::Actor;
use crate::leb128_reader::ChunkReader;
use crate::limits::{DEPENDENCIES_MAX, OPERATION_COUNTER_MAX, OTHER_ACTORS_MAX, TIME_MILLIS_MAX};
use crate::operation_columns::{OperationColumns, TextOperation};
use crate::root_change::{ROOT_ACTOR, TEXT_COUNTER};
use klnode_crdt::time::WallTime;
use std::ops::Range;

/// First bytes of every automerge chunk.
const MAGIC: [u8; 4] = [0x85, 0x6f, 0x4a, 0x83];
/// The type of an uncompressed change.
const CHUNK_CHANGE: u8 = 1;

/// The content of a change, as far as the checks need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedChange {
    pub(crate) checksum: [u8; 4],
    pub(crate) dependencies: Vec<ChangeHash>,
    pub(crate) actor: Actor,
    pub(crate) sequence: u32,
    pub(crate) start_operation: u32,
    pub(crate) operations: u32,
    pub(crate) time: WallTime,
    /// Counters of the operations that insert, ascending.
    pub(crate) insertions: Vec<Range<u32>>,
    /// Elements of earlier changes that the operations name, ascending and without duplicates.
    pub(crate) targets: Vec<TargetRun>,
}

/// Consecutive elements of one actor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetRun {
    pub(crate) actor: Actor,
    pub(crate) counters: Range<u32>,
}

/// The fields of the body before the columns.
struct ChangeFields {
    dependencies: Vec<ChangeHash>,
    /// The actor of the change first, then the other actors: columns name actors by their position.
    actors: Vec<Actor>,
    sequence: u32,
    start_operation: u32,
    time: WallTime,
}

/// Parses one change that fills `bytes`.
pub(crate) fn parse(bytes: &[u8]) -> Result<ParsedChange, ChangeError> {
    let mut reader = ChunkReader::new(bytes);
    if reader.bytes(4)? != MAGIC {
        return Err(ChangeError::Malformed("it does not begin like an automerge chunk"));
    }
    let checksum = reader.bytes(4)?.try_into().expect("the reader took four bytes");
    let chunk_type = reader.byte()?;
    if chunk_type != CHUNK_CHANGE {
        return Err(ChangeError::WrongChunkType(chunk_type));
    }
    if reader.unsigned()? != reader.len() as u64 {
        return Err(ChangeError::Malformed("its length is not that of the chunk"));
    }
    let fields = fields(&mut reader)?;
    let columns = OperationColumns::read(&mut reader)?;
    if !reader.is_empty() {
        return Err(ChangeError::Malformed("bytes follow its columns"));
    }
    let operations = columns.operations();
    let last = fields.start_operation.checked_add(operations);
    if operations == 0 || last.is_none_or(|next| next - 1 > OPERATION_COUNTER_MAX) {
        return Err(if operations == 0 {
            ChangeError::Malformed("it has no operations")
        } else {
            ChangeError::CounterOutOfRange
        });
    }
    let insertions = insertions(&columns, fields.start_operation);
    let targets = targets(&columns, &fields, &insertions)?;
    Ok(ParsedChange {
        checksum,
        dependencies: fields.dependencies,
        actor: fields.actors[0],
        sequence: fields.sequence,
        start_operation: fields.start_operation,
        operations,
        time: fields.time,
        insertions,
        targets,
    })
}

fn fields(reader: &mut ChunkReader<'_>) -> Result<ChangeFields, ChangeError> {
    let count = reader
        .bounded(DEPENDENCIES_MAX as u64, ChangeError::Malformed("it has too many dependencies"))?;
    let mut dependencies = Vec::new();
    for _ in 0..count {
        let hash = reader.bytes(ChangeHash::LEN)?.try_into().expect("the reader took a hash");
        dependencies.push(ChangeHash::from_bytes(hash));
    }
    if dependencies.is_empty() || !dependencies.is_sorted_by(|a, b| a < b) {
        return Err(ChangeError::Malformed("its dependencies are missing or not in order"));
    }
    let mut actors = vec![actor(reader)?];
    let range = ChangeError::Malformed("its sequence number is out of range");
    let sequence = reader.bounded(u64::from(u32::MAX), range.clone())? as u32;
    if sequence == 0 {
        return Err(range);
    }
    let start = u64::from(OPERATION_COUNTER_MAX);
    let start_operation = reader.bounded(start, ChangeError::CounterOutOfRange)? as u32;
    if start_operation <= TEXT_COUNTER {
        return Err(ChangeError::CounterOutOfRange);
    }
    let millis = u64::try_from(reader.signed()?).ok().filter(|millis| *millis <= TIME_MILLIS_MAX);
    let millis = millis.ok_or(ChangeError::Malformed("its time is out of range"))?;
    if reader.unsigned()? != 0 {
        return Err(ChangeError::Malformed("it has a message"));
    }
    let count = reader
        .bounded(OTHER_ACTORS_MAX as u64, ChangeError::Malformed("it names too many actors"))?;
    for _ in 0..count {
        actors.push(actor(reader)?);
    }
    if !actors[1..].is_sorted_by(|a, b| a < b) || actors[1..].contains(&actors[0]) {
        return Err(ChangeError::Malformed("its other actors are not in order"));
    }
    let time = WallTime::from_millis(millis);
    Ok(ChangeFields { dependencies, actors, sequence, start_operation, time })
}

fn actor(reader: &mut ChunkReader<'_>) -> Result<Actor, ChangeError> {
    let wrong = ChangeError::Malformed("an actor has not 16 bytes");
    if reader.unsigned()? != Actor::LEN as u64 {
        return Err(wrong);
    }
    Actor::from_slice(reader.bytes(Actor::LEN)?).ok_or(wrong)
}

fn insertions(columns: &OperationColumns<'_>, start: u32) -> Vec<Range<u32>> {
    let mut counter = start;
    let mut ranges = Vec::new();
    for (is_insertion, rows) in columns.insertion_runs() {
        if is_insertion {
            ranges.push(counter..counter + rows);
        }
        counter += rows;
    }
    ranges
}

/// Checks every operation, and collects the elements of earlier changes that they name.
fn targets(
    columns: &OperationColumns<'_>,
    fields: &ChangeFields,
    insertions: &[Range<u32>],
) -> Result<Vec<TargetRun>, ChangeError> {
    let mut is_used = vec![false; fields.actors.len()];
    is_used[0] = true;
    let text = fields.actors.iter().position(|actor| *actor == ROOT_ACTOR);
    let mut named = Vec::new();
    let mut deleted = Vec::new();
    for (index, operation) in (0_u32..).zip(columns.rows()) {
        let operation = operation?;
        let refuse = |reason| ChangeError::NotASplice { index, reason };
        let text = text
            .filter(|text| operation.object() == (*text, TEXT_COUNTER))
            .ok_or(refuse("it does not belong to the text"))?;
        is_used[text] = true;
        let element = match operation {
            TextOperation::Insert { left, .. } => left,
            TextOperation::Delete { element, .. } => {
                deleted.push(element);
                Some(element)
            }
        };
        if let Some((actor, counter)) = element {
            *is_used.get_mut(actor).ok_or(refuse("it names an unknown actor"))? = true;
            let own = fields.start_operation..fields.start_operation + index;
            if actor == 0 && counter >= own.start {
                let is_deletion = matches!(operation, TextOperation::Delete { .. });
                let is_earlier = own.contains(&counter) && !is_deletion;
                if !is_earlier || !is_inserted(insertions, counter) {
                    return Err(refuse("it names an element that it may not name"));
                }
            } else if counter >= fields.start_operation || actor == text {
                return Err(refuse("it names an element that cannot exist"));
            } else {
                named.push((actor, counter));
            }
        }
    }
    if is_used.contains(&false) {
        return Err(ChangeError::Malformed("it lists an actor that no operation names"));
    }
    deleted.sort_unstable();
    if !deleted.is_sorted_by(|a, b| a < b) {
        return Err(ChangeError::Malformed("it deletes an element twice"));
    }
    Ok(target_runs(named, &fields.actors))
}

fn is_inserted(insertions: &[Range<u32>], counter: u32) -> bool {
    let after = insertions.partition_point(|range| range.start <= counter);
    after > 0 && insertions[after - 1].contains(&counter)
}

fn target_runs(mut named: Vec<(usize, u32)>, actors: &[Actor]) -> Vec<TargetRun> {
    named.sort_unstable();
    named.dedup();
    let mut runs: Vec<TargetRun> = Vec::new();
    for (actor, counter) in named {
        let actor = actors[actor];
        match runs.last_mut() {
            Some(run) if run.actor == actor && run.counters.end == counter => {
                run.counters.end = counter + 1;
            }
            _ => runs.push(TargetRun { actor, counters: counter..counter + 1 }),
        }
    }
    runs
}
