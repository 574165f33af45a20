//! The engine itself: commands in, one transaction, answers out.

use super::command::{Command, Ingested, Receipt, Rejection, Source, Verdict};
use super::crowd::Crowds;
use super::hints::Unsaid;
use super::ingest::{Ask, Ingest, Kept};
use super::peers::{REJECTED, refusal};
use super::tasks::TaskParams;
use super::validate;
use crate::store::rows::{CallerRow, OverlayRow, Seq};
use crate::store::{Batch, Durability, Error, Fault, Store};
use klnode_crdt::ids::{AuthorId, Boot, Digest};
use klnode_crdt::key::SecretKey;
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::time::{Clock, WallTime};
use klnode_scoring::cooccurrence;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A gap between two steps, or a step back of the clock, after which the process may be another
/// life of its home: a resumed machine, a restored image.
const RESUME_GAP: Duration = Duration::from_secs(24 * 3_600);
const CLOCK_BACK_MAX: Duration = Duration::from_secs(300);

/// Commits that may follow one another without one of them being durable.
const DEFERRED_COMMITS_MAX: u32 = 256;
/// What was served is not written down on a full disk, but tried again after so long.
const FULL_RETRY: Duration = Duration::from_secs(60);

/// Decides about a record before it is merged.
pub trait Judge: Send {
    /// Speaks its verdict.
    fn judge(&mut self, record: &Record, source: Source) -> Verdict;
}

/// Any function will do as a judge.
impl<F: FnMut(&Record, Source) -> Verdict + Send> Judge for F {
    fn judge(&mut self, record: &Record, source: Source) -> Verdict {
        self(record, source)
    }
}

/// Fills a buffer with random bytes.
type Entropy = Box<dyn FnMut(&mut [u8]) + Send>;

/// What an engine is made of, beside its store.
pub struct Setup {
    /// The node's key.
    pub key: SecretKey,
    /// Other keys of the same person.
    pub mine: BTreeSet<AuthorId>,
    /// Where random bytes come from: the operating system, or a seed.
    pub entropy: Entropy,
    /// Who judges.
    pub judge: Box<dyn Judge>,
    /// When commits are durable; anything but durable is for measurements.
    pub durability: Durability,
    /// How entries that are served together grow together.
    pub cooccurrence: cooccurrence::Params,
    /// What the end of a task counts, and when it comes by itself.
    pub tasks: TaskParams,
}

/// The node as an author.
pub(super) struct Own {
    pub(super) key: SecretKey,
    pub(super) mine: BTreeSet<AuthorId>,
    pub(super) boot: Boot,
    pub(super) clock: Clock,
    pub(super) entropy: Entropy,
    pub(super) cooccurrence: cooccurrence::Params,
    pub(super) tasks: TaskParams,
    /// How often it may have become another who is who, beside what the feed tells.
    pub(super) society_changes: u64,
    /// How many proofs against authors unknown here each peer has brought since the start.
    pub(super) proofs_brought: BTreeMap<AuthorId, u64>,
}

impl Own {
    pub(super) fn draw_boot(&mut self) {
        let mut bytes = [0; 8];
        (self.entropy)(&mut bytes);
        self.boot = Boot(u64::from_be_bytes(bytes));
    }
}

/// The only writer of a store.
pub struct Engine {
    store: Store,
    own: Own,
    judge: Box<dyn Judge>,
    durability: Durability,
    head: Seq,
    /// The boot whose epoch is durable. One that was drawn in a group that failed is not.
    announced: Boot,
    last_step: WallTime,
    /// Whether the clocks say that this may be another life of the home.
    is_resumed: bool,
    /// Commits since the last durable one.
    deferred: u32,
    /// Keys of the same person that no row of a peer tells of, this node's own among them.
    given: BTreeSet<AuthorId>,
    /// A group is under way or has failed: what is in memory may not be what is stored.
    is_in_doubt: bool,
    /// Something of the step under way, or of the last one, may be on disk.
    may_be_written: bool,
    /// What closed the store, if it is closed.
    fault: Option<Fault>,
    /// Since when the disk is full, and what was said then.
    full: Option<(WallTime, Rejection)>,
}

impl Engine {
    /// Takes over a store and begins an epoch.
    pub fn start(store: Store, setup: Setup, now: WallTime) -> Result<Self, Error> {
        let Setup { key, mut mine, entropy, judge, durability, cooccurrence, tasks } = setup;
        mine.insert(key.author());
        let given = mine.clone();
        let (boot, clock) = (Boot(0), Clock::default());
        let (society_changes, proofs_brought) = (0, BTreeMap::new());
        let mut own = Own {
            key,
            mine,
            boot,
            clock,
            entropy,
            cooccurrence,
            tasks,
            society_changes,
            proofs_brought,
        };
        own.draw_boot();
        let batch = store.batch(Durability::Durable)?;
        batch.belong_to(own.key.author())?;
        own.mine.extend(batch.mine()?);
        batch.begin_epoch(own.boot, now)?;
        batch.list_findings(now, own.tasks.expires_after)?;
        let head = batch.head()?;
        batch.commit()?;
        let announced = own.boot;
        Ok(Self {
            store,
            own,
            judge,
            durability,
            head,
            announced,
            last_step: now,
            is_resumed: false,
            deferred: 0,
            given,
            is_in_doubt: false,
            may_be_written: false,
            fault: None,
            full: None,
        })
    }

    /// The store it writes.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The key it writes as.
    pub fn author(&self) -> AuthorId {
        self.own.key.author()
    }

    /// The process start it writes as.
    pub fn boot(&self) -> Boot {
        self.own.boot
    }

    /// The newest position of the feed.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// Grows with every commit that may have changed who is who without a record: somebody was
    /// blocked, convicted or made the person's own, or a workspace was named.
    pub fn society_changes(&self) -> u64 {
        self.own.society_changes
    }

    /// What the clock said when the last step was taken, or it started.
    pub(super) fn last_step(&self) -> WallTime {
        self.last_step
    }

    /// Has the next step draw a boot: this process may be a second life of its home, and another
    /// that went on from the same image may have used the numbers that come next.
    pub(super) fn resumed(&mut self) {
        self.is_resumed = true;
    }

    /// Applies commands in one transaction and answers each. Every answer that is not a rejection
    /// is durable, but for what is incidental.
    pub fn step(&mut self, commands: &[Command], now: WallTime) -> Vec<Result<Receipt, Rejection>> {
        self.may_be_written = false;
        self.apply(commands, now)
    }

    fn apply(&mut self, commands: &[Command], now: WallTime) -> Vec<Result<Receipt, Rejection>> {
        if let Some(rejection) = self.spared(commands, now) {
            return commands.iter().map(|_| Err(rejection.clone())).collect();
        }
        if let Err(rejection) = self.heal() {
            return commands.iter().map(|_| Err(rejection.clone())).collect();
        }
        match self.try_step(commands, now) {
            Ok(receipts) => {
                self.full = None;
                receipts
            }
            // One damaged row must not take the rest of the group with it.
            Err(Error::Damaged { .. }) if commands.len() > 1 => {
                let one_by_one = commands.chunks(1).flat_map(|command| self.apply(command, now));
                one_by_one.collect()
            }
            Err(error) => {
                self.fault = fault_of(&error);
                // At once, since nothing can be read until then; what stays closed is tried again
                // before the next command.
                let is_full = self.fault == Some(Fault::Full);
                let _ = self.heal();
                let rejection = Rejection::from(error);
                self.full = is_full.then(|| (now, rejection.clone()));
                commands.iter().map(|_| Err(rejection.clone())).collect()
            }
        }
    }

    /// Why what was served is not written down now. Each attempt on a full disk closes the store for a
    /// moment to those who read it, and whoever reads would make one.
    fn spared(&self, commands: &[Command], now: WallTime) -> Option<Rejection> {
        let (since, rejection) = self.full.as_ref()?;
        let is_served = |command: &Command| matches!(command.act(), Command::Served(_));
        let is_early = now < since.plus(FULL_RETRY);
        (is_early && commands.iter().all(is_served)).then(|| rejection.clone())
    }

    /// Goes on after a panic in the middle of a step, whose answers are lost: a damaged page can make
    /// redb panic. What was begun is not committed, and the store is opened again.
    pub(super) fn recover(&mut self, commands: usize) -> Vec<Result<Receipt, Rejection>> {
        self.fault = Some(Fault::Full);
        let _ = self.heal();
        let panicked = Error::damaged("a page", "what is on it contradicts itself");
        vec![Err(Rejection::from(panicked)); commands]
    }

    /// Whether the commands of a step that panicked can be applied again: none of them was, and the
    /// store is open.
    pub(super) fn can_try_again(&self) -> bool {
        self.fault.is_none() && !self.may_be_written
    }

    /// Opens the store again if a fault closed it: redb writes nothing more until then.
    fn heal(&mut self) -> Result<(), Rejection> {
        if let Some(fault) = self.fault {
            self.store.reopen(fault).map_err(|error| Rejection::Reopen(Arc::new(error)))?;
            self.fault = None;
        }
        Ok(())
    }

    /// Bytes of others need two phases; what was served is written down with whatever comes next,
    /// or by itself after a while: pages that it frees are not used again before.
    fn durability_of(&self, commands: &[Command]) -> Durability {
        let is_foreign = commands.iter().any(|command| matches!(command.act(), Command::Ingest(_)));
        let is_incidental = commands.iter().all(Command::is_incidental);
        match self.durability {
            Durability::Durable if is_foreign => Durability::DurableForeign,
            Durability::Durable if is_incidental && self.deferred < DEFERRED_COMMITS_MAX => {
                Durability::Deferred
            }
            other => other,
        }
    }

    fn try_step(
        &mut self,
        commands: &[Command],
        now: WallTime,
    ) -> Result<Vec<Result<Receipt, Rejection>>, Error> {
        let durability = self.durability_of(commands);
        let batch = self.store.batch(durability)?;
        if std::mem::replace(&mut self.is_in_doubt, true) {
            // Whoever became the person's own in a group that failed did not. Where a row of a peer
            // is damaged nobody can tell, and others are to be written for all the same.
            if let Some(stored) = Error::unless_damaged(batch.mine())? {
                self.own.mine = self.given.iter().copied().chain(stored).collect();
            }
        }
        let is_resumed = std::mem::take(&mut self.is_resumed);
        let was_asleep = is_resumed || self.last_step.plus(RESUME_GAP) < now;
        let went_back = now.plus(CLOCK_BACK_MAX) < self.last_step;
        self.last_step = now;
        let (writer, judge) = (&mut self.own, &mut *self.judge);
        let (caller, has_caller) = (CallerRow::default(), false);
        let (has_met_past, crowds, kept) = (false, Crowds::default(), Kept::default());
        let unsaid = Unsaid::new();
        let mut ingest =
            Ingest { writer, judge, now, caller, has_caller, has_met_past, crowds, kept, unsaid };
        if was_asleep || went_back {
            // Stamps of a clock that stood wrong go with the boot that gave them out.
            ingest.writer.clock = Clock::default();
            ingest.draw_boot(&batch)?;
        } else if ingest.writer.boot != self.announced {
            batch.begin_epoch(ingest.writer.boot, now)?;
        }
        let mut receipts = Vec::with_capacity(commands.len());
        for command in commands {
            if command.reads_use() {
                batch.wipe_forgotten()?;
            }
            match ingest.apply_command(&batch, command) {
                // A fault of the store takes the whole group with it.
                Err(Rejection::Store(error)) => {
                    return Err(Arc::into_inner(error).unwrap_or(Error::Closed));
                }
                answer => receipts.push(answer),
            }
        }
        ingest.settle_hints(&batch)?;
        let head = batch.head()?;
        self.may_be_written = true;
        batch.commit()?;
        (self.head, self.announced, self.is_in_doubt) = (head, self.own.boot, false);
        self.deferred = if durability == Durability::Deferred { self.deferred + 1 } else { 0 };
        let rewrites = |command: &Command| matches!(command.act(), Command::Rewrite);
        if commands.iter().any(rewrites) {
            let rewritten = self.store.rewrite().map_err(Arc::new);
            self.fault = rewritten.as_ref().err().and_then(|error| fault_of(error));
            let answers = commands.iter().zip(&mut receipts);
            for (_, answer) in answers.filter(|(command, _)| rewrites(command)) {
                if let Err(error) = &rewritten {
                    *answer = Err(Rejection::Store(error.clone()));
                }
            }
        }
        Ok(receipts)
    }
}

/// Whether an error has closed the store.
fn fault_of(error: &Error) -> Option<Fault> {
    match error {
        Error::Full => Some(Fault::Full),
        Error::Io(_) | Error::Closed => Some(Fault::Disk),
        Error::Damaged { .. } | Error::Busy | Error::Abandoned | Error::NoRoom => None,
    }
}

impl Ingest<'_> {
    fn apply_command(&mut self, batch: &Batch, command: &Command) -> Result<Receipt, Rejection> {
        match command {
            Command::As { caller, command } => {
                let before = batch.head()?;
                let outer = (self.caller, self.has_caller);
                (self.caller, self.has_caller) = (*caller, true);
                let receipt = self.apply_command(batch, command);
                (self.caller, self.has_caller) = outer;
                let receipt = receipt?;
                batch.put_caller(before, *caller)?;
                return Ok(receipt);
            }
            Command::Create(new) => return self.create(batch, new),
            Command::Promote(promotion) => return self.promote(batch, promotion),
            Command::Checkout(act) => self.about_checkout(batch, act)?,
            Command::Claim { entry, claims } => return self.claim_by_hand(batch, *entry, claims),
            Command::Observe { entry, of, amount } => {
                return self.observe_outside(batch, *entry, (*of, *amount));
            }
            Command::Reset { entry } => return self.reset(batch, *entry),
            Command::Retract { entry } => return self.retract(batch, *entry),
            Command::Forget { entry } => return self.forget(batch, *entry),
            Command::Ingest(arrivals) => {
                let ingested = arrivals
                    .iter()
                    .map(|arrival| self.ingest(batch, &arrival.record, Source::Peer(arrival.from)));
                return Ok(Receipt::Ingested(ingested.collect::<Result<_, _>>()?));
            }
            Command::Release(digest) => return self.release(batch, *digest),
            Command::Rewrite => {}
            Command::Reject(digest) => reject(batch, *digest)?,
            Command::Mark { entry, marks } => {
                self.must_hold(batch, *entry)?;
                validate::short("note", marks.note.as_deref().unwrap_or_default())?;
                batch.put_overlay(*entry, &marks.on(batch.overlay(*entry)?))?;
            }
            Command::Served(row) => {
                validate::short("query", &row.query)?;
                validate::short("caller", &row.caller)?;
                self.note_served(batch, row)?;
            }
            Command::Looked(looks) => self.note_looks(batch, looks)?,
            Command::ConfirmAsPerson { entry } => {
                return Ok(Receipt::Task(self.confirm_as_person(batch, *entry)?));
            }
            Command::ConfirmPrimed { entry } => {
                self.confirm_primed(batch, *entry)?;
            }
            Command::Task(act) => return self.about_task(batch, act),
            Command::Finding(act) => return self.about_finding(batch, act),
            Command::Upkeep(act) => return self.upkeep(batch, act),
            Command::Peers(acts) => return self.note_peers(batch, acts),
        }
        Ok(Receipt::Done(batch.head()?))
    }

    /// The operator has decided: what waited is merged whatever the judge says.
    fn release(&mut self, batch: &Batch, digest: Digest) -> Result<Receipt, Rejection> {
        let row = batch.quarantined(digest)?.ok_or(Rejection::NotQuarantined(digest))?;
        let record = Record::read_back(&row.record, Absence::Stripped)?;
        let ingested = self.take(batch, &record, Source::Peer(row.from), Ask::Nobody)?;
        // What cannot be taken yet goes on waiting.
        if !matches!(ingested, Ingested::Deferred(_) | Ingested::Refused(_)) {
            batch.drop_quarantined(&record)?;
        }
        if matches!(ingested, Ingested::Merged(_)) {
            // What the scan says of it is known, and does not keep it out of answers again.
            let overlay = batch.overlay(record.entry())?;
            batch.put_overlay(record.entry(), &OverlayRow { is_cleared: true, ..overlay })?;
        }
        Ok(Receipt::Ingested(vec![ingested]))
    }
}

/// The operator has decided: what waited goes, and is not asked for again where it was offered.
fn reject(batch: &Batch, digest: Digest) -> Result<(), Rejection> {
    let row = batch.quarantined(digest)?.ok_or(Rejection::NotQuarantined(digest))?;
    let record = Record::read_back(&row.record, Absence::Stripped)?;
    batch.drop_quarantined(&record)?;
    let (slot, refusal) = refusal(&record, REJECTED.into());
    for offer in batch.offers_read()? {
        batch.put_refusal(offer, slot, &refusal)?;
    }
    Ok(())
}
