//! What an observation meets and what it leaves behind: the entry as it stood, what a success
//! restores of it, how far it was ever believed, and that it is stale no longer.
//!
//! All of it is local. The peak of α is of own observations alone, so that nobody else can raise what
//! a success here restores.

use super::archive::By;
use super::command::{Receipt, Rejection};
use super::ingest::Ingest;
use crate::store::rows::{CallerRow, UseRow, VoiceRow, VoicesRow};
use crate::store::{Batch, Error};
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::{AuthorId, EntryId};
use klnode_crdt::lww::Register;
use klnode_crdt::tally::Observation;
use klnode_crdt::view::{Entitlement, View};
use klnode_scoring::confidence::{self, Author, Cell, Standing};
use klnode_scoring::decay::{Ageing, Class};
use klnode_scoring::outcome;
use std::collections::BTreeSet;

/// An entry as it stood before an observation.
pub(super) struct Before {
    /// As this node reads it; nothing while it is parked.
    pub(super) view: Option<View>,
    class: Class,
    /// α from own observations alone.
    alpha: f64,
}

impl Ingest<'_> {
    /// An entry as this node reads it; nothing while it is parked.
    pub(super) fn view(&self, batch: &Batch, entry: EntryId) -> Result<Option<View>, Error> {
        let held = batch.entry(entry)?;
        let Some(origin) = &held.origin else { return Ok(None) };
        let members = match origin.workspace().is_personal() {
            true => BTreeSet::new(),
            false => batch.heard_members(origin.workspace(), self.now)?,
        };
        let entitlement = Entitlement { mine: self.writer.mine.clone(), members };
        Ok(Some(held.view(self.now, &entitlement)))
    }

    /// An entry as it stands now.
    pub(super) fn before(&self, batch: &Batch, entry: EntryId) -> Result<Before, Error> {
        let view = self.view(batch, entry)?;
        let named = view.as_ref().and_then(|view| view.text(Register::DECAY_CLASS));
        let class = self.writer.tasks.confidence.decay.class(named);
        let alpha = view.as_ref().map_or(0.0, |view| self.own_alpha(view, class));
        Ok(Before { view, class, alpha })
    }

    /// α from the observations of this node and its person's others.
    fn own_alpha(&self, view: &View, class: Class) -> f64 {
        let (today, mine) = (self.now.day(), &self.writer.mine);
        let archived = view.archived.map(|stamp| stamp.wall().day());
        let own = view.counts.iter().filter(|(author, _)| mine.contains(author));
        let cells: Vec<(AuthorId, Vec<Cell>)> =
            own.map(|(author, counts)| (*author, confidence::cells(counts, today))).collect();
        let authors: Vec<Author<'_>> = cells
            .iter()
            .map(|(id, cells)| Author { id: *id, standing: Standing::Own, cells })
            .collect();
        let ageing = Ageing { class, archived, now: today };
        let params = &self.writer.tasks.confidence;
        confidence::confidence(&authors, ageing, params).own.alpha()
    }

    /// What an observation adds: a success of what was once believed far more adds to itself.
    pub(super) fn restored(
        &self,
        batch: &Batch,
        entry: EntryId,
        before: &Before,
        (of, amount): (Observation, Thousandths),
    ) -> Result<Thousandths, Error> {
        let Some(peak) = batch.uses(entry)?.alpha_peak.filter(|_| of == Observation::Success)
        else {
            return Ok(amount);
        };
        let peak = Thousandths(peak).observations();
        let params = &self.writer.tasks.outcome;
        let more = outcome::restoration(before.class, before.alpha, peak, params);
        Ok(Thousandths(amount.0.saturating_add(more.0)))
    }

    /// Remembers that an entry was used and how far it was believed then. What has helped, or was
    /// confirmed, is no wrong answer any longer.
    pub(super) fn note_observed(
        &self,
        batch: &Batch,
        entry: EntryId,
        before: &Before,
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

    /// Counts what was observed outside any task. Whoever says the same again on the same day is
    /// noted and not counted: nothing tells it from an echo.
    pub(super) fn observe_outside(
        &mut self,
        batch: &Batch,
        entry: EntryId,
        (of, amount): (Observation, Thousandths),
    ) -> Result<Receipt, Rejection> {
        self.must_hold(batch, entry)?;
        // What has no caller is not said by anyone; one of whom nothing is known is a caller.
        let caller = self.caller.filter(|_| of != Observation::Confirmation);
        let heard = caller.map(|caller| self.hear(batch, entry, caller, of)).transpose()?;
        let receipt = match heard {
            Some((_, Heard::Again)) => Receipt::Noted,
            _ => self.observe(batch, entry, (of, amount), None)?,
        };
        if let Some((voices, _)) = heard {
            let at = first_of_group(batch, entry)?;
            let uses = batch.uses(at)?;
            batch.put_uses(at, UseRow { voices: Some(voices), ..uses })?;
        }
        if receipt != Receipt::Noted {
            self.count_use(batch, entry, of, None)?;
            self.note_feedback(batch, entry, of, None)?;
            if of == Observation::Success {
                // It speaks for all that are the same, whichever of them is served.
                for one in batch.group(entry)? {
                    Error::unless_damaged(self.speak_for(batch, one, By::Use))?;
                    Error::unless_damaged(clear_errors(batch, one))?;
                }
            }
        }
        Ok(receipt)
    }

    /// What was said of an entry today, with what a caller says now, and whether that counts.
    fn hear(
        &self,
        batch: &Batch,
        entry: EntryId,
        caller: CallerRow,
        of: Observation,
    ) -> Result<(VoicesRow, Heard), Error> {
        let day = self.now.day();
        let at = first_of_group(batch, entry)?;
        let known = batch.uses(at)?.voices.filter(|voices| voices.day == day);
        let mut voices = known.unwrap_or(VoicesRow { day, ..VoicesRow::default() });
        let is_caller = |voice: &Option<VoiceRow>| voice.is_some_and(|one| one.uid == caller.uid);
        let place = voices.of.iter().position(is_caller);
        let place = place.or_else(|| voices.of.iter().position(Option::is_none));
        let Some(place) = place else { return Ok((voices, Heard::Again)) };
        let voice =
            voices.of[place].get_or_insert(VoiceRow { uid: caller.uid, ..VoiceRow::default() });
        let said = match of {
            Observation::Failure => &mut voice.failures,
            _ => &mut voice.successes,
        };
        *said = said.saturating_add(1);
        let counts = *said <= self.writer.tasks.outside_per_day_max;
        Ok((voices, if counts { Heard::Counts } else { Heard::Again }))
    }
}

/// Entries that say the same have one account of who spoke of them.
fn first_of_group(batch: &Batch, entry: EntryId) -> Result<EntryId, Error> {
    Ok(batch.group(entry)?.into_iter().min().unwrap_or(entry))
}

/// What has helped is no wrong answer any longer.
fn clear_errors(batch: &Batch, entry: EntryId) -> Result<(), Error> {
    let uses = batch.uses(entry)?;
    let after = uses.without_prediction_errors();
    if after == uses { Ok(()) } else { batch.put_uses(entry, after) }
}

/// What is said outside a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    /// For the first time today.
    Counts,
    /// Once more.
    Again,
}
