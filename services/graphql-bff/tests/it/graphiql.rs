//! The page.

use std::collections::BTreeSet;

use axum::body::Body;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{Request, StatusCode};
use serde_json::Value;

use crate::fake::App;

async fn get(app: &App, path: &str) -> (StatusCode, http::HeaderMap, Vec<u8>) {
    app.send(Request::get(path).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn all_that_the_page_names_is_here() {
    let app = App::new();
    let (status, headers, page) = get(&app, "/graphiql").await;
    assert_eq!(status, StatusCode::OK);
    assert!(headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
    let page = String::from_utf8(page).unwrap();
    let (_, _, script) = get(&app, "/graphiql/page.js").await;
    let script = String::from_utf8(script).unwrap();
    assert!(!page.contains("://") && !script.contains("://"), "nothing comes from elsewhere");
    assert!(!page.contains("<script>") && !page.contains(" on"), "the policy allows no inline scripts");

    let named: BTreeSet<&str> = page
        .split(['"', '\''])
        .chain(script.split(['"', '\'']))
        .filter(|s| s.starts_with("/graphiql/"))
        .collect();
    assert!(named.len() >= 8, "{named:?}");
    for path in named {
        let (status, headers, body) = get(&app, path).await;
        assert_eq!(status, StatusCode::OK, "{path}");
        let media_type = headers[CONTENT_TYPE].to_str().unwrap();
        let extension = path.rsplit('.').next().unwrap();
        assert!(
            media_type.contains(match extension {
                "js" => "javascript",
                other => other,
            }),
            "{path}"
        );
        let compressed = headers.get(CONTENT_ENCODING).is_some();
        assert_eq!(compressed, body.starts_with(&[0x1f, 0x8b]), "{path}");
    }
    assert_eq!(get(&app, "/graphiql/nothing.js").await.0, StatusCode::NOT_FOUND);
    assert_eq!(get(&app, "/graphiql/").await.0, StatusCode::PERMANENT_REDIRECT);
}

#[tokio::test]
async fn the_published_operations_are_offered_with_variables_to_try() {
    let app = App::new();
    let (_, _, body) = get(&app, "/graphiql/operations.json").await;
    let offered: Vec<Value> = serde_json::from_slice(&body).unwrap();
    assert_eq!(offered.len(), graphql_bff::OPERATIONS.len());
    let detail = offered.iter().find(|operation| operation["name"] == "BookDetail").unwrap();
    assert!(detail["text"].as_str().unwrap().starts_with("query BookDetail"));
    assert_eq!(detail["variables"], "{\n  \"id\": 1\n}");
}
