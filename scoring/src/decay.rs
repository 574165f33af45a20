//! Weight of an observation by its age.
//!
//! Each observation decays from its own day, so that a failure today cannot revive successes of
//! half a year ago. Separate because it is the only place where time acts on evidence; it never
//! changes stored data, since counters only grow.

use klnode_crdt::time::Day;

/// Decay class of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DecayClass {
    /// Transient context: half-life about 34 days.
    #[default]
    Ephemeral,
    /// Core techniques and patterns: half-life about 138 days.
    Stable,
    /// Decisions and invariants: no decay.
    Permanent,
}

impl DecayClass {
    /// The class with this name; `None` for an unknown name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ephemeral" => Some(DecayClass::Ephemeral),
            "stable" => Some(DecayClass::Stable),
            "permanent" => Some(DecayClass::Permanent),
            _ => None,
        }
    }

    /// The name of the class.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DecayClass::Ephemeral => "ephemeral",
            DecayClass::Stable => "stable",
            DecayClass::Permanent => "permanent",
        }
    }
}

/// Parameters of decay; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Fraction of an ephemeral entry's evidence that remains after one day.
    pub ephemeral_gamma: f64,
    /// Fraction of a stable entry's evidence that remains after one day.
    pub stable_gamma: f64,
    /// Fraction of a permanent entry's evidence that remains after one day.
    pub permanent_gamma: f64,
    /// Fraction of any evidence that remains after one day once this node has archived the entry.
    pub archived_gamma: f64,
    /// Class of an entry that names no class, or an unknown one.
    pub class_unnamed: DecayClass,
    /// Age in days after which evidence decays no further: old evidence stays faint but never
    /// vanishes.
    pub age_days_max: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            ephemeral_gamma: 0.98,
            stable_gamma: 0.995,
            permanent_gamma: 1.0,
            archived_gamma: 0.85,
            class_unnamed: DecayClass::Ephemeral,
            age_days_max: 180,
        }
    }
}

impl Params {
    /// The class of an entry, given the class name that it states.
    #[must_use]
    pub fn class(&self, name: Option<&str>) -> DecayClass {
        name.and_then(DecayClass::named).unwrap_or(self.class_unnamed)
    }

    /// Fraction of the evidence of this class that remains after one day.
    #[must_use]
    pub fn gamma(&self, class: DecayClass) -> f64 {
        match class {
            DecayClass::Ephemeral => self.ephemeral_gamma,
            DecayClass::Stable => self.stable_gamma,
            DecayClass::Permanent => self.permanent_gamma,
        }
    }
}

/// Inputs of decay for one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecayInputs {
    /// Decay class of the entry.
    pub class: DecayClass,
    /// Day on which this node archived the entry; `None` if it is not archived now.
    pub archived: Option<Day>,
    /// Current day of the reader.
    pub now: Day,
}

/// Fraction in [0, 1] of an observation of day `cell` that still counts.
///
/// A cell dated in the future counts 0. For an archived entry, days before the archive day use the
/// gamma of the class and later days the archived gamma. Each of the two periods is capped
/// separately; with one cap, archiving would have no effect on evidence that already reached it.
#[must_use]
pub fn weight(cell: Day, ageing: DecayInputs, params: &Params) -> f64 {
    let DecayInputs { class, archived, now } = ageing;
    if cell > now {
        return 0.0;
    }
    // An archive day in the future has no effect yet.
    let archived = archived.filter(|&day| day <= now);
    let lived_until = archived.map_or(now, |day| day.max(cell));
    let lived = power(params.gamma(class), lived_until.days_since(cell), params);
    lived * power(params.archived_gamma, now.days_since(lived_until), params)
}

/// `gamma` to the power of `days`, where `days` is capped at `age_days_max`.
fn power(gamma: f64, days: u32, params: &Params) -> f64 {
    gamma.powf(f64::from(days.min(params.age_days_max)))
}

#[cfg(test)]
mod tests {
    use super::{DecayClass, DecayInputs, Params, weight};
    use klnode_crdt::time::Day;

    const NOW: u32 = 20_000;

    fn check(class: DecayClass, age: i64, archived_ago: Option<i64>, expect: f64) {
        let day = |ago: i64| Day(u32::try_from(i64::from(NOW) - ago).unwrap());
        let ageing = DecayInputs { class, archived: archived_ago.map(day), now: Day(NOW) };
        let given = weight(day(age), ageing, &Params::default());
        assert!(
            (given - expect).abs() < 1e-6,
            "{class:?}, age {age}, archived {archived_ago:?}: {given}, not {expect}"
        );
    }

    #[test]
    fn entries_without_a_known_class_are_ephemeral() {
        for (name, expect) in [
            (None, DecayClass::Ephemeral),
            (Some("ephemeral"), DecayClass::Ephemeral),
            (Some("stable"), DecayClass::Stable),
            (Some("permanent"), DecayClass::Permanent),
            (Some("eternal"), DecayClass::Ephemeral),
        ] {
            assert_eq!(Params::default().class(name), expect, "{name:?}");
        }
        let stable = Params { class_unnamed: DecayClass::Stable, ..Params::default() };
        assert_eq!(stable.class(None), DecayClass::Stable, "the default class is configurable");
        assert_eq!(stable.class(Some("ephemeral")), DecayClass::Ephemeral);
    }

    #[test]
    fn evidence_decays_by_its_class_and_its_own_age() {
        for (class, age, expect) in [
            (DecayClass::Ephemeral, 0, 1.0),
            (DecayClass::Ephemeral, 1, 0.98),
            (DecayClass::Ephemeral, 34, 0.503_137),
            (DecayClass::Stable, 1, 0.995),
            (DecayClass::Stable, 139, 0.498_205),
            (DecayClass::Permanent, 3_000, 1.0),
        ] {
            check(class, age, None, expect);
        }
    }

    #[test]
    fn evidence_decays_no_further_after_180_days() {
        check(DecayClass::Ephemeral, 180, None, 0.026_345);
        check(DecayClass::Ephemeral, 181, None, 0.026_345);
        check(DecayClass::Ephemeral, 5_000, None, 0.026_345);
        check(DecayClass::Stable, 5_000, None, 0.405_653);
    }

    #[test]
    fn a_cell_dated_in_the_future_does_not_count_yet() {
        check(DecayClass::Permanent, -1, None, 0.0);
        check(DecayClass::Permanent, -1, Some(-1), 0.0);
        check(DecayClass::Permanent, 0, None, 1.0);
    }

    #[test]
    fn archived_evidence_decays_faster_from_the_archive_day_on() {
        // Ten days alive, three archived: 0.98^10 · 0.85^3.
        check(DecayClass::Ephemeral, 13, Some(3), 0.817_073 * 0.614_125);
        // Archived today: nothing has changed yet.
        check(DecayClass::Ephemeral, 13, Some(0), 0.769_022);
        // A cell dated after the archive day uses the archived gamma only.
        check(DecayClass::Permanent, 2, Some(30), 0.7225);
        // Archiving still has an effect after the cap of the class is reached.
        check(DecayClass::Stable, 400, Some(1), 0.405_653 * 0.85);
        // An archive mark ahead of the reader's day does not act.
        check(DecayClass::Ephemeral, 1, Some(-5), 0.98);
    }
}
