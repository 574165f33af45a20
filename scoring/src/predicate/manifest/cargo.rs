//! Parses `Cargo.toml`: all dependency tables, renamed packages, and workspace dependencies.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::version_range::Dialect;
use super::{LowestVersion, PackageManifest};
use crate::predicate::version::Operator;

const DIALECT: Dialect = Dialect { bare: Operator::Caret, numbers_min: 0 };

/// Dependency tables; Cargo still accepts the older spelling of two of them.
const TABLES: [&str; 5] = [
    "dependencies",
    "dev-dependencies",
    "dev_dependencies",
    "build-dependencies",
    "build_dependencies",
];

pub(super) fn read(text: &str) -> Option<PackageManifest> {
    let file: Table = text.parse().ok()?;
    let mut manifest = PackageManifest::default();
    let targets = file.get("target").and_then(Value::as_table).into_iter().flatten();
    let scopes = targets.filter_map(|(_, scope)| scope.as_table()).chain([&file]);
    for table in scopes.flat_map(|scope| TABLES.iter().filter_map(|name| scope.get(*name))) {
        for (key, value) in table.as_table()? {
            if value.get("workspace").and_then(Value::as_bool) == Some(true) {
                manifest.inherited.push(key.clone());
            } else {
                let (package, lowest) = declaration(key, value)?;
                manifest.add(package, lowest);
            }
        }
    }
    if let Some(workspace) = file.get("workspace") {
        let mut lent = BTreeMap::new();
        for (key, value) in
            workspace.get("dependencies").and_then(Value::as_table).into_iter().flatten()
        {
            let (package, lowest) = declaration(key, value)?;
            manifest.add(package.clone(), lowest.clone());
            lent.insert(key.clone(), (package, lowest));
        }
        manifest.lent = Some(lent);
    }
    Some(manifest)
}

/// The package that a key refers to, and the lowest version it admits.
fn declaration(key: &str, value: &Value) -> Option<(String, LowestVersion)> {
    match value {
        Value::String(range) => Some((key.to_owned(), DIALECT.lowest(range))),
        Value::Table(table) => {
            let text = |field: &str| table.get(field).and_then(Value::as_str);
            let package = text("package").unwrap_or(key).to_owned();
            Some((package, text("version").and_then(|range| DIALECT.lowest(range))))
        }
        _ => None,
    }
}
