//! The operation columns of a change, and the operations that their rows describe.
//!
//! A column has a specification: its id in the upper bits, its type in the lower three, and one bit
//! for compression. The columns of a splice are listed in [`SPECIFICATIONS`]; a change with any other
//! column is refused. The columns are walked as runs first, so the number of rows is known and
//! bounded before any row is read.

use crate::change_error::ChangeError;
use crate::leb128_reader::ChunkReader;
use crate::run_length::{self, Column};

const OBJECT_ACTOR: u32 = 0x01;
const OBJECT_COUNTER: u32 = 0x02;
const KEY_ACTOR: u32 = 0x11;
const KEY_COUNTER: u32 = 0x13;
const INSERT: u32 = 0x34;
const ACTION: u32 = 0x42;
const VALUE_META: u32 = 0x56;
const VALUE: u32 = 0x57;
const PREDECESSOR_COUNT: u32 = 0x70;
const PREDECESSOR_ACTOR: u32 = 0x71;
const PREDECESSOR_COUNTER: u32 = 0x73;

/// The columns that insertions and deletions of text may have, ascending.
const SPECIFICATIONS: [u32; 11] = [
    OBJECT_ACTOR,
    OBJECT_COUNTER,
    KEY_ACTOR,
    KEY_COUNTER,
    INSERT,
    ACTION,
    VALUE_META,
    VALUE,
    PREDECESSOR_COUNT,
    PREDECESSOR_ACTOR,
    PREDECESSOR_COUNTER,
];

const ACTION_SET: u64 = 1;
const ACTION_DELETE: u64 = 3;
const META_NULL: u64 = 0;
const META_STRING: u64 = 6;
/// Bits of the type in the metadata of a value; the length follows.
const META_TYPE_BITS: u32 = 4;

/// An element or object: the position of its actor among the actors of the change, and its counter.
pub(crate) type ElementName = (usize, u32);

/// One row over all columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextOperation {
    /// Inserts a code point to the right of `left`, or at the head of the text.
    Insert { object: ElementName, left: Option<ElementName> },
    /// Deletes the code point `element` of the text.
    Delete { object: ElementName, element: ElementName },
}

impl TextOperation {
    pub(crate) fn object(&self) -> ElementName {
        match self {
            Self::Insert { object, .. } | Self::Delete { object, .. } => *object,
        }
    }
}

/// The columns of a change, read as runs.
#[derive(Debug)]
pub(crate) struct OperationColumns<'a> {
    object_actor: Column<u64>,
    object_counter: Column<u64>,
    key_actor: Column<u64>,
    key_counter: Column<i64>,
    insert: Column<bool>,
    action: Column<u64>,
    value_meta: Column<u64>,
    value: &'a [u8],
    predecessor_count: Column<u64>,
    predecessor_actor: Column<u64>,
    predecessor_counter: Column<i64>,
}

impl<'a> OperationColumns<'a> {
    /// Reads the list of columns and their data, and checks that all columns have the same rows.
    pub(crate) fn read(reader: &mut ChunkReader<'a>) -> Result<Self, ChangeError> {
        let data = column_data(reader)?;
        let of = |specification: u32| {
            let index = SPECIFICATIONS.iter().position(|known| *known == specification);
            index.and_then(|index| data[index]).unwrap_or_default()
        };
        let columns = Self {
            object_actor: run_length::numbers(of(OBJECT_ACTOR))?,
            object_counter: run_length::numbers(of(OBJECT_COUNTER))?,
            key_actor: run_length::numbers(of(KEY_ACTOR))?,
            key_counter: run_length::deltas(of(KEY_COUNTER))?,
            insert: run_length::booleans(of(INSERT))?,
            action: run_length::numbers(of(ACTION))?,
            value_meta: run_length::numbers(of(VALUE_META))?,
            value: of(VALUE),
            predecessor_count: run_length::numbers(of(PREDECESSOR_COUNT))?,
            predecessor_actor: run_length::numbers(of(PREDECESSOR_ACTOR))?,
            predecessor_counter: run_length::deltas(of(PREDECESSOR_COUNTER))?,
        };
        columns.check_rows()?;
        Ok(columns)
    }

    /// Number of operations.
    pub(crate) fn operations(&self) -> u32 {
        self.action.rows()
    }

    /// Numbers of consecutive operations that insert (`true`) or delete (`false`).
    pub(crate) fn insertion_runs(&self) -> impl Iterator<Item = (bool, u32)> {
        self.insert.runs().iter().map(|run| (run.value == Some(true), run.rows))
    }

    fn check_rows(&self) -> Result<(), ChangeError> {
        let rows = self.operations();
        let full = [
            self.object_actor.rows(),
            self.object_counter.rows(),
            self.key_counter.rows(),
            self.insert.rows(),
            self.value_meta.rows(),
            self.predecessor_count.rows(),
        ];
        let deletions: u32 =
            self.insertion_runs().filter(|(inserts, _)| !inserts).map(|(_, rows)| rows).sum();
        let is_even = full.iter().all(|count| *count == rows)
            // Every key is the head, which has no actor: the column is left out.
            && (self.key_actor.rows() == rows || self.key_actor.rows() == 0)
            && self.predecessor_actor.rows() == deletions
            && self.predecessor_counter.rows() == deletions;
        if is_even {
            Ok(())
        } else {
            Err(ChangeError::Malformed("its columns have different numbers of rows"))
        }
    }

    /// The operations in order. An item is an error if its row is not a splice of a text.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Result<TextOperation, ChangeError>> {
        let mut key_actors = self.key_actor.values();
        let mut key_counters = run_length::sums(&self.key_counter);
        let mut predecessors =
            self.predecessor_actor.values().zip(run_length::sums(&self.predecessor_counter));
        let mut value = ChunkReader::new(self.value);
        let objects = self.object_actor.values().zip(self.object_counter.values());
        let kinds = self.insert.values().zip(self.action.values());
        let values = self.value_meta.values().zip(self.predecessor_count.values());
        let rows = self.operations();
        objects.zip(kinds).zip(values).enumerate().map(move |(index, row)| {
            let ((object, (insert, action)), (meta, count)) = row;
            let index = index as u32;
            let refuse = |reason| ChangeError::NotASplice { index, reason };
            let object =
                element(object.0, object.1.and_then(|counter| u32::try_from(counter).ok()))
                    .ok_or(refuse("it does not belong to the text"))?;
            let counter = key_counters.next().ok_or(refuse("it has no key"))??;
            let actor = key_actors.next().flatten();
            // The head has no actor and the counter 0.
            let key = element(actor, Some(counter));
            if key.is_none() && (actor, counter) != (None, 0) {
                return Err(refuse("its key names no element"));
            }
            let operation = match (insert, action, meta, count) {
                (Some(true), Some(ACTION_SET), Some(meta), Some(0)) => {
                    check_code_point(&mut value, meta)
                        .map_err(|()| refuse("it does not insert exactly one code point"))?;
                    TextOperation::Insert { object, left: key }
                }
                (Some(false), Some(ACTION_DELETE), Some(META_NULL), Some(1)) => {
                    let (actor, counter) =
                        predecessors.next().ok_or(refuse("it has no predecessor"))?;
                    let predecessor = element(actor, Some(counter?));
                    let element = key.ok_or(refuse("it deletes the head"))?;
                    if predecessor != Some(element) {
                        return Err(refuse("its predecessor is not the deleted element"));
                    }
                    TextOperation::Delete { object, element }
                }
                _ => return Err(refuse("it is neither an insertion nor a deletion")),
            };
            if index + 1 == rows && !value.is_empty() {
                return Err(ChangeError::Malformed("bytes follow its last value"));
            }
            Ok(operation)
        })
    }
}

/// The data of each column, in the order of [`SPECIFICATIONS`].
fn column_data<'a>(
    reader: &mut ChunkReader<'a>,
) -> Result<[Option<&'a [u8]>; SPECIFICATIONS.len()], ChangeError> {
    // Every column takes two bytes of the list, so the bytes bound the loop; the first column that is
    // unknown or out of order ends it.
    let count = reader.unsigned()?;
    let mut lengths = [None; SPECIFICATIONS.len()];
    let mut next = 0;
    for _ in 0..count {
        let specification = reader.unsigned()?;
        let index = SPECIFICATIONS.iter().position(|known| u64::from(*known) == specification);
        let index = index.ok_or(ChangeError::UnexpectedColumn(
            u32::try_from(specification).unwrap_or(u32::MAX),
        ))?;
        let length = reader.unsigned()?;
        if index < next || length == 0 {
            return Err(ChangeError::Malformed("its columns are empty or not in order"));
        }
        lengths[index] = Some(length);
        next = index + 1;
    }
    let mut data = [None; SPECIFICATIONS.len()];
    for (data, length) in data.iter_mut().zip(lengths) {
        if let Some(length) = length {
            *data = Some(reader.bytes(usize::try_from(length).unwrap_or(usize::MAX))?);
        }
    }
    Ok(data)
}

fn element(actor: Option<u64>, counter: Option<u32>) -> Option<ElementName> {
    let actor = usize::try_from(actor?).ok()?;
    counter.filter(|counter| *counter > 0).map(|counter| (actor, counter))
}

/// Takes the value with this metadata, which must be a string of one code point.
fn check_code_point(value: &mut ChunkReader<'_>, meta: u64) -> Result<(), ()> {
    let length = meta >> META_TYPE_BITS;
    if meta & ((1 << META_TYPE_BITS) - 1) != META_STRING || !(1..=4).contains(&length) {
        return Err(());
    }
    let bytes = value.bytes(length as usize).map_err(|_| ())?;
    let text = std::str::from_utf8(bytes).map_err(|_| ())?;
    if text.chars().count() == 1 { Ok(()) } else { Err(()) }
}
