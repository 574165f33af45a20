//! What must be said along with an entry: what is stale, disputed, broken, foreign or untried about it.

use super::Found;
use super::anchors::Looked;
use super::question::Caveat;
use klnode_crdt::lww::Register;
use klnode_crdt::view::View;
use klnode_scoring::rank::signals;
use klnode_scoring::status::Status;

/// Atoms of one entry that an answer names as broken or unknown.
const FINDINGS_MAX: usize = 3;

/// What must be said along with an entry, whatever else is shown beside it.
pub(super) fn own_caveats(
    found: &Found,
    freshness: &signals::Freshness,
    looked: &Looked,
) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    match found.judged.standing.status {
        Status::Stale => caveats.push(Caveat::Stale),
        Status::Archived => caveats.push(Caveat::Archived),
        _ => {}
    }
    let view = &found.view;
    let contested = contested(view);
    if !contested.is_empty() {
        caveats.push(Caveat::Contested(contested));
    }
    caveats.extend(checked(freshness, looked));
    if view.text(Register::FAILED_WORK).is_some_and(|flag| flag == "true") {
        caveats.push(Caveat::FailedWork);
    }
    if !found.merged.is_empty() {
        caveats.push(Caveat::Merged(found.merged.len()));
    }
    if !view.proposals.is_empty() {
        caveats.push(Caveat::Proposals(view.proposals.len()));
    }
    if let Some(author) = found.author.as_ref().filter(|author| !author.is_own()) {
        caveats.push(Caveat::Foreign { by: author.name.clone() });
        if !found.is_corroborated() {
            caveats.push(Caveat::Uncorroborated);
        }
    }
    caveats
}

/// The registers on which several authors say different things.
pub(super) fn contested(view: &View) -> Vec<&'static str> {
    let rivals = view.registers.iter().filter(|(_, shown)| !shown.rivals.is_empty());
    rivals.filter_map(|(register, _)| register.name()).collect()
}

/// What a look at what an entry depends on gives to say.
fn checked(freshness: &signals::Freshness, looked: &Looked) -> Vec<Caveat> {
    let findings = looked.findings.iter().take(FINDINGS_MAX);
    let of = findings.map(|finding| (finding.atom.clone(), finding.reason.to_string()));
    match freshness.caveat {
        None => Vec::new(),
        Some(signals::Caveat::Broken) => {
            of.map(|(atom, reason)| Caveat::Broken { atom, reason }).collect()
        }
        Some(signals::Caveat::Unchecked) if looked.findings.is_empty() => {
            vec![Caveat::Unchecked]
        }
        Some(signals::Caveat::Unchecked) => {
            of.map(|(atom, reason)| Caveat::Unknown { atom, reason }).collect()
        }
    }
}
