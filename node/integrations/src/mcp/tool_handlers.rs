//! Implements the tools: each call becomes requests to the node, and their answers become the
//! tool's result.

use super::arguments::{
    BriefingArgs, GetArgs, ObserveArgs, ObservedOutcome, RememberArgs, ResolveAction, ResolveArgs,
    SearchArgs, TaskBeginArgs, TaskFinishArgs, ToolCall,
};
use super::quoted_entry_text::inline;
use super::session::McpSession;
use super::task_tool_results;
use super::tool_error::ToolError;
use super::tool_result::{self, ToolResult};
use hyper::Method;
use klnode_api_types::playbooks::{NewPlaybook, Playbook, PlaybookEdit};
use klnode_api_types::search::{Search as Question, SearchResponse};
use klnode_api_types::{
    AdoptionReason, Edit, Entry, FinishTask, FinishedTask, MarkUpdate, NewEntry,
    NewObservation as Observation, NewTask, ObservationResult, Outcome, PartialUse, Task,
};
use klnode_client::{ClientError, escape, part};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Write;

/// Maximum number of nested open tasks in one session.
const TASKS_MAX: usize = 16;
/// As a thread's name, stands for every thread.
const ALL_THREADS: &str = "*";

impl McpSession {
    /// Handles a tool call of a client with this name.
    pub async fn call(&self, client: &str, call: ToolCall) -> Result<ToolResult, ToolError> {
        CallHandler { session: self, client }.answer(call).await
    }

    /// Reads an entry, if it may be served to an agent.
    pub async fn entry(&self, client: &str, code: &str) -> Result<ToolResult, ToolError> {
        CallHandler { session: self, client }.get(code).await
    }
}

/// Handles one call of a session.
struct CallHandler<'a> {
    session: &'a McpSession,
    /// The client's name for itself.
    client: &'a str,
}

/// The task that a call belongs to, and where it came from.
struct CallTask {
    task: Option<String>,
    /// Whether the caller named the task or it is the session's own.
    origin: TaskSource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskSource {
    Named,
    Session,
}

impl CallHandler<'_> {
    async fn answer(&self, call: ToolCall) -> Result<ToolResult, ToolError> {
        match call {
            ToolCall::Search(search) => self.search(search).await,
            ToolCall::Get(GetArgs { code }) => self.get(&code).await,
            ToolCall::Remember(remember) => self.remember(remember).await,
            ToolCall::Observe(observe) => self.observe(observe).await,
            ToolCall::TaskBegin(begin) => self.task_begin(begin).await,
            ToolCall::TaskFinish(finish) => self.task_finish(finish).await,
            ToolCall::Resolve(resolve) => self.resolve(resolve).await,
            ToolCall::Briefing(briefing) => self.briefing(briefing).await,
        }
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, ToolError> {
        decode(self.session.read(self.client, path).await?)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ToolError> {
        decode(self.session.send(self.client, method, path, body).await?)
    }

    fn work(&self, named: Option<String>) -> CallTask {
        match named {
            Some(task) => CallTask { task: Some(task), origin: TaskSource::Named },
            None => CallTask { task: self.session.task(), origin: TaskSource::Session },
        }
    }

    async fn search(&self, search: SearchArgs) -> Result<ToolResult, ToolError> {
        let work = self.work(search.task);
        let all_threads = search.thread.as_deref() == Some(ALL_THREADS);
        let question = Question {
            query: search.query,
            limit: search.limit,
            budget: search.budget,
            role: search.role,
            deviation: search.deviation,
            reviewer: search.reviewer,
            kinds: search.kind.into_iter().collect(),
            sub_types: search.sub_type.into_iter().collect(),
            tags: search.tag.into_iter().collect(),
            workspaces: search.workspace.into_iter().collect(),
            thread: search.thread.filter(|_| !all_threads),
            all_threads,
            task: work.task.clone(),
            checkout: self.session.checkout().cloned(),
            context: search.context,
            debug: search.debug,
            ..Question::default()
        };
        let found = self.send(Method::POST, "/v1/search", &question).await;
        let found: SearchResponse =
            found.map_err(|trouble| self.drop_ended_task(&work, trouble))?;
        let names = found.hits.iter().flat_map(|hit| [hit.code.as_str(), hit.id.as_str()]);
        self.session.note_served(names);
        Ok(tool_result::found(&found, work.task.as_deref()))
    }

    async fn get(&self, code: &str) -> Result<ToolResult, ToolError> {
        let checkout =
            self.session.checkout().map(|folder| format!("?checkout={}", escape(folder)));
        let (name, section) = split_section(code);
        let path = entry_path(name, &checkout.unwrap_or_default())?;
        let mut entry: Entry = self.ask(&path).await?;
        check_servable(&entry)?;
        self.session.note_served([entry.code.as_str(), entry.id.as_str()].into_iter());
        if section.is_none() && entry.kind != PLAYBOOK {
            return Ok(tool_result::entry(&entry));
        }
        let asked = section.map(|section| format!("?section={}", escape(section)));
        let path = playbook_path(name, &asked.unwrap_or_default())?;
        let playbook: Playbook = match self.ask(&path).await {
            Ok(playbook) => playbook,
            // A plain entry of this type has no shared text.
            Err(_) if section.is_none() => return Ok(tool_result::entry(&entry)),
            Err(trouble) => return Err(trouble),
        };
        entry.content = playbook.text;
        let mut result = tool_result::entry(&entry);
        let version = inline(&playbook.version);
        let _ = writeln!(result.text, "version: {version}");
        tool_result::set(&mut result.structured, "version", Some(&version));
        Ok(result)
    }

    async fn remember(&self, remember: RememberArgs) -> Result<ToolResult, ToolError> {
        // A finding needs anchors and steps, whose schema every agent would pay for in every
        // conversation.
        if remember.kind.as_deref() == Some("finding") {
            let message = "A finding needs anchors and verification steps, which this tool does \
                           not take.";
            let hint = "Record one in a task with `klnode task finding`.";
            return Err(ToolError::new(message).hinting(hint));
        }
        if remember.kind.as_deref() == Some(PLAYBOOK) {
            return self.write_playbook(remember).await;
        }
        let work = self.work(None);
        let new = NewEntry {
            title: remember.title,
            content: remember.content,
            kind: remember.kind,
            tags: remember.tags,
            evidence: remember.evidence,
            depends_on: remember.depends_on,
            outcome: remember.outcome,
            polarity: remember.polarity,
            workspace: remember.workspace,
            task: work.task.clone(),
            checkout: self.session.checkout().cloned(),
            ..NewEntry::default()
        };
        let named = self.send(Method::POST, "/v1/entries", &new).await;
        let named: Value = named.map_err(|trouble| self.drop_ended_task(&work, trouble))?;
        let (id, code) = (text_of(&named, "id"), text_of(&named, "code"));
        // The author has read the entry and so cannot confirm it independently.
        self.session.note_served([code, id].into_iter());
        let mut text = format!("Remembered as {code}.\n");
        let mut structured = json!({"id": id, "code": code});
        let same = named["same"]["code"].as_str();
        if let Some(same) = same {
            // The agent learns of the duplicate here and so cannot confirm it independently.
            self.session.note_served([same, text_of(&named["same"], "id")].into_iter());
            let _ = writeln!(
                text,
                "{} already says the same; next time `observe` that one.",
                inline(same)
            );
        }
        tool_result::set(&mut structured, "same", same);
        Ok(ToolResult { text, structured })
    }

    async fn write_playbook(&self, remember: RememberArgs) -> Result<ToolResult, ToolError> {
        let new = NewPlaybook {
            title: remember.title,
            text: remember.content,
            workspace: remember.workspace,
            tags: remember.tags,
            checkout: self.session.checkout().cloned(),
            ..NewPlaybook::default()
        };
        let named: Value = self.send(Method::POST, "/v1/playbooks", &new).await?;
        let (id, code) = (text_of(&named, "id"), text_of(&named, "code"));
        self.session.note_served([code, id].into_iter());
        let structured = json!({"id": id, "code": code});
        Ok(ToolResult { text: format!("Remembered as {code}.\n"), structured })
    }

    async fn observe(&self, observe: ObserveArgs) -> Result<ToolResult, ToolError> {
        let work = self.work(observe.task);
        let outcome = match observe.verdict {
            ObservedOutcome::Helpful | ObservedOutcome::Success => Outcome::Success,
            ObservedOutcome::Harmful | ObservedOutcome::Failure => Outcome::Failure,
            ObservedOutcome::Confirm => return self.confirm(&observe.code, &work).await,
        };
        let path = entry_path(&observe.code, "/observations")?;
        let body = Observation { outcome, task: work.task.clone() };
        let observed = self.send(Method::POST, &path, &body).await;
        let observed: ObservationResult =
            observed.map_err(|trouble| self.drop_ended_task(&work, trouble))?;
        let ObservationResult { id, code, counted, reason } = observed;
        let what = if outcome == Outcome::Success { "a success" } else { "a failure" };
        let text = match &reason {
            Some(reason) => format!("{code}: {reason}.\n"),
            None => format!("{code}: {what} was counted.\n"),
        };
        let mut structured = json!({"id": id, "code": code, "counted": counted});
        tool_result::set(&mut structured, "reason", reason.as_deref());
        Ok(ToolResult { text, structured })
    }

    /// Records a confirmation. An entry that was served in this session cannot be confirmed
    /// independently, regardless of the task, because the agent has read it.
    async fn confirm(&self, name: &str, work: &CallTask) -> Result<ToolResult, ToolError> {
        let primed = self.session.was_served(name);
        let query = work.task.as_ref().map(|task| format!("&task={}", escape(task)));
        let rest = format!("/confirm?primed={primed}{}", query.unwrap_or_default());
        let path = entry_path(name, &rest)?;
        let confirmed = self.send(Method::POST, &path, &()).await;
        let confirmed: Value = confirmed.map_err(|trouble| self.drop_ended_task(work, trouble))?;
        let [id, code, class, reason] =
            ["id", "code", "class", "reason"].map(|name| text_of(&confirmed, name));
        let reason = match (class, primed) {
            ("primed", true) => "it was served in this session",
            _ => reason,
        };
        let text = format!("{code}: noted as {class}: {reason}.\n");
        let structured = json!({
            "id": id,
            "code": code,
            "counted": class == "independent",
            "class": class,
            "reason": reason,
        });
        Ok(ToolResult { text, structured })
    }

    async fn task_begin(&self, begin: TaskBeginArgs) -> Result<ToolResult, ToolError> {
        if self.session.task_count() >= TASKS_MAX {
            let message = format!("No task was begun: {TASKS_MAX} are open in this session.");
            return Err(ToolError::new(message).hinting("End one with `task_finish`."));
        }
        let within = self.work(begin.parent);
        let new = NewTask {
            agent: self.client.to_owned(),
            goal: begin.goal,
            thread: begin.thread,
            parent: within.task.clone(),
            workspace: None,
            checkout: self.session.checkout().cloned(),
        };
        let begun = self.send(Method::POST, "/v1/tasks", &new).await;
        let begun: Task = begun.map_err(|trouble| self.drop_ended_task(&within, trouble))?;
        self.session.enter_task(&begun.task);
        // A conclusion says what its entries say, so its reader cannot confirm them independently.
        let cited = begun.upstream.iter().flat_map(|of| of.cites.iter().map(String::as_str));
        self.session.note_served(cited);
        Ok(task_tool_results::begun(&begun, within.task.as_deref()))
    }

    async fn task_finish(&self, finish: TaskFinishArgs) -> Result<ToolResult, ToolError> {
        let task = finish.task.or_else(|| self.session.task()).ok_or_else(|| {
            ToolError::new("No task was finished: none is open in this session.")
                .hinting("Name one as `task`, or begin one with `task_begin`.")
        })?;
        let partial = finish.partial.into_iter();
        let reasons = finish.reasons.into_iter();
        let body = FinishTask {
            quality: finish.quality,
            used: finish.used,
            dismissed: finish.dismissed,
            avoided: finish.avoided,
            cost: finish.cost,
            rounds: finish.rounds,
            strategy: finish.strategy,
            partial: partial.map(|(entry, gap)| PartialUse { entry, gap }).collect(),
            composite: finish.composite,
            incidental: finish.incidental,
            reasons: reasons.map(|(entry, reason)| AdoptionReason { entry, reason }).collect(),
            conclusion: finish.conclusion,
            ..FinishTask::new(finish.outcome)
        };
        let name = part(&task, "a task", "give its name, as `task_begin` returned it");
        let name = name.map_err(ToolError::new)?;
        let path = format!("/v1/tasks/{name}/finish");
        let done: FinishedTask = self.send(Method::POST, &path, &body).await?;
        self.session.leave_task(&task);
        Ok(task_tool_results::finished(&done, body.conclusion.as_deref()))
    }

    async fn resolve(&self, resolve: ResolveArgs) -> Result<ToolResult, ToolError> {
        let ResolveArgs { code, action, by, to, note, text, version } = resolve;
        let (name, section) = split_section(&code);
        let path = entry_path(name, "")?;
        let archive = |archived| Edit { archived: Some(archived), ..Edit::default() };
        let (done, what): (Value, &str) = match action {
            ResolveAction::Archive => {
                (self.send(Method::PATCH, &path, &archive(true)).await?, "is archived")
            }
            ResolveAction::Unarchive => {
                (self.send(Method::PATCH, &path, &archive(false)).await?, "is no longer archived")
            }
            ResolveAction::Supersede => {
                let by = json!({"by": require_argument("supersede", "by", by)?});
                let path = format!("{path}/supersede");
                (self.send(Method::POST, &path, &by).await?, "is superseded")
            }
            ResolveAction::Promote => {
                let to = json!({"to": require_argument("promote", "to", to)?});
                let path = format!("{path}/promote");
                (self.send(Method::POST, &path, &to).await?, "is promoted")
            }
            ResolveAction::Edit => {
                let edit = PlaybookEdit {
                    version: Some(require_argument("edit", "version", version)?),
                    text: Some(require_argument("edit", "text", text)?),
                    section: section.map(str::to_owned),
                    restore: None,
                };
                let path = playbook_path(name, "")?;
                (self.send(Method::PATCH, &path, &edit).await?, "is edited")
            }
            ResolveAction::Annotate => {
                let note = Some(require_argument("annotate", "note", note)?);
                let overlay = MarkUpdate { note, ..MarkUpdate::default() };
                let path = format!("{path}/overlay");
                (self.send(Method::PUT, &path, &overlay).await?, "is annotated on this node")
            }
        };
        let named = done["code"].as_str().unwrap_or(&code);
        let action = format!("{action:?}").to_lowercase();
        let mut text = format!("{} {what}.\n", inline(&code));
        if named != code {
            let _ = writeln!(text, "See {}.", inline(named));
        }
        Ok(ToolResult { text, structured: json!({"action": action, "code": named}) })
    }

    async fn briefing(&self, briefing: BriefingArgs) -> Result<ToolResult, ToolError> {
        let task = self.session.task();
        let path = briefing_path(&briefing, self.session.checkout(), task.as_deref());
        let given: Value = self.ask(&path).await?;
        self.session.note_served(briefing_codes(&given));
        Ok(tool_result::briefing(&given))
    }

    /// If the error concerns the session's own task, drops that task and adds a hint.
    fn drop_ended_task(&self, work: &CallTask, trouble: ToolError) -> ToolError {
        match &work.task {
            Some(task) if work.origin == TaskSource::Session && trouble.names(task) => {
                self.session.leave_task(task);
                trouble.hinting("It is no longer this session's task. Call again without it.")
            }
            _ => trouble,
        }
    }
}

/// Refuses entries that may not be served to an agent without a person's review.
fn check_servable(entry: &Entry) -> Result<(), ToolError> {
    let why = match (entry.gate.as_str(), entry.status.as_str()) {
        _ if entry.held => "it waits for the operator: its text names a host, a path or the like",
        ("shut", _) => "its author is not a member of its workspace, and no success was seen here",
        (_, "rejected") => "this node rejects it",
        _ => return Ok(()),
    };
    let code = &entry.code;
    let hint = format!("A person can read it in a terminal with `klnode show {code}`.");
    Err(ToolError::new(format!("{code} is not served to agents: {why}.")).hinting(hint))
}

/// The type of playbooks.
const PLAYBOOK: &str = "playbook";

/// Splits the code of a playbook from the name of a section.
fn split_section(code: &str) -> (&str, Option<&str>) {
    match code.split_once('#') {
        Some((code, section)) => (code, Some(section)),
        None => (code, None),
    }
}

fn playbook_path(code: &str, rest: &str) -> Result<String, ToolError> {
    let name = part(code, "a playbook", "give a code, an id or its beginning");
    let name = name.map_err(ToolError::new)?;
    Ok(format!("/v1/playbooks/{name}{rest}"))
}

fn entry_path(code: &str, rest: &str) -> Result<String, ToolError> {
    let name = part(code, "an entry", "give a code, an id or its beginning");
    let name = name.map_err(ToolError::new)?;
    Ok(format!("/v1/entries/{name}{rest}"))
}

fn briefing_path(asked: &BriefingArgs, checkout: Option<&String>, task: Option<&str>) -> String {
    let workspace = asked.workspace.as_ref().map(|name| format!("workspace={}", escape(name)));
    let budget = asked.budget.map(|tokens| format!("budget_tokens={tokens}"));
    let checkout = checkout.map(|folder| format!("checkout={}", escape(folder)));
    let task = task.map(|task| format!("task={}", escape(task)));
    let query: Vec<String> = [workspace, budget, checkout, task].into_iter().flatten().collect();
    match query.is_empty() {
        true => "/v1/briefing".to_owned(),
        false => format!("/v1/briefing?{}", query.join("&")),
    }
}

/// Codes of the entries in a briefing.
fn briefing_codes(given: &Value) -> impl Iterator<Item = &str> {
    let sections = given["sections"].as_array().into_iter().flatten();
    let entries = sections.flat_map(|section| section["entries"].as_array().into_iter().flatten());
    entries.filter_map(|entry| entry["code"].as_str())
}

fn require_argument(action: &str, field: &str, given: Option<String>) -> Result<String, ToolError> {
    given.ok_or_else(|| ToolError::new(format!("The action `{action}` needs `{field}`.")))
}

fn decode<T: DeserializeOwned>(value: Value) -> Result<T, ToolError> {
    let read = serde_json::from_value(value);
    read.map_err(|error| ClientError::Garbled(error.to_string()).into())
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_briefing_path_contains_the_arguments() {
        assert_eq!(briefing_path(&BriefingArgs::default(), None, None), "/v1/briefing");
        let asked = BriefingArgs { workspace: Some("a team".into()), budget: Some(300) };
        let path = briefing_path(&asked, Some(&"/src".to_owned()), None);
        assert_eq!(path, "/v1/briefing?workspace=a%20team&budget_tokens=300&checkout=%2Fsrc");
    }
}
