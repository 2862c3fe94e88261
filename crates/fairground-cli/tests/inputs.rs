//! No output replaces a file that is read for it.

mod common;

use common::{SHORT, fails, place, words};

const SCENARIO: &str = r#"
machine = "m.toml"
duration = "20ms"
[[task]]
name = "t"
steps = [{ loop = "forever", steps = [{ run = "1ms" }, { sleep = "1ms" }] }]
"#;

/// A directory of the test with a machine file and a scenario that names it; their paths.
fn files(test: &str) -> [String; 2] {
    let dir = place(test);
    let machine = include_str!("../../../machines/xeon-8cpu-2013.toml");
    let machine = machine.replacen("\"xeon-8cpu-2013\"", "\"mine\"", 1);
    let path = |(name, text): (&str, &str)| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("a file for the test");
        path.to_str().expect("UTF-8").to_string()
    };
    [("m.toml", machine.as_str()), ("s.toml", SCENARIO)].map(path)
}

/// Refuses `output` of `option`, which is left as it was.
fn leaves(line: &[&str], option: &str, output: &str) {
    let before = std::fs::read(output).expect("it is there");
    let told = format!("{option} would replace `");
    fails(line.iter().copied(), &[&told, "which is read"]);
    assert_eq!(std::fs::read(output).expect("still"), before);
}

#[test]
fn no_output_replaces_the_machine() {
    let [machine, scenario] = files("inputs-machine");
    let both = format!("{machine},spr-guest-2cpu");
    let run = ["run", "--machine", &machine, "--seed", "1", "-q"];
    for option in ["--json", "--csv", "--report"] {
        let out = [option, &machine];
        leaves(&words(&[&run, &out, SHORT]), option, &machine);
    }
    let out = ["--json", &machine];
    leaves(&words(&[&["run", &scenario], &out]), "--json", &machine);
    let set = ["--set", "hz=250", "--seeds", "2", "-q"];
    for machines in [&machine, &both] {
        let compare = ["compare", "--machine", machines];
        leaves(&words(&[&compare, &set, &out, SHORT]), "--json", &machine);
    }
    // Even where it cannot be run: it has 8 CPUs.
    let larger = format!("{machine},icx-8358-2s");
    let refused = ["compare", "--machine", &larger, "--cpus", "16"];
    leaves(&words(&[&refused, &set, &out, SHORT]), "--json", &machine);
    let over = format!("machine={both}");
    let sweep = ["sweep", "--over", &over, "--seeds", "1", "-q"];
    leaves(&words(&[&sweep, &out, SHORT]), "--json", &machine);
}

#[test]
fn no_trace_replaces_what_is_read() {
    let [machine, scenario] = files("inputs-trace");
    let [as_csv, as_text] = [(&machine, "m.csv"), (&scenario, "s.txt")].map(|(from, name)| {
        let to = std::path::Path::new(from).with_file_name(name);
        std::fs::copy(from, &to).expect("a copy");
        to.to_str().expect("UTF-8").to_string()
    });
    let run = ["run", &as_text, "--seed", "1", "-q", "--trace", &as_text];
    leaves(&run, "--trace", &as_text);
    let run = ["run", "--machine", &as_csv, "--seed", "1", "-q"];
    let out = ["--trace", &as_csv];
    leaves(&words(&[&run, &out, SHORT]), "--trace", &as_csv);
}

#[test]
fn no_output_of_truth_replaces_the_recording() {
    let [machine, _] = files("inputs-truth");
    let dir = place("inputs-truth-recording");
    let case = dir.join("cases").join("own");
    std::fs::create_dir_all(&case).expect("a directory");
    let case = case.join("case.json");
    std::fs::write(&case, "{}").expect("a file");
    let [dir, case] = [&dir, &case].map(|path| path.to_str().expect("UTF-8"));
    leaves(&["truth", dir, "--json", case], "--json", case);
    let on = ["truth", dir, "--machine", &machine];
    leaves(&words(&[&on, &["--json", &machine]]), "--json", &machine);
}

#[test]
fn calibrate_and_reproduce_leave_what_they_read() {
    let [machine, _] = files("inputs-others");
    let base = ["calibrate", "--base", &machine, "-o", &machine];
    leaves(&base, "--output", &machine);
    let saved = ["reproduce", "--saved", &machine, "--report", &machine];
    leaves(&saved, "--report", &machine);
}

/// A name that a built-in machine has is that of no file.
#[test]
fn a_file_with_the_name_of_a_machine_is_an_output_like_others() {
    let dir = place("inputs-name");
    let named = dir.join("xeon-8cpu-2013");
    std::fs::write(&named, "old").expect("a file");
    let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("fairground"));
    let run = ["run", "--machine", "xeon-8cpu-2013", "--seed", "1", "-q"];
    let line = words(&[&run, &["--json", "xeon-8cpu-2013"], SHORT]);
    command.current_dir(&dir).args(line).assert().success();
    let text = std::fs::read_to_string(&named).expect("the result");
    assert!(text.starts_with('{'), "{text}");
}
