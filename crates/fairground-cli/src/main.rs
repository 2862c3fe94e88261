//! The command line of Fairground: the only part that parses arguments, prints and exits.
//!
//! ```text
//!   args ─► plan (machine, workload, decisions) ─► simulate ─► glue ─► run | compare ─► output
//! ```
#![forbid(unsafe_code)]

mod apart;
mod args;
mod asked;
mod calibrate;
mod compare;
mod configs;
mod decided;
mod explain;
mod failure;
mod glue;
mod group_files;
mod group_settings;
mod how;
mod huge_pages;
mod inputs;
mod limit_events;
mod list;
mod machine_id;
mod output;
mod pair;
mod plan;
mod profile_names;
mod progress;
mod replay;
mod report;
mod report_periods;
mod reproduce;
mod run;
mod saved;
mod settle;
mod signs;
mod simulate;
mod sweep;
mod traced;
mod truth;
mod usual;
mod watched;
mod what;
mod whole_file;
mod wrap;

use std::io::Write;
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::{Cli, Command};
use failure::Failure;
use how::Color;

/// A difference that `--fail-on` asked for.
const DIFFERS: u8 = 1;
/// No result.
const FAILED: u8 = 2;

fn main() -> ExitCode {
    let command_line: Vec<String> = std::env::args_os()
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &command_line),
    };
    if cli.command.simulates() {
        huge_pages::ask();
    }
    let color = match &cli.command {
        Command::Run(args) => args.how.color,
        Command::Compare(args) => args.how.color,
        Command::Sweep(args) => args.how.color,
        _ => Color::Auto,
    };
    match dispatch(&cli.command, &command_line) {
        Ok(reasons) if reasons.is_empty() => ExitCode::SUCCESS,
        Ok(reasons) => {
            for reason in reasons {
                stderr(&format!("fail-on: {reason}\n"));
            }
            ExitCode::from(DIFFERS)
        }
        Err(Failure::Help(text)) => match output::stdout(&text) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(FAILED),
        },
        Err(failure) => {
            stderr(&failure.text(output::colour(color, &std::io::stderr())));
            ExitCode::from(FAILED)
        }
    }
}

fn dispatch(command: &Command, command_line: &[String]) -> Result<Vec<String>, Failure> {
    match command {
        Command::Run(args) => run::run(args, command_line).map(|()| Vec::new()),
        Command::Compare(args) => compare::compare(args, command_line),
        Command::Sweep(args) => sweep::sweep(args, command_line).map(|()| Vec::new()),
        Command::List(args) => list::list(args).map(|()| Vec::new()),
        Command::Reproduce(args) => reproduce::reproduce(args).map(|()| Vec::new()),
        Command::Replay(args) => replay::replay(args, command_line).map(|()| Vec::new()),
        Command::Calibrate(args) => calibrate::calibrate(args).map(|()| Vec::new()),
        Command::Truth(args) => truth::truth(args).map(|()| Vec::new()),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::whole(), "fairground", &mut script);
            output::stdout(&String::from_utf8_lossy(&script)).map(|()| Vec::new())
        }
    }
}

/// Prints an error of clap, or the help that was asked for.
fn usage(error: &clap::Error, command_line: &[String]) -> ExitCode {
    if error.use_stderr() {
        // A terminal that is gone is nobody's loss.
        let _ = error.print();
        let forgotten = error.kind() == ErrorKind::UnknownArgument
            && command_line.iter().all(|word| word != "--");
        if forgotten
            && matches!(
                command_line.get(1).map(String::as_str),
                Some("run" | "compare" | "sweep")
            )
        {
            stderr("\n  help: a workload's command line stands behind `--`\n");
        }
        return ExitCode::from(FAILED);
    }
    match output::stdout(&error.to_string()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(FAILED),
    }
}

/// Writes to standard error; `eprintln!` panics if nobody reads it any more.
fn stderr(text: &str) {
    // A terminal that is gone is nobody's loss.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
