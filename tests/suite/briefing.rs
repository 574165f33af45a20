//! Briefings: what of a workspace matters now, in a fixed order, under a budget, quoted as data.

use crate::program::{klnode, start, told};
use klnode::api::Limits;
use klnode::engine::{Command, Marks, NewEntry, NewTask, TaskAct};
use klnode::query::{Briefing, BriefingQuestion, Cancel, FIRST_LINE, Reader};
use klnode::store::Snapshot;
use klnode_crdt::claims::{Link, Relation, TextSet};
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::lww::Register;
use klnode_crdt::writer::Claim;
use klnode_scoring::briefing::Section;
use klnode_tests::checkout::Tree;
use klnode_tests::node::{Node, lesson};
use klnode_tests::served::{Doors, Served};
use klnode_tests::society::Team;
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

/// What stands under each heading.
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

/// A lesson for or against something.
fn sided(polarity: &str, title: &str) -> NewEntry {
    NewEntry {
        registers: vec![(Register::POLARITY, polarity.into())],
        claims: ["retry", "billing"].map(|tag| Claim::Add(TextSet::TAGS, tag.into())).to_vec(),
        ..lesson(title)
    }
}

#[test]
fn headings_come_in_their_order_and_each_entry_under_one() {
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
    let task =
        NewTask { agent: "builder".into(), goal: "mend it".into(), thread: None, parent: None };
    node.run(Command::Task(Box::new(TaskAct::Begin(task)))).unwrap();
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
    // The same store at the same moment: the same bytes.
    assert_eq!(told_of(&node, &question(WorkspaceId::MAIN)).text, briefing.text);
    let empty = told_of(&node, &question(WorkspaceId::of(node.author(), Default::default())));
    assert!(empty.sections.is_empty(), "{}", empty.text);
}

#[test]
fn what_is_put_away_disputes_nothing() {
    let mut node = Node::start(1, 1);
    let yes = node.create_new(sided("positive", "retry the billing gateway with backoff: always"));
    let no = node.create_new(sided("negative", "retry the billing gateway with backoff: never"));
    verify(&mut node, yes);
    let told = |node: &Node| told_of(node, &question(WorkspaceId::MAIN));
    assert_eq!(under(&told(&node), Section::Contested), [yes, no]);
    node.claim(no, Claim::Archive(Presence::Present));
    let briefing = told(&node);
    assert_eq!(sections(&briefing), [(Section::Verified, vec![yes])], "{}", briefing.text);
    assert!(!briefing.text.contains("competes with"), "{}", briefing.text);
}

#[test]
fn of_two_that_compete_the_one_for_which_more_speaks_is_told_first_and_why() {
    let mut node = Node::start(1, 1);
    let old = node.create_new(sided("positive", "retry the billing gateway with backoff: always"));
    node.wait_days(400);
    let new = node.create_new(sided("negative", "retry the billing gateway with backoff: never"));
    // It is believed a little more, and that is all.
    node.succeed(old);
    let means = [old, new].map(|entry| node.found(entry).judged.confidence.posterior.mean());
    assert!(means[0] > means[1], "{means:?}");
    let briefing = told_of(&node, &question(WorkspaceId::MAIN));
    assert_eq!(under(&briefing, Section::Contested), [new, old], "{}", briefing.text);
    let first = ": listed first: more speaks for it, by ";
    let after = ": listed after it: more speaks for the other, by ";
    assert!(briefing.text.contains(first) && briefing.text.contains(after), "{}", briefing.text);
}

#[test]
fn entries_that_are_the_same_are_told_once_and_hidden_together() {
    let mut node = Node::start(1, 1);
    let [one, two] = ["bound the queue"; 2].map(|title| node.create(title));
    node.claim(two, Claim::Link(Link { relation: Relation::SAME_AS, to: one }));
    for entry in [one, two] {
        verify(&mut node, entry);
    }
    let told = |node: &Node| sections(&told_of(node, &question(WorkspaceId::MAIN)));
    let once = [(Section::Verified, vec![one])];
    assert_eq!(told(&node), once);
    let mute = |node: &mut Node, entry: EntryId, muted: bool| {
        let marks = Marks { muted: Some(muted), ..Marks::default() };
        node.run(Command::Mark { entry, marks }).unwrap();
    };
    mute(&mut node, two, true);
    assert_eq!(told(&node), once, "it is not the one that is shown");
    mute(&mut node, two, false);
    mute(&mut node, one, true);
    let told = told(&node);
    assert!(told.is_empty(), "its twin says the same: {told:?}");
}

#[test]
fn what_is_spoken_of_is_found_among_more_entries_than_are_read() {
    let mut node = Node::start(1, 1);
    let many = |node: &mut Node| {
        let new = |number| Command::Create(Box::new(lesson(&format!("one of many, {number}"))));
        let commands: Vec<Command> = (0..400).map(new).collect();
        assert!(node.engine.step(&commands, node.now).iter().all(Result::is_ok));
    };
    many(&mut node);
    let verified = node.create("seen to work");
    verify(&mut node, verified);
    // It has neither changed last nor been quiet longest.
    many(&mut node);
    let briefing = told_of(&node, &question(WorkspaceId::MAIN));
    assert_eq!(sections(&briefing), [(Section::Verified, vec![verified])], "{}", briefing.text);
}

#[test]
fn whoever_floods_a_workspace_pushes_nothing_of_ones_own_out() {
    for is_member in [false, true] {
        let mut team = Team::gather();
        let workspace = team.shared.id;
        // As many as are chosen on one ground, and a few more.
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
fn a_reader_that_goes_on_tells_what_a_new_one_would() {
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
    // A few changes, which are read from the feed, and then more than are worth that.
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
    assert_eq!(told_at(&node, &before), both, "an older state is told as it was");
    assert!(node.engine.step(&commands, node.now).iter().all(Result::is_ok));
    assert_eq!(told(&node), after);
}

#[test]
fn of_what_nobody_has_tried_members_have_two_places_and_others_none() {
    let mut team = Team::gather();
    let workspace = team.shared.id;
    let titles = ["first", "second", "third"];
    let untried: Vec<EntryId> =
        titles.iter().map(|title| team.alice.create_in(workspace, title)).collect();
    team.carol.create_in(workspace, "from who is no member");
    team.exchange();
    let briefing = told_of(&team.node, &question(workspace));
    let brought = under(&briefing, Section::Brought);
    assert_eq!((brought.len(), briefing.left_out), (2, 1), "{}", briefing.text);
    assert!(brought.iter().all(|entry| untried.contains(entry)), "{}", briefing.text);
    let labelled = briefing.text.matches("uncorroborated: nobody here has seen it work").count();
    assert_eq!(labelled, 2, "{}", briefing.text);
    assert_eq!(briefing.text.matches("by alice, 1 hop, trust 0.10").count(), 2);
    assert!(!briefing.text.contains("no member"), "{}", briefing.text);
    // What was seen to work here takes none of the two places.
    team.node.succeed(brought[0]);
    let briefing = told_of(&team.node, &question(workspace));
    let again = under(&briefing, Section::Brought);
    assert_eq!((again.len(), again[0]), (3, brought[0]), "{}", briefing.text);
    // What was brought long ago is no news.
    team.node.wait_days(15);
    let briefing = told_of(&team.node, &question(workspace));
    assert_eq!(under(&briefing, Section::Brought), [], "{}", briefing.text);
}

#[test]
fn a_budget_is_kept_titles_go_last_and_what_is_left_out_is_counted() {
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
    assert!(has_cut_a_line && shown_before < 5, "both happen on the way");
}

#[test]
fn a_briefing_primes_its_session_is_quoted_and_leaves_uses_alone() {
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
        ("?budget_tokens=99", 400, "budget_tokens must be from 100 to 20000"),
        ("?budget_tokens=20001", 400, "budget_tokens must be from 100 to 20000"),
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
fn the_verb_tells_what_is_broken_in_the_callers_checkout() {
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
    assert!(none.starts_with("Nothing stands out in `main`:"), "{none}");
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
