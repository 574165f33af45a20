//! A review with five reviewers, twice: the scripts and the session of `docs/guide/review.md`, typed into
//! real processes.

use crate::support::node_process::{PROGRAM, eventually};
use crate::support::peer_processes::Peer;
use klnode_tests::documented_sessions::{self, Names};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Accepts the finding of one reviewer, compares findings at once, and merges nothing meanwhile.
const CONFIG: &str = "[tasks]\naccept_lone_findings = true\n[tuning.tasks]\n\
    findings_comparison_delay = \"10 ms\"\n[tuning.maintenance]\ncheck_interval = \"1 day\"\n";

/// Waits until a node has so many entries in its index.
fn holds(peer: &Peer, entries: usize) {
    eventually("the findings became entries", || {
        let listed = peer.json(&["list", "-n", "100"])["entries"].clone();
        let index = peer.json(&["status"])["index"].clone();
        let is_indexed = index["lag"] == 0 && index["rebuild"].is_null();
        (listed.as_array()?.len() == entries && is_indexed).then_some(())
    });
}

/// Writes the scripts of the page: each block of kind `sh` begins with the name of its file.
fn write_scripts(page: &str, folder: &Path) {
    for block in page.split("\n```sh\n").skip(1) {
        let script = block.split("\n```\n").next().expect("the block ends");
        let name = script.trim_start_matches("# ").split([' ', ':']).next().expect("a name");
        std::fs::write(folder.join(name), format!("{script}\n")).expect("written");
    }
}

#[test]
fn the_second_review_of_the_documentation_is_better_because_of_the_first() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/review.md");
    let page = std::fs::read_to_string(page).expect("the page is there");
    let sections: Vec<_> = page.split("\n## ").map(documented_sessions::sessions).collect();
    let played: Vec<_> = sections.iter().filter(|steps| !steps.is_empty()).collect();
    let [first, learns, second, fresh] = &played[..] else {
        panic!("the page has {} sections with a session", played.len());
    };

    let (node, other) = (Peer::start_with(CONFIG), Peer::start_with(CONFIG));
    let folder = tempfile::tempdir().unwrap();
    let (programs, at) = (folder.path().join("bin"), |name: &str| folder.path().join(name));
    std::fs::create_dir(&programs).unwrap();
    symlink(PROGRAM, programs.join("klnode")).unwrap();
    symlink(&node.home, at("home")).unwrap();
    symlink(&other.home, at("fresh")).unwrap();
    write_scripts(&page, folder.path());
    let mut names = Names::new();
    let mut play = |steps| documented_sessions::go_on(steps, &programs, &at("home"), &mut names);

    play(first);
    holds(&node, 1);
    play(learns);
    holds(&node, 2);
    let (review, settled) = second.split_at(second.len() - 1);
    play(review);
    eventually("the finding of the second review is compared", || {
        let tasks = node.json(&["task", "list"])["tasks"].clone();
        let of = |task: &serde_json::Value| {
            let name = task["task"].as_str().expect("a name");
            node.json(&["task", "findings", name])["findings"][0]["became"].clone()
        };
        tasks.as_array()?.iter().any(|task| of(task) == "reinforced").then_some(())
    });
    play(settled);
    holds(&node, 2);
    play(fresh);
}
