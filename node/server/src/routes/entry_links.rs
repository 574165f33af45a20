//! `GET /v1/entries/{entry}/links`: the graph of typed links around an entry, and the links that an
//! edit states.

use super::{check_not_forgotten, resolve, resolve_shown};
use crate::blocking_pool::run_blocking;
use crate::convert::entries::{entry_identity, identity_and_title};
use crate::errors::ApiError;
use crate::extractors_and_replies::{ApiReply, ApiResult, Path, QueryParams};
use crate::service::Service;
use axum::extract::State;
use klnode_api_types::{EntryLinks, ErrorKind, LinkedEntry, LinksQuery, TypedLink};
use klnode_crdt::claims::{Link, Relation};
use klnode_crdt::ids::EntryId;
use klnode_crdt::record_builder::ClaimEdit;
use klnode_query::GRAPH_DEPTH_MAX;
use klnode_store::Snapshot;

/// Lists the links around an entry, in both directions.
#[utoipa::path(get, path = "/v1/entries/{entry}/links", params(LinksQuery),
    responses((status = 200, body = EntryLinks)))]
pub(super) async fn links(
    State(service): State<Service>,
    Path(name): Path<String>,
    QueryParams(LinksQuery { depth, relation }): QueryParams<LinksQuery>,
) -> ApiResult<EntryLinks> {
    let depth = depth.unwrap_or(1);
    if !(1..=GRAPH_DEPTH_MAX).contains(&depth) {
        let message = format!("The depth is {depth}; it must be 1 to {GRAPH_DEPTH_MAX}.");
        return Err(ApiError::new(ErrorKind::Invalid, message, None));
    }
    let relation = relation.map(|name| relation_named(&name)).transpose()?;
    run_blocking(move |_| {
        let snapshot = service.snapshot()?;
        let entry = resolve_shown(&snapshot, &name)?;
        check_not_forgotten(&snapshot, entry, |code| format!("Entry {code} was forgotten."))?;
        let reading = service.reader.at(&snapshot, (service.now)())?;
        let graph = reading.link_graph(entry, depth, relation)?;
        let linked = |(entry, steps): (&EntryId, &usize)| {
            let (identity, title) = identity_and_title(&reading, *entry);
            LinkedEntry { id: identity.id, code: identity.code, title, steps: *steps }
        };
        let mut entries: Vec<LinkedEntry> = graph.entries.iter().map(linked).collect();
        entries.sort_by(|one, other| (one.steps, &one.id).cmp(&(other.steps, &other.id)));
        let links = graph.links.iter().map(|link| TypedLink {
            from: link.from.to_string(),
            relation: link.relation.name().unwrap_or_default().to_owned(),
            to: link.to.to_string(),
        });
        Ok(EntryLinks {
            entry: entry_identity(Some(&reading), entry),
            entries,
            links: links.collect(),
            cut: graph.is_cut,
        })
    })
    .await
    .map(ApiReply)
}

fn relation_named(name: &str) -> Result<Relation, ApiError> {
    Relation::parse(name).ok_or_else(|| {
        let known = Relation::KNOWN.map(|(_, name)| name).join(", ");
        let message = format!("The relation `{name}` does not exist; it must be one of {known}.");
        ApiError::new(ErrorKind::Invalid, message, None)
    })
}

/// The claims of links that an edit adds or withdraws, each as RELATION:ENTRY.
pub(super) fn link_claims(
    snapshot: &Snapshot,
    entry: EntryId,
    added: &[String],
    removed: &[String],
) -> Result<Vec<ClaimEdit>, ApiError> {
    let link = |text: &String| -> Result<Link, ApiError> {
        let invalid = |message: String| ApiError::new(ErrorKind::Invalid, message, None);
        let (name, to) = text.split_once(':').ok_or_else(|| {
            invalid(format!("The link `{text}` must be RELATION:ENTRY, such as uses:N-7F3K."))
        })?;
        let relation = relation_named(name)?;
        if !Relation::DESCRIPTIVE.contains(&relation) {
            let known = Relation::DESCRIPTIVE.iter().filter_map(|of| of.name());
            let known = known.collect::<Vec<_>>().join(", ");
            let message = format!("An edit cannot state `{name}`; it must be one of {known}.");
            return Err(invalid(message));
        }
        let to = resolve(snapshot, to)?;
        if to == entry {
            return Err(invalid(format!("The link `{text}` leads to the entry itself.")));
        }
        Ok(Link { relation, to })
    };
    let mut claims = Vec::new();
    for text in added {
        claims.push(ClaimEdit::Link(link(text)?));
    }
    for text in removed {
        claims.push(ClaimEdit::Unlink(link(text)?));
    }
    Ok(claims)
}
