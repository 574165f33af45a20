//! Parses `pyproject.toml`: the standard requirement lists, dependency groups, and Poetry's tables.

use toml::{Table, Value};

use super::version_range::Dialect;
use super::{LowestVersion, PackageManifest};
use crate::predicate::version::Operator;

/// In the standard notation a version has an operator; a version without one is read as exact.
const DIALECT: Dialect = Dialect { bare: Operator::Exact, numbers_min: 3 };

pub(super) fn read(text: &str) -> Option<PackageManifest> {
    let file: Table = text.parse().ok()?;
    let mut manifest = PackageManifest::default();
    for list in standard(&file) {
        for requirement in list.as_array()? {
            // A table includes another group, which is parsed on its own.
            if let Some(text) = requirement.as_str() {
                let (package, lowest) = requirement_of(text)?;
                manifest.add(package, lowest);
            }
        }
    }
    for table in poetry(&file) {
        for (key, value) in table.as_table()? {
            for lowest in poetry_lowest(value)? {
                manifest.add(normal(key), lowest);
            }
        }
    }
    Some(manifest)
}

/// All requirement lists: of the project, its extras, its groups and its build.
fn standard(file: &Table) -> Vec<&Value> {
    let project = file.get("project");
    let extras = project.and_then(|project| project.get("optional-dependencies"));
    let groups = [extras, file.get("dependency-groups")];
    let grouped = groups.into_iter().flatten().filter_map(Value::as_table);
    let mut found: Vec<&Value> = grouped.flatten().map(|(_, list)| list).collect();
    found.extend(project.and_then(|project| project.get("dependencies")));
    found.extend(file.get("build-system").and_then(|build| build.get("requires")));
    found
}

/// All dependency tables of Poetry: the main one, the older one for development, and groups.
fn poetry(file: &Table) -> Vec<&Value> {
    let Some(poetry) = file.get("tool").and_then(|tool| tool.get("poetry")) else {
        return Vec::new();
    };
    let groups = poetry.get("group").and_then(Value::as_table).into_iter().flatten();
    let mut found: Vec<&Value> =
        groups.filter_map(|(_, group)| group.get("dependencies")).collect();
    found.extend(poetry.get("dependencies"));
    found.extend(poetry.get("dev-dependencies"));
    found
}

/// Parses `name[extra] >=1,<2 ; marker`, `name (>=1)` or `name @ address`.
fn requirement_of(text: &str) -> Option<(String, LowestVersion)> {
    let text = text.split(';').next().unwrap_or_default().trim();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty() {
        return None;
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']')?.1.trim_start(),
        None => rest,
    };
    let range = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(rest);
    Some((normal(name), DIALECT.lowest(range)))
}

/// Parses a version, a table with a version, or a list of such tables for different platforms.
fn poetry_lowest(value: &Value) -> Option<Vec<LowestVersion>> {
    match value {
        Value::String(range) => Some(vec![DIALECT.lowest(range)]),
        Value::Table(table) => {
            let range = table.get("version").and_then(Value::as_str);
            Some(vec![range.and_then(|range| DIALECT.lowest(range))])
        }
        Value::Array(several) => {
            let each: Option<Vec<Vec<LowestVersion>>> = several
                .iter()
                .map(|value| (!value.is_array()).then(|| poetry_lowest(value)).flatten())
                .collect();
            each.map(|each| each.into_iter().flatten().collect())
        }
        _ => None,
    }
}

/// Canonical form of a name: lower case, words joined by single hyphens.
pub(super) fn normal(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
