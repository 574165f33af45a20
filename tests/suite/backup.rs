//! Backups: their content, crashes during them, and the effects of restoring one.

use crate::support::homes::{lies_in, lived, settle};
use crate::support::node_process::{
    PROGRAM, Running, banner, done, eventually, json, printed, refusal, run, signal, start, told,
};
use crate::support::peer_processes::Peer;
use klnode_crdt::ids::Boot;
use klnode_engine::MarkChange;
use klnode_home::{Existing, Layout};
use klnode_store::backup::{Backup, ExistingStore, LostData, Restore, RestoreIdentity};
use klnode_store::{FrozenMedium, backup};
use klnode_tests::test_engine::{Node, START};
use redb::{Database, TableDefinition};
use serde_json::Value;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const ADD: [&str; 5] = ["add", "--evidence", "run:1", "--content", "c"];

fn add(home: &Path, title: &str) -> String {
    let named = json(home, &[&ADD[..], &["--title", title]].concat());
    named["id"].as_str().unwrap().to_owned()
}

fn back_up(home: &Path, file: &Path) -> Value {
    done(home, &["backup", "create", file.to_str().unwrap(), "--force"])
}

fn watch() -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |_, _| ControlFlow::Continue(())
}

fn sound(file: &Path) -> bool {
    let Ok(opened) = Backup::open(file) else { return false };
    opened.check_bytes(&mut watch()).is_ok() && opened.check_records(&mut watch()).is_ok()
}

#[test]
fn a_backup_during_writes_is_complete_up_to_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    let (_node, _) = start(&home);
    let before: Vec<String> = (0..3).map(|n| add(&home, &format!("before {n}"))).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                add(&home, &format!("during {count}"));
                count += 1;
            }
        });
        for _ in 0..4 {
            let manifest = back_up(&home, &file);
            assert!(sound(&file));
            assert!(manifest["entries"].as_u64().unwrap() >= 3);
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let restored = folder.path().join("restored");
    let said = printed(&run(&restored, &["backup", "restore", file.to_str().unwrap()]));
    assert!(said.contains("This home is now node"), "{said}");
    let (_node, _) = start(&restored);
    assert_eq!(json(&restored, &["status"])["node"], json(&home, &["status"])["node"]);
    for id in before {
        assert!(json(&restored, &["show", &id])["title"].as_str().unwrap().starts_with("before"));
    }
    add(&restored, "it continues");
}

#[test]
fn a_restored_backup_exports_the_same_data() {
    for seed in [11, 12, 13] {
        let folder = tempfile::tempdir().unwrap();
        let (home, file) = (folder.path().join("home"), folder.path().join("b"));
        settle(&home, lived(seed), 1);
        let export = {
            let (_node, _) = start(&home);
            back_up(&home, &file);
            run(&home, &["export"]).stdout
        };
        let verified = printed(&run(folder.path(), &["backup", "verify", file.to_str().unwrap()]));
        assert!(verified.contains(" is whole.\n") && verified.contains("with the node's key"));
        let other = folder.path().join("other");
        printed(&run(&other, &["backup", "restore", file.to_str().unwrap()]));
        assert!(run(&other, &["check", "home", "store"]).status.success());
        let (_node, _) = start(&other);
        assert_eq!(run(&other, &["export"]).stdout, export, "seed {seed}");
    }
}

#[test]
fn any_change_to_a_backup_is_detected_without_writing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b");
    let mut node = Node::start(1, 1);
    for n in 0..20 {
        node.create(&format!("entry {n}"));
    }
    let snapshot = node.engine.store().snapshot().unwrap();
    let key = klnode_crdt::signing_key::SecretKey::from_bytes(&[1; 32]);
    let about = backup::BackupFacts {
        node: node.author(),
        store: node.engine.store().id(),
        now: START,
        klnode: "test",
        key: Some(&key),
    };
    let keep = Existing::Keep;
    backup::write(&snapshot, &file, keep, &about, &mut watch()).unwrap();
    let bytes = fs::read(&file).unwrap();
    assert!(sound(&file));
    assert_eq!(fs::read(&file).unwrap(), bytes, "looking at it changed it");
    let told = backup::write(&snapshot, &file, keep, &about, &mut watch()).unwrap_err();
    assert!(told.to_string().contains("there is such a file already"), "{told}");
    let handle = fs::OpenOptions::new().write(true).open(&file).unwrap();
    for at in (0..bytes.len()).step_by(997).chain([0, 8, 12, 20, 4_063, 4_095, bytes.len() - 1]) {
        handle.write_all_at(&[bytes[at] ^ 0x10], at as u64).unwrap();
        assert!(!sound(&file), "a flipped bit at {at} was not found");
        handle.write_all_at(&bytes[at..=at], at as u64).unwrap();
    }
    assert!(sound(&file));
    for len in [0, 7, 15, 100, 4_096, 10_000, bytes.len() - 1] {
        fs::write(&file, &bytes[..len]).unwrap();
        assert!(!sound(&file), "cut to {len}");
    }
    fs::write(&file, [&bytes[..], b"more"].concat()).unwrap();
    assert!(!sound(&file), "something was added");
    // An interrupted backup leaves no file behind.
    let other = folder.path().join("other");
    let mut break_off = |_: u64, _: u64| ControlFlow::Break(());
    assert!(backup::write(&snapshot, &other, keep, &about, &mut break_off).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_damaged_store_does_not_overwrite_a_good_backup() {
    const OVERLAYS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("overlays");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b");
    let mut node = Node::start(1, 1);
    let entry = node.create("kept");
    let marks = MarkChange { pinned: Some(true), ..MarkChange::default() };
    node.run(klnode_engine::Command::Mark { entry, marks }).unwrap();
    let write = |node: &Node| {
        let store = node.engine.store();
        let (author, klnode) = (node.author(), "test");
        let about =
            backup::BackupFacts { node: author, store: store.id(), now: START, klnode, key: None };
        let snapshot = store.snapshot().unwrap();
        backup::write(&snapshot, &file, Existing::Replace, &about, &mut watch())
    };
    write(&node).unwrap();
    let good = fs::read(&file).unwrap();
    let Node { engine, medium, .. } = node;
    drop(engine);
    let disk = medium.disk().fork();
    let database = Database::builder().create_with_backend(disk.clone()).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(OVERLAYS).unwrap().insert(entry.as_bytes(), &[1, 0xC1][..]).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let node = Node::start_on(disk, 1, 2, START).unwrap();
    let told = write(&node).unwrap_err().to_string();
    assert!(told.starts_with("The store was not copied: The store is damaged: "), "{told}");
    assert!(told.contains("cannot be read"), "{told}");
    assert_eq!(fs::read(&file).unwrap(), good, "the good one stays");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn mistakes_with_backups_get_a_message_and_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    let (node, _) = start(&home);
    add(&home, "kept");
    back_up(&home, &file);
    let bytes = fs::read(&file).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("text"), "these are notes, not a backup").unwrap();
    fs::write(path("cut"), &bytes[..bytes.len() / 2]).unwrap();
    let mut newer = bytes.clone();
    newer[11] = 9;
    fs::write(path("newer"), newer).unwrap();
    let mut altered = bytes.clone();
    altered[10_000] ^= 1;
    fs::write(path("altered"), altered).unwrap();
    let file = file.to_str().unwrap();
    let cases = [
        (path("none"), 2, "No such file"),
        (path("."), 2, "Is a directory"),
        (
            path("text"),
            2,
            "it is no backup of klnode.\n  hint: `klnode backup create FILE` creates one",
        ),
        (path("cut"), 1, "is damaged (the store in it has"),
        (path("newer"), 1, "a newer klnode made it (version 9, this one knows 1)"),
        (path("altered"), 1, "the store in it was altered"),
    ];
    for (file, code, part) in &cases {
        for verb in [&["backup", "verify"][..], &["backup", "restore", "--yes"]] {
            let output = run(&home, &[verb, &[file]].concat());
            assert_eq!(output.status.code(), Some(*code), "{verb:?} {file}");
            assert!(told(&output).contains(part), "{verb:?} {file}: {}", told(&output));
        }
    }
    let running = run(&home, &["backup", "restore", file]);
    assert_eq!(running.status.code(), Some(1));
    let expected = format!(
        "error: A node is running on the home {}.\n  hint: Run `klnode stop` first.\n",
        home.display()
    );
    assert_eq!(told(&running), expected);
    let nowhere = run(&home, &["backup", "create", "/nowhere/b"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let why = "The backup /nowhere/b cannot be used: No such file";
    assert!(told(&nowhere).contains(why), "{}", told(&nowhere));
    drop(node);
    let (_node, _) = start(&home);
    assert_eq!(json(&home, &["list"])["entries"][0]["title"], "kept");
}

#[test]
fn a_full_disk_fails_the_backup_and_not_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    // A limit on the size of files simulates a full disk.
    let script = format!("trap '' XFSZ; exec {PROGRAM} --home {}", home.display());
    let child = Command::new("sh").args(["-c", &script]).env_clear().stdout(Stdio::piped()).spawn();
    let mut node = Running(child.unwrap());
    banner(&mut node);
    add(&home, "kept");
    let limit = |bytes: &str| {
        let pid = node.0.id().to_string();
        let fsize = format!("--fsize={bytes}:unlimited");
        assert!(Command::new("prlimit").args(["--pid", &pid, &fsize]).status().unwrap().success());
    };
    limit("100000");
    let output = run(&home, &["backup", "create", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("File too large"), "{}", told(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    limit("unlimited");
    back_up(&home, &file);
    assert!(sound(&file));
    assert_eq!(json(&home, &["list"])["entries"][0]["title"], "kept");
}

/// A home with a backup, a secret that was forgotten later, and a note that was added later.
fn aged(folder: &Path) -> (PathBuf, PathBuf, String) {
    let (home, file) = (folder.join("home"), folder.join("b"));
    let (node, _) = start(&home);
    add(&home, "kept");
    let secret = add(&home, "a secret called xyzzy-plugh");
    printed(&run(&home, &["mark", &secret, "--note", "note on xyzzy-plugh"]));
    back_up(&home, &file);
    printed(&run(&home, &["forget", &secret]));
    add(&home, "added since");
    fs::create_dir_all(home.join("index")).unwrap();
    fs::write(home.join("index/old"), "speaks of xyzzy-plugh").unwrap();
    node.stop();
    (home, file, secret)
}

#[test]
fn restoring_keeps_later_forgets_and_asks_before_losing_data() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file, secret) = aged(folder.path());
    assert!(lies_in(folder.path(), b"xyzzy-plugh").is_some(), "the search finds an existing text");
    let path = file.to_str().unwrap();
    let before = fs::read(home.join("store.redb")).unwrap();
    let asked = run(&home, &["backup", "restore", path]);
    assert_eq!(asked.status.code(), Some(1));
    let expected = "error: The current store holds 1 record of 1 entry that the backup lacks. The restore \
                    needs a confirmation.\n  \
                    hint: Nothing was changed; --yes replaces the store without asking.\n";
    assert_eq!(told(&asked), expected);
    assert_eq!(fs::read(home.join("store.redb")).unwrap(), before);
    let said = json(&home, &["backup", "restore", path, "--yes"]);
    assert_eq!(said["tombstones_kept"], 1);
    assert_eq!(said["records_lost"], 1);
    assert_eq!(lies_in(&home, b"xyzzy-plugh"), None, "forgotten text came back");
    assert!(!home.join("index").exists());
    let (node, _) = start(&home);
    let titles = json(&home, &["list"]);
    let titles: Vec<&str> = titles["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["kept"]);
    let output = run(&home, &["show", &secret]);
    assert!(told(&output).contains("was forgotten"), "{}", told(&output));
    assert!(run(&home, &["check", "home", "store"]).status.success());
    drop(node);
    // Nothing was added since, so no confirmation is needed.
    printed(&run(&home, &["backup", "restore", path]));
    assert_eq!(lies_in(&home, b"xyzzy-plugh"), None);
}

/// An unfinished task with a finding.
fn found(home: &Path) -> String {
    let begin = ["task", "begin", "--agent", "reviewer", "--goal", "review"];
    let task = printed(&run(home, &begin)).trim_end().to_owned();
    let text = "The lock is held while the HTTP request is sent.";
    let what = ["task", "finding", &task, "--text", text, "--severity", "medium"];
    let why = ["--confidence", "0.7", "--anchor", "path:src/client.go", "--verify", "run it"];
    printed(&run(home, &[&what[..], &why[..]].concat()));
    task
}

#[test]
fn restoring_asks_before_losing_marks_and_findings() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    let (node, _) = start(&home);
    let [kept, noted] = ["kept", "noted"].map(|title| add(&home, title));
    printed(&run(&home, &["mark", "--pin", &kept]));
    found(&home);
    let task = found(&home);
    back_up(&home, &file);
    printed(&run(&home, &["mark", &noted, "--note", "see the incident"]));
    eventually("there are vectors to compare it by", || {
        run(&home, &["task", "keep", &task, "1"]).status.success().then_some(())
    });
    found(&home);
    node.stop();
    let path = file.to_str().unwrap();
    let asked = run(&home, &["backup", "restore", path]);
    assert_eq!(asked.status.code(), Some(1));
    let part = "holds 1 record of 1 entry, 1 mark, 2 findings that the backup lacks. ";
    assert!(told(&asked).contains(part), "{}", told(&asked));
    let said = json(&home, &["backup", "restore", path, "--yes"]);
    assert_eq!(said["records_lost"], 1);
    assert_eq!(said["overlays_lost"], 1);
    assert_eq!(said["findings_lost"], 2);
    // Changes made before the backup are not lost.
    printed(&run(&home, &["backup", "restore", path]));
}

#[test]
fn restoring_keeps_later_blocks_and_invalidates_old_tickets() {
    let (mut here, lost, removed) = (Peer::start(), Peer::start(), Peer::start());
    for peer in [&lost, &removed] {
        peer.json(&["peer", "join", &here.ticket(&["--mine"])]);
    }
    let ticket = here.ticket(&["--mine"]);
    let file = here.home.join("backup");
    back_up(&here.home, &file);
    Peer::start().json(&["peer", "join", &ticket]);
    let keys = [&lost, &removed].map(Peer::key);
    here.json(&["peer", "block", &keys[0]]);
    here.json(&["peer", "remove", &keys[1]]);
    here.stop();
    let path = file.to_str().unwrap();
    let asked = here.type_in(&["backup", "restore", path]);
    let part = "The current store holds 1 peer that the backup lacks. ";
    assert!(told(&asked).contains(part), "{}", told(&asked));
    assert_eq!(here.json(&["backup", "restore", path, "--yes"])["peers_lost"], 1);
    here.run();
    let listed = here.json(&["peer", "list"]);
    let shown = |key: &String| {
        let mut peers = listed["peers"].as_array().unwrap().iter();
        peers.find(|one| one["peer"] == key.as_str()).unwrap().clone()
    };
    let [blocked, refused] = keys.each_ref().map(shown);
    assert_eq!(blocked["blocked"], true, "{blocked}");
    assert_eq!(refused["state"], "refused", "{refused}");
    assert_eq!(refused["mine"], false, "{refused}");
    let turned_away = Peer::start().type_in(&["peer", "join", &ticket]);
    assert_eq!(turned_away.status.code(), Some(4), "{}", told(&turned_away));
    let part = "the ticket is not one of this node's";
    assert!(told(&turned_away).contains(part), "{}", told(&turned_away));
}

#[test]
fn a_crash_at_any_point_of_a_restore_leaves_the_old_store_or_the_new_one() {
    for steps in 0..=3 {
        let folder = tempfile::tempdir().unwrap();
        let (home, file, secret) = aged(folder.path());
        let layout = Layout::new(&home);
        let opened = Backup::open(&file).unwrap();
        let restore =
            Restore::prepare(opened, layout.clone(), RestoreIdentity::SameNode, &mut watch())
                .unwrap();
        let lost = LostData { records: 1, entries: 1, ..LostData::default() };
        assert_eq!(*restore.in_place(), ExistingStore::Sound(lost));
        // During a restore no node can open the store.
        assert!(refusal(&home).contains("in use by another klnode process"));
        if steps >= 1 {
            restore.build(Boot(7), START, &mut watch()).unwrap();
        }
        if steps >= 2 {
            restore.clear_index().unwrap();
            restore.install_key().unwrap();
        }
        let is_new = steps == 3;
        if is_new {
            restore.swap().unwrap();
        } else {
            drop(restore);
        }
        let expected = if is_new { 1 } else { 2 };
        let (mut node, _) = start(&home);
        let entries = json(&home, &["list"])["entries"].as_array().unwrap().len();
        assert_eq!(entries, expected, "after {steps} steps");
        assert_eq!(run(&home, &["show", &secret]).status.code(), Some(1));
        signal(&node.0, "TERM");
        node.0.wait().unwrap();
        printed(&run(&home, &["backup", "restore", file.to_str().unwrap(), "--yes"]));
        assert_eq!(lies_in(&home, b"xyzzy-plugh"), None, "after {steps} steps and another run");
        assert!(!layout.restoring_file().exists());
    }
}

#[test]
fn a_home_keeps_its_key_and_refuses_another_nodes_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let (whole, keyless) = (folder.path().join("whole"), folder.path().join("keyless"));
    let (whole, keyless) = (whole.to_str().unwrap(), keyless.to_str().unwrap());
    {
        let (_one, _) = start(&one);
        let (_two, _) = start(&two);
        add(&one, "of node one");
        printed(&run(&one, &["backup", "create", whole]));
        let said = printed(&run(&one, &["backup", "create", keyless, "--without-key"]));
        assert!(said.contains("It does not contain the node's key"), "{said}");
    }
    let key = fs::read(one.join("node.key")).unwrap();
    assert_eq!(lies_in(folder.path(), &key).map(|_| ()), Some(()));
    assert!(!fs::read(keyless).unwrap().windows(32).any(|window| window == &key[..]));
    let refused = run(&two, &["backup", "restore", whole]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(told(&refused).contains(": this home is node "), "{}", told(&refused));
    let fresh = folder.path().join("fresh");
    let refused = run(&fresh, &["backup", "restore", keyless]);
    assert!(told(&refused).contains("neither it nor this home holds"), "{}", told(&refused));
    let kept = fs::read(two.join("node.key")).unwrap();
    printed(&run(&two, &["backup", "restore", whole, "--as-this-node"]));
    assert_eq!(fs::read(two.join("node.key")).unwrap(), kept);
    let (_two, banner) = start(&two);
    let shown = json(&two, &["list", "--all"])["entries"][0].clone();
    assert_eq!(shown["title"], "of node one");
    assert!(!banner[1].contains(shown["author"].as_str().unwrap()));
    // With its key put back, a home accepts a backup without a key.
    fs::write(fresh.join("node.key"), &key).unwrap();
    printed(&run(&fresh, &["backup", "restore", keyless]));
    fs::write(one.join("node.key"), b"short").unwrap();
    assert!(told(&run(&one, &["backup", "restore", whole])).contains("is not a key of 32 bytes"));
}

#[test]
fn a_backup_replaces_no_file_but_another_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("letter"));
    let (_node, _) = start(&home);
    fs::write(&file, "Dear reader,").unwrap();
    let refused = run(&home, &["backup", "create", file.to_str().unwrap(), "--force"]);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("it is no backup of klnode"), "{}", told(&refused));
    assert_eq!(fs::read(&file).unwrap(), b"Dear reader,");
    fs::write(&file, "").unwrap();
    back_up(&home, &file);
    back_up(&home, &file);
    assert!(sound(&file));
}

#[test]
fn a_backup_to_a_pipe_is_refused_without_blocking() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let node = Node::start(1, 1);
    let (author, store) = (node.author(), node.engine.store().id());
    let snapshot = node.engine.store().snapshot().unwrap();
    let (tell, told) = mpsc::channel();
    let path = pipe.clone();
    // A writer that opened the pipe would block for ever.
    std::thread::spawn(move || {
        let about =
            backup::BackupFacts { node: author, store, now: START, klnode: "test", key: None };
        for existing in [Existing::Keep, Existing::Replace] {
            let written = backup::write(&snapshot, &path, existing, &about, &mut watch());
            tell.send(written.unwrap_err().to_string()).unwrap();
        }
    });
    let expected =
        format!("The backup {} was not written: the path is not a regular file.", pipe.display());
    for _ in 0..2 {
        assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), expected);
    }
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "it is unchanged");
}

#[test]
fn a_damaged_store_is_replaced_after_confirmation() {
    for damage in ["nothing but text", ""] {
        let folder = tempfile::tempdir().unwrap();
        let (home, file, _) = aged(folder.path());
        fs::write(home.join("store.redb"), damage).unwrap();
        let path = file.to_str().unwrap();
        let asked = run(&home, &["backup", "restore", path]);
        assert!(told(&asked).contains("The current store cannot be read"), "{}", told(&asked));
        assert_eq!(fs::read(home.join("store.redb")).unwrap(), damage.as_bytes());
        printed(&run(&home, &["backup", "restore", path, "--yes"]));
        let (_node, _) = start(&home);
        assert_eq!(json(&home, &["list"])["entries"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn a_frozen_store_is_read_after_a_crash_without_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (mut node, _) = start(&home);
    add(&home, "kept");
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    let store = home.join("store.redb");
    let bytes = fs::read(&store).unwrap();
    let snapshot = FrozenMedium::store(&store).unwrap().look().unwrap();
    assert!(snapshot.check().unwrap().is_empty());
    assert_eq!(snapshot.entry_count().unwrap(), 1);
    assert!(refusal(&home).contains("in use by another klnode process"), "it is locked");
    drop(snapshot);
    assert_eq!(fs::read(&store).unwrap(), bytes);
}

#[test]
fn a_store_larger_than_the_cache_is_backed_up_verified_and_restored() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    let (node, _) = start(&home);
    let line = |n: u32| {
        format!(r#"{{"title": "long {n}", "content": "{n} {}"}}"#, "x".repeat(60_000)) + "\n"
    };
    let lines = folder.path().join("long.jsonl");
    fs::write(&lines, (0..400).map(line).collect::<String>()).unwrap();
    printed(&run(&home, &["import", lines.to_str().unwrap()]));
    assert!(back_up(&home, &file)["store_bytes"].as_u64().unwrap() > 24_000_000);
    assert!(sound(&file));
    let export = run(&home, &["export"]).stdout;
    drop(node);
    assert!(run(&home, &["check", "home", "store"]).status.success());
    printed(&run(&home, &["backup", "restore", file.to_str().unwrap()]));
    let (_node, _) = start(&home);
    assert_eq!(run(&home, &["export"]).stdout, export);
}
