//! Finds the client process of a caller among its ancestors in the process tree.
//!
//! This module is a pure rule over a list that `process_tree` reads. A process can choose any name,
//! so names only group callers or classify them as unknown. A process that an agent starts has the
//! agent above it regardless of its name. A process that has detached itself from the tree and runs
//! only a shell or klnode has no client.

/// A process as the operating system describes it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// At most 15 bytes of the program's file name, unless the process has changed it.
    pub(super) name: String,
    /// The real user id.
    pub(super) uid: u32,
    /// Clock ticks between the start of the machine and the start of the process.
    pub(super) started_ticks: u64,
}

/// A caller and all its ancestors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ancestry {
    /// The caller first, then its parent, up to the first process of the machine.
    pub(super) processes: Vec<Process>,
    /// True if the caller's standard output is a terminal.
    pub(super) prints_to_terminal: bool,
}

/// The result of searching an ancestry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum IdentifiedClients {
    /// The client processes above the caller, nearest first.
    Clients(Vec<Process>),
    /// No client, but a terminal at which a person typed the command.
    Terminal,
    /// Neither a client nor a terminal.
    Nothing,
}

/// The role of a program in a process tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessRole {
    /// A coding agent.
    Agent,
    /// An editor in which agents work.
    Editor,
    /// Runs another program for its parent: a shell, a wrapper, or klnode itself.
    Wrapper,
    /// Displays output to a person: a terminal emulator or a login.
    Terminal,
    /// Runs programs for any process that asks and is detached from its user's tree: init, a
    /// service manager, a desktop, a terminal multiplexer.
    Host,
    /// Any other program; it may be a client.
    Other,
}

const AGENTS: &[&str] = &[
    "aider",
    "amp",
    "claude",
    "codex",
    "copilot",
    "crush",
    "cursor-agent",
    "droid",
    "gemini",
    "goose",
    "kiro-cli",
    "opencode",
    "qwen",
];
const EDITORS: &[&str] = &[
    "code",
    "code-insiders",
    "code-server",
    "codium",
    "cursor",
    "emacs",
    "idea",
    "nvim",
    "vim",
    "windsurf",
    "zed",
    "zed-editor",
];
const WRAPPERS: &[&str] = &[
    "ash",
    "bash",
    "busybox",
    "bwrap",
    "catchsegv",
    "chroot",
    "chrt",
    "csh",
    "dash",
    "direnv",
    "doas",
    "elvish",
    "env",
    "expect",
    "fakeroot",
    "firejail",
    "fish",
    "flock",
    "ionice",
    "ksh",
    "mksh",
    "nice",
    "nohup",
    "nu",
    "parallel",
    "pkexec",
    "prlimit",
    "pwsh",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
    "xonsh",
    "yash",
    "zsh",
];
const TERMINALS: &[&str] = &[
    "alacritty",
    "blackbox",
    "contour",
    "cool-retro-ter",
    "deepin-terminal",
    "foot",
    "footclient",
    "getty",
    "agetty",
    "ghostty",
    "gnome-terminal-",
    "guake",
    "kgx",
    "kitty",
    "konsole",
    "login",
    "lxterminal",
    "mate-terminal",
    "mosh-server",
    "ptyxis",
    "ptyxis-agent",
    "qterminal",
    "rio",
    "rxvt",
    "sakura",
    "sshd",
    "sshd-session",
    "st",
    "terminator",
    "termite",
    "terminology",
    "tilda",
    "tilix",
    "urxvt",
    "urxvtd",
    "wezterm-gui",
    "xfce4-terminal",
    "xterm",
    "yakuake",
];
const HOSTS: &[&str] = &[
    "SCREEN",
    "abduco",
    "atd",
    "awesome",
    "bspwm",
    "budgie-panel",
    "cinnamon",
    "cinnamon-sessio",
    "conmon",
    "containerd-shim",
    "cosmic-comp",
    "cosmic-session",
    "cron",
    "crond",
    "dbus-broker",
    "dbus-daemon",
    "dinit",
    "docker-init",
    "dtach",
    "dumb-init",
    "dwm",
    "gdm-session-wor",
    "gnome-session-b",
    "gnome-shell",
    "herbstluftwm",
    "Hyprland",
    "i3",
    "init",
    "kdeinit5",
    "krunner",
    "kwin_wayland",
    "kwin_x11",
    "labwc",
    "launchd",
    "lightdm",
    "lxqt-session",
    "marco",
    "mate-panel",
    "mate-session",
    "niri",
    "openbox",
    "openrc-init",
    "plasmashell",
    "qtile",
    "river",
    "rofi",
    "runit",
    "runsv",
    "runsvdir",
    "s6-supervise",
    "s6-svscan",
    "screen",
    "sddm",
    "sddm-helper",
    "startplasma-way",
    "supervisord",
    "sway",
    "systemd",
    "tini",
    "weston",
    "wofi",
    "xfce4-panel",
    "xfce4-session",
    "xfwm4",
    "xinit",
    "Xorg",
    "Xwayland",
    "zellij",
];

fn role(process: &Process) -> ProcessRole {
    let name = process.name.as_str();
    // A login shell has a dash before its name.
    let plain = name.strip_prefix('-').unwrap_or(name);
    match plain {
        // The first process of the machine or of a container is never a client.
        _ if process.pid == 1 => ProcessRole::Host,
        _ if plain.starts_with("klnode") => ProcessRole::Wrapper,
        _ if plain.starts_with("tmux") => ProcessRole::Host,
        _ if AGENTS.contains(&plain) => ProcessRole::Agent,
        _ if EDITORS.contains(&plain) => ProcessRole::Editor,
        _ if WRAPPERS.contains(&plain) => ProcessRole::Wrapper,
        _ if TERMINALS.contains(&plain) => ProcessRole::Terminal,
        _ if HOSTS.contains(&plain) => ProcessRole::Host,
        _ => ProcessRole::Other,
    }
}

/// Finds the client processes above a caller.
///
/// All callers below a known agent share one client: the topmost agent of the caller's user.
/// Without an agent, all callers below the topmost editor share that client. Otherwise every
/// program above the caller that is no shell, terminal or service may be the client, and all of
/// them are returned. Two callers belong together if one has the nearest candidate of the other
/// above it. So a script between a client and klnode creates no second client, and two clients
/// started by one program stay two.
pub(super) fn find(ancestry: &Ancestry) -> IdentifiedClients {
    let Ancestry { processes, prints_to_terminal } = ancestry;
    let Some(user) = processes.first().map(|caller| caller.uid) else {
        return IdentifiedClients::Nothing;
    };
    let own = || processes.iter().filter(|process| process.uid == user);
    let topmost = |wanted: ProcessRole| own().rfind(|process| role(process) == wanted);
    if let Some(client) = topmost(ProcessRole::Agent).or_else(|| topmost(ProcessRole::Editor)) {
        return IdentifiedClients::Clients(vec![client.clone()]);
    }
    let others: Vec<Process> =
        own().filter(|one| role(one) == ProcessRole::Other).cloned().collect();
    if !others.is_empty() {
        return IdentifiedClients::Clients(others);
    }
    // Every terminal has hosts above it. A host between a terminal and the caller may have been
    // asked by an agent.
    let nearest = processes.iter().map(role).find(|role| *role != ProcessRole::Wrapper);
    match nearest {
        Some(ProcessRole::Terminal) if *prints_to_terminal => IdentifiedClients::Terminal,
        _ => IdentifiedClients::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 1_000;

    /// An ancestry written as names, the caller first; `@` precedes a user other than 1000. The
    /// first process of the machine is appended.
    fn ancestry(names: &str) -> Ancestry {
        let words: Vec<&str> = names.split_whitespace().collect();
        let mut processes: Vec<Process> = Vec::new();
        for (place, word) in words.iter().enumerate() {
            let (name, uid) = word.split_once('@').unwrap_or((word, "1000"));
            // The highest ancestor has the lowest id.
            let pid = 2 + u32::try_from(words.len() - place).unwrap();
            let uid = uid.parse().unwrap();
            processes.push(Process { pid, name: name.into(), uid, started_ticks: pid.into() });
        }
        let first = Process { pid: 1, name: "systemd".into(), ..Process::default() };
        processes.push(first);
        Ancestry { processes, prints_to_terminal: false }
    }

    /// The names of the client processes of an ancestry, nearest first.
    fn clients(names: &str) -> String {
        match find(&ancestry(names)) {
            IdentifiedClients::Clients(found) => {
                let names: Vec<String> = found.into_iter().map(|process| process.name).collect();
                names.join(" ")
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn the_client_is_above_shells_wrappers_and_klnode() {
        for (names, expected) in [
            // Hook, MCP server, shell command and subagent of one conversation.
            ("klnode sh claude zsh gnome-terminal-", "claude"),
            ("klnode claude zsh gnome-terminal-", "claude"),
            ("klnode bash claude zsh gnome-terminal-", "claude"),
            ("klnode bash claude bash claude -zsh tmux:", "claude"),
            ("klnode timeout env sh xargs bash claude -bash sshd@0 sshd@0", "claude"),
            // A script between klnode and the agent, and one with its own terminal.
            ("klnode python3 sh claude bash xterm", "claude"),
            ("klnode sh script bash claude bash xterm", "claude"),
            ("klnode bash xterm sh claude bash xterm", "claude"),
            ("klnode bash sudo@0 bash claude bash xterm", "claude"),
            // Two agents in one editor are two clients; an agent inside the editor process is the
            // editor.
            ("klnode sh claude zsh code code gnome-shell systemd", "claude"),
            ("klnode node cursor cursor gnome-shell systemd", "cursor"),
            ("klnode zsh cursor cursor gnome-shell systemd", "cursor"),
            // A program that is not on any list.
            ("klnode sh agent.py bash xterm", "agent.py"),
            ("klnode hook.py sh agent.py bash xterm", "hook.py agent.py"),
            ("klnode sh agent.py", "agent.py"),
            ("agent.py bash xterm", "agent.py"),
            ("klnode client harness cargo bash", "client harness cargo"),
        ] {
            assert_eq!(clients(names), expected, "{names}");
        }
    }

    #[test]
    fn the_topmost_of_several_agents_is_the_client() {
        let ancestry = ancestry("klnode bash claude bash claude zsh xterm");
        let IdentifiedClients::Clients(found) = find(&ancestry) else { panic!("there is one") };
        assert_eq!(found, [ancestry.processes[4].clone()]);
    }

    #[test]
    fn a_detached_process_has_no_client() {
        for names in
            ["klnode", "klnode sh", "klnode bash systemd", "klnode sh tini", "klnode cron@0"]
        {
            assert_eq!(clients(names), "Nothing", "{names}");
        }
    }

    #[test]
    fn a_process_of_another_user_is_not_a_client() {
        assert_eq!(clients("klnode sh claude@0 supervisor@0"), "Nothing");
        assert_eq!(clients("klnode sh claude supervisor@0"), "claude");
        assert_eq!(clients("klnode sh agent.py supervisor@0"), "agent.py");
    }

    #[test]
    fn a_caller_that_prints_to_a_terminal_without_a_client_is_a_person() {
        for (names, prints_to_terminal, expected) in [
            ("klnode zsh gnome-terminal- systemd", true, IdentifiedClients::Terminal),
            ("klnode -bash sshd sshd@0 sshd@0", true, IdentifiedClients::Terminal),
            ("klnode -bash login@0", true, IdentifiedClients::Terminal),
            ("klnode bash bash xterm sway login@0", true, IdentifiedClients::Terminal),
            // Standard output is a file or a pipe.
            ("klnode zsh gnome-terminal- systemd", false, IdentifiedClients::Nothing),
            // Any program can open a window of a multiplexer.
            ("klnode bash tmux:", true, IdentifiedClients::Nothing),
            ("klnode bash SCREEN", true, IdentifiedClients::Nothing),
            ("klnode bash", true, IdentifiedClients::Nothing),
            ("klnode bash systemd xterm", true, IdentifiedClients::Nothing),
        ] {
            let ancestry = Ancestry { prints_to_terminal, ..ancestry(names) };
            assert_eq!(find(&ancestry), expected, "{names}, {prints_to_terminal}");
        }
    }

    #[test]
    fn the_first_process_is_never_a_client() {
        let first = |name: &str| Process { pid: 1, name: name.into(), uid: USER, ..<_>::default() };
        let caller = Process { pid: 9, name: "klnode".into(), uid: USER, ..<_>::default() };
        for name in ["claude", "node", "xterm"] {
            let processes = vec![caller.clone(), first(name)];
            let ancestry = Ancestry { processes, prints_to_terminal: true };
            assert_eq!(find(&ancestry), IdentifiedClients::Nothing, "{name}");
        }
        let empty = Ancestry { processes: Vec::new(), prints_to_terminal: true };
        assert_eq!(find(&empty), IdentifiedClients::Nothing);
    }
}
