//! Power cuts at every point of a load, also during recovery: acknowledged writes survive.
//!
//! `KLNODE_IMAGES` sets the number of crash images; `docs/internals/benchmarks.md` has the longest
//! run.

use klnode_tests::disk::{Disk, PowerCut};
use klnode_tests::seeded_writes::{Model, acknowledge, next_group, observed};
use klnode_tests::test_engine::{Node, START, Seeded};

/// The model after each acknowledged group, with the number of disk calls made by then.
struct Run {
    disk: Disk,
    acknowledged: Vec<(u64, Model)>,
}

fn run(seed: u64, groups: usize) -> Run {
    let mut random = Seeded(seed);
    let mut node = Node::start(1, seed);
    let disk = node.medium.disk();
    disk.record();
    let mut model = Model::new();
    let mut acknowledged = vec![(disk.counts().calls(), model.clone())];
    for _ in 0..groups {
        let group = next_group(&mut random, &model);
        for (command, answer) in group.iter().zip(node.engine.step(&group, node.now)) {
            acknowledge(&mut model, command, &answer.expect("a healthy disk"));
        }
        acknowledged.push((disk.counts().calls(), model.clone()));
    }
    drop(node);
    Run { disk, acknowledged }
}

/// Opens an image; sometimes the power is cut again during the recovery.
fn open(image: &Disk, random: &mut Seeded) -> Node {
    let mut image = image.fork();
    for _ in 0..random.below(3) {
        image.crash_at_call(random.below(12));
        let opened = Node::start_on(image.clone(), 1, random.next_u64(), START);
        if opened.is_ok() && !image.is_dark() {
            break;
        }
        drop(opened);
        image = image.crash_image(cut(random), random.next_u64());
    }
    Node::start_on(image.fork(), 1, random.next_u64(), START).expect("every image opens")
}

fn cut(random: &mut Seeded) -> PowerCut {
    PowerCut::ALL[random.below(PowerCut::ALL.len() as u64) as usize]
}

#[test]
fn every_acknowledged_write_survives_a_power_cut_and_every_image_opens() {
    let images: u64 =
        std::env::var("KLNODE_IMAGES").ok().and_then(|images| images.parse().ok()).unwrap_or(600);
    let mut tried = 0;
    for seed in 0.. {
        let run = run(seed, 30);
        let mut random = Seeded(seed ^ 0xC0FFEE);
        let (first, last) = (run.acknowledged[0].0, run.disk.counts().calls());
        for _ in 0..100 {
            if tried == images {
                return;
            }
            tried += 1;
            let at = first + random.below(last - first + 1);
            let kind = cut(&mut random);
            let image = run.disk.crash_image_at(at, kind, random.next_u64());
            let done = run.acknowledged.partition_point(|(calls, _)| *calls <= at) - 1;
            let node = open(&image, &mut random);
            let found = observed(&node);
            let pending = run.acknowledged.get(done + 1);
            let is_whole = found == run.acknowledged[done].1
                || pending.is_some_and(|(_, model)| found == *model);
            assert!(
                is_whole,
                "seed {seed}, call {at}, {kind:?}: acknowledged {:?}, found {found:?}",
                run.acknowledged[done].1,
            );
            let damage = node.engine.store().snapshot().unwrap().check().unwrap();
            assert!(damage.is_empty(), "seed {seed}, call {at}, {kind:?}: {damage:?}");
        }
    }
}

#[test]
fn a_node_continues_to_write_after_a_power_cut() {
    let run = run(7, 20);
    let mut random = Seeded(7);
    let image = run.disk.crash_image(PowerCut::DropAll, 1);
    let mut node = open(&image, &mut random);
    let entry = node.create("after the cut");
    node.succeed(entry);
    let node = node.restart(99);
    assert_eq!(node.successes(entry), 1);
}
