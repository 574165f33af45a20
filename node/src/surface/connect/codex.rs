//! The one client whose settings are TOML: a table is added at the end, and taken out again.
//!
//! The positions come from the TOML reader; nothing is printed anew. Whatever the file says in another
//! form than a table of its own is left to its owner, with a sentence that says so.

use super::jsonc::Problem;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

const SERVERS: &str = "mcp_servers";
const NAME: &str = "klnode";

/// What the client is told to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl Entry {
    fn args(&self) -> Value {
        Value::Array(self.args.iter().map(|arg| Value::from(arg.as_str())).collect())
    }

    fn members(&self) -> [(&'static str, Value); 2] {
        [("command", Value::from(self.command.as_str())), ("args", self.args())]
    }
}

/// The file without its byte order mark, whose places are counted from there.
fn body(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

fn read(text: &str) -> Result<Spanned<DeTable<'_>>, Problem> {
    let shift = text.len() - body(text).len();
    DeTable::parse(body(text)).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start) + shift;
        Problem::new(at.min(text.len()), format!("it is not TOML ({})", error.message().trim()))
    })
}

/// What the file says, without places.
pub fn table(text: &str) -> Result<Table, Problem> {
    read(text)?;
    toml::from_str(body(text)).map_err(|error| Problem::new(0, error.message().to_owned()))
}

fn inner<'a, 'i>(table: &'a DeTable<'i>, key: &str) -> Option<&'a Spanned<DeValue<'i>>> {
    table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value)
}

/// Where our entry stands: its own table, and where its name does.
fn ours<'a, 'i>(root: &'a DeTable<'i>) -> Result<Option<(&'a DeTable<'i>, usize)>, Problem> {
    let Some(servers) = inner(root, SERVERS) else { return Ok(None) };
    let wrong = |value: &Spanned<DeValue<'_>>, what: String| {
        let kind = value.get_ref().type_str();
        Problem::new(value.span().start, format!("{what} is of type {kind}; it must be a table"))
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

/// What the file has the client run, if it has an entry.
pub fn found(text: &str) -> Result<Option<Entry>, Problem> {
    let root = read(text)?;
    if ours(root.get_ref())?.is_none() {
        return Ok(None);
    }
    let table = table(text)?;
    let entry = table.get(SERVERS).and_then(|servers| servers.get(NAME));
    let text_of = |value: &Value| value.as_str().map(str::to_owned);
    let command = entry.and_then(|entry| entry.get("command")).and_then(text_of);
    let args = entry.and_then(|entry| entry.get("args")).and_then(Value::as_array);
    let args = args.into_iter().flatten().filter_map(text_of).collect();
    Ok(Some(Entry { command: command.unwrap_or_default(), args }))
}

/// The names in our entry, and where each stands.
pub fn members(text: &str) -> Result<Vec<(String, usize)>, Problem> {
    let root = read(text)?;
    let Some((table, _)) = ours(root.get_ref())? else { return Ok(Vec::new()) };
    let shift = text.len() - body(text).len();
    let names = table.iter().map(|(name, _)| name);
    Ok(names.map(|name| (name.get_ref().to_string(), name.span().start + shift)).collect())
}

/// The file with our entry in it.
pub fn put(text: &str, entry: &Entry) -> Result<String, Problem> {
    let root = read(text)?;
    let Some((table, at)) = ours(root.get_ref())? else { return appended(text, entry) };
    let shift = text.len() - body(text).len();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    for (key, value) in entry.members() {
        let Some(standing) = inner(table, key) else {
            let told = format!("`{SERVERS}.{NAME}` has no `{key}`: remove it, and connect again");
            return Err(Problem::new(at + shift, told));
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

fn appended(text: &str, entry: &Entry) -> Result<String, Problem> {
    let newline = newline(text);
    let mut grown = text.to_owned();
    if !body(text).is_empty() {
        // A blank line before it, and an end to the last line.
        let ends = if text.ends_with('\n') { 1 } else { 2 };
        grown.push_str(&newline.repeat(ends));
    }
    grown.push_str(&format!("[{SERVERS}.{NAME}]{newline}"));
    for (key, value) in entry.members() {
        grown.push_str(&format!("{key} = {value}{newline}"));
    }
    read(&grown).map_err(|_| {
        let at = text.find(SERVERS).unwrap_or_default();
        let told = format!("`{SERVERS}` is closed to tables after it: write it as tables");
        Problem::new(at, told)
    })?;
    Ok(grown)
}

/// The file without our entry; nothing if it has none.
pub fn remove(text: &str) -> Result<Option<String>, Problem> {
    let root = read(text)?;
    let Some((table, name)) = ours(root.get_ref())? else { return Ok(None) };
    let shift = text.len() - body(text).len();
    let line_start = |at: usize| text[..at].rfind('\n').map_or(shift, |end| end + 1);
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |end| at + end + 1);
    let mut start = line_start(name + shift);
    let end = line_end(last_byte(table).max(name) + shift);
    // The blank line that was put before it.
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
    let told = format!("`{SERVERS}.{NAME}` is not a table of its own: take it out by hand");
    if is_left { Ok(Some(kept)) } else { Err(Problem::new(name + shift, told)) }
}

/// The table of servers is there as long as one is in it.
fn without_empty(mut table: Table) -> Table {
    if table.get(SERVERS).and_then(Value::as_table).is_some_and(Table::is_empty) {
        table.remove(SERVERS);
    }
    table
}

/// Where the last value in a table ends.
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

    fn entry() -> Entry {
        let args = ["mcp", "--home", "/a \"b\""].map(str::to_owned).to_vec();
        Entry { command: "/usr/bin/klnode".into(), args }
    }

    const FILE: &str = "# mine\nmodel = \"o\"\n\n[mcp_servers.other]\ncommand = \"x\" # keep\nargs = [\n  \"[a]\",\n]\n\n[tui]\nx = 1\n";

    #[test]
    fn an_entry_goes_in_at_the_end_and_out_without_a_trace() {
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
    fn an_entry_elsewhere_goes_with_its_own_tables_and_nothing_else() {
        let ours = "[mcp_servers.klnode]\ncommand = \"old\" # ours\nargs = [\n  \"mcp\",\n]\n\n[mcp_servers.klnode.env]\nA = \"1\"\n";
        let text = FILE.replace("[tui]", &format!("{ours}# about tui\n[tui]"));
        let changed = put(&text, &entry()).unwrap();
        assert_eq!(found(&changed).unwrap(), Some(entry()));
        assert!(changed.contains("# ours") && changed.contains("A = \"1\""), "{changed}");
        let out = remove(&text).unwrap().expect("it is there");
        assert_eq!(out, FILE.replace("\n[tui]", "# about tui\n[tui]"));
    }

    #[test]
    fn what_cannot_be_changed_in_place_is_left_with_a_sentence() {
        for (text, what) in [
            ("a = \n", "it is not TOML"),
            ("mcp_servers = 1\n", "`mcp_servers` is of type integer"),
            ("mcp_servers = { other = {} }\n", "is closed to tables after it"),
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
        assert!(remove(shared).unwrap_err().what.contains("take it out by hand"));
    }

    #[test]
    fn any_file_comes_back() {
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
