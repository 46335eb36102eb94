//! The OpenAPI document and Swagger UI, whose assets are in the binary.

use axum::Router;
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use proto::Reason;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::errors::Problem;

/// Swagger UI loads nothing from outside; it does set styles inline and draws its icons from `data:` URLs.
const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 2] = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];

pub(crate) const ROUTES: [&str; 4] = ["/openapi.json", "/docs", "/docs/", "/docs/{*rest}"];

/// Where a reader who knows the address only finds the rest.
const START: &str = "{\"api\":\"/api/v1\",\"document\":\"/openapi.json\",\"docs\":\"/docs/\"}";

/// `/`, `/openapi.json` and `/docs`.
pub(crate) fn router(document: String) -> Router {
    let document = Bytes::from(document);
    // Without "none" the page asks an outside service whether the document is valid.
    let config = Config::new(["/openapi.json"]).validator_url("none").try_it_out_enabled(true);
    let page = Router::from(SwaggerUi::new("/docs").config(config)).layer(map_response(guard));
    Router::new()
        .route("/", get((HEADERS, START)))
        .route("/openapi.json", get(move || std::future::ready((HEADERS, document.clone()))))
        .merge(page)
}

/// Adds the policy, and puts a problem in the place of the page's own errors.
async fn guard(response: Response) -> Response {
    let status = response.status();
    if status.is_client_error() {
        return Problem::new(Reason::RouteNotFound, "the documentation has no such file").into_response();
    }
    if status.is_server_error() {
        return Problem::internal("swagger ui failed").into_response();
    }
    let mut response = response;
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}
