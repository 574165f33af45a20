//! Ready-made beginnings of a conversation, with what is known already in them, quoted.

use super::arguments::{Call, Search};
use super::session::Session;
use super::trouble::Trouble;
use rmcp::model::{GetPromptResult, JsonObject, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

/// One prompt: its name, what it is for, and the argument it takes.
struct Known {
    name: &'static str,
    description: &'static str,
    argument: &'static str,
    argument_is: &'static str,
    /// What an agent is asked to do with what is known.
    request: &'static str,
    role: Option<&'static str>,
}

const KNOWN: [Known; 2] = [
    Known {
        name: "knowledge_for_task",
        description: "Begin a task with what is known about it",
        argument: "goal",
        argument_is: "What is to be done",
        request: "Work on the task below. First weigh what is known about it: say which entries \
                  apply and which do not. Begin with `task_begin`; end with `task_finish`, naming \
                  the entries that mattered.",
        role: None,
    },
    Known {
        name: "review_with_knowledge",
        description: "Review something against what is known",
        argument: "what",
        argument_is: "What is to be reviewed",
        request: "Review what is named below. Hold it against what is known: name the entry for \
                  each finding that rests on one, and say with `observe` where an entry misled.",
        role: Some("reviewer"),
    },
];

/// Every prompt.
pub(super) fn prompts() -> Vec<Prompt> {
    let argument = |known: &Known| {
        PromptArgument::new(known.argument).with_description(known.argument_is).with_required(true)
    };
    let prompt = |known: &Known| {
        Prompt::new(known.name, Some(known.description), Some(vec![argument(known)]))
    };
    KNOWN.iter().map(prompt).collect()
}

/// Why there is no prompt.
#[derive(Clone, Debug)]
pub(super) enum Unprompted {
    /// What was asked for makes no sense.
    Invalid(String),
    /// The node did not answer.
    Trouble(Trouble),
}

/// A prompt, with what is known about its argument.
pub(super) async fn prompt(
    session: &Session,
    client: &str,
    name: &str,
    arguments: Option<&JsonObject>,
) -> Result<GetPromptResult, Unprompted> {
    let (known, given) = find(name, arguments)?;
    let search = Search {
        query: given.to_owned(),
        limit: None,
        budget: None,
        role: known.role.map(str::to_owned),
        kind: None,
        tag: None,
        workspace: None,
        thread: None,
        task: None,
    };
    let answer = session.call(client, Call::Search(search)).await;
    let answer = answer.map_err(Unprompted::Trouble)?;
    let text = format!(
        "{}\n\n{}: {given}\n\nWhat is known:\n{}",
        known.request, known.argument, answer.text
    );
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(known.description))
}

fn find<'a>(
    name: &str,
    arguments: Option<&'a JsonObject>,
) -> Result<(&'static Known, &'a str), Unprompted> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
        let message = format!("there is no such prompt; there are {}", names.join(", "));
        return Err(Unprompted::Invalid(message));
    };
    let given = arguments.and_then(|given| given.get(known.argument)).and_then(Value::as_str);
    let given = given.map(str::trim).filter(|given| !given.is_empty());
    let missing = || format!("the prompt {name} needs `{}`: {}", known.argument, known.argument_is);
    given.map(|given| (known, given)).ok_or_else(|| Unprompted::Invalid(missing()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_prompt_is_found_by_name_and_needs_its_argument() {
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
