//! Scoring rules, each with a test named after it, and the page that maps rules to tests.
//!
//! Most use engines with a simulated clock; effects visible to callers go over the socket. The page
//! also names rules that other files test.

use crate::tasks::begin;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation::{self, Failure, Success};
use klnode_engine::{
    AnchorResults, Command, Finish, MarkChange, NewEntry, NewTask, Receipt, SourceKey, TaskCommand,
    TaskReceipt,
};
use klnode_federation::sim::Knobs;
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_scoring::status::Status;
use klnode_store::row_types::{CallerRow, MarksRow, Seq, ServedRow, UseRow};
use klnode_tests::cluster::Cluster;
use klnode_tests::repo_source::repository;
use klnode_tests::test_engine::{Node, lesson};

/// Page that maps each rule to its tests.
const PAGE: &str = include_str!("../../docs/internals/scoring-rules.md");

const DEFAULTS: &str = include_str!("../../config/default.toml");

/// Minimum number of rules under these headings.
const SECTIONS: [(&str, usize); 4] = [
    ("Confidence", 14),
    ("Independent or primed", 9),
    ("Status", 9),
    ("Admission and the gate", 7),
];

/// A node whose agents work, with a simulated clock.
struct Work(Node);

impl Work {
    fn new() -> Self {
        Self(Node::start(1, 1))
    }

    fn of_class(&mut self, class: &str) -> EntryId {
        let registers = vec![(Register::DECAY_CLASS, class.to_owned())];
        self.0.create_new(NewEntry { registers, ..lesson(class) })
    }

    fn count(&mut self, entry: EntryId, of: Observation, times: u64) {
        let amount = Thousandths(times * 1_000);
        self.0.run(Command::Observe { entry, of, amount }).unwrap();
    }

    /// α and β of an entry.
    fn counts(&self, entry: EntryId) -> (f64, f64) {
        let posterior = self.0.found(entry).assessment.confidence.posterior;
        (posterior.alpha(), posterior.beta())
    }

    fn status(&self, entry: EntryId) -> Status {
        self.0.found(entry).assessment.standing.status
    }

    fn uses(&self, entry: EntryId) -> UseRow {
        self.0.engine.store().snapshot().unwrap().uses(entry).unwrap()
    }

    fn about_task(&mut self, act: TaskCommand) -> TaskReceipt {
        match self.0.run(Command::Task(Box::new(act))) {
            Ok(Receipt::Task(done)) => done,
            other => panic!("nothing was done about the task: {other:?}"),
        }
    }

    fn begin(&mut self) -> TaskId {
        begin(&mut self.0)
    }

    fn serve(&mut self, entry: EntryId, task: Option<TaskId>, is_weak: bool) {
        let (caller, task) = ("agent".to_owned(), task.map(|task| task.to_string()));
        let row = ServedRow {
            caller,
            task,
            query: "what".into(),
            entries: vec![entry],
            is_weak,
            ..ServedRow::default()
        };
        self.0.run(Command::Served(row)).unwrap();
    }

    /// A task in which an entry is served; returns the entries archived because of it.
    fn work(&mut self, entry: EntryId, verdict: TaskVerdict) -> Vec<EntryId> {
        let task = self.begin();
        self.serve(entry, Some(task), false);
        let used = vec![entry];
        let outcome = TaskOutcome { verdict, quality: 0.5 };
        let finish = Finish::new(outcome, used);
        match self.about_task(TaskCommand::Finish(task, finish)) {
            TaskReceipt::Finished(finished) => finished.archived,
            other => panic!("the task was not finished: {other:?}"),
        }
    }

    /// Runs `times` such tasks that fail.
    fn work_in_vain(&mut self, entry: EntryId, times: u32) -> Vec<EntryId> {
        (0..times).flat_map(|_| self.work(entry, TaskVerdict::Failure)).collect()
    }

    fn confirm_elsewhere(&mut self, entry: EntryId) {
        let task = self.begin();
        self.about_task(TaskCommand::Confirm { task, entry, is_lowered: false });
    }

    fn archive(&mut self, entry: EntryId, presence: Presence) {
        self.0.claim(entry, ClaimEdit::Archive(presence));
    }

    fn looked(&mut self, held: &[EntryId], broken: &[EntryId], is_counted: bool) {
        let (held, broken) = (held.to_vec(), broken.to_vec());
        self.0.run(Command::Looked(AnchorResults { held, broken, is_counted })).unwrap();
    }

    /// Whether an observation by a user outside any task counts.
    fn says(&mut self, uid: u32, entry: EntryId, of: Observation) -> bool {
        let command = Box::new(Command::Observe { entry, of, amount: Thousandths::ONE });
        let caller = CallerRow { uid: Some(uid), ..CallerRow::default() };
        self.0.run(Command::As { caller, command }).unwrap() != Receipt::Noted
    }
}

#[track_caller]
fn near(given: f64, expected: f64) {
    assert!((given - expected).abs() < 2e-3, "{given}, not {expected}");
}

#[test]
fn a_failure_today_does_not_revive_successes_of_half_a_year_ago() {
    let mut node = Work::new();
    let entry = node.0.create("the decay trap");
    node.count(entry, Success, 100);
    node.0.wait_days(170);
    let (alpha, beta) = node.counts(entry);
    near(alpha, 5.0 + 100.0 * 0.98_f64.powi(170));
    node.count(entry, Failure, 1);
    let (after, doubt) = node.counts(entry);
    assert!((after - alpha).abs() < 1e-9, "α moved from {alpha} to {after}");
    near(doubt, beta + 1.0);
}

#[test]
fn a_success_restores_a_fifth_of_the_way_to_the_stored_peak() {
    let mut node = Work::new();
    let classes = ["stable", "permanent", "ephemeral"];
    let [stable, permanent, ephemeral] = classes.map(|class| node.of_class(class));
    for entry in [stable, permanent, ephemeral] {
        node.count(entry, Success, 100);
        assert_eq!(node.uses(entry).alpha_peak, Some(105_000));
    }
    node.0.wait_days(400);
    // The peak survives a restart.
    let mut node = Work(node.0.restart(2));
    let faded = 5.0 + 100.0 * 0.995_f64.powi(180);
    near(node.counts(stable).0, faded);
    let restored = faded + 1.0 + 0.2 * (105.0 - faded);
    for (entry, expected) in [
        (stable, restored),
        (permanent, 106.0),
        (ephemeral, 5.0 + 100.0 * 0.98_f64.powi(180) + 1.0),
    ] {
        node.count(entry, Success, 1);
        near(node.counts(entry).0, expected);
    }
    // Above half of the peak only the success itself is added.
    node.count(stable, Success, 1);
    near(node.counts(stable).0, restored + 1.0);
}

#[test]
fn the_peak_never_replicates_and_a_reset_ends_it() {
    let (mut node, mut peer) = (Work::new(), Node::start(2, 2));
    let entry = node.of_class("stable");
    node.count(entry, Success, 100);
    node.0.send_to(&mut peer);
    let there = |peer: &Node| peer.engine.store().snapshot().unwrap().uses(entry).unwrap();
    assert_eq!(there(&peer), UseRow::default());
    // Observations of other authors do not raise it: a success there restores nothing.
    peer.wait_days(400);
    peer.succeed(entry);
    assert_eq!(there(&peer).alpha_peak, Some(6_000), "of own observations alone");
    assert_eq!(peer.successes(entry), 101);
    node.0.run(Command::Reset { entry }).unwrap();
    assert_eq!(node.uses(entry).alpha_peak, None);
    near(node.counts(entry).0, 5.0);
    node.count(entry, Success, 1);
    near(node.counts(entry).0, 6.0);
}

#[test]
fn archived_evidence_decays_by_0_85_a_day_and_not_below_the_prior() {
    let mut node = Work::new();
    let entry = node.of_class("permanent");
    node.count(entry, Success, 40);
    node.count(entry, Failure, 10);
    node.archive(entry, Presence::Present);
    near(node.counts(entry).0, 45.0);
    node.0.wait_days(2);
    let (alpha, beta) = node.counts(entry);
    near(alpha, 5.0 + 40.0 * 0.85 * 0.85);
    near(beta, 5.0 + 10.0 * 0.85 * 0.85);
    node.0.wait_days(300);
    let (alpha, beta) = node.counts(entry);
    assert!((5.0..5.001).contains(&alpha) && (5.0..5.001).contains(&beta), "{alpha}, {beta}");
    node.archive(entry, Presence::Withdrawn);
    near(node.counts(entry).0, 45.0);
}

#[test]
fn outside_any_task_a_caller_counts_once_for_each_entry_and_day() {
    let mut node = Work::new();
    let (entry, other) = (node.0.create("echoed"), node.0.create("beside it"));
    let said: Vec<bool> = (0..5).map(|_| node.says(1_000, entry, Success)).collect();
    assert_eq!(said, [true, false, false, false, false]);
    near(node.counts(entry).0, 6.0);
    // Failures, other entries and other users are counted separately.
    assert!(node.says(1_000, entry, Failure) && !node.says(1_000, entry, Failure));
    assert!(node.says(1_000, other, Success));
    assert!(node.says(1_001, entry, Success) && !node.says(1_001, entry, Success));
    assert_eq!(node.counts(entry), (7.0, 6.0));
    let mut node = Work(node.0.restart(2));
    assert!(!node.says(1_000, entry, Success), "a restart does not start a new day");
    node.0.wait_days(1);
    assert!(node.says(1_000, entry, Success) && !node.says(1_000, entry, Success));
    let uses = node.uses(entry);
    let voice = uses.voices.and_then(|voices| voices.of[0]).unwrap();
    assert_eq!((voice.uid, voice.successes), (Some(1_000), 2), "recorded even if not counted");
    let forgotten = Command::Forget { entry };
    node.0.run(forgotten).unwrap();
    assert_eq!(node.uses(entry), UseRow::default());
}

#[test]
fn an_independent_confirmation_restores_an_automatically_archived_entry() {
    let mut node = Work::new();
    let (idle, by_hand) = (node.0.create("of no use"), node.0.create("put away by hand"));
    assert_eq!(node.work_in_vain(idle, 10), [idle]);
    node.archive(by_hand, Presence::Present);
    node.0.run(Command::ConfirmPrimed { entry: idle }).unwrap();
    assert_eq!(node.status(idle), Status::Archived, "an echo restores nothing");
    near(node.counts(idle).0, 5.0);
    node.0.wait_days(3);
    node.confirm_elsewhere(idle);
    assert_eq!(node.status(idle), Status::Active);
    near(node.counts(idle).0, 6.0);
    let confirmed = node.0.view(idle).counts.values().flat_map(|of| &of.confirmations).count();
    assert_eq!(confirmed, 1, "it is fresh from that day");
    assert_eq!(node.work_in_vain(idle, 9), [], "the task count starts again");
    assert_eq!(node.work_in_vain(idle, 1), [idle]);
    node.confirm_elsewhere(by_hand);
    assert_eq!(node.status(by_hand), Status::Archived, "a manual archive is final");
}

#[test]
fn a_manually_restored_entry_has_ten_tasks_again() {
    let mut node = Work::new();
    let entry = node.0.create("asked for by name");
    assert_eq!(node.work_in_vain(entry, 10), [entry]);
    // Served on request while it is archived: it stays archived.
    assert_eq!(node.work_in_vain(entry, 19), []);
    node.archive(entry, Presence::Withdrawn);
    assert_eq!(node.work_in_vain(entry, 9), []);
    assert_eq!(node.work_in_vain(entry, 1), [entry]);
}

#[test]
fn a_passed_anchor_check_prevents_archiving() {
    let mut node = Work::new();
    let (held, broken) = (node.0.create("a holding anchor"), node.0.create("a broken anchor"));
    let before = node.counts(held);
    for (entry, expected) in [(held, vec![]), (broken, vec![broken])] {
        assert_eq!(node.work_in_vain(entry, 9), []);
        node.looked(&[held], &[broken], false);
        let (_, doubt) = node.counts(entry);
        assert_eq!(node.work_in_vain(entry, 1), expected);
        near(node.counts(entry).1, doubt + 1.0);
    }
    assert_eq!(node.counts(held).0, before.0, "it is no observation by default");
}

#[test]
fn an_entry_of_the_flux_drive_dialect_is_kept_only_by_independent_confirmations() {
    let mut node = Work::new();
    let mut imported = |format: &str| {
        let source = Some(SourceKey { format: format.into(), key: "note-1".into() });
        node.0.create_new(NewEntry { source, ..lesson(format) })
    };
    let (strict, plain) = (imported("flux-drive"), imported("jsonl"));
    let mut used = |entry| -> Vec<EntryId> {
        (0..9).flat_map(|_| node.work(entry, TaskVerdict::Success)).collect()
    };
    assert_eq!((used(strict), used(plain)), (vec![], vec![]));
    node.looked(&[strict, plain], &[], false);
    assert_eq!(node.work(plain, TaskVerdict::Success), []);
    assert_eq!(node.work(strict, TaskVerdict::Success), [strict]);
    node.confirm_elsewhere(strict);
    assert_ne!(node.status(strict), Status::Archived);
    let again: Vec<EntryId> =
        (0..9).flat_map(|_| node.work(strict, TaskVerdict::Success)).collect();
    assert_eq!(again, [], "the task count starts again");
    assert_eq!(node.work(strict, TaskVerdict::Success), [strict]);
}

#[test]
fn a_check_counts_as_an_observation_once_a_day_if_configured() {
    let mut node = Work::new();
    let (held, broken) = (node.0.create("a holding anchor"), node.0.create("a broken anchor"));
    for _ in 0..3 {
        node.looked(&[held], &[broken], true);
    }
    assert_eq!((node.counts(held), node.counts(broken)), ((6.0, 5.0), (5.0, 6.0)));
    // On the same day another checkout changes nothing.
    node.looked(&[broken], &[held], true);
    assert_eq!((node.counts(held), node.counts(broken)), ((6.0, 5.0), (5.0, 6.0)));
    node.0.wait_days(1);
    node.looked(&[held], &[], true);
    near(node.counts(held).0, 5.0 + 0.98 + 1.0);
}

#[test]
fn a_prediction_error_counts_once_for_each_root_task_or_user_and_day_and_makes_nothing_stale() {
    let mut node = Work::new();
    let entry = node.0.create("a wrong answer");
    let errors = |node: &Work| node.uses(entry).prediction_errors;
    for _ in 0..24 {
        node.serve(entry, None, true);
    }
    assert_eq!(errors(&node), 1, "outside a task it is the same user");
    let task = node.begin();
    let (agent, goal) = ("builder".to_owned(), "a part of it".to_owned());
    let part = NewTask { agent, goal, parent: Some(task), ..NewTask::default() };
    let TaskReceipt::Began(part) = node.about_task(TaskCommand::Begin(part)) else {
        panic!("it began")
    };
    for task in [task, part, task] {
        node.serve(entry, Some(task), true);
    }
    assert_eq!(errors(&node), 2, "a task and its children count once");
    for _ in 0..30 {
        node.0.wait_days(1);
        node.serve(entry, None, true);
        let task = node.begin();
        node.serve(entry, Some(task), true);
        assert_eq!(node.status(entry), Status::Candidate);
    }
    assert_eq!(errors(&node), 62);
    let mut node = Work(node.0.restart(2));
    assert_eq!((node.status(entry), errors(&node)), (Status::Candidate, 62));
    node.0.run(Command::ConfirmPrimed { entry }).unwrap();
    assert_eq!(errors(&node), 62, "an echo does not count");
    node.count(entry, Success, 1);
    assert_eq!((node.status(entry), errors(&node)), (Status::Active, 0));
    assert_eq!(node.uses(entry).weak, None, "a success ends the weak answers");
}

#[test]
fn the_first_title_of_a_weak_answer_counts_a_prediction_error_and_is_not_served() {
    let mut node = Work::new();
    let entry = node.0.create("a near title");
    let (caller, query, first_title) = ("agent".into(), "what".into(), Some(entry));
    let weak = ServedRow { caller, query, first_title, is_weak: true, ..ServedRow::default() };
    let unsure = ServedRow { is_weak: false, ..weak.clone() };
    for row in [unsure, weak.clone(), weak] {
        node.0.run(Command::Served(row)).unwrap();
    }
    let uses = node.uses(entry);
    assert_eq!((uses.prediction_errors, uses.served), (1, 0));
}

#[test]
fn ninety_days_unserved_make_stale_and_a_check_or_success_revives() {
    let mut node = Work::new();
    let ways = ["served", "held", "helped", "confirmed", "left alone"];
    let [served, held, helped, confirmed, alone] = ways.map(|title| node.0.create(title));
    node.0.wait_days(89);
    assert_eq!(node.status(alone), Status::Candidate);
    node.serve(served, None, false);
    node.0.wait_days(1);
    for entry in [held, helped, confirmed, alone] {
        assert_eq!(node.status(entry), Status::Stale);
    }
    node.looked(&[held], &[], false);
    node.count(helped, Success, 1);
    node.confirm_elsewhere(confirmed);
    for (entry, expected) in [
        (served, Status::Candidate),
        (held, Status::Candidate),
        (helped, Status::Active),
        (confirmed, Status::Active),
        (alone, Status::Stale),
    ] {
        assert_eq!(node.status(entry), expected);
    }
}

#[test]
fn the_person_confirms_independently_once_a_day() {
    let mut node = Work::new();
    let entry = node.0.create("read by a person");
    node.serve(entry, None, false);
    let classes: Vec<String> = (0..2)
        .map(|_| match node.0.run(Command::ConfirmAsPerson { entry }) {
            Ok(Receipt::Task(TaskReceipt::Confirmed(of))) => format!("{of:?}"),
            other => panic!("it was not confirmed: {other:?}"),
        })
        .collect();
    assert_eq!(classes, ["Person", "PersonAgain"]);
    assert_eq!(node.counts(entry), (6.0, 5.0));
    assert_eq!(node.uses(entry).primed_confirmations, 1);
    let confirmed = |node: &Work| {
        let counts = node.0.view(entry).counts;
        let cells = counts.values().flat_map(|of| &of.confirmations);
        cells.map(|cell| cell.amount.0).sum::<u64>()
    };
    assert_eq!(confirmed(&node), 1_000, "the second has no effect");
    node.0.wait_days(1);
    node.0.run(Command::ConfirmAsPerson { entry }).unwrap();
    near(node.counts(entry).0, 5.0 + 0.98 + 1.0);
    assert_eq!(confirmed(&node), 2_000);
}

#[test]
fn marks_are_in_no_record_and_in_no_frame() {
    const NOTE: &[u8] = b"zqnote for this node only";
    let mut nodes = Cluster::new(1, 2, Knobs::calm());
    let entry = nodes.create(0, lesson("marked here"));
    nodes.pair(0, 1, true);
    nodes.pass(30_000);
    let before = nodes.digests(0, entry);
    let overlay = MarksRow {
        is_pinned: true,
        is_muted: true,
        is_invalidated: true,
        note: Some(String::from_utf8_lossy(NOTE).into_owned()),
        ..MarksRow::default()
    };
    let (on, note) = (Some(true), overlay.note.clone());
    let marks = MarkChange { pinned: on, muted: on, invalidated: on, note };
    nodes.run(0, Command::Mark { entry, marks }).unwrap();
    let after = nodes.create(0, lesson("sent after it"));
    nodes.pass(30_000);
    assert!(!nodes.digests(1, after).is_empty(), "replication continues");
    assert_eq!(nodes.digests(0, entry), before, "no record was written");
    assert_eq!(nodes.snapshot(0).overlay(entry).unwrap(), overlay);
    assert_eq!(nodes.snapshot(1).overlay(entry).unwrap(), MarksRow::default());
    let holds_note = |bytes: &[u8]| bytes.windows(NOTE.len()).any(|part| part == NOTE);
    assert!(!nodes.sent.iter().any(|sent| holds_note(&sent.frame)));
    let snapshot = nodes.snapshot(0);
    for change in snapshot.changes_since(Seq(0)).unwrap() {
        let raw = change.unwrap().record.to_raw();
        assert!(!holds_note(&raw.payload.unwrap_or_default()) && !holds_note(&raw.header));
    }
}

/// Rows of the page: heading, rule and names of tests.
fn rows() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let mut section = "";
    let mut rows = Vec::new();
    for line in PAGE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        }
        let Some(line) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            continue;
        };
        if let [rule, tests] = line.split(" | ").collect::<Vec<_>>()[..]
            && rule != "rule"
        {
            rows.push((section, rule, tests.split('`').skip(1).step_by(2).collect()));
        }
    }
    rows
}

#[test]
fn every_setting_is_read_by_the_node() {
    let node: Vec<&str> = repository()
        .sources
        .iter()
        .filter(|source| source.is_rust() && source.path.starts_with("node/"))
        .map(|source| source.text.as_str())
        .collect();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let keys = DEFAULTS.lines().filter_map(|line| line.split_once(" = ")).map(|(key, _)| key);
    let keys: Vec<&str> = keys.filter(|key| key.chars().all(is_part)).collect();
    assert!(keys.len() > 100, "{} keys", keys.len());
    for key in keys {
        let read = format!(".{key}");
        let mut found =
            node.iter().flat_map(|text| text.match_indices(&read).map(move |at| (text, at)));
        let is_whole =
            |(text, (at, _)): (&&str, (usize, &str))| !text[at + read.len()..].starts_with(is_part);
        assert!(found.any(is_whole), "`{key}` of config/default.toml changes nothing");
    }
}

#[test]
fn the_page_of_rules_names_tests_that_exist() {
    let rust = || repository().sources.iter().filter(|source| source.is_rust());
    for (section, rule, tests) in rows() {
        assert!(!tests.is_empty(), "{section}, {rule}: no test is named");
        for test in tests {
            let (one, two) =
                (format!("#[test]\nfn {test}() {{"), format!("#[test]\n    fn {test}() {{"));
            let exists = rust().any(|file| file.text.contains(&one) || file.text.contains(&two));
            assert!(
                exists,
                "{section}, {rule}: there is no test `{test}`; see docs/internals/scoring-rules.md"
            );
        }
    }
    for (section, least) in SECTIONS {
        let rules = rows().iter().filter(|(of, ..)| *of == section).count();
        assert!(rules >= least, "{section} has {rules} rules of {least}");
    }
}
