//! The OpenAPI document: the descriptions of the handlers, plus everything common to all of them.
//!
//! Handlers describe their bodies and responses once, in JSON. This module adds the second format
//! and the possible errors to each operation, so that handlers need not repeat them.

use super::body_format::Format;
use super::errors::meaning_of;
use super::person_auth;
use klnode_api_types::ErrorBody;
use klnode_api_types::ErrorKind;
use klnode_http::status_of;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{
    Content, HttpMethod, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};

/// The part of the document before the routes.
pub(super) fn preamble() -> OpenApi {
    let description = "The local API of a node, over HTTP on its Unix socket. Bodies are JSON or \
        MessagePack with named fields. Content-Type names the format of a request; the response \
        has the format in Accept, or else that of the request. Requests with unknown fields are \
        rejected; responses may gain fields. A client can send its name in the header \
        klnode-client and the name of its session in klnode-session, each 1 to 64 bytes of \
        visible ASCII: the node records both with the entries it serves and the records it writes.";
    let info = InfoBuilder::new()
        .title("klnode")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description));
    OpenApiBuilder::new().info(info.build()).build()
}

/// The whole document, as JSON, from the descriptions of the routes.
pub(super) fn document(mut api: OpenApi) -> String {
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

/// Adds the header with the person's signature to every operation.
pub(super) fn need_person(api: &mut OpenApi) {
    let meaning = "Required if this node has a person's key: the milliseconds since 1970, a colon, \
        and a signature by that key for operator requests in hex, over method, zero byte, path \
        and query, zero byte, those milliseconds as eight bytes, and the BLAKE3 hash of the body. \
        It is valid for one minute and for one request.";
    let operations = api.paths.paths.values_mut().flat_map(operations);
    for (_, operation) in operations {
        let header = ParameterBuilder::new()
            .name(person_auth::HEADER)
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

/// Paths whose body or query may name a workspace, a task or a peer.
const NAMING: [&str; 14] = [
    "/api/v1/knowledge",
    "/api/v1/knowledge/search",
    "/v1/anchors/check",
    "/v1/audit",
    "/v1/briefing",
    "/v1/entries",
    "/v1/entries/person",
    "/v1/export",
    "/v1/insights",
    "/v1/outcomes",
    "/v1/search",
    "/v1/sync",
    "/v1/tasks",
    "/v1/threads/archive",
];

/// Adds the second format and the possible errors to an operation.
fn complete(path: &str, method: &HttpMethod, operation: &mut Operation) {
    let mut kinds =
        vec![ErrorKind::Unauthorised, ErrorKind::Refused, ErrorKind::Busy, ErrorKind::Failed];
    if operation.parameters.is_some() {
        kinds.push(ErrorKind::Invalid);
    }
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        kinds.extend([ErrorKind::Invalid, ErrorKind::TooLarge, ErrorKind::Unsupported]);
        if let Some(content) = body.content.get(Format::Json.media_type()).cloned() {
            body.content.insert(Format::MessagePack.media_type().into(), content);
        }
    }
    // The serving log names an entry in the query.
    if path.contains("{entry}") || path == "/v1/served" {
        kinds.extend([ErrorKind::NotFound, ErrorKind::Ambiguous, ErrorKind::Forgotten]);
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(Parameter { parameter_in: ParameterIn::Path, description, .. }) =
                parameter
            {
                let meaning = "The entry's id, its code, or an unambiguous prefix of the code.";
                *description = Some(meaning.into());
            }
        }
    }
    let names =
        ["{task}", "{number}", "{name}", "{insight}"].iter().any(|part| path.contains(part));
    if names || NAMING.contains(&path) {
        kinds.push(ErrorKind::NotFound);
    }
    if path.contains("{digest}") || path.contains("{peer}") {
        kinds.extend([ErrorKind::NotFound, ErrorKind::Ambiguous]);
    }
    let done = match method {
        HttpMethod::Get => "The requested data.",
        _ => "The change is made and durable.",
    };
    for response in operation.responses.responses.values_mut() {
        let RefOr::T(Response { content, description, .. }) = response else { continue };
        if description.is_empty() {
            *description = done.into();
        }
        // A referenced schema is a type of this API and is available in both formats; other JSON
        // content, such as this document, is not.
        let json = content.get(Format::Json.media_type()).cloned();
        if let Some(RefOr::T(json @ Content { schema: Some(RefOr::Ref(_)), .. })) = json {
            content.insert(Format::MessagePack.media_type().into(), RefOr::T(json));
        }
    }
    for kind in kinds {
        let status = status_of(kind).as_str().to_owned();
        operation.responses.responses.entry(status).or_insert_with(|| RefOr::T(error(kind)));
    }
}

fn error(kind: ErrorKind) -> Response {
    let schema = Ref::from_schema_name(ErrorBody::name());
    let content = Content::new(Some(schema));
    ResponseBuilder::new()
        .description(meaning_of(kind))
        .content(Format::Json.media_type(), content.clone())
        .content(Format::MessagePack.media_type(), content)
        .build()
}
