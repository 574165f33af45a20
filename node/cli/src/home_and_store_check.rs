//! `klnode check home store`: examines the home and its store, with or without a running node.

use super::check::{Args, CheckPart};
use super::config::is_changed;
use super::{ProgressSink, Reply, VerbError};
use hyper::Method;
use klnode_api_types::health_check::{CheckResult, CheckSeverity};
use klnode_client::{Client, ClientError};
use klnode_config::Layered;
use klnode_text::plural::counted;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;

/// The time to wait for the node before its home is examined without it.
const PATIENCE: Duration = Duration::from_secs(5);
/// The check that ends the list of checks of the home; all later ones are about the store.
const LAST_OF_HOME: &str = "socket";

/// Check results about the home and about its store.
#[derive(Default)]
pub struct DoctorReport {
    /// Check results about the home.
    pub home: Vec<CheckResult>,
    /// Check results about the store.
    pub store: Vec<CheckResult>,
}

impl DoctorReport {
    fn of(mut home: Vec<CheckResult>) -> Self {
        let last = home.iter().position(|finding| finding.check == LAST_OF_HOME);
        let store = home.split_off(last.map_or(home.len(), |at| at + 1));
        Self { home, store }
    }

    /// Adds a check result about the home.
    pub fn push(&mut self, finding: CheckResult) {
        self.home.push(finding);
    }
}

/// Asks the running node to examine itself; `None` if no node answers.
pub async fn ask(
    client: &Client,
    progress: &mut dyn ProgressSink,
) -> Result<Option<DoctorReport>, VerbError> {
    let client = client.patient_for(PATIENCE);
    let asked = client.follow(Method::GET, "/v1/doctor", &(), |news| {
        progress.tell("examining", news.done, Some(news.total));
    });
    match asked.await {
        Ok(findings) => Ok(Some(DoctorReport::of(findings))),
        Err(
            ClientError::NoNode { .. } | ClientError::Closed { .. } | ClientError::Silent { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The settings that differ from the defaults, or the reason why they cannot be read.
pub fn settings(set: Result<&Layered, String>) -> CheckResult {
    let layered = match set {
        Ok(layered) => layered,
        Err(why) => {
            let way_out = "correct it; `klnode config` lists every key, and `klnode config KEY` \
                           explains one";
            return CheckResult::fail("config", why, way_out);
        }
    };
    let changed = layered.explain().into_iter().filter(is_changed);
    let changed: Vec<String> = changed.map(|row| row.key).collect();
    match changed.as_slice() {
        [] => CheckResult::ok("config", "Every setting has its default."),
        keys => CheckResult::ok("config", format!("Changed: {}.", keys.join(", "))),
    }
}

/// The check results of the parts in `args`, with exit code 1 if one of them is a failure.
pub fn reply(args: &Args, findings: &DoctorReport) -> Reply {
    let parts = [(CheckPart::Home, &findings.home), (CheckPart::Store, &findings.store)];
    let (mut text, mut told) = (String::new(), Map::new());
    let mut all = Vec::new();
    for (part, found) in parts.into_iter().filter(|(part, _)| args.has(*part)) {
        told.insert(part.key(), json!(found));
        all.extend(found);
    }
    for CheckResult { check, verdict, says, way_out } in &all {
        let verdict = match verdict {
            CheckSeverity::Ok => "ok",
            CheckSeverity::Warn => "warn",
            CheckSeverity::Fail => "FAIL",
        };
        let _ = writeln!(text, "{verdict:<5} {check:<13} {says}");
        if let Some(way_out) = way_out {
            let _ = writeln!(text, "{:<19} {way_out}", "");
        }
    }
    let count = |wanted| all.iter().filter(|finding| finding.verdict == wanted).count();
    let (warned, failed) = (count(CheckSeverity::Warn), count(CheckSeverity::Fail));
    let counts = [
        counted(all.len() as u64, "check", "checks"),
        counted(warned as u64, "warning", "warnings"),
        counted(failed as u64, "failure", "failures"),
    ];
    let _ = writeln!(text, "{}", counts.join(", "));
    Reply::new(&Value::Object(told), text).with_exit_code(u8::from(failed > 0))
}
