//! `klnode hook`: parses the usual form of a call without building the grammar of all verbs.
//!
//! A client runs a hook at every prompt, so its start must be fast. Any other form is parsed by
//! clap, which reports errors.

use super::Cli;
use clap::CommandFactory;
use klnode_api_types::Outcome;
use klnode_integrations::hooks::HookEvent;
use std::ffi::OsString;
use std::path::PathBuf;

/// The event of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct Args {
    /// session-start, prompt, tool-error or stop.
    #[arg(value_parser = ["session-start", "prompt", "tool-error", "stop"])]
    pub event: String,
    /// Only entries of this workspace.
    #[arg(long)]
    pub workspace: Option<String>,
    /// At stop: count the session as a success.
    #[arg(long, conflicts_with = "failure")]
    pub success: bool,
    /// At stop: count the session as a failure.
    #[arg(long)]
    pub failure: bool,
}

impl Args {
    /// The parsed event; `None` if the name is unknown.
    pub fn event(&self) -> Option<HookEvent> {
        HookEvent::named(&self.event)
    }

    /// The outcome that the flags give to the session.
    pub fn verdict(&self) -> Option<Outcome> {
        match (self.success, self.failure) {
            (true, _) => Some(Outcome::Success),
            (_, true) => Some(Outcome::Failure),
            _ => None,
        }
    }
}

/// A hook call in the usual form.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QuickHook {
    /// The event and its flags.
    pub args: Args,
    /// The home from `--home`.
    pub home: Option<PathBuf>,
    /// The configuration file from `--config`.
    pub config: Option<PathBuf>,
}

/// Parses the words after the program's name; `None` if they are not in the usual form.
pub fn quick(words: impl Iterator<Item = OsString>) -> Option<QuickHook> {
    let mut words = words;
    let mut quick = QuickHook::default();
    let mut is_hook = false;
    while let Some(word) = words.next() {
        match word.to_str()? {
            "hook" if !is_hook => is_hook = true,
            "--home" => quick.home = Some(words.next()?.into()),
            "--config" => quick.config = Some(words.next()?.into()),
            "--workspace" if is_hook => quick.args.workspace = words.next()?.into_string().ok(),
            "--success" if is_hook => quick.args.success = true,
            "--failure" if is_hook => quick.args.failure = true,
            verb if is_hook && quick.args.event.is_empty() => {
                quick.args.event = HookEvent::named(verb)?.verb().to_owned();
            }
            _ => return None,
        }
    }
    let is_contradicting = quick.args.success && quick.args.failure;
    let is_plain = !quick.args.event.is_empty() && !is_contradicting;
    is_plain.then_some(quick)
}

/// Whether the words were meant as a hook, so that an error must not end with the code that stops
/// an agent. The verb is the first word that is neither a flag nor the value of a flag.
pub fn is_meant(words: impl Iterator<Item = OsString>) -> bool {
    let command = Cli::command();
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let word = word.to_string_lossy();
        if !word.starts_with('-') {
            return word == "hook";
        }
        let flag = word.trim_start_matches('-');
        let known = command.get_arguments().find(|one| one.get_long() == Some(flag));
        let has_value = match known {
            Some(known) => known.get_action().takes_values(),
            // An unknown flag may have a value, which is no verb.
            None => {
                !word.contains('=')
                    && words.peek().is_some_and(|next| command.find_subcommand(next).is_none())
            }
        };
        let value = if has_value { words.next() } else { None };
        // If the value of a flag is missing, the verb was taken for it.
        let is_event = |next: &OsString| next.to_str().and_then(HookEvent::named).is_some();
        if value.is_some_and(|value| value == "hook") && words.peek().is_some_and(is_event) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<QuickHook> {
        quick(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn only_the_verb_hook_counts_as_a_hook() {
        let is_meant = |line: &str| is_meant(line.split_whitespace().map(OsString::from));
        for line in [
            "hook",
            "hook promt",
            "--home x hook --nonsense",
            "--home=x --json hook nonsense",
            "--passphrase-file f --set a=b hook",
            "--hoem /h hook prompt",
            "--jsn hook prompt",
            "--home hook prompt",
            "--log hook tool-error",
        ] {
            assert!(is_meant(line), "{line}");
        }
        for line in [
            "",
            "search hook --nonsense",
            "search --limt 3 hook",
            "--home hook search --nonsense",
            "--json serach hook",
            "--home=x serach hook",
            "--jsn search hook",
        ] {
            assert!(!is_meant(line), "{line}");
        }
    }

    #[test]
    fn only_the_usual_form_is_parsed() {
        let stop = read("hook stop --home /h --success").unwrap();
        assert_eq!(
            (stop.args.event.as_str(), stop.args.verdict()),
            ("stop", Some(Outcome::Success))
        );
        assert_eq!(stop.home, Some(PathBuf::from("/h")));
        let prompt = read("--home /h --config /c hook prompt --workspace team").unwrap();
        assert_eq!(prompt.args.event(), Some(HookEvent::Prompt));
        assert_eq!(prompt.args.workspace.as_deref(), Some("team"));
        assert_eq!(prompt.config, Some(PathBuf::from("/c")));
        for line in [
            "",
            "hook",
            "hook nonsense",
            "hook prompt --help",
            "hook prompt more",
            "hook stop --success --failure",
            "hook prompt --home",
            "search hook prompt",
            "--json hook prompt",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
