//! What each tool does: a call becomes requests to the node, and what it answers becomes an answer.

use super::answer::{self, Answer};
use super::arguments::{
    Action, Briefing, Call, Get, Observe, Remember, Resolve, Search, TaskBegin, TaskFinish, Verdict,
};
use super::quote::inline;
use super::session::Session;
use super::trouble::Trouble;
use crate::api::search::{Search as Question, SearchAnswer};
use crate::api::types::{
    Edit, Entry, FinishTask, FinishedTask, NewEntry, NewTask, Observe as Observation, Observed,
    Outcome, Overlay,
};
use crate::api::{ClientError, escape, part};
use hyper::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Write;

/// Tasks that are open in one session, each a part of the one before.
const TASKS_MAX: usize = 16;
/// Stands for every thread where one is named.
const ALL_THREADS: &str = "*";

/// A session, while it answers one call.
pub(super) struct Asking<'a> {
    pub(super) session: &'a Session,
    /// What the client calls itself.
    pub(super) client: &'a str,
}

/// The task that a call belongs to.
struct Work {
    task: Option<String>,
    /// Whether the caller named it, or it is the session's own.
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Named,
    Session,
}

impl Asking<'_> {
    pub(super) async fn answer(&self, call: Call) -> Result<Answer, Trouble> {
        match call {
            Call::Search(search) => self.search(search).await,
            Call::Get(Get { code }) => self.get(&code).await,
            Call::Remember(remember) => self.remember(remember).await,
            Call::Observe(observe) => self.observe(observe).await,
            Call::TaskBegin(begin) => self.task_begin(begin).await,
            Call::TaskFinish(finish) => self.task_finish(finish).await,
            Call::Resolve(resolve) => self.resolve(resolve).await,
            Call::Briefing(briefing) => self.briefing(briefing).await,
        }
    }

    async fn ask<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        understood(self.session.read(self.client, path).await?)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Trouble> {
        understood(self.session.send(self.client, method, path, body).await?)
    }

    fn work(&self, named: Option<String>) -> Work {
        match named {
            Some(task) => Work { task: Some(task), origin: Origin::Named },
            None => Work { task: self.session.task(), origin: Origin::Session },
        }
    }

    async fn search(&self, search: Search) -> Result<Answer, Trouble> {
        let work = self.work(search.task);
        let all_threads = search.thread.as_deref() == Some(ALL_THREADS);
        let question = Question {
            query: search.query,
            limit: search.limit,
            budget: search.budget,
            role: search.role,
            kinds: search.kind.into_iter().collect(),
            tags: search.tag.into_iter().collect(),
            workspaces: search.workspace.into_iter().collect(),
            thread: search.thread.filter(|_| !all_threads),
            all_threads,
            task: work.task.clone(),
            checkout: self.session.checkout().cloned(),
            ..Question::default()
        };
        let found = self.send(Method::POST, "/v1/search", &question).await;
        let found: SearchAnswer = found.map_err(|trouble| self.about(&work, trouble))?;
        let names = found.hits.iter().flat_map(|hit| [hit.code.as_str(), hit.id.as_str()]);
        self.session.note_served(names);
        Ok(answer::found(&found, work.task.as_deref()))
    }

    pub(super) async fn get(&self, code: &str) -> Result<Answer, Trouble> {
        let checkout =
            self.session.checkout().map(|folder| format!("?checkout={}", escape(folder)));
        let path = entry_path(code, &checkout.unwrap_or_default())?;
        let entry: Entry = self.ask(&path).await?;
        admitted(&entry)?;
        self.session.note_served([entry.code.as_str(), entry.id.as_str()].into_iter());
        Ok(answer::entry(&entry))
    }

    async fn remember(&self, remember: Remember) -> Result<Answer, Trouble> {
        // It needs anchors and steps, for which every agent would pay in every conversation.
        if remember.kind.as_deref() == Some("finding") {
            let message = "remember a finding: it needs anchors and steps to verify it by";
            let hint = "`klnode task finding` records one in a task, with both";
            return Err(Trouble::new(message).hinting(hint));
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
        let named: Value = named.map_err(|trouble| self.about(&work, trouble))?;
        let (id, code) = (text_of(&named, "id"), text_of(&named, "code"));
        // Who wrote it cannot confirm it without having known it.
        self.session.note_served([code, id].into_iter());
        let mut text = format!("Remembered as {code}.\n");
        let mut structured = json!({"id": id, "code": code});
        let same = named["same"]["code"].as_str();
        if let Some(same) = same {
            // Who is told of it has not found it out.
            self.session.note_served([same, text_of(&named["same"], "id")].into_iter());
            let _ = writeln!(
                text,
                "The same is written in {} already; next time `observe` that one.",
                inline(same)
            );
        }
        answer::set(&mut structured, "same", same);
        Ok(Answer { text, structured })
    }

    async fn observe(&self, observe: Observe) -> Result<Answer, Trouble> {
        let work = self.work(observe.task);
        let outcome = match observe.verdict {
            Verdict::Helpful | Verdict::Success => Outcome::Success,
            Verdict::Harmful | Verdict::Failure => Outcome::Failure,
            Verdict::Confirm => return self.confirm(&observe.code, &work).await,
        };
        let path = entry_path(&observe.code, "/observations")?;
        let body = Observation { outcome, task: work.task.clone() };
        let observed = self.send(Method::POST, &path, &body).await;
        let observed: Observed = observed.map_err(|trouble| self.about(&work, trouble))?;
        let Observed { id, code, counted, reason } = observed;
        let what = if outcome == Outcome::Success { "a success" } else { "a failure" };
        let text = match &reason {
            Some(reason) => format!("{code}: {reason}.\n"),
            None => format!("{code}: {what} was counted.\n"),
        };
        let mut structured = json!({"id": id, "code": code, "counted": counted});
        answer::set(&mut structured, "reason", reason.as_deref());
        Ok(Answer { text, structured })
    }

    /// What this session was served it cannot confirm independently, whatever the task says: the
    /// agent has read it.
    async fn confirm(&self, name: &str, work: &Work) -> Result<Answer, Trouble> {
        let primed = self.session.was_served(name);
        let query = work.task.as_ref().map(|task| format!("&task={}", escape(task)));
        let rest = format!("/confirm?primed={primed}{}", query.unwrap_or_default());
        let path = entry_path(name, &rest)?;
        let confirmed = self.send(Method::POST, &path, &()).await;
        let confirmed: Value = confirmed.map_err(|trouble| self.about(work, trouble))?;
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
        Ok(Answer { text, structured })
    }

    async fn task_begin(&self, begin: TaskBegin) -> Result<Answer, Trouble> {
        if self.session.task_count() >= TASKS_MAX {
            let message = format!("begin a task: {TASKS_MAX} are open in this session");
            return Err(Trouble::new(message).hinting("end one with `task_finish`"));
        }
        let within = self.work(begin.parent);
        let new = NewTask {
            agent: self.client.to_owned(),
            goal: begin.goal,
            thread: begin.thread,
            parent: within.task.clone(),
        };
        let begun = self.send(Method::POST, "/v1/tasks", &new).await;
        let begun: Value = begun.map_err(|trouble| self.about(&within, trouble))?;
        let task = text_of(&begun, "task");
        self.session.enter_task(task);
        let mut text = format!("Task {task} is open; `task_finish` ends it.\n");
        if let Some(parent) = &within.task {
            let _ = writeln!(text, "It is a part of {}.", inline(parent));
        }
        let mut structured = json!({"task": task});
        answer::set(&mut structured, "parent", within.task.as_deref());
        Ok(Answer { text, structured })
    }

    async fn task_finish(&self, finish: TaskFinish) -> Result<Answer, Trouble> {
        let task = finish.task.or_else(|| self.session.task()).ok_or_else(|| {
            Trouble::new("finish a task: none is open in this session")
                .hinting("name one as `task`, or begin one with `task_begin`")
        })?;
        let body = FinishTask {
            outcome: finish.outcome,
            quality: finish.quality,
            used: finish.used,
            dismissed: finish.dismissed,
            avoided: finish.avoided,
            cost: None,
            rounds: None,
            strategy: None,
        };
        let name = part(&task, "a task", "its name is wanted, as `task_begin` told it");
        let name = name.map_err(Trouble::new)?;
        let path = format!("/v1/tasks/{name}/finish");
        let done: FinishedTask = self.send(Method::POST, &path, &body).await?;
        self.session.leave_task(&task);
        let mut text = match done.already {
            true => format!("Task {} was finished before; nothing was added.\n", done.task),
            false => format!("Task {} is finished.\n", done.task),
        };
        for credit in &done.credits {
            let _ =
                writeln!(text, "{}: {:.3} observations were added.", credit.code, credit.amount);
        }
        let codes = |ids: &[String]| -> String {
            let codes: Vec<&str> =
                ids.iter().map(|id| done.codes.get(id).unwrap_or(id).as_str()).collect();
            codes.join(", ")
        };
        for (what, ids) in [("Dismissed", &done.dismissed), ("Spikes avoided", &done.avoided)] {
            if !ids.is_empty() {
                let _ = writeln!(text, "{what}: {} ({}).", ids.len(), codes(ids));
            }
        }
        if !done.unserved.is_empty() {
            let count = done.unserved.len();
            let _ = writeln!(text, "{count} of those named were not served in it: not counted.");
        }
        let structured =
            json!({"task": done.task, "already": done.already, "credits": done.credits});
        Ok(Answer { text, structured })
    }

    async fn resolve(&self, resolve: Resolve) -> Result<Answer, Trouble> {
        let Resolve { code, action, by, to, note } = resolve;
        let path = entry_path(&code, "")?;
        let archive = |archived| Edit { archived: Some(archived), ..Edit::default() };
        let (done, what): (Value, &str) = match action {
            Action::Archive => {
                (self.send(Method::PATCH, &path, &archive(true)).await?, "is archived")
            }
            Action::Unarchive => {
                (self.send(Method::PATCH, &path, &archive(false)).await?, "is back")
            }
            Action::Supersede => {
                let by = json!({"by": needed("supersede", "by", by)?});
                let path = format!("{path}/supersede");
                (self.send(Method::POST, &path, &by).await?, "is superseded")
            }
            Action::Promote => {
                let to = json!({"to": needed("promote", "to", to)?});
                let path = format!("{path}/promote");
                (self.send(Method::POST, &path, &to).await?, "is promoted")
            }
            Action::Annotate => {
                let note = Some(needed("annotate", "note", note)?);
                let overlay = Overlay { note, ..Overlay::default() };
                let path = format!("{path}/overlay");
                (self.send(Method::PUT, &path, &overlay).await?, "is annotated, on this node alone")
            }
        };
        let named = done["code"].as_str().unwrap_or(&code);
        let action = format!("{action:?}").to_lowercase();
        let mut text = format!("{} {what}.\n", inline(&code));
        if named != code {
            let _ = writeln!(text, "See {}.", inline(named));
        }
        Ok(Answer { text, structured: json!({"action": action, "code": named}) })
    }

    async fn briefing(&self, briefing: Briefing) -> Result<Answer, Trouble> {
        let task = self.session.task();
        let path = briefing_path(&briefing, self.session.checkout(), task.as_deref());
        let given: Value = self.ask(&path).await?;
        self.session.note_served(briefed(&given));
        Ok(answer::briefing(&given))
    }

    /// A task that the session worked on and that is over by now is dropped, and the agent told.
    fn about(&self, work: &Work, trouble: Trouble) -> Trouble {
        match &work.task {
            Some(task) if work.origin == Origin::Session && trouble.names(task) => {
                self.session.leave_task(task);
                trouble.hinting("it is no longer this session's task: call again without it")
            }
            _ => trouble,
        }
    }
}

/// Only what may enter an answer that nobody looks at first is read out to an agent.
fn admitted(entry: &Entry) -> Result<(), Trouble> {
    let why = match (entry.gate.as_str(), entry.status.as_str()) {
        ("shut", _) => "it is by no member of its workspace, and nobody here has seen it work",
        (_, "rejected") => "the node rejects it",
        _ => return Ok(()),
    };
    let code = &entry.code;
    let hint = format!("a person can read it on a terminal: `klnode show {code}`");
    Err(Trouble::new(format!("read out {code}: {why}")).hinting(hint))
}

/// The path of an entry.
fn entry_path(code: &str, rest: &str) -> Result<String, Trouble> {
    let name = part(code, "an entry", "a code, an id or its beginning is wanted");
    let name = name.map_err(Trouble::new)?;
    Ok(format!("/v1/entries/{name}{rest}"))
}

fn briefing_path(asked: &Briefing, checkout: Option<&String>, task: Option<&str>) -> String {
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

/// The codes of what a briefing names.
fn briefed(given: &Value) -> impl Iterator<Item = &str> {
    let sections = given["sections"].as_array().into_iter().flatten();
    let entries = sections.flat_map(|section| section["entries"].as_array().into_iter().flatten());
    entries.filter_map(|entry| entry["code"].as_str())
}

fn needed(action: &str, field: &str, given: Option<String>) -> Result<String, Trouble> {
    given.ok_or_else(|| Trouble::new(format!("{action} the entry: `{field}` is missing")))
}

fn understood<T: DeserializeOwned>(value: Value) -> Result<T, Trouble> {
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
    fn the_path_of_a_briefing_names_what_was_asked_for() {
        assert_eq!(briefing_path(&Briefing::default(), None, None), "/v1/briefing");
        let asked = Briefing { workspace: Some("a team".into()), budget: Some(300) };
        let path = briefing_path(&asked, Some(&"/src".to_owned()), None);
        assert_eq!(path, "/v1/briefing?workspace=a%20team&budget_tokens=300&checkout=%2Fsrc");
    }
}
