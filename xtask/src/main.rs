//! `cargo xtask tidy` checks the repository's own rules, `docs` writes the pages that are made from
//! tables, `examples` makes the outputs again that pages quote, `ci` runs everything.
use std::path::Path;
use std::process::{Command, ExitCode};

use xtask::{docs, examples, tidy, trust};

fn main() -> ExitCode {
    let root = tidy::root();
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy_and_print(&root),
        ["tidy", "--ratchet"] => written(tidy::write_ratchet(&root)),
        ["docs"] => written(docs::write(&root).and_then(|()| trust::write(&root))),
        ["examples"] => requote(&root, &examples::PAGES),
        ["examples", ref pages @ ..] => requote(&root, pages),
        ["ci"] => status(Command::new(root.join(".ci/run")).current_dir(&root)),
        _ => {
            eprintln!("usage: cargo xtask tidy [--ratchet] | docs | examples [PAGE...] | ci");
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

/// Fails if a page quotes what its command does not print any more.
fn requote(root: &Path, pages: &[&str]) -> ExitCode {
    let gone = match examples::write(root, pages) {
        Ok(gone) => gone,
        Err(error) => return written(Err(error)),
    };
    for (page, examples::Gone { command, line }) in &gone {
        eprintln!("{page}: `{command}` does not print\n    {line}");
    }
    match gone.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
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
