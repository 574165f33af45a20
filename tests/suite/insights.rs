//! Insights: the rules find scenes of a real node, and a dismissal lasts until there is more
//! evidence. The numbers of each rule are tested where the rules are, in `scoring`.

use crate::support::conformance::conforms;
use crate::support::mcp_client::Agent;
use crate::support::node_process::{eventually, klnode, text};
use crate::support::node_with_home::{Scene, days_ago};
use crate::support::peer_processes::Peer;
use klnode_crdt::claims::TextSet;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, NewEntry};
use klnode_store::row_types::ServedRow;
use klnode_tests::test_engine::{Node, lesson};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

/// Servings after which the pairs of an answer form a cluster for weeks: 1.05^19 is over 2.5.
const SERVED_TIMES: usize = 20;

fn tagged(title: &str, tags: &[&str], registers: &[(Register, &str)]) -> NewEntry {
    NewEntry {
        registers: registers.iter().map(|(at, value)| (*at, (*value).to_owned())).collect(),
        claims: tags.iter().map(|tag| ClaimEdit::Add(TextSet::TAGS, (*tag).to_owned())).collect(),
        ..lesson(title)
    }
}

fn succeed(node: &mut Node, entry: EntryId, times: u64) {
    let (of, amount) = (Observation::Success, Thousandths(times * 1_000));
    node.run(Command::Observe { entry, of, amount }).unwrap();
}

/// Serves entries in one answer; in a weak one, the first gets a prediction error.
fn serve(node: &mut Node, entries: &[EntryId], is_weak: bool) {
    let (caller, query, entries) = ("agent".to_owned(), "what".to_owned(), entries.to_vec());
    node.run(Command::Served(ServedRow { caller, query, entries, is_weak, ..<_>::default() }))
        .unwrap();
}

/// The current insights of a rule, as `klnode insights list` prints them.
fn of_rule(scene: &Scene, rule: u64) -> Vec<Value> {
    let list = scene.done(&["insights", "list"]);
    let all = list["insights"].as_array().unwrap().iter();
    all.filter(|one| one["rule"] == rule).cloned().collect()
}

#[track_caller]
fn is(insight: &Value, category: &str, severity: &str) {
    assert_eq!((&insight["category"], &insight["severity"]), (&json!(category), &json!(severity)));
    assert!(insight["action"].as_str().is_some_and(|action| !action.is_empty()), "{insight}");
    assert!(!insight["evidence"].as_array().unwrap().is_empty(), "{insight}");
}

/// Ids in the evidence.
fn ids(insight: &Value) -> BTreeSet<String> {
    insight["evidence"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect()
}

fn hex(entries: &[EntryId]) -> BTreeSet<String> {
    entries.iter().map(EntryId::to_string).collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one home with a past serves all scenes")]
fn rules_about_entries_fire_on_their_scenes_and_not_on_near_misses() {
    conforms("S004-80");
    conforms("S004-81");
    conforms("S004-82");
    conforms("S004-84");
    conforms("S004-85");
    conforms("S004-86");
    conforms("S004-92");
    conforms("S004-95");
    conforms("S004-99");
    let mut node = days_ago(18);
    // Rule 1: ephemeral evidence fades below four fifths of its peak in this week, permanent does not.
    let fading = node.create_new(tagged("fading", &[], &[]));
    let lasting = node.create_new(tagged("lasting", &[], &[(Register::DECAY_CLASS, "permanent")]));
    for entry in [fading, lasting] {
        succeed(&mut node, entry, 30);
    }
    // Rule 2: verified opposites. The third shares too few tags, the fourth is not verified.
    let side = |polarity, tags: &[&str], title: &str| {
        let stable = (Register::DECAY_CLASS, "stable");
        tagged(title, tags, &[(Register::POLARITY, polarity), stable])
    };
    let gateway = |side: &str| format!("retry the billing gateway with backoff: {side}");
    let yes = node.create_new(side("positive", &["retry", "billing"], &gateway("always")));
    let no = node.create_new(side("negative", &["retry", "billing"], &gateway("never")));
    let many = ["retry", "a", "b", "c", "d", "e"];
    let apart = node.create_new(side("negative", &many, &gateway("hardly ever")));
    node.create_new(side("negative", &["retry", "billing"], "Never repeat a failed charge"));
    for entry in [yes, no, apart] {
        succeed(&mut node, entry, 8);
    }
    // Rule 6: two titles of nearly the same words under the same tags; the third has other tags.
    let alike = ["Tag the release branch first", "Tag the release branch first, always"]
        .map(|title| node.create_new(tagged(title, &["release", "git"], &[])));
    node.create_new(tagged("Tag the release branch first, please", &["images"], &[]));
    // Rules 4, 5 and 12: three stable entries of a tag, served together and never of use. Of the
    // entries with the other tag, also served together, two have too few prediction errors.
    let stable = [(Register::DECAY_CLASS, "stable")];
    let mut of_tag = |tag: &str, titles: [&str; 3]| {
        titles.map(|title| node.create_new(tagged(title, &[tag], &stable)))
    };
    let weak = of_tag("queues", ["Bound the queue", "Drain before shutdown", "One consumer each"]);
    let near = of_tag("caches", ["Empty on deploy", "Key by tenant", "Warm up at night"]);
    for _ in 0..SERVED_TIMES {
        serve(&mut node, &weak, false);
        serve(&mut node, &near, false);
    }
    for day in 0..4 {
        node.wait_days(1);
        for entry in weak {
            serve(&mut node, &[entry], true);
        }
        for entry in near.into_iter().skip([0, 1, 1, 2][day]) {
            serve(&mut node, &[entry], true);
        }
    }
    let scene = Scene::of(node);

    let declines = of_rule(&scene, 1);
    assert_eq!(declines.len(), 1, "{declines:?}");
    is(&declines[0], "confidence", "attention");
    assert_eq!(ids(&declines[0]), hex(&[fading]));
    let contradictions = of_rule(&scene, 2);
    assert_eq!(contradictions.len(), 1, "{contradictions:?}");
    is(&contradictions[0], "contradiction", "action_required");
    assert_eq!(ids(&contradictions[0]), hex(&[yes, no]));
    let gaps = of_rule(&scene, 4);
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    is(&gaps[0], "coverage", "attention");
    assert_eq!(ids(&gaps[0]), hex(&weak));
    let clusters = of_rule(&scene, 5);
    assert_eq!(clusters.len(), 1, "{clusters:?}");
    is(&clusters[0], "staleness", "attention");
    assert_eq!(ids(&clusters[0]), hex(&weak));
    for insight in [&contradictions[0], &gaps[0], &clusters[0]] {
        assert_eq!(insight["task"]["agent"], "researcher", "{insight}");
    }
    let merges = of_rule(&scene, 6);
    assert_eq!(merges.len(), 1, "{merges:?}");
    is(&merges[0], "merge", "info");
    assert_eq!(ids(&merges[0]), hex(&alike));
    let decays = of_rule(&scene, 12);
    assert_eq!(decays.len(), 1, "{decays:?}");
    is(&decays[0], "evaporation", "info");
    assert!(text(&decays[0]["action"]).contains("from stable to ephemeral"), "{decays:?}");

    // The most severe insight is first everywhere, within the budget.
    let list = scene.done(&["insights", "list"]);
    assert_eq!(list["insights"][0]["id"], contradictions[0]["id"]);
    let briefing = scene.done(&["briefing"]);
    assert_eq!(briefing["insights"][0], contradictions[0]);
    let line = text(&briefing["text"]).lines().nth(2).unwrap().to_owned();
    let id = text(&contradictions[0]["id"]);
    assert!(line.starts_with(&format!("- [action_required] {id}: ")), "{line}");
    let again = scene.done(&["briefing"]);
    assert_eq!((&again["text"], &again["insights"]), (&briefing["text"], &briefing["insights"]));
    let small = scene.done(&["briefing", "--budget", "100"]);
    assert!(small["insights"].is_null() && small["tokens"].as_u64().unwrap() <= 100, "{small}");

    // A dismissal lasts while the evidence is the same, and ends with a new text of an entry.
    let shown = scene.said(&["insights", "show", &id]);
    assert!(shown.contains("klnode task begin --agent researcher --goal 'Find out"), "{shown}");
    let title = text(&scene.show(&yes.to_string())["title"]);
    let is_titled = |line: &str| line.starts_with("evidence") && line.ends_with(&title);
    assert!(shown.lines().any(is_titled), "{title}: {shown}");
    scene.done(&["insights", "dismiss", &id]);
    assert!(of_rule(&scene, 2).is_empty());
    assert_ne!(scene.done(&["briefing"])["insights"][0], contradictions[0]);
    let said = scene.said(&["insights", "list", "--dismissed"]);
    assert!(said.contains(&format!("{id}  action_required  contradiction, dismissed")), "{said}");
    assert!(scene.said(&["insights", "list"]).contains("1 dismissed; "));
    succeed_now(&scene, yes);
    assert!(of_rule(&scene, 2).is_empty(), "another observation is no new evidence");
    let renewed = "Retry the billing gateway with backoff: always, and log it.";
    scene.done(&["edit", &yes.to_string(), "--content", renewed]);
    assert_eq!(of_rule(&scene, 2).len(), 1, "the text is new");
    scene.done(&["insights", "dismiss", &id]);
    let again = scene.done(&["insights", "dismiss", &id]);
    assert_eq!(again["already"], true);
    scene.done(&["insights", "dismiss", &id, "--undo"]);
    assert_eq!(of_rule(&scene, 2).len(), 1);
    let told = scene.refused(&["insights", "show", "00000000"], 1);
    assert!(told.contains("Insight 00000000 does not exist in workspace `main` now."), "{told}");
    scene.refused(&["insights", "show", "zz"], 2);
}

fn succeed_now(scene: &Scene, entry: EntryId) {
    scene.succeed(&entry.to_string(), 1);
}

#[test]
fn agents_read_insights_over_mcp_and_from_the_hook() {
    conforms("S004-96");
    let mut node = days_ago(1);
    for title in ["Tag the release branch first", "Tag the release branch first, always"] {
        node.create_new(tagged(title, &["release"], &[]));
    }
    let scene = Scene::of(node);
    let insight = &of_rule(&scene, 6)[0];
    let line = format!("- [info] {}: {}", text(&insight["id"]), text(&insight["text"]));
    let mut agent = Agent::new(&scene.home(), &[]);
    let told = agent.done("briefing", &json!({}));
    let quoted = text(&told["quoted"]["text"]);
    assert!(quoted.contains(&line), "{quoted}");
    let mut read = |uri: &str| {
        let answer = agent.request("resources/read", &json!({"uri": uri}));
        text(&answer["result"]["contents"][0]["text"])
    };
    let briefing = read("formicos://briefing/main");
    assert!(briefing.contains(&line), "{briefing}");
    assert_eq!(briefing, read("klnode://briefing/main"));
    let mut hook = klnode(&scene.home());
    hook.args(["--set", "hooks.timeout=1 min", "hook", "session-start"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut hook = hook.spawn().unwrap();
    hook.stdin.take().unwrap().write_all(b"{}").unwrap();
    let said = String::from_utf8(hook.wait_with_output().unwrap().stdout).unwrap();
    assert!(said.contains(&line), "{said}");
}

#[test]
fn a_node_without_entries_has_no_insights() {
    let scene = Scene::new();
    assert_eq!(scene.said(&["insights", "list"]), "Workspace `main` has no insights.\n");
    assert_eq!(scene.done(&["insights", "list"])["insights"], json!([]));
    assert!(!scene.said(&["briefing"]).contains("Insights"));
}

#[test]
fn peers_with_little_trust_and_entries_in_tags_of_their_own_are_insights() {
    conforms("S004-83");
    conforms("S004-87");
    // All successes of this test happen on one day.
    let lenient = "tuning.trust.successes_per_day_max = 30\n";
    let (here, there) = (Peer::start(), Peer::start_with(lenient));
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let of_rule = |rule: u64| {
        let list = there.json(&["insights", "list", "--workspace", "team"]);
        let all = list["insights"].as_array().unwrap().clone();
        all.into_iter().filter(|one| one["rule"] == rule).collect::<Vec<Value>>()
    };
    let shared = ["--workspace", "team", "--tag", "queues"];
    let entry = here.add("bound the zqqueue", &shared);
    let inbound = eventually("the entry arrives", || of_rule(7).pop());
    is(&inbound, "inbound", "info");
    assert_eq!(ids(&inbound), [entry.clone()].into());
    assert!(text(&inbound["text"]).contains("tag \"queues\""), "{inbound}");
    there.add("a queue of our own", &shared);
    assert_eq!(of_rule(7), [] as [Value; 0], "the tag is covered");

    let untested = of_rule(3);
    assert_eq!(ids(&untested[0]), [here.key()].into());
    is(&untested[0], "federation", "info");
    there.json(&["feedback", &entry, "--harmful"]);
    let low = of_rule(3);
    is(&low[0], "federation", "attention");
    assert!(text(&low[0]["text"]).contains("and 1 failures"), "{low:?}");
    let main = there.json(&["insights", "list"]);
    assert_eq!(main["insights"][0]["rule"], 3, "in `main` every peer counts: {main}");
    for _ in 0..30 {
        let task = there.json(&["task", "begin", "--agent", "builder", "--goal", "use it"]);
        there.json(&["feedback", &entry, "--success", "--task", task["task"].as_str().unwrap()]);
    }
    assert_eq!(of_rule(3), [] as [Value; 0], "the trust has grown");
}

#[test]
fn a_contradiction_is_an_insight_only_between_verified_entries() {
    conforms("S004-82");
    let scene = Scene::new();
    let side = |title: &str, polarity: &str| {
        let more = ["--tag", "billing", "--tag", "http", "--polarity", polarity];
        scene.add(title, &format!("{title} to the billing service after a timeout."), &more)
    };
    let sides =
        [side("Retry POST requests", "positive"), side("Do not retry POST requests", "negative")];
    scene.done(&["maintain", "contradictions"]);
    let found = scene.done(&["maintain", "list"])["contradictions"].clone();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(of_rule(&scene, 2), [] as [Value; 0], "neither is verified");
    for code in &sides {
        scene.succeed(code, 6);
    }
    assert_eq!(of_rule(&scene, 2).len(), 1);
}

#[test]
fn a_success_of_today_is_no_decline_of_a_confidence_that_fell_long_ago() {
    conforms("S004-81");
    let mut node = days_ago(22);
    let long_ago = node.create_new(tagged("fell before this week", &[], &[]));
    let lately = node.create_new(tagged("fell in this week", &[], &[]));
    succeed(&mut node, long_ago, 30);
    node.wait_days(4);
    succeed(&mut node, lately, 30);
    node.wait_days(18);
    succeed(&mut node, long_ago, 1);
    let declines = of_rule(&Scene::of(node), 1);
    assert_eq!(declines.len(), 1, "{declines:?}");
    assert_eq!(ids(&declines[0]), hex(&[lately]));
}

#[test]
fn decay_recommendations_follow_success_and_the_marks_of_the_operator() {
    conforms("S004-92");
    let mut node = days_ago(1);
    let mut of_tag = |tag: &str, class: &str, count: usize| {
        let class = [(Register::DECAY_CLASS, class)];
        let new = |number: usize| tagged(&format!("{tag} {number}"), &[tag], &class);
        (0..count).map(|number| node.create_new(new(number))).collect::<Vec<EntryId>>()
    };
    let holds = of_tag("holds", "ephemeral", 5);
    let few = of_tag("few", "ephemeral", 4);
    let hidden = of_tag("hidden", "permanent", 5);
    for entry in holds.iter().chain(&few) {
        succeed(&mut node, *entry, 10);
    }
    let scene = Scene::of(node);
    let slower = of_rule(&scene, 12);
    assert_eq!(slower.len(), 1, "four entries are too few: {slower:?}");
    is(&slower[0], "evaporation", "info");
    assert_eq!(ids(&slower[0]), hex(&holds));
    assert!(text(&slower[0]["action"]).contains("from ephemeral to stable"), "{slower:?}");
    scene.done(&["mark", &hidden[0].to_string(), "--mute"]);
    assert_eq!(of_rule(&scene, 12).len(), 1, "one of five is hidden");
    scene.done(&["mark", &hidden[1].to_string(), "--wrong"]);
    let both = of_rule(&scene, 12);
    let faster = both.iter().find(|one| ids(one) == hex(&hidden));
    let faster = faster.unwrap_or_else(|| panic!("two of five are hidden: {both:?}"));
    assert!(text(&faster["action"]).contains("from permanent to stable"), "{faster}");
}

#[test]
fn the_21st_insight_of_a_rule_is_listed_after_20_are_dismissed() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let tags: Vec<String> = (0..25).map(|number| format!("area-{number:02}")).collect();
    let mut words = vec!["--workspace", "team"];
    tags.iter().for_each(|tag| words.extend(["--tag", tag]));
    here.add("bound the zqqueue", &words);
    let inbound = || -> Vec<String> {
        let list = there.json(&["insights", "list", "--workspace", "team"]);
        let all = list["insights"].as_array().unwrap().clone();
        all.iter().filter(|one| one["rule"] == 7).map(|one| text(&one["id"])).collect()
    };
    let first = eventually("the entry arrives", || Some(inbound()).filter(|all| !all.is_empty()));
    assert_eq!(first.len(), 20);
    for id in &first {
        there.json(&["insights", "dismiss", id, "--workspace", "team"]);
    }
    let rest = inbound();
    assert_eq!(rest.len(), 5, "{rest:?}");
    assert!(rest.iter().all(|id| !first.contains(id)), "{rest:?}");
}
