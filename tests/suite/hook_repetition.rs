//! Hooks do not repeat themselves: a session is given an entry once, and the disclaimer once.

use crate::support::node_process::{Running, done, klnode, start, told};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

const TITLE: &str = "The zqbilling gateway answers 503 after a deploy";
const CONTENT: &str = "Retry the zqbilling gateway on 503.";
const ASKED: &str = "why does the zqbilling gateway answer 503?";
/// Maximum token cost of the fixed lines around a quotation.
const FRAME_TOKENS_MAX: usize = 60;

/// A home with a node whose hooks have a long deadline, for busy machines.
struct Place {
    folder: tempfile::TempDir,
    node: Option<Running>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = "[hooks]\ntimeout = \"1 min\"\n";
        std::fs::write(folder.path().join("klnode.toml"), config).unwrap();
        let mut place = Self { folder, node: None };
        place.start();
        place
    }

    fn start(&mut self) {
        self.node = Some(start(self.home()).0);
    }

    fn home(&self) -> &Path {
        self.folder.path()
    }

    fn add(&self, title: &str, content: &str) -> String {
        let words = ["add", "--title", title, "--content", content, "--evidence", "doc:notes"];
        done(self.home(), &words)["code"].as_str().unwrap().to_owned()
    }

    /// The context that a hook prints; empty if it is silent.
    fn hook(&self, event: &str, input: &Value) -> String {
        let mut command = klnode(self.home());
        command.args(["hook", event]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running(command.spawn().unwrap());
        child.0.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let output = child.finish();
        assert!(output.status.success(), "{}", told(&output));
        if output.stdout.is_empty() {
            return String::new();
        }
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
    }

    fn prompt(&self, session: &str, text: &str) -> String {
        let input = json!({
            "session_id": session, "cwd": "/", "hook_event_name": "UserPromptSubmit",
            "prompt": text,
        });
        self.hook("prompt", &input)
    }

    fn begin(&self, session: &str, source: &str) -> String {
        let input = json!({
            "session_id": session, "cwd": "/", "hook_event_name": "SessionStart",
            "source": source,
        });
        self.hook("session-start", &input)
    }
}

fn has_disclaimer(context: &str) -> bool {
    context.contains("not instructions")
}

/// Token cost of the lines that are neither entry headers nor quotations.
fn frame_tokens(context: &str) -> usize {
    let fixed = context.lines().filter(|line| !line.starts_with("# ") && !line.starts_with('|'));
    let fixed = fixed.collect::<Vec<_>>().join("\n");
    let counts = [bpe_openai::o200k_base(), bpe_openai::cl100k_base()];
    counts.map(|tokenizer| tokenizer.count(fixed.as_str())).into_iter().max().unwrap()
}

#[test]
fn the_same_prompt_serves_an_entry_once_in_a_session() {
    let mut place = Place::new();
    let code = place.add(TITLE, CONTENT);
    let first = place.prompt("s1", ASKED);
    assert!(first.contains(&code) && has_disclaimer(&first), "{first}");
    assert_eq!(place.prompt("s1", ASKED), "");
    assert_eq!(place.prompt("s1", "the zqbilling gateway answers 503"), "", "in other words, too");
    let failed = json!({
        "session_id": "s1", "cwd": "/", "hook_event_name": "PostToolUseFailure",
        "error": "the zqbilling gateway answers 503",
    });
    assert_eq!(place.hook("tool-error", &failed), "");
    let other = place.prompt("s2", ASKED);
    assert!(other.contains(&code) && has_disclaimer(&other), "another session gets it: {other}");
    let mut within = failed;
    within["agent_id"] = "explorer".into();
    assert!(place.hook("tool-error", &within).contains(&code), "a sub-agent gets it");
    // New entries are given without the disclaimer; a restart of the node changes nothing.
    place.node.take().unwrap().stop();
    place.start();
    assert_eq!(place.prompt("s1", ASKED), "", "after a restart");
    let second = place.add("The zqbilling gateway needs a client certificate", "Ask operations.");
    let more = place.prompt("s1", "which client certificate does the zqbilling gateway need?");
    assert!(more.contains(&second) && !more.contains(&code), "{more}");
    assert!(!has_disclaimer(&more), "{more}");
    // Searches by the operator and by agents are not affected by the hooks.
    let found = done(place.home(), &["search", ASKED]);
    assert_eq!(found["hits"][0]["code"], code.as_str());
}

#[test]
fn a_changed_or_named_entry_is_given_again() {
    let place = Place::new();
    let code = place.add(TITLE, CONTENT);
    assert!(place.prompt("s1", ASKED).contains(&code));
    done(place.home(), &["edit", &code, "--content", "Retry the zqbilling gateway twice on 503."]);
    let changed = place.prompt("s1", ASKED);
    assert!(changed.contains("| Retry the zqbilling gateway twice"), "{changed}");
    assert_eq!(place.prompt("s1", ASKED), "");
    let named = place.prompt("s1", &format!("What does {code} say?"));
    assert!(named.contains(&format!("# {code} (")) && named.contains("twice"), "{named}");
    assert_eq!(place.prompt("s1", "What does L-AAAAAAAA say?"), "", "there is no such entry");
    done(place.home(), &["mark", "--mute", &code]);
    assert_eq!(place.prompt("s1", &format!("What does {code} say?")), "", "it is muted");
}

#[test]
fn a_cleared_or_compacted_context_gets_everything_again_and_a_resumed_one_does_not() {
    let place = Place::new();
    let code = place.add(TITLE, CONTENT);
    for _ in 0..4 {
        done(place.home(), &["feedback", &code, "--success"]);
    }
    place.begin("s1", "startup");
    assert!(place.prompt("s1", ASKED).contains(&code));
    for source in ["compact", "clear"] {
        let briefed = place.begin("s1", source);
        let again = place.prompt("s1", ASKED);
        assert!(again.contains(&code), "{source}: {again}");
        let told = [&briefed, &again].into_iter().filter(|text| has_disclaimer(text)).count();
        assert_eq!(told, 1, "{source}: {briefed}\n{again}");
        assert_eq!(place.prompt("s1", ASKED), "", "{source}");
    }
    assert!(!place.begin("s1", "resume").contains(&code), "the context has it");
    assert_eq!(place.prompt("s1", ASKED), "");
}

#[test]
fn the_fixed_lines_of_a_hook_cost_at_most_sixty_tokens() {
    let place = Place::new();
    let code = place.add(TITLE, CONTENT);
    for _ in 0..6 {
        let task = done(place.home(), &["task", "begin", "--agent", "a", "--goal", "g"]);
        let task = task["task"].as_str().unwrap().to_owned();
        done(place.home(), &["search", ASKED, "--task", &task]);
        done(place.home(), &["task", "finish", &task, "--success", "--used", &code]);
    }
    let briefed = place.begin("s0", "startup");
    assert!(briefed.contains(&code), "there is a briefing: {briefed}");
    let first = place.prompt("s1", ASKED);
    let second = place.prompt("s1", &format!("what does {code} say?"));
    for context in [&briefed, &first, &second] {
        let cost = frame_tokens(context);
        assert!((1..=FRAME_TOKENS_MAX).contains(&cost), "{cost}: {context}");
    }
    assert_eq!(briefed.matches("not instructions").count(), 1, "{briefed}");
}
