//! Rules of the repository that no compiler checks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proto::Reason;
use toml::{Table, Value};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The files that belong to the repository, relative to its root.
fn tracked() -> Vec<String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let names = String::from_utf8(listed.stdout).unwrap();
    // A file that was deleted and not yet committed is still listed.
    names.split('\0').filter(|name| root().join(name).is_file()).map(str::to_owned).collect()
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The manifests of the workspace's members, by the name of the crate.
fn members() -> BTreeMap<String, Table> {
    let files = tracked().into_iter().filter(|file| file.ends_with("/Cargo.toml"));
    let manifests =
        files.map(|file| read(&file).parse::<Table>().unwrap_or_else(|error| panic!("{file}: {error}")));
    manifests.map(|manifest| (manifest["package"]["name"].as_str().unwrap().to_owned(), manifest)).collect()
}

const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

fn dependencies(manifest: &Table) -> impl Iterator<Item = (&String, &Value)> {
    assert!(!manifest.contains_key("target"), "dependencies of one platform are not looked at here");
    DEPENDENCIES.iter().filter_map(|kind| manifest.get(*kind)?.as_table()).flatten()
}

/// Sources that ship, relative to the root.
fn sources() -> Vec<String> {
    let shipped = |file: &String| file.ends_with(".rs") && file.contains("/src/");
    tracked().into_iter().filter(shipped).collect()
}

#[test]
fn no_crate_depends_on_more_of_ours_than_it_may() {
    let members = members();
    assert!(members.len() >= 9, "{:?}", members.keys());
    for (name, manifest) in &members {
        let allowed: &[&str] = match name.as_str() {
            "proto" | "chassis" => &[],
            "bench" => &["proto"],
            // The wiring sees them all.
            "bookstore" => continue,
            _ => &["proto", "chassis"],
        };
        for (dependency, _) in
            dependencies(manifest).filter(|(dependency, _)| members.contains_key(*dependency))
        {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn versions_stand_in_the_root_manifest_only() {
    for (name, manifest) in members() {
        for (dependency, how) in dependencies(&manifest) {
            let from_root = how.get("workspace").and_then(Value::as_bool) == Some(true);
            let alone = ["version", "path", "git", "registry"].iter().all(|key| how.get(key).is_none());
            assert!(from_root && alone, "{name}: {dependency} must be `{dependency}.workspace = true`");
        }
        for field in ["version", "edition", "rust-version", "license", "publish"] {
            assert_eq!(manifest["package"][field].get("workspace"), Some(&true.into()), "{name}: {field}");
        }
    }
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for (name, manifest) in members() {
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(lints, Some(&true.into()), "{name}");
    }
}

#[test]
fn domains_are_pure() {
    let in_domain = |file: &&String| file.ends_with("/domain.rs") || file.contains("/domain/");
    let files = sources();
    let domains: Vec<_> = files.iter().filter(in_domain).collect();
    assert!(domains.len() >= 3, "{domains:?}");
    for file in domains {
        let text = read(file);
        for (word, what) in [
            ("tonic", "the wire"),
            ("tokio", "a runtime"),
            ("::now()", "a clock"),
            ("Mutex", "a lock"),
            ("RwLock", "a lock"),
            ("async ", "waiting"),
            (".await", "waiting"),
        ] {
            assert!(!text.contains(word), "{file} knows of {what}: {word}");
        }
    }
}

#[test]
fn no_source_is_too_long_to_read_at_once() {
    /// Longer files, each with the reason why it is better in one piece.
    const LONG: &[(&str, &str)] = &[];
    for file in sources().into_iter().filter(|file| !file.starts_with("bench/")) {
        let lines = read(&file).lines().count();
        let excused = LONG.iter().any(|(name, _)| *name == file);
        assert!(lines <= 400 || excused, "{file} has {lines} lines: make it a folder, or say why not");
        assert!(lines > 400 || !excused, "{file} is short enough: it needs no excuse");
    }
}

#[test]
fn chassis_refuses_in_the_vocabulary_of_the_contracts() {
    /// Told to a service only, whose caller is no longer there.
    const INSIDE: &str = "Aborted, CANCELLED";
    assert_eq!(chassis::grpc::DOMAIN, proto::DOMAIN);
    let mut seen = 0;
    for file in sources().iter().filter(|file| file.starts_with("services/chassis/")) {
        let text = read(file);
        for after in text.split("Code::").skip(1) {
            // `Code::NotFound, "BOOK_NOT_FOUND"`: a code and the reason that it comes with.
            let Some((code, rest)) = after.split_once(", \"") else { continue };
            let name = rest.split('"').next().unwrap_or_default();
            let shouted = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            if !shouted || !code.chars().all(char::is_alphanumeric) {
                continue;
            }
            if format!("{code}, {name}") == INSIDE {
                continue;
            }
            let reason = Reason::parse(name).unwrap_or_else(|| panic!("{file}: {name} is no reason"));
            assert_eq!(format!("{:?}", reason.code()), code, "{file}: {name}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "{seen}");
}

#[test]
fn contracts_name_no_reason_that_is_not_there() {
    let codes = [
        "ABORTED ALREADY_EXISTS CANCELLED DEADLINE_EXCEEDED FAILED_PRECONDITION INVALID_ARGUMENT NOT_FOUND",
        "RESOURCE_EXHAUSTED UNAVAILABLE",
    ];
    let codes: Vec<_> = codes.iter().flat_map(|line| line.split(' ')).collect();
    for file in tracked().iter().filter(|file| file.ends_with(".proto")) {
        let text = read(file);
        let (comments, code): (Vec<_>, Vec<_>) =
            text.lines().map(str::trim).partition(|line| line.starts_with("//"));
        for comment in comments {
            for word in comment.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
                let shouted = word.trim_matches('_').contains('_')
                    && word.chars().all(|c| c.is_ascii_uppercase() || c == '_');
                let known = codes.contains(&word)
                    || Reason::parse(word).is_some()
                    || code.iter().any(|line| line.starts_with(&format!("{word} = ")));
                assert!(!shouted || known, "{file}: {word} in {comment:?}");
            }
        }
    }
}

#[test]
fn no_file_names_a_place_on_somebodys_machine() {
    // In two parts, or this file would name them.
    let places =
        [["/wo", "rk/"], ["/ho", "me/"], ["/Us", "ers/"], ["/ro", "ot/"]].map(|parts| parts.concat());
    for file in tracked() {
        // Assets of others, compressed, are no text.
        let Ok(text) = fs::read_to_string(root().join(&file)) else { continue };
        for (n, line) in text.lines().enumerate() {
            for place in &places {
                assert!(!line.contains(place.as_str()), "{file}:{}: {place}", n + 1);
            }
        }
    }
}
