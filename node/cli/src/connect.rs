//! `klnode connect`: adds this node to the settings of agent programs, checks them, or undoes it.

use super::{ConfirmPrompt, Reply, VerbError, as_text};
use klnode_integrations::client_config::clients::{AgentClient, ConfigScope};
use klnode_integrations::client_config::settings_file::SettingsError;
use klnode_integrations::client_config::{
    ConfigPart, FileChange, FileState, Plan, Program, Target,
};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The name that prints settings for any other client.
const GENERIC: &str = "generic";

/// The clients to configure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, or generic, which prints
    /// settings for any other client [default: all that are installed].
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<String>,
    /// Also make Claude Code run klnode at the start of a session, at a prompt, when a tool fails
    /// and at the end. With --undo: remove only the hooks. With --check: report missing hooks.
    #[arg(long)]
    pub hooks: bool,
    /// Check that each client is connected and a node answers. Ends with 1 if not.
    #[arg(long, conflicts_with_all = ["undo", "dry_run"])]
    pub check: bool,
    /// Remove the settings that this command added.
    #[arg(long)]
    pub undo: bool,
    /// Do not ask for confirmation.
    #[arg(long)]
    pub yes: bool,
    /// Show the changes without writing them.
    #[arg(long)]
    pub dry_run: bool,
    /// Use the settings of this project instead of yours.
    #[arg(long)]
    pub project: bool,
}

/// The environment of the command.
pub struct ConnectContext<'a> {
    /// The program that clients run.
    pub program: Program,
    /// The command that starts the node, for messages.
    pub start: String,
    /// The settings of the user or of a project.
    pub scope: ConfigScope,
    /// The prompt on the terminal; `None` without a terminal.
    pub ask: ConfirmPrompt<'a>,
    /// Checks whether a node answers.
    pub answers: &'a mut dyn FnMut() -> bool,
}

/// The result for one settings file.
#[derive(Serialize)]
struct Row {
    client: &'static str,
    part: &'static str,
    file: PathBuf,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<PathBuf>,
    #[serde(skip_serializing_if = "String::is_empty")]
    diff: String,
}

#[derive(Serialize)]
struct ConnectSummary {
    clients: Vec<Row>,
    not_found: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_answers: Option<bool>,
}

impl Row {
    fn new(target: &Target, state: &'static str) -> Self {
        let part = match target.part {
            ConfigPart::Server => "server",
            ConfigPart::Hooks => "hooks",
        };
        Self {
            client: target.client.name(),
            part,
            file: target.path.clone(),
            state,
            problem: None,
            command: None,
            backup: None,
            diff: String::new(),
        }
    }

    fn refused(target: &Target, refusal: &SettingsError) -> Self {
        Self { problem: Some(refusal.to_string()), ..Self::new(target, "refused") }
    }

    fn put(&self, text: &mut String) {
        let part = if self.part == "hooks" { " (hooks)" } else { "" };
        let name = format!("{}{part}", self.client);
        let _ = writeln!(text, "{name:<22}  {:<18}  {}", self.state, self.file.display());
        if let Some(problem) = &self.problem {
            let _ = writeln!(text, "  {problem}");
        }
        if let Some(backup) = &self.backup {
            let _ = writeln!(text, "  the earlier file is kept in {}", backup.display());
        }
    }
}

impl Args {
    /// Plans the changes, asks, and writes them.
    pub fn run(self, mut context: ConnectContext<'_>) -> Result<Reply, VerbError> {
        // Undo and check do not write these paths.
        if !self.undo && !self.check {
            for path in context.program.paths() {
                as_text(path)?;
            }
        }
        if self.clients.iter().any(|name| name == GENERIC) {
            return self.generic(&context.program);
        }
        let (targets, not_found) = self.targets(&context.scope)?;
        if targets.is_empty() {
            let text = "No client was found. Name one (`klnode connect --help` lists them), or run \
                        `klnode connect generic` to print settings for any other.\n";
            let summary = ConnectSummary { clients: Vec::new(), not_found, node_answers: None };
            return Ok(Reply::new(&summary, text.to_owned()).with_exit_code(1));
        }
        if self.check {
            return Ok(self.checked(&targets, not_found, &mut context));
        }
        let plan = |target: &Target| match self.undo {
            true => target.undo(),
            false => target.connect(&context.program),
        };
        let plans: Vec<_> = targets.iter().map(|target| (target, plan(target))).collect();
        let changes = plans.iter().filter(|(_, plan)| plan.as_ref().is_ok_and(changes)).count();
        let rows: Vec<Row> =
            plans.iter().map(|(target, plan)| self.planned(target, plan)).collect();
        if changes == 0 {
            return Ok(self.reply(rows, not_found, ""));
        }
        if self.dry_run {
            return Ok(self.reply(rows, not_found, "Nothing was written: this was a dry run.\n"));
        }
        if !self.yes {
            let mut question = text(&rows, &not_found);
            let files = if changes == 1 { "file" } else { "files" };
            let _ = write!(question, "Change {changes} {files}?");
            let Some(ask) = context.ask else {
                let closing = "Nothing was written. Confirm with --yes.\n";
                return Ok(self.reply(rows, not_found, closing).with_exit_code(1));
            };
            if !ask(&question) {
                // The question has already shown the plan.
                let summary = ConnectSummary { clients: rows, not_found, node_answers: None };
                return Ok(
                    Reply::new(&summary, "Nothing was written.\n".to_owned()).with_exit_code(1)
                );
            }
        }
        let rows = plans.iter().map(|(target, plan)| self.applied(target, plan));
        Ok(self.reply(rows.collect(), not_found, self.closing()))
    }

    fn generic(&self, program: &Program) -> Result<Reply, VerbError> {
        if self.clients.len() > 1 || self.hooks || self.check || self.undo {
            let message = "`generic` only prints settings, so it takes no other client and no \
                           --hooks, --check or --undo.";
            return Err(VerbError::Input(message.to_owned()));
        }
        let snippet = program.snippet();
        Ok(Reply::new(&snippet, format!("{snippet:#}\n")))
    }

    /// The settings files of the chosen clients, and the clients that are not installed.
    fn targets(&self, scope: &ConfigScope) -> Result<(Vec<Target>, Vec<&'static str>), VerbError> {
        let mut chosen = Vec::new();
        for name in &self.clients {
            let client = AgentClient::named(name).ok_or_else(|| {
                let known: Vec<&str> = AgentClient::ALL.iter().map(|(_, name, _)| *name).collect();
                VerbError::Input(format!(
                    "Unknown client `{name}`. Use one of {} or {GENERIC}.",
                    known.join(", ")
                ))
            })?;
            if client.file(scope).is_none() {
                let message = format!("{} has no settings for a project.", client.label());
                return Err(VerbError::Input(message));
            }
            chosen.push(client);
        }
        let mut not_found = Vec::new();
        if chosen.is_empty() {
            for (client, name, _) in AgentClient::ALL {
                match client.is_found(scope) {
                    true => chosen.push(client),
                    false => not_found.push(name),
                }
            }
        }
        let is_wanted = |target: &Target| match target.part {
            ConfigPart::Server => !(self.undo && self.hooks),
            ConfigPart::Hooks => self.hooks || self.undo || self.check,
        };
        let targets = chosen.iter().flat_map(|client| Target::of(*client, scope));
        let targets: Vec<Target> = targets.filter(is_wanted).collect();
        if self.hooks && !targets.iter().any(|target| target.part == ConfigPart::Hooks) {
            let message = "Only claude-code has hooks, and it was not found or not named.";
            return Err(VerbError::Input(message.to_owned()));
        }
        Ok((targets, not_found))
    }

    fn planned(&self, target: &Target, plan: &Result<Plan, SettingsError>) -> Row {
        match plan {
            Err(refusal) => Row::refused(target, refusal),
            Ok(plan) => {
                let state = match (changes(plan), self.undo) {
                    (false, false) => "already connected",
                    (false, true) => "not connected",
                    (true, false) => "would connect",
                    (true, true) => "would undo",
                };
                Row { diff: plan.diff(), ..Row::new(target, state) }
            }
        }
    }

    fn applied(&self, target: &Target, plan: &Result<Plan, SettingsError>) -> Row {
        let Ok(done) = plan.as_ref().map_err(|_| ()).and_then(|plan| match changes(plan) {
            true => Ok(plan.apply()),
            false => Err(()),
        }) else {
            return self.planned(target, plan);
        };
        match done {
            Err(refusal) => Row::refused(target, &refusal),
            Ok(backup) => {
                let state = if self.undo { "undone" } else { "connected" };
                Row { backup, ..Row::new(target, state) }
            }
        }
    }

    fn closing(&self) -> &'static str {
        match self.undo {
            true => "",
            false => {
                "Restart clients that are running. `klnode connect --check` checks the \
                 connection.\n"
            }
        }
    }

    /// Checks each client and the node. Missing hooks are reported only with --hooks.
    fn checked(
        &self,
        targets: &[Target],
        not_found: Vec<&'static str>,
        context: &mut ConnectContext<'_>,
    ) -> Reply {
        let is_listed = |row: &Row| self.hooks || row.part != "hooks" || row.command.is_some();
        let rows: Vec<Row> = targets.iter().map(standing).filter(is_listed).collect();
        let answers = (context.answers)();
        let mut text = text(&rows, &not_found);
        let node = match answers {
            true => "the node answers".to_owned(),
            false => format!("no node answers; start one with `{}`", context.start),
        };
        let _ = writeln!(text, "{:<22}  {node}", "node");
        let is_good = answers && rows.iter().all(|row| row.state == "connected");
        let summary = ConnectSummary { clients: rows, not_found, node_answers: Some(answers) };
        let reply = Reply::new(&summary, text);
        if is_good { reply } else { reply.with_exit_code(1) }
    }

    fn reply(&self, rows: Vec<Row>, not_found: Vec<&'static str>, closing: &str) -> Reply {
        let is_refused = rows.iter().any(|row| row.problem.is_some());
        let text = text(&rows, &not_found) + closing;
        let summary = ConnectSummary { clients: rows, not_found, node_answers: None };
        let reply = Reply::new(&summary, text);
        if is_refused { reply.with_exit_code(1) } else { reply }
    }
}

fn changes(plan: &Plan) -> bool {
    plan.change != FileChange::Nothing
}

fn text(rows: &[Row], not_found: &[&str]) -> String {
    let mut text = String::new();
    for row in rows {
        row.put(&mut text);
    }
    if !not_found.is_empty() {
        let _ = writeln!(text, "{:<22}  {}", "not found", not_found.join(", "));
    }
    for row in rows {
        text.push_str(&row.diff);
    }
    text
}

fn standing(target: &Target) -> Row {
    match target.standing() {
        Err(refusal) => Row::refused(target, &refusal),
        Ok(FileState { command: None, .. }) => Row::new(target, "not connected"),
        Ok(FileState { command: Some(command), is_runnable: true }) => {
            Row { command: Some(command), ..Row::new(target, "connected") }
        }
        Ok(FileState { command: Some(command), is_runnable: false }) => {
            let problem = format!("{command} cannot be run; run `klnode connect` again");
            Row { problem: Some(problem), command: Some(command), ..Row::new(target, "broken") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> Args {
        Args {
            clients: vec!["cursor".to_owned()],
            hooks: false,
            check: false,
            undo: false,
            yes: false,
            dry_run: false,
            project: true,
        }
    }

    fn test_context<'a>(
        folder: PathBuf,
        ask: ConfirmPrompt<'a>,
        answers: &'a mut dyn FnMut() -> bool,
    ) -> ConnectContext<'a> {
        let program = Program { path: "/bin/klnode".into(), home: None, config: None };
        let (start, scope) = ("klnode".to_owned(), ConfigScope::Project(folder));
        ConnectContext { program, start, scope, ask, answers }
    }

    #[test]
    fn a_declined_question_does_not_print_the_plan_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut asked, mut answers) = (String::new(), || false);
        let mut no = |question: &str| {
            asked.push_str(question);
            false
        };
        let context = test_context(folder.path().into(), Some(&mut no), &mut answers);
        let reply = args().run(context).unwrap();
        assert_eq!((reply.exit_code(), reply.text.as_str()), (1, "Nothing was written.\n"));
        assert!(reply.json.unwrap().contains("would connect"), "programs get all of it");
        assert!(asked.contains("would connect") && asked.ends_with("Change 1 file?"), "{asked}");
        let reply = args().run(test_context(folder.path().into(), None, &mut answers)).unwrap();
        assert_eq!(reply.exit_code(), 1);
        let closing = "Nothing was written. Confirm with --yes.\n";
        assert!(reply.text.contains("would connect"), "{}", reply.text);
        assert!(reply.text.ends_with(closing), "{}", reply.text);
    }
}
