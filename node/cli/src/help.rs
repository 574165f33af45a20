//! The help text of the whole program: verbs in groups, one line each, on one screen.
//!
//! clap lists subcommands in one long column with blank lines. The text here is built from the same
//! comments, so a verb is described in one place.

use super::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::fmt::Write;

/// The groups of verbs in the order of `klnode --help`. A test checks that each verb is in one
/// group.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Start here", &["serve", "status", "stop", "ui", "connect"]),
    ("Write", &["add", "edit", "playbook", "archive", "forget"]),
    ("Ask", &["search", "briefing", "insights", "show", "list"]),
    ("Work", &["task", "feedback", "mark"]),
    ("Share", &["peer", "workspace", "inbox"]),
    ("Look after", &["check", "maintain", "backup", "export", "import", "config", "identity"]),
    ("Integrate", &["mcp", "generate"]),
];

/// Verbs of earlier versions, and of tools that klnode replaces, with the command for each.
const RENAMED: [(&str, &str); 33] = [
    ("accept", "klnode inbox accept ENTRY"),
    ("anchors", "klnode check anchors, or klnode generate predicate FILE"),
    ("annotate", "klnode mark ENTRY --note TEXT"),
    ("completions", "klnode generate completions SHELL"),
    ("confirm", "klnode feedback ENTRY --confirm"),
    ("doctor", "klnode check home store"),
    ("drift", "klnode check drift"),
    ("eval", "klnode check eval FILE"),
    ("friction", "klnode task friction"),
    ("health", "klnode check limits"),
    ("history", "klnode show ENTRY --history"),
    ("invalidate", "klnode mark ENTRY --wrong"),
    ("invite", "klnode peer invite"),
    ("join", "klnode peer join"),
    ("man", "klnode generate man"),
    ("mute", "klnode mark ENTRY --mute"),
    ("observe", "klnode feedback ENTRY --success (or --failure)"),
    ("person", "klnode identity new, or klnode identity show"),
    ("pin", "klnode mark ENTRY --pin"),
    ("promote", "klnode add --from ENTRY"),
    ("quarantine", "klnode inbox"),
    ("reset", "klnode feedback ENTRY --reset"),
    ("resolve", "klnode edit ENTRY --take NUMBER (or --resolve)"),
    ("restore", "klnode backup restore FILE"),
    ("retract", "klnode forget ENTRY --retract"),
    ("served", "klnode status usage --log"),
    ("service", "klnode generate service"),
    ("supersede", "klnode edit ENTRY --superseded-by OTHER"),
    ("sync", "klnode peer sync"),
    ("unarchive", "klnode archive ENTRY --undo"),
    ("usage", "klnode status usage"),
    ("verify", "klnode check rules"),
    ("watch", "klnode list --follow"),
];

/// Parses the words of a command line, the program's name first.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let text = grouped(&command);
    command = command.override_help(text);
    Cli::from_arg_matches_mut(&mut command.try_get_matches_from(words)?)
}

/// A hint for a verb, or a form of one, that earlier versions had.
pub fn renamed(error: &clap::Error, words: impl IntoIterator<Item = OsString>) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    // `klnode backup FILE` made a backup; FILE is now read as an unknown subcommand.
    let mut words = words.into_iter().skip_while(|word| word != "backup").skip(1);
    if words.next().is_some_and(|word| *word == **typed) {
        return Some(format!("Use `klnode backup create {typed}`."));
    }
    let (_, new) = RENAMED.iter().find(|(old, _)| old == typed)?;
    Some(format!("Use {new}."))
}

/// The text of `klnode --help`: at most 40 lines of 100 columns, so that it fits a terminal.
fn grouped(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let mut text = format!("{about}\nUsage: klnode [FLAGS] [VERB]    (without a verb: serve)\n\n");
    for (group, verbs) in GROUPS {
        for (at, name) in verbs.iter().enumerate() {
            let group = if at == 0 { group } else { "" };
            let verb = command.find_subcommand(name).and_then(Command::get_about);
            let line = verb.map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "{group:<12}{name:<11}{line}");
        }
    }
    text.push_str(
        "\nFlags of every verb: --home (or KLNODE_HOME), --config, --set, --log, --passphrase-file, \
         --json.\n`klnode VERB --help` explains a verb and these flags, with an example.",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    const LINES_MAX: usize = 40;
    const COLUMNS_MAX: usize = 100;
    /// Lines that are kept free for verbs to come.
    const LINES_SPARE: usize = 1;

    fn is_verb(name: &str) -> bool {
        Cli::command().find_subcommand(name).is_some()
    }

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn the_help_fits_a_screen_with_room_for_more_verbs() {
        let error = parse(words("klnode --help")).expect_err("help is printed");
        let text = error.render().to_string();
        let lines: Vec<&str> = text.trim_end().lines().collect();
        assert!(lines.len() + LINES_SPARE <= LINES_MAX, "{} lines:\n{text}", lines.len());
        for line in lines {
            assert!(line.chars().count() <= COLUMNS_MAX, "{line}");
        }
    }

    #[test]
    fn every_verb_stands_in_one_group_with_a_line() {
        let command = Cli::command();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.to_vec()).collect();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut all: Vec<&str> = shown.map(Command::get_name).collect();
        listed.sort_unstable();
        all.sort_unstable();
        assert_eq!(listed, all);
        for verb in command.get_subcommands() {
            let line = verb.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!line.is_empty() && line.chars().count() <= 77, "{line}");
        }
    }

    #[test]
    fn an_old_verb_is_no_alias_and_the_hint_names_the_new_form() {
        for (old, new) in RENAMED {
            assert!(!is_verb(old), "{old}");
            let line = words(&format!("klnode {old} x"));
            let error = parse(line.clone()).expect_err("there is no such verb");
            let hint = renamed(&error, line).expect("a hint");
            assert_eq!(hint, format!("Use {new}."));
            for command in new.split(", or ") {
                let verb = command.split_whitespace().nth(1).expect("a verb");
                assert!(is_verb(verb), "{command}");
            }
        }
        let line = words("klnode backup /mnt/k.backup");
        let error = parse(line.clone()).expect_err("there is no such verb");
        let hint = renamed(&error, line).expect("a hint");
        assert_eq!(hint, "Use `klnode backup create /mnt/k.backup`.");
        let line = words("klnode serach x");
        let error = parse(line.clone()).expect_err("there is no such verb");
        assert_eq!(renamed(&error, line), None);
    }

    #[test]
    fn the_grouped_help_changes_nothing_in_how_words_are_parsed() {
        for line in ["klnode", "klnode --json status", "klnode archive --thread t --undo"] {
            let (one, two) =
                (parse(words(line)).unwrap(), Cli::try_parse_from(words(line)).unwrap());
            assert_eq!(format!("{one:?}"), format!("{two:?}"));
        }
    }
}
