//! `klnode connect`: the programs that agents run in, configured, checked and left as they were.

use super::{Ask, Reply, VerbError, as_text};
use crate::surface::connect::clients::{Client, Scope};
use crate::surface::connect::file::Refusal;
use crate::surface::connect::{Change, Part, Plan, Program, Standing, Target};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// The name under which an entry for any other client is printed.
const GENERIC: &str = "generic";

/// What to configure.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// claude-code, claude-desktop, cursor, vscode, codex, gemini, zed, or generic, which prints an
    /// entry for any other [default: all that are found].
    #[arg(value_name = "CLIENT")]
    pub clients: Vec<String>,
    /// Also have Claude Code run klnode at the beginning of a session, at a prompt, when a tool fails
    /// and at the end. With --undo: take out the hooks alone. With --check: say so if there are none.
    #[arg(long)]
    pub hooks: bool,
    /// Say whether each is connected and a node answers. Ends with 1 if not.
    #[arg(long, conflicts_with_all = ["undo", "dry_run"])]
    pub check: bool,
    /// Take out what was put in, and nothing else.
    #[arg(long)]
    pub undo: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
    /// Say what would change, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// In the settings of this project, instead of yours.
    #[arg(long)]
    pub project: bool,
}

/// What is there beside what was typed.
pub struct Surroundings<'a> {
    /// What clients are told to run.
    pub program: Program,
    /// What starts the node, as it can be typed.
    pub start: String,
    /// Whose settings.
    pub scope: Scope,
    /// Who can be asked.
    pub ask: Ask<'a>,
    /// Whether a node answers.
    pub answers: &'a mut dyn FnMut() -> bool,
}

/// What became of one file.
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
struct Told {
    clients: Vec<Row>,
    not_found: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_answers: Option<bool>,
}

impl Row {
    fn new(target: &Target, state: &'static str) -> Self {
        let part = match target.part {
            Part::Server => "server",
            Part::Hooks => "hooks",
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

    fn refused(target: &Target, refusal: &Refusal) -> Self {
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
            let _ = writeln!(text, "  what was there is in {}", backup.display());
        }
    }
}

impl Args {
    /// Does it.
    pub fn run(self, mut around: Surroundings<'_>) -> Result<Reply, VerbError> {
        // What is taken out or looked at names none of them.
        if !self.undo && !self.check {
            for path in around.program.paths() {
                as_text(path)?;
            }
        }
        if self.clients.iter().any(|name| name == GENERIC) {
            return self.generic(&around.program);
        }
        let (targets, not_found) = self.targets(&around.scope)?;
        if targets.is_empty() {
            let text = "No client was found. Name one (`klnode connect --help` lists them); \
                        `klnode connect generic` prints an entry for any other.\n";
            let told = Told { clients: Vec::new(), not_found, node_answers: None };
            return Ok(Reply::new(&told, text.to_owned()).ending(1));
        }
        if self.check {
            return Ok(self.checked(&targets, not_found, &mut around));
        }
        let plan = |target: &Target| match self.undo {
            true => target.undo(),
            false => target.connect(&around.program),
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
            let Some(ask) = around.ask else {
                let closing = "Nothing was written. Say it with --yes.\n";
                return Ok(self.reply(rows, not_found, closing).ending(1));
            };
            if !ask(&question) {
                // Whoever was asked has just seen the rest.
                let told = Told { clients: rows, not_found, node_answers: None };
                return Ok(Reply::new(&told, "Nothing was written.\n".to_owned()).ending(1));
            }
        }
        let rows = plans.iter().map(|(target, plan)| self.applied(target, plan));
        Ok(self.reply(rows.collect(), not_found, self.closing()))
    }

    fn generic(&self, program: &Program) -> Result<Reply, VerbError> {
        if self.clients.len() > 1 || self.hooks || self.check || self.undo {
            let told = "print an entry for any client together with something else: it changes \
                        nothing, so there is nothing to check or undo";
            return Err(VerbError::Input(told.to_owned()));
        }
        let snippet = program.snippet();
        Ok(Reply::new(&snippet, format!("{snippet:#}\n")))
    }

    /// The files to look at, and the clients that are not here.
    fn targets(&self, scope: &Scope) -> Result<(Vec<Target>, Vec<&'static str>), VerbError> {
        let mut chosen = Vec::new();
        for name in &self.clients {
            let client = Client::named(name).ok_or_else(|| {
                let known: Vec<&str> = Client::ALL.iter().map(|(_, name, _)| *name).collect();
                VerbError::Input(format!(
                    "configure `{name}`: it must be one of {} or {GENERIC}",
                    known.join(", ")
                ))
            })?;
            if client.file(scope).is_none() {
                let told = format!("configure {} for a project: it knows none", client.label());
                return Err(VerbError::Input(told));
            }
            chosen.push(client);
        }
        let mut not_found = Vec::new();
        if chosen.is_empty() {
            for (client, name, _) in Client::ALL {
                match client.is_found(scope) {
                    true => chosen.push(client),
                    false => not_found.push(name),
                }
            }
        }
        let is_wanted = |target: &Target| match target.part {
            Part::Server => !(self.undo && self.hooks),
            Part::Hooks => self.hooks || self.undo || self.check,
        };
        let targets = chosen.iter().flat_map(|client| Target::of(*client, scope));
        let targets: Vec<Target> = targets.filter(is_wanted).collect();
        if self.hooks && !targets.iter().any(|target| target.part == Part::Hooks) {
            let told = "set hooks: only claude-code has them, and it was not found or not named";
            return Err(VerbError::Input(told.to_owned()));
        }
        Ok((targets, not_found))
    }

    fn planned(&self, target: &Target, plan: &Result<Plan, Refusal>) -> Row {
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

    fn applied(&self, target: &Target, plan: &Result<Plan, Refusal>) -> Row {
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
            false => "Restart a client that is running; `klnode connect --check` looks again.\n",
        }
    }

    /// How each client stands, and the node. Hooks that nobody has asked for are missed by nobody.
    fn checked(
        &self,
        targets: &[Target],
        not_found: Vec<&'static str>,
        around: &mut Surroundings<'_>,
    ) -> Reply {
        let is_told = |row: &Row| self.hooks || row.part != "hooks" || row.command.is_some();
        let rows: Vec<Row> = targets.iter().map(standing).filter(is_told).collect();
        let answers = (around.answers)();
        let mut text = text(&rows, &not_found);
        let node = match answers {
            true => "the node answers".to_owned(),
            false => format!("no node answers; start one with `{}`", around.start),
        };
        let _ = writeln!(text, "{:<22}  {node}", "node");
        let is_good = answers && rows.iter().all(|row| row.state == "connected");
        let told = Told { clients: rows, not_found, node_answers: Some(answers) };
        let reply = Reply::new(&told, text);
        if is_good { reply } else { reply.ending(1) }
    }

    fn reply(&self, rows: Vec<Row>, not_found: Vec<&'static str>, closing: &str) -> Reply {
        let is_refused = rows.iter().any(|row| row.problem.is_some());
        let text = text(&rows, &not_found) + closing;
        let told = Told { clients: rows, not_found, node_answers: None };
        let reply = Reply::new(&told, text);
        if is_refused { reply.ending(1) } else { reply }
    }
}

fn changes(plan: &Plan) -> bool {
    plan.change != Change::Nothing
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
        Ok(Standing { command: None, .. }) => Row::new(target, "not connected"),
        Ok(Standing { command: Some(command), is_runnable: true }) => {
            Row { command: Some(command), ..Row::new(target, "connected") }
        }
        Ok(Standing { command: Some(command), is_runnable: false }) => {
            let problem = format!("{command} cannot be run: connect again with one that can");
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

    fn around<'a>(
        folder: PathBuf,
        ask: Ask<'a>,
        answers: &'a mut dyn FnMut() -> bool,
    ) -> Surroundings<'a> {
        let program = Program { path: "/bin/klnode".into(), home: None, config: None };
        let (start, scope) = ("klnode".to_owned(), Scope::Project(folder));
        Surroundings { program, start, scope, ask, answers }
    }

    #[test]
    fn whoever_was_asked_and_said_no_does_not_get_the_plan_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut asked, mut answers) = (String::new(), || false);
        let mut no = |question: &str| {
            asked.push_str(question);
            false
        };
        let surroundings = around(folder.path().into(), Some(&mut no), &mut answers);
        let reply = args().run(surroundings).unwrap();
        assert_eq!((reply.exit_code(), reply.text.as_str()), (1, "Nothing was written.\n"));
        assert!(reply.json.unwrap().contains("would connect"), "programs get all of it");
        assert!(asked.contains("would connect") && asked.ends_with("Change 1 file?"), "{asked}");
        let reply = args().run(around(folder.path().into(), None, &mut answers)).unwrap();
        assert_eq!(reply.exit_code(), 1);
        let closing = "Nothing was written. Say it with --yes.\n";
        assert!(reply.text.contains("would connect"), "{}", reply.text);
        assert!(reply.text.ends_with(closing), "{}", reply.text);
    }
}
