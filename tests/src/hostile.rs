//! A peer that speaks the protocol and means harm: it joins by a ticket, like anyone, and then does
//! one of the things that [`Attack`] names, over real connections, against a node that is not in on
//! it.
//!
//! Tests use it against a node of their own, and `cargo run -p klnode-tests --bin hostile` lets
//! anyone try it on theirs.

mod bytes;

use crate::node::Seeded;
use bytes::Forge;
use klnode_crdt::header::SignedHeader;
use klnode_crdt::ids::{AuthorId, Boot, Digest, EntryId, Nonce, StoreId};
use klnode_crdt::key::SecretKey;
use klnode_crdt::time::WallTime;
use klnode_federation::net::{self, Event, Events, Handle, Limits, Protocol};
use klnode_federation::proto::message::{Answer, Ask, Cursor, Greeting, Item, Receipt};
use klnode_federation::proto::pairing::{self, Card, Meeting};
use klnode_federation::proto::ticket::Ticket;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Bytes that are nothing.
    Garbage,
    /// Few bytes that say they are many: lengths of 4 GiB, deep nesting, long runs.
    Bombs,
    /// Records that their authors never made: changed, swapped, moved.
    Forgeries,
    /// Pages that do not follow, that never end, that open what nobody has, that name one thing twice.
    Pages,
    /// Comparisons that make no sense.
    Compares,
    /// Questions for what it may not have.
    Probes,
    /// One good record, over and over.
    Replay,
    /// As many good records as it can make.
    Flood,
    /// Word of erasures that nobody asked for.
    Receipts,
    /// Answers to something else, names that do not exist.
    Strays,
}

impl Attack {
    /// All of them.
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

    /// Its name.
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

    /// What the victim has to ask before it can do harm, by the question's name: it lies in answers.
    fn must_be_asked(self) -> Option<&'static str> {
        match self {
            Self::Forgeries | Self::Pages | Self::Replay | Self::Flood => Some("changes"),
            Self::Compares => Some("compare"),
            _ => None,
        }
    }
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Frames that were sent, questions and answers.
    pub sent: u64,
    /// What the victim answered, by kind.
    pub refused: u64,
    /// It asked for patience so often.
    pub later: u64,
    /// It answered so many questions as if they were good.
    pub answered: u64,
    /// Exchanges that came to nothing.
    pub failed: u64,
    /// How often it closed the connection.
    pub sent_away: u64,
    /// Records that it gave away, and whose digests were asked for.
    pub given: u64,
    /// What it asked itself, and how often, by the question's name.
    pub asked: BTreeMap<&'static str, u64>,
}

impl Outcome {
    /// Whether the victim has asked for what the attack answers with, if it has to be asked.
    pub fn has_landed(&self, what: Attack) -> bool {
        what.must_be_asked().is_none_or(|ask| self.asked.contains_key(ask))
    }
}

/// Questions that are open at once.
const OPEN_MAX: u64 = 8;

/// It tries to be let in for so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// When an attack is over.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// So long after it was let in.
    After(Duration),
    /// When it is sent away; or so long after it was let in.
    SentAway(Duration),
    /// So long after it was let in, and not before the victim has asked for what it answers with; but
    /// nobody waits for that for ever.
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

/// Attacks the node that wrote the ticket until it is over.
///
/// `wanted` are digests to ask for, with [`Attack::Probes`].
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

/// Nothing holds this peer back.
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

/// What a question is called.
fn name(ask: &Ask) -> &'static str {
    match ask {
        Ask::Hello(_) => "hello",
        Ask::Changes(..) => "changes",
        Ask::Fetch(_) => "fetch",
        Ask::Notify(_) => "notify",
        Ask::Compare(..) => "compare",
        Ask::Acknowledge(_) => "ack",
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

fn cursor(position: u64) -> Cursor {
    Cursor { store: STORE, epoch: Boot(666), position }
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
            Event::Response { id: 0, frame, .. } => match pairing::Answer::decode(&frame) {
                Ok(pairing::Answer::Welcome(..)) => self.is_paired = true,
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
        let proof = Meeting { secret: &ticket.secret, inviter, joiner, nonce }.joiner_proof();
        let card = Card { name: "a friend".into(), addresses: Vec::new() };
        let ask = pairing::Ask::Join(ticket.secret.name().into(), nonce, proof, card);
        // A busy network is asked again at the next connection.
        let _ = self.handle.request(self.victim, Protocol::Pair, 0, ask.encode());
    }

    fn told(&mut self, frame: &[u8]) {
        match Answer::decode(frame) {
            Ok(Answer::Refused(_)) => self.outcome.refused += 1,
            Ok(Answer::Later(_)) => self.outcome.later += 1,
            Ok(Answer::Records(records)) => {
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

    /// What it asks next.
    fn question(&mut self) -> Vec<u8> {
        let random = self.forge.random.next_u64();
        match self.what {
            Attack::Garbage => self.forge.garbage(),
            Attack::Bombs => self.forge.bomb(),
            // Whoever has not read what is put out for it is not compared with.
            Attack::Compares if !self.outcome.has_landed(self.what) => {
                Ask::Changes(None, 2_000).encode()
            }
            Attack::Compares => {
                Ask::Compare(random.is_multiple_of(2), self.forge.garbage()).encode()
            }
            Attack::Probes if random.is_multiple_of(3) => {
                let known = self.wanted.iter().copied();
                Ask::Fetch(known.chain((0..100).map(|_| self.forge.digest())).collect()).encode()
            }
            Attack::Probes if random % 3 == 1 => {
                Ask::Changes(Some(Cursor { store: STORE, ..cursor(random) }), 2_000).encode()
            }
            Attack::Receipts => {
                let entry = |forge: &mut Forge| EntryId::from_bytes(forge.short());
                let receipts = (0..1_000).map(|_| Receipt {
                    entry: entry(&mut self.forge),
                    told: u32::MAX,
                    acknowledged: u32::MAX,
                });
                Ask::Acknowledge(receipts.collect()).encode()
            }
            Attack::Strays => self.forge.stray(),
            _ if random.is_multiple_of(8) => Ask::Hello(self.greeting()).encode(),
            // There is always more to read here.
            _ => Ask::Notify(random >> 1).encode(),
        }
    }

    /// What it answers.
    fn answer(&mut self, frame: &[u8]) -> Vec<u8> {
        let Ok(ask) = Ask::decode(frame) else { return Vec::new() };
        *self.outcome.asked.entry(name(&ask)).or_default() += 1;
        if let (Ask::Hello(_), false) = (&ask, self.what == Attack::Garbage) {
            return Answer::Hello(self.greeting()).encode();
        }
        let begin = match &ask {
            Ask::Changes(Some(cursor), _) => cursor.position,
            _ => 0,
        };
        match (self.what, &ask) {
            (Attack::Garbage, _) => self.forge.garbage(),
            (Attack::Bombs, _) => self.forge.bomb(),
            (Attack::Strays, _) => Answer::Records(vec![self.forge.record()]).encode(),
            (Attack::Forgeries, Ask::Changes(..)) => {
                let items = (0..50).map(|_| Item::First(0, self.forge.forged())).collect();
                Answer::Page(items, cursor(begin + 50), true).encode()
            }
            (Attack::Forgeries, Ask::Fetch(digests)) => {
                Answer::Records(digests.iter().map(|_| self.forge.forged()).collect()).encode()
            }
            (Attack::Pages, Ask::Changes(..)) => self.odd_page(begin),
            (Attack::Pages, Ask::Fetch(_)) => Answer::Records(vec![self.forge.first()]).encode(),
            (Attack::Replay, Ask::Changes(..)) => {
                let raw = self.forge.first();
                let items = (0..500).map(|_| Item::Whole(0, raw.clone())).collect();
                Answer::Page(items, cursor(begin + 500), true).encode()
            }
            (Attack::Flood, Ask::Changes(..)) => {
                let items = (0..200).map(|_| Item::First(0, self.forge.record())).collect();
                Answer::Page(items, cursor(begin + 200), true).encode()
            }
            (Attack::Compares, Ask::Compare(..)) => Answer::Compare(self.forge.garbage()).encode(),
            (_, Ask::Changes(..)) => Answer::Page(Vec::new(), cursor(begin), false).encode(),
            (_, Ask::Compare(..)) => Answer::Compare(Vec::new()).encode(),
            _ => Answer::Done.encode(),
        }
    }

    fn odd_page(&mut self, begin: u64) -> Vec<u8> {
        self.position += 1;
        let end = match self.position % 5 {
            // Nowhere, back, in another store, and far away.
            0 => cursor(begin),
            1 => cursor(begin.saturating_sub(7)),
            2 => Cursor { store: StoreId::from_bytes([1; 16]), ..cursor(begin + 1) },
            3 => cursor(u64::MAX),
            _ => cursor(begin + 1),
        };
        let entries = (0..1_500).map(|_| EntryId::from_bytes(self.forge.short())).collect();
        // And the same record by name, again and again.
        let named = Item::Named(0, SignedHeader::digest_of(&self.forge.first().header));
        let items = vec![Item::Opened(entries), named.clone(), named.clone(), named];
        Answer::Page(items, end, true).encode()
    }
}
