//! From a view to a judgement: gathers what `scoring` asks for.

use super::numbers::Numbers;
use crate::store::rows::{UseRow, ViewRow};
use klnode_crdt::gcounter::{Counted, Thousandths};
use klnode_crdt::ids::AuthorId;
use klnode_crdt::lww::Register;
use klnode_crdt::time::{Day, WallTime};
use klnode_crdt::view::{Counts, State, View};
use klnode_scoring::admission::Decision;
use klnode_scoring::confidence::{self, Author, Cell, Confidence, Standing};
use klnode_scoring::decay::{Ageing, Class};
use klnode_scoring::rank::signals::Check;
use klnode_scoring::scan::Severity;
use klnode_scoring::status::{self, Facts, SourceTask, Withdrawal, Writer};
use std::collections::BTreeSet;

/// How far an entry is believed, and where it stands.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The confidence, with what each author adds.
    pub confidence: Confidence,
    /// The status, with its reason.
    pub standing: status::Standing,
    /// Whose text is shown.
    pub writer: Writer,
    /// How often it has helped here.
    pub local_successes: u32,
}

pub(super) fn judge(
    view: &View,
    row: &ViewRow,
    uses: &UseRow,
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
        served: (uses.served > 0).then(|| uses.last_served.day()),
        revived: revived_days.map(|days| Day(today.0.saturating_sub(days))),
        prediction_errors: uses.prediction_errors,
        uses: uses.served,
    };
    let standing = status::status(&facts, today, &numbers.status);
    let (writer, local_successes) = (facts.writer, facts.local_successes);
    Judged { confidence, standing, writer, local_successes }
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
