//! What a client calls a tool with, read strictly: a field that does not exist is named, together
//! with those that do.

use super::trouble::Trouble;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// `search`
    Search(Search),
    /// `get`
    Get(Get),
    /// `remember`
    Remember(Remember),
    /// `observe`
    Observe(Observe),
    /// `task_begin`
    TaskBegin(TaskBegin),
    /// `task_finish`
    TaskFinish(TaskFinish),
    /// `resolve`
    Resolve(Resolve),
    /// `briefing`
    Briefing(Briefing),
}

/// Why a call is none.
#[derive(Clone, Debug)]
pub enum Misread {
    /// There is no such tool: the client is wrong, not the agent.
    NoSuchTool,
    /// The agent can mend it.
    Arguments(Trouble),
}

impl Call {
    /// Reads a call.
    pub fn read(tool: &str, arguments: JsonObject) -> Result<Self, Misread> {
        let given = Given { tool, arguments };
        let call = match tool {
            "search" => given.read().map(Self::Search),
            "get" => given.read().map(Self::Get),
            "remember" => given.read().map(Self::Remember),
            "observe" => given.read().map(Self::Observe),
            "task_begin" => given.read().map(Self::TaskBegin),
            "task_finish" => given.read().map(Self::TaskFinish),
            "resolve" => given.read().map(Self::Resolve),
            "briefing" => given.read().map(Self::Briefing),
            _ => return Err(Misread::NoSuchTool),
        };
        call.map_err(Misread::Arguments)
    }
}

struct Given<'a> {
    tool: &'a str,
    arguments: JsonObject,
}

impl Given<'_> {
    fn read<T: DeserializeOwned>(self) -> Result<T, Trouble> {
        let read = serde_json::from_value(Value::Object(self.arguments));
        read.map_err(|error| {
            Trouble::new(format!("read the arguments of `{}`: {error}", self.tool))
        })
    }
}

/// A question.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What is asked.
    pub query: String,
    /// At most so many hits.
    pub limit: Option<usize>,
    /// Tokens that the hits may take.
    pub budget: Option<u32>,
    /// What the agent is doing.
    pub role: Option<String>,
    /// Only this type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only of this workspace.
    pub workspace: Option<String>,
    /// The task it is asked in.
    pub task: Option<String>,
}

/// An entry to read.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Which.
    pub code: String,
}

/// An entry to write.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remember {
    /// One line.
    pub title: String,
    /// The knowledge.
    pub content: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Evidence, each as KIND:REF.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What must hold for it to be valid.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// What a spike came to.
    pub outcome: Option<String>,
    /// Which way it speaks.
    pub polarity: Option<String>,
    /// Where it goes.
    pub workspace: Option<String>,
}

/// How an entry fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was of help.
    Helpful,
    /// It did harm.
    Harmful,
    /// What it says was done, and worked.
    Success,
    /// What it says was done, and did not work.
    Failure,
    /// It still holds.
    Confirm,
}

/// An observation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observe {
    /// Of which entry.
    pub code: String,
    /// How it fared.
    pub verdict: Verdict,
    /// The task it was seen in.
    pub task: Option<String>,
}

/// A task to begin.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskBegin {
    /// What for.
    pub goal: String,
    /// The thread it belongs to.
    pub thread: Option<String>,
    /// The task it is a part of.
    pub parent: Option<String>,
}

/// The end of a task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFinish {
    /// How it went.
    pub outcome: crate::api::types::Outcome,
    /// What was of use.
    #[serde(default)]
    pub used: Vec<String>,
    /// What was set aside, because it contradicted what was seen.
    #[serde(default)]
    pub dismissed: Vec<String>,
    /// Spikes that made an experiment needless.
    #[serde(default)]
    pub avoided: Vec<String>,
    /// How good the work was.
    pub quality: Option<f64>,
    /// Which task.
    pub task: Option<String>,
}

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Put it away.
    Archive,
    /// Bring it back.
    Unarchive,
    /// Another takes its place.
    Supersede,
    /// It goes to a wider workspace.
    Promote,
    /// A note is put on it, here alone.
    Annotate,
}

/// What to settle.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// Which entry.
    pub code: String,
    /// What becomes of it.
    pub action: Action,
    /// What supersedes it.
    pub by: Option<String>,
    /// Where it is promoted to.
    pub to: Option<String>,
    /// The note.
    pub note: Option<String>,
}

/// A briefing to read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Briefing {
    /// Of which workspace.
    pub workspace: Option<String>,
    /// Tokens it may take.
    pub budget: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::surface::mcp::tools::tools;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn read(tool: &str, arguments: &Value) -> Result<Call, Misread> {
        Call::read(tool, arguments.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn a_wrong_argument_is_named_with_the_right_ones() {
        let wrong = [
            ("search", json!({}), "missing field `query`"),
            ("search", json!({"query": "q", "limt": 3}), "unknown field `limt`, expected one of"),
            ("search", json!({"query": 3}), "invalid type: integer `3`, expected a string"),
            ("observe", json!({"code": "L-7", "verdict": "good"}), "expected one of `helpful`"),
            ("task_finish", json!({"outcome": "fine"}), "`success` or `failure`"),
        ];
        for (tool, arguments, expected) in wrong {
            match read(tool, &arguments) {
                Err(Misread::Arguments(trouble)) => {
                    assert!(trouble.to_string().contains(expected), "{trouble}");
                }
                other => panic!("{tool}: {other:?}"),
            }
        }
        assert!(matches!(read("forget", &json!({})), Err(Misread::NoSuchTool)));
    }

    #[test]
    fn every_listed_tool_takes_what_its_schema_names_and_nothing_else() {
        for tool in tools() {
            let schema = serde_json::to_value(&*tool.input_schema).unwrap();
            let listed: BTreeSet<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            // A field that is not there makes the reader list those that are.
            let told = match read(&tool.name, &json!({"no_such_field": 1})) {
                Err(Misread::Arguments(trouble)) => trouble.to_string(),
                other => panic!("{}: {other:?}", tool.name),
            };
            let expected = told.split("expected ").nth(1).unwrap_or_default();
            let taken: BTreeSet<&str> =
                expected.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).collect();
            assert_eq!(taken, listed, "{}: {told}", tool.name);
        }
    }
}
