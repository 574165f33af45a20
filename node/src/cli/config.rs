//! `klnode config`: every key, its value, and where the value comes from.

use super::Reply;
use klnode_config::{Explained, Layered, Origin};
use serde::Serialize;
use std::fmt::Write;

/// What to show.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A key or a section; all keys without one.
    pub key: Option<String>,
    /// Only what differs from the defaults.
    #[arg(long)]
    pub changed: bool,
}

#[derive(Serialize)]
struct Row<'a> {
    key: &'a str,
    value: &'a str,
    default: &'a str,
    origin: String,
    variable: &'a str,
    comment: &'a str,
}

/// What to show; nothing if no key matches.
pub fn show(args: &Args, layered: &Layered) -> Option<Reply> {
    let is_wanted = |row: &Explained| {
        args.key.as_deref().is_none_or(|key| {
            row.key == key || row.key.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    let mut rows: Vec<Explained> = layered.explain().into_iter().filter(is_wanted).collect();
    if rows.is_empty() {
        return None;
    }
    rows.retain(|row| !args.changed || is_changed(row));
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str("Nothing differs from the defaults.\n");
    }
    let one = rows.len() == 1;
    for row in &rows {
        if one {
            for line in row.comment.lines() {
                let _ = writeln!(text, "# {line}");
            }
        }
        let _ = write!(text, "{} = {}", row.key, row.value);
        if row.origin != Origin::Default {
            let _ = write!(text, "    # from {}", row.origin);
        }
        if is_changed(row) {
            let _ = write!(text, ", not {}", row.default);
        }
        text.push('\n');
    }
    let rows: Vec<Row<'_>> = rows.iter().map(row).collect();
    Some(Reply::new(&rows, text))
}

/// Whether a value differs from its default, wherever it comes from.
pub(super) fn is_changed(row: &Explained) -> bool {
    row.origin != Origin::Default && row.value != row.default
}

/// The same of the defaults, where what was set cannot be read: what differs from them is not known.
pub fn show_defaults(args: &Args, defaults: &Layered) -> Option<Reply> {
    let mut reply = show(args, defaults)?;
    if args.changed {
        reply.text.clear();
    }
    Some(reply)
}

fn row(explained: &Explained) -> Row<'_> {
    Row {
        key: &explained.key,
        value: &explained.value,
        default: &explained.default,
        origin: explained.origin.to_string(),
        variable: &explained.variable,
        comment: &explained.comment,
    }
}
