//! What must be so when all faults are over.

use super::run::{Report, Runner, contains, for_team, is_covered, is_covered_but_for};
use crate::cluster::SWEEP_MS;
use crate::disk::Fault;
use klnode::engine::Command;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, Digest, EntryId};
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::SyncState;
use klnode_federation::proto::filter::Rule;
use std::collections::BTreeSet;

/// Nodes are given so long to come to rest after the last fault, in milliseconds: two sweeps.
const REST_MS: u64 = 60_000;
/// And so often.
const RESTS_MAX: u64 = 9;
/// Whatever a node overlooks comes right when all is examined again for the time alone: it must be
/// right before.
const _: () = assert!(RESTS_MAX * (REST_MS + PASSING_MS) < SWEEP_MS);
/// Then they are watched for so long.
const WATCH_MS: u64 = 300_000;
/// In that time a link carries at most so many frames: a comparison a minute, each way.
const FRAMES_MAX: usize = 24;
/// What is said on a calm network has arrived everywhere after so long.
const PASSING_MS: u64 = 5_000;
/// Then whoever could not write what came asks for it again.
const AGAIN_MS: u64 = 35_000;
/// Of so many seeds one more may wait for a sweep.
pub const UNSWEPT_SEEDS: u64 = 500;
/// What is tagged so is held back for a while.
const LATE: &str = "late";
/// And has this title.
const LATE_TITLE: &str = "held back for a while";

/// What is not as it should be.
enum Difference {
    /// Something would pass now, and nobody has looked since. A judgement moves with what is learned of
    /// an author elsewhere, and only the next sweep looks at what passes by it. That is seldom: whoever
    /// runs many seeds holds it to [`UNSWEPT_SEEDS`].
    Unswept(String),
    /// Anything else.
    Wrong(String),
}

impl Runner {
    /// Lets all come to rest, and looks.
    pub(super) fn finish(mut self) -> Result<Report, String> {
        self.settle();
        let mut rests = 0;
        loop {
            self.nodes.pass(REST_MS);
            rests += 1;
            for (one, two) in self.nodes.links() {
                self.nodes.sync(one, two);
            }
            self.nodes.pass(PASSING_MS);
            match self.difference() {
                None => break,
                Some(Difference::Unswept(what)) if rests == RESTS_MAX => {
                    self.report.unswept = Some(what);
                    self.nodes.pass(SWEEP_MS);
                }
                Some(Difference::Unswept(what) | Difference::Wrong(what)) if rests >= RESTS_MAX => {
                    return Err(what);
                }
                Some(_) => {}
            }
        }
        self.report.rests = rests;
        self.check_told()?;
        self.check_refusals()?;
        self.check_frames()?;
        self.check_silence()?;
        self.check_passing()?;
        self.check_waiting()?;
        self.check_stores()?;
        self.nodes.note_holdings();
        self.report.trace = self.nodes.trace();
        self.report.network = self.nodes.counts();
        self.report.written_ahead = self.nodes.written_ahead();
        Ok(self.report)
    }

    /// Those who are equal compare now and then, and that is all.
    fn check_silence(&mut self) -> Result<(), String> {
        let (sent, before) = (self.nodes.sent.len(), self.nodes.records_sent());
        self.nodes.pass(WATCH_MS);
        let (frames, links) = (self.nodes.sent.len() - sent, self.nodes.links().len());
        if frames > FRAMES_MAX * links {
            return Err(format!("{frames} frames on {links} links after all were equal"));
        }
        match self.nodes.records_sent() - before {
            0 => Ok(()),
            records => Err(format!("{records} records were sent after all were equal")),
        }
    }

    /// Where nothing is lost, what is passed on is all there is: what a filter held back comes when
    /// it does so no longer, what is forgotten or taken back is so behind a filter too, and no comparison
    /// has anything to mend.
    fn check_passing(&mut self) -> Result<(), String> {
        let (from, to) = self.equal_pair();
        let before = self.nodes.differences(from, to);
        self.hold_back(from, to, true);
        let mut new = for_team(self.team, LATE_TITLE);
        new.claims.push(Claim::Add(TextSet::TAGS, LATE.into()));
        let entry = self.nodes.create(from, new);
        let (of, amount) = (Observation::Success, Thousandths::ONE);
        self.nodes.run(from, Command::Observe { entry, of, amount }).map_err(|e| e.to_string())?;
        self.nodes.pass(PASSING_MS);
        self.hold_back(from, to, false);
        let is_taken = !self.nodes.refused(to, from).contains(&entry);
        let is_due = is_taken && self.nodes.is_released(from, to, entry);
        if is_due && !is_covered(&mut self.nodes, from, to, entry) {
            return Err(format!("{from} let {entry} pass to {to}, and it has not come"));
        }
        self.hold_back(from, to, true);
        self.check_taking_back(from, to, entry)?;
        match self.nodes.differences(from, to) - before {
            0 => Ok(()),
            found => Err(format!(
                "{found} comparisons found what {from} had not passed on to {to} of {entry}"
            )),
        }
    }

    /// What a node forgets that a peer no longer has a right to is forgotten there as well; or, in every
    /// other run, its text is gone there once its creator takes it back.
    fn check_taking_back(&mut self, from: usize, to: usize, entry: EntryId) -> Result<(), String> {
        let is_there = !self.nodes.digests(to, entry).is_empty();
        let is_read = self.has_text(to, entry, LATE_TITLE);
        // A name is as good as a coin, and leaves the draws that follow as they are.
        let is_forgotten = entry.as_bytes()[0].is_multiple_of(2);
        let command = match is_forgotten {
            true => Command::Forget { entry },
            false => Command::Retract { entry },
        };
        self.nodes.run(from, command).map_err(|e| e.to_string())?;
        self.nodes.pass(PASSING_MS);
        let tombstone = self.nodes.snapshot(to).tombstone(entry).expect("readable");
        if is_forgotten && is_there && tombstone.is_none() {
            return Err(format!("{from} has forgotten {entry}, and {to} has not heard of it"));
        }
        if is_read && self.has_text(to, entry, LATE_TITLE) {
            return Err(format!("{from} has taken {entry} back, and {to} holds its text"));
        }
        Ok(())
    }

    /// What comes while a disk is full is asked for again.
    fn check_waiting(&mut self) -> Result<(), String> {
        // A comparison would bring it too.
        let (from, to) = self.equal_pair();
        // Either nothing can be written, or what came cannot and what is noted of it can.
        let period = [1, 9][self.random.below(2) as usize];
        self.nodes.fail(to, period, Fault::NoSpace);
        let entry = self.nodes.create(from, for_team(self.team, "comes too early"));
        self.nodes.pass(PASSING_MS);
        self.nodes.mend(to);
        self.nodes.pass(AGAIN_MS);
        let is_taken = !self.nodes.refused(to, from).contains(&entry);
        let is_due = is_taken && self.nodes.is_released(from, to, entry);
        match is_due && !is_covered(&mut self.nodes, from, to, entry) {
            false => Ok(()),
            true => Err(format!("{to} had no room for {entry} of {from}, and lacks it now")),
        }
    }

    /// Two neighbours that have just compared, and seldom do so again within the next minute.
    fn equal_pair(&mut self) -> (usize, usize) {
        let pick = self.random.below(1 << 16) as usize;
        let (one, two) = self.link(pick);
        self.nodes.sync(one, two);
        self.nodes.sync(two, one);
        self.nodes.pass(PASSING_MS);
        (one, two)
    }

    /// Has a node hold back from another what is tagged for it, or no longer; and lets that be heard.
    fn hold_back(&mut self, from: usize, to: usize, is_held: bool) {
        self.nodes.set_egress(from, to, |filter| match is_held {
            true => drop(filter.tags_deny.insert(LATE.into())),
            false => drop(filter.tags_deny.remove(LATE)),
        });
        self.nodes.pass(PASSING_MS);
    }

    /// Ends all faults; and, but for every other run, what nodes hold against each other. All are
    /// of one version again: those that are not never meet.
    fn settle(&mut self) {
        for at in 0..self.nodes.count() {
            if self.nodes.ahead(at) > 0 {
                self.nodes.replace(at, 0);
            }
        }
        self.nodes.calm();
        if self.keeps_grudges {
            return;
        }
        for at in 0..self.nodes.count() {
            for other in 0..self.nodes.count() {
                let author = self.nodes.author(other);
                if self.nodes.is_blocked(at, author) {
                    self.nodes.block(at, author, false);
                }
            }
        }
        for (one, two) in self.nodes.links() {
            for (at, from) in [(one, two), (two, one)] {
                self.nodes.set_ingress(at, from, |filter| filter.tags_deny.clear());
            }
        }
    }

    /// What is not as it should be between neighbours.
    fn difference(&mut self) -> Option<Difference> {
        let mut unswept = None;
        for (one, two) in self.nodes.links() {
            let mut refused = self.nodes.refused(one, two);
            refused.extend(self.nodes.refused(two, one));
            for (from, to) in [(one, two), (two, one)] {
                for (entry, digests) in self.nodes.holdings(from) {
                    if !self.nodes.is_released(from, to, entry) || refused.contains(&entry) {
                        continue;
                    }
                    let unheard = self.unheard(from, to, entry);
                    if !is_covered_but_for(&mut self.nodes, &unheard, (from, to), entry) {
                        let odd = self.disagreement(to, from);
                        let what = format!("{to} lacks what {from} releases to it of {entry}{odd}");
                        return Some(Difference::Wrong(what));
                    }
                    let there = self.nodes.digests(to, entry);
                    if !self.nodes.is_released(to, from, entry) {
                        continue;
                    }
                    if there != digests {
                        let what = format!("{from} and {to} differ about {entry}");
                        return Some(Difference::Wrong(what));
                    }
                    if self.nodes.payloads(from, entry) != self.nodes.payloads(to, entry) {
                        let what = format!("{from} and {to} have not erased the same of {entry}");
                        return Some(Difference::Wrong(what));
                    }
                }
                let preview = self.nodes.preview(from, to);
                let (more, less) = (preview.would_be, preview.would_end);
                let what = format!(
                    "the preview of {from} for {to} is not what is so: {more:?} would be, {less:?} \
                     would end"
                );
                match (more.is_empty(), less.is_empty()) {
                    (true, true) => {}
                    (false, true) => unswept = Some(Difference::Unswept(what)),
                    (_, false) => return Some(Difference::Wrong(what)),
                }
                let state = self.nodes.state(from, to);
                if !matches!(state, SyncState::Equal(_)) {
                    let odd = self.disagreement(from, to);
                    let what = format!("{from} says of {to}: {state:?}{odd}");
                    return Some(Difference::Wrong(what));
                }
            }
        }
        unswept
    }

    /// Whose words a node may lack of what is released to it, without a refusal that stands for them:
    /// whom it blocks, of an entry that passes one way alone. Of that third parties' records are not
    /// compared; and a comparison in the moment in which only one side knew that it does takes the
    /// refusal for one of what is no longer there. Unblocking has everything read again (seed 510096).
    fn unheard(&mut self, from: usize, to: usize, entry: EntryId) -> BTreeSet<AuthorId> {
        if self.nodes.is_released(to, from, entry) {
            return BTreeSet::new();
        }
        let authors: Vec<AuthorId> =
            (0..self.nodes.count()).map(|at| self.nodes.author(at)).collect();
        authors.into_iter().filter(|author| self.nodes.is_blocked(to, *author)).collect()
    }

    /// Whose records these are.
    fn told_of(&mut self, at: usize, digests: &BTreeSet<Digest>) -> String {
        let snapshot = self.nodes.snapshot(at);
        let mut told = String::new();
        for digest in digests {
            let Some(record) = snapshot.record(*digest).expect("readable") else { continue };
            let by = (0..self.nodes.count()).find(|by| self.nodes.author(*by) == record.author());
            told += &format!(" {at} has {:?} by {by:?};", record.header().facet);
        }
        told
    }

    /// Where two nodes do not agree about what one releases to the other, and what each refused.
    fn disagreement(&mut self, one: usize, two: usize) -> String {
        let mut odd = String::new();
        let (a, b) = (self.nodes.author(one), self.nodes.author(two));
        let entries: BTreeSet<EntryId> = self
            .nodes
            .holdings(one)
            .into_keys()
            .chain(self.nodes.holdings(two).into_keys())
            .collect();
        for entry in entries {
            let here = self.nodes.snapshot(one).release(b, entry).expect("readable");
            let there = self.nodes.snapshot(two).release(a, entry).expect("readable");
            let is_odd = here.out != there.back || here.back != there.out;
            let (mine, theirs) = (self.nodes.digests(one, entry), self.nodes.digests(two, entry));
            if is_odd || mine != theirs {
                let (lack, more) =
                    (theirs.difference(&mine).count(), mine.difference(&theirs).count());
                odd += &format!(
                    "\n  {entry}: {:?}/{:?} here, {:?}/{:?} there; {more} held here alone, {lack} there",
                    here.out, here.back, there.out, there.back
                );
                for (at, alone) in [(one, &mine - &theirs), (two, &theirs - &mine)] {
                    odd += &self.told_of(at, &alone);
                }
            }
        }
        for (at, from) in [(one, two), (two, one)] {
            for (digest, why) in self.nodes.refusals(at, from) {
                odd += &format!("\n  {at} has refused {digest} of {from}: {why}");
            }
        }
        odd
    }

    /// No refusal outlasts what it was for: nobody would ask for the record again.
    fn check_refusals(&mut self) -> Result<(), String> {
        for (one, two) in self.nodes.links() {
            for (at, from) in [(one, two), (two, one)] {
                for (author, why) in self.nodes.refused_for(at, from) {
                    if !self.is_due(at, from, author, &why) {
                        return Err(format!("{at} still refuses a record of {from}: {why}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether what a record was refused for is still so.
    fn is_due(&mut self, at: usize, from: usize, author: Option<AuthorId>, why: &str) -> bool {
        if why.starts_with("format ") {
            return true;
        }
        if why == "its author is blocked" {
            return author.is_some_and(|author| self.nodes.is_blocked(at, author));
        }
        // No filter of a schedule asks for anything else.
        why == Rule::TagDenied.to_string() && !self.nodes.ingress(at, from).tags_deny.is_empty()
    }

    /// Every row of every store is whole and where it belongs.
    fn check_stores(&mut self) -> Result<(), String> {
        for at in 0..self.nodes.count() {
            let damage = self.nodes.snapshot(at).check().map_err(|error| error.to_string())?;
            if let Some(first) = damage.first() {
                return Err(format!("the store of {at} is damaged: {first}"));
            }
        }
        Ok(())
    }

    /// Nothing that is private has left its node.
    fn check_frames(&self) -> Result<(), String> {
        for secret in &self.secrets {
            let has = |frame: &[u8]| contains(frame, secret.as_bytes());
            if let Some(sent) = self.nodes.sent.iter().find(|sent| has(&sent.frame)) {
                return Err(format!("`{secret}` went from {} to {}", sent.from, sent.to));
            }
        }
        Ok(())
    }
}
