//! `klnode doctor`: is everything in order, and what to do where it is not.

use super::config::is_changed;
use super::{Progress, Reply, VerbError};
use crate::api::{Client, ClientError};
use crate::query::count::counted;
use crate::query::doctor::{self, Finding, Verdict};
use crate::store::Layout;
use hyper::Method;
use klnode_config::Layered;
use klnode_crdt::ids::AuthorId;
use klnode_crdt::key::SecretKey;
use klnode_crdt::time::WallTime;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use zeroize::Zeroizing;

/// How long the node may be silent before the home is looked at without it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the running node; nothing if none answers.
pub async fn ask(
    client: &Client,
    progress: &mut dyn Progress,
) -> Result<Option<Vec<Finding>>, VerbError> {
    let client = client.patient_for(PATIENCE);
    let asked = client.follow(Method::GET, "/v1/doctor", &(), |news| {
        progress.tell("examining", news.done, Some(news.total));
    });
    match asked.await {
        Ok(findings) => Ok(Some(findings)),
        Err(
            ClientError::NoNode { .. } | ClientError::Closed { .. } | ClientError::Silent { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Looks at the home itself.
pub fn look(
    layout: &Layout,
    socket: &Path,
    now: WallTime,
    progress: &mut dyn Progress,
) -> Result<Vec<Finding>, VerbError> {
    let mut findings = doctor::home(layout);
    if !doctor::is_open(layout) {
        return Ok(findings);
    }
    findings.push(doctor::socket(socket));
    let looked = doctor::store_file(layout, own(layout), now, &mut |done, total| {
        progress.tell("examining", done, Some(total));
        ControlFlow::Continue(())
    });
    findings.extend(looked.map_err(|error| VerbError::Failed(error.to_string()))?);
    Ok(findings)
}

/// Whose home it is, if its key can be read.
fn own(layout: &Layout) -> Option<AuthorId> {
    let bytes = Zeroizing::new(std::fs::read(layout.key_file()).ok()?);
    let bytes: &[u8; 32] = bytes.as_slice().try_into().ok()?;
    Some(SecretKey::from_bytes(bytes).author())
}

/// Which settings are not the defaults, or why they cannot be read.
pub fn settings(set: Result<&Layered, String>) -> Finding {
    let layered = match set {
        Ok(layered) => layered,
        Err(why) => {
            let way_out = "correct it; `klnode config` lists every key, `klnode config KEY` says \
                           what it means";
            return Finding::fail("config", format!("cannot {why}"), way_out);
        }
    };
    let changed = layered.explain().into_iter().filter(is_changed);
    let changed: Vec<String> = changed.map(|row| row.key).collect();
    match changed.as_slice() {
        [] => Finding::ok("config", "every setting has its default"),
        keys => Finding::ok("config", format!("changed: {}", keys.join(", "))),
    }
}

/// All answers, and exit code 1 if one of them is no.
pub fn reply(findings: &[Finding]) -> Reply {
    let mut text = String::new();
    for Finding { check, verdict, says, way_out } in findings {
        let verdict = match verdict {
            Verdict::Ok => "ok",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        let _ = writeln!(text, "{verdict:<5} {check:<13} {says}");
        if let Some(way_out) = way_out {
            let _ = writeln!(text, "{:<19} {way_out}", "");
        }
    }
    let count = |wanted| findings.iter().filter(|finding| finding.verdict == wanted).count();
    let (warned, failed) = (count(Verdict::Warn), count(Verdict::Fail));
    let parts = [
        counted(findings.len() as u64, "check", "checks"),
        counted(warned as u64, "warning", "warnings"),
        counted(failed as u64, "failure", "failures"),
    ];
    let _ = writeln!(text, "{}", parts.join(", "));
    Reply::new(&findings, text).ending(u8::from(failed > 0))
}
