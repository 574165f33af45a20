//! The settings of a workspace, and whose weights hold for a question: the operator's own for that
//! workspace, else the workspace's, else the configuration's.

use super::numbers::Numbers;
use crate::store::peers::Society;
use klnode_crdt::ids::WorkspaceId;
use klnode_scoring::rank::{PerSignal, Weights};
use serde::Deserialize;

/// Who decided what the signals weigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsFrom {
    /// The configuration, for all workspaces.
    Configuration,
    /// Owner or admins of the workspace, in its settings.
    Workspace,
    /// The operator, in the configuration, for this workspace: it always wins.
    Override,
}

impl WeightsFrom {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration",
            Self::Workspace => "the workspace's settings",
            Self::Override => "your override for this workspace",
        }
    }
}

/// What the settings of a workspace may say.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables of settings")]
struct Settings {
    #[serde(default)]
    weights: Partial,
}

/// Weights of some signals; the others keep what the configuration gives them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of weights")]
struct Partial {
    semantic: Option<f64>,
    thompson: Option<f64>,
    freshness: Option<f64>,
    status: Option<f64>,
    thread: Option<f64>,
    cooccurrence: Option<f64>,
}

impl Partial {
    fn is_empty(&self) -> bool {
        let all = [self.semantic, self.thompson, self.freshness];
        let more = [self.status, self.thread, self.cooccurrence];
        all.iter().chain(&more).all(Option::is_none)
    }

    fn over(&self, base: &PerSignal) -> PerSignal {
        PerSignal {
            semantic: self.semantic.unwrap_or(base.semantic),
            thompson: self.thompson.unwrap_or(base.thompson),
            freshness: self.freshness.unwrap_or(base.freshness),
            status: self.status.unwrap_or(base.status),
            thread: self.thread.unwrap_or(base.thread),
            cooccurrence: self.cooccurrence.unwrap_or(base.cooccurrence),
        }
    }
}

impl Numbers {
    /// What a text of settings makes the signals weigh; none if it says nothing about that. An
    /// error names what is wrong.
    pub fn weights_by(&self, settings: &str) -> Result<Option<Weights>, String> {
        let read: Result<Settings, toml::de::Error> = toml::from_str(settings);
        let Settings { weights } = read.map_err(|error| error.message().to_owned())?;
        if weights.is_empty() {
            return Ok(None);
        }
        let weights = Weights::new(weights.over(self.weights.per_signal()));
        weights.map(Some).map_err(|error| error.to_string())
    }

    /// What the signals weigh in a workspace, and who said so. Settings that this version cannot
    /// read are as if there were none.
    pub fn weights_in(&self, society: &Society, workspace: WorkspaceId) -> (Weights, WeightsFrom) {
        if let Some(weights) = self.workspace_weights.get(&society.name(workspace)) {
            return (*weights, WeightsFrom::Override);
        }
        let settings = society.workspaces.get(&workspace).and_then(|one| {
            let text = one.charter.settings.as_deref()?;
            self.weights_by(text).ok().flatten()
        });
        match settings {
            Some(weights) => (weights, WeightsFrom::Workspace),
            None => (self.weights, WeightsFrom::Configuration),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_config::Config;

    fn read(settings: &str) -> Result<Option<PerSignal>, String> {
        let numbers = Numbers::new(&Config::default());
        Ok(numbers.weights_by(settings)?.map(|weights| *weights.per_signal()))
    }

    #[test]
    fn settings_say_what_some_signals_weigh_and_the_rest_stays() {
        let weights = read("[weights]\nsemantic = 0.48\nthompson = 0.15\n").unwrap().unwrap();
        assert_eq!((weights.semantic, weights.thompson), (0.48, 0.15));
        assert_eq!((weights.freshness, weights.cooccurrence), (0.15, 0.05));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("# Settings"), Ok(None));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_with_the_reason() {
        for (settings, word) in [
            ("[weights]\nsemantics = 0.4\n", "semantics"),
            ("[weights]\nsemantic = 0.9\n", "semantic"),
            ("[weights]\nsemantic = 0.5\n", "sum"),
            ("[thresholds]\n", "thresholds"),
            ("weights = 3", "weights"),
            ("[", ""),
        ] {
            let told = read(settings).unwrap_err();
            assert!(told.contains(word), "{settings}: {told}");
        }
    }
}
