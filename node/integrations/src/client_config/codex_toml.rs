//! Edits Codex's settings, the only ones in TOML: appends klnode's table and removes it again.
//!
//! The TOML parser supplies byte positions, and edits replace or insert text at those positions, so
//! the rest of the file keeps its formatting. If the file defines the entry in a form that cannot
//! be edited this way, the functions return a [`JsonError`] and the operator edits the file.

use super::jsonc::JsonError;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

const SERVERS: &str = "mcp_servers";
const NAME: &str = "klnode";

/// The command that the client runs to start klnode's MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerEntry {
    /// Path of the program.
    pub command: String,
    /// Arguments, starting with the verb `mcp`.
    pub args: Vec<String>,
}

impl ServerEntry {
    fn args(&self) -> Value {
        Value::Array(self.args.iter().map(|arg| Value::from(arg.as_str())).collect())
    }

    fn members(&self) -> [(&'static str, Value); 2] {
        [("command", Value::from(self.command.as_str())), ("args", self.args())]
    }
}

/// The text without its byte order mark. The parser counts positions from here.
fn body(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

fn read(text: &str) -> Result<Spanned<DeTable<'_>>, JsonError> {
    let shift = text.len() - body(text).len();
    DeTable::parse(body(text)).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start) + shift;
        JsonError::new(
            at.min(text.len()),
            format!("The file is not valid TOML ({}).", error.message().trim()),
        )
    })
}

/// Parses the file into a plain table without positions.
pub fn table(text: &str) -> Result<Table, JsonError> {
    read(text)?;
    toml::from_str(body(text)).map_err(|error| {
        JsonError::new(0, format!("The file is not valid TOML ({}).", error.message()))
    })
}

fn inner<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value)
}

/// klnode's table and the position of its name, if the file has one.
fn own_table<'a, 'i>(root: &'a DeTable<'i>) -> Result<Option<(&'a DeTable<'i>, usize)>, JsonError> {
    let Some(servers) = inner(root, SERVERS) else { return Ok(None) };
    let wrong = |value: &Spanned<DeValue<'_>>, what: String| {
        let kind = value.get_ref().type_str();
        JsonError::new(value.span().start, format!("{what} is of type {kind}; it must be a table."))
    };
    let Some(inside) = servers.get_ref().as_table() else {
        return Err(wrong(servers, format!("`{SERVERS}`")));
    };
    let Some((name, value)) = inside.iter().find(|(name, _)| name.get_ref().as_ref() == NAME)
    else {
        return Ok(None);
    };
    match value.get_ref().as_table() {
        Some(table) => Ok(Some((table, name.span().start))),
        None => Err(wrong(value, format!("`{SERVERS}.{NAME}`"))),
    }
}

/// klnode's entry, if the file has one.
pub fn found(text: &str) -> Result<Option<ServerEntry>, JsonError> {
    let root = read(text)?;
    if own_table(root.get_ref())?.is_none() {
        return Ok(None);
    }
    let table = table(text)?;
    let entry = table.get(SERVERS).and_then(|servers| servers.get(NAME));
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let command = entry.and_then(|entry| entry.get("command")).and_then(text_of);
    let args = entry.and_then(|entry| entry.get("args")).and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(text_of).collect();
    Ok(Some(ServerEntry { command: command.unwrap_or_default(), args }))
}

/// The keys in klnode's entry, each with its byte position.
pub fn members(text: &str) -> Result<Vec<(String, usize)>, JsonError> {
    let root = read(text)?;
    let Some((table, _)) = own_table(root.get_ref())? else { return Ok(Vec::new()) };
    let shift = text.len() - body(text).len();
    let names = table.iter().map(|(name, _)| name);
    Ok(names.map(|name| (name.get_ref().to_string(), name.span().start + shift)).collect())
}

/// Returns the file with klnode's entry added or updated.
pub fn put(text: &str, entry: &ServerEntry) -> Result<String, JsonError> {
    let root = read(text)?;
    let Some((table, at)) = own_table(root.get_ref())? else { return append_entry(text, entry) };
    let shift = text.len() - body(text).len();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for (key, value) in entry.members() {
        let Some(standing) = inner(table, key) else {
            let message =
                format!("`{SERVERS}.{NAME}` has no `{key}`. Remove the table and connect again.");
            return Err(JsonError::new(at + shift, message));
        };
        let span = standing.span().start + shift..standing.span().end + shift;
        let is_same = self::table(text)?[SERVERS][NAME].get(key) == Some(&value);
        if !is_same {
            changes.push((span, value.to_string()));
        }
    }
    changes.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    for (span, value) in changes {
        text.replace_range(span, &value);
    }
    Ok(text)
}

fn newline(text: &str) -> &'static str {
    let is_carriage = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
    if is_carriage { "\r\n" } else { "\n" }
}

fn append_entry(text: &str, entry: &ServerEntry) -> Result<String, JsonError> {
    let newline = newline(text);
    let mut grown = text.to_owned();
    if !body(text).is_empty() {
        // End the last line if needed, then add a blank line.
        let ends = if text.ends_with('\n') { 1 } else { 2 };
        grown.push_str(&newline.repeat(ends));
    }
    grown.push_str(&format!("[{SERVERS}.{NAME}]{newline}"));
    for (key, value) in entry.members() {
        grown.push_str(&format!("{key} = {value}{newline}"));
    }
    read(&grown).map_err(|_| {
        let at = text.find(SERVERS).unwrap_or_default();
        let message = format!(
            "`{SERVERS}` is an inline table and cannot be extended. Write it as [{SERVERS}.NAME]."
        );
        JsonError::new(at, message)
    })?;
    Ok(grown)
}

/// Returns the file without klnode's entry, or `None` if it has none.
pub fn remove(text: &str) -> Result<Option<String>, JsonError> {
    let root = read(text)?;
    let Some((table, name)) = own_table(root.get_ref())? else { return Ok(None) };
    let shift = text.len() - body(text).len();
    let line_start = |at: usize| text[..at].rfind('\n').map_or(shift, |end| end + 1);
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let mut start = line_start(name + shift);
    let end = line_end(last_byte(table).max(name) + shift);
    // Also remove the blank line that `append_entry` put before the table.
    if let Some(before) = text[..start].strip_suffix("\r\n").or(text[..start].strip_suffix('\n'))
        && before.ends_with('\n')
    {
        start = before.len();
    }
    let kept = format!("{}{}", &text[..start], &text[end..]);
    let mut expected = self::table(text)?;
    if let Some(servers) = expected.get_mut(SERVERS).and_then(Value::as_table_mut) {
        servers.remove(NAME);
    }
    let is_left =
        self::table(&kept).is_ok_and(|kept| without_empty(kept) == without_empty(expected));
    let message = format!("`{SERVERS}.{NAME}` is not a separate table. Remove it by hand.");
    if is_left { Ok(Some(kept)) } else { Err(JsonError::new(name + shift, message)) }
}

/// Drops the table of servers if it is empty: removing the only server removes it from the file
/// too.
fn without_empty(mut table: Table) -> Table {
    if table.get(SERVERS).and_then(Value::as_table).is_some_and(Table::is_empty) {
        table.remove(SERVERS);
    }
    table
}

/// Position of the last byte of the last value in a table.
fn last_byte(table: &DeTable<'_>) -> usize {
    let end = |(name, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| match value.get_ref() {
        DeValue::Table(inner) => last_byte(inner).max(name.span().end),
        _ => value.span().end.saturating_sub(1),
    };
    table.iter().map(end).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    fn entry() -> ServerEntry {
        let args = ["mcp", "--home", "/a \"b\""].map(str::to_owned).to_vec();
        ServerEntry { command: "/usr/bin/klnode".into(), args }
    }

    const FILE: &str = "# mine\nmodel = \"o\"\n\n[mcp_servers.other]\ncommand = \"x\" # keep\nargs = [\n  \"[a]\",\n]\n\n[tui]\nx = 1\n";

    #[test]
    fn adding_and_removing_the_entry_restores_every_byte() {
        for text in ["", FILE, &FILE.replace('\n', "\r\n"), "\u{FEFF}a = 1\n", "[mcp_servers]\n"] {
            let put_in = put(text, &entry()).unwrap();
            assert!(put_in.starts_with(text), "{put_in}");
            assert_eq!(found(&put_in).unwrap(), Some(entry()));
            assert_eq!(put(&put_in, &entry()).unwrap(), put_in, "a second time changes nothing");
            assert_eq!(remove(&put_in).unwrap().as_deref(), Some(text));
            assert_eq!(remove(text).unwrap(), None);
        }
    }

    #[test]
    fn an_entry_in_the_middle_is_removed_with_its_subtables_only() {
        let ours = "[mcp_servers.klnode]\ncommand = \"old\" # ours\nargs = [\n  \"mcp\",\n]\n\n[mcp_servers.klnode.env]\nA = \"1\"\n";
        let text = FILE.replace("[tui]", &format!("{ours}# about tui\n[tui]"));
        let changed = put(&text, &entry()).unwrap();
        assert_eq!(found(&changed).unwrap(), Some(entry()));
        assert!(changed.contains("# ours") && changed.contains("A = \"1\""), "{changed}");
        let out = remove(&text).unwrap().expect("it is there");
        assert_eq!(out, FILE.replace("\n[tui]", "# about tui\n[tui]"));
    }

    #[test]
    fn entries_that_cannot_be_edited_are_refused_with_a_reason() {
        for (text, what) in [
            ("a = \n", "The file is not valid TOML"),
            ("mcp_servers = 1\n", "`mcp_servers` is of type integer"),
            ("mcp_servers = { other = {} }\n", "is an inline table"),
            ("[mcp_servers]\nklnode = 1\n", "`mcp_servers.klnode` is of type integer"),
            ("[mcp_servers.klnode]\nurl = \"x\"\n", "has no `command`"),
        ] {
            let problem = put(text, &entry()).unwrap_err();
            assert!(problem.what.contains(what), "{text}: {problem:?}");
        }
        let inline = "[mcp_servers]\nklnode = { command = \"a\" }\nother = { command = \"b\" }\n";
        let out = remove(inline).unwrap().expect("it has a line of its own");
        assert_eq!(out, "[mcp_servers]\nother = { command = \"b\" }\n");
        let shared = "mcp_servers = { klnode = { command = \"a\" }, other = {} }\n";
        assert!(remove(shared).unwrap_err().what.contains("Remove it by hand"));
    }

    #[test]
    fn adding_and_removing_restores_any_file() {
        #[expect(clippy::needless_pass_by_value, reason = "quickcheck hands values over")]
        fn law(lines: Vec<(u8, u8)>) {
            let mut text = String::new();
            for (number, (kind, value)) in lines.iter().enumerate() {
                text.push_str(&match kind % 5 {
                    0 => "\n".to_owned(),
                    1 => format!("# {value}\n"),
                    2 => format!("[t{number}]\n"),
                    3 => format!("[mcp_servers.s{number}]\ncommand = \"{value}\"\n"),
                    _ => format!("k{number} = \"\"\"\n[{value}]\n\"\"\"\n"),
                });
            }
            let put_in = put(&text, &entry()).unwrap();
            assert_eq!(remove(&put_in).unwrap(), Some(text));
        }
        quickcheck(law as fn(Vec<(u8, u8)>));
    }
}
