//! Verbs that ask before they act, and that say what they did: to a person, and where nobody can be
//! asked.

use crate::homes::settle;
use crate::program::{json, printed, run, start, told};
use clap::Parser;
use klnode::api::Client;
use klnode::cli::{self, Around, Cli, Progress, Terminal, VerbError};
use klnode::engine::{Source, Verdict};
use klnode_crdt::record::Record;
use klnode_tests::node::Node;
use klnode_tests::society::paired;
use serde_json::json as object;
use std::path::Path;

/// Shows nothing of how far something is.
struct Silent;

impl Progress for Silent {
    fn tell(&mut self, _: &'static str, _: u64, _: Option<u64>) {}

    fn clear(&mut self) {}
}

/// How a verb ends that is typed by somebody who gives the same answer to every question, and what was
/// asked.
fn typed(
    home: &Path,
    words: &[&str],
    answer: bool,
) -> (Result<(u8, String), VerbError>, Vec<String>) {
    let Cli { verb, global } = Cli::try_parse_from([&["klnode"][..], words].concat()).unwrap();
    let client = Client::new(&home.join("klnode.sock"));
    let mut asked = Vec::new();
    let mut ask = |question: &str| {
        asked.push(question.to_owned());
        answer
    };
    let around = Around {
        terminal: Terminal::Person,
        ask: Some(&mut ask),
        program: "klnode".to_owned(),
        home,
        progress: &mut Silent,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let reply = runtime.block_on(cli::run(verb.expect("one is typed"), &client, around));
    (reply.map(|reply| (reply.exit_code(), reply.render(&global))), asked)
}

/// The code of a new entry.
fn add(home: &Path, title: &str, more: &[&str]) -> String {
    let words = ["add", "--title", title, "--content", "What we learned.", "--evidence", "doc:d"];
    let added = json(home, &[&words[..], more].concat());
    added["code"].as_str().expect("a code").to_owned()
}

fn is_there(home: &Path, code: &str) -> bool {
    run(home, &["show", code]).status.success()
}

#[test]
fn a_person_is_asked_before_something_is_gone_for_good_and_told_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let [one, two, three] = ["First", "Second", "Third"].map(|title| add(home, title, &[]));
    for (verb, heard) in
        [("forget", "Nothing was forgotten."), ("retract", "Nothing was retracted.")]
    {
        let (ended, asked) = typed(home, &[verb, &one[..7]], false);
        let told = ended.expect_err("nobody said yes").to_string();
        assert_eq!(told, heard);
        assert_eq!(asked.len(), 1);
        assert!(asked[0].starts_with(&format!("{one}  First\n")), "{asked:?}");
        assert!(is_there(home, &one));
    }
    let (ended, asked) = typed(home, &["forget", &one[..7]], true);
    assert_eq!(ended.unwrap(), (0, format!("{one}  forgotten: First\n")));
    assert_eq!(asked.len(), 1);
    assert!(!is_there(home, &one));
    let (ended, _) = typed(home, &["retract", &two], true);
    assert_eq!(ended.unwrap(), (0, format!("{two}  retracted: Second\n")));
    // Nothing is left to decide about what is gone.
    let (ended, asked) = typed(home, &["forget", &one, "--now"], false);
    assert!(ended.unwrap().1.ends_with("  forgotten, and gone from every file here\n"));
    assert!(asked.is_empty(), "{asked:?}");
    let (ended, asked) = typed(home, &["forget", &three, "--yes"], false);
    assert_eq!(ended.unwrap(), (0, format!("{three}  forgotten: Third\n")));
    assert!(asked.is_empty(), "{asked:?}");
}

#[test]
fn where_nobody_can_be_asked_what_is_gone_for_good_is_named_whole() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    for verb in ["forget", "retract"] {
        let code = add(home, "Said once", &[]);
        let short = &code[..7];
        let refused = run(home, &[verb, short]);
        assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
        assert!(told(&refused).contains("it is not the whole code"), "{}", told(&refused));
        assert!(is_there(home, &code));
        let gone = match verb {
            "forget" => format!("{code}  forgotten: Said once\n"),
            _ => format!("{code}  retracted: Said once\n"),
        };
        assert_eq!(printed(&run(home, &[verb, short, "--yes"])), gone);
        let whole = add(home, "Said twice", &[]);
        let done = json(home, &[verb, &whole]);
        assert_eq!((&done["code"], &done["title"]), (&object!(whole), &object!("Said twice")));
    }
}

#[test]
fn an_edit_of_what_was_forgotten_ends_as_other_verbs_do() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let code = add(home, "Gone soon", &[]);
    printed(&run(home, &["forget", &code]));
    let verbs: [&[&str]; 4] = [
        &["edit", &code, "--title", "Back again"],
        &["observe", &code, "--success"],
        &["show", &code],
        &["forget", &code],
    ];
    for words in verbs {
        let output = run(home, words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", told(&output));
        assert!(told(&output).contains("it was forgotten"), "{words:?}: {}", told(&output));
    }
}

#[test]
fn a_filter_that_nothing_fits_is_a_no_and_hints_stand_beside_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    assert_eq!(run(home, &["list"]).status.code(), Some(0), "nothing was looked for");
    for title in ["First", "Second"] {
        add(home, title, &["--tag", "auth"]);
    }
    let none = run(home, &["list", "--tag", "nosuch"]);
    assert_eq!(none.status.code(), Some(1), "{}", told(&none));
    assert_eq!(none.stdout, b"Nothing is like that.\n");
    let page = run(home, &["list", "--tag", "auth", "-n", "1"]);
    let shown = printed(&page);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    let code = shown.split_whitespace().next().unwrap();
    let place = home.display();
    let more = format!("More with: klnode --home {place} list -n 1 --tag auth --after {code}\n");
    assert_eq!(told(&page), more);
    assert_eq!(json(home, &["list"])["left_out"], 0);
}

#[test]
fn a_person_is_asked_before_what_a_workspace_holds_is_shown_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    printed(&run(home, &["workspace", "new", "team"]));
    add(home, "Ours so far", &["--workspace", "team"]);
    let (ended, asked) = typed(home, &["invite", "team"], false);
    let said = ended.expect_err("nobody said yes").to_string();
    assert_eq!(said, "Nobody was invited.");
    assert!(asked[0].ends_with(" whoever joins. Invite into `team`?"), "{asked:?}");
    let (ended, asked) = typed(home, &["invite", "team"], true);
    assert!(ended.unwrap().1.starts_with("klnode1"), "a ticket");
    assert_eq!(asked.len(), 1);
    assert!(typed(home, &["invite", "team", "--yes"], false).1.is_empty());
    // Where there is nobody to ask, nobody has said yes.
    let refused = run(home, &["invite", "team"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(told(&refused).contains("into `team` without a yes: 1 entry "), "{}", told(&refused));
    assert!(told(&refused).contains("hint: say it with --yes"), "{}", told(&refused));
    let joined = told(&run(home, &["join", "nowhere", "--yes"]));
    assert!(joined.contains("it is neither a ticket nor a multiaddr"), "{joined}");
    let taken = told(&run(home, &["workspace", "new", "main"]));
    assert!(taken.contains("there is one of that name"), "{taken}");
    assert!(!taken.contains("klnode invite main"), "{taken}");
}

#[test]
fn all_that_one_peer_has_brought_is_thrown_away_once_somebody_says_yes() {
    let folder = tempfile::tempdir().unwrap();
    let home = &folder.path().join("home");
    let odd = |_: &Record, _: Source| Verdict::Quarantine("odd".into());
    let mut node = Node::start_judged(1, 1, Box::new(odd));
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
    let waiting =
        |more: &[&str]| json(home, &[&["quarantine", "list"], more].concat())["total"].clone();
    let reject = ["quarantine", "reject", "--from", "alice"];
    let refused = run(home, &reject);
    assert_eq!(refused.status.code(), Some(1), "{}", told(&refused));
    let why = "cannot reject 120 records that `alice` has brought without a yes\n  hint: say it with \
               --yes\n";
    assert!(told(&refused).contains(why), "{}", told(&refused));
    let (ended, asked) = typed(home, &reject, false);
    assert!(ended.is_err());
    assert_eq!(asked, ["Throw away 120 records that alice has brought, for good?"]);
    assert_eq!((waiting(&[]), waiting(&["--from", "alice"])), (object!(122), object!(120)));
    // More than one request may throw away.
    let (ended, asked) = typed(home, &reject, true);
    assert_eq!(ended.unwrap(), (0, "120 records that alice has brought: thrown away\n".to_owned()));
    assert_eq!(asked.len(), 1);
    assert_eq!((waiting(&[]), waiting(&["--from", "bob"])), (object!(2), object!(2)));
    let reject = ["quarantine", "reject", "--from", "bob", "--yes"];
    for count in [2, 0] {
        let done = json(home, &reject);
        let counted = (&done["peer_name"], &done["rejected"], &done["left"]);
        assert_eq!(counted, (&object!("bob"), &object!(count), &object!(0)), "{done}");
    }
    for words in [&["--yes"][..], &["3f9a1c", "--from", "bob"], &[]] {
        let words = [&["klnode", "quarantine", "reject"], words].concat();
        assert!(Cli::try_parse_from(words.iter().copied()).is_err(), "{words:?}");
    }
}

#[test]
fn a_filter_with_nothing_to_set_is_shown_and_stays_as_it_is() {
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
    assert!(told.contains("\nis taken      memories ") && told.lines().count() == 2, "{told}");
    assert_eq!(json(home, &["peer", "filter", "alice"]), before);
    let taken = json(home, &["peer", "filter", "alice", "--from-peer"]);
    assert_eq!((taken.get("egress"), &taken["ingress"]), (None, &before["ingress"]));
    assert_eq!(set(), before);
}

#[test]
fn whoever_adds_to_a_shared_workspace_is_told_each_time() {
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
fn the_first_outcome_of_a_task_stands_and_whoever_says_another_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (_node, _) = start(home);
    let begun = json(home, &["task", "begin", "--agent", "a", "--goal", "g"]);
    let task = begun["task"].as_str().unwrap();
    printed(&run(home, &["task", "finish", task, "--success"]));
    let again = printed(&run(home, &["task", "finish", task, "--success"]));
    assert_eq!(again, format!("{task}  was finished before; nothing was added\n"));
    let other = run(home, &["task", "finish", task, "--failure"]);
    assert_eq!(other.status.code(), Some(1));
    let expected = format!("{task}  was finished before, as a success; that stands\n");
    assert_eq!(String::from_utf8(other.stdout).unwrap(), expected);
    let other = json(home, &["task", "finish", task, "--failure"]);
    assert_eq!((&other["already"], &other["outcome"]), (&object!(true), &object!("success")));
}
