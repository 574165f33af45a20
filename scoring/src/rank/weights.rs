//! The six signals of ranking and the weights of a workspace, which the constructor validates.
//!
//! Separate so that every existing [`Weights`] is valid and ranking has no error case.

use std::error::Error;
use std::fmt;

use crate::clamp_to_unit::unit;

/// One number for each signal, used for signal values and for weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerSignal {
    /// Relevance of the text to the query.
    pub semantic: f64,
    /// Thompson sample of the confidence.
    pub thompson: f64,
    /// Freshness: 1 if the anchors hold, otherwise decaying with time.
    pub freshness: f64,
    /// Value of the entry's status.
    pub status: f64,
    /// Whether the entry belongs to the caller's thread.
    pub thread: f64,
    /// Co-occurrence with another result.
    pub cooccurrence: f64,
}

impl PerSignal {
    /// Each number with the name of its signal, in the order of the default weights.
    #[must_use]
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("semantic", self.semantic),
            ("thompson", self.thompson),
            ("freshness", self.freshness),
            ("status", self.status),
            ("thread", self.thread),
            ("cooccurrence", self.cooccurrence),
        ]
    }
}

/// Upper bound of one weight, so that no signal decides alone.
pub const WEIGHT_MAX: f64 = 0.5;
/// Tolerance for the sum of the weights, which must be 1.
pub const SUM_TOLERANCE: f64 = 0.001;

/// Weights that are each in [0, 0.5] and sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights(PerSignal);

impl Weights {
    /// Validates the weights of a workspace.
    ///
    /// # Errors
    /// The first weight out of range, or the sum.
    pub fn new(weights: PerSignal) -> Result<Weights, WeightsError> {
        for (signal, weight) in weights.named() {
            if !(0.0..=WEIGHT_MAX).contains(&weight) {
                return Err(WeightsError::OutOfRange { signal, weight });
            }
        }
        let sum: f64 = weights.named().iter().map(|(_, weight)| weight).sum();
        // Decimal fractions do not sum exactly; a sum at the tolerance is within it.
        if (sum - 1.0).abs() > SUM_TOLERANCE + 1e-9 {
            return Err(WeightsError::Sum { sum });
        }
        Ok(Weights(weights))
    }

    /// The weight of each signal.
    #[must_use]
    pub fn per_signal(&self) -> &PerSignal {
        &self.0
    }

    /// Weighted sum of `signals`, each clamped to [0, 1].
    #[must_use]
    pub fn composite(&self, signals: &PerSignal) -> f64 {
        let pairs = self.0.named().into_iter().zip(signals.named());
        pairs.map(|((_, weight), (_, signal))| weight * unit(signal)).sum()
    }
}

impl Default for Weights {
    fn default() -> Self {
        Weights(PerSignal {
            semantic: 0.38,
            thompson: 0.25,
            freshness: 0.15,
            status: 0.10,
            thread: 0.07,
            cooccurrence: 0.05,
        })
    }
}

/// Reason why weights were refused. The `Display` form is a whole sentence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WeightsError {
    /// A weight is outside [0, 0.5].
    OutOfRange {
        /// Name of the signal.
        signal: &'static str,
        /// The refused weight.
        weight: f64,
    },
    /// The weights do not sum to 1.
    Sum {
        /// Sum of the weights.
        sum: f64,
    },
}

impl fmt::Display for WeightsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WeightsError::OutOfRange { signal, weight } => {
                write!(
                    f,
                    "The weight of {signal} is {weight}; it must be between 0 and {WEIGHT_MAX}."
                )
            }
            WeightsError::Sum { sum } => {
                write!(f, "The weights sum to {sum}; they must sum to 1.")
            }
        }
    }
}

impl Error for WeightsError {}

#[cfg(test)]
mod tests {
    use super::{PerSignal, Weights, WeightsError};

    fn weights(numbers: [f64; 6]) -> Result<Weights, WeightsError> {
        let [semantic, thompson, freshness, status, thread, cooccurrence] = numbers;
        Weights::new(PerSignal { semantic, thompson, freshness, status, thread, cooccurrence })
    }

    #[test]
    fn the_default_weights_are_valid() {
        assert_eq!(Weights::new(*Weights::default().per_signal()), Ok(Weights::default()));
    }

    #[test]
    fn weights_outside_their_range_or_with_another_sum_are_refused_by_name() {
        for (numbers, expect) in [
            ([0.5, 0.5, 0.0, 0.0, 0.0, 0.0], None),
            ([0.2, 0.2, 0.2, 0.2, 0.1, 0.101], None),
            ([0.2, 0.2, 0.2, 0.2, 0.1, 0.099], None),
            ([0.51, 0.49, 0.0, 0.0, 0.0, 0.0], Some("semantic")),
            ([0.5, 0.5, 0.1, -0.1, 0.0, 0.0], Some("status")),
            ([0.5, f64::NAN, 0.0, 0.0, 0.0, 0.5], Some("thompson")),
            ([0.2, 0.2, 0.2, 0.2, 0.1, 0.102], Some("sum to 1")),
            ([0.0; 6], Some("sum to 1")),
        ] {
            let given = weights(numbers).err().map(|error| error.to_string());
            match (given, expect) {
                (None, None) => {}
                (Some(message), Some(part)) if message.contains(part) => {}
                (given, _) => panic!("{numbers:?}: {given:?}, not {expect:?}"),
            }
        }
    }

    #[test]
    fn the_composite_is_the_weighted_sum_of_signals_brought_into_the_unit_interval() {
        let signals = |semantic, thompson| PerSignal {
            semantic,
            thompson,
            freshness: 0.5,
            status: 0.8,
            thread: 1.0,
            cooccurrence: 0.0,
        };
        let composite = |signals| Weights::default().composite(&signals);
        // 0.38·0.6 + 0.25·0.4 + 0.15·0.5 + 0.10·0.8 + 0.07
        assert!((composite(signals(0.6, 0.4)) - 0.553).abs() < 1e-9);
        assert_eq!(composite(signals(7.0, f64::NAN)), composite(signals(1.0, 0.0)));
    }
}
