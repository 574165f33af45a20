//! Backups: what they hold, what they survive, and what putting one in place keeps and loses.

use crate::homes::{lies_in, lived, settle};
use crate::peer::Peer;
use crate::program::{
    PROGRAM, Running, banner, done, eventually, json, printed, refusal, run, signal, start, told,
};
use klnode::engine::Marks;
use klnode::store::backup::{Backup, Identity, InPlace, Lost, Restore};
use klnode::store::{Existing, FrozenMedium, Layout, backup};
use klnode_crdt::ids::Boot;
use klnode_tests::node::{Node, START};
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
    done(home, &["backup", file.to_str().unwrap(), "--force"])
}

fn watch() -> impl FnMut(u64, u64) -> ControlFlow<()> {
    |_, _| ControlFlow::Continue(())
}

fn sound(file: &Path) -> bool {
    let Ok(opened) = Backup::open(file) else { return false };
    opened.check_bytes(&mut watch()).is_ok() && opened.check_records(&mut watch()).is_ok()
}

#[test]
fn a_backup_made_while_others_write_is_whole_and_holds_all_that_was_acknowledged_before() {
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
    let said = printed(&run(&restored, &["restore", file.to_str().unwrap()]));
    assert!(said.contains("This home is now node"), "{said}");
    let (_node, _) = start(&restored);
    assert_eq!(json(&restored, &["status"])["node"], json(&home, &["status"])["node"]);
    for id in before {
        assert!(json(&restored, &["show", &id])["title"].as_str().unwrap().starts_with("before"));
    }
    add(&restored, "it goes on");
}

#[test]
fn a_backup_holds_everything_and_restoring_it_gives_it_back() {
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
        printed(&run(&other, &["restore", file.to_str().unwrap()]));
        assert!(run(&other, &["doctor"]).status.success());
        let (_node, _) = start(&other);
        assert_eq!(run(&other, &["export"]).stdout, export, "seed {seed}");
    }
}

#[test]
fn whatever_is_changed_in_a_backup_is_found_and_looking_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b");
    let mut node = Node::start(1, 1);
    for n in 0..20 {
        node.create(&format!("entry {n}"));
    }
    let snapshot = node.engine.store().snapshot().unwrap();
    let key = klnode_crdt::key::SecretKey::from_bytes(&[1; 32]);
    let about = backup::About {
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
    // Broken off in the middle, nothing is left behind.
    let other = folder.path().join("other");
    let mut break_off = |_: u64, _: u64| ControlFlow::Break(());
    assert!(backup::write(&snapshot, &other, keep, &about, &mut break_off).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_is_damaged_beside_the_records_takes_the_place_of_no_good_backup() {
    const OVERLAYS: TableDefinition<'_, &[u8; 16], &[u8]> = TableDefinition::new("overlays");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b");
    let mut node = Node::start(1, 1);
    let entry = node.create("kept");
    let marks = Marks { pinned: Some(true), ..Marks::default() };
    node.run(klnode::engine::Command::Mark { entry, marks }).unwrap();
    let write = |node: &Node| {
        let store = node.engine.store();
        let (author, klnode) = (node.author(), "test");
        let about =
            backup::About { node: author, store: store.id(), now: START, klnode, key: None };
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
    assert!(told.starts_with("copy the store: read the store: "), "{told}");
    assert!(told.contains("is damaged"), "{told}");
    assert_eq!(fs::read(&file).unwrap(), good, "the good one stays");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn mistakes_with_backups_get_a_sentence_and_an_exit_code() {
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
        (path("text"), 2, "it is no backup of klnode\n  hint: `klnode backup FILE` makes one"),
        (path("cut"), 1, "it is damaged (the store in it has"),
        (path("newer"), 1, "a newer klnode made it (version 9, this one knows 1)"),
        (path("altered"), 1, "the store in it was altered"),
    ];
    for (file, code, part) in &cases {
        for verb in [&["backup", "verify"][..], &["restore", "--yes"]] {
            let output = run(&home, &[verb, &[file]].concat());
            assert_eq!(output.status.code(), Some(*code), "{verb:?} {file}");
            assert!(told(&output).contains(part), "{verb:?} {file}: {}", told(&output));
        }
    }
    let running = run(&home, &["restore", file]);
    assert_eq!(running.status.code(), Some(1));
    let expected = format!(
        "klnode: cannot restore into {}: a node is running on it\n  hint: stop it first\n",
        home.display()
    );
    assert_eq!(told(&running), expected);
    let nowhere = run(&home, &["backup", "/nowhere/b"]);
    assert_eq!(nowhere.status.code(), Some(1));
    let why = "klnode: cannot use the backup /nowhere/b: No such file";
    assert!(told(&nowhere).starts_with(why), "{}", told(&nowhere));
    drop(node);
    let (_node, _) = start(&home);
    assert_eq!(json(&home, &["list"])["entries"][0]["title"], "kept");
}

#[test]
fn a_disk_without_room_costs_the_backup_and_not_the_node() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    // A limit on the size of files stands for a disk that is full.
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
    let output = run(&home, &["backup", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    assert!(told(&output).contains("File too large"), "{}", told(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");
    limit("unlimited");
    back_up(&home, &file);
    assert!(sound(&file));
    assert_eq!(json(&home, &["list"])["entries"][0]["title"], "kept");
}

/// A home with a backup, a secret that was forgotten since, and a note that was added since.
fn aged(folder: &Path) -> (PathBuf, PathBuf, String) {
    let (home, file) = (folder.join("home"), folder.join("b"));
    let (node, _) = start(&home);
    add(&home, "kept");
    let secret = add(&home, "a secret called xyzzy-plugh");
    printed(&run(&home, &["annotate", &secret, "note on xyzzy-plugh"]));
    back_up(&home, &file);
    printed(&run(&home, &["forget", &secret]));
    add(&home, "added since");
    fs::create_dir_all(home.join("index")).unwrap();
    fs::write(home.join("index/old"), "speaks of xyzzy-plugh").unwrap();
    node.stop();
    (home, file, secret)
}

#[test]
fn restoring_keeps_what_was_forgotten_since_forgotten_and_asks_before_anything_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file, secret) = aged(folder.path());
    assert!(lies_in(folder.path(), b"xyzzy-plugh").is_some(), "the search finds what is there");
    let path = file.to_str().unwrap();
    let before = fs::read(home.join("store.redb")).unwrap();
    let asked = run(&home, &["restore", path]);
    assert_eq!(asked.status.code(), Some(1));
    let expected = "klnode: cannot restore without a yes: the store in place holds 1 record of 1 entry \
                    that the backup lacks\n  \
                    hint: nothing was changed; --yes replaces it all the same\n";
    assert_eq!(told(&asked), expected);
    assert_eq!(fs::read(home.join("store.redb")).unwrap(), before);
    let said = json(&home, &["restore", path, "--yes"]);
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
    assert!(told(&output).contains("it was forgotten"), "{}", told(&output));
    assert!(run(&home, &["doctor"]).status.success());
    drop(node);
    // Nothing new since: nobody needs to be asked.
    printed(&run(&home, &["restore", path]));
    assert_eq!(lies_in(&home, b"xyzzy-plugh"), None);
}

/// A task in which something was found, and which goes on.
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
fn restoring_asks_before_overlays_and_findings_are_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("b"));
    let (node, _) = start(&home);
    let [kept, noted] = ["kept", "noted"].map(|title| add(&home, title));
    printed(&run(&home, &["pin", &kept]));
    found(&home);
    let task = found(&home);
    back_up(&home, &file);
    printed(&run(&home, &["annotate", &noted, "see the incident"]));
    eventually("there are vectors to compare it by", || {
        run(&home, &["task", "keep", &task, "1"]).status.success().then_some(())
    });
    found(&home);
    node.stop();
    let path = file.to_str().unwrap();
    let asked = run(&home, &["restore", path]);
    assert_eq!(asked.status.code(), Some(1));
    let part = "holds 1 record of 1 entry, 1 overlay, 2 findings that the backup lacks\n";
    assert!(told(&asked).contains(part), "{}", told(&asked));
    let said = json(&home, &["restore", path, "--yes"]);
    assert_eq!(said["records_lost"], 1);
    assert_eq!(said["overlays_lost"], 1);
    assert_eq!(said["findings_lost"], 2);
    // Nothing is lost by what was done before the backup.
    printed(&run(&home, &["restore", path]));
}

#[test]
fn who_was_shut_out_since_a_backup_stays_out_and_no_ticket_of_it_is_good_again() {
    let (mut here, lost, removed) = (Peer::start(), Peer::start(), Peer::start());
    for peer in [&lost, &removed] {
        peer.json(&["join", &here.ticket(&["--mine"])]);
    }
    let ticket = here.ticket(&["--mine"]);
    let file = here.home.join("backup");
    back_up(&here.home, &file);
    Peer::start().json(&["join", &ticket]);
    let keys = [&lost, &removed].map(Peer::key);
    here.json(&["peer", "block", &keys[0]]);
    here.json(&["peer", "remove", &keys[1]]);
    here.stop();
    let path = file.to_str().unwrap();
    let asked = here.type_in(&["restore", path]);
    let part = "the store in place holds 1 peer that the backup lacks\n";
    assert!(told(&asked).contains(part), "{}", told(&asked));
    assert_eq!(here.json(&["restore", path, "--yes"])["peers_lost"], 1);
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
    let turned_away = Peer::start().type_in(&["join", &ticket]);
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
            Restore::prepare(opened, layout.clone(), Identity::SameNode, &mut watch()).unwrap();
        let lost = Lost { records: 1, entries: 1, ..Lost::default() };
        assert_eq!(*restore.in_place(), InPlace::Sound(lost));
        // While it is under way no node takes the store.
        assert!(refusal(&home).contains("another klnode is using it"));
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
        printed(&run(&home, &["restore", file.to_str().unwrap(), "--yes"]));
        assert_eq!(lies_in(&home, b"xyzzy-plugh"), None, "after {steps} steps and another run");
        assert!(!layout.restoring_file().exists());
    }
}

#[test]
fn a_home_keeps_its_key_and_another_nodes_backup_comes_only_as_another_authors() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let (whole, keyless) = (folder.path().join("whole"), folder.path().join("keyless"));
    let (whole, keyless) = (whole.to_str().unwrap(), keyless.to_str().unwrap());
    {
        let (_one, _) = start(&one);
        let (_two, _) = start(&two);
        add(&one, "of node one");
        printed(&run(&one, &["backup", whole]));
        let said = printed(&run(&one, &["backup", keyless, "--without-key"]));
        assert!(said.contains("The node's key is not in it"), "{said}");
    }
    let key = fs::read(one.join("node.key")).unwrap();
    assert_eq!(lies_in(folder.path(), &key).map(|_| ()), Some(()));
    assert!(!fs::read(keyless).unwrap().windows(32).any(|window| window == &key[..]));
    let refused = run(&two, &["restore", whole]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(told(&refused).contains(": this home is node "), "{}", told(&refused));
    let fresh = folder.path().join("fresh");
    let refused = run(&fresh, &["restore", keyless]);
    assert!(told(&refused).contains("neither it nor this home holds"), "{}", told(&refused));
    let kept = fs::read(two.join("node.key")).unwrap();
    printed(&run(&two, &["restore", whole, "--as-this-node"]));
    assert_eq!(fs::read(two.join("node.key")).unwrap(), kept);
    let (_two, banner) = start(&two);
    let shown = json(&two, &["list", "--all"])["entries"][0].clone();
    assert_eq!(shown["title"], "of node one");
    assert!(!banner[1].contains(shown["author"].as_str().unwrap()));
    // With its key put back, a home takes a backup that has none.
    fs::write(fresh.join("node.key"), &key).unwrap();
    printed(&run(&fresh, &["restore", keyless]));
    fs::write(one.join("node.key"), b"short").unwrap();
    assert!(told(&run(&one, &["restore", whole])).contains("is not a key of 32 bytes"));
}

#[test]
fn a_backup_replaces_no_file_but_another_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (home, file) = (folder.path().join("home"), folder.path().join("letter"));
    let (_node, _) = start(&home);
    fs::write(&file, "Dear reader,").unwrap();
    let refused = run(&home, &["backup", file.to_str().unwrap(), "--force"]);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("it is no backup of klnode"), "{}", told(&refused));
    assert_eq!(fs::read(&file).unwrap(), b"Dear reader,");
    fs::write(&file, "").unwrap();
    back_up(&home, &file);
    back_up(&home, &file);
    assert!(sound(&file));
}

#[test]
fn a_backup_to_a_pipe_is_refused_and_waits_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let node = Node::start(1, 1);
    let (author, store) = (node.author(), node.engine.store().id());
    let snapshot = node.engine.store().snapshot().unwrap();
    let (tell, told) = mpsc::channel();
    let path = pipe.clone();
    // Who opened the pipe would never come back.
    std::thread::spawn(move || {
        let about = backup::About { node: author, store, now: START, klnode: "test", key: None };
        for existing in [Existing::Keep, Existing::Replace] {
            let written = backup::write(&snapshot, &path, existing, &about, &mut watch());
            tell.send(written.unwrap_err().to_string()).unwrap();
        }
    });
    let expected = format!("write the backup {}: what is there is no plain file", pipe.display());
    for _ in 0..2 {
        assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), expected);
    }
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo(), "it is left alone");
}

#[test]
fn a_damaged_store_is_replaced_once_somebody_says_yes() {
    for damage in ["nothing but text", ""] {
        let folder = tempfile::tempdir().unwrap();
        let (home, file, _) = aged(folder.path());
        fs::write(home.join("store.redb"), damage).unwrap();
        let path = file.to_str().unwrap();
        let asked = run(&home, &["restore", path]);
        assert!(told(&asked).contains("the store in place cannot be read"), "{}", told(&asked));
        assert_eq!(fs::read(home.join("store.redb")).unwrap(), damage.as_bytes());
        printed(&run(&home, &["restore", path, "--yes"]));
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
    assert!(refusal(&home).contains("another klnode is using it"), "it is locked");
    drop(snapshot);
    assert_eq!(fs::read(&store).unwrap(), bytes);
}

#[test]
fn a_store_larger_than_what_is_kept_of_it_in_memory_is_backed_up_verified_and_restored() {
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
    assert!(run(&home, &["doctor"]).status.success());
    printed(&run(&home, &["restore", file.to_str().unwrap()]));
    let (_node, _) = start(&home);
    assert_eq!(run(&home, &["export"]).stdout, export);
}
