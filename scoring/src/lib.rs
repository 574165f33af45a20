//! How klnode judges what it holds: pure functions, each with its reasons as data.
//!
//! Every judgement is local. A score, a status or a trust value is computed where it is needed,
//! from records and from the node's own ledger, and is never sent to a peer nor merged. Time,
//! seeds and every number of a rule come in as arguments; nothing here reads a clock, draws
//! randomness, touches a file or a socket, or depends on the order of a hash map.
//!
//! Each rule is one function beside its `Params`, whose `Default` is the documented default, and
//! each answer carries what led to it, so that no number has to be taken on faith.
//!
//! | module | the question it answers |
//! |---|---|
//! | [`decay`] | how much does an observation of that day still weigh? |
//! | [`posterior`] | what do so many successes and failures say? |
//! | [`confidence`] | how far is an entry believed, and through whom? |
//! | [`outcome`] | what does the end of a task add, and to which entries? |
//! | [`finding`], [`compounding`] | what must a finding hold, and is it knowledge or an echo? |
//! | [`hop`], [`trust`] | how far away is an author, how far trusted, and what does that weigh? |
//! | [`thompson`] | which sample of its confidence does an entry get for this query? |
//! | [`cooccurrence`] | how strongly do two entries belong together? |
//! | [`role`] | what does a caller in that role ask for first? |
//! | [`relevance`] | how relevant is a text to a query, and is there an answer at all? |
//! | [`recency`] | how recent is something? |
//! | [`rank`] | in which order do the candidates of a query come? |
//! | [`scan`], [`admission`] | may an entry be retrieved at all? |
//! | [`weakness`] | how far do weak answers to similar questions lower an entry? |
//! | [`status`] | where does an entry stand, and why? |
//! | [`predicate`] | does what an entry depends on still hold in this checkout? |
//! | [`conflict`] | do two entries contradict, and which comes first? |
//! | [`duplicates`] | do two entries say the same, and which of them is shown? |
//! | [`statement`] | are two short texts equal, reworded, or contradictory? |
//! | [`budget`] | how much of which entries fits into an answer? |
//! | [`briefing`] | what of a workspace matters now, without a question? |
//! | [`survey`] | is what the node holds in order? |

pub mod admission;
pub mod briefing;
pub mod budget;
pub mod compounding;
pub mod confidence;
pub mod conflict;
pub mod cooccurrence;
pub mod decay;
pub mod duplicates;
pub mod finding;
pub mod hop;
pub mod outcome;
pub mod posterior;
pub mod predicate;
pub mod rank;
pub mod recency;
pub mod relevance;
pub mod role;
pub mod scan;
pub mod statement;
pub mod status;
pub mod survey;
pub mod thompson;
pub mod trust;
mod unit;
pub mod weakness;
