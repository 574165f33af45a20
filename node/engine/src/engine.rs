//! The engine itself: applies a group of commands in one transaction and answers each.

use super::command::{Command, IngestOutcome, InsightCommand, Receipt, RecordSource, Rejection};
use super::document_cache::{DocumentCache, DocumentChanges};
use super::entry_validation;
use super::local_author::{Entropy, LocalAuthor};
use super::member_removal_cache::RemovalCache;
use super::open_documents::OpenDocuments;
use super::quota_counts::QuotaCounts;
use super::record_intake::{DroppedHints, Screening, StepCache, Transaction};
use super::record_refusal::{REJECTED, refusal};
use super::record_screen::RecordScreen;
use super::replaced_records::{ReplacedLog, StepReplacements};
use super::task_params::TaskParams;
use super::unflushed_servings::UnflushedReads;
use klnode_crdt::ids::{AuthorId, Boot, Digest};
use klnode_crdt::record::{Absence, Record};
use klnode_crdt::signing_key::SecretKey;
use klnode_crdt::time::{Clock, WallTime};
use klnode_scoring::cooccurrence;
use klnode_store::row_types::{MarksRow, Seq};
use klnode_store::{Batch, Durability, Error, Store, StoreFault};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// After a longer gap between two steps, or a larger step back of the clock, this process may be a
/// resumed machine or a restored image, and another process may have used the same boot number.
const RESUME_GAP: Duration = Duration::from_secs(24 * 3_600);
const CLOCK_BACK_MAX: Duration = Duration::from_secs(300);

/// Most consecutive commits without a durable one.
const DEFERRED_COMMITS_MAX: u32 = 256;
/// After the disk refused a write, the engine holds back the log of reads for this long, or until
/// the next other write.
const READ_DEFERRAL: Duration = Duration::from_secs(60);

/// The parts of an engine besides its store.
pub struct Setup {
    /// The key that signs this node's records.
    pub key: SecretKey,
    /// The random source: the operating system, or a seeded generator in tests.
    pub entropy: Entropy,
    /// Decides whether a record is merged, quarantined or refused.
    pub judge: Box<dyn RecordScreen>,
    /// Durability of commits. Any level below durable is for benchmarks only.
    pub durability: Durability,
    /// How the association between entries that are served together grows.
    pub cooccurrence: cooccurrence::Params,
    /// Weights of observations at the end of a task, and the time after which a task expires.
    pub tasks: TaskParams,
}

/// The only writer of a store.
pub struct Engine {
    store: Store,
    own: LocalAuthor,
    judge: Box<dyn RecordScreen>,
    durability: Durability,
    head: Seq,
    /// The boot whose epoch is stored. A boot drawn in a group that failed is not.
    announced: Option<Boot>,
    last_step: WallTime,
    /// Whether the clocks suggest that this process was resumed or restored from an image.
    is_resumed: bool,
    /// Commits since the last durable one.
    deferred: u32,
    /// The value of `own.proofs_brought` at the last commit.
    proofs_brought: BTreeMap<AuthorId, u64>,
    /// A group is being applied or has failed, so memory and store may differ.
    is_in_doubt: bool,
    /// Whether some writes of the current or last step may have reached the disk.
    may_be_written: bool,
    /// The fault that closed the store, if it is closed.
    fault: Option<StoreFault>,
    /// Time of the last refused write, if no write has succeeded since.
    refused: Option<WallTime>,
    unflushed: UnflushedReads,
    covered: Arc<ReplacedLog>,
}

impl Engine {
    /// Takes over a store and begins a new epoch.
    pub fn start(store: Store, setup: Setup, now: WallTime) -> Result<Self, Error> {
        let Setup { key, entropy, judge, durability, cooccurrence, tasks } = setup;
        let mine = [key.author()].into();
        let (boot, clock) = (Boot(0), Clock::default());
        let (membership_changes, proofs_brought) = (0, BTreeMap::new());
        let mut own = LocalAuthor {
            key,
            mine,
            boot,
            clock,
            entropy,
            cooccurrence,
            tasks,
            membership_changes,
            proofs_brought,
            documents: DocumentCache::default(),
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
            unflushed: UnflushedReads::default(),
            covered: Arc::new(ReplacedLog::new(head)),
        })
    }

    /// The store that this engine writes.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The author of this engine's records.
    pub fn author(&self) -> AuthorId {
        self.own.key.author()
    }

    /// The number of this process start; records of this engine carry it.
    pub fn boot(&self) -> Boot {
        self.own.boot
    }

    /// The newest feed position.
    pub fn head(&self) -> Seq {
        self.head
    }

    /// The documents in memory, for readers.
    pub fn documents(&self) -> &Arc<OpenDocuments> {
        self.own.documents.shared()
    }

    /// The log of recently replaced records.
    pub(super) fn replaced_log(&self) -> Arc<ReplacedLog> {
        Arc::clone(&self.covered)
    }

    /// Membership revision: grows with every commit that may have changed membership without a feed
    /// record, because an author was blocked, convicted or marked as this person's own, or a
    /// workspace was named.
    pub fn membership_changes(&self) -> u64 {
        self.own.membership_changes
    }

    /// Whether the disk refused the last write.
    pub(super) fn has_write_failed(&self) -> bool {
        self.refused.is_some()
    }

    /// Time of the last step, or of the start.
    pub(super) fn last_step(&self) -> WallTime {
        self.last_step
    }

    /// Makes the next step draw a new boot, because this process may have been restored from an
    /// image: another process started from the same image may have used the next sequence numbers.
    pub(super) fn mark_resumed(&mut self) {
        self.is_resumed = true;
    }

    /// Applies commands in one transaction and answers each. Every answer except a rejection or the
    /// answer to an incidental command is durable.
    pub fn step(&mut self, commands: &[Command], now: WallTime) -> Vec<Result<Receipt, Rejection>> {
        self.may_be_written = false;
        self.apply(commands, now)
    }

    /// Like [`Self::step`], but survives panics: a damaged page can make redb panic. If the panic
    /// occurs in a group, nothing of the group was written, and each command is tried alone so that
    /// only the failing one is lost.
    pub(super) fn step_catching_panics(
        &mut self,
        commands: &[Command],
        now: WallTime,
    ) -> Vec<Result<Receipt, Rejection>> {
        let stepped = catch_unwind(AssertUnwindSafe(|| self.step(commands, now)));
        stepped.unwrap_or_else(|_| {
            tracing::error!("The writer panicked, probably on damaged data, and continues; run `klnode check store`");
            self.recover();
            let is_alone = commands.len() == 1 && !self.unflushed.is_missing();
            if is_alone || self.fault.is_some() || self.may_be_written {
                let rejection = Rejection::from(panic_error());
                return commands.iter().map(|_| Err(rejection.clone())).collect();
            }
            self.step_one_by_one(commands, now)
        })
    }

    /// Applies the unflushed reads first, and drops any that fails for a reason other than the
    /// disk.
    fn step_one_by_one(
        &mut self,
        commands: &[Command],
        now: WallTime,
    ) -> Vec<Result<Receipt, Rejection>> {
        self.refused = None;
        for command in self.unflushed.take_missing() {
            let _ = self.step_catching_panics(&[command], now);
        }
        // Reads that were deferred again must not be applied before each of the commands.
        let due = self.unflushed.take_missing();
        let answers = commands
            .chunks(1)
            .flat_map(|command| self.step_catching_panics(command, now))
            .collect();
        due.into_iter().for_each(|command| self.unflushed.defer(command));
        answers
    }

    fn apply(&mut self, commands: &[Command], now: WallTime) -> Vec<Result<Receipt, Rejection>> {
        if self.defers_reads(commands, now) {
            return commands.iter().map(|command| self.defer(command)).collect();
        }
        if let Err(rejection) = self.reopen_if_closed() {
            self.refused = Some(now);
            return self.refuse(commands, &rejection);
        }
        let due = self.unflushed.missing();
        match self.try_step(&due, commands, now) {
            Ok(receipts) => {
                self.refused = None;
                receipts
            }
            // A damaged row must not fail the rest of the group.
            Err(Error::Damaged { .. }) if commands.len() > 1 || !due.is_empty() => {
                self.step_one_by_one(commands, now)
            }
            Err(error) => {
                self.record_fault(closing_fault(&error));
                let has_no_room = self.fault == Some(StoreFault::Full);
                // Reopen at once, since reads fail until then. If that fails, the next command
                // tries again.
                let is_closed = self.reopen_if_closed().is_err();
                self.refused = (has_no_room || is_closed).then_some(now);
                self.refuse(commands, &Rejection::from(error))
            }
        }
    }

    /// Whether to hold back these commands. Each failed write closes the store to readers for a
    /// moment, and logging every read would cause such a write.
    fn defers_reads(&self, commands: &[Command], now: WallTime) -> bool {
        // Ignore the time if the clock was set back since.
        let is_early = |since: WallTime| since <= now && now < since.plus(READ_DEFERRAL);
        self.refused.is_some_and(is_early) && commands.iter().all(Command::only_logs_reads)
    }

    fn defer(&mut self, command: &Command) -> Result<Receipt, Rejection> {
        self.unflushed.defer(command.clone());
        Ok(Receipt::Done(self.head))
    }

    /// Answers commands that could not be written. Commands that only log reads succeed even if the
    /// disk fails, since reads continue.
    fn refuse(
        &mut self,
        commands: &[Command],
        rejection: &Rejection,
    ) -> Vec<Result<Receipt, Rejection>> {
        let is_disk_fault = self.unflushed.is_missing();
        let answer = |command: &Command| match is_disk_fault && command.only_logs_reads() {
            true => self.defer(command),
            false => Err(rejection.clone()),
        };
        commands.iter().map(answer).collect()
    }

    /// Records the fault that closed the store. Commits since the last durable one will be missing
    /// from the reopened store, unless the disk kept writes that it reported as failed.
    fn record_fault(&mut self, fault: Option<StoreFault>) {
        self.fault = fault;
        if fault.is_some() {
            self.unflushed.mark_missing();
            if std::mem::take(&mut self.deferred) > 0 {
                self.announced = None;
            }
        }
    }

    /// Recovers after a panic. The open transaction is dropped and the store reopened; closing it
    /// makes deferred commits durable.
    fn recover(&mut self) {
        self.fault = Some(StoreFault::Full);
        self.unflushed.note_durable();
        let _ = self.reopen_if_closed();
    }

    /// Writes the unflushed reads, if the disk accepts them by now.
    pub(super) fn flush_reads(&mut self, now: impl Fn() -> WallTime) {
        if self.unflushed.is_missing() {
            self.refused = None;
            let _ = self.step_catching_panics(&[], now());
        }
    }

    /// Empties the page cache of the store, unless a reader holds it or a fault has closed it.
    /// Deferred commits are made durable first. Returns true if the cache is empty.
    pub fn release_cache(&mut self) -> bool {
        if self.fault.is_some() || self.unflushed.is_missing() {
            return false;
        }
        let release = || {
            self.store.batch(self.durability).and_then(Batch::commit)?;
            Ok(self.store.release_cache())
        };
        match catch_unwind(AssertUnwindSafe(release)) {
            Ok(Ok(released)) => {
                (self.deferred, self.fault) = (0, released.is_err().then_some(StoreFault::Full));
                self.unflushed.note_durable();
                released.unwrap_or_default()
            }
            Ok(Err(error)) => {
                self.record_fault(closing_fault(&error));
                let _ = self.reopen_if_closed();
                false
            }
            Err(_) => {
                self.recover();
                false
            }
        }
    }

    /// Reopens the store if a fault closed it; redb accepts no writes until then.
    fn reopen_if_closed(&mut self) -> Result<(), Rejection> {
        if let Some(fault) = self.fault {
            self.store.reopen(fault).map_err(|error| Rejection::Reopen(Arc::new(error)))?;
            self.fault = None;
        }
        Ok(())
    }

    /// Foreign bytes need a two-phase commit. The log of reads is flushed with the next other
    /// write, or alone after a number of deferred commits; redb does not reuse the pages it frees
    /// before that.
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
            self.own.documents.clear();
            // Undo additions to this person's keys made by a group that failed. If a peer row is
            // damaged, the set in memory stays so that writes can continue.
            if let Some(stored) = Error::unless_damaged(batch.mine())? {
                self.own.mine = stored.into_iter().chain([self.own.key.author()]).collect();
            }
        }
        let is_resumed = std::mem::take(&mut self.is_resumed);
        let was_asleep = is_resumed || self.last_step.plus(RESUME_GAP) < now;
        let went_back = now.plus(CLOCK_BACK_MAX) < self.last_step;
        self.last_step = now;
        let (writer, judge) = (&mut self.own, &mut *self.judge);
        let (quota, kept, dropped_hints) =
            (QuotaCounts::default(), StepCache::default(), DroppedHints::new());
        let (caller, has_left_slots, covered) = (None, false, StepReplacements::default());
        let (removals, documents) = (RemovalCache::default(), DocumentChanges::default());
        let mut ingest = Transaction {
            writer,
            judge,
            now,
            caller,
            has_left_slots,
            quota,
            kept,
            dropped_hints,
            covered,
            removals,
            documents,
        };
        if was_asleep || went_back {
            // Stamps from a wrong clock belong to the old boot, so the new boot starts with a fresh
            // clock.
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
                // A store fault fails the whole group.
                Err(Rejection::Store(error)) => {
                    return Err(Arc::into_inner(error).unwrap_or(Error::Closed));
                }
                answer => receipts.push(answer),
            }
        }
        let covered = ingest.complete(&batch)?;
        let head = batch.head()?;
        self.may_be_written = true;
        batch.commit()?;
        self.own.documents.publish(head);
        self.covered.add(covered);
        (self.head, self.announced, self.is_in_doubt) = (head, Some(self.own.boot), false);
        self.proofs_brought.clone_from(&self.own.proofs_brought);
        self.note_durability(commands, durability);
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

    fn note_durability(&mut self, commands: &[Command], durability: Durability) {
        let is_deferred = durability == Durability::Deferred;
        self.deferred = if is_deferred { self.deferred + 1 } else { 0 };
        self.unflushed.note_commit(commands, is_deferred);
    }

    /// Copies the store into a new file. This reads every page, including ones that are otherwise
    /// rarely read, so it can meet damage; the commands committed before keep their answers.
    fn rewrite(&mut self) -> Result<(), Error> {
        match catch_unwind(AssertUnwindSafe(|| self.store.rewrite())) {
            Ok(rewritten) => rewritten.inspect_err(|error| self.record_fault(closing_fault(error))),
            Err(_) => {
                self.recover();
                Err(panic_error())
            }
        }
    }
}

/// The error reported for a panic inside the store.
fn panic_error() -> Error {
    Error::damaged("a page", "its contents are inconsistent")
}

/// Returns the fault if the error has closed the store.
fn closing_fault(error: &Error) -> Option<StoreFault> {
    match error {
        Error::Full => Some(StoreFault::Full),
        Error::Io(_) | Error::Closed => Some(StoreFault::Disk),
        Error::Damaged { .. } | Error::Busy | Error::Abandoned | Error::NoRoom => None,
    }
}

impl Transaction<'_> {
    /// Applies the consequences of the step's commands, and returns the records that it replaced.
    fn complete(&mut self, batch: &Batch) -> Result<StepReplacements, Error> {
        self.apply_removals(batch)?;
        self.merge_documents(batch)?;
        self.remove_dropped_hints(batch)?;
        Ok(std::mem::take(&mut self.covered))
    }

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
                let ingested = arrivals.iter().map(|arrival| {
                    self.ingest(batch, &arrival.record, RecordSource::Peer(arrival.from))
                });
                return Ok(Receipt::Ingested(ingested.collect::<Result<_, _>>()?));
            }
            Command::Release(digest) => return self.release(batch, *digest),
            Command::Rewrite => {}
            Command::Reject(digest) => reject(batch, *digest)?,
            Command::Mark { entry, marks } => {
                self.must_hold(batch, *entry)?;
                entry_validation::short("note", marks.note.as_deref().unwrap_or_default())?;
                batch.put_overlay(*entry, &marks.on(batch.overlay(*entry)?))?;
            }
            Command::ReleasePassages { entry, numbers } => {
                self.release_passages(batch, *entry, numbers)?;
            }
            Command::NotePrior { entry, prior } => return self.note_prior(batch, *entry, *prior),
            Command::NoteSource { entry, row, dated } => {
                return self.note_source(batch, *entry, row, *dated);
            }
            Command::Served(row) => {
                entry_validation::short("query", &row.query)?;
                entry_validation::short("caller", &row.caller)?;
                self.note_served(batch, row)?;
            }
            Command::Looked(looks) => self.note_looks(batch, looks)?,
            Command::Insight(InsightCommand::Dismiss(at, row)) => batch.put_dismissal(*at, row)?,
            Command::Insight(InsightCommand::Restore(at)) => {
                batch.drop_dismissal(*at)?;
            }
            Command::ConfirmAsPerson { entry } => {
                return Ok(Receipt::Task(self.confirm_as_person(batch, *entry)?));
            }
            Command::ConfirmPrimed { entry } => {
                self.confirm_primed(batch, *entry)?;
            }
            Command::Task(act) => return self.about_task(batch, act),
            Command::Finding(act) => return self.about_finding(batch, act),
            Command::Maintenance(act) => return self.maintenance(batch, act),
            Command::Peers(acts) => return self.note_peers(batch, acts),
            Command::Document(command) => return self.about_document(batch, command),
            Command::Removal(command) => return self.run_removal(batch, command),
        }
        Ok(Receipt::Done(batch.head()?))
    }

    /// Merges a quarantined record without asking the judge, since the operator has decided.
    fn release(&mut self, batch: &Batch, digest: Digest) -> Result<Receipt, Rejection> {
        let row = batch.quarantined(digest)?.ok_or(Rejection::NotQuarantined(digest))?;
        let record = Record::read_back(&row.record, Absence::Stripped)?;
        let ingested =
            self.take(batch, &record, RecordSource::Peer(row.from), Screening::Nobody)?;
        // A record that cannot be merged yet stays in quarantine.
        if !matches!(ingested, IngestOutcome::Deferred(_) | IngestOutcome::Refused(_)) {
            batch.drop_quarantined(&record)?;
        }
        if matches!(ingested, IngestOutcome::Merged(_)) {
            // The operator has seen the scan result, so it no longer keeps the entry out of
            // answers.
            let overlay = batch.overlay(record.entry())?;
            batch.put_overlay(record.entry(), &MarksRow { is_cleared: true, ..overlay })?;
        }
        Ok(Receipt::Ingested(vec![ingested]))
    }
}

/// Deletes a quarantined record and refuses it for good in every offer that contains it.
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
