//! Agents of one user, distinguished by their client processes: real processes that run klnode
//! below them, and the rule behind it under a simulated clock.
//!
//! A client is a shell under the name of a coding agent. Its parent ends before it is used, so that
//! the process tree of this suite is not above it.

#![cfg(target_os = "linux")]

use crate::findings::{CACHE, SQL};
use crate::support::conformance::conforms;
use crate::support::node_process::{PROGRAM, Running, done, eventually, run, start, text, told};
use crate::tasks::{begin, end};
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_engine::{
    Command, ComparedFinding, Confirmation, FindingCommand, FindingReceipt, NewFinding, Receipt,
    TaskCommand, TaskReceipt,
};
use klnode_store::client_process::{ClientId, ClientProcess, Lineage};
use klnode_store::findings::{FindingKey, FindingResolution};
use klnode_store::row_types::{CallerRow, ServedRow};
use klnode_tests::test_engine::{Node, START};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

const SAME_CLIENT: &str = "it was served to the same client";
const SAME_USER: &str = "it was served to the same user recently";
const EARLIER_TODAY: &str = "an agent of the same user already confirmed it today";

/// A node, and a folder for its clients.
struct Place {
    folder: tempfile::TempDir,
    _node: Running,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (node, _) = start(&folder.path().join("home"));
        Self { folder, _node: node }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// Writes an entry about a unique word. This serves it to no client.
    fn add(&self, word: &str) -> String {
        let title = format!("The {word} gateway answers 503 after a deploy");
        let content = format!("Retry {word} until the {word} pool has warmed up.");
        let words = ["add", "--title", &title, "--content", &content, "--evidence", "doc:notes"];
        text(&done(&self.home(), &words)["code"])
    }

    /// A client under the name of a program, not connected yet.
    fn client(&self, name: &str) -> Client {
        Client::start(self.folder.path(), &self.home(), name)
    }

    /// A connected client.
    fn connected(&self, name: &str) -> Client {
        let mut client = self.client(name);
        client.json("status");
        client
    }
}

/// A process that runs commands, whose only ancestor is the first process of the machine.
struct Client {
    /// Closing it ends the process.
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: tempfile::TempDir,
    home: PathBuf,
}

impl Client {
    fn start(folder: &Path, home: &Path, name: &str) -> Self {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let program = folder.path().join(name);
        std::os::unix::fs::symlink("/bin/sh", &program).unwrap();
        let mut command = std::process::Command::new("/bin/sh");
        command.arg("-c").arg("exec 3<&0; \"$0\" <&3 3<&- &").arg(&program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut parent = command.spawn().unwrap();
        let (input, output) = (parent.stdin.take().unwrap(), parent.stdout.take().unwrap());
        assert!(parent.wait().unwrap().success());
        Self { input, output: BufReader::new(output), folder, home: home.to_owned() }
    }

    /// Start of a command line of this client.
    fn klnode(&self) -> String {
        format!("'{PROGRAM}' --home '{}'", self.home.display())
    }

    /// Runs a line of shell, and waits for its end.
    #[track_caller]
    fn shell(&mut self, line: &str) {
        writeln!(self.input, "{line}\n").unwrap();
        let mut said = String::new();
        self.output.read_line(&mut said).unwrap();
        assert_eq!(said, "done\n", "{line}");
    }

    /// JSON output of a verb.
    #[track_caller]
    fn json(&mut self, words: &str) -> Value {
        let (answer, errors) =
            (self.folder.path().join("answer"), self.folder.path().join("errors"));
        let (klnode, to, beside) = (self.klnode(), answer.display(), errors.display());
        self.shell(&format!("{klnode} --json {words} </dev/null >'{to}' 2>'{beside}'; echo done"));
        let told = fs::read_to_string(errors).unwrap();
        let answer = fs::read_to_string(answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{words}: {error}: {told}"))
    }

    /// Serves an entry to this client by a search.
    #[track_caller]
    fn search(&mut self, words: &str, code: &str) {
        let answer = self.json(&format!("search {words} --all"));
        assert_eq!(answer["hits"][0]["code"], code, "{answer}");
    }

    fn begin(&mut self) -> String {
        text(&self.json("task begin --agent reviewer --goal review")["task"])
    }

    /// Class and reason of its confirmation, in a new task.
    #[track_caller]
    fn confirm(&mut self, code: &str) -> (String, String) {
        let task = self.begin();
        let confirmed = self.json(&format!("feedback {code} --confirm --task {task}"));
        (text(&confirmed["class"]), text(&confirmed["reason"]))
    }

    #[track_caller]
    fn confirms_primed(&mut self, code: &str, because: &str) {
        let (class, reason) = self.confirm(code);
        assert_eq!(class, "primed", "{reason}");
        assert!(reason.starts_with(because), "{reason}");
    }

    #[track_caller]
    fn confirms_independently(&mut self, code: &str) {
        let (class, reason) = self.confirm(code);
        assert_eq!(class, "independent", "{reason}");
    }
}

#[test]
fn of_two_clients_at_once_only_the_one_that_was_not_served_confirms_independently() {
    // Agents known by name, two of the same name, and unknown programs.
    for (one, two) in [("claude", "codex"), ("claude", "claude"), ("agent-one", "agent-two")] {
        let place = Place::new();
        let code = place.add("zqseed");
        let (mut served, mut unserved) = (place.connected(one), place.connected(two));
        served.search("zqseed", &code);
        served.confirms_primed(&code, SAME_CLIENT);
        unserved.confirms_independently(&code);
        let shown = done(&place.home(), &["show", &code]);
        let counted = (&shown["alpha"], &shown["primed_confirmations"]);
        assert_eq!(counted, (&json!(6.0), &json!(1)), "{one}, {two}");
    }
}

#[test]
fn an_unserved_client_refreshes_an_entry_and_restarts_its_count() {
    conforms("S000-07");
    conforms("S000-09");
    conforms("S000-14");
    let place = Place::new();
    let code = place.add("zqreview");
    let (mut served, mut unserved) = (place.connected("claude"), place.connected("codex"));
    for _ in 0..3 {
        let task = served.begin();
        served.search(&format!("zqreview --task {task}"), &code);
        served.json(&format!("task finish {task} --failure"));
    }
    let state = || {
        let shown = done(&place.home(), &["show", &code]);
        ["confirmed_days_ago", "idle_tasks"].map(|name| shown[name].clone())
    };
    assert_eq!(state(), [Value::Null, json!(3)]);
    served.confirms_primed(&code, SAME_CLIENT);
    assert_eq!(state(), [Value::Null, json!(3)], "it may be an echo");
    unserved.confirms_independently(&code);
    assert_eq!(state(), [json!(0), json!(0)]);
}

#[test]
fn a_client_that_connects_after_the_serving_is_not_distinguished() {
    let place = Place::new();
    let code = place.add("zqlate");
    let mut served = place.connected("claude");
    // It runs before the entry is served but has not connected, which proves nothing.
    let mut late = place.client("codex");
    served.search("zqlate", &code);
    late.confirms_primed(&code, SAME_USER);
}

#[test]
fn hook_mcp_server_shell_and_a_terminal_within_it_are_one_client() {
    let place = Place::new();
    fs::write(place.home().join("klnode.toml"), "[hooks]\ntimeout = \"1 min\"\n").unwrap();
    for (read, word) in [("hook", "zqhook"), ("mcp", "zqmcp"), ("pty", "zqpty")] {
        let code = place.add(word);
        let mut client = place.connected("claude");
        let folder = client.folder.path().to_owned();
        let klnode = client.klnode();
        match read {
            "hook" => {
                let prompt = format!("why does the {word} gateway answer 503?");
                let input = json!({"session_id": "a1", "cwd": "/", "prompt": prompt,
                    "hook_event_name": "UserPromptSubmit"});
                fs::write(folder.join("input"), input.to_string()).unwrap();
                let line = format!("cd '{}'; {klnode} hook prompt <input >said", folder.display());
                client.shell(&format!("{line}; echo done"));
                let said = fs::read_to_string(folder.join("said")).unwrap();
                assert!(said.contains(&code), "{said}");
            }
            "mcp" => {
                let said = over_mcp(&mut client, "get", &json!({"code": code}));
                assert!(said.contains("zqmcp"), "{said}");
            }
            _ => {
                let show = format!("{klnode} show {code}").replace('\'', "");
                let line = format!(
                    "script -qec '{show}' /dev/null </dev/null >'{}/said'",
                    folder.display()
                );
                client.shell(&format!("{line}; echo done"));
                let said = fs::read_to_string(folder.join("said")).unwrap();
                assert!(said.contains("zqpty"), "{said}");
            }
        }
        client.confirms_primed(&code, SAME_CLIENT);
    }
    // In the other direction: the shell reads the entry, and the MCP server's confirmation is
    // primed.
    let code = place.add("zqshell");
    let mut client = place.connected("claude");
    client.json(&format!("show {code}"));
    let task = client.begin();
    let confirm = json!({"code": code, "verdict": "confirm", "task": task});
    let said = over_mcp(&mut client, "observe", &confirm);
    assert!(said.contains("noted as primed") && said.contains(SAME_CLIENT), "{said}");
}

/// The MCP server's response to one call of a client.
fn over_mcp(client: &mut Client, tool: &str, arguments: &Value) -> String {
    let folder = client.folder.path().to_owned();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "suite", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": tool, "arguments": arguments}});
    fs::write(folder.join("asked"), format!("{hello}\n{ready}\n{call}\n")).unwrap();
    // Its input stays open until the response has arrived.
    let (klnode, place) = (client.klnode(), folder.display());
    client.shell(&format!(
        "cd '{place}'; rm -f hold; mkfifo hold; cat asked hold | {klnode} mcp >answers & echo done"
    ));
    let answer = eventually("the answer", || {
        let answers = fs::read_to_string(folder.join("answers")).ok()?;
        let mut whole = answers.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.find(|line| line.contains("\"id\":2")).map(str::to_owned)
    });
    drop(fs::OpenOptions::new().write(true).open(folder.join("hold")).unwrap());
    client.shell("wait; echo done");
    answer
}

#[test]
fn one_confirmation_per_user_and_day_counts() {
    let place = Place::new();
    let code = place.add("zqtwice");
    let (mut first, mut second) = (place.connected("claude"), place.connected("codex"));
    first.confirms_independently(&code);
    second.confirms_primed(&code, EARLIER_TODAY);
    first.confirms_primed(&code, EARLIER_TODAY);
    assert_eq!(done(&place.home(), &["show", &code])["alpha"], 6.0);
}

#[test]
fn a_detached_process_is_not_distinguished_from_other_clients() {
    let place = Place::new();
    let code = place.add("zqorphan");
    let (mut served, mut other) = (place.connected("claude"), place.connected("codex"));
    let klnode = served.klnode();
    // The shell between the two ends, and the client is no longer an ancestor.
    let waits = "parent=$1; while [ \"$parent\" = \"$1\" ]; do \
                 read -r _ _ _ parent _ <\"/proc/$$/stat\"; done";
    let script = format!("{waits}; {klnode} show {code} </dev/null >/dev/null 2>&1; echo done\n");
    let path = served.folder.path().join("detached.sh");
    fs::write(&path, script).unwrap();
    served.shell(&format!("sh -c 'setsid sh {} $$ &'", path.display()));
    // It may belong to either of them.
    other.confirms_primed(&code, SAME_USER);
    served.confirms_primed(&code, SAME_USER);
}

#[test]
fn an_entry_shown_in_a_terminal_primes_no_agent() {
    let place = Place::new();
    let (typed, piped) = (place.add("zqtyped"), place.add("zqpiped"));
    let mut terminal = place.client("xterm");
    let (klnode, folder) = (terminal.klnode(), terminal.folder.path().display().to_string());
    let show = format!("{klnode} show {typed}").replace('\'', "");
    let line = format!("script -qec '{show}' /dev/null </dev/null >'{folder}/said'; echo done");
    terminal.shell(&line);
    let said = fs::read_to_string(format!("{folder}/said")).unwrap();
    assert!(said.contains("zqtyped"), "{said}");
    // Output to a file may be for an agent.
    terminal.json(&format!("show {piped}"));

    let mut agent = place.connected("claude");
    agent.confirms_primed(&piped, SAME_USER);
    agent.confirms_independently(&typed);
    // The person has read it, so typing a confirmation is primed.
    let again = place.add("zqagain");
    let show = format!("{klnode} show {again}").replace('\'', "");
    let task = terminal.begin();
    let confirm = format!("{klnode} feedback {again} --confirm --task {task}").replace('\'', "");
    let line =
        format!("script -qec '{show}; {confirm}' /dev/null </dev/null >'{folder}/said'; echo done");
    terminal.shell(&line);
    let said = fs::read_to_string(format!("{folder}/said")).unwrap();
    assert!(said.contains("recorded as primed") && said.contains(SAME_USER), "{said}");
}

#[test]
fn a_restart_of_the_node_forgets_which_clients_were_connected() {
    let Place { folder, _node: node } = Place::new();
    let home = folder.path().join("home");
    let words = ["add", "--title", "About zqrestart", "--content", "w", "--evidence", "doc:a"];
    let code = text(&done(&home, &words)["code"]);
    let mut served = Client::start(folder.path(), &home, "claude");
    let mut other = Client::start(folder.path(), &home, "codex");
    other.json("status");
    served.search("zqrestart", &code);
    node.stop();
    let (_node, _) = start(&home);
    other.confirms_primed(&code, SAME_USER);
    served.confirms_primed(&code, SAME_CLIENT);
}

#[test]
fn without_a_persons_key_confirming_as_the_person_says_how_to_make_one() {
    let place = Place::new();
    let code = place.add("zqperson");
    let output = run(&place.home(), &["feedback", "--confirm", &code, "--as-person"]);
    let told = told(&output);
    assert_eq!(output.status.code(), Some(4), "{told}");
    let command =
        format!("run `klnode --home {} identity new` to create one", place.home().display());
    assert!(told.contains(&command) && told.contains("passphrase"), "{told}");
}

#[test]
fn a_user_is_primed_for_ten_minutes_at_least() {
    let home = tempfile::tempdir().unwrap();
    let output =
        run(home.path(), &["--set", "tuning.tasks.user_priming_lifetime=\"9 min\"", "status"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("from \"10 min\" to \"366 days\""), "{}", told(&output));
}

/// A caller below a client process that connected at a given time.
fn below(pid: u32, connected_after: Duration) -> CallerRow {
    let lineage = Lineage::new(&[ClientId::new("boot", pid, 1)], START.plus(connected_after));
    let client_process = ClientProcess::Known(lineage.unwrap());
    CallerRow { uid: Some(7), client_process, ..CallerRow::default() }
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

fn by(node: &mut Node, caller: CallerRow, command: Command) -> Receipt {
    node.run(Command::As { caller, command: Box::new(command) }).unwrap()
}

fn serve(node: &mut Node, caller: CallerRow, entry: EntryId) {
    let row = ServedRow { query: "what".into(), entries: vec![entry], ..ServedRow::default() };
    by(node, caller, Command::Served(row));
}

fn confirm(node: &mut Node, caller: CallerRow, entry: EntryId) -> Confirmation {
    let act = TaskCommand::Confirm { task: begin(node), entry, is_lowered: false };
    match by(node, caller, Command::Task(Box::new(act))) {
        Receipt::Task(TaskReceipt::Confirmed(of)) => of,
        other => panic!("it was not confirmed: {other:?}"),
    }
}

#[test]
fn a_client_is_distinguished_if_connected_before_the_first_serving_of_the_last_day() {
    // When the other client was served, when this one connected, when it confirms; in minutes.
    for (served, connected, now, expected) in [
        (&[10][..], 9, 11, Confirmation::Independent),
        (&[10], 10, 11, Confirmation::ServedToUser),
        (&[10], 11, 12, Confirmation::ServedToUser),
        // More than an hour after the serving.
        (&[10], 11, 71, Confirmation::Independent),
        (&[10, 40], 30, 75, Confirmation::ServedToUser),
        (&[10, 40], 9, 75, Confirmation::Independent),
        // Served again a day later: the earlier serving no longer counts.
        (&[10, 1_500], 1_499, 1_501, Confirmation::Independent),
        (&[10, 1_500], 1_500, 1_501, Confirmation::ServedToUser),
        (&[10, 1_400], 1_399, 1_401, Confirmation::ServedToUser),
    ] {
        let mut node = Node::start(1, 1);
        let entry = node.create("read");
        for at in served {
            node.now = START.plus(minutes(*at));
            serve(&mut node, below(1, minutes(0)), entry);
        }
        node.now = START.plus(minutes(now));
        let confirmed = confirm(&mut node, below(2, minutes(connected)), entry);
        assert_eq!(confirmed, expected, "{served:?}, {connected}, {now}");
        // The served client stays primed for ever.
        node.now = node.now.plus(minutes(3_000));
        let confirmed = confirm(&mut node, below(1, minutes(0)), entry);
        assert_eq!(confirmed, Confirmation::ServedToClient, "{served:?}");
    }
}

#[test]
fn clients_and_unknown_callers_are_not_distinguished() {
    use Confirmation::{Independent, ServedToUser};
    let unknown = CallerRow { uid: Some(7), ..CallerRow::default() };
    let typed = CallerRow { client_process: ClientProcess::Terminal, ..unknown };
    let client = below(1, minutes(0));
    let other_user = CallerRow { uid: Some(8), ..CallerRow::default() };
    for (reader, speaker, expected) in [
        (unknown, client, ServedToUser),
        (client, unknown, ServedToUser),
        (client, typed, ServedToUser),
        (unknown, typed, ServedToUser),
        (typed, typed, ServedToUser),
        (typed, client, Independent),
        (typed, unknown, Independent),
        (client, other_user, Independent),
        // Over TCP the caller may be any user.
        (CallerRow::default(), client, ServedToUser),
        (client, CallerRow::default(), ServedToUser),
    ] {
        let mut node = Node::start(1, 1);
        let entry = node.create("read");
        node.now = START.plus(minutes(5));
        serve(&mut node, reader, entry);
        node.now = START.plus(minutes(6));
        assert_eq!(confirm(&mut node, speaker, entry), expected, "{reader:?}, {speaker:?}");
    }
}

#[test]
fn a_process_between_a_client_and_its_caller_makes_no_second_client() {
    let ids = [1, 2, 3].map(|pid| ClientId::new("boot", pid, 1));
    let of = |processes: &[ClientId]| {
        let lineage = Lineage::new(processes, START).unwrap();
        let client_process = ClientProcess::Known(lineage);
        CallerRow { uid: Some(7), client_process, ..CallerRow::default() }
    };
    let [script, client, other] = ids;
    for (reader, speaker, expected) in [
        (of(&[script, client]), of(&[client]), Confirmation::ServedToClient),
        (of(&[client]), of(&[script, client]), Confirmation::ServedToClient),
        // Two clients that one program has started.
        (of(&[script, client]), of(&[other, client]), Confirmation::Independent),
    ] {
        let mut node = Node::start(1, 1);
        let entry = node.create("read");
        node.now = START.plus(minutes(5));
        serve(&mut node, reader, entry);
        assert_eq!(confirm(&mut node, speaker, entry), expected, "{reader:?}, {speaker:?}");
    }
}

#[test]
fn one_confirmation_per_user_counts_again_on_the_next_day() {
    let mut node = Node::start(1, 1);
    let entry = node.create("read");
    let (one, two) = (below(1, minutes(0)), below(2, minutes(0)));
    let other_user = CallerRow { uid: Some(8), ..CallerRow::default() };
    assert_eq!(confirm(&mut node, one, entry), Confirmation::Independent);
    assert_eq!(confirm(&mut node, two, entry), Confirmation::UserAgain);
    assert_eq!(confirm(&mut node, other_user, entry), Confirmation::Independent);
    assert_eq!(confirm(&mut node, CallerRow::default(), entry), Confirmation::UserAgain);
    node.wait_days(1);
    assert_eq!(confirm(&mut node, two, entry), Confirmation::Independent);
}

#[test]
fn a_finding_counts_for_the_client_that_recorded_it() {
    let mut node = Node::start(1, 1);
    let (first, second) = (node.create("first"), node.create("second"));
    node.now = START.plus(minutes(5));
    for entry in [first, second] {
        serve(&mut node, below(1, minutes(0)), entry);
    }
    node.now = START.plus(minutes(8));
    let (before, after) = (below(2, minutes(4)), below(3, minutes(6)));
    for (caller, entry, found, became) in [
        (after, first, SQL[0], FindingResolution::Reinforced),
        (before, second, CACHE[0], FindingResolution::Confirmed),
        // Of one user's agents only one counts.
        (below(4, minutes(4)), second, CACHE[1], FindingResolution::Reinforced),
    ] {
        let task = begin(&mut node);
        let new = NewFinding {
            text: found.into(),
            severity: "low".into(),
            confidence: 0.5,
            anchors: vec!["path:a".into()],
            verify: vec!["look".into()],
            repositories: Vec::new(),
            dismissal: None,
            workspace: WorkspaceId::MAIN,
            is_once: false,
        };
        by(&mut node, caller, Command::Finding(Box::new(FindingCommand::Record(task, new))));
        end(&mut node, task, Vec::new()).unwrap();
        let (entry, others) = (Some((entry, BTreeSet::new())), Vec::new());
        let finding = FindingKey { task, number: 1 };
        let compared = ComparedFinding { finding, is_dismissed: false, entry, others };
        match node.run(Command::Finding(Box::new(FindingCommand::Settle(compared)))) {
            Ok(Receipt::Finding(FindingReceipt::Settled(Some(fate)))) => {
                assert_eq!(fate.became, became, "{}", fate.reason);
            }
            other => panic!("{other:?}"),
        }
    }
}
