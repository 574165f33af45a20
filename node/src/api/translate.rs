//! Between what travels and what the node works with.

use super::conflicts;
use super::errors::{ApiError, Kind as ErrorKind};
use super::portable::line::RELATIONS;
use super::types;
use crate::engine::NewEntry;
use crate::query::{Found, Gate, Looked, Reading, ShareFlag, Standing, malformed};
use crate::replicate::PairError;
use crate::store;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::gset::Presence;
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::kind::{self, Kind};
use klnode_crdt::lww::Register;
use klnode_crdt::origin::Memory;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_crdt::writer::Claim;
use klnode_scoring::admission::{self, Decision};
use klnode_scoring::confidence;
use klnode_scoring::rank::signals::Check;
use klnode_scoring::scan::Severity;
use klnode_scoring::status::{Reason, Status};
use std::collections::BTreeMap;

/// Proposals that are listed with an entry; all are counted.
const PROPOSED_MAX: usize = 100;
/// Values of contested registers that are listed with an entry.
const RIVALS_MAX: usize = 32;
/// What evidence is called beside registers and sets.
pub(super) const EVIDENCE: &str = "evidence";

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorKind::Invalid, message, None)
}

/// A new entry as the engine takes it.
pub(super) fn new_entry(
    new: types::NewEntry,
    cited_by: &str,
    now: WallTime,
) -> Result<NewEntry, ApiError> {
    let name = new.kind.as_deref().unwrap_or("lesson");
    let kind = Kind::parse(name).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|row| row.1).collect();
        invalid(format!(
            "write the entry: type is `{name}`; it must be one of {}",
            known.join(", ")
        ))
    })?;
    let memory = match new.memory.as_deref() {
        Some(name) => Memory::parse(name).ok_or_else(|| {
            let known = "semantic, procedural, episodic";
            invalid(format!("write the entry: memory is `{name}`; it must be one of {known}"))
        })?,
        None if kind.is_raw() => Memory::Episodic,
        None if kind == Kind::Norm => Memory::Procedural,
        None => Memory::Semantic,
    };
    let workspace = workspace_named(new.workspace.as_deref().unwrap_or("main"))?;
    for text in new.anchors.iter().chain(&new.depends_on) {
        well_formed(text)?;
    }
    new.tags.iter().try_for_each(|tag| well_formed_tag(tag))?;
    let registers = [
        (Register::SUMMARY, new.summary),
        (Register::SUB_TYPE, new.sub_type),
        (Register::POLARITY, new.polarity),
        (Register::DECAY_CLASS, new.decay_class),
        (Register::OUTCOME, new.outcome),
        (Register::THREAD, new.thread),
    ];
    let sets = [
        (TextSet::TAGS, new.tags),
        (TextSet::ANCHORS, new.anchors),
        (TextSet::VERIFY_STEPS, new.verify_steps),
        (TextSet::DEPENDS_ON, new.depends_on),
    ];
    let claims = sets
        .into_iter()
        .flat_map(|(set, texts)| texts.into_iter().map(move |text| Claim::Add(set, text)));
    Ok(NewEntry {
        workspace,
        memory,
        kind,
        title: new.title,
        content: new.content,
        registers: registers.into_iter().filter_map(|(at, text)| Some((at, text?))).collect(),
        claims: claims.collect(),
        citations: citations(&new.evidence, cited_by, now)?,
        source: None,
    })
}

/// Refuses what is meant as a predicate and is none: nobody would ever look at it. Nor at nothing.
pub(super) fn well_formed(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        let message = "read what it depends on: an anchor or a condition is empty; leave it out";
        return Err(invalid(message.into()));
    }
    let Some(error) = malformed(text) else { return Ok(()) };
    let hint = "docs/predicates.md has the whole language; other words pass as they are";
    Err(ApiError::new(ErrorKind::Invalid, format!("{error}; given was `{text}`"), Some(hint)))
}

/// Refuses a tag with an empty part: no search for it would find the entry.
fn well_formed_tag(tag: &str) -> Result<(), ApiError> {
    let is_empty = |part: &str| part.trim().is_empty();
    if !tag.split('/').any(is_empty) {
        return Ok(());
    }
    let parts: Vec<&str> = tag.split('/').filter(|part| !is_empty(part)).collect();
    let way_out = match parts.is_empty() {
        true => "leave it out".to_owned(),
        false => format!("write it as {}", parts.join("/")),
    };
    Err(invalid(format!("read the tag `{tag}`: a part of it is empty; {way_out}")))
}

/// A workspace by its name.
pub(super) fn workspace_named(name: &str) -> Result<WorkspaceId, ApiError> {
    match name {
        "main" => Ok(WorkspaceId::MAIN),
        "local" => Ok(WorkspaceId::LOCAL),
        other => WorkspaceId::from_hex(other)
            .ok_or_else(|| PairError::NoSuchWorkspace(other.to_owned()).into()),
    }
}

pub(super) fn citations(
    evidence: &[String],
    cited_by: &str,
    now: WallTime,
) -> Result<Vec<Citation>, ApiError> {
    let citation = |text: &String| {
        let (evidence_type, evidence_ref) = text.split_once(':').ok_or_else(|| {
            invalid(format!(
                "read the evidence `{text}`: write it as KIND:REF, as in commit:1a2b3c"
            ))
        })?;
        Ok(Citation {
            evidence_type: evidence_type.into(),
            evidence_ref: evidence_ref.into(),
            cited_by: cited_by.into(),
            cited_at: now,
            is_context: false,
        })
    };
    evidence.iter().map(citation).collect()
}

/// An edit as claims.
pub(super) fn edit(
    edit: types::Edit,
    cited_by: &str,
    now: WallTime,
) -> Result<Vec<Claim>, ApiError> {
    let mut claims = Vec::new();
    for (name, text) in edit.registers {
        let register = Register::KNOWN.iter().find(|(_, known)| *known == name);
        let (register, _) = register.ok_or_else(|| {
            let known: Vec<&str> = Register::KNOWN.iter().map(|(_, name)| *name).collect();
            invalid(format!(
                "edit `{name}`: there is no such field; there are {}",
                known.join(", ")
            ))
        })?;
        claims.push(Claim::Set(*register, text));
    }
    for text in edit.add_anchors.iter().chain(&edit.add_depends_on) {
        well_formed(text)?;
    }
    edit.add_tags.iter().try_for_each(|tag| well_formed_tag(tag))?;
    let sets = [
        (TextSet::TAGS, edit.add_tags, edit.remove_tags),
        (TextSet::ANCHORS, edit.add_anchors, edit.remove_anchors),
        (TextSet::VERIFY_STEPS, edit.add_verify_steps, edit.remove_verify_steps),
        (TextSet::DEPENDS_ON, edit.add_depends_on, edit.remove_depends_on),
    ];
    for (set, added, removed) in sets {
        claims.extend(added.into_iter().map(|text| Claim::Add(set, text)));
        claims.extend(removed.into_iter().map(|text| Claim::Withdraw(set, text)));
    }
    claims.extend(citations(&edit.add_evidence, cited_by, now)?.into_iter().map(Claim::Cite));
    let archival = edit.archived.map(|archived| match archived {
        true => Presence::Present,
        false => Presence::Withdrawn,
    });
    claims.extend(archival.map(Claim::Archive));
    if claims.is_empty() {
        return Err(invalid("edit the entry: nothing to change was given".into()));
    }
    Ok(claims)
}

/// A found entry as it is answered.
pub(super) fn entry(found: &Found) -> types::Entry {
    let view = &found.view;
    let text = |register| view.text(register).unwrap_or_default().to_owned();
    let shown = [Register::TITLE, Register::CONTENT, Register::TYPE];
    let rest = view.registers.iter().filter(|(register, _)| !shown.contains(register));
    let rest = rest.filter(|(register, shown)| {
        **register == Register::SUMMARY || found.voices.contains(&shown.value.author)
    });
    let author = found.author.as_deref();
    let (posterior, standing) = (&found.judged.confidence.posterior, &found.judged.standing);
    let mut sets = sets(found);
    let tags = TextSet::TAGS.name().and_then(|name| sets.remove(name)).unwrap_or_default();
    let citations = view.citations.iter().filter(|(_, by)| found.speaks(by));
    types::Entry {
        id: found.entry.to_string(),
        code: found.code(),
        version: found.version(),
        title: text(Register::TITLE),
        content: text(Register::CONTENT),
        kind: text(Register::TYPE),
        memory: view.origin.as_ref().map(|o| o.memory().to_string()).unwrap_or_default(),
        workspace: found.workspace.clone(),
        registers: rest
            .filter_map(|(register, shown)| {
                Some((register.name()?.to_owned(), shown.value.text.clone()))
            })
            .collect(),
        tags,
        citations: citations.map(|(of, _)| citation(of)).collect(),
        sets,
        alpha: posterior.alpha(),
        beta: posterior.beta(),
        mean: posterior.mean(),
        observations: found.judged.confidence.effective_observations,
        status: standing.status.name().to_owned(),
        status_reason: reason(found),
        author: author.map(|by| by.author.to_string()).unwrap_or_default(),
        author_name: author.map(|by| by.name.clone()).unwrap_or_default(),
        author_reason: author.map(Standing::why).unwrap_or_default(),
        hop: author.and_then(|by| by.hop).map(|hop| hop.0),
        trust: author.map(|by| by.trust),
        weight: author.map(|by| by.weight.value),
        foreign: found.is_foreign(),
        corroborated: found.is_corroborated(),
        gate: gate(found.gate()).into(),
        first_seen: found.first_seen.as_millis(),
        created: view.dates.map(|dates| dates.created.as_millis()),
        updated: view.dates.map(|dates| dates.updated.as_millis()),
        contested: conflicts::contested(found),
        proposals: found.proposals().count(),
        merged: found.merged.iter().map(ToString::to_string).collect(),
        merged_into: found.merged_into.map(|entry| entry.to_string()),
        prior: found.judged.confidence.imported.map(|(alpha, beta)| types::Prior { alpha, beta }),
        prediction_errors: Some(found.judged.prediction_errors).filter(|of| *of > 0),
        primed_confirmations: Some(found.judged.primed_confirmations).filter(|of| *of > 0),
        pinned: found.overlay.is_pinned,
        muted: found.overlay.is_muted,
        invalidated: found.overlay.is_invalidated,
        note: found.overlay.note.clone(),
        // The rest takes further reading, and is told where one entry is shown.
        ..types::Entry::default()
    }
}

/// Sets by name, with those of their elements that are shown as the text's own.
fn sets(found: &Found) -> BTreeMap<String, Vec<String>> {
    let named = found.view.texts.iter().filter_map(|(set, elements)| Some((set.name()?, elements)));
    let spoken = named.map(|(name, elements)| {
        let own = elements.iter().filter(|(_, by)| found.speaks(by));
        (name.to_owned(), own.map(|(text, _)| text.clone()).collect::<Vec<String>>())
    });
    spoken.filter(|(_, elements)| !elements.is_empty()).collect()
}

fn gate(gate: Gate) -> &'static str {
    match gate {
        Gate::Open => "open",
        Gate::LastPlaces => "last_places",
        Gate::Shut => "shut",
    }
}

/// What others than the author of its text have put beside an entry, with whose word it is.
fn of_others(found: &Found, reading: &Reading<'_>) -> Result<Vec<types::OfOther>, store::Error> {
    let view = &found.view;
    let mut said: Vec<(&str, String, AuthorId)> = Vec::new();
    let texts = [Register::TITLE, Register::CONTENT, Register::TYPE, Register::SUMMARY];
    for (register, shown) in view.registers.iter().filter(|(of, _)| !texts.contains(of)) {
        if let (Some(name), false) = (register.name(), found.voices.contains(&shown.value.author)) {
            said.push((name, shown.value.text.clone(), shown.value.author));
        }
    }
    for (set, elements) in &view.texts {
        let Some(name) = set.name() else { continue };
        let others = elements.iter().filter(|(_, by)| !found.speaks(by));
        said.extend(others.filter_map(|(text, by)| Some((name, text.clone(), *by.first()?))));
    }
    let others = view.citations.iter().filter(|(_, by)| !found.speaks(by));
    said.extend(others.filter_map(|(of, by)| Some((EVIDENCE, cited(of), *by.first()?))));
    let mut told = Vec::with_capacity(said.len());
    for (field, text, author) in said {
        let by = reading.standing(author)?;
        let (author, author_name) = (author.to_string(), by.name.clone());
        told.push(types::OfOther { author, author_name, field: field.to_owned(), text });
    }
    Ok(told)
}

/// A found entry with what each author has to do with it, after a look at what it depends on, if there
/// was one.
pub(super) fn whole_entry(
    found: &Found,
    reading: &Reading<'_>,
    looked: Option<&Looked>,
) -> Result<types::Entry, store::Error> {
    let contribution = |of: &confidence::Contribution| {
        let by = reading.standing(of.author)?;
        Ok(types::Contribution {
            author: by.author.to_string(),
            author_name: by.name.clone(),
            hop: by.hop.map(|hop| hop.0),
            trust: by.trust,
            weight: of.standing.weight(),
            alpha: of.alpha,
            beta: of.beta,
            offered: of.mass_offered,
            bounds: of.bounds.iter().map(|bound| bounded(*bound).to_owned()).collect(),
            reason: by.why(),
        })
    };
    let contributions = &found.judged.confidence.contributions;
    let contributions: Result<_, store::Error> = contributions.iter().map(contribution).collect();
    let (shown, (proposed, proposals)) = (entry(found), proposed(found, reading)?);
    let (contributions, links) = (contributions?, links(found, reading)?);
    let (of_others, rivals) = (of_others(found, reading)?, rivals(found, reading)?);
    let caveats = reading.caveats(found, looked)?.iter().map(ToString::to_string).collect();
    let checked = looked.and_then(|looked| checked(found, looked));
    Ok(types::Entry {
        caveats,
        contributions,
        of_others,
        rivals,
        versions: conflicts::versions(found, reading)?,
        proposed,
        proposals,
        links,
        checked,
        admission: Some(assessed(found, reading)),
        scan: Some(scanned(found)),
        ..shown
    })
}

/// What authors whose word is not shown would have an entry say, the newest texts first, and how much
/// that is in all.
fn proposed(
    found: &Found,
    reading: &Reading<'_>,
) -> Result<(Vec<types::Proposed>, usize), store::Error> {
    let mut texts: Vec<_> = found.proposals().collect();
    texts.sort_by_key(|of| std::cmp::Reverse(of.stamp));
    let elements = reading.proposed_elements(found)?;
    let evidence = reading.proposed_citations(found)?;
    let count = texts.len() + elements.len() + evidence.len();
    let texts = texts.into_iter().take(PROPOSED_MAX);
    let texts =
        texts.filter_map(|of| Some(((of.author, of.stamp), of.register.name()?, of.text.clone())));
    let elements = elements.into_iter().take(PROPOSED_MAX);
    let elements = elements.filter_map(|of| Some(((of.author, of.stamp), of.set.name()?, of.text)));
    let evidence = evidence.into_iter().take(PROPOSED_MAX);
    let evidence = evidence.map(|of| ((of.author, of.stamp), EVIDENCE, cited(&of.citation)));
    let all = texts.chain(elements).chain(evidence);
    let told = all.map(|(by, field, text)| said_by(reading, by, field, text));
    Ok((told.collect::<Result<_, store::Error>>()?, count))
}

/// What somebody says in a field, as it travels.
fn said_by(
    reading: &Reading<'_>,
    (author, stamp): (AuthorId, Hlc),
    field: &str,
    text: String,
) -> Result<types::Proposed, store::Error> {
    let by = reading.standing(author)?;
    Ok(types::Proposed {
        author: by.author.to_string(),
        author_name: by.name.clone(),
        register: field.to_owned(),
        text,
        at: stamp.wall().as_millis(),
    })
}

/// A found entry as it is listed: where nobody whose word is shown says anything of it, with the title
/// that others propose.
pub(super) fn listed(found: &Found, reading: &Reading<'_>) -> Result<types::Entry, store::Error> {
    let mut listed = entry(found);
    if found.is_only_proposed() {
        let titles = found.proposals().filter(|of| of.register == Register::TITLE);
        if let Some(of) = titles.max_by_key(|of| of.stamp) {
            let by = (of.author, of.stamp);
            listed.proposed.push(said_by(reading, by, "title", of.text.clone())?);
        }
    }
    Ok(listed)
}

/// Whether an entry may be retrieved, as it travels.
fn assessed(found: &Found, reading: &Reading<'_>) -> types::Admission {
    let of = &found.judged.admission;
    let (accepted_from, rejected_below) = reading.admission_bounds(found);
    let name = |name: &str| match name {
        "observation mass" => "observations".to_owned(),
        name => name.to_owned(),
    };
    let parts = of.signals.iter().map(|signal| (name(signal.name), signal.value));
    let adds = of.signals.iter().map(|signal| (name(signal.name), signal.weight * signal.value));
    let decision = match of.decision {
        Decision::Accept => "accepted",
        Decision::Candidate => "candidate",
        Decision::Reject => "rejected",
    };
    let reason = match of.reason {
        admission::Reason::Finding(severity) => {
            format!("the scan found something {}, whatever speaks for it", severity.name())
        }
        admission::Reason::TooWeak => "too little speaks for it".to_owned(),
        admission::Reason::Borderline => {
            "enough speaks for it to be found, too little to be accepted".to_owned()
        }
        admission::Reason::ForeignBorderline => {
            "enough speaks for an entry of your own, too little for one of somebody else".to_owned()
        }
        admission::Reason::Passed => "enough speaks for it".to_owned(),
    };
    types::Admission {
        score: of.score,
        decision: decision.to_owned(),
        reason,
        accepted_from,
        rejected_below,
        parts: parts.collect(),
        adds: adds.collect(),
    }
}

/// What the scan says of what is shown of an entry, as it travels.
fn scanned(found: &Found) -> types::ScanVerdict {
    let (verdict, rules) = found.scan();
    types::ScanVerdict {
        verdict: verdict.name().to_owned(),
        rules: rules.into_iter().map(str::to_owned).collect(),
        released: found.overlay.is_cleared && verdict > Severity::Low,
    }
}

/// What else is said in registers on which several authors say different things, the newest first.
fn rivals(found: &Found, reading: &Reading<'_>) -> Result<Vec<types::Proposed>, store::Error> {
    let named = found.view.registers.iter().filter_map(|(of, shown)| Some((of.name()?, shown)));
    let mut rivals: Vec<_> = named
        .flat_map(|(register, shown)| shown.rivals.iter().map(move |value| (register, value)))
        .collect();
    rivals.sort_by_key(|(_, value)| std::cmp::Reverse(value.stamp));
    let told = rivals.into_iter().take(RIVALS_MAX).map(|(register, value)| {
        said_by(reading, (value.author, value.stamp), register, value.text.clone())
    });
    told.collect()
}

/// Edges of an entry to others, and from what takes its place.
fn links(found: &Found, reading: &Reading<'_>) -> Result<Vec<types::Linked>, store::Error> {
    let mut links = Vec::new();
    for link in found.view.links.keys() {
        let known = RELATIONS.iter().find(|(relation, _)| *relation == link.relation);
        let Some((_, relation)) = known else { continue };
        let types::Named { id, code } = named(Some(reading), link.to);
        links.push(types::Linked { relation: (*relation).to_owned(), id, code });
    }
    for successor in reading.successors(found)? {
        let (id, code) = (successor.entry.to_string(), successor.code());
        links.push(types::Linked { relation: "superseded_by".into(), id, code });
    }
    Ok(links)
}

/// What to look at before others have an entry, as it travels.
pub(super) fn flags(flags: Vec<ShareFlag>) -> Vec<types::ShareFlag> {
    let told = |ShareFlag { field, topic, text }| {
        let (field, topic) = (field.to_owned(), topic.to_owned());
        types::ShareFlag { field, topic, text }
    };
    flags.into_iter().map(told).collect()
}

/// What a look said, as it travels; nothing where there was nothing to look at. Atoms that others say
/// the entry depends on are among the caveats, counted.
fn checked(found: &Found, looked: &Looked) -> Option<types::Checked> {
    let outcome = match looked.check {
        Check::Holds => "holds",
        Check::Broken => "broken",
        Check::Unchecked => "unknown",
        Check::Nothing => return None,
    };
    let own = looked.findings.iter().filter(|flagged| found.speaks(&flagged.by));
    let findings = own.map(|flagged| types::AtomFinding {
        atom: flagged.finding.atom.clone(),
        reason: flagged.finding.reason.to_string(),
    });
    Some(types::Checked { outcome: outcome.into(), findings: findings.collect() })
}

fn bounded(bound: confidence::Bound) -> &'static str {
    match bound {
        confidence::Bound::Member => "the most one member counts",
        confidence::Bound::Peer(_) => "the most that comes through one peer",
        confidence::Bound::NonMembers => "the most that all non-members count",
    }
}

fn reason(found: &Found) -> String {
    match found.judged.standing.reason {
        // Nothing tells whether anybody whose word is shown ever said it.
        Reason::TakenBack if found.is_only_proposed() => {
            "nobody whose word is shown here says it; `klnode accept` takes what others propose"
                .into()
        }
        Reason::TakenBack => "its author took it back".into(),
        Reason::Finding(severity) => format!("the scan found something {}", severity.name()),
        Reason::NotAdmitted => "it was not admitted".into(),
        Reason::PutAway => "it was archived here".into(),
        Reason::NotServed { days } => format!("it was not served for {days} days"),
        Reason::SourceTaskSucceeded => "the task it comes from succeeded".into(),
        Reason::Proven => "evidence is ample and good".into(),
        Reason::LocalSuccess => "it has helped here".into(),
        Reason::HeldBack => "admission held it back".into(),
        Reason::Unproven => "nothing has helped yet".into(),
    }
}

/// Evidence as it is typed.
pub(super) fn cited(of: &Citation) -> String {
    format!("{}:{}", of.evidence_type, of.evidence_ref)
}

pub(super) fn citation(citation: &Citation) -> types::Citation {
    types::Citation {
        evidence_type: citation.evidence_type.clone(),
        evidence_ref: citation.evidence_ref.clone(),
        cited_by: citation.cited_by.clone(),
        cited_at: citation.cited_at.as_millis(),
        context: citation.is_context,
    }
}

pub(super) fn workspace(id: WorkspaceId) -> String {
    match id {
        WorkspaceId::MAIN => "main".into(),
        WorkspaceId::LOCAL => "local".into(),
        other => other.to_string(),
    }
}

/// An entry's name, as answers tell it. What was forgotten meanwhile, or cannot be read, goes by its
/// digits: no answer fails for want of a letter.
pub(super) fn named(reading: Option<&Reading<'_>>, entry: EntryId) -> types::Named {
    let found = reading.and_then(|reading| reading.read(entry).ok().flatten());
    name(found.as_ref(), entry)
}

fn name(found: Option<&Found>, entry: EntryId) -> types::Named {
    let code = found.map_or_else(|| kind::code_digits(entry), Found::code);
    types::Named { id: entry.to_string(), code }
}

/// Whether texts of an entry may be told to a program that did not ask for it.
pub(super) fn may_speak(found: &Found) -> bool {
    let is_kept_out = found.judged.standing.status == Status::Rejected;
    !found.is_foreign() || (found.gate() != Gate::Shut && !is_kept_out)
}

/// The same beside its title, which is empty where the entry may not speak unasked.
pub(super) fn titled(reading: &Reading<'_>, entry: EntryId) -> (types::Named, String) {
    let found = reading.read(entry).ok().flatten();
    let title = found
        .as_ref()
        .filter(|found| may_speak(found))
        .and_then(|of| of.view.text(Register::TITLE));
    (name(found.as_ref(), entry), title.unwrap_or_default().to_owned())
}
