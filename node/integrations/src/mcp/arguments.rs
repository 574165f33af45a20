//! Parses the arguments of tool calls. Parsing is strict: an unknown field is an error that lists
//! the valid fields.

use super::quoted_entry_text::inline;
use super::tool_error::ToolError;
use super::tool_schemas::{LIMIT_MAX, ROLES};
use klnode_api_types::{BRIEFING_TOKENS, split_code};
use rmcp::model::JsonObject;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt::Display;
use std::ops::RangeInclusive;

/// A parsed tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCall {
    /// Arguments of `search`.
    Search(SearchArgs),
    /// Arguments of `get`.
    Get(GetArgs),
    /// Arguments of `remember`.
    Remember(RememberArgs),
    /// Arguments of `observe`.
    Observe(ObserveArgs),
    /// Arguments of `task_begin`.
    TaskBegin(TaskBeginArgs),
    /// Arguments of `task_finish`.
    TaskFinish(TaskFinishArgs),
    /// Arguments of `resolve`.
    Resolve(ResolveArgs),
    /// Arguments of `briefing`.
    Briefing(BriefingArgs),
}

/// Why a call could not be parsed.
#[derive(Clone, Debug)]
pub enum CallError {
    /// No tool has this name. The client reports a protocol error, because it offered a tool that
    /// does not exist.
    NoSuchTool,
    /// The arguments are invalid; the agent can correct them.
    Arguments(ToolError),
}

impl ToolCall {
    /// Parses the arguments of the named tool.
    pub fn read(tool: &str, arguments: JsonObject) -> Result<Self, CallError> {
        let given = RawCall { tool, arguments };
        let call = match tool {
            "search" => given.read().map(Self::Search),
            "get" => given.read().map(Self::Get),
            "remember" => given.read().map(Self::Remember),
            "observe" => given.read().map(Self::Observe),
            "task_begin" => given.read().map(Self::TaskBegin),
            "task_finish" => given.read().map(Self::TaskFinish),
            "resolve" => given.read().map(Self::Resolve),
            "briefing" => given.read().map(Self::Briefing),
            _ => return Err(CallError::NoSuchTool),
        };
        call.map_err(CallError::Arguments)
    }
}

struct RawCall<'a> {
    tool: &'a str,
    arguments: JsonObject,
}

impl RawCall<'_> {
    fn read<T: DeserializeOwned>(self) -> Result<T, ToolError> {
        let read = serde_json::from_value(Value::Object(self.arguments));
        read.map_err(|error| {
            ToolError::new(format!("The arguments of `{}` are invalid: {error}.", self.tool))
        })
    }
}

/// An optional whole number within a range. The error names the field and the range.
fn whole<'de, D, T>(given: D, field: &str, range: &RangeInclusive<T>) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + PartialOrd + Display,
{
    let Some(given) = Option::<Value>::deserialize(given)? else { return Ok(None) };
    let number = given.as_u64().and_then(|number| T::try_from(number).ok());
    let number = number.filter(|number| range.contains(number));
    let (least, most) = (range.start(), range.end());
    number.map(Some).ok_or_else(|| {
        let given = inline(&given.to_string());
        let wanted = format!("it must be a whole number from {least} to {most}");
        D::Error::custom(format!("`{field}` is {given}; {wanted}"))
    })
}

fn limit<'de, D: Deserializer<'de>>(given: D) -> Result<Option<usize>, D::Error> {
    whole(given, "limit", &(1..=LIMIT_MAX))
}

fn budget<'de, D: Deserializer<'de>>(given: D) -> Result<Option<u32>, D::Error> {
    whole(given, "budget", &(0..=u32::MAX))
}

fn briefing_budget<'de, D: Deserializer<'de>>(given: D) -> Result<Option<u32>, D::Error> {
    whole(given, "budget", &BRIEFING_TOKENS)
}

fn role<'de, D: Deserializer<'de>>(given: D) -> Result<Option<String>, D::Error> {
    match Option::<String>::deserialize(given)? {
        Some(unknown) if !ROLES.contains(&unknown.as_str()) => {
            let wanted = format!("it must be one of {}", ROLES.join(", "));
            Err(D::Error::custom(format!("`role` is \"{}\"; {wanted}", inline(&unknown))))
        }
        known => Ok(known),
    }
}

/// Elements such as `S-7F3KQ2MX=measured with one writer`.
fn codes_with_text<'de, D: Deserializer<'de>>(given: D) -> Result<Vec<(String, String)>, D::Error> {
    let given = Vec::<String>::deserialize(given)?;
    let pairs = given.iter().map(|text| {
        split_code(text).ok_or_else(|| {
            let wanted = "it must be CODE=TEXT, as in S-7F3KQ2MX=measured with one writer";
            D::Error::custom(format!("`{}` has no code and text; {wanted}", inline(text)))
        })
    });
    pairs.collect()
}

/// Arguments of a search.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchArgs {
    /// The question in plain words.
    pub query: String,
    /// Maximum number of hits.
    #[serde(default, deserialize_with = "limit")]
    pub limit: Option<usize>,
    /// Token budget for the hits.
    #[serde(default, deserialize_with = "budget")]
    pub budget: Option<u32>,
    /// The agent's current role, such as debugger.
    #[serde(default, deserialize_with = "role")]
    pub role: Option<String>,
    /// How an executor deviates from its plan.
    pub deviation: Option<String>,
    /// The reviewer that asks, such as `security`.
    pub reviewer: Option<String>,
    /// Restricts hits to this entry type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Restricts hits to this sub-type.
    pub sub_type: Option<String>,
    /// Restricts hits to entries with this tag.
    pub tag: Option<String>,
    /// Restricts hits to this workspace.
    pub workspace: Option<String>,
    /// Also returns entries of this thread; `*` for every thread.
    pub thread: Option<String>,
    /// The task the question belongs to; by default the session's task.
    pub task: Option<String>,
    /// The hits are for a prompt, in which a task has few places.
    #[serde(default)]
    pub context: bool,
    /// Lists everything that was considered.
    #[serde(default)]
    pub debug: bool,
}

/// Arguments for reading one entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetArgs {
    /// Code or id of the entry, or its beginning.
    pub code: String,
}

/// Arguments for writing an entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RememberArgs {
    /// Title of one line.
    pub title: String,
    /// The text of the entry.
    pub content: String,
    /// Entry type; the node chooses the default.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Evidence, each as KIND:REF.
    #[serde(default)]
    pub evidence: Vec<String>,
    /// Tags, such as `auth/jwt`.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Anchors and predicates the entry depends on.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Outcome of a spike.
    pub outcome: Option<String>,
    /// Whether the entry speaks for or against its subject.
    pub polarity: Option<String>,
    /// Target workspace; the node chooses the default.
    pub workspace: Option<String>,
}

/// An agent's verdict on an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservedOutcome {
    /// The entry helped.
    Helpful,
    /// The entry did harm.
    Harmful,
    /// The agent followed the entry's advice and it worked.
    Success,
    /// The agent followed the entry's advice and it failed.
    Failure,
    /// The agent found independently that the entry still holds.
    Confirm,
}

/// Arguments for recording an observation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObserveArgs {
    /// Code or id of the observed entry.
    pub code: String,
    /// The agent's verdict.
    pub verdict: ObservedOutcome,
    /// The task the observation belongs to; by default the session's task.
    pub task: Option<String>,
}

/// Arguments for beginning a task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskBeginArgs {
    /// Purpose of the task.
    pub goal: String,
    /// The thread the task belongs to.
    pub thread: Option<String>,
    /// The parent task; by default the session's task.
    pub parent: Option<String>,
}

/// Arguments for finishing a task.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFinishArgs {
    /// Whether the task succeeded.
    pub outcome: klnode_api_types::Outcome,
    /// Codes of entries the agent used.
    #[serde(default)]
    pub used: Vec<String>,
    /// Codes of entries that contradicted the agent's observations.
    #[serde(default)]
    pub dismissed: Vec<String>,
    /// Codes of spikes that made an experiment unnecessary.
    #[serde(default)]
    pub avoided: Vec<String>,
    /// Entries that answered a part of the question, each as `CODE=gap`.
    #[serde(default, deserialize_with = "codes_with_text")]
    pub partial: Vec<(String, String)>,
    /// Codes of entries that answered together.
    #[serde(default)]
    pub composite: Vec<String>,
    /// Codes of entries that answered another question than the one asked.
    #[serde(default)]
    pub incidental: Vec<String>,
    /// Why entries apply, each as `CODE=reason`.
    #[serde(default, deserialize_with = "codes_with_text")]
    pub reasons: Vec<(String, String)>,
    /// The conclusion for later parts of the work.
    pub conclusion: Option<String>,
    /// Quality of the work, from 0 to 1.
    pub quality: Option<f64>,
    /// Cost of the work, in a unit of the agent's choice.
    pub cost: Option<f64>,
    /// Number of rounds.
    pub rounds: Option<u32>,
    /// The approach that the agent took.
    pub strategy: Option<String>,
    /// The task to finish; by default the session's task.
    pub task: Option<String>,
}

/// A change to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResolveAction {
    /// Archive the entry.
    Archive,
    /// Take the entry out of the archive.
    Unarchive,
    /// Mark the entry as superseded by another.
    Supersede,
    /// Copy the entry to another workspace.
    Promote,
    /// Attach a note that exists on this node only.
    Annotate,
    /// Change the text of a playbook or of one section.
    Edit,
}

/// Arguments for changing an entry.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResolveArgs {
    /// Code or id of the entry.
    pub code: String,
    /// The change to make.
    pub action: ResolveAction,
    /// Code of the superseding entry, for `supersede`.
    pub by: Option<String>,
    /// Target workspace, for `promote`.
    pub to: Option<String>,
    /// Text of the note, for `annotate`.
    pub note: Option<String>,
    /// The new text, for `edit`.
    pub text: Option<String>,
    /// The version that was read, for `edit`.
    pub version: Option<String>,
}

/// Arguments for reading a briefing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BriefingArgs {
    /// The workspace to summarise; the node chooses the default.
    pub workspace: Option<String>,
    /// Token budget of the briefing.
    #[serde(default, deserialize_with = "briefing_budget")]
    pub budget: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tool_schemas::tools;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn read(tool: &str, arguments: &Value) -> Result<ToolCall, CallError> {
        ToolCall::read(tool, arguments.as_object().cloned().unwrap_or_default())
    }

    #[track_caller]
    fn error_of(tool: &str, arguments: &Value) -> String {
        match read(tool, arguments) {
            Err(CallError::Arguments(trouble)) => trouble.to_string(),
            other => panic!("{tool}: {other:?}"),
        }
    }

    #[test]
    fn an_unknown_argument_is_reported_with_the_valid_ones() {
        let wrong = [
            ("search", json!({}), "missing field `query`"),
            ("search", json!({"query": "q", "limt": 3}), "unknown field `limt`, expected one of"),
            ("search", json!({"query": 3}), "invalid type: integer `3`, expected a string"),
            ("observe", json!({"code": "L-7", "verdict": "good"}), "expected one of `helpful`"),
            ("task_finish", json!({"outcome": "fine"}), "`success` or `failure`"),
        ];
        for (tool, arguments, expected) in wrong {
            let message = error_of(tool, &arguments);
            assert!(message.contains(expected), "{message}");
        }
        assert!(matches!(read("forget", &json!({})), Err(CallError::NoSuchTool)));
    }

    #[test]
    fn a_gap_needs_a_code_and_a_text() {
        let read = |partial: &str| {
            read("task_finish", &json!({"outcome": "success", "partial": [partial]}))
        };
        let Ok(ToolCall::TaskFinish(finish)) = read("S-7F3KQ2MX= one writer") else {
            panic!("it is read");
        };
        assert_eq!(finish.partial, [("S-7F3KQ2MX".to_owned(), "one writer".to_owned())]);
        for wrong in ["S-7F3KQ2MX", "S-7F3KQ2MX=", "=a gap"] {
            let Err(CallError::Arguments(trouble)) = read(wrong) else { panic!("{wrong}") };
            assert!(trouble.to_string().contains("it must be CODE=TEXT"), "{trouble}");
        }
    }

    #[test]
    fn a_number_out_of_range_is_reported_with_the_range() {
        let limit = "it must be a whole number from 1 to 20";
        for (given, shown) in [
            (json!(0), "0"),
            (json!(21), "21"),
            (json!(1_000), "1000"),
            (json!(-1), "-1"),
            (json!(2.5), "2.5"),
            (json!(u64::MAX), "18446744073709551615"),
        ] {
            let message = error_of("search", &json!({"query": "q", "limit": given}));
            assert!(message.ends_with(&format!(": `limit` is {shown}; {limit}.")), "{message}");
        }
        for (tool, arguments, expected) in [
            ("search", json!({"query": "q", "budget": -5}), "-5; it must be a whole number from 0"),
            ("briefing", json!({"budget": 99}), "99; it must be a whole number from 100 to 20000"),
        ] {
            let message = error_of(tool, &arguments);
            assert!(message.contains(&format!(": `budget` is {expected}")), "{message}");
        }
    }

    #[test]
    fn search_accepts_every_value_its_schema_allows() {
        let search = tools().into_iter().find(|tool| tool.name == "search").unwrap();
        let schema = serde_json::to_value(&*search.input_schema).unwrap();
        let limit = &schema["properties"]["limit"];
        let limits = [&limit["minimum"], &limit["maximum"], &Value::Null];
        for limit in limits {
            assert!(read("search", &json!({"query": "q", "limit": limit})).is_ok(), "{limit}");
        }
        let roles = schema["properties"]["role"]["enum"].as_array().unwrap();
        for role in roles {
            assert!(read("search", &json!({"query": "q", "role": role})).is_ok(), "{role}");
        }
        let message = error_of("search", &json!({"query": "q", "role": "king"}));
        let known: Vec<&str> = roles.iter().filter_map(Value::as_str).collect();
        let expected = format!("`role` is \"king\"; it must be one of {}.", known.join(", "));
        assert!(message.ends_with(&expected), "{message}");
    }

    #[test]
    fn every_tool_accepts_exactly_the_fields_of_its_schema() {
        for tool in tools() {
            let schema = serde_json::to_value(&*tool.input_schema).unwrap();
            let listed: BTreeSet<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            // An unknown field makes the parser list the known ones.
            let message = error_of(&tool.name, &json!({"no_such_field": 1}));
            let expected = message.split("expected ").nth(1).unwrap_or_default();
            let taken: BTreeSet<&str> =
                expected.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).collect();
            assert_eq!(taken, listed, "{}: {message}", tool.name);
        }
    }
}
