//! Keys of earlier versions, so that a file that still has one gets a helpful answer.
//!
//! Most old keys only moved below `tuning`. `schema` finds those by itself, because a key below
//! `tuning` fills the field that its remaining path names. This module lists the keys whose names
//! changed as well, and the keys that no longer exist.

use crate::setting_path::Key;

/// Settings that have no effect any more. They are ignored, so that the node starts after an
/// upgrade.
const RETIRED: [&str; 2] = ["status.stale_prediction_errors_min", "status.stale_uses_below"];

/// Old names of sections and keys, each with the field that has replaced it. The longest entry that
/// a key begins with applies.
const RENAMED: &[(&str, &str)] = &[
    ("confidence.gamma_per_day", "confidence.decay_per_day"),
    ("confidence.mass", "confidence.foreign_evidence"),
    ("confidence.outcome.unnamed_entries_max", "confidence.outcome.guessed_entries_max"),
    ("confidence.outcome.unnamed_weight", "confidence.outcome.guessed_weight"),
    ("conflict", "contradiction"),
    ("conflict.better_on_min", "contradiction.leading_criteria_min"),
    ("conflict.composite.provenance_half", "contradiction.composite.provenance_half_citations"),
    ("engine.group_bytes_max", "engine.commit_bytes_max"),
    ("engine.group_commands_max", "engine.commit_commands_max"),
    ("federation.scrub_interval", "federation.set_comparison_interval"),
    ("gate.uncorroborated_places_max", "gate.uncorroborated_entries_max"),
    ("hooks.deadline", "hooks.timeout"),
    ("index.hnsw_dead_fraction_max", "index.hnsw_deleted_fraction_max"),
    ("network.progress_bytes_per_second_min", "network.stream_bytes_per_second_min"),
    ("provenance", "tasks"),
    ("provenance.findings_compared_after", "tasks.findings_comparison_delay"),
    ("provenance.task_expires_after", "tasks.expire_after"),
    ("provenance.user_primed_for", "tasks.user_priming_lifetime"),
    ("retrieval.briefing.fresh_min", "retrieval.briefing.freshness_min"),
    ("retrieval.briefing.recent", "retrieval.briefing.recent_within"),
    ("retrieval.foreign.above_weight_max", "retrieval.foreign.author_weight_margin"),
    ("survey", "audit"),
    ("survey.recent", "audit.recent_within"),
    ("survey.sample_min", "audit.sample_size_min"),
    ("trust.fade_after", "trust.decay_after"),
    ("trust.fade_per_day", "trust.decay_per_day"),
    ("upkeep", "maintenance"),
    ("upkeep.look_interval", "maintenance.check_interval"),
];

/// True for a setting that has no effect any more.
pub(crate) fn is_retired(key: &Key) -> bool {
    RETIRED.contains(&key.to_string().as_str())
}

/// The field that an old key stands for. A key that was never renamed is its own field.
pub(crate) fn renamed(old: &Key) -> Key {
    let matching = RENAMED.iter().filter_map(|(begin, new)| Some((begin, new, rest(old, begin)?)));
    match matching.max_by_key(|(begin, ..)| begin.len()) {
        Some((_, new, rest)) => Key::new(new.split('.').chain(rest.iter().map(String::as_str))),
        None => old.clone(),
    }
}

/// The parts of a key after these first ones; `None` if the key begins with others.
fn rest<'a>(key: &'a Key, begin: &str) -> Option<&'a [String]> {
    begin.split('.').try_fold(key.parts(), |parts, name| {
        let (first, rest) = parts.split_first()?;
        (first == name).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{KeyMeaning, Schema};

    #[test]
    fn every_new_name_is_a_setting_or_a_section_and_no_old_name_is() {
        for (old, new) in RENAMED {
            let field = Key::parse(new).unwrap();
            assert!(Schema::embedded().key_of(&field).is_some(), "{new}");
            let meaning = Schema::embedded().meaning(&Key::parse(old).unwrap());
            let is_moved =
                matches!(meaning, KeyMeaning::MovedSetting(_) | KeyMeaning::MovedSection(_));
            assert!(is_moved, "{old}");
        }
    }

    #[test]
    fn the_longest_old_name_applies() {
        let renamed = |old: &str| renamed(&Key::parse(old).unwrap()).to_string();
        assert_eq!(renamed("upkeep.look_interval"), "maintenance.check_interval");
        assert_eq!(renamed("upkeep.pause"), "maintenance.pause");
        assert_eq!(renamed("trust.hop_max"), "trust.hop_max");
    }
}
