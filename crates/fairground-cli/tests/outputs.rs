//! Files that results go to, and what they replace.

mod common;

use common::{SHORT, fails, json, place, succeeds, words};

const RUN: &[&str] = &["run", "--machine", "xeon-8cpu-2013", "--seed", "1"];

/// The longest name that a file can have is none of a hidden file with more before and behind it.
#[test]
fn the_longest_name_can_be_written() {
    let dir = place("outputs-long");
    let dir = dir.to_str().expect("UTF-8");
    let name = |letters: usize| format!("{dir}/{}", "x".repeat(letters));
    let longest = name(255);
    succeeds(words(&[RUN, &["-q", "--json", &longest], SHORT]));
    json(&std::fs::read_to_string(&longest).expect("the result"));
    let line = words(&[RUN, &["--json", &name(256)], SHORT]).join("\n");
    fails(line.split('\n'), &["cannot write", "xxx"]);
    let left = std::fs::read_dir(dir).expect("the directory");
    assert_eq!(left.count(), 1, "nothing else is left behind");
}

#[cfg(unix)]
#[test]
fn who_may_read_a_file_stays_when_it_is_replaced() {
    use std::os::unix::fs::PermissionsExt;

    let path = place("outputs-mode").join("out.json");
    let line = words(&[RUN, &["-q", "--json", path.to_str().expect("UTF-8")], SHORT]);
    for mode in [0o600, 0o666, 0o444] {
        std::fs::write(&path, "old").expect("a file");
        let set = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&path, set).expect("its mode");
        succeeds(line.iter().copied());
        let meta = std::fs::metadata(&path).expect("the file");
        assert_eq!(meta.permissions().mode() & 0o777, mode);
        json(&std::fs::read_to_string(&path).expect("the result"));
        std::fs::remove_file(&path).expect("the next one is new");
    }
}
