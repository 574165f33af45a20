//! How `klnode task finish` names the entries that an agent adopted, and the report about them.
//!
//! Separate from `task`: the flags and the section "Knowledge Applied" belong together, and the other
//! task verbs need neither.

use super::VerbError;
use super::sanitize::printable;
use klnode_api_types::{
    AdoptionReason, FinishTask, FinishedTask, PartialUse, Task, TaskConclusion, TaskEntry,
    split_code,
};
use klnode_text::plural::entries;
use std::fmt::Write;

/// The flags of `task finish` that name entries.
#[derive(Debug, Default, clap::Args)]
pub struct AdoptionArgs {
    /// The entries that helped, separated by commas.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub used: Vec<String>,
    /// An entry that answered a part of the question, and the part that it left open. It counts as
    /// used; may be given more than once.
    #[arg(long, value_name = "CODE=GAP", allow_hyphen_values = true)]
    pub partial: Vec<String>,
    /// Entries that answered together, separated by commas. They count as used; the report says that
    /// they were not tested together.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub composite: Vec<String>,
    /// Entries that answered another question than yours, separated by commas. They count
    /// half.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub incidental: Vec<String>,
    /// Entries that you ignored because they contradicted your observations, separated by commas.
    /// They are neither credited nor blamed.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub dismissed: Vec<String>,
    /// Spikes that saved you an experiment, separated by commas. They count as used.
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    pub avoided: Vec<String>,
    /// Why an entry applies here, such as the same technology and scale; may be given more than
    /// once.
    #[arg(long = "why", value_name = "CODE=REASON", allow_hyphen_values = true)]
    pub reasons: Vec<String>,
    /// The conclusion for later parts of the work, in your words, with the codes it rests on.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub conclusion: Option<String>,
}

impl AdoptionArgs {
    /// Adds the named entries to a request.
    pub(super) fn add_to(self, finish: FinishTask) -> Result<FinishTask, VerbError> {
        let Self { used, partial, composite, incidental, dismissed, avoided, reasons, conclusion } =
            self;
        let [used, composite, incidental, dismissed, avoided] =
            [used, composite, incidental, dismissed, avoided].map(|list| {
                let codes = list.iter().map(|code| code.trim().to_owned());
                codes.filter(|code| !code.is_empty()).collect::<Vec<String>>()
            });
        let gaps = partial.iter().map(|text| pair("--partial", text));
        let gaps = gaps.map(|pair| pair.map(|(entry, gap)| PartialUse { entry, gap }));
        let whys = reasons.iter().map(|text| pair("--why", text));
        let whys = whys.map(|pair| pair.map(|(entry, reason)| AdoptionReason { entry, reason }));
        Ok(FinishTask {
            used,
            composite,
            incidental,
            dismissed,
            avoided,
            partial: gaps.collect::<Result<_, _>>()?,
            reasons: whys.collect::<Result<_, _>>()?,
            conclusion,
            ..finish
        })
    }
}

/// Splits the value `CODE=TEXT` of a flag into its two parts.
fn pair(flag: &str, text: &str) -> Result<(String, String), VerbError> {
    split_code(text).ok_or_else(|| {
        let example = "--partial S-7F3KQ2MX=\"it was measured with one writer\"";
        let message =
            format!("Cannot read {flag} `{text}`: it must be CODE=TEXT, as in {example}.");
        VerbError::Input(message)
    })
}

/// The lines of a finished task about its whole knowledge: composite answers, entries that the
/// conclusion does not cite, and a task that asked nothing.
pub(super) fn remarks(done: &FinishedTask, conclusion: Option<&str>) -> String {
    let mut text = String::new();
    let uncited: Vec<&str> = conclusion.into_iter().flat_map(|of| done.uncited(of)).collect();
    if !uncited.is_empty() {
        let codes = uncited.join(", ");
        let _ =
            writeln!(text, "The conclusion does not cite {codes}; write codes as [L-7F3KQ2MX].");
    }
    if !done.composite.is_empty() {
        let code = |id: &String| done.codes.get(id).unwrap_or(id).clone();
        let codes: Vec<String> = done.composite.iter().map(code).collect();
        let _ = writeln!(text, "{}", untested(&codes));
    }
    if done.unsearched {
        let _ = writeln!(text, "{UNSEARCHED}");
    }
    text
}

const UNSEARCHED: &str = "No search was made in this task, so its result rests on no knowledge.";

fn untested(codes: &[String]) -> String {
    format!("Composite answer from {}: not tested together as a unit.", codes.join(", "))
}

/// The section "Knowledge Applied": the entries that were named, each with its code and title, and
/// the others only by their number.
pub(super) fn report(task: &Task) -> String {
    let mut text = "\n## Knowledge Applied\n\n".to_owned();
    if let Some(conclusion) = &task.conclusion {
        let _ = writeln!(text, "{}\n", printable(conclusion));
    }
    let (mut rest, mut composite) = (0_u64, Vec::new());
    for entry in &task.entries {
        let Some(how) = adopted(entry) else {
            rest += 1;
            continue;
        };
        if entry.said.as_deref() == Some("composite") {
            composite.push(entry.code.clone());
        }
        let _ = writeln!(text, "- {}: {} ({how})", entry.code, printable(&entry.title));
    }
    if !composite.is_empty() {
        let _ = writeln!(text, "{}", untested(&composite));
    }
    if task.searches == 0 && task.entries.is_empty() {
        let _ = writeln!(text, "{UNSEARCHED}");
    } else if task.entries.is_empty() {
        text.push_str("Nothing was served in this task: no search found an entry.\n");
    } else if rest > 0 {
        let _ = writeln!(text, "{} served and not applied.", entries(rest));
    }
    text
}

/// How an entry was adopted, with the gap or the reason; `None` if the agent did not name it.
fn adopted(entry: &TaskEntry) -> Option<String> {
    let how = match entry.said.as_deref()? {
        "used" => "applied",
        "avoided" => "spike avoided",
        "dismissed" => "dismissed: it contradicted the observations",
        "partial" => "applied in part; open",
        "composite" => "part of a composite answer",
        "incidental" => "an answer to another question, with less weight",
        _ => return None,
    };
    let note = entry.note.as_deref().map(|note| format!(": {}", printable(note)));
    Some(format!("{how}{}", note.unwrap_or_default()))
}

/// The conclusions of earlier parts of the work as quoted lines; empty if there are none.
pub(super) fn conclusions(upstream: &[TaskConclusion]) -> String {
    let mut text = String::new();
    for TaskConclusion { agent, conclusion, cites, .. } in upstream {
        let cites = match cites.is_empty() {
            true => String::new(),
            false => format!(" [{}]", cites.join(", ")),
        };
        let _ = writeln!(text, "| {}: {}{cites}", printable(agent), printable(conclusion));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::pair;

    #[test]
    fn a_code_and_a_text_are_split_at_the_first_equals_sign() {
        let (code, text) = pair("--why", "S-7F3KQ2MX= x = 3 holds ").unwrap();
        assert_eq!((code.as_str(), text.as_str()), ("S-7F3KQ2MX", "x = 3 holds"));
        for wrong in ["S-7F3KQ2MX", "S-7F3KQ2MX=", "=text", " = "] {
            let told = pair("--partial", wrong).unwrap_err().to_string();
            assert!(told.contains("it must be CODE=TEXT"), "{told}");
        }
    }
}
