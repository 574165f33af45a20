//! Real processes that keep working when their environment fails: their output, their terminal, a
//! server that they wait for.

use crate::support::conformance::conforms;
use crate::support::node_process::{
    Running, checks, eventually, json as answered, klnode, run, signal, started, told,
};
use klnode_tests::test_server::PATIENCE;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};

/// Text for which the embedder below never returns a vector.
const UNANSWERED: &str = "unanswered";

/// Output that cannot be written.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_node_with_unwritable_output_answers_and_stops_cleanly() {
    let home = tempfile::tempdir().unwrap();
    let child = klnode(home.path()).stdout(full()).stderr(full()).spawn().unwrap();
    let mut node = Running(child);
    eventually("it answers", || {
        let status = klnode(home.path()).arg("status").output().unwrap();
        status.status.success().then_some(())
    });
    let stopped = klnode(home.path()).arg("stop").output().unwrap();
    assert!(stopped.status.success(), "{}", told(&stopped));
    assert_eq!(node.0.wait().unwrap().code(), Some(0));
}

/// A node started with a signal disposition set by `env`, independent of this process.
fn node_with(option: &str, home: &Path) -> Command {
    let node = klnode(home);
    let mut command = Command::new("/usr/bin/env");
    command.env_clear().arg(option).arg(node.get_program()).args(node.get_args());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

#[test]
fn a_closing_terminal_stops_its_node_cleanly() {
    let home = tempfile::tempdir().unwrap();
    let (node, _) = started(node_with("--default-signal=HUP", home.path()));
    signal(&node.0, "HUP");
    let ended = node.finish();
    assert!(ended.status.success(), "{}", ended.status);
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("Stopped. All acknowledged writes are on disk."), "{said}");
}

/// Whether a process ignores SIGHUP.
fn ignores_hangup(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1
}

#[test]
fn a_node_that_ignores_sighup_outlives_its_terminal() {
    let home = tempfile::tempdir().unwrap();
    let (mut node, _) = started(node_with("--ignore-signal=HUP", home.path()));
    signal(&node.0, "HUP");
    assert!(ignores_hangup(&node.0));
    let stopped = klnode(home.path()).arg("stop").output().unwrap();
    assert!(stopped.status.success(), "{}", told(&stopped));
    assert!(node.0.wait().unwrap().success());
}

/// Starts an embedding server on loopback. It answers all requests except those with a certain word;
/// the channel receives a message for each of these.
fn embedder() -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (left, waiting) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, left) = (stream.unwrap(), left.clone());
            // An error is the client's: it may disconnect at any time.
            std::thread::spawn(move || answer(stream, &left).unwrap_or_default());
        }
    });
    (address, waiting)
}

/// Returns a vector for each text, which says only whether the text is about mail, or waits until the
/// client disconnects.
fn answer(stream: TcpStream, left: &Sender<()>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut length = 0_usize;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body)?;
    let texts = body["input"].as_array().cloned().unwrap_or_default();
    if texts.iter().any(|text| text.to_string().contains(UNANSWERED)) {
        // An error means that the test is over.
        let _ = left.send(());
        io::copy(&mut stream, &mut io::sink())?;
        return Ok(());
    }
    let is_mail = |text: &Value| ["etters", "mail"].iter().any(|of| text.to_string().contains(of));
    let vector = |text: &Value| if is_mail(text) { [0.6, 0.8] } else { [0.8, -0.6] };
    let vectors = texts.iter().map(vector).collect::<Vec<[f64; 2]>>();
    let vectors = json!({ "embeddings": vectors }).to_string();
    let length = vectors.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.get_mut().write_all(&[head.as_bytes(), vectors.as_bytes()].concat())
}

#[test]
fn a_node_stops_while_a_search_waits_for_an_embedder() {
    conforms("S003-06");
    let home = tempfile::tempdir().unwrap();
    let (address, waiting) = embedder();
    let mut command = klnode(home.path());
    for set in [
        "embedder.kind=ollama",
        &format!("embedder.url=http://{address}"),
        "embedder.model=small",
        "embedder.query_timeout=10 min",
        "tuning.embedder.request_timeout=10 min",
    ] {
        command.args(["--set", set]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (mut node, _) = started(command);
    let words =
        ["add", "--title", "Letters", "--content", "They come late.", "--evidence", "run:1"];
    let added = klnode(home.path()).args(words).output().unwrap();
    assert!(added.status.success(), "{}", told(&added));
    eventually("a search by vectors", || {
        let found = klnode(home.path()).args(["search", "letters", "--json"]).output().unwrap();
        let found: Value = serde_json::from_slice(&found.stdout).ok()?;
        (found["hits"].is_array() && found["fallback"].is_null()).then_some(())
    });
    // The vectors of the provider decide: the question has no word of the entry that it finds.
    let words = ["add", "--title", "Bridges", "--content", "They are long.", "--evidence", "run:2"];
    let added = klnode(home.path()).args(words).output().unwrap();
    assert!(added.status.success(), "{}", told(&added));
    eventually("the entry about mail is first", || {
        let words = ["search", "mail", "--json", "--deterministic", "--explain"];
        let found = klnode(home.path()).args(words).output().unwrap();
        let found: Value = serde_json::from_slice(&found.stdout).ok()?;
        let semantic = |title: &str| {
            let hit = found["hits"].as_array()?.iter().find(|hit| hit["title"] == title)?;
            hit["explain"]["signals"]["semantic"].as_f64()
        };
        let is_first = found["hits"][0]["title"] == "Letters";
        let is_far = semantic("Bridges").is_none_or(|far| Some(far) < semantic("Letters"));
        (is_first && is_far).then_some(())
    });
    let mut search = klnode(home.path());
    search.args(["search", UNANSWERED]).stdout(Stdio::null()).stderr(Stdio::null());
    let _searching = Running(search.spawn().unwrap());
    waiting.recv_timeout(PATIENCE).unwrap();
    signal(&node.0, "TERM");
    let ended = eventually("the node ends", || node.0.try_wait().unwrap());
    assert!(ended.success(), "{ended}");
}

#[test]
fn an_unreachable_embedder_is_named_as_the_reason() {
    conforms("S000-33");
    conforms("S003-07");
    conforms("S003-08");
    // This port has no listener, and no other test gets it.
    const AWAY: &str = "The embedder at 127.0.0.1:1 cannot be reached: ";
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let mut command = klnode(home);
    for set in [
        "embedder.kind=ollama",
        "embedder.url=http://127.0.0.1:1",
        "embedder.model=small",
        "tuning.embedder.retries_max=0",
    ] {
        command.args(["--set", set]);
    }
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (_node, _) = started(command);
    let words =
        ["add", "--title", "Letters", "--content", "They come late.", "--evidence", "run:1"];
    let added = run(home, &words);
    assert!(added.status.success(), "{}", told(&added));
    let reason = eventually("a search says why it goes by words", || {
        let found = answered(home, &["search", "letters"]);
        let reason = found["fallback"]["reason"].as_str()?.to_owned();
        reason.contains(AWAY).then_some(reason)
    });
    assert!(reason.starts_with(AWAY), "{reason}");
    let printed = |words: &[&str]| String::from_utf8(run(home, words).stdout).unwrap();
    let found = printed(&["search", "letters"]);
    assert!(found.contains(&format!("By keyword alone: {AWAY}")), "{found}");
    assert!(found.contains("Letters") && found.contains("| They come late."), "by words: {found}");
    let status = printed(&["status"]);
    assert!(status.contains(AWAY) && !status.contains("up to date"), "{status}");
    let findings = answered(home, &["check", "home", "store"]);
    let of_index = |finding: &&Value| finding["check"] == "index";
    let found =
        checks(&findings).into_iter().find(|one| of_index(&one)).expect("the index is looked at");
    let way_out = found["way_out"].as_str().unwrap_or_default();
    assert!(way_out.starts_with("The embedding server at 127.0.0.1:1 does not respond"), "{found}");
    assert!(way_out.contains("`klnode config embedder`") && !way_out.contains("delete"), "{found}");
}
