//! Edit conflicts: two real nodes edit one entry while disconnected, sync again, and one of them
//! resolves it.

use crate::support::conformance::conforms;
use crate::support::node_process::{eventually, klnode, printed, run, told};
use crate::support::peer_processes::Peer;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Output;

/// Two members of one workspace, and an entry whose fields both nodes have edited.
struct Apart {
    here: Peer,
    there: Peer,
    entry: String,
}

impl Apart {
    /// Both nodes set each of these fields, `here` first.
    fn edited(fields: &[&str]) -> Self {
        let (mut here, mut there) = (named("anna"), named("bert"));
        there.json(&["peer", "join", &here.ticket(&["team"])]);
        let entry = here.add("retries in the billing worker", &["--workspace", "team"]);
        there.found("retries billing worker", &entry);
        there.stop();
        edit(&here, &entry, fields, "anna");
        here.stop();
        there.run();
        edit(&there, &entry, fields, "bert");
        here.run();
        let apart = Self { here, there, entry };
        for node in [&apart.here, &apart.there] {
            eventually("both versions of every field arrive", || {
                let versions = apart.shown(node)["versions"].as_array()?.len();
                (versions == 2 * fields.len()).then_some(())
            });
        }
        apart
    }

    fn shown(&self, node: &Peer) -> Value {
        node.json(&["show", &self.entry])
    }

    /// Waits until neither node has a conflict, and both show this text.
    fn settled(&self, field: &str, text: &str) {
        for node in [&self.here, &self.there] {
            eventually("the conflict has ended", || {
                let shown = self.shown(node);
                let has_ended = shown["contested"] == json!([]) && shown["versions"].is_null();
                (has_ended && shown[field] == text).then_some(())
            });
        }
    }

    /// Runs `edit --resolve` with an editor that runs a script.
    fn resolve_with(&self, script: &str, words: &[&str]) -> Output {
        let editor = self.editor(script);
        let mut command = klnode(&self.here.home);
        command.env("EDITOR", editor).env("TMPDIR", self.drafts());
        command.args(["edit", &self.entry, "--resolve"]).args(words).output().unwrap()
    }

    fn editor(&self, script: &str) -> PathBuf {
        let file = self.here.home.with_file_name("editor.sh");
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        fs::set_permissions(&file, mode).unwrap();
        file
    }

    fn drafts(&self) -> PathBuf {
        let folder = self.here.home.with_file_name("drafts");
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn drafts_left(&self) -> Vec<PathBuf> {
        fs::read_dir(self.drafts()).unwrap().map(|file| file.unwrap().path()).collect()
    }
}

fn named(name: &str) -> Peer {
    Peer::start_with(&format!("[network]\nname = \"{name}\"\n"))
}

fn edit(node: &Peer, entry: &str, fields: &[&str], by: &str) {
    for field in fields {
        let text = format!("The {field} as {by} has it.");
        node.json(&["edit", entry, &format!("--{field}"), &text]);
    }
}

#[test]
fn show_lists_every_version_with_its_author_and_time_on_both_nodes() {
    conforms("S004-106");
    let apart = Apart::edited(&["content"]);
    let of = |node: &Peer| {
        let versions = apart.shown(node)["versions"].as_array().unwrap().clone();
        let row = |one: &Value| {
            assert!(one["at"].as_u64().is_some_and(|at| at > 1_700_000_000_000), "{one}");
            (one["number"].as_u64().unwrap(), one["author_name"].clone(), one["text"].clone())
        };
        versions.iter().map(row).collect::<Vec<_>>()
    };
    let texts = ["anna", "bert"].map(|by| json!(format!("The content as {by} has it.")));
    let [annas, berts] = texts;
    assert_eq!(
        of(&apart.here),
        [(1, json!("you"), annas.clone()), (2, json!("bert"), berts.clone())]
    );
    assert_eq!(of(&apart.there), [(1, json!("anna"), annas), (2, json!("you"), berts)]);
    let text = printed(&apart.here.type_in(&["show", &apart.entry]));
    let year = "version       content 1 by you, 20";
    assert!(text.contains(year) && text.contains("version       content 2 by bert, 20"), "{text}");
    assert!(text.contains("| The content as anna has it."), "{text}");
    assert!(text.contains("settle        klnode edit L-"), "{text}");
}

#[test]
fn taking_a_version_ends_the_conflict_on_both_nodes() {
    let apart = Apart::edited(&["content"]);
    let wrong = apart.here.type_in(&["edit", &apart.entry, "--take", "3"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(told(&wrong).contains("there are 1 to 2"), "{}", told(&wrong));
    let resolved = apart.here.json(&["edit", &apart.entry, "--take", "1"]);
    assert_eq!(resolved["settled"][0]["field"], "content");
    assert_eq!(resolved["settled"][0]["author_name"], "you");
    assert_eq!(
        (&resolved["settled"][0]["replaced"], &resolved["contested"]),
        (&json!(2), &json!([]))
    );
    apart.settled("content", "The content as anna has it.");
    let again = apart.there.type_in(&["edit", &apart.entry, "--take", "1"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(told(&again).contains("has no edit conflict"), "{}", told(&again));
}

#[test]
fn with_several_conflicting_fields_one_must_be_named() {
    let apart = Apart::edited(&["title", "content"]);
    let unclear = apart.here.type_in(&["edit", &apart.entry, "--take", "2"]);
    assert_eq!(unclear.status.code(), Some(2));
    assert!(told(&unclear).contains("have an edit conflict: title, content"));
    let words = ["edit", &apart.entry, "--take", "title=2"];
    let resolved = apart.here.json(&words);
    assert_eq!(resolved["settled"][0]["author_name"], "bert");
    assert_eq!(resolved["contested"], json!(["content"]));
    apart.here.json(&["edit", &apart.entry, "--take", "content=1"]);
    apart.settled("title", "The title as bert has it.");
    apart.settled("content", "The content as anna has it.");
}

#[test]
fn the_editor_shows_all_versions_and_its_text_ends_the_conflict() {
    let apart = Apart::edited(&["content"]);
    // The editor's input is copied for inspection.
    let given = apart.here.home.with_file_name("given");
    let script = format!("cp \"$1\" {}\nprintf 'Both are right.\\n' > \"$1\"", given.display());
    let output = apart.resolve_with(&script, &[]);
    assert!(printed(&output).contains("content settled: the new text replaces 2 versions"));
    let given = fs::read_to_string(given).unwrap();
    for part in [
        "<<<<<<< version 1 by you, 20",
        "The content as anna has it.\n======= version 2 by bert, 20",
        "The content as bert has it.\n>>>>>>> end of versions\n",
    ] {
        assert!(given.contains(part), "{given}");
    }
    apart.settled("content", "Both are right.");
    assert_eq!(apart.drafts_left(), Vec::<PathBuf>::new(), "nothing is left behind");
}

#[test]
fn an_unchanged_or_empty_file_and_remaining_markers_resolve_nothing() {
    let apart = Apart::edited(&["content"]);
    for script in ["true", ": > \"$1\""] {
        let output = apart.resolve_with(script, &[]);
        assert!(printed(&output).contains("nothing was changed"), "{script}");
        assert_eq!(apart.drafts_left(), Vec::<PathBuf>::new(), "{script}");
    }
    let output = apart.resolve_with("sed -i 1d \"$1\"", &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("marker lines are left in the text"), "{}", told(&output));
    let [kept] = apart.drafts_left().try_into().expect("one file");
    assert!(told(&output).contains(kept.to_str().unwrap()), "{}", told(&output));
    assert!(fs::read_to_string(kept).unwrap().contains("The content as bert has it."));
    assert_eq!(apart.shown(&apart.here)["contested"], json!(["content"]));
    // Without an editor and a terminal the message names the alternative.
    let output = run(&apart.here.home, &["edit", &apart.entry, "--resolve"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(told(&output).contains("Keep a version with --take NUMBER"), "{}", told(&output));
}

#[test]
fn retracting_anothers_entry_withdraws_only_own_statements() {
    let apart = Apart::edited(&["content"]);
    apart.there.json(&["edit", &apart.entry, "--take", "2"]);
    let output = apart.there.type_in(&["forget", "--retract", &apart.entry]);
    let said = printed(&output);
    assert!(said.contains("only your own statements were withdrawn"), "{said}");
    assert!(said.contains("the text by anna"), "{said}");
    let shown = apart.shown(&apart.there);
    assert_eq!(shown["content"], "The content as anna has it.");
    let own = apart.here.add("an entry of one's own", &[]);
    let done = apart.here.json(&["forget", "--retract", &own]);
    assert_eq!(done.get("remains_by"), None, "{done}");
}
