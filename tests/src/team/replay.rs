//! One replay: the days of a team, from the morning's exchange to the evening's lessons.
//!
//! All questions of a day are asked before its results are recorded, so that an answer depends on
//! earlier days alone and not on the speed of the index.

use super::code_base::CodeBase;
use super::dice::Dice;
use super::experiment_arms::{Arm, Practice};
use super::figures::Counts;
use super::node_reader::{Desk, Given, Offer};
use super::params::{CARELESS, HOSTILE, NODES, Params};
use super::question_bank::question_bank;
use super::texts::question_text;
use super::world::{FactClaim, ReplayWorld};
use crate::cluster::Cluster;
use klnode_crdt::claims::{Citation, Link, Relation};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::{Command, NewEntry, NewTask, Receipt, TaskCommand, TaskReceipt};
use klnode_federation::sim::Knobs;
use klnode_home::CallerLabel;
use klnode_store::row_types::CallerRow;
use std::collections::BTreeMap;

/// Pairs of nodes that are peers: a ring with one chord.
const PAIRS: [(usize, usize); 6] = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (0, 2)];
const DAY_MS: u64 = 86_400_000;
/// Simulated time for the nodes to exchange their records.
const EXCHANGE_MS: u64 = 4_000;
/// Questions about changed facts are asked on this node.
const RACE_NODE: usize = 0;

/// An entry of the replay, with what only the replay knows about it.
#[derive(Clone, Debug)]
pub(super) struct Lesson {
    pub(super) claim: FactClaim,
    pub(super) day: u32,
    pub(super) number: u64,
    pub(super) is_poison: bool,
    /// How often it helped an agent of an honest node.
    pub(super) helped: u32,
}

/// A problem that an agent works on.
pub(super) struct OpenTask {
    pub(super) node: usize,
    pub(super) task: TaskId,
    pub(super) caller: CallerRow,
    /// The fact that the problem is about; `None` if no entry can answer.
    pub(super) fact: Option<usize>,
    pub(super) has_asked: bool,
    pub(super) offers: Vec<Offer>,
    pub(super) place: [u64; 4],
}

/// A change of a fact whose new value has not led yet.
struct Race {
    fact: usize,
    changed: u32,
    arrived: Option<u32>,
}

/// The state of a replay.
pub struct Replay<'a> {
    pub(super) seed: u64,
    pub(super) params: &'a Params,
    pub(super) arm: &'a Arm,
    pub(super) world: ReplayWorld,
    pub(super) code: CodeBase,
    pub(super) cluster: Cluster,
    pub(super) desks: Vec<Desk>,
    pub(super) workspace: WorkspaceId,
    pub(super) lessons: BTreeMap<EntryId, Lesson>,
    pub(super) counts: Counts,
    races: Vec<Race>,
}

/// Runs one replay.
pub fn replay(seed: u64, params: &Params, arm: &Arm) -> Counts {
    let mut replay = Replay::start(seed, params, arm);
    for day in 0..params.days {
        replay.live(day);
    }
    replay.count_junk();
    replay.counts
}

impl<'a> Replay<'a> {
    fn start(seed: u64, params: &'a Params, arm: &'a Arm) -> Self {
        let config = arm.config();
        let mut cluster = Cluster::with_config(seed, NODES, Knobs::calm(), &config);
        for (one, two) in PAIRS {
            cluster.pair(one, two, false);
        }
        let everyone: Vec<usize> = (0..NODES).collect();
        let workspace = cluster.found(&everyone);
        cluster.pass(EXCHANGE_MS);
        // The hostile node asks nothing.
        let desks = (0..HOSTILE).map(|at| Desk::start(&mut cluster, at, &config)).collect();
        let world = ReplayWorld::draw(seed, params, NODES);
        let code = CodeBase::new(&world);
        let (lessons, counts, races) = (BTreeMap::new(), Counts::default(), Vec::new());
        Self { seed, params, arm, world, code, cluster, desks, workspace, lessons, counts, races }
    }

    fn live(&mut self, day: u32) {
        self.cluster.set_clocks_ahead(u64::from(day) * DAY_MS);
        self.cluster.sent.clear();
        self.code.follow(&self.world, day);
        if self.arm.has(Practice::Hostility) {
            self.attack(day);
        }
        self.cluster.pass(EXCHANGE_MS);
        self.settle_indexes();
        let is_due = day.is_multiple_of(self.params.maintenance_days);
        if is_due && self.arm.has(Practice::Maintenance) {
            let mut has_written = false;
            for at in 0..HOSTILE {
                has_written |= self.desks[at].maintain(&mut self.cluster, at);
            }
            if has_written {
                self.settle_indexes();
            }
        }
        self.run_races(day);
        let mut open = Vec::new();
        for node in 0..HOSTILE {
            for number in 0..self.params.tasks_per_day {
                open.push(self.begin(day, node, number));
            }
        }
        for task in open {
            self.conclude(day, &task);
        }
        self.cluster.pass(EXCHANGE_MS);
    }

    fn settle_indexes(&mut self) {
        for at in 0..HOSTILE {
            self.desks[at].follow(&mut self.cluster, at);
        }
        for at in 0..HOSTILE {
            self.desks[at].wait(&mut self.cluster, at);
        }
    }

    pub(super) fn run(&mut self, at: usize, caller: CallerRow, command: Command) -> Receipt {
        let command = Command::As { caller, command: Box::new(command) };
        self.cluster.run(at, command).unwrap_or_else(|error| panic!("node {at}: {error}"))
    }

    /// Begins a task with a problem, and asks about it.
    fn begin(&mut self, day: u32, node: usize, number: usize) -> OpenTask {
        let place = [2, u64::from(day), node as u64, number as u64];
        let mut dice = Dice::new(self.seed, &place);
        let fact = match dice.chance(self.params.unanswerable) {
            true => None,
            false => Some(self.world.need(node, &mut dice)),
        };
        let question = match fact {
            Some(fact) => question_text(&self.world.facts[fact], &mut dice),
            None => dice.pick(&question_bank().unanswerable).clone(),
        };
        let has_asked = dice.chance(self.params.asks);
        let caller = caller(node, &format!("d{day}t{number}"));
        let new = NewTask {
            agent: format!("agent {}", number % 3),
            goal: question.chars().take(200).collect(),
            thread: None,
            parent: None,
            workspace: None,
        };
        let begun = self.run(node, caller, Command::Task(Box::new(TaskCommand::Begin(new))));
        let Receipt::Task(TaskReceipt::Began(task)) = begun else { panic!("no task: {begun:?}") };
        let mut open = OpenTask { node, task, caller, fact, has_asked, offers: Vec::new(), place };
        if has_asked {
            let given = self.ask(node, &question, Some(task));
            for record in given.records {
                self.run(node, caller, record);
            }
            open.offers = given.offers;
            self.count_answer(day, &open);
        }
        open
    }

    pub(super) fn ask(&mut self, node: usize, question: &str, task: Option<TaskId>) -> Given {
        let Self { desks, cluster, arm, code, lessons, .. } = self;
        let newest = u64::MAX;
        let age = |entry: EntryId| lessons.get(&entry).map_or(newest, |of| newest - of.number);
        desks[node].ask(cluster, node, (question, task), (*arm, code.path()), &age)
    }

    fn count_answer(&mut self, day: u32, open: &OpenTask) {
        let counts = &mut self.counts;
        counts.questions += 1;
        for offer in &open.offers {
            counts.hits += 1;
            counts.tokens += u64::from(offer.tokens);
            let Some(lesson) = self.lessons.get(&offer.entry) else { continue };
            counts.note_trace(lesson.number);
            let claim = lesson.claim;
            counts.stale_hits +=
                u64::from(self.world.facts[claim.fact].is_outdated(claim.value, day));
            if let Some(confidence) = offer.confidence {
                counts.reliability.note(1, confidence, self.world.rightness(claim, day));
            }
        }
    }

    /// Writes a lesson, in a task or outside, and returns its entry.
    pub(super) fn write(
        &mut self,
        (day, node): (u32, usize),
        (claim, title, content): (FactClaim, &str, String),
        predicate: Option<String>,
        task: Option<(TaskId, CallerRow)>,
    ) -> EntryId {
        let is_poison = node == HOSTILE;
        let claims = predicate.map_or_else(Vec::new, |of| self.code.anchored(&of));
        let new = NewEntry {
            workspace: self.workspace,
            memory: Memory::Semantic,
            kind: EntryType::Lesson,
            title: title.chars().take(190).collect(),
            content,
            registers: Vec::new(),
            claims,
            citations: vec![Citation {
                evidence_type: "commit".into(),
                evidence_ref: format!("{:07x}", 0x0010_0000 + self.lessons.len()),
                cited_by: "agent".into(),
                cited_at: self.cluster.now(node),
                is_context: CARELESS.contains(&node),
            }],
            source: None,
        };
        let new = Box::new(new);
        let (command, by) = match task {
            Some((task, by)) => (Command::Task(Box::new(TaskCommand::Create(task, new))), by),
            None => (Command::Create(new), caller(node, &format!("d{day}"))),
        };
        let receipt = self.run(node, by, command);
        let Receipt::Created(entry) = receipt else { panic!("no lesson: {receipt:?}") };
        let number = self.lessons.len() as u64;
        self.counts.lessons += u64::from(!is_poison);
        self.lessons.insert(entry, Lesson { claim, day, number, is_poison, helped: 0 });
        entry
    }

    /// Lets a node say that an entry of its own replaces another one.
    pub(super) fn supersede(&mut self, node: usize, by: CallerRow, old: EntryId, new: EntryId) {
        let link = Link { relation: Relation::SUPERSEDES, to: old };
        self.run(node, by, Command::Claim { entry: new, claims: vec![ClaimEdit::Link(link)] });
    }

    /// Watches on one node whether the new value of a changed fact comes before the old one.
    fn run_races(&mut self, day: u32) {
        for (fact, of) in self.world.facts.iter().enumerate() {
            if day > 0 && of.changes.iter().any(|(from, _)| *from == day) {
                // A race that another change ends is counted up to here.
                let ended: Vec<Race> =
                    self.races.extract_if(.., |race| race.fact == fact).collect();
                ended.iter().for_each(|race| self.counts.note_race(race.arrived, day));
                self.races.push(Race { fact, changed: day, arrived: None });
            }
        }
        let mut left = Vec::new();
        for mut race in std::mem::take(&mut self.races) {
            let truth = self.world.facts[race.fact].truth(day);
            let is_new = |claim: &FactClaim| claim.fact == race.fact && claim.value == truth;
            if race.arrived.is_none() {
                let snapshot = self.cluster.snapshot(RACE_NODE);
                let mut news = self
                    .lessons
                    .iter()
                    .filter(|(_, of)| of.day >= race.changed && !of.is_poison && is_new(&of.claim));
                let has_arrived =
                    news.any(|(entry, _)| snapshot.view_row(*entry).expect("readable").is_some());
                race.arrived = has_arrived.then_some(day);
            }
            let Some(arrived) = race.arrived else {
                left.push(race);
                continue;
            };
            let mut dice = Dice::new(self.seed, &[3, race.fact as u64]);
            let question = question_text(&self.world.facts[race.fact], &mut dice);
            let offers = self.ask(RACE_NODE, &question, None).offers;
            let claims = offers.iter().filter_map(|of| Some(self.lessons.get(&of.entry)?.claim));
            let first = claims.into_iter().find(|claim| claim.fact == race.fact);
            let is_led = first.is_some_and(|claim| claim.value == truth);
            if is_led || day - arrived >= self.params.race_days_max {
                self.counts.note_race(race.arrived, day);
            } else {
                left.push(race);
            }
        }
        self.races = left;
    }

    /// Counts old entries that are still retrieved on honest nodes, and those that never helped.
    fn count_junk(&mut self) {
        let last = self.params.days;
        for at in 0..HOSTILE {
            let (snapshot, now) = (self.cluster.snapshot(at), self.cluster.now(at));
            let reading = self.desks[at].reader().at(&snapshot, now).expect("readable");
            for (entry, lesson) in &self.lessons {
                if lesson.day + self.params.junk_after_days > last {
                    continue;
                }
                let Some(found) = reading.read(*entry).expect("readable") else { continue };
                let is_judged = self.arm.order == super::experiment_arms::HitOrder::Judged;
                if !is_judged || found.assessment.standing.status.is_retrieved() {
                    self.counts.old_entries += 1;
                    self.counts.junk += u64::from(lesson.helped == 0);
                }
            }
        }
    }
}

impl Counts {
    fn note_race(&mut self, arrived: Option<u32>, day: u32) {
        if let Some(arrived) = arrived {
            self.races += 1;
            self.race_days += u64::from(day - arrived);
        }
    }
}

/// A caller of a node, in a session of its own.
pub(super) fn caller(node: usize, session: &str) -> CallerRow {
    CallerRow {
        uid: Some(1_000),
        client: CallerLabel::parse("agent"),
        session: CallerLabel::parse(&format!("n{node}-{session}")),
        ..CallerRow::default()
    }
}
