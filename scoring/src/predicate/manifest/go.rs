//! Parses `go.mod`: required modules; a replaced module has no known version.

use std::collections::BTreeSet;

use super::PackageManifest;
use crate::predicate::version::PackageVersion;

pub(super) fn read(text: &str) -> Option<PackageManifest> {
    let mut manifest = PackageManifest::default();
    let mut replaced = BTreeSet::new();
    let mut required = Vec::new();
    let mut has_module = false;
    let mut block: Option<&str> = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_matches(['"', '`'])).collect();
        let (directive, words) = match (block, words.as_slice()) {
            (_, []) => continue,
            (Some(_), [")"]) => {
                block = None;
                continue;
            }
            (Some(directive), words) => (directive, words),
            (None, [directive, "("]) => {
                block = Some(directive);
                continue;
            }
            (None, [directive, words @ ..]) => (*directive, words),
        };
        match (directive, words) {
            ("module", [_]) => has_module = true,
            ("require", [package, version]) => {
                required.push((*package, PackageVersion::parse(version)?));
            }
            ("replace", [package, ..]) => {
                replaced.insert((*package).to_owned());
            }
            ("require" | "replace" | "module", _) => return None,
            _ => {}
        }
    }
    for (package, version) in required {
        let lowest = (!replaced.contains(package)).then_some(version);
        manifest.add(package.to_owned(), lowest);
    }
    (has_module && block.is_none()).then_some(manifest)
}
