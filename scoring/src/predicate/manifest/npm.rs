//! Parses `package.json`: the four dependency tables, and aliased packages.

use serde_json::{Map, Value};

use super::PackageManifest;
use super::version_range::Dialect;
use crate::predicate::version::Operator;

const DIALECT: Dialect = Dialect { bare: Operator::Exact, numbers_min: 0 };

const TABLES: [&str; 4] =
    ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"];

pub(super) fn read(text: &str) -> Option<PackageManifest> {
    let file: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut manifest = PackageManifest::default();
    for table in TABLES.iter().filter_map(|name| file.get(*name)) {
        for (key, value) in table.as_object()? {
            let range = value.as_str()?;
            // `"old": "npm:react@^17"` is the package react.
            let alias = range.strip_prefix("npm:").and_then(|alias| alias.rsplit_once('@'));
            let (package, range) =
                alias.filter(|(name, _)| !name.is_empty()).unwrap_or((key, range));
            manifest.add(package.to_owned(), DIALECT.lowest(range));
        }
    }
    Some(manifest)
}
