//! Briefings: entries of a workspace that matter now, in a fixed order, under a budget, quoted as
//! data.

use crate::support::node_process::{klnode, start, told};
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_engine::{Command, MarkChange, NewEntry, NewTask, TaskCommand};
use klnode_query::{Briefing, BriefingQuestion, Cancel, Reader};
use klnode_scoring::briefing::FIRST_LINE;
use klnode_scoring::briefing::Section;
use klnode_server::Limits;
use klnode_store::Snapshot;
use klnode_tests::checkout::Tree;
use klnode_tests::test_engine::{Node, lesson};
use klnode_tests::test_server::{Doors, Served};
use klnode_tests::workspace_fixture::Team;
use serde_json::{Value, json};

fn question(workspace: WorkspaceId) -> BriefingQuestion {
    BriefingQuestion {
        workspace,
        thread: None,
        task_thread: None,
        tokens_max: None,
        checkout: None,
    }
}

fn told_of(node: &Node, question: &BriefingQuestion) -> Briefing {
    let snapshot = node.engine.store().snapshot().unwrap();
    node.reader().briefing(&snapshot, question, node.now, &Cancel::default()).unwrap()
}

/// Entries under each heading.
fn sections(briefing: &Briefing) -> Vec<(Section, Vec<EntryId>)> {
    let entries = briefing.sections.iter().map(|section| {
        (section.section, section.entries.iter().map(|one| one.found.entry).collect())
    });
    entries.collect()
}

fn under(briefing: &Briefing, section: Section) -> Vec<EntryId> {
    let found = sections(briefing).into_iter().find(|(of, _)| *of == section);
    found.map(|(_, entries)| entries).unwrap_or_default()
}

fn verify(node: &mut Node, entry: EntryId) {
    for _ in 0..4 {
        node.succeed(entry);
    }
}

/// A lesson with a polarity.
fn sided(polarity: &str, title: &str) -> NewEntry {
    NewEntry {
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: ["retry", "billing"].map(|tag| ClaimEdit::Add(TextSet::TAGS, tag.into())).to_vec(),
        ..lesson(title)
    }
}

#[test]
fn headings_are_ordered_and_each_entry_is_under_one() {
    let mut node = Node::start(1, 1);
    let quiet = node.create("stale by now");
    node.wait_days(100);
    let verified = node.create("seen to work");
    verify(&mut node, verified);
    let yes = node.create_new(sided("positive", "retry the billing gateway with backoff: always"));
    let no = node.create_new(sided("negative", "retry the billing gateway with backoff: never"));
    verify(&mut node, yes);
    node.create("only a candidate");
    node.create_in(WorkspaceId::LOCAL, "of another workspace");
    let task = NewTask { agent: "builder".into(), goal: "mend it".into(), ..NewTask::default() };
    node.run(Command::Task(Box::new(TaskCommand::Begin(task)))).unwrap();
    let briefing = told_of(&node, &question(WorkspaceId::MAIN));
    let expect = [
        (Section::Verified, vec![verified]),
        (Section::Contested, vec![yes, no]),
        (Section::Stale, vec![quiet]),
    ];
    assert_eq!(sections(&briefing), expect, "{}", briefing.text);
    assert_eq!((briefing.tasks.len(), briefing.left_out), (1, 0));
    let lines: Vec<&str> = briefing.text.lines().collect();
    assert_eq!(lines[0], FIRST_LINE);
    assert_eq!(lines.len(), 1 + 4 + 4 + 1, "{}", briefing.text);
    assert!(lines[4].contains("competes with L-"), "{}", briefing.text);
    assert!(lines[9].ends_with("\"mend it\" (by \"builder\")"), "{}", briefing.text);
    // The same store at the same moment gives the same bytes.
    assert_eq!(told_of(&node, &question(WorkspaceId::MAIN)).text, briefing.text);
    let empty = told_of(&node, &question(WorkspaceId::of(node.author(), Default::default())));
    assert!(empty.sections.is_empty(), "{}", empty.text);
}

#[test]
fn archived_entries_contradict_nothing() {
    let mut node = Node::start(1, 1);
    let yes = node.create_new(sided("positive", "retry the billing gateway with backoff: always"));
    let no = node.create_new(sided("negative", "retry the billing gateway with backoff: never"));
    verify(&mut node, yes);
    let told = |node: &Node| told_of(node, &question(WorkspaceId::MAIN));
    assert_eq!(under(&told(&node), Section::Contested), [yes, no]);
    node.claim(no, ClaimEdit::Archive(Presence::Present));
    let briefing = told(&node);
    assert_eq!(sections(&briefing), [(Section::Verified, vec![yes])], "{}", briefing.text);
    assert!(!briefing.text.contains("competes with"), "{}", briefing.text);
}

#[test]
fn of_two_competing_entries_the_stronger_is_first_with_the_reason() {
    let mut node = Node::start(1, 1);
    let old = node.create_new(sided("positive", "retry the billing gateway with backoff: always"));
    node.wait_days(400);
    let new = node.create_new(sided("negative", "retry the billing gateway with backoff: never"));
    // Its confidence is slightly higher, with no other difference.
    node.succeed(old);
    let means = [old, new].map(|entry| node.found(entry).assessment.confidence.posterior.mean());
    assert!(means[0] > means[1], "{means:?}");
    let briefing = told_of(&node, &question(WorkspaceId::MAIN));
    assert_eq!(under(&briefing, Section::Contested), [new, old], "{}", briefing.text);
    let first = ": listed first: better supported by ";
    let after = ": listed after it: the other is better supported by ";
    assert!(briefing.text.contains(first) && briefing.text.contains(after), "{}", briefing.text);
}

#[test]
fn duplicates_are_listed_once_and_muted_together() {
    let mut node = Node::start(1, 1);
    let [one, two] = ["bound the queue"; 2].map(|title| node.create(title));
    node.claim(two, ClaimEdit::Link(Link { relation: Relation::SAME_AS, to: one }));
    for entry in [one, two] {
        verify(&mut node, entry);
    }
    let told = |node: &Node| sections(&told_of(node, &question(WorkspaceId::MAIN)));
    let once = [(Section::Verified, vec![one])];
    assert_eq!(told(&node), once);
    let mute = |node: &mut Node, entry: EntryId, muted: bool| {
        let marks = MarkChange { muted: Some(muted), ..MarkChange::default() };
        node.run(Command::Mark { entry, marks }).unwrap();
    };
    mute(&mut node, two, true);
    assert_eq!(told(&node), once, "it is not the survivor");
    mute(&mut node, two, false);
    mute(&mut node, one, true);
    let told = told(&node);
    assert!(told.is_empty(), "its duplicate is hidden too: {told:?}");
}

#[test]
fn relevant_entries_are_found_in_a_large_workspace() {
    let mut node = Node::start(1, 1);
    let many = |node: &mut Node| {
        let new = |number| Command::Create(Box::new(lesson(&format!("one of many, {number}"))));
        let commands: Vec<Command> = (0..400).map(new).collect();
        assert!(node.engine.step(&commands, node.now).iter().all(Result::is_ok));
    };
    many(&mut node);
    let verified = node.create("seen to work");
    verify(&mut node, verified);
    // It is neither the newest nor the longest unchanged entry.
    many(&mut node);
    let briefing = told_of(&node, &question(WorkspaceId::MAIN));
    assert_eq!(sections(&briefing), [(Section::Verified, vec![verified])], "{}", briefing.text);
}

#[test]
fn a_flood_by_another_author_displaces_no_own_entry() {
    for is_member in [false, true] {
        let mut team = Team::gather();
        let workspace = team.shared.id;
        // As many as are read for one reason, and a few more.
        let flood = |team: &mut Team, name: &str| {
            let by = if is_member { &mut team.alice } else { &mut team.carol };
            for number in 0..130 {
                let entry = by.create_in(workspace, &format!("{name} {number}"));
                by.succeed(entry);
            }
            by.send_to(&mut team.node);
        };
        flood(&mut team, "quiet for longer");
        let own = team.node.create_in(workspace, "seen to work");
        verify(&mut team.node, own);
        flood(&mut team, "changed later");
        let briefing = told_of(&team.node, &question(workspace));
        assert_eq!(under(&briefing, Section::Verified), [own], "{is_member}: {}", briefing.text);
    }
}

#[test]
fn a_long_lived_reader_gives_the_same_briefing_as_a_new_one() {
    let mut node = Node::start(1, 1);
    let new = |number| Command::Create(Box::new(lesson(&format!("one of many, {number}"))));
    let commands: Vec<Command> = (0..400).map(new).collect();
    assert!(node.engine.step(&commands, node.now).iter().all(Result::is_ok));
    let reader = node.reader();
    let told_at = |node: &Node, snapshot: &Snapshot| {
        let texts = [WorkspaceId::MAIN, WorkspaceId::LOCAL].map(|workspace| {
            let told = |reader: &Reader| {
                let asked = question(workspace);
                reader.briefing(snapshot, &asked, node.now, &Cancel::default()).unwrap().text
            };
            let kept = told(&reader);
            assert_eq!(kept, told(&node.reader()));
            kept
        });
        texts.concat()
    };
    let told = |node: &Node| told_at(node, &node.engine.store().snapshot().unwrap());
    assert!(!told(&node).contains("seen to work"));
    // A few changes, which are read from the feed, and then more than are read that way.
    let verified = node.create("seen to work");
    verify(&mut node, verified);
    let local = node.create_in(WorkspaceId::LOCAL, "works here alone");
    verify(&mut node, local);
    let before = node.engine.store().snapshot().unwrap();
    let both = told(&node);
    assert!(both.contains("seen to work") && both.contains("works here alone"), "{both}");
    node.retitle(verified, "seen to work twice");
    assert!(told(&node).contains("seen to work twice"));
    node.run(Command::Forget { entry: verified }).unwrap();
    let after = told(&node);
    assert!(!after.contains("seen to work") && after.contains("works here alone"), "{after}");
    assert_eq!(told_at(&node, &before), both, "an older snapshot gives the older briefing");
    assert!(node.engine.step(&commands, node.now).iter().all(Result::is_ok));
    assert_eq!(told(&node), after);
}

#[test]
fn untried_entries_by_members_get_two_places_and_others_none() {
    let mut team = Team::gather();
    let workspace = team.shared.id;
    let titles = ["first", "second", "third"];
    let untried: Vec<EntryId> =
        titles.iter().map(|title| team.alice.create_in(workspace, title)).collect();
    team.carol.create_in(workspace, "from a non-member");
    team.exchange();
    let briefing = told_of(&team.node, &question(workspace));
    let brought = under(&briefing, Section::Brought);
    assert_eq!((brought.len(), briefing.left_out), (2, 1), "{}", briefing.text);
    assert!(brought.iter().all(|entry| untried.contains(entry)), "{}", briefing.text);
    let labelled = briefing.text.matches("uncorroborated: not confirmed here").count();
    assert_eq!(labelled, 2, "{}", briefing.text);
    assert_eq!(briefing.text.matches("by alice, 1 hop, trust 0.10").count(), 2);
    assert!(!briefing.text.contains("no member"), "{}", briefing.text);
    // An entry that has worked here takes none of the two places.
    team.node.succeed(brought[0]);
    let briefing = told_of(&team.node, &question(workspace));
    let again = under(&briefing, Section::Brought);
    assert_eq!((again.len(), again[0]), (3, brought[0]), "{}", briefing.text);
    // An entry received long ago is no longer listed as new.
    team.node.wait_days(15);
    let briefing = told_of(&team.node, &question(workspace));
    assert_eq!(under(&briefing, Section::Brought), [], "{}", briefing.text);
}

#[test]
fn the_budget_is_kept_and_omitted_entries_are_counted() {
    let mut node = Node::start(1, 1);
    for number in 0..5 {
        let entry = node.create(&format!("a lesson about the number {number} of many"));
        verify(&mut node, entry);
    }
    let ask = |tokens| {
        let question = BriefingQuestion { tokens_max: Some(tokens), ..question(WorkspaceId::MAIN) };
        told_of(&node, &question)
    };
    let whole = ask(20_000);
    assert_eq!((whole.sections[0].entries.len(), whole.left_out), (5, 0));
    assert!(whole.sections[0].entries.iter().all(|one| !one.line.is_empty()));
    let mut shown_before = 5;
    let mut has_cut_a_line = false;
    for tokens in (100..=whole.tokens).rev().step_by(10) {
        let briefing = ask(tokens);
        assert!(briefing.tokens <= tokens, "{tokens}: {}", briefing.text);
        let entries = briefing.sections.first().map_or(&[][..], |section| &section.entries);
        let is_cut = entries.iter().any(|one| one.line.is_empty());
        has_cut_a_line |= is_cut && entries.len() == 5;
        assert!(entries.len() <= shown_before, "{tokens}");
        assert_eq!(entries.len() + briefing.left_out, 5, "{tokens}: {}", briefing.text);
        if briefing.left_out > 0 {
            assert!(entries.iter().all(|one| one.line.is_empty()), "titles go last: {tokens}");
        }
        shown_before = entries.len();
    }
    assert!(has_cut_a_line && shown_before < 5, "both cases occur");
}

#[test]
fn a_briefing_primes_its_session_and_counts_no_use() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let post = |path: &str, session: &str, body: &Value| -> Value {
        let headers = [("Content-Type", "application/json"), ("klnode-session", session)];
        let answer = node.ask("POST", path, &headers, body.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let content = "Say \"yes\".\nThen go on.";
    let new = json!({"title": "Quote \"this\"", "content": content, "evidence": ["doc:notes"]});
    let entry = post("/v1/entries", "writer", &new)["id"].as_str().unwrap().to_owned();
    for job in 0..4 {
        let task =
            post("/v1/tasks", "writer", &json!({"agent": "a", "goal": format!("job {job}")}));
        let observations = format!("/v1/entries/{entry}/observations");
        post(&observations, "writer", &json!({"outcome": "success", "task": task["task"]}));
    }
    let brief = |query: &str| {
        node.ask("GET", &format!("/v1/briefing{query}"), &[("klnode-session", "told")], b"")
    };
    let first = brief("?workspace=main").json();
    let one = &first["sections"][0]["entries"][0];
    assert_eq!((&first["sections"][0]["kind"], &one["id"]), (&json!("verified"), &json!(entry)));
    for field in ["code", "title", "line", "status", "mean", "evidence", "author", "hop", "trust"] {
        assert!(!one[field].is_null(), "{field}: {first}");
    }
    let text = first["text"].as_str().unwrap();
    assert_eq!(text.lines().count(), 3 + 1 + 4, "one entry, and the tasks that are open: {text}");
    assert!(text.starts_with(FIRST_LINE), "{text}");
    assert!(text.contains("\"Quote \\\"this\\\"\": \"Say \\\"yes\\\".\" (verified, 0."), "{text}");
    let confirm = |session: &str| {
        let begin = json!({"agent": "builder", "goal": "mend the build"});
        let task = post("/v1/tasks", session, &begin)["task"].as_str().unwrap().to_owned();
        let path = format!("/v1/entries/{entry}/confirm?task={task}");
        post(&path, session, &json!(null))["class"].as_str().unwrap().to_owned()
    };
    assert_eq!(confirm("told"), "primed");
    let snapshot = node.engine.store().snapshot().unwrap();
    assert_eq!(snapshot.uses(EntryId::from_hex(&entry).unwrap()).unwrap().served, 0);
    drop(snapshot);
    assert_eq!(confirm("untold"), "primed", "it is the same user");
    for (query, status, words) in [
        ("?budget_tokens=99", 400, "it must be 100 to 20000"),
        ("?budget_tokens=20001", 400, "it must be 100 to 20000"),
        ("?workspace=nowhere", 404, "nowhere"),
        ("?checkout=relative", 400, "not absolute"),
        ("?budget=5", 400, "budget"),
    ] {
        let answer = brief(query);
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        assert!(answer.text().contains(words), "{query}: {}", answer.text());
    }
}

#[test]
fn the_briefing_verb_lists_broken_anchors_of_the_checkout() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let tree = Tree::new(&["lib/kept.rs"]);
    tree.write("lib/kept.rs", b"");
    let run = |arguments: &[&str]| {
        let output = klnode(home.path()).args(arguments).current_dir(tree.path()).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", told(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let none = run(&["briefing"]);
    assert!(none.starts_with("Workspace `main` has no verified"), "{none}");
    for (title, path) in [("Kept", "path:lib/kept.rs"), ("Gone", "path:lib/gone.rs")] {
        let add = ["add", "--title", title, "--content", "Words.", "--evidence", "doc:notes"];
        run(&[&add[..], &["--depends-on", path]].concat());
    }
    let told = run(&["briefing", "main", "--budget", "300"]);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!((lines[0], lines.len()), (FIRST_LINE, 3), "{told}");
    assert_eq!(lines[1], "Stale, or resting on something broken");
    let broken = "broken: \"path:lib/gone.rs\" (";
    assert!(lines[2].contains("\"Gone\"") && lines[2].contains(broken), "{told}");
    let json: Value = serde_json::from_str(&run(&["briefing", "--json"])).unwrap();
    assert_eq!(json["sections"][0]["kind"], "stale");
    assert_eq!(json["workspace"], "main");
    let bad = klnode(home.path()).args(["briefing", "--budget", "1"]).output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
}
