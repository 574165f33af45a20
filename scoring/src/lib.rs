//! Scoring rules of klnode: pure functions, each returning its reasons as data.
//!
//! Every judgement is local. A score, a status or a trust value is computed on demand, from records
//! and from the node's own ledger, and is never sent to a peer nor merged. Time, seeds and every
//! parameter of a rule are arguments; no function here reads a clock, draws randomness, touches a
//! file or a socket, or depends on the order of a hash map.
//!
//! Each rule is one function next to its `Params`, whose `Default` is the documented default. Each
//! result carries the numbers behind it, so that a caller can explain it.
//!
//! | module | the question it answers |
//! |---|---|
//! | [`decay`] | how much does an observation of a given day still weigh? |
//! | [`posterior`] | which rate do these successes and failures indicate? |
//! | [`confidence`] | how much confidence does an entry have, and from which authors? |
//! | [`credit`] | which amounts does a task outcome add, and to which entries? |
//! | [`finding_validation`], [`finding_resolution`] | is a finding valid? is it new evidence? |
//! | [`strict_entry_form`] | has an entry the strict form that a workspace asks for? |
//! | [`lone_finding`] | is the finding of a single agent accepted? |
//! | [`hop`], [`trust`] | how far away is an author, how trusted, and with which weight? |
//! | [`thompson`] | which sample of its confidence does an entry get for this query? |
//! | [`cooccurrence`] | how strongly do two entries belong together? |
//! | [`caller_role`], [`review_namespace`] | which entries does a caller in this role prefer? |
//! | [`relevance`] | how relevant is a text to a query, and is there an answer at all? |
//! | [`recency`] | how recent is a day? |
//! | [`recent_failures`] | has an entry failed here since it last helped? |
//! | [`rank`] | in which order are the candidates of a query listed? |
//! | [`content_scan`], [`admission`] | may an entry be retrieved at all? |
//! | [`weak_answers`] | how far do weak answers to similar questions lower an entry? |
//! | [`status`] | which status does an entry have, and why? |
//! | [`predicate`] | do the anchors of an entry still hold in this checkout? |
//! | [`contradiction`] | do two entries contradict, and which is listed first? |
//! | [`duplicates`] | are two entries duplicates, and which of them is shown? |
//! | [`statement_comparison`] | are two short texts equal, reworded, or contradictory? |
//! | [`token_budget`] | how much of which entries fits into an answer? |
//! | [`briefing`] | which entries of a workspace matter now, without a query? |
//! | [`insight`] | which matters of a workspace need attention, and by which evidence? |
//! | [`labels`] | which labels may be printed with an entry? |
//! | [`git_commit_rule`] | does a commit keep the rules that a norm states? |
//! | [`audit`] | which entries violate rules, and are the health numbers within limits? |

#![warn(missing_docs)]

pub mod admission;
pub mod audit;
pub mod briefing;
pub mod caller_role;
mod clamp_to_unit;
pub mod confidence;
pub mod content_scan;
pub mod contradiction;
pub mod cooccurrence;
pub mod credit;
pub mod decay;
pub mod duplicates;
pub mod finding_resolution;
pub mod finding_validation;
pub mod git_commit_rule;
pub mod hop;
pub mod insight;
pub mod labels;
pub mod lone_finding;
pub mod posterior;
pub mod predicate;
pub mod rank;
pub mod recency;
pub mod recent_failures;
pub mod relevance;
pub mod review_namespace;
pub mod statement_comparison;
pub mod status;
pub mod strict_entry_form;
pub mod thompson;
pub mod token_budget;
pub mod trust;
pub mod weak_answers;
