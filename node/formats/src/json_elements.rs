//! Streams the elements of a JSON document: of the outermost array, or of an array in a field of the
//! outermost object.
//!
//! Only one element is in memory, so a file may be larger than the memory.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;

/// Receives an element and its number, from 1.
pub(crate) type TakeElement<'a> = dyn FnMut(u64, Value) -> ControlFlow<()> + 'a;

/// Calls `take` for each element of the array, or of the fields with these names. A document that
/// is one object without such a field is one element.
pub(crate) fn stream(
    reader: impl Read,
    names: &[&str],
    take: &mut TakeElement<'_>,
) -> Result<(), serde_json::Error> {
    let mut json = serde_json::Deserializer::from_reader(reader);
    let mut state = State { names, take, count: 0, is_over: false };
    JsonDocument(&mut state).deserialize(&mut json)?;
    if state.is_over { Ok(()) } else { json.end() }
}

struct State<'a, 'b> {
    names: &'a [&'a str],
    take: &'a mut TakeElement<'b>,
    count: u64,
    is_over: bool,
}

impl State<'_, '_> {
    fn take(&mut self, element: Value) {
        self.count += 1;
        if !self.is_over && (self.take)(self.count, element).is_break() {
            self.is_over = true;
        }
    }
}

struct JsonDocument<'s, 'a, 'b>(&'s mut State<'a, 'b>);

impl<'de> DeserializeSeed<'de> for JsonDocument<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonDocument<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element::<Value>()? {
            self.0.take(element);
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut rest = serde_json::Map::new();
        let mut has_list = false;
        while let Some(name) = map.next_key::<String>()? {
            if self.0.names.contains(&name.as_str()) {
                has_list = true;
                map.next_value_seed(JsonDocument(self.0))?;
            } else if has_list {
                map.next_value::<IgnoredAny>()?;
            } else {
                rest.insert(name, map.next_value()?);
            }
        }
        if !has_list && !rest.is_empty() {
            self.0.take(Value::Object(rest));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_fields_and_single_objects_are_streamed() {
        let count = |text: &str| {
            let mut found = Vec::new();
            let read = stream(text.as_bytes(), &["results"], &mut |_, element| {
                found.push(element.to_string());
                ControlFlow::Continue(())
            });
            (found.join(" "), read.is_ok())
        };
        assert_eq!(count("[1, 2]"), ("1 2".into(), true));
        assert_eq!(
            count(r#"{"count": 2, "results": [{"a": 1}, 2], "next": null}"#),
            (r#"{"a":1} 2"#.into(), true)
        );
        assert_eq!(count(r#"{"a": 1}"#), (r#"{"a":1}"#.into(), true));
        assert_eq!(count("[1, 2, nonsense]"), ("1 2".into(), false));
    }
}
