//! How an agent asks and reports over MCP: the fields of `search` and `task_finish` about roles,
//! prompts, adopted entries and conclusions.

use crate::support::conformance::conforms;
use crate::support::mcp_client::{Agent, text};
use crate::support::node_process;
use crate::support::node_with_home::Scene;
use serde_json::{Value, json};

fn codes(answer: &Value) -> Vec<String> {
    answer["hits"].as_array().unwrap().iter().map(|hit| node_process::text(&hit["code"])).collect()
}

#[test]
fn an_agent_reports_parts_gaps_reasons_and_a_conclusion() {
    let scene = Scene::new();
    let add = |topic: &str| scene.add(&format!("Zqadopt of {topic}"), "Measured once.", &[]);
    let [part, one, two, aside] = ["reads", "locks", "pages", "clocks"].map(add);
    let mut agent = Agent::new(&scene.home(), &[]);
    let root = agent.done("task_begin", &json!({"goal": "the whole"}))["task"].clone();
    let task = agent.done("task_begin", &json!({"goal": "a part"}))["task"].clone();
    let found = agent.done("search", &json!({"query": "zqadopt"}));
    assert_eq!(codes(&found).len(), 4, "{found}");
    let conclusion = format!("Small caches fail per [{part}].");
    let end = json!({
        "outcome": "success", "conclusion": conclusion,
        "partial": [format!("{part}=measured with one writer")],
        "composite": [&one, &two],
        "incidental": [&aside],
        "reasons": [format!("{one}=the same stack")],
    });
    let finished = agent.call("task_finish", &end);
    let said = text(&finished);
    let untested = said.lines().find(|line| line.starts_with("Composite answer from "));
    let untested = untested.unwrap_or_else(|| panic!("{said}"));
    assert!(untested.contains(&one) && untested.contains(&two), "{said}");
    let uncited = said.lines().find(|line| line.starts_with("The conclusion does not cite "));
    let uncited = uncited.unwrap_or_else(|| panic!("{said}"));
    assert!(uncited.contains(&one) && !uncited.contains(&part), "{said}");
    let structured = &finished["structuredContent"];
    assert_eq!(structured["composite"].as_array().map(Vec::len), Some(2), "{structured}");
    assert_eq!(structured["unsearched"], false, "{structured}");

    let shown = scene.done(&["task", "show", task.as_str().unwrap()]);
    let adopted = |code: &str| {
        let mut entries = shown["entries"].as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["code"] == code).unwrap();
        (entry["said"].clone(), entry["note"].clone())
    };
    assert_eq!(adopted(&part), (json!("partial"), json!("measured with one writer")));
    assert_eq!(adopted(&one), (json!("composite"), json!("the same stack")));
    assert_eq!(adopted(&two), (json!("composite"), Value::Null));
    assert_eq!(adopted(&aside), (json!("incidental"), Value::Null));

    // The next part reads the conclusion, as a quotation, and is primed by its entries.
    let mut other = Agent::new(&scene.home(), &[]);
    let begun = other.call("task_begin", &json!({"goal": "the next part", "parent": root}));
    assert!(text(&begun).lines().any(|line| line == format!("| {conclusion}")), "{begun}");
    let upstream = &begun["structuredContent"]["upstream"][0];
    assert_eq!(upstream["quoted"]["text"], json!(conclusion), "{begun}");
    assert!(upstream["cites"].as_array().unwrap().contains(&json!(part)), "{begun}");
    let confirm = other.done("observe", &json!({"code": &part, "verdict": "confirm"}));
    assert_eq!(confirm["class"], "primed", "{confirm}");

    let told = agent.refused("task_finish", &json!({"outcome": "success", "partial": [&part]}));
    assert!(told.contains("it must be CODE=TEXT"), "{told}");
    agent.close();
    other.close();
}

#[test]
fn a_task_without_a_search_is_reported_to_the_agent() {
    let scene = Scene::new();
    let mut agent = Agent::new(&scene.home(), &[]);
    agent.done("task_begin", &json!({"goal": "guess"}));
    let finished = agent.call("task_finish", &json!({"outcome": "success"}));
    assert!(text(&finished).contains("No search was made in it"), "{finished}");
    assert_eq!(finished["structuredContent"]["unsearched"], true);
    agent.close();
}

#[test]
fn an_agent_asks_as_executor_and_as_reviewer() {
    let scene = Scene::new();
    let plain = scene.add("Zqrole of queues", "Bound them.", &[]);
    let own = scene.add("Zqrole of tokens", "Check them.", &["--tag", "review/security"]);
    let mut agent = Agent::new(&scene.home(), &[]);
    let mut ask = |more: &[(&str, &str)]| {
        let mut question = json!({"query": "zqrole"});
        for (name, value) in more {
            question[*name] = json!(value);
        }
        agent.done("search", &question)
    };
    let executor = ("role", "executor");
    let silent = ask(&[executor]);
    assert_eq!(codes(&silent), [] as [String; 0], "{silent}");
    assert_eq!(codes(&ask(&[executor, ("deviation", "bug")])).len(), 2);
    let asks = ask(&[executor, ("deviation", "architecture")]);
    assert!(asks["reason"].as_str().unwrap().contains("for the planner to decide"), "{asks}");
    assert_eq!(codes(&ask(&[("reviewer", "performance")])), [plain.as_str()]);
    let own_first = codes(&ask(&[("reviewer", "security")]));
    assert!(own_first.contains(&own), "{own_first:?}");
    let told = agent.refused("search", &json!({"query": "zqrole", "deviation": "fun"}));
    assert!(told.contains("must be one of bug, missing, blocking, architecture"), "{told}");
    agent.close();
}

#[test]
fn a_prompt_has_few_places_and_everything_considered_is_listed_on_request() {
    let scene = Scene::new();
    for number in 0..6 {
        scene.add(&format!("Zqplace rule {number}"), "Bound the zqplace queue.", &[]);
    }
    let muted = scene.add("Zqplace aloud", "Bound the zqplace queue.", &[]);
    scene.done(&["mark", &muted, "--mute"]);
    let mut agent = Agent::new(&scene.home(), &[]);
    agent.done("task_begin", &json!({"goal": "fill a prompt"}));
    let prompt = json!({"query": "zqplace", "limit": 20, "context": true});
    assert_eq!(codes(&agent.done("search", &prompt)).len(), 5);
    let listed = agent.call("search", &json!({"query": "zqplace", "limit": 2, "debug": true}));
    let considered = listed["structuredContent"]["considered"].as_array().unwrap();
    assert_eq!(considered.len(), 7, "{listed}");
    let dropped = considered.iter().find(|one| one["code"] == muted).unwrap();
    assert_eq!(dropped["dropped"], "it is muted or marked as wrong on this node", "{dropped}");
    let said = text(&listed);
    assert!(said.contains("\nConsidered 7 entries:\n"), "{said}");
    assert!(said.lines().any(|line| line == "| Zqplace aloud"), "titles are quoted: {said}");
    let plain = agent.done("search", &json!({"query": "zqplace"}));
    assert_eq!(plain.get("considered"), None, "only on request");
    agent.close();
}

#[test]
fn sub_types_filter_answers_of_the_api_and_of_mcp() {
    conforms("S004-103");
    let scene = Scene::new();
    let bug = ["--type", "experience", "--sub-type", "bug"];
    let bug = scene.add("Zqfilter overflows", "At 4 GiB.", &bug);
    scene.add("Zqfilter is fast", "Below 4 GiB.", &[]);
    let mut agent = Agent::new(&scene.home(), &[]);
    let filtered = agent.done("search", &json!({"query": "zqfilter", "sub_type": "bug"}));
    assert_eq!(codes(&filtered), [bug.as_str()]);
    assert_eq!(codes(&agent.done("search", &json!({"query": "zqfilter"}))).len(), 2);
    assert_eq!(scene.found("zqfilter", &["--sub-type", "bug"]), [bug]);
    agent.close();
}
