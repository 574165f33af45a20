//! The replay of a real history: lessons are sentences of this repository's documents, anchored at a
//! commit, and the code moves on below them.
//!
//! A lesson is stale when the text that it describes has changed: the definition of the symbol that
//! it names, or the opening documentation of the file.

use super::dice::Dice;
use super::experiment_arms::{Arm, HitOrder, Practice};
use super::figures::Figure;
use super::git_history::{DocumentedFact, GitHistory, Snapshot};
use super::node_reader::{Desk, Offer};
use super::replay::caller;
use crate::cluster::Cluster;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::ids::{EntryId, TaskId, WorkspaceId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::{Command, Finish, NewEntry, NewTask, Receipt, TaskCommand, TaskReceipt};
use klnode_federation::sim::Knobs;
use klnode_git::{Repository, Roots};
use klnode_query::{bind, recorded};
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Stops of the walk through the history, in equal steps.
const STOPS: usize = 24;
/// Simulated days between two stops.
const DAYS_PER_STOP: u64 = 3;
/// Most lessons written at a stop.
const LESSONS_PER_STOP: usize = 40;
/// Questions at a stop.
const QUESTIONS_PER_STOP: usize = 25;
const DAY_MS: u64 = 86_400_000;
/// Share of the lessons whose author adds the anchor.
const ANCHORED: f64 = 0.8;

/// Counts of one replay of the history.
#[derive(Clone, Copy, Debug, Default)]
pub struct HistoryCounts {
    pub lessons: u64,
    /// Of these, lessons that were stale at the last stop.
    pub stale_lessons: u64,
    pub questions: u64,
    /// Questions whose first hit about the subject was current.
    pub right: u64,
    /// Questions whose first hit about the subject was stale, without a warning that is heeded.
    pub harm: u64,
    pub hits: u64,
    pub stale_hits: u64,
    /// Stale hits without the warning that an anchor is broken.
    pub unmarked_stale_hits: u64,
}

/// The figures of a replay of the history, in the order of [`HistoryCounts::figures`].
pub const HISTORY_FIGURES: [Figure; 6] = [
    Figure { name: "lessons stale at the end", digits: 3 },
    Figure { name: "right answers per question", digits: 3 },
    Figure { name: "harm per question", digits: 3 },
    Figure { name: "stale hits", digits: 3 },
    Figure { name: "stale hits without a warning", digits: 3 },
    Figure { name: "hits per question", digits: 2 },
];

impl HistoryCounts {
    /// The figures in the order of [`HISTORY_FIGURES`].
    pub fn figures(&self) -> Vec<f64> {
        let share = |count: u64, of: u64| count as f64 / of as f64;
        vec![
            share(self.stale_lessons, self.lessons),
            share(self.right, self.questions),
            share(self.harm, self.questions),
            share(self.stale_hits, self.hits),
            share(self.unmarked_stale_hits, self.hits),
            share(self.hits, self.questions),
        ]
    }
}

struct SentenceLesson {
    fact: DocumentedFact,
    number: u64,
    described: Option<String>,
}

impl SentenceLesson {
    fn is_stale(&self, at: &Snapshot) -> bool {
        at.described(&self.fact) != self.described
    }
}

/// The arms that are compared on the history.
pub fn history_arms() -> Vec<Arm> {
    let named = ["klnode", "no decay", "no freshness in the ranking", "no anchors", "all off"];
    let is_chosen = |arm: &Arm| named.contains(&arm.name) || arm.order != HitOrder::Judged;
    Arm::all().into_iter().filter(is_chosen).collect()
}

/// Replays the history of this repository; the error says why it cannot.
pub fn replay_history(seed: u64, arm: &Arm) -> Result<HistoryCounts, String> {
    let history = GitHistory::open()?;
    let mut walk = HistoryReplay::start(seed, arm, &history);
    let last = history.commits.len() - 1;
    for stop in 0..STOPS {
        let commit = &history.commits[last * (stop + 1) / STOPS];
        let present = history.visit(commit)?;
        walk.live(stop as u64, commit, &present);
    }
    Ok(walk.counts)
}

struct HistoryReplay<'a> {
    seed: u64,
    arm: &'a Arm,
    folder: PathBuf,
    cluster: Cluster,
    desk: Desk,
    lessons: BTreeMap<EntryId, SentenceLesson>,
    known: BTreeSet<String>,
    counts: HistoryCounts,
}

impl<'a> HistoryReplay<'a> {
    fn start(seed: u64, arm: &'a Arm, history: &GitHistory) -> Self {
        let config = arm.config();
        let mut cluster = Cluster::with_config(seed, 1, Knobs::calm(), &config);
        let desk = Desk::start(&mut cluster, 0, &config);
        let (lessons, known) = (BTreeMap::new(), BTreeSet::new());
        let (folder, counts) = (history.path(), HistoryCounts::default());
        Self { seed, arm, folder, cluster, desk, lessons, known, counts }
    }

    fn run(&mut self, session: &str, command: Command) -> Receipt {
        let command = Command::As { caller: caller(0, session), command: Box::new(command) };
        self.cluster.run(0, command).unwrap_or_else(|error| panic!("{error}"))
    }

    fn live(&mut self, stop: u64, commit: &str, present: &Snapshot) {
        self.cluster.set_clocks_ahead(stop * DAYS_PER_STOP * DAY_MS);
        self.desk.follow(&mut self.cluster, 0);
        self.desk.wait(&mut self.cluster, 0);
        if self.arm.has(Practice::Maintenance) && self.desk.maintain(&mut self.cluster, 0) {
            self.desk.follow(&mut self.cluster, 0);
            self.desk.wait(&mut self.cluster, 0);
        }
        let mut dice = Dice::new(self.seed, &[7, stop]);
        let facts: Vec<&DocumentedFact> = present.facts.iter().collect();
        if !self.lessons.is_empty() && !facts.is_empty() {
            // A team asks about the subjects that it works on.
            let written: BTreeSet<&str> =
                self.lessons.values().map(|lesson| lesson.fact.subject.as_str()).collect();
            let asked: Vec<DocumentedFact> = facts
                .iter()
                .filter(|fact| written.contains(fact.subject.as_str()))
                .map(|fact| DocumentedFact::clone(fact))
                .collect();
            let open: Vec<_> = (0..QUESTIONS_PER_STOP.min(asked.len() * 4))
                .map(|number| self.ask(stop, number, dice.pick(&asked), present))
                .collect();
            for (task, session, subject, offers) in open {
                self.conclude((task, &session), &subject, &offers, present);
            }
        }
        let mut new: Vec<DocumentedFact> = facts
            .into_iter()
            .filter(|fact| !self.known.contains(&fact.sentence))
            .cloned()
            .collect();
        dice.shuffle(&mut new);
        for fact in new.into_iter().take(LESSONS_PER_STOP) {
            let is_anchored = dice.chance(ANCHORED);
            self.write(commit, fact, present, is_anchored);
        }
        let stale = self.lessons.values().filter(|lesson| lesson.is_stale(present)).count();
        (self.counts.lessons, self.counts.stale_lessons) =
            (self.lessons.len() as u64, stale as u64);
    }

    /// Begins a task and asks about a subject in some words of its sentence.
    fn ask(
        &mut self,
        stop: u64,
        number: usize,
        fact: &DocumentedFact,
        present: &Snapshot,
    ) -> (TaskId, String, String, Vec<Offer>) {
        let mut dice = Dice::new(self.seed, &[8, stop, number as u64]);
        let mut words: Vec<&str> = fact
            .sentence
            .split_whitespace()
            .filter(|word| word.len() > 4 && !word.contains('`'))
            .collect();
        dice.shuffle(&mut words);
        words.truncate(5);
        let question = match dice.chance(0.6) {
            true => format!("{} {}", fact.subject, words.join(" ")),
            false => format!("{} {}", fact.heading, words.join(" ")),
        };
        let session = format!("s{stop}q{number}");
        let new = NewTask {
            agent: "agent".into(),
            goal: question.clone(),
            thread: None,
            parent: None,
            workspace: None,
        };
        let begun = self.run(&session, Command::Task(Box::new(TaskCommand::Begin(new))));
        let Receipt::Task(TaskReceipt::Began(task)) = begun else { panic!("no task: {begun:?}") };
        let Self { desk, cluster, arm, folder, lessons, .. } = self;
        let age = |entry: EntryId| lessons.get(&entry).map_or(u64::MAX, |of| u64::MAX - of.number);
        let given =
            desk.ask(cluster, 0, (question.as_str(), Some(task)), (*arm, folder.as_path()), &age);
        for record in given.records {
            self.run(&session, record);
        }
        self.counts.questions += 1;
        for offer in &given.offers {
            let is_stale = self.lessons.get(&offer.entry).is_some_and(|of| of.is_stale(present));
            self.counts.hits += 1;
            self.counts.stale_hits += u64::from(is_stale);
            self.counts.unmarked_stale_hits += u64::from(is_stale && !offer.has_warning);
        }
        (task, session, fact.subject.clone(), given.offers)
    }

    /// The agent takes the first hit about the subject that has no warning.
    fn conclude(
        &mut self,
        (task, session): (TaskId, &str),
        subject: &str,
        offers: &[Offer],
        present: &Snapshot,
    ) {
        let is_about = |offer: &&Offer| {
            let lesson = self.lessons.get(&offer.entry);
            !offer.has_warning && lesson.is_some_and(|of| of.fact.subject == subject)
        };
        let adopted = offers.iter().find(is_about).map(|offer| offer.entry);
        let is_stale = adopted.is_some_and(|entry| self.lessons[&entry].is_stale(present));
        let verdict = if is_stale { TaskVerdict::Failure } else { TaskVerdict::Success };
        if let Some(entry) = adopted {
            *self.desk.uses.entry(entry).or_default() += 1;
            self.counts.right += u64::from(!is_stale);
            self.counts.harm += u64::from(is_stale);
        }
        let used = adopted.into_iter().collect();
        let finish = Finish::new(TaskOutcome { verdict, quality: 0.8 }, used);
        self.run(session, Command::Task(Box::new(TaskCommand::Finish(task, finish))));
    }

    fn write(&mut self, commit: &str, fact: DocumentedFact, present: &Snapshot, is_anchored: bool) {
        self.known.insert(fact.sentence.clone());
        let title: String = format!("{}: {}", fact.heading, fact.subject);
        let title: String = title.chars().take(190).collect();
        let texts = [("title", &title), ("content", &fact.sentence)];
        if texts.iter().any(|(field, text)| klnode_query::complaint(field, text).is_some()) {
            return;
        }
        let mut claims = Vec::new();
        if is_anchored {
            let repository = Repository::open(&self.folder).expect("it is a checkout");
            let predicate = fact.predicate.as_str();
            let bound = bind(&repository.identity(&Roots::default()), [predicate]);
            claims.extend(bound.into_iter().map(recorded));
            claims.push(ClaimEdit::Add(TextSet::DEPENDS_ON, predicate.to_owned()));
        }
        let citation = Citation {
            evidence_type: "commit".into(),
            evidence_ref: commit.to_owned(),
            cited_by: "agent".into(),
            cited_at: self.cluster.now(0),
            is_context: false,
        };
        let new = NewEntry {
            workspace: WorkspaceId::MAIN,
            memory: Memory::Semantic,
            kind: EntryType::Lesson,
            title,
            content: fact.sentence.clone(),
            registers: Vec::new(),
            claims,
            citations: vec![citation],
            source: None,
        };
        let receipt = self.run("writer", Command::Create(Box::new(new)));
        let Receipt::Created(entry) = receipt else { panic!("no lesson: {receipt:?}") };
        let described = present.described(&fact);
        let number = self.lessons.len() as u64;
        self.lessons.insert(entry, SentenceLesson { fact, number, described });
    }
}
