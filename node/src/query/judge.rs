//! From a view to a judgement: gathers what `scoring` asks for.

use crate::store::rows::ViewRow;
use klnode_config::Config;
use klnode_crdt::gcounter::{Counted, Thousandths};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::lww::Register;
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::view::{Counts, State, View};
use klnode_scoring::admission::Decision;
use klnode_scoring::confidence::{self, Author, Cell, Confidence, Standing};
use klnode_scoring::decay::{self, Ageing, Class};
use klnode_scoring::rank::signals::Check;
use klnode_scoring::scan::Severity;
use klnode_scoring::status::{self, Facts, SourceTask, Withdrawal, Writer};
use std::collections::BTreeSet;

/// The numbers of judgement, from the configuration.
#[derive(Clone, Debug)]
pub struct Numbers {
    confidence: confidence::Params,
    status: status::Params,
}

impl Numbers {
    /// Takes them from the configuration.
    pub fn new(config: &Config) -> Self {
        let of = &config.confidence;
        let decay = decay::Params {
            ephemeral_gamma: of.gamma_per_day.ephemeral.get(),
            stable_gamma: of.gamma_per_day.stable.get(),
            permanent_gamma: of.gamma_per_day.permanent.get(),
            archived_gamma: of.gamma_per_day.archived.get(),
            age_days_max: of.decay_age_max.get(),
        };
        Self {
            confidence: confidence::Params {
                prior_alpha: of.prior_alpha.get(),
                prior_beta: of.prior_beta.get(),
                floor: of.floor.get(),
                member_mass_max: of.mass.member_max.get(),
                peer_mass_max: of.mass.peer_max.get(),
                non_members_mass_max: of.mass.non_members_max.get(),
                decay,
            },
            status: status::Params {
                verified_alpha_min: config.status.verified_alpha_min.get(),
                verified_mean_min: config.status.verified_mean_min.get(),
                stale_after_days: config.status.stale_after.get(),
                prediction_errors_min: config.status.stale_prediction_errors_min.get(),
                uses_min: config.status.stale_uses_below.get(),
            },
        }
    }
}

/// How far an entry is believed, and where it stands.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The confidence, with what each author adds.
    pub confidence: Confidence,
    /// The status, with its reason.
    pub standing: status::Standing,
}

pub(super) fn judge(
    view: &View,
    row: &ViewRow,
    mine: &BTreeSet<AuthorId>,
    now: WallTime,
    numbers: &Numbers,
) -> Judged {
    let today = now.day();
    let archived = view.archived_by.iter().filter(|(author, _)| mine.contains(author));
    let archived = archived.map(|(_, stamp)| stamp.wall().day()).min();
    let class = match view.text(Register::DECAY_CLASS) {
        Some("stable") => Class::Stable,
        Some("permanent") => Class::Permanent,
        _ => Class::Ephemeral,
    };
    let ageing = Ageing { class, archived, now: today };
    let cells: Vec<(AuthorId, Vec<Cell>)> =
        view.counts.iter().map(|(author, counts)| (*author, cells(counts, today))).collect();
    let authors: Vec<Author<'_>> = cells
        .iter()
        .map(|(id, cells)| Author { id: *id, standing: standing(*id, mine), cells })
        .collect();
    let confidence = confidence::confidence(&authors, ageing, &numbers.confidence);
    let own_successes = view.counts.iter().filter(|(author, _)| mine.contains(author));
    let newest = |counts: &Counts| counts.successes.iter().map(|cell| cell.age_days).min();
    let revived_days = own_successes.clone().filter_map(|(_, counts)| newest(counts)).min();
    let facts = Facts {
        writer: writer(view, mine),
        withdrawal: match view.state {
            State::Retracted | State::Forgotten => Withdrawal::Retracted,
            _ if archived.is_some() => Withdrawal::Archived,
            _ => Withdrawal::None,
        },
        scan: Severity::Safe,
        admission: Decision::Accept,
        source_task: SourceTask::NotSucceeded,
        local_successes: own_successes
            .map(|(_, counts)| u32::try_from(counts.successes.len()).unwrap_or(u32::MAX))
            .fold(0, u32::saturating_add),
        posterior: confidence.posterior,
        own_posterior: confidence.own,
        predicates: Check::Nothing,
        created: row.first_seen.day(),
        served: None,
        revived: revived_days.map(|days| Day(today.0.saturating_sub(days))),
        prediction_errors: 0,
        uses: 0,
    };
    let standing = status::status(&facts, today, &numbers.status);
    Judged { confidence, standing }
}

/// Until nodes are paired every other author is unknown, and weighs nothing.
fn standing(author: AuthorId, mine: &BTreeSet<AuthorId>) -> Standing {
    if mine.contains(&author) {
        Standing::Own
    } else {
        Standing::NonMember { weight: 0.0, via: author, via_weight: 0.0 }
    }
}

fn writer(view: &View, mine: &BTreeSet<AuthorId>) -> Writer {
    let shown = view.registers.get(&Register::CONTENT).map(|shown| shown.value.author);
    match shown {
        Some(author) if !mine.contains(&author) => Writer::Foreign,
        _ => Writer::Own,
    }
}

fn cells(counts: &Counts, today: Day) -> Vec<Cell> {
    let cell = |counted: &Counted, successes: Thousandths, failures: Thousandths| Cell {
        day: Day(today.0.saturating_sub(counted.age_days)),
        successes,
        failures,
    };
    let none = Thousandths(0);
    let successes = counts.successes.iter().map(|counted| cell(counted, counted.amount, none));
    let failures = counts.failures.iter().map(|counted| cell(counted, none, counted.amount));
    successes.chain(failures).collect()
}
