//! `klnode task finding`, `findings`, `dismiss` and `keep`: what agents found, and what became of it.

use super::anchors::here;
use super::harmless::printable;
use super::read::escape;
use super::task::path;
use super::{Reply, VerbError, finite};
use crate::api::Client;
use crate::api::types::{Dismiss, Findings, NewFinding, Task, TaskFinding};
use hyper::Method;
use std::fmt::Write;

/// What was found.
#[derive(Debug, clap::Args)]
pub struct Record {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// What was found, in one to three sentences.
    #[arg(long, allow_hyphen_values = true)]
    pub text: String,
    /// How grave it is: info, low, medium, high or critical.
    #[arg(long)]
    pub severity: String,
    /// How sure you are, from 0 to 1.
    #[arg(long, value_parser = finite)]
    pub confidence: f64,
    /// Where it is seen, as a predicate, such as path:src/auth.go; may be repeated.
    #[arg(long = "anchor", value_name = "PREDICATE", required = true)]
    pub anchors: Vec<String>,
    /// A step to check that it still holds; one to three.
    #[arg(long, value_name = "STEP", required = true)]
    pub verify: Vec<String>,
    /// It was looked into and is a false positive, for this reason.
    #[arg(long, value_name = "REASON", allow_hyphen_values = true)]
    pub dismiss: Option<String>,
    /// The workspace that an entry made of it goes to [default: the current one].
    #[arg(long, value_name = "NAME")]
    pub workspace: Option<String>,
}

/// Which findings to list.
#[derive(Debug, clap::Args)]
pub struct List {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// Those of the tasks above it as well: what was handed down.
    #[arg(long)]
    pub inherited: bool,
    /// The task in which you read them, if it is another: from then on it is primed by them.
    #[arg(long, value_name = "TASK")]
    pub reader: Option<String>,
}

/// A finding that is none.
#[derive(Debug, clap::Args)]
pub struct Dismissal {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// The number of the finding in it.
    pub number: u32,
    /// Why it is a false positive.
    #[arg(long, allow_hyphen_values = true)]
    pub reason: String,
}

/// A finding to make an entry of.
#[derive(Debug, clap::Args)]
pub struct Keep {
    /// The task, as `task begin` printed it.
    pub task: String,
    /// The number of the finding in it.
    pub number: u32,
}

impl Record {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { task, text, severity, confidence, anchors, verify, dismiss, workspace } = self;
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
        };
        let found: TaskFinding =
            client.send_json(Method::POST, &path(&task, "/findings")?, &new).await?;
        let text = format!("{}\n", line(&found));
        Ok(Reply::new(&found, text))
    }
}

impl List {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { task, inherited, reader } = self;
        let reader = reader.map(|task| format!("&reader={}", escape(&task))).unwrap_or_default();
        let rest = format!("/findings?inherited={inherited}{reader}");
        let found: Findings = client.get(&path(&task, &rest)?).await?;
        let text = list(&found);
        Ok(Reply::new(&found, text))
    }
}

impl Dismissal {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let Self { task, number, reason } = self;
        let rest = format!("/findings/{number}/dismiss");
        let dismiss = Dismiss { reason };
        let found: TaskFinding =
            client.send_json(Method::POST, &path(&task, &rest)?, &dismiss).await?;
        let text = format!("{}\n", line(&found));
        Ok(Reply::new(&found, text))
    }
}

impl Keep {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        let rest = format!("/findings/{}/keep", self.number);
        let path = path(&self.task, &rest)?;
        let found: TaskFinding = client.send_json(Method::POST, &path, &()).await?;
        let text = format!("{}\n", line(&found));
        Ok(Reply::new(&found, text))
    }
}

/// What is said beside the name of a task that has just begun.
pub(super) fn handed_down(task: &Task) -> String {
    let (count, noun) = match task.handed_down {
        None | Some(0) => return String::new(),
        Some(1) => (1, "finding was"),
        Some(count) => (count, "findings were"),
    };
    format!(
        "{count} {noun} handed down; `klnode task findings {} --inherited` shows them\n",
        task.task
    )
}

/// A finding on one line, with what became of it.
pub(super) fn line(found: &TaskFinding) -> String {
    let entry = found.code.as_ref().or(found.entry.as_ref());
    let entry = entry.map(|code| format!(" {code}")).unwrap_or_default();
    let reason = match found.reason.is_empty() {
        true => String::new(),
        false => format!(": {}", printable(&found.reason)),
    };
    let became = found.became.replace('_', " ");
    let text = printable(&found.text);
    format!("{} [{}] {text}  ({became}{entry}{reason})", found.number, found.severity)
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
        }
    }

    #[test]
    fn a_finding_is_told_on_one_line_with_what_became_of_it() {
        assert_eq!(line(&found()), "2 [high] The token is logged.  (new entry F-7F3KQ2MX)");
        let (became, reason) = ("kept".to_owned(), "the operator says so".to_owned());
        let kept = line(&TaskFinding { became, reason, ..found() });
        assert!(kept.ends_with("  (kept F-7F3KQ2MX: the operator says so)"), "{kept}");
        let waiting = TaskFinding {
            became: "waiting".into(),
            reason: "nobody else has found it yet".into(),
            entry: None,
            code: None,
            ..found()
        };
        assert!(line(&waiting).ends_with("(waiting: nobody else has found it yet)"));
        let listed = list(&Findings { findings: vec![found(), waiting], handed_down: 0 });
        assert_eq!(listed.matches("task 0101").count(), 1, "{listed}");
        assert!(
            list(&Findings { findings: Vec::new(), handed_down: 0 }).starts_with("No findings.")
        );
    }
}
