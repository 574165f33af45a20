//! The laws of the join, for every lattice, for slots, for retraction and for whole entries.
//!
//! `KLNODE_CASES` sets the number of cases per law; `docs/internals/benchmarks.md` has the longest
//! run.

use crate::support::conformance::conforms;
use klnode_crdt::claims::Claims;
use klnode_crdt::entry::Entry;
use klnode_crdt::gcounter::GCounter;
use klnode_crdt::lattice::Lattice;
use klnode_crdt::lww_set::{ElementState, LwwSet};
use klnode_crdt::register::MvRegister;
use klnode_crdt::retraction::RetractionSet;
use klnode_crdt::tally::Tally;
use klnode_crdt::testing::{RecordHistory, assert_laws};
use klnode_crdt::version_vector::UncoveredVersions;
use quickcheck::{Arbitrary, Gen, QuickCheck};
use std::fmt::Debug;

fn cases() -> u64 {
    std::env::var("KLNODE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(10_000)
}

fn check_laws<T: Lattice + Arbitrary + PartialEq + Debug>() {
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn holds<T: Lattice + Arbitrary + PartialEq + Debug>(a: T, b: T, c: T) -> bool {
        assert_laws(&a, &b, &c);
        true
    }
    QuickCheck::new()
        .tests(cases())
        .max_tests(2 * cases())
        .quickcheck(holds as fn(T, T, T) -> bool);
}

#[test]
fn a_register_with_causal_context_is_a_lattice() {
    check_laws::<MvRegister>();
}

#[test]
fn a_set_with_withdrawal_is_a_lattice() {
    check_laws::<LwwSet<String>>();
}

#[test]
fn a_counter_by_boot_and_day_is_a_lattice() {
    check_laws::<GCounter>();
}

#[test]
fn archival_is_a_lattice() {
    check_laws::<Option<ElementState>>();
}

#[test]
fn retraction_marks_are_a_lattice() {
    check_laws::<RetractionSet>();
}

#[test]
fn claims_are_a_lattice() {
    check_laws::<Claims>();
}

#[test]
fn a_tally_is_a_lattice() {
    check_laws::<Tally>();
}

#[test]
fn slots_are_a_lattice_for_any_signed_content() {
    check_laws::<UncoveredVersions>();
}

#[test]
fn an_entry_is_a_lattice() {
    check_laws::<Entry>();
}

/// Signed records by clones, restored homes and liars: the kept records form a lattice, and the
/// view depends only on the set of received records.
#[test]
fn entries_of_signed_records_are_a_lattice_independent_of_order() {
    conforms("C-10");
    let mut g = Gen::new(30);
    for _ in 0..cases() {
        let history = RecordHistory::arbitrary(&mut g);
        let [a, b, c] = history.three_holders(&mut g);
        assert_laws(&a, &b, &c);
        let in_order = history.heard(0..history.records.len());
        let backwards = history.heard((0..history.records.len()).rev());
        assert_eq!(in_order, backwards, "{history:#?}");
        let joined = a.joined(b).joined(c).joined(in_order.clone());
        assert_eq!(joined, in_order);
        assert_eq!(joined.to_entry(), in_order.to_entry());
    }
}
