//! Anchors of entries, checked against checkouts on disk; none is made by git itself.

use crate::support::conformance::conforms;
use crate::support::node_process::{Running, klnode, start, started, told};
use klnode_crdt::claims::TextSet;
use klnode_crdt::ids::EntryId;
use klnode_crdt::live_records::EntryRecords;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_engine::{self, DeliveredRecord, NewEntry, PeerCommand};
use klnode_git::{CheckoutError, GitCheckout};
use klnode_scoring::predicate::{Checkout, ReadFailure};
use klnode_scoring::rank::signals::AnchorState;
use klnode_server::Limits;
use klnode_tests::checkout::{Tree, index};
use klnode_tests::test_engine::{Node, lesson};
use klnode_tests::test_server::{Doors, Served, TOKEN, ask};
use klnode_tests::workspace_fixture::{Stranger, bring, paired};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A node in a temporary home, queried from a folder.
struct Asked {
    home: tempfile::TempDir,
    _node: Running,
}

impl Asked {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (node, _) = start(home.path());
        Self { home, _node: node }
    }

    fn run(&self, from: &Path, arguments: &[&str]) -> Output {
        klnode(self.home.path()).args(arguments).current_dir(from).output().unwrap()
    }

    fn json(&self, from: &Path, arguments: &[&str]) -> Value {
        let output = self.run(from, &[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", told(&output)))
    }

    /// Adds an entry with an anchor in a checkout, and returns its code.
    fn add(&self, tree: &Tree, depends_on: &str) -> String {
        let arguments = ["add", "--title", "Flush the queue", "--content", "Before the exit."];
        let more = ["--evidence", "doc:notes", "--depends-on", depends_on];
        let added = self.json(tree.path(), &[&arguments[..], &more].concat());
        added["code"].as_str().unwrap().to_owned()
    }

    /// Codes of the hits with their caveats.
    fn search(&self, from: &Path) -> Vec<(String, Vec<String>)> {
        let answer = self.json(from, &["search", "flush the queue", "--deterministic"]);
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let hit = |hit: &Value| {
            let caveats = hit["caveats"].as_array().unwrap().iter().map(text).collect();
            (text(&hit["code"]), caveats)
        };
        answer["hits"].as_array().unwrap().iter().map(hit).collect()
    }
}

#[test]
fn entries_that_hold_in_the_checkout_rank_above_broken_ones() {
    conforms("S002-14");
    conforms("S002-55");
    let node = Asked::new();
    let tree = Tree::new(&["lib/one.rs"]);
    let (one, two) = (node.add(&tree, "path:lib/one.rs"), node.add(&tree, "path:lib/two.rs"));
    tree.write("lib/one.rs", b"");
    let broken = |path: &str, why: &str| vec![format!("broken: \"path:lib/{path}\" ({why})")];
    let untracked = "git tracks no such file";
    let expected = [(one.clone(), Vec::new()), (two.clone(), broken("two.rs", untracked))];
    assert_eq!(node.search(&tree.path().join("lib")), expected);
    // Also with swapped roles, to rule out chance.
    tree.track(&["lib/one.rs", "lib/two.rs"]);
    tree.write("lib/two.rs", b"");
    std::fs::remove_file(tree.path().join("lib/one.rs")).unwrap();
    let deleted = broken("one.rs", "the file has been deleted");
    let expected = [(two.clone(), Vec::new()), (one.clone(), deleted)];
    assert_eq!(node.search(tree.path()), expected);
    let shown = node.json(tree.path(), &["show", &one]);
    assert_eq!(shown["checked"]["outcome"], "broken", "{shown}");
    assert_eq!(node.json(tree.path(), &["show", &two])["checked"]["outcome"], "holds");
    // In another folder they are not checked, and no caveat is shown.
    let elsewhere = node.search(node.home.path());
    assert_eq!(elsewhere.len(), 2);
    assert!(elsewhere.iter().all(|(_, caveats)| caveats.is_empty()), "{elsewhere:?}");
    // In the same repository, an unreadable index leaves them unknown, with a caveat.
    tree.write(".git/index", b"no index");
    for (_, caveats) in node.search(tree.path()) {
        assert_eq!(caveats, ["its predicates were not checked"]);
    }
    assert!(node.json(node.home.path(), &["show", &one])["checked"].is_null());
}

#[test]
fn only_tracked_files_are_read() {
    conforms("S002-15");
    let node = Asked::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), b"a secret outside").unwrap();
    let tracked =
        ["link", "away/secret.txt", "pipe", "huge.bin", "../secret.txt", ".git/config", "plain"];
    let tree = Tree::new(&tracked);
    let remote =
        b"a secret of git\n[remote \"origin\"]\n\turl = https://example.org/acme/tree.git\n";
    tree.write(".git/config", remote);
    tree.write("untracked.rs", b"a secret draft\n");
    tree.write("plain", b"nothing\n");
    std::os::unix::fs::symlink("/etc/passwd", tree.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path(), tree.path().join("away")).unwrap();
    let made = Command::new("mkfifo").arg(tree.path().join("pipe")).status().unwrap();
    assert!(made.success());
    let huge = std::fs::File::create(tree.path().join("huge.bin")).unwrap();
    huge.set_len(8 << 30).unwrap();
    let link = "it is a link, a submodule or no plain file";
    let cases = [
        ("text:link~\"root\"", "unknown", link),
        ("text:away/secret.txt~\"secret\"", "unknown", link),
        ("text:pipe~\"secret\"", "unknown", link),
        ("text:huge.bin~\"secret\"", "unknown", "a file is too large"),
        ("text:untracked.rs~\"secret\"", "broken", "git tracks no such file"),
        ("text:**/config~\"secret\"", "broken", "git tracks no such file"),
        ("text:secret.txt~\"secret\"", "broken", "git tracks no such file"),
        ("text:plain~\"a secret\"", "broken", "nothing matches the pattern"),
    ];
    for (predicate, _, _) in cases {
        node.add(&tree, predicate);
    }
    let path = tree.path().to_str().unwrap();
    let output = node.run(node.home.path(), &["check", "anchors", "--path", path, "--json"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (predicate, outcome, reason) in cases {
        let flagged = checked["anchors"][outcome].as_array().unwrap();
        let found = flagged.iter().find(|one| one["atom"] == predicate);
        assert_eq!(found.expect(predicate)["reason"], reason, "{predicate}");
    }
    assert_eq!(checked["anchors"]["predicates"], 8, "{checked}");
    for refused in ["path:../secret.txt", "path:.git/config", "path:/etc/passwd"] {
        let arguments = ["add", "--title", "t", "--content", "c", "--anchor", refused];
        let output = node.run(node.home.path(), &arguments);
        assert_eq!(output.status.code(), Some(2), "{refused}");
        assert!(told(&output).contains("predicate is invalid at byte 5"), "{output:?}");
    }
}

#[test]
fn a_checkout_returns_only_plain_tracked_files() {
    let tree = Tree::new(&["src/lib.rs", "src/gone.rs", "folder/was.rs"]);
    tree.write("src/lib.rs", b"fn f() {}\n");
    tree.write("src/other.rs", b"fn g() {}\n");
    tree.write("folder", b"a file now\n");
    let checkout = tree.open();
    assert_eq!(checkout.tracked(), ["folder/was.rs", "src/gone.rs", "src/lib.rs"]);
    assert_eq!(checkout.read("src/lib.rs", 10).unwrap().into_owned(), b"fn f() {}\n");
    assert_eq!(checkout.read("src/lib.rs", 9), Err(ReadFailure::TooLarge));
    assert_eq!(checkout.read("src/gone.rs", 9), Err(ReadFailure::Missing));
    assert_eq!(checkout.read("src/other.rs", 99), Err(ReadFailure::NotAFile));
    assert_eq!(checkout.read("../lib.rs", 99), Err(ReadFailure::NotAFile));
    assert_eq!(checkout.exists("src/lib.rs"), Ok(true));
    assert_eq!(checkout.exists("src/gone.rs"), Ok(false));
    assert_eq!(checkout.exists("folder/was.rs"), Ok(false));
}

#[test]
fn a_worktree_is_found_by_its_git_file_and_other_folders_are_no_checkout() {
    let main = Tree::new(&["main.rs"]);
    main.write(".git/worktrees/two/HEAD", b"ref: refs/heads/two\n");
    main.write(".git/worktrees/two/index", &index(&["two.rs"]));
    for pointer in [main.path().join(".git/worktrees/two"), PathBuf::from("../.git/worktrees/two")]
    {
        main.write("two/.git", format!("gitdir: {}\n", pointer.display()).as_bytes());
        main.write("two/deep/two.rs", b"");
        let worktree = GitCheckout::open(&main.path().join("two/deep")).unwrap();
        assert_eq!(worktree.path(), main.path().join("two"));
        assert_eq!(worktree.tracked(), ["two.rs"]);
    }
    let none = tempfile::tempdir().unwrap();
    let error = GitCheckout::open(none.path()).unwrap_err();
    assert!(matches!(error, CheckoutError::Missing { .. }), "{error}");
    main.write("two/.git", b"something else\n");
    let error = GitCheckout::open(&main.path().join("two")).unwrap_err();
    assert!(matches!(error, CheckoutError::Io { .. }), "{error}");
    main.write(".git/index", b"DIRC, but not really");
    let error = GitCheckout::open(main.path()).unwrap_err();
    assert!(matches!(error, CheckoutError::Index { .. }), "{error}");
}

#[test]
fn a_strangers_predicate_is_not_evaluated() {
    let mut node = Node::start(1, 1);
    let entry = node.create("ours");
    let claim = |text: &str| ClaimEdit::Add(TextSet::ANCHORS, text.to_owned());
    let stranger = Stranger::new(1);
    bring(&mut node, vec![stranger.claims(entry, claim("path:nothing"))], stranger.author());
    let binding = |tree: &Tree, text: &str| tree.bound(&[text]).remove(0);
    let tree = Tree::new(&["here"]);
    let look = |node: &Node| {
        let snapshot = node.engine.store().snapshot().unwrap();
        let reader = node.reader();
        let reading = reader.at(&snapshot, node.now).unwrap();
        let mut found = reading.read(entry).unwrap().unwrap();
        let checkout = reader.open_checkout(tree.path()).unwrap();
        let looked = reading.look(&mut found, &checkout);
        (looked.check, looked.predicates)
    };
    assert_eq!(look(&node), (AnchorState::Nothing, 0));
    node.claim(entry, claim("somewhere in the middle"));
    assert_eq!(look(&node), (AnchorState::Nothing, 0), "free text is not a predicate");
    node.claim(entry, claim("path:nothing-either"));
    assert_eq!(look(&node), (AnchorState::Nothing, 0), "no repository is recorded with it");
    let recorded = binding(&tree, "path:nothing-either");
    bring(&mut node, vec![stranger.claims(entry, recorded.clone())], stranger.author());
    assert_eq!(look(&node), (AnchorState::Nothing, 0), "a stranger records none either");
    node.claim(entry, recorded);
    assert_eq!(look(&node), (AnchorState::Broken, 1));
}

#[test]
fn a_printed_hash_predicate_holds_for_its_file() {
    let node = Asked::new();
    let tree = Tree::new(&["src/lib.rs"]);
    tree.write("src/lib.rs", b"one\r\ntwo\nthree");
    tree.write("src/new.rs", b"one\n");
    let hash = |place: &str| node.run(&tree.path().join("src"), &["generate", "predicate", place]);
    let printed = String::from_utf8(hash("lib.rs:1-2").stdout).unwrap();
    let digest: String =
        tree.open().digest(b"one\ntwo\n").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(printed, format!("hash:src/lib.rs#1-2=blake3:{digest}\n"));
    node.add(&tree, printed.trim_end());
    let check = || node.run(tree.path(), &["check", "anchors"]).status.code();
    assert_eq!(check(), Some(0));
    tree.write("src/lib.rs", b"one\ntwo!\nthree");
    assert_eq!(check(), Some(1));
    for (place, why) in [
        ("new.rs", "it is not a plain file that git tracks"),
        ("../src", "it is not a plain file that git tracks"),
        ("gone/lib.rs", "No such file"),
        ("lib.rs#3-4", "the file has no such lines"),
        ("lib.rs#0", "the file has no such lines"),
        ("lib.rs:two", "lines are written as one number"),
        ("gone.rs", "it is not a plain file that git tracks"),
    ] {
        let output = hash(place);
        assert_eq!(output.status.code(), Some(2), "{place}");
        assert!(told(&output).contains(why), "{place}: {}", told(&output));
    }
    let json = node.json(&tree.path().join("src"), &["generate", "predicate", "lib.rs"]);
    assert!(json["predicate"].as_str().unwrap().starts_with("hash:src/lib.rs=blake3:"), "{json}");
}

#[test]
fn a_check_lists_broken_anchors_and_sets_the_exit_code() {
    conforms("S002-15");
    let node = Asked::new();
    let tree = Tree::new(&["Cargo.toml"]);
    tree.write("Cargo.toml", b"[dependencies]\ntokio = \"1.40\"\n");
    node.add(&tree, "dep:cargo:tokio>=1.40");
    let output = node.run(tree.path(), &["check", "anchors"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Checked in "), "{text}");
    assert!(text.ends_with(": entries 1, predicates 1, broken 0, unknown 0.\n"), "{text}");
    let code = node.add(&tree, "dep:cargo:tokio>=1.45 AND path:Cargo.toml");
    let output = node.run(tree.path(), &["check", "anchors", "--workspace", "main"]);
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let atom = "dep:cargo:tokio>=1.45";
    let line = format!("{code}  {atom}  it is declared with another lowest version\n");
    assert!(text.contains(&line), "{text}");
    assert!(text.ends_with(": entries 2, predicates 2, broken 1, unknown 0.\n"), "{text}");
    let output = node.run(tree.path(), &["check", "anchors", "--workspace", "local"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let output = node.run(node.home.path(), &["check", "anchors"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("No checkout found at"), "{}", told(&output));
}

#[test]
fn non_members_cannot_make_a_check_fail() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let mut peer = Node::start(2, 2);
    let put = PeerCommand::Put(peer.author(), Box::new(paired("mallory")));
    node.engine.submit_blocking(klnode_engine::Command::Peers(vec![put])).unwrap();
    let tree = Tree::new(&["a.rs"]);
    tree.write("a.rs", b"");
    let mut claims = tree.bound(&["path:no/such/file"]);
    claims.push(ClaimEdit::Add(TextSet::ANCHORS, "path:no/such/file".to_owned()));
    let bait = peer.create_new(NewEntry { claims, ..lesson("bait") });
    let EntryRecords::Live(authors) = peer.records(bait) else { panic!("forgotten") };
    let (records, from) = (authors.values().flat_map(|held| held.records()), peer.author());
    let arrivals = records.map(|record| DeliveredRecord { record: record.clone(), from }).collect();
    node.engine.submit_blocking(klnode_engine::Command::Ingest(arrivals)).unwrap();
    let new = json!({
        "title": "Ours", "content": "Holds.", "evidence": ["doc:notes"],
        "depends_on": ["path:a.rs"], "checkout": tree.path(),
    });
    assert_eq!(node.json("POST", "/v1/entries", &new).status, 200);
    let answer = node.json("POST", "/v1/anchors/check", &json!({"checkout": tree.path()}));
    let checked = answer.json();
    assert_eq!((&checked["entries"], &checked["broken"]), (&json!(1), &json!([])), "{checked}");
}

#[test]
fn over_tcp_no_checkout_is_read_and_paths_must_be_absolute() {
    let node = Served::start(Limits::default(), Doors::Both);
    let token = format!("Bearer {TOKEN}");
    let headers = [("Authorization", token.as_str()), ("Content-Type", "application/json")];
    for (path, body) in [
        ("/v1/search", json!({"query": "x", "checkout": "/"})),
        ("/v1/anchors/check", json!({"checkout": "/"})),
    ] {
        let text = body.to_string();
        let answer = ask(node.connect_tcp(), "POST", path, &headers, text.as_bytes());
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        assert!(answer.text().contains("over TCP"), "{answer:?}");
    }
    let answer =
        ask(node.connect_tcp(), "GET", "/v1/entries/AAAA?checkout=%2F", &headers[..1], b"");
    assert_eq!(answer.status, 403, "{answer:?}");
    let relative = json!({"query": "x", "checkout": "here"});
    assert_eq!(node.json("POST", "/v1/search", &relative).status, 400);
}

#[test]
fn a_check_is_recorded_and_affects_status_only_if_configured() {
    for (is_counted, alpha, beta) in
        [("false", [5.0, 5.0], [5.0, 5.0]), ("true", [6.0, 5.0], [5.0, 6.0])]
    {
        let home = tempfile::tempdir().unwrap();
        let mut command = klnode(home.path());
        command.arg("--set").arg(format!("anchors.count_as_observation={is_counted}"));
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let node = Asked { home, _node: started(command).0 };
        let tree = Tree::new(&["lib/one.rs"]);
        let codes = ["path:lib/one.rs", "path:lib/two.rs"].map(|path| node.add(&tree, path));
        tree.write("lib/one.rs", b"");
        for _ in 0..2 {
            node.run(tree.path(), &["check", "anchors"]);
            node.search(tree.path());
        }
        // A request to the writer is processed after the noted check.
        node.json(tree.path(), &["mark", "--pin", &codes[0]]);
        let of = |code: &String| {
            let shown = node.json(node.home.path(), &["show", code]);
            (shown["alpha"].as_f64().unwrap(), shown["beta"].as_f64().unwrap())
        };
        let found = codes.each_ref().map(of);
        assert_eq!(found, [(alpha[0], beta[0]), (alpha[1], beta[1])], "{is_counted}");
    }
}

#[test]
fn check_results_are_recorded_with_served_entries() {
    let node = Served::start(Limits::default(), Doors::Socket);
    let tree = Tree::new(&["lib/one.rs"]);
    let new = json!({
        "title": "About zqheld", "content": "Rare.", "evidence": ["doc:notes"],
        "depends_on": ["path:lib/one.rs"], "checkout": tree.path(),
    });
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let entry = text(&node.json("POST", "/v1/entries", &new).json()["id"]);
    let begin = json!({"agent": "builder", "goal": "mend the build"});
    let task = text(&node.json("POST", "/v1/tasks", &begin).json()["task"]);
    let held = |tree: &Tree| {
        let search = json!({"query": "zqheld", "task": task, "all": true, "checkout": tree.path()});
        let answer = node.json("POST", "/v1/search", &search);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let snapshot = node.engine.store().snapshot().unwrap();
        snapshot.uses(EntryId::from_hex(&entry).unwrap()).unwrap().held
    };
    assert_eq!(held(&tree), None, "the file is gone");
    tree.write("lib/one.rs", b"");
    assert!(held(&tree).is_some());
}
