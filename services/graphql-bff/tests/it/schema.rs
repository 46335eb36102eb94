//! The contract as text.

use std::path::Path;

#[test]
fn the_schema_is_the_one_in_the_tree() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphql/schema.graphql");
    let now = graphql_bff::sdl();
    if std::env::var_os("BOOKSTORE_ACCEPT").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some((n, (kept, now))) =
        kept.lines().zip(now.lines()).enumerate().find(|(_, (kept, now))| kept != now)
    {
        println!("first difference, line {}:\n- {kept}\n+ {now}", n + 1);
    }
    assert!(
        kept == now,
        "graphql/schema.graphql is not the schema any more; to accept the new one:\n    \
         BOOKSTORE_ACCEPT=1 cargo test -p graphql-bff the_schema_is_the_one_in_the_tree"
    );
}

#[test]
fn everything_in_the_schema_is_described() {
    let sdl = graphql_bff::sdl();
    let mut described = false;
    let mut in_description = false;
    let mut bare = Vec::new();
    for line in sdl.lines().map(str::trim) {
        if in_description || line.starts_with("\"\"\"") {
            let quotes = line.matches("\"\"\"").count();
            in_description = if quotes == 2 {
                false
            } else if quotes == 1 {
                !in_description
            } else {
                in_description
            };
            described = !in_description;
            continue;
        }
        let own = ["schema", "query:", "mutation:", "subscription:", "}", "):", "directive"];
        if !line.is_empty() && !described && !own.iter().any(|own| line.starts_with(own)) {
            bare.push(line);
        }
        described = false;
    }
    assert_eq!(bare, Vec::<&str>::new());
}
