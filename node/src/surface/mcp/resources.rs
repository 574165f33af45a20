//! What a client can read without calling a tool: the node's status, a briefing, an entry.

use super::answer::Answer;
use super::arguments::{Briefing, Call};
use super::session::Session;
use super::trouble::Trouble;
use crate::api::escape;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

const STATUS: &str = "klnode://status";
const BRIEFING: &str = "klnode://briefing/";
const ENTRY: &str = "klnode://entry/";

/// What a resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Status,
    Briefing(String),
    Entry(String),
}

/// What can be listed: the status, and a briefing of each workspace that is known.
pub(super) fn resources(workspaces: &[String]) -> Vec<Resource> {
    let status = Resource::new(STATUS, "status")
        .with_description("How the node is: entries, peers, index")
        .with_mime_type("application/json");
    let briefing = |name: &String| {
        Resource::new(format!("{BRIEFING}{}", escape(name)), format!("briefing: {name}"))
            .with_description("What this workspace knows that matters now")
            .with_mime_type("text/plain")
    };
    std::iter::once(status).chain(workspaces.iter().map(briefing)).collect()
}

/// How to name what is not listed.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{BRIEFING}{{workspace}}"), "briefing")
            .with_description("What a workspace knows that matters now")
            .with_mime_type("text/plain"),
        ResourceTemplate::new(format!("{ENTRY}{{code}}"), "entry")
            .with_description("One entry, by its citation code or id")
            .with_mime_type("text/plain"),
    ]
}

/// The workspaces that the node knows, by name.
pub(super) async fn workspaces(session: &Session, client: &str) -> Result<Vec<String>, Trouble> {
    let listed = session.read(client, "/v1/workspaces").await?;
    let listed = listed["workspaces"].as_array().into_iter().flatten();
    Ok(listed.filter_map(|one| Some(one["name"].as_str()?.to_owned())).collect())
}

/// Reads a resource; nothing if there is none of that name.
pub(super) async fn read(
    session: &Session,
    client: &str,
    uri: &str,
) -> Result<Option<ResourceContents>, Trouble> {
    let Some(kind) = Kind::parse(uri) else { return Ok(None) };
    let plain = |answer: Answer| ResourceContents::text(answer.text, uri);
    Ok(Some(match kind {
        Kind::Status => {
            let status = session.read(client, "/v1/status").await?;
            let text = serde_json::to_string_pretty(&status).unwrap_or_default();
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        Kind::Briefing(workspace) => {
            let briefing = Briefing { workspace: Some(workspace), budget: None };
            plain(session.call(client, Call::Briefing(briefing)).await?)
        }
        Kind::Entry(code) => plain(session.entry(client, &code).await?),
    }))
}

impl Kind {
    fn parse(uri: &str) -> Option<Self> {
        if uri == STATUS {
            return Some(Self::Status);
        }
        let named = |rest: &str| unescape(rest).filter(|name| !name.is_empty());
        let briefing = uri.strip_prefix(BRIEFING).and_then(named).map(Self::Briefing);
        briefing.or_else(|| uri.strip_prefix(ENTRY).and_then(named).map(Self::Entry))
    }
}

/// Undoes what is done to a name so that it fits into an address.
fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                bytes.push(u8::from_str_radix(digits, 16).ok()?);
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_address_leads_back_to_its_name() {
        let listed = resources(&["main".to_owned(), "a team/ü".to_owned()]);
        let kinds: Vec<Option<Kind>> = listed.iter().map(|one| Kind::parse(&one.uri)).collect();
        let briefing = |name: &str| Some(Kind::Briefing(name.to_owned()));
        assert_eq!(kinds, [Some(Kind::Status), briefing("main"), briefing("a team/ü")]);
        assert_eq!(Kind::parse("klnode://entry/L-7F"), Some(Kind::Entry("L-7F".into())));
    }

    #[test]
    fn what_is_no_address_of_ours_is_nothing() {
        for wrong in [
            "",
            "klnode://",
            "klnode://entry/",
            "klnode://status/x",
            "file:///etc/passwd",
            "klnode://entry/%",
            "klnode://entry/%4",
            "klnode://entry/%zz",
            "klnode://entry/%FF",
        ] {
            assert_eq!(Kind::parse(wrong), None, "{wrong}");
        }
    }
}
