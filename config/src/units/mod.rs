//! The types of configuration values, each with its unit and limits.
//!
//! Keys with the same limits share a type, so each limit is defined once. A value of these types is
//! always within its limits. The types do not know the keys that use them.

mod address;
mod choices;
mod embedding_server;
mod name_lists;
mod number;
mod size;
mod time;

pub use address::{ListenAddress, LocalTcp, PeerAddress, SocketPath};
pub use choices::{
    DecayClass, DisclosureRule, EmbedderKind, EntryType, LogFormat, LogLevel, Memory, Reach,
    Status, Switch, ThreadDefault,
};
pub use embedding_server::{ModelName, ServerUrl, VariableName};
pub use name_lists::{BoundedList, NodeName, ScopeName};
pub use number::{BoundedInteger, Factor, Fraction, Positive, SignalWeight};
pub use size::Bytes;
pub use time::{Days, Interval, IntervalFrom};

/// The reason why a value does not fit its type. The text follows "must be".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be {must}")]
pub struct InvalidValue {
    must: String,
}

impl InvalidValue {
    pub(crate) fn new(must: impl Into<String>) -> Self {
        Self { must: must.into() }
    }
}

/// Splits "90 days" into 90 and "days". Accepts only whole numbers: "1.5 h" is "90 min".
fn amount_and_unit(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (amount, unit) = text.split_at(digits);
    Some((amount.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_split_from_its_unit() {
        assert_eq!(amount_and_unit("90 days"), Some((90, "days")));
        assert_eq!(amount_and_unit(" 5min "), Some((5, "min")));
        assert_eq!(amount_and_unit("7"), Some((7, "")));
    }

    #[test]
    fn text_without_a_leading_whole_number_has_no_amount() {
        for text in ["", "days", "-1 days", "99999999999999999999 days", "٣ days"] {
            assert_eq!(amount_and_unit(text), None, "{text}");
        }
    }
}
