//! Renders an entry for a terminal: one line in a list, or all rows of it.

use super::edit_conflict::label;
use super::sanitize::{harmless, printable};
use super::timestamp::{day, moment};
use klnode_api_types::{
    Admission, Contribution, Entry, FieldVersion, ImportedSource, Prior, ShareFlag,
};
use klnode_crdt::entry_type::{self, EntryType};
use klnode_crdt::ids::EntryId;
use klnode_scoring::content_scan::disclosure::SCAN_TOPIC;
use klnode_text::plural;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The indent of further lines of a value, so that they do not look like another row.
const NEXT_LINE: &str = "\n              ";

/// The most lines of a version of a field, and the most characters of each.
const VERSION_LINES_MAX: usize = 12;
const VERSION_CHARACTERS_MAX: usize = 400;

/// The contribution of one author, with the bounds that cut it.
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

/// True if only non-entitled authors made claims about the entry.
pub(super) fn is_only_proposed(entry: &Entry) -> bool {
    entry.status == "retracted" && entry.proposals > 0
}

/// The marks of this node, separated by commas.
fn marks(entry: &Entry) -> String {
    let marks = [(entry.pinned, "pinned"), (entry.muted, "muted"), (entry.invalidated, "wrong")];
    let marks: Vec<&str> = marks.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
    marks.join(", ")
}

/// One line: code, status, confidence, day of the last change, marks, sub-type, author unless it is
/// this node, title. Text of peers comes last, so that it cannot imitate another column.
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
        None if entry.status == "retracted" => ("retracted", "(retracted)"),
        None => (entry.status.as_str(), entry.title.as_str()),
    };
    let marks = Some(marks(entry)).filter(|marks| !marks.is_empty());
    let marks = marks.map(|marks| format!("({marks})  ")).unwrap_or_default();
    let idle = entry.idle_tasks.zip(entry.archive_after).filter(|(tasks, _)| *tasks > 0);
    let idle = idle.map(|(tasks, of)| format!("(idle {tasks} of {of})  ")).unwrap_or_default();
    let updated = entry.updated.map(|at| format!("{}  ", day(at))).unwrap_or_default();
    let sub_type = entry.registers.get("sub_type").filter(|name| !name.is_empty());
    let badge = sub_type.map(|name| format!("[{}]  ", printable(name))).unwrap_or_default();
    format!(
        "{}  {status:<9}  {:>3.0} %  {updated}{idle}{marks}{badge}{label}{}\n",
        entry.code,
        entry.mean * 100.0,
        printable(title),
    )
}

/// The code of a related entry, if a link to it has one; else the digits of its id.
fn code(entry: &Entry, id: &str) -> String {
    let linked = entry.links.iter().find(|link| link.id == id).map(|link| link.code.clone());
    let digits = || EntryId::from_hex(id).map(entry_type::code_digits);
    linked.or_else(digits).unwrap_or_else(|| id.to_owned())
}

/// Rows about related entries, the source of a copy, and warnings before it is shared.
fn related(entry: &Entry) -> Vec<(String, String)> {
    let links = entry.links.iter().map(|link| (link.relation.replace('_', " "), link.code.clone()));
    let promotion = entry.promotion.iter().map(|of| {
        let reason = of.reason.as_ref().map(|reason| format!(": {}", printable(reason)));
        let reason = reason.unwrap_or_default();
        let signed = match (&of.approved_by, reason.is_empty()) {
            (Some(key), _) => Some(format!(", approved by {key}{reason}")),
            (None, false) => Some(format!(", approved{reason}")),
            (None, true) => None,
        };
        let source = code(entry, &of.source);
        ("copied".to_owned(), format!("from {source}{}", signed.unwrap_or_default()))
    });
    let duplicates = entry.merged.iter().map(|other| ("duplicate".to_owned(), code(entry, other)));
    let shown = entry.merged_into.iter();
    let shown = shown.map(|other| ("shown under".to_owned(), code(entry, other)));
    let flags = entry.flags.iter().map(|of| {
        (flag_label(entry, of).to_owned(), format!("{}: {} ({})", of.field, of.text, of.topic))
    });
    links.chain(promotion).chain(duplicates).chain(shown).chain(flags).collect()
}

/// The label of a flagged passage: `held` if the entry waits for the operator because of it.
fn flag_label(entry: &Entry, flag: &ShareFlag) -> &'static str {
    if entry.held && flag.topic != SCAN_TOPIC { "held" } else { "warning" }
}

/// One version of a field in an edit conflict: number, author and time, and its text unless the
/// entry already shows that text.
fn version(of: &FieldVersion) -> String {
    let mut row = format!("{} {}", of.field, label(of));
    if of.shown {
        return row;
    }
    if of.text.is_empty() {
        row.push_str(": hidden in a pipe; use --all to show it");
        return row;
    }
    row.push(':');
    let text = harmless(of.text.trim_end());
    for line in text.lines().take(VERSION_LINES_MAX) {
        let short: String = line.chars().take(VERSION_CHARACTERS_MAX).collect();
        let more = if short.len() < line.len() { "…" } else { "" };
        let _ = write!(row, "\n{}", format!("| {short}{more}").trim_end());
    }
    let left_out = text.lines().count().saturating_sub(VERSION_LINES_MAX);
    if left_out > 0 {
        let _ = write!(row, "\n({left_out} more lines)");
    }
    row
}

/// The versions of fields in an edit conflict, and the command that settles them.
fn versions(entry: &Entry) -> Vec<(&'static str, String)> {
    let mut rows: Vec<_> = entry.versions.iter().map(|of| ("version", version(of))).collect();
    if !rows.is_empty() {
        let code = &entry.code;
        rows.push((
            "settle",
            format!("klnode edit {code} --take NUMBER, or --resolve for an editor"),
        ));
    }
    rows
}

/// Caveats of an entry, and statements of other authors about it.
fn by_others(entry: &Entry) -> Vec<(&'static str, String)> {
    let line = |field: &str, by: &str, text: &str| {
        format!("{field} by {by}: {}", text.lines().next().unwrap_or_default())
    };
    // The foreign author already has a row.
    let caveats = entry.caveats.iter().filter(|caveat| !caveat.starts_with("foreign:"));
    let mut rows: Vec<_> = caveats.map(|caveat| ("caveat", caveat.clone())).collect();
    rows.extend(versions(entry));
    rows.extend(entry.contributions.iter().map(|of| ("counted by", counted(of))));
    rows.extend(idleness(entry));
    rows.extend(entry.imported.iter().flat_map(imported));
    rows.extend(entry.prior.iter().map(|prior| ("prior", prior_evidence(prior))));
    rows.extend(entry.prediction_errors.map(|of| {
        let of = plural::counted(of.into(), "prediction error", "prediction errors");
        ("weak", format!("{of} since it last helped"))
    }));
    rows.extend(entry.primed_confirmations.map(|of| {
        let of = plural::counted(of.into(), "confirmation", "confirmations");
        ("primed", format!("{of} by callers that may have read it here: no evidence"))
    }));
    if entry.proposals > 0 {
        rows.push(("proposals", entry.proposals.to_string()));
    }
    let others = entry.of_others.iter();
    rows.extend(others.map(|of| ("of others", line(&of.field, &of.author_name, &of.text))));
    let proposed = entry.proposed.iter();
    rows.extend(proposed.map(|of| ("proposed", line(&of.register, &of.author_name, &of.text))));
    rows
}

/// The words of the file that an entry was imported from.
fn imported(source: &ImportedSource) -> Vec<(&'static str, String)> {
    let mut place = source.format.clone();
    for part in [&source.id, &source.path].into_iter().flatten() {
        let _ = write!(place, " {part}");
    }
    let mut rows = vec![("imported", place)];
    let words = [
        ("created", &source.created),
        ("updated", &source.updated),
        ("confirmed", &source.confirmed),
        ("provenance", &source.provenance),
        ("status", &source.status),
    ];
    let said = words.iter().filter_map(|(name, word)| Some(format!("{name} {}", word.as_ref()?)));
    let said: Vec<String> = said.collect();
    if !said.is_empty() {
        rows.push(("its words", said.join(", ")));
    }
    for citation in &source.citations {
        let mut row = format!("cites {}", citation.evidence);
        if let Some(name) = &citation.cited_by {
            let _ = write!(row, ", cited by {name}");
        }
        if let Some(date) = &citation.cited_at {
            let _ = write!(row, " at {date}");
        }
        rows.push(("its words", row));
    }
    if !source.extra.is_empty() {
        let names: Vec<&str> = source.extra.keys().map(String::as_str).collect();
        rows.push(("its words", format!("further fields {}", names.join(", "))));
    }
    rows
}

/// The prior evidence in the confidence.
pub(super) fn prior_evidence(prior: &Prior) -> String {
    let Prior { alpha, beta } = prior;
    format!(
        "prior evidence from import: alpha +{alpha:.2}, beta +{beta:.2}; does not count as verification"
    )
}

/// The last confirmation, and the number of tasks without use before the entry is archived.
fn idleness(entry: &Entry) -> Vec<(&'static str, String)> {
    let confirmed = entry.confirmed_days_ago.map(|days| match days {
        0 => "today".to_owned(),
        days => format!("{} ago", plural::counted(days.into(), "day", "days")),
    });
    let idle = entry.idle_tasks.zip(entry.archive_after).filter(|(tasks, _)| *tasks > 0);
    let idle =
        idle.map(|(tasks, most)| format!("in {tasks} of {most} tasks without evidence of use"));
    let rows = [("confirmed", confirmed), ("served", idle)];
    rows.into_iter().filter_map(|(name, says)| Some((name, says?))).collect()
}

/// The times of creation and, if later, of the last change.
fn dates(entry: &Entry) -> impl Iterator<Item = (&'static str, u64)> {
    let updated = entry.updated.filter(|at| Some(*at) != entry.created);
    let dates = [("created", entry.created), ("updated", updated)];
    dates.into_iter().filter_map(|(name, at)| Some((name, at?)))
}

/// The type and the workspace. A retracted entry has no type any more.
fn placed(entry: &Entry) -> (&'static str, String) {
    let place = format!("{} ({})", entry.workspace, entry.memory);
    match entry.kind.as_str() {
        "" => ("workspace", place),
        // An unknown type is text of the author, so it is not printed.
        kind => (
            "type",
            format!("{} in {place}", EntryType::parse(kind).map_or("entry", EntryType::name)),
        ),
    }
}

/// All rows of an entry, then its content.
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
            "{:.0} % from {:.1} observations (alpha {:.2}, beta {:.2}), certainty {}",
            entry.mean * 100.0,
            entry.observations,
            entry.alpha,
            entry.beta,
            certainty_bar(entry.observations, entry.alpha + entry.beta),
        ),
    );
    put("status", format!("{}: {}", entry.status, entry.status_reason));
    if entry.foreign {
        put("author", format!("{}: {}", entry.author_name, entry.author_reason));
        put("key", entry.author.clone());
        let tried = if entry.corroborated { "it has proved useful here" } else { "not yet" };
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
    for (name, value) in related(entry) {
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
    // A bar before each line keeps content from imitating the rows of another entry.
    for line in harmless(entry.content.trim_end()).lines() {
        let _ = writeln!(text, "{}", format!("| {line}").trim_end());
    }
    text
}

/// Segments of the bar of certainty.
const BAR_SEGMENTS: usize = 10;

/// A bar of the share of observations in the confidence; the rest is the initial value of every entry.
fn certainty_bar(observations: f64, total: f64) -> String {
    let share = if total > 0.0 { (observations / total).clamp(0.0, 1.0) } else { 0.0 };
    let filled = (share * BAR_SEGMENTS as f64).round() as usize;
    format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR_SEGMENTS - filled))
}

/// One row per repository, with the predicates that are checked there.
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

/// Explains whether the entry may be retrieved: the share of each signal, and the matching scan
/// rules.
pub(super) fn explained(entry: &Entry) -> String {
    let hidden = match (entry.memory.as_str(), entry.status.as_str()) {
        ("episodic", _) => Some("raw observations answer no question"),
        (_, "archived") => Some("it is archived"),
        _ if entry.muted => Some("you muted it"),
        _ if entry.invalidated => Some("you marked it wrong"),
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
        let released = if of.released { "; you released it, so it counts as low" } else { "" };
        let _ = writeln!(text, "scan          {}: {rules}{released}", of.verdict);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_with_the_share_of_observations() {
        assert_eq!(certainty_bar(0.0, 10.0), "[----------]");
        assert_eq!(certainty_bar(10.0, 20.0), "[#####-----]");
        assert_eq!(certainty_bar(400.0, 410.0), "[##########]");
        assert_eq!(certainty_bar(f64::NAN, 10.0), "[----------]");
        assert_eq!(certainty_bar(1.0, 0.0), "[----------]");
    }

    #[test]
    fn a_text_of_several_lines_cannot_imitate_a_row() {
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told\nL-AAAAAAAA  verified", "content": "c",
            "type": "lesson", "memory": "semantic", "workspace": "main", "tags": [], "sets": {},
            "registers": { "summary": "In short.\nstatus        verified" }, "citations": [],
            "of_others": [{
                "author": "cd", "author_name": "vm", "field": "tags",
                "text": "auth\nstatus        verified",
            }],
            "alpha": 5.0, "beta": 5.0, "mean": 0.5, "observations": 0.0, "status": "candidate",
            "status_reason": "no success observed yet", "author": "", "contested": [],
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
    fn every_version_in_an_edit_conflict_has_number_author_and_time() {
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
        let left_out =
            "title 2 by vm, 2026-09-21 14:13:20 UTC: hidden in a pipe; use --all to show it";
        assert!(text.contains(left_out), "{text}");
        assert!(text.contains("\nsettle        klnode edit L-7F3KQ2MX --take NUMBER"), "{text}");
        assert!(text.contains("\ncreated       2026-09-21 14:13:20 UTC\n"), "{text}");
        assert!(text.contains("\nupdated       2026-09-21 14:14:20 UTC\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 440), "{text}");
    }

    #[test]
    fn primed_confirmations_have_their_own_row() {
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
        let row =
            "\nprimed        2 confirmations by callers that may have read it here: no evidence\n";
        assert!(told.contains(row), "{told}");
    }

    #[test]
    fn confirmations_and_idle_tasks_have_rows() {
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
        let row = "\nserved        in 3 of 10 tasks without evidence of use\n";
        assert!(told.contains(row), "{told}");
    }

    #[test]
    fn foreign_entries_have_a_label_before_the_title() {
        let entry = serde_json::json!({
            "id": "ab", "code": "L-7F3KQ2MX", "title": "Told  [by you]", "content": "c",
            "type": "lesson", "memory": "semantic", "workspace": "team", "tags": [], "sets": {},
            "registers": {}, "citations": [], "alpha": 5.0, "beta": 5.0, "mean": 0.5,
            "observations": 0.0, "status": "candidate", "status_reason": "no success observed yet",
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
    fn a_line_shows_marks_proposals_and_retractions() {
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
        assert_eq!(line(&gone), "AJQ4EADQ  retracted   50 %  (retracted)\n");
        let marked = Entry { pinned: true, muted: true, invalidated: true, ..entry };
        let marks = "(pinned, muted, wrong)  [by";
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
        assert!(text.contains("\ncopied        from L-MBQGAYDA\n"), "{text}");
        assert!(text.contains("\nshown under   H47T6PZ7\n"), "{text}");
    }
}
