//! Blame of inserted, changed and merged lines.

use super::{TestAuthor, author};
use crate::change_hash::ChangeHash;
use klnode_crdt::ids::AuthorId;

/// Text, author and change of each line.
fn lines(of: &TestAuthor) -> Vec<(String, AuthorId, ChangeHash)> {
    let blame = of.document.blame();
    blame.into_iter().map(|line| (line.text, line.author, line.change)).collect()
}

#[test]
fn every_line_names_the_change_that_inserted_it() {
    let (mut ann, mut bob) = (TestAuthor::new(1), TestAuthor::new(2));
    let first = ann.edit_once("alpha\n\nomega\n");
    bob.pull(&ann);
    let second = bob.edit_once("alpha\nbeta\n\nomega\n");
    let line = |text: &str, seed, hash| (text.to_owned(), author(seed), hash);
    assert_eq!(
        lines(&bob),
        [
            line("alpha", 1, first.hash()),
            line("beta", 2, second.hash()),
            line("", 1, first.hash()),
            line("omega", 1, first.hash()),
        ]
    );
    assert_eq!(bob.document.blame()[1].time.as_millis(), 1_000);
    // The earlier version does not contain the second change.
    let earlier = bob.document.blame_at(&[first.hash()]).unwrap();
    assert!(earlier.iter().all(|line| line.change == first.hash()));
    assert_eq!(earlier.len(), 3);
}

#[test]
fn a_changed_line_names_its_latest_author_and_lists_all() {
    let (mut ann, mut bob) = (TestAuthor::new(1), TestAuthor::new(2));
    ann.edit("run the tests\nend");
    bob.pull(&ann);
    let changed = bob.edit_once("run all the tests\nend");
    let blame = bob.document.blame();
    assert_eq!((blame[0].author, blame[0].change), (author(2), changed.hash()));
    assert_eq!(blame[0].authors, [author(1), author(2)]);
    assert_eq!((blame[1].author, blame[1].authors.len()), (author(1), 1));
}

#[test]
fn a_line_after_the_last_one_does_not_take_the_blame_of_its_predecessor() {
    let (mut ann, mut bob) = (TestAuthor::new(1), TestAuthor::new(2));
    let first = ann.edit_once("one");
    bob.pull(&ann);
    let second = bob.edit_once("one\ntwo");
    let hashes: Vec<_> = bob.document.blame().into_iter().map(|line| line.change).collect();
    assert_eq!(hashes, [first.hash(), second.hash()]);
}

#[test]
fn merged_lines_name_the_authors_of_both_sides() {
    let (mut ann, mut bob) = (TestAuthor::new(1), TestAuthor::new(2));
    ann.edit("a\nb\nc\n");
    bob.pull(&ann);
    let upper = ann.edit_once("a\nnew from ann\nb\nc\n");
    let lower = bob.edit_once("a\nb\nnew from bob\nc\n");
    ann.pull(&bob);
    let found = lines(&ann);
    assert_eq!(found[1], ("new from ann".to_owned(), author(1), upper.hash()));
    assert_eq!(found[3], ("new from bob".to_owned(), author(2), lower.hash()));
    // Two authors change the two ends of one line concurrently.
    bob.pull(&ann);
    let text = ann.document.text();
    ann.edit(&text.replace("a\n", "start a\n"));
    bob.edit(&text.replace("a\n", "a end\n"));
    ann.pull(&bob);
    let line = &ann.document.blame()[0];
    assert_eq!(line.text, "start a end");
    assert_eq!(line.authors, [author(1), author(2)]);
}

#[test]
fn the_lines_of_blame_are_the_lines_of_the_text() {
    let mut ann = TestAuthor::new(1);
    for text in ["", "one", "one\n", "\n\n", "größe 🦀\nx\n\ny"] {
        ann.edit(text);
        let blame: Vec<String> = ann.document.blame().into_iter().map(|line| line.text).collect();
        assert_eq!(blame, text.lines().collect::<Vec<_>>());
    }
}
