//! The messages of the sync protocol and their encoding.
//!
//! Messages are MessagePack, encoded by dedicated types. The decoder checks bounds before it builds
//! anything ([`klnode_crdt::wire`]). A message is a map with one pair: its name and its fields, an
//! array in the order given here. A later version may append fields, which an earlier one skips; an
//! unknown name is answered with [`SyncResponse::Refused`].

use super::limits::{FRAME_BYTES_MAX, FRAME_ITEMS_MAX, REASON_CHARS_MAX};
use klnode_crdt::equivocation::RawProof;
use klnode_crdt::ids::{Boot, Digest, EntryId, StoreId};
use klnode_crdt::record::{RawRecord, RecordError};
use klnode_crdt::time::WallTime;
use klnode_crdt::wire;
use klnode_crdt::wire::msgpack_limits::MsgpackLimits;
use serde::{Deserialize, Serialize};

/// A reader's position in a peer's outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxCursor {
    /// The store whose outbox was read.
    #[serde(rename = "s")]
    pub store: StoreId,
    /// The epoch: the process start of the sender that wrote the row at this position.
    #[serde(rename = "e")]
    pub epoch: Boot,
    /// Every row up to this position was applied, or refused for a recorded reason.
    #[serde(rename = "p")]
    pub position: u64,
}

/// Identifies the sender's state at the start of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// Protocol version of the sender.
    #[serde(rename = "v")]
    pub version: u8,
    /// The sender's store.
    #[serde(rename = "s")]
    pub store: StoreId,
    /// The sender's current epoch.
    #[serde(rename = "e")]
    pub epoch: Boot,
    /// Last position of the sender's outbox for the receiving peer.
    #[serde(rename = "h")]
    pub head: u64,
    /// The sender's wall clock.
    #[serde(rename = "t")]
    pub time: WallTime,
}

/// The content of one or more outbox rows, in the order of the outbox. Only the sender knows where
/// one row ends and the next begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OutboxItem {
    /// A record by name: the distance from the sender to its author, and its digest.
    #[serde(rename = "n")]
    Named(u8, Digest),
    /// A whole record: the distance from the sender to its author, and the record.
    #[serde(rename = "r")]
    Whole(u8, #[serde(with = "parcel")] RawRecord),
    /// A whole record whose entry is released to the reader from here on.
    #[serde(rename = "f")]
    First(u8, #[serde(with = "parcel")] RawRecord),
    /// These entries are released to the reader from here on.
    #[serde(rename = "o")]
    Opened(Vec<EntryId>),
    /// These entries are no longer released. Of their records only retractions and tombstones
    /// follow.
    #[serde(rename = "x")]
    Ended(Vec<EntryId>),
    /// Two conflicting headers that prove an author's equivocation.
    #[serde(rename = "q")]
    Proof(Box<RawProof>),
}

impl OutboxItem {
    /// Approximate number of outbox rows the item stands for.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Opened(entries) | Self::Ended(entries) => entries.len(),
            Self::Named(..) | Self::Whole(..) | Self::First(..) | Self::Proof(_) => 1,
        }
    }
}

/// Encodes a record as an array without names: header, signature and payload.
mod parcel {
    use klnode_crdt::record::RawRecord;
    use klnode_crdt::signing_key::Signature;
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

/// Encodes a list of records.
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

/// States that an entry is erased at the sender, and how far the tombstone has spread from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErasureReceipt {
    /// The erased entry.
    #[serde(rename = "e")]
    pub entry: EntryId,
    /// Number of other peers to which the sender passed the tombstone.
    #[serde(rename = "n")]
    pub told: u32,
    /// Number of these peers, and of the peers they told, that confirmed the erasure.
    #[serde(rename = "m")]
    pub acknowledged: u32,
}

/// A request to a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncRequest {
    /// Begins a session; answered with [`SyncResponse::Hello`].
    #[serde(rename = "hello")]
    Hello(Greeting),
    /// Requests outbox rows after a cursor, or from the start, up to a maximum number.
    #[serde(rename = "changes")]
    Changes(Option<OutboxCursor>, u32),
    /// Requests records by digest.
    #[serde(rename = "fetch")]
    Fetch(Vec<Digest>),
    /// Announces the new last position of the outbox.
    #[serde(rename = "notify")]
    Notify(u64),
    /// A message of a comparison. The flag marks the first one.
    #[serde(rename = "compare")]
    Compare(bool, #[serde(with = "serde_bytes")] Vec<u8>),
    /// Reports entries that were erased here.
    #[serde(rename = "ack")]
    Acknowledge(Vec<ErasureReceipt>),
}

/// An answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SyncResponse {
    /// Answers [`SyncRequest::Hello`] with the own greeting.
    #[serde(rename = "hello")]
    Hello(Greeting),
    /// A page of the outbox, the cursor after it, and whether more follows.
    #[serde(rename = "page")]
    Page(Vec<OutboxItem>, OutboxCursor, bool),
    /// The cursor refers to a part of the outbox that this store does not know.
    #[serde(rename = "unknown")]
    UnknownCursor,
    /// The first of the requested records, as many as fit. A record that is missing from every
    /// answer either does not exist or may not be sent to the peer; the two cases look the same.
    #[serde(rename = "records")]
    Records(#[serde(with = "parcels")] Vec<RawRecord>),
    /// The next message of a comparison; empty if nothing differs.
    #[serde(rename = "compare")]
    Compare(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The request was processed and has no result.
    #[serde(rename = "done")]
    Done,
    /// Over budget or busy: repeat the request after this many milliseconds.
    #[serde(rename = "later")]
    Later(u32),
    /// The request was refused, with a reason for people.
    #[serde(rename = "no")]
    Refused(String),
}

/// A peer's reason for a refusal, on one line and cut to the limit.
pub fn reason(words: &str) -> String {
    let parts: Vec<&str> = words
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(" ").chars().take(REASON_CHARS_MAX).collect()
}

const BOUNDS: MsgpackLimits =
    MsgpackLimits { bytes_max: FRAME_BYTES_MAX, items_max: FRAME_ITEMS_MAX };

impl SyncRequest {
    /// Encodes the request as one frame.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Decodes a frame under the protocol's bounds.
    pub fn decode(frame: &[u8]) -> Result<Self, RecordError> {
        wire::decode(frame, BOUNDS)
    }
}

impl SyncResponse {
    /// Number of whole records in the answer. Records that are only named do not count, because
    /// they may never be requested.
    pub fn records(&self) -> u64 {
        let is_whole =
            |item: &&OutboxItem| matches!(item, OutboxItem::Whole(..) | OutboxItem::First(..));
        match self {
            Self::Page(items, ..) => items.iter().filter(is_whole).count() as u64,
            Self::Records(records) => records.len() as u64,
            _ => 0,
        }
    }

    /// Encodes the answer as one frame.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode(self)
    }

    /// Decodes a frame under the protocol's bounds.
    pub fn decode(frame: &[u8]) -> Result<Self, RecordError> {
        wire::decode(frame, BOUNDS)
    }
}
