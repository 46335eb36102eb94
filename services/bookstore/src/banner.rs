//! What a process says on standard output when it listens: where, and calls to paste.

use std::io::Write as _;
use std::net::SocketAddr;

fn say(text: &str) {
    // Nobody reads it, as under a supervisor that closed the output: no reason to stop.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn curl_rest(at: SocketAddr) -> String {
    format!("  curl http://{at}/api/v1/books/1\n")
}

fn curl_graphql(at: SocketAddr) -> String {
    format!(
        "  curl http://{at}/graphql -H 'content-type: application/json' \\\n    \
         -d '{{\"query\":\"{{ book(id: 1) {{ title author {{ name }} stock {{ inStock }} }} }}\"}}'\n"
    )
}

fn measured(name: &str, at: SocketAddr) -> String {
    format!("{name}: metrics on http://{at}/metrics\n")
}

pub(crate) fn suite(http: SocketAddr, grpc: SocketAddr, metrics: SocketAddr) {
    say(&format!(
        "\
REST      http://{http}/api/v1/books   docs: http://{http}/docs
GraphQL   http://{http}/graphql   GraphiQL: http://{http}/graphiql
gRPC-Web  http://{http}
gRPC      {grpc}
Metrics   http://{metrics}/metrics

Calls to paste:
{rest}{graphql}  printf '\\0\\0\\0\\0\\4\\10\\1\\20\\2' | curl -s http://{http}/bookstore.catalog.v1.CatalogService/GetBookDetail \\
    -H 'content-type: application/grpc-web+proto' --data-binary @- | tr -cd '[:print:]\\n'
  grpcurl -plaintext -d '{{\"book_id\":1,\"review_count\":2}}' {grpc} bookstore.catalog.v1.CatalogService/GetBookDetail

Ctrl-C stops it.
",
        rest = curl_rest(http),
        graphql = curl_graphql(http),
    ));
}

pub(crate) fn service(name: &str, at: SocketAddr, metrics: SocketAddr) {
    let service =
        format!("{}{}", name.get(..1).unwrap_or_default().to_uppercase(), name.get(1..).unwrap_or_default());
    say(&format!(
        "{name}: gRPC and gRPC-Web on {at}\n  grpcurl -plaintext {at} describe bookstore.{name}.v1.{service}Service\n{}",
        measured(name, metrics)
    ));
}

pub(crate) fn graphql(at: SocketAddr, metrics: SocketAddr) {
    say(&format!(
        "graphql-bff: GraphQL on http://{at}/graphql   GraphiQL: http://{at}/graphiql\n{}{}",
        curl_graphql(at),
        measured("graphql-bff", metrics)
    ));
}

pub(crate) fn rest(at: SocketAddr, metrics: SocketAddr) {
    say(&format!(
        "rest-facade: REST on http://{at}/api/v1/books   docs: http://{at}/docs\n{}{}",
        curl_rest(at),
        measured("rest-facade", metrics)
    ));
}
