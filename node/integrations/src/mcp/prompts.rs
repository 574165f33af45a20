//! Prompt templates that include the relevant entries, quoted.

use super::arguments::{SearchArgs, ToolCall};
use super::session::McpSession;
use super::tool_error::ToolError;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

/// A prompt template.
struct Template {
    name: &'static str,
    description: &'static str,
    argument: &'static str,
    argument_is: &'static str,
    /// The request to the agent.
    request: &'static str,
    role: Option<&'static str>,
}

const TEMPLATES: [Template; 2] = [
    Template {
        name: "knowledge_for_task",
        description: "Begin a task with the relevant entries",
        argument: "goal",
        argument_is: "The goal of the task",
        request: "Work on the task below. First weigh the entries about it: say which \
                  apply and which do not. Begin with `task_begin`; end with `task_finish`, naming \
                  the entries that mattered.",
        role: None,
    },
    Template {
        name: "review_with_knowledge",
        description: "Review something against the relevant entries",
        argument: "what",
        argument_is: "The subject of the review",
        request: "Review the subject below against the entries about it: name the entry for \
                  each finding that rests on one, and say with `observe` where an entry misled.",
        role: Some("reviewer"),
    },
];

pub(super) fn prompts() -> Vec<Prompt> {
    let argument = |known: &Template| {
        PromptArgument::new(known.argument).with_description(known.argument_is).with_required(true)
    };
    let prompt = |known: &Template| {
        Prompt::new(known.name, Some(known.description), Some(vec![argument(known)]))
    };
    TEMPLATES.iter().map(prompt).collect()
}

/// Why a prompt could not be produced.
#[derive(Clone, Debug)]
pub(super) enum PromptError {
    /// The prompt's name or its argument is invalid.
    Invalid(String),
    /// The search for relevant entries failed.
    Trouble(ToolError),
}

/// Fills in a prompt and searches for its argument.
pub(super) async fn prompt(
    session: &McpSession,
    client: &str,
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, PromptError> {
    let (known, given) = find(name, arguments)?;
    let search = SearchArgs {
        query: given.to_owned(),
        role: known.role.map(str::to_owned),
        ..SearchArgs::default()
    };
    let answer = session.call(client, ToolCall::Search(search)).await;
    let answer = answer.map_err(PromptError::Trouble)?;
    let text = format!(
        "{}\n\n{}: {given}\n\nRelevant entries:\n{}",
        known.request, known.argument, answer.text
    );
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(known.description))
}

fn find<'a>(
    name: &str,
    arguments: Option<&'a JsonObject>,
) -> Result<(&'static Template, &'a str), PromptError> {
    let Some(known) = TEMPLATES.iter().find(|known| known.name == name) else {
        let names: Vec<&str> = TEMPLATES.iter().map(|known| known.name).collect();
        let message = format!("There is no such prompt. The prompts are {}.", names.join(", "));
        return Err(PromptError::Invalid(message));
    };
    let given = arguments.and_then(|given| given.get(known.argument)).and_then(Value::as_str);
    let given = given.map(str::trim).filter(|given| !given.is_empty());
    let missing =
        || format!("The prompt {name} needs `{}`: {}.", known.argument, known.argument_is);
    given.map(|given| (known, given)).ok_or_else(|| PromptError::Invalid(missing()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_requires_its_argument() {
        let given = json!({"goal": " mend the build "});
        let found = find("knowledge_for_task", given.as_object());
        assert_eq!(found.map(|(_, goal)| goal).ok(), Some("mend the build"));
        for (name, arguments) in [
            ("knowledge_for_task", json!({})),
            ("knowledge_for_task", json!({"goal": "  "})),
            ("review_with_knowledge", json!({"goal": "x"})),
            ("no_such_prompt", json!({"goal": "x"})),
        ] {
            assert!(find(name, arguments.as_object()).is_err(), "{name} {arguments}");
        }
    }
}
