//! Nodes of a later protocol version: they greet with another version number, and write records of
//! a format that the other nodes do not know.
//!
//! There is one version so far, so a later one is simulated: greetings between nodes of different
//! versions carry a number that the other does not support.

use super::Cluster;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{Boot, EntryId};
use klnode_crdt::live_records::LiveRecords;
use klnode_crdt::record::RawRecord;
use klnode_crdt::record_builder::RecordBuilder;
use klnode_crdt::signing_key::{Purpose, SecretKey};
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_federation::proto::limits::VERSION;
use klnode_federation::proto::message::{Greeting, OutboxItem, SyncRequest, SyncResponse};

/// Version of a node's program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Build {
    /// Number of versions by which it is ahead.
    ahead: u8,
    /// Records of a later format that it still has to send.
    records: u64,
    /// Records of a later format that it has sent.
    sent: u64,
}

impl Cluster {
    /// Number of versions by which a node is ahead of the others.
    pub fn ahead(&self, at: usize) -> u8 {
        self.members[at].build.ahead
    }

    /// Replaces a node's program with one that is `ahead` versions later, and restarts it.
    pub fn replace(&mut self, at: usize, ahead: u8) {
        let is_up = self.is_up(at);
        if is_up {
            self.crash(at);
        }
        self.members[at].build.ahead = ahead;
        if is_up {
            self.restart(at);
        }
    }

    /// Makes a node send a record of a later format with the next page of its outbox.
    pub fn write_ahead(&mut self, at: usize) {
        self.members[at].build.records += 1;
    }

    /// Number of records of a later format that were sent.
    pub fn written_ahead(&self) -> u64 {
        self.members.iter().map(|member| member.build.sent).sum()
    }

    /// A request as it leaves a node for another.
    pub(super) fn asked(&self, from: usize, to: usize, frame: Vec<u8>) -> Vec<u8> {
        match (self.is_strange(from, to), SyncRequest::decode(&frame)) {
            (true, Ok(SyncRequest::Hello(greeting))) => {
                SyncRequest::Hello(strange(greeting)).encode()
            }
            _ => frame,
        }
    }

    /// A response as it leaves a node for another.
    pub(super) fn answered(&mut self, from: usize, to: usize, frame: Vec<u8>) -> Vec<u8> {
        let is_strange = self.is_strange(from, to);
        let (key_seed, now) = (self.members[from].key_seed, self.now(from));
        let build = &mut self.members[from].build;
        match SyncResponse::decode(&frame) {
            Ok(SyncResponse::Hello(greeting)) if is_strange => {
                SyncResponse::Hello(strange(greeting)).encode()
            }
            Ok(SyncResponse::Page(mut items, end, more))
                if build.records > 0 && !items.is_empty() =>
            {
                build.records -= 1;
                build.sent += 1;
                items.push(OutboxItem::Whole(0, of_tomorrow(key_seed, build.sent, now)));
                SyncResponse::Page(items, end, more).encode()
            }
            _ => frame,
        }
    }

    fn is_strange(&self, one: usize, two: usize) -> bool {
        self.ahead(one) != self.ahead(two)
    }
}

fn strange(greeting: Greeting) -> Greeting {
    Greeting { version: VERSION + 1, ..greeting }
}

/// A record of a later format, signed with the key of this seed.
fn of_tomorrow(key_seed: u8, number: u64, now: WallTime) -> RawRecord {
    let (key, own) = (SecretKey::from_bytes(&[key_seed; 32]), LiveRecords::default());
    let entry = EntryId::from_bytes([0xA5; 16]);
    let writer = RecordBuilder { key: &key, boot: Boot(number), entry, own: &own };
    let stamp = Hlc::new(now, 0);
    let today = writer.observe(Observation::Success, Thousandths::ONE, now.day(), stamp);
    let RawRecord { mut header, payload, .. } = today.expect("fits").to_raw();
    // The header is an array of eleven whose first element is the format.
    header[1] += 1;
    let signature = key.sign(Purpose::Record, &header);
    RawRecord { header, signature, payload }
}
