//! Nodes of a later version among the others: they greet with another number, and write records of a
//! format that nobody here knows.
//!
//! There is one version so far. A later one is played: whatever a node says to one of another
//! version is said with a number that the other does not speak.

use super::Cluster;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::Holding;
use klnode_crdt::ids::{Boot, EntryId};
use klnode_crdt::key::{Purpose, SecretKey};
use klnode_crdt::record::RawRecord;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::writer::Writer;
use klnode_federation::proto::limits::VERSION;
use klnode_federation::proto::message::{Answer, Ask, Greeting, Item};

/// What a node is, beside what all are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Build {
    /// How many versions it is ahead.
    ahead: u8,
    /// Records of a later format that it still has to send.
    records: u64,
    /// Those it has sent.
    sent: u64,
}

impl Cluster {
    /// How many versions a node is ahead of the others.
    pub fn ahead(&self, at: usize) -> u8 {
        self.members[at].build.ahead
    }

    /// Replaces a node's program by one of another version, so many ahead: it starts anew.
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

    /// Has a node send a record of a later format with the next page of its outbox.
    pub fn write_ahead(&mut self, at: usize) {
        self.members[at].build.records += 1;
    }

    /// How many records of a later format were sent.
    pub fn written_ahead(&self) -> u64 {
        self.members.iter().map(|member| member.build.sent).sum()
    }

    /// A question as it leaves a node for another.
    pub(super) fn asked(&self, from: usize, to: usize, frame: Vec<u8>) -> Vec<u8> {
        match (self.is_strange(from, to), Ask::decode(&frame)) {
            (true, Ok(Ask::Hello(greeting))) => Ask::Hello(strange(greeting)).encode(),
            _ => frame,
        }
    }

    /// An answer as it leaves a node for another.
    pub(super) fn answered(&mut self, from: usize, to: usize, frame: Vec<u8>) -> Vec<u8> {
        let is_strange = self.is_strange(from, to);
        let (key_seed, now) = (self.members[from].key_seed, self.now(from));
        let build = &mut self.members[from].build;
        match Answer::decode(&frame) {
            Ok(Answer::Hello(greeting)) if is_strange => Answer::Hello(strange(greeting)).encode(),
            Ok(Answer::Page(mut items, end, more)) if build.records > 0 && !items.is_empty() => {
                build.records -= 1;
                build.sent += 1;
                items.push(Item::Whole(0, of_tomorrow(key_seed, build.sent, now)));
                Answer::Page(items, end, more).encode()
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

/// A record of a later format, signed by the author that this seed makes.
fn of_tomorrow(key_seed: u8, number: u64, now: WallTime) -> RawRecord {
    let (key, own) = (SecretKey::from_bytes(&[key_seed; 32]), Holding::default());
    let entry = EntryId::from_bytes([0xA5; 16]);
    let writer = Writer { key: &key, boot: Boot(number), entry, own: &own };
    let stamp = Hlc::new(now, 0);
    let today = writer.observe(Observation::Success, Thousandths::ONE, now.day(), stamp);
    let RawRecord { mut header, payload, .. } = today.expect("fits").to_raw();
    // An array of eleven, the format first.
    header[1] += 1;
    let signature = key.sign(Purpose::Record, &header);
    RawRecord { header, signature, payload }
}
