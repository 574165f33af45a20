//! What a client runs at certain moments: knowledge is handed to an agent that did not ask.
//!
//! A hook must never hold an agent up. It has one deadline for all it does; whatever goes wrong, it says
//! nothing, and a line in the home's `hook.log` says why. That line holds no text of a prompt, of an
//! error or of an entry. What is served is quoted (see [`frame`]), never put as an instruction.

pub mod frame;
mod input;
pub mod log;
mod memory;
mod named;
mod session;

pub use input::Input;
pub use memory::{Form, Given};

use crate::api::search::{Known, Search, SearchAnswer};
use crate::api::types::{Entry, FinishTask, FinishedTask, NewTask, Outcome, Task};
use crate::api::{Client, ClientError, Kind, escape};
use crate::query::GitCheckout;
use crate::store::Layout;
use frame::{Opening, Quote};
use hyper::Method;
use memory::{Memory, Remembered};
use named::codes_in;
use serde_json::{Value, json};
use session::Session;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// By which name the node knows the client.
const CLIENT: &str = "claude-code";
/// Bytes of a prompt that are searched for: what it is about stands at its beginning.
const PROMPT_BYTES_MAX: usize = 4_000;
/// Bytes that a token has on average, where a text is cut without counting tokens.
const TOKEN_BYTES: usize = 4;
/// So long it is waited to hear whether a task goes on: that of a long session is long to read.
const LOOK_MAX: Duration = Duration::from_millis(100);

/// A moment at which a client runs a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A session begins or goes on.
    SessionStart,
    /// A person has written something.
    Prompt,
    /// A tool has failed.
    ToolError,
    /// The session ends.
    Stop,
}

impl Event {
    /// All of them, in the order in which they happen.
    pub const ALL: [Self; 4] = [Self::SessionStart, Self::Prompt, Self::ToolError, Self::Stop];

    /// What it is called on the command line.
    pub fn verb(self) -> &'static str {
        match self {
            Self::SessionStart => "session-start",
            Self::Prompt => "prompt",
            Self::ToolError => "tool-error",
            Self::Stop => "stop",
        }
    }

    /// What the client calls it. The end of a session, not of a turn, is where its task ends.
    pub fn client_name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::Prompt => "UserPromptSubmit",
            Self::ToolError => "PostToolUseFailure",
            Self::Stop => "SessionEnd",
        }
    }

    /// The event of this verb.
    pub fn named(verb: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.verb() == verb)
    }
}

/// How a hook was called.
#[derive(Clone, Debug)]
pub struct Call {
    /// The moment.
    pub event: Event,
    /// Only knowledge of this workspace.
    pub workspace: Option<String>,
    /// How the operator holds sessions to have gone.
    pub verdict: Option<Outcome>,
    /// Tokens that a briefing may take.
    pub briefing_tokens: u32,
    /// Tokens that an answer to a prompt or an error may take.
    pub answer_tokens: u32,
    /// The home.
    pub layout: Layout,
    /// The clock.
    pub now: SystemTime,
}

/// What a hook says, and what its log does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// What the agent is given, if anything.
    pub context: Option<String>,
    /// For the log: no text of anybody.
    pub noted: String,
    /// The entries in the context, and where the session remembers them.
    given: Option<(Memory, Vec<Given>)>,
}

impl Said {
    /// Nothing for the agent, and why, for the log.
    pub fn nothing(why: impl Into<String>) -> Self {
        Self { context: None, noted: why.into(), given: None }
    }

    /// Remembers what the session was given; called once the client has it.
    pub fn remember(&self, now: SystemTime) {
        if let Some((memory, given)) = &self.given {
            memory.add(given, now);
        }
    }
}

/// What the client reads: JSON, or nothing.
pub fn output(event_name: &str, said: &Said) -> String {
    let Some(context) = &said.context else { return String::new() };
    let specific = json!({ "hookEventName": event_name, "additionalContext": context });
    format!("{}\n", json!({ "hookSpecificOutput": specific }))
}

/// Why a request came to nothing, for the log.
fn trouble(error: &ClientError) -> String {
    match error {
        ClientError::NoNode { .. } | ClientError::Stopped => "no node is running".into(),
        ClientError::Refused(detail) => {
            format!("the node refused: {}", json!(detail.kind).as_str().unwrap_or("failed"))
        }
        ClientError::Silent { .. } => "the node does not answer".into(),
        ClientError::Closed { .. } => "the socket cannot be opened".into(),
        ClientError::Ended | ClientError::Garbled(_) | ClientError::BrokenOff => {
            "the node's answer cannot be read".into()
        }
    }
}

impl Call {
    /// Does what the moment calls for.
    pub async fn run(&self, client: &Client, input: &Input) -> Said {
        let client = client.clone().named(CLIENT, input.session.as_deref());
        let session = input.session.as_deref().map(|id| Session::new(&self.layout, id));
        match self.event {
            Event::SessionStart => self.brief(&client, session.as_ref(), input).await,
            Event::Prompt => match &input.prompt {
                Some(prompt) => {
                    let asked = Asked { query: cut(prompt), role: None, codes: codes_in(prompt) };
                    self.serve(&client, session.as_ref(), input, asked).await
                }
                None => Said::nothing("there is no prompt"),
            },
            Event::ToolError => match input.error() {
                Some(error) => {
                    let role = Some("debugger");
                    let asked = Asked { query: &error, role, codes: Vec::new() };
                    self.serve(&client, session.as_ref(), input, asked).await
                }
                None => Said::nothing("there is no error"),
            },
            Event::Stop => self.finish(&client, session.as_ref(), input).await,
        }
    }

    /// What the session was given before.
    fn memory(&self, input: &Input) -> Option<Memory> {
        let session = input.session.as_deref()?;
        Some(Memory::new(&self.layout, session, input.agent.as_deref()))
    }

    /// What matters now, and a task for what follows.
    async fn brief(&self, client: &Client, session: Option<&Session>, input: &Input) -> Said {
        let memory = self.memory(input);
        if let Some(memory) = memory.as_ref().filter(|_| input.is_context_new()) {
            memory.forget();
        }
        let mut path = format!("/v1/briefing?budget_tokens={}", self.briefing_tokens);
        let checkout = checkout(input);
        // Tasks of other sessions are nothing to this one.
        let thread = input.session.as_deref().map(session::short);
        let fields = [("workspace", &self.workspace), ("checkout", &checkout), ("thread", &thread)];
        for (key, value) in fields {
            if let Some(value) = value {
                path.push_str(&format!("&{key}={}", escape(value)));
            }
        }
        let (briefing, begun) =
            tokio::join!(client.get::<Value>(&path), self.begin(client, session, input));
        let briefing = match briefing {
            Ok(briefing) => briefing,
            Err(error) => return Said::nothing(format!("{}{begun}", trouble(&error))),
        };
        let remembered = memory.as_ref().map(|memory| memory.read(self.now)).unwrap_or_default();
        let (text, given) = named::new_lines(&briefing, &remembered);
        let is_empty = briefing["sections"].as_array().is_some_and(Vec::is_empty);
        if is_empty || text.trim().is_empty() {
            return Said::nothing(format!("there is nothing to tell{begun}"));
        }
        let noted = format!("briefed with {} characters{begun}", text.chars().count());
        let context = Some(frame::briefing(&text, opening(&remembered)));
        Said { context, noted, given: memory.map(|memory| (memory, given)) }
    }

    /// Begins a task for a session that has none that goes on, and says so for the log.
    async fn begin(
        &self,
        client: &Client,
        session: Option<&Session>,
        input: &Input,
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
            Some(folder) => format!("a session in {}", frame::one_line(&folder, 60)),
            None => "a session".to_owned(),
        };
        let new = NewTask { agent: CLIENT.to_owned(), goal, thread: None, parent: None };
        let begun: Result<Task, _> = client.send_json(Method::POST, "/v1/tasks", &new).await;
        match begun {
            Ok(begun) if session.keep(&begun.task, self.now) => ", task begun",
            Ok(_) => ", task begun and lost",
            Err(_) => "",
        }
    }

    /// What is known about a text, if anything is.
    async fn serve(
        &self,
        client: &Client,
        session: Option<&Session>,
        input: &Input,
        asked: Asked<'_>,
    ) -> Said {
        let memory = self.memory(input);
        let remembered = memory.as_ref().map(|memory| memory.read(self.now)).unwrap_or_default();
        let mut search = Search {
            query: asked.query.to_owned(),
            budget: Some(self.answer_tokens),
            role: asked.role.map(str::to_owned),
            known: remembered.answers().cloned().collect(),
            workspaces: self.workspace.iter().cloned().collect(),
            task: session.and_then(Session::task),
            caller: input.session.as_ref().map(|id| format!("{CLIENT} {}", session::short(id))),
            checkout: checkout(input),
            ..Search::default()
        };
        let mut answer = ask(client, &search).await;
        // A task that is over or forgotten does not keep knowledge from the agent.
        if search.task.is_some()
            && matches!(&answer, Err(ClientError::Refused(detail))
                if matches!(detail.kind, Kind::Invalid | Kind::NotFound))
        {
            search.task = None;
            answer = ask(client, &search).await;
            // Then it was the task: it is not named again, and the next beginning begins another.
            if let (Ok(_), Some(session)) = (&answer, session) {
                session.forget();
            }
        }
        let answer = match answer {
            Err(error) => return Said::nothing(trouble(&error)),
            Ok(answer) => answer,
        };
        let entries = self.named(client, &asked.codes, &answer, search.checkout.as_deref()).await;
        if answer.hits.is_empty() && entries.is_empty() {
            let why = match search.known.is_empty() {
                true => "nothing is relevant",
                false => "nothing is relevant that the session has not been given",
            };
            return Said::nothing(why);
        }
        let bytes_max = usize::try_from(self.answer_tokens).unwrap_or(usize::MAX);
        let bytes_max = bytes_max.saturating_mul(TOKEN_BYTES);
        let quoted = entries.iter().map(|entry| Quote::of_entry(entry, bytes_max));
        let quotes: Vec<Quote<'_>> = quoted.chain(answer.hits.iter().map(Quote::of_hit)).collect();
        let named = entries.iter().map(|entry| (&entry.id, &entry.version));
        let given = named.chain(answer.hits.iter().map(|hit| (&hit.id, &hit.version)));
        let given = given.map(|(id, version)| Given {
            entry: Known { id: id.clone(), version: version.clone() },
            form: Form::Answer,
        });
        let given: Vec<Given> = given.collect();
        let noted = format!("served {}, {} tokens", quotes.len(), answer.tokens);
        let context = Some(frame::quotes(&quotes, opening(&remembered)));
        Said { context, noted, given: memory.map(|memory| (memory, given)) }
    }

    /// The entries that a prompt names by their codes, as far as they may be served and are not among
    /// the hits.
    async fn named(
        &self,
        client: &Client,
        codes: &[String],
        answer: &SearchAnswer,
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
            let is_refused = entry.gate == "shut" || entry.status == "rejected";
            let is_known = entries.iter().any(|known| known.id == entry.id)
                || answer.hits.iter().any(|hit| hit.id == entry.id);
            if !(is_elsewhere || is_hidden || is_refused || is_known) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Ends the session's task, if the operator says how sessions go; otherwise it is left to expire,
    /// which counts for nothing and against nothing.
    async fn finish(&self, client: &Client, session: Option<&Session>, input: &Input) -> Said {
        let Some(session) = session else { return Said::nothing("there is no session") };
        let Some(task) = session.task() else { return Said::nothing("there is no task") };
        let Some(outcome) = self.verdict else {
            if input.event_name.as_deref() != Some("Stop") {
                session.forget();
            }
            return Said::nothing("the task is left without a verdict");
        };
        let finish = FinishTask {
            outcome,
            quality: None,
            used: Vec::new(),
            dismissed: Vec::new(),
            avoided: Vec::new(),
            cost: None,
            rounds: None,
            strategy: None,
        };
        let path = format!("/v1/tasks/{task}/finish");
        let finished: Result<FinishedTask, _> =
            client.send_json(Method::POST, &path, &finish).await;
        match finished {
            Ok(done) => {
                session.forget();
                Said::nothing(format!("the task is finished, {} credited", done.credits.len()))
            }
            Err(error) => Said::nothing(trouble(&error)),
        }
    }
}

/// What a hook searches for.
struct Asked<'a> {
    query: &'a str,
    role: Option<&'a str>,
    /// Codes of entries that are asked for by name.
    codes: Vec<String>,
}

fn opening(remembered: &Remembered) -> Opening {
    if remembered.is_opened { Opening::Again } else { Opening::First }
}

async fn ask(client: &Client, search: &Search) -> Result<SearchAnswer, ClientError> {
    client.send_json(Method::POST, "/v1/search", search).await
}

/// Whether a task was finished, has expired or is not there. One of which nothing is known soon goes on.
async fn is_over(client: &Client, task: &str) -> bool {
    let path = format!("/v1/tasks/{task}");
    match tokio::time::timeout(LOOK_MAX, client.get::<Task>(&path)).await {
        Ok(Ok(found)) => found.state != "open",
        Ok(Err(ClientError::Refused(detail))) => detail.kind == Kind::NotFound,
        Ok(Err(_)) | Err(_) => false,
    }
}

/// The root of the checkout that the agent works in.
fn checkout(input: &Input) -> Option<String> {
    let root: PathBuf = GitCheckout::root_of(input.cwd.as_deref()?)?;
    root.into_os_string().into_string().ok()
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(PROMPT_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_no_bytes_and_words_are_what_the_client_reads() {
        assert_eq!(output("SessionStart", &Said::nothing("why")), "");
        let said = Said { context: Some("a\n\"b\"".into()), ..Said::nothing("") };
        let read: Value = serde_json::from_str(&output("UserPromptSubmit", &said)).unwrap();
        let specific = &read["hookSpecificOutput"];
        assert_eq!(specific["hookEventName"], "UserPromptSubmit");
        assert_eq!(specific["additionalContext"], "a\n\"b\"");
    }

    #[test]
    fn every_event_has_a_verb_of_its_own() {
        for event in Event::ALL {
            assert_eq!(Event::named(event.verb()), Some(event));
        }
        assert_eq!(Event::named("start"), None);
        assert_eq!(cut(&"\u{e9}".repeat(3_000)).chars().count(), 2_000);
    }
}
