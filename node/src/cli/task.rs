//! `klnode task`: pieces of work, from their beginning to their end.

use super::finding;
use super::harmless::printable;
use super::read::part;
use super::when::moment;
use super::{Reply, VerbError, finite};
use crate::api::Client;
use crate::api::types::{FinishTask, FinishedTask, NewTask, Outcome, Task, Tasks};
use hyper::Method;
use std::fmt::Write;

/// Characters of an agent and its goal on one line of a listing: with their margin, 80 columns.
const GOAL_CHARACTERS_MAX: usize = 76;

/// What to do about tasks.
#[derive(Debug, clap::Subcommand)]
pub enum TaskVerb {
    /// Begin a task, and print its name. Give it to `search`, `observe` and `confirm`.
    ///
    /// Example: klnode task begin --agent reviewer --goal "Review the auth middleware"
    Begin(Begin),
    /// Finish a task: what it was served is credited with success, or blamed for failure.
    ///
    /// Name the entries that were of use; if none is named, the first three served that were not
    /// dismissed share the outcome at half weight. Finishing again adds nothing, and ends with 1 if
    /// it says otherwise.
    ///
    /// Example: klnode task finish 01a0c4506c00beeb8da1658eec67f893 --success --used L-7F3KQ2MX
    /// --dismissed L-2MXA77QD --avoided S-Q2MX7F3K
    Finish(Finish),
    /// List tasks, the newest first.
    ///
    /// Example: klnode task list --open
    List(List),
    /// Show a task, with what was served in it.
    ///
    /// Example: klnode task show 01a0c4506c00beeb8da1658eec67f893
    Show(OneTask),
    /// Record what was found in a task. When the task is over, finished or expired, the node
    /// compares it with what others found: two agents that found the same independently make an
    /// entry.
    ///
    /// Example: klnode task finding 01a0c4506c00beeb8da1658eec67f893 --text "Auth middleware swallows
    /// cancellation." --severity high --confidence 0.8 --anchor 'text:auth.go~"http.Do"' --verify
    /// "look for ctx.Err() after http.Do()"
    Finding(finding::Record),
    /// List what was found in a task, and what became of it.
    ///
    /// Example: klnode task findings 01a0c4506c00beeb8da1658eec67f893 --inherited
    Findings(finding::List),
    /// Hold a finding to be a false positive: an entry warns of it from then on.
    ///
    /// Where there is a person's key, this needs its passphrase.
    ///
    /// Example: klnode task dismiss 01a0c4506c00beeb8da1658eec67f893 2 --reason "checked upstream"
    Dismiss(finding::Dismissal),
    /// Make an entry of a finding that waits for a second agent. It is a candidate, until another
    /// agent finds the same independently.
    ///
    /// Where there is a person's key, this needs its passphrase.
    ///
    /// Example: klnode task keep 01a0c4506c00beeb8da1658eec67f893 2
    Keep(finding::Keep),
}

/// A task to begin.
#[derive(Debug, clap::Args)]
pub struct Begin {
    /// Who works on it.
    #[arg(long, value_name = "NAME")]
    pub agent: String,
    /// What for.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub goal: String,
    /// The thread it belongs to.
    #[arg(long)]
    pub thread: Option<String>,
    /// The task it is a part of: what was served there is known here.
    #[arg(long, value_name = "TASK")]
    pub parent: Option<String>,
}

/// How a task ends.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("outcome").required(true).args(["success", "failure"])))]
pub struct Finish {
    /// Its name, as `task begin` printed it.
    pub task: String,
    /// It worked.
    #[arg(long)]
    pub success: bool,
    /// It did not.
    #[arg(long)]
    pub failure: bool,
    /// How good the work was, from 0 to 1 [default: 0.5].
    #[arg(long, value_name = "QUALITY", value_parser = finite)]
    pub quality: Option<f64>,
    /// The entries that were of use, separated by commas.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub used: Vec<String>,
    /// What was set aside because it contradicted what you saw, separated by commas: it is neither
    /// credited nor blamed.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub dismissed: Vec<String>,
    /// Spikes that made an experiment needless, separated by commas: they count as used.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub avoided: Vec<String>,
    /// What it cost, in whatever you count.
    #[arg(long, value_parser = finite)]
    pub cost: Option<f64>,
    /// How many rounds it took.
    #[arg(long)]
    pub rounds: Option<u32>,
    /// How you went about it.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub strategy: Option<String>,
}

/// Which tasks to list.
#[derive(Debug, clap::Args)]
pub struct List {
    /// At most so many, from 1 to 1000 [default: 50].
    #[arg(short = 'n', long)]
    pub limit: Option<usize>,
    /// Only those that go on.
    #[arg(long)]
    pub open: bool,
}

/// One task.
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
            Self::Begin(Begin { agent, goal, thread, parent }) => {
                let new = NewTask { agent, goal, thread, parent };
                let begun: Task = client.send_json(Method::POST, "/v1/tasks", &new).await?;
                let text = format!("{}\n", begun.task);
                let notes = finding::handed_down(&begun);
                Ok(Reply::new(&begun, text).noting(notes))
            }
            Self::Finish(finish) => finish.run(client).await,
            Self::List(List { limit, open }) => {
                let limit = limit.map(|limit| format!("&limit={limit}"));
                let limit = limit.unwrap_or_default();
                let tasks: Tasks = client.get(&format!("/v1/tasks?open={open}{limit}")).await?;
                let text = list(&tasks, open);
                Ok(Reply::new(&tasks, text))
            }
            Self::Show(OneTask { task }) => {
                let task: Task = client.get(&path(&task, "")?).await?;
                let text = whole(&task);
                Ok(Reply::new(&task, text))
            }
            Self::Finding(record) => record.run(client).await,
            Self::Findings(list) => list.run(client).await,
            Self::Dismiss(dismissal) => dismissal.run(client).await,
            Self::Keep(keep) => keep.run(client).await,
        }
    }
}

impl Finish {
    async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let outcome = if self.success { Outcome::Success } else { Outcome::Failure };
        let Self { task, quality, used, dismissed, avoided, cost, rounds, strategy, .. } = self;
        let [used, dismissed, avoided] = [used, dismissed, avoided].map(|list| {
            let codes = list.iter().map(|code| code.trim().to_owned());
            codes.filter(|code| !code.is_empty()).collect::<Vec<String>>()
        });
        let finish =
            FinishTask { outcome, quality, used, dismissed, avoided, cost, rounds, strategy };
        let done: FinishedTask =
            client.send_json(Method::POST, &path(&task, "/finish")?, &finish).await?;
        let text = finished(&done, outcome);
        let reply = Reply::new(&done, text);
        Ok(if overruling(&done, outcome).is_some() { reply.ending(1) } else { reply })
    }
}

pub(super) fn path(task: &str, rest: &str) -> Result<String, VerbError> {
    let name = part(task, "a task", "its name is wanted, as `klnode task begin` printed it")?;
    Ok(format!("/v1/tasks/{name}{rest}"))
}

/// The outcome that stands, where it is not the one that was said.
fn overruling(done: &FinishedTask, said: Outcome) -> Option<Outcome> {
    done.outcome.filter(|held| done.already && *held != said)
}

fn finished(done: &FinishedTask, outcome: Outcome) -> String {
    if let Some(held) = overruling(done, outcome) {
        let held = match held {
            Outcome::Success => "a success",
            Outcome::Failure => "a failure",
        };
        return format!("{}  was finished before, as {held}; that stands\n", done.task);
    }
    if done.already {
        return format!("{}  was finished before; nothing was added\n", done.task);
    }
    let mut text = format!("{}  finished\n", done.task);
    let to = match outcome {
        Outcome::Success => "successes",
        Outcome::Failure => "failures",
    };
    for credit in &done.credits {
        let why = match credit.named {
            true if done.avoided.contains(&credit.id) => "a spike avoided",
            true => "named as used",
            false => "among the first served",
        };
        let place = credit.rank + 1;
        let _ = writeln!(
            text,
            "  {}  +{:.3} {to}: {why}, in place {place}",
            credit.code, credit.amount
        );
    }
    let code = |id: &String| done.codes.get(id).unwrap_or(id).clone();
    for entry in done.unserved.iter().map(code) {
        let _ = writeln!(text, "  {entry}  nothing: it was not served in this task");
    }
    for entry in done.dismissed.iter().map(code) {
        let _ = writeln!(text, "  {entry}  dismissed: neither credited nor blamed");
    }
    for entry in done.archived.iter().map(code) {
        let _ = writeln!(
            text,
            "  {entry}  archived: served in many tasks, and nothing speaks for it; \
             `klnode unarchive {entry}` brings it back"
        );
    }
    if !done.avoided.is_empty() {
        let codes: Vec<String> = done.avoided.iter().map(code).collect();
        let _ = writeln!(text, "Spikes avoided: {} ({})", codes.len(), codes.join(", "));
    }
    text
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
        text.push_str("There are older ones: -n shows more.\n");
    }
    text
}

/// Where a task stands, in a word.
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
        let marks: Vec<String> = said.into_iter().chain(counted).collect();
        let marks = match marks.is_empty() {
            true => String::new(),
            false => format!("  ({})", marks.join(", ")),
        };
        put("served", format!("{}  {}{marks}", entry.code, printable(&entry.title)));
    }
    if task.entries.is_empty() {
        let nothing = match task.state.as_str() {
            "open" => "nothing yet; `klnode search --task` asks in it",
            _ => "nothing",
        };
        put("served", nothing.to_owned());
    }
    for found in &task.findings {
        put("found", finding::line(found));
    }
    put("handed", task.handed_down.map(|count| format!("{count} from above")).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn no_tasks_say_so_and_what_was_finished_before_does_too() {
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
        };
        let text = finished(&done, Outcome::Success);
        assert!(text.ends_with("was finished before; nothing was added\n"), "{text}");
        let text = finished(&done, Outcome::Failure);
        assert!(text.ends_with("was finished before, as a success; that stands\n"), "{text}");
        // A node of an earlier version does not tell it.
        let text = finished(&FinishedTask { outcome: None, ..done }, Outcome::Failure);
        assert!(text.ends_with("was finished before; nothing was added\n"), "{text}");
    }

    #[test]
    fn what_earned_nothing_or_was_archived_is_told_by_its_code() {
        let [unserved, archived, dismissed] = ["0a", "0b", "0c"].map(|byte| byte.repeat(16));
        let codes =
            [(&unserved, "L-AAAAAAAA"), (&archived, "S-BBBBBBBB"), (&dismissed, "L-CCCCCCCC")];
        let done = FinishedTask {
            task: "01".repeat(16),
            already: false,
            outcome: Some(Outcome::Success),
            credits: Vec::new(),
            codes: codes.map(|(id, code)| (id.clone(), code.to_owned())).into(),
            unserved: vec![unserved],
            dismissed: vec![dismissed],
            avoided: vec![archived.clone()],
            archived: vec![archived],
        };
        let text = finished(&done, Outcome::Success);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].starts_with("  L-AAAAAAAA  nothing: "), "{text}");
        assert_eq!(lines[1], "  L-CCCCCCCC  dismissed: neither credited nor blamed");
        assert!(lines[2].starts_with("  S-BBBBBBBB  archived: "), "{text}");
        assert!(lines[2].ends_with("`klnode unarchive S-BBBBBBBB` brings it back"), "{text}");
        assert_eq!(lines[3..], ["Spikes avoided: 1 (S-BBBBBBBB)"]);
        // A node of an earlier version does not tell them.
        let text = finished(&FinishedTask { codes: BTreeMap::new(), ..done }, Outcome::Success);
        assert!(text.contains(&format!("  {}  nothing: ", "0a".repeat(16))), "{text}");
    }
}
