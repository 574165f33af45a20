//! Converts entries between the types of the API and those of the engine and the queries.

use super::admission::{admission_reply, scan_reply};
use crate::edit_conflicts;
use crate::errors::ApiError;
use klnode_api_types::ErrorKind;
use klnode_crdt::claims::{Citation, TextSet};
use klnode_crdt::entry_origin::Memory;
use klnode_crdt::entry_type::{self, EntryType};
use klnode_crdt::ids::{AuthorId, EntryId, WorkspaceId};
use klnode_crdt::lww_set::Presence;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_crdt::register::Register;
use klnode_crdt::time::{Hlc, WallTime};
use klnode_engine::NewEntry;
use klnode_query::{
    AnchorCheck, AssessedEntry, AuthorStanding, GateDecision, ReadContext, ShareFlag, malformed,
};
use klnode_replication::PairError;
use klnode_scoring::confidence;
use klnode_scoring::rank::signals::AnchorState;
use klnode_scoring::status::{Status, StatusReason};
use std::collections::BTreeMap;

/// Maximum number of proposals listed with an entry. The count beside the list covers all of them.
const PROPOSED_MAX: usize = 100;
/// Maximum number of conflicting register values that are listed with an entry.
const RIVALS_MAX: usize = 32;
/// The field name of evidence, next to the names of registers and sets.
pub(crate) const EVIDENCE: &str = "evidence";

fn invalid(message: String) -> ApiError {
    ApiError::new(ErrorKind::Invalid, message, None)
}

/// Converts a request for a new entry to the fields that the engine writes.
pub(crate) fn new_entry(
    new: klnode_api_types::NewEntry,
    cited_by: &str,
    now: WallTime,
) -> Result<NewEntry, ApiError> {
    let name = new.kind.as_deref().unwrap_or("lesson");
    let kind = EntryType::parse(name).ok_or_else(|| {
        let known: Vec<&str> = EntryType::ALL.iter().map(|row| row.1).collect();
        invalid(format!(
            "The entry was not written: type is `{name}`; it must be one of {}.",
            known.join(", ")
        ))
    })?;
    let memory = match new.memory.as_deref() {
        Some(name) => Memory::parse(name).ok_or_else(|| {
            let known = "semantic, procedural, episodic";
            invalid(format!("The memory `{name}` does not exist; it must be one of {known}."))
        })?,
        None if kind.is_raw() => Memory::Episodic,
        None if kind == EntryType::Norm => Memory::Procedural,
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
        .flat_map(|(set, texts)| texts.into_iter().map(move |text| ClaimEdit::Add(set, text)));
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

/// Rejects a text that looks like a predicate and does not parse, because it would never be
/// evaluated. An empty text is rejected too.
pub(crate) fn well_formed(text: &str) -> Result<(), ApiError> {
    if text.trim().is_empty() {
        let message = "An anchor or a predicate is empty; leave it out.";
        return Err(invalid(message.into()));
    }
    let Some(error) = malformed(text) else { return Ok(()) };
    let hint = "See docs/reference/predicates.md for the syntax; other words are plain text.";
    let message = format!("{error} The text was `{text}`.");
    Err(ApiError::new(ErrorKind::Invalid, message, Some(hint)))
}

/// Rejects a tag with an empty level, because no search for it would find the entry.
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
    Err(invalid(format!("The tag `{tag}` has an empty level; {way_out}.")))
}

/// The workspace `main`, `local` or of an id in hex.
pub(crate) fn workspace_named(name: &str) -> Result<WorkspaceId, ApiError> {
    match name {
        "main" => Ok(WorkspaceId::MAIN),
        "local" => Ok(WorkspaceId::LOCAL),
        other => WorkspaceId::from_hex(other)
            .ok_or_else(|| PairError::NoSuchWorkspace(other.to_owned()).into()),
    }
}

pub(crate) fn citations(
    evidence: &[String],
    cited_by: &str,
    now: WallTime,
) -> Result<Vec<Citation>, ApiError> {
    let citation = |text: &String| {
        let (evidence_type, evidence_ref) = text.split_once(':').ok_or_else(|| {
            invalid(format!(
                "The evidence `{text}` has no type; write it as KIND:REF, such as commit:1a2b3c."
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

/// Converts a requested edit to the claims that the engine writes.
pub(crate) fn edit(
    edit: klnode_api_types::Edit,
    cited_by: &str,
    now: WallTime,
) -> Result<Vec<ClaimEdit>, ApiError> {
    let mut claims = Vec::new();
    for (name, text) in edit.registers {
        let register = Register::KNOWN.iter().find(|(_, known)| *known == name);
        let (register, _) = register.ok_or_else(|| {
            let known: Vec<&str> = Register::KNOWN.iter().map(|(_, name)| *name).collect();
            invalid(format!(
                "The field `{name}` does not exist; the fields are {}.",
                known.join(", ")
            ))
        })?;
        claims.push(ClaimEdit::Set(*register, text));
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
        claims.extend(added.into_iter().map(|text| ClaimEdit::Add(set, text)));
        claims.extend(removed.into_iter().map(|text| ClaimEdit::Withdraw(set, text)));
    }
    claims.extend(citations(&edit.add_evidence, cited_by, now)?.into_iter().map(ClaimEdit::Cite));
    let archival = edit.archived.map(|archived| match archived {
        true => Presence::Present,
        false => Presence::Withdrawn,
    });
    claims.extend(archival.map(ClaimEdit::Archive));
    let has_links = !edit.add_links.is_empty() || !edit.remove_links.is_empty();
    if claims.is_empty() && !has_links {
        return Err(invalid("The entry was not edited: no change was given.".into()));
    }
    Ok(claims)
}

/// The entry for a response, without the fields that need further reading.
pub(crate) fn entry(found: &AssessedEntry) -> klnode_api_types::Entry {
    let view = &found.view;
    let text = |register| view.text(register).unwrap_or_default().to_owned();
    let shown = [Register::TITLE, Register::CONTENT, Register::TYPE];
    let rest = view.registers.iter().filter(|(register, _)| !shown.contains(register));
    let rest = rest.filter(|(register, shown)| {
        **register == Register::SUMMARY || found.voices.contains(&shown.value.author)
    });
    let author = found.author.as_deref();
    let (posterior, standing) =
        (&found.assessment.confidence.posterior, &found.assessment.standing);
    let mut sets = sets(found);
    let tags = TextSet::TAGS.name().and_then(|name| sets.remove(name)).unwrap_or_default();
    let citations = view.citations.iter().filter(|(_, by)| found.is_own_voice(by));
    klnode_api_types::Entry {
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
        observations: found.assessment.confidence.effective_observations,
        status: standing.status.name().to_owned(),
        status_reason: reason(found),
        author: author.map(|by| by.author.to_string()).unwrap_or_default(),
        author_name: author.map(|by| by.name.clone()).unwrap_or_default(),
        author_reason: author.map(AuthorStanding::why).unwrap_or_default(),
        hop: author.and_then(|by| by.hop).map(|hop| hop.0),
        trust: author.map(|by| by.trust),
        weight: author.map(|by| by.weight.value),
        foreign: found.is_foreign(),
        corroborated: found.is_corroborated(),
        gate: if found.assessment.is_held { "held" } else { gate(found.gate()) }.into(),
        first_seen: found.first_seen.as_millis(),
        created: view.dates.map(|dates| dates.created.as_millis()),
        updated: view.dates.map(|dates| dates.updated.as_millis()),
        contested: edit_conflicts::contested(found),
        proposals: found.proposals().count(),
        merged: found.merged.iter().map(ToString::to_string).collect(),
        merged_into: found.merged_into.map(|entry| entry.to_string()),
        prior: found
            .assessment
            .confidence
            .imported
            .map(|(alpha, beta)| klnode_api_types::Prior { alpha, beta }),
        prediction_errors: Some(found.assessment.prediction_errors).filter(|of| *of > 0),
        primed_confirmations: Some(found.assessment.primed_confirmations).filter(|of| *of > 0),
        pinned: found.overlay.is_pinned,
        muted: found.overlay.is_muted,
        invalidated: found.overlay.is_invalidated,
        note: found.overlay.note.clone(),
        // The remaining fields need further reading and are filled only if one entry is requested.
        ..klnode_api_types::Entry::default()
    }
}

/// The sets by name, with the elements that come from the author of the text or this person.
fn sets(found: &AssessedEntry) -> BTreeMap<String, Vec<String>> {
    let named = found.view.texts.iter().filter_map(|(set, elements)| Some((set.name()?, elements)));
    let spoken = named.map(|(name, elements)| {
        let own = elements.iter().filter(|(_, by)| found.is_own_voice(by));
        (name.to_owned(), own.map(|(text, _)| text.clone()).collect::<Vec<String>>())
    });
    spoken.filter(|(_, elements)| !elements.is_empty()).collect()
}

fn gate(gate: GateDecision) -> &'static str {
    match gate {
        GateDecision::Open => "open",
        GateDecision::LastPlaces => "last_places",
        GateDecision::Shut => "shut",
    }
}

/// Values that authors other than the author of the text added to an entry.
fn values_of_others(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<Vec<klnode_api_types::OtherAuthorValue>, klnode_store::Error> {
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
        let others = elements.iter().filter(|(_, by)| !found.is_own_voice(by));
        said.extend(others.filter_map(|(text, by)| Some((name, text.clone(), *by.first()?))));
    }
    let others = view.citations.iter().filter(|(_, by)| !found.is_own_voice(by));
    said.extend(others.filter_map(|(of, by)| Some((EVIDENCE, evidence_text(of), *by.first()?))));
    let mut told = Vec::with_capacity(said.len());
    for (field, text, author) in said {
        let by = reading.standing(author)?;
        let (author, author_name) = (author.to_string(), by.name.clone());
        told.push(klnode_api_types::OtherAuthorValue {
            author,
            author_name,
            field: field.to_owned(),
            text,
        });
    }
    Ok(told)
}

/// The entry with all fields. `looked` is the result of evaluating its predicates, if that was
/// done.
pub(crate) fn whole_entry(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
    looked: Option<&AnchorCheck>,
) -> Result<klnode_api_types::Entry, klnode_store::Error> {
    let contribution = |of: &confidence::Contribution| {
        let by = reading.standing(of.author)?;
        Ok(klnode_api_types::Contribution {
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
    let contributions = &found.assessment.confidence.contributions;
    let contributions: Result<_, klnode_store::Error> =
        contributions.iter().map(contribution).collect();
    let (shown, (proposed, proposals)) = (entry(found), proposed(found, reading)?);
    let (contributions, links) = (contributions?, links(found, reading)?);
    let (of_others, rivals) = (values_of_others(found, reading)?, rivals(found, reading)?);
    let caveats = reading.caveats(found, looked)?.iter().map(ToString::to_string).collect();
    let checked = looked.and_then(|looked| checked(found, looked));
    Ok(klnode_api_types::Entry {
        caveats,
        contributions,
        of_others,
        rivals,
        versions: edit_conflicts::versions(found, reading)?,
        proposed,
        proposals,
        links,
        checked,
        admission: Some(admission_reply(found, reading)),
        scan: Some(scan_reply(found)),
        ..shown
    })
}

/// Claims of authors whose claims are not displayed, newest texts first, and their total number.
fn proposed(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<(Vec<klnode_api_types::ProposedClaim>, usize), klnode_store::Error> {
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
    let evidence =
        evidence.map(|of| ((of.author, of.stamp), EVIDENCE, evidence_text(&of.citation)));
    let all = texts.chain(elements).chain(evidence);
    let told = all.map(|(by, field, text)| proposal(reading, by, field, text));
    Ok((told.collect::<Result<_, klnode_store::Error>>()?, count))
}

/// A claim of an author for the response.
fn proposal(
    reading: &ReadContext<'_>,
    (author, stamp): (AuthorId, Hlc),
    field: &str,
    text: String,
) -> Result<klnode_api_types::ProposedClaim, klnode_store::Error> {
    let by = reading.standing(author)?;
    Ok(klnode_api_types::ProposedClaim {
        author: by.author.to_string(),
        author_name: by.name.clone(),
        register: field.to_owned(),
        text,
        at: stamp.wall().as_millis(),
    })
}

/// The entry for a listing. If all its claims are proposals, it includes the newest proposed title.
pub(crate) fn listed(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<klnode_api_types::Entry, klnode_store::Error> {
    let mut listed = entry(found);
    if found.is_only_proposed() {
        let titles = found.proposals().filter(|of| of.register == Register::TITLE);
        if let Some(of) = titles.max_by_key(|of| of.stamp) {
            let by = (of.author, of.stamp);
            listed.proposed.push(proposal(reading, by, "title", of.text.clone())?);
        }
    }
    Ok(listed)
}

/// The values of registers with an edit conflict that are not displayed, newest first.
fn rivals(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<Vec<klnode_api_types::ProposedClaim>, klnode_store::Error> {
    let named = found.view.registers.iter().filter_map(|(of, shown)| Some((of.name()?, shown)));
    let mut rivals: Vec<_> = named
        .flat_map(|(register, shown)| shown.rivals.iter().map(move |value| (register, value)))
        .collect();
    rivals.sort_by_key(|(_, value)| std::cmp::Reverse(value.stamp));
    let told = rivals.into_iter().take(RIVALS_MAX).map(|(register, value)| {
        proposal(reading, (value.author, value.stamp), register, value.text.clone())
    });
    told.collect()
}

/// Links of an entry to others, and those from entries that supersede it.
fn links(
    found: &AssessedEntry,
    reading: &ReadContext<'_>,
) -> Result<Vec<klnode_api_types::EntryLink>, klnode_store::Error> {
    let mut links = Vec::new();
    for link in found.view.links.keys() {
        let Some(relation) = link.relation.name() else { continue };
        let klnode_api_types::EntryIdentity { id, code } = entry_identity(Some(reading), link.to);
        links.push(klnode_api_types::EntryLink { relation: relation.to_owned(), id, code });
    }
    let believed = reading.successors(found)?.into_iter().filter(|of| of.is_believed);
    for successor in believed.map(|of| of.found) {
        let (id, code) = (successor.entry.to_string(), successor.code());
        links.push(klnode_api_types::EntryLink { relation: "superseded_by".into(), id, code });
    }
    Ok(links)
}

/// The passages to review for the response.
pub(crate) fn flags(flags: Vec<ShareFlag>) -> Vec<klnode_api_types::ShareFlag> {
    let told = |ShareFlag { field, topic, text }| {
        let (field, topic) = (field.to_owned(), topic.to_owned());
        klnode_api_types::ShareFlag { field, topic, text }
    };
    flags.into_iter().map(told).collect()
}

/// The result of evaluating predicates for the response; `None` if the entry has none. Broken
/// predicates that other authors added are only counted, among the caveats.
fn checked(
    found: &AssessedEntry,
    looked: &AnchorCheck,
) -> Option<klnode_api_types::AnchorCheckResult> {
    let outcome = match looked.check {
        AnchorState::Holds => "holds",
        AnchorState::Broken => "broken",
        AnchorState::Unchecked => "unknown",
        AnchorState::Nothing => return None,
    };
    let own = looked.findings.iter().filter(|flagged| found.is_own_voice(&flagged.by));
    let findings = own.map(|flagged| klnode_api_types::AtomResult {
        atom: flagged.finding.atom.clone(),
        reason: flagged.finding.reason.to_string(),
    });
    Some(klnode_api_types::AnchorCheckResult {
        outcome: outcome.into(),
        findings: findings.collect(),
    })
}

fn bounded(bound: confidence::ContributionBound) -> &'static str {
    match bound {
        confidence::ContributionBound::Member => "limit per member",
        confidence::ContributionBound::Peer(_) => "limit per relaying peer",
        confidence::ContributionBound::NonMembers => "limit for all non-members",
    }
}

fn reason(found: &AssessedEntry) -> String {
    match found.assessment.standing.reason {
        // The retracted claims of displayed authors are gone, so it is unknown whether there were
        // any.
        StatusReason::TakenBack if found.is_only_proposed() => {
            "no claim of a displayed author is left; `klnode inbox accept` takes over a proposal"
                .into()
        }
        StatusReason::TakenBack => "its author retracted it".into(),
        StatusReason::Finding(severity) => {
            format!("the scan reported severity {}", severity.name())
        }
        StatusReason::NotAdmitted => "admission rejected it".into(),
        StatusReason::PutAway => "it was archived on this node".into(),
        StatusReason::NotServed { days } => format!("it was not served for {days} days"),
        StatusReason::SourceTaskSucceeded => "the task it was written in succeeded".into(),
        StatusReason::Proven => "it has enough positive evidence".into(),
        StatusReason::LocalSuccess => "it has helped on this node".into(),
        StatusReason::HeldBack => "admission holds it back".into(),
        StatusReason::Unproven => "no success observed yet".into(),
    }
}

/// Evidence as KIND:REF.
pub(crate) fn evidence_text(of: &Citation) -> String {
    format!("{}:{}", of.evidence_type, of.evidence_ref)
}

pub(crate) fn citation(citation: &Citation) -> klnode_api_types::Citation {
    klnode_api_types::Citation {
        evidence_type: citation.evidence_type.clone(),
        evidence_ref: citation.evidence_ref.clone(),
        cited_by: citation.cited_by.clone(),
        cited_at: citation.cited_at.as_millis(),
        context: citation.is_context,
    }
}

pub(crate) fn workspace(id: WorkspaceId) -> String {
    match id {
        WorkspaceId::MAIN => "main".into(),
        WorkspaceId::LOCAL => "local".into(),
        other => other.to_string(),
    }
}

/// An entry's id and code. An entry that was forgotten meanwhile or cannot be read gets a code
/// without its letter, so that the response does not fail.
pub(crate) fn entry_identity(
    reading: Option<&ReadContext<'_>>,
    entry: EntryId,
) -> klnode_api_types::EntryIdentity {
    let found = reading.and_then(|reading| reading.read(entry).ok().flatten());
    name(found.as_ref(), entry)
}

fn name(found: Option<&AssessedEntry>, entry: EntryId) -> klnode_api_types::EntryIdentity {
    let code = found.map_or_else(|| entry_type::code_digits(entry), AssessedEntry::code);
    klnode_api_types::EntryIdentity { id: entry.to_string(), code }
}

/// True if texts of an entry may be served automatically.
pub(crate) fn may_speak(found: &AssessedEntry) -> bool {
    let is_kept_out = found.assessment.standing.status == Status::Rejected;
    let is_own = !found.is_foreign() && !found.assessment.is_held;
    is_own || (found.gate() != GateDecision::Shut && !is_kept_out)
}

/// An entry's id and code, and its title; the title is empty if the text may not be served
/// automatically.
pub(crate) fn identity_and_title(
    reading: &ReadContext<'_>,
    entry: EntryId,
) -> (klnode_api_types::EntryIdentity, String) {
    let found = reading.read(entry).ok().flatten();
    let title = found
        .as_ref()
        .filter(|found| may_speak(found))
        .and_then(|of| of.view.text(Register::TITLE));
    (name(found.as_ref(), entry), title.unwrap_or_default().to_owned())
}
