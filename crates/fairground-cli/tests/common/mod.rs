//! What the tests of the binary share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;

/// A machine of 8 CPUs, so that a run takes milliseconds.
pub const SMALL: &[&str] = &["--machine", "xeon-8cpu-2013", "--seeds", "2"];
/// A workload of a few hundred events.
pub const SHORT: &[&str] = &["--", "hackbench", "--pipe", "-g", "1", "-f", "2", "-l", "5"];

/// Runs the binary.
pub fn fairground<'a>(words: impl IntoIterator<Item = &'a str>) -> Output {
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("fairground"));
    command.env_remove("NO_COLOR").args(words);
    command.output().expect("the binary starts")
}

/// Runs it and expects success; gives standard output.
pub fn succeeds<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let output = fairground(words);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Runs it and expects exit code 2, nothing on standard output, and one message that has all of
/// `parts`.
pub fn fails<'a>(words: impl IntoIterator<Item = &'a str>, parts: &[&str]) {
    let output = fairground(words);
    let errors = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(output.stdout.is_empty());
    assert_eq!(errors.matches("error:").count(), 1, "{errors}");
    for part in parts {
        assert!(errors.contains(part), "`{part}` is not in: {errors}");
    }
}

/// One list of words from several.
pub fn words<'a>(lists: &[&[&'a str]]) -> Vec<&'a str> {
    lists.concat()
}

/// A path in an empty directory of the test called `test`.
pub fn place(test: &str) -> PathBuf {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).expect("a directory for the test");
    place
}

/// A file with `text` in the directory of a test; gives its path.
pub fn file(test: &str, name: &str, text: impl AsRef<[u8]>) -> String {
    let path = place(test).join(name);
    std::fs::write(&path, text).expect("a file for the test");
    path.to_str().expect("UTF-8").into()
}

/// JSON of a text.
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}
