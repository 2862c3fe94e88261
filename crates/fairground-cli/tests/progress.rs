//! Progress on a terminal: it is drawn, with how much there is to do, unless it is not wanted.
//!
//! A thread of its own draws it, which may come too late for a command of milliseconds; so these
//! have something to do.
#![cfg(target_os = "linux")]

mod common;

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use common::words;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// What the program writes on standard error if that is a terminal.
fn on_terminal(words: &[&str]) -> String {
    let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&control).expect("it is ours");
    unlockpt(&control).expect("it is ours");
    let name = ptsname(&control, Vec::new()).expect("it has a name");
    let mut options = OpenOptions::new();
    let terminal = options
        .read(true)
        .write(true)
        .open(OsStr::from_bytes(name.as_bytes()));
    // The command goes at the end of the statement, and the last end of the terminal here with it.
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("fairground"))
        .args(words)
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(terminal.expect("the program's end"))
        .spawn()
        .expect("the program starts");
    let mut shown = Vec::new();
    // Where nobody has the other end any more it is an error (EIO), not the end of a file.
    let _ = File::from(control).read_to_end(&mut shown);
    let status = program.wait().expect("it ends");
    let shown = String::from_utf8_lossy(&shown).into_owned();
    assert!(status.success(), "{shown}");
    shown
}

#[test]
fn truth_draws_how_many_cases_there_are() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recorded");
    let asked = ["truth", dir, "--seeds", "1000"];
    let shown = on_terminal(&asked);
    assert!(shown.contains("0/1 cases"), "{shown:?}");
    let shown = on_terminal(&words(&[&asked, &["--no-progress"]]));
    assert_eq!(shown, "");
}

#[test]
fn a_run_draws_how_many_runs_there_are() {
    let asked = ["run", "--machine", "xeon-8cpu-2013", "--seeds", "20", "--"];
    let asked = words(&[
        &asked,
        &["hackbench", "--pipe", "-g", "1", "-f", "2", "-l", "3000"],
    ]);
    let shown = on_terminal(&asked);
    assert!(shown.contains("/20 runs"), "{shown:?}");
    for unwanted in ["--quiet", "--no-progress"] {
        let hidden = words(&[&["run", unwanted], &asked[1..]]);
        assert_eq!(on_terminal(&hidden), "", "{unwanted}");
    }
}
