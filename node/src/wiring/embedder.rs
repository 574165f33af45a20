//! From the configuration to an embedder's settings, and the one place where its key is read.

use crate::index::embed::endpoint::{self, Key, Protocol};
use crate::index::embed::{EmbedError, Settings};
use klnode_config::Config;
use klnode_config::units::EmbedderKind;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which embedder the configuration chooses, with the key that the environment holds.
pub(super) fn embedder_settings(config: &Config) -> Result<Settings, EmbedError> {
    settings_with(config, |variable| std::env::var_os(variable))
}

fn settings_with(
    config: &Config,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Settings, EmbedError> {
    let protocol = match config.embedder.kind {
        EmbedderKind::BuiltIn => return Ok(Settings::BuiltIn),
        EmbedderKind::Folder => {
            let folder = config.embedder.folder.get().map_or_else(PathBuf::new, PathBuf::from);
            return Ok(Settings::Folder(folder));
        }
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
    use crate::index::embed;
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
    fn a_folder_is_handed_on() {
        let config = config("embedder = { kind = \"folder\", folder = \"/models/minilm\" }");
        let settings = embedder_settings(&config).unwrap();
        assert!(matches!(&settings, Settings::Folder(path) if path == "/models/minilm"));
    }

    #[test]
    fn the_key_comes_from_the_variable_that_the_configuration_names() {
        let asked = |name: &str| (name == "SERVER_KEY").then(|| OsString::from("hush"));
        let settings = settings_with(&config(SERVER), asked).unwrap();
        assert!(!format!("{settings:?}").contains("hush"));
        let Settings::Endpoint(server) = &settings else { panic!("{settings:?}") };
        assert!(server.key.is_some());
        assert_eq!((server.protocol, server.batch_texts_max), (Protocol::OpenAi, 32));
        assert_eq!(embed::open(settings).unwrap().identity(), "openai:host:8443/small");
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        for value in [None, Some(""), Some(" \n")] {
            let failure = settings_with(&config(SERVER), |_| value.map(OsString::from));
            let text = failure.unwrap_err().to_string();
            let expected =
                "read the embedder's key: the variable SERVER_KEY is not set, or not as text";
            assert_eq!(text, expected);
        }
    }
}
