//! The agents: how they use an answer, report the outcome and write down what they learned; and the
//! hostile node, which does none of that.

use super::code_base::CodeBase;
use super::dice::Dice;
use super::experiment_arms::Practice;
use super::node_reader::Offer;
use super::params::{HOSTILE, habits};
use super::replay::{OpenTask, Replay, caller};
use super::texts::{lesson_text, question_text};
use super::world::FactClaim;
use klnode_crdt::gcounter::Thousandths;
use klnode_crdt::ids::EntryId;
use klnode_crdt::tally::Observation;
use klnode_engine::{Command, Finish, TaskCommand};
use klnode_scoring::credit::{TaskOutcome, TaskVerdict};

/// Quality that agents state for a success, and for a failure.
const QUALITIES: [f64; 2] = [0.8, 0.2];
/// Probability that an agent which was misled blames the entry rather than the whole task.
const BLAMES_ENTRY: f64 = 0.5;
/// Probability that an agent dismisses a hit that it knows to be wrong.
const DISMISSES: f64 = 0.5;
/// Probability that a wrong lesson repeats the value that was true before.
const WRONG_BY_HABIT: f64 = 0.5;

impl Replay<'_> {
    /// Ends a task: the agent uses the answer or works alone, reports, and may write a lesson.
    pub(super) fn conclude(&mut self, day: u32, open: &OpenTask) {
        let habits = habits(open.node);
        let [_, day_place, node_place, number] = open.place;
        let mut dice = Dice::new(self.seed, &[4, day_place, node_place, number]);
        let (heeds, helps_half) = (dice.chance(habits.heeds), dice.chance(0.5));
        let (can_solve, misreports) = (dice.chance(habits.solves), dice.chance(habits.misreports));
        let names_used = dice.chance(habits.names_used);
        let adopted = self.adopt(open, heeds);
        let is_right = adopted.is_some_and(|offer| {
            let claim = self.lessons[&offer.entry].claim;
            let is_about = open.fact == Some(claim.fact);
            let rightness = self.world.rightness(claim, day);
            is_about && (rightness == 1.0 || (rightness > 0.0 && helps_half))
        });
        if let Some(offer) = adopted {
            *self.desks[open.node].uses.entry(offer.entry).or_default() += 1;
            let lesson = self.lessons.get_mut(&offer.entry).expect("an adopted entry is known");
            lesson.helped += u32::from(is_right);
            self.counts.right += u64::from(is_right);
            self.counts.harm += u64::from(!is_right);
            self.counts.harm_hostile += u64::from(!is_right && lesson.is_poison);
        }
        let has_solved = is_right || can_solve;
        let has_learned = has_solved && !is_right;
        if let Some(fact) = open.fact {
            let is_seen = open.offers.iter().any(|offer| self.is_right_about(offer, fact, day));
            let may_write = match is_seen || is_right {
                true => dice.chance(habits.repeats) && has_solved,
                false => has_learned && dice.chance(self.params.writes),
            };
            let misled_by = adopted.filter(|_| !is_right).map(|offer| offer.entry);
            let replaced =
                misled_by.filter(|of| dice.chance(habits.supersedes) && self.is_about(*of, fact));
            if may_write {
                let written = self.write_or_confirm(day, open, fact, &mut dice);
                if let (Some(old), Some(new)) = (replaced, written)
                    && self.arm.has(Practice::Supersession)
                {
                    self.supersede(open.node, open.caller, old, new);
                }
            }
        }
        let finish = self.report(
            (day, open),
            adopted.map(|offer| (offer.entry, is_right)),
            (has_solved, misreports, names_used),
            &mut dice,
        );
        let finish = TaskCommand::Finish(open.task, finish);
        self.run(open.node, open.caller, Command::Task(Box::new(finish)));
    }

    /// The first hit that the agent takes for an answer and does not doubt.
    fn adopt(&self, open: &OpenTask, heeds: bool) -> Option<Offer> {
        let habits = habits(open.node);
        let is_taken = |(rank, offer): &(usize, &Offer)| {
            let Some(lesson) = self.lessons.get(&offer.entry) else { return false };
            let [_, day, node, number] = open.place;
            let mut dice = Dice::new(self.seed, &[5, day, node, number, *rank as u64]);
            let is_mistaken = dice.chance(habits.mistakes_subject);
            let is_doubtful = offer.has_warning
                || offer.confidence.is_some_and(|shown| shown < self.params.doubt_below);
            (open.fact == Some(lesson.claim.fact) || is_mistaken) && !(heeds && is_doubtful)
        };
        open.offers.iter().enumerate().find(is_taken).map(|(_, offer)| *offer)
    }

    fn is_about(&self, entry: EntryId, fact: usize) -> bool {
        self.lessons.get(&entry).is_some_and(|lesson| lesson.claim.fact == fact)
    }

    fn is_right_about(&self, offer: &Offer, fact: usize, day: u32) -> bool {
        self.lessons.get(&offer.entry).is_some_and(|lesson| {
            lesson.claim.fact == fact && self.world.rightness(lesson.claim, day) == 1.0
        })
    }

    /// The end of the task as the agent reports it. An agent that was misled may first blame the
    /// entry alone.
    fn report(
        &mut self,
        (day, open): (u32, &OpenTask),
        adopted: Option<(EntryId, bool)>,
        (has_solved, misreports, names_used): (bool, bool, bool),
        dice: &mut Dice,
    ) -> Finish {
        let end = |is_success: bool, used: Vec<EntryId>| {
            let [good, bad] = QUALITIES;
            let (verdict, quality) = match is_success {
                true => (TaskVerdict::Success, good),
                false => (TaskVerdict::Failure, bad),
            };
            Finish::new(TaskOutcome { verdict, quality }, used)
        };
        let Some((entry, is_right)) = adopted else {
            let mut finish = end(has_solved, Vec::new());
            if let Some(fact) = open.fact.filter(|_| has_solved && dice.chance(DISMISSES)) {
                let is_wrong = |offer: &&Offer| !self.is_right_about(offer, fact, day);
                finish.dismissed =
                    open.offers.iter().filter(is_wrong).map(|offer| offer.entry).collect();
            }
            return finish;
        };
        match (is_right != misreports, names_used) {
            (true, true) => end(true, vec![entry]),
            (true, false) => end(true, Vec::new()),
            (false, _) if dice.chance(BLAMES_ENTRY) => {
                let (of, amount) = (Observation::Failure, Thousandths::ONE);
                let blame = TaskCommand::Observe { task: open.task, entry, of, amount };
                self.run(open.node, open.caller, Command::Task(Box::new(blame)));
                Finish { dismissed: vec![entry], ..end(has_solved, Vec::new()) }
            }
            (false, _) => end(false, vec![entry]),
        }
    }

    /// Writes a lesson and returns its entry. An agent that did not ask may find its lesson written
    /// already, and confirms it.
    fn write_or_confirm(
        &mut self,
        day: u32,
        open: &OpenTask,
        fact: usize,
        dice: &mut Dice,
    ) -> Option<EntryId> {
        let habits = habits(open.node);
        let truth = self.world.facts[fact].truth(day);
        let claim = if dice.chance(habits.writes_wrong) {
            let value = self.wrong_value(fact, day, dice);
            FactClaim { fact, value, is_half: false }
        } else {
            FactClaim { fact, value: truth, is_half: dice.chance(habits.writes_half) }
        };
        let (title, content) = lesson_text(&self.world.facts[fact], claim, dice);
        let predicate = self.world.facts[fact].predicate(claim.value);
        let predicate = predicate.filter(|_| dice.chance(habits.anchors) && claim.value == truth);
        if !open.has_asked && dice.chance(self.params.confirms) {
            let offers = self.ask(open.node, &title, None).offers;
            let says_so = |offer: &&Offer| {
                self.lessons.get(&offer.entry).is_some_and(|lesson| {
                    (lesson.claim.fact, lesson.claim.value) == (fact, claim.value)
                })
            };
            if let Some(offer) = offers.iter().find(says_so) {
                let is_lowered = !self.arm.has(Practice::Confirmation);
                let (task, entry) = (open.task, offer.entry);
                let confirm = TaskCommand::Confirm { task, entry, is_lowered };
                self.run(open.node, open.caller, Command::Task(Box::new(confirm)));
                return None;
            }
        }
        let task = Some((open.task, open.caller));
        Some(self.write((day, open.node), (claim, &title, content), predicate, task))
    }

    /// A value that is not true on a day, often the one that was true before.
    fn wrong_value(&self, fact: usize, day: u32, dice: &mut Dice) -> usize {
        let of = &self.world.facts[fact];
        let truth = of.truth(day);
        let before = of.changes.iter().rev().map(|(_, value)| *value);
        let before =
            before.into_iter().find(|value| *value != truth && of.is_outdated(*value, day));
        match before {
            Some(value) if dice.chance(WRONG_BY_HABIT) => value,
            _ => (truth + 1 + dice.below(of.values.len() - 1)) % of.values.len(),
        }
    }

    /// A day of the hostile node: false lessons against the most needed facts, with the words of the
    /// question and an anchor that always holds, which claim to replace true lessons; praise for them,
    /// and blame for true lessons.
    pub(super) fn attack(&mut self, day: u32) {
        let mut dice = Dice::new(self.seed, &[6, u64::from(day)]);
        let by = caller(HOSTILE, &format!("d{day}"));
        for _ in 0..self.params.poison_per_day {
            let fact = self.world.need(dice.below(HOSTILE), &mut dice);
            let value = self.wrong_value(fact, day, &mut dice);
            let claim = FactClaim { fact, value, is_half: false };
            let (mut title, content) = lesson_text(&self.world.facts[fact], claim, &mut dice);
            if dice.chance(0.5) {
                title = question_text(&self.world.facts[fact], &mut dice);
            }
            let predicate = dice.chance(0.5).then(CodeBase::always_true);
            let poison = self.write((day, HOSTILE), (claim, &title, content), predicate, None);
            let honest = self.true_lessons(day);
            let old = honest.into_iter().find(|entry| self.is_about(*entry, fact));
            if let Some(old) = old.filter(|_| self.arm.has(Practice::Supersession)) {
                self.supersede(HOSTILE, by, old, poison);
            }
        }
        let amount = Thousandths::ONE;
        let own = self.lessons.iter().filter(|(_, of)| of.is_poison);
        let mut praised: Vec<(u64, EntryId)> = own.map(|(entry, of)| (of.number, *entry)).collect();
        praised.sort_unstable();
        for (_, entry) in praised.into_iter().rev().take(self.params.praise_per_day) {
            self.run(HOSTILE, by, Command::Observe { entry, of: Observation::Success, amount });
        }
        let honest = self.true_lessons(day);
        for _ in 0..self.params.slander_per_day.min(honest.len()) {
            let entry = *dice.pick(&honest);
            self.run(HOSTILE, by, Command::Observe { entry, of: Observation::Failure, amount });
        }
    }

    /// The true lessons of others that the hostile node holds.
    fn true_lessons(&mut self, day: u32) -> Vec<EntryId> {
        let snapshot = self.cluster.snapshot(HOSTILE);
        let is_held = |entry: &EntryId| snapshot.view_row(*entry).expect("readable").is_some();
        let honest = self
            .lessons
            .iter()
            .filter(|(_, of)| !of.is_poison && self.world.rightness(of.claim, day) == 1.0);
        honest.map(|(entry, _)| *entry).filter(is_held).collect()
    }
}
