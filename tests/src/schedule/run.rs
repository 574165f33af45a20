//! Carries a plan out, and looks at what came of it.

use super::oracle::Oracle;
use super::{Plan, Step, noise};
use crate::cluster::Cluster;
use crate::disk::Disk;
use crate::node::{Seeded, lesson};
use klnode::engine::{Command, NewEntry, Receipt};
use klnode_crdt::claims::TextSet;
use klnode_crdt::entry::Entry;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::gset::Presence;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::record::Record;
use klnode_crdt::tally::Observation;
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use klnode_federation::proto::SyncState;
use klnode_federation::sim::{Counts, Fault, Knobs};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Nodes are given so long to come to rest after the last fault, in milliseconds: two sweeps.
const REST_MS: u64 = 60_000;
/// And so often.
const RESTS_MAX: usize = 12;
/// Then they are watched for so long.
const WATCH_MS: u64 = 300_000;
/// In that time a link carries at most so many frames: a comparison a minute, each way.
const FRAMES_MAX: usize = 24;
/// What is said on a calm network has arrived everywhere after so long.
const PASSING_MS: u64 = 5_000;

/// What a run was like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// One number for everything that happened, in order.
    pub trace: u64,
    /// What the network did.
    pub network: Counts,
    /// How often the power went.
    pub power_cuts: u64,
    /// How often a home was replaced by a copy.
    pub restores: u64,
    /// How often a filter, a membership or a block changed.
    pub changes_of_mind: u64,
    /// How often a node's program was replaced by one of another version.
    pub replaced: u64,
    /// Records of a later format that were sent.
    pub written_ahead: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Rests until all were equal.
    pub rests: u64,
}

/// What went wrong.
#[derive(Clone, Debug)]
pub struct Violation {
    /// In words.
    pub what: String,
}

/// Carries a plan out. A panic of a node is a violation, too.
pub fn run(plan: &Plan) -> Result<Report, Violation> {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut runner = Runner::new(plan);
        for (number, step) in plan.steps.iter().enumerate() {
            runner.oracle.number = number;
            runner.step(*step);
        }
        runner.finish()
    }));
    match caught {
        Ok(result) => result.map_err(|what| Violation { what }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied());
            Err(Violation { what: format!("a panic: {}", text.unwrap_or("without words")) })
        }
    }
}

struct Runner {
    nodes: Cluster,
    team: WorkspaceId,
    oracle: Oracle,
    secrets: Vec<String>,
    /// Homes as they once were.
    copies: BTreeMap<usize, Disk>,
    outside: BTreeSet<usize>,
    keeps_grudges: bool,
    report: Report,
    random: Seeded,
}

fn for_team(team: WorkspaceId, title: &str) -> NewEntry {
    NewEntry { workspace: team, ..lesson(title) }
}

impl Runner {
    fn new(plan: &Plan) -> Self {
        let mut random = Seeded(plan.seed);
        let mut nodes = Cluster::new(plan.seed, plan.nodes, Knobs::calm());
        let all: Vec<usize> = (0..plan.nodes).collect();
        let team = nodes.found(&all);
        // A tree, so that all are connected, and a few more.
        for at in 1..plan.nodes {
            let other = random.below(at as u64) as usize;
            let is_mine = random.below(6) == 0;
            nodes.pair(other, at, is_mine);
            if random.below(3) == 0 && at > 1 {
                nodes.pair((other + 1) % at, at, false);
            }
        }
        for (one, two) in nodes.links() {
            for (from, to) in [(one, two), (two, one)] {
                nodes.set_egress(from, to, |filter| {
                    filter.tags_deny.insert("private".into());
                });
            }
        }
        Self {
            nodes,
            team,
            oracle: Oracle::default(),
            secrets: Vec::new(),
            copies: BTreeMap::new(),
            outside: BTreeSet::new(),
            keeps_grudges: plan.seed.is_multiple_of(2),
            report: Report::default(),
            random,
        }
    }

    fn entry(&self, pick: usize) -> Option<EntryId> {
        let order = &self.oracle.order;
        // The newest are picked more often: what is old is mostly settled.
        let back = (pick % 64).min(pick % (order.len().max(1)));
        order.len().checked_sub(1 + back).map(|at| order[at])
    }

    fn link(&self, pick: usize) -> (usize, usize) {
        let links = self.nodes.links();
        let (one, two) = links[(pick / 2) % links.len()];
        if pick.is_multiple_of(2) { (one, two) } else { (two, one) }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Pass(ms) => self.nodes.pass(ms),
            Step::Heal => self.nodes.heal(),
            Step::Noise(loss, duplication, reordering) => {
                self.nodes.set_knobs(noise(loss, duplication, reordering));
            }
            Step::Part(bits) => {
                let side: Vec<usize> =
                    (0..self.nodes.count()).filter(|at| bits >> at & 1 == 1).collect();
                self.nodes.part_side(&side);
            }
            Step::Start(at) if !self.nodes.is_up(at) => self.nodes.restart(at),
            Step::Start(_) => {}
            Step::Jump(node, by_ms) => self.nodes.disturb_clock(&Fault::Jumped { node, by_ms }),
            Step::Freeze(node) => self.nodes.disturb_clock(&Fault::Froze { node }),
            Step::Thaw(node) => self.nodes.disturb_clock(&Fault::Thawed { node }),
            Step::Kill(at) if self.nodes.is_up(at) => self.nodes.crash(at),
            Step::Replace(at) => {
                self.report.replaced += 1;
                self.nodes.replace(at, 1 - self.nodes.ahead(at).min(1));
            }
            Step::WriteAhead(at) => self.nodes.write_ahead(at),
            Step::Copy(at) => {
                self.copies.insert(at, self.nodes.disk(at));
            }
            Step::Restore(at, is_swap) if self.nodes.is_up(at) => self.restore(at, is_swap),
            Step::PowerCut(at, calls, cut) if self.nodes.is_up(at) => {
                let seed = self.random.next_u64();
                self.report.power_cuts += 1;
                self.nodes.dim(at, calls);
                self.add(at, false);
                self.nodes.pass(300);
                self.nodes.lose_power(at, cut, seed);
                self.nodes.restart(at);
            }
            Step::Kill(_) | Step::Restore(..) | Step::PowerCut(..) => {}
            Step::Egress(_) | Step::Ingress(_) | Step::Member(_) | Step::Block(..) => {
                self.change_mind(step);
            }
            _ => self.operate(step),
        }
    }

    fn add(&mut self, at: usize, is_private: bool) {
        let title = format!("entry {} of run", self.oracle.number);
        let mut new = for_team(self.team, &title);
        if is_private {
            new.claims.push(Claim::Add(TextSet::TAGS, "private/own".into()));
            new.title = format!("secret {} of {at}", self.oracle.number);
            self.secrets.push(new.title.clone());
        }
        if let Ok(Receipt::Created(entry)) = self.nodes.run(at, Command::Create(Box::new(new))) {
            self.report.acknowledged += 1;
            if !is_private {
                self.oracle.created(entry, at, title);
            }
        }
    }

    fn operate(&mut self, step: Step) {
        let (at, pick) = match step {
            Step::Add(at) | Step::AddPrivate(at) => (at, 0),
            Step::Edit(at, pick)
            | Step::Observe(at, pick)
            | Step::Tag(at, pick)
            | Step::Untag(at, pick)
            | Step::Archive(at, pick)
            | Step::Retract(at, pick)
            | Step::Forget(at, pick) => (at, pick),
            _ => return,
        };
        if !self.nodes.is_up(at) {
            return;
        }
        if matches!(step, Step::Add(_) | Step::AddPrivate(_)) {
            return self.add(at, matches!(step, Step::AddPrivate(_)));
        }
        let Some(entry) = self.entry(pick) else { return };
        let title = format!("title {} by {at}", self.oracle.number);
        let claim = |claim| Command::Claim { entry, claims: vec![claim] };
        let command = match step {
            Step::Edit(..) => claim(Claim::Set(Register::TITLE, title.clone())),
            Step::Tag(..) => claim(Claim::Add(TextSet::TAGS, format!("tag/{at}"))),
            Step::Untag(..) => claim(Claim::Withdraw(TextSet::TAGS, format!("tag/{at}"))),
            Step::Archive(..) => claim(Claim::Archive(Presence::Present)),
            Step::Retract(..) => Command::Retract { entry },
            Step::Forget(..) => Command::Forget { entry, grounds: None },
            _ => Command::Observe { entry, of: Observation::Success, amount: Thousandths::ONE },
        };
        let held = self.titles_held(at, entry);
        let is_done = self.nodes.run(at, command).is_ok();
        let Some(told) = self.oracle.entries.get_mut(&entry) else { return };
        // What a node has not heard of, or what was forgotten, it may not touch.
        if !is_done {
            return;
        }
        self.report.acknowledged += 1;
        match step {
            Step::Edit(..) => self.oracle.edited(entry, &title, &held),
            Step::Retract(..) => told.is_retracted |= told.creator == at,
            Step::Forget(..) => told.is_forgotten = true,
            Step::Observe(..) => self.oracle.observed(entry, at, true),
            _ => {}
        }
    }

    /// Those of the titles that were ever given to an entry which a node has the bytes of.
    fn titles_held(&mut self, at: usize, entry: EntryId) -> BTreeSet<String> {
        let records = self.nodes.snapshot(at).entry_records(entry).expect("readable");
        let payloads: Vec<Vec<u8>> =
            records.iter().filter_map(|record| record.to_raw().payload).collect();
        let titles = self.oracle.entries.get(&entry).map(|told| &told.titles);
        let is_held =
            |title: &&String| payloads.iter().any(|bytes| contains(bytes, title.as_bytes()));
        titles.into_iter().flatten().filter(is_held).cloned().collect()
    }

    fn change_mind(&mut self, step: Step) {
        self.report.changes_of_mind += 1;
        match step {
            Step::Egress(pick) | Step::Ingress(pick) => {
                let (one, two) = self.link(pick);
                if !self.nodes.is_up(one) {
                    return;
                }
                let toggle = |tags: &mut BTreeSet<String>| {
                    if !tags.remove("tag") {
                        tags.insert("tag".into());
                    }
                };
                match step {
                    Step::Egress(_) => {
                        self.nodes.set_egress(one, two, |filter| toggle(&mut filter.tags_deny));
                    }
                    _ => self.nodes.set_ingress(one, two, |filter| toggle(&mut filter.tags_deny)),
                }
            }
            Step::Member(pick) if self.nodes.is_up(0) => {
                let at = 1 + pick % (self.nodes.count() - 1);
                let is_out = self.outside.contains(&at);
                self.set_member(at, is_out);
            }
            Step::Block(at, pick) if self.nodes.is_up(at) => {
                let other = pick % self.nodes.count();
                if other != at {
                    let author = self.nodes.author(other);
                    let is_blocked = self.nodes.is_blocked(at, author);
                    self.nodes.block(at, author, !is_blocked);
                }
            }
            _ => {}
        }
    }

    fn set_member(&mut self, at: usize, is_in: bool) {
        let entry = klnode_crdt::charter::entry(self.team);
        let author = self.nodes.author(at).to_string();
        let claim = match is_in {
            true => Claim::Add(TextSet::MEMBERS, author),
            false => Claim::Withdraw(TextSet::MEMBERS, author),
        };
        if self.nodes.run(0, Command::Claim { entry, claims: vec![claim] }).is_ok() {
            match is_in {
                true => self.outside.remove(&at),
                false => self.outside.insert(at),
            };
        }
    }

    fn restore(&mut self, at: usize, is_swap: bool) {
        let Some(copy) = self.copies.remove(&at) else { return };
        self.report.restores += 1;
        let alone = self.held_alone(at);
        self.oracle.lost(&alone);
        self.nodes.crash(at);
        if is_swap {
            self.copies.insert(at, self.nodes.disk(at));
        }
        self.nodes.restart_on(at, copy);
    }

    /// The entries of which a node holds something that nobody else holds.
    fn held_alone(&mut self, at: usize) -> BTreeSet<EntryId> {
        let mut others: Vec<usize> = (0..self.nodes.count()).collect();
        others.retain(|other| *other != at && self.nodes.is_up(*other));
        let mut alone: BTreeSet<EntryId> = self.nodes.holdings(at).into_keys().collect();
        alone.retain(|entry| {
            !others.iter().any(|other| is_covered(&mut self.nodes, at, *other, *entry))
        });
        alone
    }

    // The end.

    fn finish(mut self) -> Result<Report, String> {
        self.settle();
        let mut rests = 0;
        loop {
            self.nodes.pass(REST_MS);
            rests += 1;
            for (one, two) in self.nodes.links() {
                self.nodes.sync(one, two);
            }
            self.nodes.pass(5_000);
            let wrong = self.difference();
            match wrong {
                None => break,
                Some(what) if rests == RESTS_MAX => return Err(what),
                Some(_) => {}
            }
        }
        self.report.rests = rests as u64;
        self.check_told()?;
        self.check_frames()?;
        self.check_silence()?;
        self.check_passing()?;
        self.report.trace = self.nodes.trace();
        self.report.network = self.nodes.counts();
        self.report.written_ahead = self.nodes.written_ahead();
        Ok(self.report)
    }

    /// Those who are equal compare now and then, and that is all.
    fn check_silence(&mut self) -> Result<(), String> {
        let (sent, before) = (self.nodes.sent.len(), self.nodes.traffic());
        self.nodes.pass(WATCH_MS);
        let (frames, links) = (self.nodes.sent.len() - sent, self.nodes.links().len());
        if frames > FRAMES_MAX * links {
            return Err(format!("{frames} frames on {links} links after all were equal"));
        }
        match self.nodes.traffic() {
            after if after == before => Ok(()),
            after => Err(format!("after all were equal {after:?} was sent, {before:?} before")),
        }
    }

    /// Where nothing is lost, what is passed on is all there is: what a filter held back comes when
    /// it does so no longer, and no comparison has anything to mend.
    fn check_passing(&mut self) -> Result<(), String> {
        let pick = self.random.below(1 << 16) as usize;
        let (from, to) = self.link(pick);
        let before = self.nodes.traffic().differences;
        self.nodes.set_egress(from, to, |filter| {
            filter.tags_deny.insert("late".into());
        });
        self.nodes.pass(PASSING_MS);
        let mut new = for_team(self.team, "held back for a while");
        new.claims.push(Claim::Add(TextSet::TAGS, "late/own".into()));
        let entry = self.nodes.create(from, new);
        let (of, amount) = (Observation::Success, Thousandths::ONE);
        self.nodes.run(from, Command::Observe { entry, of, amount }).map_err(|e| e.to_string())?;
        self.nodes.pass(PASSING_MS);
        self.nodes.set_egress(from, to, |filter| {
            filter.tags_deny.remove("late");
        });
        self.nodes.pass(PASSING_MS);
        if let Some(what) = self.difference() {
            return Err(format!("a moment after {from} let {entry} pass to {to}: {what}"));
        }
        match self.nodes.traffic().differences - before {
            0 => Ok(()),
            found => Err(format!(
                "{found} comparisons found what was not passed on when {from} let {entry} go to {to}"
            )),
        }
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
    fn difference(&mut self) -> Option<String> {
        for (one, two) in self.nodes.links() {
            let mut refused = self.nodes.refused(one, two);
            refused.extend(self.nodes.refused(two, one));
            for (from, to) in [(one, two), (two, one)] {
                for (entry, digests) in self.nodes.holdings(from) {
                    if !self.nodes.is_released(from, to, entry) || refused.contains(&entry) {
                        continue;
                    }
                    if !is_covered(&mut self.nodes, from, to, entry) {
                        return Some(format!("{to} lacks what {from} releases to it of {entry}"));
                    }
                    let there = self.nodes.digests(to, entry);
                    if self.nodes.is_released(to, from, entry) && there != digests {
                        return Some(format!("{from} and {to} differ about {entry}"));
                    }
                }
                let preview = self.nodes.preview(from, to);
                if !preview.would_be.is_empty() || !preview.would_end.is_empty() {
                    return Some(format!("the preview of {from} for {to} is not what is so"));
                }
                let state = self.nodes.state(from, to);
                if !matches!(state, SyncState::Equal(_)) {
                    let odd = self.disagreement(from, to);
                    return Some(format!("{from} says of {to}: {state:?}{odd}"));
                }
            }
        }
        None
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
            }
        }
        for (at, from) in [(one, two), (two, one)] {
            for (digest, why) in self.nodes.refusals(at, from) {
                odd += &format!("\n  {at} has refused {digest} of {from}: {why}");
            }
        }
        odd
    }

    /// What was acknowledged, against what is held.
    fn check_told(&mut self) -> Result<(), String> {
        let oracle = self.oracle.clone();
        for (entry, told) in &oracle.entries {
            let mut holders = Vec::new();
            for at in 0..self.nodes.count() {
                let records = self.nodes.snapshot(at).entry(*entry).expect("readable");
                let is_held = !self.nodes.digests(at, *entry).is_empty();
                let tombstone = self.nodes.snapshot(at).tombstone(*entry).expect("readable");
                if is_held {
                    holders.push((at, tombstone.is_some(), records.to_entry()));
                }
            }
            let forgotten = holders.iter().filter(|(_, is_forgotten, _)| *is_forgotten).count();
            if forgotten > 0 && !told.is_forgotten {
                return Err(format!("{entry} is forgotten, and nobody asked for it"));
            }
            if forgotten > 0 && forgotten < holders.len() {
                return Err(format!("{entry} lives on at {} nodes", holders.len() - forgotten));
            }
            if forgotten > 0 {
                continue;
            }
            let is_there = holders.iter().any(|(at, ..)| *at == told.creator);
            if told.is_certain && !is_there {
                return Err(format!("{} lost its {entry}", told.creator));
            }
            for (at, _, held) in &holders {
                self.check_held(&oracle, *entry, *at, held)?;
            }
        }
        Ok(())
    }

    fn check_held(
        &mut self,
        oracle: &Oracle,
        entry: EntryId,
        at: usize,
        held: &Entry,
    ) -> Result<(), String> {
        for by in 0..self.nodes.count() {
            let counted = successes(held, self.nodes.author(by));
            let (least, most) = oracle.bounds(entry, by);
            let least = if by == at { least } else { 0 };
            if counted < least || counted > most {
                return Err(format!(
                    "{at} counts {counted} successes by {by} of {entry}; {least} to {most} were \
                     acknowledged"
                ));
            }
        }
        let members = (0..self.nodes.count()).map(|node| self.nodes.author(node)).collect();
        let mine = [self.nodes.author(at)].into();
        let view = held.view(FAR, &klnode_crdt::view::Entitlement { mine, members });
        let Some(title) = view.text(Register::TITLE) else { return Ok(()) };
        let told = &oracle.entries[&entry];
        if !told.titles.contains(title) {
            return Err(format!("{at} shows `{title}` for {entry}, which nobody wrote"));
        }
        let held = self.titles_held(at, entry);
        let newer = told.replaced.get(title).and_then(|newer| newer.intersection(&held).next());
        match newer {
            Some(newer) => Err(format!("{at} shows `{title}`, which `{newer}` has replaced")),
            None => Ok(()),
        }
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

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

/// Late enough that everything is due.
const FAR: WallTime = WallTime::from_millis(2_500_000_000_000);

/// All successes of an author, in whole observations: every cell, added up.
fn successes(held: &Entry, author: AuthorId) -> u64 {
    let Some(tally) = held.tallies.get(&author) else { return 0 };
    tally.successes.total(FAR.day(), &BTreeSet::new()).0 / 1_000
}

/// Whether a node holds all that another holds of an entry, or what came after it.
fn is_covered(nodes: &mut Cluster, from: usize, to: usize, entry: EntryId) -> bool {
    let here = nodes.snapshot(from).entry_records(entry).expect("readable");
    let there = nodes.snapshot(to).entry_records(entry).expect("readable");
    here.iter().all(|one| {
        let place = |record: &Record| (record.author(), record.header().facet);
        there.iter().any(|new| {
            new.header().facet == Facet::Tombstone
                || place(new) == place(one) && new.version().covers(&one.version())
        })
    })
}
