//! `klnode check`: is the node in order? Six parts, each with its own answer, and one exit code.
//!
//! `home` and `store` can be examined without a node, which the application does; the other parts
//! ask the running node. The JSON form is an object with one key per part.

use super::anchors::{self, Check};
use super::check_gates::{self, RuleGate};
use super::{ProgressSink, Reply, VerbError, commit_norms, entry_audit_reports, eval};
use clap::ValueEnum;
use klnode_client::Client;
use std::path::PathBuf;

/// The heading of the findings about home and store.
pub const HOME_HEADING: &str = "HOME AND STORE";

/// The parts to check, and where.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// The measurement to make instead of a check.
    #[command(subcommand)]
    pub measurement: Option<Measurement>,
    /// The parts to check [default: all; anchors only inside a checkout].
    #[arg(value_enum)]
    pub parts: Vec<CheckPart>,
    /// Check this rule alone, by its name; may be given more than once.
    #[arg(long = "gate", value_name = "GATE", value_enum, conflicts_with = "parts")]
    pub gates: Vec<RuleGate>,
    /// Test the commits of this range against the commit norms alone, such as main..HEAD. A norm
    /// states a rule in a line of its content that begins with `Check:`.
    #[arg(long, value_name = "RANGE", conflicts_with = "parts")]
    pub norms: Option<String>,
    /// With limits: if a number exceeds its limit, write a proposal for a review to this file, as JSON.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gates", "norms"])]
    pub proposal: Option<PathBuf>,
    /// With limits: write the numbers with their limits to this file, as JSON, in any case.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["gates", "norms"])]
    pub report: Option<PathBuf>,
    /// Check rules, drift, limits and anchors of this workspace only, by name or id [default: all].
    #[arg(long)]
    pub workspace: Option<String>,
    /// A git checkout, or a folder in one, to check predicates in [default: the current folder].
    #[arg(long, value_name = "FOLDER")]
    pub path: Option<PathBuf>,
}

/// A measurement that a check of the node does not include.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Measurement {
    /// Measure the quality of answers on a labelled set.
    ///
    /// Example: klnode check eval queries.jsonl --compare
    Eval(eval::Args),
}

/// One part of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckPart {
    /// Folder, keys, permissions, disk space, socket and settings.
    Home,
    /// The store file and every signature in it.
    Store,
    /// Evidence, links, promotion and norms of every entry.
    Rules,
    /// Stale and contradicting entries, deleted dependencies, crowded tags.
    Drift,
    /// Six numbers, each with its limit.
    Limits,
    /// Every anchor and `depends_on` that was written in this repository.
    Anchors,
}

impl CheckPart {
    fn heading(self) -> &'static str {
        match self {
            Self::Home => "HOME",
            Self::Store => "STORE",
            Self::Rules => "RULES",
            Self::Drift => "DRIFT",
            Self::Limits => "LIMITS",
            Self::Anchors => "ANCHORS",
        }
    }

    /// Its key in the JSON form, which is also its name on the command line.
    pub(super) fn key(self) -> String {
        self.heading().to_lowercase()
    }
}

impl Args {
    /// Whether the command line named no part and no measurement.
    pub fn is_whole(&self) -> bool {
        self.parts.is_empty()
            && self.gates.is_empty()
            && self.norms.is_none()
            && self.measurement.is_none()
    }

    /// Whether to check this part, given that it was named or that no part was.
    pub fn has(&self, part: CheckPart) -> bool {
        self.is_whole() || self.parts.contains(&part)
    }

    /// Whether any part needs the running node.
    pub fn asks_node(&self) -> bool {
        !self.gates.is_empty()
            || self.norms.is_some()
            || [CheckPart::Rules, CheckPart::Drift, CheckPart::Limits, CheckPart::Anchors]
                .iter()
                .any(|part| self.has(*part))
    }

    /// Checks the parts that the running node answers.
    pub(super) async fn run(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        if !self.gates.is_empty() || self.norms.is_some() {
            return self.run_gates(client, progress).await;
        }
        let folder = self.path.clone().unwrap_or_else(|| PathBuf::from("."));
        let checkout = anchors::checkout_root(&folder);
        let mut sections = Vec::new();
        if [CheckPart::Rules, CheckPart::Drift, CheckPart::Limits]
            .iter()
            .any(|part| self.has(*part))
        {
            let workspace = self.workspace.clone();
            let totals =
                entry_audit_reports::totals(workspace, checkout.clone(), client, progress).await?;
            if self.has(CheckPart::Rules) {
                sections.push((CheckPart::Rules, totals.rules()));
            }
            if self.has(CheckPart::Drift) {
                sections.push((CheckPart::Drift, totals.drift()));
            }
            if self.has(CheckPart::Limits) {
                let files = (self.proposal.as_deref(), self.report.as_deref());
                sections.push((CheckPart::Limits, totals.health(client, files).await?));
            }
        }
        if self.parts.contains(&CheckPart::Anchors) || (self.is_whole() && checkout.is_some()) {
            let check = Check { path: folder, workspace: self.workspace.clone() };
            sections.push((CheckPart::Anchors, check.run(client).await?));
        }
        let has_headings =
            sections.len() > 1 || self.has(CheckPart::Home) || self.has(CheckPart::Store);
        let replies = sections.into_iter().map(|(part, reply)| {
            let reply = reply.keyed(&part.key());
            if has_headings { reply.headed(part.heading()) } else { reply }
        });
        Ok(replies.reduce(Reply::and).unwrap_or_else(Reply::nothing))
    }

    /// Checks commit norms, and single rules by name. Exit code 1 if one of them blocks.
    async fn run_gates(
        self,
        client: &Client,
        progress: &mut dyn ProgressSink,
    ) -> Result<Reply, VerbError> {
        let mut replies = Vec::new();
        if let Some(range) = &self.norms {
            let folder = self.path.clone().unwrap_or_else(|| PathBuf::from("."));
            let workspace = self.workspace.as_deref();
            replies.push(commit_norms::run(range, &folder, workspace, client).await?);
        }
        let needs_audit = self.gates.iter().any(|gate| gate.rule().is_some());
        let totals = match needs_audit {
            true => {
                Some(entry_audit_reports::totals(self.workspace, None, client, progress).await?)
            }
            false => None,
        };
        for gate in self.gates {
            let reply = match gate.rule().zip(totals.as_ref()) {
                Some((rule, totals)) => totals.gate(gate.name(), rule),
                None => {
                    let violations = check_gates::schema_violations(client).await?;
                    entry_audit_reports::gate_reply(
                        gate.name(),
                        &violations.iter().collect::<Vec<_>>(),
                    )
                }
            };
            replies.push(reply.keyed(gate.name()));
        }
        Ok(replies.into_iter().reduce(Reply::and).unwrap_or_else(Reply::nothing))
    }
}
