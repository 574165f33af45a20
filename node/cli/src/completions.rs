//! `klnode generate completions` and `klnode generate man`: help outside the program.

use super::{Cli, Reply, VerbError};
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::io;

/// The shell to complete in.
#[derive(Debug, clap::Args)]
pub struct Completions {
    /// bash, zsh, fish, elvish or powershell.
    pub shell: Shell,
}

impl Completions {
    /// Generates the completion script.
    pub fn script(&self) -> Reply {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "klnode", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        Reply::new(&script, script.clone())
    }
}

/// The exit codes, for scripts. The verbs and `app` choose them; the usage page lists the same.
const EXIT_CODES: [(u8, &str); 6] = [
    (0, "The command succeeded, found something, or every check passed."),
    (
        1,
        "The command failed or the answer is no: no result, an unknown name, a task that was \
         finished with another outcome, nodes that differ or were not reached, a failed check, \
         refused lines, damaged data, a missing confirmation.",
    ),
    (2, "The arguments, the input or the configuration is wrong."),
    (3, "No node is running, the node stopped before it answered, or it does not answer."),
    (4, "The node refused: by a rule, or because the person's passphrase is missing."),
    (130, "The command was interrupted."),
];

/// Generates the man page: the program, each verb with its subcommands, and the exit codes.
pub fn man() -> Result<Reply, VerbError> {
    let failed =
        |error: io::Error| VerbError::Failed(format!("Cannot write the man page: {error}."));
    let mut page = Vec::new();
    put_page(&mut page, &Cli::command(), "klnode").map_err(failed)?;
    // Verbs are described on this page, so a reference to a page of their own is replaced.
    let line = |line: &str| match line.strip_suffix("(1)") {
        Some(verb) if verb.starts_with("klnode\\-") => verb.replace("\\-", " ") + "\n",
        _ => format!("{line}\n"),
    };
    let mut page: String = String::from_utf8_lossy(&page).lines().map(line).collect();
    page.push_str(".SH \"EXIT STATUS\"\n");
    for (code, means) in EXIT_CODES {
        page.push_str(&format!(".TP\n{code}\n{means}\n"));
    }
    Ok(Reply::new(&page, page.clone()))
}

/// Writes the page of a command, then those of its subcommands.
fn put_page(page: &mut Vec<u8>, command: &Command, name: &str) -> io::Result<()> {
    let called: &'static str = name.to_owned().leak();
    clap_mangen::Man::new(command.clone().name(called)).render(page)?;
    for verb in command.get_subcommands() {
        put_page(page, verb, &format!("{name}-{}", verb.get_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    /// Every verb and subcommand, with the words that call it and its help.
    fn verbs(of: &Command, typed: &str, found: &mut Vec<(String, String)>) {
        for verb in of.get_subcommands() {
            let typed = format!("{typed} {}", verb.get_name());
            let help = verb.get_long_about().or_else(|| verb.get_about());
            found.push((typed.clone(), help.map(ToString::to_string).unwrap_or_default()));
            verbs(verb, &typed, found);
        }
    }

    /// Splits an example into words like a shell.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in example.chars() {
            match (quote, c) {
                (Some(open), _) if open == c => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, ' ') => words.push(std::mem::take(&mut word)),
                _ => word.push(c),
            }
        }
        words.push(word);
        words
    }

    #[test]
    fn the_man_page_describes_every_verb_and_refers_to_no_other_page() {
        let page = man().unwrap().text;
        assert!(!page.contains("(1)"), "a reference to a page that does not exist");
        for part in ["klnode add\n", "klnode task begin\n", ".TH klnode-task-begin 1"] {
            assert!(page.contains(part), "{part:?}");
        }
    }

    #[test]
    fn the_man_page_ends_with_the_exit_codes() {
        let page = man().unwrap().text;
        let (_, end) = page.split_once(".SH \"EXIT STATUS\"\n").expect("a last section");
        for (code, means) in EXIT_CODES {
            assert!(end.contains(&format!(".TP\n{code}\n{means}\n")), "{code}");
        }
    }

    #[test]
    fn every_verb_has_an_example_that_can_be_typed() {
        let mut found = Vec::new();
        verbs(&Cli::command(), "klnode", &mut found);
        assert!(found.len() > 60, "groups are walked: {}", found.len());
        for (typed, help) in found {
            let example = help.lines().find_map(|line| line.strip_prefix("Example: "));
            let example = example.unwrap_or_else(|| panic!("`{typed}` has no example: {help}"));
            // Pipes and redirections around the command belong to the shell.
            let own = example.split(" | ").find(|part| part.starts_with("klnode "));
            let own = own.unwrap_or_else(|| panic!("`{typed}` has another's example: {example}"));
            let own = own.split(" > ").next().unwrap_or_default();
            assert!(own.starts_with(&typed), "`{typed}` has another's example: {own}");
            let parsed = Cli::try_parse_from(words(own));
            assert!(parsed.is_ok(), "{own}: {}", parsed.unwrap_err());
        }
    }
}
