//! Rule `linked-docs`: every directory of documentation is reached from a page at the root.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Finding, finding};

/// Each directory below `docs/` that holds a page must be named, as a path, in a Markdown file at
/// the root or in `docs/`.
pub(super) fn check(root: &Path, paths: &[String]) -> Vec<Finding> {
    let is_page = |path: &str| path.ends_with(".md");
    let is_index = |path: &str| {
        is_page(path)
            && (!path.contains('/') || path.rsplit_once('/').is_some_and(|p| p.0 == "docs"))
    };
    let index: String = paths
        .iter()
        .filter(|path| is_index(path))
        .filter_map(|path| fs::read_to_string(root.join(path)).ok())
        .collect();
    let directories: BTreeSet<&str> = paths
        .iter()
        .filter(|path| path.starts_with("docs/") && is_page(path))
        .filter_map(|path| path.rsplit_once('/').map(|(dir, _)| dir))
        .filter(|dir| *dir != "docs")
        .collect();
    let named = |dir: &str| index.contains(dir);
    directories
        .into_iter()
        .filter(|dir| !named(dir))
        .map(|dir| {
            let message = "no page at the root or in docs/ names this directory".into();
            finding(dir, 0, "linked-docs", message)
        })
        .collect()
}
