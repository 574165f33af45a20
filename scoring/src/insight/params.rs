//! The numbers of the rules. They are constants of this version: a rule is documented with them.

/// Numbers of the rules; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Rule 1: α has declined if it is below its peak by more than this share ...
    pub decline_share: f64,
    /// ... and was not before this many days.
    pub decline_days: u32,
    /// Rule 2: two entries contradict each other above this overlap of their tags.
    pub opposed_overlap: f64,
    /// Rule 3: a peer has little trust below this value.
    pub trust_min: f64,
    /// Rule 4: a tag has a gap from this many entries ...
    pub gap_entries: usize,
    /// ... with this many prediction errors each.
    pub gap_errors: u32,
    /// Rule 5: a cluster is stale if every entry has more prediction errors than this.
    pub stale_errors_above: u32,
    /// Rule 6: two entries may be one above this overlap of their tags ...
    pub merge_overlap: f64,
    /// ... and above this overlap of the words of their titles.
    pub merge_title: f64,
    /// Rule 8: a strategy is inefficient if its mean quality is lower than the best by more than
    /// this share ...
    pub strategy_share: f64,
    /// ... of strategies with at least this many tasks.
    pub strategy_tasks: usize,
    /// Rule 9: rounds diminish if at least this many tasks ...
    pub rounds_tasks: usize,
    /// ... had at least this many rounds ...
    pub rounds_min: u32,
    /// ... and a lower quality than this.
    pub rounds_quality: f64,
    /// Rule 10: a task is an outlier if it cost more than this multiple of the median ...
    pub outlier_factor: f64,
    /// ... of at least this many tasks.
    pub outlier_tasks: usize,
    /// Rule 11: too much was spent on successful tasks without a new entry above this share.
    pub barren_share: f64,
    /// Rule 12: numbers of the recommendations about decay.
    pub evaporation: EvaporationParams,
    /// Rule 13: numbers of stagnation.
    pub stagnation: StagnationParams,
}

/// Numbers of rule 12, per tag.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EvaporationParams {
    /// A tag is judged from this many entries.
    pub entries_min: usize,
    /// Faster decay from this mean number of prediction errors ...
    pub errors_high: f64,
    /// ... or from this share of entries that the operator demoted ...
    pub demoted_high: f64,
    /// ... or below this mean confidence of at least `entries_sure` entries.
    pub mean_low: f64,
    /// Slower decay below this mean number of prediction errors ...
    pub errors_low: f64,
    /// ... and from this mean confidence ...
    pub mean_high: f64,
    /// ... and below this share of demoted entries, with at least `entries_sure` entries.
    pub demoted_low: f64,
    /// A judgement by the mean confidence needs this many entries.
    pub entries_sure: usize,
}

/// Numbers of rule 13.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StagnationParams {
    /// Fewer effective pairs of agents are low.
    pub agents_min: f64,
    /// Fewer effective entries are low ...
    pub entries_effective_min: f64,
    /// ... from this many entries.
    pub entries_min: usize,
    /// Fewer effective strategies are low ...
    pub strategies_min: f64,
    /// ... from this many tasks.
    pub tasks_min: usize,
    /// At least this many of the three numbers must be low ...
    pub low_min: usize,
    /// ... while at least this share of the tasks failed.
    pub failure_rate: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            decline_share: 0.2,
            decline_days: 7,
            opposed_overlap: 0.3,
            trust_min: 0.5,
            gap_entries: 3,
            gap_errors: 3,
            stale_errors_above: 3,
            merge_overlap: 0.5,
            merge_title: 0.5,
            strategy_share: 0.15,
            strategy_tasks: 3,
            rounds_tasks: 2,
            rounds_min: 10,
            rounds_quality: 0.4,
            outlier_factor: 2.5,
            outlier_tasks: 5,
            barren_share: 0.3,
            evaporation: EvaporationParams {
                entries_min: 3,
                errors_high: 3.0,
                demoted_high: 0.4,
                mean_low: 0.4,
                errors_low: 1.0,
                mean_high: 0.7,
                demoted_low: 0.1,
                entries_sure: 5,
            },
            stagnation: StagnationParams {
                agents_min: 2.0,
                entries_effective_min: 3.0,
                entries_min: 5,
                strategies_min: 1.5,
                tasks_min: 5,
                low_min: 2,
                failure_rate: 0.3,
            },
        }
    }
}
