//! The OpenAPI document: what the handlers say of themselves, completed with what holds for all of them.

use axum::Router;
use proto::Reason;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{Object, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{Header, OpenApi, Ref, RefOr, Required, Response, ResponseBuilder, Schema};
use utoipa::{OpenApi as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::App;
use crate::errors::{self, PROBLEM_JSON, Problem, ProblemDocument};

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Bookstore",
        version = "1.0.0",
        description = "Books, stock, reservations and orders.\n\n\
            Every error is `application/problem+json` (RFC 9457) with a `reason` for programs. Bodies are strict: unknown \
            fields are refused. Times are UTC in the form of RFC 3339, money is in minor units. Reads carry a strong \
            `ETag`. Lists tell the next page as `nextPageToken` and as a `Link` header.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "books", description = "Books and their reviews"),
        (name = "authors", description = "Authors"),
        (name = "stock", description = "Units in stock"),
        (name = "reservations", description = "Units held for an order"),
        (name = "orders", description = "Orders"),
        (name = "screens", description = "One request for all that a page shows"),
    ),
)]
struct Document;

/// The problems that several routes share: the name of the response in the document, and its reasons.
const SHARED: [(&str, &[Reason]); 6] = [
    ("Invalid", &[Reason::InvalidField, Reason::MalformedRequest]),
    ("TooLarge", &[Reason::MessageTooLarge]),
    ("NotJson", &[Reason::UnsupportedMediaType]),
    ("Internal", &[Reason::Internal]),
    ("Unavailable", &[Reason::UpstreamUnavailable, Reason::ShuttingDown]),
    ("Late", &[Reason::DeadlineExceeded]),
];

/// The routes, and the document of them.
pub(crate) fn with_document(routes: OpenApiRouter<App>) -> (Router<App>, OpenApi) {
    let (router, made) = routes.split_for_parts();
    let mut document = Document::openapi();
    document.merge(made);
    complete(&mut document);
    (router, document)
}

/// The document as text.
pub(crate) fn to_json(document: &OpenApi) -> String {
    // The document is strings and numbers: writing it can't fail.
    document.to_pretty_json().unwrap_or_default() + "\n"
}

fn complete(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let mut schemas =
        vec![(ProblemDocument::name().into_owned(), <ProblemDocument as utoipa::PartialSchema>::schema())];
    ProblemDocument::schemas(&mut schemas);
    components.schemas.extend(schemas);
    for (name, reasons) in SHARED {
        components.responses.insert(name.to_owned(), problem(reasons).into());
    }
    for parameter in [timeout(), trace()] {
        components.parameters.insert(parameter.name.clone(), parameter.into());
    }
    for item in document.paths.paths.values_mut() {
        let PathItem { get, post, patch, delete, .. } = item;
        if let Some(read) = get.as_mut().filter(|operation| !is_stream(operation)) {
            conditional(read);
        }
        for operation in [get, post, patch, delete].into_iter().flatten() {
            complete_operation(operation);
        }
    }
}

fn complete_operation(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && status.as_str() >= "400"
        {
            // A handler names its reasons; the rest follows from them.
            let reasons: Vec<_> = response.description.split(", ").filter_map(Reason::parse).collect();
            let made = problem(&reasons);
            response.content = made.content;
            response.headers = made.headers;
        }
    }
    let takes_body = operation.request_body.is_some();
    for (name, reasons) in SHARED {
        let about_body = matches!(name, "TooLarge" | "NotJson");
        let Some(&reason) = reasons.first() else { continue };
        if takes_body || !about_body {
            let status = errors::status(reason).as_str().to_owned();
            let shared = RefOr::Ref(Ref::from_response_name(name));
            operation.responses.responses.entry(status).or_insert(shared);
        }
    }
    let parameters = operation.parameters.get_or_insert_default();
    for parameter in parameters.iter_mut() {
        if let RefOr::T(Parameter { schema: Some(RefOr::T(Schema::Object(schema))), .. }) = parameter
            && let SchemaType::Array(types) = &schema.schema_type
            && let Some(given) = types.iter().find(|&kind| *kind != Type::Null)
        {
            // A parameter can be left out, which `required` says, but it can't be null.
            schema.schema_type = SchemaType::new(given.clone());
        }
    }
    for name in ["Request-Timeout", "traceparent"] {
        parameters.push(RefOr::Ref(Ref::new(format!("#/components/parameters/{name}"))));
    }
}

/// What holds for reads that have an `ETag`.
fn conditional(operation: &mut Operation) {
    if let Some(RefOr::T(found)) = operation.responses.responses.get_mut("200") {
        found.headers.insert("ETag".to_owned(), etag().into());
    }
    let same = ResponseBuilder::new().description("What you have is still right").header("ETag", etag());
    operation.responses.responses.insert("304".to_owned(), same.build().into());
    let known = header_parameter("If-None-Match", "The `ETag`s of what you have, or `*`");
    operation.parameters.get_or_insert_default().push(known.build().into());
}

/// What is sent as it comes, and has no tag.
const STREAMS: [&str; 2] = ["text/event-stream", "application/x-ndjson"];

fn is_stream(operation: &Operation) -> bool {
    operation.responses.responses.get("200").is_some_and(|found| match found {
        RefOr::T(found) => STREAMS.iter().any(|media_type| found.content.contains_key(*media_type)),
        RefOr::Ref(_) => false,
    })
}

/// A problem that has one of these reasons.
fn problem(reasons: &[Reason]) -> Response {
    let names: Vec<_> = reasons.iter().map(|reason| reason.as_str()).collect();
    let example = reasons.first().map(|&reason| {
        let example = Problem::new(reason, "what is wrong with this request");
        serde_json::to_value(example.document()).unwrap_or_default()
    });
    let schema = Ref::from_schema_name(ProblemDocument::name());
    let content = ContentBuilder::new().schema(Some(schema)).example(example).build();
    let mut response =
        ResponseBuilder::new().description(names.join(", ")).content(PROBLEM_JSON, content).build();
    if reasons.first().is_some_and(|&reason| errors::worth_retrying(reason)) {
        let seconds = HeaderBuilder::new().schema(Some(Object::with_type(Type::Integer)));
        let retry = seconds.description(Some("Seconds to wait before trying again")).build();
        response.headers.insert("Retry-After".to_owned(), retry.into());
    }
    response
}

fn etag() -> Header {
    HeaderBuilder::new()
        .schema(Some(Object::with_type(Type::String)))
        .description(Some("A strong validator of this representation"))
        .example(Some("\"9f86d081884c7d65\"".into()))
        .build()
}

fn timeout() -> Parameter {
    let mut seconds = Object::with_type(SchemaType::new(Type::Number));
    seconds.format = Some(SchemaFormat::Custom("double".to_owned()));
    // Not just over 0: clients write smaller numbers with an exponent, which the header doesn't have.
    seconds.minimum = Some(0.001.into());
    header_parameter("Request-Timeout", "Seconds this request may take, such as `2.5`; over 60 means 60")
        .schema(Some(seconds))
        .build()
}

fn trace() -> Parameter {
    header_parameter("traceparent", "The W3C trace that this request belongs to").build()
}

fn header_parameter(name: &str, description: &str) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(Object::with_type(Type::String)))
}
