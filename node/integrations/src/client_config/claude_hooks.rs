//! Adds klnode's hook commands to Claude Code's settings and removes them again.
//!
//! Each event holds groups, and each group holds commands. klnode adds a group of its own. It
//! recognises its commands by the program they run, so it finds them even if the operator moved
//! them to another group.

use super::jsonc::{JsonError, JsonKind, JsonNode, parse};
use super::jsonc_edit::{
    self, Literal, NewItem, prepend, replace_value, restore_emptied, without_item,
};
use crate::hooks::HookEvent;
use klnode_text::shell_quote;
use serde_json::Value;

/// Key of the object that holds the events, and of the list of commands in a group.
const HOOKS: &str = "hooks";
/// klnode recognises a hook command as its own if the program's file name starts with this.
pub const NAME: &str = "klnode";
/// Seconds after which the client stops waiting. The hook's own deadline is much shorter.
const TIMEOUT_SECONDS: u32 = 5;

/// The command line for an event. `flags` is empty or starts with a space.
fn command(program: &str, event: HookEvent, flags: &str) -> String {
    format!("{} hook {}{flags}", shell_quote::word(program), event.verb())
}

/// True if the program's file name marks its hook commands as klnode's.
pub fn is_recognised_program(program: &str) -> bool {
    program.rsplit('/').next().unwrap_or_default().starts_with(NAME)
}

/// The arguments after the verb if `command` is one of klnode's hook commands.
fn after_verb(command: &str, event: HookEvent) -> Option<&str> {
    let marker = format!(" hook {}", event.verb());
    let at = command.find(&marker)?;
    let (program, rest) = (&command[..at], &command[at + marker.len()..]);
    let is_named = is_recognised_program(program.trim_end_matches(['\'', '"']));
    // Compound commands belong to the operator, even if klnode is part of them.
    let is_plain = words(program).len() == 1 && !words(rest).into_iter().any(is_joining);
    let is_ours = is_plain && is_named;
    (is_ours && (rest.is_empty() || rest.starts_with(' '))).then_some(rest)
}

fn is_ours(command: &str) -> bool {
    HookEvent::ALL.iter().any(|event| after_verb(command, *event).is_some())
}

/// The flags that the operator added after the verb: all except `--home` and `--config`.
fn own_flags(rest: &str) -> String {
    let mut kept = String::new();
    let mut words = words(rest).into_iter();
    while let Some(word) = words.next() {
        if matches!(word, "--home" | "--config") {
            words.next();
        } else if !is_joined_flag(word) {
            kept.push(' ');
            kept.push_str(word);
        }
    }
    kept
}

/// True if `word` is `--home=…` or `--config=…`.
pub fn is_joined_flag(word: &str) -> bool {
    ["--home=", "--config="].iter().any(|flag| word.starts_with(flag))
}

/// True if `word` chains or redirects a command, so that it is more than one plain command.
fn is_joining(word: &str) -> bool {
    !word.starts_with(['\'', '"']) && word.contains([';', '|', '&', '<', '>', '`', '$', '\n'])
}

/// Splits a command line into words and keeps their quotes.
fn words(text: &str) -> Vec<&str> {
    let (mut found, mut start, mut quote, mut is_escaped) = (Vec::new(), None, None, false);
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => {
                is_escaped = true;
                start = start.or(Some(at));
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                start = start.or(Some(at));
            }
            (None, ' ') => found.extend(start.take().map(|start| &text[start..at])),
            _ => start = start.or(Some(at)),
        }
    }
    found.extend(start.map(|start| &text[start..]));
    found
}

/// One of klnode's commands and its position in the document.
struct CommandSite<'a> {
    event: String,
    groups: &'a JsonNode,
    group: usize,
    commands: &'a JsonNode,
    number: usize,
    command: &'a JsonNode,
}

fn command_sites(root: &JsonNode) -> Result<Vec<CommandSite<'_>>, JsonError> {
    let mut found = Vec::new();
    let Some(hooks) = root.member(HOOKS)? else { return Ok(found) };
    for event in hooks.value.items() {
        for (group, inner) in event.value.items().iter().enumerate() {
            let Some(commands) = inner.value.member(HOOKS)? else { continue };
            for (number, item) in commands.value.items().iter().enumerate() {
                let Some(command) = item.value.member("command")? else { continue };
                if command.value.text().is_some_and(is_ours) {
                    found.push(CommandSite {
                        event: event.key.clone(),
                        groups: &event.value,
                        group,
                        commands: &commands.value,
                        number,
                        command: &command.value,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// All of klnode's hook commands in a document, as they are written there.
pub fn found(text: &str) -> Result<Vec<String>, JsonError> {
    let Some(root) = parse(text)? else { return Ok(Vec::new()) };
    let found = command_sites(&root)?;
    Ok(found.iter().filter_map(|place| place.command.text()).map(str::to_owned).collect())
}

/// Returns the document with klnode's command added or updated for every event.
pub fn put(text: &str, program: &str, flags: &str) -> Result<String, JsonError> {
    let mut text = text.to_owned();
    // Reverse order, because each event is inserted before the existing ones.
    for event in HookEvent::ALL.into_iter().rev() {
        text = put_event(&text, event, &command(program, event, flags))?;
    }
    Ok(text)
}

fn put_event(text: &str, event: HookEvent, wanted: &str) -> Result<String, JsonError> {
    let hook = Literal::object([
        ("type", Literal::text("command")),
        ("command", Literal::text(wanted)),
        ("timeout", Literal::Number(TIMEOUT_SECONDS)),
    ]);
    let group = Literal::object([(HOOKS, Literal::List(vec![hook]))]);
    let path = [HOOKS, event.client_name()];
    let root = parse(text)?;
    let standing = match &root {
        Some(root) => jsonc_edit::find(root, &path)?,
        None => None,
    };
    let (Some(root), Some(groups)) = (&root, standing) else {
        return jsonc_edit::put(text, &path, &Literal::List(vec![group]));
    };
    if !matches!(groups.kind, JsonKind::Array(_)) {
        let message = format!("`{}` is {}; it must be an array.", path.join("."), groups.name());
        return Err(JsonError::new(groups.span.start, message));
    }
    let rest = |place: &CommandSite<'_>| {
        let command = place.command.text()?;
        after_verb(command, event).map(|rest| (command.to_owned(), own_flags(rest)))
    };
    for place in command_sites(root)?.iter().filter(|place| place.event == event.client_name()) {
        let Some((command, own)) = rest(place) else { continue };
        let wanted = format!("{wanted}{own}");
        if words(&command).iter().all(|word| words(&wanted).contains(word))
            && words(&command).len() == words(&wanted).len()
        {
            return Ok(text.to_owned());
        }
        return Ok(replace_value(text, place.command, &Literal::text(wanted)));
    }
    Ok(prepend(text, root, groups, &NewItem { key: None, value: &group }))
}

/// Returns the document without klnode's commands, or `None` if it has none. `before` is a backup
/// from before klnode was added; it shows which emptied lists and objects to keep.
pub fn remove(text: &str, before: Option<&str>) -> Result<Option<String>, JsonError> {
    let mut changed = None;
    loop {
        let now: &str = changed.as_deref().unwrap_or(text);
        let Some(root) = parse(now)? else { return Ok(changed) };
        let found = command_sites(&root)?;
        let Some(place) = found.first() else { return Ok(changed) };
        let group = &place.groups.items()[place.group].value;
        // A group with further members or commands belongs to the operator and stays.
        let is_ours = group.items().len() == 1 && place.commands.items().len() == 1;
        let without = match is_ours {
            true => without_item(now, place.groups, place.group),
            false => without_item(now, place.commands, place.number),
        };
        let event = place.event.clone();
        let settled = restore_emptied(&without, &[HOOKS, &event], before)?;
        changed = Some(settled.unwrap_or(without));
    }
}

/// The document without klnode's commands and without the lists and objects they leave empty. The
/// caller compares this value before and after an edit.
pub fn stripped(mut document: Value) -> Value {
    let Some(hooks) = document.get_mut(HOOKS).and_then(Value::as_object_mut) else {
        return document;
    };
    for groups in hooks.values_mut().filter_map(Value::as_array_mut) {
        for group in groups.iter_mut() {
            if let Some(commands) = group.get_mut(HOOKS).and_then(Value::as_array_mut) {
                commands.retain(|one| !one["command"].as_str().is_some_and(is_ours));
            }
        }
        let is_empty = |group: &Value| group[HOOKS].as_array().is_some_and(Vec::is_empty);
        groups
            .retain(|group| !(is_empty(group) && group.as_object().is_some_and(|g| g.len() == 1)));
    }
    hooks.retain(|_, groups| groups.as_array().is_none_or(|groups| !groups.is_empty()));
    if hooks.is_empty()
        && let Some(document) = document.as_object_mut()
    {
        document.remove(HOOKS);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "{\n  // mine\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"UserPromptSubmit\": [\n      {\n        \"hooks\": [\n          {\"type\": \"command\", \"command\": \"date\"},\n        ]\n      }\n    ]\n  }\n}\n";

    #[test]
    fn a_flag_with_an_apostrophe_is_written_once() {
        let flags = format!(" --home {}", shell_quote::word("/Volumes/Bob's Disk/klnode"));
        let once = put("{}", "/usr/bin/klnode", &flags).unwrap();
        assert_eq!(put(&once, "/usr/bin/klnode", &flags).unwrap(), once);
    }

    #[test]
    fn a_compound_command_belongs_to_the_operator() {
        for theirs in [
            "/opt/mine.sh; /usr/bin/klnode hook prompt",
            "cd /x && /usr/bin/klnode hook prompt && /opt/mine.sh",
            "DEADLINE=1s /usr/bin/klnode hook prompt",
            "/usr/bin/klnode hook prompt > /tmp/log",
        ] {
            assert!(!is_ours(theirs), "{theirs}");
        }
        assert!(is_ours("/usr/bin/klnode hook prompt --workspace team"));
        assert!(is_ours("'/opt/my tools/klnode' hook stop --home '/it'\\''s; here'"));
    }

    #[test]
    fn adding_and_removing_hooks_restores_every_byte() {
        for text in
            [FILE, "{}", "{\"hooks\": {}}\n", "{\n}\n", "{\"hooks\": {\"Stop\": []}, \"a\": 1}"]
        {
            let put_in = put(text, "/opt/klnode", " --home '/a b'").unwrap();
            let commands = found(&put_in).unwrap();
            assert_eq!(commands.len(), HookEvent::ALL.len(), "{put_in}");
            assert_eq!(commands[0], "/opt/klnode hook session-start --home '/a b'");
            assert_eq!(put(&put_in, "/opt/klnode", " --home '/a b'").unwrap(), put_in);
            assert_eq!(remove(&put_in, Some(text)).unwrap().as_deref(), Some(text));
            assert_eq!(remove(text, None).unwrap(), None);
        }
    }

    #[test]
    fn a_moved_program_is_updated_and_added_flags_stay() {
        let text = put("{}", "/old/klnode", " --home /h").unwrap();
        let text = text.replace("hook stop --home /h", "hook stop --home /h --success");
        assert_eq!(put(&text, "/old/klnode", " --home /h").unwrap(), text);
        let moved = put(&text, "/new path/klnode", "").unwrap();
        let commands = found(&moved).unwrap();
        assert!(commands.contains(&"'/new path/klnode' hook stop --success".to_owned()), "{moved}");
        assert!(!moved.contains("/old"), "{moved}");
        assert_eq!(put(&moved, "/new path/klnode", "").unwrap(), moved);
        let joined = text.replace("stop --home /h", "stop --config='/a b' --home=/h");
        assert_eq!(put(&joined, "/old/klnode", " --home /h").unwrap(), text);
    }

    #[test]
    fn removing_a_command_keeps_the_operators_group() {
        let text = "{\"hooks\": {\"Stop\": [{\"matcher\": \"x\", \"hooks\": [{\"command\": \"klnode hook stop\"}]}, {\"hooks\": [{\"command\": \"a\"}, {\"command\": \"klnode hook stop\"}]}]}}";
        let out = remove(text, None).unwrap().unwrap();
        assert_eq!(
            out,
            "{\"hooks\": {\"Stop\": [{\"matcher\": \"x\", \"hooks\": []}, {\"hooks\": [{\"command\": \"a\"}]}]}}"
        );
        assert!(!is_ours("echo klnode hook prompting"));
        assert!(!is_ours("/bin/other hook prompt"));
    }

    #[test]
    fn an_event_that_is_not_an_array_is_refused() {
        let problem = put("{\"hooks\": {\"SessionEnd\": {}}}", "k", "").unwrap_err();
        assert_eq!(problem.what, "`hooks.SessionEnd` is an object; it must be an array.");
    }
}
