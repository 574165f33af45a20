//! The world with its ground truth: facts about a code base, each with several possible values, of
//! which exactly one is true on any day.

use super::dice::Dice;
use super::params::Params;
use super::question_bank::{LabelledEntry, question_bank};
use super::vocabulary::{COMPONENTS, LIBRARIES, PRACTICES, REMEDIES, SYMPTOMS, THINGS};

/// The kind of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FactKind {
    /// The version of a library that a component works with.
    Version,
    /// The file in which a thing lives.
    Layout,
    /// A convention of the team.
    Convention,
    /// The remedy for an incident.
    Incident,
    /// An entry of a labelled set; it does not change.
    Labelled,
}

/// A fact with its possible values.
#[derive(Clone, Debug)]
pub struct Fact {
    pub kind: FactKind,
    /// The component that the fact is about.
    pub component: &'static str,
    /// The library, the thing, the practice or the symptom.
    pub item: &'static str,
    /// The possible values, as texts.
    pub values: Vec<String>,
    /// The days from which a value is true, in order; the first is day 0.
    pub changes: Vec<(u32, usize)>,
    /// The words of a labelled fact.
    pub(super) labelled: Option<&'static LabelledEntry>,
}

/// A statement of an entry about a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FactClaim {
    /// Index of the fact.
    pub fact: usize,
    /// Index of the stated value.
    pub value: usize,
    /// The statement omits a condition: it helps every second time.
    pub is_half: bool,
}

impl Fact {
    /// The value that is true on a day.
    pub fn truth(&self, day: u32) -> usize {
        let past = self.changes.iter().rev().find(|(from, _)| *from <= day);
        past.map_or(0, |(_, value)| *value)
    }

    /// Whether a value was true once and is no longer.
    pub fn is_outdated(&self, value: usize, day: u32) -> bool {
        self.truth(day) != value
            && self.changes.iter().any(|(from, of)| *from <= day && *of == value)
    }

    /// The folder of the component.
    pub fn folder(&self) -> String {
        self.component.replace(' ', "-")
    }

    /// The predicate that holds while a value is true; `None` if no file shows it.
    pub fn predicate(&self, value: usize) -> Option<String> {
        match self.kind {
            FactKind::Version => {
                let minor: u32 =
                    self.values[value].rsplit('.').next().and_then(|n| n.parse().ok())?;
                let (item, version) = (self.item, &self.values[value]);
                Some(format!("dep:cargo:{item}>={version},<1.{}", minor + 1))
            }
            FactKind::Layout => Some(format!("path:{}", self.values[value])),
            _ => None,
        }
    }
}

/// All facts, and how often each is needed.
#[derive(Clone, Debug)]
pub struct ReplayWorld {
    pub facts: Vec<Fact>,
    /// For each node, the facts in the order of need.
    pub focus: Vec<Vec<usize>>,
}

impl ReplayWorld {
    /// The world of a seed.
    pub fn draw(seed: u64, params: &Params, nodes: usize) -> Self {
        let mut dice = Dice::new(seed, &[1]);
        let mut components = COMPONENTS.to_vec();
        dice.shuffle(&mut components);
        let mut facts = Vec::new();
        for number in 0..params.facts_per_kind {
            let component = components[number % components.len()];
            for kind in
                [FactKind::Version, FactKind::Layout, FactKind::Convention, FactKind::Incident]
            {
                facts.push(changing(kind, component, number, params, &mut dice));
            }
        }
        let bank = question_bank();
        let mut order: Vec<usize> = (0..bank.entries.len()).collect();
        dice.shuffle(&mut order);
        for at in order.iter().take(params.labelled) {
            facts.push(constant(&bank.entries[*at], bank.entries.as_slice(), &mut dice));
        }
        let mut shared: Vec<usize> = (0..facts.len()).collect();
        dice.shuffle(&mut shared);
        let focus = (0..nodes).map(|_| nearly(&shared, &mut dice)).collect();
        Self { facts, focus }
    }

    /// A fact that a node needs: those early in its order more often.
    pub fn need(&self, node: usize, dice: &mut Dice) -> usize {
        let order = &self.focus[node];
        let weight = |rank: usize| 1.0 / (1.0 + rank as f64).powf(0.6);
        let total: f64 = (0..order.len()).map(weight).sum();
        let mut left = dice.share() * total;
        for (rank, fact) in order.iter().enumerate() {
            left -= weight(rank);
            if left <= 0.0 {
                return *fact;
            }
        }
        order[0]
    }

    /// Whether a claim is right on a day: 1, one half, or 0.
    pub fn rightness(&self, claim: FactClaim, day: u32) -> f64 {
        match (self.facts[claim.fact].truth(day) == claim.value, claim.is_half) {
            (true, false) => 1.0,
            (true, true) => 0.5,
            (false, _) => 0.0,
        }
    }
}

/// The order of one node: the shared one, with some facts moved.
fn nearly(shared: &[usize], dice: &mut Dice) -> Vec<usize> {
    let mut order = shared.to_vec();
    for at in 0..order.len() {
        if dice.chance(0.4) {
            let with = dice.below(order.len());
            order.swap(at, with);
        }
    }
    order
}

fn changing(
    kind: FactKind,
    component: &'static str,
    number: usize,
    params: &Params,
    dice: &mut Dice,
) -> Fact {
    let folder = component.replace(' ', "-");
    let (item, mut values): (&'static str, Vec<String>) = match kind {
        FactKind::Version => {
            let base = 1 + dice.below(20);
            let values = (0..6).map(|step| format!("1.{}", base + 3 * step)).collect();
            (LIBRARIES[number % LIBRARIES.len()], values)
        }
        FactKind::Layout => {
            let (thing, file) = THINGS[(number * 7 + dice.below(3)) % THINGS.len()];
            let folders = ["src", "src/core", "src/internal", "lib", "pkg", "src/api"];
            let values =
                folders.iter().map(|of| format!("{folder}/{of}/{file}")).collect::<Vec<String>>();
            (thing, values)
        }
        FactKind::Convention => {
            let (practice, styles) = PRACTICES[number % PRACTICES.len()];
            (practice, styles.iter().map(|style| (*style).to_owned()).collect())
        }
        FactKind::Incident | FactKind::Labelled => {
            let symptom = SYMPTOMS[(number * 5 + dice.below(4)) % SYMPTOMS.len()];
            let mut remedies: Vec<String> =
                REMEDIES.iter().map(|remedy| (*remedy).to_owned()).collect();
            dice.shuffle(&mut remedies);
            remedies.truncate(5);
            (symptom, remedies)
        }
    };
    if kind != FactKind::Version {
        dice.shuffle(&mut values);
    }
    let mut changes = vec![(0, 0)];
    let mut day = dice.days(params.lifetime_days);
    while day < params.days {
        let last = changes.last().map_or(0, |(_, value)| *value);
        // The last value is never true, so that a wrong statement exists on every day.
        let next = (last + 1) % (values.len() - 1);
        changes.push((day, next));
        day += dice.days(params.lifetime_days);
    }
    Fact { kind, component, item, values, changes, labelled: None }
}

/// A labelled fact: its own content is right, and the contents of other entries are wrong.
fn constant(own: &'static LabelledEntry, all: &'static [LabelledEntry], dice: &mut Dice) -> Fact {
    let mut values = vec![own.content.clone()];
    while values.len() < 4 {
        let other = &dice.pick(all).content;
        if !values.contains(other) {
            values.push(other.clone());
        }
    }
    let kind = FactKind::Labelled;
    Fact { kind, component: "", item: "", values, changes: vec![(0, 0)], labelled: Some(own) }
}
