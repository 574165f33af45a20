//! Credit, blame and counts belong to the served text, even if its author changes it later; and
//! only own anchors count as checks.

use crate::tasks::serve;
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::entry_type::EntryType;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId, WorkspaceId};
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_engine::{
    AnchorResults, Command, DeliveredRecord, Finish, FinishEffects, NewEntry, NewTask, Receipt,
    Rejection, TaskCommand, TaskReceipt,
};
use klnode_query::AssessedEntry;
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_scoring::status::Status;
use klnode_server::Limits;
use klnode_store::row_types::{AnswerCost, HitCost, ServedRow};
use klnode_tests::test_engine::{Node, START, in_workspace, lesson};
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::Team;
use serde_json::json;

fn about_task(node: &mut Node, act: TaskCommand) -> TaskReceipt {
    match node.run(Command::Task(Box::new(act))) {
        Ok(Receipt::Task(done)) => done,
        other => panic!("nothing was done about the task: {other:?}"),
    }
}

fn begin(node: &mut Node, parent: Option<TaskId>) -> TaskId {
    let (agent, goal) = ("agent".to_owned(), "goal".to_owned());
    match about_task(
        node,
        TaskCommand::Begin(NewTask { agent, goal, parent, ..NewTask::default() }),
    ) {
        TaskReceipt::Began(task) => task,
        other => panic!("the task was not begun: {other:?}"),
    }
}

fn finish(node: &mut Node, task: TaskId, entry: EntryId, verdict: TaskVerdict) {
    let outcome = TaskOutcome { verdict, quality: 0.5 };
    let finish = Finish::new(outcome, vec![entry]);
    about_task(node, TaskCommand::Finish(task, finish));
}

/// Ends a task in failure, and dismisses an entry.
fn dismiss(
    node: &mut Node,
    task: TaskId,
    entry: EntryId,
    used: Vec<EntryId>,
) -> Result<Receipt, Rejection> {
    let outcome = TaskOutcome { verdict: TaskVerdict::Failure, quality: 0.5 };
    let finish = Finish { dismissed: vec![entry], ..Finish::new(outcome, used) };
    node.run(Command::Task(Box::new(TaskCommand::Finish(task, finish))))
}

fn ended(receipt: Result<Receipt, Rejection>) -> FinishEffects {
    match receipt {
        Ok(Receipt::Task(TaskReceipt::Finished(finished))) => finished,
        other => panic!("the task was not finished: {other:?}"),
    }
}

fn rewrite(by: &mut Node, entry: EntryId, content: &str) {
    by.claim(entry, ClaimEdit::Set(Register::CONTENT, content.to_owned()));
}

/// Successes and failures recorded for an author.
fn credited(node: &Node, author: AuthorId) -> (usize, usize) {
    let outcomes = node.engine.store().snapshot().unwrap().outcomes(author).unwrap();
    let successes = outcomes.iter().filter(|row| row.is_success).count();
    (successes, outcomes.len() - successes)
}

/// An entry by alice that all members hold.
fn shared_entry(team: &mut Team) -> EntryId {
    let entry = team.alice.create_in(team.shared.id, "the agreement");
    team.exchange();
    entry
}

#[test]
fn a_success_counts_for_the_served_text_and_not_its_replacement() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, .. } = &mut team;
    let task = begin(node, None);
    serve(node, task, entry);
    rewrite(alice, entry, "Harm.");
    alice.send_to(node);
    assert_eq!(node.found(entry).view.text(Register::CONTENT), Some("Harm."));
    finish(node, task, entry, TaskVerdict::Success);
    let found = node.found(entry);
    assert_eq!(found.assessment.local_successes, 0, "this text has no success");
    assert!(!found.is_corroborated());
    assert_ne!(found.assessment.standing.status, Status::Active);
    assert_eq!(credited(node, alice.author()), (1, 0), "the served text has helped");
    // The current text can be credited now; reports in a child task count as well.
    let task = begin(node, None);
    serve(node, task, entry);
    let part = begin(node, Some(task));
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    about_task(node, TaskCommand::Observe { task: part, entry, of, amount });
    assert_eq!(node.found(entry).assessment.local_successes, 1);
}

#[test]
fn a_text_edited_before_its_serving_is_logged_was_not_served() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, bob, .. } = &mut team;
    let task = begin(node, None);
    let found = node.found(entry);
    let author = found.author.as_ref().map(|author| author.author);
    let text = Some(found.view.text_digest());
    let hit = HitCost { author, text, tokens: 9, ..HitCost::default() };
    rewrite(bob, entry, "Harm.");
    bob.send_to(node);
    let row = ServedRow {
        task: Some(task.to_string()),
        entries: vec![entry],
        cost: AnswerCost { hits: vec![hit], millis: 1 },
        ..ServedRow::default()
    };
    node.run(Command::Served(row)).unwrap();
    finish(node, task, entry, TaskVerdict::Failure);
    assert_eq!(credited(node, alice.author()), (0, 1));
    assert_eq!(credited(node, bob.author()), (0, 0));
}

#[test]
fn blame_goes_to_the_author_of_the_served_text_even_if_retracted() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, bob, .. } = &mut team;
    rewrite(bob, entry, "Harm.");
    bob.send_to(node);
    let task = begin(node, None);
    serve(node, task, entry);
    bob.run(Command::Retract { entry }).unwrap();
    bob.send_to(node);
    let author = node.found(entry).author.map(|author| author.author);
    assert_eq!(author, Some(alice.author()), "her text is shown again");
    finish(node, task, entry, TaskVerdict::Failure);
    assert_eq!(credited(node, alice.author()), (0, 0));
    assert_eq!(credited(node, bob.author()), (0, 1));
}

#[test]
fn a_success_under_an_old_title_counts_for_any_responsible_author() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, bob, .. } = &mut team;
    rewrite(bob, entry, "Mended.");
    bob.send_to(node);
    node.succeed(entry);
    let found = node.found(entry);
    let answers = found.author.as_ref().map(|author| author.author);
    assert_eq!(answers, Some(alice.author()), "nothing of hers has helped, so she counts least");
    assert_eq!(found.assessment.local_successes, 1);
    assert!(found.is_corroborated());
    let joint = team.node.create_in(team.shared.id, "of several");
    team.exchange();
    rewrite(&mut team.bob, joint, "His.");
    team.alice.retitle(joint, "Hers");
    team.exchange();
    team.node.succeed(joint);
    assert_eq!(team.node.found(joint).assessment.local_successes, 1, "it has one success");
}

#[test]
fn several_texts_of_one_entry_in_a_task_are_all_blamed_and_none_credited() {
    let mut team = Team::gather();
    let (mixed, same) = (shared_entry(&mut team), shared_entry(&mut team));
    let Team { node, alice, bob, .. } = &mut team;
    let task = begin(node, None);
    serve(node, task, mixed);
    serve(node, task, same);
    rewrite(bob, mixed, "By another.");
    rewrite(alice, same, "By the same.");
    bob.send_to(node);
    alice.send_to(node);
    serve(node, task, mixed);
    serve(node, task, same);
    finish(node, task, mixed, TaskVerdict::Failure);
    assert_eq!((credited(node, alice.author()), credited(node, bob.author())), ((0, 1), (0, 1)));
    // One of the same author's texts has misled; it is unknown which.
    let task = begin(node, None);
    serve(node, task, same);
    rewrite(alice, same, "Once more.");
    alice.send_to(node);
    serve(node, task, same);
    finish(node, task, same, TaskVerdict::Failure);
    assert_eq!(credited(node, alice.author()), (0, 2));
}

#[test]
fn a_success_is_kept_despite_many_outcomes_of_its_author() {
    let mut team = Team::gather();
    let (proven, other) = (shared_entry(&mut team), shared_entry(&mut team));
    let Team { node, alice, .. } = &mut team;
    node.succeed(proven);
    let observe = |of| Command::Observe { entry: other, of, amount: Thousandths::ONE };
    let both = [Observation::Success, Observation::Failure].map(observe);
    for _ in 0..500 {
        node.wait_days(1);
        let done = node.engine.step(&both, node.now);
        assert!(done.iter().all(Result::is_ok), "{done:?}");
    }
    assert_eq!(credited(node, alice.author()), (500, 500), "its own outcome made room");
    let found = node.found(proven);
    assert_eq!(found.assessment.local_successes, 1);
    assert!(found.is_corroborated());
    // The success belongs to that text only.
    rewrite(alice, proven, "Harm.");
    alice.send_to(node);
    assert_eq!(node.found(proven).assessment.local_successes, 0);
}

/// A long text by bob that duplicates an older one by alice.
fn at_length(workspace: WorkspaceId) -> NewEntry {
    let content = "The agreement, told at much greater length than she did. ".repeat(3);
    NewEntry { content, ..in_workspace(workspace, "the agreement") }
}

fn same_as(to: EntryId) -> ClaimEdit {
    ClaimEdit::Link(Link { relation: Relation::SAME_AS, to })
}

/// An entry merged with its duplicates.
fn read_whole(node: &Node, entry: EntryId) -> AssessedEntry {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let found = reader.at(&snapshot, node.now).unwrap().read_whole(entry).unwrap();
    found.expect("known")
}

/// An entry by alice, and a younger, longer duplicate by bob.
fn shorter_and_longer(team: &mut Team) -> (EntryId, EntryId) {
    let older = shared_entry(team);
    for node in [&mut team.node, &mut team.bob] {
        node.wait_days(1);
    }
    let longer = team.bob.create_new(at_length(team.shared.id));
    team.exchange();
    (older, longer)
}

#[test]
fn a_success_does_not_prove_the_text_shown_for_its_duplicate() {
    let mut team = Team::gather();
    let (older, longer) = shorter_and_longer(&mut team);
    let node = &mut team.node;
    node.succeed(longer);
    for _ in 0..8 {
        node.wait_days(1);
        node.succeed(older);
    }
    assert_eq!(read_whole(node, older).assessment.standing.status, Status::Verified);
    node.claim(longer, same_as(older));
    let found = read_whole(node, older);
    assert_eq!((found.text_of, found.assessment.local_successes), (longer, 1));
    assert_eq!(found.assessment.standing.status, Status::Active, "his text has one success");
}

#[test]
fn a_success_is_kept_under_an_older_duplicate() {
    let mut team = Team::gather();
    let (older, longer) = shorter_and_longer(&mut team);
    let other = team.bob.create_in(team.shared.id, "something else");
    team.exchange();
    let Team { node, bob, .. } = &mut team;
    node.succeed(longer);
    node.claim(longer, same_as(older));
    let whole = |node: &Node| read_whole(node, older);
    let found = whole(node);
    assert_eq!((found.entry, found.text_of), (older, longer), "his text, under her entry");
    assert_eq!(found.assessment.local_successes, 1);
    assert!(found.is_corroborated());
    // This holds for any number of observations of its author.
    let observe = |of| Command::Observe { entry: other, of, amount: Thousandths::ONE };
    let both = [Observation::Success, Observation::Failure].map(observe);
    for _ in 0..500 {
        node.wait_days(1);
        assert!(node.engine.step(&both, node.now).iter().all(Result::is_ok));
    }
    assert_eq!(credited(node, bob.author()), (500, 500), "its own outcome made room");
    assert_eq!(whole(node).assessment.local_successes, 1);
    // The success belongs to that text only.
    rewrite(bob, longer, &"Harm. ".repeat(50));
    bob.send_to(node);
    let found = whole(node);
    assert_eq!((found.text_of, found.assessment.local_successes), (longer, 0));
}

#[test]
fn outside_tasks_credit_goes_to_the_author_of_the_shown_duplicate() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let (mut alice, mut bob) = (Node::start(2, 2), Node::start(3, 3));
    bob.wait_days(1);
    let older = alice.create("the agreement");
    let longer = bob.create_new(at_length(WorkspaceId::MAIN));
    for (by, entry) in [(&alice, older), (&bob, longer)] {
        let EntryRecords::Live(authors) = by.records(entry) else { panic!("forgotten") };
        let records = authors.values().flat_map(|held| held.records().cloned());
        let from = by.author();
        let arrivals = records.map(|record| DeliveredRecord { record, from }).collect();
        served.engine.submit_blocking(Command::Ingest(arrivals)).unwrap();
    }
    let claim = Command::Claim { entry: longer, claims: vec![same_as(older)] };
    served.engine.submit_blocking(claim).unwrap();
    let path = format!("/v1/entries/{older}/observations");
    let observed = served.json("POST", &path, &json!({"outcome": "success"})).json();
    assert_eq!((&observed["id"], &observed["counted"]), (&json!(older.to_string()), &json!(true)));
    let again = served.json("POST", &path, &json!({"outcome": "success"})).json();
    assert_eq!(again["counted"], false, "duplicates share one count per caller");
    let snapshot = served.engine.store().snapshot().unwrap();
    let credited = |author| snapshot.outcomes(author).unwrap().len();
    assert_eq!((credited(alice.author()), credited(bob.author())), (0, 1));
    let shown = served.json("GET", &format!("/v1/entries/{older}"), &json!(null)).json();
    assert_eq!(shown["corroborated"], true, "{shown}");
}

#[test]
fn an_observation_dated_far_ahead_does_not_change_earlier_counts() {
    let mut node = Node::start(1, 1);
    let entry = node.create("counted");
    node.succeed(entry);
    let alpha = |node: &Node| node.found(entry).assessment.confidence.posterior.alpha();
    let before = alpha(&node);
    node.wait_days(200);
    node.succeed(entry);
    node.now = START;
    assert_eq!(alpha(&node), before, "an observation dated ahead does not count yet");
}

#[test]
fn a_check_is_no_observation_of_foreign_texts_or_by_foreign_anchors() {
    let mut team = Team::gather();
    let workspace = team.shared.id;
    let anchored = |title: &str| {
        let claims = vec![ClaimEdit::Add(TextSet::ANCHORS, "path:Cargo.toml".to_owned())];
        NewEntry { workspace, claims, ..lesson(title) }
    };
    let foreign = team.alice.create_new(anchored("foreign"));
    let (own, meddled) =
        (team.node.create_new(anchored("own")), team.node.create_new(anchored("meddled with")));
    team.exchange();
    let Team { node, alice, .. } = &mut team;
    let look = |node: &mut Node, held: &[EntryId], broken: &[EntryId]| {
        let (held, broken) = (held.to_vec(), broken.to_vec());
        node.run(Command::Looked(AnchorResults { held, broken, is_counted: true })).unwrap();
    };
    // Nor if this person adds the anchor to another author's text.
    let adopted = alice.create_in(workspace, "adopted");
    alice.send_to(node);
    node.claim(adopted, ClaimEdit::Add(TextSet::ANCHORS, "path:Cargo.toml".to_owned()));
    look(node, &[foreign, own, adopted], &[]);
    assert_eq!([foreign, own, adopted].map(|entry| node.successes(entry)), [0, 1, 0]);
    assert!(!node.found(foreign).is_corroborated());
    alice.claim(meddled, ClaimEdit::Add(TextSet::ANCHORS, "path:no/such/file".to_owned()));
    alice.send_to(node);
    look(node, &[], &[meddled]);
    assert_eq!(node.found(meddled).assessment.confidence.posterior.beta(), 5.0);
}

#[test]
fn dismissed_entries_and_their_duplicates_are_not_blamed() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, .. } = &mut team;
    let same = node.create("the same in other words");
    node.claim(same, ClaimEdit::Link(Link { relation: Relation::SAME_AS, to: entry }));
    let task = begin(node, None);
    for one in [entry, same] {
        serve(node, task, one);
    }
    let told = dismiss(node, task, entry, vec![same]).unwrap_err();
    let problem = format!("dismissed and used both name {}", EntryType::Lesson.code(same));
    assert!(told.to_string().contains(&problem), "{told}");
    let mut both = vec![entry, same];
    both.sort();
    let done = ended(dismiss(node, task, entry, Vec::new()));
    assert_eq!((done.credits, done.dismissed), (Vec::new(), both));
    // The entry served in its place is reported as dismissed.
    let task = begin(node, None);
    serve(node, task, entry);
    let done = ended(dismiss(node, task, same, Vec::new()));
    assert_eq!((done.dismissed, done.unserved), (vec![entry], vec![same]));
    assert_eq!(credited(node, alice.author()), (0, 0));
}

#[test]
fn an_entry_dismissed_in_ten_tasks_is_archived() {
    let mut node = Node::start(1, 1);
    let entry = node.create("contradicted");
    for number in 1..=10 {
        let task = begin(&mut node, None);
        serve(&mut node, task, entry);
        let done = ended(dismiss(&mut node, task, entry, Vec::new()));
        assert_eq!(done.archived.is_empty(), number < 10, "{number}");
    }
}
