//! Location of an external embedder: a server with a model and an API key variable.
//!
//! Each of these values may be empty, which means that it is not set. An API key must not be in a
//! file, so the configuration has only the name of an environment variable. These types check only
//! the syntax: they never read the environment or the network.

use std::net::IpAddr;

use serde::Deserialize;
use toml::Value;

use super::InvalidValue;

/// The base URL of a server, such as `https://api.openai.com/v1`, or empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct ServerUrl(String);

impl ServerUrl {
    const BYTES_MAX: usize = 2048;

    /// The URL; `None` if it is empty.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }

    /// True if requests can be read on the network: plain HTTP to another machine.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let Some(authority) =
            self.0.strip_prefix("http://").and_then(|rest| rest.split('/').next())
        else {
            return false;
        };
        let host = host_of(authority);
        let is_loopback = |address: IpAddr| address.is_loopback();
        host != "localhost" && !host.parse().is_ok_and(is_loopback)
    }

    fn is_well_formed(text: &str) -> bool {
        let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let Some(authority) = rest.and_then(|rest| rest.split('/').next()) else {
            return false;
        };
        let port = match authority.rsplit_once(':') {
            Some((_, port)) if !port.contains(']') => port.parse::<u16>().is_ok(),
            _ => true,
        };
        // User names, queries and fragments are refused, because they could contain a secret.
        let plain =
            |character: char| character.is_ascii_graphic() && !"@?#\"<>\\^`{|}".contains(character);
        text.len() <= Self::BYTES_MAX
            && !host_of(authority).is_empty()
            && port
            && text.chars().all(plain)
    }
}

/// The host without its port, and an IPv6 address without its brackets.
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

impl TryFrom<Value> for ServerUrl {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        match value.as_str() {
            Some(text) if text.is_empty() || Self::is_well_formed(text) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(InvalidValue::new(
                "an address such as \"http://127.0.0.1:11434\" without user, password or query, \
                 or empty",
            )),
        }
    }
}

/// The name of a model on a server, or empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct ModelName(String);

impl ModelName {
    const BYTES_MAX: usize = 200;

    /// The name; `None` if it is empty.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl TryFrom<Value> for ModelName {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        let fits = |text: &&str| {
            text.len() <= Self::BYTES_MAX
                && text.chars().all(|character| character.is_ascii_graphic())
        };
        match value.as_str().filter(fits) {
            Some(text) => Ok(Self(text.to_owned())),
            None => {
                Err(InvalidValue::new("a model's name without blanks, at most 200 bytes, or empty"))
            }
        }
    }
}

/// The name of an environment variable, or empty.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub struct VariableName(String);

impl VariableName {
    const BYTES_MAX: usize = 64;

    /// The name; `None` if it is empty.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

impl TryFrom<Value> for VariableName {
    type Error = InvalidValue;

    fn try_from(value: Value) -> Result<Self, InvalidValue> {
        // Only capitals, digits and underscores: this rejects most API keys that are pasted by
        // mistake.
        let is_part = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        let fits = |text: &&str| {
            text.len() <= Self::BYTES_MAX
                && text.bytes().all(is_part)
                && !text.starts_with(|first: char| first.is_ascii_digit())
        };
        match value.as_str().filter(fits) {
            Some(text) => Ok(Self(text.to_owned())),
            None => Err(InvalidValue::new(
                "the name of an environment variable such as \"OPENAI_API_KEY\", or empty; \
                 not the key itself",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::String(text.into())
    }

    #[test]
    fn a_server_is_named_by_scheme_and_host_and_nothing_secret() {
        for right in [
            "https://api.openai.com/v1",
            "http://localhost:11434",
            "http://127.0.0.1:11434/",
            "http://[::1]:8080/v1",
            "https://host",
        ] {
            assert_eq!(ServerUrl::try_from(text(right)).unwrap().get(), Some(right));
        }
        assert_eq!(ServerUrl::try_from(text("")).unwrap().get(), None);
        let long = format!("https://{}", "x".repeat(2041));
        for wrong in [
            "api.openai.com",
            "ftp://host",
            "https://",
            "https:///v1",
            "https://me:pass@host",
            "https://host/v1?key=pass",
            "https://host/#pass",
            "https://host:port",
            "https://host:65536",
            "https://ho st",
            "https://[]:80",
            &long,
        ] {
            assert!(ServerUrl::try_from(text(wrong)).is_err(), "{wrong}");
        }
        assert!(ServerUrl::try_from(text(&long[..2048])).is_ok());
    }

    #[test]
    fn only_plain_http_to_another_machine_is_exposed() {
        for (url, exposed) in [
            ("", false),
            ("https://host/v1", false),
            ("http://localhost:11434", false),
            ("http://127.0.0.2/v1", false),
            ("http://[::1]:80", false),
            ("http://10.0.0.7:11434", true),
            ("http://localhost.example.org", true),
            ("http://127.0.0.1.example.org/", true),
        ] {
            assert_eq!(ServerUrl::try_from(text(url)).unwrap().is_exposed(), exposed, "{url}");
        }
    }

    #[test]
    fn a_model_is_one_word_or_none() {
        let name = ModelName::try_from(text("nomic-embed-text:v1.5")).unwrap();
        assert_eq!(name.get(), Some("nomic-embed-text:v1.5"));
        assert_eq!(ModelName::try_from(text("")).unwrap().get(), None);
        for wrong in ["two words", "ü", "a\nb", &"x".repeat(201)] {
            assert!(ModelName::try_from(text(wrong)).is_err(), "{wrong}");
        }
        assert!(ModelName::try_from(text(&"x".repeat(200))).is_ok());
    }

    #[test]
    fn a_variable_is_a_name_in_capitals_and_never_a_key() {
        let name = VariableName::try_from(text("OPENAI_API_KEY")).unwrap();
        assert_eq!(name.get(), Some("OPENAI_API_KEY"));
        assert_eq!(VariableName::try_from(text("")).unwrap().get(), None);
        for wrong in ["sk-proj-abc", "9LIVES", "$KEY", "KEY NAME", "key", &"X".repeat(65)] {
            assert!(VariableName::try_from(text(wrong)).is_err(), "{wrong}");
        }
        assert!(VariableName::try_from(text(&"X".repeat(64))).is_ok());
    }
}
