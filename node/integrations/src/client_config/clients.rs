//! The supported clients: where each keeps its settings and under which key it lists MCP servers.
//!
//! Paths are computed from folders the caller passes in. The only file system access is a check
//! whether a path exists.

use super::jsonc_edit::Literal;
use std::path::{Path, PathBuf};

/// Key of klnode's entry in every client's list of servers.
pub const ENTRY: &str = "klnode";

/// A program that runs coding agents and can be connected to klnode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentClient {
    /// Anthropic's command-line agent; the only client with hooks.
    ClaudeCode,
    /// Anthropic's desktop application; it has no settings per project.
    ClaudeDesktop,
    /// The Cursor editor, configured in `.cursor/mcp.json`.
    Cursor,
    /// Visual Studio Code, configured in its user folder or in `.vscode/mcp.json`.
    VsCode,
    /// OpenAI's command-line agent; the only client with TOML settings.
    Codex,
    /// Google's command-line agent.
    Gemini,
    /// The Zed editor.
    Zed,
}

/// The operating system whose folder conventions apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux and other systems with XDG folders.
    Linux,
    /// Apple's system: application settings lie in `Library/Application Support`.
    MacOs,
    /// Microsoft's system: application settings lie in `%APPDATA%`.
    Windows,
}

impl System {
    /// The system that this program runs on.
    pub fn here() -> Self {
        match std::env::consts::OS {
            "macos" => Self::MacOs,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }
}

/// The folders that hold a user's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    home: PathBuf,
    config: PathBuf,
    applications: PathBuf,
}

impl Folders {
    /// Computes the folders from the user's home and the values of `XDG_CONFIG_HOME` and `APPDATA`.
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

/// Which settings of a client are changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigScope {
    /// The user's own settings, for every project.
    User(Folders),
    /// The settings in this project folder, for everyone who works in it.
    Project(PathBuf),
}

impl AgentClient {
    /// Every client with its name on the command line and its display name.
    pub const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::ClaudeCode, "claude-code", "Claude Code"),
        (Self::ClaudeDesktop, "claude-desktop", "Claude Desktop"),
        (Self::Cursor, "cursor", "Cursor"),
        (Self::VsCode, "vscode", "VS Code"),
        (Self::Codex, "codex", "Codex"),
        (Self::Gemini, "gemini", "Gemini CLI"),
        (Self::Zed, "zed", "Zed"),
    ];

    /// The client with this command-line name, if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known, _)| *known == name).map(|(client, _, _)| *client)
    }

    fn row(self) -> (Self, &'static str, &'static str) {
        let row = Self::ALL.into_iter().find(|(client, _, _)| *client == self);
        row.expect("every client is in the table, as a test shows")
    }

    /// The name on the command line, such as `claude-code`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The display name, such as `Claude Code`.
    pub fn label(self) -> &'static str {
        self.row().2
    }

    /// The file that lists MCP servers, or `None` if the client has no such file in this scope.
    pub fn file(self, scope: &ConfigScope) -> Option<PathBuf> {
        let path = match (scope, self) {
            (ConfigScope::User(of), Self::ClaudeCode) => of.home.join(".claude.json"),
            (ConfigScope::User(of), Self::ClaudeDesktop) => {
                of.applications.join("Claude/claude_desktop_config.json")
            }
            (ConfigScope::User(of), Self::Cursor) => of.home.join(".cursor/mcp.json"),
            (ConfigScope::User(of), Self::VsCode) => of.applications.join("Code/User/mcp.json"),
            (ConfigScope::User(of), Self::Codex) => of.home.join(".codex/config.toml"),
            (ConfigScope::User(of), Self::Gemini) => of.home.join(".gemini/settings.json"),
            (ConfigScope::User(of), Self::Zed) => of.config.join("zed/settings.json"),
            (ConfigScope::Project(folder), Self::ClaudeCode) => folder.join(".mcp.json"),
            (ConfigScope::Project(_), Self::ClaudeDesktop) => return None,
            (ConfigScope::Project(folder), Self::Cursor) => folder.join(".cursor/mcp.json"),
            (ConfigScope::Project(folder), Self::VsCode) => folder.join(".vscode/mcp.json"),
            (ConfigScope::Project(folder), Self::Codex) => folder.join(".codex/config.toml"),
            (ConfigScope::Project(folder), Self::Gemini) => folder.join(".gemini/settings.json"),
            (ConfigScope::Project(folder), Self::Zed) => folder.join(".zed/settings.json"),
        };
        Some(path)
    }

    /// The file that lists hook commands; `None` for clients without hooks.
    pub fn hooks_file(self, scope: &ConfigScope) -> Option<PathBuf> {
        match (self, scope) {
            (Self::ClaudeCode, ConfigScope::User(of)) => {
                Some(of.home.join(".claude/settings.json"))
            }
            // The settings file that is not committed, because it holds a path of this machine.
            (Self::ClaudeCode, ConfigScope::Project(folder)) => {
                Some(folder.join(".claude/settings.local.json"))
            }
            _ => None,
        }
    }

    /// True if the client seems to be installed: its settings file or its own folder exists.
    pub fn is_found(self, scope: &ConfigScope) -> bool {
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

    /// Key of the object that lists MCP servers.
    pub fn servers_key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// A server entry in the form this client expects.
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

    fn file(client: AgentClient, system: System, config: Option<&str>) -> String {
        let appdata = Some(PathBuf::from("/data"));
        let folders = Folders::new(system, "/home/a".into(), config.map(PathBuf::from), appdata);
        client.file(&ConfigScope::User(folders)).unwrap().display().to_string()
    }

    #[test]
    fn settings_paths_depend_on_system_and_environment() {
        let desktop = |system, config| file(AgentClient::ClaudeDesktop, system, config);
        let name = "Claude/claude_desktop_config.json";
        assert_eq!(desktop(System::Linux, None), format!("/home/a/.config/{name}"));
        assert_eq!(desktop(System::Linux, Some("/x")), format!("/x/{name}"));
        assert_eq!(desktop(System::Linux, Some("x")), format!("/home/a/.config/{name}"));
        let mac = format!("/home/a/Library/Application Support/{name}");
        assert_eq!(desktop(System::MacOs, Some("/x")), mac);
        assert_eq!(desktop(System::Windows, None), format!("/data/{name}"));
        let zed = |system| file(AgentClient::Zed, system, None);
        assert_eq!(zed(System::MacOs), "/home/a/.config/zed/settings.json");
        assert_eq!(zed(System::Windows), "/data/zed/settings.json");
    }

    #[test]
    fn every_client_has_a_name_and_all_but_one_have_project_settings() {
        let project = ConfigScope::Project("/p".into());
        for (client, name, label) in AgentClient::ALL {
            assert_eq!((client.name(), client.label()), (name, label));
            assert_eq!(AgentClient::named(name), Some(client));
            assert_eq!(client.file(&project).is_none(), client == AgentClient::ClaudeDesktop);
        }
        assert_eq!(AgentClient::named("emacs"), None);
    }
}
