//! Choice and ownership of the home: another user's, a file, a relative path, one from the
//! environment.

use crate::support::node_process::{PROGRAM, klnode, refusal, start, started, told};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A user id that owns nothing here.
const NOBODY: u32 = 65_534;

/// A home that every user can see, if this process can switch users; otherwise prints a notice and
/// returns `None`.
fn seen_by_all(what: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let is_root = folder.path().metadata().unwrap().uid() == 0;
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // The program may be in a folder that only root can read.
    if is_root && as_nobody(&home, &["--version"]).is_ok() {
        return Some((folder, home));
    }
    let skipped = format!("skipped: {what} (this process cannot switch users)\n");
    std::io::stderr().write_all(skipped.as_bytes()).unwrap();
    None
}

fn as_nobody(home: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    klnode(home).args(arguments).current_dir("/").uid(NOBODY).gid(NOBODY).output()
}

/// Output of a verb that ends with this code.
#[track_caller]
fn printed(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", told(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The program without a home, in a folder.
fn bare(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.env_clear().current_dir(folder).stdin(Stdio::null());
    command
}

#[test]
fn another_users_home_is_only_reported_as_such() {
    let Some((_folder, home)) = seen_by_all("a home of another user") else { return };
    let (_node, _) = start(&home);
    let doctor = printed(&as_nobody(&home, &["check", "home", "store"]).unwrap(), 1);
    assert!(doctor.contains(&format!("{} belongs to another user.\n", home.display())), "{doctor}");
    assert!(doctor.ends_with("\n1 check, 0 warnings, 1 failure\n"), "{doctor}");
    let status = as_nobody(&home, &["status"]).unwrap();
    printed(&status, 1);
    let expected = format!(
        "error: Cannot use the home {}: it belongs to another user.\n  \
         hint: Run it as that user, or name a home of your own with --home.\n",
        home.display()
    );
    assert_eq!(told(&status), expected);
}

#[test]
fn an_unreadable_home_is_not_taken_for_an_empty_one() {
    let Some((_folder, home)) = seen_by_all("a home that is closed to its owner") else { return };
    fs::create_dir(&home).unwrap();
    fs::write(home.join("store.redb"), "something").unwrap();
    fs::set_permissions(&home, PermissionsExt::from_mode(0o600)).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let doctor = printed(&as_nobody(&home, &["check", "home", "store"]).unwrap(), 1);
    assert!(doctor.contains(" cannot be read: Permission denied"), "{doctor}");
    assert!(doctor.contains(&format!(" chmod 700 {}\n", home.display())), "{doctor}");
    for part in ["from a backup", "There is none yet", "No node is running"] {
        assert!(!doctor.contains(part), "{part}: {doctor}");
    }
}

#[test]
fn a_home_that_is_a_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter");
    fs::write(&file, "Dear reader,").unwrap();
    let refused = klnode(&file).output().unwrap();
    printed(&refused, 2);
    let expected = format!(
        "error: Cannot use the home {}: it is a file.\n  hint: Name a folder with --home.\n",
        file.display()
    );
    assert_eq!(told(&refused), expected);
    let doctor = printed(&klnode(&file).args(["check", "home", "store"]).output().unwrap(), 1);
    assert!(doctor.contains(&format!("{} is a file.\n", file.display())), "{doctor}");
}

#[test]
fn a_socket_that_cannot_be_created_points_to_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
    fs::write(home.join("klnode.sock"), "no socket").unwrap();
    let refused = refusal(&home);
    assert!(refused.ends_with("  hint: `klnode check home` examines it.\n"), "{refused}");
}

#[test]
fn a_relative_home_is_shown_as_an_absolute_path() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().canonicalize().unwrap();
    let home = here.join("second");
    let typed = |arguments: &[&str]| {
        let mut command = klnode(Path::new("second"));
        command.args(arguments).current_dir(&here);
        command
    };
    let none = typed(&["status"]).output().unwrap();
    let expected = format!("no node is running on {}.\n", home.join("klnode.sock").display());
    assert!(told(&none).contains(&expected), "{}", told(&none));
    let mut command = typed(&[]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (_node, banner) = started(command);
    assert_eq!(banner[2], format!("  home   {}", home.display()));
    let status = printed(&typed(&["status", "--json"]).output().unwrap(), 0);
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["home"], home.to_str().unwrap());
}

#[test]
fn a_relative_home_variable_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    for home in ["", "here"] {
        let output = bare(folder.path()).env("HOME", home).arg("status").output().unwrap();
        printed(&output, 2);
        let why = "There is no home: neither HOME nor XDG_DATA_HOME is an absolute path.\n";
        assert!(told(&output).contains(why), "{home}: {}", told(&output));
    }
}

#[test]
fn verbs_that_use_no_home_need_none() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["generate", "man"][..], &["generate", "completions", "bash"]] {
        let output = bare(folder.path()).args(words).output().unwrap();
        assert!(!printed(&output, 0).is_empty(), "{words:?}");
    }
    // It fails for its own reason, and not for lack of a home.
    let output = bare(folder.path()).args(["backup", "verify", "missing"]).output().unwrap();
    printed(&output, 2);
    assert!(told(&output).contains("missing"), "{}", told(&output));
}

#[test]
fn clients_are_configured_with_a_non_default_home() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(".local/share");
    for (variable, args) in [
        (None, json!(["mcp"])),
        (data.to_str(), json!(["mcp"])),
        (Some("/x"), json!(["mcp", "--home", "/x/klnode"])),
    ] {
        let mut command = bare(folder.path());
        command.env("HOME", folder.path()).args(["connect", "generic"]);
        command.envs(variable.map(|data| ("XDG_DATA_HOME", data)));
        let told: Value = serde_json::from_str(&printed(&command.output().unwrap(), 0)).unwrap();
        assert_eq!(told["mcpServers"]["klnode"]["args"], args, "{variable:?}");
        let mut command = bare(folder.path());
        command.env("HOME", folder.path()).args(["generate", "service", "--systemd"]);
        command.envs(variable.map(|data| ("XDG_DATA_HOME", data)));
        let unit = printed(&command.output().unwrap(), 0);
        assert_eq!(unit.contains("--home"), variable == Some("/x"), "{unit}");
    }
}

#[test]
fn a_home_with_a_non_utf8_name_is_refused_for_clients_and_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join(OsStr::from_bytes(b"k\xE9"));
    for words in [&["generate", "service"][..], &["connect", "generic"]] {
        let mut command = klnode(&home);
        let refused = command.env("HOME", folder.path()).args(words).output().unwrap();
        assert_eq!(printed(&refused, 2), "", "{words:?}");
        assert!(told(&refused).contains(": it is not UTF-8.\n"), "{}", told(&refused));
    }
    if fs::create_dir(&home).is_err() {
        let skipped = "skipped: a home whose name is no text (no such name can be had here)\n";
        std::io::stderr().write_all(skipped.as_bytes()).unwrap();
        return;
    }
    let (_node, _) = start(&home);
    let stopped = printed(&klnode(&home).arg("stop").output().unwrap(), 0);
    assert_eq!(stopped, "The node has stopped.\n");
}

#[test]
fn a_home_from_the_environment_is_used_and_not_shown_as_a_flag() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let asked = |arguments: &[&str]| {
        let mut command = bare(home.path());
        command.env("KLNODE_HOME", home.path()).args(arguments).output().unwrap()
    };
    printed(&asked(&["status"]), 0);
    let mistake = asked(&["show"]);
    printed(&mistake, 2);
    assert!(told(&mistake).contains(" show <ENTRY>\n"), "{}", told(&mistake));
    let help = printed(&asked(&["--help"]), 0);
    assert!(help.contains("KLNODE_HOME"), "{help}");
}
