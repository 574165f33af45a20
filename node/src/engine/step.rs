//! The engine itself: commands in, one transaction, answers out.

use super::command::{Command, Ingested, Receipt, Rejection, Source, Verdict};
use super::covered::{CoveredInStep, CoveredLog};
use super::crowd::Crowds;
use super::hints::Unsaid;
use super::ingest::{Ask, Ingest, Kept};
use super::owed::Owed;
use super::peers::{REJECTED, refusal};
use super::tasks::TaskParams;
use super::validate;
use crate::store::rows::{OverlayRow, Seq};
use crate::store::{Batch, Durability, Error, Fault, Store};
use klnode_crdt::ids::{AuthorId, Boot, Digest};
use klnode_crdt::key::SecretKey;
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::time::{Clock, WallTime};
use klnode_scoring::cooccurrence;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// A gap between two steps, or a step back of the clock, after which the process may be another
/// life of its home: a resumed machine, a restored image.
const RESUME_GAP: Duration = Duration::from_secs(24 * 3_600);
const CLOCK_BACK_MAX: Duration = Duration::from_secs(300);

/// Commits that may follow one another without one of them being durable.
const DEFERRED_COMMITS_MAX: u32 = 256;
/// Where the disk says no, what was served is written down after so long, or with what is written next.
const SPARED: Duration = Duration::from_secs(60);

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
    /// The boot whose epoch is stored. One that was drawn in a group that failed is not.
    announced: Option<Boot>,
    last_step: WallTime,
    /// Whether the clocks say that this may be another life of the home.
    is_resumed: bool,
    /// Commits since the last durable one.
    deferred: u32,
    /// How many proofs each peer has brought, as of the last commit.
    proofs_brought: BTreeMap<AuthorId, u64>,
    /// A group is under way or has failed: what is in memory may not be what is stored.
    is_in_doubt: bool,
    /// Something of the step under way, or of the last one, may be on disk.
    may_be_written: bool,
    /// What closed the store, if it is closed.
    fault: Option<Fault>,
    /// When the disk last said no, if it has not said yes since.
    refused: Option<WallTime>,
    owed: Owed,
    covered: Arc<CoveredLog>,
}

impl Engine {
    /// Takes over a store and begins an epoch.
    pub fn start(store: Store, setup: Setup, now: WallTime) -> Result<Self, Error> {
        let Setup { key, entropy, judge, durability, cooccurrence, tasks } = setup;
        let mine = [key.author()].into();
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
        let announced = Some(own.boot);
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
            proofs_brought: BTreeMap::new(),
            is_in_doubt: false,
            may_be_written: false,
            fault: None,
            refused: None,
            owed: Owed::default(),
            covered: Arc::new(CoveredLog::new(head)),
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

    /// The records that were covered lately.
    pub(super) fn covered(&self) -> Arc<CoveredLog> {
        Arc::clone(&self.covered)
    }

    /// Grows with every commit that may have changed who is who without a record: somebody was
    /// blocked, convicted or made the person's own, or a workspace was named.
    pub fn society_changes(&self) -> u64 {
        self.own.society_changes
    }

    /// Whether the disk has said no, and not yes since.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.is_some()
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

    /// The same, whatever they meet: a damaged page can make redb panic. Where several do so together,
    /// one that panics costs none of the others: nothing of the group was written, and each is tried
    /// alone.
    pub(super) fn step_over(
        &mut self,
        commands: &[Command],
        now: WallTime,
    ) -> Vec<Result<Receipt, Rejection>> {
        let stepped = catch_unwind(AssertUnwindSafe(|| self.step(commands, now)));
        stepped.unwrap_or_else(|_| {
            tracing::error!("the writer met something damaged, and goes on");
            self.recover();
            let is_alone = commands.len() == 1 && !self.owed.is_due();
            if is_alone || self.fault.is_some() || self.may_be_written {
                let rejection = Rejection::from(panicked());
                return commands.iter().map(|_| Err(rejection.clone())).collect();
            }
            self.one_by_one(commands, now)
        })
    }

    /// What is due goes first, and is let go where it fails for another reason than the disk.
    fn one_by_one(
        &mut self,
        commands: &[Command],
        now: WallTime,
    ) -> Vec<Result<Receipt, Rejection>> {
        self.refused = None;
        for command in self.owed.take_due() {
            let _ = self.step_over(&[command], now);
        }
        // What was put off again does not meet those who follow.
        let due = self.owed.take_due();
        let answers = commands.chunks(1).flat_map(|command| self.step_over(command, now)).collect();
        due.into_iter().for_each(|command| self.owed.put_off(command));
        answers
    }

    fn apply(&mut self, commands: &[Command], now: WallTime) -> Vec<Result<Receipt, Rejection>> {
        if self.is_spared(commands, now) {
            return commands.iter().map(|command| self.put_off(command)).collect();
        }
        if let Err(rejection) = self.heal() {
            self.refused = Some(now);
            return self.refuse(commands, &rejection);
        }
        let due = self.owed.due();
        match self.try_step(&due, commands, now) {
            Ok(receipts) => {
                self.refused = None;
                receipts
            }
            // One damaged row must not take the rest of the group with it.
            Err(Error::Damaged { .. }) if commands.len() > 1 || !due.is_empty() => {
                self.one_by_one(commands, now)
            }
            Err(error) => {
                self.meet_fault(fault_of(&error));
                let has_no_room = self.fault == Some(Fault::Full);
                // At once, since nothing can be read until then; what stays closed is tried again
                // before the next command.
                let is_closed = self.heal().is_err();
                self.refused = (has_no_room || is_closed).then_some(now);
                self.refuse(commands, &Rejection::from(error))
            }
        }
    }

    /// Whether commands are put off. Each attempt to write where the disk says no closes the store for a
    /// moment to those who read it, and whoever reads would make one.
    fn is_spared(&self, commands: &[Command], now: WallTime) -> bool {
        // A clock that was set back since says nothing.
        let is_early = |since: WallTime| since <= now && now < since.plus(SPARED);
        self.refused.is_some_and(is_early) && commands.iter().all(Command::is_of_reading)
    }

    fn put_off(&mut self, command: &Command) -> Result<Receipt, Rejection> {
        self.owed.put_off(command.clone());
        Ok(Receipt::Done(self.head))
    }

    /// Answers what could not be written. Whoever reads is not told of a disk that says no, since reading
    /// goes on.
    fn refuse(
        &mut self,
        commands: &[Command],
        rejection: &Rejection,
    ) -> Vec<Result<Receipt, Rejection>> {
        let is_the_disk = self.owed.is_due();
        let answer = |command: &Command| match is_the_disk && command.is_of_reading() {
            true => self.put_off(command),
            false => Err(rejection.clone()),
        };
        commands.iter().map(answer).collect()
    }

    /// Notes what closed the store. What was committed since the last durable commit is not in the store
    /// that is opened next, unless the disk has kept what it said it had not.
    fn meet_fault(&mut self, fault: Option<Fault>) {
        self.fault = fault;
        if fault.is_some() {
            self.owed.fall_due();
            if std::mem::take(&mut self.deferred) > 0 {
                self.announced = None;
            }
        }
    }

    /// Goes on after a panic, whose answers are lost. What was begun is not committed, and the store is
    /// opened again: closing it makes durable what was not.
    fn recover(&mut self) {
        self.fault = Some(Fault::Full);
        self.owed.become_durable();
        let _ = self.heal();
    }

    /// Writes down what was put off, if that can be done by now.
    pub(super) fn settle(&mut self, now: impl Fn() -> WallTime) {
        if self.owed.is_due() {
            self.refused = None;
            let _ = self.step_over(&[], now());
        }
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
        due: &[Command],
        commands: &[Command],
        now: WallTime,
    ) -> Result<Vec<Result<Receipt, Rejection>>, Error> {
        let durability = self.durability_of(commands);
        let batch = self.store.batch(durability)?;
        if std::mem::replace(&mut self.is_in_doubt, true) {
            self.own.proofs_brought.clone_from(&self.proofs_brought);
            // Whoever became the person's own in a group that failed did not. Where a row of a peer
            // is damaged nobody can tell, and others are to be written for all the same.
            if let Some(stored) = Error::unless_damaged(batch.mine())? {
                self.own.mine = stored.into_iter().chain([self.own.key.author()]).collect();
            }
        }
        let is_resumed = std::mem::take(&mut self.is_resumed);
        let was_asleep = is_resumed || self.last_step.plus(RESUME_GAP) < now;
        let went_back = now.plus(CLOCK_BACK_MAX) < self.last_step;
        self.last_step = now;
        let (writer, judge) = (&mut self.own, &mut *self.judge);
        let (crowds, kept, unsaid) = (Crowds::default(), Kept::default(), Unsaid::new());
        let (caller, has_met_past, covered) = (None, false, CoveredInStep::default());
        let mut ingest =
            Ingest { writer, judge, now, caller, has_met_past, crowds, kept, unsaid, covered };
        if was_asleep || went_back {
            // Stamps of a clock that stood wrong go with the boot that gave them out.
            ingest.writer.clock = Clock::default();
            ingest.draw_boot(&batch)?;
        } else if Some(ingest.writer.boot) != self.announced {
            batch.begin_epoch(ingest.writer.boot, now)?;
        }
        let mut receipts = Vec::with_capacity(due.len() + commands.len());
        for command in due.iter().chain(commands) {
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
        let covered = std::mem::take(&mut ingest.covered);
        let head = batch.head()?;
        self.may_be_written = true;
        batch.commit()?;
        self.covered.add(covered);
        (self.head, self.announced, self.is_in_doubt) = (head, Some(self.own.boot), false);
        self.proofs_brought.clone_from(&self.own.proofs_brought);
        let is_deferred = durability == Durability::Deferred;
        self.deferred = if is_deferred { self.deferred + 1 } else { 0 };
        self.owed.committed(commands, is_deferred);
        receipts.drain(..due.len());
        let rewrites = |command: &Command| matches!(command.act(), Command::Rewrite);
        if commands.iter().any(rewrites)
            && let Err(error) = self.rewrite()
        {
            let error = Arc::new(error);
            let answers = commands.iter().zip(&mut receipts);
            for (_, answer) in answers.filter(|(command, _)| rewrites(command)) {
                *answer = Err(Rejection::Store(error.clone()));
            }
        }
        Ok(receipts)
    }

    /// Writes the store anew. Everything is read for it, the most seldom page included, and what was
    /// committed before is to be answered for whatever it meets.
    fn rewrite(&mut self) -> Result<(), Error> {
        match catch_unwind(AssertUnwindSafe(|| self.store.rewrite())) {
            Ok(rewritten) => rewritten.inspect_err(|error| self.meet_fault(fault_of(error))),
            Err(_) => {
                self.recover();
                Err(panicked())
            }
        }
    }
}

/// What is said of a panic in the store.
fn panicked() -> Error {
    Error::damaged("a page", "what is on it contradicts itself")
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
                let outer = self.caller.replace(*caller);
                let receipt = self.apply_command(batch, command);
                self.caller = outer;
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
            Command::NotePrior { entry, prior } => return self.note_prior(batch, *entry, *prior),
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
