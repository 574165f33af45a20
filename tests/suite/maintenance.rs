//! Maintenance as its operator uses it: real processes; merges, listings, undo and decisions.

use crate::support::conformance::conforms;
use crate::support::mcp_client::Agent;
use crate::support::node_process::{
    Running, eventually, json, klnode, printed, run, start, started, text, told,
};
use serde_json::{Value, json as object};
use std::path::Path;
use std::process::Stdio;

const TITLE: &str = "Check ctx.Err() after upstream calls";
const FIRST: &str =
    "Auth middleware swallows cancellation, so check ctx.Err() after every upstream call.";
const SECOND: &str =
    "Auth middleware swallows  cancellation, so check ctx.Err() after every upstream call";

fn add(home: &Path, title: &str, content: &str, more: &[&str]) -> String {
    let evidence = ["--evidence", "doc:notes"];
    let arguments = [&["add", "--title", title, "--content", content][..], &evidence, more];
    text(&json(home, &arguments.concat())["id"])
}

/// Ids of the hits of a query, with their α.
fn found(home: &Path, query: &str) -> Vec<(String, f64)> {
    let answer = json(home, &["search", query, "--all"]);
    let hits = answer["hits"].as_array().cloned().unwrap_or_default();
    let of = |hit: &Value| (text(&hit["id"]), hit["alpha"].as_f64().unwrap());
    let mut found: Vec<(String, f64)> = hits.iter().map(of).collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn ids(found: &[(String, f64)]) -> Vec<&str> {
    found.iter().map(|(id, _)| id.as_str()).collect()
}

fn listed(home: &Path, part: &str) -> Vec<Value> {
    json(home, &["maintain", "list"])[part].as_array().cloned().unwrap_or_default()
}

/// Counts of a run of one service.
fn maintained(home: &Path, more: &[&str]) -> Value {
    let arguments = [&["maintain"][..], more].concat();
    json(home, &arguments)["services"][0].clone()
}

fn again(mut node: Running, home: &Path) -> Running {
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    drop(node);
    start(home).0
}

#[test]
fn duplicates_are_merged_with_their_evidence_until_undone() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let one = add(home, TITLE, FIRST, &[]);
    let two = add(home, TITLE, SECOND, &[]);
    for entry in [&one, &two] {
        printed(&run(home, &["feedback", entry, "--success"]));
    }
    let query = "ctx.Err() after upstream calls";
    assert_eq!(found(home, query).len(), 2);

    let rehearsed = maintained(home, &["--dry-run", "duplicates"]);
    assert_eq!(rehearsed["merged"], 1, "{rehearsed}");
    assert_eq!(found(home, query).len(), 2, "a dry run changes nothing");
    assert_eq!(listed(home, "changes"), [] as [Value; 0]);

    let kept = maintained(home, &["duplicates"]);
    assert_eq!((&kept["merged"], &kept["proposed"]), (&object!(1), &object!(0)), "{kept}");
    let merged = found(home, query);
    assert_eq!(ids(&merged), [one.as_str()], "the first entry survives");
    assert!((merged[0].1 - 7.0).abs() < 0.01, "both successes count: {merged:?}");
    let hit = json(home, &["search", query, "--all"])["hits"][0].clone();
    assert_eq!((&hit["merged"][0], &hit["id"]), (&object!(two), &object!(one)), "{hit}");
    let shown = json(home, &["show", &one]);
    assert_eq!(shown["merged"], object!([two]));
    let under = json(home, &["show", &two]);
    assert_eq!((&under["merged_into"], &under["content"]), (&object!(one), &object!(SECOND)));

    let node = again(node, home);
    assert_eq!(ids(&found(home, query)), [one.as_str()], "it survives a restart");
    let changes = listed(home, "changes");
    assert_eq!(changes.len(), 1, "{changes:?}");
    let number = changes[0]["number"].as_u64().unwrap().to_string();
    printed(&run(home, &["maintain", "undo", &number]));
    let apart = found(home, query);
    assert_eq!(apart.len(), 2, "{apart:?}");
    assert!(apart.iter().all(|(_, alpha)| (alpha - 6.0).abs() < 0.01), "{apart:?}");

    let once_more = maintained(home, &["--all", "duplicates"]);
    assert_eq!(
        (&once_more["merged"], &once_more["proposed"]),
        (&object!(0), &object!(0)),
        "an undone merge is not repeated: {once_more}"
    );
    assert_eq!(found(home, query).len(), 2);
    let twice = run(home, &["maintain", "undo", &number]);
    assert_eq!(twice.status.code(), Some(2), "there is nothing left to undo");
    assert_eq!(run(home, &["maintain", "undo", "999"]).status.code(), Some(1));
    drop(node);
}

#[test]
fn hiding_the_survivor_hides_its_duplicates_and_hiding_another_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let one = add(home, TITLE, FIRST, &[]);
    let two = add(home, TITLE, SECOND, &[]);
    assert_eq!(maintained(home, &["duplicates"])["merged"], 1);
    let query = "ctx.Err() after upstream calls";
    let on = |verb: &[&str], entry: &str| printed(&run(home, &[verb, &[entry]].concat()));
    for (away, back) in [
        (&["mark", "--mute"][..], &["mark", "--mute", "--undo"][..]),
        (&["mark", "--wrong"], &["mark", "--wrong", "--undo"]),
        (&["archive"], &["archive", "--undo"]),
    ] {
        on(away, &one);
        let hits = found(home, query);
        assert_eq!(ids(&hits), [] as [&str; 0], "{away:?}: its duplicate is hidden too");
        let under = json(home, &["show", &two]);
        assert_eq!(under["merged_into"], object!(one), "{away:?}");
        on(back, &one);
        assert_eq!(ids(&found(home, query)), [one.as_str()], "{back:?}");
        on(away, &two);
        assert_eq!(ids(&found(home, query)), [one.as_str()], "{away:?} of another");
        on(back, &two);
    }
    drop(node);
}

#[test]
fn a_new_entry_is_not_merged_into_an_archived_one() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let one = add(home, TITLE, FIRST, &[]);
    printed(&run(home, &["archive", &one]));
    let two = add(home, TITLE, SECOND, &[]);
    assert_eq!(maintained(home, &["duplicates"])["merged"], 0);
    assert_eq!(ids(&found(home, "ctx.Err() after upstream calls")), [two.as_str()]);
    drop(node);
}

#[test]
fn a_reworded_entry_is_proposed_and_a_dismissal_survives_a_restart() {
    conforms("S004-56");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let title = "Timeout of the billing client";
    let add = |content: &str| add(home, title, content, &[]);
    let one = add("Set the timeout of the billing client to 5 seconds.");
    let two = add("The billing client's timeout should be set to 5 s.");
    let kept = maintained(home, &["duplicates"]);
    assert_eq!((&kept["merged"], &kept["proposed"]), (&object!(0), &object!(1)), "{kept}");
    let proposals = listed(home, "proposals");
    let why = text(&proposals[0]["why"]);
    assert!(why.contains("other words"), "{why}");
    let number = proposals[0]["number"].as_u64().unwrap().to_string();
    printed(&run(home, &["maintain", "dismiss", &number]));
    let node = again(node, home);
    let kept = maintained(home, &["--all", "duplicates"]);
    assert_eq!(kept["proposed"], 0, "{kept}");
    assert_eq!(listed(home, "proposals"), [] as [Value; 0]);
    assert_eq!(ids(&found(home, title)).len(), 2, "{one} and {two}");
    assert_eq!(run(home, &["maintain", "accept", &number]).status.code(), Some(2));
    drop(node);
}

#[test]
fn a_proposal_that_is_accepted_merges_and_can_be_undone() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let one = add(home, TITLE, FIRST, &[]);
    let two = add(home, TITLE, SECOND, &["--thread", "fix-login"]);
    let kept = maintained(home, &["duplicates"]);
    assert_eq!(kept["proposed"], 1, "another thread needs a person's decision: {kept}");
    let number = listed(home, "proposals")[0]["number"].as_u64().unwrap().to_string();
    printed(&run(home, &["maintain", "accept", &number]));
    assert_eq!(ids(&found(home, TITLE)), [one.as_str()]);
    printed(&run(home, &["maintain", "undo", &number]));
    let asked = ["search", TITLE, "--all-threads"];
    assert_eq!(json(home, &asked)["hits"].as_array().unwrap().len(), 2, "{two} is back");
    drop(node);
}

#[test]
fn contradictions_are_listed_and_neither_entry_is_hidden() {
    conforms("S004-60");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let tags = ["--tag", "billing", "--tag", "http"];
    let title = "Retry POST requests";
    let say = |content: &str, polarity: &str| {
        let more = [&tags[..], &["--polarity", polarity]].concat();
        add(home, title, content, &more)
    };
    say("Retry POST requests to the billing service after a timeout.", "positive");
    say("Do not retry POST requests to the billing service after a timeout.", "negative");
    let kept = maintained(home, &["contradictions"]);
    assert_eq!(kept["contradicting"], 1, "{kept}");
    let found_apart = maintained(home, &["--all", "contradictions"]);
    assert_eq!(found_apart["contradicting"], 0, "reported once: {found_apart}");
    let listing = printed(&run(home, &["maintain", "list"]));
    assert!(listing.contains("Contradictions") && listing.contains(" against "), "{listing}");
    assert!(listing.contains(&format!("        {title} against {title}\n")), "{listing}");
    assert_eq!(found(home, title).len(), 2);
    let number = listed(home, "contradictions")[0]["number"].as_u64().unwrap().to_string();
    printed(&run(home, &["maintain", "dismiss", &number]));
    assert_eq!(listed(home, "contradictions"), [] as [Value; 0]);
    drop(node);
}

#[test]
fn a_truncated_list_names_its_continuation() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    for (content, polarity, kind) in [
        ("Retry POST requests to the billing service after a timeout.", "positive", "lesson"),
        (
            "Do not retry POST requests to the billing service after a timeout.",
            "negative",
            "experience",
        ),
        (
            "Never retry POST requests to the billing service, not even after a timeout.",
            "negative",
            "experience",
        ),
    ] {
        let tags = ["--tag", "billing", "--tag", "http"];
        let more = [&tags[..], &["--polarity", polarity, "--type", kind]].concat();
        add(home, "Retry POST requests", content, &more);
    }
    maintained(home, &["contradictions"]);
    let numbers = |more: &[&str]| {
        let list = json(home, &[&["maintain", "list", "contradictions"][..], more].concat());
        let rows = list["contradictions"].as_array().unwrap().iter();
        (rows.map(|row| row["number"].as_u64().unwrap()).collect::<Vec<_>>(), list["more"] == true)
    };
    let (all, _) = numbers(&[]);
    assert_eq!(all.len(), 2);
    assert_eq!(numbers(&["-n", "1"]), (vec![all[0]], true));
    let first = all[0].to_string();
    assert_eq!(numbers(&["-n", "1", "--before", &first]), (vec![all[1]], false));
    let page = run(home, &["maintain", "list", "-n", "1"]);
    let way = format!("For more, run: klnode maintain list contradictions -n 1 --before {first}\n");
    assert!(told(&page).contains(&way), "{}", told(&page));
    let none = printed(&run(home, &["maintain", "list", "stale"]));
    assert_eq!(none, "The list is empty.\n");
    for wrong in [&["poem"][..], &["-n", "0"]] {
        let refused = run(home, &[&["maintain", "list"][..], wrong].concat());
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn contradicting_entries_are_neither_proposed_nor_accepted_as_duplicates() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let say = |content: &str, polarity: &str| {
        add(home, "Tabs in Makefiles", content, &["--tag", "make", "--polarity", polarity])
    };
    say("Use tabs in Makefiles to indent a recipe.", "positive");
    say("Do not use tabs in Makefiles to indent a recipe.", "negative");
    let kept = maintained(home, &["duplicates"]);
    assert_eq!((&kept["merged"], &kept["proposed"]), (&object!(0), &object!(0)), "{kept}");
    // A proposal made before one of the two was changed is no longer valid.
    let one = add(home, TITLE, FIRST, &["--tag", "auth"]);
    let two = add(home, TITLE, SECOND, &["--tag", "auth", "--thread", "fix-login"]);
    assert_eq!(maintained(home, &["duplicates"])["proposed"], 1);
    for (entry, way) in [(&one, "polarity=positive"), (&two, "polarity=negative")] {
        printed(&run(home, &["edit", entry, "--field", way]));
    }
    maintained(home, &["contradictions"]);
    let numbered = |part: &str| {
        let rows = listed(home, part);
        let row = rows.iter().find(|row| row["entries"].to_string().contains(&two));
        row.expect("it is listed")["number"].to_string()
    };
    let (same, opposite) = (numbered("proposals"), numbered("contradictions"));
    let refused = run(home, &["maintain", "accept", &same]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{told}");
    assert!(
        told.contains(&format!("contradict each other according to row {opposite};")),
        "{told}"
    );
    printed(&run(home, &["maintain", "dismiss", &opposite]));
    printed(&run(home, &["maintain", "accept", &same]));
    drop(node);
}

/// The caveats of an entry about contradictions.
fn against(entry: &Value) -> Vec<String> {
    let caveats = entry["caveats"].as_array().into_iter().flatten().map(text);
    caveats.filter(|caveat| caveat.starts_with("contradicted by ")).collect()
}

#[test]
fn a_contradiction_is_named_when_only_one_entry_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let say = |content: &str, polarity: &str, kind: &str| {
        let tags = ["--tag", "billing", "--tag", "http"];
        let more = [&tags[..], &["--polarity", polarity, "--type", kind]].concat();
        add(home, "Retry POST requests", content, &more)
    };
    let yes =
        say("Retry POST requests to the billing service after a timeout.", "positive", "lesson");
    let no = "Do not retry POST requests to the billing service after a timeout.";
    let no = say(no, "negative", "experience");
    let never = "Never retry POST requests to the billing service, not even after a timeout.";
    let never = say(never, "negative", "experience");
    let shown = |id: &str| against(&json(home, &["show", id]));
    let code = |id: &str| text(&json(home, &["show", id])["code"]);
    let named = |id: &str| format!("contradicted by {}", code(id));
    assert_eq!(shown(&yes), [] as [&str; 0], "the contradiction is not noted yet");
    assert_eq!(maintained(home, &["contradictions"])["contradicting"], 2);

    let mut both = [named(&no), named(&never)];
    both.sort();
    let sorted = |mut said: Vec<String>| {
        said.sort();
        said
    };
    assert_eq!(sorted(shown(&yes)), both);
    assert_eq!((shown(&no), shown(&never)), (vec![named(&yes)], vec![named(&yes)]));
    let printed_said = printed(&run(home, &["show", &yes]));
    assert!(both.iter().all(|caveat| printed_said.contains(caveat)), "{printed_said}");
    let mut agent = Agent::new(home, &[]);
    let read = agent.done("get", &object!({"code": code(&yes)}));
    assert_eq!(sorted(against(&read["entry"])), both, "{read}");
    agent.close();
    let query = "retry POST requests billing";
    for all in [&["--all"][..], &[]] {
        let lessons = ["search", query, "--type", "lesson"];
        let answer = json(home, &[&lessons[..], all].concat());
        assert_eq!(answer["hits"].as_array().map(Vec::len), Some(1), "{answer}");
        assert_eq!(sorted(against(&answer["hits"][0])), both, "{all:?}");
    }
    // If both are listed, one names the other once, however it was noticed.
    let answer = json(home, &["search", query, "--all"]);
    let hits = answer["hits"].as_array().unwrap();
    let hit = hits.iter().find(|hit| hit["id"] == no.as_str()).expect("it is found");
    let code = code(&yes);
    let names = |caveat: &&Value| text(caveat).contains(&code);
    assert_eq!(hit["caveats"].as_array().unwrap().iter().filter(names).count(), 1, "{hit}");

    let rows = listed(home, "contradictions");
    let row = rows.iter().find(|row| row["entries"].to_string().contains(&no)).expect("listed");
    let number = row["number"].to_string();
    printed(&run(home, &["maintain", "dismiss", &number]));
    assert_eq!(shown(&yes), [named(&never)], "a dismissed contradiction is not shown");
    for away in [&["archive", &never][..], &["mark", &never, "--mute"]] {
        printed(&run(home, away));
        assert_eq!(shown(&yes), [] as [&str; 0], "{away:?}");
        printed(&run(home, &[away, &["--undo"]].concat()));
        assert_eq!(shown(&yes), [named(&never)], "{away:?} undone");
    }
    printed(&run(home, &["forget", &never]));
    assert_eq!(shown(&yes), [] as [&str; 0], "no contradiction is shown");
    drop(node);
}

#[test]
fn a_contradiction_ends_when_one_is_superseded_or_changes_its_subject() {
    conforms("S004-119");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (node, _) = start(home);
    let say = |content: &str, polarity: &str| {
        let tags = ["--tag", "billing", "--tag", "http", "--polarity", polarity];
        add(home, "Retry POST requests", content, &tags)
    };
    let yes = say("Retry POST requests to the billing service after a timeout.", "positive");
    let no = "Do not retry POST requests to the billing service after a timeout.";
    let never = say(no, "negative");
    let shown = |id: &str| against(&json(home, &["show", id]));
    assert_eq!(maintained(home, &["contradictions"])["contradicting"], 1);
    assert_eq!(shown(&yes).len(), 1);
    for undo in [&[][..], &["--undo"]] {
        let supersede = ["edit", never.as_str(), "--superseded-by", yes.as_str()];
        printed(&run(home, &[&supersede[..], undo].concat()));
        for (entry, what) in [(&yes, "has superseded the other"), (&never, "was replaced")] {
            assert_eq!(shown(entry).is_empty(), undo.is_empty(), "{undo:?}: one {what}");
        }
    }
    // Without polarity the texts still contradict each other.
    let again = "After a timeout, retry POST requests to the billing service.";
    for (way, content, is_over) in
        [("neutral", no, false), ("positive", again, true), ("negative", no, false)]
    {
        let polarity = format!("polarity={way}");
        printed(&run(home, &["edit", &never, "--field", &polarity, "--content", content]));
        assert_eq!(shown(&yes).is_empty(), is_over, "{way}");
    }
    let other = ["edit", &never, "--title", "Fridays", "--content", "The office closes at six."];
    printed(&run(home, &other));
    maintained(home, &["contradictions"]);
    assert_eq!(shown(&yes), [] as [&str; 0], "it is about something else");
    assert_eq!(listed(home, "contradictions").len(), 0, "nor is it listed any more");
    drop(node);
}

/// Twenty texts about different topics.
fn topics() -> Vec<(String, String)> {
    let pairs = include_str!("../../node/model/pairs/duplicates.jsonl");
    let pairs = pairs.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let related = pairs.filter(|pair| pair["label"] == "related");
    related.map(|pair| (text(&pair["one"]["title"]), text(&pair["one"]["content"]))).collect()
}

#[test]
fn a_node_killed_during_a_pass_skips_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let file = folder.path().join("lines.jsonl");
    let mut lines = String::new();
    for (title, content) in topics() {
        for end in ["", "!"] {
            let line = object!({"title": title, "content": format!("{content}{end}")});
            lines.push_str(&format!("{line}\n"));
        }
    }
    std::fs::write(&file, lines).unwrap();
    let mut command = klnode(&home);
    // A pass covers one entry, so that any kill is in the middle.
    command.args(["--set", "tuning.maintenance.pass_entries_max=1"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (mut node, _) = started(command);
    printed(&run(&home, &["import", file.to_str().unwrap()]));
    let mut maintaining = klnode(&home)
        .args(["maintain", "duplicates"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("something is merged", || (!listed(&home, "changes").is_empty()).then_some(()));
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    drop(node);
    let _ = maintaining.wait();
    let (node, _) = start(&home);
    maintained(&home, &["duplicates"]);
    let changes = listed(&home, "changes");
    assert_eq!(changes.len(), topics().len(), "{changes:?}");
    let kept = maintained(&home, &["--all", "duplicates"]);
    assert_eq!(kept["merged"], 0, "{kept}");
    for change in changes {
        let [shown, other] = [0, 1].map(|at| text(&change["entries"][at]["id"]));
        assert_eq!(json(&home, &["show", &other])["merged_into"], object!(shown));
    }
    drop(node);
}
