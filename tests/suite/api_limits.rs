//! Misbehaving API clients do not affect other clients.

use crate::support::node_process::start;
use klnode_crdt::record::Record;
use klnode_engine::{RecordSource, ScreenDecision};
use klnode_server::Limits;
use klnode_tests::test_server::{Doors, PATIENCE, Served, ask, read, request};
use serde_json::json;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

fn quick() -> Limits {
    Limits {
        requests_max: 4,
        connections_max: 8,
        body_bytes_max: 64 * 1024,
        idle_time_max: Duration::from_millis(300),
        body_time_max: Duration::from_millis(300),
        unread_time_max: Duration::from_millis(300),
        ..Limits::default()
    }
}

/// Asserts that a new client is answered at once.
fn answers(node: &Served) {
    let begun = Instant::now();
    let answer = node.ask("GET", "/v1/status", &[], b"");
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn an_idle_or_incomplete_connection_is_closed_in_time() {
    let node = Served::start(quick(), Doors::Socket);
    let body = request("POST", "/v1/entries", &JSON, &[b' '; 100]);
    let halves: [&[u8]; 5] = [
        b"",
        b"GET",
        b"GET /v1/status HTTP/1.1\r\nHost: kl",
        &body[..60],
        &body[..body.len() - 50],
    ];
    for half in halves {
        let mut stream = node.connect();
        stream.write_all(half).unwrap();
        let begun = Instant::now();
        let answer = read(stream);
        assert!(begun.elapsed() < PATIENCE, "dropped");
        assert!([0, 408, 503].contains(&answer.status), "{answer:?}");
        answers(&node);
    }
}

#[test]
fn incomplete_requests_take_no_slots() {
    let limits = Limits { idle_time_max: PATIENCE, body_time_max: PATIENCE, ..quick() };
    let node = Served::start(limits, Doors::Socket);
    let whole = request("POST", "/v1/entries", &JSON, &[b' '; 100]);
    let mut held = Vec::new();
    for number in 0..32 {
        let mut stream = node.connect();
        // Half a body on every eighth, half a head on the rest: more than there are slots.
        let end = if number % 8 == 0 { whole.len() - 1 } else { 30 };
        stream.write_all(&whole[..end]).unwrap();
        held.push(stream);
        answers(&node);
    }
}

#[test]
fn an_oversized_body_is_refused_with_its_limit_and_setting() {
    let node = Served::start(quick(), Doors::Socket);
    for size in [64 * 1024 + 1, 8 * 1024 * 1024] {
        let answer = node.ask("POST", "/v1/entries", &JSON, &vec![b' '; size]);
        assert_eq!(answer.status, 413, "{}", answer.head);
        let error = answer.json()["error"].clone();
        assert_eq!(error["kind"], "too_large");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("65536 bytes that tuning.api.body_bytes_max allows"), "{message}");
    }
    // An announced body that is too large is refused by its Content-Length.
    let mut stream = node.connect();
    let whole = request("POST", "/v1/entries", &JSON, &vec![b' '; 64 * 1024 + 1]);
    stream.write_all(&whole[..200]).unwrap();
    assert_eq!(read(stream).status, 413);
    // Without a length it is refused while it arrives.
    let chunk = [b"1000\r\n".to_vec(), vec![b' '; 4096], b"\r\n".to_vec()].concat();
    let mut stream = node.connect();
    let head = b"POST /v1/entries HTTP/1.1\r\nHost: k\r\nConnection: close\r\n\
                 Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head).unwrap();
    for _ in 0..20 {
        stream.write_all(&chunk).unwrap();
    }
    stream.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(read(stream).status, 413);
    let fits = json!({"title": "t", "content": "c".repeat(60 * 1024), "evidence": ["run:1"]});
    assert_eq!(node.json("POST", "/v1/entries", &fits).status, 200);
}

#[test]
fn bodies_share_a_memory_limit_and_release_it() {
    let limits = Limits { bodies_bytes_max: 100, body_time_max: PATIENCE, ..quick() };
    let node = Served::start(limits, Doors::Socket);
    let whole = request("POST", "/v1/entries", &JSON, &[b' '; 80]);
    let begin = || {
        let mut stream = node.connect();
        stream.write_all(&whole[..whole.len() - 1]).unwrap();
        stream
    };
    let mut first = begin();
    let second = |node: &Served| node.ask("POST", "/v1/entries", &JSON, &[b' '; 80]);
    let deadline = Instant::now() + PATIENCE;
    while second(&node).status != 503 {
        assert!(Instant::now() < deadline, "the first body is admitted");
        // The other body may have been admitted first: then this one was refused, and is sent
        // again.
        first.set_nonblocking(true).unwrap();
        if first.read(&mut [0]).is_ok() {
            first = begin();
        }
        first.set_nonblocking(false).unwrap();
    }
    first.write_all(&whole[whole.len() - 1..]).unwrap();
    assert_eq!(read(first).status, 400);
    assert_eq!(second(&node).status, 400);
}

#[test]
fn garbage_and_pipelined_requests_affect_only_their_sender() {
    let node = Served::start(quick(), Doors::Socket);
    let garbage: [&[u8]; 5] = [
        b"\0\0\0\0\0\0\0\0\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /v1/entries HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"GET /v1/status HTTP/1.1\r\nHost: k\r\n\r\n\xff\xfe\xfd garbage\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ];
    for bytes in garbage {
        let mut stream = node.connect();
        stream.write_all(bytes).unwrap();
        read(stream);
        answers(&node);
    }
    let mut stream = node.connect();
    let long = format!("GET /{} HTTP/1.1\r\nHost: k\r\n\r\n", "x".repeat(1024 * 1024));
    // The connection may be closed while the client writes.
    let _ = stream.write_all(long.as_bytes());
    assert!([0, 414, 431].contains(&read(stream).status));
    answers(&node);
    let row = b"GET /v1/status HTTP/1.1\r\nHost: k\r\n\r\n".repeat(20);
    let last = request("GET", "/v1/status", &[], b"");
    let mut stream = node.connect();
    stream.write_all(&[&row[..], &last].concat()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 21);
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let node = Served::start(quick(), Doors::Socket);
    for number in 0..12 {
        let new = json!({"title": number.to_string(), "content": "c".repeat(60 * 1024),
            "evidence": ["run:1"]});
        assert_eq!(node.json("POST", "/v1/entries", &new).status, 200);
    }
    let mut deaf = node.connect();
    // This is more than all buffers between the two hold.
    deaf.write_all(&b"GET /v1/entries HTTP/1.1\r\nHost: k\r\n\r\n".repeat(8)).unwrap();
    let open = |node: &Served| {
        let text = node.ask("GET", "/metrics", &[], b"").text();
        let line = text.lines().find_map(|line| line.strip_prefix("klnode_api_connections "));
        line.expect("counted").parse::<u32>().unwrap()
    };
    let deadline = Instant::now() + PATIENCE;
    while open(&node) > 1 {
        assert!(Instant::now() < deadline, "the connection is closed");
    }
}

#[test]
fn a_request_is_cancelled_when_its_client_disconnects() {
    let (asked, is_asked) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let judge = move |_: &Record, _: RecordSource| {
        asked.send(()).unwrap();
        // An error means that the test has ended.
        let _ = may_go_on.recv();
        ScreenDecision::Admit
    };
    let limits = Limits { requests_max: 1, ..Limits::default() };
    let node = Served::start_with_screen(limits, Doors::Socket, Box::new(judge));
    let new = json!({"title": "t", "content": "c", "evidence": ["run:1"]}).to_string();
    let mut caller = node.connect();
    caller.write_all(&request("POST", "/v1/entries", &JSON, new.as_bytes())).unwrap();
    is_asked.recv_timeout(PATIENCE).expect("the writer is at it");
    drop(caller);
    // The only slot is free again, though the writer has not answered.
    answers(&node);
    go_on.send(()).unwrap();
    let done = || node.ask("GET", "/v1/status", &[], b"").json()["entries"] == 1;
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "a command passed to the writer is completed");
    }
}

fn connect(home: &Path) -> UnixStream {
    let stream = UnixStream::connect(home.join("klnode.sock")).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn a_thousand_idle_connections_do_not_block_a_request() {
    // This is more than the node keeps open: it has closed the oldest of them by then.
    const HELD_MAX: usize = 600;
    let home = tempfile::tempdir().unwrap();
    let (_node, _) = start(home.path());
    let mut held = VecDeque::new();
    for number in 0..1_000 {
        let mut stream = connect(home.path());
        if number % 2 == 0 {
            stream.write_all(b"GET /v1/sta").unwrap();
        }
        held.push_back(stream);
        if held.len() > HELD_MAX {
            held.pop_front();
        }
        if number % 100 == 99 {
            let begun = Instant::now();
            let answer = ask(connect(home.path()), "GET", "/v1/status", &[], b"");
            assert_eq!(answer.status, 200, "after {number}: {answer:?}");
            assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        }
    }
}
