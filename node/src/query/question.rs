//! What is asked, and what is answered.

use super::{Found, WeightsFrom};
use crate::index::document::Filter;
use crate::index::meaning::Progress;
use crate::store::rows::Seq;
use klnode_crdt::ids::{EntryId, WorkspaceId};
use klnode_crdt::kind::Kind;
use klnode_crdt::time::{Day, WallTime};
use klnode_scoring::budget::{Form, Reason, Tier};
use klnode_scoring::rank::{Placed, Weights};
use klnode_scoring::relevance::Relevance;
use klnode_scoring::role::{Course, Role};
use klnode_scoring::status::Status;
use klnode_scoring::thompson::Sampling;
use klnode_scoring::weakness::Sketch;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// Which engine finds candidates. All but the first are for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Engine {
    /// Words and meaning, fused.
    #[default]
    Hybrid,
    /// Words alone.
    Keyword,
    /// Meaning alone.
    Vectors,
    /// Words and meaning, each scaled to what was found, in equal parts.
    Equal,
}

impl Engine {
    /// All engines with their names.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Hybrid, "hybrid"),
        (Self::Keyword, "keyword"),
        (Self::Vectors, "vectors"),
        (Self::Equal, "equal"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(engine, _)| *engine == self).map_or("hybrid", |(_, name)| name)
    }
}

/// Who the answer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Audience {
    /// A program or an agent: only what may speak unasked.
    #[default]
    Gated,
    /// A person at a terminal, who sees everything with its labels.
    All,
}

/// Which threads' entries may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ThreadScope {
    /// Those of the caller's thread, beside entries of no thread.
    #[default]
    Own,
    /// Those of every thread.
    All,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Question {
    /// What is asked.
    pub text: String,
    /// At most so many hits.
    pub hits_max: usize,
    /// How much of each.
    pub tier: Tier,
    /// How many tokens all together may take; none for a person at a terminal.
    pub tokens_max: Option<u32>,
    /// What the caller is doing.
    pub role: Option<Role>,
    /// Whether an executor keeps to the plan.
    pub course: Course,
    /// Which entries may answer.
    pub filter: Filter,
    /// The workspace the caller is in: its entries are preferred. The current one unless given.
    pub workspace: Option<WorkspaceId>,
    /// The caller's thread: its entries are preferred.
    pub thread: Option<String>,
    /// Whether entries of other threads may answer, too.
    pub thread_scope: ThreadScope,
    /// Statuses that take part beside those that always do.
    pub also: Vec<Status>,
    /// Who the answer is for.
    pub audience: Audience,
    /// How confidence becomes a signal.
    pub sampling: Sampling,
    /// What finds candidates.
    pub engine: Engine,
    /// Where the caller is: what entries depend on is looked at in the checkout there.
    pub checkout: Option<PathBuf>,
    /// Versions of entries that the caller has already: they are no hits.
    pub known: BTreeMap<EntryId, String>,
}

impl Question {
    /// Whether an entry of this thread may answer. A filter by thread asks for that thread.
    pub(super) fn serves_thread(&self, thread: &str) -> bool {
        let is_asked_for = self.thread_scope == ThreadScope::All || self.filter.thread.is_some();
        is_asked_for || self.thread.as_deref() == Some(thread)
    }

    /// A question for a person, with nothing else given.
    pub fn new(text: impl Into<String>, hits_max: usize) -> Self {
        Self {
            text: text.into(),
            hits_max,
            tier: Tier::Auto,
            tokens_max: None,
            role: None,
            course: Course::AsPlanned,
            filter: Filter::default(),
            workspace: None,
            thread: None,
            thread_scope: ThreadScope::Own,
            also: Vec::new(),
            audience: Audience::All,
            sampling: Sampling::Mean,
            engine: Engine::Hybrid,
            checkout: None,
            known: BTreeMap::new(),
        }
    }
}

/// What must be said along with a hit.
#[derive(Clone, Debug, PartialEq)]
pub enum Caveat {
    /// Not served for long.
    Stale,
    /// Put away.
    Archived,
    /// Several authors say different things in these registers.
    Contested(Vec<&'static str>),
    /// Something it depends on is broken in the caller's checkout.
    Broken {
        /// What.
        atom: String,
        /// Why, without a word of what a file says.
        reason: String,
    },
    /// Something it depends on could not be told in the caller's checkout.
    Unknown {
        /// What.
        atom: String,
        /// Why.
        reason: String,
    },
    /// So many more things that others say it depends on are broken there.
    OthersBroken(usize),
    /// So many more things that others say it depends on could not be told there.
    OthersUnknown(usize),
    /// What it depends on was not looked at.
    Unchecked,
    /// These registers have no value but one that is dated ahead of this node's clock.
    Early(Vec<&'static str>),
    /// It comes from work that failed.
    FailedWork,
    /// It comes from work that nobody finished.
    AbandonedWork,
    /// Another hit says the opposite; which of the two is listed first, and why.
    CompetesWith {
        /// The other.
        entry: EntryId,
        /// Its citation code.
        code: String,
        /// Its title: an author's words, which no answer may show outside of a quotation.
        title: String,
        /// The mean of its confidence, where it was read.
        mean: Option<f64>,
        /// Whether this one is listed before it.
        is_first: bool,
        /// Why this one is listed where it is.
        why: String,
    },
    /// Upkeep has found that another entry says the opposite, and nobody has settled it.
    ContradictedBy {
        /// Which.
        entry: EntryId,
        /// Its citation code. A caveat stands outside what is quoted: no word of the other is in it.
        code: String,
    },
    /// So many more say the opposite.
    MoreContradict(usize),
    /// Another entry takes its place.
    SupersededBy {
        /// Which.
        entry: EntryId,
        /// Its citation code.
        code: String,
    },
    /// It stands for so many more that say the same.
    Merged(usize),
    /// So many claims by authors whose word is not shown.
    Proposals(usize),
    /// What others than the author of the text have put beside it: so many tags, and citations.
    OfOthers {
        /// Tags.
        tags: usize,
        /// Citations.
        citations: usize,
    },
    /// There is no room in a hit for so many more tags and citations.
    LeftOut {
        /// Tags.
        tags: usize,
        /// Citations.
        citations: usize,
    },
    /// Somebody else wrote the text.
    Foreign {
        /// What the author is called here.
        by: String,
    },
    /// Nobody here, and too few trusted members, have seen it work.
    Uncorroborated,
}

impl fmt::Display for Caveat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => out.write_str("stale"),
            Self::Archived => out.write_str("archived"),
            Self::Contested(registers) => write!(out, "contested: {}", registers.join(", ")),
            // Somebody wrote the atom: it stands between quotation marks, and nothing in it ends them.
            Self::Broken { atom, reason } => write!(out, "broken: {atom:?} ({reason})"),
            Self::Unknown { atom, reason } => {
                write!(out, "could not be checked: {atom:?} ({reason})")
            }
            Self::OthersBroken(count) => {
                write!(out, "broken: {count} more that others say it depends on")
            }
            Self::OthersUnknown(count) => {
                write!(out, "could not be checked: {count} more that others say it depends on")
            }
            Self::Early(registers) => {
                write!(out, "dated ahead of this node's clock: {}", registers.join(", "))
            }
            Self::Unchecked => out.write_str("what it depends on was not checked"),
            Self::FailedWork => out.write_str("from work that failed"),
            Self::AbandonedWork => out.write_str("from work that was abandoned"),
            Self::CompetesWith { code, why, .. } => write!(out, "competes with {code}: {why}"),
            Self::ContradictedBy { code, .. } => write!(out, "contradicted by {code}"),
            Self::MoreContradict(count) => write!(out, "contradicted by {count} more"),
            Self::SupersededBy { code, .. } => write!(out, "superseded by {code}"),
            Self::Merged(count) => write!(out, "stands for {count} more that say the same"),
            Self::Proposals(1) => out.write_str("1 proposal by others"),
            Self::Proposals(count) => write!(out, "{count} proposals by others"),
            Self::OfOthers { tags, citations } => {
                write!(out, "{} of others", more(*tags, *citations))
            }
            Self::LeftOut { tags, citations } => {
                write!(out, "left out here: {}", more(*tags, *citations))
            }
            Self::Foreign { by } => write!(out, "foreign: by {by}"),
            Self::Uncorroborated => out.write_str("uncorroborated: nobody here has seen it work"),
        }
    }
}

/// So many more tags, and citations.
fn more(tags: usize, citations: usize) -> String {
    let more = |count: usize, name: &str| match count {
        0 => None,
        1 => Some(format!("1 more {name}")),
        count => Some(format!("{count} more {name}s")),
    };
    let parts = [more(tags, "tag"), more(citations, "citation")];
    parts.into_iter().flatten().collect::<Vec<String>>().join(" and ")
}

/// One hit.
#[derive(Clone, Debug)]
pub struct Hit {
    /// The entry, read and judged.
    pub found: Found,
    /// Its type.
    pub kind: Option<Kind>,
    /// Its place and what led to it.
    pub placed: Placed,
    /// How relevant it is, and through what.
    pub relevance: Relevance,
    /// What the role's preference added.
    pub role_bonus: f64,
    /// What being of the caller's workspace added.
    pub place_bonus: f64,
    /// What weak answers to similar questions took from the score that orders the hits.
    pub demotion: f64,
    /// How much of it is shown.
    pub form: Form,
    /// That much of its content.
    pub body: String,
    /// What that costs, in tokens; nothing for what only came near.
    pub tokens: u32,
    /// When it was last confirmed independently by somebody who counts here; none if never.
    pub confirmed: Option<Day>,
    /// What must be said along with it.
    pub caveats: Vec<Caveat>,
}

/// Why words alone had to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// What answered.
    pub engine: Engine,
    /// Why.
    pub reason: String,
}

/// Why there are no hits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Abstained {
    /// Checked, and nothing relevant.
    NothingRelevant {
        /// How surely there was an answer, in [0, 1].
        score: f64,
        /// What it would have had to reach.
        score_min: f64,
    },
    /// Nothing that may answer is what was asked for: no words would find anything.
    NothingFits,
    /// An executor that keeps to the plan is left alone.
    NotAsked,
    /// The question has no words.
    NoWords,
    /// The node holds nothing yet.
    Empty,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was found, best first.
    pub hits: Vec<Hit>,
    /// Why there is nothing.
    pub abstained: Option<Abstained>,
    /// What came nearest when that was not enough.
    pub nearest: Vec<Hit>,
    /// What was found and did not fit.
    pub left_out: Vec<(EntryId, Reason)>,
    /// How much would have been relevant and may not speak unasked, as far as it was met: by number
    /// alone, since whoever is answered is to read nothing of it.
    pub withheld: usize,
    /// How many would have been relevant and belong to another thread.
    pub other_threads: usize,
    /// Why words alone had to do.
    pub fallback: Option<Fallback>,
    /// The weights of the signals.
    pub weights: Weights,
    /// Who decided them.
    pub weights_from: WeightsFrom,
    /// What the hits cost, in tokens.
    pub tokens: u64,
    /// The state of the store that was read.
    pub head: Seq,
    /// When.
    pub as_of: WallTime,
    /// Records that were read from the store itself because the index did not have them yet.
    pub index_lag: u64,
    /// Vectors are being made.
    pub rebuild: Option<Progress>,
    /// Whether the first hit is hardly relevant.
    pub is_weak: bool,
    /// The telling words of the question.
    pub sketch: Sketch,
}
