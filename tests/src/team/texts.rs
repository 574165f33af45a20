//! Texts of entries and questions, from templates with variation.

use super::dice::Dice;
use super::world::{Fact, FactClaim, FactKind};

/// Sentences that agents add; they carry no information.
const ASIDES: [&str; 10] = [
    "Found while working on an unrelated ticket.",
    "It took most of an afternoon to see this.",
    "The documentation does not mention it.",
    "Checked on a fresh clone and in the pipeline.",
    "Somewhat surprising, so it is noted here.",
    "The previous approach had other drawbacks as well.",
    "This holds for staging and for production.",
    "A colleague reported the same thing last week.",
    "The log output is misleading in this case.",
    "See the discussion in the pull request.",
];

/// Title and content of a lesson.
#[expect(clippy::too_many_lines, reason = "one template for each kind of fact")]
pub(super) fn lesson_text(fact: &Fact, claim: FactClaim, dice: &mut Dice) -> (String, String) {
    let (it, at, value) = (fact.item, fact.component, fact.values[claim.value].as_str());
    let (title, content) = match fact.kind {
        FactKind::Version => match dice.below(4) {
            0 => (
                format!("Pin {it} to {value} in the {at}"),
                format!("The {at} works with {it} {value}. Other versions break its build."),
            ),
            1 => (
                format!("{at}: {it} {value} is required"),
                format!("Builds of the {at} fail unless the manifest declares {it} {value}."),
            ),
            2 => (
                format!("Version of {it} for the {at}"),
                format!(
                    "Use {it} {value}. With another release the {at} does not compile or behaves \
                     differently at run time."
                ),
            ),
            _ => (
                format!("cargo update breaks the {at}"),
                format!("After the update {it} had moved. Going to {value} repaired the {at}."),
            ),
        },
        FactKind::Layout => match dice.below(4) {
            0 => (
                format!("The {it} of the {at} is in {value}"),
                format!("To change the {it}, edit {value}; the {at} has no other copy of it."),
            ),
            1 => (format!("Where the {at} keeps its {it}"), format!("Look into {value}.")),
            2 => (
                format!("{at}: location of {it}"),
                format!("The code for {it} lives in {value}, not where the readme says."),
            ),
            _ => (
                format!("{value} holds the {it}"),
                format!("Found by following the imports of the {at}: the {it} is defined there."),
            ),
        },
        FactKind::Convention => match dice.below(4) {
            0 => (
                format!("{it} in the {at}: {value}"),
                format!("The team agreed for the {at}: {value}. Reviews refuse anything else."),
            ),
            1 => (
                format!("Convention of the {at} for {it}"),
                format!("For {it} we {value} in this component."),
            ),
            2 => (
                format!("How we do {it} in the {at}"),
                format!("The rule is to {value}. It applies to new code and to changed code."),
            ),
            _ => (
                format!("Review comment about {it}"),
                format!("The maintainers of the {at} asked to {value}."),
            ),
        },
        FactKind::Incident => match dice.below(4) {
            0 => (
                format!("{at}: {it}"),
                format!("What helped was to {value}. Restarting alone did not help."),
            ),
            1 => {
                (format!("Remedy when the {at} shows {it}"), format!("The way out is to {value}."))
            }
            2 => (
                format!("Incident in the {at}, {it}"),
                format!("Cause found in the metrics. To mend it, {value} and watch the graphs."),
            ),
            _ => (
                format!("To {value} mends the {at}"),
                format!("Observed {it}; after that measure it went away."),
            ),
        },
        FactKind::Labelled => {
            let own = fact.labelled.expect("a labelled fact has its words");
            (own.title.clone(), value.to_owned())
        }
    };
    let mut content = content;
    if claim.is_half {
        content.push_str(" It applies in every case.");
    }
    while dice.chance(0.4) {
        content = format!("{content} {}", dice.pick(&ASIDES));
    }
    let mut letters = title.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    (format!("{first}{}", letters.as_str()), content)
}

/// A question about a fact.
pub(super) fn question_text(fact: &Fact, dice: &mut Dice) -> String {
    let (it, at) = (fact.item, fact.component);
    match fact.kind {
        FactKind::Version => match dice.below(4) {
            0 => format!("which version of {it} does the {at} need"),
            1 => format!("the {at} does not compile after updating dependencies, {it} error"),
            2 => format!("can I upgrade {it} in the {at}?"),
            _ => format!("{at} {it} version"),
        },
        FactKind::Layout => match dice.below(4) {
            0 => format!("where is the {it} of the {at}"),
            1 => format!("which file do I edit to change the {it} in the {at}?"),
            2 => format!("{at} {it} source file"),
            _ => format!("cannot find the {it} that the {at} uses"),
        },
        FactKind::Convention => match dice.below(4) {
            0 => format!("how do we do {it} in the {at}"),
            1 => format!("convention for {it}, {at}"),
            2 => format!("what will reviewers of the {at} expect for {it}?"),
            _ => format!("{it} style in the {at}"),
        },
        FactKind::Incident => match dice.below(4) {
            0 => format!("{it} in the {at}"),
            1 => format!("the {at} is broken: {it}, what helps?"),
            2 => format!("how to fix {it} ({at})"),
            _ => format!("{at} incident {it}"),
        },
        FactKind::Labelled => {
            let own = fact.labelled.expect("a labelled fact has its words");
            dice.pick(&own.questions).clone()
        }
    }
}
