//! `klnode insights`: lists, shows and dismisses insights.

use super::api_path::{entry_path, escape};
use super::sanitize::printable;
use super::{Reply, VerbError};
use hyper::Method;
use klnode_api_types::{Entry, InsightDismissal, InsightList, ListedInsight, ProposedTask};
use klnode_client::Client;
use klnode_text::shell_quote;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most entries whose titles `insights show` looks up.
const TITLES_MAX: usize = 20;

/// The action on insights.
#[derive(Debug, clap::Subcommand)]
pub enum InsightsVerb {
    /// List insights, the most severe first.
    ///
    /// Example: klnode insights list --workspace team
    List(InsightListArgs),
    /// Show an insight with its evidence and the suggested action.
    ///
    /// Example: klnode insights show 3fa9c2d1
    Show(OneInsight),
    /// Dismiss an insight on this node, or take that back (--undo).
    ///
    /// It comes back only if its evidence grows: with another entry, another version of an entry,
    /// another task or another failure.
    ///
    /// Example: klnode insights dismiss 3fa9c2d1
    Dismiss(InsightDismissArgs),
}

/// The insights to list.
#[derive(Debug, clap::Args)]
pub struct InsightListArgs {
    /// The workspace [default: the one set by `workspace use`].
    #[arg(long)]
    pub workspace: Option<String>,
    /// Include dismissed insights.
    #[arg(long)]
    pub dismissed: bool,
}

/// One insight.
#[derive(Debug, clap::Args)]
pub struct OneInsight {
    /// Its id in `insights list`, or the beginning of it.
    pub insight: String,
    /// Its workspace [default: the one set by `workspace use`].
    #[arg(long)]
    pub workspace: Option<String>,
}

/// The insight to dismiss.
#[derive(Debug, clap::Args)]
pub struct InsightDismissArgs {
    #[command(flatten)]
    one: OneInsight,
    /// Take the dismissal back.
    #[arg(long)]
    pub undo: bool,
}

impl InsightsVerb {
    pub(super) async fn run(self, client: &Client) -> Result<Reply, VerbError> {
        match self {
            Self::List(InsightListArgs { workspace, dismissed }) => {
                let path = format!("/v1/insights?dismissed={dismissed}{}", within(&workspace, '&'));
                let list: InsightList = client.get(&path).await?;
                let text = listed(&list);
                Ok(Reply::new(&list, text))
            }
            Self::Show(one) => {
                let insight: ListedInsight = client.get(&one.path("")).await?;
                let text = whole(&insight, &titles(client, &insight).await?);
                Ok(Reply::new(&insight, text))
            }
            Self::Dismiss(InsightDismissArgs { one, undo }) => {
                let path = one.path(if undo { "/restore" } else { "/dismiss" });
                let done: InsightDismissal = client.send_json(Method::POST, &path, &()).await?;
                let text = decided(&done, undo);
                Ok(Reply::new(&done, text))
            }
        }
    }
}

impl OneInsight {
    fn path(&self, act: &str) -> String {
        format!("/v1/insights/{}{act}{}", escape(&self.insight), within(&self.workspace, '?'))
    }
}

/// The query parameter of a workspace.
fn within(workspace: &Option<String>, before: char) -> String {
    let query = workspace.as_ref().map(|name| format!("{before}workspace={}", escape(name)));
    query.unwrap_or_default()
}

fn listed(list: &InsightList) -> String {
    let mut text = String::new();
    for one in &list.insights {
        let mark = if one.dismissed.is_some() { ", dismissed" } else { "" };
        let _ = writeln!(
            text,
            "{}  {:<15}  {}{mark}\n    {}",
            one.id,
            one.severity,
            one.category,
            printable(&one.text)
        );
    }
    if list.insights.is_empty() {
        let _ = writeln!(text, "Workspace `{}` has no insights.", printable(&list.workspace));
    }
    if list.dismissed > 0 {
        let _ = writeln!(text, "{} dismissed; use --dismissed to list them.", list.dismissed);
    }
    text
}

/// The titles of the entries in the evidence, by id. An entry that was forgotten in the meantime has
/// none.
async fn titles(
    client: &Client,
    insight: &ListedInsight,
) -> Result<BTreeMap<String, String>, VerbError> {
    let mut titles = BTreeMap::new();
    for item in insight.evidence.iter().filter(|item| item.kind == "entry").take(TITLES_MAX) {
        if let Ok(entry) = client.get::<Entry>(&entry_path(&item.id, "")?).await {
            titles.insert(item.id.clone(), entry.title);
        }
    }
    Ok(titles)
}

fn whole(insight: &ListedInsight, titles: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<9} {value}");
    };
    put("insight", insight.id.clone());
    put("rule", format!("{}, {}", insight.rule, insight.name));
    put("category", insight.category.clone());
    put("severity", insight.severity.clone());
    put("text", printable(&insight.text));
    put("action", printable(&insight.action));
    if let Some(task) = &insight.task {
        put("task", command(task));
    }
    for item in &insight.evidence {
        let title = titles.get(&item.id).map(|title| format!("  {}", printable(title)));
        let (label, detail) = (printable(&item.label), printable(&item.detail));
        put("evidence", format!("{label}  {detail}{}", title.unwrap_or_default()));
    }
    if insight.dismissed.is_some() {
        put("dismissed", "yes, until its evidence grows".to_owned());
    }
    text
}

/// The command that begins a suggested task.
fn command(task: &ProposedTask) -> String {
    let goal = shell_quote::word(&printable(&task.goal));
    format!("klnode task begin --agent {} --goal {goal}", printable(&task.agent))
}

fn decided(done: &InsightDismissal, is_undone: bool) -> String {
    let id = &done.insight.id;
    match (is_undone, done.already) {
        (false, false) => format!("{id}  dismissed; it comes back only if its evidence grows\n"),
        (false, true) => format!("{id}  was already dismissed\n"),
        (true, false) => format!("{id}  restored\n"),
        (true, true) => format!("{id}  was not dismissed\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insight() -> ListedInsight {
        ListedInsight {
            id: "3fa9c2d1".to_owned(),
            rule: 4,
            name: "coverage_gap".to_owned(),
            category: "coverage".to_owned(),
            severity: "attention".to_owned(),
            text: "Coverage gap in tag \"au\u{202E}th\".".to_owned(),
            action: "Find out.".to_owned(),
            task: Some(ProposedTask {
                agent: "researcher".to_owned(),
                goal: "Research 'auth'".to_owned(),
            }),
            evidence: Vec::new(),
            dismissed: None,
        }
    }

    #[test]
    fn a_suggested_task_is_a_command_that_a_shell_reads_as_one_goal() {
        let text = whole(&insight(), &BTreeMap::new());
        let expect = "klnode task begin --agent researcher --goal 'Research '\\''auth'\\'''";
        assert!(text.contains(expect), "{text}");
        assert!(!text.contains('\u{202E}'), "{text}");
    }

    #[test]
    fn an_empty_list_says_so_and_counts_dismissed_insights() {
        let none = InsightList {
            as_of: 0,
            workspace: "main".to_owned(),
            insights: Vec::new(),
            dismissed: 2,
        };
        let expect =
            "Workspace `main` has no insights.\n2 dismissed; use --dismissed to list them.\n";
        assert_eq!(listed(&none), expect);
    }
}
