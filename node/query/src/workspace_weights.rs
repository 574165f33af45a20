//! Workspace settings, and the ranking weights in effect for a question: the operator's override
//! for the workspace, otherwise those of the workspace, otherwise those of the configuration.

use super::scoring_params::ScoringParams;
use klnode_crdt::ids::WorkspaceId;
use klnode_scoring::rank::{PerSignal, Weights};
use klnode_store::peers::Membership;
use serde::Deserialize;

/// Where the ranking weights come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsFrom {
    /// The configuration, for all workspaces.
    Configuration,
    /// The settings of the workspace, written by its owner or admins.
    Workspace,
    /// The operator's configuration for this workspace, which always wins.
    Override,
}

impl WeightsFrom {
    /// The source in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Configuration => "the configuration",
            Self::Workspace => "the workspace's settings",
            Self::Override => "your override for this workspace",
        }
    }
}

/// The contents of a workspace's settings.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables of settings")]
struct Settings {
    #[serde(default)]
    weights: PartialWeights,
}

/// Weights of some signals; the others keep the values of the configuration.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of weights")]
struct PartialWeights {
    semantic: Option<f64>,
    thompson: Option<f64>,
    freshness: Option<f64>,
    status: Option<f64>,
    thread: Option<f64>,
    cooccurrence: Option<f64>,
}

impl PartialWeights {
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

impl ScoringParams {
    /// Parses the weights in a settings text; `None` if it sets none. The error names the problem.
    pub fn weights_by(&self, settings: &str) -> Result<Option<Weights>, String> {
        let read: Result<Settings, toml::de::Error> = toml::from_str(settings);
        let Settings { weights } = read.map_err(|error| error.message().to_owned())?;
        if weights.is_empty() {
            return Ok(None);
        }
        let weights = Weights::new(weights.over(self.weights.per_signal()));
        weights.map(Some).map_err(|error| error.to_string())
    }

    /// The ranking weights in a workspace, and their source. Settings that this version cannot
    /// parse are ignored.
    pub fn weights_in(
        &self,
        membership: &Membership,
        workspace: WorkspaceId,
    ) -> (Weights, WeightsFrom) {
        if let Some(weights) = self.workspace_weights.get(&membership.name(workspace)) {
            return (*weights, WeightsFrom::Override);
        }
        let settings = membership.workspaces.get(&workspace).and_then(|one| {
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
        let numbers = ScoringParams::new(&Config::default());
        Ok(numbers.weights_by(settings)?.map(|weights| *weights.per_signal()))
    }

    #[test]
    fn settings_override_single_weights() {
        let weights = read("[weights]\nsemantic = 0.48\nthompson = 0.15\n").unwrap().unwrap();
        assert_eq!((weights.semantic, weights.thompson), (0.48, 0.15));
        assert_eq!((weights.freshness, weights.cooccurrence), (0.15, 0.05));
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("# Settings"), Ok(None));
    }

    #[test]
    fn invalid_settings_are_rejected_with_a_reason() {
        for (settings, word) in [
            ("[weights]\nsemantics = 0.4\n", "semantics"),
            ("[weights]\nsemantic = 0.9\n", "semantic"),
            ("[weights]\nsemantic = 0.5\n", "sum"),
            ("[thresholds]\n", "thresholds"),
            ("weights = 3", "weights"),
            ("[", ""),
        ] {
            let message = read(settings).unwrap_err();
            assert!(message.contains(word), "{settings}: {message}");
        }
    }
}
