//! The resources one peer may use in a time window.
//!
//! Costs are counted per window. A peer over budget is asked to wait. A peer that continues
//! regardless, or sends wrong signatures, is banned for a time that doubles. Answers to this node's
//! own requests never ban a peer; they make this node wait.

/// Limits per peer and window. Times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Length of the window.
    pub window_ms: u64,
    /// Maximum number of frames received.
    pub frames_max: u64,
    /// Maximum number of bytes received.
    pub bytes_max: u64,
    /// Maximum number of records accepted.
    pub records_max: u64,
    /// Maximum number of entries among them that were unknown here.
    pub new_entries_max: u64,
    /// Maximum number of store rows read on the peer's behalf; a few bytes of request may cause a
    /// full read. The limit applies separately to comparisons the peer asks for, to its outbox
    /// reads, to records it sends, and to work this node begins.
    pub rows_max: u64,
    /// Maximum number of faults: wrong signatures and malformed bytes.
    pub faults_max: u64,
    /// Duration of the first ban.
    pub back_off_ms: u64,
    /// Maximum duration of a ban.
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

/// The purpose of store reads. Each is counted separately, so that a peer that compares much can
/// still read its outbox, and work that this node begins does not delay the peer's requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadPurpose {
    /// A comparison or other wide read that the peer requested.
    Asked,
    /// The peer reads its outbox or fetches records.
    Read,
    /// This node compares, or reads the peer's outbox from the start.
    Begun,
    /// Records from the peer are checked against all held records of their entries.
    Brought,
}

/// The peer's costs in the current window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerCosts {
    since: u64,
    connections: u64,
    frames: u64,
    bytes: u64,
    /// The part of `frames` that answered this node's requests.
    answers: u64,
    answer_bytes: u64,
    records: u64,
    new_entries: u64,
    /// Indexed by the purpose of the read.
    rows: [u64; 4],
    faults: u64,
    times_away: u32,
    away_until: u64,
}

/// How to treat a peer's next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allowance {
    /// Process the frame.
    Fine,
    /// Ask the peer to wait this many milliseconds.
    Wait(u64),
    /// Ban the peer for this many milliseconds.
    Away(u64),
}

impl PeerCosts {
    fn start_window_if_due(&mut self, at: u64, budget: &Budget) {
        if at.saturating_sub(self.since) >= budget.window_ms {
            let (times_away, away_until) = (self.times_away, self.away_until);
            *self = Self { since: at, times_away, away_until, ..Self::default() };
        }
    }

    fn away(&mut self, at: u64, budget: &Budget) -> Allowance {
        // Long good behaviour resets the doubling.
        if at.saturating_sub(self.away_until) >= budget.back_off_max_ms {
            self.times_away = 0;
        }
        let factor = 1_u64 << self.times_away.min(20);
        self.times_away = self.times_away.saturating_add(1);
        let ms = budget.back_off_ms.saturating_mul(factor).min(budget.back_off_max_ms);
        self.away_until = at.saturating_add(ms);
        Allowance::Away(ms)
    }

    /// True while the peer is banned. Frames that still arrive were already in flight.
    pub(super) fn is_away(&self, at: u64) -> bool {
        at < self.away_until
    }

    /// Counts a frame. Twice the budget is deliberate abuse and leads to a ban.
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

    /// Counts an answer to this node's request. Returns how long to wait before the next request.
    pub(super) fn answer(&mut self, bytes: usize, at: u64, budget: &Budget) -> u64 {
        self.count(bytes, at, budget);
        self.answers = self.answers.saturating_add(1);
        self.answer_bytes = self.answer_bytes.saturating_add(bytes as u64);
        if self.is_over(budget) { self.rest(at, budget) } else { 0 }
    }

    fn count(&mut self, bytes: usize, at: u64, budget: &Budget) {
        self.start_window_if_due(at, budget);
        self.frames = self.frames.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    fn is_over(&self, budget: &Budget) -> bool {
        self.frames > budget.frames_max || self.bytes > budget.bytes_max
    }

    /// Counts a fault.
    pub(super) fn fault(&mut self, at: u64, budget: &Budget) -> Allowance {
        self.start_window_if_due(at, budget);
        self.faults = self.faults.saturating_add(1);
        let is_over = self.faults > budget.faults_max && !self.is_away(at);
        if is_over { self.away(at, budget) } else { Allowance::Fine }
    }

    /// Counts accepted records, and the new entries among them.
    pub(super) fn count_intake(
        &mut self,
        (records, new_entries): (usize, usize),
        at: u64,
        budget: &Budget,
    ) {
        self.start_window_if_due(at, budget);
        self.records = self.records.saturating_add(records as u64);
        self.new_entries = self.new_entries.saturating_add(new_entries as u64);
    }

    /// How long to wait before more records are requested.
    pub(super) fn intake_wait(&mut self, at: u64, budget: &Budget) -> u64 {
        self.start_window_if_due(at, budget);
        let is_over =
            self.records >= budget.records_max || self.new_entries >= budget.new_entries_max;
        if is_over { self.rest(at, budget) } else { 0 }
    }

    /// Counts a new connection and returns the number in this window.
    pub(super) fn connection(&mut self, at: u64, budget: &Budget) -> u64 {
        self.start_window_if_due(at, budget);
        self.connections = self.connections.saturating_add(1);
        self.connections
    }

    /// Counts store rows that were read.
    pub(super) fn rows(&mut self, work: ReadPurpose, rows: u64, at: u64, budget: &Budget) {
        self.start_window_if_due(at, budget);
        let counted = &mut self.rows[work as usize];
        *counted = counted.saturating_add(rows);
    }

    /// How long the peer has to wait before more rows are read for this purpose.
    pub(super) fn rows_wait(&mut self, work: ReadPurpose, at: u64, budget: &Budget) -> u64 {
        self.start_window_if_due(at, budget);
        if self.rows[work as usize] >= budget.rows_max { self.rest(at, budget) } else { 0 }
    }

    pub(super) fn is_far_over_rows(&self, work: ReadPurpose, budget: &Budget) -> bool {
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
    fn a_peer_waits_then_is_banned_for_twice_as_long() {
        let budget = Budget { frames_max: 2, ..Budget::default() };
        let mut spent = PeerCosts::default();
        let mut frame = |at| spent.frame(1, at, &budget);
        assert_eq!([frame(0), frame(0)], [Allowance::Fine; 2]);
        assert_eq!([frame(10), frame(20)], [Allowance::Wait(59_990), Allowance::Wait(59_980)]);
        assert_eq!(frame(30), Allowance::Away(60_000));
        assert_eq!([frame(60_030), frame(60_030)], [Allowance::Fine; 2]);
        assert_eq!([frame(60_030), frame(60_030)], [Allowance::Wait(60_000); 2]);
        assert_eq!(frame(60_030), Allowance::Away(120_000));
    }

    #[test]
    fn faults_and_records_have_separate_limits() {
        let budget =
            Budget { faults_max: 1, records_max: 10, new_entries_max: 5, ..Budget::default() };
        let mut spent = PeerCosts::default();
        assert_eq!(spent.fault(0, &budget), Allowance::Fine);
        assert_eq!(spent.fault(0, &budget), Allowance::Away(60_000));
        assert!(spent.is_away(59_999) && !spent.is_away(60_000));
        assert_eq!(spent.fault(0, &budget), Allowance::Fine, "it is away already");
        let mut rest_after = |taken, at| {
            spent.count_intake(taken, at, &budget);
            spent.intake_wait(at, &budget)
        };
        assert_eq!([rest_after((9, 0), 0), rest_after((1, 0), 0)], [0, 60_000]);
        assert_eq!(rest_after((1, 4), 60_000), 0);
        assert_eq!(rest_after((0, 1), 60_000), 60_000, "too many entries are new");
    }

    #[test]
    fn a_spent_row_budget_waits_for_the_next_window() {
        let budget = Budget { rows_max: 10, ..Budget::default() };
        let mut spent = PeerCosts::default();
        spent.rows(ReadPurpose::Asked, 9, 0, &budget);
        assert_eq!(spent.rows_wait(ReadPurpose::Asked, 10, &budget), 0);
        spent.rows(ReadPurpose::Asked, 1_000, 10, &budget);
        assert_eq!(spent.rows_wait(ReadPurpose::Asked, 20, &budget), 59_980);
        for apart in [ReadPurpose::Read, ReadPurpose::Begun, ReadPurpose::Brought] {
            assert_eq!(spent.rows_wait(apart, 20, &budget), 0, "{apart:?}");
        }
        assert_eq!(spent.rows_wait(ReadPurpose::Asked, 60_000, &budget), 0);
    }

    #[test]
    fn bytes_are_counted_like_frames() {
        let budget = Budget { bytes_max: 10, ..Budget::default() };
        let mut spent = PeerCosts::default();
        let mut frame = |bytes| spent.frame(bytes, 0, &budget);
        assert_eq!([frame(4), frame(6)], [Allowance::Fine; 2]);
        assert_eq!([frame(1), frame(9)], [Allowance::Wait(60_000); 2]);
        assert_eq!(frame(1), Allowance::Away(60_000));
    }

    #[test]
    fn long_good_behaviour_resets_the_ban() {
        let budget = Budget { faults_max: 0, ..Budget::default() };
        let mut spent = PeerCosts::default();
        assert_eq!(spent.fault(0, &budget), Allowance::Away(60_000));
        assert_eq!(spent.fault(60_000, &budget), Allowance::Away(120_000));
        assert_eq!(spent.fault(180_000 + 3_599_999, &budget), Allowance::Away(240_000));
        let back = 180_000 + 3_599_999 + 240_000;
        assert_eq!(spent.fault(back + 3_600_000, &budget), Allowance::Away(60_000));
    }

    #[test]
    fn requested_answers_count_but_never_ban() {
        let budget = Budget { bytes_max: 10, ..Budget::default() };
        let mut spent = PeerCosts::default();
        assert_eq!([spent.answer(10, 0, &budget), spent.answer(20, 0, &budget)], [0, 60_000]);
        assert_eq!(spent.frame(20, 0, &budget), Allowance::Wait(60_000));
        assert_eq!(spent.frame(1, 0, &budget), Allowance::Away(60_000));
    }

    #[test]
    fn a_new_window_does_not_end_a_ban() {
        let budget = Budget { faults_max: 0, window_ms: 10_000, ..Budget::default() };
        let mut spent = PeerCosts::default();
        assert_eq!(spent.fault(0, &budget), Allowance::Away(60_000));
        assert_eq!(spent.frame(1, 20_000, &budget), Allowance::Fine);
        assert!(spent.is_away(59_999) && !spent.is_away(60_000));
    }
}
