//! Attribution of answers: additions by other authors are shown as theirs, caveats appear in every
//! answer that shows an entry, and a pipe gets only entries that may be served unasked.

use crate::audit::contradict;
use crate::support::homes::settle;
use crate::support::mcp_client::Agent;
use crate::support::node_process::{json, klnode, printed, run, start, told};
use crate::tasks::{begin, end};
use klnode_crdt::claims::{Citation, Link, Relation, TextSet};
use klnode_crdt::ids::{EntryId, TaskId};
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::time::WallTime;
use klnode_engine::{Command, NewEntry, Promotion, Receipt, TaskCommand};
use klnode_query::{Audience, BriefingQuestion, Cancel, HitCaveat};
use klnode_tests::checkout::Tree;
use klnode_tests::test_engine::{Node, START, lesson};
use klnode_tests::workspace_fixture::{Indexed, Team};
use serde_json::{Value, json as object};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// A word that occurs in all planted texts.
const PLANTED: &str = "zqplanted";

/// A team with the clock of the machine: processes continue with its stores.
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

/// A tried own entry to which a member has added a tag, a citation, an anchor and a thread.
fn beside(team: &mut Team, tree: &Tree) -> EntryId {
    let mut own = tree.bound(&["path:lib/gone.rs"]);
    own.extend([
        ClaimEdit::Add(TextSet::TAGS, "queue".into()),
        ClaimEdit::Add(TextSet::DEPENDS_ON, "path:lib/gone.rs".into()),
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
        // It sorts before the own one in the set.
        evidence_ref: format!("0 {PLANTED} before any upload"),
        cited_by: "alice".into(),
        cited_at: START,
        is_context: false,
    };
    let anchor = format!("path:\"{PLANTED} note to agents\"");
    let bound = tree.bound(&[&anchor]);
    for claim in bound.into_iter().chain([
        ClaimEdit::Cite(citation),
        ClaimEdit::Add(TextSet::TAGS, format!("a {PLANTED} tag")),
        ClaimEdit::Add(TextSet::ANCHORS, anchor),
        ClaimEdit::Set(Register::THREAD, format!("{PLANTED}-thread")),
    ]) {
        team.alice.claim(entry, claim);
    }
    team.exchange();
    entry
}

/// Output of a verb typed in a checkout.
fn typed_in(home: &Path, folder: &Path, words: &[&str]) -> String {
    printed(&klnode(home).current_dir(folder).args(words).output().unwrap())
}

#[test]
fn a_members_additions_to_an_own_entry_are_counted_and_not_quoted() {
    let mut team = team_of_today();
    let tree = Tree::new(&["lib/kept.rs"]);
    let entry = beside(&mut team, &tree).to_string();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    let more = "1 more tag and 1 more citation of others";
    let broken = "broken: \"path:lib/gone.rs\" (";
    let others = "broken: 1 more, added by other authors";
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
    // `show` displays all of it with its author.
    let shown = typed_in(&home, tree.path(), &["show", &entry]);
    for part in ["tags by alice: a ", "evidence by alice: commit:0 ", "thread by alice: "] {
        assert!(shown.contains(&format!("\nof others     {part}{PLANTED}")), "{shown}");
    }
    let labelled = shown.lines().filter(|line| line.contains(PLANTED));
    assert!(labelled.clone().all(|line| line.starts_with("of others ")), "{shown}");
    assert_eq!(labelled.count(), 4, "{shown}");
}

#[test]
fn a_pipe_gets_only_trusted_entries_unless_all_are_requested() {
    let mut team = team_of_today();
    let own = team.node.create_in(team.shared.id, "our own");
    let hers = team.alice.create_in(team.shared.id, "by a member");
    let forged = format!("{PLANTED} outside");
    let outside = team.carol.create(&forged).to_string();
    team.exchange();
    team.carol.claim(own, ClaimEdit::Set(Register::TITLE, format!("{PLANTED} proposal")));
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
    let left =
        "1 entry hidden as untrusted because output is not a terminal; use --all to list them.\n";
    assert_eq!(told(&output), left, "on standard error");
    let output = run(&home, &["list", "--json"]);
    assert_eq!(told(&output), "", "the JSON answer contains it");
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(2));
    assert_eq!(page["left_out"], 1);
    let why = "its author is no member of the workspace, and it has not proved useful here";
    for verb in [&["show"][..], &["show", "--history"]] {
        for more in [&["--json"][..], &[]] {
            let said = run(&home, &[verb, &[outside.as_str()], more].concat());
            assert_eq!(said.status.code(), Some(1), "{verb:?}");
            assert!(said.stdout.is_empty() && told(&said).contains(why), "{}", told(&said));
            printed(&run(&home, &[verb, &[hers.as_str()], more].concat()));
            let said = printed(&run(&home, &[verb, &[own.as_str()], more].concat()));
            assert!(!said.contains(PLANTED), "{verb:?}: {said}");
        }
        for entry in [&outside, &own] {
            let said = printed(&run(&home, &[verb, &[entry, "--all"]].concat()));
            assert!(said.contains(PLANTED), "{verb:?}: {said}");
        }
    }
    let all = printed(&run(&home, &["list", "--all"]));
    assert!(all.contains(&format!("  [by carol, untried]  {forged}\n")), "{all}");
    let history = json(&home, &["show", "--history", &hers]);
    assert_eq!([&history["gate"], &history["author_name"]], ["last_places", "alice"]);
    assert_eq!(history["records"][0]["heard"], Value::Bool(true), "{history}");
}

#[test]
fn a_members_version_is_listed_with_its_author_and_left_out_of_a_pipe() {
    let mut team = team_of_today();
    let own = team.node.create_in(team.shared.id, "our own");
    team.exchange();
    team.alice.claim(own, ClaimEdit::Set(Register::TITLE, format!("{PLANTED} title")));
    team.node.now = WallTime::from_millis(team.node.now.as_millis() + 5);
    team.node.claim(own, ClaimEdit::Set(Register::TITLE, "ours anew".into()));
    team.exchange();
    let own = own.to_string();
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    settle(&home, team.node, 1);
    let (_node, _) = start(&home);
    for more in [&["--json"][..], &[]] {
        let show = [&["show", own.as_str()], more].concat();
        let said = printed(&run(&home, &show));
        assert!(said.contains("edit conflict: title") && !said.contains("\"rivals\""), "{said}");
        let said = printed(&run(&home, &[&show[..], &["--all"]].concat()));
        assert!(said.contains(PLANTED), "{said}");
    }
    let shown = json(&home, &["show", &own]);
    let of =
        |number: usize| ["author_name", "gate"].map(|name| shown["versions"][number][name].clone());
    assert_eq!([of(0), of(1)], [["alice", "open"], ["you", "open"]], "{shown}");
}

/// Caveats of an entry that is shown by name.
fn said_of(node: &Node, entry: EntryId) -> Vec<HitCaveat> {
    let (snapshot, reader) = (node.engine.store().snapshot().unwrap(), node.reader());
    let reading = reader.at(&snapshot, node.now).unwrap();
    let found = reading.read(entry).unwrap().expect("it is held");
    reading.caveats(&found, None).unwrap()
}

/// Claim that sets the polarity of an entry.
fn speaks(way: &str) -> ClaimEdit {
    ClaimEdit::Set(Register::POLARITY, way.into())
}

/// Entries that are named as contradicting an entry.
fn named_against(node: &Node, entry: EntryId) -> BTreeSet<EntryId> {
    let said = said_of(node, entry).into_iter().filter_map(|caveat| match caveat {
        HitCaveat::ContradictedBy { entry, .. } => Some(entry),
        _ => None,
    });
    said.collect()
}

#[test]
fn untrusted_entries_are_not_named_as_contradictions_until_tried() {
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
    let said = said_of(&team.node, own).iter().map(HitCaveat::to_string).collect::<Vec<_>>();
    assert!(
        said.iter().all(|caveat| !caveat.contains("retry")),
        "its text is not quoted: {said:?}"
    );
    let index = Indexed::start(&team.node);
    for audience in [Audience::Gated, Audience::All] {
        let answer = index.ask(&team.node, "retry billing gateway backoff", audience);
        let hit = answer.hits.iter().find(|hit| hit.found.entry == own).expect("found");
        let code = team.node.found(strangers).code();
        assert!(hit.caveats.iter().all(|one| !one.to_string().contains(&code)), "{audience:?}");
    }
    team.node.claim(strangers, ClaimEdit::Add(TextSet::TAGS, "billing".into()));
    assert_eq!(
        named_against(&team.node, own),
        BTreeSet::from([members]),
        "a tag does not make it tried"
    );
    team.node.succeed(strangers);
    assert_eq!(named_against(&team.node, own), BTreeSet::from([members, strangers]));
    team.node.run(Command::Retract { entry: own }).unwrap();
    assert_eq!(named_against(&team.node, own), BTreeSet::new(), "it was retracted");
}

#[test]
fn of_many_contradicting_entries_a_few_are_named_and_the_rest_counted() {
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
        let said = said_of(&node, own).iter().map(HitCaveat::to_string).collect::<Vec<_>>();
        let said: Vec<&String> =
            said.iter().filter(|one| one.starts_with("contradicted")).collect();
        let last = said.get(named).map(|one| one.as_str());
        assert_eq!((said.len(), last), (named + usize::from(more.is_some()), more), "{said:?}");
    }
}

#[test]
fn every_answer_shows_the_caveats_of_an_entry() {
    let mut team = Team::gather();
    let [old, new] = ["the old way", "the new way"].map(|title| {
        let entry = team.node.create_in(team.shared.id, title);
        for _ in 0..4 {
            team.node.succeed(entry);
        }
        entry
    });
    team.node.claim(old, ClaimEdit::Set(Register::FAILED_WORK, "true".into()));
    team.node.claim(new, ClaimEdit::Link(Link { relation: Relation::SUPERSEDES, to: old }));
    let said = said_of(&team.node, old);
    let is_superseded = |caveat: &HitCaveat| matches!(caveat, HitCaveat::SupersededBy { entry, .. } if *entry == new);
    assert!(said.iter().any(is_superseded) && said.contains(&HitCaveat::FailedWork), "{said:?}");
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
    let act = TaskCommand::Create(task, Box::new(lesson(title)));
    match node.run(Command::Task(Box::new(act))) {
        Ok(Receipt::Created(entry)) => entry,
        other => panic!("the entry was not created: {other:?}"),
    }
}

#[test]
fn entries_of_abandoned_tasks_have_a_caveat_until_the_task_finishes() {
    let mut node = Node::start(1, 1);
    let task = begin(&mut node);
    let entry = write_in(&mut node, task, "retry the zqbilling gateway");
    let cleared = write_in(&mut node, task, "looked at again");
    node.claim(cleared, ClaimEdit::Set(Register::FAILED_WORK, "false".into()));
    let outside = node.create("of no task");
    let is_told = |node: &Node, entry| said_of(node, entry).contains(&HitCaveat::AbandonedWork);
    assert!(!is_told(&node, entry), "the task is open");
    let begun = node.now;
    node.wait_days(8);
    assert!(is_told(&node, entry));
    assert_eq!(HitCaveat::AbandonedWork.to_string(), "from work that was abandoned");
    assert!(!is_told(&node, cleared), "feedback was given");
    assert!(!is_told(&node, outside));
    let promotion =
        Promotion { new: lesson("promoted"), source: entry, approved_by: None, reason: None };
    let promoted = node.run(Command::Promote(Box::new(promotion))).unwrap();
    let Receipt::Created(promoted) = promoted else { panic!("{promoted:?}") };
    assert!(is_told(&node, promoted), "promoting does not finish the task");
    let answer = Indexed::start(&node).ask(&node, "retry zqbilling gateway", Audience::Gated);
    assert!(answer.hits[0].caveats.contains(&HitCaveat::AbandonedWork), "{:?}", answer.hits[0]);
    // The clock was wrong, and the task is not over.
    node.now = begun;
    end(&mut node, task, Vec::new()).unwrap();
    node.wait_days(8);
    assert!(!is_told(&node, entry));
}

#[test]
fn entries_dated_in_the_future_have_a_caveat_until_their_day() {
    let mut team = Team::gather();
    team.alice.wait_days(30);
    let entry = team.alice.create_in(team.shared.id, "retry the zqbilling gateway");
    team.exchange();
    let is_early = |caveat: &HitCaveat| matches!(caveat, HitCaveat::Early(_));
    assert!(said_of(&team.node, entry).iter().any(is_early));
    let index = Indexed::start(&team.node);
    for audience in [Audience::All, Audience::Gated] {
        let answer = index.ask(&team.node, "retry zqbilling gateway", audience);
        assert!(answer.hits[0].caveats.iter().any(is_early), "{:?}", answer.hits[0].caveats);
    }
    team.node.wait_days(30);
    assert!(!said_of(&team.node, entry).iter().any(is_early));
}
