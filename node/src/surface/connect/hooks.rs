//! The commands that Claude Code runs at certain moments: put among others, and taken out from among them.
//!
//! An event has groups, a group has commands. Ours is a group of its own; wherever the operator has
//! moved it, it is known by what it runs.

use super::edit::{self, Literal, New, prepend, replaced, settle, without_item};
use super::jsonc::{Kind, Node, Problem, parse};
use crate::query::shell;
use crate::surface::hook::Event;
use serde_json::Value;

/// The object that holds the events.
const HOOKS: &str = "hooks";
/// What the name of a program begins with whose commands are ours.
pub const NAME: &str = "klnode";
/// Seconds after which the client gives up waiting; the hook itself does long before.
const TIMEOUT_SECONDS: u32 = 5;

/// What is run at an event. `flags` begin with a space, or are empty.
fn command(program: &str, event: Event, flags: &str) -> String {
    format!("{} hook {}{flags}", shell::word(program), event.verb())
}

/// Whether a program's file is called so that its commands are known again as ours.
pub fn is_known_again(program: &str) -> bool {
    program.rsplit('/').next().unwrap_or_default().starts_with(NAME)
}

/// What comes after the verb, if a command is one of ours.
fn after_verb(command: &str, event: Event) -> Option<&str> {
    let marker = format!(" hook {}", event.verb());
    let at = command.find(&marker)?;
    let (program, rest) = (&command[..at], &command[at + marker.len()..]);
    let is_named = is_known_again(program.trim_end_matches(['\'', '"']));
    // What is more than one plain command is the operator's own, whatever it runs beside.
    let is_plain = words(program).len() == 1 && !words(rest).into_iter().any(is_joining);
    let is_ours = is_plain && is_named;
    (is_ours && (rest.is_empty() || rest.starts_with(' '))).then_some(rest)
}

fn is_ours(command: &str) -> bool {
    Event::ALL.iter().any(|event| after_verb(command, *event).is_some())
}

/// What the operator has written after the verb, without the flags that we write.
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

/// Whether a word is a flag that we write, with its value behind an equals sign.
pub fn is_joined_flag(word: &str) -> bool {
    ["--home=", "--config="].iter().any(|flag| word.starts_with(flag))
}

/// Whether a word makes a command one of several, or sends its output elsewhere.
fn is_joining(word: &str) -> bool {
    !word.starts_with(['\'', '"']) && word.contains([';', '|', '&', '<', '>', '`', '$', '\n'])
}

/// The words of a command line, with their quotes.
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

/// One of our commands in a document.
struct Place<'a> {
    event: String,
    groups: &'a Node,
    group: usize,
    commands: &'a Node,
    number: usize,
    command: &'a Node,
}

fn places(root: &Node) -> Result<Vec<Place<'_>>, Problem> {
    let mut found = Vec::new();
    let Some(hooks) = root.member(HOOKS)? else { return Ok(found) };
    for event in hooks.value.items() {
        for (group, inner) in event.value.items().iter().enumerate() {
            let Some(commands) = inner.value.member(HOOKS)? else { continue };
            for (number, item) in commands.value.items().iter().enumerate() {
                let Some(command) = item.value.member("command")? else { continue };
                if command.value.text().is_some_and(is_ours) {
                    found.push(Place {
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

/// The commands of ours in a document.
pub fn found(text: &str) -> Result<Vec<String>, Problem> {
    let Some(root) = parse(text)? else { return Ok(Vec::new()) };
    let found = places(&root)?;
    Ok(found.iter().filter_map(|place| place.command.text()).map(str::to_owned).collect())
}

/// A document in which our commands are run.
pub fn put(text: &str, program: &str, flags: &str) -> Result<String, Problem> {
    let mut text = text.to_owned();
    // The last first: each is put before what is there.
    for event in Event::ALL.into_iter().rev() {
        text = put_event(&text, event, &command(program, event, flags))?;
    }
    Ok(text)
}

fn put_event(text: &str, event: Event, wanted: &str) -> Result<String, Problem> {
    let hook = Literal::object([
        ("type", Literal::text("command")),
        ("command", Literal::text(wanted)),
        ("timeout", Literal::Number(TIMEOUT_SECONDS)),
    ]);
    let group = Literal::object([(HOOKS, Literal::List(vec![hook]))]);
    let path = [HOOKS, event.client_name()];
    let root = parse(text)?;
    let standing = match &root {
        Some(root) => edit::find(root, &path)?,
        None => None,
    };
    let (Some(root), Some(groups)) = (&root, standing) else {
        return edit::put(text, &path, &Literal::List(vec![group]));
    };
    if !matches!(groups.kind, Kind::Array(_)) {
        let told = format!("`{}` is {}; it must be an array", path.join("."), groups.name());
        return Err(Problem::new(groups.span.start, told));
    }
    let rest = |place: &Place<'_>| {
        let command = place.command.text()?;
        after_verb(command, event).map(|rest| (command.to_owned(), own_flags(rest)))
    };
    for place in places(root)?.iter().filter(|place| place.event == event.client_name()) {
        let Some((command, own)) = rest(place) else { continue };
        let wanted = format!("{wanted}{own}");
        if words(&command).iter().all(|word| words(&wanted).contains(word))
            && words(&command).len() == words(&wanted).len()
        {
            return Ok(text.to_owned());
        }
        return Ok(replaced(text, place.command, &Literal::text(wanted)));
    }
    Ok(prepend(text, root, groups, &New { key: None, value: &group }))
}

/// A document in which none of our commands is run; nothing if none was.
pub fn remove(text: &str, before: Option<&str>) -> Result<Option<String>, Problem> {
    let mut changed = None;
    loop {
        let now: &str = changed.as_deref().unwrap_or(text);
        let Some(root) = parse(now)? else { return Ok(changed) };
        let found = places(&root)?;
        let Some(place) = found.first() else { return Ok(changed) };
        let group = &place.groups.items()[place.group].value;
        // A group that says more than what is run is the operator's.
        let is_ours = group.items().len() == 1 && place.commands.items().len() == 1;
        let without = match is_ours {
            true => without_item(now, place.groups, place.group),
            false => without_item(now, place.commands, place.number),
        };
        let event = place.event.clone();
        let settled = settle(&without, &[HOOKS, &event], before)?;
        changed = Some(settled.unwrap_or(without));
    }
}

/// What a document says without our commands, and without what holds nothing.
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
    fn an_apostrophe_in_a_flag_is_written_once_however_often_it_is_put() {
        let flags = format!(" --home {}", shell::word("/Volumes/Bob's Disk/klnode"));
        let once = put("{}", "/usr/bin/klnode", &flags).unwrap();
        assert_eq!(put(&once, "/usr/bin/klnode", &flags).unwrap(), once);
    }

    #[test]
    fn a_command_of_several_is_the_operators() {
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
    fn hooks_go_in_beside_others_and_out_without_a_trace() {
        for text in
            [FILE, "{}", "{\"hooks\": {}}\n", "{\n}\n", "{\"hooks\": {\"Stop\": []}, \"a\": 1}"]
        {
            let put_in = put(text, "/opt/klnode", " --home '/a b'").unwrap();
            let commands = found(&put_in).unwrap();
            assert_eq!(commands.len(), Event::ALL.len(), "{put_in}");
            assert_eq!(commands[0], "/opt/klnode hook session-start --home '/a b'");
            assert_eq!(put(&put_in, "/opt/klnode", " --home '/a b'").unwrap(), put_in);
            assert_eq!(remove(&put_in, Some(text)).unwrap().as_deref(), Some(text));
            assert_eq!(remove(text, None).unwrap(), None);
        }
    }

    #[test]
    fn a_moved_program_is_followed_and_what_the_operator_added_stays() {
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
    fn a_command_of_ours_in_a_group_of_the_operator_leaves_the_group() {
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
    fn an_event_of_another_kind_is_refused() {
        let problem = put("{\"hooks\": {\"SessionEnd\": {}}}", "k", "").unwrap_err();
        assert_eq!(problem.what, "`hooks.SessionEnd` is an object; it must be an array");
    }
}
