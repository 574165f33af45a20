//! How much an observation still weighs, by its age.
//!
//! Each observation fades from its own day, so that a failure today cannot revive successes of half
//! a year ago. Separate because it is the only place where time acts on evidence; it never changes
//! what is stored, since counters only grow.

use klnode_crdt::time::Day;

/// How fast an entry's evidence fades.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Class {
    /// Transient context: half is gone after about 34 days.
    #[default]
    Ephemeral,
    /// Core techniques and patterns: half is gone after about 138 days.
    Stable,
    /// Decisions and invariants: never fades by itself.
    Permanent,
}

impl Class {
    /// The class of a name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ephemeral" => Some(Class::Ephemeral),
            "stable" => Some(Class::Stable),
            "permanent" => Some(Class::Permanent),
            _ => None,
        }
    }
}

/// The numbers of decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// What a day leaves of evidence of an ephemeral entry.
    pub ephemeral_gamma: f64,
    /// What a day leaves of evidence of a stable entry.
    pub stable_gamma: f64,
    /// What a day leaves of evidence of a permanent entry.
    pub permanent_gamma: f64,
    /// What a day leaves of any evidence once this node has archived the entry.
    pub archived_gamma: f64,
    /// The class of an entry that names none, or none there is.
    pub class_unnamed: Class,
    /// Days after which evidence fades no further: old evidence is faint, never nothing.
    pub age_days_max: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            ephemeral_gamma: 0.98,
            stable_gamma: 0.995,
            permanent_gamma: 1.0,
            archived_gamma: 0.85,
            class_unnamed: Class::Ephemeral,
            age_days_max: 180,
        }
    }
}

impl Params {
    /// The class of an entry, by the name that it gives.
    #[must_use]
    pub fn class(&self, name: Option<&str>) -> Class {
        name.and_then(Class::named).unwrap_or(self.class_unnamed)
    }

    /// What a day leaves of evidence of this class.
    #[must_use]
    pub fn gamma(&self, class: Class) -> f64 {
        match class {
            Class::Ephemeral => self.ephemeral_gamma,
            Class::Stable => self.stable_gamma,
            Class::Permanent => self.permanent_gamma,
        }
    }
}

/// How an entry ages: its class, when this node archived it, and what day it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ageing {
    /// The decay class of the entry.
    pub class: Class,
    /// The day on which this node archived the entry, if it is archived now.
    pub archived: Option<Day>,
    /// The day of the reader.
    pub now: Day,
}

/// The share that is left of an observation of day `cell`, in [0, 1].
///
/// A cell dated ahead does not count yet. Once archived, the days up to it count with the gamma of
/// the class and the days since with the archived one; each stretch is capped on its own, since
/// otherwise evidence that has reached the cap would not notice that the entry was archived.
#[must_use]
pub fn weight(cell: Day, ageing: Ageing, params: &Params) -> f64 {
    let Ageing { class, archived, now } = ageing;
    if cell > now {
        return 0.0;
    }
    // An archive mark that lies ahead has not begun to act.
    let archived = archived.filter(|&day| day <= now);
    let lived_until = archived.map_or(now, |day| day.max(cell));
    let lived = power(params.gamma(class), lived_until.days_since(cell), params);
    lived * power(params.archived_gamma, now.days_since(lived_until), params)
}

/// `gamma` to the power of `days`, of which at most the maximal age counts.
fn power(gamma: f64, days: u32, params: &Params) -> f64 {
    gamma.powf(f64::from(days.min(params.age_days_max)))
}

#[cfg(test)]
mod tests {
    use super::{Ageing, Class, Params, weight};
    use klnode_crdt::time::Day;

    const NOW: u32 = 20_000;

    fn check(class: Class, age: i64, archived_ago: Option<i64>, expect: f64) {
        let day = |ago: i64| Day(u32::try_from(i64::from(NOW) - ago).unwrap());
        let ageing = Ageing { class, archived: archived_ago.map(day), now: Day(NOW) };
        let given = weight(day(age), ageing, &Params::default());
        assert!(
            (given - expect).abs() < 1e-6,
            "{class:?}, age {age}, archived {archived_ago:?}: {given}, not {expect}"
        );
    }

    #[test]
    fn what_names_no_class_is_ephemeral() {
        for (name, expect) in [
            (None, Class::Ephemeral),
            (Some("ephemeral"), Class::Ephemeral),
            (Some("stable"), Class::Stable),
            (Some("permanent"), Class::Permanent),
            (Some("eternal"), Class::Ephemeral),
        ] {
            assert_eq!(Params::default().class(name), expect, "{name:?}");
        }
        let stable = Params { class_unnamed: Class::Stable, ..Params::default() };
        assert_eq!(stable.class(None), Class::Stable, "unless the operator says otherwise");
        assert_eq!(stable.class(Some("ephemeral")), Class::Ephemeral);
    }

    #[test]
    fn evidence_fades_by_its_class_and_its_own_age() {
        for (class, age, expect) in [
            (Class::Ephemeral, 0, 1.0),
            (Class::Ephemeral, 1, 0.98),
            (Class::Ephemeral, 34, 0.503_137),
            (Class::Stable, 1, 0.995),
            (Class::Stable, 139, 0.498_205),
            (Class::Permanent, 3_000, 1.0),
        ] {
            check(class, age, None, expect);
        }
    }

    #[test]
    fn evidence_fades_no_further_after_180_days() {
        check(Class::Ephemeral, 180, None, 0.026_345);
        check(Class::Ephemeral, 181, None, 0.026_345);
        check(Class::Ephemeral, 5_000, None, 0.026_345);
        check(Class::Stable, 5_000, None, 0.405_653);
    }

    #[test]
    fn a_cell_dated_ahead_does_not_count_yet() {
        check(Class::Permanent, -1, None, 0.0);
        check(Class::Permanent, -1, Some(-1), 0.0);
        check(Class::Permanent, 0, None, 1.0);
    }

    #[test]
    fn archived_evidence_fades_faster_from_the_archive_day_on() {
        // Ten days alive, three archived: 0.98^10 · 0.85^3.
        check(Class::Ephemeral, 13, Some(3), 0.817_073 * 0.614_125);
        // Archived today: nothing has changed yet.
        check(Class::Ephemeral, 13, Some(0), 0.769_022);
        // Written after archiving: archived all its life.
        check(Class::Permanent, 2, Some(30), 0.7225);
        // Past the cap of the class when archived: still notices.
        check(Class::Stable, 400, Some(1), 0.405_653 * 0.85);
        // An archive mark ahead of the reader's day does not act.
        check(Class::Ephemeral, 1, Some(-5), 0.98);
    }
}
