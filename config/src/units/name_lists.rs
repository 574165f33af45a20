//! Lists of values, and the types of names in them.
//!
//! A list limits its length; its elements have limits of their own. It drops repeated elements and
//! keeps the order of the first occurrences.

use serde::Deserialize;
use toml::Value;

use super::InvalidValue;

/// A list of at most 256 different values.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    try_from = "Value",
    bound = "T: TryFrom<Value, Error = InvalidValue> + PartialEq + Deserialize<'de>"
)]
pub struct BoundedList<T>(Vec<T>);

impl<T> BoundedList<T> {
    const LENGTH_MAX: usize = 256;

    /// The values, in the order of the input.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        &self.0
    }
}

impl<T: TryFrom<Value, Error = InvalidValue> + PartialEq> TryFrom<Value> for BoundedList<T> {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let Value::Array(values) = value else {
            return Err(InvalidValue::new("a list such as [\"a\", \"b\"]"));
        };
        if values.len() > Self::LENGTH_MAX {
            return Err(InvalidValue::new(format!(
                "a list of at most {} values",
                Self::LENGTH_MAX
            )));
        }
        let mut list = Vec::with_capacity(values.len());
        for value in values {
            let element = T::try_from(value).map_err(|unfit| {
                InvalidValue::new(format!("a list of which each is {}", unfit.must))
            })?;
            if !list.contains(&element) {
                list.push(element);
            }
        }
        Ok(Self(list))
    }
}

/// The name of a workspace, a tag, a thread or an organisation: 1 to 200 characters on one line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Value")]
pub struct ScopeName(String);

impl ScopeName {
    const CHARACTERS_MAX: usize = 200;

    /// The name as text, trimmed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<Value> for ScopeName {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let text = value.as_str().map(str::trim).unwrap_or_default();
        let fits = !text.is_empty()
            && text.chars().count() <= Self::CHARACTERS_MAX
            && !text.chars().any(char::is_control);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidValue::new("a name of 1 to 200 characters in one line"))
        }
    }
}

/// The name of a node for its peers: at most 40 characters on one line, or empty. Peers display 40
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct NodeName(String);

impl NodeName {
    const CHARACTERS_MAX: usize = 40;

    /// The name; `None` if it is empty.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl TryFrom<Value> for NodeName {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let fits = |text: &&str| {
            text.chars().count() <= Self::CHARACTERS_MAX && !text.chars().any(char::is_control)
        };
        match value.as_str().map(str::trim).filter(fits) {
            Some(text) => Ok(Self(text.to_owned())),
            None => Err(InvalidValue::new("a name of at most 40 characters in one line, or empty")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Memory;

    fn texts(texts: &[&str]) -> Value {
        Value::Array(texts.iter().map(|text| Value::String((*text).into())).collect())
    }

    #[test]
    fn a_list_keeps_its_order_and_drops_duplicates() {
        let list =
            BoundedList::<Memory>::try_from(texts(&["procedural", "semantic", "procedural"]));
        assert_eq!(list.unwrap().as_slice(), [Memory::Procedural, Memory::Semantic]);
    }

    #[test]
    fn an_invalid_value_in_a_list_is_answered_with_the_requirement() {
        let unfit = BoundedList::<Memory>::try_from(texts(&["semantic", "both"])).unwrap_err();
        assert_eq!(
            unfit.to_string(),
            "must be a list of which each is one of \"semantic\", \"procedural\", \"episodic\""
        );
    }

    #[test]
    fn a_single_value_is_not_a_list() {
        assert!(BoundedList::<Memory>::try_from(Value::String("semantic".into())).is_err());
    }

    #[test]
    fn a_list_ends_at_its_limit() {
        let names: Vec<String> = (0..257).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(
            BoundedList::<ScopeName>::try_from(texts(&names[1..])).unwrap().as_slice().len(),
            256
        );
        assert!(BoundedList::<ScopeName>::try_from(texts(&names)).is_err());
    }

    #[test]
    fn a_name_is_one_line_that_is_not_empty() {
        assert_eq!(ScopeName::try_from(Value::String(" team ".into())).unwrap().as_str(), "team");
        for wrong in ["", "  ", "two\nlines", &"x".repeat(201)] {
            assert!(ScopeName::try_from(Value::String(wrong.into())).is_err(), "{wrong:?}");
        }
    }
    #[test]
    fn a_node_is_called_by_one_line_of_at_most_40_characters_or_by_nothing() {
        let name = |text: &str| NodeName::try_from(Value::String(text.into()));
        assert_eq!(name(" desk at home ").unwrap().get(), Some("desk at home"));
        assert_eq!(name("").unwrap().get(), None);
        assert_eq!(name(&"é".repeat(40)).unwrap().get(), Some("é".repeat(40).as_str()));
        for wrong in ["two\nlines", &"x".repeat(41)] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
        assert!(NodeName::try_from(Value::Integer(7)).is_err());
    }
}
