//! Verbs that ask for confirmation and report their result: to a person, and without a terminal.

use crate::support::homes::settle;
use crate::support::node_process::{eventually, json, printed, run, start, told};
use clap::Parser;
use klnode_cli::{self, Cli, ConfirmPrompt, OutputReader, ProgressSink, VerbContext, VerbError};
use klnode_client::{Client, ClientError};
use klnode_crdt::record::Record;
use klnode_engine::{RecordSource, ScreenDecision};
use klnode_tests::test_engine::Node;
use klnode_tests::test_server::PATIENCE;
use klnode_tests::workspace_fixture::paired;
use serde_json::json as object;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

/// Discards progress reports.
struct Silent;

impl ProgressSink for Silent {
    fn tell(&mut self, _: &str, _: u64, _: Option<u64>) {}

    fn clear(&mut self) {}
}

/// Records progress reports, and runs a callback at each.
struct Recording<F> {
    told: Vec<(String, u64, Option<u64>)>,
    then: F,
}

impl<F: FnMut()> Recording<F> {
    fn new(then: F) -> Self {
        Self { told: Vec::new(), then }
    }
}

impl<F: FnMut()> ProgressSink for Recording<F> {
    fn tell(&mut self, what: &str, done: u64, total: Option<u64>) {
        self.told.push((what.to_owned(), done, total));
        (self.then)();
    }

    fn clear(&mut self) {}
}

/// Exit code and output of a verb.
fn carried_out<'a>(
    home: &'a Path,
    words: &[&str],
    ask: ConfirmPrompt<'a>,
    progress: &'a mut dyn ProgressSink,
) -> Result<(u8, String), VerbError> {
    let Cli { verb, global } = Cli::try_parse_from([&["klnode"][..], words].concat()).unwrap();
    let client = Client::new(&home.join("klnode.sock"));
    let (terminal, program) = (OutputReader::Person, "klnode".to_owned());
    let context = VerbContext { terminal, ask, editor: None, program, home, progress };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reply = runtime.block_on(klnode_cli::run(verb.expect("one is typed"), &client, context));
    reply.map(|reply| (reply.exit_code(), reply.render(&global)))
}

/// Result of a verb typed by a person who gives the same answer to every question, and the
/// questions asked.
fn typed(
    home: &Path,
    words: &[&str],
    answer: bool,
) -> (Result<(u8, String), VerbError>, Vec<String>) {
    let mut asked = Vec::new();
    let mut ask = |question: &str| {
        asked.push(question.to_owned());
        answer
    };
    let ended = carried_out(home, words, Some(&mut ask), &mut Silent);
    (ended, asked)
}

/// Stands in for a node: sends one response when the channel signals or closes.
fn answering(home: &Path, body: String, told: Receiver<()>) {
    let listener = UnixListener::bind(home.join("klnode.sock")).unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The request must have arrived before the response is sent.
        assert!(stream.read(&mut [0; 1_024]).unwrap() > 0);
        let _ = told.recv_timeout(PATIENCE);
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        // The client disconnects after it has read the whole response.
        let _ = stream.read_to_end(&mut Vec::new());
    });
}

/// Code of a new entry.
fn add(home: &Path, title: &str, more: &[&str]) -> String {
    let words = ["add", "--title", title, "--content", "A short lesson.", "--evidence", "doc:d"];
    let added = json(home, &[&words[..], more].concat());
    added["code"].as_str().expect("a code").to_owned()
}

fn is_there(home: &Path, code: &str) -> bool {
    run(home, &["show", code]).status.success()
}

#[test]
fn irreversible_verbs_ask_for_confirmation_and_name_the_entry() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let [one, two, three] = ["First", "Second", "Third"].map(|title| add(home, title, &[]));
    for (verb, heard) in [
        (&["forget"][..], "Nothing was forgotten."),
        (&["forget", "--retract"], "Nothing was retracted."),
    ] {
        let (ended, asked) = typed(home, &[verb, &[&one[..7]]].concat(), false);
        let told = ended.expect_err("the prompt was declined").to_string();
        assert_eq!(told, heard);
        assert_eq!(asked.len(), 1);
        assert!(asked[0].starts_with(&format!("{one}  First\n")), "{asked:?}");
        assert!(is_there(home, &one));
    }
    let (ended, asked) = typed(home, &["forget", &one[..7]], true);
    assert_eq!(ended.unwrap(), (0, format!("{one}  forgotten: First\n")));
    assert_eq!(asked.len(), 1);
    assert!(!is_there(home, &one));
    let (ended, _) = typed(home, &["forget", "--retract", &two], true);
    assert_eq!(ended.unwrap(), (0, format!("{two}  retracted: Second\n")));
    // There is nothing left to decide about a forgotten entry.
    let (ended, asked) = typed(home, &["forget", &one, "--now"], false);
    let (code, said) = ended.unwrap();
    assert_eq!(code, 0);
    assert!(
        said.ends_with("  was forgotten before, and is erased from every file of this node\n"),
        "{said}"
    );
    assert!(asked.is_empty(), "{asked:?}");
    let (ended, asked) = typed(home, &["forget", &three, "--yes"], false);
    assert_eq!(ended.unwrap(), (0, format!("{three}  forgotten: Third\n")));
    assert!(asked.is_empty(), "{asked:?}");
}

#[test]
fn without_a_terminal_irreversible_verbs_need_the_whole_code() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    for verb in [&["forget"][..], &["forget", "--retract"]] {
        let code = add(home, "Said once", &[]);
        let short = &code[..7];
        let refused = run(home, &[verb, &[short]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
        assert!(told(&refused).contains("it is not the whole code"), "{}", told(&refused));
        assert!(is_there(home, &code));
        let gone = match verb.len() {
            1 => format!("{code}  forgotten: Said once\n"),
            _ => format!("{code}  retracted: Said once\n"),
        };
        assert_eq!(printed(&run(home, &[verb, &[short, "--yes"]].concat())), gone);
        let whole = add(home, "Said twice", &[]);
        let done = json(home, &[verb, &[&whole]].concat());
        assert_eq!((&done["code"], &done["title"]), (&object!(whole), &object!("Said twice")));
    }
}

#[test]
fn editing_a_forgotten_entry_fails_like_other_verbs() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let code = add(home, "Gone soon", &[]);
    printed(&run(home, &["forget", &code]));
    let verbs: [&[&str]; 3] = [
        &["edit", &code, "--title", "Back again"],
        &["feedback", &code, "--success"],
        &["show", &code],
    ];
    for words in verbs {
        let output = run(home, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", told(&output));
        assert!(told(&output).contains("was forgotten"), "{words:?}: {}", told(&output));
    }
    // The requested state is already reached, and the note says how to see which peers have erased
    // it.
    let digits = code.split_once('-').expect("a letter").1;
    let note =
        format!("Run `klnode forget {digits} --status` to see which peers have erased it.\n");
    for (flag, more) in [("--yes", ""), ("--now", ", and is erased from every file of this node")] {
        let output = run(home, &["forget", &code, flag]);
        assert_eq!(printed(&output), format!("{digits}  was forgotten before{more}\n"));
        assert_eq!(told(&output), note, "{flag}");
    }
    assert_eq!(json(home, &["forget", &code])["before"], true);
    printed(&run(home, &["forget", digits, "--status"]));
}

#[test]
fn a_retracted_entry_has_no_type_and_one_document_is_singular() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let code = add(home, "Said once", &[]);
    let shown = printed(&run(home, &["show", &code]));
    assert!(shown.contains("\ntype          lesson in main (semantic)\n"), "{shown}");
    eventually("the index has it", || {
        let looked = run(home, &["check", "home", "store"]);
        String::from_utf8_lossy(&looked.stdout).contains("1 document indexed").then_some(())
    });
    printed(&run(home, &["forget", "--retract", &code]));
    let shown = printed(&run(home, &["show", &code]));
    assert!(shown.contains("\nworkspace     main (semantic)\n"), "{shown}");
    assert!(!shown.contains("\ntype "), "{shown}");
}

#[test]
fn an_empty_filter_result_exits_with_1_and_hints_go_to_stderr() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    assert_eq!(run(home, &["list"]).status.code(), Some(0), "nothing was looked for");
    for title in ["First", "Second"] {
        add(home, title, &["--tag", "auth"]);
    }
    let none = run(home, &["list", "--tag", "nosuch"]);
    assert_eq!(none.status.code(), Some(1), "{}", told(&none));
    assert_eq!(none.stdout, b"No entry matches.\n");
    let page = run(home, &["list", "--tag", "auth", "-n", "1"]);
    let shown = printed(&page);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let code = shown.split_whitespace().next().unwrap();
    let place = home.display();
    let more =
        format!("For more, run: klnode --home {place} list -n 1 --tag auth --after {code}\n");
    assert_eq!(told(&page), more);
    assert_eq!(json(home, &["list"])["left_out"], 0);
}

#[test]
fn sub_type_and_memory_filter_lists_and_sub_type_filters_searches() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let mut bugs = ["Rotate logs", "Rotate backups"].map(|title| {
        let bug = add(home, title, &["--type", "experience"]);
        printed(&run(home, &["edit", &bug, "--field", "sub_type=bug"]));
        bug
    });
    let norm = add(home, "Rotate on call", &["--type", "norm"]);
    let raw = add(home, "Rotate failed", &["--type", "signal"]);
    add(home, "Rotate keys", &[]);
    let codes = |words: &[&str], of: &str| {
        let answer = json(home, words);
        let entries = answer[of].as_array().unwrap().iter();
        let mut codes: Vec<String> =
            entries.map(|entry| entry["code"].as_str().unwrap().to_owned()).collect();
        codes.sort();
        codes
    };
    bugs.sort();
    assert_eq!(codes(&["list", "--sub-type", "bug"], "entries"), bugs);
    assert_eq!(codes(&["list", "--memory", "procedural"], "entries"), [norm]);
    assert_eq!(codes(&["list", "--memory", "episodic"], "entries"), [raw]);
    assert_eq!(codes(&["list", "--memory", "semantic"], "entries").len(), 3);
    assert_eq!(codes(&["search", "rotate", "--sub-type", "bug"], "hits"), bugs);
    assert_eq!(codes(&["search", "rotate", "--sub-type=bug", "--sub-type=risk"], "hits"), bugs);
    let page = run(home, &["list", "--memory", "semantic", "--sub-type", "bug", "-n", "1"]);
    let more = told(&page);
    assert!(more.contains(" list -n 1 --sub-type bug --memory semantic --after "), "{more}");
    for (words, code, said) in [
        (&["list", "--sub-type", "risk"][..], 1, "No entry matches.\n"),
        (&["list", "--type", "lesson", "--sub-type", "bug"], 1, "No entry matches.\n"),
        (&["search", "rotate", "--sub-type", "risk"], 1, "No entry is of sub-type `risk`.\n"),
        (
            &["list", "--sub-type", "poem"],
            2,
            "The sub-type `poem` does not exist; it must be one of technique,",
        ),
        (
            &["list", "--memory", "long"],
            2,
            "The memory `long` does not exist; it must be one of semantic,",
        ),
        (
            &["search", "x", "--sub-type", "poem"],
            2,
            "The sub-type `poem` does not exist; it must be one of technique,",
        ),
    ] {
        let output = run(home, words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &told(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

#[test]
fn inviting_into_a_workspace_with_entries_asks_for_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    printed(&run(home, &["workspace", "new", "team"]));
    add(home, "Ours so far", &["--workspace", "team"]);
    let (ended, asked) = typed(home, &["peer", "invite", "team"], false);
    let said = ended.expect_err("the prompt was declined").to_string();
    assert_eq!(said, "No ticket was created.");
    assert!(asked[0].ends_with(" the existing 1 entry of `team`. Invite?"), "{asked:?}");
    let (ended, asked) = typed(home, &["peer", "invite", "team"], true);
    assert!(ended.unwrap().1.starts_with("klnode1"), "a ticket");
    assert_eq!(asked.len(), 1);
    assert!(typed(home, &["peer", "invite", "team", "--yes"], false).1.is_empty());
    // Without a terminal there is no confirmation.
    let refused = run(home, &["peer", "invite", "team"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        told(&refused).contains("would see the existing 1 entry of `team`."),
        "{}",
        told(&refused)
    );
    assert!(told(&refused).contains("hint: Confirm with --yes"), "{}", told(&refused));
    let joined = told(&run(home, &["peer", "join", "nowhere", "--yes"]));
    assert!(joined.contains("is neither a ticket nor an address"), "{joined}");
    let taken = told(&run(home, &["workspace", "new", "main"]));
    assert!(taken.contains("A workspace `main` exists already"), "{taken}");
    assert!(!taken.contains("klnode peer invite main"), "{taken}");
}

#[test]
fn all_records_of_one_peer_are_rejected_after_confirmation() {
    let folder = tempfile::tempdir().unwrap();
    let home = &folder.path().join("home");
    let odd = |_: &Record, _: RecordSource| ScreenDecision::Quarantine("odd".into());
    let mut node = Node::start_with_screen(1, 1, Box::new(odd));
    for (seed, name, count) in [(2, "alice", 120), (3, "bob", 2)] {
        let mut peer = Node::start(seed, seed.into());
        node.meet(peer.author(), paired(name));
        for number in 0..count {
            peer.create(&format!("odd {number}"));
        }
        peer.send_to(&mut node);
    }
    settle(home, node, 1);
    let (_node, _) = start(home);
    let waiting = |more: &[&str]| json(home, &[&["inbox", "list"], more].concat())["total"].clone();
    let reject = ["inbox", "reject", "--from", "alice"];
    let refused = run(home, &reject);
    assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
    let why = "error: Rejecting 120 records from `alice` needs a confirmation.\n  hint: Confirm with \
               --yes.\n";
    assert!(told(&refused).contains(why), "{}", told(&refused));
    let (ended, asked) = typed(home, &reject, false);
    assert!(ended.is_err());
    assert_eq!(asked, ["Delete 120 records from alice for good?"]);
    assert_eq!((waiting(&[]), waiting(&["--from", "alice"])), (object!(122), object!(120)));
    // These are more records than one request may delete.
    let (ended, asked) = typed(home, &reject, true);
    assert_eq!(ended.unwrap(), (0, "120 records from alice deleted\n".to_owned()));
    assert_eq!(asked.len(), 1);
    assert_eq!((waiting(&[]), waiting(&["--from", "bob"])), (object!(2), object!(2)));
    let reject = ["inbox", "reject", "--from", "bob", "--yes"];
    for count in [2, 0] {
        let done = json(home, &reject);
        let counted = (&done["peer_name"], &done["rejected"], &done["left"]);
        assert_eq!(counted, (&object!("bob"), &object!(count), &object!(0)), "{done}");
    }
    for words in [&["--yes"][..], &["3f9a1c", "--from", "bob"], &[]] {
        let words = [&["klnode", "inbox", "reject"], words].concat();
        assert!(Cli::try_parse_from(words.iter().copied()).is_err(), "{words:?}");
    }
}

#[test]
fn a_filter_verb_without_options_shows_the_filter_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let home = &folder.path().join("home");
    let mut node = Node::start(1, 1);
    node.meet(Node::start(2, 2).author(), paired("alice"));
    settle(home, node, 1);
    let (_node, _) = start(home);
    printed(&run(home, &["peer", "filter", "alice", "--deny-tag", "private"]));
    let set = || json(home, &["peer", "show", "alice"])["filters"].clone();
    let before = set();
    let told = printed(&run(home, &["peer", "filter", "alice"]));
    assert!(told.starts_with("is sent       not with tags private; memories "), "{told}");
    assert!(told.contains("\nis accepted   memories ") && told.lines().count() == 2, "{told}");
    assert_eq!(json(home, &["peer", "filter", "alice"]), before);
    let taken = json(home, &["peer", "filter", "alice", "--from-peer"]);
    assert_eq!((taken.get("egress"), &taken["ingress"]), (None, &before["ingress"]));
    assert_eq!(set(), before);
}

#[test]
fn adding_to_a_shared_workspace_names_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let words = ["add", "--title", "t", "--content", "c", "--evidence", "doc:d"];
    assert!(printed(&run(home, &words)).ends_with("  t\n"));
    printed(&run(home, &["workspace", "new", "team"]));
    printed(&run(home, &["workspace", "use", "team"]));
    assert!(printed(&run(home, &words)).ends_with("  t  (in team)\n"));
}

#[test]
fn the_first_outcome_of_a_task_stands_and_a_second_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let begun = json(home, &["task", "begin", "--agent", "a", "--goal", "g"]);
    let task = begun["task"].as_str().unwrap();
    printed(&run(home, &["task", "finish", task, "--success"]));
    let again = printed(&run(home, &["task", "finish", task, "--success"]));
    assert_eq!(again, format!("{task}  was already finished; nothing was added\n"));
    let other = run(home, &["task", "finish", task, "--failure"]);
    assert_eq!(other.status.code(), Some(1));
    let expected = format!("{task}  was already finished as a success; that outcome is kept\n");
    assert_eq!(String::from_utf8(other.stdout).unwrap(), expected);
    let other = json(home, &["task", "finish", task, "--failure"]);
    assert_eq!((&other["already"], &other["outcome"]), (&object!(true), &object!("success")));
}

#[test]
fn a_waiting_client_names_the_pending_request() {
    for (words, expected) in [
        (&["peer", "sync", "vm"][..], "waiting for vm"),
        (&["peer", "sync"], "waiting for every peer"),
        (&["peer", "join", "/dns4/vm.example/tcp/4001/p2p/x"], "asking vm.example"),
        (&["forget", "3f9a1c", "--yes", "--now"], "rewriting the store"),
        (&["stop"], "waiting until the home is free"),
        (&["status"], "waiting for the node"),
        (&["add", "--title", "t", "--content", "c"], "waiting for the node"),
        (&["forget", "--retract", "3f9a1c", "--yes"], "waiting for the node"),
        (&["maintain"], "waiting for the node"),
        (&["check", "limits"], "waiting for the node"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path();
        let (tell, told) = mpsc::channel();
        answering(home, "{}".to_owned(), told);
        let mut progress = Recording::new(|| {
            // It may have answered already.
            let _ = tell.send(());
        });
        // The response itself is invalid; the test checks only the progress reports before it.
        let _ = carried_out(home, words, None, &mut progress);
        let said: Vec<&str> = progress.told.iter().map(|(what, ..)| what.as_str()).collect();
        assert!(!said.is_empty(), "{words:?}");
        assert!(said.iter().all(|what| *what == expected), "{words:?}: {said:?}");
    }
}

#[test]
fn a_hung_node_times_out_with_a_note_about_the_request() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let socket = home.join("klnode.sock");
    // The kernel accepts the connection; the request is never read.
    let _hung = UnixListener::bind(&socket).unwrap();
    let client = Client::new(&socket).patient_for(Duration::from_millis(1));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for words in [&["status"][..], &["add", "--title", "t", "--content", "c"], &["list"]] {
        let typed = [&["klnode"][..], words].concat();
        let verb = Cli::try_parse_from(typed).unwrap().verb.expect("one is typed");
        let (terminal, program) = (OutputReader::Person, "klnode".to_owned());
        let (ask, editor, progress) = (None, None, &mut Silent);
        let context = VerbContext { terminal, ask, editor, program, home, progress };
        let ended = runtime.block_on(klnode_cli::run(verb, &client, context));
        let Err(VerbError::Client(error @ ClientError::Silent { .. })) = ended else {
            panic!("{words:?} heard something");
        };
        assert_eq!(error.exit_code(), 3, "{words:?}");
        let said = error.to_string();
        assert!(said.contains("sent no response within "), "{words:?}: {said}");
        assert!(said.ends_with("It may still carry it out."), "{words:?}: {said}");
    }
}

#[test]
fn stopping_a_node_shows_progress_until_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let lock = File::create(home.join("lock")).unwrap();
    lock.lock().unwrap();
    let mut lock = Some(lock);
    answering(home, object!({ "home": home }).to_string(), mpsc::channel().1);
    let mut progress = Recording::new(|| drop(lock.take()));
    let ended = carried_out(home, &["stop"], None, &mut progress);
    assert_eq!(ended.unwrap(), (0, "The node has stopped.\n".to_owned()));
    assert_eq!(progress.told[0], ("waiting until the home is free".to_owned(), 0, None));
}

#[test]
fn imports_and_backups_show_progress() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (home, other) = (folder.path(), other.path());
    let (_node, _) = start(home);
    let lines = other.join("lines.jsonl");
    let text = "{\"title\": \"t\", \"content\": \"c\"}\n";
    fs::write(&lines, text).unwrap();
    let mut progress = Recording::new(|| {});
    carried_out(home, &["import", lines.to_str().unwrap()], None, &mut progress).unwrap();
    let length = text.len() as u64;
    assert_eq!(progress.told, [("importing".to_owned(), length, Some(length))]);
    // A small store is copied before any progress is reported, so the test sends it for the node.
    let manifest = object!({
        "node": "n", "store": "s", "created": 0, "klnode": "0", "schema": 1, "head": 1,
        "entries": 1, "forgotten": 0, "records": 1, "has_key": true, "store_bytes": 4,
        "store_digest": "d",
    });
    let news = [
        object!({ "progress": { "done": 1, "total": 4 } }),
        object!({ "progress": { "done": 3, "total": 4 } }),
        object!({ "done": manifest }),
    ];
    let body: String = news.iter().map(|line| format!("{line}\n")).collect();
    answering(other, body, mpsc::channel().1);
    let mut progress = Recording::new(|| {});
    let file = other.join("klnode.backup");
    carried_out(other, &["backup", "create", file.to_str().unwrap()], None, &mut progress).unwrap();
    // On a slow machine the first report is that of waiting for the node.
    progress.told.retain(|(what, ..)| what != "waiting for the node");
    let told = [1_u64, 3].map(|done| ("backing up".to_owned(), done, Some(4_u64)));
    assert_eq!(progress.told, told);
}
