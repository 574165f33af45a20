//! The program as a new user meets it: real processes, their output and exit codes.

use crate::support::conformance::conforms;
use crate::support::node_process::{Running, klnode, refusal, run, signal, start, started, told};
use klnode_api_types::NodeSettings;
use klnode_client::Client;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;

#[test]
fn klnode_without_arguments_starts_a_node_that_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("new/home");
    let mut keys = Vec::new();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for name in ["INT", "TERM"] {
        let (mut node, banner) = start(&home);
        assert_eq!(mode(&home.join("klnode.sock")), 0o600, "only the owner can connect");
        assert!(banner[0].starts_with("klnode ") && banner[0].ends_with(" is running."));
        let peers = banner.iter().filter(|line| line.starts_with("  peers  /ip")).count();
        assert!(peers > 0, "{banner:?}");
        assert_eq!(banner.len() - peers, 9, "{banner:?}");
        let next = banner.iter().filter(|line| line.starts_with("  next   klnode --home "));
        let next: String = next.cloned().collect();
        let verbs = [" add --help ", " search ", " connect ", " invite --mine "];
        assert!(verbs.iter().all(|verb| next.contains(verb)), "{banner:?}");
        keys.push(banner[1].clone());
        signal(&node.0, name);
        let status = node.0.wait().expect("ends");
        assert!(status.success(), "{name}: {status}");
    }
    assert_eq!(keys[0], keys[1], "the key stays");
    assert_eq!(mode(&home), 0o700);
    assert_eq!(mode(&home.join("node.key")), 0o600);
    assert_eq!(mode(&home.join("store.redb")), 0o600);
}

#[test]
fn a_second_node_on_the_same_home_is_refused_with_a_hint() {
    conforms("S001-07");
    let home = tempfile::tempdir().unwrap();
    let (_first, _) = start(home.path());
    let second = klnode(home.path()).output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let expected = format!(
        "error: Cannot use the home {}: another klnode process is using it.\n  \
         hint: Stop the other node, or wait until the `klnode check` or `klnode backup restore` on it \
         has ended; or use another --home.\n",
        home.path().display()
    );
    assert_eq!(told(&second), expected);
}

#[test]
fn a_killed_node_starts_again() {
    let home = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        let (mut node, _) = start(home.path());
        node.0.kill().unwrap();
        node.0.wait().unwrap();
    }
    let (_node, banner) = start(home.path());
    assert_eq!(banner[3].trim(), "store  0 entries");
}

#[test]
fn mistakes_in_the_configuration_are_named_all_at_once_with_the_nearest_key() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("klnode.toml");
    std::fs::write(&file, "[retreival]\npin_bonus = 0.2\n[tuning.trust]\nquantile = 7\n").unwrap();
    let output = klnode(home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let told = told(&output);
    assert!(told.contains("Did you mean `tuning.retrieval"), "{told}");
    assert!(told.contains("tuning.trust.quantile"), "{told}");
    let missing = klnode(home.path()).args(["--config", "/nowhere.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(!home.path().join("node.key").exists(), "nothing was made");
    // For the correction, the user needs the available keys and all other errors.
    let shown = klnode(home.path()).args(["config", "trust.hop_max"]).output().unwrap();
    assert_eq!(shown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("trust.hop_max = "));
    assert!(self::told(&shown).contains("hint: Correct it; these are the defaults"));
    let doctor = klnode(home.path()).args(["check", "home", "store"]).output().unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("FAIL  config "), "{doctor}");
    assert!(doctor.contains("ok    store "), "{doctor}");
}

#[test]
fn a_typo_in_the_configuration_does_not_block_a_running_node() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("klnode.toml");
    let right = "[api]\nsocket = \"other.sock\"\n";
    std::fs::write(&file, right).unwrap();
    let (mut node, _) = start(home.path());
    std::fs::write(&file, format!("{right}[trust]\nhop_mx = 2\n")).unwrap();
    let typed = |words: &[&str]| klnode(home.path()).args(words).output().unwrap();
    for words in [&["status"][..], &["generate", "man"], &["generate", "completions", "bash"]] {
        let output = typed(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", told(&output));
        // Only a verb that uses the settings reports the error.
        let is_told = told(&output).contains("trust.hop_mx");
        assert_eq!(is_told, words == ["status"], "{words:?}: {}", told(&output));
    }
    assert_eq!(told(&typed(&["status", "--json"])), "", "JSON output has no warning");
    let changed = typed(&["config", "--changed"]);
    assert_eq!(
        (changed.status.code(), changed.stdout),
        (Some(2), Vec::new()),
        "the settings are invalid"
    );
    for words in [&["serve"][..], &["--set", "trust.hop_mx=2", "status"]] {
        assert_eq!(typed(words).status.code(), Some(2), "{words:?}");
    }
    let stopped = typed(&["stop"]);
    assert_eq!(stopped.stdout, b"The node has stopped.\n", "{}", told(&stopped));
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn warnings_beside_json_output_are_one_line_of_json() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let file = home.path().join("notes.jsonl");
    std::fs::write(&file, "{\"title\":\"a\"}\n{\"title\":\"b\"}\n").unwrap();
    let import = ["import", file.to_str().unwrap(), "--json"];
    let output = klnode(home.path()).args(import).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let said: serde_json::Value = serde_json::from_slice(&output.stderr).expect("one line");
    let message = said["error"]["message"].as_str().expect("a message");
    assert!(message.starts_with("line 1: content: "), "{said}");
    assert_eq!((told(&output).lines().count(), message.lines().count()), (1, 2), "{said}");
}

#[test]
fn an_oversized_input_file_is_not_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    std::fs::File::create(&path).unwrap().set_len(8 << 30).unwrap();
    let name = path.to_str().unwrap();
    for (words, part) in [
        (&["add", name][..], "it has more than 4 MiB"),
        (&["workspace", "settings", "team", name], "it has more than 64 KiB"),
        (&["--config", name, "status"], "it has more than 256 KiB"),
    ] {
        let output = klnode(&folder.path().join("home")).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", told(&output));
        assert!(told(&output).contains(part), "{words:?}: {}", told(&output));
    }
}

#[test]
fn stop_returns_after_the_node_has_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let stop = || klnode(&home).arg("stop").output().unwrap();
    let none = stop();
    assert_eq!(none.status.code(), Some(3), "there is none");
    assert!(!told(&none).contains("hint: "), "no hint to start a node: {}", told(&none));
    // Any path of the home works.
    let mut command = klnode(Path::new("home"));
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (mut node, _) = started(command);
    let stopped = stop();
    assert_eq!(stopped.stdout, b"The node has stopped.\n", "{}", told(&stopped));
    // The home is free at once.
    start(&home);
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn a_node_started_with_json_reports_on_one_line() {
    let home = tempfile::tempdir().unwrap();
    let mut command = klnode(home.path());
    command.args(["--json", "--set", "api.tcp=127.0.0.1:0"]);
    let mut node = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(node.0.stdout.take().expect("piped")).lines();
    let mut line = || -> serde_json::Value {
        let line = lines.next().expect("a line").expect("text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let begun = line();
    assert_eq!(begun["home"], home.path().to_str().unwrap());
    assert_eq!(begun["socket"], home.path().join("klnode.sock").to_str().unwrap());
    assert_eq!(begun["node"].as_str().map(str::len), Some(64), "{begun}");
    assert!(begun["addresses"][0].as_str().is_some_and(|at| at.starts_with("/ip")), "{begun}");
    let tcp = begun["tcp"].as_str().expect("the port");
    assert!(tcp.starts_with("http://127.0.0.1:") && !tcp.ends_with(":0"), "{begun}");
    signal(&node.0, "TERM");
    assert_eq!(line(), serde_json::json!({"stopped": true}));
    assert!(lines.next().is_none(), "nothing else is said");
    assert!(node.0.wait().unwrap().success());
}

#[test]
fn mistyped_flags_are_reported_before_missing_ones() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let add = ["add", "--title", "t", "--content", "c"];
    for (words, part) in [
        (&[&add[..], &["--decay", "forever"]].concat()[..], "decay_class is `forever`; it must be"),
        (&[&add[..], &["--polarity", "angry"]].concat()[..], "polarity is `angry`; it must be"),
        (&[&add[..], &["--outcome", "confirmed"]].concat()[..], "only a spike has one"),
        (&["list", "-n", "99999"], "The limit is 99999 entries; it must be 1 to 1000."),
        (&["task", "list", "-n", "1001"], "The limit is 1001 tasks; it must be 1 to 1000."),
        (&["status", "usage", "--log", "-n", "0"], "The limit is 0 answers; it must be 1 to 1000."),
        (&["add", "--title", "t", "--evidence", "doc:x"], "`klnode add -` reads it from standard"),
    ] {
        let output = klnode(home.path()).args(words).current_dir(home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", told(&output));
        assert!(told(&output).contains(part), "{words:?}: {}", told(&output));
    }
    // A content from standard input was given explicitly.
    let output = run(home.path(), &["add", "-", "--title", "t"]);
    assert!(told(&output).contains("content is empty"), "{}", told(&output));
    assert!(!told(&output).contains("hint: "), "{}", told(&output));
}

#[test]
fn the_permissions_of_a_folder_with_other_files_are_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |mode| std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(folder.path(), mode(0o755)).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    let refused = refusal(folder.path());
    assert!(refused.contains("it holds files that are not klnode's"), "{refused}");
    let kept = std::fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(kept & 0o777, 0o755);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made in it");
    std::fs::write(folder.path().join("klnode.toml"), "").unwrap();
    start(folder.path());
    let closed = std::fs::metadata(folder.path()).unwrap().permissions().mode();
    assert_eq!(closed & 0o777, 0o700, "a home is private");
}

#[test]
fn a_file_in_place_of_the_socket_is_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("letter");
    std::fs::write(&file, "Dear reader,").unwrap();
    let set = format!("api.socket={}", file.display());
    let refused = klnode(&folder.path().join("home")).args(["--set", &set]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        told(&refused).contains("the path holds a file that is not a socket"),
        "{}",
        told(&refused)
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"Dear reader,");
}

#[test]
fn a_node_that_closes_before_answering_is_reported_as_stopped() {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("klnode.sock")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut caller, _) = listener.accept().unwrap();
            // The request is read, and the connection closed without a response.
            assert!(caller.read(&mut [0; 512]).unwrap() > 0);
        });
        let left = klnode(home.path()).arg("status").output().unwrap();
        assert_eq!(left.status.code(), Some(3), "{}", told(&left));
        assert!(told(&left).contains("stopped before"), "{}", told(&left));
        assert!(told(&left).contains("hint: Start one with "), "{}", told(&left));
    });
}

#[test]
fn an_incomplete_export_replaces_nothing_and_is_reported() {
    let home = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(home.path().join("klnode.sock")).unwrap();
    let file = home.path().join("good.jsonl");
    std::fs::write(&file, "good\n").unwrap();
    let head = r#"{"klnode":"export","version":1,"node":"8a","entries":2}"#;
    let lines = format!("{head}\n{{\"id\":\"01\"}}\n");
    let begun = || {
        let (mut caller, _) = listener.accept().unwrap();
        assert!(caller.read(&mut [0; 512]).unwrap() > 0);
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = format!("{head}{:x}\r\n{lines}\r\n", lines.len());
        caller.write_all(chunk.as_bytes()).unwrap();
        caller
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut caller = begun();
            caller.write_all(b"0\r\n\r\n").unwrap();
            // The connection stays open until the client closes it.
            let _ = caller.read_to_end(&mut Vec::new());
        });
        let cut = run(home.path(), &["export", file.to_str().unwrap(), "--force"]);
        assert_eq!(cut.status.code(), Some(1), "{}", told(&cut));
        let expected = "it announces 2 entries and holds 1";
        assert!(told(&cut).contains(expected), "{}", told(&cut));
    });
    assert_eq!(std::fs::read(&file).unwrap(), b"good\n");

    let mut export = klnode(home.path());
    export.arg("export").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut export = Running(export.spawn().unwrap());
    let _caller = begun();
    let mut line = String::new();
    BufReader::new(export.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), head);
    signal(&export.0, "INT");
    let output = export.finish();
    assert_eq!(output.status.code(), Some(130), "{}", told(&output));
    assert!(told(&output).contains("The printed export is incomplete."), "{}", told(&output));
}

#[test]
fn the_configuration_shows_the_origin_of_each_value() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("klnode.toml"), "[trust]\nhop_max = 2\n").unwrap();
    let output = klnode(home.path())
        .env("KLNODE__LOG__LEVEL", "warn")
        .args(["--set", "tuning.engine.queue_commands_max=9", "config", "--changed"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", told(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "log.level = \"warn\"    # from environment variable KLNODE__LOG__LEVEL, not \"info\"",
        "tuning.engine.queue_commands_max = 9    # from flag --set, not 1024",
        "trust.hop_max = 2    # from ",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(text.lines().count(), 3);
    let json = klnode(home.path()).args(["config", "trust.hop_max", "--json"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(rows[0]["value"], "2");
    let none = klnode(home.path()).args(["config", "no.such.key"]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    let same = klnode(home.path()).args(["config", "filter", "--changed"]).output().unwrap();
    assert_eq!(String::from_utf8(same.stdout).unwrap(), "Every setting has its default.\n");
    assert_eq!(same.status.code(), Some(0));
    for wrong in [&["--no-such-flag"][..], &["--log", "inof"], &["--log", "info,inof"]] {
        let usage = klnode(home.path()).args(wrong).output().unwrap();
        assert_eq!(usage.status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_running_node_lists_its_settings_with_their_origin() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("klnode.toml");
    std::fs::write(&file, "[trust]\nhop_max = 2\n").unwrap();
    let mut command = klnode(home.path());
    command.env("KLNODE__LOG__LEVEL", "warn").args(["--set", "retrieval.entries_max=4"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (_node, _) = started(command);
    // It keeps the settings with which it was started.
    std::fs::write(&file, "").unwrap();
    let client = Client::new(&home.path().join("klnode.sock"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let list: NodeSettings = runtime.block_on(client.get("/v1/settings")).unwrap();
    let origin = |key: &str, value: &str| {
        let found = list.settings.iter().find(|one| one.key == key).unwrap();
        assert_eq!(found.value, value);
        assert!(!found.comment.is_empty() && !found.variable.is_empty(), "{found:?}");
        found.origin.clone()
    };
    assert_eq!(origin("trust.hop_max", "2"), format!("{} line 2", file.display()));
    assert_eq!(origin("log.level", "\"warn\""), "environment variable KLNODE__LOG__LEVEL");
    assert_eq!(origin("retrieval.entries_max", "4"), "flag --set");
    assert_eq!(origin("retrieval.budget_tokens", "500"), "default");
}

#[test]
fn a_damaged_home_is_reported_and_left_unchanged() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("node.key"), b"too short").unwrap();
    let output = klnode(home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("it is not 32 bytes long"), "{}", told(&output));
    assert_eq!(std::fs::read(home.path().join("node.key")).unwrap(), b"too short");
    std::fs::remove_file(home.path().join("node.key")).unwrap();
    std::fs::write(home.path().join("store.redb"), b"").unwrap();
    let output = klnode(home.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("is damaged"), "{}", told(&output));
}

#[test]
fn an_error_is_one_line_of_json_with_the_json_flag() {
    let home = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str], code: i32| {
        let output = klnode(home.path()).args(arguments).arg("--json").output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", told(&output));
        assert!(output.stdout.is_empty() && told(&output).lines().count() == 1);
        let line: serde_json::Value = serde_json::from_slice(&output.stderr).expect("JSON");
        let text = |name: &str| line["error"][name].as_str().unwrap_or_default().to_owned();
        ["kind", "message", "hint"].map(text)
    };
    let [kind, message, hint] = error(&["status"], 3);
    assert_eq!(kind, "no_node");
    assert!(message.starts_with("The node is not reachable: no node is running on "), "{message}");
    assert!(hint.starts_with("Start one with `klnode --home "), "{hint}");
    let (_node, _) = start(home.path());
    let [kind, message, hint] = error(&["show", "SESAME22"], 1);
    assert!(kind == "not_found" && !message.starts_with("cannot "), "{kind}: {message}");
    assert_eq!(hint, "Run `klnode list` to see entries.");
}

#[test]
fn the_log_contains_library_messages_only_at_warn_level() {
    let home = tempfile::tempdir().unwrap();
    let mut command = klnode(home.path());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (node, _) = started(command);
    signal(&node.0, "TERM");
    let log = told(&node.finish());
    assert!(log.contains(" INFO klnode::serve: The node has started "), "{log}");
    assert!(!log.contains(" INFO libp2p"), "{log}");
}

#[test]
fn a_setting_given_to_a_client_verb_is_reported_as_without_effect() {
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let status = |set: &str| {
        let output = klnode(home.path()).args(["--set", set, "status"]).output().unwrap();
        assert!(output.status.success(), "{}", told(&output));
        told(&output)
    };
    let note = "--set trust.hop_max has no effect on a running node. Restart the node with it.\n";
    assert_eq!(status("trust.hop_max=2"), note);
    assert_eq!(status("api.socket=klnode.sock"), "");
    let set = ["--set", "trust.hop_max=2", "status", "--json"];
    assert_eq!(told(&klnode(home.path()).args(set).output().unwrap()), "");
    let help = klnode(home.path()).args(["config", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains("KLNODE__TRUST__HOP_MAX=2"), "{help}");
}
