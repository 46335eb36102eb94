//! The OpenAPI document: a snapshot, and true.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::http;
use http_body_util::BodyExt;
use proto::Reason;
use serde_json::Value;

use crate::fakes::Shop;
use crate::http::{edge, get, open, request};
use crate::problems::STATUSES;
use crate::schema::{DOCUMENT, assert_fits, resolve};

const SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");

#[test]
fn the_document_is_the_snapshot() {
    let made = rest_facade::openapi();
    if std::env::var_os("BOOKSTORE_ACCEPT").is_some() {
        std::fs::write(SNAPSHOT, &made).unwrap();
    }
    let kept = std::fs::read_to_string(SNAPSHOT).unwrap_or_default();
    if let Some((i, (kept, made))) = kept.lines().zip(made.lines()).enumerate().find(|(_, (k, m))| k != m) {
        panic!("openapi.json line {}: {kept:?} became {made:?}; {ACCEPT}", i + 1);
    }
    assert_eq!(kept.len(), made.len(), "openapi.json differs at its end; {ACCEPT}");
}

const ACCEPT: &str = "if that is meant: BOOKSTORE_ACCEPT=1 cargo test -p rest-facade";

#[tokio::test]
async fn the_document_is_served() {
    let reply = get(&edge(Shop::default()), "/openapi.json").await;
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.text(), rest_facade::openapi());
    assert_eq!(reply.json()["openapi"], "3.1.0");
}

#[tokio::test]
async fn the_root_leads_to_the_rest() {
    let edge = edge(Shop::default());
    let root = get(&edge, "/").await;
    assert_eq!(root.header("content-type"), "application/json");
    let root = root.json();
    for (name, place) in root.as_object().unwrap() {
        let there =
            if name == "api" { "/api/v1/books".to_owned() } else { place.as_str().unwrap().to_owned() };
        assert!(there.starts_with(place.as_str().unwrap()));
        assert_eq!(get(&edge, &there).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn the_page_needs_nothing_from_outside() {
    let edge = edge(Shop::default());
    for path in
        ["/docs/", "/docs/swagger-initializer.js", "/docs/swagger-ui-bundle.js", "/docs/swagger-ui.css"]
    {
        let reply = get(&edge, path).await;
        assert_eq!(reply.status, 200, "{path}");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'self';") && !policy.contains("http"), "{policy}");
    }
    let page = get(&edge, "/docs/").await;
    assert!(!page.text().contains("http://") && !page.text().contains("https://"));
    // The policy allows no script within the page.
    assert!(page.text().split("<script").skip(1).all(|script| script.trim_start().starts_with("src=")));
    let setup = get(&edge, "/docs/swagger-initializer.js").await;
    assert!(setup.text().contains("/openapi.json") && !setup.text().contains("petstore"), "{}", setup.text());
    assert!(setup.text().contains(r#""validatorUrl": "none""#), "{}", setup.text());
}

/// The method, the path and the operation of every route.
fn operations() -> impl Iterator<Item = (String, &'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter();
        operations.map(|(method, operation)| (method.to_uppercase(), path.as_str(), operation))
    })
}

/// A request made of the examples of the parameters and of the body.
fn example(method: &str, path: &str, operation: &Value) -> http::Request<Body> {
    let mut path = path.to_owned();
    let mut query = String::from("?");
    let mut headers = Vec::new();
    for parameter in operation["parameters"].as_array().unwrap().iter().map(resolve) {
        let name = parameter["name"].as_str().unwrap();
        let value = match &parameter["example"] {
            Value::Null if parameter["required"] == true => "x1".to_owned(),
            Value::Null => continue,
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match parameter["in"].as_str().unwrap() {
            "path" => path = path.replace(&format!("{{{name}}}"), &value),
            "query" => query += &format!("{name}={value}&"),
            "header" => headers.push((name, value)),
            other => panic!("{other}"),
        }
    }
    let body = match &operation["requestBody"]["content"]["application/json"]["schema"] {
        Value::Null => Body::empty(),
        schema => {
            headers.push(("content-type", "application/json".to_owned()));
            let example = &resolve(schema)["example"];
            assert_fits(schema, example);
            Body::from(example.to_string())
        }
    };
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    request(method, &format!("{path}{query}"), &headers, body)
}

/// Every route is called as its own document describes, and must answer what the document says, to the last field.
#[tokio::test]
async fn every_route_does_what_the_document_says() {
    let whole = edge(Shop { more: true, ..Shop::default() });
    let partial = edge(Shop { no_stock: true, ..Shop::default() });
    for (method, path, operation) in operations() {
        for edge in [&whole, &partial] {
            let reply = open(edge, example(&method, path, operation)).await;
            let status = reply.status().as_u16();
            assert!((200..300).contains(&status), "{method} {path}: {status}");
            let documented = resolve(&operation["responses"][status.to_string()]);
            assert!(documented.is_object(), "{method} {path}: {status} is not in the document");
            for name in documented["headers"].as_object().into_iter().flatten().map(|(name, _)| name) {
                let given = reply.headers().contains_key(name.as_str());
                assert!(given || name == "Link", "{method} {path}: {name} is promised");
            }
            let Some(content) = documented["content"].as_object() else {
                assert_eq!(status, 204, "{method} {path}");
                continue;
            };
            let (media_type, content) = content.iter().next().unwrap();
            assert_eq!(reply.headers()["content-type"], media_type.as_str());
            if media_type == "application/json" {
                let body = reply.into_body().collect().await.unwrap().to_bytes();
                assert_fits(&content["schema"], &serde_json::from_slice(&body).unwrap());
            }
        }
    }
}

#[test]
fn every_schema_s_example_fits_it() {
    for schema in DOCUMENT["components"]["schemas"].as_object().unwrap().values() {
        if !schema["example"].is_null() {
            assert_fits(schema, &schema["example"]);
        }
    }
}

#[test]
fn every_refusal_in_the_document_names_its_reasons() {
    for (method, path, operation) in operations() {
        let responses = operation["responses"].as_object().unwrap();
        let refusals: Vec<_> = responses.iter().filter(|(status, _)| status.as_str() >= "400").collect();
        for (status, response) in &refusals {
            let response = resolve(response);
            let text = response["description"].as_str().unwrap();
            for name in text.split(", ") {
                let reason =
                    Reason::parse(name).unwrap_or_else(|| panic!("{method} {path}: {name} is no reason"));
                assert!(STATUSES.contains(&(reason, status.parse().unwrap())), "{method} {path}: {name}");
            }
            let example = &response["content"]["application/problem+json"]["example"];
            assert_eq!(example["status"].to_string(), **status, "{method} {path}: {text}");
            assert_fits(&crate::schema::named("Problem"), example);
        }
        let given: BTreeSet<_> = refusals.iter().map(|(status, _)| status.as_str()).collect();
        let mut common = vec!["400", "500", "503", "504"];
        if !operation["requestBody"].is_null() {
            common.extend(["413", "415"]);
        }
        assert!(common.iter().all(|status| given.contains(status)), "{method} {path}: {given:?}");
    }
}

#[test]
fn every_operation_is_described() {
    let mut ids = BTreeSet::new();
    for (method, path, operation) in operations() {
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path}");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{method} {path}");
        for parameter in operation["parameters"].as_array().unwrap().iter().map(resolve) {
            assert!(parameter["description"].is_string(), "{method} {path}: {parameter}");
        }
    }
    for (name, schema) in DOCUMENT["components"]["schemas"].as_object().unwrap() {
        for (field, property) in schema["properties"].as_object().into_iter().flatten() {
            let described = property["description"].is_string()
                || property["oneOf"]
                    .as_array()
                    .is_some_and(|any| any.iter().any(|one| one["description"].is_string()));
            assert!(described, "{name}.{field}: {property}");
        }
    }
}
