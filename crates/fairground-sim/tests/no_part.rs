//! A decision that is said to have no part has none: whatever its value, a run is the same, event
//! by event. See `policy/no_part.rs` of the engine.

use fairground::policy::{Decision, Features, decisions};
use fairground_sim::machine::Setup;
use fairground_sim::machine_file::Machine;
use fairground_sim::outcome::{self, Outcome};
use fairground_sim::spec::Scenario;
use fairground_sim::workload::Env;
use fairground_sim::workload::program::Workload;

/// Something of all that the fair class does: groups, weights, quota, forks, yields, slices.
const ALL_SORTS: &str = r#"
duration = "30ms"
pipes = ["p"]
mutexes = ["m"]
[[cgroup]]
path = "/a"
"cpu.weight" = 300
[[cgroup]]
path = "/a/b"
"cpu.max" = "3000 5000"
[[cgroup]]
path = "/i"
"cpu.idle" = true
[[task]]
name = "hog"
count = 3
nice = 3
steps = ["hog"]
[[task]]
name = "hog-b"
count = 3
cgroup = "/a/b"
slice = "1ms"
steps = ["hog"]
[[task]]
name = "idle"
count = 2
cgroup = "/i"
steps = ["hog"]
[[task]]
name = "batch"
policy = "batch"
count = 2
cgroup = "/a"
steps = [{ loop = "forever", steps = [{ run = "exp 300us" }, "yield", { sleep = "200us" }] }]
[[task]]
name = "child"
template = true
steps = [{ run = "exp 200us" }, { lock = "m" }, { run = "30us" }, { unlock = "m" }]
[[task]]
name = "parent"
count = 2
steps = [{ loop = "forever", steps = [{ period = "1ms" }, { fork = "child", n = 3 }, "join"] }]
[[task]]
name = "changes"
steps = [{ loop = "forever", steps = [
    { run = "200us" }, { nice = 5 }, "yield", { run = "200us" }, { slice = "2ms" }, { nice = 0 },
    { cgroup = "/a" }, { run = "100us" }, { sleep = "300us" }, { cgroup = "/a/b" },
    { affinity = "0-1" }, { run = "100us" }, { affinity = "0-3" }, { slice = "0" },
] }]
[[task]]
name = "writer"
count = 2
slice = "500us"
steps = [{ loop = "forever", steps = [{ write = "p", bytes = 100 }, { sleep = "exp 200us" }] }]
[[task]]
name = "reader"
count = 2
cgroup = "/a"
steps = [{ loop = "forever", steps = [{ read = "p", bytes = 100 }, { run = "exp 100us" }] }]
"#;

fn run(machine: &Machine, workload: &Workload, features: &Features) -> Outcome {
    let setup = Setup {
        machine,
        features: features.clone(),
        workload,
        seed: 3,
        trace: true,
    };
    outcome::run(&setup).unwrap()
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    (a.elapsed_ns, a.events, a.switches) == (b.elapsed_ns, b.events, b.switches)
        && a.trace == b.trace
        && a.functions == b.functions
        && a.lines == b.lines
}

/// Values to try: all that are named, or the ends of the range.
fn values(decision: &Decision) -> Vec<String> {
    let named = decision.values.split(", ").map(String::from);
    match decision.values.split_once("..=") {
        Some((least, most)) => vec![least.into(), most.into()],
        None => named.collect(),
    }
}

fn features(profile: &str, sets: &[(&str, &str)]) -> Features {
    let mut features = Features::of_profile(fairground::policy::find_profile(profile).unwrap());
    features.set_all(sets).unwrap();
    features
}

#[test]
fn what_has_no_part_changes_nothing() {
    let machine = Machine::builtin("spr-8480-2s").unwrap().shrunk(4).unwrap();
    let env = Env { cpus: 4 };
    let workload = Scenario::parse("s", ALL_SORTS).unwrap().workload(&env);
    let workload = workload.unwrap();
    let mut tried = Vec::new();
    for features in [
        features("linux-6.18", &[("hrtick", "slice")]),
        features("linux-6.5", &[]),
        features("linux-3.10", &[("hrtick", "slice"), ("util_est", "off")]),
        features("linux-6.18", &[("pick", "cfs")]),
        features(
            "linux-6.18",
            &[
                ("delay_dequeue", "off"),
                ("place_lag", "off"),
                ("place_new", "at-fork"),
                ("ttwu_queue", "direct"),
                ("util_est", "off"),
            ],
        ),
        features("linux-6.12-lts", &[("wakeup_preemption", "off")]),
    ] {
        let before = run(&machine, &workload, &features);
        assert!(before.switches > 100 && !before.trace.is_empty());
        for decision in decisions() {
            let Some(why) = decision.no_part(&features) else {
                continue;
            };
            let (name, is) = (decision.name, (decision.get)(&features));
            for value in values(decision).into_iter().filter(|v| *v != is) {
                let mut other = features.clone();
                other.set(name, &value).unwrap();
                assert_eq!(decision.no_part(&other), Some(why), "{name}={value}");
                let after = run(&machine, &workload, &other);
                assert!(same(&before, &after), "{name}={value} under {why}");
            }
            tried.push(name);
        }
    }
    tried.sort_unstable();
    tried.dedup();
    assert_eq!(tried.len(), 20, "{tried:?}");
}
