//! `klnode task`: a piece of work from its beginning to its outcome.

use super::adopted_entries::{self, AdoptionArgs};
use super::api_path::task_path;
use super::finding;
use super::friction::FrictionVerb;
use super::sanitize::printable;
use super::timestamp::moment;
use super::{Reply, VerbError, anchors, finite, task_outcomes};
use hyper::Method;
use klnode_api_types::{FinishTask, FinishedTask, NewTask, Outcome, Task, Tasks};
use klnode_client::Client;
use klnode_text::plural::counted;
use std::fmt::Write;

/// The most characters of agent and goal on one line: with the margin, 80 columns.
const GOAL_CHARACTERS_MAX: usize = 76;

/// The action on tasks.
#[derive(Debug, clap::Subcommand)]
pub enum TaskVerb {
    /// Begin a task and print its name, which `search`, `add` and `feedback` take as --task.
    ///
    /// Example: klnode task begin --agent reviewer --goal "Review the auth middleware"
    Begin(Begin),
    /// Finish a task. Entries served in it are credited with a success or blamed for a failure.
    ///
    /// Name the entries that helped with --used. If none is named, the first three served entries
    /// that were not dismissed share the outcome at half weight. Finishing a task again changes
    /// nothing, and ends with 1 if the outcome differs.
    ///
    /// Example: klnode task finish 01a0c4506c00beeb8da1658eec67f893 --success --used L-7F3KQ2MX
    /// --dismissed L-2MXA77QD --avoided S-Q2MX7F3K
    Finish(Finish),
    /// List tasks, the newest first.
    ///
    /// Example: klnode task list --open
    List(TaskListArgs),
    /// Show a task with the entries served in it.
    ///
    /// Example: klnode task show 01a0c4506c00beeb8da1658eec67f893
    Show(OneTask),
    /// List outcomes of finished tasks in a period, with their totals by strategy.
    ///
    /// Recommendations that follow from them are in `klnode insights list`.
    ///
    /// Example: klnode task outcomes --period 30d
    Outcomes(task_outcomes::Outcomes),
    /// Record a finding of a task.
    ///
    /// When the task has finished or expired, the node compares the finding with those of other
    /// agents. If two agents report the same independently, the node writes an entry.
    ///
    /// Example: klnode task finding 01a0c4506c00beeb8da1658eec67f893 --text "Auth middleware
    /// swallows cancellation." --severity high --confidence 0.8 --anchor 'text:auth.go~"http.Do"'
    /// --verify "look for ctx.Err() after http.Do()"
    Finding(finding::FindingArgs),
    /// List the findings of a task and the decision on each.
    ///
    /// Example: klnode task findings 01a0c4506c00beeb8da1658eec67f893 --inherited
    Findings(finding::FindingListArgs),
    /// Dismiss a finding as a false positive; an entry warns of it from then on.
    ///
    /// If there is a person's key, this needs its passphrase.
    ///
    /// Example: klnode task dismiss 01a0c4506c00beeb8da1658eec67f893 2 --reason "checked upstream"
    Dismiss(finding::DismissArgs),
    /// Write an entry from a finding that waits for a second agent.
    ///
    /// The entry is a candidate until another agent reports the same independently. If there is a
    /// person's key, this needs its passphrase.
    ///
    /// Example: klnode task keep 01a0c4506c00beeb8da1658eec67f893 2
    Keep(finding::KeepArgs),
    /// Record obstacles in the work, and report recurring ones.
    ///
    /// Example: klnode task friction record "cargo test hangs without a terminal" --kind tool_error
    #[command(subcommand)]
    Friction(FrictionVerb),
}

/// The task to begin.
#[derive(Debug, clap::Args)]
pub struct Begin {
    /// The agent that works on it.
    #[arg(long, value_name = "NAME")]
    pub agent: String,
    /// The goal in a sentence.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub goal: String,
    /// The thread it belongs to.
    #[arg(long)]
    pub thread: Option<String>,
    /// The task it is a part of. Entries served there count as served here.
    #[arg(long, value_name = "TASK")]
    pub parent: Option<String>,
    /// The workspace of the work [default: that of the parent task, else that of the checkout, else
    /// the one set by `workspace use`].
    #[arg(long)]
    pub workspace: Option<String>,
}

/// The outcome of a task.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("outcome").required(true).args(["success", "failure"])))]
pub struct Finish {
    /// Its name, as `task begin` printed it.
    pub task: String,
    /// The work succeeded.
    #[arg(long)]
    pub success: bool,
    /// The work failed.
    #[arg(long)]
    pub failure: bool,
    /// The quality of the work, from 0 to 1 [default: 0.5].
    #[arg(long, value_name = "QUALITY", value_parser = finite)]
    pub quality: Option<f64>,
    /// The entries that were adopted, and how.
    #[command(flatten)]
    pub adoption: AdoptionArgs,
    /// The cost, in a unit of your choice.
    #[arg(long, value_parser = finite)]
    pub cost: Option<f64>,
    /// The number of rounds.
    #[arg(long)]
    pub rounds: Option<u32>,
    /// The approach in a sentence.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub strategy: Option<String>,
    /// Print a section "Knowledge Applied" in Markdown, to paste below the result of the work.
    #[arg(long)]
    pub report: bool,
}

/// The tasks to list.
#[derive(Debug, clap::Args)]
pub struct TaskListArgs {
    /// The most tasks to list, from 1 to 1000 [default: 50].
    #[arg(short = 'n', long)]
    pub limit: Option<usize>,
    /// Only open tasks.
    #[arg(long)]
    pub open: bool,
}

/// The task that a verb is about.
#[derive(Debug, clap::Args)]
pub struct OneTask {
    /// Its name, as `task begin` printed it.
    pub task: String,
}

impl TaskVerb {
    pub(super) fn needs_person(&self) -> bool {
        matches!(self, Self::Dismiss(_) | Self::Keep(_))
    }

    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::Begin(Begin { agent, goal, thread, parent, workspace }) => {
                let checkout = anchors::here();
                let new = NewTask { agent, goal, thread, parent, workspace, checkout };
                let begun: Task = client.send_json(Method::POST, "/v1/tasks", &new).await?;
                let text = format!("{}\n", begun.task);
                let notes = finding::handed_down(&begun) + &handed_conclusions(&begun);
                Ok(Reply::new(&begun, text).with_notes(notes))
            }
            Self::Finish(finish) => finish.run(client).await,
            Self::List(TaskListArgs { limit, open }) => {
                let limit = limit.map(|limit| format!("&limit={limit}"));
                let limit = limit.unwrap_or_default();
                let tasks: Tasks = client.get(&format!("/v1/tasks?open={open}{limit}")).await?;
                let text = list(&tasks, open);
                Ok(Reply::new(&tasks, text))
            }
            Self::Show(OneTask { task }) => {
                let task: Task = client.get(&task_path(&task, "")?).await?;
                let text = whole(&task);
                Ok(Reply::new(&task, text))
            }
            Self::Outcomes(outcomes) => outcomes.run(client).await,
            Self::Finding(record) => record.run(client).await,
            Self::Findings(list) => list.run(client).await,
            Self::Dismiss(dismissal) => dismissal.run(client).await,
            Self::Keep(keep) => keep.run(client).await,
            Self::Friction(verb) => verb.run(client).await,
        }
    }
}

impl Finish {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let outcome = if self.success { Outcome::Success } else { Outcome::Failure };
        let Self { task, quality, adoption, cost, rounds, strategy, report, .. } = self;
        let finish = FinishTask { quality, cost, rounds, strategy, ..FinishTask::new(outcome) };
        let finish = adoption.add_to(finish)?;
        let done: FinishedTask =
            client.send_json(Method::POST, &task_path(&task, "/finish")?, &finish).await?;
        let mut text = finished(&done, outcome);
        if !done.already {
            text.push_str(&adopted_entries::remarks(&done, finish.conclusion.as_deref()));
        }
        if report {
            let whole: Task = client.get(&task_path(&task, "")?).await?;
            text.push_str(&adopted_entries::report(&whole));
        }
        let reply = Reply::new(&done, text);
        Ok(if overruling(&done, outcome).is_some() { reply.with_exit_code(1) } else { reply })
    }
}

/// The recorded outcome, if it differs from the given one.
fn overruling(done: &FinishedTask, said: Outcome) -> Option<Outcome> {
    done.outcome.filter(|held| done.already && *held != said)
}

fn finished(done: &FinishedTask, outcome: Outcome) -> String {
    if let Some(held) = overruling(done, outcome) {
        let held = match held {
            Outcome::Success => "a success",
            Outcome::Failure => "a failure",
        };
        return format!("{}  was already finished as {held}; that outcome is kept\n", done.task);
    }
    if done.already {
        return format!("{}  was already finished; nothing was added\n", done.task);
    }
    let mut text = format!("{}  finished\n", done.task);
    let to = match outcome {
        Outcome::Success => "successes",
        Outcome::Failure => "failures",
    };
    for credit in &done.credits {
        let why = match credit.named {
            true if done.avoided.contains(&credit.id) => "a spike avoided",
            true if credit.incidental => "an answer to another question",
            true => "reported as used",
            false => "among the first served",
        };
        let rank = credit.rank + 1;
        let _ =
            writeln!(text, "  {}  +{:.3} {to} ({why}; rank {rank})", credit.code, credit.amount);
    }
    let code = |id: &String| done.codes.get(id).unwrap_or(id).clone();
    for entry in done.unserved.iter().map(code) {
        let _ = writeln!(text, "  {entry}  no credit: it was not served in this task");
    }
    for entry in done.dismissed.iter().map(code) {
        let _ = writeln!(text, "  {entry}  dismissed: neither credited nor blamed");
    }
    for entry in done.archived.iter().map(code) {
        let _ = writeln!(
            text,
            "  {entry}  archived: served in many tasks without evidence of use; \
             `klnode archive {entry} --undo` brings it back"
        );
    }
    if !done.avoided.is_empty() {
        let codes: Vec<String> = done.avoided.iter().map(code).collect();
        let _ = writeln!(text, "Spikes avoided: {} ({})", codes.len(), codes.join(", "));
    }
    text
}

/// A note on the conclusions of earlier parts, for a new task; empty if there are none.
fn handed_conclusions(task: &Task) -> String {
    match task.upstream.len() as u64 {
        0 => String::new(),
        count => format!(
            "{} of earlier parts of the work; `klnode task show {}` prints them\n",
            counted(count, "conclusion", "conclusions"),
            task.task
        ),
    }
}

fn list(tasks: &Tasks, is_only_open: bool) -> String {
    if tasks.tasks.is_empty() {
        let none = if is_only_open { "No task is open." } else { "No tasks." };
        return format!("{none} `klnode task begin --help` shows how to begin one.\n");
    }
    let mut text =
        format!("{:<32}  {:<8}  {:<19}  {:>6}\n", "TASK", "STATE", "BEGUN (UTC)", "SERVED");
    for task in &tasks.tasks {
        let _ = writeln!(
            text,
            "{:<32}  {:<8}  {:<19}  {:>6}",
            task.task,
            state(task),
            moment(task.begun),
            task.served,
        );
        let said = format!("{}: {}", printable(&task.agent), printable(&task.goal));
        let said: String = said.chars().take(GOAL_CHARACTERS_MAX).collect();
        let _ = writeln!(text, "    {said}");
    }
    if tasks.more {
        text.push_str("There are older tasks; use -n to list more.\n");
    }
    text
}

/// The outcome of a task, or its state if it has none.
fn state(task: &Task) -> &str {
    match task.outcome {
        Some(Outcome::Success) => "success",
        Some(Outcome::Failure) => "failure",
        None => &task.state,
    }
}

fn whole(task: &Task) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<9} {value}");
        }
    };
    put("task", task.task.clone());
    put("agent", printable(&task.agent));
    put("goal", printable(&task.goal));
    put("thread", printable(task.thread.as_deref().unwrap_or_default()));
    put("workspace", printable(&task.workspace));
    put("parent", task.parent.clone().unwrap_or_default());
    put("state", state(task).to_owned());
    put("begun", format!("{} UTC", moment(task.begun)));
    put("finished", task.finished.map(|at| format!("{} UTC", moment(at))).unwrap_or_default());
    put("quality", task.quality.map(|quality| format!("{quality:.2}")).unwrap_or_default());
    put("cost", task.cost.map(|cost| cost.to_string()).unwrap_or_default());
    put("rounds", task.rounds.map(|rounds| rounds.to_string()).unwrap_or_default());
    put("strategy", printable(task.strategy.as_deref().unwrap_or_default()));
    for entry in &task.entries {
        let said = entry.said.as_deref().map(printable);
        let counted = entry.observed.then(|| "counted".to_owned());
        let note = entry.note.as_deref().map(printable);
        let marks: Vec<String> = said.into_iter().chain(note).chain(counted).collect();
        let marks = match marks.is_empty() {
            true => String::new(),
            false => format!("  ({})", marks.join(", ")),
        };
        put("served", format!("{}  {}{marks}", entry.code, printable(&entry.title)));
    }
    if task.entries.is_empty() {
        let nothing = match task.state.as_str() {
            "open" => "nothing yet; `klnode search --task` asks in this task",
            _ => "nothing",
        };
        put("served", nothing.to_owned());
    }
    for found in &task.findings {
        put("found", finding::line(found));
    }
    put("concluded", printable(task.conclusion.as_deref().unwrap_or_default()));
    for line in adopted_entries::conclusions(&task.upstream).lines() {
        put("upstream", line.trim_start_matches("| ").to_owned());
    }
    put("inherited", task.handed_down.map(|count| format!("{count} findings")).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_empty_list_and_a_finished_task_are_reported() {
        let none = Tasks { tasks: Vec::new(), more: false };
        assert!(list(&none, false).starts_with("No tasks."));
        assert!(list(&none, true).starts_with("No task is open."));
        let done = FinishedTask {
            task: "01".repeat(16),
            already: true,
            outcome: Some(Outcome::Success),
            credits: Vec::new(),
            unserved: Vec::new(),
            dismissed: Vec::new(),
            avoided: Vec::new(),
            archived: Vec::new(),
            codes: BTreeMap::new(),
            unsearched: false,
            composite: Vec::new(),
        };
        let text = finished(&done, Outcome::Success);
        assert!(text.ends_with("was already finished; nothing was added\n"), "{text}");
        let text = finished(&done, Outcome::Failure);
        assert!(
            text.ends_with("was already finished as a success; that outcome is kept\n"),
            "{text}"
        );
        // A node of an earlier version does not send the outcome.
        let text = finished(&FinishedTask { outcome: None, ..done }, Outcome::Failure);
        assert!(text.ends_with("was already finished; nothing was added\n"), "{text}");
    }

    #[test]
    fn entries_without_credit_and_archived_ones_are_named_by_code() {
        let [unserved, archived, dismissed] = ["0a", "0b", "0c"].map(|byte| byte.repeat(16));
        let codes =
            [(&unserved, "L-AAAAAAAA"), (&archived, "S-BBBBBBBB"), (&dismissed, "L-CCCCCCCC")];
        let done = FinishedTask {
            task: "01".repeat(16),
            already: false,
            outcome: Some(Outcome::Success),
            credits: Vec::new(),
            codes: codes.map(|(id, code)| (id.clone(), code.to_owned())).into(),
            unsearched: false,
            composite: Vec::new(),
            unserved: vec![unserved],
            dismissed: vec![dismissed],
            avoided: vec![archived.clone()],
            archived: vec![archived],
        };
        let text = finished(&done, Outcome::Success);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].starts_with("  L-AAAAAAAA  no credit: "), "{text}");
        assert_eq!(lines[1], "  L-CCCCCCCC  dismissed: neither credited nor blamed");
        assert!(lines[2].starts_with("  S-BBBBBBBB  archived: "), "{text}");
        assert!(lines[2].ends_with("`klnode archive S-BBBBBBBB --undo` brings it back"), "{text}");
        assert_eq!(lines[3], "Spikes avoided: 1 (S-BBBBBBBB)");
        assert_eq!(lines.len(), 4, "{text}");
        // A node of an earlier version does not send codes.
        let text = finished(&FinishedTask { codes: BTreeMap::new(), ..done }, Outcome::Success);
        assert!(text.contains(&format!("  {}  no credit: ", "0a".repeat(16))), "{text}");
    }
}
