//! A client that subscribes to the events of a node.

use klnode_tests::test_server::Served;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

/// An event subscription on its own connection.
pub(crate) struct Followed(pub(crate) BufReader<UnixStream>);

impl Followed {
    pub(crate) fn new(node: &Served, query: &str) -> Self {
        Self::on(node.connect(), query)
    }

    pub(crate) fn on(mut stream: UnixStream, query: &str) -> Self {
        let request = format!("GET /v1/events{query} HTTP/1.1\r\nHost: klnode\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(reader.read_line(&mut line).unwrap(), 0, "the head ends");
        }
        Self(reader)
    }

    /// The next event: id, name, data.
    pub(crate) fn next(&mut self) -> Option<(u64, String, Value)> {
        let (mut id, mut name, mut line) = (0, String::new(), String::new());
        loop {
            line.clear();
            if self.0.read_line(&mut line).expect("in time") == 0 {
                return None;
            }
            if let Some(value) = line.strip_prefix("id:") {
                id = value.trim().parse().unwrap();
            } else if let Some(value) = line.strip_prefix("event:") {
                name = value.trim().to_owned();
            } else if let Some(value) = line.strip_prefix("data:") {
                return Some((id, name, serde_json::from_str(value).unwrap()));
            }
        }
    }
}
