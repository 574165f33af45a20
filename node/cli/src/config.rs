//! `klnode config`: lists every key with its value and the origin of the value.

use super::Reply;
use klnode_config::{Layered, SettingReport, ValueSource};
use serde::Serialize;
use std::fmt::Write;

/// The keys to show.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A key or a section [default: all keys].
    pub key: Option<String>,
    /// Only keys that differ from the defaults.
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

/// Lists the matching keys; `None` if no key matches.
pub fn show(args: &Args, layered: &Layered) -> Option<Reply> {
    let is_in = |row: &str, key: &str| {
        row == key || row.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
    };
    // A section may have two parts, the second one below `tuning`.
    let is_wanted = |row: &SettingReport| {
        let tuned = row.key.strip_prefix("tuning.");
        args.key
            .as_deref()
            .is_none_or(|key| is_in(&row.key, key) || tuned.is_some_and(|tuned| is_in(tuned, key)))
    };
    let mut rows: Vec<SettingReport> = layered.explain().into_iter().filter(is_wanted).collect();
    if rows.is_empty() {
        return None;
    }
    rows.retain(|row| !args.changed || is_changed(row));
    let mut text = String::new();
    if rows.is_empty() {
        text.push_str("Every setting has its default.\n");
    }
    let one = rows.len() == 1;
    for row in &rows {
        if one {
            for line in row.comment.lines() {
                let _ = writeln!(text, "# {line}");
            }
        }
        let _ = write!(text, "{} = {}", row.key, row.value);
        if row.origin != ValueSource::Default {
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

/// Whether a value was set and differs from its default.
pub(super) fn is_changed(row: &SettingReport) -> bool {
    row.origin != ValueSource::Default && row.value != row.default
}

/// Lists the defaults if the settings cannot be read. Changed keys are unknown then.
pub fn show_defaults(args: &Args, defaults: &Layered) -> Option<Reply> {
    let mut reply = show(args, defaults)?;
    if args.changed {
        reply.text.clear();
    }
    Some(reply)
}

fn row(explained: &SettingReport) -> Row<'_> {
    Row {
        key: &explained.key,
        value: &explained.value,
        default: &explained.default,
        origin: explained.origin.to_string(),
        variable: &explained.variable,
        comment: &explained.comment,
    }
}
