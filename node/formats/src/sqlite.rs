//! Reads the rows of a SQLite database that another tool owns.
//!
//! The tool may be running, and the file may be hostile. So the reader copies the database with its
//! write-ahead log, opens the copy, and does not trust its schema: it reads ordinary tables only,
//! runs no function that the schema names, and bounds the length of a value.

use crate::limits::ELEMENT_BYTES_MAX;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use tempfile::TempDir;

/// The largest database that is copied, in bytes.
const DATABASE_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;

/// A copy of a database, removed on drop.
pub(crate) struct DatabaseCopy {
    connection: Connection,
    _folder: TempDir,
}

/// Receives the fields of a row and its number, from 1.
pub(crate) type TakeRow<'a> = dyn FnMut(u64, Map<String, Value>) -> ControlFlow<()> + 'a;

impl DatabaseCopy {
    /// Copies and opens a database. An error is a clause.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("no copy can be made: {error}"))?;
        let copy = folder.path().join("copy.db");
        copy_file(path, &copy).map_err(|error| format!("it cannot be copied: {error}"))?;
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = Path::new(&log);
        // A link could lead to a file that the caller does not name.
        if fs::symlink_metadata(log).is_ok_and(|found| found.is_file()) {
            let copied = copy_file(log, &folder.path().join("copy.db-wal"));
            copied.map_err(|error| format!("its log cannot be copied: {error}"))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&copy, flags).and_then(|connection| {
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
            let bytes = i32::try_from(ELEMENT_BYTES_MAX * 8).unwrap_or(i32::MAX);
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, bytes)?;
            connection.execute_batch("PRAGMA cell_size_check = ON; PRAGMA query_only = ON;")?;
            Ok(connection)
        });
        let connection = opened.map_err(|error| format!("it is no readable database: {error}"))?;
        Ok(Self { connection, _folder: folder })
    }

    /// The name of the first ordinary table that has all these columns.
    pub(crate) fn table_with(&self, columns: &[&str]) -> Result<Option<String>, String> {
        let read = || -> rusqlite::Result<Option<String>> {
            let mut tables = self.connection.prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' \
                 AND sql NOT LIKE 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite_%' ORDER BY name",
            )?;
            let names = tables.query_map([], |row| row.get::<_, String>(0))?;
            for name in names {
                let name = name?;
                let mut info = self.connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
                let found = info.query_map([&name], |row| row.get::<_, String>(0))?;
                let found = found.collect::<rusqlite::Result<Vec<String>>>()?;
                if columns.iter().all(|column| found.iter().any(|of| of == column)) {
                    return Ok(Some(name));
                }
            }
            Ok(None)
        };
        read().map_err(|error| format!("its tables cannot be read: {error}"))
    }

    /// The number of rows of a table; 0 if it cannot be read.
    pub(crate) fn row_count(&self, table: &str) -> u64 {
        let query = format!("SELECT count(*) FROM \"{}\"", table.replace('"', "\"\""));
        let count = self.connection.query_row(&query, [], |row| row.get::<_, i64>(0));
        count.ok().and_then(|count| u64::try_from(count).ok()).unwrap_or_default()
    }

    /// Calls `take` for each row of a table, in the order of a column.
    pub(crate) fn rows(
        &self,
        table: &str,
        order: &str,
        take: &mut TakeRow<'_>,
    ) -> Result<(), String> {
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        let query = format!("SELECT * FROM {} ORDER BY {}", quoted(table), quoted(order));
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&query)?;
            let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
            let mut rows = statement.query([])?;
            let mut number = 0;
            while let Some(row) = rows.next()? {
                number += 1;
                let mut fields = Map::new();
                for (at, name) in names.iter().enumerate() {
                    fields.insert(name.clone(), value(row.get_ref(at)?));
                }
                if take(number, fields).is_break() {
                    break;
                }
            }
            Ok(())
        };
        read().map_err(|error| format!("the table {table} cannot be read: {error}"))
    }
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let metadata = fs::metadata(from)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.len() > DATABASE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {DATABASE_BYTES_MAX} bytes")));
    }
    fs::copy(from, to).map(|_| ())
}

/// A value as JSON. Bytes have no meaning for an entry, so only their number is kept.
fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::from(number),
        ValueRef::Real(number) => Value::from(number),
        ValueRef::Text(text) => Value::String(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::String(format!("{} bytes", bytes.len())),
    }
}
