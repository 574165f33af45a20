//! The types an entry can have, as far as judgement tells them apart.
//!
//! Separate because admission weighs a type and an answer that overflows is balanced between types.

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A technique, a pattern or an anti-pattern.
    Skill,
    /// A decision, a convention, a learning or a bug.
    Experience,
    /// What someone learnt from a piece of work.
    Lesson,
    /// An experiment with its outcome.
    Spike,
    /// A statement with evidence anchors and steps that verify it.
    Finding,
    /// What is expected of commits, reviews and behaviour.
    Norm,
    /// A thing of the small typed graph.
    Entity,
    /// A tie between two things of it.
    Relation,
    /// Raw and episodic: something was noticed.
    Signal,
    /// Raw and episodic: something was hard.
    Friction,
    /// Raw and episodic: how well an estimate held.
    Calibration,
    /// A document that several people edit.
    Playbook,
}
