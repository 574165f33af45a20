//! The policy that accepts a finding of one agent without waiting for a second one.
//!
//! It is off by default: `finding_resolution` asks for an independent second finding. A workspace
//! with few reviewers may turn it on, and then severity and confidence on a scale from 0 to 10
//! decide.

/// Parameters of the policy; `Default` holds the documented values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Whether a lone finding is accepted at all.
    pub is_on: bool,
    /// A finding of this severity or above is an incident that was prevented.
    pub incident_severity_min: f64,
    /// A finding of this severity or above is a pattern, if the finder is sure enough.
    pub pattern_severity_min: f64,
    /// The confidence that a pattern needs.
    pub pattern_confidence_min: f64,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            is_on: false,
            incident_severity_min: 9.0,
            pattern_severity_min: 7.0,
            pattern_confidence_min: 8.0,
        }
    }
}

/// The section of a reviewer's knowledge that an accepted finding belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnowledgeSection {
    /// A fault so severe that it would have caused an incident.
    IncidentPrevented,
    /// A fault that is likely to be seen again.
    Pattern,
    /// No fault, although it looks like one.
    FalsePositive,
}

impl KnowledgeSection {
    /// The tag of an entry in this section.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::IncidentPrevented => "incident-prevented",
            Self::Pattern => "pattern",
            Self::FalsePositive => "false-positive",
        }
    }
}

/// A finding as the policy sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoneFinding {
    /// The severity, from 0 to 10.
    pub severity: f64,
    /// The finder's confidence, from 0 to 10.
    pub confidence: f64,
    /// Whether the finder dismissed it as a false positive.
    pub is_dismissed: bool,
}

/// The section in which a lone finding is accepted; `None` if it waits for a second agent.
#[must_use]
pub fn accept(finding: &LoneFinding, params: &Params) -> Option<KnowledgeSection> {
    if !params.is_on {
        return None;
    }
    if finding.is_dismissed {
        return Some(KnowledgeSection::FalsePositive);
    }
    // A confidence of 0.8 times 10 must reach 8.0 in spite of rounding.
    let reaches = |value: f64, min: f64| value >= min - 1e-9;
    if reaches(finding.severity, params.incident_severity_min) {
        return Some(KnowledgeSection::IncidentPrevented);
    }
    let is_pattern = reaches(finding.severity, params.pattern_severity_min)
        && reaches(finding.confidence, params.pattern_confidence_min);
    is_pattern.then_some(KnowledgeSection::Pattern)
}

#[cfg(test)]
mod tests {
    use super::{KnowledgeSection, LoneFinding, Params, accept};

    #[test]
    fn severity_and_confidence_decide_about_a_lone_finding() {
        let on = Params { is_on: true, ..Params::default() };
        for (severity, confidence, is_dismissed, expect) in [
            (9.0, 0.0, false, Some(KnowledgeSection::IncidentPrevented)),
            (8.9, 7.9, false, None),
            (8.9, 8.0, false, Some(KnowledgeSection::Pattern)),
            (7.0, 0.8 * 10.0, false, Some(KnowledgeSection::Pattern)),
            (6.9, 10.0, false, None),
            (0.0, 0.0, true, Some(KnowledgeSection::FalsePositive)),
            (10.0, 10.0, true, Some(KnowledgeSection::FalsePositive)),
        ] {
            let finding = LoneFinding { severity, confidence, is_dismissed };
            assert_eq!(accept(&finding, &on), expect, "{finding:?}");
            assert_eq!(accept(&finding, &Params::default()), None, "the policy is off");
        }
    }
}
