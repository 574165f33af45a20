//! The description of the API: what the handlers say of themselves, and what holds for all.
//!
//! Handlers name their bodies and answers once, in JSON; here each gets the other format and the
//! errors it can meet, so that none is forgotten and no handler is swamped by them.

use super::errors::Kind;
use super::exchange::Format;
use super::person;
use super::routes;
use super::types::ErrorBody;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{
    Content, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

/// What comes before the routes.
pub(super) fn preamble() -> OpenApi {
    let description = "The local API of a node, over HTTP on its Unix socket. Requests and answers \
        are JSON or MessagePack with named fields: a request says which by Content-Type, and its \
        answer follows Accept, or else the request. Requests with unknown fields are refused; \
        answers may gain fields. A client may say what it is called in the header klnode-client and in \
        which of its sessions it asks in klnode-session, each 1 to 64 bytes of visible ASCII: what \
        it is served and what it writes is noted with both.";
    let info = InfoBuilder::new()
        .title("klnode")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description));
    OpenApiBuilder::new().info(info.build()).build()
}

/// The whole description, as JSON.
pub fn document() -> String {
    let mut api = routes::described().into_openapi();
    let components = api.components.get_or_insert_default();
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    ErrorBody::schemas(&mut schemas);
    components.schemas.extend(schemas);
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in operations(item) {
            complete(path, &method, operation);
        }
    }
    let mut text = api.to_pretty_json().expect("a description of strings and maps is writable");
    text.push('\n');
    text
}

/// Says of every operation that it needs the person's signature, where there is a person's key.
pub(super) fn need_person(api: &mut OpenApi) {
    let meaning = "Where this node has a person's key: the milliseconds since 1970, a colon, and \
        in hex a signature by that key for operator requests, over method, zero byte, path and \
        query, zero byte, those milliseconds as eight bytes, and the BLAKE3 hash of the body. It \
        is good for a minute, once.";
    let operations = api.paths.paths.values_mut().flat_map(operations);
    for (_, operation) in operations {
        let header = ParameterBuilder::new()
            .name(person::HEADER)
            .parameter_in(ParameterIn::Header)
            .required(Required::False)
            .description(Some(meaning))
            .schema(Some(String::schema()))
            .build();
        operation.parameters.get_or_insert_default().push(RefOr::T(header));
    }
}

/// The operations of a path, each with its method.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    let all = [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Delete, &mut item.delete),
        (HttpMethod::Patch, &mut item.patch),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Paths of requests that may name a workspace, a task or a peer in their body or query.
const NAMING: [&str; 10] = [
    "/v1/anchors/check",
    "/v1/briefing",
    "/v1/entries",
    "/v1/entries/person",
    "/v1/export",
    "/v1/search",
    "/v1/survey",
    "/v1/sync",
    "/v1/tasks",
    "/v1/threads/archive",
];

/// Adds what holds for every operation of its sort.
fn complete(path: &str, method: &HttpMethod, operation: &mut Operation) {
    let mut kinds = vec![Kind::Unauthorised, Kind::Refused, Kind::Busy, Kind::Failed];
    if operation.parameters.is_some() {
        kinds.push(Kind::Invalid);
    }
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        kinds.extend([Kind::Invalid, Kind::TooLarge, Kind::Unsupported]);
        if let Some(content) = body.content.get(Format::Json.media_type()).cloned() {
            body.content.insert(Format::MessagePack.media_type().into(), content);
        }
    }
    // Of the ledger an entry is named in the query.
    if path.contains("{entry}") || path == "/v1/served" {
        kinds.extend([Kind::NotFound, Kind::Ambiguous, Kind::Forgotten]);
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(Parameter { parameter_in: ParameterIn::Path, description, .. }) =
                parameter
            {
                let meaning = "Its id, its code, or an unambiguous beginning of the code.";
                *description = Some(meaning.into());
            }
        }
    }
    let names = ["{task}", "{number}", "{name}"].iter().any(|part| path.contains(part));
    if names || NAMING.contains(&path) {
        kinds.push(Kind::NotFound);
    }
    if path.contains("{digest}") || path.contains("{peer}") {
        kinds.extend([Kind::NotFound, Kind::Ambiguous]);
    }
    let done = match method {
        HttpMethod::Get => "What was asked for.",
        _ => "It is done, and durable.",
    };
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(Response { content, description, .. }) = response else { continue };
        if description.is_empty() {
            *description = done.into();
        }
        // What has a name is a type of ours, and travels in both formats; a document does not.
        let json = content.get(Format::Json.media_type()).cloned();
        if let Some(RefOr::T(json @ Content { schema: Some(RefOr::Ref(_)), .. })) = json {
            content.insert(Format::MessagePack.media_type().into(), RefOr::T(json));
        }
    }
    for kind in kinds {
        let status = kind.status().as_str().to_owned();
        operation.responses.responses.entry(status).or_insert_with(|| RefOr::T(error(kind)));
    }
}

fn error(kind: Kind) -> Response {
    let schema = Ref::from_schema_name(ErrorBody::name());
    let content = Content::new(Some(schema));
    ResponseBuilder::new()
        .description(kind.meaning())
        .content(Format::Json.media_type(), content.clone())
        .content(Format::MessagePack.media_type(), content)
        .build()
}
