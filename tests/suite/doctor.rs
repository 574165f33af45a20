//! The doctor on damaged homes, and the service units that keep a node running.

use crate::support::homes::settle;
use crate::support::node_process::{
    PROGRAM, Running, banner, checks, json, klnode, printed, refusal, run, signal, start, told,
};
use klnode_crdt::record::Record;
use klnode_engine::{Command, DeliveredRecord};
use klnode_home::Layout;
use klnode_tests::test_engine::{Node, START, exchange};
use serde_json::Value;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Verdict and sentence of one check.
#[track_caller]
fn says(home: &Path, check: &str) -> (String, String) {
    let findings = json(home, &["check", "home", "store"]);
    let of = |finding: &&Value| finding["check"] == check;
    let findings = checks(&findings);
    let found = findings.iter().find(of);
    let found = found.unwrap_or_else(|| panic!("no finding about {check}: {findings:?}"));
    let is_ok = found["verdict"] == "ok";
    assert_eq!(found["way_out"].is_null(), is_ok, "only a problem has a fix: {found}");
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("verdict"), text("says"))
}

#[track_caller]
fn expect(home: &Path, check: &str, verdict: &str, part: &str) {
    let (found, says) = says(home, check);
    assert!(found == verdict && says.contains(part), "{check}: {found}, {says}");
    let code = run(home, &["check", "home", "store"]).status.code();
    let text = String::from_utf8(run(home, &["check", "home", "store"]).stdout).unwrap();
    assert_eq!(code, Some(i32::from(text.contains("FAIL "))), "{text}");
    assert!(verdict != "fail" || code == Some(1), "{text}");
}

/// A home of a stopped node with some entries.
fn stopped(home: &Path) -> PathBuf {
    let mut node = Node::start(1, 1);
    for n in 0..30 {
        let entry = node.create(&format!("entry {n}"));
        node.succeed(entry);
    }
    settle(home, node, 1);
    fs::set_permissions(home, PermissionsExt::from_mode(0o700)).unwrap();
    home.join("store.redb")
}

#[test]
fn a_sound_home_passes_with_and_without_a_running_node() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    stopped(&home);
    for check in ["home", "key", "room", "leftovers", "socket", "store", "records", "clock"] {
        expect(&home, check, "ok", "");
    }
    let (_, said) = says(&home, "records");
    assert_eq!(said, "60 records of 30 entries, 0 of them forgotten, were verified.");
    expect(&home, "person", "warn", "unprotected");
    let (_node, _) = start(&home);
    expect(&home, "socket", "ok", "a node answers");
    expect(&home, "records", "ok", "60 records of 30 entries");
    let output = klnode(&home)
        .args(["--set", "trust.hop_max=2", "check", "home", "store", "--json"])
        .output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains("Changed: trust.hop_max"), "{said}");
}

#[test]
fn a_missing_or_accessible_home_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    expect(&home, "home", "fail", "There is no home at");
    assert!(!home.exists(), "a check creates nothing");
    let store = stopped(&home);
    let open = |path: &Path, mode| {
        fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    };
    open(&home, 0o755);
    expect(&home, "home", "fail", "(mode 755)");
    open(&home, 0o700);
    open(&store, 0o640);
    expect(&home, "store file", "fail", "(mode 640)");
    open(&store, 0o600);
    open(&home.join("node.key"), 0o604);
    expect(&home, "key", "fail", "(mode 604)");
    fs::write(home.join("node.key"), b"short").unwrap();
    expect(&home, "key", "fail", "is not 32 bytes long");
    fs::remove_file(home.join("node.key")).unwrap();
    expect(&home, "key", "fail", "is missing");
}

#[test]
fn damage_anywhere_in_a_store_is_found_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let store = stopped(&home);
    let bytes = fs::read(&store).unwrap();
    let title = bytes.windows(8).position(|window| window == b"entry 17").expect("it is there");
    let mut damaged = bytes.clone();
    damaged[title] ^= 0x20;
    fs::write(&store, &damaged).unwrap();
    expect(&home, "records", "fail", "damaged");
    assert_eq!(fs::read(&store).unwrap(), damaged, "a check changes nothing");
    let mut found = 0;
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        damaged[at..(at + 64).min(bytes.len())].fill(0xA5);
        fs::write(&store, &damaged).unwrap();
        let output = run(&home, &["check", "home", "store"]);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        let last = text.lines().last().unwrap_or_default();
        assert!(last.contains(" failure"), "at {at}: {text} {}", told(&output));
        assert_eq!(told(&output), "", "at {at}");
        found += usize::from(output.status.code() == Some(1));
    }
    assert!(found > 0, "some damage was detected");
    for content in [&b""[..], b"not a store", &bytes[..bytes.len() / 3]] {
        fs::write(&store, content).unwrap();
        expect(&home, "store", "fail", "is damaged");
    }
}

#[test]
fn inconsistent_tables_are_reported() {
    use redb::{Database, TableDefinition};
    const VIEWS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("views");
    const HELD: TableDefinition<'_, &[u8; 81], &[u8; 8]> = TableDefinition::new("held");
    const DIGESTS: TableDefinition<'_, &[u8; 32], &[u8; 8]> = TableDefinition::new("digests");
    const META: TableDefinition<'_, &[u8; 8], &[u8]> = TableDefinition::new("meta");
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let store = stopped(&home);
    let bytes = fs::read(&store).unwrap();
    let edit = |change: &dyn Fn(&redb::WriteTransaction)| {
        fs::write(&store, &bytes).unwrap();
        let database = Database::open(&store).unwrap();
        let transaction = database.begin_write().unwrap();
        change(&transaction);
        transaction.commit().unwrap();
    };
    edit(&|to| drop(to.open_table(HELD).unwrap().pop_first().unwrap()));
    expect(&home, "records", "fail", "it is not found by its entry");
    edit(&|to| drop(to.open_table(DIGESTS).unwrap().pop_first().unwrap()));
    expect(&home, "records", "fail", "it is not found by its digest");
    edit(&|to| drop(to.open_table(VIEWS).unwrap().insert(&[9; 16], &[1, 0x80][..]).unwrap()));
    expect(&home, "records", "fail", "a row of views");
    edit(&|to| drop(to.open_table(META).unwrap().insert(b"head\0\0\0\0", &[0; 8][..]).unwrap()));
    expect(&home, "records", "fail", "beyond the head of the feed");
}

#[test]
fn a_stale_socket_and_a_locked_store_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let store = stopped(&home);
    let (mut node, _) = start(&home);
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    expect(&home, "socket", "warn", "A killed node left");
    fs::write(home.join("store.copy"), "half").unwrap();
    fs::write(home.join("x.jsonl.77.part"), "half").unwrap();
    expect(&home, "leftovers", "warn", "store.copy");
    expect(&home, "leftovers", "warn", "x.jsonl.77.part");
    fs::remove_file(home.join("klnode.sock")).unwrap();
    fs::write(home.join("klnode.sock"), "no socket").unwrap();
    expect_offline(&home, "socket", "is not a socket");
    fs::remove_file(home.join("klnode.sock")).unwrap();
    let database = redb::Database::open(&store).unwrap();
    expect(&home, "store", "fail", "in use by another klnode process");
    drop(database);
    let _listener = UnixListener::bind(folder.path().join("elsewhere.sock")).unwrap();
    expect(&home, "store", "ok", "The store opens.");
}

#[test]
fn a_briefly_locked_store_is_left_unchanged_without_advice_to_stop_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let store = stopped(&home);
    let lock = fs::File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    expect(&home, "store", "fail", "such as a node that is starting or ending");
    // As a node that repairs its store before it answers.
    let _database = redb::Database::open(&store).unwrap();
    expect(&home, "store", "fail", "such as a node that is starting or ending");
    let said = String::from_utf8(run(&home, &["check", "home", "store"]).stdout).unwrap();
    assert!(said.contains("Run `klnode check` again in a moment"), "{said}");
    assert!(!said.contains("Stop the process"), "{said}");
}

#[test]
fn a_node_that_starts_during_a_check_names_the_doctor() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    stopped(&home);
    start(&home).0.stop();
    let mut said = None;
    let findings = klnode_doctor::store_file(&Layout::new(&home), None, START, &mut |_, _| {
        said.get_or_insert_with(|| refusal(&home));
        ControlFlow::Continue(())
    });
    let said = said.expect("it was looked at");
    assert!(said.contains("Cannot use the home ") && said.contains("`klnode check`"), "{said}");
    let is_fine = |finding: &klnode_api_types::health_check::CheckResult| {
        finding.verdict != klnode_api_types::health_check::CheckSeverity::Fail
    };
    assert!(findings.unwrap().iter().all(is_fine), "the doctor continues");
}

#[test]
fn a_hung_node_is_reported_after_a_timeout() {
    let home = tempfile::tempdir().unwrap();
    let (node, _) = start(home.path());
    signal(&node.0, "STOP");
    expect_offline(home.path(), "socket", "does not answer");
    signal(&node.0, "CONT");
    assert_eq!(says(home.path(), "socket").0, "ok");
}

/// As [`expect`], for a socket that no client can connect to.
#[track_caller]
fn expect_offline(home: &Path, check: &str, part: &str) {
    let output = run(home, &["check", "home", "store"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap() + &told(&output);
    assert!(text.contains(check) && text.contains(part), "{text}");
}

#[test]
fn clocks_quarantine_and_equivocation_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    // A record from the year 2100.
    let home = folder.path().join("ahead");
    let mut node = Node::start(1, 1);
    node.now = START.plus(Duration::from_secs(75 * 365 * 86_400));
    node.create("from the future");
    settle(&home, node, 1);
    expect(&home, "clock", "warn", "A record of this node is stamped ");

    // Two lives of one home in one slot: the same boot, different texts.
    let (mut one, mut two) = (Node::start(2, 7), Node::start(2, 7));
    let entry = one.create("same");
    assert_eq!(two.create("other"), entry);
    let mut home_node = Node::start(1, 1);
    exchange(&mut home_node, &mut one);
    exchange(&mut home_node, &mut two);
    let home = folder.path().join("witness");
    settle(&home, home_node, 1);
    expect(&home, "equivocation", "warn", "has signed two different records in one slot");
    let culprit = folder.path().join("culprit");
    exchange(&mut one, &mut two);
    settle(&culprit, one, 2);
    expect(&culprit, "equivocation", "fail", "This node's key has signed two");

    // A quarantined record.
    let judge = |_: &Record, source: klnode_engine::RecordSource| match source {
        klnode_engine::RecordSource::Local => klnode_engine::ScreenDecision::Admit,
        klnode_engine::RecordSource::Peer(_) => {
            klnode_engine::ScreenDecision::Quarantine("odd".into())
        }
    };
    let mut careful = Node::start_with_screen(1, 1, Box::new(judge));
    let mut peer = Node::start(3, 3);
    let entry = peer.create("doubtful");
    let held = peer.engine.store().snapshot().unwrap().holding(entry, peer.author()).unwrap();
    let record = held.records().next().unwrap().clone();
    let from = peer.author();
    careful.run(Command::Ingest(vec![DeliveredRecord { record, from }])).unwrap();
    let home = folder.path().join("careful");
    settle(&home, careful, 1);
    expect(&home, "quarantine", "warn", "1 record waits for your decision");
}

/// The unit without this machine's paths.
fn unit(home: &Path, arguments: &[&str]) -> (String, String) {
    let output = run(home, arguments);
    let plain = |text: String| {
        text.replace(PROGRAM, "/usr/local/bin/klnode")
            .replace(&home.display().to_string(), "/home/you/klnode home")
    };
    let said = told(&output);
    (plain(printed(&output)), plain(said))
}

#[test]
fn the_service_units_are_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a home");
    let (systemd, install) = unit(&home, &["generate", "service", "--systemd"]);
    crate::golden_formats::check("service-systemd.txt", &(systemd + &install));
    let (launchd, install) = unit(&home, &["generate", "service", "--launchd"]);
    crate::golden_formats::check("service-launchd.txt", &(launchd + &install));
    assert!(!home.exists(), "printing creates nothing");
    let both = run(&home, &["generate", "service", "--systemd", "--launchd"]);
    assert_eq!(both.status.code(), Some(2));
    let (default, _) = unit(&home, &["generate", "service"]);
    let expected = if cfg!(target_os = "macos") { "<?xml" } else { "[Unit]" };
    assert!(default.starts_with(expected));
}

#[test]
fn the_unit_starts_a_node_that_stops_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("a home");
    let unit = printed(&run(&home, &["generate", "service", "--systemd"]));
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    // Its words are quoted as for a shell, without further escapes.
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(format!("exec {line}")).env_clear();
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut node = Running(child);
    banner(&mut node);
    node.stop();
}
