//! Configuration of clients: copies of realistic settings, the real program, and every byte
//! compared.

use crate::support::conformance::conforms;
use crate::support::node_process::{PROGRAM, klnode, start, told};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/connect");

/// Each client's file in the user's folder, and the fixture placed there.
const FILES: [(&str, &str, &str); 7] = [
    ("claude-code", ".claude.json", "claude-code.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "claude-desktop.json"),
    ("cursor", ".cursor/mcp.json", "cursor.json"),
    ("vscode", ".config/Code/User/mcp.json", "vscode.json"),
    ("codex", ".codex/config.toml", "codex.toml"),
    ("gemini", ".gemini/settings.json", "gemini.json"),
    ("zed", ".config/zed/settings.json", "zed.json"),
];
const HOOKS_FILE: &str = ".claude/settings.json";

/// A person with a home folder, and a node's home in it.
struct Person {
    folder: tempfile::TempDir,
}

impl Person {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A person with settings of every client, each changed a little.
    fn with_every_client(change: fn(&str) -> String) -> Self {
        let person = Self::new();
        for (_, path, fixture) in
            FILES.into_iter().chain([("", HOOKS_FILE, "claude-settings.json")])
        {
            person.write(path, change(&text(&Path::new(FIXTURES).join(fixture))).as_bytes());
        }
        person
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn node_home(&self) -> PathBuf {
        self.path("node")
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = klnode(&self.node_home());
        command.env("HOME", self.folder.path()).arg("connect").args(arguments);
        command.current_dir(self.folder.path()).output().unwrap()
    }

    /// Exit code and output.
    fn connect(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let printed = String::from_utf8(output.stdout.clone()).unwrap();
        (output.status.code().expect("an exit code"), printed + &told(&output))
    }

    /// Every file below the user's folder with its bytes, except for the node's.
    fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path == self.node_home() {
                    continue;
                }
                if path.symlink_metadata().unwrap().is_dir() {
                    folders.push(path);
                } else {
                    let bytes = fs::read(&path).unwrap_or_default();
                    found.push((path, bytes));
                }
            }
        }
        found.sort();
        found
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether `new` is `old` with an insertion.
fn is_grown(old: &str, new: &str) -> bool {
    let same = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    (0..=same).any(|at| new.as_bytes().ends_with(&old.as_bytes()[at..]))
}

#[test]
fn every_client_is_connected_once_and_undone_to_the_last_byte() {
    let variants: [fn(&str) -> String; 4] = [
        |text| text.to_owned(),
        |text| text.replace('\n', "\r\n"),
        |text| format!("\u{FEFF}{text}"),
        |text| text.trim_end().to_owned(),
    ];
    for change in variants {
        let person = Person::with_every_client(change);
        let before = person.everything();
        let (code, said) = person.connect(&[]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("Nothing was written. Confirm with --yes."), "{said}");
        for (client, path, _) in FILES {
            assert!(said.contains(&format!("\n+++ {}\n", person.path(path).display())), "{said}");
            let line = said.lines().find(|line| line.starts_with(client)).expect(client);
            assert!(line.contains("would connect"), "{line}");
        }
        assert!(!said.contains(HOOKS_FILE), "hooks are not asked for: {said}");
        assert_eq!(person.connect(&["--dry-run"]).0, 0);
        assert_eq!(person.everything(), before, "nothing was written");

        let (code, said) = person.connect(&["--yes"]);
        assert_eq!(code, 0, "{said}");
        for (client, path, fixture) in FILES {
            let old = change(&text(&Path::new(FIXTURES).join(fixture)));
            let new = text(&person.path(path));
            assert!(is_grown(&old, &new), "{client}: {new}");
            assert!(new.contains(PROGRAM) && new.contains("--home"), "{client}: {new}");
            let copy = person.path(&format!("{path}.klnode-backup"));
            assert_eq!(text(&copy), old, "{client}");
        }
        let connected = person.everything();
        let (code, said) = person.connect(&["--yes"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(said.matches("already connected").count(), FILES.len(), "{said}");
        assert_eq!(person.everything(), connected, "a second time writes nothing");

        let (code, said) = person.connect(&["--undo", "--yes"]);
        assert_eq!(code, 0, "{said}");
        assert_eq!(person.everything(), before, "every byte is back, and no copy is left");
    }
}

#[test]
fn a_check_reports_missing_settings_and_passes_without_any() {
    let person = Person::with_every_client(str::to_owned);
    let (code, said) = person.connect(&["--check"]);
    assert_eq!(code, 1);
    assert_eq!(said.matches("not connected").count(), FILES.len(), "{said}");
    assert_eq!(person.connect(&["--yes"]).0, 0);
    let (code, said) = person.connect(&["--check"]);
    assert_eq!(code, 1, "{said}");
    let start_command = format!("klnode --home {}", person.node_home().display());
    let way_out = format!("no node answers; start one with `{start_command}`");
    assert!(said.contains(&way_out), "{said}");
    let (_node, _) = start(&person.node_home());
    let (code, said) = person.connect(&["--check"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the node answers"), "{said}");

    let output = person.run(&["--check", "--json", "zed"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["node_answers"], true);
    assert_eq!(json["clients"][0]["state"], "connected");
    assert_eq!(json["clients"][0]["command"], PROGRAM);

    let path = person.path(".cursor/mcp.json");
    fs::write(&path, text(&path).replace(PROGRAM, "/nowhere/klnode")).unwrap();
    let (code, said) = person.connect(&["--check", "cursor"]);
    assert_eq!(code, 1);
    assert!(said.contains("/nowhere/klnode cannot be run; run `klnode connect` again"), "{said}");
    assert_eq!(person.connect(&["--yes", "cursor"]).0, 0);
    assert_eq!(person.connect(&["--check", "cursor"]).0, 0, "a moved program is followed");
}

#[test]
fn hooks_are_off_by_default_and_can_be_undone_alone() {
    conforms("S002-05");
    let person = Person::with_every_client(str::to_owned);
    let before = text(&person.path(HOOKS_FILE));
    assert_eq!(person.connect(&["--yes", "claude-code"]).0, 0);
    assert_eq!(text(&person.path(HOOKS_FILE)), before);
    let (code, said) = person.connect(&["--yes", "--hooks", "claude-code"]);
    assert_eq!(code, 0, "{said}");
    let with: Value = serde_json::from_str(&text(&person.path(HOOKS_FILE))).unwrap();
    for (event, verb) in [
        ("SessionStart", "session-start"),
        ("UserPromptSubmit", "prompt"),
        ("PostToolUseFailure", "tool-error"),
        ("SessionEnd", "stop"),
    ] {
        let command = &with["hooks"][event][0]["hooks"][0]["command"];
        let command = command.as_str().expect(event);
        assert!(command.starts_with(&format!("{PROGRAM} hook {verb} --home ")), "{command}");
    }
    assert_eq!(with["hooks"]["UserPromptSubmit"][1]["hooks"][0]["command"], "date");
    assert_eq!(with["hooks"]["PostToolUse"][0]["matcher"], "Edit|Write");
    let (_node, _) = start(&person.node_home());
    assert_eq!(person.connect(&["--check", "--hooks", "claude-code"]).0, 0);
    let (code, said) = person.connect(&["--check", "claude-code"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("claude-code (hooks)     connected "),
        "existing hooks are reported: {said}"
    );
    assert_eq!(person.connect(&["--undo", "--hooks", "--yes", "claude-code"]).0, 0);
    let (code, said) = person.connect(&["--check", "claude-code"]);
    assert!(code == 0 && !said.contains("(hooks)"), "hooks are optional: {said}");
    assert_eq!(person.connect(&["--check", "--hooks", "claude-code"]).0, 1);
    assert_eq!(text(&person.path(HOOKS_FILE)), before);
    assert!(text(&person.path(".claude.json")).contains(PROGRAM), "the server stays");
    let (code, said) = person.connect(&["--hooks", "--yes", "zed"]);
    assert_eq!(code, 2);
    assert!(said.contains("Only claude-code has hooks"), "{said}");
}

#[test]
fn an_entry_with_flags_before_the_verb_is_valid() {
    let person = Person::new();
    for args in [r#"["--home", "/srv/k", "mcp"]"#, r#"["--home=/srv/k", "mcp"]"#] {
        let klnode = format!(r#"{{"command": "/old/klnode", "args": {args}}}"#);
        let old = format!(r#"{{"mcpServers": {{"klnode": {klnode}}}}}"#);
        person.write(".cursor/mcp.json", old.as_bytes());
        assert_eq!(person.connect(&["--yes", "cursor"]).0, 0);
        let new: Value = serde_json::from_str(&text(&person.path(".cursor/mcp.json"))).unwrap();
        let words = new["mcpServers"]["klnode"]["args"].as_array().expect("arguments");
        let words = words.iter().map(|word| word.as_str().expect("a word"));
        let mut command = Command::new(PROGRAM);
        let ended = command.env_clear().args(words).stdin(Stdio::null()).output().unwrap();
        assert!(ended.status.success(), "{args}: {}", told(&ended));
        assert!(person.connect(&["--yes", "cursor"]).1.contains("already connected"), "{args}");
    }
}

#[test]
fn project_settings_with_extra_keys_are_refused() {
    let person = Person::new();
    let theirs = r#"{"mcpServers": {"klnode": {"command": "x", "env": {"LD_PRELOAD": "./x.so"}}}}"#;
    person.write(".mcp.json", theirs.as_bytes());
    let (code, said) = person.connect(&["--project", "--yes", "claude-code"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(":1:44: `klnode` has `env` here. "), "{said}");
    assert_eq!(text(&person.path(".mcp.json")), theirs);
}

#[test]
fn an_invalid_file_is_reported_with_its_position_and_left_unchanged() {
    let person = Person::with_every_client(str::to_owned);
    for (fixture, place) in [
        ("broken-comma.json", ":4:5: A comma is missing before this"),
        ("broken-twice.json", ":4:3: `mcpServers` is defined a second time here"),
        ("broken-kind.json", ":2:17: `mcpServers` is an array; it must be an object"),
        ("broken-comment.json", ":2:20: A comment starts here and does not end"),
        ("broken-end.json", ":2:17: This object or array is not closed"),
    ] {
        let bytes = fs::read(Path::new(FIXTURES).join(fixture)).unwrap();
        person.write(".cursor/mcp.json", &bytes);
        for arguments in [&["--yes", "cursor", "gemini"][..], &["--undo", "--yes", "cursor"]] {
            let (code, said) = person.connect(arguments);
            // A fault outside our entry does not matter if there is no entry to remove.
            let is_harmless = arguments[0] == "--undo" && fixture == "broken-kind.json";
            assert_eq!(code, i32::from(!is_harmless), "{fixture}: {said}");
            let expected = format!("{}{place}", person.path(".cursor/mcp.json").display());
            assert!(is_harmless || said.contains(&expected), "{fixture}: {said}");
            assert_eq!(fs::read(person.path(".cursor/mcp.json")).unwrap(), bytes);
        }
        assert!(text(&person.path(".gemini/settings.json")).contains(PROGRAM), "{fixture}");
        assert_eq!(person.connect(&["--undo", "--yes", "gemini"]).0, 0);
    }
    assert!(!person.path(".cursor/mcp.json.klnode-backup").exists());
}

#[test]
fn an_unreadable_or_read_only_file_is_left_unchanged() {
    let person = Person::new();
    let file = person.path(".cursor/mcp.json");
    person.write(".cursor/mcp.json", b"{\n  \"a\": \"\xE9\"\n}\n");
    let (code, said) = person.connect(&["--yes"]);
    assert_eq!(code, 1);
    assert!(said.contains(":2:9: The file is not UTF-8"), "{said}");

    fs::write(&file, "{}").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
    let (code, said) = person.connect(&["--yes"]);
    assert_eq!(code, 1);
    assert!(said.contains("The file is read-only. Allow writing (chmod u+w)"), "{said}");
    assert_eq!(text(&file), "{}");

    fs::remove_file(&file).unwrap();
    symlink("mcp.json", &file).unwrap();
    let (code, said) = person.connect(&["--yes"]);
    assert_eq!(code, 1);
    assert!(said.contains("The file was not found"), "{said}");
    assert!(file.symlink_metadata().unwrap().is_symlink());
}

#[test]
fn a_linked_file_stays_a_link_and_keeps_its_mode() {
    let person = Person::new();
    person.write("dotfiles/cursor.json", b"{\n  \"mcpServers\": {}\n}\n");
    let real = person.path("dotfiles/cursor.json");
    fs::set_permissions(&real, Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(person.path(".cursor")).unwrap();
    symlink("../dotfiles/cursor.json", person.path(".cursor/mcp.json")).unwrap();
    assert_eq!(person.connect(&["--yes"]).0, 0);
    assert!(person.path(".cursor/mcp.json").symlink_metadata().unwrap().is_symlink());
    assert!(text(&real).contains(PROGRAM));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(person.path("dotfiles/cursor.json.klnode-backup").exists());
    assert_eq!(fs::read_dir(person.path(".cursor")).unwrap().count(), 1);
}

#[test]
fn undo_keeps_later_changes_by_the_client() {
    let person = Person::with_every_client(str::to_owned);
    let before = text(&person.path(".claude.json"));
    assert_eq!(person.connect(&["--yes", "claude-code"]).0, 0);
    let started = |text: &str| text.replace("\"numStartups\": 214", "\"numStartups\": 215");
    let path = person.path(".claude.json");
    fs::write(&path, started(&text(&path))).unwrap();
    assert_eq!(person.connect(&["--undo", "--yes", "claude-code"]).0, 0);
    assert_eq!(text(&path), started(&before));
}

#[test]
fn a_named_client_gets_a_new_file_and_a_project_its_own() {
    let person = Person::new();
    let (code, said) = person.connect(&["--yes"]);
    assert_eq!(code, 1);
    assert!(said.contains("No client was found."), "{said}");
    assert_eq!(person.connect(&["--yes", "codex", "zed"]).0, 0);
    assert!(text(&person.path(".codex/config.toml")).starts_with("[mcp_servers.klnode]\n"));
    assert!(text(&person.path(".config/zed/settings.json")).contains("\"context_servers\""));
    assert_eq!(person.connect(&["--undo", "--yes", "codex", "zed"]).0, 0);
    assert!(person.everything().is_empty(), "created files are removed");

    assert_eq!(person.connect(&["--project", "--yes", "claude-code", "vscode"]).0, 0);
    let made: Value = serde_json::from_str(&text(&person.path(".mcp.json"))).unwrap();
    let entry = &made["mcpServers"]["klnode"];
    assert_eq!((&entry["type"], &entry["command"]), (&"stdio".into(), &PROGRAM.into()));
    assert_eq!(entry["args"][0], "mcp");
    assert!(text(&person.path(".vscode/mcp.json")).contains("\"servers\""));

    let (code, said) = person.connect(&["--project", "--yes", "claude-desktop"]);
    assert_eq!(code, 2, "{said}");
    let (code, said) = person.connect(&["emacs"]);
    assert_eq!(code, 2);
    assert!(said.contains("Unknown client `emacs`. Use one of claude-code,"), "{said}");
    let (code, said) = person.connect(&["generic"]);
    assert_eq!(code, 0);
    let snippet: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(snippet["mcpServers"]["klnode"]["command"], PROGRAM);
}
