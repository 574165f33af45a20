//! Whose words an answer is made of: what others put beside a text speaks in nobody else's name, what
//! must be said of an entry is said wherever it is shown, and a pipe gets only what may speak unasked.

use crate::agent::Agent;
use crate::homes::settle;
use crate::program::{json, klnode, printed, run, start, told};
use crate::survey::contradict;
use crate::tasks::{begin, end};
use klnode::engine::{Command, NewEntry, Promotion, Receipt, TaskAct};
use klnode::query::{Audience, BriefingQuestion, Cancel, Caveat};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::lww::Register;
use klnode_crdt::time::WallTime;
use klnode_crdt::writer::Claim;
use klnode_tests::checkout::Tree;
use klnode_tests::node::{Node, START, lesson};
use klnode_tests::society::{Indexed, Team};
use serde_json::{Value, json as object};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A word in all that is planted.
const PLANTED: &str = "zqplanted";

/// A team by the clock of the machine: processes go on with what it wrote.
pub(super) fn team_of_today() -> Team {
    let mut team = Team::gather();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = WallTime::from_millis(u64::try_from(since.as_millis()).unwrap());
    let Team { node, alice, bob, carol, .. } = &mut team;
    for node in [node, alice, bob, carol] {
        node.now = now;
    }
    team
}

/// An own entry that was seen to work, beside which a member has put a tag, a citation, an anchor and a
/// thread.
fn beside(team: &mut Team, tree: &Tree) -> EntryId {
    let mut own = tree.bound(&["path:lib/gone.rs"]);
    own.extend([
        Claim::Add(TextSet::TAGS, "queue".into()),
        Claim::Add(TextSet::DEPENDS_ON, "path:lib/gone.rs".into()),
    ]);
    let entry = team.node.create_new(NewEntry {
        workspace: team.shared.id,
        claims: own,
        ..lesson("retry the zqbilling gateway")
    });
    for _ in 0..4 {
        team.node.succeed(entry);
    }
    team.exchange();
    let citation = Citation {
        evidence_type: "commit".into(),
        // Before the own one, in the order of the set.
        evidence_ref: format!("0 {PLANTED} before any upload"),
        cited_by: "alice".into(),
        cited_at: START,
        is_context: false,
    };
    let anchor = format!("path:\"{PLANTED} note to agents\"");
    let bound = tree.bound(&[&anchor]);
    for claim in bound.into_iter().chain([
        Claim::Cite(citation),
        Claim::Add(TextSet::TAGS, format!("a {PLANTED} tag")),
        Claim::Add(TextSet::ANCHORS, anchor),
        Claim::Set(Register::THREAD, format!("{PLANTED}-thread")),
    ]) {
        team.alice.claim(entry, claim);
    }
    team.exchange();
    entry
}

/// What a verb prints that is typed in a checkout.
fn typed_in(home: &Path, folder: &Path, words: &[&str]) -> String {
    printed(&klnode(home).current_dir(folder).args(words).output().unwrap())
}

#[test]
fn what_a_member_puts_beside_an_own_entry_is_counted_and_not_quoted() {
    let mut team = team_of_today();
    let tree = Tree::new(&["lib/kept.rs"]);
    let entry = beside(&mut team, &tree).to_string();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    let more = "1 more tag and 1 more citation of others";
    let broken = "broken: \"path:lib/gone.rs\" (";
    let others = "broken: 1 more that others say it depends on";
    let search = ["search", "retry zqbilling gateway"];
    let found = typed_in(&home, tree.path(), &search);
    assert!(found.contains("queue; commit:1a2b3c4"), "{found}");
    let briefed = typed_in(&home, tree.path(), &["briefing", "team"]);
    for (text, parts) in [(&found, &[more, broken, others][..]), (&briefed, &[broken, others])] {
        assert!(!text.contains(PLANTED), "{text}");
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let hit = typed_in(&home, tree.path(), &[&search[..], &["--json"]].concat());
    assert!(!hit.contains(PLANTED), "{hit}");
    let mut agent = Agent::new(&home, &[]);
    let read = agent.done("get", &object!({"code": entry}));
    agent.close();
    assert!(!read.to_string().contains(PLANTED), "{read}");
    assert!(read["entry"]["caveats"].as_array().unwrap().contains(&object!(more)), "{read}");
    // By name all of it can be seen, with whose word it is.
    let shown = typed_in(&home, tree.path(), &["show", &entry]);
    for part in ["tags by alice: a ", "evidence by alice: commit:0 ", "thread by alice: "] {
        assert!(shown.contains(&format!("\nof others     {part}{PLANTED}")), "{shown}");
    }
    let labelled = shown.lines().filter(|line| line.contains(PLANTED));
    assert!(labelled.clone().all(|line| line.starts_with("of others ")), "{shown}");
    assert_eq!(labelled.count(), 4, "{shown}");
}

#[test]
fn a_pipe_gets_what_may_speak_unasked_and_everything_when_it_is_asked_for() {
    let mut team = team_of_today();
    let own = team.node.create_in(team.shared.id, "our own");
    let hers = team.alice.create_in(team.shared.id, "by a member");
    let forged = format!("{PLANTED} outside");
    let outside = team.carol.create(&forged).to_string();
    team.exchange();
    team.carol.claim(own, Claim::Set(Register::TITLE, format!("{PLANTED} proposal")));
    team.exchange();
    let (own, hers) = (own.to_string(), hers.to_string());
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    let output = run(&home, &["list"]);
    let listed = printed(&output);
    assert!(listed.contains("  our own\n"), "{listed}");
    assert!(listed.contains("  [by alice, untried]  by a member\n"), "{listed}");
    let left = "Left out of a pipe: 1 entry that may not speak unasked; `--all` lists them.\n";
    assert_eq!(told(&output), left, "beside the answer");
    let output = run(&home, &["list", "--json"]);
    assert_eq!(told(&output), "", "a program has it in the answer");
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(2));
    assert_eq!(page["left_out"], 1);
    let why = "it is by no member of its workspace, and nobody here has seen it work";
    for verb in ["show", "history"] {
        for more in [&["--json"][..], &[]] {
            let said = run(&home, &[&[verb, outside.as_str()], more].concat());
            assert_eq!(said.status.code(), Some(1), "{verb}");
            assert!(said.stdout.is_empty() && told(&said).contains(why), "{}", told(&said));
            printed(&run(&home, &[&[verb, hers.as_str()], more].concat()));
            let said = printed(&run(&home, &[&[verb, own.as_str()], more].concat()));
            assert!(!said.contains(PLANTED), "{verb}: {said}");
        }
        for entry in [&outside, &own] {
            let said = printed(&run(&home, &[verb, entry, "--all"]));
            assert!(said.contains(PLANTED), "{verb}: {said}");
        }
    }
    let all = printed(&run(&home, &["list", "--all"]));
    assert!(all.contains(&format!("  [by carol, untried]  {forged}\n")), "{all}");
    let history = json(&home, &["history", &hers]);
    assert_eq!([&history["gate"], &history["author_name"]], ["last_places", "alice"]);
    assert_eq!(history["records"][0]["heard"], Value::Bool(true), "{history}");
}

#[test]
fn a_members_version_of_a_contested_field_is_listed_with_its_author_and_no_rival_is_in_a_pipe() {
    let mut team = team_of_today();
    let own = team.node.create_in(team.shared.id, "our own");
    team.exchange();
    team.alice.claim(own, Claim::Set(Register::TITLE, format!("{PLANTED} title")));
    team.node.now = WallTime::from_millis(team.node.now.as_millis() + 5);
    team.node.claim(own, Claim::Set(Register::TITLE, "ours anew".into()));
    team.exchange();
    let own = own.to_string();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    for more in [&["--json"][..], &[]] {
        let show = [&["show", own.as_str()], more].concat();
        let said = printed(&run(&home, &show));
        assert!(said.contains("contested: title") && !said.contains("\"rivals\""), "{said}");
        let said = printed(&run(&home, &[&show[..], &["--all"]].concat()));
        assert!(said.contains(PLANTED), "{said}");
    }
    let shown = json(&home, &["show", &own]);
    let of =
        |number: usize| ["author_name", "gate"].map(|name| shown["versions"][number][name].clone());
    assert_eq!([of(0), of(1)], [["alice", "open"], ["you", "open"]], "{shown}");
}

/// What is said of an entry that is shown by name.
fn said_of(node: &Node, entry: EntryId) -> Vec<Caveat> {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let reading = reader.at(&snapshot, node.now).unwrap();
    let found = reading.read(entry).unwrap().expect("it is held");
    reading.caveats(&found, None).unwrap()
}

/// Which way an entry speaks.
fn speaks(way: &str) -> Claim {
    Claim::Set(Register::POLARITY, way.into())
}

/// What is named as saying the opposite of an entry.
fn named_against(node: &Node, entry: EntryId) -> BTreeSet<EntryId> {
    let said = said_of(node, entry).into_iter().filter_map(|caveat| match caveat {
        Caveat::ContradictedBy { entry, .. } => Some(entry),
        _ => None,
    });
    said.collect()
}

#[test]
fn whoever_may_not_speak_unasked_is_not_named_against_an_entry_until_it_was_tried_here() {
    let mut team = Team::gather();
    let own = team.node.create_in(team.shared.id, "retry the billing gateway with backoff: always");
    let never = "retry the billing gateway with backoff: never";
    let members = team.alice.create_in(team.shared.id, never);
    let strangers = team.carol.create(never);
    team.node.claim(own, speaks("positive"));
    team.alice.claim(members, speaks("negative"));
    team.carol.claim(strangers, speaks("negative"));
    team.exchange();
    for other in [members, strangers] {
        contradict(&mut team.node, own, other);
    }
    assert_eq!(named_against(&team.node, own), BTreeSet::from([members]));
    assert_eq!(named_against(&team.node, strangers), BTreeSet::from([own]));
    let said = said_of(&team.node, own).iter().map(Caveat::to_string).collect::<Vec<_>>();
    assert!(said.iter().all(|caveat| !caveat.contains("retry")), "no word of it: {said:?}");
    let index = Indexed::start(&team.node);
    for audience in [Audience::Gated, Audience::All] {
        let answer = index.ask(&team.node, "retry billing gateway backoff", audience);
        let hit = answer.hits.iter().find(|hit| hit.found.entry == own).expect("found");
        let code = team.node.found(strangers).code();
        assert!(hit.caveats.iter().all(|one| !one.to_string().contains(&code)), "{audience:?}");
    }
    team.node.claim(strangers, Claim::Add(TextSet::TAGS, "billing".into()));
    assert_eq!(named_against(&team.node, own), BTreeSet::from([members]), "a tag is no trial");
    team.node.succeed(strangers);
    assert_eq!(named_against(&team.node, own), BTreeSet::from([members, strangers]));
    team.node.run(Command::Retract { entry: own }).unwrap();
    assert_eq!(named_against(&team.node, own), BTreeSet::new(), "it says nothing any more");
}

#[test]
fn of_many_that_say_the_opposite_a_few_are_named_and_the_rest_is_counted() {
    let mut node = Node::start(1, 1);
    let own = node.create("always retry");
    node.claim(own, speaks("positive"));
    for (named, more) in [
        (1, None),
        (2, None),
        (3, None),
        (3, Some("contradicted by 1 more")),
        (3, Some("contradicted by 2 more")),
    ] {
        let other = node.create("never retry");
        node.claim(other, speaks("negative"));
        contradict(&mut node, own, other);
        assert_eq!(named_against(&node, own).len(), named);
        let said = said_of(&node, own).iter().map(Caveat::to_string).collect::<Vec<_>>();
        let said: Vec<&String> =
            said.iter().filter(|one| one.starts_with("contradicted")).collect();
        let last = said.get(named).map(|one| one.as_str());
        assert_eq!((said.len(), last), (named + usize::from(more.is_some()), more), "{said:?}");
    }
}

#[test]
fn what_must_be_said_of_an_entry_is_said_by_every_answer() {
    let mut team = Team::gather();
    let [old, new] = ["the old way", "the new way"].map(|title| {
        let entry = team.node.create_in(team.shared.id, title);
        for _ in 0..4 {
            team.node.succeed(entry);
        }
        entry
    });
    team.node.claim(old, Claim::Set(Register::FAILED_WORK, "true".into()));
    team.node.claim(new, Claim::Link(Link { relation: Relation::SUPERSEDES, to: old }));
    let said = said_of(&team.node, old);
    let is_superseded =
        |caveat: &Caveat| matches!(caveat, Caveat::SupersededBy { entry, .. } if *entry == new);
    assert!(said.iter().any(is_superseded) && said.contains(&Caveat::FailedWork), "{said:?}");
    let workspace = team.shared.id;
    let question = BriefingQuestion {
        workspace,
        thread: None,
        task_thread: None,
        tokens_max: None,
        checkout: None,
    };
    let snapshot = team.node.engine.store().snapshot().unwrap();
    let (reader, now) = (team.node.reader(), team.node.now);
    let told = reader.briefing(&snapshot, &question, now, &Cancel::default()).unwrap();
    let line = told.text.lines().find(|line| line.contains("\"the old way\"")).expect("told");
    assert!(line.contains("; superseded by L-") && line.contains("; from work that failed"));
    assert!(!said_of(&team.node, new).iter().any(is_superseded));
}

/// Writes an entry in a task.
fn write_in(node: &mut Node, task: TaskId, title: &str) -> EntryId {
    let act = TaskAct::Create(task, Box::new(lesson(title)));
    match node.run(Command::Task(Box::new(act))) {
        Ok(Receipt::Created(entry)) => entry,
        other => panic!("the entry was not created: {other:?}"),
    }
}

#[test]
fn what_was_written_in_a_task_that_nobody_finishes_says_so_unless_it_is_finished_after_all() {
    let mut node = Node::start(1, 1);
    let task = begin(&mut node);
    let entry = write_in(&mut node, task, "retry the zqbilling gateway");
    let cleared = write_in(&mut node, task, "what was looked at again");
    node.claim(cleared, Claim::Set(Register::FAILED_WORK, "false".into()));
    let outside = node.create("of no task");
    let is_told = |node: &Node, entry| said_of(node, entry).contains(&Caveat::AbandonedWork);
    assert!(!is_told(&node, entry), "the task goes on");
    let begun = node.now;
    node.wait_days(8);
    assert!(is_told(&node, entry));
    assert_eq!(Caveat::AbandonedWork.to_string(), "from work that was abandoned");
    assert!(!is_told(&node, cleared), "somebody said otherwise");
    assert!(!is_told(&node, outside));
    let promotion = Promotion { new: lesson("promoted"), source: entry, approved_by: None };
    let promoted = node.run(Command::Promote(Box::new(promotion))).unwrap();
    let Receipt::Created(promoted) = promoted else { panic!("{promoted:?}") };
    assert!(is_told(&node, promoted), "promoting finishes nothing");
    let answer = Indexed::start(&node).ask(&node, "retry zqbilling gateway", Audience::Gated);
    assert!(answer.hits[0].caveats.contains(&Caveat::AbandonedWork), "{:?}", answer.hits[0]);
    // The clock was wrong, and the task is not over.
    node.now = begun;
    end(&mut node, task, Vec::new()).unwrap();
    node.wait_days(8);
    assert!(!is_told(&node, entry));
}

#[test]
fn what_is_dated_ahead_says_so_until_its_day_comes() {
    let mut team = Team::gather();
    team.alice.wait_days(30);
    let entry = team.alice.create_in(team.shared.id, "retry the zqbilling gateway");
    team.exchange();
    let is_early = |caveat: &Caveat| matches!(caveat, Caveat::Early(_));
    assert!(said_of(&team.node, entry).iter().any(is_early));
    let index = Indexed::start(&team.node);
    for audience in [Audience::All, Audience::Gated] {
        let answer = index.ask(&team.node, "retry zqbilling gateway", audience);
        assert!(answer.hits[0].caveats.iter().any(is_early), "{:?}", answer.hits[0].caveats);
    }
    team.node.wait_days(30);
    assert!(!said_of(&team.node, entry).iter().any(is_early));
}
