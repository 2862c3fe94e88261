//! Where results go: standard output under any of its names, and files that replace others.

mod common;

use common::{SHORT, SMALL, fails, json, place, succeeds, words};

const RUN: &[&str] = &["run", "--machine", "xeon-8cpu-2013", "--seed", "1"];

/// The table goes where it goes with `-`, and is not lost.
#[cfg(target_os = "linux")]
#[test]
fn standard_output_has_several_names() {
    let dir = place("outputs-stdout");
    for name in ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        json(&succeeds(words(&[RUN, &["--json", name], SHORT])));
        let (both, file) = (dir.join("both.txt"), dir.join("out.txt"));
        let out = std::fs::File::create(&file).expect("a file");
        let err = std::fs::File::create(&both).expect("a file");
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("fairground"));
        command.args(words(&[RUN, &["--json", name], SHORT]));
        let done = command.stdout(out).stderr(err).status().expect("it starts");
        assert!(done.success(), "{name}");
        json(&std::fs::read_to_string(&file).expect("the file is there"));
        let table = std::fs::read_to_string(&both).expect("the other one, too");
        assert!(table.contains("hackbench.time_s"), "{name}: {table}");
    }
    let two = ["--csv", "/dev/stdout", "--json", "-"];
    let told = "--json and --csv cannot both go to standard output";
    fails(words(&[&["run"], SMALL, &two, SHORT]), &[told]);
}

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

#[test]
fn a_name_that_ends_as_one_of_a_directory_is_refused() {
    let dir = place("outputs-slash");
    let new = format!("{}/new/", dir.to_str().expect("UTF-8"));
    for option in ["--json", "--csv", "--report"] {
        let told = ["cannot write", "ends with `/` is one of a directory"];
        fails(words(&[RUN, &[option, &new], SHORT]), &told);
    }
    assert!(!dir.join("new").exists());
}
