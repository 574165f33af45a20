//! Payloads of a hostile peer: random bytes, and records that look valid.

use crate::test_engine::Seeded;
use klnode_crdt::claims::Claims;
use klnode_crdt::entry_origin::{Memory, Origin};
use klnode_crdt::ids::{AuthorId, Boot, Digest, Generation, Nonce, WorkspaceId};
use klnode_crdt::payload::Payload;
use klnode_crdt::record::{Position, RawRecord, Record};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::version_vector::Slot;
use klnode_federation::proto::ticket::{JoinOffer, Ticket};

/// Generates payloads from a seed.
pub(super) struct Forge {
    key: SecretKey,
    workspace: WorkspaceId,
    pub(super) random: Seeded,
    first: Option<RawRecord>,
}

impl Forge {
    pub(super) fn new(key: SecretKey, ticket: &Ticket, seed: u64) -> Self {
        let workspace = match &ticket.offer {
            JoinOffer::Member(workspace, _) => *workspace,
            JoinOffer::Mine => WorkspaceId::MAIN,
        };
        Self { key, workspace, random: Seeded(seed), first: None }
    }

    pub(super) fn author(&self) -> AuthorId {
        self.key.author()
    }

    pub(super) fn short(&mut self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.random.fill(&mut bytes);
        bytes
    }

    pub(super) fn digest(&mut self) -> Digest {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes);
        Digest::from_bytes(bytes)
    }

    pub(super) fn garbage(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 1 + self.random.below(2_000) as usize];
        self.random.fill(&mut bytes);
        bytes
    }

    /// Few bytes that claim to be many.
    pub(super) fn bomb(&mut self) -> Vec<u8> {
        let name = |name: &[u8]| [&[0x81, 0xa0 | name.len() as u8], name].concat();
        match self.random.below(6) {
            0 => [name(b"fetch"), vec![0xdd, 0xff, 0xff, 0xff, 0xff]].concat(),
            1 => [name(b"compare"), vec![0x92, 0xc3, 0xc6, 0xff, 0xff, 0xff, 0xff]].concat(),
            2 => vec![0x91; 500_000],
            3 => vec![0x81; 500_000],
            // A million nil values in an array that has room for them.
            4 => {
                let count = 1_000_000_u32.to_be_bytes();
                [name(b"ack"), vec![0xdd], count.to_vec(), vec![0xc0; 1_000_000]].concat()
            }
            _ => [name(b"no"), vec![0xdb, 0xff, 0xff, 0xff, 0xff]].concat(),
        }
    }

    /// A request with an unknown name, or an invalid one.
    pub(super) fn stray(&mut self) -> Vec<u8> {
        match self.random.below(4) {
            0 => [&[0x81, 0xa7][..], b"surrend", &[0xc0]].concat(),
            1 => vec![0xc0],
            2 => vec![0x90],
            _ => Vec::new(),
        }
    }

    /// A record that this peer may write: an entry without text.
    pub(super) fn record(&mut self) -> RawRecord {
        let stamp =
            Hlc::new(WallTime::from_millis(1_790_000_000_000), self.random.next_u64() as u16);
        let origin = Origin::Created {
            creator: self.key.author(),
            stamp,
            nonce: Nonce::from_bytes(self.short()),
            workspace: self.workspace,
            memory: Memory::Semantic,
        };
        let at = Position {
            entry: origin.id(),
            place: Slot { boot: Boot(666), generation: Generation(1) },
            counter: 1,
            stamp,
            absorbs: Vec::new(),
        };
        let payload = Payload::Claims { origin: Some(origin), claims: Claims::default() };
        Record::seal(at, payload, &self.key).expect("small enough").to_raw()
    }

    /// The same valid record every time.
    pub(super) fn first(&mut self) -> RawRecord {
        if self.first.is_none() {
            self.first = Some(self.record());
        }
        self.first.clone().expect("just made")
    }

    /// A record that its author never made.
    pub(super) fn forged(&mut self) -> RawRecord {
        let (mut one, two) = (self.record(), self.record());
        match self.random.below(4) {
            0 => one.signature = two.signature,
            1 => one.payload = two.payload,
            2 => {
                let at = self.random.below(one.header.len() as u64) as usize;
                one.header[at] ^= 1 << self.random.below(8);
            }
            _ => one.payload = None,
        }
        one
    }
}
