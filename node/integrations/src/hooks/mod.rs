//! Hooks: commands that a client runs at fixed events to give an agent knowledge it did not ask
//! for.
//!
//! A hook must never delay an agent. One deadline covers all its work. If anything fails, the hook
//! prints nothing, and a line in the home's `hook.log` gives the reason. That line contains no text
//! of a prompt, an error message or an entry. Served entries are quoted (see [`quote_frame`]),
//! never phrased as instructions.

mod entry_mentions;
mod input;
pub mod log;
pub mod quote_frame;
mod session_entries;
mod session_file;
mod session_task;

pub use input::HookInput;
pub use session_entries::{GivenEntry, GivenForm};

use entry_mentions::codes_in;
use hyper::Method;
use klnode_api_types::ErrorKind;
use klnode_api_types::search::{KnownEntry, Search, SearchResponse};
use klnode_api_types::{Entry, FinishTask, FinishedTask, NewTask, Outcome, Task};
use klnode_client::{Client, ClientError, escape};
use klnode_git::GitCheckout;
use klnode_home::Layout;
use klnode_text::plural;
use quote_frame::{DisclaimerState, Quote};
use serde_json::{Value, json};
use session_entries::{SessionContent, SessionEntries};
use session_file::safe_id;
use session_task::HookSession;
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The client name that hooks send to the node.
const CLIENT: &str = "claude-code";
/// Bytes of a prompt that are used as the query: half from its start, half from its end.
const PROMPT_BYTES_MAX: usize = 4_000;
/// Average bytes per token, for cutting text without counting tokens.
const TOKEN_BYTES: usize = 4;
/// Time limit for asking whether a task is still open. Loading the task of a long session can be
/// slow.
const TASK_STATE_TIMEOUT: Duration = Duration::from_millis(100);

/// An event at which a client runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    /// A session begins or resumes.
    SessionStart,
    /// A person submitted a prompt.
    Prompt,
    /// A tool call failed.
    ToolError,
    /// The session ends.
    Stop,
}

impl HookEvent {
    /// All events in the order in which they occur.
    pub const ALL: [Self; 4] = [Self::SessionStart, Self::Prompt, Self::ToolError, Self::Stop];

    /// The event's name on klnode's command line.
    pub fn verb(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::Prompt => "prompt",
            Self::ToolError => "tool-error",
            Self::Stop => "stop",
        }
    }

    /// The client's name for the event. `Stop` maps to the end of the session, not of a turn,
    /// because the session's task ends there.
    pub fn client_name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::Prompt => "UserPromptSubmit",
            Self::ToolError => "PostToolUseFailure",
            Self::Stop => "SessionEnd",
        }
    }

    /// The event with this command-line name, if there is one.
    pub fn named(verb: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.verb() == verb)
    }
}

/// One run of a hook.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// The event that occurred.
    pub event: HookEvent,
    /// Restricts answers to this workspace.
    pub workspace: Option<String>,
    /// The outcome that the operator assigns to every finished session; `None` assigns none.
    pub verdict: Option<Outcome>,
    /// Token budget of a briefing.
    pub briefing_tokens: u32,
    /// Token budget of an answer to a prompt or an error.
    pub answer_tokens: u32,
    /// Paths of the home folder.
    pub layout: Layout,
    /// Current time, for expiring remembered entries.
    pub now: SystemTime,
}

/// The result of a hook: context for the agent and a line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookReply {
    /// Text that is added to the agent's context; `None` prints nothing.
    pub context: Option<String>,
    /// The line for the log; contains no text of prompts or entries.
    pub noted: String,
    /// The entries in the context and the memory that records them.
    given: Option<(SessionEntries, Vec<GivenEntry>)>,
}

impl HookReply {
    /// No context for the agent, with the reason for the log.
    pub fn nothing(why: impl Into<String>) -> Self {
        Self { context: None, noted: why.into(), given: None }
    }

    /// Records the entries the session received. Called after the client has read the output.
    pub fn remember(&self, now: SystemTime) {
        if let Some((memory, given)) = &self.given {
            memory.add(given, now);
        }
    }
}

/// The JSON that the client reads from standard output; empty without context.
pub fn output(event_name: &str, said: &HookReply) -> String {
    let Some(context) = &said.context else { return String::new() };
    let specific = json!({ "hookEventName": event_name, "additionalContext": context });
    format!("{}\n", json!({ "hookSpecificOutput": specific }))
}

/// A short reason for a failed request, for the log.
fn failure_reason(error: &ClientError) -> String {
    match error {
        ClientError::NoNode { .. } | ClientError::Stopped => "No node is running.".into(),
        ClientError::Refused(detail) => {
            format!(
                "The node refused the request: {}.",
                json!(detail.kind).as_str().unwrap_or("failed")
            )
        }
        ClientError::Silent { .. } => "The node did not answer in time.".into(),
        ClientError::Closed { .. } => "The node's socket cannot be opened.".into(),
        ClientError::Ended | ClientError::Garbled(_) | ClientError::BrokenOff => {
            "The node's answer is not readable.".into()
        }
    }
}

impl HookCall {
    /// Handles the event.
    pub async fn run(&self, client: &Client, input: &HookInput) -> HookReply {
        let client = client.clone().named(CLIENT, input.session.as_deref());
        let session = input.session.as_deref().map(|id| HookSession::new(&self.layout, id));
        match self.event {
            HookEvent::SessionStart => self.brief(&client, session.as_ref(), input).await,
            HookEvent::Prompt => match &input.prompt {
                Some(prompt) => {
                    let asked = HookQuery {
                        query: &start_and_end(prompt),
                        role: None,
                        codes: codes_in(prompt),
                    };
                    self.serve(&client, session.as_ref(), input, asked).await
                }
                None => HookReply::nothing("The input has no prompt."),
            },
            HookEvent::ToolError => match input.error() {
                Some(error) => {
                    let role = Some("debugger");
                    let asked = HookQuery { query: &error, role, codes: Vec::new() };
                    self.serve(&client, session.as_ref(), input, asked).await
                }
                None => HookReply::nothing("The input has no error."),
            },
            HookEvent::Stop => self.finish(&client, session.as_ref(), input).await,
        }
    }

    /// The memory of entries this session received before.
    fn memory(&self, input: &HookInput) -> Option<SessionEntries> {
        let session = input.session.as_deref()?;
        Some(SessionEntries::new(&self.layout, session, input.agent.as_deref()))
    }

    /// Fetches a briefing and begins a task for the session.
    async fn brief(
        &self,
        client: &Client,
        session: Option<&HookSession>,
        input: &HookInput,
    ) -> HookReply {
        let memory = self.memory(input);
        if let Some(memory) = memory.as_ref().filter(|_| input.is_context_new()) {
            memory.forget();
        }
        let mut path = format!("/v1/briefing?budget_tokens={}", self.briefing_tokens);
        let checkout = checkout(input);
        // Excludes tasks of other sessions.
        let thread = input.session.as_deref().map(safe_id);
        let fields = [("workspace", &self.workspace), ("checkout", &checkout), ("thread", &thread)];
        for (key, value) in fields {
            if let Some(value) = value {
                path.push_str(&format!("&{key}={}", escape(value)));
            }
        }
        let (briefing, begun) =
            tokio::join!(client.get::<Value>(&path), self.begin_task(client, session, input));
        let briefing = match briefing {
            Ok(briefing) => briefing,
            Err(error) => return HookReply::nothing(format!("{}{begun}", failure_reason(&error))),
        };
        let remembered = memory.as_ref().map(|memory| memory.read(self.now)).unwrap_or_default();
        let (text, given) = entry_mentions::new_lines(&briefing, &remembered);
        let is_empty = briefing["sections"].as_array().is_some_and(Vec::is_empty)
            && briefing["insights"].as_array().is_none_or(Vec::is_empty);
        if is_empty || text.trim().is_empty() {
            return HookReply::nothing(format!("The briefing has nothing new.{begun}"));
        }
        let noted = format!("Served a briefing of {} characters.{begun}", text.chars().count());
        let context = Some(quote_frame::briefing(&text, opening(&remembered)));
        HookReply { context, noted, given: memory.map(|memory| (memory, given)) }
    }

    /// Begins a task unless the session's task is still open. Returns a sentence for the log.
    async fn begin_task(
        &self,
        client: &Client,
        session: Option<&HookSession>,
        input: &HookInput,
    ) -> &'static str {
        let Some(session) = session else { return "" };
        if let Some(task) = session.task()
            && !is_over(client, &task).await
        {
            return "";
        }
        let folder = input.cwd.as_deref().and_then(std::path::Path::file_name);
        let folder = folder.map(|name| name.to_string_lossy().into_owned());
        let goal = match folder {
            Some(folder) => format!("a session in {}", quote_frame::one_line(&folder, 60)),
            None => "a session".to_owned(),
        };
        let checkout = input.cwd.as_deref().filter(|folder| folder.is_absolute());
        let checkout = checkout.and_then(|folder| folder.to_str()).map(str::to_owned);
        let agent = CLIENT.to_owned();
        let new = NewTask { agent, goal, checkout, ..NewTask::default() };
        let begun: Result<Task, _> = client.send_json(Method::POST, "/v1/tasks", &new).await;
        match begun {
            Ok(begun) if session.keep(&begun.task, self.now) => " Task begun.",
            Ok(_) => " Task begun, but its file was not written.",
            Err(_) => "",
        }
    }

    /// Searches for a text and quotes the hits.
    async fn serve(
        &self,
        client: &Client,
        session: Option<&HookSession>,
        input: &HookInput,
        asked: HookQuery<'_>,
    ) -> HookReply {
        let memory = self.memory(input);
        let remembered = memory.as_ref().map(|memory| memory.read(self.now)).unwrap_or_default();
        let mut search = Search {
            query: asked.query.to_owned(),
            budget: Some(self.answer_tokens),
            role: asked.role.map(str::to_owned),
            known: remembered.answers().cloned().collect(),
            workspaces: self.workspace.iter().cloned().collect(),
            task: session.and_then(HookSession::task),
            caller: input.session.as_ref().map(|id| format!("{CLIENT} {}", safe_id(id))),
            checkout: checkout(input),
            // The titles of a weak answer may not help, and the agent did not ask for them.
            strong_only: true,
            ..Search::default()
        };
        let mut answer = ask(client, &search).await;
        // A finished or deleted task must not block the answer, so search again without it.
        if search.task.is_some()
            && matches!(&answer, Err(ClientError::Refused(detail))
                if matches!(detail.kind, ErrorKind::Invalid | ErrorKind::NotFound))
        {
            search.task = None;
            answer = ask(client, &search).await;
            // The task was the cause: forget it, so that the next session start begins a new one.
            if let (Ok(_), Some(session)) = (&answer, session) {
                session.forget();
            }
        }
        let answer = match answer {
            Err(error) => return HookReply::nothing(failure_reason(&error)),
            Ok(answer) => answer,
        };
        let entries =
            self.entries_by_code(client, &asked.codes, &answer, search.checkout.as_deref()).await;
        if answer.hits.is_empty() && entries.is_empty() {
            let why = match search.known.is_empty() {
                true => "No relevant entry.",
                false => "No relevant entry that the session does not already have.",
            };
            return HookReply::nothing(why);
        }
        let bytes_max = usize::try_from(self.answer_tokens).unwrap_or(usize::MAX);
        let bytes_max = bytes_max.saturating_mul(TOKEN_BYTES);
        let quoted = entries.iter().map(|entry| Quote::of_entry(entry, bytes_max));
        let quotes: Vec<Quote<'_>> = quoted.chain(answer.hits.iter().map(Quote::of_hit)).collect();
        let named = entries.iter().map(|entry| (&entry.id, &entry.version));
        let given = named.chain(answer.hits.iter().map(|hit| (&hit.id, &hit.version)));
        let given = given.map(|(id, version)| GivenEntry {
            entry: KnownEntry { id: id.clone(), version: version.clone() },
            form: GivenForm::Answer,
        });
        let given: Vec<GivenEntry> = given.collect();
        let served = plural::entries(quotes.len() as u64);
        let noted = format!("Served {served}, {} tokens.", answer.tokens);
        let context = Some(quote_frame::quotes(&quotes, opening(&remembered)));
        HookReply { context, noted, given: memory.map(|memory| (memory, given)) }
    }

    /// The entries whose codes a prompt names, except those that may not be served and those that
    /// are already among the hits.
    async fn entries_by_code(
        &self,
        client: &Client,
        codes: &[String],
        answer: &SearchResponse,
        checkout: Option<&str>,
    ) -> Vec<Entry> {
        let mut entries: Vec<Entry> = Vec::new();
        for code in codes {
            if answer.hits.iter().any(|hit| hit.code.starts_with(code)) {
                continue;
            }
            let query = checkout.map(|folder| format!("?checkout={}", escape(folder)));
            let path = format!("/v1/entries/{code}{}", query.unwrap_or_default());
            let Ok(entry) = client.get::<Entry>(&path).await else { continue };
            let is_elsewhere = self.workspace.as_ref().is_some_and(|of| *of != entry.workspace);
            let is_hidden = entry.muted || entry.invalidated;
            let is_shut = matches!(entry.gate.as_str(), "shut" | "held");
            let is_refused = is_shut || entry.status == "rejected";
            let is_known = entries.iter().any(|known| known.id == entry.id)
                || answer.hits.iter().any(|hit| hit.id == entry.id);
            if !(is_elsewhere || is_hidden || is_refused || is_known) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Finishes the session's task with the operator's outcome. Without one, the task is left to
    /// expire, which counts neither for nor against the entries it used.
    async fn finish(
        &self,
        client: &Client,
        session: Option<&HookSession>,
        input: &HookInput,
    ) -> HookReply {
        let Some(session) = session else {
            return HookReply::nothing("The input names no session.");
        };
        let Some(task) = session.task() else {
            return HookReply::nothing("The session has no task.");
        };
        let Some(outcome) = self.verdict else {
            if input.event_name.as_deref() != Some("Stop") {
                session.forget();
            }
            return HookReply::nothing("The task is left without a verdict.");
        };
        let finish = FinishTask::new(outcome);
        let path = format!("/v1/tasks/{task}/finish");
        let finished: Result<FinishedTask, _> =
            client.send_json(Method::POST, &path, &finish).await;
        match finished {
            Ok(done) => {
                session.forget();
                let count = done.credits.len() as u64;
                let credited = plural::counted(count, "entry was", "entries were");
                HookReply::nothing(format!("The task is finished; {credited} credited."))
            }
            Err(error) => HookReply::nothing(failure_reason(&error)),
        }
    }
}

/// The query of a hook.
struct HookQuery<'a> {
    query: &'a str,
    role: Option<&'a str>,
    /// Codes of entries that the prompt names.
    codes: Vec<String>,
}

fn opening(remembered: &SessionContent) -> DisclaimerState {
    if remembered.is_opened { DisclaimerState::Again } else { DisclaimerState::First }
}

async fn ask(client: &Client, search: &Search) -> Result<SearchResponse, ClientError> {
    client.send_json(Method::POST, "/v1/search", search).await
}

/// True if a task is finished, expired or missing. A task whose state is not known in time counts
/// as open.
async fn is_over(client: &Client, task: &str) -> bool {
    let path = format!("/v1/tasks/{task}");
    match tokio::time::timeout(TASK_STATE_TIMEOUT, client.get::<Task>(&path)).await {
        Ok(Ok(found)) => found.state != "open",
        Ok(Err(ClientError::Refused(detail))) => detail.kind == ErrorKind::NotFound,
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Root folder of the checkout that the agent works in.
fn checkout(input: &HookInput) -> Option<String> {
    let root: PathBuf = GitCheckout::root_of(input.cwd.as_deref()?)?;
    root.into_os_string().into_string().ok()
}

/// The start and the end of a long prompt: a question stands before or after what was pasted.
fn start_and_end(prompt: &str) -> Cow<'_, str> {
    if prompt.len() <= PROMPT_BYTES_MAX {
        return prompt.into();
    }
    let half = PROMPT_BYTES_MAX / 2;
    let start = &prompt[..prompt.floor_char_boundary(half)];
    let end = &prompt[prompt.ceil_char_boundary(prompt.len() - half)..];
    format!("{start}\n{end}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_empty_or_the_clients_json() {
        assert_eq!(output("SessionStart", &HookReply::nothing("why")), "");
        let said = HookReply { context: Some("a\n\"b\"".into()), ..HookReply::nothing("") };
        let read: Value = serde_json::from_str(&output("UserPromptSubmit", &said)).unwrap();
        let specific = &read["hookSpecificOutput"];
        assert_eq!(specific["hookEventName"], "UserPromptSubmit");
        assert_eq!(specific["additionalContext"], "a\n\"b\"");
    }

    #[test]
    fn every_event_has_its_own_verb() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::named(event.verb()), Some(event));
        }
        assert_eq!(HookEvent::named("start"), None);
    }

    #[test]
    fn a_long_prompt_keeps_its_start_and_its_end() {
        assert_eq!(start_and_end("short"), "short");
        let pasted = "\u{e9}".repeat(3_000);
        let asked = start_and_end(&pasted);
        assert_eq!(asked.chars().count(), 2_001, "both halves and a line end");
        let prompt = format!("Look at this log.\n{pasted}\nWhy does it fail?");
        let asked = start_and_end(&prompt);
        assert!(asked.starts_with("Look at") && asked.ends_with("\nWhy does it fail?"));
    }
}
