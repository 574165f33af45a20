//! `klnode task finding`, `findings`, `dismiss` and `keep`: findings of agents, and decisions on
//! them.

use super::anchors::here;
use super::api_path::{escape, task_path};
use super::sanitize::printable;
use super::{Reply, VerbError, finite};
use hyper::Method;
use klnode_api_types::{DismissRequest, Findings, NewFinding, Task, TaskFinding};
use klnode_client::Client;
use std::fmt::Write;

/// A finding to record.
#[derive(Debug, clap::Args)]
pub struct FindingArgs {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// The finding in one to three sentences.
    #[arg(long, allow_hyphen_values = true)]
    pub text: String,
    /// The severity: info, low, medium, high or critical, or a number from 0 to 10.
    #[arg(long)]
    pub severity: String,
    /// Your confidence, from 0 to 1; from 0 to 10 if the severity is a number.
    #[arg(long, value_parser = finite)]
    pub confidence: f64,
    /// The place as a predicate, such as path:src/auth.go; may be given more than once.
    #[arg(long = "anchor", value_name = "PREDICATE", required = true)]
    pub anchors: Vec<String>,
    /// A step that checks whether it still holds; one to three.
    #[arg(long, value_name = "STEP", required = true)]
    pub verify: Vec<String>,
    /// Record it as a false positive, with this reason.
    #[arg(long, value_name = "REASON", allow_hyphen_values = true)]
    pub dismiss: Option<String>,
    /// The workspace of an entry that is made from it [default: the current one].
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
    /// A one-time issue: record it, but learn nothing from it for other work.
    #[arg(long)]
    pub once: bool,
}

/// The findings to list.
#[derive(Debug, clap::Args)]
pub struct FindingListArgs {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// Include findings of its parent tasks.
    #[arg(long)]
    pub inherited: bool,
    /// The task in which you read them, if it is another. These findings prime it from then on.
    #[arg(long, value_name = "TASK")]
    pub reader: Option<String>,
}

/// A finding to dismiss.
#[derive(Debug, clap::Args)]
pub struct DismissArgs {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// The number of the finding in the task.
    pub number: u32,
    /// The reason why it is a false positive.
    #[arg(long, allow_hyphen_values = true)]
    pub reason: String,
}

/// A finding to write an entry from.
#[derive(Debug, clap::Args)]
pub struct KeepArgs {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// The number of the finding in the task.
    pub number: u32,
}

impl FindingArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { task, text, severity, confidence, anchors, verify, dismiss, workspace, once } =
            self;
        let checkout = here();
        let new = NewFinding {
            text,
            severity,
            confidence,
            anchors,
            verify,
            dismiss,
            workspace,
            checkout,
            once,
        };
        let found: TaskFinding =
            client.send_json(Method::POST, &task_path(&task, "/findings")?, &new).await?;
        let text = format!("{}\n", line(&found));
        Ok(Reply::new(&found, text))
    }
}

impl FindingListArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { task, inherited, reader } = self;
        let reader = reader.map(|task| format!("&reader={}", escape(&task))).unwrap_or_default();
        let rest = format!("/findings?inherited={inherited}{reader}");
        let found: Findings = client.get(&task_path(&task, &rest)?).await?;
        let text = list(&found);
        Ok(Reply::new(&found, text))
    }
}

impl DismissArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { task, number, reason } = self;
        let rest = format!("/findings/{number}/dismiss");
        let dismiss = DismissRequest { reason };
        let found: TaskFinding =
            client.send_json(Method::POST, &task_path(&task, &rest)?, &dismiss).await?;
        let text = format!("{}\n", line(&found));
        Ok(Reply::new(&found, text))
    }
}

impl KeepArgs {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let rest = format!("/findings/{}/keep", self.number);
        let path = task_path(&self.task, &rest)?;
        let found: TaskFinding = client.send_json(Method::POST, &path, &()).await?;
        let text = format!("{}\n", line(&found));
        Ok(Reply::new(&found, text))
    }
}

/// A note on findings of parent tasks, for a new task; empty if there are none.
pub(super) fn handed_down(task: &Task) -> String {
    let (count, noun) = match task.handed_down {
        None | Some(0) => return String::new(),
        Some(1) => (1, "finding was"),
        Some(count) => (count, "findings were"),
    };
    format!(
        "{count} {noun} inherited from parent tasks; `klnode task findings {} --inherited` lists \
         them\n",
        task.task
    )
}

/// A finding on one line, with the decision on it.
pub(super) fn line(found: &TaskFinding) -> String {
    let entry = found.code.as_ref().or(found.entry.as_ref());
    let entry = entry.map(|code| format!(" {code}")).unwrap_or_default();
    let reason = match found.reason.is_empty() {
        true => String::new(),
        false => format!(": {}", printable(&found.reason)),
    };
    let became = found.became.replace('_', " ");
    let text = printable(&found.text);
    let score = found.score.map(|score| format!(" {score}")).unwrap_or_default();
    format!("{} [{}{score}] {text}  ({became}{entry}{reason})", found.number, found.severity)
}

fn list(found: &Findings) -> String {
    if found.findings.is_empty() {
        return "No findings. `klnode task finding --help` shows how to record one.\n".to_owned();
    }
    let (mut text, mut task) = (String::new(), "");
    for one in &found.findings {
        if one.task != task {
            task = &one.task;
            let _ = writeln!(text, "task {task}  {}", printable(&one.agent));
        }
        let _ = writeln!(text, "  {}", line(one));
        for anchor in &one.anchors {
            let _ = writeln!(text, "      seen    {}", printable(anchor));
        }
        for step in &one.verify {
            let _ = writeln!(text, "      verify  {}", printable(step));
        }
        if let Some(reason) = &one.dismissed {
            let _ = writeln!(text, "      dismissed  {}", printable(reason));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> TaskFinding {
        TaskFinding {
            task: "01".repeat(16),
            number: 2,
            agent: "reviewer".into(),
            text: "The token\nis logged.".into(),
            severity: "high".into(),
            score: None,
            confidence: 0.8,
            anchors: vec!["path:auth.go".into()],
            verify: vec!["look".into()],
            dismissed: None,
            at: 0,
            became: "new_entry".into(),
            reason: String::new(),
            entry: Some("ab".into()),
            code: Some("F-7F3KQ2MX".into()),
            echoes: 0,
            once: false,
        }
    }

    #[test]
    fn a_finding_takes_one_line_with_its_decision() {
        assert_eq!(line(&found()), "2 [high] The token is logged.  (new entry F-7F3KQ2MX)");
        let (became, reason) = ("kept".to_owned(), "the operator says so".to_owned());
        let kept = line(&TaskFinding { became, reason, ..found() });
        assert!(kept.ends_with("  (kept F-7F3KQ2MX: the operator says so)"), "{kept}");
        let waiting = TaskFinding {
            became: "waiting".into(),
            reason: "no other agent has found it yet".into(),
            entry: None,
            code: None,
            ..found()
        };
        assert!(line(&waiting).ends_with("(waiting: no other agent has found it yet)"));
        let listed = list(&Findings { findings: vec![found(), waiting], handed_down: 0 });
        assert_eq!(listed.matches("task 0101").count(), 1, "{listed}");
        assert!(
            list(&Findings { findings: Vec::new(), handed_down: 0 }).starts_with("No findings.")
        );
    }
}
