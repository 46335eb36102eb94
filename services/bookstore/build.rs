//! Stamps the commit into the program, so that a report names the one it was built from and not the checkout that it
//! happens to run in.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=BOOKSTORE_COMMIT");
    let commit = std::env::var("BOOKSTORE_COMMIT").ok().filter(|commit| !commit.is_empty());
    println!(
        "cargo::rustc-env=BOOKSTORE_COMMIT={}",
        commit.or_else(commit_of_checkout).unwrap_or("unknown".to_owned())
    );
}

/// `None` outside of a checkout, as in a container's build, and in another project's.
fn commit_of_checkout() -> Option<String> {
    let root = git(&["rev-parse", "--show-toplevel"])?;
    let root = Path::new(&root);
    if !root.join("services/bookstore/build.rs").exists() {
        return None;
    }
    // What the stamp depends on: where HEAD is, and whether anything that is built differs from it. Only what is built
    // counts: a change elsewhere doesn't make another program.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for file in ["HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        if let Some(path) = git(&["rev-parse", "--git-path", file]) {
            watch(Path::new(&path));
        }
    }
    let built = ["Cargo.toml", "Cargo.lock", "bench", "graphql", "proto", "services"];
    for path in built {
        watch(&root.join(path));
    }
    let commit = git(&["rev-parse", "HEAD"])?;
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    let paths: Vec<String> = built.iter().map(|path| root.join(path).display().to_string()).collect();
    status.extend(paths.iter().map(String::as_str));
    let is_clean = git(&status).is_some_and(|changes| changes.is_empty());
    Some(if is_clean { commit } else { format!("{commit}-dirty") })
}

/// Runs again when this changes. One that isn't there would make it run every time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
