//! Changes that no honest author writes. Each is refused with its reason, and none causes a panic.
//!
//! Most of them are forged with automerge itself: [`forge`] decodes an honest change, modifies it and
//! encodes it again with a valid checksum.

use super::{TestAuthor, TestRandom, check};
use crate::change::CheckedChange;
use crate::change_error::ChangeError;
use crate::change_graph::HistoryError;
use crate::edit_identity::EditIdentity;
use crate::limits::{AuthorQuota, CHANGE_BYTES_MAX, OPERATION_COUNTER_MAX};
use crate::root_change::{self, ROOT_ACTOR, ROOT_HASH};
use automerge::legacy::{ElementId, Key, ObjectId, Op, OpId, OpType};
use automerge::transaction::{CommitOptions, Transactable};
use automerge::{Automerge, ExpandedChange, ObjType, ROOT, ScalarValue};
use std::num::NonZeroU64;

/// Modifies an honest change and encodes it again.
fn forge(change: &CheckedChange, modify: impl FnOnce(&mut ExpandedChange)) -> Vec<u8> {
    let mut expanded = change.to_automerge().decode();
    modify(&mut expanded);
    automerge::Change::from(expanded).raw_bytes().to_vec()
}

/// A document with two changes of one author.
fn two_changes() -> (TestAuthor, CheckedChange, CheckedChange) {
    let mut ann = TestAuthor::new(1);
    let first = ann.edit_once("one two three\n");
    let second = ann.edit_once("one 2 three four\n");
    (ann, first, second)
}

/// A change that a transaction of automerge makes under the actor of author 1.
fn foreign(
    write: impl FnOnce(&mut automerge::transaction::Transaction<'_>),
) -> (Vec<u8>, EditIdentity) {
    let ann = TestAuthor::new(1);
    let identity = EditIdentity { author: ann.author, boot: ann.boot, branch: 0, number: 1 };
    let mut document = root_change::empty_document();
    document.set_actor(automerge::ActorId::from(identity.actor().as_bytes()));
    let mut transaction = document.transaction();
    transaction.splice_text(root_change::text_id(), 0, 0, "some text").unwrap();
    write(&mut transaction);
    transaction.commit_with(CommitOptions::default().with_time(5));
    (document.get_last_local_change().unwrap().raw_bytes().to_vec(), identity)
}

fn refusal(bytes: &[u8], identity: &EditIdentity) -> ChangeError {
    check(bytes, identity).expect_err("the change is refused")
}

/// The reason why a document refuses a change whose bytes are valid.
fn history_refusal(bytes: &[u8], identity: &EditIdentity, known: &[CheckedChange]) -> HistoryError {
    let change = check(bytes, identity).unwrap();
    let mut bob = TestAuthor::new(2);
    bob.receive(known);
    let text = bob.document.text();
    bob.receive(std::slice::from_ref(&change));
    assert_eq!(bob.document.text(), text);
    let refused: Vec<_> = bob.document.refused().collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].0, change.hash());
    refused[0].1.clone()
}

#[test]
fn an_honest_transaction_of_automerge_is_accepted() {
    let (bytes, identity) = foreign(|_| {});
    assert!(check(&bytes, &identity).is_ok());
}

#[test]
fn a_change_under_a_forged_actor_is_refused() {
    let (_, first, _) = two_changes();
    for identity in [
        EditIdentity { author: super::author(2), ..*first.identity() },
        EditIdentity { boot: klnode_crdt::ids::Boot(77), ..*first.identity() },
        EditIdentity { branch: 1, ..*first.identity() },
    ] {
        let expected = identity.actor();
        let error = ChangeError::WrongActor { expected, found: first.actor() };
        assert_eq!(refusal(first.bytes(), &identity), error);
    }
    let identity = EditIdentity { number: 0, ..*first.identity() };
    assert_eq!(refusal(first.bytes(), &identity), ChangeError::NumberOutOfRange(0));
    let identity = EditIdentity { number: 20_001, ..*first.identity() };
    assert_eq!(refusal(first.bytes(), &identity), ChangeError::NumberOutOfRange(20_001));
}

#[test]
fn compressed_changes_documents_and_bundles_are_refused() {
    let mut ann = TestAuthor::new(1);
    let change = ann.edit_once(&"compressible text ".repeat(100));
    let compressed = change.to_automerge().bytes().to_vec();
    assert!(compressed.len() < change.bytes().len());
    assert_eq!(refusal(&compressed, change.identity()), ChangeError::WrongChunkType(2));
    let document = ann.document.merged().save();
    assert_eq!(refusal(&document, change.identity()), ChangeError::WrongChunkType(0));
    let mut bundle = change.bytes().to_vec();
    bundle[8] = 3;
    assert_eq!(refusal(&bundle, change.identity()), ChangeError::WrongChunkType(3));
    let two = [change.bytes(), change.bytes()].concat();
    assert!(matches!(refusal(&two, change.identity()), ChangeError::Malformed(_)));
    let long = vec![0; CHANGE_BYTES_MAX + 1];
    assert_eq!(refusal(&long, change.identity()), ChangeError::TooLong);
}

#[test]
fn operations_other_than_splices_of_the_text_are_refused() {
    let text = root_change::text_id;
    let writes: [&dyn Fn(&mut automerge::transaction::Transaction<'_>); 6] = [
        &|tx| tx.put(ROOT, "key", 1).unwrap(),
        &|tx| drop(tx.put_object(ROOT, "other", ObjType::Text).unwrap()),
        &|tx| tx.put(text(), 0, "x").unwrap(),
        &|tx| tx.insert(text(), 0, ScalarValue::Int(7)).unwrap(),
        &|tx| drop(tx.split_block(text(), 2).unwrap()),
        &|tx| {
            let mark = automerge::marks::Mark::new("bold".to_owned(), true, 0, 4);
            tx.mark(text(), mark, automerge::marks::ExpandMark::Both).unwrap();
        },
    ];
    for (index, write) in writes.iter().enumerate() {
        let (bytes, identity) = foreign(write);
        let error = refusal(&bytes, &identity);
        assert!(
            matches!(error, ChangeError::NotASplice { .. } | ChangeError::UnexpectedColumn(_)),
            "{index}: {error}"
        );
    }
}

#[test]
fn an_operation_that_inserts_more_than_one_code_point_is_refused() {
    let (_, first, _) = two_changes();
    for value in ["ab", "", "e\u{301}"] {
        let bytes = forge(&first, |change| {
            change.operations[0].action = OpType::Put(ScalarValue::Str(value.into()));
        });
        assert!(matches!(
            refusal(&bytes, first.identity()),
            ChangeError::NotASplice { index: 0, .. }
        ));
    }
}

#[test]
fn operations_on_other_elements_than_they_delete_are_refused() {
    let (_, _, second) = two_changes();
    let is_deletion = |op: &Op| matches!(op.action, OpType::Delete);
    let bytes = forge(&second, |change| {
        let deletion = change.operations.iter_mut().find(|op| is_deletion(op)).unwrap();
        deletion.key = Key::Seq(ElementId::Id(OpId::new(2, &change.actor_id)));
    });
    assert!(matches!(refusal(&bytes, second.identity()), ChangeError::NotASplice { .. }));
    // The same element twice.
    let bytes = forge(&second, |change| {
        let deletion = change.operations.iter().find(|op| is_deletion(op)).unwrap().clone();
        change.operations.push(deletion);
    });
    assert!(matches!(refusal(&bytes, second.identity()), ChangeError::Malformed(_)));
    // An element that the change itself inserts later.
    let bytes = forge(&second, |change| {
        let counter = change.start_op.get() + change.operations.len() as u64 - 1;
        let insertion = change.operations.iter_mut().find(|op| !is_deletion(op)).unwrap();
        insertion.key = Key::Seq(ElementId::Id(OpId::new(counter, &change.actor_id)));
    });
    assert!(matches!(refusal(&bytes, second.identity()), ChangeError::NotASplice { .. }));
    // The text itself is not an element.
    let bytes = forge(&second, |change| {
        let root = automerge::ActorId::from(ROOT_ACTOR.as_bytes());
        change.operations[0].key = Key::Seq(ElementId::Id(OpId::new(1, &root)));
    });
    assert!(matches!(refusal(&bytes, second.identity()), ChangeError::NotASplice { .. }));
    // Another object.
    let bytes = forge(&second, |change| change.operations[0].obj = ObjectId::Root);
    assert!(check(&bytes, second.identity()).is_err());
}

#[test]
fn messages_times_and_extra_bytes_outside_the_format_are_refused() {
    let (_, first, _) = two_changes();
    type Modify = fn(&mut ExpandedChange);
    let modifications: [Modify; 6] = [
        |change| change.message = Some("hello".to_owned()),
        |change| change.time = -1,
        |change| change.time = 1 << 48,
        |change| change.extra_bytes = vec![1],
        |change| change.deps.clear(),
        |change| change.operations.clear(),
    ];
    for (index, modify) in modifications.into_iter().enumerate() {
        let error = refusal(&forge(&first, modify), first.identity());
        assert!(matches!(error, ChangeError::Malformed(_)), "{index}: {error}");
    }
}

#[test]
fn a_start_operation_that_does_not_follow_the_dependencies_is_refused() {
    let (_, first, second) = two_changes();
    // A later start; an earlier one would make the change insert elements of its dependency again.
    let start = u64::from(second.start_operation()) + 1;
    let bytes = forge(&second, |change| {
        shift_own_elements(change, 1);
        change.start_op = NonZeroU64::new(start).unwrap();
    });
    let expected = second.start_operation();
    assert_eq!(
        history_refusal(&bytes, second.identity(), std::slice::from_ref(&first)),
        HistoryError::WrongStartOperation { expected, found: expected + 1 }
    );
}

/// Moves the references of a change to elements that it inserts itself.
fn shift_own_elements(change: &mut ExpandedChange, by: u64) {
    let (start, actor) = (change.start_op.get(), change.actor_id.clone());
    for op in &mut change.operations {
        if let Key::Seq(ElementId::Id(id)) = &op.key
            && id.counter() >= start
        {
            op.key = Key::Seq(ElementId::Id(OpId::new(id.counter() + by, &actor)));
        }
    }
}

#[test]
fn counters_near_the_limits_are_refused_before_automerge_sees_them() {
    let (_, first, _) = two_changes();
    let greatest = u64::from(OPERATION_COUNTER_MAX);
    let operations = u64::from(first.operations());
    for start in [greatest, (1 << 32) - 1, 1 << 32, u64::MAX, 1, greatest - operations + 2] {
        let bytes = forge(&first, |change| {
            let by = start.wrapping_sub(change.start_op.get());
            if start < 1 << 31 && start > 1 {
                shift_own_elements(change, by);
            }
            change.start_op = NonZeroU64::new(start).unwrap();
        });
        assert_eq!(refusal(&bytes, first.identity()), ChangeError::CounterOutOfRange, "{start}");
    }
    // The last counter that is allowed passes the check of the bytes; its dependencies refuse it.
    let start = greatest - operations + 1;
    let bytes = forge(&first, |change| {
        shift_own_elements(change, start - change.start_op.get());
        change.start_op = NonZeroU64::new(start).unwrap();
    });
    let reason = history_refusal(&bytes, first.identity(), &[]);
    assert!(matches!(reason, HistoryError::WrongStartOperation { expected: 2, .. }));
}

#[test]
fn an_element_that_the_dependencies_do_not_contain_is_refused() {
    let (_, first, second) = two_changes();
    let known = std::slice::from_ref(&first);
    let is_insertion = |op: &&mut Op| op.insert;
    // A deletion's counter: it is an operation, but not an element.
    let mut ann = TestAuthor::new(1);
    let all = [ann.edit_once("abc"), ann.edit_once("a"), ann.edit_once("ax")];
    let bytes = forge(&all[2], |change| {
        let counter = u64::from(all[1].start_operation());
        change.operations[0].key = Key::Seq(ElementId::Id(OpId::new(counter, &change.actor_id)));
    });
    let error = HistoryError::UnknownElement(all[2].actor());
    assert_eq!(history_refusal(&bytes, all[2].identity(), &all[..2]), error);
    // An element of an actor whose changes are not among the dependencies.
    let mut bob = TestAuthor::new(2);
    let stranger = bob.edit_once("stranger");
    let bytes = forge(&second, |change| {
        let actor = automerge::ActorId::from(stranger.actor().as_bytes());
        let op = change.operations.iter_mut().find(is_insertion).unwrap();
        op.key = Key::Seq(ElementId::Id(OpId::new(3, &actor)));
    });
    let error = HistoryError::UnknownElement(stranger.actor());
    assert_eq!(history_refusal(&bytes, second.identity(), known), error);
    let both = [first.clone(), stranger];
    assert_eq!(history_refusal(&bytes, second.identity(), &both), error);
}

#[test]
fn an_element_of_a_later_change_of_a_known_actor_is_refused() {
    let mut ann = TestAuthor::new(1);
    let known = ann.edit_once("one ");
    let later = ann.edit_once("one two");
    let mut bob = TestAuthor::new(2);
    bob.receive(std::slice::from_ref(&known));
    let long = bob.edit_once("one and a longer text than the two changes of ann");
    let last = bob.edit_once("one and a longer text than the two changes of ann, again");
    let bytes = forge(&last, |change| {
        let actor = automerge::ActorId::from(later.actor().as_bytes());
        let element = OpId::new(u64::from(later.start_operation()), &actor);
        change.operations[0].key = Key::Seq(ElementId::Id(element));
    });
    let error = HistoryError::UnknownElement(later.actor());
    assert_eq!(history_refusal(&bytes, last.identity(), &[known, later, long]), error);
}

#[test]
fn a_wrong_sequence_number_and_its_dependants_are_refused() {
    let (_, first, second) = two_changes();
    let bytes = forge(&second, |change| change.seq = 3);
    let known = std::slice::from_ref(&first);
    let error = HistoryError::WrongSequence { expected: 2, found: 3 };
    assert_eq!(history_refusal(&bytes, second.identity(), known), error);
    let bytes = forge(&second, |change| change.seq = 1);
    let error = HistoryError::WrongSequence { expected: 2, found: 1 };
    assert_eq!(history_refusal(&bytes, second.identity(), known), error);
    // A dependant of the refused change, which arrives first.
    let wrong = check(&bytes, second.identity()).unwrap();
    let dependant = forge(&second, |change| {
        change.deps = vec![wrong.hash().to_automerge()];
        change.seq = 2;
    });
    let dependant = check(&dependant, second.identity()).unwrap();
    let mut bob = TestAuthor::new(2);
    bob.receive(&[dependant.clone(), first, wrong.clone()]);
    let reasons: Vec<_> = bob.document.refused().filter(|(h, _)| *h == dependant.hash()).collect();
    assert_eq!(reasons[0].1, &HistoryError::DependsOnRefused(wrong.hash()));
}

#[test]
fn a_change_that_merges_two_changes_with_one_number_is_refused() {
    let mut ann = TestAuthor::new(1);
    let base = ann.edit_once("base\n");
    let mut copy = ann.clone();
    let one = ann.edit_once("base\none\n");
    let other = copy.edit_once("base\nother\n");
    let mut bob = TestAuthor::new(2);
    bob.receive(&[base.clone(), one.clone()]);
    let honest = bob.edit_once("base\none\nbob\n");
    let bytes = forge(&honest, |change| {
        change.deps.push(other.hash().to_automerge());
        let last = one.last_operation().max(other.last_operation());
        let start = u64::from(last) + 1;
        shift_own_elements(change, start - change.start_op.get());
        change.start_op = NonZeroU64::new(start).unwrap();
    });
    let reason = history_refusal(&bytes, honest.identity(), &[base, one, other]);
    assert_eq!(reason, HistoryError::MergesDuplicates);
}

#[test]
fn a_few_bytes_that_describe_many_operations_are_refused() {
    let (_, first, _) = two_changes();
    let honest = first.bytes();
    // Find the action column, and replace its run by one of 2^40 rows. The bytes before the columns do
    // not change; the length of the chunk and of the column do.
    let mut refused = 0;
    for at in 9..honest.len() {
        let mut bomb = honest[..at].to_vec();
        bomb.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
        bomb.extend(&honest[at + 1..]);
        refused += usize::from(check(&bomb, first.identity()).is_err());
    }
    assert_eq!(refused, honest.len() - 9);
    // A whole chunk of one run per column, each with 2^34 rows.
    let run = |value: u8| vec![0x80, 0x80, 0x80, 0x80, 0xc0, 0x00, value];
    let columns: [(u8, Vec<u8>); 8] = [
        (0x01, run(1)),
        (0x02, run(1)),
        (0x11, run(0)),
        (0x13, run(1)),
        (0x34, vec![0, 0x80, 0x80, 0x80, 0x80, 0x40]),
        (0x42, run(1)),
        (0x56, run(0x16)),
        (0x70, run(0)),
    ];
    let mut body = vec![1];
    body.extend(ROOT_HASH.as_bytes());
    body.push(16);
    body.extend(first.actor().as_bytes());
    body.extend([1, 2, 0, 0, 1, 16]);
    body.extend(ROOT_ACTOR.as_bytes());
    body.push(columns.len() as u8);
    columns.iter().for_each(|(spec, data)| body.extend([*spec, data.len() as u8]));
    columns.iter().for_each(|(_, data)| body.extend(data));
    assert_eq!(refusal(&chunk(&body), first.identity()), ChangeError::TooManyOperations);
}

/// A chunk of a change with this body and a wrong checksum.
fn chunk(body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x85, 0x6f, 0x4a, 0x83, 0, 0, 0, 0, 1];
    if body.len() < 128 {
        bytes.push(body.len() as u8);
    } else {
        bytes.extend([body.len() as u8 | 0x80, (body.len() >> 7) as u8]);
    }
    bytes.extend(body);
    bytes
}

#[test]
fn an_actor_that_no_operation_names_is_refused() {
    let mut ann = TestAuthor::new(1);
    let change = ann.edit_once("Hi");
    let body = &change.bytes()[10..];
    assert_eq!(refusal(&chunk(body), change.identity()), ChangeError::WrongChecksum);
    // The list of other actors contains the root actor; add one after it.
    let root = body.windows(16).position(|bytes| bytes == ROOT_ACTOR.as_bytes()).unwrap();
    let mut longer = body[..root - 2].to_vec();
    longer.extend([2, 16]);
    longer.extend(ROOT_ACTOR.as_bytes());
    longer.push(16);
    longer.extend([0xff; 16]);
    longer.extend(&body[root + 16..]);
    let error = ChangeError::Malformed("it lists an actor that no operation names");
    assert_eq!(refusal(&chunk(&longer), change.identity()), error);
}

#[test]
fn dependencies_in_another_order_are_refused() {
    let (mut ann, mut bob) = (TestAuthor::new(1), TestAuthor::new(2));
    ann.edit("ann\n");
    bob.edit("bob\n");
    ann.pull(&bob);
    let merged = ann.edit_once("both\n");
    assert_eq!(merged.dependencies().len(), 2);
    let length = merged.bytes().len();
    let body = &merged.bytes()[if length - 10 < 128 { 10 } else { 11 }..];
    let (first, second, rest) = (&body[1..33], &body[33..65], &body[65..]);
    let error = ChangeError::Malformed("its dependencies are missing or not in order");
    for pair in [[second, first], [first, first]] {
        let body = [&[2], pair[0], pair[1], rest].concat();
        assert_eq!(refusal(&chunk(&body), merged.identity()), error);
    }
}

#[test]
fn truncated_changes_and_wrong_checksums_are_refused() {
    let (_, _, second) = two_changes();
    for length in 0..second.bytes().len() {
        assert!(check(&second.bytes()[..length], second.identity()).is_err(), "{length}");
    }
    let mut bytes = second.bytes().to_vec();
    bytes[4] ^= 1;
    assert_eq!(refusal(&bytes, second.identity()), ChangeError::WrongChecksum);
}

/// Replaces, removes, inserts or copies some bytes.
fn mutated(bytes: &[u8], random: &mut TestRandom) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = 8 + random.below(bytes.len() - 8);
        let interesting = [0, 1, 2, 0x3f, 0x40, 0x7e, 0x7f, 0x80, 0xc0, 0xff];
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = interesting[random.below(interesting.len())],
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] = bytes[at].wrapping_sub(1),
            4 => drop(bytes.remove(at)),
            _ => bytes.insert(at, interesting[random.below(interesting.len())]),
        }
        if bytes.len() < 20 {
            break;
        }
    }
    // The length of the body, if it still has two bytes.
    let body = bytes.len() - 11;
    if random.below(4) > 0 && (128..1 << 14).contains(&body) {
        bytes[9] = (body & 0x7f) as u8 | 0x80;
        bytes[10] = (body >> 7) as u8;
    }
    bytes
}

#[test]
fn mutated_changes_never_cause_a_panic_and_have_one_encoding() {
    let (ann, _, _) = two_changes();
    let mut bob = TestAuthor::new(2);
    bob.pull(&ann);
    bob.edit("zero\none 2 three four\nfünf 🦀\n");
    let change = bob.edit_once("one 2 drei\nfünf 🦀 six\n");
    let known: Vec<CheckedChange> = bob.document.history().cloned().collect();
    let random = &mut TestRandom(0x5eed);
    let (mut accepted, mut refused_later) = (0, 0);
    for _ in 0..60_000 {
        let mut bytes = mutated(change.bytes(), random);
        if check(&bytes, change.identity()) == Err(ChangeError::WrongChecksum) {
            // Everything but the checksum is valid: write the right one.
            crate::testing::repair_checksum(&mut bytes);
        }
        let Ok(mutant) = check(&bytes, change.identity()) else { continue };
        accepted += 1;
        // Automerge encodes the change exactly like its author.
        let again = automerge::Change::from(mutant.to_automerge().decode());
        assert_eq!(again.raw_bytes(), mutant.bytes());
        let mut document = crate::document::TextDocument::build(
            AuthorQuota::FORMAT,
            known.iter().filter(|known| known.hash() != change.hash()).cloned(),
            |_| true,
        );
        document.insert([mutant.clone()], |_| true);
        let _ = (document.text(), document.blame());
        refused_later += document.refused().count();
        let fork: Automerge = document.merged().fork_at(&document.merged().get_heads()).unwrap();
        assert_eq!(fork.get_heads(), document.merged().get_heads());
    }
    assert!(accepted > 200, "only {accepted} mutants were valid");
    assert!(refused_later > 20, "only {refused_later} mutants contradicted their dependencies");
}
