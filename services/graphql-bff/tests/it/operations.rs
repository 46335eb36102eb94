//! The published operations.

use std::collections::BTreeSet;
use std::path::Path;

use graphql_bff::OPERATIONS;
use http::StatusCode;
use serde_json::{Value, json};

use crate::fake::App;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphql")
}

fn examples() -> Value {
    serde_json::from_str(&std::fs::read_to_string(folder().join("examples.json")).unwrap()).unwrap()
}

#[test]
fn the_list_is_the_folder() {
    let listed: BTreeSet<String> = OPERATIONS.iter().map(|operation| operation.name.to_owned()).collect();
    let files = std::fs::read_dir(folder().join("operations")).unwrap();
    let files: BTreeSet<String> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".graphql").unwrap_or_else(|| panic!("{name}")).to_owned())
        .collect();
    assert_eq!(listed, files);
    let with_examples: BTreeSet<String> = examples().as_object().unwrap().keys().cloned().collect();
    assert_eq!(listed, with_examples);
}

#[tokio::test]
async fn each_fits_the_schema_and_its_example_and_runs() {
    let app = App::new();
    for operation in OPERATIONS {
        assert!(
            operation.text.contains(&format!(" {}", operation.name)),
            "{} has its file's name",
            operation.name
        );
        let request = json!({ "query": operation.text, "variables": examples()[operation.name] });
        let (status, reply) = app.post(&request).await;
        if operation.text.starts_with("subscription") {
            let message = reply["errors"][0]["message"].as_str().unwrap();
            assert!(message.contains("needs a WebSocket"), "{}: {reply}", operation.name);
        } else {
            assert_eq!(status, StatusCode::OK, "{}: {reply}", operation.name);
            assert_eq!(reply.get("errors"), None, "{}: {reply}", operation.name);
        }
    }
}
