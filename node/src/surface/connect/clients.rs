//! Which clients there are, where each keeps its settings, and under which name it lists servers.
//!
//! Paths are computed from folders that are handed in; whether something is there is the only thing
//! that is looked up.

use super::edit::Literal;
use std::path::{Path, PathBuf};

/// The name of our entry, in every client.
pub const ENTRY: &str = "klnode";

/// A program that agents run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Zed.
    Zed,
}

/// For which operating system paths are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux and its like.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The one this program runs on.
    pub fn here() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

/// Where a user's settings lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    home: PathBuf,
    config: PathBuf,
    applications: PathBuf,
}

impl Folders {
    /// From the user's home, and the values of `XDG_CONFIG_HOME` and `APPDATA`.
    pub fn new(
        system: System,
        home: PathBuf,
        xdg_config: Option<PathBuf>,
        appdata: Option<PathBuf>,
    ) -> Self {
        let plain = home.join(".config");
        let config = xdg_config.filter(|path| path.is_absolute()).unwrap_or(plain.clone());
        let (config, applications) = match system {
            System::Linux => (config.clone(), config),
            System::MacOs => (plain, home.join("Library/Application Support")),
            System::Windows => {
                let data = appdata.unwrap_or_else(|| home.join("AppData/Roaming"));
                (data.clone(), data)
            }
        };
        Self { home, config, applications }
    }
}

/// For whom a client is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user, everywhere.
    User(Folders),
    /// Whoever works in this folder.
    Project(PathBuf),
}

impl Client {
    /// All of them, with what they are called on the command line and otherwise.
    pub const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::ClaudeCode, "claude-code", "Claude Code"),
        (Self::ClaudeDesktop, "claude-desktop", "Claude Desktop"),
        (Self::Cursor, "cursor", "Cursor"),
        (Self::VsCode, "vscode", "VS Code"),
        (Self::Codex, "codex", "Codex"),
        (Self::Gemini, "gemini", "Gemini CLI"),
        (Self::Zed, "zed", "Zed"),
    ];

    /// The client of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(client, _, _)| *client)
    }

    fn row(self) -> (Self, &'static str, &'static str) {
        let row = Self::ALL.into_iter().find(|(client, _, _)| *client == self);
        row.expect("every client is in the table, as a test shows")
    }

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it is called otherwise.
    pub fn label(self) -> &'static str {
        self.row().2
    }

    /// The file that lists its servers; it has none for a project, perhaps.
    pub fn file(self, scope: &Scope) -> Option<PathBuf> {
        let path = match (scope, self) {
            (Scope::User(of), Self::ClaudeCode) => of.home.join(".claude.json"),
            (Scope::User(of), Self::ClaudeDesktop) => {
                of.applications.join("Claude/claude_desktop_config.json")
            }
            (Scope::User(of), Self::Cursor) => of.home.join(".cursor/mcp.json"),
            (Scope::User(of), Self::VsCode) => of.applications.join("Code/User/mcp.json"),
            (Scope::User(of), Self::Codex) => of.home.join(".codex/config.toml"),
            (Scope::User(of), Self::Gemini) => of.home.join(".gemini/settings.json"),
            (Scope::User(of), Self::Zed) => of.config.join("zed/settings.json"),
            (Scope::Project(folder), Self::ClaudeCode) => folder.join(".mcp.json"),
            (Scope::Project(_), Self::ClaudeDesktop) => return None,
            (Scope::Project(folder), Self::Cursor) => folder.join(".cursor/mcp.json"),
            (Scope::Project(folder), Self::VsCode) => folder.join(".vscode/mcp.json"),
            (Scope::Project(folder), Self::Codex) => folder.join(".codex/config.toml"),
            (Scope::Project(folder), Self::Gemini) => folder.join(".gemini/settings.json"),
            (Scope::Project(folder), Self::Zed) => folder.join(".zed/settings.json"),
        };
        Some(path)
    }

    /// The file in which it is told what to run at which moment; most clients have none.
    pub fn hooks_file(self, scope: &Scope) -> Option<PathBuf> {
        match (self, scope) {
            (Self::ClaudeCode, Scope::User(of)) => Some(of.home.join(".claude/settings.json")),
            // The one that is not shared with others: it names a path of this machine.
            (Self::ClaudeCode, Scope::Project(folder)) => {
                Some(folder.join(".claude/settings.local.json"))
            }
            _ => None,
        }
    }

    /// Whether it seems to be in use: its file is there, or the folder it keeps for itself.
    pub fn is_found(self, scope: &Scope) -> bool {
        let Some(file) = self.file(scope) else { return false };
        let is_there = |path: &Path| path.symlink_metadata().is_ok();
        match self {
            Self::ClaudeCode => {
                let hooks = self.hooks_file(scope);
                is_there(&file) || hooks.and_then(|f| f.parent().map(is_there)).unwrap_or(false)
            }
            _ => is_there(&file) || file.parent().is_some_and(is_there),
        }
    }

    /// The object under which it lists servers.
    pub fn servers_key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// An entry as it wants it.
    pub fn entry(self, command: &str, args: &[String]) -> Literal {
        let kind = matches!(self, Self::ClaudeCode | Self::VsCode);
        let args = args.iter().map(Literal::text).collect();
        let mut members = Vec::new();
        members.extend(kind.then(|| ("type".to_owned(), Literal::text("stdio"))));
        members.push(("command".to_owned(), Literal::text(command)));
        members.push(("args".to_owned(), Literal::List(args)));
        Literal::Object(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(client: Client, system: System, config: Option<&str>) -> String {
        let appdata = Some(PathBuf::from("/data"));
        let folders = Folders::new(system, "/home/a".into(), config.map(PathBuf::from), appdata);
        client.file(&Scope::User(folders)).unwrap().display().to_string()
    }

    #[test]
    fn every_system_and_the_environment_decide_where_settings_lie() {
        let desktop = |system, config| file(Client::ClaudeDesktop, system, config);
        let name = "Claude/claude_desktop_config.json";
        assert_eq!(desktop(System::Linux, None), format!("/home/a/.config/{name}"));
        assert_eq!(desktop(System::Linux, Some("/x")), format!("/x/{name}"));
        assert_eq!(desktop(System::Linux, Some("x")), format!("/home/a/.config/{name}"));
        let mac = format!("/home/a/Library/Application Support/{name}");
        assert_eq!(desktop(System::MacOs, Some("/x")), mac);
        assert_eq!(desktop(System::Windows, None), format!("/data/{name}"));
        let zed = |system| file(Client::Zed, system, None);
        assert_eq!(zed(System::MacOs), "/home/a/.config/zed/settings.json");
        assert_eq!(zed(System::Windows), "/data/zed/settings.json");
    }

    #[test]
    fn every_client_has_a_name_and_only_one_has_no_place_in_a_project() {
        let project = Scope::Project("/p".into());
        for (client, name, label) in Client::ALL {
            assert_eq!((client.name(), client.label()), (name, label));
            assert_eq!(Client::named(name), Some(client));
            assert_eq!(client.file(&project).is_none(), client == Client::ClaudeDesktop);
        }
        assert_eq!(Client::named("emacs"), None);
    }
}
