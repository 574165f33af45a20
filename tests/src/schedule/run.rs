//! Executes a plan step by step.

use super::oracle::{Content, Oracle};
use super::{Plan, Step, noise};
use crate::cluster::Cluster;
use crate::disk::Disk;
use crate::test_engine::{Seeded, lesson};
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::header::Facet;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record::Record;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, NewEntry, Receipt, RemovalCommand};
use klnode_federation::sim::{ClockFault, FaultCounts, Knobs};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Result of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Hash of all events in order.
    pub trace: u64,
    /// Events of the network.
    pub network: FaultCounts,
    /// Number of power cuts.
    pub power_cuts: u64,
    /// Number of periods with a failing disk.
    pub failing_disks: u64,
    /// Number of homes replaced by a copy.
    pub restores: u64,
    /// Number of changes of filters, memberships and blocks.
    pub changes_of_mind: u64,
    /// Number of programs replaced with another version.
    pub replaced: u64,
    /// Number of records of a later format that were sent.
    pub written_ahead: u64,
    /// Number of acknowledged operations.
    pub acknowledged: u64,
    /// Number of rests until all nodes were equal.
    pub rests: u64,
    /// Record that passed only with the next sweep, if there was one.
    pub unswept: Option<String>,
}

/// A broken invariant.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Description of the violation.
    pub what: String,
}

/// Executes a plan. A panic of a node is a violation, too.
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
            Err(Violation { what: format!("a panic: {}", text.unwrap_or("without a message")) })
        }
    }
}

pub(super) struct Runner {
    pub(super) nodes: Cluster,
    pub(super) team: WorkspaceId,
    pub(super) oracle: Oracle,
    pub(super) secrets: Vec<String>,
    /// Copies of homes.
    copies: BTreeMap<usize, Disk>,
    /// Nodes whose disk fails intermittently.
    failing: BTreeSet<usize>,
    pub(super) outside: BTreeSet<usize>,
    /// The step at which the owner last removed each node that it has not taken back.
    pub(super) removed_at: BTreeMap<usize, usize>,
    /// Playbooks that were written.
    pub(super) playbooks: Vec<EntryId>,
    pub(super) keeps_grudges: bool,
    pub(super) report: Report,
    pub(super) random: Seeded,
}

/// Tag that no filter releases.
const PRIVATE: &str = "private/own";

pub(super) fn for_team(team: WorkspaceId, title: &str) -> NewEntry {
    NewEntry { workspace: team, ..lesson(title) }
}

impl Runner {
    fn new(plan: &Plan) -> Self {
        let mut random = Seeded(plan.seed);
        let mut nodes = Cluster::new(plan.seed, plan.nodes, Knobs::calm());
        let all: Vec<usize> = (0..plan.nodes).collect();
        let team = nodes.found(&all);
        // A tree that connects all nodes, and a few more links.
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
            failing: BTreeSet::new(),
            outside: BTreeSet::new(),
            removed_at: BTreeMap::new(),
            playbooks: Vec::new(),
            keeps_grudges: plan.seed.is_multiple_of(2),
            report: Report::default(),
            random,
        }
    }

    fn entry(&self, pick: usize) -> Option<EntryId> {
        let order = &self.oracle.order;
        // Newer entries are picked more often: old ones rarely change.
        let back = (pick % 64).min(pick % (order.len().max(1)));
        order.len().checked_sub(1 + back).map(|at| order[at])
    }

    /// Whether a node can change its settings: it runs and its disk works.
    fn is_well(&self, at: usize) -> bool {
        self.nodes.is_up(at) && !self.failing.contains(&at)
    }

    pub(super) fn link(&self, pick: usize) -> (usize, usize) {
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
            Step::Jump(node, by_ms) => {
                self.nodes.disturb_clock(&ClockFault::Jumped { node, by_ms });
            }
            Step::Freeze(node) => self.nodes.disturb_clock(&ClockFault::Froze { node }),
            Step::Thaw(node) => self.nodes.disturb_clock(&ClockFault::Thawed { node }),
            Step::Fail(at, period, fault) => {
                self.report.failing_disks += 1;
                self.failing.insert(at);
                self.nodes.fail(at, period, fault);
            }
            Step::Mend(at) => {
                self.failing.remove(&at);
                self.nodes.mend(at);
            }
            Step::Kill(at) if self.nodes.is_up(at) => self.nodes.crash(at),
            Step::Replace(at) => {
                self.report.replaced += 1;
                self.nodes.replace(at, 1 - self.nodes.ahead(at).min(1));
            }
            Step::WriteAhead(at) => self.nodes.write_ahead(at),
            Step::Copy(at) => {
                self.copies.insert(at, self.nodes.disk(at));
            }
            Step::Restore(at, is_swap) if self.nodes.is_readable(at) => self.restore(at, is_swap),
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
            Step::Egress(_)
            | Step::Ingress(_)
            | Step::Member(_)
            | Step::Remove(_)
            | Step::Block(..) => self.change_mind(step),
            Step::Write(at, pick) if self.nodes.is_readable(at) => self.write(at, pick),
            Step::Write(..) => {}
            _ => self.operate(step),
        }
    }

    fn add(&mut self, at: usize, is_private: bool) {
        let mut title = format!("entry {} of run", self.oracle.number);
        let mut new = for_team(self.team, &title);
        if is_private {
            new.claims.push(ClaimEdit::Add(TextSet::TAGS, PRIVATE.into()));
            title = format!("secret {} of {at}", self.oracle.number);
            new.title.clone_from(&title);
            self.secrets.push(title.clone());
        }
        if let Ok(Receipt::Created(entry)) = self.nodes.run(at, Command::Create(Box::new(new))) {
            self.report.acknowledged += 1;
            self.oracle.record_creation(entry, at, title, is_private);
            if is_private {
                self.oracle.record_statement(entry, at, Content::Tag(PRIVATE.into(), true), true);
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
        if !self.nodes.is_readable(at) {
            return;
        }
        if matches!(step, Step::Add(_) | Step::AddPrivate(_)) {
            return self.add(at, matches!(step, Step::AddPrivate(_)));
        }
        let Some(entry) = self.entry(pick) else { return };
        let title = format!("title {} by {at}", self.oracle.number);
        let claim = |claim| Command::Claim { entry, claims: vec![claim] };
        let command = match step {
            Step::Edit(..) => claim(ClaimEdit::Set(Register::TITLE, title.clone())),
            Step::Tag(..) => claim(ClaimEdit::Add(TextSet::TAGS, format!("tag/{at}"))),
            Step::Untag(..) => claim(ClaimEdit::Withdraw(TextSet::TAGS, format!("tag/{at}"))),
            Step::Archive(..) => claim(ClaimEdit::Archive(Presence::Present)),
            Step::Retract(..) => Command::Retract { entry },
            Step::Forget(..) => Command::Forget { entry },
            _ => Command::Observe { entry, of: Observation::Success, amount: Thousandths::ONE },
        };
        let held = self.titles_held(at, entry);
        let is_done = self.nodes.run(at, command).is_ok();
        let Some(history) = self.oracle.entries.get_mut(&entry) else { return };
        // A node must not change an entry that it lacks or that was forgotten. A write that a
        // failing disk refused may be present after a crash.
        if !is_done && !self.failing.contains(&at) {
            return;
        }
        self.report.acknowledged += u64::from(is_done);
        match step {
            Step::Edit(..) => self.oracle.record_edit(entry, &title, &held),
            Step::Retract(..) => history.is_retracted |= history.creator == at,
            Step::Forget(..) => {
                history.is_forgotten = true;
                history.forgotten_by.extend(is_done.then_some(at));
            }
            Step::Observe(..) => self.oracle.record_observation(entry, at, is_done),
            _ => {}
        }
        if let Some(content) = statement(step, at, title) {
            self.oracle.record_statement(entry, at, content, is_done);
        }
    }

    /// Titles ever given to an entry whose bytes a node holds.
    pub(super) fn titles_held(&mut self, at: usize, entry: EntryId) -> BTreeSet<String> {
        let payloads = self.payloads(at, entry);
        let titles = self.oracle.entries.get(&entry).map(|history| &history.titles);
        let is_held =
            |title: &&String| payloads.iter().any(|bytes| contains(bytes, title.as_bytes()));
        titles.into_iter().flatten().filter(is_held).cloned().collect()
    }

    /// Whether a node holds the bytes of a text in its records of an entry.
    pub(super) fn has_text(&mut self, at: usize, entry: EntryId, text: &str) -> bool {
        self.payloads(at, entry).iter().any(|bytes| contains(bytes, text.as_bytes()))
    }

    fn payloads(&mut self, at: usize, entry: EntryId) -> Vec<Vec<u8>> {
        let records = self.nodes.snapshot(at).entry_records(entry).expect("readable");
        records.iter().filter_map(|record| record.to_raw().payload).collect()
    }

    fn change_mind(&mut self, step: Step) {
        self.report.changes_of_mind += 1;
        match step {
            Step::Egress(pick) | Step::Ingress(pick) => {
                let (one, two) = self.link(pick);
                if !self.is_well(one) {
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
            Step::Remove(pick) if self.nodes.is_readable(0) => {
                let at = 1 + pick % (self.nodes.count() - 1);
                let team = self.nodes.membership(0).workspaces.remove(&self.team);
                let removed = team.map(|shared| shared.charter.removed).unwrap_or_default();
                self.set_removed(at, !removed.contains_key(&self.nodes.author(at)));
            }
            Step::Block(at, pick) if self.is_well(at) => {
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
        let entry = klnode_crdt::workspace_charter::entry(self.team);
        let author = self.nodes.author(at).to_string();
        let claim = match is_in {
            true => ClaimEdit::Add(TextSet::MEMBERS, author),
            false => ClaimEdit::Withdraw(TextSet::MEMBERS, author),
        };
        if self.nodes.run(0, Command::Claim { entry, claims: vec![claim] }).is_ok() {
            match is_in {
                true => self.outside.remove(&at),
                false => self.outside.insert(at),
            };
        }
    }

    /// Makes the owner remove a node, or take the removal back and list the node again.
    pub(super) fn set_removed(&mut self, at: usize, is_out: bool) {
        let (workspace, member) = (self.team, self.nodes.author(at));
        let command = match is_out {
            true => RemovalCommand::Remove { workspace, member, keep: Vec::new() },
            false => RemovalCommand::Reinstate { workspace, member },
        };
        if self.nodes.run(0, Command::Removal(command)).is_err() {
            return;
        }
        match is_out {
            true => {
                self.outside.insert(at);
                self.removed_at.insert(at, self.oracle.number);
            }
            false => {
                self.removed_at.remove(&at);
                self.set_member(at, true);
            }
        }
    }

    fn restore(&mut self, at: usize, is_swap: bool) {
        let Some(copy) = self.copies.remove(&at) else { return };
        self.report.restores += 1;
        let alone = self.held_alone(at);
        self.oracle.mark_uncertain(&alone);
        self.oracle.record_rollback(at);
        self.nodes.crash(at);
        if is_swap {
            self.copies.insert(at, self.nodes.disk(at));
        }
        self.nodes.restart_on(at, copy);
    }

    /// Entries of which a node holds a record that no other node could return to it.
    fn held_alone(&mut self, at: usize) -> BTreeSet<EntryId> {
        let mut alone: BTreeSet<EntryId> = self.nodes.holdings(at).into_keys().collect();
        alone.retain(|entry| {
            let others = self.passing_to(at, *entry);
            !others.iter().any(|other| is_covered(&mut self.nodes, at, *other, *entry))
        });
        alone
    }

    /// Nodes from which an entry passes to a node, directly or through others. A node behind one to
    /// which the entry is no longer released cannot return it (seed 548205).
    fn passing_to(&mut self, at: usize, entry: EntryId) -> BTreeSet<usize> {
        let links = self.nodes.links();
        let (mut found, mut open) = (BTreeSet::new(), vec![at]);
        while let Some(to) = open.pop() {
            for &(one, two) in &links {
                let from = if one == to { two } else { one };
                let is_between = [one, two].contains(&to) && from != at && !found.contains(&from);
                if is_between
                    && self.nodes.is_readable(from)
                    && self.nodes.is_released(from, to, entry)
                {
                    found.insert(from);
                    open.push(from);
                }
            }
        }
        found
    }
}

/// The statement that a step makes about an entry.
fn statement(step: Step, at: usize, title: String) -> Option<Content> {
    match step {
        Step::Edit(..) => Some(Content::Title(title)),
        Step::Tag(..) => Some(Content::Tag(format!("tag/{at}"), true)),
        Step::Untag(..) => Some(Content::Tag(format!("tag/{at}"), false)),
        Step::Archive(..) => Some(Content::Archived),
        Step::Retract(..) => Some(Content::Retracted),
        _ => None,
    }
}

pub(super) fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

/// Whether a node holds all that another holds of an entry, or its successors. For retracted
/// records the retraction is enough: a header without its payload carries nothing more, and is
/// dropped if it precedes the retraction (seed 555746).
pub(super) fn is_covered(nodes: &mut Cluster, from: usize, to: usize, entry: EntryId) -> bool {
    is_covered_but_for(nodes, &BTreeSet::new(), (from, to), entry)
}

/// As [`is_covered`], except for records of these authors.
pub(super) fn is_covered_but_for(
    nodes: &mut Cluster,
    authors: &BTreeSet<AuthorId>,
    (from, to): (usize, usize),
    entry: EntryId,
) -> bool {
    let here = nodes.snapshot(from).entry_records(entry).expect("readable");
    let there = nodes.snapshot(to).entry_records(entry).expect("readable");
    here.iter().filter(|one| !authors.contains(&one.author())).all(|one| {
        let place = |record: &Record| (record.author(), record.header().facet);
        let is_bare = one.payload().is_none();
        there.iter().any(|new| {
            new.header().facet == Facet::Tombstone
                || (is_bare && place(new) == (one.author(), Facet::Retraction))
                || place(new) == place(one) && new.version().covers(&one.version())
        })
    })
}
