//! Real processes that are killed, and real files that are damaged: acknowledged writes survive, or
//! the damage is reported.
//!
//! `KLNODE_KILLS` sets the number of kills; `KLNODE_DAMAGE=all` damages every file in every way.
//! Draws follow from a seed; only the moment of a kill depends on the machine.

use crate::support::node_process::{Running, checks, eventually, json, klnode, start};
use crate::support::peer_processes::Peer;
use klnode_tests::test_engine::Seeded;
use klnode_tests::test_server::{Answer, PATIENCE, read, request};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Number of concurrent writers.
const WRITERS: usize = 3;
/// Page size of the store.
const PAGE: usize = 4_096;
/// Number of damaged homes that are tried unless all are.
const DAMAGED_MAX: usize = 44;

fn kills() -> u64 {
    std::env::var("KLNODE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50)
}

/// An entry that a node has acknowledged.
#[derive(Clone, Debug)]
struct Written {
    id: String,
    title: String,
}

fn content(title: &str) -> String {
    format!("A lesson about {title}, at some length: {}", title.repeat(20))
}

/// Sends a request to a node that may be killed; `None` if it accepts no connection.
fn ask(socket: &Path, method: &str, path: &str, body: &[u8]) -> Option<Answer> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let headers: &[(&str, &str)] = match body {
        [] => &[],
        _ => &[("Content-Type", "application/json")],
    };
    stream.write_all(&request(method, path, headers, body)).ok()?;
    Some(read(stream))
}

/// Writes an entry; `None` if the node was killed before its complete response.
fn write(home: &Path, title: String) -> Option<Written> {
    let body = serde_json::json!({
        "title": title, "content": content(&title), "evidence": ["run:1"],
    });
    let socket = home.join("klnode.sock");
    let answer = ask(&socket, "POST", "/v1/entries", body.to_string().as_bytes())?;
    assert!(matches!(answer.status, 0 | 200), "{answer:?}");
    let named: Value = serde_json::from_slice(&answer.body).ok()?;
    Some(Written { id: named["id"].as_str()?.to_owned(), title })
}

/// Writes until the node is gone or the test ends.
fn write_on(home: &Path, name: &str, is_over: &AtomicBool, acknowledged: &Sender<Written>) {
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let Some(written) = write(home, format!("{name} number {number}")) else { return };
        if acknowledged.send(written).is_err() {
            return;
        }
    }
}

/// The fault of an acknowledged entry, if it has one.
fn missing(home: &Path, written: &Written) -> Option<String> {
    let path = format!("/v1/entries/{}", written.id);
    let Some(answer) = ask(&home.join("klnode.sock"), "GET", &path, b"") else {
        return Some("no node answers".to_owned());
    };
    let shown: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let is_whole = answer.status == 200
        && shown["title"] == written.title.as_str()
        && shown["content"] == content(&written.title).as_str();
    (!is_whole).then(|| format!("{written:?}: {}", answer.text()))
}

#[track_caller]
fn expect_all(home: &Path, written: &[Written]) {
    for one in written {
        if let Some(wrong) = missing(home, one) {
            panic!("acknowledged and lost: {wrong}");
        }
    }
}

/// Failures that the doctor reports, except for the room on the machine.
fn failures(findings: &Value) -> Vec<String> {
    let findings = checks(findings);
    let is_failure = |one: &&Value| one["verdict"] == "fail" && one["check"] != "room";
    findings.iter().filter(is_failure).map(ToString::to_string).collect()
}

/// Waits for `count` acknowledgements or until the time limit, and keeps them.
fn wait(heard: &Receiver<Written>, count: u64, limit: Duration, kept: &mut Vec<Written>) {
    let deadline = Instant::now() + limit;
    for _ in 0..count {
        let left = deadline.saturating_duration_since(Instant::now());
        match heard.recv_timeout(left) {
            Ok(written) => kept.push(written),
            Err(_) => return,
        }
    }
}

/// One life of a node; some end before it has started.
fn live_and_die(home: &Path, round: u64, random: &mut Seeded, kept: &mut Vec<Written>) {
    let (count, millis) = (1 + random.below(40), random.below(120));
    let limit = Duration::from_millis(millis);
    let (acknowledged, heard) = mpsc::channel();
    if random.below(5) == 0 {
        let child = klnode(home).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut node = Running(child);
        // There is no writer, so only the time passes.
        wait(&heard, 1, limit, kept);
        drop(acknowledged);
        node.0.kill().unwrap();
        return;
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (mut node, _) = start(home);
        let newest = kept.len().saturating_sub(60);
        expect_all(home, &kept[newest..]);
        for writer in 0..WRITERS {
            let (acknowledged, is_over) = (acknowledged.clone(), &is_over);
            let name = format!("round {round} writer {writer}");
            scope.spawn(move || write_on(home, &name, is_over, &acknowledged));
        }
        drop(acknowledged);
        wait(&heard, count, limit, kept);
        node.0.kill().unwrap();
        node.0.wait().unwrap();
        // Acknowledgements received until then count; the writers notice that the node is gone.
        kept.extend(heard);
    });
}

#[test]
fn an_acknowledged_write_survives_kill_9_at_any_point() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (mut random, mut kept) = (Seeded(9), Vec::new());
    for round in 0..kills() {
        live_and_die(&home, round, &mut random, &mut kept);
    }
    assert!(kept.len() as u64 >= kills() / 5, "only {} writes were acknowledged", kept.len());
    let ids: BTreeSet<&str> = kept.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids.len(), kept.len(), "every id is unique");
    let (node, _) = start(&home);
    expect_all(&home, &kept);
    assert_eq!(failures(&json(&home, &["check", "home", "store"])), [""; 0]);
    node.stop();
    assert_eq!(failures(&json(&home, &["check", "home", "store"])), [""; 0]);
}

/// Waits until each knows the other's address: ports change with every start.
fn meet(peers: &[Peer; 2]) {
    let place = |text: &str| text.split("/p2p/").next().unwrap_or_default().to_owned();
    for (one, other) in [(&peers[0], &peers[1]), (&peers[1], &peers[0])] {
        eventually("they are connected and know where", || {
            let own = one.json(&["peer", "list"])["addresses"][0].as_str().map(place)?;
            let seen = other.json(&["peer", "list"])["peers"][0].clone();
            let known = seen["addresses"].as_array().cloned().unwrap_or_default();
            let is_known = known.iter().filter_map(Value::as_str).any(|at| place(at) == own);
            (seen["connected"] == true && is_known).then_some(())
        });
    }
}

/// Both write, while one of them is killed and restarted.
fn kill_one(peers: &mut [Peer; 2], round: u64, random: &mut Seeded, kept: &mut Vec<Written>) {
    let (victim, count) = (random.below(2) as usize, 1 + random.below(60));
    let limit = Duration::from_millis(random.below(400));
    let homes = [peers[0].home.clone(), peers[1].home.clone()];
    let is_over = AtomicBool::new(false);
    let (acknowledged, heard) = mpsc::channel();
    std::thread::scope(|scope| {
        for (number, home) in homes.iter().enumerate() {
            let (acknowledged, is_over) = (acknowledged.clone(), &is_over);
            let name = format!("round {round} peer {number}");
            scope.spawn(move || write_on(home, &name, is_over, &acknowledged));
        }
        drop(acknowledged);
        wait(&heard, count, limit, kept);
        peers[victim].kill();
        // The other one continues while it is away.
        wait(&heard, 10, limit, kept);
        is_over.store(true, Ordering::Relaxed);
        kept.extend(heard);
    });
    peers[victim].run();
}

#[test]
fn peers_killed_while_they_sync_lose_nothing_and_end_equal() {
    let mut peers = [Peer::start(), Peer::start()];
    let ticket = peers[0].ticket(&["--mine"]);
    assert!(peers[1].type_in(&["peer", "join", &ticket]).status.success());
    let (mut random, mut kept) = (Seeded(10), Vec::new());
    for round in 0..(kills() / 5).max(1) {
        meet(&peers);
        kill_one(&mut peers, round, &mut random, &mut kept);
    }
    meet(&peers);
    for peer in &peers {
        eventually("all is here", || {
            let is_here = |one| missing(&peer.home, one).is_none();
            kept.iter().all(is_here).then_some(())
        });
        eventually("equal", || {
            let synced = peer.json(&["peer", "sync"]);
            (synced["peers"][0]["sync"] == "equal").then_some(())
        });
        expect_all(&peer.home, &kept);
        assert_eq!(failures(&peer.json(&["check", "home", "store"])), [""; 0]);
    }
}

/// Damage to a file.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// One flipped bit.
    Bit(u64),
    /// A zeroed page.
    Page(u64),
    /// The second half removed.
    Half,
    Empty,
}

impl Harm {
    fn inflict(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Bit(draw) => {
                let at = (draw % bytes.len() as u64) as usize;
                bytes[at] ^= 1_u8 << ((draw >> 40) % 8);
            }
            Self::Page(draw) => {
                let pages = bytes.len().div_ceil(PAGE) as u64;
                let first = (draw % pages) as usize * PAGE;
                let last = (first + PAGE).min(bytes.len());
                bytes[first..last].fill(0);
            }
            Self::Half => bytes.truncate(bytes.len() / 2),
            Self::Empty => bytes.clear(),
        }
    }
}

/// Non-empty files of a folder, by their relative path.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for file in fs::read_dir(&next).unwrap() {
            let file = file.unwrap();
            let kind = file.file_type().unwrap();
            if kind.is_dir() {
                folders.push(file.path());
            } else if kind.is_file() && file.metadata().unwrap().len() > 0 {
                found.push(file.path().strip_prefix(folder).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(&file);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(from.join(&file), target).unwrap();
    }
    fs::set_permissions(to, PermissionsExt::from_mode(0o700)).unwrap();
}

/// The damage to apply to each file. The index allows many kinds of damage and can be rebuilt, so
/// it is reduced first.
fn harms(home: &Path) -> Vec<(PathBuf, Harm)> {
    let mut random = Seeded(11);
    let mut drawn = Vec::new();
    for file in files(home) {
        let is_index = file.starts_with("index");
        let more = if file.ends_with("store.redb") { 6 } else { 1 };
        let mut harms = vec![Harm::Half, Harm::Empty];
        for _ in 0..more {
            harms.extend([Harm::Bit(random.next_u64()), Harm::Page(random.next_u64())]);
        }
        for harm in harms {
            drawn.push(((is_index, random.next_u64()), (file.clone(), harm)));
        }
    }
    drawn.sort_by_key(|(order, _)| *order);
    let is_all = std::env::var("KLNODE_DAMAGE").is_ok_and(|text| text == "all");
    let count = if is_all { drawn.len() } else { DAMAGED_MAX };
    drawn.into_iter().take(count).map(|(_, harm)| harm).collect()
}

/// Starts a node that may refuse; returns whether it runs. Its output is in a file.
fn try_start(home: &Path, log: &Path) -> (Running, bool) {
    let mut command = klnode(home);
    command.stdout(Stdio::piped()).stderr(fs::File::create(log).unwrap());
    let mut node = Running(command.spawn().unwrap());
    let stdout = node.0.stdout.take().expect("piped");
    let (say, heard) = mpsc::channel();
    std::thread::spawn(move || {
        // Reads to the end, so that the node is never blocked by its output.
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("Try ") {
                // The receiver may be gone.
                let _ = say.send(());
            }
        }
    });
    match heard.recv_timeout(PATIENCE) {
        Ok(()) => (node, true),
        Err(RecvTimeoutError::Disconnected) => (node, false),
        Err(RecvTimeoutError::Timeout) => panic!("it neither starts nor ends"),
    }
}

/// Findings of the doctor, within a time limit; null if it prints none.
fn doctor(home: &Path) -> Value {
    let mut command = klnode(home);
    command.args(["check", "home", "store", "--json"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut asked = Running(command.spawn().unwrap());
    let mut stdout = asked.0.stdout.take().expect("piped");
    let (say, heard) = mpsc::channel();
    std::thread::spawn(move || {
        let mut said = Vec::new();
        let read = stdout.read_to_end(&mut said);
        // The receiver may be gone.
        let _ = say.send(read.map(|_| said));
    });
    let said = heard.recv_timeout(PATIENCE).expect("the doctor answers").unwrap();
    serde_json::from_slice(&said).unwrap_or_default()
}

/// A damaged home starts with all entries, or reports its damage.
fn survive(home: &Path, file: &Path, harm: Harm, kept: &[Written]) {
    let what = format!("{} after {harm:?}", file.display());
    let mut bytes = fs::read(home.join(file)).unwrap();
    harm.inflict(&mut bytes);
    fs::write(home.join(file), bytes).unwrap();
    let log = home.with_extension("log");
    let (mut node, is_up) = try_start(home, &log);
    if is_up {
        let lost: Vec<String> = kept.iter().filter_map(|one| missing(home, one)).collect();
        let told = failures(&doctor(home));
        let said = fs::read_to_string(&log).unwrap_or_default();
        assert!(lost.is_empty() || !told.is_empty(), "{what}: {lost:?} and no report\n{said}");
        return;
    }
    let status = node.0.wait().unwrap();
    let said = fs::read_to_string(&log).unwrap();
    assert!(matches!(status.code(), Some(1 | 2)), "{what}: {status}\n{said}");
    assert!(!said.contains("panicked"), "{what}: {said}");
    let part = file.iter().next().and_then(|part| part.to_str()).unwrap();
    assert!(said.contains("error: ") && said.contains(part), "{what}: {said}");
    assert!(said.contains("\n  hint: "), "{what}: {said}");
}

#[test]
fn damage_to_any_file_of_a_home_is_survived_or_reported() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (node, _) = start(&home);
    let titles = (0..40).map(|number| format!("harmless entry {number}"));
    let kept: Vec<Written> = titles.map(|title| write(&home, title).expect("written")).collect();
    // A search opens both indexes, and stopping leaves their files.
    json(&home, &["search", "harmless entry"]);
    node.stop();
    let settings = "# What this node is set to.\n[trust]\nhop_max = 2\n[log]\nlevel = \"warn\"\n";
    fs::write(home.join("klnode.toml"), settings).unwrap();
    let names = files(&home);
    for name in ["klnode.toml", "node.key", "store.redb"] {
        assert!(names.iter().any(|file| file.as_path() == Path::new(name)), "{names:?}");
    }
    assert!(names.iter().any(|file| file.starts_with("index")), "{names:?}");
    let unharmed = folder.path().join("unharmed");
    copy(&home, &unharmed);
    let (_node, _) = start(&unharmed);
    expect_all(&unharmed, &kept);
    assert_eq!(failures(&doctor(&unharmed)), [""; 0]);
    for (number, (file, harm)) in harms(&home).into_iter().enumerate() {
        let other = folder.path().join(format!("copy-{number}"));
        copy(&home, &other);
        survive(&other, &file, harm, &kept);
        fs::remove_dir_all(&other).unwrap();
    }
}

/// Changes one letter of every occurrence of a text in a file.
fn scratch(file: &Path, text: &str) {
    let mut bytes = fs::read(file).unwrap();
    let found = bytes.windows(text.len()).enumerate();
    let places: Vec<usize> =
        found.filter(|(_, window)| *window == text.as_bytes()).map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "`{text}` is not in the file");
    for at in places {
        bytes[at] ^= 0x20;
    }
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_damaged_record_is_restored_by_a_peer() {
    let (here, mut there) = (Peer::start(), Peer::start());
    let ticket = here.ticket(&["--mine"]);
    assert!(there.type_in(&["peer", "join", &ticket]).status.success());
    let theirs = here.add("brittle caches in the build", &[]);
    let own = there.add("stubborn queues in the mailer", &[]);
    let alone = there.add("private aliases in the shell", &["--workspace", "local"]);
    let shared =
        [(&theirs, "brittle caches in the build"), (&own, "stubborn queues in the mailer")];
    eventually("both are here", || {
        there.type_in(&["show", &theirs]).status.success().then_some(())
    });
    eventually("both are there", || here.type_in(&["show", &own]).status.success().then_some(()));
    there.stop();
    let store = there.home.join("store.redb");
    for text in shared.map(|(_, title)| title).iter().chain(&["private aliases in the shell"]) {
        scratch(&store, text);
    }
    let records = |peer: &Peer| {
        let findings = peer.json(&["check", "home", "store"]);
        let found = checks(&findings).into_iter().find(|one| one["check"] == "records");
        found.unwrap_or_else(|| panic!("nothing is said of the records: {findings}"))
    };
    let found = records(&there);
    assert_eq!(found["verdict"], "fail", "{found}");
    let says = found["says"].as_str().unwrap();
    for id in [&theirs, &own, &alone] {
        assert!(says.contains(id.as_str()), "{id} is not named: {says}");
    }
    there.run();
    for (id, title) in shared {
        eventually("it has come back", || {
            there.type_in(&["peer", "sync"]);
            let shown = there.type_in(&["show", id, "--json"]);
            let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
            (shown["title"] == title).then_some(())
        });
    }
    eventually("equal", || {
        let synced = there.json(&["peer", "sync"]);
        (synced["peers"][0]["sync"] == "equal").then_some(())
    });
    // No other node has this one.
    assert!(!there.type_in(&["show", &alone]).status.success());
    let found = records(&there);
    let says = found["says"].as_str().unwrap();
    assert_eq!(found["verdict"], "fail", "{found}");
    assert!(says.contains(alone.as_str()), "{says}");
    assert!(!says.contains(theirs.as_str()) && !says.contains(own.as_str()), "{says}");
}
