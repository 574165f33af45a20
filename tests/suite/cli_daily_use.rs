//! Everyday use, typed at a real node: text as an argument, the editor, dates, the newest first, an
//! interrupted import, a key file with open permissions.

use crate::support::conformance::conforms;
use crate::support::git_repos::{self, Ground};
use crate::support::node_process::{eventually, klnode, printed, run, signal, text, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

fn citation(shown: &Value) -> (String, String) {
    let one = &shown["citations"][0];
    (text(&one["evidence_type"]), text(&one["evidence_ref"]))
}

#[test]
fn a_text_argument_is_added_unchanged() {
    let (node, ground) = (Peer::start(), Ground::new());
    fs::create_dir(ground.path("plain")).unwrap();
    let plain = ground.path("plain");
    let long = "Use pnpm, not npm. Its lockfile is the one that CI reads.";
    for (typed, title) in [("use pnpm, not npm", "use pnpm, not npm"), (long, "Use pnpm, not npm")]
    {
        let added = git_repos::done(&node, &plain, &["add", typed]);
        assert_eq!(added["cited"], "word:operator", "{added}");
        let shown = node.json(&["show", &text(&added["id"])]);
        assert_eq!((&shown["title"], &shown["content"]), (&json!(title), &json!(typed)));
        assert_eq!(shown["citations"][0]["context"], true, "{shown}");
    }
    // In a checkout the commit is cited; a file outside of one cites itself.
    ground.repository("shop", None, 1);
    let head = ground.git("shop", &["rev-parse", "HEAD"]);
    let added = git_repos::done(&node, &ground.path("shop"), &["add", "seed the clock in tests"]);
    let shown = node.json(&["show", &text(&added["id"])]);
    assert_eq!(citation(&shown), ("commit".to_owned(), head));
    let file = plain.join("note.md");
    fs::write(&file, "# Pin the toolchain\n\nNightly broke the build twice.\n").unwrap();
    let added = git_repos::done(&node, &plain, &["add", "note.md"]);
    let shown = node.json(&["show", &text(&added["id"])]);
    assert_eq!(shown["title"], "Pin the toolchain");
    let file = fs::canonicalize(file).unwrap();
    assert_eq!(citation(&shown), ("file".to_owned(), file.to_str().unwrap().to_owned()));
}

#[test]
fn a_missing_file_and_a_procedural_text_without_evidence_are_refused() {
    let (node, ground) = (Peer::start(), Ground::new());
    let here = ground.path(".");
    for missing in ["notes.md", "notes.json", "folder/notes.MD"] {
        git_repos::refused(&node, &here, &["add", missing], 2, "No such file");
    }
    let norm = ["add", "Always pin the toolchain", "--type", "norm"];
    git_repos::refused(&node, &here, &norm, 2, "needs evidence");
    let procedural = ["add", "Run the linter first", "--type", "skill", "--memory", "procedural"];
    git_repos::refused(&node, &here, &procedural, 2, "needs evidence");
    let twice = ["add", "a text", "--content", "another"];
    git_repos::refused(&node, &here, &twice, 2, "given twice");
    let own_word = ["add", "Always pin it", "--type", "norm", "--evidence", "word:me"];
    git_repos::refused(&node, &here, &own_word, 2, "evidence_type is `word`");
    assert_eq!(node.json(&["status"])["entries"], 0);
}

/// A node, and an editor that runs a script on its file.
struct Desk {
    node: Peer,
    entry: String,
}

impl Desk {
    fn new() -> Self {
        let node = Peer::start();
        let entry = node.add("Check ctx.Err()", &["--tag", "go", "--tag", "auth"]);
        Self { node, entry }
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.node.home.with_file_name(name)
    }

    fn edit(&self, script: &str) -> Output {
        let (editor, drafts) = (self.beside("editor.sh"), self.beside("drafts"));
        fs::write(&editor, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir_all(&drafts).unwrap();
        let mut command = klnode(&self.node.home);
        // VISUAL takes precedence over EDITOR.
        command.env("VISUAL", editor).env("EDITOR", "false").env("TMPDIR", drafts);
        command.args(["edit", &self.entry]).output().unwrap()
    }

    fn drafts(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.beside("drafts")).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    fn shown(&self) -> Value {
        self.node.json(&["show", &self.entry])
    }
}

#[test]
fn edit_without_flags_opens_the_editor_and_writes_the_changes() {
    let desk = Desk::new();
    let given = desk.beside("given");
    let script = format!(
        "cp \"$1\" {}\nsed -i -e 's/^title:.*/title: Check it twice/' -e 's/\"go\"/rust/' \"$1\"\n\
         printf 'And log it.\\n' >> \"$1\"",
        given.display()
    );
    assert!(printed(&desk.edit(&script)).contains("edited"));
    let given = fs::read_to_string(given).unwrap();
    let content = "A lesson about Check ctx.Err().";
    let expect =
        format!("---\ntitle: \"Check ctx.Err()\"\ntags: [\"auth\", \"go\"]\n---\n{content}\n");
    assert_eq!(given, expect);
    let shown = desk.shown();
    assert_eq!(shown["title"], "Check it twice");
    assert_eq!(shown["content"], format!("{content}\nAnd log it."));
    assert_eq!(shown["tags"], json!(["auth", "rust"]));
    assert!(desk.drafts().is_empty(), "{:?}", desk.drafts());
    assert!(shown["updated"].as_u64() >= shown["created"].as_u64(), "{shown}");
}

#[test]
fn an_unchanged_file_writes_nothing_and_an_error_keeps_the_text() {
    let desk = Desk::new();
    let head = || desk.node.json(&["status"])["head"].clone();
    let before = head();
    for script in ["true", ": > \"$1\"", "touch \"$1\""] {
        assert!(printed(&desk.edit(script)).contains("nothing was changed"), "{script}");
        assert!(desk.drafts().is_empty(), "{script}");
    }
    let output = desk.edit("printf 'My typed text.\\n' > \"$1\"");
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    let [kept] = desk.drafts().try_into().expect("one file");
    assert!(told(&output).contains(kept.to_str().unwrap()), "{}", told(&output));
    assert_eq!(fs::read_to_string(&kept).unwrap(), "My typed text.\n");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(head(), before, "nothing was written");
    let output = run(&desk.node.home, &["edit", &desk.entry]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("Give a change with --title"), "{}", told(&output));
}

#[test]
fn the_newest_change_is_listed_first_and_every_answer_has_dates() {
    conforms("S003-13");
    let node = Peer::start();
    let ids: Vec<String> =
        ["one", "two", "three"].map(|of| node.add(&format!("entry zqdate {of}"), &[])).into();
    let listed = |words: &[&str]| {
        let listed = node.json(&[&["list", "--recent"], words].concat());
        let entries = listed["entries"].as_array().unwrap().clone();
        entries.iter().map(|one| text(&one["id"])).collect::<Vec<_>>()
    };
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(listed(&[]), newest_first);
    node.json(&["edit", &ids[0], "--tag", "changed"]);
    // An observation does not change the entry's date.
    node.json(&["feedback", &ids[1], "--success"]);
    let expect = [&ids[0], &ids[2], &ids[1]].map(String::clone);
    assert_eq!(listed(&[]), expect);
    assert_eq!(listed(&["-n", "1"]), expect[..1]);
    assert_eq!(listed(&["-n", "1", "--after", &expect[0]]), expect[1..2]);
    assert_eq!(listed(&["--after", &expect[1]]), expect[2..]);
    let shown = node.json(&["show", &ids[0]]);
    let (created, updated) =
        (shown["created"].as_u64().unwrap(), shown["updated"].as_u64().unwrap());
    assert!(created < updated, "{shown}");
    let day = {
        let said = printed(&node.type_in(&["show", &ids[0]]));
        let line =
            said.lines().find(|line| line.starts_with("updated ")).expect("a row").to_owned();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let said = printed(&node.type_in(&["list", "--recent", "-n", "1"]));
    assert!(said.contains(&format!(" %  {day}  entry zqdate one")), "{said}");
    let hit = node.found("entry zqdate one", &ids[0]);
    assert_eq!(hit["updated"], updated, "{hit}");
    let said = printed(&node.type_in(&["search", "entry zqdate one"]));
    assert!(said.contains(&format!("doc:notes; {day}")), "{said}");
}

fn line(number: usize) -> String {
    json!({"title": format!("note {number}"), "content": format!("text {number}")}).to_string()
        + "\n"
}

#[test]
fn a_failed_import_reports_the_accepted_lines() {
    let mut node = Peer::start();
    // Three requests: the first is acknowledged before the node stops.
    let mut import = klnode(&node.home)
        .args(["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = import.stdin.take().unwrap();
    for number in 0..=1_000 {
        stdin.write_all(line(number).as_bytes()).unwrap();
    }
    eventually("the first lines are taken", || {
        (node.json(&["status"])["entries"].as_u64()? >= 1_000).then_some(())
    });
    node.kill();
    drop(stdin);
    let output = import.wait_with_output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    let said = told(&output);
    // The response to the second request may have been on its way.
    let taken =
        [500, 1_000].map(|count| format!("Before that at least {count} lines were imported"));
    assert!(taken.iter().any(|taken| said.contains(taken)), "{said}");
    assert!(said.contains("Run it again to complete it"), "{said}");
}

#[test]
fn an_interrupted_import_reports_the_accepted_lines() {
    let node = Peer::start();
    let mut import = klnode(&node.home)
        .args(["import", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = import.stdin.take().unwrap();
    for number in 0..=1_000 {
        stdin.write_all(line(number).as_bytes()).unwrap();
    }
    eventually("the first lines are taken", || {
        (node.json(&["status"])["entries"].as_u64()? >= 1_000).then_some(())
    });
    signal(&import, "INT");
    let output = import.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(130));
    let taken = [500, 1_000].map(|count| format!("At least {count} lines were imported"));
    assert!(taken.iter().any(|taken| told(&output).contains(taken)), "{}", told(&output));
}

fn open_to_others(home: &Path) {
    let key = home.join("node.key");
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap();
}

#[test]
fn a_key_readable_by_others_is_reported_with_the_fix() {
    let mut node = Peer::start();
    assert_eq!(node.json(&["status"])["attention"], json!([]));
    open_to_others(&node.home);
    let way_out = format!("chmod 600 {}", node.home.join("node.key").display());
    let status = printed(&node.type_in(&["status"]));
    assert!(status.contains(&way_out), "{status}");
    assert_eq!(node.json(&["status"])["close_key"], way_out);
    let health = node.type_in(&["check", "limits"]);
    assert_eq!(health.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&health.stdout).contains(&way_out));
    let doctor = node.type_in(&["check", "home", "store"]);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains(&way_out));
    node.stop();
    let mut command = klnode(&node.home);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut started = command.spawn().unwrap();
    let stderr = BufReader::new(started.stderr.take().unwrap());
    let said = stderr.lines().map(Result::unwrap).find(|line| line.contains(&way_out));
    signal(&started, "TERM");
    started.wait().unwrap();
    assert!(said.is_some_and(|line| line.contains("Other users can read the node's key")));
}

#[test]
fn unpaired_members_are_shown_by_name() {
    let named = |name: &str| Peer::start_with(&format!("[network]\nname = \"{name}\"\n"));
    let (anna, bert, carl) = (named("anna"), named("bert"), named("carl"));
    bert.json(&["peer", "join", &anna.ticket(&["team"])]);
    carl.json(&["peer", "join", &anna.ticket(&["team"])]);
    let entry = carl.add("seed the zqclock in tests", &["--workspace", "team"]);
    let name = format!("carl ({})", &carl.key()[..8]);
    eventually("the entry arrives, and its author has a name", || {
        let hit = bert.found("seed zqclock tests", &entry);
        (hit["author_name"] == name.as_str()).then_some(())
    });
    assert_eq!(bert.json(&["show", &entry])["author_name"], name.as_str());
    let said = printed(&bert.type_in(&["show", "--history", &entry]));
    assert!(said.contains(&format!("{name} stated")), "{said}");
    let members = printed(&bert.type_in(&["workspace", "members", "team"]));
    assert!(members.contains(&name) && members.contains("anna"), "{members}");
    // A peer is shown under its own name in history and events.
    let said = printed(&anna.type_in(&["show", "--history", &entry]));
    assert!(said.contains("  carl stated"), "{said}");
    let mut watch = klnode(&anna.home);
    watch.args(["list", "--follow", "--since", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let code = text(&anna.json(&["show", &entry])["code"]);
    let mut lines = lines.map(Result::unwrap).filter(|line| line.contains(&code));
    let line = lines.next();
    signal(&watch, "TERM");
    watch.wait().unwrap();
    assert!(line.as_ref().is_some_and(|line| line.contains("by carl")), "{line:?}");
}
