//! Every mistake in a scenario gets one message with the file, the line, what was expected and the
//! nearest known name; and no input makes the reader panic.
use fairground_sim::spec::{BYTES_MAX, Scenario};
use fairground_sim::workload::{Env, Until};
use proptest::prelude::*;

const ENV: Env = Env { cpus: 64 };
const HOG: &str = "duration = \"1s\"\n[[task]]\nname = \"a\"\nsteps = [\"hog\"]\n";

/// Each text has an error, of one line, that contains the other text.
fn assert_errors(cases: &[(String, &str)]) {
    for (text, expected) in cases {
        let file = if text.starts_with('{') {
            "s.json"
        } else {
            "s.toml"
        };
        match Scenario::parse(file, text).and_then(|s| s.workload(&ENV)) {
            Ok(_) => panic!("no error in\n{text}"),
            Err(e) => {
                let message = e.to_string();
                assert!(
                    message.contains(expected),
                    "{message}\nbut expected: {expected}"
                );
                assert_eq!(message.lines().count(), 1, "{message}");
            }
        }
    }
}

/// A scenario with one task that has these steps, in line 10.
fn steps(steps: &str) -> String {
    format!(
        "duration = \"1s\"\npipes = [\"in\", \"out\"]\nmutexes = [\"door\"]\nfutexes = [\"f\"]\n\
         services = [\"web\"]\nbarriers = {{ start = 2 }}\nsemaphores = {{ room = 1 }}\n\
         [[task]]\nname = \"a\"\nsteps = {steps}\n"
    )
}

/// A scenario with a cgroup that has these attributes, in line 7.
fn cgroup(attributes: &str) -> String {
    format!("{HOG}[[cgroup]]\npath = \"/a\"\n{attributes}\n")
}

#[test]
fn the_frame_around_the_cases_is_right() {
    for text in [
        HOG.to_owned(),
        steps("[\"hog\"]"),
        cgroup("\"cpu.weight\" = 1"),
    ] {
        Scenario::parse("s.toml", &text)
            .unwrap()
            .workload(&ENV)
            .unwrap();
    }
}

#[test]
fn files() {
    assert_errors(&[
        (String::new(), "s.toml:1: the file is empty"),
        (" \n\n".into(), "the file is empty"),
        ("name = ".into(), "s.toml:1:"),
        (
            "name = \"a\"\nname = \"b\"".into(),
            "s.toml:2: duplicate key",
        ),
        ("duration = \"1s\"".into(), "there is no task"),
        ("#".repeat(BYTES_MAX + 1), "the file has more than 8 MiB"),
        (format!("hz = 17\n{HOG}"), "expected 100, 250, 300 or 1000"),
        (
            format!("hz = \"1000\"\n{HOG}"),
            "expected 100, 250, 300 or 1000, found a text",
        ),
        (
            format!("cpu_dma_latency = 5\n{HOG}"),
            "cpu_dma_latency = 5; expected 0, as no other latency",
        ),
        (
            format!("barriers = {{ \"b\\u0007\" = 1 }}\n{HOG}"),
            "the name of one of barriers, without control characters",
        ),
        (format!("seeds = []\n{HOG}"), "no seeds"),
        (HOG.replace("duration", "warmup"), "the task 'a' never ends"),
        (
            "[[task]]\nname = \"a\"\nsteps = [{ fork = \"b\" }]\n\
             [[task]]\nname = \"b\"\ntemplate = true\nsteps = [\"hog\"]"
                .into(),
            "the task 'b' never ends",
        ),
    ]);
}

#[test]
fn files_that_cannot_be_read() {
    let scenarios = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    Scenario::load(&scenarios.join("burst.toml")).unwrap();
    let missing = Scenario::load(&scenarios.join("brust.toml"))
        .unwrap_err()
        .to_string();
    assert!(
        missing.contains("brust.toml: the file cannot be read"),
        "{missing}"
    );
    assert!(Scenario::load(&scenarios).is_err(), "a directory");
}

#[test]
fn short_slips_and_empty_names() {
    assert_errors(&[
        (steps("[{ rnu = \"1ms\" }]"), "did you mean 'run'?"),
        (steps("[\"hgo\"]"), "did you mean 'hog'?"),
        (HOG.replace("\"a\"", "\" \""), "a task's name is empty"),
    ]);
}

#[test]
fn keys_and_names() {
    let more = |more: &str| format!("{HOG}{more}");
    let group = |line: &str| format!("{HOG}[[cgroup]]\npath = \"/b\"\n{line}");
    assert_errors(&[
        (
            more("nise = 5"),
            "s.toml:5: unknown key 'nise' in a task; expected one of name",
        ),
        (more("nise = 5"), "did you mean 'nice'?"),
        (more("[[tusk]]\nname = \"b\""), "did you mean 'task'?"),
        (
            group("cpu.weight = 5"),
            "write the kernel's file names in quotes",
        ),
        (group("\"cpu.wieght\" = 5"), "did you mean 'cpu.weight'?"),
        (
            more("cgroup = \"/web\""),
            "s.toml:5: unknown cgroup '/web'; known: /",
        ),
        (more("policy = \"batsh\""), "did you mean 'batch'?"),
        (
            more("[[task]]\nname = \"a\"\nsteps = [\"hog\"]"),
            "declared twice",
        ),
        (more("[[task]]\nname = \"b\"\n"), "a task needs 'steps'"),
        (more("[[task]]\nname = \"b\"\nsteps = []"), "no steps"),
    ]);
}

#[test]
fn values_of_tasks() {
    let more = |more: &str| format!("{HOG}{more}");
    assert_errors(&[
        (
            more("count = 0"),
            "0 is out of range; expected an integer from 1",
        ),
        (more("count = -4"), "-4 is out of range"),
        (more("count = 1000001"), "out of range"),
        (more("count = 99999999999999999999"), "too large"),
        (more("count = 1.5"), "found a number that is no integer"),
        (
            more("nice = 20"),
            "20 is out of range; expected an integer from -20 to 19",
        ),
        (
            more("policy = \"fifo\""),
            "a real-time task needs 'priority'",
        ),
        (
            more("policy = \"rr\"\npriority = 100"),
            "100 is out of range; expected an integer from 1 to 99",
        ),
        (
            more("priority = 50"),
            "others have a nice value; expected policy = \"fifo\" or \"rr\"",
        ),
        (
            more("policy = \"rr\"\npriority = 5\nnice = 3"),
            "a real-time task has no nice; expected a priority",
        ),
        (
            more("policy = \"rr\"\npriority = 5\ntimer_slack = \"1us\""),
            "a real-time task has no timer_slack; expected a priority",
        ),
        (more("policy = \"fito\""), "did you mean 'fifo'?"),
        (more("start = \"-1ms\""), "is negative"),
        (more("slice = \"nan\""), "not a finite duration"),
        (more("slice = nan"), "expected a duration"),
        (
            more("affinity = \"64-70\""),
            "no CPU of the machine, which has CPUs 0-63",
        ),
        (more("affinity = \"\""), "no CPU"),
        (more("affinity = [-1]"), "-1 is out of range"),
        (more("affinity = \"3-1\""), "is no range of CPUs"),
    ]);
}

#[test]
fn attributes_of_cgroups() {
    let event = |write: &str| format!("[[event]]\nat = \"1ms\"\ncgroup = \"/a\"\n{write}");
    let burst = cgroup("\"cpu.max.burst\" = 3000") + &event("\"cpu.max\" = \"2000 10000\"");
    let late = event("\"cpu.weight\" = 50").replace("1ms", "50s");
    assert_errors(&[
        (cgroup("") + &late, "the run ends before that, after"),
        (
            cgroup("\"cpu.idle\" = 1") + &event("\"cpu.weight\" = 1000"),
            "the kernel refuses a weight while cpu.idle is 1",
        ),
        (
            cgroup("") + &event("\"cpu.idle\" = 1\n\"cpu.weight\" = 5"),
            "the kernel refuses a weight while cpu.idle is 1",
        ),
        (
            cgroup("\"cpu.weight\" = 0"),
            "0 is out of range; expected an integer from 1 to 10000",
        ),
        (
            cgroup("\"cpu.weight\" = 10001"),
            "s.toml:7: 10001 is out of range",
        ),
        (
            cgroup("\"cpu.weight\" = \"500m\""),
            "weight of 20 (linear) or 59",
        ),
        (
            cgroup("\"cpu.idle\" = 1\n\"cpu.weight\" = 50"),
            "the kernel refuses a weight while cpu.idle is 1",
        ),
        (
            cgroup("\"cpu.max\" = \"20000\"\n\"cpu.max.burst\" = 20001"),
            "above the quota of 20000",
        ),
        (cgroup("\"cpu.max.burst\" = -1"), "-1 is out of range"),
        (cgroup("\"cpuset.cpus\" = \"64\""), "no CPU of the machine"),
        (cgroup("\"cpu.idle\" = 2"), "2 is out of range"),
        (cgroup("count = 0"), "0 is out of range"),
        (
            format!("seeds = [1, 2, 1]\n{HOG}"),
            "the seed 1 is there twice",
        ),
        (cgroup(&event("")), "writes nothing"),
        (burst, "the burst of 3000 us is above the quota of 2000 us"),
    ]);
}

/// A limit that the kernel refuses, or that is none.
#[test]
fn a_limit_that_is_none_is_told_with_what_it_takes() {
    let limit = |max: &str| cgroup(&format!("\"cpu.max\" = {max}"));
    assert_errors(&[
        (
            limit("\"999 100000\""),
            "cpu.max '999 100000': expected a quota of at least 1ms",
        ),
        (limit("\"20000 999\""), "expected a period from 1ms"),
        (
            limit("\"20000 1000001\""),
            "cpu.max '20000 1000001': expected a period from 1ms to 1s",
        ),
        (
            limit("\"-1 100000\""),
            "cpu.max '-1 100000': expected QUOTA PERIOD in microseconds",
        ),
        (limit("\"a b c\""), "cpu.max 'a b c': expected QUOTA PERIOD"),
        (limit("\"10ms/100\""), "expected a period from 1ms"),
        (limit("\"1.5us/100ms\""), "expected whole microseconds"),
        (limit("\"10ms/\""), "cpu.max '10ms/': expected QUOTA PERIOD"),
        (limit("\"1300m\""), "per period: 130ms/100ms"),
        (limit("1.3"), "per period: 130ms/100ms"),
        (limit("2"), "per period: 200ms/100ms"),
        (limit("\"2\""), "per period: 200ms/100ms"),
    ]);
}

/// A limit is written as the kernel has it, or as `--set` takes it.
#[test]
fn a_limit_has_units_or_none() {
    let limit = |max: &str| {
        let text = cgroup(&format!("\"cpu.max\" = \"{max}\""));
        let read = Scenario::parse("s.toml", &text).and_then(|s| s.workload(&Env { cpus: 64 }));
        let workload = read.unwrap_or_else(|e| panic!("{max}: {e}"));
        let group = &workload.cgroups[1];
        (group.quota_ns, group.period_ns)
    };
    let ten = (Some(10_000_000), 100_000_000);
    for max in [
        "10000 100000",
        "10ms/100ms",
        "10ms / 0.1s",
        "10000/100000",
        "10ms",
    ] {
        assert_eq!(limit(max), ten, "{max}");
    }
    assert_eq!(limit("max/50ms"), (None, 50_000_000));
}

#[test]
fn the_tree_of_cgroups() {
    let groups = |all: &[(&str, &str)]| {
        let one = |(path, parent): &(&str, &str)| match *parent {
            "" => format!("[[cgroup]]\npath = \"{path}\"\n"),
            _ => format!("[[cgroup]]\npath = \"{path}\"\nparent = \"{parent}\"\n"),
        };
        format!("{HOG}{}", all.iter().map(one).collect::<String>())
    };
    let event = |cgroup: &str| {
        format!("{HOG}[[event]]\nat = \"1ms\"\ncgroup = \"{cgroup}\"\n\"cpu.idle\" = 1")
    };
    assert_errors(&[
        (
            groups(&[("/b/c", "")]),
            "s.toml:6: unknown parent cgroup '/b'",
        ),
        (groups(&[("b", "c")]), "unknown parent cgroup 'c'"),
        (
            groups(&[("b", "c"), ("c", "b")]),
            "the cgroup tree has a cycle: b -> c -> b",
        ),
        (groups(&[("b", "b")]), "the cgroup tree has a cycle: b -> b"),
        (groups(&[("/b", ""), ("/b", "")]), "declared twice"),
        (groups(&[("/b", ""), ("b", "")]), "declared twice"),
        (
            groups(&[("/b", "")]).replacen("path = \"/b\"", "path = \"/b\"\ncount = 2", 1)
                + "[[cgroup]]\npath = \"/b.1\"\n",
            "the cgroup '/b.1' is declared twice",
        ),
        (
            groups(&[("/b", "/c")]),
            "an absolute path says its parent already",
        ),
        (groups(&[("/", "")]), "the root cgroup is always there"),
        (groups(&[("/a/../b", "")]), "is no path"),
        (event("/"), "the root cgroup has no"),
        (event("/b"), "unknown cgroup '/b'"),
    ]);
}

#[test]
fn programs() {
    let one = |step: &str| steps(&format!("[{step}]"));
    assert_errors(&[
        (one("{ runn = \"1ms\" }"), "s.toml:10: unknown step 'runn'"),
        (one("{ runn = \"1ms\" }"), "did you mean 'run'?"),
        (one("\"hogg\""), "did you mean 'hog'?"),
        (one("{}"), "an empty step"),
        (
            one("{ run = \"1ms\", sleep = \"1ms\" }"),
            "two verbs, 'run' and 'sleep'",
        ),
        (
            one("{ run = \"1ms\", bytes = 3 }"),
            "unknown key 'bytes' in the step 'run'",
        ),
        (one("{ run = \"-1ms\" }"), "'-1ms' is negative"),
        (one("{ run = \"inf\" }"), "not a finite duration"),
        (one("{ run = \"exp -1ms\" }"), "is negative"),
        (one("{ run = \"1e300s\" }"), "is no duration"),
        (
            one("{ run = \"uniform 3ms 1ms\" }"),
            "the lower end is above the upper end",
        ),
        (one("{ run = 5 }"), "expected a duration like"),
        (one("{ period = \"0\" }"), "expected a duration above 0"),
    ]);
}

#[test]
fn programs_that_name_things() {
    let looped = |body: &str| steps(&format!("[{{ loop = \"forever\", steps = [{body}] }}]"));
    let one = |step: &str| steps(&format!("[{step}]"));
    assert_errors(&[
        (
            one("{ read = \"inn\" }"),
            "unknown pipe 'inn'; known: in, out; did you mean 'in'?",
        ),
        (
            one("{ lock = \"dor\" }"),
            "unknown mutex 'dor'; known: door; did you mean 'door'?",
        ),
        (one("{ barrier = \"strat\" }"), "did you mean 'start'?"),
        (one("{ wait = \"x\" }"), "unknown semaphore 'x'"),
        (one("{ futex_wait = \"x\" }"), "unknown futex 'x'"),
        (one("{ request = \"x\" }"), "unknown service 'x'"),
        (
            one("{ fork = \"x\" }"),
            "unknown task template 'x'; known: none is declared",
        ),
        (one("{ cgroup = \"/x\" }"), "unknown cgroup '/x'"),
        (one("{ affinity = \"99\" }"), "no CPU of the machine"),
        (one("{ nice = -21 }"), "-21 is out of range"),
        (one("{ read = \"in\", bytes = 0 }"), "0 is out of range"),
        (one("{ unlock = \"door\" }"), "unlock without lock"),
        (
            one("{ lock = \"door\" }, { lock = \"door\" }"),
            "holds the mutex already",
        ),
        (
            looped("{ lock = \"door\" }, { run = \"1ms\" }"),
            "a turn of the loop ends",
        ),
        (one("{ reply = \"web\" }"), "a reply without a request"),
        (one("{ end = \"r\" }"), "a request that was not begun"),
        (
            one("{ begin = \"r\", from = \"then\" }"),
            "expected \"now\" or \"due\"",
        ),
        (
            one("{ loop = 0, steps = [\"yield\"] }"),
            "0 is out of range",
        ),
        (
            one("{ loop = \"ever\", steps = [\"yield\"] }"),
            "a number of turns or \"forever\"",
        ),
        (one("{ loop = 2 }"), "a loop needs 'steps'"),
        (
            looped("{ mark = \"m\" }"),
            "a loop whose steps take no time",
        ),
        (looped("{ run = \"0\" }"), "a loop whose steps take no time"),
        (one("{ hog = false }"), "expected true"),
    ]);
}

/// The kernel keeps a nice value for when the task is no longer of that class, which no step makes
/// it; a slice it does not take.
#[test]
fn steps_that_mean_nothing_to_a_real_time_task_are_refused() {
    let of = |policy: &str, step: &str| {
        steps(&format!(
            "[{{ loop = 2, steps = [{step}, {{ run = \"1us\" }}] }}]"
        ))
        .replace("steps = [{ loop", &format!("{policy}\nsteps = [{{ loop"))
    };
    let fifo = "policy = \"fifo\"\npriority = 5";
    assert_errors(&[
        (
            of(fifo, "{ nice = 5 }"),
            "a real-time task has no nice; expected other steps",
        ),
        (
            of(fifo, "{ slice = \"1ms\" }"),
            "a real-time task has no slice",
        ),
    ]);
    for (policy, step) in [(fifo, "{ affinity = \"0\" }"), ("nice = 1", "{ nice = 5 }")] {
        Scenario::parse("s.toml", &of(policy, step)).unwrap();
    }
}

#[test]
fn loops_nest_within_limits() {
    let deep = |n| {
        format!(
            "[{}\"yield\"{}]",
            "{ loop = 2, steps = [".repeat(n),
            "] }".repeat(n)
        )
    };
    Scenario::parse("s.toml", &steps(&deep(8))).unwrap();
    // The TOML reader has a limit of its own; no stack overflows here.
    assert_errors(&[
        (steps(&deep(9)), "nest deeper than 8"),
        (steps(&deep(5000)), "s.toml:10:"),
    ]);
}

fn examples() -> Vec<(String, String)> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    let read = |p: &std::path::PathBuf| {
        let name = p.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(p).unwrap())
    };
    files.iter().map(read).collect()
}

fn example(name: &str) -> String {
    examples().into_iter().find(|(n, _)| n == name).unwrap().1
}

#[test]
fn the_examples_and_the_manual_are_right() {
    let all = examples();
    assert!(all.len() >= 5);
    for (name, text) in &all {
        let scenario = Scenario::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
        let w = scenario.workload(&ENV).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(w.validate(), Ok(()), "{name}");
    }
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenario.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let blocks: Vec<&str> = manual.split("```toml\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let block = block.split("```").next().unwrap();
        Scenario::parse("scenario.md", block).unwrap_or_else(|e| panic!("{e}\n{block}"));
    }
}

#[test]
fn a_scenario_becomes_what_it_says() {
    let scenario = Scenario::parse("n.toml", &example("nested-groups.toml")).unwrap();
    assert_eq!(scenario.machine.as_ref().unwrap().name, "icx-8358-2s");
    let w = scenario.workload(&ENV).unwrap();
    assert_eq!(w.cgroups.len(), 1 + 1 + 8 + 1 + 2 + 1 + 200);
    let of = |t: usize| &w.cgroups[w.templates[t].cgroup.unwrap() as usize];
    assert_eq!(of(0).path, "/guaranteed/pod.0");
    assert_eq!(of(9).path, "/guaranteed/pod.1");
    assert_eq!(of(64).shares, 10_240);
    assert_eq!(of(160).path, "/burstable/light/sidecar");
    assert_eq!(w.duration, Until::Time(1_100_000_000));
    assert_eq!(w.initial.len(), 164);
}

const PIECES: &[&str] = &[
    "",
    "0",
    "-1",
    "99999999999",
    "nan",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    "\n",
    "\"forever\"",
    "µ",
    "/*",
    "exp 1ms",
    "-5s",
    "1e999",
    "[[task]]\n",
    "[[cgroup]]\n",
    "\"/a\"",
    "loop",
    "steps",
    "count = 3\n",
    "parent = \"/web\"\n",
    "\\",
    "\u{10ffff}",
    "true",
    "\"cpu.max\" = \"max\"\n",
];

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    }
}

proptest! {
    #![proptest_config(config())]

    /// Cuts, repeats and changes pieces of valid files: an error or a workload, never a panic.
    #[test]
    fn no_input_panics(
        which in 0usize..6,
        edits in prop::collection::vec(
            (0usize..4096, 0usize..40, prop::sample::select(PIECES)), 1..6),
        cpus in 1u32..300,
    ) {
        let all = examples();
        let (name, text) = &all[which % all.len()];
        let mut text = text.clone();
        for (at, cut, piece) in edits {
            let start = floor(&text, at % (text.len() + 1));
            let end = floor(&text, start + cut).max(start);
            text.replace_range(start..end, piece);
        }
        if let Ok(scenario) = Scenario::parse(name, &text)
            && let Ok(w) = scenario.workload(&Env { cpus })
        {
            prop_assert_eq!(w.validate(), Ok(()));
        }
    }

    #[test]
    fn no_noise_panics(text in "\\PC{0,200}", json in any::<bool>()) {
        let _ = Scenario::parse(if json { "x.json" } else { "x.toml" }, &text);
    }
}

/// The nearest place at or before `at` where a character begins.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|&i| text.is_char_boundary(i))
        .unwrap_or(0)
}

#[test]
fn working_sets() {
    let task = |key: &str| HOG.replace("steps", &format!("{key}\nsteps"));
    assert_errors(&[
        (
            task("working_set = \"1.5MiB\""),
            "s.toml:4: '1.5MiB' is no size",
        ),
        (
            task("working_set = \"0\""),
            "s.toml:4: 0: expected 1 byte to 1024T",
        ),
        (
            task("working_set = 262144"),
            "expected a size like \"256KiB\"",
        ),
        (task("workingset = \"1K\""), "did you mean 'working_set'?"),
    ]);
    let text = task("working_set = \"256KiB\"");
    let scenario = Scenario::parse("s.toml", &text).unwrap();
    let workload = scenario.workload(&ENV).unwrap();
    assert_eq!(workload.templates[0].working_set_bytes, Some(256 << 10));
    assert!(workload.metrics.iter().any(|m| m.name == "fetch_pct"));
}
