//! A note: the fields of its front matter, and its body.

use crate::dates;
use crate::entry_collector::Taker;
use crate::limits::FRONT_MATTER_BYTES_MAX;
use crate::text_lines::{LineFault, TextLines};
use crate::yaml;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The line before and after front matter.
pub(crate) const FENCE: &str = "---";

/// The largest note that is read at once, in bytes.
const NOTE_BYTES_MAX: usize = 1024 * 1024;

/// A note that is small enough to be held in memory.
#[derive(Debug, Default)]
pub(crate) struct Note {
    pub(crate) fields: Fields,
    /// The text below the fields.
    pub(crate) body: String,
    /// The line in the file at which the body begins.
    pub(crate) body_line: u64,
}

/// The fields of front matter. Readers take out the fields they know; the rest is `extra`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fields(pub(crate) BTreeMap<String, Value>);

/// A reason with the line it concerns.
pub(crate) type Fault = (Option<u64>, String);

impl From<LineFault> for Fault {
    fn from(fault: LineFault) -> Self {
        (Some(fault.line), fault.reason)
    }
}

impl Note {
    /// Reads a whole note.
    pub(crate) fn read(path: &Path) -> Result<Self, Fault> {
        let mut lines = TextLines::open(path).map_err(|error| unreadable(&error))?;
        let (fields, first) = read_fields(&mut lines)?;
        let body_line = lines.number().max(1);
        let mut body = String::new();
        let mut next = first.map(Ok).or_else(|| lines.next());
        while let Some(line) = next {
            let line = line?;
            if body.len() + line.len() > NOTE_BYTES_MAX {
                return Err((None, format!("it has more than {NOTE_BYTES_MAX} bytes")));
            }
            body.push_str(&line);
            body.push('\n');
            next = lines.next();
        }
        Ok(Self { fields, body, body_line })
    }
}

/// The clause for a file that cannot be opened.
pub(crate) fn unreadable(error: &std::io::Error) -> Fault {
    (None, format!("it cannot be read: {error}"))
}

/// A note that is read line by line: its lines, its fields, and the first line of its body if that
/// was read to look for front matter.
pub(crate) type OpenNote = (TextLines, Fields, Option<String>);

/// Opens the note that a taker has begun, and reads its front matter.
pub(crate) fn open_note(path: &Path, take: &Taker<'_>) -> Result<OpenNote, Fault> {
    let mut lines = TextLines::open_for(path, take).map_err(|error| unreadable(&error))?;
    let (fields, first) = read_fields(&mut lines)?;
    Ok((lines, fields, first))
}

/// Reads the front matter at the start of a file. Without one, it returns the first line, which
/// belongs to the body.
pub(crate) fn read_fields(lines: &mut TextLines) -> Result<(Fields, Option<String>), Fault> {
    let first = match lines.next().transpose()? {
        Some(first) if first.trim_end() == FENCE => first,
        first => return Ok((Fields::default(), first)),
    };
    let _ = first;
    let mut text = String::new();
    while let Some(line) = lines.next() {
        let line = line?;
        if line.trim_end() == FENCE {
            return Ok((Fields(yaml::parse(&text)?), None));
        }
        if text.len() + line.len() > FRONT_MATTER_BYTES_MAX {
            return Err((
                Some(lines.number()),
                format!("its front matter has more than {FRONT_MATTER_BYTES_MAX} bytes"),
            ));
        }
        text.push_str(&line);
        text.push('\n');
    }
    Err((Some(1), "its front matter has no end; close it with a line `---`".into()))
}

impl Fields {
    /// True if there is such a field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Takes a field of text; another value stays.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        let text = match self.0.get(name)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(is) => is.to_string(),
            _ => return None,
        };
        self.0.remove(name);
        Some(text).filter(|text| !text.is_empty())
    }

    /// Takes the first of several names of a date.
    pub(crate) fn date(&mut self, names: &[&str]) -> Option<String> {
        let name = names.iter().find(|name| self.0.get(**name).and_then(dates::words).is_some())?;
        self.0.remove(*name).as_ref().and_then(dates::words)
    }

    /// Takes a list of texts: a list, or texts separated by commas.
    pub(crate) fn list(&mut self, name: &str) -> Vec<String> {
        let one = |value: &Value| match value {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let found = match self.0.get(name) {
            Some(Value::Array(of)) => of.iter().map(one).collect::<Option<Vec<_>>>(),
            Some(Value::String(text)) => {
                Some(text.split(',').map(|part| part.trim().to_owned()).collect())
            }
            Some(Value::Null) => Some(Vec::new()),
            _ => None,
        };
        let Some(found) = found else { return Vec::new() };
        self.0.remove(name);
        found.into_iter().filter(|text| !text.is_empty()).collect()
    }

    /// Takes a list of texts or one text, which may contain commas.
    pub(crate) fn texts(&mut self, name: &str) -> Vec<String> {
        match self.0.get(name) {
            Some(Value::String(_)) => self.text(name).into_iter().collect(),
            _ => self.list(name),
        }
    }

    /// Takes a number.
    pub(crate) fn number(&mut self, name: &str) -> Option<f64> {
        let number = self.0.get(name)?.as_f64()?;
        self.0.remove(name);
        Some(number)
    }

    /// Takes the rest, without empty values.
    pub(crate) fn rest(&mut self) -> BTreeMap<String, Value> {
        let mut rest = std::mem::take(&mut self.0);
        rest.retain(|_, value| !value.is_null());
        rest
    }
}
