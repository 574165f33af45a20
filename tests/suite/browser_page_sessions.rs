//! Requests for a session of the browser page need no secret, so they may not take the connections
//! of other callers.

use klnode_server::Limits;
use klnode_tests::test_server::{Answer, Doors, PATIENCE, Served, read};
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

const CONNECTIONS_MAX: usize = 8;

fn limits(body_time_max: Duration) -> Limits {
    Limits { connections_max: CONNECTIONS_MAX, body_time_max, ..Limits::default() }
}

/// The page of a node.
struct Page {
    address: String,
    code: String,
}

impl Page {
    fn open(node: &Served) -> Self {
        let ticket = node.json("POST", "/v1/page", &json!({}));
        assert_eq!(ticket.status, 200, "{ticket:?}");
        let text = |name: &str| ticket.json()[name].as_str().unwrap().to_owned();
        let address = text("address");
        let address = address.trim_start_matches("http://").trim_end_matches('/').to_owned();
        Self { address, code: text("code") }
    }

    /// Sends the head of a request for a session and this part of its body.
    fn begin(&self, length: usize, part: &[u8]) -> TcpStream {
        let Self { address, .. } = self;
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!(
            "POST /session HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
             Connection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), part].concat()).unwrap();
        stream
    }

    fn trade(&self) -> Answer {
        let body = json!({ "code": self.code }).to_string();
        read(self.begin(body.len(), body.as_bytes()))
    }
}

#[test]
fn incomplete_requests_for_a_session_leave_connections_to_the_socket() {
    let node = Served::start(limits(PATIENCE * 4), Doors::Socket);
    let page = Page::open(&node);
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX * 3 {
        held.push(page.begin(100, b"{"));
        let begun = Instant::now();
        let answer = node.ask("GET", "/v1/status", &[], b"");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    }
}

#[test]
fn an_incomplete_request_for_a_session_ends_in_time() {
    let node = Served::start(limits(Duration::from_millis(200)), Doors::Socket);
    let page = Page::open(&node);
    let answer = read(page.begin(100, b"{"));
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.text().contains("did not arrive within 0.2 s"), "{}", answer.text());
    assert_eq!(page.trade().status, 200, "the slot is free again");
}

#[test]
fn an_oversized_request_for_a_session_is_refused_by_its_announced_length() {
    let node = Served::start(limits(PATIENCE * 4), Doors::Socket);
    let page = Page::open(&node);
    let begun = Instant::now();
    let answer = read(page.begin(1_025, b""));
    assert_eq!(answer.status, 413, "{answer:?}");
    assert!(begun.elapsed() < PATIENCE, "the body is not waited for");
    assert_eq!(page.trade().status, 200);
}
