//! Paired nodes: real processes, each in its own home and on loopback only, with the requests that
//! tests need most: a ticket, an entry, whether an entry has arrived.

use crate::support::node_process::{
    Running, eventually, json, klnode, resident_bytes, run, signal, started,
};
use klnode_crdt::ids::Digest;
use klnode_server::transfer::jsonl_line::SignedRecord;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use tempfile::TempDir;

/// A node with its own home, listening on loopback only.
pub(crate) struct Peer {
    pub(crate) home: PathBuf,
    _folder: TempDir,
    running: Option<Running>,
}

impl Peer {
    pub(crate) fn start() -> Self {
        Self::start_with("")
    }

    /// A node with these lines in its configuration.
    pub(crate) fn start_with(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let home = folder.path().join("home");
        std::fs::create_dir(&home).expect("made");
        std::fs::write(home.join("klnode.toml"), config).expect("written");
        let mut peer = Self { home, _folder: folder, running: None };
        peer.run();
        peer
    }

    pub(crate) fn run(&mut self) {
        let mut command = klnode(&self.home);
        command.args(["--set", "network.listen=[\"/ip4/127.0.0.1/tcp/0\"]"]);
        command.args(["--set", "tuning.network.redial_after=200 ms"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        self.running = Some(started(command).0);
    }

    pub(crate) fn kill(&mut self) {
        self.running = None;
    }

    /// Sends the process a signal.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.running.as_ref().expect("it runs").0, name);
    }

    /// Stops the node and waits for its end.
    pub(crate) fn stop(&mut self) {
        if let Some(node) = self.running.take() {
            node.stop();
        }
    }

    pub(crate) fn type_in(&self, words: &[&str]) -> Output {
        run(&self.home, words)
    }

    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        json(&self.home, words)
    }

    pub(crate) fn add(&self, title: &str, more: &[&str]) -> String {
        let content = format!("A lesson about {title}.");
        let words = ["add", "--title", title, "--content", &content, "--evidence", "doc:notes"];
        self.json(&[&words[..], more].concat())["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn ticket(&self, words: &[&str]) -> String {
        self.json(&[&["peer", "invite"], words].concat())["ticket"]
            .as_str()
            .expect("a ticket")
            .to_owned()
    }

    /// Digests of the records of an entry, from an export.
    pub(crate) fn digests(&self, id: &str) -> Vec<Digest> {
        let exported = self.type_in(&["export"]);
        let lines = String::from_utf8_lossy(&exported.stdout).into_owned();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line"));
        let of_entry = lines.filter(|line| line["id"] == id);
        let records = of_entry.flat_map(|line| line["records"].as_array().cloned().expect("some"));
        let record = |record| serde_json::from_value::<SignedRecord>(record).expect("a record");
        records.map(|one| record(one).verify().expect("its own").digest()).collect()
    }

    /// Resident memory of the process.
    pub(crate) fn resident_bytes(&self) -> u64 {
        resident_bytes(self.running.as_ref().expect("it runs").0.id())
    }

    pub(crate) fn key(&self) -> String {
        self.json(&["status"])["node"].as_str().expect("a key").to_owned()
    }

    /// Waits until a query returns this entry, and returns the hit.
    pub(crate) fn found(&self, query: &str, id: &str) -> Value {
        eventually(&format!("`{query}` finds {id}"), || {
            let answer = self.json(&["search", query, "--all"]);
            let hits = answer["hits"].as_array().cloned().unwrap_or_default();
            hits.into_iter().find(|hit| hit["id"] == id)
        })
    }
}
