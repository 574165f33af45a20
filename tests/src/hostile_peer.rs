//! A hostile peer that speaks the protocol: it joins by a ticket and then runs one [`Attack`] over
//! real connections, against a node that is not prepared for it.
//!
//! Tests use it against their own nodes, and `cargo run -p klnode-tests --bin attack` runs it
//! against any node with a ticket.

mod payloads;

use crate::test_engine::Seeded;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Nonce, StoreId};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_federation::net::{self, Event, Events, Handle, Limits, Protocol};
use klnode_federation::proto::message::{
    ErasureReceipt, Greeting, OutboxCursor, OutboxItem, SyncRequest, SyncResponse,
};
use klnode_federation::proto::pairing::{self, Card, PairingContext};
use klnode_federation::proto::ticket::Ticket;
use payloads::Forge;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Behaviour of the hostile peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Random bytes.
    Garbage,
    /// Few bytes that claim to be many: lengths of 4 GiB, deep nesting, long runs.
    Bombs,
    /// Records that their authors never made: changed, swapped, moved.
    Forgeries,
    /// Pages that do not follow each other, never end, open unknown entries, or repeat a record.
    Pages,
    /// Invalid comparisons.
    Compares,
    /// Requests for records that were not released to it.
    Probes,
    /// One valid record, over and over.
    Replay,
    /// As many valid records as possible.
    Flood,
    /// Receipts of erasures that were never requested.
    Receipts,
    /// Responses to other requests, and unknown request names.
    Strays,
}

impl Attack {
    pub const ALL: [Self; 10] = [
        Self::Garbage,
        Self::Bombs,
        Self::Forgeries,
        Self::Pages,
        Self::Compares,
        Self::Probes,
        Self::Replay,
        Self::Flood,
        Self::Receipts,
        Self::Strays,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::Bombs => "bombs",
            Self::Forgeries => "forgeries",
            Self::Pages => "pages",
            Self::Compares => "compares",
            Self::Probes => "probes",
            Self::Replay => "replay",
            Self::Flood => "flood",
            Self::Receipts => "receipts",
            Self::Strays => "strays",
        }
    }

    /// The request that the victim must send before the attack has an effect; `None` if none is
    /// needed.
    fn must_be_asked(self) -> Option<&'static str> {
        match self {
            Self::Forgeries | Self::Pages | Self::Replay | Self::Flood => Some("changes"),
            Self::Compares => Some("compare"),
            _ => None,
        }
    }
}

/// Counters of one attack.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Frames sent, both requests and responses.
    pub sent: u64,
    /// Requests that the victim refused.
    pub refused: u64,
    /// Requests that the victim deferred.
    pub later: u64,
    /// Requests that the victim answered as valid.
    pub answered: u64,
    /// Exchanges that failed.
    pub failed: u64,
    /// Number of times the victim closed the connection.
    pub sent_away: u64,
    /// Requested records that the victim sent.
    pub given: u64,
    /// Requests of the victim, by name.
    pub asked: BTreeMap<&'static str, u64>,
}

impl Outcome {
    /// Whether the victim has sent the request that the attack responds to, if it needs one.
    pub fn has_landed(&self, what: Attack) -> bool {
        what.must_be_asked().is_none_or(|ask| self.asked.contains_key(ask))
    }
}

/// Maximum number of open requests.
const OPEN_MAX: u64 = 8;

/// Time limit for being admitted.
const PATIENCE: Duration = Duration::from_secs(30);

/// When an attack ends.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// This long after it was admitted.
    After(Duration),
    /// When the victim disconnects it, or this long after it was admitted.
    SentAway(Duration),
    /// This long after it was admitted, and not before the victim has sent the request that the
    /// attack responds to; a time limit applies to that wait.
    Landed(Duration),
}

impl End {
    fn lasts(self) -> Duration {
        match self {
            Self::After(lasts) | Self::SentAway(lasts) => lasts,
            Self::Landed(_) => PATIENCE,
        }
    }
}

/// Attacks the node that wrote the ticket until `until`.
///
/// `wanted` are digests to request with [`Attack::Probes`].
pub fn attack(
    ticket: &Ticket,
    what: Attack,
    seed: u64,
    wanted: &[Digest],
    until: End,
) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut bytes = [0; 32];
        Seeded(seed).fill(&mut bytes);
        let key = SecretKey::from_bytes(&bytes);
        let settings = net::Settings {
            key: key.clone(),
            listen: Vec::new(),
            usual_port: None,
            limits: limits(),
        };
        let (handle, events) = net::start(settings).await.map_err(|error| error.to_string())?;
        let forge = Forge::new(key, ticket, seed);
        let mut peer = Hostile {
            handle,
            forge,
            what,
            victim: ticket.inviter,
            wanted: wanted.to_vec(),
            outcome: Outcome::default(),
            next_id: 1,
            open: 0,
            is_paired: false,
            position: 0,
        };
        peer.run(events, ticket, until).await?;
        Ok(peer.outcome)
    })
}

/// Limits that do not slow this peer down.
fn limits() -> Limits {
    Limits {
        pending_connections_max: 64,
        established_connections_max: 64,
        peer_connections_max: 8,
        stranger_connections_max: 8,
        memory_bytes_max: u64::MAX,
        frame_bytes_max: net::FRAME_BYTES_MAX,
        pairing_frame_bytes_max: net::PAIRING_FRAME_BYTES_MAX,
        progress_bytes_per_second_min: 1,
        request_timeout: Duration::from_secs(5),
        redial_after: Duration::from_millis(50),
        redial_after_max: Duration::from_millis(200),
        stranger_lifetime: Duration::from_secs(60),
    }
}

/// Name of a request.
fn name(ask: &SyncRequest) -> &'static str {
    match ask {
        SyncRequest::Hello(_) => "hello",
        SyncRequest::Changes(..) => "changes",
        SyncRequest::Fetch(_) => "fetch",
        SyncRequest::Notify(_) => "notify",
        SyncRequest::Compare(..) => "compare",
        SyncRequest::Acknowledge(_) => "ack",
    }
}

struct Hostile {
    handle: Handle,
    forge: Forge,
    what: Attack,
    victim: AuthorId,
    wanted: Vec<Digest>,
    outcome: Outcome,
    next_id: u64,
    open: u64,
    is_paired: bool,
    position: u64,
}

const STORE: StoreId = StoreId::from_bytes([0xEE; 16]);

fn cursor(position: u64) -> OutboxCursor {
    OutboxCursor { store: STORE, epoch: Boot(666), position }
}

impl Hostile {
    async fn run(&mut self, mut events: Events, ticket: &Ticket, until: End) -> Result<(), String> {
        let mut let_in = Instant::now();
        let mut end = let_in + PATIENCE;
        self.handle.allow(self.victim, ticket.addresses.clone());
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let pause = left.min(Duration::from_millis(20));
            let was_paired = self.is_paired;
            match tokio::time::timeout(pause, events.next()).await {
                Ok(Some(event)) => self.happened(event, ticket)?,
                Ok(None) => break,
                Err(_) => self.open = 0,
            }
            if self.is_paired && !was_paired {
                let_in = Instant::now();
                end = let_in + until.lasts();
            }
            let is_over = match until {
                End::After(_) => false,
                End::SentAway(_) => self.outcome.sent_away > 0,
                End::Landed(lasts) => {
                    let has_lasted = self.is_paired && let_in.elapsed() >= lasts;
                    has_lasted && self.outcome.has_landed(self.what)
                }
            };
            if is_over {
                break;
            }
            while self.is_paired && self.open < OPEN_MAX && Instant::now() < end {
                let frame = self.question();
                if !self.ask(frame) {
                    break;
                }
            }
        }
        self.handle.stop().await;
        Ok(())
    }

    fn ask(&mut self, frame: Vec<u8>) -> bool {
        let id = self.next_id;
        self.next_id += 1;
        let is_sent = self.handle.request(self.victim, Protocol::Sync, id, frame).is_ok();
        self.open += u64::from(is_sent);
        self.outcome.sent += u64::from(is_sent);
        is_sent
    }

    fn happened(&mut self, event: Event, ticket: &Ticket) -> Result<(), String> {
        match event {
            Event::Connected { .. } if !self.is_paired => self.join(ticket),
            Event::Disconnected { .. } => {
                self.outcome.sent_away += 1;
                self.open = 0;
            }
            Event::Response { id: 0, frame, .. } => match pairing::PairResponse::decode(&frame) {
                Ok(pairing::PairResponse::Welcome(..)) => self.is_paired = true,
                other => return Err(format!("not let in: {other:?}")),
            },
            Event::Response { frame, .. } => {
                self.open = self.open.saturating_sub(1);
                self.told(&frame);
            }
            Event::Failed { .. } => {
                self.open = self.open.saturating_sub(1);
                self.outcome.failed += 1;
            }
            Event::Request { protocol: Protocol::Sync, exchange, frame, .. } => {
                let answer = self.answer(&frame);
                self.outcome.sent += u64::from(self.handle.respond(exchange, answer).is_ok());
            }
            _ => {}
        }
        Ok(())
    }

    fn join(&mut self, ticket: &Ticket) {
        let nonce = Nonce::from_bytes([5; 16]);
        let (inviter, joiner) = (ticket.inviter, self.forge.author());
        let proof =
            PairingContext { secret: &ticket.secret, inviter, joiner, nonce }.joiner_proof();
        let card = Card { name: "a friend".into(), addresses: Vec::new() };
        let ask = pairing::PairRequest::Join(ticket.secret.name().into(), nonce, proof, card);
        // A request that a busy network drops is repeated at the next connection.
        let _ = self.handle.request(self.victim, Protocol::Pair, 0, ask.encode());
    }

    fn told(&mut self, frame: &[u8]) {
        match SyncResponse::decode(frame) {
            Ok(SyncResponse::Refused(_)) => self.outcome.refused += 1,
            Ok(SyncResponse::Later(_)) => self.outcome.later += 1,
            Ok(SyncResponse::Records(records)) => {
                let digest =
                    |raw: &klnode_crdt::record::RawRecord| SignedHeader::digest_of(&raw.header);
                let given = records.iter().filter(|raw| self.wanted.contains(&digest(raw)));
                self.outcome.given += given.count() as u64;
                self.outcome.answered += 1;
            }
            _ => self.outcome.answered += 1,
        }
    }

    fn greeting(&self) -> Greeting {
        let time = WallTime::from_millis(1_790_000_000_000);
        Greeting { version: 1, store: STORE, epoch: Boot(666), head: u64::MAX, time }
    }

    /// The next request of the attack.
    fn question(&mut self) -> Vec<u8> {
        let random = self.forge.random.next_u64();
        match self.what {
            Attack::Garbage => self.forge.garbage(),
            Attack::Bombs => self.forge.bomb(),
            // The victim compares only with a peer that has read its outbox.
            Attack::Compares if !self.outcome.has_landed(self.what) => {
                SyncRequest::Changes(None, 2_000).encode()
            }
            Attack::Compares => {
                SyncRequest::Compare(random.is_multiple_of(2), self.forge.garbage()).encode()
            }
            Attack::Probes if random.is_multiple_of(3) => {
                let known = self.wanted.iter().copied();
                SyncRequest::Fetch(known.chain((0..100).map(|_| self.forge.digest())).collect())
                    .encode()
            }
            Attack::Probes if random % 3 == 1 => {
                SyncRequest::Changes(Some(OutboxCursor { store: STORE, ..cursor(random) }), 2_000)
                    .encode()
            }
            Attack::Receipts => {
                let entry = |forge: &mut Forge| EntryId::from_bytes(forge.short());
                let receipts = (0..1_000).map(|_| ErasureReceipt {
                    entry: entry(&mut self.forge),
                    told: u32::MAX,
                    acknowledged: u32::MAX,
                });
                SyncRequest::Acknowledge(receipts.collect()).encode()
            }
            Attack::Strays => self.forge.stray(),
            _ if random.is_multiple_of(8) => SyncRequest::Hello(self.greeting()).encode(),
            // The notification always claims that there is more to read.
            _ => SyncRequest::Notify(random >> 1).encode(),
        }
    }

    /// The response of the attack.
    fn answer(&mut self, frame: &[u8]) -> Vec<u8> {
        let Ok(ask) = SyncRequest::decode(frame) else { return Vec::new() };
        *self.outcome.asked.entry(name(&ask)).or_default() += 1;
        if let (SyncRequest::Hello(_), false) = (&ask, self.what == Attack::Garbage) {
            return SyncResponse::Hello(self.greeting()).encode();
        }
        let begin = match &ask {
            SyncRequest::Changes(Some(cursor), _) => cursor.position,
            _ => 0,
        };
        match (self.what, &ask) {
            (Attack::Garbage, _) => self.forge.garbage(),
            (Attack::Bombs, _) => self.forge.bomb(),
            (Attack::Strays, _) => SyncResponse::Records(vec![self.forge.record()]).encode(),
            (Attack::Forgeries, SyncRequest::Changes(..)) => {
                let items = (0..50).map(|_| OutboxItem::First(0, self.forge.forged())).collect();
                SyncResponse::Page(items, cursor(begin + 50), true).encode()
            }
            (Attack::Forgeries, SyncRequest::Fetch(digests)) => {
                SyncResponse::Records(digests.iter().map(|_| self.forge.forged()).collect())
                    .encode()
            }
            (Attack::Pages, SyncRequest::Changes(..)) => self.odd_page(begin),
            (Attack::Pages, SyncRequest::Fetch(_)) => {
                SyncResponse::Records(vec![self.forge.first()]).encode()
            }
            (Attack::Replay, SyncRequest::Changes(..)) => {
                let raw = self.forge.first();
                let items = (0..500).map(|_| OutboxItem::Whole(0, raw.clone())).collect();
                SyncResponse::Page(items, cursor(begin + 500), true).encode()
            }
            (Attack::Flood, SyncRequest::Changes(..)) => {
                let items = (0..200).map(|_| OutboxItem::First(0, self.forge.record())).collect();
                SyncResponse::Page(items, cursor(begin + 200), true).encode()
            }
            (Attack::Compares, SyncRequest::Compare(..)) => {
                SyncResponse::Compare(self.forge.garbage()).encode()
            }
            (_, SyncRequest::Changes(..)) => {
                SyncResponse::Page(Vec::new(), cursor(begin), false).encode()
            }
            (_, SyncRequest::Compare(..)) => SyncResponse::Compare(Vec::new()).encode(),
            _ => SyncResponse::Done.encode(),
        }
    }

    fn odd_page(&mut self, begin: u64) -> Vec<u8> {
        self.position += 1;
        let end = match self.position % 5 {
            // The same position, back, in another store, and far away.
            0 => cursor(begin),
            1 => cursor(begin.saturating_sub(7)),
            2 => OutboxCursor { store: StoreId::from_bytes([1; 16]), ..cursor(begin + 1) },
            3 => cursor(u64::MAX),
            _ => cursor(begin + 1),
        };
        let entries = (0..1_500).map(|_| EntryId::from_bytes(self.forge.short())).collect();
        // The same record by name, repeated.
        let named = OutboxItem::Named(0, SignedHeader::digest_of(&self.forge.first().header));
        let items = vec![OutboxItem::Opened(entries), named.clone(), named.clone(), named];
        SyncResponse::Page(items, end, true).encode()
    }
}
