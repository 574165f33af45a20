//! Converts the configuration to the settings of an embedder, and loads the built-in transformer.
//! Only this module reads the key of a server.

use klnode_config::Config;
use klnode_config::units::EmbedderKind;
use klnode_embed::endpoint::{self, Key, Protocol};
use klnode_embed::{EmbedError, Settings};
use klnode_index::passage_vectors::PassageModel;
use std::ffi::OsString;
#[cfg(feature = "transformer")]
use {klnode_index::passage_vectors::LoadedModel, std::sync::Arc, std::time::Duration};

/// The longest pause of the background work before one text while questions come.
#[cfg(feature = "transformer")]
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The embedder of the configuration, with its key from the environment.
pub(super) fn embedder_settings(config: &Config) -> Result<Settings, EmbedError> {
    settings_with(config, |variable| std::env::var_os(variable))
}

/// Loads the built-in transformer, with one thread each for questions and passages.
#[cfg(feature = "transformer")]
fn load_transformer() -> Result<LoadedModel, EmbedError> {
    use klnode_transformer::Transformer;
    let failed = |error: klnode_transformer::TransformerError| EmbedError::Transformer {
        why: error.to_string(),
    };
    let questions = Transformer::load(1).map_err(failed)?;
    let passages = Arc::new(questions.share(1));
    Ok(LoadedModel { questions: Arc::new(questions), passages })
}

/// The built-in transformer; `None` if this build has none.
#[must_use]
pub fn built_in_transformer() -> Option<PassageModel> {
    #[cfg(feature = "transformer")]
    let model = Some(PassageModel {
        identity: klnode_transformer::IDENTITY,
        dims: klnode_transformer::DIMS,
        pause_share: 1,
        pause_max: PAUSE_MAX,
        load: load_transformer,
    });
    #[cfg(not(feature = "transformer"))]
    let model = None;
    model
}

fn settings_with(
    config: &Config,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Settings, EmbedError> {
    let protocol = match config.embedder.kind {
        EmbedderKind::Transformer | EmbedderKind::Static => return Ok(Settings::BuiltIn),
        EmbedderKind::OpenAi => Protocol::OpenAi,
        EmbedderKind::Ollama => Protocol::Ollama,
    };
    let chosen = &config.embedder;
    let key = chosen.key_variable.get().map(|name| {
        let value = variable(name).and_then(|value| value.into_string().ok());
        let value = value.filter(|value| !value.trim().is_empty());
        value.map(Key::new).ok_or_else(|| EmbedError::NoKey { variable: name.to_owned() })
    });
    Ok(Settings::Endpoint(endpoint::Settings {
        protocol,
        url: chosen.url.get().unwrap_or_default().to_owned(),
        model: chosen.model.get().unwrap_or_default().to_owned(),
        key: key.transpose()?,
        query_timeout: chosen.query_timeout.get(),
        request_timeout: chosen.request_timeout.get(),
        batch_texts_max: chosen.batch_texts_max.as_usize(),
        batch_bytes_max: chosen.batch_bytes_max.as_usize(),
        text_bytes_max: chosen.text_bytes_max.as_usize(),
        retries_max: chosen.retries_max.get(),
        back_off: chosen.back_off.get(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use klnode_config::Layers;

    fn config(text: &str) -> Config {
        Layers::new().file("klnode.toml", text).resolve().unwrap().config().clone()
    }

    const SERVER: &str = "[embedder]\nkind = \"openai\"\nurl = \"https://host:8443/v1\"\n\
         model = \"small\"\nkey_variable = \"SERVER_KEY\"\n";

    #[test]
    fn the_default_is_the_built_in_embedder() {
        let settings = embedder_settings(&Config::default()).unwrap();
        assert!(matches!(settings, Settings::BuiltIn), "{settings:?}");
    }

    #[test]
    fn the_key_comes_from_the_configured_variable() {
        let asked = |name: &str| (name == "SERVER_KEY").then(|| OsString::from("hush"));
        let settings = settings_with(&config(SERVER), asked).unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
        let Settings::Endpoint(server) = &settings else { panic!("{settings:?}") };
        assert!(server.key.is_some());
        assert_eq!((server.protocol, server.batch_texts_max), (Protocol::OpenAi, 32));
        assert_eq!(klnode_embed::open(settings).unwrap().identity(), "openai:host:8443/small");
    }

    #[test]
    fn an_unset_variable_is_named() {
        for value in [None, Some(""), Some(" \n")] {
            let failure = settings_with(&config(SERVER), |_| value.map(OsString::from));
            let text = failure.unwrap_err().to_string();
            assert!(text.contains("the variable SERVER_KEY is not set"), "{text}");
        }
    }
}
