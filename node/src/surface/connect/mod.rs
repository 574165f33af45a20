//! Configures the programs that agents run in: what would change, the change itself, and its undoing.
//!
//! Settings of other programs are changed in place, at positions a scanner found; no byte that is not
//! ours is printed anew. What is about to be written is read again first and must say the same as
//! before but for our part. Nothing here asks, prints or looks at the environment.

pub mod clients;
pub mod codex;
pub mod diff;
pub mod edit;
pub mod file;
pub mod hooks;
pub mod jsonc;

use crate::query::shell;
use clients::{Client, ENTRY, Scope};
use codex::Entry;
use file::{Backup, Refusal, Settings};
use jsonc::{Kind, Problem};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What clients, and the system, are told to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// This program, by its absolute path.
    pub path: PathBuf,
    /// The home, unless it is the usual one.
    pub home: Option<PathBuf>,
    /// The configuration file, if one was named.
    pub config: Option<PathBuf>,
}

impl Program {
    /// Every path that clients are told.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = [Some(&self.path), self.home.as_ref(), self.config.as_ref()];
        paths.into_iter().flatten().map(PathBuf::as_path)
    }

    fn flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        for (flag, path) in [("--home", &self.home), ("--config", &self.config)] {
            if let Some(path) = path {
                flags.extend([flag.to_owned(), path.to_string_lossy().into_owned()]);
            }
        }
        flags
    }

    fn entry(&self) -> Entry {
        let args = std::iter::once("mcp".to_owned()).chain(self.flags()).collect();
        Entry { command: self.path.to_string_lossy().into_owned(), args }
    }

    /// The flags as a shell reads them, each after a space.
    fn shell_flags(&self) -> String {
        self.flags().iter().map(|word| format!(" {}", shell::word(word))).collect()
    }

    /// An entry for a client that is not in the table, as many of them want it.
    pub fn snippet(&self) -> Value {
        let Entry { command, args } = self.entry();
        json!({ "mcpServers": { ENTRY: { "command": command, "args": args } } })
    }
}

/// What is configured in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The node, as a server of tools.
    Server,
    /// What is run at certain moments.
    Hooks,
}

/// One file of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The client.
    pub client: Client,
    /// What is configured in it.
    pub part: Part,
    /// The file, as the client names it.
    pub path: PathBuf,
    /// It belongs to a project: others may have written it.
    pub is_shared: bool,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is as it should be.
    Nothing,
    /// It gets another text.
    Write(String),
    /// It becomes what it was, and the copy of that goes.
    Restore {
        /// What it was.
        text: String,
        /// The copy.
        copy: PathBuf,
    },
    /// It goes: it was made for what is taken out.
    Delete,
}

/// What is to be done to a file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which.
    pub target: Target,
    /// What becomes of it.
    pub change: Change,
    settings: Settings,
}

/// How a file stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What it has the client run, if it knows of us.
    pub command: Option<String>,
    /// Whether that program is there and can be run.
    pub is_runnable: bool,
}

impl Target {
    /// The files of a client.
    pub fn of(client: Client, scope: &Scope) -> Vec<Self> {
        let is_shared = matches!(scope, Scope::Project(_));
        let target = |part, path| Self { client, part, path, is_shared };
        let server = client.file(scope).map(|path| target(Part::Server, path));
        let hooks = client.hooks_file(scope).map(|path| target(Part::Hooks, path));
        server.into_iter().chain(hooks).collect()
    }

    /// What connecting would change.
    pub fn connect(&self, program: &Program) -> Result<Plan, Refusal> {
        self.check_name(program)?;
        let settings = Settings::read(&self.path)?;
        let text = settings.text();
        let wanted = self.put(text, program).map_err(|problem| self.refusal(text, &problem))?;
        self.plan(settings, wanted)
    }

    /// Hooks of a program by another name could be written, and never be found again to be changed or
    /// taken out.
    fn check_name(&self, program: &Program) -> Result<(), Refusal> {
        let path = program.path.to_string_lossy();
        if self.part == Part::Server || hooks::is_known_again(&path) {
            return Ok(());
        }
        let what = format!(
            "hooks are known again by the name of the program they run, which must begin with `{}`; \
             this one is {path}: rename the file, and run this again",
            hooks::NAME
        );
        Err(Refusal::new(&self.path, what))
    }

    /// What undoing would change.
    pub fn undo(&self) -> Result<Plan, Refusal> {
        let settings = Settings::read(&self.path)?;
        let text = settings.text().to_owned();
        let refused = |problem: Problem| self.refusal(&text, &problem);
        // Copies from before we were in it, the newest first.
        let read = |path: PathBuf| Some((fs::read_to_string(&path).ok()?, path));
        let copies = settings.backups().into_iter().rev().filter_map(read);
        let copies: Vec<(String, PathBuf)> = copies.filter(|(copy, _)| !self.is_in(copy)).collect();
        // Nothing else changed since: every byte comes back, white space included.
        let is_origin = |copy: &str| self.put_again(copy, &text).is_some_and(|put| put == text);
        if let Some((copy, path)) = copies.iter().find(|(copy, _)| is_origin(copy)) {
            settings.check_writable()?;
            let change = Change::Restore { text: copy.clone(), copy: path.clone() };
            return Ok(Plan { target: self.clone(), change, settings });
        }
        if settings.text.is_some() && is_origin("") {
            return Ok(Plan { target: self.clone(), change: Change::Delete, settings });
        }
        let before = copies.first().map(|(copy, _)| copy.as_str());
        let without = match (self.part, self.client) {
            (Part::Hooks, _) => hooks::remove(&text, before),
            (Part::Server, Client::Codex) => codex::remove(&text),
            (Part::Server, client) => edit::remove(&text, &[client.servers_key(), ENTRY], before),
        };
        let without = without.map_err(refused)?.unwrap_or(text);
        self.plan(settings, without)
    }

    /// How it stands.
    pub fn standing(&self) -> Result<Standing, Refusal> {
        let settings = Settings::read(&self.path)?;
        let text = settings.text();
        let refused = |problem: Problem| self.refusal(text, &problem);
        let program = match self.part {
            Part::Server => self.found(text).map_err(refused)?.map(|entry| entry.command),
            Part::Hooks => {
                let found = hooks::found(text).map_err(refused)?;
                let is_whole = found.len() >= super::hook::Event::ALL.len();
                found.first().filter(|_| is_whole).map(|command| first_word(command))
            }
        };
        let is_runnable = program.as_deref().is_some_and(|program| is_runnable(Path::new(program)));
        Ok(Standing { command: program, is_runnable })
    }

    fn put(&self, text: &str, program: &Program) -> Result<String, Problem> {
        match self.part {
            Part::Hooks => {
                hooks::put(text, &program.path.to_string_lossy(), &program.shell_flags())
            }
            Part::Server => {
                let mut entry = program.entry();
                // What came with a project may be anybody's, and is not handed on to a node.
                if self.is_shared {
                    self.check_members(text)?;
                } else if let Some(old) = self.found(text)? {
                    entry.args.extend(own_args(&old.args));
                }
                self.put_entry(text, &entry)
            }
        }
    }

    fn put_entry(&self, text: &str, entry: &Entry) -> Result<String, Problem> {
        match self.client {
            Client::Codex => codex::put(text, entry),
            client => {
                let literal = client.entry(&entry.command, &entry.args);
                edit::put(text, &[client.servers_key(), ENTRY], &literal)
            }
        }
    }

    /// Refuses an entry that says more than what is run, such as variables for it: what we write
    /// would be run with that, too.
    fn check_members(&self, text: &str) -> Result<(), Problem> {
        let members = match self.client {
            Client::Codex => codex::members(text)?,
            client => {
                let root = jsonc::parse(text)?;
                let entry = match &root {
                    Some(root) => edit::find(root, &[client.servers_key(), ENTRY])?,
                    None => None,
                };
                // What is no object is refused where it is to be changed.
                let entry = entry.filter(|entry| matches!(entry.kind, Kind::Object(_)));
                let items = entry.into_iter().flat_map(|entry| entry.items());
                // Some clients write an empty one of their own accord.
                let says = items
                    .filter(|item| !matches!(&item.value.kind, Kind::Object(of) if of.is_empty()));
                says.map(|item| (item.key.clone(), item.start)).collect()
            }
        };
        let is_more = |key: &str| !["type", "command", "args"].contains(&key);
        match members.into_iter().find(|(key, _)| is_more(key)) {
            None => Ok(()),
            Some((key, at)) => {
                let told = format!(
                    "`{ENTRY}` has `{key}` here, which in the file of a project may be anybody's \
                     and is not handed on to a node: remove it"
                );
                Err(Problem::new(at, told))
            }
        }
    }

    /// Whether a text knows of us, as far as it can be read.
    fn is_in(&self, text: &str) -> bool {
        match self.part {
            Part::Server => !matches!(self.found(text), Ok(None)),
            Part::Hooks => !hooks::found(text).is_ok_and(|found| found.is_empty()),
        }
    }

    /// A copy with the entry that a text has now.
    fn put_again(&self, copy: &str, text: &str) -> Option<String> {
        match self.part {
            Part::Server => self.put_entry(copy, &self.found(text).ok()??).ok(),
            Part::Hooks => {
                let found = hooks::found(text).ok()?;
                let command = found.first()?;
                let flags = command.split_once(" hook session-start")?.1;
                hooks::put(copy, &first_word(command), flags).ok()
            }
        }
    }

    /// The entry that a text has.
    fn found(&self, text: &str) -> Result<Option<Entry>, Problem> {
        if self.client == Client::Codex {
            return codex::found(text);
        }
        let Some(root) = jsonc::parse(text)? else { return Ok(None) };
        let Some(entry) = edit::find(&root, &[self.client.servers_key(), ENTRY])? else {
            return Ok(None);
        };
        let entry = entry.to_json(text);
        let args = entry["args"].as_array().into_iter().flatten();
        let args = args.filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
        let command = entry["command"].as_str().unwrap_or_default().to_owned();
        Ok(Some(Entry { command, args }))
    }

    fn plan(&self, settings: Settings, wanted: String) -> Result<Plan, Refusal> {
        let text = settings.text();
        let is_same = wanted == text;
        if !is_same {
            settings.check_writable()?;
            if self.stripped(text) != self.stripped(&wanted) {
                let told = "it cannot be changed without touching what is not ours: do it by hand";
                return Err(self.refusal(text, &Problem::new(0, told)));
            }
        }
        let change = if is_same { Change::Nothing } else { Change::Write(wanted) };
        Ok(Plan { target: self.clone(), change, settings })
    }

    /// What a text says without our part; nothing if it cannot be read.
    fn stripped(&self, text: &str) -> Option<Value> {
        let key = self.client.servers_key();
        let mut value = match (self.part, self.client) {
            (Part::Server, Client::Codex) => serde_json::to_value(codex::table(text).ok()?).ok()?,
            _ => match jsonc::parse(text).ok()? {
                Some(root) => root.to_json(text),
                None => json!({}),
            },
        };
        if self.part == Part::Hooks {
            return Some(hooks::stripped(value));
        }
        let document = value.as_object_mut()?;
        if let Some(servers) = document.get_mut(key).and_then(Value::as_object_mut) {
            servers.remove(ENTRY);
            if servers.is_empty() {
                document.remove(key);
            }
        }
        Some(value)
    }

    fn refusal(&self, text: &str, problem: &Problem) -> Refusal {
        Refusal::at(&self.path, text, problem)
    }
}

impl Plan {
    /// What it changes, line by line; secrets that stand near are not shown.
    pub fn diff(&self) -> String {
        let new = match &self.change {
            Change::Nothing => return String::new(),
            Change::Write(text) | Change::Restore { text, .. } => text.as_str(),
            Change::Delete => "",
        };
        let name = self.target.path.display().to_string();
        crate::query::redacted(&diff::unified(&name, self.settings.text(), new))
    }

    /// Does it, and returns the copy that was kept of what was there.
    pub fn apply(&self) -> Result<Option<PathBuf>, Refusal> {
        match &self.change {
            Change::Nothing => Ok(None),
            Change::Write(text) => self.settings.replace(text, Backup::Keep),
            Change::Restore { text, copy } => {
                self.settings.replace(text, Backup::Skip)?;
                // It is the file's own text now; one that stays does no harm.
                let _ = fs::remove_file(copy);
                Ok(None)
            }
            Change::Delete => self.settings.delete().map(|()| None),
        }
    }
}

fn is_runnable(program: &Path) -> bool {
    let metadata = fs::metadata(program);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The program of a shell's command line, without its quotes.
fn first_word(command: &str) -> String {
    let end = command.find(" hook ").unwrap_or(command.len());
    let word = &command[..end];
    match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
        Some(word) => word.replace("'\\''", "'"),
        None => word.to_owned(),
    }
}

/// What somebody has added to the arguments that we write. The verb may stand after flags.
fn own_args(args: &[String]) -> Vec<String> {
    let (mut kept, mut rest) = (Vec::new(), args.iter());
    while let Some(word) = rest.next() {
        if word == "--home" || word == "--config" {
            rest.next();
        } else if word != "mcp" && !hooks::is_joined_flag(word) {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(folder: &Path, client: Client, part: Part) -> Target {
        Target { client, part, path: folder.join("settings"), is_shared: false }
    }

    fn program() -> Program {
        Program { path: "/opt/it's here/klnode".into(), home: Some("/h".into()), config: None }
    }

    #[test]
    fn every_client_is_connected_once_and_every_byte_comes_back() {
        let jsonc = "// first\n{\n\t\"a\": 1, // one\n}\n";
        for (client, _, _) in Client::ALL {
            let text = if client == Client::Codex { "a = 1 # one\n" } else { jsonc };
            for part in [Part::Server, Part::Hooks] {
                if part == Part::Hooks && client != Client::ClaudeCode {
                    continue;
                }
                let folder = tempfile::tempdir().unwrap();
                let target = target(folder.path(), client, part);
                fs::write(&target.path, text).unwrap();
                let plan = target.connect(&program()).unwrap();
                assert!(plan.diff().contains("\n+"), "{client:?}");
                assert!(plan.apply().unwrap().is_some());
                assert_eq!(target.connect(&program()).unwrap().change, Change::Nothing);
                let standing = target.standing().unwrap();
                assert_eq!(standing.command.as_deref(), Some("/opt/it's here/klnode"));
                assert!(!standing.is_runnable);
                target.undo().unwrap().apply().unwrap();
                assert_eq!(fs::read_to_string(&target.path).unwrap(), text, "{client:?}");
                assert_eq!(target.undo().unwrap().change, Change::Nothing);
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no copy is left");
            }
        }
    }

    #[test]
    fn a_file_that_was_made_for_the_entry_goes_with_it() {
        for (client, part) in [
            (Client::Zed, Part::Server),
            (Client::Codex, Part::Server),
            (Client::ClaudeCode, Part::Hooks),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let target = target(folder.path(), client, part);
            assert_eq!(target.undo().unwrap().change, Change::Nothing);
            target.connect(&program()).unwrap().apply().unwrap();
            assert!(target.path.exists());
            target.undo().unwrap().apply().unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{client:?}");
        }
    }

    #[test]
    fn hooks_of_a_program_by_another_name_are_refused_for_that() {
        let folder = tempfile::tempdir().unwrap();
        let renamed = Program { path: "/opt/klnode/memory".into(), ..program() };
        let hooks = target(folder.path(), Client::ClaudeCode, Part::Hooks);
        let told = hooks.connect(&renamed).unwrap_err().to_string();
        assert!(
            told.contains("must begin with `klnode`; this one is /opt/klnode/memory"),
            "{told}"
        );
        assert!(!told.contains("what is not ours"), "{told}");
        assert!(!hooks.path.exists());
        let suffixed = Program { path: "/opt/memory/klnode-next".into(), ..program() };
        assert!(hooks.connect(&suffixed).is_ok());
        let server = target(folder.path(), Client::ClaudeCode, Part::Server);
        assert!(server.connect(&renamed).is_ok(), "a server is known by its key");
    }

    #[test]
    fn what_was_connected_twice_is_undone_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), Client::Cursor, Part::Server);
        fs::write(&target.path, "{}").unwrap();
        for path in ["/old/klnode", "/new/klnode"] {
            let program = Program { path: path.into(), ..program() };
            target.connect(&program).unwrap().apply().unwrap();
        }
        target.undo().unwrap().apply().unwrap();
        assert_eq!(fs::read_to_string(&target.path).unwrap(), "{}");
    }

    #[test]
    fn whatever_stands_around_the_verb_it_is_written_once_and_first() {
        for (client, _, _) in Client::ALL {
            for args in [
                r#"["--home", "/srv/k", "mcp", "--start"]"#,
                r#"["--home=/srv/k", "--config=/c", "mcp", "--start"]"#,
                r#"["mcp", "--home", "/h", "--start", "mcp"]"#,
            ] {
                let folder = tempfile::tempdir().unwrap();
                let target = target(folder.path(), client, Part::Server);
                let key = client.servers_key();
                let text = match client {
                    Client::Codex => {
                        format!("[{key}.klnode]\ncommand = \"/old/klnode\"\nargs = {args}\n")
                    }
                    _ => format!(
                        r#"{{"{key}": {{"klnode": {{"command": "/old/klnode", "args": {args}}}}}}}"#
                    ),
                };
                fs::write(&target.path, text).unwrap();
                target.connect(&program()).unwrap().apply().unwrap();
                let written = fs::read_to_string(&target.path).unwrap();
                let entry = target.found(&written).unwrap().expect("it is there");
                assert_eq!(entry.args, ["mcp", "--home", "/h", "--start"], "{client:?}: {args}");
                assert_eq!(target.connect(&program()).unwrap().change, Change::Nothing);
            }
        }
    }

    #[test]
    fn what_came_with_a_project_is_not_handed_on_to_a_node() {
        for (client, text) in [
            (
                Client::ClaudeCode,
                r#"{"mcpServers": {"klnode": {"command": "x", "env": {"LD_PRELOAD": "./x.so"}}}}"#,
            ),
            (
                Client::Codex,
                "[mcp_servers.klnode]\ncommand = \"x\"\nargs = [\"mcp\"]\n\n\
                 [mcp_servers.klnode.env]\nLD_PRELOAD = \"./x.so\"\n",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let own = target(folder.path(), client, Part::Server);
            let shared = Target { is_shared: true, ..own.clone() };
            fs::write(&own.path, text).unwrap();
            let told = shared.connect(&program()).unwrap_err().to_string();
            assert!(told.contains("`klnode` has `env` here"), "{told}");
            own.connect(&program()).unwrap().apply().unwrap();
            let written = fs::read_to_string(&own.path).unwrap();
            assert!(written.contains("LD_PRELOAD"), "what is one's own stays: {written}");
        }
        let folder = tempfile::tempdir().unwrap();
        let own = target(folder.path(), Client::ClaudeCode, Part::Server);
        let shared = Target { is_shared: true, ..own };
        let theirs = r#"{"mcpServers": {"klnode": {"type": "stdio", "command": "x", "args": ["y"], "env": {}}}}"#;
        fs::write(&shared.path, theirs).unwrap();
        shared.connect(&program()).unwrap().apply().unwrap();
        let written = fs::read_to_string(&shared.path).unwrap();
        assert_eq!(shared.found(&written).unwrap(), Some(program().entry()));
    }

    #[test]
    fn what_its_owner_wrote_since_stays_when_it_is_undone() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), Client::ClaudeCode, Part::Server);
        fs::write(&target.path, "{\"starts\": 1}").unwrap();
        target.connect(&program()).unwrap().apply().unwrap();
        let text = fs::read_to_string(&target.path).unwrap();
        fs::write(&target.path, text.replace("\"starts\": 1", "\"starts\": 2")).unwrap();
        target.undo().unwrap().apply().unwrap();
        assert_eq!(fs::read_to_string(&target.path).unwrap(), "{\"starts\": 2}");
    }
}
