//! How knowledge reaches an agent and how the agent reports on it: the places in a prompt, the list of
//! everything that was considered, adoption, conclusions for later parts, rules of an executor.

use crate::support::conformance::conforms;
use crate::support::homes::lies_in;
use crate::support::node_process::text;
use crate::support::node_with_home::{Scene, near};
use serde_json::{Value, json};

const SPIKE: [&str; 4] = ["--type", "spike", "--outcome", "confirmed"];

fn begin(scene: &Scene, agent: &str, parent: Option<&str>) -> Value {
    let words = ["task", "begin", "--agent", agent, "--goal", "work"];
    let parent = parent.map(|parent| ["--parent", parent]);
    scene.done(&[&words[..], parent.as_ref().map_or(&[], |parent| &parent[..])].concat())
}

fn codes(answer: &Value) -> Vec<String> {
    answer["hits"].as_array().unwrap().iter().map(|hit| text(&hit["code"])).collect()
}

#[test]
fn the_prompt_of_one_agent_gets_no_more_than_five_entries() {
    conforms("S000-47");
    let scene = Scene::new();
    for topic in ["zqalpha", "zqbeta"] {
        for number in 0..4 {
            let title = format!("{topic} rule {number}");
            scene.add(&title, &format!("Mind the {topic}."), &["--tag", topic]);
        }
    }
    let task = scene.begin();
    let context = |topic: &str, more: &[&str]| {
        let words = ["search", topic, "--tag", topic, "--context", "--deterministic"];
        scene.json(&[&words[..], &["--task", &task], more].concat())
    };
    assert_eq!(codes(&context("zqalpha", &["-n", "20"])).len(), 4);
    let second = codes(&context("zqbeta", &[]));
    assert_eq!(second.len(), 1, "one place is left: {second:?}");
    assert_eq!(codes(&context("zqbeta", &["-n", "20"])), second, "given entries keep theirs");
    assert_eq!(codes(&context("zqalpha", &[])).len(), 4, "these too");
    // An agent of its own has places of its own, and asking on demand is not limited.
    let other = scene.begin();
    let words = ["search", "zqbeta", "--tag", "zqbeta", "--context", "--task", &other];
    assert_eq!(codes(&scene.json(&words)).len(), 4);
    assert_eq!(scene.found("zqbeta", &["--tag", "zqbeta", "--task", &task]).len(), 4);
    scene.add("zqgamma rule", "Mind the zqgamma.", &["--tag", "zqgamma"]);
    let full = context("zqgamma", &[]);
    assert_eq!(full["hits"], json!([]));
    assert!(text(&full["reason"]).contains("has all of its 5 entries"), "{full}");
}

#[test]
fn everything_that_was_considered_is_listed_with_the_reason() {
    conforms("S002-32");
    let scene = Scene::new();
    let hits: Vec<String> = (0..3)
        .map(|number| scene.add(&format!("Zqdebug rule {number}"), "Bound the zqdebug queue.", &[]))
        .collect();
    let archived = scene.add("Zqdebug of old", "Bound the zqdebug queue.", &[]);
    scene.done(&["archive", &archived]);
    let muted = scene.add("Zqdebug aloud", "Bound the zqdebug queue.", &[]);
    scene.done(&["mark", &muted, "--mute"]);
    let thread = ["--thread", "elsewhere"];
    let threaded = scene.add("Zqdebug elsewhere", "Bound the zqdebug queue.", &thread);
    let tag = ["--tag", "review/security"];
    let reviewed = scene.add("Zqdebug for security", "Bound the zqdebug queue.", &tag);
    let weak = scene.add("A queue", "Some other queue without that word.", &[]);
    let words = ["search", "bound the zqdebug queue", "-n", "2", "--deterministic"];
    let more = ["--reviewer", "performance", "--debug", "--all"];
    let answer = scene.json(&[&words[..], &more].concat());
    let considered = answer["considered"].as_array().unwrap();
    let reason = |code: &str| {
        let one = considered.iter().find(|one| one["code"] == code);
        let one = one.unwrap_or_else(|| panic!("{code}: {answer}"));
        one["dropped"].as_str().map(str::to_owned)
    };
    for (code, expected) in [
        (&archived, "its status is archived"),
        (&muted, "it is muted or marked as wrong on this node"),
        (&threaded, "it belongs to another thread"),
        (&reviewed, "it belongs to another reviewer"),
    ] {
        assert_eq!(reason(code).as_deref(), Some(expected));
    }
    assert!(reason(&weak).is_some_and(|why| why.starts_with("its relevance is below 0.")));
    let given = codes(&answer);
    assert_eq!(given.len(), 2);
    assert!(given.iter().all(|code| reason(code).is_none()), "hits are not dropped");
    let left: Vec<&String> = hits.iter().filter(|code| !given.contains(code)).collect();
    assert_eq!(left.len(), 1);
    assert!(reason(left[0]).is_some(), "the limit leaves one out");
    let said = scene.said(&[&words[..], &more].concat());
    assert!(said.contains(&format!("  {muted}  ")), "{said}");
    assert!(said.contains("dropped: it is muted or marked as wrong on this node  Zqdebug aloud"));
    assert!(said.contains("Considered "), "{said}");
}

#[test]
fn later_parts_see_the_conclusion_of_earlier_ones_and_not_their_entries() {
    conforms("S002-28");
    conforms("S002-30");
    let scene = Scene::new();
    let code = scene.add("Zqupstream cache", "A cache of ten pages thrashed.", &[]);
    let root = scene.begin();
    let first = text(&begin(&scene, "researcher", Some(&root))["task"]);
    assert_eq!(scene.found("zqupstream cache", &["--task", &first]), std::slice::from_ref(&code));
    let conclusion = format!("Small caches failed per [{code}], so use a large one.");
    let words = ["task", "finish", &first, "--success", "--used", &code];
    scene.done(&[&words[..], &["--conclusion", &conclusion]].concat());
    let begun = begin(&scene, "planner", Some(&root));
    let upstream = json!([{
        "task": first, "agent": "researcher", "conclusion": conclusion, "cites": [code],
    }]);
    assert_eq!(begun["upstream"], upstream);
    let second = text(&begun["task"]);
    let shown = scene.done(&["task", "show", &second]);
    assert_eq!((&shown["upstream"], &shown["served"]), (&upstream, &json!(0)));
    // The block for its prompt begins with the conclusion, and holds no entry that does not answer.
    let block = scene.said(&["search", "apple pie with cinnamon", "--context", "--task", &second]);
    let expected = format!(
        "## Knowledge Context\n\nConclusions of earlier parts of this work:\n\
        | researcher: {conclusion} [{code}]\n\nNo relevant entries"
    );
    assert!(block.starts_with(&expected), "{block}");
    assert!(!block.contains("thrashed"), "{block}");
    // A conclusion primes its readers like the entries that it rests on.
    let confirmed = scene.done(&["feedback", &code, "--confirm", "--task", &second]);
    assert_eq!(confirmed["class"], "primed");
    // The next part of another piece of work sees nothing of it.
    assert_eq!(begin(&scene, "other", Some(&scene.begin()))["upstream"], Value::Null);
    // Forgetting the entry erases the conclusion that may quote it.
    scene.done(&["forget", &code, "--yes", "--now"]);
    assert_eq!(scene.done(&["task", "show", &second])["upstream"], Value::Null);
    assert_eq!(lies_in(&scene.home(), b"Small caches failed"), None);
}

#[test]
fn partial_composite_and_incidental_answers_are_reported_as_such() {
    conforms("S002-52");
    conforms("S002-53");
    conforms("S002-58");
    conforms("S002-59");
    let scene = Scene::new();
    let add = |title: &str| scene.add(title, "Measured in the zqadopt store.", &SPIKE);
    let [whole, part, one, two, aside] = ["writes", "reads", "locks", "pages", "clocks"]
        .map(|topic| add(&format!("Zqadopt of {topic}")));
    let task = scene.begin();
    assert_eq!(scene.found("zqadopt store", &["--task", &task]).len(), 5);
    let finish = ["task", "finish", &task, "--success", "--quality", "1", "--avoided", &whole];
    let composite = format!("{one},{two}");
    let gap = format!("{part}=measured with one writer");
    let why = format!("{whole}=same stack and constraints apply");
    let more = ["--composite", &composite, "--partial", &gap, "--incidental", &aside];
    let said = scene.said(&[&finish[..], &more, &["--why", &why, "--report"]].concat());
    let (_, section) = said.split_once("\n## Knowledge Applied\n\n").expect("a section");
    for line in [
        format!("- {whole}: Zqadopt of writes (spike avoided: same stack and constraints apply)"),
        format!("- {part}: Zqadopt of reads (applied in part; open: measured with one writer)"),
        format!("- {one}: Zqadopt of locks (part of a composite answer)"),
        format!("- {aside}: Zqadopt of clocks (an answer to another question, with less weight)"),
    ] {
        assert!(section.lines().any(|found| found == line), "{line}: {section}");
    }
    let untested = section.lines().find(|line| line.starts_with("Composite answer from "));
    let untested = untested.expect("the composite is flagged");
    assert!(untested.ends_with(": not tested together as a unit."), "{untested}");
    assert!(untested.contains(&one) && untested.contains(&two), "{untested}");
    assert!(section.find(&whole) < section.find("Composite answer"), "{section}");
    let shown = scene.done(&["task", "show", &task]);
    let entries = shown["entries"].as_array().unwrap();
    let entry = |code: &str| entries.iter().find(|entry| entry["code"] == code).unwrap();
    assert_eq!(entry(&part)["note"], "measured with one writer");
    // An answer to another question counts half of what its place would give.
    let gain = |code: &str| scene.show(code)["alpha"].as_f64().unwrap() - 5.0;
    let place = |code: &str| i32::try_from(entry(code)["rank"].as_u64().unwrap()).unwrap();
    near(&json!(gain(&whole)), 1.5 * 0.7_f64.powi(place(&whole)), 0.01);
    near(&json!(gain(&part)), 1.5 * 0.7_f64.powi(place(&part)), 0.01);
    near(&json!(gain(&aside)), 0.75 * 0.7_f64.powi(place(&aside)), 0.01);
}

#[test]
fn adoption_needs_a_gap_and_two_parts_of_a_composite() {
    let scene = Scene::new();
    let code = scene.add("Zqgap", "A text.", &[]);
    let task = scene.begin();
    scene.found("zqgap", &["--task", &task]);
    let finish =
        |more: &[&str]| scene.refused(&[&["task", "finish", &task, "--success"], more].concat(), 2);
    assert!(finish(&["--partial", &code]).contains("it must be CODE=TEXT"));
    assert!(finish(&["--composite", &code]).contains("a composite answer has at least two"));
    let both = format!("{code}=a gap");
    let told = finish(&["--partial", &both, "--dismissed", &code]);
    assert!(told.contains("an entry can only be one of them"), "{told}");
}

#[test]
fn a_task_that_asked_nothing_says_so_at_its_end() {
    let scene = Scene::new();
    scene.add("Zqasked", "A text.", &[]);
    let finish = |task: &str| scene.said(&["task", "finish", task, "--success", "--report"]);
    let silent = finish(&scene.begin());
    assert_eq!(silent.matches("No search was made in this task").count(), 2, "{silent}");
    // A search without an answer is a search.
    for question in ["zqasked", "apple pie with cinnamon"] {
        let task = scene.begin();
        scene.json(&["search", question, "--task", &task]);
        let said = finish(&task);
        assert!(!said.contains("No search was made"), "{said}");
        assert_eq!(scene.done(&["task", "show", &task])["searches"], 1);
    }
    let task = scene.begin();
    let finished = scene.done(&["task", "finish", &task, "--success"]);
    assert_eq!(finished["unsearched"], true);
}

#[test]
fn a_prompt_with_a_spike_says_when_its_result_applies() {
    conforms("S002-51");
    let scene = Scene::new();
    scene.add("Zqrules of queues", "A bound of ten was fast.", &SPIKE);
    scene.add("Zqrules of parsers", "Recursion needs a limit.", &[]);
    let block = |kind: &str| scene.said(&["search", "zqrules", "--context", "--type", kind]);
    let with = block("spike");
    for word in ["technology", "constraints", "scale", "code has not changed significantly"] {
        assert!(with.contains(word), "{word}: {with}");
    }
    assert!(with.contains("cite it and say in one sentence why"), "{with}");
    assert!(!block("lesson").contains("A spike (S-"), "no spike, no rules");
}

#[test]
fn an_executor_is_served_for_the_first_three_deviations_only() {
    conforms("S002-60");
    let scene = Scene::new();
    let code = scene.add("Zqexecute", "A text.", &[]);
    let ask = |more: &[&str]| {
        let words = ["search", "zqexecute", "--role", "executor"];
        scene.json(&[&words[..], more].concat())
    };
    for rule in ["bug", "missing", "blocking"] {
        assert_eq!(codes(&ask(&["--deviation", rule])), std::slice::from_ref(&code), "{rule}");
    }
    let asks = ask(&["--deviation", "architecture"]);
    assert_eq!(asks["hits"], json!([]));
    assert!(text(&asks["reason"]).contains("for the planner to decide"), "{asks}");
    assert_eq!(ask(&[])["hits"], json!([]));
    let told = scene.refused(&["search", "x", "--role", "executor", "--deviation", "fun"], 2);
    assert!(told.contains("must be one of bug, missing, blocking, architecture"), "{told}");
}

#[test]
fn the_role_decides_how_much_of_an_entry_is_shown_in_one_format() {
    conforms("S002-31");
    let scene = Scene::new();
    let content = format!("Bound the zqdetail queue. {}", "The reasons fill a page. ".repeat(20));
    let code = scene.add("Bound the zqdetail queue", &content, &[]);
    let hit = |role: &str| {
        let words = ["search", "bound the zqdetail queue", "--role", role, "--deviation", "bug"];
        scene.json(&words)["hits"][0].clone()
    };
    let (researcher, executor) = (hit("researcher"), hit("executor"));
    let length = |hit: &Value| text(&hit["content"]).len();
    assert!(length(&researcher) > 3 * length(&executor), "{researcher} {executor}");
    assert_eq!((&researcher["form"], &executor["form"]), (&json!("full"), &json!("summary")));
    let fields = |hit: &Value| hit.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&researcher), fields(&executor), "one format");
    for role in ["researcher", "executor"] {
        let words = ["search", "bound the zqdetail queue", "--role", role, "--deviation", "bug"];
        let block = scene.said(&[&words[..], &["--context"]].concat());
        assert!(block.lines().nth(3).unwrap().starts_with(&format!("# {code} (")), "{block}");
    }
}

#[test]
fn a_conclusion_that_cites_no_code_is_reported() {
    conforms("S002-18");
    let scene = Scene::new();
    let [one, two] = ["queues", "parsers"]
        .map(|topic| scene.add(&format!("Zqcite of {topic}"), "Bound them.", &[]));
    let finish = |conclusion: &str| {
        let task = scene.begin();
        scene.found("zqcite", &["--task", &task]);
        let used = format!("{one},{two}");
        let words = ["task", "finish", &task, "--success", "--used", &used];
        scene.said(&[&words[..], &["--conclusion", conclusion]].concat())
    };
    let said = finish(&format!("Bounds help, as [{one}] says."));
    assert!(said.contains(&format!("The conclusion does not cite {two}; write codes")), "{said}");
    let said = finish(&format!("Bounds help, as [{one}] and [{two}] say."));
    assert!(!said.contains("does not cite"), "{said}");
    // The instructions of the tools ask for it.
    let mut agent = crate::support::mcp_client::Agent::silent(&scene.home(), &[]);
    let instructions = text(&agent.hello("2025-06-18")["instructions"]);
    assert!(instructions.contains("cite an entry where you apply it, as [L-"), "{instructions}");
    agent.close();
}

#[test]
fn the_task_of_a_named_agent_succeeds_only_after_a_search() {
    conforms("S002-01");
    let scene = Scene::with(&["tasks.search_required=[\"researcher\"]"]);
    let task = text(&begin(&scene, "researcher", None)["task"]);
    let told = scene.refused(&["task", "finish", &task, "--success"], 2);
    assert!(told.contains("is a success without a search"), "{told}");
    assert!(told.contains("search in the task first, or finish it as a failure"), "{told}");
    assert_eq!(scene.done(&["task", "show", &task])["state"], "open");
    scene.json(&["search", "zqrequired", "--task", &task]);
    scene.done(&["task", "finish", &task, "--success"]);
    let failed = text(&begin(&scene, "researcher", None)["task"]);
    scene.done(&["task", "finish", &failed, "--failure"]);
    let other = text(&begin(&scene, "builder", None)["task"]);
    scene.done(&["task", "finish", &other, "--success"]);
}
