//! How grave what a scan found is.
//!
//! Separate because status and admission both act on it. The scan itself, with its rules, is not
//! here: judgement needs only how bad the worst finding was.

/// The worst finding of a scan. The order is the order of gravity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No rule matched.
    Safe,
    /// Something worth a label.
    Low,
    /// Something that needs merit elsewhere to be outweighed.
    Medium,
    /// A credential or a prompt injection, alone, is this grave.
    High,
    /// Worse than high.
    Critical,
}

impl Severity {
    /// Whether the finding alone keeps an entry out of every answer, whatever speaks for it.
    #[must_use]
    pub fn disqualifies(self) -> bool {
        self >= Severity::High
    }
}

#[cfg(test)]
mod tests {
    use super::Severity::{Critical, High, Low, Medium, Safe};

    #[test]
    fn only_high_and_critical_findings_disqualify_alone() {
        for (severity, expect) in
            [(Safe, false), (Low, false), (Medium, false), (High, true), (Critical, true)]
        {
            assert_eq!(severity.disqualifies(), expect, "{severity:?}");
        }
    }
}
