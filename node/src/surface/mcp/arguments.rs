//! What a client calls a tool with, read strictly: a field that does not exist is named, together
//! with those that do.

use super::quote::inline;
use super::tools::{LIMIT_MAX, ROLES};
use super::trouble::Trouble;
use crate::api::types::BRIEFING_TOKENS;
use rmcp::model::JsonObject;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::fmt::Display;
use std::ops::RangeInclusive;

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

/// A whole number within a range, if one is given. What is none is told with its field.
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

/// A question.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What is asked.
    pub query: String,
    /// At most so many hits.
    #[serde(default, deserialize_with = "limit")]
    pub limit: Option<usize>,
    /// Tokens that the hits may take.
    #[serde(default, deserialize_with = "budget")]
    pub budget: Option<u32>,
    /// What the agent is doing.
    #[serde(default, deserialize_with = "role")]
    pub role: Option<String>,
    /// Only this type.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Only with this tag.
    pub tag: Option<String>,
    /// Only of this workspace.
    pub workspace: Option<String>,
    /// The thread whose entries may answer, too; `*` for every thread.
    pub thread: Option<String>,
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
    #[serde(default, deserialize_with = "briefing_budget")]
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

    #[track_caller]
    fn told(tool: &str, arguments: &Value) -> String {
        match read(tool, arguments) {
            Err(Misread::Arguments(trouble)) => trouble.to_string(),
            other => panic!("{tool}: {other:?}"),
        }
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
            let told = told(tool, &arguments);
            assert!(told.contains(expected), "{told}");
        }
        assert!(matches!(read("forget", &json!({})), Err(Misread::NoSuchTool)));
    }

    #[test]
    fn a_number_out_of_its_range_is_named_with_the_range() {
        let limit = "it must be a whole number from 1 to 20";
        for (given, as_told) in [
            (json!(0), "0"),
            (json!(21), "21"),
            (json!(1_000), "1000"),
            (json!(-1), "-1"),
            (json!(2.5), "2.5"),
            (json!(u64::MAX), "18446744073709551615"),
        ] {
            let told = told("search", &json!({"query": "q", "limit": given}));
            assert!(told.ends_with(&format!(": `limit` is {as_told}; {limit}")), "{told}");
        }
        for (tool, arguments, expected) in [
            ("search", json!({"query": "q", "budget": -5}), "-5; it must be a whole number from 0"),
            ("briefing", json!({"budget": 99}), "99; it must be a whole number from 100 to 20000"),
        ] {
            let told = told(tool, &arguments);
            assert!(told.contains(&format!(": `budget` is {expected}")), "{told}");
        }
    }

    #[test]
    fn what_the_schema_of_a_search_allows_is_taken() {
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
        let told = told("search", &json!({"query": "q", "role": "executor"}));
        let known: Vec<&str> = roles.iter().filter_map(Value::as_str).collect();
        let expected = format!("`role` is \"executor\"; it must be one of {}", known.join(", "));
        assert!(told.ends_with(&expected), "{told}");
    }

    #[test]
    fn every_listed_tool_takes_what_its_schema_names_and_nothing_else() {
        for tool in tools() {
            let schema = serde_json::to_value(&*tool.input_schema).unwrap();
            let listed: BTreeSet<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            // A field that is not there makes the reader list those that are.
            let told = told(&tool.name, &json!({"no_such_field": 1}));
            let expected = told.split("expected ").nth(1).unwrap_or_default();
            let taken: BTreeSet<&str> =
                expected.split('`').skip(1).step_by(2).filter(|name| !name.is_empty()).collect();
            assert_eq!(taken, listed, "{}: {told}", tool.name);
        }
    }
}
