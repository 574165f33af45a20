//! Effects of an observation besides the counter: the bonus for a success after a decline, the peak
//! of α, and clearing staleness.
//!
//! All of this is local. The peak of α includes only this person's observations, so no other author
//! can raise the bonus of a success here.

use super::auto_archive::SupportingEvidence;
use super::command::{Receipt, Rejection};
use super::record_intake::Transaction;
use klnode_crdt::entry_view::{Entitlement, EntryView};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::register::Register;
use klnode_crdt::tally::Observation;
use klnode_scoring::confidence::{self, Author, AuthorRelation, Cell};
use klnode_scoring::credit;
use klnode_scoring::decay::{DecayClass, DecayInputs};
use klnode_store::row_types::{CallerRow, UseRow, VoiceRow, VoicesRow};
use klnode_store::{Batch, Error};
use std::collections::BTreeSet;

/// State of an entry before an observation.
pub(super) struct PriorState {
    /// The entry as this node sees it; `None` while its origin is missing.
    pub(super) view: Option<EntryView>,
    class: DecayClass,
    /// α from this person's observations only.
    alpha: f64,
}

impl Transaction<'_> {
    /// The entry as this node sees it; `None` while its origin is missing.
    pub(super) fn view(&self, batch: &Batch, entry: EntryId) -> Result<Option<EntryView>, Error> {
        let held = batch.entry(entry)?;
        let Some(origin) = &held.origin else { return Ok(None) };
        let members = match origin.workspace().is_personal() {
            true => BTreeSet::new(),
            false => batch.entitled(origin.workspace(), self.now)?,
        };
        let entitlement = Entitlement { mine: self.writer.mine.clone(), members };
        Ok(Some(held.view(self.now, &entitlement)))
    }

    /// Returns the current state of an entry.
    pub(super) fn before(&self, batch: &Batch, entry: EntryId) -> Result<PriorState, Error> {
        let view = self.view(batch, entry)?;
        let named = view.as_ref().and_then(|view| view.text(Register::DECAY_CLASS));
        let class = self.writer.tasks.confidence.decay.class(named);
        let alpha = view.as_ref().map_or(0.0, |view| self.own_alpha(view, class));
        Ok(PriorState { view, class, alpha })
    }

    /// α from the observations of this node and the person's other nodes.
    fn own_alpha(&self, view: &EntryView, class: DecayClass) -> f64 {
        let (today, mine) = (self.now.day(), &self.writer.mine);
        let archived = view.archived.map(|stamp| stamp.wall().day());
        let own = view.counts.iter().filter(|(author, _)| mine.contains(author));
        let cells: Vec<(AuthorId, Vec<Cell>)> =
            own.map(|(author, counts)| (*author, confidence::cells(counts, today))).collect();
        let authors: Vec<Author<'_>> = cells
            .iter()
            .map(|(id, cells)| Author { id: *id, standing: AuthorRelation::Own, cells })
            .collect();
        let ageing = DecayInputs { class, archived, now: today };
        let params = &self.writer.tasks.confidence;
        confidence::confidence(&authors, ageing, params).own.alpha()
    }

    /// Returns the amount to count: a success of an entry with a much higher earlier peak gets a
    /// bonus.
    pub(super) fn with_restoration(
        &self,
        batch: &Batch,
        entry: EntryId,
        before: &PriorState,
        (of, amount): (Observation, Thousandths),
    ) -> Result<Thousandths, Error> {
        let Some(peak) = batch.uses(entry)?.alpha_peak.filter(|_| of == Observation::Success)
        else {
            return Ok(amount);
        };
        let peak = Thousandths(peak).observations();
        let params = &self.writer.tasks.outcome;
        let more = credit::restoration(before.class, before.alpha, peak, params);
        Ok(Thousandths(amount.0.saturating_add(more.0)))
    }

    /// Counts a use of the entry and updates its peak of α. A success or confirmation clears its
    /// prediction errors.
    pub(super) fn note_observed(
        &self,
        batch: &Batch,
        entry: EntryId,
        before: &PriorState,
        (of, amount): (Observation, Thousandths),
    ) -> Result<(), Error> {
        if of == Observation::Failure {
            return Ok(());
        }
        let uses = batch.uses(entry)?;
        let mut after = uses.without_prediction_errors();
        if of == Observation::Success {
            let alpha = Thousandths::nearest(before.alpha + amount.observations()).0;
            after.used = uses.used.saturating_add(1);
            after.alpha_peak = uses.alpha_peak.max(Some(alpha));
        }
        if after == uses { Ok(()) } else { batch.put_uses(entry, after) }
    }

    /// Counts an observation made outside any task. Repetitions by the same caller on the same day
    /// are logged but not counted, because they cannot be told from echoes.
    pub(super) fn observe_outside(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        (of, amount): (Observation, Thousandths),
    ) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        // Without a caller there is no repetition to detect. A caller of whom nothing is known
        // counts as one caller.
        let caller = self.caller.filter(|_| of != Observation::Confirmation);
        let verdict =
            caller.map(|caller| self.count_voice(batch, entry, caller, of)).transpose()?;
        let receipt = match verdict {
            Some((_, VoiceVerdict::Repeated)) => Receipt::Noted,
            _ => self.observe(batch, entry, (of, amount), None)?,
        };
        if let Some((voices, _)) = verdict {
            let at = first_of_group(batch, entry)?;
            let uses = batch.uses(at)?;
            batch.put_uses(at, UseRow { voices: Some(voices), ..uses })?;
        }
        if receipt != Receipt::Noted {
            self.count_use(batch, entry, of, None)?;
            self.note_feedback(batch, entry, of, None)?;
            if of == Observation::Success {
                // The success supports all duplicates, whichever of them was served.
                for one in batch.group(entry)? {
                    Error::unless_damaged(self.note_support(batch, one, SupportingEvidence::Use))?;
                    Error::unless_damaged(clear_errors(batch, one))?;
                }
            }
        }
        Ok(receipt)
    }

    /// Adds a caller's observation to today's tally for the entry, and returns the tally with
    /// whether the observation counts.
    fn count_voice(
        &self,
        batch: &Batch,
        entry: EntryId,
        caller: CallerRow,
        of: Observation,
    ) -> Result<(VoicesRow, VoiceVerdict), Error> {
        let day = self.now.day();
        let at = first_of_group(batch, entry)?;
        let known = batch.uses(at)?.voices.filter(|voices| voices.day == day);
        let mut voices = known.unwrap_or(VoicesRow { day, ..VoicesRow::default() });
        let is_caller = |voice: &Option<VoiceRow>| voice.is_some_and(|one| one.uid == caller.uid);
        let place = voices.of.iter().position(is_caller);
        let place = place.or_else(|| voices.of.iter().position(Option::is_none));
        let Some(place) = place else { return Ok((voices, VoiceVerdict::Repeated)) };
        let voice =
            voices.of[place].get_or_insert(VoiceRow { uid: caller.uid, ..VoiceRow::default() });
        let said = match of {
            Observation::Failure => &mut voice.failures,
            _ => &mut voice.successes,
        };
        *said = said.saturating_add(1);
        let counts = *said <= self.writer.tasks.outside_per_day_max;
        Ok((voices, if counts { VoiceVerdict::Counts } else { VoiceVerdict::Repeated }))
    }
}

/// Duplicates share one tally, kept on the entry with the smallest id.
fn first_of_group(batch: &Batch, entry: EntryId) -> Result<EntryId, Error> {
    Ok(batch.group(entry)?.into_iter().min().unwrap_or(entry))
}

/// Clears an entry's prediction errors.
fn clear_errors(batch: &Batch, entry: EntryId) -> Result<(), Error> {
    let uses = batch.uses(entry)?;
    let after = uses.without_prediction_errors();
    if after == uses { Ok(()) } else { batch.put_uses(entry, after) }
}

/// How an observation outside a task is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VoiceVerdict {
    /// The observation is within the daily limit and counts.
    Counts,
    /// The observation is a repetition and does not count.
    Repeated,
}
