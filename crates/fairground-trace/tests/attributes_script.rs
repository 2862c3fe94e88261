//! `tools/record/attributes.sh` on the machine of the test, whose `grep` says that threads have
//! gone meanwhile.
#![cfg(target_os = "linux")]

use std::path::PathBuf;
use std::process::{Command, Output};

use fairground_trace::derive::Attributes;

/// Runs it with this script for `grep`.
fn with_grep(name: &str, grep: &str) -> Output {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).unwrap();
    let stub = dir.join("grep");
    std::fs::write(&stub, format!("#!/bin/sh\n{grep}\n")).unwrap();
    let made = Command::new("chmod").arg("+x").arg(&stub).status().unwrap();
    assert!(made.success());
    let path = std::env::var("PATH").unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/record");
    Command::new("sh")
        .arg(format!("{root}/attributes.sh"))
        .env("PATH", format!("{}:{path}", dir.display()))
        .env("REAL_PATH", path)
        .output()
        .unwrap()
}

#[test]
fn threads_that_go_meanwhile_cost_nothing_else() {
    let output = with_grep("grep_fails", "PATH=$REAL_PATH; grep \"$@\"; exit 2");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8_lossy(&output.stdout);
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("# Of ") && first != "# Of 0", "{text}");
    Attributes::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
}

#[test]
fn names_of_groups_may_have_quotes_backslashes_and_blanks_in_them() {
    let stub = "PATH=$REAL_PATH\n\
                case \"$*\" in\n\
                *cgroup*) printf '%s\\n' '1/task/1/cgroup:0::/ a \"b\" \\x2d/c ' ;;\n\
                *) grep \"$@\" ;;\n\
                esac";
    let output = with_grep("names_of_groups", stub);
    let text = String::from_utf8_lossy(&output.stdout);
    let attributes = Attributes::parse(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    let path = "/ a \"b\" \\x2d/c ";
    let group = attributes.cgroups.iter().find(|g| g.path == path);
    let thread = attributes.threads.iter().find(|t| t.tids == [1]);
    assert!(
        group.is_some() && thread.is_some_and(|t| t.cgroup.as_deref() == Some(path)),
        "{text}"
    );
}

#[test]
fn where_no_thread_can_be_read_it_says_so() {
    let output = with_grep("grep_finds_nothing", "exit 1");
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no thread can be read"), "{error}");
    assert!(output.stdout.is_empty());
}
