//! `cargo xtask tidy` checks the repository's own rules, `docs` writes the pages that are made from
//! tables, `ci` runs everything.
use std::path::Path;
use std::process::{Command, ExitCode};

use xtask::{docs, tidy, trust};

fn main() -> ExitCode {
    let root = tidy::root();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy_and_print(&root),
        ["tidy", "--ratchet"] => written(tidy::write_ratchet(&root)),
        ["docs"] => written(docs::write(&root).and_then(|()| trust::write(&root))),
        ["ci"] => status(Command::new(root.join(".ci/run")).current_dir(&root)),
        _ => {
            eprintln!("usage: cargo xtask tidy [--ratchet] | docs | ci");
            ExitCode::from(2)
        }
    }
}

fn tidy_and_print(root: &Path) -> ExitCode {
    let findings = tidy::check(root);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy");
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "{} findings; the rules are in CONTRIBUTING.md",
        findings.len()
    );
    ExitCode::FAILURE
}

fn written(result: std::io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn status(command: &mut Command) -> ExitCode {
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
