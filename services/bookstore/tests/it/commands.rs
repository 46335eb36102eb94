//! What the binary says: where it listens, what it can't do, how it is used.

use crate::harness::{Process, Shape, Suite, run, up};
use crate::http::{self, Version};

#[tokio::test]
async fn up_says_where_it_is_and_calls_to_paste() {
    let (process, http, grpc) = up(&[]).await;
    let said = process.said();
    for url in [
        format!("http://{http}/api/v1/books"),
        format!("http://{http}/graphql"),
        format!("http://{http}/docs"),
    ] {
        assert!(said.contains(&url), "{said}");
    }
    let command = |start: &str| {
        let line = said
            .lines()
            .position(|line| line.trim_start().starts_with(start))
            .unwrap_or_else(|| panic!("{said}"));
        said.lines().skip(line).take(2).map(str::trim).collect::<Vec<_>>().join(" ")
    };
    assert!(command("grpcurl").contains(&grpc.to_string()), "{said}");

    let rest = format!("curl http://{http}");
    let path = command(&format!("{rest}/api")).split_whitespace().nth(1).unwrap().to_owned();
    let reply = http::get(http, path.strip_prefix(&format!("http://{http}")).unwrap()).await;
    assert_eq!((reply.status, &reply.json()["id"]), (200, &1.into()));

    let pasted = command(&format!("{rest}/graphql"));
    let query = pasted.split_once("-d '").unwrap().1.trim_end_matches('\'');
    let reply = http::post_json(http, "/graphql", &serde_json::from_str(query).unwrap()).await.json();
    assert!(reply["data"]["book"]["title"].is_string(), "{reply}");
    assert_eq!(reply.get("errors"), None);

    let pasted = command("printf");
    let path = pasted.split_once(&http.to_string()).unwrap().1.split_whitespace().next().unwrap();
    let headers = [("content-type", "application/grpc-web+proto")];
    let body: &[u8] = &[0, 0, 0, 0, 4, 8, 1, 16, 2];
    assert!(pasted.contains(r"'\0\0\0\0\4\10\1\20\2'"), "{pasted}");
    let reply = http::send(Version::Http1, http, http::request("POST", path, &headers, body)).await;
    assert_eq!(http::frames(&reply.body).len(), 2, "{reply:?}");
}

#[tokio::test]
async fn each_process_says_what_it_is_and_where() {
    let suite = Suite::shared(Shape::Apart).await;
    let said: String = suite.processes.iter().map(Process::said).collect();
    for line in [
        format!("graphql-bff: GraphQL on http://{}/graphql", suite.graphql),
        format!("rest-facade: REST on http://{}/api/v1/books", suite.rest),
        format!("grpcurl -plaintext {} describe", suite.grpc("bookstore.catalog.v1.")),
    ] {
        assert!(said.contains(&line), "{line}: {said}");
    }
}

#[tokio::test]
async fn a_port_in_use_is_told_in_one_line() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let port = at.port().to_string();
    for (flag, args) in [
        ("(--port)", &["up", "--grpc-port=0", "--port", &port][..]),
        ("(--grpc-port)", &["up", "--port=0", "--grpc-port", &port]),
        ("(--port)", &["inventory", "--port", &port]),
    ] {
        let finished = run(args).await;
        assert_eq!(finished.code, 1, "{finished:?}");
        let lines: Vec<_> = finished.stderr.lines().collect();
        assert_eq!(lines.len(), 1, "{finished:?}");
        assert!(
            lines[0].contains(&format!("{at} {flag}")) && lines[0].starts_with("bookstore: "),
            "{finished:?}"
        );
        assert_eq!(finished.stdout, "", "{finished:?}");
    }
    // The other suite of the house is as much in the way.
    let suite = Suite::shared(Shape::Up).await;
    let finished = run(&["up", "--grpc-port=0", "--port", &suite.rest.port().to_string()]).await;
    assert_eq!(finished.code, 1, "{finished:?}");
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    for args in [
        &["up", "--no-such-flag"][..],
        &["no-such-command"],
        &["up", "--books=0"],
        &["up", "--port=65536"],
        &["up", "--grace-s=0"],
        &["inventory", "--reservation-ttl=-1"],
        &["--log=[", "up"],
    ] {
        let finished = run(args).await;
        assert_eq!((finished.code, finished.stdout.as_str()), (2, ""), "{args:?}: {finished:?}");
        assert!(!finished.stderr.is_empty() && !finished.stderr.contains("panicked"), "{finished:?}");
    }
    let finished = run(&["ordering", "--port=0", "--catalog-url=nonsense"]).await;
    assert_eq!(finished.code, 1, "{finished:?}");
    assert!(finished.stderr.contains("nonsense"), "{finished:?}");
}

#[tokio::test]
async fn without_a_command_it_helps_by_example() {
    let finished = run(&[]).await;
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""));
    assert!(finished.stdout.starts_with("Examples:\n  bookstore up "), "{}", finished.stdout);
    for command in [
        "up",
        "catalog",
        "inventory",
        "ordering",
        "graphql-bff",
        "rest-facade",
        "health",
        "openapi",
        "schema",
    ] {
        let listed =
            finished.stdout.lines().any(|line| line.trim_start().starts_with(&format!("{command} ")));
        assert!(listed, "{command}: {}", finished.stdout);
        assert_eq!(run(&[command, "--help"]).await.code, 0);
    }
}

#[tokio::test]
async fn every_setting_is_also_a_variable() {
    for command in ["up", "catalog", "inventory", "ordering", "graphql-bff", "rest-facade"] {
        let help = run(&[command, "--help"]).await.stdout;
        let (_, options) = help.split_once("Options:").unwrap();
        let mut flags = 0;
        for option in options.split("\n      --").skip(1) {
            let name = option.split([' ', '\n']).next().unwrap();
            let variable = format!("[env: BOOKSTORE_{}=", name.to_uppercase().replace('-', "_"));
            assert!(option.contains(&variable), "{command} --{option}");
            flags += 1;
        }
        assert!(flags >= 8, "{help}");
    }
}

#[tokio::test]
async fn health_tells_by_its_exit_code() {
    let suite = Suite::shared(Shape::Up).await;
    let http = suite.rest;
    let grpc = suite.grpc("bookstore.catalog.v1.");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, code) in [
        (format!("http://{http}/readyz"), 0),
        (format!("http://{grpc}/readyz"), 0),
        (format!("grpc://{grpc}"), 0),
        (format!("grpc://{grpc}/bookstore.catalog.v1.CatalogService"), 0),
        (format!("grpc://{grpc}/no.such.Service"), 1),
        (format!("http://{http}/api/v1/nothing"), 1),
        (format!("http://{nobody}/readyz"), 1),
        (format!("grpc://{nobody}"), 1),
        (format!("ftp://{http}"), 1),
        ("nonsense".to_owned(), 1),
    ] {
        let finished = run(&["health", &url]).await;
        assert_eq!(finished.code, code, "{url}: {finished:?}");
        assert_eq!(finished.stderr.lines().count(), usize::from(code != 0), "{finished:?}");
    }
}

#[tokio::test]
async fn the_contracts_that_it_prints_are_those_in_the_tree() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for (command, file) in
        [("openapi", "services/rest-facade/openapi.json"), ("schema", "graphql/schema.graphql")]
    {
        let finished = run(&[command]).await;
        assert_eq!(finished.code, 0);
        assert_eq!(finished.stdout, std::fs::read_to_string(format!("{root}/{file}")).unwrap(), "{file}");
    }
    let suite = Suite::shared(Shape::Up).await;
    assert_eq!(http::get(suite.rest, "/openapi.json").await.text(), run(&["openapi"]).await.stdout);
}
