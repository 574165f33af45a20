//! Outcomes of tasks: derived from the rows of a task, summed by workspace and period, and the
//! recommendations that follow from them.

use crate::support::conformance::conforms;
use crate::support::mcp_client::Agent;
use crate::support::node_process::text;
use crate::support::node_with_home::{Scene, days_ago, near};
use klnode_crdt::ids::TaskId;
use klnode_engine::{Command, Finish, NewTask, Receipt, TaskCommand, TaskReceipt};
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};
use klnode_tests::test_engine::{Node, lesson};
use serde_json::{Value, json};

/// A finished task of the scene.
struct Work<'a> {
    quality: f64,
    cost: f64,
    rounds: u32,
    strategy: Option<&'a str>,
    makes: bool,
}

fn run_task(node: &mut Node, command: TaskCommand) -> TaskReceipt {
    match node.run(Command::Task(Box::new(command))) {
        Ok(Receipt::Task(receipt)) => receipt,
        other => panic!("no task: {other:?}"),
    }
}

/// Works on a task and finishes it; a quality of one half or more is a success.
fn work(node: &mut Node, of: &Work<'_>) -> TaskId {
    let (agent, goal) = ("builder".to_owned(), "mend it".to_owned());
    let new = NewTask { agent, goal, ..NewTask::default() };
    let TaskReceipt::Began(task) = run_task(node, TaskCommand::Begin(new)) else {
        panic!("it did not begin");
    };
    if of.makes {
        let new = lesson(&format!("learned in {task}"));
        node.run(Command::Task(Box::new(TaskCommand::Create(task, Box::new(new))))).unwrap();
    }
    let verdict = if of.quality < 0.5 { TaskVerdict::Failure } else { TaskVerdict::Success };
    let outcome = TaskOutcome { verdict, quality: of.quality };
    let finish = Finish {
        cost: Some(of.cost),
        rounds: Some(of.rounds),
        strategy: of.strategy.map(str::to_owned),
        ..Finish::new(outcome, Vec::new())
    };
    run_task(node, TaskCommand::Finish(task, finish));
    task
}

fn of_rule(scene: &Scene, rule: u64) -> Vec<Value> {
    let list = scene.done(&["insights", "list"]);
    let all = list["insights"].as_array().unwrap().iter();
    all.filter(|one| one["rule"] == rule).cloned().collect()
}

/// Ids in the evidence of the only insight of a rule.
#[track_caller]
fn evidence(scene: &Scene, rule: u64) -> Vec<String> {
    let found = of_rule(scene, rule);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["category"], if rule == 13 { "stagnation" } else { "performance" });
    found[0]["evidence"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect()
}

#[test]
fn an_outcome_has_the_report_of_the_agent_and_the_entries_made_and_used() {
    conforms("S004-150");
    conforms("S004-152");
    let scene = Scene::new();
    let known = scene.add("About zqoutcome", "Rare.", &[]);
    scene.add("About zqother", "Rare.", &[]);
    let task = scene.begin();
    assert_eq!(scene.found("zqoutcome", &["--task", &task, "-n", "1"]), [known.as_str()]);
    scene.add("Learned here", "New.", &["--task", &task]);
    let said = ["--quality", "0.8", "--cost", "1.5", "--rounds", "4", "--strategy", "bisect"];
    let words = ["task", "finish", &task, "--success", "--used", &known];
    scene.done(&[&words[..], &said].concat());
    let failed = scene.begin();
    scene.done(&["task", "finish", &failed, "--failure", "--quality", "0.2", "--cost", "0.5"]);
    scene.begin();

    let report = scene.done(&["task", "outcomes"]);
    assert_eq!((&report["workspace"], &report["period"]), (&json!("main"), &json!("7d")));
    let totals = &report["summary"];
    let count = |name: &str| totals[name].as_u64().unwrap();
    assert_eq!((count("tasks"), count("succeeded"), count("failed")), (2, 1, 1), "{totals}");
    assert_eq!((count("made"), count("served"), count("used")), (1, 1, 1), "{totals}");
    near(&totals["cost"], 2.0, 1e-9);
    near(&totals["quality"], 0.5, 1e-9);
    let first = &report["outcomes"][1];
    assert_eq!(first["task"], json!(task), "{report}");
    assert_eq!((&first["strategy"], &first["rounds"]), (&json!("bisect"), &json!(4)));
    assert_eq!((&first["made"], &first["served"]), (&json!(1), &json!(1)));
    let span = first["finished"].as_u64().unwrap() - scene_begun(&scene, &task);
    assert_eq!(first["duration_millis"].as_u64(), Some(span));
    assert_eq!(report["strategies"][0]["strategy"], "bisect");
    let said = scene.said(&["task", "outcomes"]);
    assert!(said.contains("all: 2 tasks, 1 succeeded, 1 failed, mean quality 0.50"), "{said}");

    // A task belongs to the workspace that was named.
    let other = ["task", "begin", "--agent", "a", "--goal", "g", "--workspace", "local"];
    let local = text(&scene.done(&other)["task"]);
    scene.done(&["task", "finish", &local, "--success"]);
    let words = ["task", "outcomes", "--workspace", "local", "--period", "30d"];
    assert_eq!(scene.done(&words)["outcomes"][0]["task"], json!(local));
    assert_eq!(scene.done(&["task", "outcomes"])["summary"]["tasks"], 2);
    let told = scene.refused(&["task", "outcomes", "--period", "0d"], 2);
    assert!(told.contains("`period` is `0d`; it must be 1d to 400d."), "{told}");
}

fn scene_begun(scene: &Scene, task: &str) -> u64 {
    scene.done(&["task", "show", task])["begun"].as_u64().unwrap()
}

#[test]
fn an_outcome_is_derived_from_its_task_and_cannot_be_edited() {
    conforms("S004-151");
    let scene = Scene::new();
    scene.add("About zqfixed", "Rare.", &[]);
    let task = scene.begin();
    scene.found("zqfixed", &["--task", &task]);
    let end = |outcome: &str, cost: &str| {
        scene.json(&["task", "finish", &task, outcome, "--cost", cost, "--strategy", "bisect"])
    };
    end("--success", "1");
    let outcomes = || scene.done(&["task", "outcomes"])["outcomes"].clone();
    let before = outcomes();
    assert_eq!(end("--success", "9")["already"], true);
    assert_eq!(end("--failure", "9")["already"], true);
    assert_eq!(outcomes(), before, "the first end stands");
    // Later answers are part of no finished task.
    assert!(!scene.run(&["search", "zqfixed", "--task", &task]).status.success());
    let outcome = &outcomes()[0];
    let shown = scene.done(&["task", "show", &task]);
    assert_eq!(outcome["served"], shown["served"], "{shown}");
    assert_eq!(outcome["strategy"], shown["strategy"]);
}

#[test]
fn an_agent_states_strategy_rounds_and_cost_over_mcp() {
    conforms("S004-150");
    let scene = Scene::new();
    let mut agent = Agent::new(&scene.home(), &[]);
    agent.done("task_begin", &json!({"goal": "mend it"}));
    let end = json!({"outcome": "success", "strategy": "bisect", "rounds": 3, "cost": 0.25});
    agent.done("task_finish", &end);
    let outcome = &scene.done(&["task", "outcomes"])["outcomes"][0];
    assert_eq!((&outcome["strategy"], &outcome["rounds"]), (&json!("bisect"), &json!(3)));
    near(&outcome["cost"], 0.25, 1e-9);
}

#[test]
fn rules_about_outcomes_fire_on_their_scenes_and_not_on_near_misses() {
    conforms("S004-88");
    conforms("S004-89");
    conforms("S004-90");
    conforms("S004-91");
    conforms("S004-93");
    conforms("S004-153");
    conforms("S004-154");
    let mut node = days_ago(2);
    let proven = node.create("proven");
    for _ in 0..4 {
        node.succeed(proven);
    }
    node.create("unproven");
    let wide = Work { quality: 0.9, cost: 1.0, rounds: 2, strategy: Some("wide"), makes: true };
    for _ in 0..3 {
        work(&mut node, &wide);
    }
    let narrow = Work { quality: 0.3, rounds: 10, strategy: Some("narrow"), makes: false, ..wide };
    let long = [10, 12].map(|rounds| work(&mut node, &Work { rounds, ..narrow }));
    let barren = work(&mut node, &Work { rounds: 9, quality: 0.5, ..narrow });
    let dear = Work { cost: 9.0, strategy: None, makes: false, ..wide };
    let costly = work(&mut node, &dear);
    let scene = Scene::of(node);

    let name = |task: &TaskId| task.to_string();
    let mut of_narrow: Vec<String> = long.iter().chain([&barren]).map(name).collect();
    let mut found = evidence(&scene, 8);
    of_narrow.sort();
    found.sort();
    assert_eq!(found, of_narrow, "the third task has nine rounds");
    let mut found = evidence(&scene, 9);
    found.sort();
    let mut expected: Vec<String> = long.iter().map(name).collect();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(evidence(&scene, 10), [costly.to_string()]);
    let mut found = evidence(&scene, 11);
    found.sort();
    let mut expected = vec![barren.to_string(), costly.to_string()];
    expected.sort();
    assert_eq!(found, expected);
    // Two of seven tasks failed: one agent and few entries are no stagnation yet.
    assert_eq!(of_rule(&scene, 13), [] as [Value; 0]);
    let failed = scene.begin();
    scene.done(&["task", "finish", &failed, "--failure"]);
    assert!(evidence(&scene, 13).contains(&failed));
    for (rule, action) in [
        (8, "Prefer \"wide\" for such tasks."),
        (9, "End such tasks after fewer rounds, and split them or change the strategy."),
        (13, "Try another strategy, another agent or other entries."),
    ] {
        assert_eq!(of_rule(&scene, rule)[0]["action"], action);
    }
    // Recommendations are in the briefing, below insights that need more attention.
    let briefing = scene.done(&["briefing", "--budget", "2000"]);
    let rules: Vec<u64> = briefing["insights"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["rule"].as_u64().unwrap())
        .collect();
    assert_eq!(rules, [9, 11, 13, 8, 10]);
}

#[test]
fn outcomes_close_to_a_limit_are_no_insights() {
    conforms("S004-88");
    conforms("S004-89");
    conforms("S004-90");
    conforms("S004-91");
    let mut node = days_ago(2);
    let wide = Work { quality: 0.9, cost: 1.0, rounds: 2, strategy: Some("wide"), makes: true };
    // A little worse, with many rounds of good quality.
    let close = Work { quality: 0.85, rounds: 12, strategy: Some("close"), ..wide };
    for _ in 0..3 {
        work(&mut node, &wide);
        work(&mut node, &close);
    }
    work(&mut node, &Work { cost: 2.0, strategy: None, ..wide });
    // Tasks without an entry took 3.4 of 11.4, which is less than 30 %.
    for cost in [2.5, 0.9] {
        work(&mut node, &Work { cost, strategy: None, makes: false, ..wide });
    }
    let scene = Scene::of(node);
    for rule in [8, 9, 10, 11] {
        assert_eq!(of_rule(&scene, rule), [] as [Value; 0], "rule {rule}");
    }
}
