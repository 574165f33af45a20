//! Each rule fires on a scene built for it, and stays silent on its near miss.

use super::*;
use crate::contradiction::Polarity;
use crate::decay::DecayClass;
use klnode_crdt::ids::{AuthorId, EntryId, TaskId};

fn id(number: u8) -> EntryId {
    EntryId::from_bytes([number; 16])
}

fn entry(number: u8, tags: &[&str]) -> EntryInsightFacts {
    EntryInsightFacts {
        entry: id(number),
        code: format!("L-{number}"),
        version: "v1".to_owned(),
        title: format!("entry {number}"),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        polarity: Polarity::Neutral,
        class: DecayClass::Ephemeral,
        is_verified: false,
        is_foreign: false,
        is_demoted: false,
        mean: 0.5,
        observations: 0.0,
        alpha: 5.0,
        alpha_recent: 5.0,
        alpha_peak: 0.0,
        prediction_errors: 0,
    }
}

fn task(number: u8) -> TaskInsightFacts {
    TaskInsightFacts {
        task: TaskId::from_bytes([number; 16]),
        agent: format!("agent {number}"),
        parent_agent: None,
        is_success: true,
        quality: 0.5,
        strategy: None,
        rounds: None,
        cost: None,
        made: 1,
    }
}

fn of_entries(entries: Vec<EntryInsightFacts>) -> InsightFacts {
    InsightFacts { entries, ..InsightFacts::default() }
}

fn of_tasks(tasks: Vec<TaskInsightFacts>) -> InsightFacts {
    InsightFacts { tasks, ..InsightFacts::default() }
}

/// The insights that one rule finds.
fn found(facts: &InsightFacts, rule: InsightRule) -> Vec<Insight> {
    let all = insights(facts, &Params::default(), |_| false);
    all.into_iter().filter(|insight| insight.rule == rule).collect()
}

#[track_caller]
fn fires(facts: &InsightFacts, rule: InsightRule, severity: InsightSeverity) -> Insight {
    let mut found = found(facts, rule);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].severity, severity);
    assert!(!found[0].evidence.is_empty() && !found[0].action.is_empty());
    found.remove(0)
}

#[track_caller]
fn is_silent(facts: &InsightFacts, rule: InsightRule) {
    assert_eq!(found(facts, rule), []);
}

#[test]
fn rule_1_fires_if_alpha_fell_by_more_than_a_fifth_within_seven_days() {
    let rule = InsightRule::ConfidenceDecline;
    let scene = |alpha: f64, alpha_recent: f64, alpha_peak: f64| {
        of_entries(vec![EntryInsightFacts { alpha, alpha_recent, alpha_peak, ..entry(1, &[]) }])
    };
    let fired = fires(&scene(15.9, 16.5, 20.0), rule, InsightSeverity::Attention);
    assert_eq!((fired.rule.category(), fired.task), ("confidence", None));
    is_silent(&scene(16.0, 16.5, 20.0), rule);
    // It was as low a week ago.
    is_silent(&scene(15.0, 15.9, 20.0), rule);
    // It fell again, from a height below the old peak.
    fires(&scene(9.0, 12.0, 20.0), rule, InsightSeverity::Attention);
}

#[test]
fn rule_2_fires_for_verified_opposites_with_more_than_30_per_cent_common_tags() {
    let rule = InsightRule::Contradiction;
    let side = |number, polarity, tags: &[&str]| EntryInsightFacts {
        polarity,
        is_verified: true,
        ..entry(number, tags)
    };
    let scene = |one: EntryInsightFacts, two: EntryInsightFacts| InsightFacts {
        related: [(one.entry, two.entry)].into(),
        ..of_entries(vec![one, two])
    };
    let (yes, no) = (Polarity::Positive, Polarity::Negative);
    let both = || (side(1, yes, &["a", "b"]), side(2, no, &["b", "a"]));
    let (one, two) = both();
    let fired = fires(&scene(one, two), rule, InsightSeverity::ActionRequired);
    assert_eq!(fired.task.map(|task| task.agent), Some("researcher"));
    // 3 of 10 tags is exactly 30 %.
    let (few, many) = (["a", "b", "c", "d", "e", "f"], ["a", "b", "c", "g", "h", "i", "j"]);
    is_silent(&scene(side(1, yes, &few), side(2, no, &many)), rule);
    fires(
        &scene(side(1, yes, &few[..5]), side(2, no, &many)),
        rule,
        InsightSeverity::ActionRequired,
    );
    let (one, two) = both();
    is_silent(&scene(one, EntryInsightFacts { polarity: yes, ..two }), rule);
    let (one, two) = both();
    is_silent(&scene(one, EntryInsightFacts { is_verified: false, ..two }), rule);
    let (one, two) = both();
    is_silent(&of_entries(vec![one, two]), rule);
}

#[test]
fn rule_3_fires_for_a_peer_with_trust_below_one_half() {
    let rule = InsightRule::TrustDrop;
    let scene = |trust: f64, failures: u32| InsightFacts {
        peers: vec![PeerInsightFacts {
            author: AuthorId::from_bytes([7; 32]),
            name: "bob".to_owned(),
            trust,
            successes: 3,
            failures,
        }],
        ..InsightFacts::default()
    };
    fires(&scene(0.49, 1), rule, InsightSeverity::Attention);
    fires(&scene(0.10, 0), rule, InsightSeverity::Info);
    is_silent(&scene(0.50, 1), rule);
}

#[test]
fn rule_4_fires_for_three_entries_of_a_tag_with_three_prediction_errors() {
    let rule = InsightRule::CoverageGap;
    let scene = |errors: &[u32]| {
        let entries = errors.iter().zip(1..).map(|(errors, number)| EntryInsightFacts {
            prediction_errors: *errors,
            ..entry(number, &["auth"])
        });
        of_entries(entries.collect())
    };
    let fired = fires(&scene(&[3, 3, 4]), rule, InsightSeverity::Attention);
    assert!(fired.task.is_some_and(|task| task.goal.contains("\"auth\"")));
    // Most entries of the tag answer their questions.
    fires(&scene(&[3, 3, 4, 0, 0, 0]), rule, InsightSeverity::Info);
    is_silent(&scene(&[3, 3, 2]), rule);
    let mut apart = scene(&[3, 3, 3]);
    apart.entries[2].tags = ["other".to_owned()].into();
    is_silent(&apart, rule);
}

#[test]
fn rule_5_fires_for_a_cluster_whose_entries_all_have_more_than_three_errors() {
    let rule = InsightRule::StaleCluster;
    let scene = |errors: [u32; 3]| {
        let entries = errors.iter().zip(1..).map(|(errors, number)| EntryInsightFacts {
            prediction_errors: *errors,
            ..entry(number, &[])
        });
        let clusters = vec![[1, 2, 3].map(id).to_vec()];
        InsightFacts { clusters, ..of_entries(entries.collect()) }
    };
    let fired = fires(&scene([4, 4, 5]), rule, InsightSeverity::Attention);
    assert_eq!(fired.evidence.len(), 3);
    assert!(fired.task.is_some_and(|task| task.goal.ends_with("L-1, L-2, L-3")));
    is_silent(&scene([4, 4, 3]), rule);
    is_silent(&InsightFacts { clusters: Vec::new(), ..scene([4, 4, 5]) }, rule);
}

#[test]
fn rule_6_fires_for_entries_with_more_than_half_of_tags_and_title_in_common() {
    let rule = InsightRule::MergeOpportunity;
    let titled = |number, tags: &[&str], title: &str| EntryInsightFacts {
        title: title.to_owned(),
        ..entry(number, tags)
    };
    let scene = |tags: &[&str], title: &str| {
        let one = titled(1, &["a", "b", "c"], "Retry the billing gateway");
        of_entries(vec![one, titled(2, tags, title)])
    };
    let alike = scene(&["a", "b"], "retry the Billing gateway twice");
    fires(&alike, rule, InsightSeverity::Info);
    // Half of the tags, and half of the words.
    is_silent(&scene(&["a", "b", "d"], "Retry the billing gateway"), rule);
    is_silent(&scene(&["a", "b", "c"], "Retry the billing by hand twice"), rule);
    is_silent(&InsightFacts { different: [(id(1), id(2))].into(), ..alike.clone() }, rule);
    let mut opposed = alike;
    opposed.entries[0].polarity = Polarity::Positive;
    opposed.entries[1].polarity = Polarity::Negative;
    is_silent(&opposed, rule);
}

#[test]
fn rule_7_fires_for_foreign_entries_with_a_tag_of_no_own_entry() {
    let rule = InsightRule::Inbound;
    let brought =
        |number, tags: &[&str]| EntryInsightFacts { is_foreign: true, ..entry(number, tags) };
    let scene = vec![brought(1, &["queues"]), brought(2, &["queues"]), entry(3, &["auth"])];
    let fired = fires(&of_entries(scene.clone()), rule, InsightSeverity::Info);
    assert!(fired.text.contains("2 entries with tag \"queues\""), "{}", fired.text);
    let covered = [scene, vec![entry(4, &["queues"])]].concat();
    is_silent(&of_entries(covered), rule);
}

#[test]
fn rule_8_fires_for_a_strategy_more_than_15_per_cent_below_the_best() {
    let rule = InsightRule::StrategyEfficiency;
    let tried = |strategy: &str, quality: f64| {
        let strategy = Some(strategy.to_owned());
        move |number| TaskInsightFacts { strategy: strategy.clone(), quality, ..task(number) }
    };
    let scene = |quality: f64, count: u8| {
        let best = (1..=3).map(tried("stigmergic", 0.8));
        of_tasks(best.chain((4..4 + count).map(tried("sequential", quality))).collect())
    };
    let fired = fires(&scene(0.67, 3), rule, InsightSeverity::Info);
    assert!(fired.text.starts_with("Strategy \"sequential\""), "{}", fired.text);
    is_silent(&scene(0.69, 3), rule);
    is_silent(&scene(0.2, 2), rule);
}

#[test]
fn rule_9_fires_for_two_tasks_of_ten_rounds_with_a_quality_below_40_per_cent() {
    let rule = InsightRule::DiminishingRounds;
    let long = |number, rounds, quality| TaskInsightFacts {
        rounds: Some(rounds),
        quality,
        ..task(number)
    };
    let scene = |rounds, quality| of_tasks(vec![long(1, 10, 0.39), long(2, rounds, quality)]);
    fires(&scene(10, 0.39), rule, InsightSeverity::Attention);
    is_silent(&scene(9, 0.39), rule);
    is_silent(&scene(10, 0.4), rule);
    is_silent(&of_tasks(vec![long(1, 20, 0.1)]), rule);
}

#[test]
fn rule_10_fires_for_a_task_that_cost_more_than_2_5_times_the_median() {
    let rule = InsightRule::CostOutlier;
    let scene = |costs: &[f64]| {
        let paid = costs.iter().zip(1..);
        of_tasks(paid.map(|(cost, n)| TaskInsightFacts { cost: Some(*cost), ..task(n) }).collect())
    };
    let fired = fires(&scene(&[1.0, 1.0, 1.0, 1.0, 2.51]), rule, InsightSeverity::Info);
    assert_eq!(fired.subject, TaskId::from_bytes([5; 16]).to_string());
    is_silent(&scene(&[1.0, 1.0, 1.0, 1.0, 2.5]), rule);
    is_silent(&scene(&[1.0, 1.0, 1.0, 9.0]), rule);
}

#[test]
fn rule_11_fires_if_more_than_30_per_cent_of_the_cost_made_no_entry() {
    let rule = InsightRule::KnowledgeRoi;
    let scene = |cost: f64, made: u32, is_success: bool| {
        let barren = TaskInsightFacts { cost: Some(cost), made, is_success, ..task(1) };
        of_tasks(vec![barren, TaskInsightFacts { cost: Some(7.0), ..task(2) }])
    };
    fires(&scene(3.01, 0, true), rule, InsightSeverity::Attention);
    is_silent(&scene(3.0, 0, true), rule);
    is_silent(&scene(9.0, 1, true), rule);
    is_silent(&scene(9.0, 0, false), rule);
    is_silent(&of_tasks(vec![TaskInsightFacts { made: 0, ..task(1) }]), rule);
}

#[test]
fn rule_12_recommends_faster_decay_for_a_lasting_tag_that_fails() {
    let rule = InsightRule::AdaptiveEvaporation;
    let scene = |class, count: u8, mean: f64, errors: u32, demoted: u8| {
        let entries = (1..=count).map(|number| EntryInsightFacts {
            class,
            mean,
            prediction_errors: errors,
            is_demoted: number <= demoted,
            ..entry(number, &["auth"])
        });
        of_entries(entries.collect())
    };
    let (stable, permanent) = (DecayClass::Stable, DecayClass::Permanent);
    let fired = fires(&scene(stable, 3, 0.6, 3, 0), rule, InsightSeverity::Info);
    assert!(fired.action.contains("from stable to ephemeral"), "{}", fired.action);
    is_silent(&scene(stable, 3, 0.6, 2, 0), rule);
    is_silent(&scene(stable, 2, 0.6, 3, 0), rule);
    let fired = fires(&scene(permanent, 5, 0.6, 0, 2), rule, InsightSeverity::Info);
    assert!(fired.action.contains("from permanent to stable"), "{}", fired.action);
    is_silent(&scene(permanent, 5, 0.6, 0, 1), rule);
    fires(&scene(stable, 5, 0.39, 0, 0), rule, InsightSeverity::Info);
    is_silent(&scene(stable, 5, 0.4, 0, 0), rule);
    is_silent(&scene(stable, 4, 0.39, 0, 0), rule);
    is_silent(&scene(DecayClass::Ephemeral, 5, 0.39, 3, 2), rule);
}

#[test]
fn rule_12_recommends_slower_decay_for_a_brief_tag_that_holds() {
    let rule = InsightRule::AdaptiveEvaporation;
    let scene = |count: u8, mean: f64, errors: u32| {
        let entries = (1..=count).map(|number| EntryInsightFacts {
            mean,
            prediction_errors: errors,
            ..entry(number, &["auth"])
        });
        of_entries(entries.collect())
    };
    let fired = fires(&scene(5, 0.7, 0), rule, InsightSeverity::Info);
    assert!(fired.action.contains("from ephemeral to stable"), "{}", fired.action);
    is_silent(&scene(4, 0.7, 0), rule);
    is_silent(&scene(5, 0.69, 0), rule);
    is_silent(&scene(5, 0.7, 1), rule);
}

#[test]
fn rule_13_fires_if_two_numbers_of_choices_are_low_and_tasks_fail() {
    let rule = InsightRule::BranchingStagnation;
    let scene = |agents: u8, strategies: usize, failures: u8, count: u8| {
        let tasks = (0..count).map(|number| TaskInsightFacts {
            agent: format!("agent {}", number % agents),
            strategy: Some(["one", "two"][usize::from(number) % strategies].to_owned()),
            is_success: number >= failures,
            ..task(number)
        });
        of_tasks(tasks.collect())
    };
    let fired = fires(&scene(1, 1, 3, 10), rule, InsightSeverity::Attention);
    assert_eq!(fired.evidence.len(), 2 + 3);
    // Two agents in equal shares are two effective choices.
    is_silent(&scene(2, 1, 3, 10), rule);
    is_silent(&scene(1, 2, 3, 10), rule);
    is_silent(&scene(1, 1, 2, 10), rule);
    is_silent(&scene(1, 1, 4, 4), rule);
    // Few entries carry all observations.
    let used = |number, observations| EntryInsightFacts { observations, ..entry(number, &[]) };
    let concentrated: Vec<_> = (1..=5).map(|n| used(n, if n <= 2 { 8.0 } else { 0.0 })).collect();
    let narrow = InsightFacts { entries: concentrated.clone(), ..scene(1, 2, 3, 10) };
    fires(&narrow, rule, InsightSeverity::Attention);
    let spread = (1..=5).map(|number| used(number, 8.0)).collect();
    is_silent(&InsightFacts { entries: spread, ..scene(1, 2, 3, 10) }, rule);
    let few = InsightFacts { entries: concentrated[..4].to_vec(), ..scene(1, 2, 3, 10) };
    is_silent(&few, rule);
}

#[test]
fn the_most_severe_insight_is_first_and_no_rule_fills_the_list() {
    let brought = (1..=60).map(|number| EntryInsightFacts {
        is_foreign: true,
        ..entry(number, &[&format!("tag {number}")])
    });
    let mut facts = of_entries(brought.collect());
    let side = |number, polarity| EntryInsightFacts {
        polarity,
        is_verified: true,
        ..entry(number, &["retry"])
    };
    facts.entries.extend([side(61, Polarity::Positive), side(62, Polarity::Negative)]);
    facts.related.insert((id(61), id(62)));
    facts.tasks = [1.0, 1.0, 1.0, 1.0, 9.0]
        .iter()
        .zip(1..)
        .map(|(cost, n)| TaskInsightFacts { cost: Some(*cost), ..task(n) })
        .collect();
    let all = insights(&facts, &Params::default(), |_| false);
    assert_eq!(all[0].rule, InsightRule::Contradiction);
    let rules: Vec<InsightRule> = all[1..4].iter().map(|insight| insight.rule).collect();
    let inbound = InsightRule::Inbound;
    assert_eq!(rules, [inbound, InsightRule::CostOutlier, inbound]);
    assert_eq!(all.len(), 2 + RULE_INSIGHTS_MAX);
    assert_eq!(all, insights(&facts, &Params::default(), |_| false));
}

#[test]
fn dismissed_insights_take_no_place_of_others() {
    let brought = (1..=25).map(|number| EntryInsightFacts {
        is_foreign: true,
        ..entry(number, &[&format!("tag {number:02}")])
    });
    let facts = of_entries(brought.collect());
    let subjects = |insights: Vec<Insight>| -> BTreeSet<String> {
        insights.into_iter().map(|insight| insight.subject).collect()
    };
    let first = subjects(insights(&facts, &Params::default(), |_| false));
    assert_eq!(first.len(), RULE_INSIGHTS_MAX);
    let all = insights(&facts, &Params::default(), |insight| first.contains(&insight.subject));
    let all = subjects(all);
    assert_eq!(all.len(), 25);
    assert_eq!(all.difference(&first).count(), 5);
}

#[test]
fn a_peer_that_lost_trust_is_not_cut_off_by_untested_peers() {
    let peer = |number: u8, trust: f64, failures: u32| PeerInsightFacts {
        author: AuthorId::from_bytes([number; 32]),
        name: format!("peer {number}"),
        trust,
        successes: 3,
        failures,
    };
    let mut peers: Vec<_> = (1..=30).map(|number| peer(number, 0.1, 0)).collect();
    peers.push(peer(31, 0.4, 2));
    let facts = InsightFacts { peers, ..InsightFacts::default() };
    let all = insights(&facts, &Params::default(), |_| false);
    assert_eq!(all.len(), RULE_INSIGHTS_MAX);
    assert_eq!(all[0].severity, InsightSeverity::Attention);
    assert!(all[0].text.starts_with("Peer \"peer 31\" has lost trust"), "{}", all[0].text);
}

#[test]
fn all_evidence_is_kept() {
    let tasks =
        (0..100).map(|number| TaskInsightFacts { rounds: Some(10), quality: 0.1, ..task(number) });
    let fired = found(&of_tasks(tasks.collect()), InsightRule::DiminishingRounds);
    assert_eq!(fired[0].evidence.len(), 100);
}

#[test]
fn a_number_that_changes_every_day_is_no_new_evidence() {
    let scene = |alpha: f64| {
        let (alpha_recent, alpha_peak) = (16.5, 20.0);
        of_entries(vec![EntryInsightFacts { alpha, alpha_recent, alpha_peak, ..entry(1, &[]) }])
    };
    let keys =
        |alpha: f64| found(&scene(alpha), InsightRule::ConfidenceDecline)[0].evidence[0].key();
    assert_eq!(keys(15.9), keys(15.2));
}

#[test]
fn the_numbers_of_the_rules_are_1_to_13() {
    let numbers: Vec<u8> = InsightRule::ALL.iter().map(|rule| rule.number()).collect();
    assert_eq!(numbers, (1..=13).collect::<Vec<u8>>());
}
