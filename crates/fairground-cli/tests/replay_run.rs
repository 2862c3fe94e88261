//! Replays of exported simulated runs: on which machine, and what is wrong with what they say.

mod common;

use common::{SMALL, fails, file, json, place, succeeds, words};

const SLEEPERS: &[&str] = &["--", "sleepers", "--tasks", "4", "-d", "20ms"];

/// A run of one seed with these options, as text and as a table.
fn exported(test: &str, more: &[&str]) -> String {
    let dir = place(test);
    let [text, _] = ["run.txt", "run.csv"].map(|name| {
        let path = dir.join(name).to_str().expect("UTF-8").to_string();
        let run = ["run", "--seed", "1", "--quiet", "--trace", &path];
        succeeds(words(&[&run, more, SLEEPERS]));
        path
    });
    text
}

/// Whether a replay of the text has the same table.
fn is_exact(text: &str, more: &[&str]) -> bool {
    let [table, again] = ["run.csv", "again.csv"].map(|name| text.replace("run.txt", name));
    succeeds(words(&[&["replay", text, "--export", &again], more]));
    let read = |path: String| std::fs::read_to_string(path).expect("a table");
    read(table) == read(again)
}

/// A modified machine file that kept the name of a built-in machine.
#[test]
fn a_machine_that_only_has_the_name_of_a_built_in_one_is_asked_for() {
    let built_in = include_str!("../../../machines/xeon-8cpu-2013.toml");
    let slow = built_in.replace(
        "ipi_to_handler = { v = 1243",
        "ipi_to_handler = { v = 41243",
    );
    assert_ne!(slow, built_in);
    let mine = file("replay_mine", "mine.toml", slow);
    let run = exported("replay_of_mine", &["--machine", &mine]);
    fails(
        ["replay", &run],
        &["run.txt", "line 5", "`xeon-8cpu-2013`", "--recorded-on"],
    );
    assert!(is_exact(&run, &["--recorded-on", &mine]));
    let note = "another machine";
    let told = succeeds(["replay", &run, "--recorded-on", &mine]);
    assert!(!told.contains(note), "{told}");
    let told = succeeds(["replay", &run, "--recorded-on", "xeon-8cpu-2013"]);
    assert!(told.contains(note), "{told}");
    // Older traces do not say the hash.
    let text = std::fs::read_to_string(&run).expect("a trace");
    let lines = text.lines().filter(|line| !line.contains("machine_hash"));
    let without: String = lines.map(|line| format!("{line}\n")).collect();
    assert_ne!(text, without);
    let older = file("replay_older", "older.txt", without);
    succeeds(["replay", &older]);
}

#[test]
fn a_run_of_fewer_cpus_and_idle_states_is_replayed_on_those() {
    let less = words(&[&SMALL[..2], &["--cpus", "4", "--max-idle", "C1"]]);
    let run = exported("replay_less", &less);
    assert!(is_exact(&run, &[]));
    assert!(is_exact(&run, &["--recorded-on", SMALL[1]]));
}

#[test]
fn what_a_run_says_of_itself_is_refused_with_its_place() {
    let run = exported("replay_words", &SMALL[..2]);
    let text = std::fs::read_to_string(run).expect("a trace");
    let changed = |name: &str, from: &str, to: &str, parts: &[&str]| {
        let text = text.replacen(from, to, 1);
        let trace = file(&format!("replay_words_{name}"), "t.txt", text);
        fails(["replay", &trace], &[parts, &["t.txt"]].concat());
    };
    let set = "#: [run.set]\n";
    let value = format!("{set}#: ilb_csd = \"0\"\n");
    changed("value", set, &value, &["line 14: `ilb_csd` cannot be `0`"]);
    let name = format!("{set}#: ilb_kick = \"always\"\n#: ilb_kik = \"0\"\n");
    changed("name", set, &name, &["line 15: unknown decision `ilb_kik`"]);
    let few = "expected 1 to 512";
    changed(
        "cpus",
        "cpus = 8",
        "cpus = 99999",
        &["run: cpus 99999: ", few],
    );
    let machine = "\"xeon-8cpu-2013\"";
    let no_machine = ["line 5: the trace is of a run on `m`", "--recorded-on"];
    changed("machine", machine, "\"m\"", &no_machine);
    // The same words in a file of attributes.
    let trace = file("replay_words_plain", "t.txt", &text);
    let words =
        "[run]\nseed = 1\nmachine = \"xeon-8cpu-2013\"\ncpus = 8\n\n[run.set]\nhz = \"1\"\n";
    let known = file("replay_words_file", "a.toml", words);
    fails(
        ["replay", &trace, "--attributes", &known],
        &["a.toml:7: `hz` cannot be `1`"],
    );
}

/// A run of two hogs whose groups are written to: its text.
fn written(test: &str) -> String {
    let scenario = "name = \"ev\"\nmachine = \"spr-guest-2cpu\"\nduration = \"400ms\"\n\
        warmup = \"100ms\"\n\
        [[cgroup]]\npath = \"/a\"\n\"cpu.max\" = \"10ms/20ms\"\n\
        [[cgroup]]\npath = \"/b\"\n\
        [[task]]\nname = \"a\"\ncgroup = \"/a\"\naffinity = \"0\"\nsteps = [\"hog\"]\n\
        [[task]]\nname = \"b\"\ncgroup = \"/b\"\naffinity = \"0\"\nsteps = [\"hog\"]\n\
        [[event]]\nat = \"50ms\"\ncgroup = \"/a\"\n\"cpu.max\" = \"4ms/20ms\"\n\
        [[event]]\nat = \"200ms\"\ncgroup = \"/a\"\n\"cpu.max\" = \"max\"\n\
        [[event]]\nat = \"300ms\"\ncgroup = \"/b\"\n\"cpu.weight\" = 300\n\
        [[event]]\nat = \"350ms\"\ncgroup = \"/b\"\n\"cpu.idle\" = 1\n";
    let dir = place(test);
    let [scenario_file, trace] = ["ev.toml", "ev.txt"].map(|name| {
        let path = dir.join(name);
        path.to_str().expect("UTF-8").to_string()
    });
    std::fs::write(&scenario_file, scenario).expect("a scenario");
    succeeds([
        "run",
        &scenario_file,
        "--seed",
        "1",
        "--quiet",
        "--trace",
        &trace,
    ]);
    trace
}

#[test]
fn what_a_run_writes_to_its_groups_is_told_beside_what_is_set() {
    let trace = written("replay_written");
    let set = "/a/cpu.max=15ms/20ms";
    let text = succeeds(["replay", &trace, "--set", set]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for told in [
        "/a replayed 4000 20000, max from 200 ms",
        "the recorded run writes /a/cpu.max = 4000 20000 at 50 ms, whatever is set",
        "events within the warm-up (100 ms), so what was before them is not measured",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    let result = json(&succeeds(["replay", &trace, "--json", "-"]));
    let groups = result["costs"][0]["groups"].as_array().expect("groups");
    let of = |path: &str| groups.iter().find(|g| g["path"] == path).expect(path);
    assert_eq!(of("/a")["limits"].as_array().map(Vec::len), Some(2));
    assert_eq!(of("/b")["weights"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_saved_run_writes_to_its_groups_what_the_run_wrote() {
    let trace = written("replay_saved_writes");
    let saved = trace.replace("ev.txt", "saved.toml");
    succeeds(["replay", &trace, "--save", &saved]);
    let text = std::fs::read_to_string(&saved).expect("a scenario");
    assert_eq!(text.matches("[[event]]").count(), 4, "{text}");
    for write in [
        "at = \"50000000ns\"\ncgroup = \"/a\"\n\"cpu.max\" = \"4000 20000\"\n",
        "at = \"200000000ns\"\ncgroup = \"/a\"\n\"cpu.max\" = \"max 20000\"\n",
        "at = \"300000000ns\"\ncgroup = \"/b\"\n\"cpu.weight\" = 300\n",
        "at = \"350000000ns\"\ncgroup = \"/b\"\n\"cpu.idle\" = true\n",
    ] {
        assert!(text.contains(write), "{write}: {text}");
    }
    let again = json(&succeeds(["run", &saved, "--json", "-", "--quiet"]));
    let groups = again["variants"][0]["runs"][0]["groups"]
        .as_array()
        .expect("groups");
    let a = groups.iter().find(|g| g["path"] == "/a").expect("/a");
    assert_eq!(a["limits"].as_array().map(Vec::len), Some(2), "{a}");
}
