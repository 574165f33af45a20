//! Streams the elements of a JSON document: of the outermost array, or of an array in a field of the
//! outermost object.
//!
//! Only one element is in memory, so a file may be larger than the memory. An element beyond
//! [`ELEMENT_BYTES_MAX`] ends the reading: its end can only be found by reading it.

use crate::entry_collector::Taker;
use crate::front_matter::{Fault, unreadable};
use crate::limits::ELEMENT_BYTES_MAX;
use crate::source_file::SourceFile;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::ControlFlow;
use std::rc::Rc;

/// The byte order mark that some programs put before UTF-8 text.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// Receives an element and its number, from 1.
pub(crate) type TakeElement<'a> = dyn FnMut(u64, Value) -> ControlFlow<()> + 'a;

/// Reads a file, and calls `take` for each element of the array, or of the fields with these names. A
/// fault of the file is a problem.
pub(crate) fn read(
    file: &SourceFile,
    names: &[&str],
    take: &mut Taker<'_>,
    mut element: impl FnMut(u64, Value, &mut Taker<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let reader = match File::open(&file.absolute) {
        Ok(reader) => BufReader::new(reader),
        Err(error) => return take.problem(None, unreadable(&error).1),
    };
    let (mut flow, position) = (ControlFlow::Continue(()), take.position());
    let read = stream(reader, names, &position, &mut |number, value| {
        flow = element(number, value, take);
        flow
    });
    flow?;
    match read {
        Ok(()) => ControlFlow::Continue(()),
        Err((line, reason)) => take.problem(line, reason),
    }
}

/// Calls `take` for each element of the array, or of the fields with these names. A document that
/// is one object without such a field is one element. `position` counts the bytes.
fn stream(
    mut reader: impl Read,
    names: &[&str],
    position: &Cell<u64>,
    take: &mut TakeElement<'_>,
) -> Result<(), Fault> {
    let mut start = Vec::new();
    let begun = reader.by_ref().take(MARK.len() as u64).read_to_end(&mut start);
    begun.map_err(|error| unreadable(&error))?;
    if start == MARK {
        start.clear();
    }
    let budget = Rc::new(Cell::new(ELEMENT_BYTES_MAX));
    let inner = Cursor::new(start).chain(reader);
    let mut json = serde_json::Deserializer::from_reader(BudgetReader {
        inner,
        position,
        budget: Rc::clone(&budget),
    });
    let mut state = State { names, take, count: 0, is_over: false, budget };
    let read = JsonDocument(&mut state).deserialize(&mut json);
    let read = read.and_then(|()| if state.is_over { Ok(()) } else { json.end() });
    read.map_err(|error| {
        let line = Some(error.line() as u64);
        match state.budget.get() {
            0 => {
                let number = state.count + 1;
                let rest = "it and the elements after it are not read";
                let size = format!("element {number} has more than {ELEMENT_BYTES_MAX} bytes");
                (line, format!("{size}; {rest}"))
            }
            _ => (line, format!("it is not JSON: {error}")),
        }
    })
}

/// Fails when an element has used up its bytes, because the parser holds a whole text in memory.
struct BudgetReader<'p, R> {
    inner: R,
    position: &'p Cell<u64>,
    budget: Rc<Cell<usize>>,
}

impl<R: Read> Read for BudgetReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.budget.get();
        if left == 0 {
            return Err(io::Error::other("the element is too long"));
        }
        let end = into.len().min(left);
        let count = self.inner.read(&mut into[..end])?;
        self.budget.set(left - count);
        self.position.set(self.position.get() + count as u64);
        Ok(count)
    }
}

struct State<'a, 'b> {
    names: &'a [&'a str],
    take: &'a mut TakeElement<'b>,
    count: u64,
    is_over: bool,
    /// The bytes that the current element may still have.
    budget: Rc<Cell<usize>>,
}

impl State<'_, '_> {
    /// Begins an element.
    fn begin(&self) {
        self.budget.set(ELEMENT_BYTES_MAX);
    }

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
        self.0.begin();
        while let Some(element) = seq.next_element::<Value>()? {
            self.0.take(element);
            self.0.begin();
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
                self.0.begin();
            } else if has_list {
                // What is ignored is not held in memory.
                self.0.budget.set(usize::MAX);
                map.next_value::<IgnoredAny>()?;
                self.0.begin();
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
            let read = stream(text.as_bytes(), &["results"], &Cell::new(0), &mut |_, element| {
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
        assert_eq!(count("\u{feff}[1]"), ("1".into(), true));
        assert_eq!(count("5"), (String::new(), false));
    }

    #[test]
    fn an_element_beyond_the_limit_is_named_and_the_ones_before_are_read() {
        let text =
            format!(r#"{{"note": "n", "results": [1, {{"a": "{}"}}, 3]}}"#, "x".repeat(2 << 20));
        let (mut found, position) = (Vec::new(), Cell::new(0));
        let read = stream(text.as_bytes(), &["results"], &position, &mut |number, _| {
            found.push(number);
            ControlFlow::Continue(())
        });
        assert_eq!(found, [1]);
        let (line, reason) = read.unwrap_err();
        assert_eq!(line, Some(1));
        assert!(reason.starts_with("element 2 has more than 1048576 bytes"), "{reason}");
        assert!(position.get() < 1_200_000, "the rest is not read: {}", position.get());
        let ignored = format!(r#"{{"results": [1], "rest": "{}"}}"#, "x".repeat(2 << 20));
        let read = stream(ignored.as_bytes(), &["results"], &position, &mut |_, _| {
            ControlFlow::Continue(())
        });
        assert_eq!(read, Ok(()));
    }
}
