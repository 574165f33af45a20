//! A forgotten text is in no file of the home: not in free pages, not in the index, for any size,
//! and with or without waiting callers or readers. Mostly real processes.

use crate::support::homes::lies_in;
use crate::support::node_process::{eventually, json, klnode, printed, run, start, started, told};
use klnode_crdt::ids::StoreId;
use klnode_engine::{Command, Engine, Receipt};
use klnode_store::row_types::Seq;
use klnode_store::{FileMedium, Options, Store};
use klnode_tests::test_engine::{START, lesson, setup};
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn add(home: &Path, title: &str, content: &str) -> String {
    let words = ["add", "--title", title, "--content", content, "--evidence", "run:1"];
    json(home, &words)["id"].as_str().unwrap().to_owned()
}

/// `bytes` bytes of a unique word.
fn secret(bytes: usize) -> String {
    "xyzzyplugh ".repeat(bytes / 11)
}

const SECRET: &[u8] = b"xyzzyplugh";

#[test]
fn a_forgotten_text_of_any_size_is_in_no_file() {
    for (bytes, others) in [(60, 300), (12_000, 30_000), (40_000, 200), (900, 60_000)] {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let (_node, _) = start(&home);
        let kept = add(&home, "kept", &"k".repeat(others));
        let gone = add(&home, "gone", &secret(bytes));
        add(&home, "kept, too", &"m".repeat(others));
        assert!(lies_in(&home, SECRET).is_some(), "{bytes}");
        for _ in 0..3 {
            add(&home, "more", "of the same");
        }
        printed(&run(&home, &["forget", &gone, "--now"]));
        assert_eq!(lies_in(&home, SECRET), None, "{bytes} among {others}");
        assert_eq!(json(&home, &["show", &kept])["title"], "kept");
        add(&home, "after", "it continues");
        assert_eq!(json(&home, &["status"])["entries"], 6);
    }
}

#[test]
fn a_forgotten_text_is_erased_when_the_node_is_idle() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let mut command = klnode(&home);
    command.args([
        "--set",
        "tuning.maintenance.check_interval=200 ms",
        "--set",
        "tuning.maintenance.pause=50 ms",
    ]);
    let (_node, _) = started({
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command
    });
    add(&home, "kept", "k");
    let gone = add(&home, "gone", &secret(12_000));
    add(&home, "kept, too", &"m".repeat(30_000));
    printed(&run(&home, &["forget", &gone]));
    eventually("it is in no file", || lies_in(&home, SECRET).is_none().then_some(()));
    assert_eq!(json(&home, &["status"])["entries"], 2);
}

#[test]
fn a_stalled_index_is_reported_and_the_entry_is_still_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (_node, _) = start(&home);
    let gone = add(&home, "gone", &secret(60));
    eventually("it is found", || {
        let found = json(&home, &["search", "xyzzyplugh", "--all"]);
        (found["index_lag"] == 0).then_some(())
    });
    // Writes to the index fail from here on.
    fs::rename(home.join("index"), folder.path().join("away")).unwrap();
    fs::write(home.join("index"), "in its place").unwrap();
    let output = run(&home, &["forget", &gone, "--now"]);
    assert_eq!(output.status.code(), Some(1));
    let said = told(&output);
    assert!(said.contains("but its text is still in the stalled index: "), "{said}");
    assert!(said.contains(" is forgotten, "), "{said}");
    let said = told(&run(&home, &["show", &gone]));
    assert!(said.contains(" was forgotten."), "{said}");
}

#[test]
fn a_text_forgotten_just_before_a_crash_is_erased_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let (mut node, _) = start(&home);
    let gone = add(&home, "gone", &secret(2_000));
    eventually("it is found", || {
        let found = json(&home, &["search", "xyzzyplugh", "--all"]);
        (found["index_lag"] == 0).then_some(())
    });
    printed(&run(&home, &["forget", &gone]));
    node.0.kill().unwrap();
    node.0.wait().unwrap();
    let (_node, _) = start(&home);
    printed(&run(&home, &["forget", &gone, "--now"]));
    assert_eq!(lies_in(&home, SECRET), None);
    assert!(fs::metadata(home.join("store.redb")).unwrap().len() > 0);
}

#[test]
fn a_reader_continues_during_a_store_rewrite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.redb");
    // The cache is small, so that most reads come from the file.
    let mut options = Options::new(StoreId::from_bytes([5; 16]));
    options.cache_bytes_max = 1024 * 1024;
    let open = || Store::open(Box::new(FileMedium::new(&path)), &options);
    let mut engine = Engine::start(open().unwrap(), setup(1, 1), START).unwrap();
    let create = |number: u32| {
        let mut new = lesson(&format!("entry {number}"));
        new.content = secret(20_000);
        Command::Create(Box::new(new))
    };
    let made = engine.step(&(0..200).map(create).collect::<Vec<_>>(), START);
    let reader = engine.store().snapshot().unwrap();
    let records = reader.counts().unwrap().records;
    let forget = made.into_iter().map(|receipt| match receipt {
        Ok(Receipt::Created(entry)) => Command::Forget { entry },
        other => panic!("{other:?}"),
    });
    for answer in engine.step(&forget.collect::<Vec<_>>(), START) {
        answer.expect("forgotten");
    }
    engine.step(&[Command::Rewrite], START).remove(0).expect("written anew");
    assert_eq!(lies_in(folder.path(), SECRET), None);
    let read = reader.changes_since(Seq(0)).unwrap().collect::<Result<Vec<_>, _>>();
    assert_eq!(read.expect("the reader continues").len() as u64, records);
    // A reader does not keep the file locked for its next owner.
    let late = engine.store().snapshot().unwrap();
    drop(engine);
    assert_eq!(open().expect("closed").snapshot().unwrap().forgotten_count().unwrap(), 200);
    drop((reader, late));
}
