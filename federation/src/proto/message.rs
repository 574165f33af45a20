//! The messages and their bytes.
//!
//! MessagePack, encoded by types made for that alone and walked under bounds before anything is
//! built ([`klnode_crdt::wire`]). A message is a map of one pair: its name and its fields, an array
//! in the order given here. Fields may be appended by a later version and are skipped by an earlier
//! one; an unknown name is answered with [`Answer::Refused`].

use super::limits::{FRAME_BYTES_MAX, FRAME_ITEMS_MAX, REASON_CHARS_MAX};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{Boot, Digest, EntryId, StoreId};
use klnode_crdt::record::{RawRecord, Refusal};
use klnode_crdt::time::WallTime;
use klnode_crdt::wire::{self, bounded::Bounds};
use serde::{Deserialize, Serialize};

/// How far a reader has read a peer's outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Of which store.
    #[serde(rename = "s")]
    pub store: StoreId,
    /// In which epoch of it: the process start that wrote the last row that was read.
    #[serde(rename = "e")]
    pub epoch: Boot,
    /// Everything up to here was applied, or refused for a stated reason.
    #[serde(rename = "p")]
    pub position: u64,
}

/// Who speaks, and how much there is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// The version of the protocol.
    #[serde(rename = "v")]
    pub version: u8,
    /// The speaker's store.
    #[serde(rename = "s")]
    pub store: StoreId,
    /// Its epoch now.
    #[serde(rename = "e")]
    pub epoch: Boot,
    /// The last position of the outbox for the one it speaks to.
    #[serde(rename = "h")]
    pub head: u64,
    /// Its clock.
    #[serde(rename = "t")]
    pub time: WallTime,
}

/// What rows of an outbox hold. They come in the order of the outbox; where one ends is for the
/// sender alone to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A record, by name: how far its author is from the sender, and its digest.
    #[serde(rename = "n")]
    Named(u8, Digest),
    /// A record, whole: how far its author is from the sender, and the record.
    #[serde(rename = "r")]
    Whole(u8, #[serde(with = "parcel")] RawRecord),
    /// The same, and its entry is released to the reader from here on.
    #[serde(rename = "f")]
    First(u8, #[serde(with = "parcel")] RawRecord),
    /// These entries are released to the reader from here on.
    #[serde(rename = "o")]
    Opened(Vec<EntryId>),
    /// These are released no longer: no more of them comes, but for retractions and tombstones.
    #[serde(rename = "x")]
    Ended(Vec<EntryId>),
    /// Two headers that convict their author.
    #[serde(rename = "q")]
    Proof(Box<RawProof>),
}

impl Item {
    /// How many rows of an outbox it stands for, or nearly so.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Opened(entries) | Self::Ended(entries) => entries.len(),
            Self::Named(..) | Self::Whole(..) | Self::First(..) | Self::Proof(_) => 1,
        }
    }
}

/// A record on the wire: header, signature and payload, in an array and without names.
mod parcel {
    use klnode_crdt::key::Signature;
    use klnode_crdt::record::RawRecord;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_bytes::{ByteBuf, Bytes};

    pub(super) fn serialize<S: Serializer>(raw: &RawRecord, to: S) -> Result<S::Ok, S::Error> {
        let payload = raw.payload.as_deref().map(Bytes::new);
        (Bytes::new(&raw.header), raw.signature, payload).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<RawRecord, D::Error> {
        let (header, signature, payload): (ByteBuf, Signature, Option<ByteBuf>) =
            Deserialize::deserialize(from)?;
        let payload = payload.map(ByteBuf::into_vec);
        Ok(RawRecord { header: header.into_vec(), signature, payload })
    }
}

/// Several of them.
mod parcels {
    use klnode_crdt::record::RawRecord;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Parcel(#[serde(with = "super::parcel")] RawRecord);

    pub(super) fn serialize<S: Serializer>(list: &[RawRecord], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(list.iter().cloned().map(Parcel))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<RawRecord>, D::Error> {
        let list: Vec<Parcel> = Deserialize::deserialize(from)?;
        Ok(list.into_iter().map(|parcel| parcel.0).collect())
    }
}

/// That an entry is erased at the sender, and how far the word has gone from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Which.
    #[serde(rename = "e")]
    pub entry: EntryId,
    /// To how many others the sender has passed the tombstone.
    #[serde(rename = "n")]
    pub told: u32,
    /// How many of these, and of those they told, have said that it is erased.
    #[serde(rename = "m")]
    pub acknowledged: u32,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ask {
    /// Begins a session; answered with [`Answer::Hello`].
    #[serde(rename = "hello")]
    Hello(Greeting),
    /// The rows of the outbox after a cursor, or from the start; at most so many.
    #[serde(rename = "changes")]
    Changes(Option<Cursor>, u32),
    /// Records by digest.
    #[serde(rename = "fetch")]
    Fetch(Vec<Digest>),
    /// There is more in the outbox: its last position.
    #[serde(rename = "notify")]
    Notify(u64),
    /// A message of a comparison; the flag says whether it is the first of one.
    #[serde(rename = "compare")]
    Compare(bool, #[serde(with = "serde_bytes")] Vec<u8>),
    /// What was erased here.
    #[serde(rename = "ack")]
    Acknowledge(Vec<Receipt>),
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// To a greeting.
    #[serde(rename = "hello")]
    Hello(Greeting),
    /// A page of the outbox, the cursor after it, and whether more follow.
    #[serde(rename = "page")]
    Page(Vec<Item>, Cursor, bool),
    /// The cursor names a part of the outbox that this store does not know.
    #[serde(rename = "unknown")]
    UnknownCursor,
    /// The first of the records that were found, as many as fit. What never comes is not here, or
    /// not for the asker: the two look alike.
    #[serde(rename = "records")]
    Records(#[serde(with = "parcels")] Vec<RawRecord>),
    /// The next message of a comparison; empty when nothing differs.
    #[serde(rename = "compare")]
    Compare(#[serde(with = "serde_bytes")] Vec<u8>),
    /// Heard.
    #[serde(rename = "done")]
    Done,
    /// Over budget, or at work: ask again after so many milliseconds.
    #[serde(rename = "later")]
    Later(u32),
    /// No, and why.
    #[serde(rename = "no")]
    Refused(String),
}

/// Why a peer says no, in its own words: on one line, and cut to the limit.
pub fn reason(words: &str) -> String {
    let parts: Vec<&str> = words
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(" ").chars().take(REASON_CHARS_MAX).collect()
}

const BOUNDS: Bounds = Bounds { bytes_max: FRAME_BYTES_MAX, items_max: FRAME_ITEMS_MAX };

impl Ask {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// From its bytes.
    pub fn decode(frame: &[u8]) -> Result<Self, Refusal> {
        wire::decode(frame, BOUNDS)
    }
}

impl Answer {
    /// How many records it hands over. What it only names may never be asked for.
    pub fn records(&self) -> u64 {
        let is_whole = |item: &&Item| matches!(item, Item::Whole(..) | Item::First(..));
        match self {
            Self::Page(items, ..) => items.iter().filter(is_whole).count() as u64,
            Self::Records(records) => records.len() as u64,
            _ => 0,
        }
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// From its bytes.
    pub fn decode(frame: &[u8]) -> Result<Self, Refusal> {
        wire::decode(frame, BOUNDS)
    }
}
