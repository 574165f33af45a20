//! Tables of the expected values: relevance, thresholds, idf.

use super::fusion::SignalSet;
use super::{
    Calibration, ENTRIES_MAX, EngineScores, PRIOR_DOCUMENTS, QueryStats, Relevance, answer_min,
    ceiling, idf, judge, prior_holding, relevance,
};

const BUILT_IN: Calibration = Calibration::BUILT_IN;

fn near(given: f64, expect: f64) -> bool {
    (given - expect).abs() < 1e-6
}

fn of(cosine: Option<f64>, bm25: f64, ceiling: f64) -> Relevance {
    relevance(
        &EngineScores { cosine, transformer: None, bm25 },
        &QueryStats { ceiling, entries: 100, names: 0.0, set: SignalSet::Table },
        &BUILT_IN,
    )
}

#[test]
fn relevance_combines_meaning_and_coverage() {
    for (cosine, bm25, expect) in [
        (Some(0.0), 0.0, 0.0),
        (Some(0.5), 0.0, 0.5),
        (Some(0.0), 10.0, 0.646_447),
        (Some(0.5), 10.0, 0.823_223),
        (Some(0.5), 4.0, 0.642_229),
        (Some(-0.5), 10.0, 0.646_447),
        (Some(f64::NAN), 10.0, 0.646_447),
        (None, 10.0, 0.646_447),
        (Some(1.0), 0.0, 1.0),
        (Some(0.3), 20.0, 1.0),
        (Some(0.3), 99.0, 1.0),
        (Some(0.3), -4.0, 0.3),
        (Some(0.3), f64::NAN, 0.3),
    ] {
        let given = of(cosine, bm25, 20.0);
        assert!(near(given.value, expect), "{cosine:?}, {bm25}: {given:?}");
    }
    assert!(near(of(Some(0.4), 3.0, 0.0).value, 0.4), "a query without words has no coverage");
}

#[test]
fn a_query_of_identifiers_relies_on_its_words() {
    for (names, cosine, bm25, expect) in [
        (0.0, 0.5, 10.0, 0.823_223),
        (1.0, 0.5, 10.0, 0.876_848),
        (0.5, 0.5, 10.0, 0.851_181),
        (1.0, 0.5, 0.0, 0.35),
        (1.0, 0.0, 10.0, 0.810_535),
        (7.0, 0.5, 0.0, 0.35),
        (f64::NAN, 0.5, 0.0, 0.5),
    ] {
        let asked = QueryStats { ceiling: 20.0, entries: 100, names, set: SignalSet::Table };
        let given = relevance(
            &EngineScores { cosine: Some(cosine), transformer: None, bm25 },
            &asked,
            &BUILT_IN,
        );
        assert!(near(given.value, expect), "{names}, {cosine}, {bm25}: {given:?}");
        assert!(near(given.meaning, cosine), "the scores of the engines stay: {given:?}");
    }
}

#[test]
fn with_a_transformer_the_fused_score_is_the_relevance() {
    let asked = QueryStats { ceiling: 20.0, entries: 100, names: 1.0, set: SignalSet::Transformer };
    let found = EngineScores { cosine: Some(0.4), transformer: Some(0.6), bm25: 10.0 };
    let given = relevance(&found, &asked, &BUILT_IN);
    assert!(near(given.score, 0.6 + 0.3 * 0.5 + 0.35 * 0.4), "{given:?}");
    assert!(near(given.value, given.score / 1.65), "names change nothing here: {given:?}");
    let given = judge(&[given], &asked, &BUILT_IN);
    assert!(!given.abstains() && near(given.answer_min, 0.39 / 1.65), "{given:?}");
}

#[test]
fn relevance_is_monotonic_in_both_engines() {
    let steps = || (0..=20).map(|at| f64::from(at) / 20.0);
    for (cosine, share) in steps().flat_map(|cosine| steps().map(move |share| (cosine, share))) {
        let value = |cosine, share: f64| of(Some(cosine), share * 20.0, 20.0).value;
        let here = value(cosine, share);
        assert!((0.0..=1.0).contains(&here), "{cosine}, {share}: {here}");
        assert!(value(cosine + 0.05, share) >= here, "{cosine}, {share}");
        assert!(value(cosine, share + 0.05) >= here, "{cosine}, {share}");
    }
}

#[test]
fn the_answer_threshold_rises_with_the_number_of_entries() {
    for (entries, both, keywords) in [
        (0, 0.27, 0.12),
        (1, 0.27, 0.12),
        (10, 0.34, 0.165),
        (1_000, 0.48, 0.255),
        (ENTRIES_MAX, 0.62, 0.345),
        (u64::MAX, 0.62, 0.345),
    ] {
        for (set, expect) in [(SignalSet::Table, both), (SignalSet::Words, keywords)] {
            let given = answer_min(entries, set, &BUILT_IN);
            assert!(near(given, expect), "{entries}, {set:?}: {given}");
        }
    }
}

#[test]
fn the_answer_abstains_without_a_relevant_candidate() {
    let abstains = |entries, found: &[Relevance]| {
        let asked = QueryStats { ceiling: 20.0, entries, names: 0.0, set: SignalSet::Table };
        judge(found, &asked, &BUILT_IN).abstains()
    };
    let (far, close) = (of(Some(0.25), 1.0, 20.0), of(Some(0.4), 6.0, 20.0));
    assert!(abstains(3, &[]));
    assert!(!abstains(3, &[far]), "{far:?} is enough in a store of three");
    assert!(abstains(1_000, &[far]), "{far:?} is not enough among a thousand");
    assert!(!abstains(1_000, &[far, close]), "{close:?} counts in any position");
    let broken = Relevance { value: f64::NAN, ..far };
    assert!(abstains(3, &[broken]));
}

#[test]
fn rare_words_have_a_higher_idf_and_unknown_ones_the_highest() {
    for (documents, holding, expect) in [
        (3, 3, 0.133_531),
        (3, 1, 0.980_829),
        (3, 0, 2.079_442),
        (1000, 10, 4.557_380),
        (3, 9, 0.133_531),
    ] {
        let given = idf(documents, holding);
        assert!(near(given, expect), "{holding} of {documents}: {given}");
    }
}

#[test]
fn a_common_word_is_common_in_a_store_of_three() {
    for (share, expect) in [(0.0, 0), (0.001, 1), (0.4, 200), (2.0, PRIOR_DOCUMENTS), (f64::NAN, 0)]
    {
        assert_eq!(prior_holding(share), expect, "{share}");
    }
    let documents = 3 + PRIOR_DOCUMENTS;
    let (the, rare) = (idf(documents, 1 + prior_holding(0.4)), idf(documents, 1));
    assert!(the < 1.0 && rare > 5.0, "{the}, {rare}");
}

#[test]
fn a_query_of_common_words_cannot_be_covered() {
    assert!(near(ceiling([1.0, 2.5]), 7.7));
    assert!(near(ceiling([0.9]), 6.6));
    assert!(near(ceiling([]), 6.6));
}
