//! What one peer may cost in a stretch of time.
//!
//! Counts per window; over budget a peer is told to wait, and one that goes on regardless, or signs
//! what it should not, is sent away for a while that doubles. What this side asked for sends nobody
//! away: it makes this side wait.

/// What a peer may cost in one window. Times are milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The length of the window.
    pub window_ms: u64,
    /// Frames.
    pub frames_max: u64,
    /// Bytes.
    pub bytes_max: u64,
    /// Records taken in.
    pub records_max: u64,
    /// Entries among them of which nothing was known here.
    pub new_entries_max: u64,
    /// Rows of the store that are gone through for its sake: a few bytes may ask for all of them.
    /// So many for what it asks, as many for what it reads, as many for what it brings, and as many for
    /// what this side begins.
    pub rows_max: u64,
    /// Signatures and bytes that are wrong.
    pub faults_max: u64,
    /// How long a peer is sent away at first.
    pub back_off_ms: u64,
    /// How long at most.
    pub back_off_max_ms: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            window_ms: 60_000,
            frames_max: 6_000,
            bytes_max: 256 * 1024 * 1024,
            records_max: 60_000,
            new_entries_max: 30_000,
            rows_max: 1_000_000,
            faults_max: 16,
            back_off_ms: 60_000,
            back_off_max_ms: 3_600_000,
        }
    }
}

/// What rows are gone through for. Each is counted apart, so that whoever compares much is still
/// given what it reads, and what this side begins puts off nothing that the peer asks for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// The peer asks for what concerns many of them.
    Asked,
    /// It reads its outbox, or fetches.
    Read,
    /// This side compares, or reads the peer's outbox from the start.
    Begun,
    /// What it brings is looked at beside all that is held of its entries.
    Brought,
}

/// What a peer has cost in the window under way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    since: u64,
    connections: u64,
    frames: u64,
    bytes: u64,
    /// Of these, what this side asked for.
    answers: u64,
    answer_bytes: u64,
    records: u64,
    new_entries: u64,
    /// By what they were gone through for.
    rows: [u64; 4],
    faults: u64,
    times_away: u32,
    away_until: u64,
}

/// What to do about a peer's next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Take it.
    Fine,
    /// Ask it to wait so many milliseconds.
    Wait(u64),
    /// Send it away for so many milliseconds.
    Away(u64),
}

impl Spent {
    fn roll(&mut self, at: u64, budget: &Budget) {
        if at.saturating_sub(self.since) >= budget.window_ms {
            let (times_away, away_until) = (self.times_away, self.away_until);
            *self = Self { since: at, times_away, away_until, ..Self::default() };
        }
    }

    fn away(&mut self, at: u64, budget: &Budget) -> Allowance {
        // Whoever was well-behaved for long begins anew.
        if at.saturating_sub(self.away_until) >= budget.back_off_max_ms {
            self.times_away = 0;
        }
        let factor = 1_u64 << self.times_away.min(20);
        self.times_away = self.times_away.saturating_add(1);
        let ms = budget.back_off_ms.saturating_mul(factor).min(budget.back_off_max_ms);
        self.away_until = at.saturating_add(ms);
        Allowance::Away(ms)
    }

    /// Whether the peer was sent away, and what still comes of it was under way by then.
    pub(super) fn is_away(&self, at: u64) -> bool {
        at < self.away_until
    }

    /// Counts a frame. Twice the budget is more than a misunderstanding.
    pub(super) fn frame(&mut self, bytes: usize, at: u64, budget: &Budget) -> Allowance {
        self.count(bytes, at, budget);
        let frames = self.frames.saturating_sub(self.answers);
        let bytes = self.bytes.saturating_sub(self.answer_bytes);
        let is_far_over = frames > budget.frames_max.saturating_mul(2)
            || bytes > budget.bytes_max.saturating_mul(2);
        match (is_far_over, self.is_over(budget)) {
            (true, _) => self.away(at, budget),
            (_, true) => Allowance::Wait(self.rest(at, budget)),
            _ => Allowance::Fine,
        }
    }

    /// Counts an answer to what this side asked for; how long to wait before asking for more.
    pub(super) fn answer(&mut self, bytes: usize, at: u64, budget: &Budget) -> u64 {
        self.count(bytes, at, budget);
        self.answers = self.answers.saturating_add(1);
        self.answer_bytes = self.answer_bytes.saturating_add(bytes as u64);
        if self.is_over(budget) { self.rest(at, budget) } else { 0 }
    }

    fn count(&mut self, bytes: usize, at: u64, budget: &Budget) {
        self.roll(at, budget);
        self.frames = self.frames.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    fn is_over(&self, budget: &Budget) -> bool {
        self.frames > budget.frames_max || self.bytes > budget.bytes_max
    }

    /// Counts something that is the peer's fault.
    pub(super) fn fault(&mut self, at: u64, budget: &Budget) -> Allowance {
        self.roll(at, budget);
        self.faults = self.faults.saturating_add(1);
        let is_over = self.faults > budget.faults_max && !self.is_away(at);
        if is_over { self.away(at, budget) } else { Allowance::Fine }
    }

    /// Counts records that came, and entries that turned out to be new.
    pub(super) fn take_in(
        &mut self,
        (records, new_entries): (usize, usize),
        at: u64,
        budget: &Budget,
    ) {
        self.roll(at, budget);
        self.records = self.records.saturating_add(records as u64);
        self.new_entries = self.new_entries.saturating_add(new_entries as u64);
    }

    /// How long to wait before asking for more of them.
    pub(super) fn rest_of_intake(&mut self, at: u64, budget: &Budget) -> u64 {
        self.roll(at, budget);
        let is_over =
            self.records >= budget.records_max || self.new_entries >= budget.new_entries_max;
        if is_over { self.rest(at, budget) } else { 0 }
    }

    /// Counts a new connection; how many there were.
    pub(super) fn connection(&mut self, at: u64, budget: &Budget) -> u64 {
        self.roll(at, budget);
        self.connections = self.connections.saturating_add(1);
        self.connections
    }

    /// Counts rows that were gone through.
    pub(super) fn rows(&mut self, work: Work, rows: u64, at: u64, budget: &Budget) {
        self.roll(at, budget);
        let counted = &mut self.rows[work as usize];
        *counted = counted.saturating_add(rows);
    }

    /// How long the peer has to wait before more is gone through for it.
    pub(super) fn rest_of_rows(&mut self, work: Work, at: u64, budget: &Budget) -> u64 {
        self.roll(at, budget);
        if self.rows[work as usize] >= budget.rows_max { self.rest(at, budget) } else { 0 }
    }

    pub(super) fn is_far_over_rows(&self, work: Work, budget: &Budget) -> bool {
        self.rows[work as usize] >= budget.rows_max.saturating_mul(2)
    }

    fn rest(&self, at: u64, budget: &Budget) -> u64 {
        (self.since + budget.window_ms).saturating_sub(at).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_waits_then_goes_away_for_twice_as_long() {
        let budget = Budget { frames_max: 2, ..Budget::default() };
        let mut spent = Spent::default();
        let mut frame = |at| spent.frame(1, at, &budget);
        assert_eq!([frame(0), frame(0)], [Allowance::Fine; 2]);
        assert_eq!([frame(10), frame(20)], [Allowance::Wait(59_990), Allowance::Wait(59_980)]);
        assert_eq!(frame(30), Allowance::Away(60_000));
        assert_eq!([frame(60_030), frame(60_030)], [Allowance::Fine; 2]);
        assert_eq!([frame(60_030), frame(60_030)], [Allowance::Wait(60_000); 2]);
        assert_eq!(frame(60_030), Allowance::Away(120_000));
    }

    #[test]
    fn faults_and_records_have_bounds_of_their_own() {
        let budget =
            Budget { faults_max: 1, records_max: 10, new_entries_max: 5, ..Budget::default() };
        let mut spent = Spent::default();
        assert_eq!(spent.fault(0, &budget), Allowance::Fine);
        assert_eq!(spent.fault(0, &budget), Allowance::Away(60_000));
        assert!(spent.is_away(59_999) && !spent.is_away(60_000));
        assert_eq!(spent.fault(0, &budget), Allowance::Fine, "it is away already");
        let mut rest_after = |taken, at| {
            spent.take_in(taken, at, &budget);
            spent.rest_of_intake(at, &budget)
        };
        assert_eq!([rest_after((9, 0), 0), rest_after((1, 0), 0)], [0, 60_000]);
        assert_eq!(rest_after((1, 4), 60_000), 0);
        assert_eq!(rest_after((0, 1), 60_000), 60_000, "too many entries are new");
    }

    #[test]
    fn once_enough_was_gone_through_the_rest_of_the_window_is_waited_for() {
        let budget = Budget { rows_max: 10, ..Budget::default() };
        let mut spent = Spent::default();
        spent.rows(Work::Asked, 9, 0, &budget);
        assert_eq!(spent.rest_of_rows(Work::Asked, 10, &budget), 0);
        spent.rows(Work::Asked, 1_000, 10, &budget);
        assert_eq!(spent.rest_of_rows(Work::Asked, 20, &budget), 59_980);
        for apart in [Work::Read, Work::Begun, Work::Brought] {
            assert_eq!(spent.rest_of_rows(apart, 20, &budget), 0, "{apart:?}");
        }
        assert_eq!(spent.rest_of_rows(Work::Asked, 60_000, &budget), 0);
    }

    #[test]
    fn bytes_are_counted_like_frames() {
        let budget = Budget { bytes_max: 10, ..Budget::default() };
        let mut spent = Spent::default();
        let mut frame = |bytes| spent.frame(bytes, 0, &budget);
        assert_eq!([frame(4), frame(6)], [Allowance::Fine; 2]);
        assert_eq!([frame(1), frame(9)], [Allowance::Wait(60_000); 2]);
        assert_eq!(frame(1), Allowance::Away(60_000));
    }

    #[test]
    fn who_was_well_behaved_for_long_is_sent_away_as_if_it_were_the_first_time() {
        let budget = Budget { faults_max: 0, ..Budget::default() };
        let mut spent = Spent::default();
        assert_eq!(spent.fault(0, &budget), Allowance::Away(60_000));
        assert_eq!(spent.fault(60_000, &budget), Allowance::Away(120_000));
        assert_eq!(spent.fault(180_000 + 3_599_999, &budget), Allowance::Away(240_000));
        let back = 180_000 + 3_599_999 + 240_000;
        assert_eq!(spent.fault(back + 3_600_000, &budget), Allowance::Away(60_000));
    }

    #[test]
    fn what_was_asked_for_counts_and_sends_nobody_away() {
        let budget = Budget { bytes_max: 10, ..Budget::default() };
        let mut spent = Spent::default();
        assert_eq!([spent.answer(10, 0, &budget), spent.answer(20, 0, &budget)], [0, 60_000]);
        assert_eq!(spent.frame(20, 0, &budget), Allowance::Wait(60_000));
        assert_eq!(spent.frame(1, 0, &budget), Allowance::Away(60_000));
    }

    #[test]
    fn a_new_window_does_not_bring_a_peer_back_that_was_sent_away() {
        let budget = Budget { faults_max: 0, window_ms: 10_000, ..Budget::default() };
        let mut spent = Spent::default();
        assert_eq!(spent.fault(0, &budget), Allowance::Away(60_000));
        assert_eq!(spent.frame(1, 20_000, &budget), Allowance::Fine);
        assert!(spent.is_away(59_999) && !spent.is_away(60_000));
    }
}
