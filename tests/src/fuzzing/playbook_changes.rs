//! The target that decodes the changes of a playbook, and merges those that are valid.
//!
//! An input is a list of changes: for each a byte that picks its author, a length of two bytes, and
//! the encoded change. The checksum of a change is corrected, because a mutated change would
//! otherwise fail at the checksum alone.

use klnode_crdt::ids::Boot;
use klnode_crdt::testing::key;
use klnode_crdt::time::WallTime;
use klnode_document::change::CheckedChange;
use klnode_document::change_error::ChangeError;
use klnode_document::document::TextDocument;
use klnode_document::edit::EditContext;
use klnode_document::edit_identity::EditIdentity;
use klnode_document::limits::AuthorQuota;
use klnode_document::testing::repair_checksum;

/// More changes of one input are ignored.
const CHANGES_MAX: usize = 64;
/// Size limit of an error message, for any input.
const REFUSAL_BYTES_MAX: usize = 1_024;
/// Bit of the author's byte: the author is no member.
const OUTSIDER: u8 = 4;

fn identity(by: u8, number: u32) -> EditIdentity {
    EditIdentity { author: key(by & 3).author(), boot: Boot(1), branch: 0, number }
}

/// The changes of an input, each with the byte that picks its author.
fn parts(data: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut rest, mut parts) = (data, Vec::new());
    while let [by, high, low, after @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(after.len());
        let (change, later) = after.split_at(length);
        parts.push((*by, change));
        rest = later;
    }
    parts.truncate(CHANGES_MAX);
    parts
}

/// The change in these bytes, if it is valid apart from its checksum.
fn checked(mut bytes: Vec<u8>, identity: EditIdentity) -> Option<CheckedChange> {
    let check = |bytes: &[u8]| CheckedChange::check(bytes, identity, &AuthorQuota::FORMAT);
    let change = match check(&bytes) {
        Err(ChangeError::WrongChecksum) => {
            repair_checksum(&mut bytes);
            check(&bytes)
        }
        checked => checked,
    };
    match change {
        Ok(change) => {
            assert_eq!(change.bytes(), bytes, "the bytes of a change stay as they are");
            Some(change)
        }
        Err(refusal) => {
            let words = refusal.to_string();
            assert!(words.len() <= REFUSAL_BYTES_MAX, "a refusal of {} bytes", words.len());
            None
        }
    }
}

pub(super) fn documents(data: &[u8]) {
    let mut changes = Vec::new();
    for (number, (by, bytes)) in (1..).zip(parts(data)) {
        if let Some(change) = checked(bytes.to_vec(), identity(by, number)) {
            changes.push((by, change));
        }
    }
    let outsiders = changes.iter().filter(|(by, _)| by & OUTSIDER != 0);
    let outsiders: Vec<_> = outsiders.map(|(_, change)| change.hash()).collect();
    let is_entitled = |change: &CheckedChange| !outsiders.contains(&change.hash());
    let mut one_by_one = TextDocument::new(AuthorQuota::FORMAT);
    for (_, change) in &changes {
        one_by_one.insert([change.clone()], is_entitled);
    }
    let reversed = changes.iter().rev().map(|(_, change)| change.clone());
    let at_once = TextDocument::build(AuthorQuota::FORMAT, reversed, is_entitled);
    assert_eq!(one_by_one.text(), at_once.text(), "the order of arrival does not matter");
    assert_eq!(one_by_one.heads(), at_once.heads());
    assert_eq!(one_by_one.held_count(), at_once.held_count());
    assert_eq!(one_by_one.waiting().count(), at_once.waiting().count());
    let text = one_by_one.text();
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop_if(|last| last.is_empty());
    let blamed: Vec<String> = one_by_one.blame().into_iter().map(|line| line.text).collect();
    assert_eq!(blamed, lines, "blame covers the whole text");
    assert_eq!(one_by_one.text_at(&one_by_one.heads()), Ok(text));
}

/// An edit by one of the authors, added to a document and to an input.
fn add(input: &mut Vec<u8>, document: &mut TextDocument, by: u8, text: &str) {
    let number = parts(input).len() as u32 + 1;
    let context = EditContext {
        author: key(by & 3).author(),
        boot: Boot(1),
        number,
        time: WallTime::from_millis(5),
    };
    let made = document.edit(&document.heads(), text, &context).expect("an edit");
    for change in &made {
        let length = u16::try_from(change.bytes().len()).expect("a short change");
        input.push(by);
        input.extend(length.to_be_bytes());
        input.extend(change.bytes());
    }
    document.insert(made, |_| true);
}

/// One edit; a text that three authors edit apart and together; an outsider's edit that a member
/// builds on.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let empty = || TextDocument::new(AuthorQuota::FORMAT);
    let (mut one, mut document) = (Vec::new(), empty());
    add(&mut one, &mut document, 1, "one two\n");

    let (mut many, mut document) = (Vec::new(), empty());
    add(&mut many, &mut document, 1, "one two\nthree\n");
    let mut apart = document.clone();
    add(&mut many, &mut document, 2, "one 2\nthree\nfünf 🦀\n");
    add(&mut many, &mut apart, 3, "one two\n");
    document.insert(apart.history().cloned().collect::<Vec<_>>(), |_| true);
    add(&mut many, &mut document, 1, "");
    add(&mut many, &mut document, 1, "one again\n");

    let (mut outside, mut document) = (Vec::new(), empty());
    add(&mut outside, &mut document, 1, "by a member\n");
    add(&mut outside, &mut document, 2 | OUTSIDER, "by a member, and an outsider\n");
    add(&mut outside, &mut document, 1, "by a member and an outsider\n");
    add(&mut outside, &mut document, 2 | OUTSIDER, "spoiled\n");
    vec![one, many, outside]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_seed_is_valid_and_outsiders_count_only_below_members() {
        for seed in seeds() {
            documents(&seed);
            for (number, (by, bytes)) in (1..).zip(parts(&seed)) {
                let checked =
                    CheckedChange::check(bytes, identity(by, number), &AuthorQuota::FORMAT);
                assert!(checked.is_ok(), "{checked:?}");
            }
        }
        assert_eq!(seeds().iter().map(|seed| parts(seed).len()).collect::<Vec<_>>(), [1, 5, 4]);
    }
}
