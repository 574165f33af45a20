//! How an entry looks on a terminal.

use super::harmless::{harmless, printable};
use super::resolve::label;
use super::when::{day, moment};
use crate::api::types::{Admission, Contribution, Entry, Prior, Version};
use crate::query::count;
use klnode_crdt::ids::EntryId;
use klnode_crdt::kind::{self, Kind};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Between two lines of one value: the second does not pass for another row.
const NEXT_LINE: &str = "\n              ";

/// Lines that are shown of a version of a contested field, and characters of each.
const VERSION_LINES_MAX: usize = 12;
const VERSION_CHARACTERS_MAX: usize = 400;

/// What one author adds, and why no more.
fn counted(of: &Contribution) -> String {
    let (name, weight) = (&of.author_name, of.weight);
    let mut text = format!("{name}: +{:.2} -{:.2}, weight {weight:.2}", of.alpha, of.beta);
    if of.hop != Some(0) {
        let _ = write!(text, " ({})", of.reason);
    }
    for bound in &of.bounds {
        let _ = write!(text, "; cut from {:.2}: {bound}", of.offered);
    }
    text
}

/// Whether nobody whose word is shown says anything of it, and somebody else does.
pub(super) fn is_only_proposed(entry: &Entry) -> bool {
    entry.status == "retracted" && entry.proposals > 0
}

/// The operator's marks, in words.
fn marks(entry: &Entry) -> String {
    let marks =
        [(entry.pinned, "pinned"), (entry.muted, "muted"), (entry.invalidated, "invalidated")];
    let marks: Vec<&str> = marks.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    marks.join(", ")
}

/// One line: code, status, confidence, day of the last change, marks, author unless it is this node,
/// title. Text that others chose comes last, where it can pass for nothing else.
pub(super) fn line(entry: &Entry) -> String {
    let proposed = entry.proposed.first().filter(|_| is_only_proposed(entry));
    let label = match (proposed, entry.foreign, entry.corroborated) {
        (Some(of), ..) => format!("[by {}]  ", printable(&of.author_name)),
        (None, false, _) => String::new(),
        (None, true, true) => format!("[by {}]  ", printable(&entry.author_name)),
        (None, true, false) => format!("[by {}, untried]  ", printable(&entry.author_name)),
    };
    let (status, title) = match proposed {
        Some(of) => ("proposed", of.text.as_str()),
        None if is_only_proposed(entry) => ("proposed", "(without a title)"),
        None if entry.status == "retracted" => ("retracted", "(taken back)"),
        None => (entry.status.as_str(), entry.title.as_str()),
    };
    let marks = Some(marks(entry)).filter(|marks| !marks.is_empty());
    let marks = marks.map(|marks| format!("({marks})  ")).unwrap_or_default();
    let updated = entry.updated.map(|at| format!("{}  ", day(at))).unwrap_or_default();
    format!(
        "{}  {status:<9}  {:>3.0} %  {updated}{marks}{label}{}\n",
        entry.code,
        entry.mean * 100.0,
        printable(title),
    )
}

/// What people call an entry of which an answer has the id: its code where a link leads there, else
/// its digits.
fn code(entry: &Entry, id: &str) -> String {
    let linked = entry.links.iter().find(|link| link.id == id).map(|link| link.code.clone());
    let digits = || EntryId::from_hex(id).map(kind::code_digits);
    linked.or_else(digits).unwrap_or_else(|| id.to_owned())
}

/// What an entry is to others: its edges, what it was made of, and what to look at before they have it.
fn beside(entry: &Entry) -> Vec<(String, String)> {
    let links = entry.links.iter().map(|link| (link.relation.replace('_', " "), link.code.clone()));
    let promotion = entry.promotion.iter().map(|of| {
        let signed = of.approved_by.as_ref().map(|key| format!(", signed for by {key}"));
        let source = code(entry, &of.source);
        ("promoted".to_owned(), format!("from {source}{}", signed.unwrap_or_default()))
    });
    let same = entry.merged.iter().map(|other| ("same as".to_owned(), code(entry, other)));
    let shown = entry.merged_into.iter();
    let shown = shown.map(|other| ("shown under".to_owned(), code(entry, other)));
    let flags = entry
        .flags
        .iter()
        .map(|of| ("look at".to_owned(), format!("{}: {} ({})", of.field, of.text, of.topic)));
    links.chain(promotion).chain(same).chain(shown).chain(flags).collect()
}

/// One version of a contested field: its number, author and time, and its text unless the text is the
/// one that is shown anyway.
fn version(of: &Version) -> String {
    let mut said = format!("{} {}", of.field, label(of));
    if of.shown {
        return said;
    }
    if of.text.is_empty() {
        said.push_str(": left out of a pipe; --all shows it");
        return said;
    }
    said.push(':');
    let text = harmless(of.text.trim_end());
    for line in text.lines().take(VERSION_LINES_MAX) {
        let short: String = line.chars().take(VERSION_CHARACTERS_MAX).collect();
        let more = if short.len() < line.len() { "…" } else { "" };
        let _ = write!(said, "\n{}", format!("| {short}{more}").trim_end());
    }
    let left_out = text.lines().count().saturating_sub(VERSION_LINES_MAX);
    if left_out > 0 {
        let _ = write!(said, "\n({left_out} more lines)");
    }
    said
}

/// The versions of contested fields, and how to settle them.
fn versions(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut rows: Vec<_> = entry.versions.iter().map(|of| ("version", version(of))).collect();
    if !rows.is_empty() {
        let code = &entry.code;
        rows.push(("settle", format!("klnode resolve {code}, or with --take NUMBER")));
    }
    rows
}

/// What must be said of an entry, and what others have to do with it.
fn by_others(entry: &Entry) -> Vec<(&'static str, String)> {
    let line = |field: &str, by: &str, text: &str| {
        format!("{field} by {by}: {}", text.lines().next().unwrap_or_default())
    };
    // Who wrote it is said before.
    let caveats = entry.caveats.iter().filter(|caveat| !caveat.starts_with("foreign:"));
    let mut rows: Vec<_> = caveats.map(|caveat| ("caveat", caveat.clone())).collect();
    rows.extend(versions(entry));
    rows.extend(entry.contributions.iter().map(|of| ("counted by", counted(of))));
    rows.extend(spoken_for(entry));
    rows.extend(entry.prior.iter().map(|prior| ("prior", prior_evidence(prior))));
    rows.extend(entry.prediction_errors.map(|of| {
        let of = count::counted(of.into(), "prediction error", "prediction errors");
        ("weak", format!("{of} since it last helped"))
    }));
    rows.extend(entry.primed_confirmations.map(|of| {
        let of = count::counted(of.into(), "confirmation", "confirmations");
        ("primed", format!("{of} by whoever may have it from here: no evidence"))
    }));
    if entry.proposals > 0 {
        rows.push(("proposals", entry.proposals.to_string()));
    }
    let beside = entry.of_others.iter();
    rows.extend(beside.map(|of| ("of others", line(&of.field, &of.author_name, &of.text))));
    let proposed = entry.proposed.iter();
    rows.extend(proposed.map(|of| ("proposed", line(&of.register, &of.author_name, &of.text))));
    rows
}

/// What prior evidence adds to the confidence.
pub(super) fn prior_evidence(prior: &Prior) -> String {
    let Prior { alpha, beta } = prior;
    format!("prior evidence from import: alpha +{alpha:.2}, beta +{beta:.2}; verifies nothing")
}

/// When it was last confirmed, and how near it is to the archive, where there is anything to say.
fn spoken_for(entry: &Entry) -> Vec<(&'static str, String)> {
    let confirmed = entry.confirmed_days_ago.map(|days| match days {
        0 => "today".to_owned(),
        days => format!("{} ago", count::counted(days.into(), "day", "days")),
    });
    let idle = entry.idle_tasks.zip(entry.archive_after).filter(|(tasks, _)| *tasks > 0);
    let idle = idle.map(|(tasks, most)| {
        format!("in {tasks} of {most} tasks without anything that speaks for it")
    });
    let rows = [("confirmed", confirmed), ("served", idle)];
    rows.into_iter().filter_map(|(name, says)| Some((name, says?))).collect()
}

/// When the entry was created and, if that was later, last changed.
fn dates(entry: &Entry) -> impl Iterator<Item = (&'static str, u64)> {
    let updated = entry.updated.filter(|at| Some(*at) != entry.created);
    let dates = [("created", entry.created), ("updated", updated)];
    dates.into_iter().filter_map(|(name, at)| Some((name, at?)))
}

/// Of which type it is, and where it lies. What was taken back has no type any more.
fn placed(entry: &Entry) -> (&'static str, String) {
    let place = format!("{} ({})", entry.workspace, entry.memory);
    match entry.kind.as_str() {
        "" => ("workspace", place),
        // Any other type is a word of whoever wrote the entry.
        kind => ("type", format!("{} in {place}", Kind::parse(kind).map_or("entry", Kind::name))),
    }
}

/// Everything.
pub(super) fn whole(entry: &Entry) -> String {
    let mut text = String::new();
    let mut put = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<13} {}", value.replace('\n', NEXT_LINE));
        }
    };
    put("code", format!("{}  ({})", entry.code, entry.id));
    put("title", printable(&entry.title));
    let (name, place) = placed(entry);
    put(name, place);
    put("tags", entry.tags.join(", "));
    for (name, value) in &entry.registers {
        put(name, value.clone());
    }
    for (name, values) in &entry.sets {
        put(name, values.join("; "));
    }
    for citation in &entry.citations {
        let name = if citation.context { "context" } else { "evidence" };
        put(name, format!("{}:{}", citation.evidence_type, citation.evidence_ref));
    }
    put(
        "confidence",
        format!(
            "{:.0} % from {:.1} observations (alpha {:.2}, beta {:.2})",
            entry.mean * 100.0,
            entry.observations,
            entry.alpha,
            entry.beta,
        ),
    );
    put("status", format!("{}: {}", entry.status, entry.status_reason));
    if entry.foreign {
        put("author", format!("{}: {}", entry.author_name, entry.author_reason));
        put("key", entry.author.clone());
        let tried = if entry.corroborated { "it has been seen to work" } else { "not yet" };
        put("corroborated", tried.to_owned());
    } else if !entry.author.is_empty() {
        put("author", format!("{} ({})", entry.author_name, entry.author));
    }
    for (name, at) in dates(entry) {
        put(name, format!("{} UTC", moment(at)));
    }
    if let Some(checked) = &entry.checked {
        put("checked here", checked.outcome.clone());
        for finding in &checked.findings {
            put(&checked.outcome, format!("{} ({})", finding.atom, finding.reason));
        }
    }
    for row in anchored(entry) {
        put("anchored", row);
    }
    for (name, value) in beside(entry) {
        put(&name, value);
    }
    for (name, value) in by_others(entry) {
        put(name, value);
    }
    put("here", marks(entry));
    put("note", entry.note.clone().unwrap_or_default());
    if !entry.content.is_empty() {
        text.push('\n');
    }
    // Each line is marked: no content looks like the head of another entry.
    for line in harmless(entry.content.trim_end()).lines() {
        let _ = writeln!(text, "{}", format!("| {line}").trim_end());
    }
    text
}

/// The repositories of its predicates: a row for each, with the predicates that are checked there.
fn anchored(entry: &Entry) -> Vec<String> {
    let mut by_repository: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for one in &entry.anchored {
        let names = one.repositories.join(" and ");
        let repository = match (one.repositories.is_empty(), one.here) {
            (true, _) => "in no recorded repository: not checked".to_owned(),
            (false, true) => format!("in {names}: this repository"),
            (false, false) => format!("in {names}: not checked here"),
        };
        by_repository.entry(repository).or_default().push(&one.predicate);
    }
    let row = |(repository, predicates): (String, Vec<&str>)| {
        format!("{repository} ({})", predicates.join("; "))
    };
    by_repository.into_iter().map(row).collect()
}

/// Why it may be retrieved, or may not: what each signal adds, and which rules of the scan matched.
pub(super) fn explained(entry: &Entry) -> String {
    let hidden = match (entry.memory.as_str(), entry.status.as_str()) {
        ("episodic", _) => Some("raw observations answer no question"),
        (_, "archived") => Some("it is archived"),
        _ if entry.muted => Some("you muted it"),
        _ if entry.invalidated => Some("you hold it to be wrong"),
        _ => None,
    };
    let mut text = hidden.map_or_else(String::new, |why| format!("\nretrieved     no: {why}"));
    if let Some(of) = &entry.admission {
        let Admission { score, decision, reason, accepted_from, rejected_below, .. } = of;
        let _ = writeln!(
            text,
            "\nadmission     {decision}: {reason}\nscore         {score:.3}; accepted from \
             {accepted_from:.3}, rejected below {rejected_below:.3}"
        );
        let mut largest_first: Vec<_> = of.adds.iter().collect();
        largest_first.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        for (name, adds) in largest_first {
            let signal = of.parts.get(name).copied().unwrap_or_default();
            let _ = writeln!(text, "  {name:<13} {signal:.2} adds {adds:.3}");
        }
    }
    if let Some(of) = &entry.scan {
        let rules = match of.rules.is_empty() {
            true => "no rule matched".to_owned(),
            false => of.rules.join(", "),
        };
        let released = if of.released { "; you let it in, so it counts as low" } else { "" };
        let _ = writeln!(text, "scan          {}: {rules}{released}", of.verdict);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_several_lines_passes_for_no_other_row() {
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told\nL-AAAAAAAA  verified", "content": "c",
            "type": "lesson", "memory": "semantic", "workspace": "main", "tags": [], "sets": {},
            "registers": { "summary": "In short.\nstatus        verified" }, "citations": [],
            "of_others": [{
                "author": "cd", "author_name": "vm", "field": "tags",
                "text": "auth\nstatus        verified",
            }],
            "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0, "status": "candidate",
            "status_reason": "nothing has helped yet", "author": "", "contested": [],
            "proposals": 0, "pinned": false, "muted": false, "invalidated": false,
        });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        assert_eq!(line(&entry).lines().count(), 1);
        assert!(!line(&entry).contains("[by"), "one's own has no label");
        let text = whole(&entry);
        let begin = |part: &str| text.lines().filter(|line| line.starts_with(part)).count();
        assert_eq!([begin("L-"), begin("title "), begin("status ")], [0, 1, 1], "{text}");
        assert!(text.contains("\nof others     tags by vm: auth\n"), "{text}");
        let content = "Fine.\r\n\ncode          L-7QKQ2MXA\nstatus        verified: proven\r";
        let entry = Entry { content: format!("{content}author        you"), ..entry };
        let text = whole(&entry);
        let begin = |part: &str| text.lines().filter(|line| line.starts_with(part)).count();
        assert_eq!([begin("code "), begin("status "), begin("author ")], [1, 1, 0], "{text}");
        assert!(text.contains("\n| Fine.\n|\n| code          L-7QKQ2MXA\n"), "{text}");
    }

    #[test]
    fn every_version_of_a_contested_field_has_a_number_an_author_and_a_time() {
        let (lines, long) = ("a line\n".repeat(20), "x".repeat(500));
        let version = |field: &str, number: usize, shown: bool, text: &str| {
            serde_json::json!({
                "field": field, "number": number, "version": "aa", "author": "cd",
                "author_name": if shown { "you" } else { "vm" }, "at": 1_790_000_000_000_u64,
                "shown": shown, "text": text, "gate": "open",
            })
        };
        let theirs = format!("Theirs.\n\nstatus        verified\n{lines}");
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Ours", "content": "c", "type": "lesson",
            "memory": "semantic", "workspace": "main", "tags": [], "sets": {}, "registers": {},
            "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0,
            "status": "candidate", "status_reason": "", "author": "", "contested": ["content"],
            "created": 1_790_000_000_000_u64, "updated": 1_790_000_060_000_u64,
            "versions": [
                version("content", 1, false, &theirs), version("content", 2, true, "c"),
                version("title", 1, false, &long), version("title", 2, false, ""),
            ],
            "proposals": 0, "pinned": false, "muted": false, "invalidated": false,
        });
        let text = whole(&serde_json::from_value(entry).unwrap());
        let shown = "\nversion       content 1 by vm, 2026-09-21 14:13:20 UTC:\n\
                     \x20             | Theirs.\n              |\n\
                     \x20             | status        verified\n              | a line\n";
        assert!(text.contains(shown), "{text}");
        assert!(text.contains("\n              (11 more lines)\n"), "{text}");
        let own = "\nversion       content 2 by you, 2026-09-21 14:13:20 UTC (shown)\n";
        assert!(text.contains(own), "{text}");
        let left_out = "title 2 by vm, 2026-09-21 14:13:20 UTC: left out of a pipe; --all shows it";
        assert!(text.contains(left_out), "{text}");
        assert!(text.contains("\nsettle        klnode resolve L-7F3KQ2MX"), "{text}");
        assert!(text.contains("\ncreated       2026-09-21 14:13:20 UTC\n"), "{text}");
        assert!(text.contains("\nupdated       2026-09-21 14:14:20 UTC\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 440), "{text}");
    }

    #[test]
    fn primed_confirmations_are_told_apart_where_there_are_any() {
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told", "content": "c", "type": "lesson",
            "memory": "semantic", "workspace": "main", "tags": [], "sets": {}, "registers": {},
            "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0,
            "status": "candidate", "status_reason": "", "author": "", "contested": [],
            "proposals": 0, "pinned": false, "muted": false, "invalidated": false,
        });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        assert!(!whole(&entry).contains("primed"), "{}", whole(&entry));
        let told = whole(&Entry { primed_confirmations: Some(2), ..entry });
        let row = "\nprimed        2 confirmations by whoever may have it from here: no evidence\n";
        assert!(told.contains(row), "{told}");
    }

    #[test]
    fn confirmations_and_tasks_in_vain_are_told_where_there_are_any() {
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told", "content": "c", "type": "lesson",
            "memory": "semantic", "workspace": "main", "tags": [], "sets": {}, "registers": {},
            "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0,
            "status": "candidate", "status_reason": "", "author": "", "contested": [],
            "idle_tasks": 0, "archive_after": 10,
            "proposals": 0, "pinned": false, "muted": false, "invalidated": false,
        });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        let text = whole(&entry);
        assert!(!text.contains("\nconfirmed") && !text.contains("\nserved"), "{text}");
        for (days, says) in [(0, "today"), (1, "1 day ago"), (12, "12 days ago")] {
            let told = whole(&Entry { confirmed_days_ago: Some(days), ..entry.clone() });
            assert!(told.contains(&format!("\nconfirmed     {says}\n")), "{told}");
        }
        let told = whole(&Entry { idle_tasks: Some(3), ..entry });
        let row = "\nserved        in 3 of 10 tasks without anything that speaks for it\n";
        assert!(told.contains(row), "{told}");
    }

    #[test]
    fn what_others_wrote_is_labelled_where_nothing_can_hide_the_label() {
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told  [by you]", "content": "c",
            "type": "lesson", "memory": "semantic", "workspace": "team", "tags": [], "sets": {},
            "registers": {}, "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5,
            "observations": 0.0, "status": "candidate", "status_reason": "nothing has helped yet",
            "author": "cd", "author_name": "vm", "foreign": true, "contested": [], "proposals": 0,
            "pinned": false, "muted": false, "invalidated": false,
        });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        let untried = "L-7F3KQ2MX  candidate   50 %  [by vm, untried]  Told  [by you]\n";
        assert_eq!(line(&entry), untried);
        let tried = line(&Entry { corroborated: true, ..entry });
        assert_eq!(tried, untried.replace(", untried", ""));
    }

    #[test]
    fn a_line_tells_marks_proposals_and_what_was_taken_back() {
        let entry = serde_json::json!({
            "id": "ab", "code": "AJQ4EADQ", "title": "", "content": "", "type": "",
            "memory": "semantic", "workspace": "main", "tags": [], "sets": {}, "registers": {},
            "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0,
            "status": "retracted", "status_reason": "", "author": "", "contested": [],
            "proposed": [{ "author": "cd", "author_name": "vm", "register": "title", "at": 1,
                           "text": "Told\nL-AAAAAAAA" }],
            "proposals": 2, "pinned": false, "muted": false, "invalidated": false,
        });
        let entry: Entry = serde_json::from_value(entry).unwrap();
        let proposed = "AJQ4EADQ  proposed    50 %  [by vm]  Told L-AAAAAAAA\n";
        assert_eq!(line(&entry), proposed);
        let gone = Entry { proposed: Vec::new(), proposals: 0, ..entry.clone() };
        assert_eq!(line(&gone), "AJQ4EADQ  retracted   50 %  (taken back)\n");
        let marked = Entry { pinned: true, muted: true, invalidated: true, ..entry };
        let marks = "(pinned, muted, invalidated)  [by";
        assert_eq!(line(&marked), proposed.replace("[by", marks));
    }

    #[test]
    fn other_entries_are_named_by_their_codes() {
        let (source, other) = ("60".repeat(16), "3f".repeat(16));
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told", "content": "c", "type": "lesson",
            "memory": "semantic", "workspace": "main", "tags": [], "sets": {}, "registers": {},
            "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0,
            "status": "candidate", "status_reason": "", "author": "", "contested": [],
            "links": [{ "relation": "derived_from", "id": source, "code": "L-MBQGAYDA" }],
            "promotion": { "source": source, "at": 1 }, "merged_into": other,
            "proposals": 0, "pinned": false, "muted": false, "invalidated": false,
        });
        let text = whole(&serde_json::from_value(entry).unwrap());
        assert!(text.contains("\npromoted      from L-MBQGAYDA\n"), "{text}");
        assert!(text.contains("\nshown under   H47T6PZ7\n"), "{text}");
    }
}
