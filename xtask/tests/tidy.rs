//! The repository keeps its own rules.

use xtask::tidy;

#[test]
fn the_repository_is_tidy() {
    let findings = tidy::check(&tidy::root());
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

/// A walk that misses files would find nothing wrong, too.
#[test]
fn the_walk_reaches_the_repository() {
    let files = tidy::files(&tidy::root());
    for path in [
        "xtask/tests/tidy.rs",
        "crates/fairground/src/lib.rs",
        "machines/README.md",
    ] {
        assert!(files.iter().any(|file| file == path), "{path}");
    }
    assert!(
        files
            .iter()
            .all(|file| !file.starts_with("target/") && !file.starts_with(".git/"))
    );
}
