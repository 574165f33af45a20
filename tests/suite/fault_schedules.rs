//! Seeded schedules: whole nodes under faults converge, lose nothing, leak nothing and become idle.
//!
//! `KLNODE_SEEDS` sets the number of seeds; `cargo run --release -p klnode-tests --bin sim` runs
//! more and larger ones, and shrinks failures.

use crate::support::conformance::conforms;
use klnode_tests::schedule::{Plan, Size, Step, UNSWEPT_SEEDS, run};
use quickcheck::{Arbitrary, Gen, QuickCheck};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn seeds() -> u64 {
    std::env::var("KLNODE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(250)
}

#[test]
fn seeded_schedules_converge_lose_nothing_and_leak_nothing() {
    let (next, wrong) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let unswept = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds() || !wrong.lock().unwrap().is_empty() {
                        break;
                    }
                    let plan = Plan::draw(seed, Size::SMALL);
                    let result = run(&plan).and_then(|report| {
                        unswept.lock().unwrap().extend(report.unswept.map(|what| (seed, what)));
                        match seed % 100 {
                            0 => Ok(run(&plan)?.trace == report.trace),
                            _ => Ok(true),
                        }
                    });
                    match result {
                        Ok(true) => {}
                        Ok(false) => {
                            wrong.lock().unwrap().push((seed, "two traces of one seed".into()));
                        }
                        Err(violation) => wrong.lock().unwrap().push((seed, violation.what)),
                    }
                }
            });
        }
    });
    let replay = "cargo run --release -p klnode-tests --bin sim -- --small --seeds 1 --from";
    if let Some((seed, what)) = wrong.into_inner().unwrap().into_iter().next() {
        panic!("seed {seed}: {what}\nto shrink it: {replay} {seed}");
    }
    let unswept = unswept.into_inner().unwrap();
    let most = 1 + seeds() / UNSWEPT_SEEDS;
    assert!(unswept.len() as u64 <= most, "nodes do not release all records in time: {unswept:?}");
}

/// Plans that the property below tries.
const PLANS: u64 = 30;
/// Operations in each of them.
const PLAN_OPERATIONS: usize = 40;

/// The plans come from a fixed seed, so that a run of the gate does not depend on chance; quickcheck
/// shrinks a failing plan and prints its steps.
#[test]
fn arbitrary_plans_with_removals_converge() {
    conforms("C-17");
    #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
    fn converges(plan: Plan) -> Result<bool, String> {
        run(&plan).map(|_| true).map_err(|violation| violation.what)
    }
    let random = Gen::from_size_and_seed(PLAN_OPERATIONS, 31);
    let property = converges as fn(Plan) -> Result<bool, String>;
    QuickCheck::new().rng(random).tests(PLANS).quickcheck(property);
}

#[test]
fn a_smaller_plan_has_a_part_of_the_steps() {
    let plan = Plan::draw(7, Size::SMALL);
    let mut smaller = plan.shrink().peekable();
    assert!(smaller.peek().is_some());
    for less in smaller {
        assert!(less.steps.len() < plan.steps.len());
        assert_eq!((less.seed, less.nodes), (plan.seed, plan.nodes));
    }
}

/// Past failures, minimised: description, seed, number of nodes, steps.
const ONCE_WRONG: [(&str, u64, usize, &[Step]); 11] = [
    (
        "an old copy is restored, and the reader starts again for another reason",
        38,
        7,
        &[
            Step::Copy(3),
            Step::Pass(508),
            Step::Add(3),
            Step::Archive(3, 28_474),
            Step::Pass(459),
            Step::Restore(3, true),
        ],
    ),
    (
        "an old copy restores a block that was lifted since",
        5028,
        3,
        &[Step::Block(1, 17_996), Step::Copy(1), Step::Block(1, 4_356), Step::Restore(1, false)],
    ),
    (
        "a node gets its own old record back, which says nothing about releases",
        1020,
        7,
        &[
            Step::Add(0),
            Step::Pass(700),
            Step::Observe(3, 0),
            Step::Pass(700),
            Step::Ingress(0),
            Step::Observe(3, 0),
            Step::Pass(300),
            Step::Ingress(0),
            Step::Pass(700),
            Step::Observe(3, 0),
            Step::Ingress(5),
        ],
    ),
    (
        "records refused from an older copy's later life no longer exist",
        30_004,
        4,
        &[
            Step::Add(0),
            Step::Copy(3),
            Step::Member(46_011),
            Step::Add(3),
            Step::Pass(106),
            Step::Block(0, 50_323),
            Step::Add(3),
            Step::Add(3),
            Step::Observe(3, 47_787),
            Step::Pass(264),
            Step::Restore(3, true),
        ],
    ),
    (
        "a comparison finds records that an old copy lacks, with one route back",
        400_326,
        4,
        &[
            Step::Pass(238),
            Step::Add(0),
            Step::Pass(332),
            Step::Noise(49, 257, 396),
            Step::Kill(1),
            Step::Pass(265),
            Step::Untag(2, 49_131),
            Step::Pass(337),
            Step::Pass(457),
            Step::Heal,
            Step::Noise(289, 73, 377),
            Step::Pass(292),
            Step::Add(2),
            Step::Pass(527),
            Step::Member(60_548),
            Step::Pass(410),
            Step::Start(1),
            Step::Pass(554),
            Step::Add(1),
            Step::Pass(120),
            Step::Copy(0),
            Step::Observe(0, 8_299),
            Step::Pass(700),
            Step::Restore(0, true),
            Step::Member(36_073),
        ],
    ),
    (
        "no near peer states a creator's distance, and neighbours state it of each other",
        404_117,
        7,
        &[
            Step::Add(2),
            Step::Pass(452),
            Step::Pass(469),
            Step::Member(10_545),
            Step::Pass(118),
            Step::Member(14_389),
            Step::Member(8_979),
            Step::Pass(117),
            Step::Pass(185),
        ],
    ),
    (
        "a peer claims that the creator of a held entry is near, and no sweep follows",
        329,
        6,
        &[
            Step::Add(4),
            Step::Pass(498),
            Step::Pass(428),
            Step::Member(35_809),
            Step::Member(61_543),
            Step::Add(4),
            Step::Pass(504),
        ],
    ),
    (
        "the same, with a changed ingress filter in between",
        430_120,
        6,
        &[
            Step::Add(3),
            Step::Pass(309),
            Step::Observe(4, 3_640),
            Step::Pass(582),
            Step::Add(4),
            Step::Member(13_833),
            Step::Block(0, 19_497),
            Step::Member(35_255),
            Step::Ingress(44_354),
        ],
    ),
    (
        "two nodes become older copies, and the holder may not forward records to either",
        548_205,
        3,
        &[
            Step::Add(1),
            Step::Pass(470),
            Step::Copy(2),
            Step::Member(59_736),
            Step::Observe(2, 12_839),
            Step::Copy(1),
            Step::Pass(428),
            Step::Restore(1, true),
            Step::Restore(2, true),
        ],
    ),
    (
        "a retracted record returns to its author without its payload, before the retraction",
        555_746,
        4,
        &[
            Step::Add(0),
            Step::Pass(214),
            Step::Member(30_068),
            Step::Add(2),
            Step::Add(0),
            Step::Copy(3),
            Step::Add(3),
            Step::Add(2),
            Step::Add(1),
            Step::Pass(434),
            Step::Member(33_131),
            Step::Ingress(62_702),
            Step::Add(1),
            Step::Retract(3, 22_531),
            Step::Pass(437),
            Step::Restore(3, true),
        ],
    ),
    (
        "a removed node becomes an older copy, and later a peer releases what the node had relayed",
        601_312,
        5,
        &[
            Step::Noise(179, 20, 25),
            Step::Add(2),
            Step::Add(2),
            Step::Pass(409),
            Step::Member(24_436),
            Step::Pass(370),
            Step::Add(0),
            Step::Add(1),
            Step::Pass(345),
            Step::Add(4),
            Step::Member(56_016),
            Step::Pass(204),
            Step::Pass(309),
            Step::Add(1),
            Step::Add(0),
            Step::Pass(900),
            Step::Pass(350),
            Step::Add(1),
            Step::Pass(900),
            Step::Pass(3_674),
            Step::Add(2),
            Step::Pass(189),
            Step::Pass(1_705),
            Step::Copy(1),
            Step::Pass(181),
            Step::Edit(0, 43_400),
            Step::Pass(487),
            Step::Archive(1, 22_547),
            Step::Observe(2, 0),
            Step::Pass(900),
            Step::Pass(160),
            Step::Remove(35_780),
            Step::Pass(408),
            Step::Member(48_501),
            Step::Pass(469),
            Step::Pass(380),
            Step::Heal,
            Step::Pass(191),
            Step::Pass(250),
            Step::Restore(1, true),
        ],
    ),
];

/// Past failing seeds that could hardly be minimised: records were sent after all nodes were equal;
/// the oracle required a refusal that was correctly no longer kept; and the whole of the last plan
/// above, which also failed in another way.
const ONCE_WRONG_WHOLE: [u64; 4] = [450_870, 452_723, 510_096, 601_312];

#[test]
fn past_failing_schedules_pass() {
    for (name, seed, nodes, steps) in ONCE_WRONG {
        let plan = Plan { seed, nodes, steps: steps.to_vec() };
        let report = run(&plan).unwrap_or_else(|violation| panic!("{name}: {}", violation.what));
        assert_eq!(report.unswept, None, "{name}");
    }
    for seed in ONCE_WRONG_WHOLE {
        let report = run(&Plan::draw(seed, Size::SMALL));
        let report = report.unwrap_or_else(|violation| panic!("seed {seed}: {}", violation.what));
        assert_eq!(report.unswept, None, "seed {seed}");
    }
}

/// A node restarts, retracts, or becomes an older copy of itself, and writes more: all earlier
/// claims are required in the end. If a new slot leaves out a title of the others, as in one of the
/// breakages, this fails.
#[test]
fn claims_before_a_restart_survive_it() {
    let (kill, start, pass) = (Step::Kill(0), Step::Start(0), Step::Pass(5_000));
    let (add, edit, archive) = (Step::Add(0), Step::Edit(0, 0), Step::Archive(0, 0));
    let (tag, untag, retract) = (Step::Tag(0, 0), Step::Untag(0, 0), Step::Retract(0, 0));
    let restarted = [add, edit, tag, kill, start, archive, pass, kill, start, untag];
    let taken_back = [add, tag, pass, retract, kill, start, edit, kill, start, tag];
    let restored =
        [add, pass, Step::Copy(0), edit, tag, pass, Step::Restore(0, true), edit, pass, archive];
    let private = [Step::AddPrivate(0), add, edit, pass, kill, start, archive];
    for (steps, acknowledged) in
        [(&restarted[..], 5), (&taken_back[..], 5), (&restored[..], 5), (&private[..], 4)]
    {
        for seed in 0..4 {
            let report = run(&Plan { seed, nodes: 3, steps: steps.to_vec() });
            let report = report.unwrap_or_else(|wrong| panic!("{seed}, {steps:?}: {}", wrong.what));
            assert_eq!(report.acknowledged, acknowledged, "{seed}, {steps:?}");
        }
    }
}

/// Records of a later version are set aside: no peer is disconnected, none asks repeatedly, and all
/// converge once they have the same version. A penalty makes the cluster panic, which is a
/// violation.
#[test]
fn a_node_of_a_later_version_does_not_affect_others() {
    let steps = [
        Step::Add(0),
        Step::Pass(2_000),
        Step::WriteAhead(0),
        Step::Add(0),
        Step::Pass(2_000),
        Step::Replace(1),
        Step::Add(0),
        Step::Add(1),
        Step::Observe(2, 0),
        Step::Pass(120_000),
        Step::WriteAhead(1),
        Step::WriteAhead(2),
        Step::Add(2),
        Step::Pass(2_000),
        Step::Replace(1),
        Step::Add(1),
        Step::Pass(2_000),
        Step::Replace(2),
    ];
    for seed in 0..4 {
        let report = run(&Plan { seed, nodes: 3, steps: steps.to_vec() });
        let report = report.unwrap_or_else(|violation| panic!("seed {seed}: {}", violation.what));
        assert_eq!(report.replaced, 3);
        assert!(report.written_ahead > 0, "seed {seed}: none was sent");
    }
}

#[test]
fn a_seed_gives_the_same_plan_and_plans_differ() {
    let plan = |seed| Plan::draw(seed, Size::FULL);
    assert_eq!(plan(7).steps, plan(7).steps);
    assert_ne!(plan(7).steps, plan(8).steps);
    let kinds =
        |of: fn(&Step) -> bool| (0..40).filter(|seed| plan(*seed).steps.iter().any(of)).count();
    // Swarm testing: no kind is in every run, and every kind is in some run.
    for count in [
        kinds(|step| matches!(step, Step::Restore(..))),
        kinds(|step| matches!(step, Step::Jump(..))),
        kinds(|step| matches!(step, Step::Forget(..))),
        kinds(|step| matches!(step, Step::Part(_))),
        kinds(|step| matches!(step, Step::Replace(_))),
        kinds(|step| matches!(step, Step::WriteAhead(_))),
    ] {
        assert!((5..40).contains(&count), "{count} of 40");
    }
}

#[test]
fn every_breakage_still_applies() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut count = 0;
    for patch in std::fs::read_dir(root.join("tests/breakages")).unwrap() {
        let text = std::fs::read_to_string(patch.unwrap().path()).unwrap();
        let path = text.lines().find_map(|line| line.strip_prefix("--- a/")).unwrap();
        let source = std::fs::read_to_string(root.join(path)).unwrap();
        for line in text.lines().filter(|line| !line.starts_with("---")) {
            if let Some(gone) = line.strip_prefix('-') {
                assert!(source.contains(gone), "{path} has no line `{gone}`");
            }
        }
        count += 1;
    }
    assert_eq!(count, 11);
}
