//! Light stemming: inflections of one English word get one stem. The stem is not a word and is
//! never shown.

use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Base form of a word that the rules would stem wrongly.
fn irregular(word: &str) -> Option<&'static str> {
    static FORMS: OnceLock<BTreeMap<&str, &str>> = OnceLock::new();
    let forms = FORMS.get_or_init(|| {
        let lines = include_str!("lists/irregular.txt").lines();
        lines
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_once(' '))
            .collect()
    });
    forms.get(word).copied()
}

pub(super) fn stem(word: &str) -> String {
    if let Some(base) = irregular(word) {
        return base.to_owned();
    }
    if word.len() < 4 || !word.bytes().all(|one| one.is_ascii_lowercase() || one == b'-') {
        return word.to_owned();
    }
    let plural = singular(word);
    ending(&without_suffix(&plural))
}

fn singular(word: &str) -> String {
    if let Some(root) = word.strip_suffix("ies").filter(|root| root.len() > 2) {
        return format!("{root}y");
    }
    let is_plural =
        word.ends_with('s') && !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
    if is_plural { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}

fn without_suffix(word: &str) -> String {
    if let Some(root) = word.strip_suffix("ied").filter(|root| root.len() > 1) {
        return format!("{root}y");
    }
    for (suffix, root_min) in [("ically", 3), ("ing", 3), ("ed", 3), ("ment", 5)] {
        let root = word.strip_suffix(suffix).filter(|root| root.len() >= root_min);
        if let Some(root) = root.filter(|root| root.contains(['a', 'e', 'i', 'o', 'u', 'y'])) {
            return if suffix == "ically" { format!("{root}ic") } else { root.to_owned() };
        }
    }
    let root = word.strip_suffix("ion").filter(|root| root.len() >= 5);
    if let Some(root) = root.filter(|root| root.ends_with(['s', 't'])) {
        return root.to_owned();
    }
    match word.strip_suffix("ly").filter(|root| root.len() >= 4) {
        Some(root) => root.to_owned(),
        None => word.to_owned(),
    }
}

/// Common ending of "merge" and "merg(ing)", and of "run" and "runn(ing)".
fn ending(word: &str) -> String {
    let word = word.strip_suffix('e').filter(|root| root.len() > 2).unwrap_or(word);
    let mut last = word.chars().rev();
    let (one, two) = (last.next(), last.next());
    let is_double = one == two && one.is_some_and(|one| !"aeiou".contains(one));
    if is_double && word.len() > 3 { word[..word.len() - 1].to_owned() } else { word.to_owned() }
}
