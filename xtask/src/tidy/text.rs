//! Rules for every text file: `hundred-columns` (Rust only), `machine-path`, `registry-host`.

use super::{Finding, finding};

const COLUMNS_MAX: usize = 100;

/// Directories that exist on one machine only. Written in two pieces, so that this file passes.
const DIRECTORIES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Hosts that serve packages: a checkout must not depend on where somebody got them.
const HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("registry.npm", "js.org"),
    concat!("py", "pi.org"),
    concat!("static.rust-", "lang.org"),
    concat!("proxy.gol", "ang.org"),
    concat!("arti", "factory"),
];

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let columns = line.chars().count();
        if path.ends_with(".rs") && columns > COLUMNS_MAX {
            let message = format!("{columns} columns, at most {COLUMNS_MAX}");
            findings.push(finding(path, number, "hundred-columns", message));
        }
        if let Some(dir) = DIRECTORIES.iter().find(|dir| line.contains(**dir)) {
            let message = format!("`{dir}` is a place on one machine; use a relative path");
            findings.push(finding(path, number, "machine-path", message));
        }
        if let Some(host) = HOSTS.iter().find(|host| line.contains(**host)) {
            let message = format!("`{host}` is the host of a registry; name the package alone");
            findings.push(finding(path, number, "registry-host", message));
        }
    }
    findings
}
