//! Parameters of the replay, as data: the size of the world, the speed at which facts change, and the
//! habits of the agents.

/// Number of nodes of the team.
pub const NODES: usize = 5;
/// The careless nodes: their agents observe badly and report badly.
pub const CARELESS: [usize; 2] = [2, 3];
/// The hostile node, the last one. It is a member like the others.
pub const HOSTILE: usize = 4;

/// Habits of the agents of a node.
#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Probability that an agent without a usable answer solves the problem.
    pub solves: f64,
    /// Probability that a lesson which it writes is wrong.
    pub writes_wrong: f64,
    /// Probability that a lesson is right in one half only: it helps every second time.
    pub writes_half: f64,
    /// Probability that a lesson about a file or a version gets an anchor.
    pub anchors: f64,
    /// Probability that it writes a lesson which the node holds already, in other words.
    pub repeats: f64,
    /// Probability that it reports the opposite of the outcome.
    pub misreports: f64,
    /// Probability that it names the entry that it used.
    pub names_used: f64,
    /// Probability that it takes a hit about another subject for an answer.
    pub mistakes_subject: f64,
    /// Probability that it heeds a warning: a broken anchor, an entry that replaces the hit, or a
    /// confidence below [`Params::doubt_below`].
    pub heeds: f64,
    /// Probability that an agent which was misled says that its lesson replaces the misleading one.
    pub supersedes: f64,
}

/// Habits of agents that observe and report well.
pub const CAREFUL_HABITS: Habits = Habits {
    solves: 0.75,
    writes_wrong: 0.05,
    writes_half: 0.08,
    anchors: 0.6,
    repeats: 0.15,
    misreports: 0.05,
    names_used: 0.85,
    mistakes_subject: 0.01,
    heeds: 0.8,
    supersedes: 0.5,
};

/// Habits of careless agents.
pub const CARELESS_HABITS: Habits = Habits {
    solves: 0.6,
    writes_wrong: 0.20,
    writes_half: 0.20,
    anchors: 0.1,
    repeats: 0.40,
    misreports: 0.25,
    names_used: 0.5,
    mistakes_subject: 0.04,
    heeds: 0.3,
    supersedes: 0.1,
};

/// The size of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    pub days: u32,
    /// Problems per honest node and day.
    pub tasks_per_day: usize,
    /// Changing facts of each of the four kinds.
    pub facts_per_kind: usize,
    /// Facts from the labelled sets, which do not change.
    pub labelled: usize,
    /// Mean time for which a value stays true, in days.
    pub lifetime_days: f64,
    /// Share of the problems for which no entry can be an answer.
    pub unanswerable: f64,
    /// Probability that an agent asks before it works.
    pub asks: f64,
    /// Probability that an agent which solved a problem writes down the lesson.
    pub writes: f64,
    /// Probability that an agent which did not ask confirms an entry instead of writing it again.
    pub confirms: f64,
    /// An agent that heeds warnings ignores an entry with a lower confidence.
    pub doubt_below: f64,
    /// False entries that the hostile node writes each day.
    pub poison_per_day: usize,
    /// True entries of others that the hostile node reports as failed each day.
    pub slander_per_day: usize,
    /// Own entries that the hostile node praises each day, the newest first.
    pub praise_per_day: usize,
    /// The maintenance services run every this many days; they take most of the time of a replay.
    pub maintenance_days: u32,
    /// Age in days from which an entry that never helped counts as junk.
    pub junk_after_days: u32,
    /// Days after a change for which the race between the new and the old fact is watched.
    pub race_days_max: u32,
}

impl Params {
    /// The replay of the table in `docs/internals/proof.md`.
    pub const FULL: Params = Params {
        days: 60,
        tasks_per_day: 6,
        facts_per_kind: 16,
        labelled: 60,
        lifetime_days: 30.0,
        unanswerable: 0.1,
        asks: 0.85,
        writes: 0.7,
        confirms: 0.7,
        doubt_below: 0.4,
        poison_per_day: 2,
        slander_per_day: 4,
        praise_per_day: 10,
        maintenance_days: 4,
        junk_after_days: 30,
        race_days_max: 30,
    };

    /// The replay of the gate: fewer days and facts, so that each fact is asked about as often.
    pub const SMALL: Params = Params {
        days: 20,
        tasks_per_day: 4,
        facts_per_kind: 4,
        labelled: 6,
        lifetime_days: 14.0,
        poison_per_day: 1,
        slander_per_day: 2,
        praise_per_day: 5,
        junk_after_days: 10,
        ..Params::FULL
    };
}

/// Habits of the agents of an honest node.
pub fn habits(node: usize) -> &'static Habits {
    if CARELESS.contains(&node) { &CARELESS_HABITS } else { &CAREFUL_HABITS }
}
