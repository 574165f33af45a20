//! What is credited, blamed and counted: the text that was served, whatever its author makes of it
//! later; and a look at predicates only of one's own.

use crate::tasks::serve;
use klnode::api::Limits;
use klnode::engine::{
    Arrival, Command, Finish, Finished, Looks, NewEntry, NewTask, Receipt, Rejection, TaskAct,
    TaskDone,
};
use klnode::query::Found;
use klnode::store::rows::{Cost, HitCost, ServedRow};
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::holding::EntryRecords;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::writer::Claim;
use klnode_scoring::outcome::{Outcome, Verdict};
use klnode_scoring::status::Status;
use klnode_tests::node::{Node, START, in_workspace, lesson};
use klnode_tests::served::{Doors, Served};
use klnode_tests::society::Team;
use serde_json::json;

fn about_task(node: &mut Node, act: TaskAct) -> TaskDone {
    match node.run(Command::Task(Box::new(act))) {
        Ok(Receipt::Task(done)) => done,
        other => panic!("nothing was done about the task: {other:?}"),
    }
}

fn begin(node: &mut Node, parent: Option<TaskId>) -> TaskId {
    let (agent, goal) = ("agent".to_owned(), "goal".to_owned());
    match about_task(node, TaskAct::Begin(NewTask { agent, goal, thread: None, parent })) {
        TaskDone::Began(task) => task,
        other => panic!("the task was not begun: {other:?}"),
    }
}

fn finish(node: &mut Node, task: TaskId, entry: EntryId, verdict: Verdict) {
    let outcome = Outcome { verdict, quality: 0.5 };
    let finish = Finish::new(outcome, vec![entry]);
    about_task(node, TaskAct::Finish(task, finish));
}

/// Ends a task in failure, and dismisses an entry.
fn dismiss(
    node: &mut Node,
    task: TaskId,
    entry: EntryId,
    used: Vec<EntryId>,
) -> Result<Receipt, Rejection> {
    let outcome = Outcome { verdict: Verdict::Failure, quality: 0.5 };
    let finish = Finish { dismissed: vec![entry], ..Finish::new(outcome, used) };
    node.run(Command::Task(Box::new(TaskAct::Finish(task, finish))))
}

fn ended(receipt: Result<Receipt, Rejection>) -> Finished {
    match receipt {
        Ok(Receipt::Task(TaskDone::Finished(finished))) => finished,
        other => panic!("the task was not finished: {other:?}"),
    }
}

fn rewrite(by: &mut Node, entry: EntryId, content: &str) {
    by.claim(entry, Claim::Set(Register::CONTENT, content.to_owned()));
}

/// Successes and failures that an author is credited with, and blamed for.
fn credited(node: &Node, author: AuthorId) -> (usize, usize) {
    let outcomes = node.engine.store().snapshot().unwrap().outcomes(author).unwrap();
    let successes = outcomes.iter().filter(|row| row.is_success).count();
    (successes, outcomes.len() - successes)
}

/// An entry of alice's that everybody in the team holds.
fn shared_entry(team: &mut Team) -> EntryId {
    let entry = team.alice.create_in(team.shared.id, "what was agreed");
    team.exchange();
    entry
}

#[test]
fn a_success_is_of_the_text_that_was_served_and_not_of_what_took_its_place() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, .. } = &mut team;
    let task = begin(node, None);
    serve(node, task, entry);
    rewrite(alice, entry, "Harm.");
    alice.send_to(node);
    assert_eq!(node.found(entry).view.text(Register::CONTENT), Some("Harm."));
    finish(node, task, entry, Verdict::Success);
    let found = node.found(entry);
    assert_eq!(found.judged.local_successes, 0, "nobody has seen this text work");
    assert!(!found.is_corroborated());
    assert_ne!(found.judged.standing.status, Status::Active);
    assert_eq!(credited(node, alice.author()), (1, 0), "the text that was served has helped");
    // As it is now it has its chance; what is reported in a part of the task counts as well.
    let task = begin(node, None);
    serve(node, task, entry);
    let part = begin(node, Some(task));
    let (of, amount) = (Observation::Success, Thousandths::ONE);
    about_task(node, TaskAct::Observe { task: part, entry, of, amount });
    assert_eq!(node.found(entry).judged.local_successes, 1);
}

#[test]
fn a_text_that_is_edited_before_its_answer_is_noted_was_not_served() {
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
        cost: Cost { hits: vec![hit], millis: 1 },
        ..ServedRow::default()
    };
    node.run(Command::Served(row)).unwrap();
    finish(node, task, entry, Verdict::Failure);
    assert_eq!(credited(node, alice.author()), (0, 1));
    assert_eq!(credited(node, bob.author()), (0, 0));
}

#[test]
fn blame_goes_to_whoever_wrote_what_was_served_though_it_was_taken_back() {
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
    finish(node, task, entry, Verdict::Failure);
    assert_eq!(credited(node, alice.author()), (0, 0));
    assert_eq!(credited(node, bob.author()), (0, 1));
}

#[test]
fn what_helped_under_its_creators_old_title_was_seen_to_work_whoever_answers_for_it() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, bob, .. } = &mut team;
    rewrite(bob, entry, "Mended.");
    bob.send_to(node);
    node.succeed(entry);
    let found = node.found(entry);
    let answers = found.author.as_ref().map(|author| author.author);
    assert_eq!(answers, Some(alice.author()), "nothing of hers has helped, so she counts least");
    assert_eq!(found.judged.local_successes, 1);
    assert!(found.is_corroborated());
    let joint = team.node.create_in(team.shared.id, "of several");
    team.exchange();
    rewrite(&mut team.bob, joint, "His.");
    team.alice.retitle(joint, "Hers");
    team.exchange();
    team.node.succeed(joint);
    assert_eq!(team.node.found(joint).judged.local_successes, 1, "it was seen once");
}

#[test]
fn of_several_texts_in_one_task_each_is_blamed_and_none_is_said_to_have_helped() {
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
    finish(node, task, mixed, Verdict::Failure);
    assert_eq!((credited(node, alice.author()), credited(node, bob.author())), ((0, 1), (0, 1)));
    // Of the same author's texts one has misled, and it is not said which.
    let task = begin(node, None);
    serve(node, task, same);
    rewrite(alice, same, "Once more.");
    alice.send_to(node);
    serve(node, task, same);
    finish(node, task, same, Verdict::Failure);
    assert_eq!(credited(node, alice.author()), (0, 2));
}

#[test]
fn what_was_seen_to_work_stays_so_however_much_is_observed_of_its_author() {
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
    assert_eq!(found.judged.local_successes, 1);
    assert!(found.is_corroborated());
    // It is of that text alone.
    rewrite(alice, proven, "Harm.");
    alice.send_to(node);
    assert_eq!(node.found(proven).judged.local_successes, 0);
}

/// A text of bob's that says at length what an older one of alice's says.
fn at_length(workspace: WorkspaceId) -> NewEntry {
    let content = "What was agreed, told at much greater length than she did. ".repeat(3);
    NewEntry { content, ..in_workspace(workspace, "what was agreed") }
}

fn same_as(to: EntryId) -> Claim {
    Claim::Link(Link { relation: Relation::SAME_AS, to })
}

/// An entry with all that are held to be the same.
fn read_whole(node: &Node, entry: EntryId) -> Found {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let found = reader.at(&snapshot, node.now).unwrap().read_whole(entry).unwrap();
    found.expect("known")
}

/// An entry of alice's, and a younger one of bob's that says the same at length.
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
fn what_was_seen_of_a_text_proves_nothing_of_the_one_that_is_shown_for_it() {
    let mut team = Team::gather();
    let (older, longer) = shorter_and_longer(&mut team);
    let node = &mut team.node;
    node.succeed(longer);
    for _ in 0..8 {
        node.wait_days(1);
        node.succeed(older);
    }
    assert_eq!(read_whole(node, older).judged.standing.status, Status::Verified);
    node.claim(longer, same_as(older));
    let found = read_whole(node, older);
    assert_eq!((found.text_of, found.judged.local_successes), (longer, 1));
    assert_eq!(found.judged.standing.status, Status::Active, "his was seen to work once");
}

#[test]
fn what_was_seen_to_work_stays_so_under_an_older_entry_that_says_the_same() {
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
    assert_eq!(found.judged.local_successes, 1);
    assert!(found.is_corroborated());
    // However much is observed of its author.
    let observe = |of| Command::Observe { entry: other, of, amount: Thousandths::ONE };
    let both = [Observation::Success, Observation::Failure].map(observe);
    for _ in 0..500 {
        node.wait_days(1);
        assert!(node.engine.step(&both, node.now).iter().all(Result::is_ok));
    }
    assert_eq!(credited(node, bob.author()), (500, 500), "its own outcome made room");
    assert_eq!(whole(node).judged.local_successes, 1);
    // It is of that text alone.
    rewrite(bob, longer, &"Harm. ".repeat(50));
    bob.send_to(node);
    let found = whole(node);
    assert_eq!((found.text_of, found.judged.local_successes), (longer, 0));
}

#[test]
fn outside_any_task_credit_goes_to_whose_words_are_shown_for_all_that_say_the_same() {
    let served = Served::start(Limits::default(), Doors::Socket);
    let (mut alice, mut bob) = (Node::start(2, 2), Node::start(3, 3));
    bob.wait_days(1);
    let older = alice.create("what was agreed");
    let longer = bob.create_new(at_length(WorkspaceId::MAIN));
    for (by, entry) in [(&alice, older), (&bob, longer)] {
        let EntryRecords::Live(authors) = by.records(entry) else { panic!("forgotten") };
        let records = authors.values().flat_map(|held| held.records().cloned());
        let from = by.author();
        let arrivals = records.map(|record| Arrival { record, from }).collect();
        served.engine.submit_blocking(Command::Ingest(arrivals)).unwrap();
    }
    let claim = Command::Claim { entry: longer, claims: vec![same_as(older)] };
    served.engine.submit_blocking(claim).unwrap();
    let path = format!("/v1/entries/{older}/observations");
    let observed = served.json("POST", &path, &json!({"outcome": "success"})).json();
    assert_eq!((&observed["id"], &observed["counted"]), (&json!(older.to_string()), &json!(true)));
    let again = served.json("POST", &path, &json!({"outcome": "success"})).json();
    assert_eq!(again["counted"], false, "they have one account of who spoke of them");
    let snapshot = served.engine.store().snapshot().unwrap();
    let credited = |author| snapshot.outcomes(author).unwrap().len();
    assert_eq!((credited(alice.author()), credited(bob.author())), (0, 1));
    let shown = served.json("GET", &format!("/v1/entries/{older}"), &json!(null)).json();
    assert_eq!(shown["corroborated"], true, "{shown}");
}

#[test]
fn an_observation_under_a_clock_far_ahead_leaves_what_was_counted_before_as_it_was() {
    let mut node = Node::start(1, 1);
    let entry = node.create("counted");
    node.succeed(entry);
    let alpha = |node: &Node| node.found(entry).judged.confidence.posterior.alpha();
    let before = alpha(&node);
    node.wait_days(200);
    node.succeed(entry);
    node.now = START;
    assert_eq!(alpha(&node), before, "what is dated ahead does not count yet");
}

#[test]
fn a_look_is_no_observation_of_anothers_text_nor_by_what_another_says_it_depends_on() {
    let mut team = Team::gather();
    let workspace = team.shared.id;
    let anchored = |title: &str| {
        let claims = vec![Claim::Add(TextSet::ANCHORS, "path:Cargo.toml".to_owned())];
        NewEntry { workspace, claims, ..lesson(title) }
    };
    let foreign = team.alice.create_new(anchored("foreign"));
    let (own, meddled) =
        (team.node.create_new(anchored("own")), team.node.create_new(anchored("meddled with")));
    team.exchange();
    let Team { node, alice, .. } = &mut team;
    let look = |node: &mut Node, held: &[EntryId], broken: &[EntryId]| {
        let (held, broken) = (held.to_vec(), broken.to_vec());
        node.run(Command::Looked(Looks { held, broken, is_counted: true })).unwrap();
    };
    // Nor if this person says that another's text depends on it.
    let adopted = alice.create_in(workspace, "adopted");
    alice.send_to(node);
    node.claim(adopted, Claim::Add(TextSet::ANCHORS, "path:Cargo.toml".to_owned()));
    look(node, &[foreign, own, adopted], &[]);
    assert_eq!([foreign, own, adopted].map(|entry| node.successes(entry)), [0, 1, 0]);
    assert!(!node.found(foreign).is_corroborated());
    alice.claim(meddled, Claim::Add(TextSet::ANCHORS, "path:no/such/file".to_owned()));
    alice.send_to(node);
    look(node, &[], &[meddled]);
    assert_eq!(node.found(meddled).judged.confidence.posterior.beta(), 5.0);
}

#[test]
fn what_was_dismissed_is_nobodys_fault_nor_is_what_is_held_to_be_the_same() {
    let mut team = Team::gather();
    let entry = shared_entry(&mut team);
    let Team { node, alice, .. } = &mut team;
    let same = node.create("the same in other words");
    node.claim(same, Claim::Link(Link { relation: Relation::SAME_AS, to: entry }));
    let task = begin(node, None);
    for one in [entry, same] {
        serve(node, task, one);
    }
    let told = dismiss(node, task, entry, vec![same]).unwrap_err();
    let problem = format!("dismissed and used both name {}", Kind::Lesson.code(same));
    assert!(told.to_string().contains(&problem), "{told}");
    let mut both = vec![entry, same];
    both.sort();
    let done = ended(dismiss(node, task, entry, Vec::new()));
    assert_eq!((done.credits, done.dismissed), (Vec::new(), both));
    // What was served in its place is told as dismissed, not left out in silence.
    let task = begin(node, None);
    serve(node, task, entry);
    let done = ended(dismiss(node, task, same, Vec::new()));
    assert_eq!((done.dismissed, done.unserved), (vec![entry], vec![same]));
    assert_eq!(credited(node, alice.author()), (0, 0));
}

#[test]
fn what_is_dismissed_in_ten_tasks_is_archived_like_what_was_served_for_nothing() {
    let mut node = Node::start(1, 1);
    let entry = node.create("contradicted");
    for number in 1..=10 {
        let task = begin(&mut node, None);
        serve(&mut node, task, entry);
        let done = ended(dismiss(&mut node, task, entry, Vec::new()));
        assert_eq!(done.archived.is_empty(), number < 10, "{number}");
    }
}
