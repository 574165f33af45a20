//! Connects klnode to the programs that run agents: plans a change to their settings, applies it
//! and undoes it.
//!
//! Settings of other programs are edited in place at positions a parser found, so bytes that do not
//! belong to klnode stay as they are. Before a file is written, its new text is parsed and must
//! equal the old document except for klnode's part. This module does not prompt, print or read
//! environment variables.

pub mod claude_hooks;
pub mod clients;
pub mod codex_toml;
pub mod diff;
pub mod jsonc;
pub mod jsonc_edit;
pub mod settings_file;

use clients::{AgentClient, ConfigScope, ENTRY};
use codex_toml::ServerEntry;
use jsonc::{JsonError, JsonKind};
use klnode_text::shell_quote;
use serde_json::{Value, json};
use settings_file::{BackupPolicy, ClientSettings, SettingsError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The klnode command that clients, hooks and the service manager run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Absolute path of the klnode executable.
    pub path: PathBuf,
    /// Value of `--home`; `None` for the default home.
    pub home: Option<PathBuf>,
    /// Value of `--config`; `None` if the user named no configuration file.
    pub config: Option<PathBuf>,
}

impl Program {
    /// Every path that is written into client settings.
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

    fn entry(&self) -> ServerEntry {
        let args = std::iter::once("mcp".to_owned()).chain(self.flags()).collect();
        ServerEntry { command: self.path.to_string_lossy().into_owned(), args }
    }

    /// The flags quoted for a shell, each preceded by a space.
    fn shell_flags(&self) -> String {
        self.flags().iter().map(|word| format!(" {}", shell_quote::word(word))).collect()
    }

    /// The entry that most MCP clients understand, for a client klnode does not support by name.
    pub fn snippet(&self) -> Value {
        let ServerEntry { command, args } = self.entry();
        json!({ "mcpServers": { ENTRY: { "command": command, "args": args } } })
    }
}

/// The part of klnode that a settings file configures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigPart {
    /// klnode as an MCP server.
    Server,
    /// klnode's hook commands.
    Hooks,
}

/// One settings file of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The client that reads the file.
    pub client: AgentClient,
    /// Whether the file configures the server or the hooks.
    pub part: ConfigPart,
    /// Path of the file before symbolic links are resolved.
    pub path: PathBuf,
    /// True for a file in a project folder, which other people may have written.
    pub is_shared: bool,
}

/// The change that a plan makes to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// The file is already as wanted.
    Nothing,
    /// Replace the content with this text and keep a backup.
    Write(String),
    /// Restore the content from before klnode was added and delete its backup.
    Restore {
        /// The original content.
        text: String,
        /// Path of the backup.
        copy: PathBuf,
    },
    /// Delete the file, because klnode created it.
    Delete,
}

/// A planned change to one file.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file to change.
    pub target: Target,
    /// The change that [`Plan::apply`] makes.
    pub change: FileChange,
    settings: ClientSettings,
}

/// Whether a settings file runs klnode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// The program the file runs as klnode; `None` if klnode is not configured in it, or only in
    /// part.
    pub command: Option<String>,
    /// True if that program exists and is executable.
    pub is_runnable: bool,
}

impl Target {
    /// The settings files of a client in a scope.
    pub fn of(client: AgentClient, scope: &ConfigScope) -> Vec<Self> {
        let is_shared = matches!(scope, ConfigScope::Project(_));
        let target = |part, path| Self { client, part, path, is_shared };
        let server = client.file(scope).map(|path| target(ConfigPart::Server, path));
        let hooks = client.hooks_file(scope).map(|path| target(ConfigPart::Hooks, path));
        server.into_iter().chain(hooks).collect()
    }

    /// Plans the change that connects klnode.
    pub fn connect(&self, program: &Program) -> Result<Plan, SettingsError> {
        self.check_name(program)?;
        let settings = ClientSettings::read(&self.path)?;
        let text = settings.text();
        let wanted = self.put(text, program).map_err(|problem| self.refusal(text, &problem))?;
        self.plan(settings, wanted)
    }

    /// Refuses hooks for a program with an unexpected file name: klnode would not recognise them
    /// later and could neither update nor remove them.
    fn check_name(&self, program: &Program) -> Result<(), SettingsError> {
        let path = program.path.to_string_lossy();
        if self.part == ConfigPart::Server || claude_hooks::is_recognised_program(&path) {
            return Ok(());
        }
        let what = format!(
            "klnode recognises its hooks by the name of the program, which must begin with `{}`. \
             This program is {path}. Rename the file and run the command again.",
            claude_hooks::NAME
        );
        Err(SettingsError::new(&self.path, what))
    }

    /// Plans the change that removes klnode.
    pub fn undo(&self) -> Result<Plan, SettingsError> {
        let settings = ClientSettings::read(&self.path)?;
        let text = settings.text().to_owned();
        let refused = |problem: JsonError| self.refusal(&text, &problem);
        // Backups from before klnode was added, newest first.
        let read = |path: PathBuf| Some((fs::read_to_string(&path).ok()?, path));
        let copies = settings.backups().into_iter().rev().filter_map(read);
        let copies: Vec<(String, PathBuf)> = copies.filter(|(copy, _)| !self.is_in(copy)).collect();
        // If nothing else changed since, restore the backup, so every byte comes back, white space
        // included.
        let is_origin = |copy: &str| self.reapply_entry(copy, &text).is_some_and(|put| put == text);
        if let Some((copy, path)) = copies.iter().find(|(copy, _)| is_origin(copy)) {
            settings.check_writable()?;
            let change = FileChange::Restore { text: copy.clone(), copy: path.clone() };
            return Ok(Plan { target: self.clone(), change, settings });
        }
        if settings.text.is_some() && is_origin("") {
            return Ok(Plan { target: self.clone(), change: FileChange::Delete, settings });
        }
        let before = copies.first().map(|(copy, _)| copy.as_str());
        let without = match (self.part, self.client) {
            (ConfigPart::Hooks, _) => claude_hooks::remove(&text, before),
            (ConfigPart::Server, AgentClient::Codex) => codex_toml::remove(&text),
            (ConfigPart::Server, client) => {
                jsonc_edit::remove(&text, &[client.servers_key(), ENTRY], before)
            }
        };
        let without = without.map_err(refused)?.unwrap_or(text);
        self.plan(settings, without)
    }

    /// Reads the file and reports whether it runs klnode.
    pub fn standing(&self) -> Result<FileState, SettingsError> {
        let settings = ClientSettings::read(&self.path)?;
        let text = settings.text();
        let refused = |problem: JsonError| self.refusal(text, &problem);
        let program = match self.part {
            ConfigPart::Server => self.found(text).map_err(refused)?.map(|entry| entry.command),
            ConfigPart::Hooks => {
                let found = claude_hooks::found(text).map_err(refused)?;
                let is_whole = found.len() >= super::hooks::HookEvent::ALL.len();
                found.first().filter(|_| is_whole).map(|command| first_word(command))
            }
        };
        let is_runnable = program.as_deref().is_some_and(|program| is_runnable(Path::new(program)));
        Ok(FileState { command: program, is_runnable })
    }

    fn put(&self, text: &str, program: &Program) -> Result<String, JsonError> {
        match self.part {
            ConfigPart::Hooks => {
                claude_hooks::put(text, &program.path.to_string_lossy(), &program.shell_flags())
            }
            ConfigPart::Server => {
                let mut entry = program.entry();
                // Arguments in a project's file may come from anyone and are not passed to a node.
                if self.is_shared {
                    self.check_members(text)?;
                } else if let Some(old) = self.found(text)? {
                    entry.args.extend(added_args(&old.args));
                }
                self.put_entry(text, &entry)
            }
        }
    }

    fn put_entry(&self, text: &str, entry: &ServerEntry) -> Result<String, JsonError> {
        match self.client {
            AgentClient::Codex => codex_toml::put(text, entry),
            client => {
                let literal = client.entry(&entry.command, &entry.args);
                jsonc_edit::put(text, &[client.servers_key(), ENTRY], &literal)
            }
        }
    }

    /// Refuses an entry in a project's file with more than a type, a command and arguments, such as
    /// environment variables: klnode would run with them.
    fn check_members(&self, text: &str) -> Result<(), JsonError> {
        let members = match self.client {
            AgentClient::Codex => codex_toml::members(text)?,
            client => {
                let root = jsonc::parse(text)?;
                let entry = match &root {
                    Some(root) => jsonc_edit::find(root, &[client.servers_key(), ENTRY])?,
                    None => None,
                };
                // An entry that is not an object is refused when it is edited.
                let entry = entry.filter(|entry| matches!(entry.kind, JsonKind::Object(_)));
                let items = entry.into_iter().flat_map(|entry| entry.items());
                // Some clients write empty objects themselves.
                let says = items.filter(
                    |item| !matches!(&item.value.kind, JsonKind::Object(of) if of.is_empty()),
                );
                says.map(|item| (item.key.clone(), item.start)).collect()
            }
        };
        let is_more = |key: &str| !["type", "command", "args"].contains(&key);
        match members.into_iter().find(|(key, _)| is_more(key)) {
            None => Ok(()),
            Some((key, at)) => {
                let message = format!(
                    "`{ENTRY}` has `{key}` here. Anyone may have written this project file, so \
                     klnode does not run with it. Remove `{key}`."
                );
                Err(JsonError::new(at, message))
            }
        }
    }

    /// True if klnode is configured in the text, or if the text does not parse.
    fn is_in(&self, text: &str) -> bool {
        match self.part {
            ConfigPart::Server => !matches!(self.found(text), Ok(None)),
            ConfigPart::Hooks => !claude_hooks::found(text).is_ok_and(|found| found.is_empty()),
        }
    }

    /// Adds the entry that `text` has to `copy`, an older version of the file.
    fn reapply_entry(&self, copy: &str, text: &str) -> Option<String> {
        match self.part {
            ConfigPart::Server => self.put_entry(copy, &self.found(text).ok()??).ok(),
            ConfigPart::Hooks => {
                let found = claude_hooks::found(text).ok()?;
                let command = found.first()?;
                let flags = command.split_once(" hook session-start")?.1;
                claude_hooks::put(copy, &first_word(command), flags).ok()
            }
        }
    }

    /// klnode's server entry in the text.
    fn found(&self, text: &str) -> Result<Option<ServerEntry>, JsonError> {
        if self.client == AgentClient::Codex {
            return codex_toml::found(text);
        }
        let Some(root) = jsonc::parse(text)? else { return Ok(None) };
        let Some(entry) = jsonc_edit::find(&root, &[self.client.servers_key(), ENTRY])? else {
            return Ok(None);
        };
        let entry = entry.to_json(text);
        let args = entry["args"].as_array().into_iter().flatten();
        let args = args.filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
        let command = entry["command"].as_str().unwrap_or_default().to_owned();
        Ok(Some(ServerEntry { command, args }))
    }

    fn plan(&self, settings: ClientSettings, wanted: String) -> Result<Plan, SettingsError> {
        let text = settings.text();
        let is_same = wanted == text;
        if !is_same {
            settings.check_writable()?;
            if self.stripped(text) != self.stripped(&wanted) {
                let message = "The file cannot be changed without touching other settings. \
                               Change it by hand.";
                return Err(self.refusal(text, &JsonError::new(0, message)));
            }
        }
        let change = if is_same { FileChange::Nothing } else { FileChange::Write(wanted) };
        Ok(Plan { target: self.clone(), change, settings })
    }

    /// The parsed text without klnode's part; `None` if it does not parse.
    fn stripped(&self, text: &str) -> Option<Value> {
        let key = self.client.servers_key();
        let mut value = match (self.part, self.client) {
            (ConfigPart::Server, AgentClient::Codex) => {
                serde_json::to_value(codex_toml::table(text).ok()?).ok()?
            }
            _ => match jsonc::parse(text).ok()? {
                Some(root) => root.to_json(text),
                None => json!({}),
            },
        };
        if self.part == ConfigPart::Hooks {
            return Some(claude_hooks::stripped(value));
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

    fn refusal(&self, text: &str, problem: &JsonError) -> SettingsError {
        SettingsError::at(&self.path, text, problem)
    }
}

impl Plan {
    /// A unified diff of the change, with secrets in neighbouring lines redacted.
    pub fn diff(&self) -> String {
        let new = match &self.change {
            FileChange::Nothing => return String::new(),
            FileChange::Write(text) | FileChange::Restore { text, .. } => text.as_str(),
            FileChange::Delete => "",
        };
        let name = self.target.path.display().to_string();
        klnode_scoring::content_scan::redact_secrets(&diff::unified(
            &name,
            self.settings.text(),
            new,
        ))
    }

    /// Applies the plan and returns the path of the backup, if one was kept.
    pub fn apply(&self) -> Result<Option<PathBuf>, SettingsError> {
        match &self.change {
            FileChange::Nothing => Ok(None),
            FileChange::Write(text) => self.settings.replace(text, BackupPolicy::Keep),
            FileChange::Restore { text, copy } => {
                self.settings.replace(text, BackupPolicy::Skip)?;
                // The backup now equals the file; a leftover copy is harmless.
                let _ = fs::remove_file(copy);
                Ok(None)
            }
            FileChange::Delete => self.settings.delete().map(|()| None),
        }
    }
}

fn is_runnable(program: &Path) -> bool {
    let metadata = fs::metadata(program);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The program of a hook command line, without its quotes.
fn first_word(command: &str) -> String {
    let end = command.find(" hook ").unwrap_or(command.len());
    let word = &command[..end];
    match word.strip_prefix('\'').and_then(|word| word.strip_suffix('\'')) {
        Some(word) => word.replace("'\\''", "'"),
        None => word.to_owned(),
    }
}

/// Arguments that the user added to those klnode writes. The verb may follow flags.
fn added_args(args: &[String]) -> Vec<String> {
    let (mut kept, mut rest) = (Vec::new(), args.iter());
    while let Some(word) = rest.next() {
        if word == "--home" || word == "--config" {
            rest.next();
        } else if word != "mcp" && !claude_hooks::is_joined_flag(word) {
            kept.push(word.clone());
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(folder: &Path, client: AgentClient, part: ConfigPart) -> Target {
        Target { client, part, path: folder.join("settings"), is_shared: false }
    }

    fn program() -> Program {
        Program { path: "/opt/it's here/klnode".into(), home: Some("/h".into()), config: None }
    }

    #[test]
    fn connecting_and_undoing_restores_every_byte() {
        let jsonc = "// first\n{\n\t\"a\": 1, // one\n}\n";
        for (client, _, _) in AgentClient::ALL {
            let text = if client == AgentClient::Codex { "a = 1 # one\n" } else { jsonc };
            for part in [ConfigPart::Server, ConfigPart::Hooks] {
                if part == ConfigPart::Hooks && client != AgentClient::ClaudeCode {
                    continue;
                }
                let folder = tempfile::tempdir().unwrap();
                let target = target(folder.path(), client, part);
                fs::write(&target.path, text).unwrap();
                let plan = target.connect(&program()).unwrap();
                assert!(plan.diff().contains("\n+"), "{client:?}");
                assert!(plan.apply().unwrap().is_some());
                assert_eq!(target.connect(&program()).unwrap().change, FileChange::Nothing);
                let standing = target.standing().unwrap();
                assert_eq!(standing.command.as_deref(), Some("/opt/it's here/klnode"));
                assert!(!standing.is_runnable);
                target.undo().unwrap().apply().unwrap();
                assert_eq!(fs::read_to_string(&target.path).unwrap(), text, "{client:?}");
                assert_eq!(target.undo().unwrap().change, FileChange::Nothing);
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no copy is left");
            }
        }
    }

    #[test]
    fn a_file_that_klnode_created_is_deleted_on_undo() {
        for (client, part) in [
            (AgentClient::Zed, ConfigPart::Server),
            (AgentClient::Codex, ConfigPart::Server),
            (AgentClient::ClaudeCode, ConfigPart::Hooks),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let target = target(folder.path(), client, part);
            assert_eq!(target.undo().unwrap().change, FileChange::Nothing);
            target.connect(&program()).unwrap().apply().unwrap();
            assert!(target.path.exists());
            target.undo().unwrap().apply().unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{client:?}");
        }
    }

    #[test]
    fn hooks_of_a_renamed_program_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let renamed = Program { path: "/opt/klnode/memory".into(), ..program() };
        let hooks = target(folder.path(), AgentClient::ClaudeCode, ConfigPart::Hooks);
        let message = hooks.connect(&renamed).unwrap_err().to_string();
        assert!(
            message.contains("must begin with `klnode`. This program is /opt/klnode/memory."),
            "{message}"
        );
        assert!(!message.contains("touching other settings"), "{message}");
        assert!(!hooks.path.exists());
        let suffixed = Program { path: "/opt/memory/klnode-next".into(), ..program() };
        assert!(hooks.connect(&suffixed).is_ok());
        let server = target(folder.path(), AgentClient::ClaudeCode, ConfigPart::Server);
        assert!(server.connect(&renamed).is_ok(), "a server is known by its key");
    }

    #[test]
    fn one_undo_reverts_two_connects() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), AgentClient::Cursor, ConfigPart::Server);
        fs::write(&target.path, "{}").unwrap();
        for path in ["/old/klnode", "/new/klnode"] {
            let program = Program { path: path.into(), ..program() };
            target.connect(&program).unwrap().apply().unwrap();
        }
        target.undo().unwrap().apply().unwrap();
        assert_eq!(fs::read_to_string(&target.path).unwrap(), "{}");
    }

    #[test]
    fn the_verb_is_written_once_and_first() {
        for (client, _, _) in AgentClient::ALL {
            for args in [
                r#"["--home", "/srv/k", "mcp", "--start"]"#,
                r#"["--home=/srv/k", "--config=/c", "mcp", "--start"]"#,
                r#"["mcp", "--home", "/h", "--start", "mcp"]"#,
            ] {
                let folder = tempfile::tempdir().unwrap();
                let target = target(folder.path(), client, ConfigPart::Server);
                let key = client.servers_key();
                let text = match client {
                    AgentClient::Codex => {
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
                assert_eq!(target.connect(&program()).unwrap().change, FileChange::Nothing);
            }
        }
    }

    #[test]
    fn variables_in_a_project_file_are_refused() {
        for (client, text) in [
            (
                AgentClient::ClaudeCode,
                r#"{"mcpServers": {"klnode": {"command": "x", "env": {"LD_PRELOAD": "./x.so"}}}}"#,
            ),
            (
                AgentClient::Codex,
                "[mcp_servers.klnode]\ncommand = \"x\"\nargs = [\"mcp\"]\n\n\
                 [mcp_servers.klnode.env]\nLD_PRELOAD = \"./x.so\"\n",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let own = target(folder.path(), client, ConfigPart::Server);
            let shared = Target { is_shared: true, ..own.clone() };
            fs::write(&own.path, text).unwrap();
            let message = shared.connect(&program()).unwrap_err().to_string();
            assert!(message.contains("`klnode` has `env` here"), "{message}");
            own.connect(&program()).unwrap().apply().unwrap();
            let written = fs::read_to_string(&own.path).unwrap();
            assert!(written.contains("LD_PRELOAD"), "the user's own variables stay: {written}");
        }
        let folder = tempfile::tempdir().unwrap();
        let own = target(folder.path(), AgentClient::ClaudeCode, ConfigPart::Server);
        let shared = Target { is_shared: true, ..own };
        let theirs = r#"{"mcpServers": {"klnode": {"type": "stdio", "command": "x", "args": ["y"], "env": {}}}}"#;
        fs::write(&shared.path, theirs).unwrap();
        shared.connect(&program()).unwrap().apply().unwrap();
        let written = fs::read_to_string(&shared.path).unwrap();
        assert_eq!(shared.found(&written).unwrap(), Some(program().entry()));
    }

    #[test]
    fn later_changes_by_the_user_survive_undo() {
        let folder = tempfile::tempdir().unwrap();
        let target = target(folder.path(), AgentClient::ClaudeCode, ConfigPart::Server);
        fs::write(&target.path, "{\"starts\": 1}").unwrap();
        target.connect(&program()).unwrap().apply().unwrap();
        let text = fs::read_to_string(&target.path).unwrap();
        fs::write(&target.path, text.replace("\"starts\": 1", "\"starts\": 2")).unwrap();
        target.undo().unwrap().apply().unwrap();
        assert_eq!(fs::read_to_string(&target.path).unwrap(), "{\"starts\": 2}");
    }
}
