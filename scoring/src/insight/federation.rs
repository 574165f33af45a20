//! Rules 3 and 7: peers with little trust, and entries of peers in tags of their own.

use super::entry_rules::by_tag;
use super::{
    EntryInsightFacts, EvidenceKind, Insight, InsightEvidence, InsightRule, InsightSeverity,
    Params, PeerInsightFacts, entry_evidence, shortened,
};

/// Rule 3: the trust in a paired peer is below 0.5. It needs attention if a failure of its texts was
/// counted; otherwise the peer is only untested.
pub(super) fn trust_drops(peers: &[PeerInsightFacts], params: &Params) -> Vec<Insight> {
    let mut low: Vec<&PeerInsightFacts> =
        peers.iter().filter(|peer| peer.trust < params.trust_min).collect();
    low.sort_by(|one, two| one.trust.total_cmp(&two.trust).then(one.author.cmp(&two.author)));
    low.into_iter().map(|peer| trust_drop(peer, params)).collect()
}

fn trust_drop(peer: &PeerInsightFacts, params: &Params) -> Insight {
    let PeerInsightFacts { author, name, trust, successes, failures } = peer;
    let (name, limit) = (shortened(name), params.trust_min);
    let (severity, text, action) = match failures {
        0 => (
            InsightSeverity::Info,
            format!(
                "Peer \"{name}\" is untested: its trust is {trust:.2}, below {limit}, with \
                 {successes} successes and no failure."
            ),
            "Use its entries and say how they fared; its trust follows.",
        ),
        _ => (
            InsightSeverity::Attention,
            format!(
                "Peer \"{name}\" has lost trust: {trust:.2}, below {limit}, with {successes} \
                 successes and {failures} failures."
            ),
            "Look at its recent entries with `klnode peer show`, and narrow its filter if they are \
             wrong.",
        ),
    };
    Insight {
        rule: InsightRule::TrustDrop,
        severity,
        subject: author.to_string(),
        text,
        evidence: vec![InsightEvidence {
            kind: EvidenceKind::Author,
            id: author.to_string(),
            label: name,
            state: format!("{failures} failures"),
            detail: format!("trust {trust:.2}, {successes} successes, {failures} failures"),
        }],
        action: action.to_owned(),
        task: None,
    }
}

/// Rule 7: entries of other people have a tag that no own entry has.
pub(super) fn inbound(entries: &[EntryInsightFacts]) -> Vec<Insight> {
    let mut found: Vec<(usize, Insight)> = Vec::new();
    for (tag, all) in by_tag(entries) {
        if all.iter().any(|entry| !entry.is_foreign) {
            continue;
        }
        let brought: Vec<_> = all.into_iter().filter(|entry| !entry.is_demoted).collect();
        let name = shortened(tag);
        let detail = |entry: &EntryInsightFacts| {
            let status = if entry.is_verified { "verified here" } else { "not verified here" };
            format!("from another person, {status}")
        };
        if !brought.is_empty() {
            let insight = Insight {
                rule: InsightRule::Inbound,
                severity: InsightSeverity::Info,
                subject: tag.to_owned(),
                text: format!(
                    "Peers brought {} entries with tag \"{name}\", and no own entry has this tag.",
                    brought.len()
                ),
                evidence: brought.iter().map(|one| entry_evidence(one, detail(one))).collect(),
                action: format!(
                    "Read the entries with tag \"{name}\", and confirm those that hold."
                ),
                task: None,
            };
            found.push((brought.len(), insight));
        }
    }
    found.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.subject.cmp(&two.1.subject)));
    found.into_iter().map(|(_, insight)| insight).collect()
}
