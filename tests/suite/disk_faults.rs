//! A failing disk: nothing is acknowledged that is not stored, nothing panics, and the node
//! recovers with the disk.

use crate::support::node_process::{PROGRAM, Running, started, told};
use klnode_crdt::ids::EntryId;
use klnode_crdt::live_records::EntryRecords;
use klnode_engine::{Command, IngestOutcome, NewEntry, PeerCommand, Receipt, Rejection, SourceKey};
use klnode_server::Limits;
use klnode_store::peers::row_types::PeerRow;
use klnode_store::row_types::ServedRow;
use klnode_tests::disk::{Disk, Fault, PowerCut};
use klnode_tests::test_engine::{Node, START, lesson, success};
use klnode_tests::test_server::{Answer, Doors, PATIENCE, Served, read, request};
use klnode_tests::workspace_fixture::paired;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{self, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const WRITES: u64 = 14;

/// A node with one entry, on its own disk.
fn prepared() -> (Disk, EntryId) {
    let mut node = Node::start(1, 1);
    let entry = node.create("prepared");
    let disk = node.medium.disk();
    drop(node);
    (disk.fork(), entry)
}

/// Runs a script with one fault and returns the number of calls. Every other write is a new entry,
/// so that the writes spread over many pages.
fn survive(fault: Fault, at_call: u64) -> u64 {
    let (disk, entry) = prepared();
    let mut node = Node::start_on(disk, 1, 3, START).expect("opens");
    let faulty = node.medium.disk();
    let calls_before = faulty.counts().calls();
    faulty.fail_at_call(at_call, fault);
    let (mut observed, mut created, mut in_doubt) = (0, Vec::new(), 0);
    for write in 0..WRITES {
        let command = match write % 2 {
            0 => success(entry),
            _ => Command::Create(Box::new(lesson(&format!("{write} {}", "x".repeat(150))))),
        };
        match node.run(command) {
            Ok(Receipt::Created(entry)) => created.push(entry),
            Ok(_) => observed += 1,
            Err(rejection) => {
                in_doubt += 1;
                let told = rejection.to_string();
                let expected = if fault == Fault::NoSpace { "the disk is full" } else { "failed" };
                assert!(told.contains(expected), "{told}");
            }
        }
    }
    assert!(in_doubt <= 1, "{fault:?} at call {at_call}: it works again at the next write");
    let calls = faulty.counts().calls() - calls_before;
    for cut in [PowerCut::DropAll, PowerCut::Scatter] {
        let image = node.medium.disk().crash_image(cut, at_call);
        let after = Node::start_on(image, 1, 4, START)
            .unwrap_or_else(|error| panic!("{fault:?} at call {at_call}, {cut:?}: {error}"));
        let found = after.successes(entry);
        assert!(
            (observed..=observed + in_doubt).contains(&found),
            "{fault:?} at call {at_call}, {cut:?}: {observed} observed, {found} found"
        );
        for entry in &created {
            assert!(after.title(*entry).is_some(), "{fault:?} at call {at_call}, {cut:?}");
        }
        assert!(after.engine.store().snapshot().unwrap().check().unwrap().is_empty());
    }
    calls
}

#[test]
fn a_fault_at_any_call_loses_at_most_its_write() {
    for fault in Fault::ALL {
        let calls = survive(fault, u64::MAX / 2);
        for at_call in 0..calls {
            survive(fault, at_call);
        }
    }
}

/// Empties the page cache with one fault and returns the number of calls.
fn empty_cache(fault: Fault, at_call: u64) -> u64 {
    let (disk, entry) = prepared();
    let mut node = Node::start_on(disk, 1, 3, START).expect("opens");
    node.succeed(entry);
    let faulty = node.medium.disk();
    let calls_before = faulty.counts().calls();
    faulty.fail_at_call(at_call, fault);
    node.engine.release_cache();
    let calls = faulty.counts().calls() - calls_before;
    assert_eq!(node.successes(entry), 1, "{fault:?} at call {at_call}: reads continue");
    node.run(success(entry)).or_else(|_| node.run(success(entry))).expect("it works again");
    for cut in [PowerCut::DropAll, PowerCut::Scatter] {
        let image = node.medium.disk().crash_image(cut, at_call);
        let after = Node::start_on(image, 1, 4, START)
            .unwrap_or_else(|error| panic!("{fault:?} at call {at_call}, {cut:?}: {error}"));
        assert_eq!(after.successes(entry), 2, "{fault:?} at call {at_call}, {cut:?}");
        assert!(after.engine.store().snapshot().unwrap().check().unwrap().is_empty());
    }
    calls
}

#[test]
fn a_fault_while_the_page_cache_is_emptied_loses_no_write() {
    for fault in Fault::ALL {
        for at_call in 0..=empty_cache(fault, u64::MAX / 2) {
            empty_cache(fault, at_call);
        }
    }
}

#[test]
fn a_failed_disk_that_cannot_be_copied_stays_readable() {
    let mut before = Node::start(1, 1);
    let entries: Vec<_> = (0..200).map(|n| before.create(&format!("kept {n}"))).collect();
    let mut node =
        Node::start_on(before.medium.disk().fork(), 1, 2, START).expect("a copy in memory opens");
    node.medium.be_past_saving(true);
    let disk = node.medium.disk();
    disk.fail_at_call(0, Fault::Io);
    for _ in 0..2 {
        let rejection = node.run(success(entries[0])).expect_err("the disk has failed");
        assert!(matches!(rejection, Rejection::Store(_) | Rejection::Reopen(_)), "{rejection}");
        for (n, entry) in entries.iter().enumerate() {
            assert_eq!(node.title(*entry), Some(format!("kept {n}")), "reads still work");
        }
    }
    node.medium.be_past_saving(false);
    node.succeed(entries[0]);
    assert_eq!(node.successes(entries[0]), 1);
}

/// Marks a peer as the person's own, with a fault at a call. Returns the number of calls, and
/// whether the command failed, was not stored and had no effect.
fn adopt(fault: Fault, at_call: u64) -> (u64, bool) {
    let source = SourceKey { format: "jsonl".into(), key: "row 1".into() };
    let imported = || NewEntry { source: Some(source.clone()), ..lesson("imported") };
    let (mut node, mut laptop) = (Node::start(1, 1), Node::start(2, 2));
    let entry = node.create_new(imported());
    assert_eq!(laptop.create_new(imported()), entry);
    laptop.run(Command::Forget { entry }).expect("at home");
    let EntryRecords::Forgotten(tombstone) = laptop.records(entry) else { panic!("held") };

    let mut node = Node::start_on(node.medium.disk().fork(), 1, 3, START).expect("opens");
    let faulty = node.medium.disk();
    let calls_before = faulty.counts().calls();
    faulty.fail_at_call(at_call, fault);
    let row = PeerRow { is_mine: true, ..paired("laptop") };
    let put = PeerCommand::Put(laptop.author(), Box::new(row));
    let has_failed = node.run(Command::Peers(vec![put])).is_err();
    let calls = faulty.counts().calls() - calls_before;
    faulty.heal();
    // Only the person's own nodes may forget an entry imported into `main`.
    let ingested = node.ingest(*tombstone, laptop.author());
    let snapshot = node.engine.store().snapshot().unwrap();
    let peers = snapshot.peers().unwrap();
    let is_stored = peers.iter().any(|(peer, row)| *peer == laptop.author() && row.is_mine);
    let is_heard = matches!(ingested, IngestOutcome::Merged(_));
    assert_eq!(is_heard, is_stored, "{fault:?} at call {at_call}: {ingested:?}");
    assert!(has_failed || is_stored, "{fault:?} at call {at_call}");
    (calls, has_failed && !is_stored)
}

#[test]
fn a_failed_write_does_not_mark_a_peer_as_own() {
    let (calls, _) = adopt(Fault::NoSpace, u64::MAX / 2);
    let failed = (0..calls).filter(|at_call| adopt(Fault::NoSpace, *at_call).1).count();
    assert!(failed > 0, "no write has failed");
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let mut node = Node::start(1, 1);
    let entry = node.create("room");
    let disk = node.medium.disk();
    disk.capacity_bytes(Some(disk.filled_bytes()));
    let mut written = 0;
    let rejection = loop {
        match node.run(Command::Create(Box::new(lesson("more")))) {
            Ok(_) => written += 1,
            Err(rejection) => break rejection,
        }
        assert!(written < 10_000, "the disk never filled up");
    };
    assert!(matches!(rejection, Rejection::Store(_) | Rejection::Reopen(_)), "{rejection}");
    for _ in 0..3 {
        assert!(node.run(Command::Create(Box::new(lesson("more")))).is_err());
    }
    assert_eq!(node.title(entry).as_deref(), Some("room"), "reads still work");
    disk.capacity_bytes(None);
    node.succeed(entry);
    assert_eq!(node.successes(entry), 1);
    let entries = node.engine.store().snapshot().unwrap().entry_count().unwrap();
    assert!(entries > written, "acknowledged entries are stored");
}

/// Size of the real file system: a node, its index, and a few hundred entries.
const ROOM: &str = "24m";
/// Size of the ballast file that is removed later.
const BALLAST_BYTES: usize = 6 * 1024 * 1024;
const FILLING_MAX: usize = 4_000;

/// A small file system for the lifetime of this value; `None` if the system does not allow a mount.
struct SmallDisk {
    holder: Running,
    folder: TempDir,
}

impl SmallDisk {
    fn mount(what: &str) -> Option<Self> {
        let mounted = Self::mounted();
        if mounted.is_none() {
            let skipped = format!("skipped: {what} (no tmpfs can be mounted here)\n");
            std::io::stderr().write_all(skipped.as_bytes()).unwrap();
        }
        mounted
    }

    fn mounted() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = format!("mount -t tmpfs -o size={ROOM},mode=700 tmpfs \"$0\"");
        let script = format!("{mount} && mkdir \"$0/home\" && echo mounted && exec sleep 3600");
        let mut command = process::Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]).arg(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = Running(command.spawn().ok()?);
        let mut said = String::new();
        BufReader::new(holder.0.stdout.as_mut().expect("piped")).read_line(&mut said).ok()?;
        (said == "mounted\n").then_some(Self { holder, folder })
    }

    /// A command that runs a program in the mount namespace of the small file system, which other
    /// processes do not see.
    fn command(&self, program: &str) -> process::Command {
        let mut command = process::Command::new("nsenter");
        let holder = self.holder.0.id().to_string();
        command.args(["--user", "--mount", "--preserve-credentials", "--target", &holder]);
        command.arg(program).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin");
        command.stdin(Stdio::null());
        command
    }

    fn klnode(&self) -> process::Command {
        let mut command = self.command(PROGRAM);
        command.arg("--home").arg(self.folder.path().join("home"));
        command
    }

    fn start(&self, socket: &Path) -> Running {
        let mut command = self.klnode();
        command.arg("--set").arg(format!("api.socket={}", socket.display()));
        command.args(["--set", "network.listen=[\"/ip4/127.0.0.1/tcp/0\"]"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        started(command).0
    }

    /// Writes a ballast file of this size, or removes it.
    fn ballast(&self, bytes: usize) {
        self.shell(&match bytes {
            0 => "rm \"$0/ballast\"".to_owned(),
            _ => format!("head -c {bytes} /dev/zero > \"$0/ballast\""),
        });
    }

    fn shell(&self, script: &str) {
        let mut shell = self.command("/bin/sh");
        assert!(shell.arg("-c").arg(script).arg(self.folder.path()).status().unwrap().success());
    }
}

/// Sends a request to a node's socket.
fn ask(socket: &Path, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let headers: &[(&str, &str)] =
        if body.is_empty() { &[] } else { &[("Content-Type", "application/json")] };
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&request(method, path, headers, body.as_bytes())).unwrap();
    read(stream)
}

fn add(socket: &Path, number: usize) -> Result<String, Answer> {
    let words = (0..3_000).map(|word| format!("word{}", number * 7 + word));
    let content = words.collect::<Vec<_>>().join(" ");
    let title = format!("filling number {number}");
    let body = json!({"title": title, "content": content, "evidence": ["run:1"]});
    let answer = ask(socket, "POST", "/v1/entries", &body);
    match answer.status {
        200 => Ok(answer.json()["id"].as_str().unwrap().to_owned()),
        _ => Err(answer),
    }
}

#[track_caller]
fn expect_all(socket: &Path, written: &[String], when: &str) {
    for (number, id) in written.iter().enumerate() {
        let shown = ask(socket, "GET", &format!("/v1/entries/{id}"), &Value::Null);
        assert_eq!(shown.status, 200, "{when}, number {number}: {}", shown.text());
        assert_eq!(shown.json()["id"], id.as_str(), "{when}");
    }
}

#[test]
fn reads_on_a_full_disk_do_not_retry_the_write_each_time() {
    for fault in [Fault::NoSpace, Fault::Io] {
        let (disk, entry) = prepared();
        let mut node = Node::start_on(disk, 1, 3, START).expect("opens");
        let faulty = node.medium.disk();
        node.medium.be_past_saving(true);
        faulty.fail_every(1, fault);
        assert!(node.run(success(entry)).is_err());
        let calls = faulty.counts().calls();
        node.run(served(entry)).expect("reading goes on");
        assert_eq!(faulty.counts().calls(), calls, "{fault:?}: the disk is left alone");
        // The retry happens after a while, and not only when a clock that was set back catches up.
        for now in [node.now.plus(Duration::from_secs(120)), START] {
            let calls = faulty.counts().calls();
            node.now = now;
            node.run(served(entry)).expect("reading goes on");
            assert!(faulty.counts().calls() > calls, "{fault:?}: now and then it is tried");
            node.run(served(entry)).expect("reading goes on");
        }
        faulty.heal();
        node.medium.be_past_saving(false);
        node.run(success(entry)).expect("there is room");
        node.run(served(entry)).expect("and for servings");
        assert_eq!(times_served(&node, entry), 6, "{fault:?}: all servings are logged");
    }
}

fn served(entry: EntryId) -> Command {
    Command::Served(ServedRow { entries: vec![entry], ..ServedRow::default() })
}

fn times_served(node: &Node, entry: EntryId) -> u32 {
    node.engine.store().snapshot().unwrap().uses(entry).unwrap().served
}

#[test]
fn servings_before_a_disk_failure_are_kept() {
    for fault in Fault::ALL {
        let (disk, entry) = prepared();
        let mut node = Node::start_on(disk, 1, 3, START).expect("opens");
        node.run(served(entry)).expect("noted, and not waited for");
        node.medium.disk().fail_at_call(0, fault);
        assert!(node.run(success(entry)).is_err(), "{fault:?}");
        node.succeed(entry);
        assert_eq!(times_served(&node, entry), 1, "{fault:?}");
        node.run(served(entry)).expect("as before");
        assert_eq!(times_served(&node, entry), 2, "{fault:?}: nothing is noted twice");
    }
}

/// Whether the status contains this attention message.
fn wants(node: &Served, what: &str) -> bool {
    let attention = node.ask("GET", "/v1/status", &[], b"").json()["attention"].clone();
    attention.as_array().expect("a list").iter().any(|one| one.as_str().unwrap().contains(what))
}

#[test]
fn a_failing_disk_is_reported_in_the_status_until_a_write_succeeds() {
    const REFUSED: &str = "the disk refused the last write: free space";
    let node = Served::start(Limits::default(), Doors::Socket);
    add(&node.socket, 0).expect("there is room");
    assert!(!wants(&node, REFUSED));
    let disk = node.medium.disk();
    disk.capacity_bytes(Some(disk.filled_bytes()));
    let is_refused = |number| add(&node.socket, number).is_err();
    assert!((1..FILLING_MAX).any(is_refused), "the disk never filled up");
    assert!(wants(&node, REFUSED));
    disk.capacity_bytes(None);
    add(&node.socket, FILLING_MAX).expect("there is room");
    assert!(!wants(&node, REFUSED));
}

#[test]
fn a_postponed_secure_erase_is_reported_in_the_status() {
    const KEPT: &str = "forgotten text stays in the store file";
    let node = Served::start(Limits::default(), Doors::Socket);
    let id = add(&node.socket, 0).expect("there is room");
    let disk = node.medium.disk();
    let fill = || disk.capacity_bytes(Some(disk.filled_bytes()));
    fill();
    assert!(!wants(&node, KEPT), "nothing was forgotten");
    disk.capacity_bytes(None);
    let entry = EntryId::from_hex(&id).unwrap();
    node.engine.submit_blocking(Command::Forget { entry }).expect("forgotten");
    assert!(!wants(&node, KEPT), "there is room");
    fill();
    assert!(wants(&node, KEPT));
    disk.capacity_bytes(None);
    assert!(!wants(&node, KEPT), "there is room again");
}

#[test]
fn a_real_full_disk_loses_nothing_and_recovers_with_room() {
    let Some(disk) = SmallDisk::mount("a real disk that fills up") else { return };
    disk.ballast(BALLAST_BYTES);
    let outside = tempfile::tempdir().unwrap();
    let socket = outside.path().join("node.sock");
    let node = disk.start(&socket);
    let mut written = Vec::new();
    let refused = loop {
        assert!(written.len() < FILLING_MAX, "the disk never filled up");
        match add(&socket, written.len()) {
            Ok(id) => written.push(id),
            Err(answer) => break answer,
        }
    };
    assert!(!written.is_empty());
    assert!(refused.status >= 500, "{}", refused.text());
    assert!(refused.text().contains("the disk is full"), "{}", refused.text());
    expect_all(&socket, &written, "while the disk is full");
    // No byte is left, not even to reopen the store: reads still work.
    disk.shell("cat /dev/zero > \"$0/more\" 2> /dev/null; true");
    // Writes that fit into free pages are accepted.
    written.extend((0..3).filter_map(|number| add(&socket, 2 * FILLING_MAX + number).ok()));
    expect_all(&socket, &written, "while no byte is left");
    disk.shell("rm \"$0/more\"");
    disk.ballast(0);
    for number in 0..10 {
        let id = add(&socket, FILLING_MAX + number);
        written.push(id.unwrap_or_else(|answer| panic!("there is room: {}", answer.text())));
    }
    expect_all(&socket, &written, "when there is room");
    node.stop();
    let _node = disk.start(&socket);
    expect_all(&socket, &written, "after a restart");
}

#[test]
fn a_read_only_home_is_reported_by_the_node_and_the_doctor() {
    let Some(disk) = SmallDisk::mount("a home that cannot be written") else { return };
    let outside = tempfile::tempdir().unwrap();
    let node = disk.start(&outside.path().join("node.sock"));
    node.stop();
    disk.shell("mount -o remount,ro \"$0\"");
    let refused = disk.klnode().output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(told(&refused).contains("Read-only file system"), "{}", told(&refused));
    assert!(told(&refused).contains("hint: `klnode check"), "{}", told(&refused));
    let doctor = disk.klnode().args(["check", "home", "store"]).output().unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    let said = String::from_utf8(doctor.stdout).unwrap();
    for check in ["FAIL  home ", "FAIL  store file "] {
        let line = said.lines().find(|line| line.starts_with(check));
        assert!(line.is_some_and(|line| line.contains("cannot be written")), "{check}: {said}");
    }
}
