//! Playbooks as typed: written, edited, compared, restored and purged, alone and by two nodes.

use crate::support::conformance::conforms;
use crate::support::node_process::{eventually, printed, text, told};
use crate::support::peer_processes::Peer;
use serde_json::Value;

const TEXT: &str = "# How we release\n\n## Before\n\nCheck that CI is green.\n\n## Releasing\n\nTag the \
                    commit.\nPush the tag.\n\n## Rollback\n\nRevert and publish a fix.\n";

fn write(node: &Peer, more: &[&str]) -> String {
    let words = ["playbook", "new", "How we release", "--text", TEXT];
    text(&node.json(&[&words[..], more].concat())["code"])
}

fn shown(node: &Peer, reference: &str) -> String {
    text(&node.json(&["playbook", "show", reference])["text"])
}

fn typed(node: &Peer, words: &[&str]) -> String {
    let output = node.type_in(words);
    assert!(output.status.success(), "{}", told(&output));
    printed(&output)
}

#[test]
fn a_playbook_is_written_edited_compared_and_restored() {
    let node = Peer::start();
    let empty = typed(&node, &["playbook", "list"]);
    assert!(empty.contains("klnode playbook new"), "{empty}");
    let code = write(&node, &["--tag", "release"]);
    let section = format!("{code}#releasing");
    assert_eq!(shown(&node, &section), "## Releasing\n\nTag the commit.\nPush the tag.\n\n");
    let new = "## Releasing\n\nSign and tag the commit.\nPush the tag.";
    typed(&node, &["playbook", "edit", &section, "--text", new]);
    assert_eq!(shown(&node, &code), TEXT.replace("Tag the commit.", "Sign and tag the commit."));
    let diff = typed(&node, &["playbook", "diff", &code]);
    assert_eq!(diff, "@@ -9,1 +9,1 @@\n-Tag the commit.\n+Sign and tag the commit.\n");
    let history = node.json(&["playbook", "history", &code]);
    let edits = history["edits"].as_array().unwrap();
    assert_eq!(edits.len(), 2, "{history}");
    let first = text(&edits[1]["edit"])[..8].to_owned();
    let blame = typed(&node, &["playbook", "blame", &section]);
    let by = |line: &str| {
        let found = blame.lines().find(|of| of.ends_with(line));
        found.unwrap_or_else(|| panic!("no line {line} in {blame}"))[..8].to_owned()
    };
    assert_eq!(by("Push the tag."), first);
    assert_ne!(by("Sign and tag the commit."), first);
    assert_eq!(text(&node.json(&["playbook", "show", &code, "--version", &first])["text"]), TEXT);
    typed(&node, &["playbook", "restore", &code, &first]);
    assert_eq!(shown(&node, &code), TEXT);
    // Restoring is an edit of its own; nothing of the history is lost.
    let history = node.json(&["playbook", "history", &code]);
    assert_eq!(history["edits"].as_array().unwrap().len(), 3, "{history}");
    let listed = typed(&node, &["playbook", "list"]);
    assert!(listed.contains(&code) && listed.contains("3 edits"), "{listed}");
    let again = typed(&node, &["playbook", "restore", &code, &first]);
    assert!(again.contains("nothing was changed"), "{again}");
}

#[test]
fn the_difference_of_the_last_edit_leaves_out_an_edit_that_was_made_beside_it() {
    let node = Peer::start();
    let code = write(&node, &[]);
    let version = text(&node.json(&["playbook", "show", &code])["version"]);
    for (section, line) in [("before", "Check twice."), ("rollback", "Revert.")] {
        let new = format!("## {section}\n\n{line}\n");
        let reference = format!("{code}#{section}");
        let words = ["playbook", "edit", &reference, "--text", &new, "--version", &version];
        typed(&node, &words);
    }
    let whole = shown(&node, &code);
    assert!(whole.contains("Check twice.") && whole.contains("Revert.\n"), "{whole}");
    let diff = typed(&node, &["playbook", "diff", &code]);
    let edits = ["Check twice.", "+Revert."].map(|of| diff.contains(of));
    assert!(edits == [true, false] || edits == [false, true], "one edit alone: {diff}");
}

#[test]
fn search_and_show_find_the_section_that_answers() {
    let node = Peer::start();
    let code = write(&node, &[]);
    let hit = eventually("the playbook is found", || {
        let found = node.json(&["search", "how do I revert a bad release"]);
        found["hits"].as_array().and_then(|hits| hits.first().cloned())
    });
    assert_eq!((text(&hit["code"]), text(&hit["section"])), (code.clone(), "rollback".into()));
    let content = text(&hit["content"]);
    assert!(content.contains("Revert and publish") && !content.contains("Tag the"), "{content}");
    let printed = typed(&node, &["search", "how do I revert a bad release"]);
    assert!(printed.contains(&format!("{code}#rollback")), "{printed}");
    let whole = node.json(&["show", &code]);
    assert_eq!(text(&whole["content"]), TEXT);
}

#[test]
fn bad_requests_about_playbooks_name_the_way_out() {
    let node = Peer::start();
    let code = write(&node, &[]);
    let plain = node.add("a plain lesson", &[]);
    let section = format!("{code}#releasing");
    let cases: [(&[&str], i32, &str); 13] = [
        (&["edit", &code, "--content", "x"], 2, "klnode playbook edit"),
        (&["playbook", "show", &format!("{code}#nowhere")], 1, "#before, #releasing, #rollback"),
        (&["playbook", "show", &plain], 2, "klnode playbook list"),
        (&["playbook", "restore", &code, "ffff"], 1, "klnode playbook history"),
        (&["playbook", "edit", &code, "--text", "x", "--version", "zz"], 1, "no version or edit"),
        (&["playbook", "new", "Empty", "--text", "  "], 2, "its text is empty"),
        (&["playbook", "edit", &code, "--text", " \n"], 2, "the edit leaves no text"),
        (&["playbook", "history", &section], 2, "names a section"),
        (&["playbook", "diff", &section], 2, "Leave out the part from `#`"),
        (&["playbook", "restore", &section, "ffff"], 2, "names a section"),
        (&["playbook", "purge", &section, "--yes"], 2, "names a section"),
        (&["show", &section], 2, "klnode playbook show"),
        (&["playbook", "purge", &code[..5]], 2, "give the whole code"),
    ];
    for (words, exit, words_told) in cases {
        let output = node.type_in(words);
        let said = told(&output);
        assert_eq!(output.status.code(), Some(exit), "{words:?}: {said}");
        assert!(said.contains(words_told), "{words:?}: {said}");
    }
    let secret =
        ["playbook", "edit", &code, "--text", "token: ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"];
    let output = node.type_in(&secret);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(!told(&output).contains("ghp_0123"), "{}", told(&output));
}

#[test]
fn a_purge_starts_again_without_the_history() {
    let node = Peer::start();
    let code = write(&node, &["--tag", "release"]);
    typed(
        &node,
        &["playbook", "edit", &format!("{code}#before"), "--text", "## Before\n\nNothing."],
    );
    let purged = node.json(&["playbook", "purge", &code]);
    let new = text(&purged["code"]);
    assert_eq!(text(&purged["forgotten"]), code);
    assert_eq!(shown(&node, &new), TEXT.replace("Check that CI is green.", "Nothing."));
    let history = node.json(&["playbook", "history", &new]);
    assert_eq!(history["edits"].as_array().unwrap().len(), 1, "{history}");
    let gone = node.type_in(&["playbook", "show", &code]);
    let expect = format!("Playbook {code} was forgotten. If it was purged");
    assert!(!gone.status.success() && told(&gone).contains(&expect), "{}", told(&gone));
}

#[test]
fn a_purge_of_a_playbook_that_the_node_may_not_forget_writes_nothing() {
    let (here, there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let code = write(&here, &["--workspace", "team"]);
    eventually("the playbook has arrived", || {
        there.type_in(&["playbook", "show", &code]).status.success().then_some(())
    });
    let before = there.json(&["playbook", "list"]);
    let refused = there.type_in(&["playbook", "purge", &code]);
    assert!(!refused.status.success(), "{}", told(&refused));
    assert!(told(&refused).contains("was not forgotten"), "{}", told(&refused));
    assert_eq!(there.json(&["playbook", "list"]), before, "no copy was written");
}

#[test]
fn two_nodes_that_edit_apart_show_the_same_text_after_they_meet() {
    conforms("C-01");
    let (mut here, mut there) = (Peer::start(), Peer::start());
    there.json(&["peer", "join", &here.ticket(&["team"])]);
    let code = write(&here, &["--workspace", "team"]);
    eventually("the playbook has arrived", || {
        there.type_in(&["playbook", "show", &code]).status.success().then_some(())
    });
    there.kill();
    let edit = |node: &Peer, section: &str, new: &str| {
        typed(node, &["playbook", "edit", &format!("{code}#{section}"), "--text", new]);
    };
    edit(&here, "releasing", "## Releasing\n\nTag the commit twice.\nPush the tag.");
    here.kill();
    there.run();
    edit(&there, "releasing", "## Releasing\n\nSign and tag the commit.\nPush the tag.");
    edit(&there, "rollback", "## Rollback\n\nRevert, publish a fix and tell the team.");
    here.run();
    let expect = TEXT
        .replace("Tag the commit.", "Sign and tag the commit twice.")
        .replace("Revert and publish a fix.", "Revert, publish a fix and tell the team.");
    for node in [&here, &there] {
        eventually("both show the same text", || {
            let text = shown(node, &code);
            (text.to_lowercase() == expect.to_lowercase()).then_some(())
        });
    }
    let lines = |node: &Peer| -> Vec<Value> {
        let blame = node.json(&["playbook", "blame", &code]);
        blame["lines"].as_array().unwrap().iter().map(|line| line["edit"].clone()).collect()
    };
    assert_eq!(lines(&here), lines(&there), "blame agrees");
}
