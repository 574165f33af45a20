//! Schedules: operations and faults of a few nodes, drawn from a seed and kept as data.
//!
//! A [`Plan`] is a list of [`Step`]s. It is drawn by swarm testing: each seed allows a random
//! subset of the kinds of operations and faults, so that a bug that one kind hides behind another
//! shows up too. [`run`] executes a plan on whole nodes and compares the result with an oracle that
//! does not use records; [`shrink`] searches for the smallest part of a plan that still fails.

mod acknowledged_writes;
mod arbitrary_plan;
mod final_checks;
mod oracle;
mod playbooks;
mod run;
mod shrink;

pub use final_checks::UNSWEPT_SEEDS;
pub use run::{Report, Violation, run};
pub use shrink::shrink;

use crate::disk::{Fault, PowerCut};
use crate::test_engine::Seeded;
use klnode_federation::sim::Knobs;

/// One event. Indices are taken modulo the number of nodes or entries, so that any subset of a
/// plan's steps is a valid plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Time passes, in milliseconds.
    Pass(u64),
    /// A node writes an entry for the team.
    Add(usize),
    /// A node writes an entry that no filter releases.
    AddPrivate(usize),
    /// A node changes a title.
    Edit(usize, usize),
    /// A node observes a success.
    Observe(usize, usize),
    /// A node adds a tag of the kind that filters may hold back.
    Tag(usize, usize),
    /// A node removes its tag.
    Untag(usize, usize),
    /// A node archives an entry.
    Archive(usize, usize),
    /// A node retracts its statements about an entry.
    Retract(usize, usize),
    /// A node forgets an entry.
    Forget(usize, usize),
    /// A filter for sent records toggles its tag rule.
    Egress(usize),
    /// A filter for accepted records toggles its tag rule.
    Ingress(usize),
    /// The team's owner lists or unlists a member.
    Member(usize),
    /// The team's owner removes a member, or takes the removal back.
    Remove(usize),
    /// A node writes a playbook for the team, or changes the text of one.
    Write(usize, usize),
    /// A node blocks or unblocks another.
    Block(usize, usize),
    /// A process is killed, and restarts later.
    Kill(usize),
    /// A killed process restarts.
    Start(usize),
    /// The power is cut after this many disk calls, while the node works; unsynced writes may be
    /// lost.
    PowerCut(usize, u64, PowerCut),
    /// Every n-th writing call of a disk fails.
    Fail(usize, u64, Fault),
    /// The disk works again.
    Mend(usize),
    /// A home is copied.
    Copy(usize),
    /// A home is replaced by its copy; or the two alternate, if the flag is set.
    Restore(usize, bool),
    /// A clock jumps by this many milliseconds.
    Jump(usize, i64),
    /// A clock stops.
    Freeze(usize),
    /// The clock continues.
    Thaw(usize),
    /// The nodes in this bit mask are disconnected from the others.
    Part(u64),
    /// All links work again.
    Heal,
    /// Messages are lost, duplicated and reordered, in thousandths.
    Noise(u32, u32, u32),
    /// A node's program is replaced with one of another protocol version, or back.
    Replace(usize),
    /// A node sends a record of a format that no other node knows.
    WriteAhead(usize),
}

/// A schedule to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Seed from which the plan was drawn.
    pub seed: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Events, in order.
    pub steps: Vec<Step>,
}

/// Size of the drawn plans.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Approximate number of operations.
    pub operations: u64,
    /// Approximate number of faults.
    pub faults: u64,
}

impl Size {
    /// Size that the reliability page refers to.
    pub const FULL: Self = Self { operations: 200, faults: 50 };
    /// Size for the gate of a commit.
    pub const SMALL: Self = Self { operations: 60, faults: 15 };
}

/// One month in milliseconds.
const JUMP_MS_MAX: u64 = 30 * 24 * 60 * 60 * 1_000;

impl Plan {
    /// Draws a plan.
    pub fn draw(seed: u64, size: Size) -> Self {
        let mut random = Seeded(seed ^ 0x5EED_0FA9_C4ED);
        let nodes = 3 + random.below(5) as usize;
        // Each run allows its own subset of operations and faults.
        let (operations, faults) = (random.next_u64() | 1, random.next_u64());
        let mut steps = Vec::new();
        for number in 0..size.operations + size.faults {
            let is_fault = random.below(size.operations + size.faults) < size.faults;
            match is_fault {
                true => steps.extend(fault(&mut random, faults, nodes)),
                false => steps.push(operation(&mut random, operations, nodes)),
            }
            if number % 2 == 0 {
                steps.push(Step::Pass(random.below(600)));
            }
        }
        Self { seed, nodes, steps }
    }
}

fn operation(random: &mut Seeded, allowed: u64, nodes: usize) -> Step {
    let at = random.below(nodes as u64) as usize;
    let of = random.below(1 << 16) as usize;
    let drawn = random.below(23);
    if allowed >> (drawn % 16) & 1 == 0 {
        return if drawn.is_multiple_of(3) { Step::Add(at) } else { Step::Observe(at, of) };
    }
    match drawn {
        0..3 => Step::Add(at),
        3 => Step::AddPrivate(at),
        4..7 => Step::Observe(at, of),
        7..9 => Step::Edit(at, of),
        9 | 10 => Step::Tag(at, of),
        11 => Step::Untag(at, of),
        12 => Step::Archive(at, of),
        13 => Step::Retract(at, of),
        14 => Step::Forget(at, of),
        15 => Step::Egress(of),
        16 => Step::Ingress(of),
        17 => Step::Member(of),
        18 => Step::Block(at, of),
        20 => Step::Remove(of),
        21 | 22 => Step::Write(at, of),
        _ => Step::Pass(random.below(5_000)),
    }
}

fn fault(random: &mut Seeded, allowed: u64, nodes: usize) -> Vec<Step> {
    let at = random.below(nodes as u64) as usize;
    let drawn = random.below(16);
    let cut = PowerCut::ALL[random.below(PowerCut::ALL.len() as u64) as usize];
    let (one, two, three) = (random.next_u64(), random.below(2), random.below(501) as u32);
    let of = (one % (1 << 16)) as usize;
    if allowed >> drawn & 1 == 0 {
        return Vec::new();
    }
    let step = match drawn {
        0 => Step::Kill(at),
        1 => Step::Start(at),
        2 => Step::PowerCut(at, one % 60, cut),
        3 | 11 => Step::Copy(at),
        4 => Step::Restore(at, two == 0),
        12 => return two_lives(at, of, two == 0),
        5 => Step::Jump(at, (one % (2 * JUMP_MS_MAX)).cast_signed() - JUMP_MS_MAX.cast_signed()),
        6 if two == 0 => Step::Freeze(at),
        6 => Step::Thaw(at),
        7 => Step::Part(one),
        8 | 9 => Step::Heal,
        13 => Step::Replace(at),
        14 => Step::WriteAhead(at),
        15 => return failing_disk(at, (at + 1 + of % (nodes - 1)) % nodes, one),
        _ => Step::Noise((one % 301) as u32, three, (one >> 32) as u32 % 501),
    };
    vec![step]
}

/// A home is copied, continues and is seen by others, is replaced by its copy, and continues before
/// it receives anything: both lives have counted one entry, from the same number on.
fn two_lives(at: usize, of: usize, is_swap: bool) -> Vec<Step> {
    let observe = Step::Observe(at, of);
    let restore = Step::Restore(at, is_swap);
    vec![observe, Step::Copy(at), observe, Step::Pass(700), restore, observe]
}

/// A disk fails intermittently while other nodes continue; then it works again.
fn failing_disk(at: usize, other: usize, random: u64) -> Vec<Step> {
    let fault = Fault::ALL[(random >> 32) as usize % Fault::ALL.len()];
    let fail = Step::Fail(at, 1 + random % 9, fault);
    let of = (random >> 16) as usize % 8;
    let said = [Step::Add(other), Step::Observe(other, of), Step::Observe(at, of)];
    [&[fail], &said[..], &[Step::Pass(900), Step::Mend(at)]].concat()
}

/// Network settings of [`Step::Noise`].
fn noise(loss: u32, duplication: u32, reordering: u32) -> Knobs {
    let (latency_ms, reordering_ms_max) = (1..=40, 2_000);
    Knobs { latency_ms, loss, duplication, reordering, reordering_ms_max }
}
