//! The quick merge of a change of the present version has the result of the ordinary merge.

use super::{TestAuthor, TestRandom, check};
use crate::change::CheckedChange;
use crate::change_writer::ChangeWriter;
use crate::document::TextDocument;
use crate::edit_identity::EditIdentity;
use crate::limits::AuthorQuota;
use crate::root_change::text_id;
use crate::sequential_merge;
use crate::text_diff::TextSplice;
use crate::text_elements::{BaseElements, ElementId};
use automerge::ReadDoc;

/// The elements with their text, deleted ones excluded.
fn elements(document: &TextDocument) -> Vec<(ElementId, String)> {
    let heads = document.known_heads(&document.heads()).unwrap();
    document.elements_at(&heads).map(|(id, text)| (id, text.into_owned())).collect()
}

/// Merges in the ordinary way.
fn merged_by_walk(document: &TextDocument, change: &CheckedChange) -> automerge::Automerge {
    let mut merged = document.merged().clone();
    merged.apply_changes([change.to_automerge()]).unwrap();
    merged
}

#[test]
fn every_edit_of_the_present_version_is_merged_as_by_a_walk() {
    let random = &mut TestRandom(77);
    let mut authors: Vec<TestAuthor> = (1..=2).map(TestAuthor::new).collect();
    for turn in 0..120 {
        let at = random.below(2);
        let mut characters: Vec<char> = authors[at].document.text().chars().collect();
        for _ in 0..=random.below(3) {
            let from = random.below(characters.len() + 1);
            let until = (from + random.below(4)).min(characters.len());
            let inserted = ["", "a", "b\n", "\u{1f980}c"][random.below(4)];
            characters.splice(from..until, inserted.chars());
        }
        let text: String = characters.into_iter().collect();
        let (document, context) = (authors[at].document.clone(), authors[at].context());
        for change in document.edit(&document.heads(), &text, &context).unwrap() {
            let quick = sequential_merge::with_change(document.merged(), &change);
            let quick = quick.expect("it is made on the present version");
            let walked = merged_by_walk(&document, &change);
            assert_eq!(quick.get_heads(), walked.get_heads());
            assert_eq!(quick.text(text_id()).unwrap(), walked.text(text_id()).unwrap());
            assert_eq!(quick.save(), walked.save());
        }
        authors[at].edit(&text);
        if turn % 3 == 0 {
            let other = authors[at].clone();
            authors[1 - at].pull(&other);
        }
    }
    let (one, two) = (authors[0].clone(), authors[1].clone());
    authors[0].pull(&two);
    authors[1].pull(&one);
    assert_eq!(elements(&authors[0].document), elements(&authors[1].document));
}

#[test]
fn a_change_of_an_earlier_version_is_merged_by_a_walk() {
    let mut ann = TestAuthor::new(1);
    ann.edit("one two");
    let base = ann.document.heads();
    ann.edit("one two three");
    let late = ann.document.edit(&base, "zero one two", &ann.context()).unwrap();
    assert!(sequential_merge::with_change(ann.document.merged(), &late[0]).is_none());
    ann.receive(&late);
    assert_eq!(ann.document.text(), "zero one two three");
}

#[test]
fn an_insertion_behind_a_deleted_element_is_merged_by_a_walk() {
    let mut ann = TestAuthor::new(1);
    ann.edit("abc");
    let before = elements(&ann.document);
    ann.edit("ac");
    // A program other than klnode may name the deleted element.
    let named = BaseElements::Earlier(vec![before[0].0, before[1].0]);
    let last = ann.document.history().last().unwrap().clone();
    let (actor, time) = (last.actor(), last.time());
    let heads = ann.document.heads();
    let last_of_actor = Some((last.hash(), last.sequence()));
    let mut writer =
        ChangeWriter::new(actor, time, &named, heads, last_of_actor, last.last_operation());
    let written = writer.write(&[TextSplice { at: 2, deleted: 0, inserted: "x" }]);
    let identity = EditIdentity { number: 3, ..*last.identity() };
    let change = check(written.raw_bytes(), &identity).unwrap();
    assert!(sequential_merge::with_change(ann.document.merged(), &change).is_none());
    let mut all: Vec<CheckedChange> = ann.document.history().cloned().collect();
    ann.receive(std::slice::from_ref(&change));
    all.push(change);
    let built = TextDocument::build(AuthorQuota::FORMAT, all, |_| true);
    assert_eq!(ann.document.text(), "axc");
    assert_eq!(elements(&ann.document), elements(&built));
}
