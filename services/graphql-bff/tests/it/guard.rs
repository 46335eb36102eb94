//! Small documents that would cost the world.

use http::StatusCode;
use serde_json::{Value, json};

use crate::fake::{App, reason};

async fn refused(query: &str) -> String {
    let app = App::new();
    let (status, reply) = app.query(query).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{reply}");
    assert_eq!(reply.get("data"), None);
    assert_eq!(app.fake.calls(), Vec::<String>::new());
    assert!(reply.to_string().len() < 10_000);
    reason(&reply)
}

const TOO_COMPLEX: &str = "QUERY_TOO_COMPLEX";

#[tokio::test]
async fn brackets_cannot_recurse_the_parser_out_of_its_stack() {
    for (open, close) in [("[", "]"), ("{a:", "}"), ("[{a:[", "]}]")] {
        let query = format!("{{ book(id: {}1{}) {{ id }} }}", open.repeat(2_000), close.repeat(2_000));
        assert_eq!(refused(&query).await, TOO_COMPLEX);
        assert_eq!(refused(&format!("{{ book(id: {}", open.repeat(20_000))).await, TOO_COMPLEX);
    }
    assert_eq!(refused(&"{a".repeat(5_000)).await, TOO_COMPLEX);
    assert_eq!(
        refused(&format!("query($x: {}Int{}) {{ a }}", "[".repeat(9_000), "]".repeat(9_000))).await,
        TOO_COMPLEX
    );
    // The parser takes a block string without an end for an empty string and one that begins at its third quote.
    let hidden = format!(r#"{{ book(id: ["""x" {}1{}]) {{ id }} }}"#, "[".repeat(9_000), "]".repeat(9_000));
    assert_eq!(refused(&hidden).await, "MALFORMED_REQUEST");
}

#[tokio::test]
async fn fragments_cannot_double_until_the_end_of_time() {
    // 2^25 fields in under a kilobyte.
    let mut query = String::from("{ ...F0 } ");
    for n in 0..25 {
        query += &format!("fragment F{n} on Query {{ ...F{0} ...F{0} }} ", n + 1);
    }
    query += "fragment F25 on Query { __typename }";
    assert_eq!(refused(&query).await, TOO_COMPLEX);

    // The same through fields and inline fragments, which are counted once for each way to them.
    let mut query = String::from("{ book(id: 1) { ...F0 } } ");
    for n in 0..25 {
        query +=
            &format!("fragment F{n} on Book {{ ... on Book {{ ...F{0} }} author {{ id }} ...F{0} }} ", n + 1);
    }
    query += "fragment F25 on Book { id }";
    assert_eq!(refused(&query).await, TOO_COMPLEX);
}

#[tokio::test]
async fn fragments_cannot_go_round_in_circles() {
    assert_eq!(
        refused("{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }").await,
        TOO_COMPLEX
    );
    assert_eq!(
        refused("{ book(id: 1) { ...A } } fragment A on Book { id ... on Book { ...A } }").await,
        TOO_COMPLEX
    );
    // Where no operation reaches them the rules of GraphQL find them.
    let unreached = "{ __typename } fragment A on Query { ...B } fragment B on Query { ...A }";
    assert_eq!(refused(unreached).await, "INVALID_QUERY");
}

#[tokio::test]
async fn aliases_and_directives_are_counted() {
    let aliases: String = (0..3_000).map(|n| format!("a{n}:__typename ")).collect();
    assert_eq!(refused(&format!("{{ {aliases} }}")).await, TOO_COMPLEX);
    assert_eq!(refused(&format!("{{ __typename {} }}", "@skip(if:false)".repeat(2_100))).await, TOO_COMPLEX);
    let many: String = (0..20_000).map(|n| format!("a{n}:__typename ")).collect();
    assert_eq!(refused(&format!("{{ {many} }}")).await, TOO_COMPLEX);
}

#[tokio::test]
async fn a_long_text_is_refused() {
    assert_eq!(refused(&format!("{{ __typename }} # {}", "x".repeat(64 << 10))).await, TOO_COMPLEX);
    assert_eq!(refused(&format!("{{ __typename }} {}", "1 ".repeat(12_000))).await, TOO_COMPLEX);
}

#[tokio::test]
async fn lists_in_lists_are_priced() {
    let all = "{ books(first: 1000) { nodes { reviews(last: 100) { id text } } } }";
    assert_eq!(refused(all).await, TOO_COMPLEX);

    let app = App::new();
    let query =
        "query($n: Int, $m: Int = 100) { books(first: $n) { nodes { reviews(last: $m) { id text } } } }";
    for (variables, status) in [
        (json!({ "n": 1000 }), StatusCode::BAD_REQUEST),
        (json!({ "n": 1000, "m": 10 }), StatusCode::OK),
        (json!({ "n": 10 }), StatusCode::OK),
        (json!({}), StatusCode::OK),
    ] {
        let (got, reply) = app.post(&json!({ "query": query, "variables": variables })).await;
        assert_eq!(got, status, "{variables}: {}", reply["errors"]);
    }
    // Parts of orders that cost a call each.
    assert_eq!(refused("{ orders(first: 1000) { nodes { lines { sku } } } }").await, TOO_COMPLEX);
    let orders: String = (0..900).map(|n| format!("o{n}:order(id:{n}){{state}}")).collect();
    assert_eq!(refused(&format!("{{ {orders} }}")).await, TOO_COMPLEX);
}

#[tokio::test]
async fn a_large_variable_cannot_be_used_over_and_over() {
    let app = App::new();
    let lines: Vec<Value> = (0..1_000).map(|_| json!({ "sku": "9790000000018", "quantity": 1 })).collect();
    let variables = json!({ "input": { "orderId": "o", "lines": lines } });
    let query = "mutation($input: ReserveStockInput!) { reserveStock(input: $input) { state } }";
    let (status, reply) = app.post(&json!({ "query": query, "variables": variables })).await;
    assert_eq!(status, StatusCode::OK, "a thousand lines are fine: {reply}");
    assert_eq!(app.fake.calls(), ["ReserveStock 1000"]);

    let again: String = (0..100).map(|n| format!("r{n}: reserveStock(input: $input) {{ state }} ")).collect();
    let query = format!("mutation($input: ReserveStockInput!) {{ {again} }}");
    let (status, reply) = app.post(&json!({ "query": query, "variables": variables })).await;
    assert_eq!((status, reason(&reply).as_str()), (StatusCode::BAD_REQUEST, TOO_COMPLEX));
    assert_eq!(app.fake.calls(), Vec::<String>::new());

    let text = "x".repeat(900_000);
    let query: String = (0..200).map(|n| format!("b{n}: books(after: $t) {{ nodes {{ id }} }} ")).collect();
    let query = format!("query($t: String) {{ {query} }}");
    let (_, reply) = app.post(&json!({ "query": query, "variables": { "t": text } })).await;
    assert_eq!(reason(&reply), TOO_COMPLEX);
}

#[tokio::test]
async fn a_thousand_lines_may_also_stand_in_the_document() {
    let app = App::new();
    let lines: String = (0..1_000).map(|_| "{sku:\"9790000000018\",quantity:1}").collect();
    let data = app
        .data(&format!(
            "mutation {{ reserveStock(input: {{orderId: \"o\", lines: [{lines}]}}) {{ state }} }}"
        ))
        .await;
    assert_eq!(data["reserveStock"]["state"], "HELD");
}

#[tokio::test]
async fn introspection_cannot_go_round_in_circles() {
    let mut inner = "name".to_owned();
    for _ in 0..4 {
        inner = format!("fields {{ type {{ {inner} }} }}");
    }
    assert_eq!(refused(&format!("{{ __schema {{ types {{ {inner} }} }} }}")).await, TOO_COMPLEX);
    let by_fragments = "{ __schema { types { ...A } } }
        fragment A on __Type { fields { type { ...B } } } fragment B on __Type { interfaces { ...C } }
        fragment C on __Type { possibleTypes { ...D } } fragment D on __Type { inputFields { name } }";
    assert_eq!(refused(by_fragments).await, TOO_COMPLEX);
    let wide: String = (0..60)
        .map(|n| format!("f{n}: fields {{ type {{ fields {{ type {{ fields {{ name }} }} }} }} }} "))
        .collect();
    assert_eq!(refused(&format!("{{ __schema {{ types {{ {wide} }} }} }}")).await, TOO_COMPLEX);
}

#[tokio::test]
async fn tools_may_read_the_whole_schema() {
    let app = App::new();
    let data = app.data(INTROSPECTION).await;
    let types = data["__schema"]["types"].as_array().unwrap();
    assert!(types.iter().any(|ty| ty["name"] == "Book"));
    assert_eq!(data["__schema"]["subscriptionType"]["name"], "Subscription");
}

#[tokio::test]
async fn depth_operations_and_variables_are_bounded() {
    let deep = format!("{{ {} __typename {} }}", "... {".repeat(35), "}".repeat(35));
    assert_eq!(refused(&deep).await, TOO_COMPLEX);
    let mut chain = String::from("{ ...F0 } ");
    for n in 0..150 {
        chain += &format!("fragment F{n} on Query {{ ...F{} }} ", n + 1);
    }
    assert_eq!(refused(&(chain + "fragment F150 on Query { __typename }")).await, TOO_COMPLEX);
    let fragments: String =
        (0..201).map(|n| format!("fragment F{n} on Query {{ ...F{} }} ", n + 1)).collect();
    assert_eq!(refused(&format!("{{ __typename }} {fragments}")).await, TOO_COMPLEX);
    let operations: String = (0..11).map(|n| format!("query Q{n} {{ __typename }} ")).collect();
    assert_eq!(refused(&operations).await, TOO_COMPLEX);
    let variables: String = (0..101).map(|n| format!("$v{n}: Int ")).collect();
    assert_eq!(refused(&format!("query({variables}) {{ __typename }}")).await, TOO_COMPLEX);
}

/// What graphql-js 16 sends, with all that GraphiQL asks for.
const INTROSPECTION: &str = "
query IntrospectionQuery {
  __schema {
    queryType { name } mutationType { name } subscriptionType { name }
    types { ...FullType }
    directives { name description locations args(includeDeprecated: true) { ...InputValue } }
  }
}
fragment FullType on __Type {
  kind name description specifiedByURL
  fields(includeDeprecated: true) {
    name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason
  }
  inputFields(includeDeprecated: true) { ...InputValue }
  interfaces { ...TypeRef }
  enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
  possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type {
  kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name
    ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } } } } } } }
}";
