//! Every workload of every size that is small enough, on small machines of each shape, under every
//! profile, with all checkers of `check/` beside it.

use fairground::policy::{Features, PROFILES};
use fairground_sim::machine::{Setup, Sim};
use fairground_sim::machine_file::Machine;
use fairground_sim::spec::Scenario;
use fairground_sim::workload::{Env, Workload};

/// Events after which a run of these sizes has gone wrong.
const MOST: u64 = 20_000_000;

fn machine(cpus: usize) -> Machine {
    let id = if cpus == 1 {
        "kunpeng920-6426-2s"
    } else {
        "spr-8480-2s"
    };
    let machine = Machine::builtin(id).unwrap();
    machine.shrunk(cpus).unwrap()
}

fn features(profile: &str) -> Features {
    let mut features = Features::default();
    let profile = fairground::policy::find_profile(profile).unwrap();
    features.set_all(profile.sets);
    features
}

/// Runs `workload` with a look at all laws every `every` events, under all profiles.
fn lawful(what: &str, cpus: usize, workload: &Workload, every: u64) {
    let machine = machine(cpus);
    for profile in PROFILES {
        let setup = Setup {
            machine: &machine,
            features: features(profile.name),
            workload,
            seed: 1,
            trace: false,
        };
        let mut sim = Sim::new(&setup).unwrap();
        if let Err(e) = sim.run_checked(every, MOST) {
            panic!("{what}, {cpus} CPUs, {}: {e}", profile.name);
        }
    }
}

fn tool(argv: &str, cpus: usize, every: u64) {
    let argv: Vec<&str> = argv.split(' ').collect();
    let env = Env { cpus: cpus as u32 };
    let workload = Workload::from_argv(&argv, &env).unwrap();
    lawful(&argv.join(" "), cpus, &workload, every);
}

fn scenario(name: &str, text: &str, cpus: usize, every: u64) {
    let env = Env { cpus: cpus as u32 };
    let workload = Scenario::parse(name, text).and_then(|s| s.workload(&env));
    let workload = workload.unwrap_or_else(|e| panic!("{name}: {e:?}"));
    lawful(name, cpus, &workload, every);
}

const SIZES: [usize; 4] = [1, 2, 8, 16];

#[test]
fn hackbench_of_every_kind() {
    for cpus in SIZES {
        for kind in [
            "--pipe --threads",
            "--pipe --process",
            "--threads",
            "--process",
        ] {
            tool(&format!("hackbench {kind} -g 2 -f 3 -l 4"), cpus, 17);
        }
        tool(
            "hackbench --pipe --threads -g 2 -f 3 -l 4 --tree 2:3",
            cpus,
            17,
        );
    }
}

#[test]
fn perf_bench_of_every_kind() {
    for cpus in SIZES {
        tool("perf bench sched pipe -l 60", cpus, 3);
        tool("perf bench sched pipe -T -l 60 --tree 2:3", cpus, 3);
        tool("perf bench sched messaging -g 1 -l 1", cpus, 41);
        tool("perf bench sched messaging -g 1 -l 1 -p -t", cpus, 41);
    }
}

#[test]
fn hogs_alone_and_in_trees() {
    for cpus in SIZES {
        tool(
            &format!("hogs --tasks {} --duration 60ms", cpus + 1),
            cpus,
            5,
        );
        tool("hogs --tasks 9 --duration 60ms --tree 2:3", cpus, 5);
        tool("hogs --tasks 4 --duration 60ms --nice -10,0,5,19", cpus, 5);
        tool(
            "hogs --tasks 5 --duration 60ms --weight 1,100,10000",
            cpus,
            5,
        );
    }
}

#[test]
fn sleepers_alone_and_in_trees() {
    for cpus in SIZES {
        tool("sleepers --tasks 6 --duration 30ms", cpus, 5);
        tool(
            "sleepers --tasks 12 --run 300us --duration 30ms --in-phase --tree 2:3",
            cpus,
            5,
        );
    }
}

const MIXED: &str = r#"
name = "mixed"
duration = "250ms"
warmup = "20ms"
services = ["db"]
mutexes = ["m"]
pipes = ["p"]
sockets = ["s"]
semaphores = { sem = 0 }
futexes = ["f"]
barriers = { b = 3 }

[[cgroup]]
path = "/a"
"cpu.weight" = 300
[[cgroup]]
path = "/a/limited"
"cpu.max" = "2000 10000"
"cpu.max.burst" = 1000
[[cgroup]]
path = "/a/limited/below"
[[cgroup]]
path = "/idle"
"cpu.idle" = true
[[cgroup]]
path = "/idle/in"
"cpu.max" = "5000 20000"
[[cgroup]]
path = "/empty"
count = 5

[[task]]
name = "hog"
count = 3
cgroup = "/a/limited"
steps = ["hog"]
[[task]]
name = "nicehog"
nice = 19
cgroup = "/a/limited/below"
steps = ["hog"]
[[task]]
name = "batch"
policy = "batch"
nice = -5
cgroup = "/idle/in"
steps = [{ loop = "forever", steps = [{ run = "exp 400us" }, { sleep = "exp 600us" }] }]
[[task]]
name = "idlers"
count = 2
policy = "idle"
steps = [{ loop = "forever", steps = [{ run = "700us" }, "yield"] }]
[[task]]
name = "locker"
count = 4
cgroup = "/a"
process = "L"
steps = [{ loop = "forever", steps = [
  { lock = "m" }, { run = "uniform 5us 40us" }, { unlock = "m" }, { run = "exp 30us" }, { sleep = "exp 100us" } ] }]
[[task]]
name = "poster"
slice = "3ms"
steps = [{ loop = "forever", steps = [{ period = "1ms" }, { post = "sem" }, { futex_wake = "f", n = 2 }, { write = "p", bytes = 3000 }, { write = "s", bytes = 500 }] }]
[[task]]
name = "taker"
count = 2
cgroup = "/idle"
steps = [{ loop = "forever", steps = [{ wait = "sem" }, { run = "50us" }] }]
[[task]]
name = "futexer"
count = 2
cgroup = "/a/limited/below"
steps = [{ loop = "forever", steps = [{ futex_wait = "f" }, { run = "20us" }] }]
[[task]]
name = "reader"
steps = [{ loop = "forever", steps = [{ poll = "p" }, { read = "p", bytes = 1500 }, { read = "s", bytes = 250 }, { read = "s", bytes = 250 }, { read = "p", bytes = 1500 }] }]
[[task]]
name = "party"
count = 3
steps = [{ loop = "forever", steps = [{ run = "exp 200us" }, { barrier = "b" }] }]
[[task]]
name = "server"
count = 2
cgroup = "/a"
steps = [{ loop = "forever", steps = [{ serve = "db" }, { run = "exp 60us" }, { reply = "db", bytes = 100 }] }]
[[task]]
name = "client"
count = 4
steps = [{ loop = "forever", steps = [{ request = "db", bytes = 64 }, { sleep = "exp 300us" }] }]
[[task]]
name = "child"
template = true
cgroup = "/a/limited"
steps = [{ run = "exp 100us" }, { sleep = "50us" }]
[[task]]
name = "forker"
steps = [{ loop = "forever", steps = [{ fork = "child", n = 4 }, "join", { sleep = "3ms" }] }]
[[task]]
name = "chameleon"
steps = [{ loop = "forever", steps = [
  { run = "500us" }, { nice = 10 }, { run = "500us" }, { cgroup = "/idle/in" }, { run = "300us" }, { sleep = "200us" },
  { affinity = "0" }, { run = "400us" }, { slice = "500us" }, { cgroup = "/a/limited" }, { run = "300us" },
  { nice = -10 }, { affinity = "0-63" }, { cgroup = "/a" }, { run = "1ms" }, { slice = "0ms" } ] }]
[[task]]
name = "pinned"
affinity = "0"
count = 2
steps = [{ loop = "forever", steps = [{ run = "2ms" }, { sleep = "1ms" }] }]

[[event]]
at = "60ms"
cgroup = "/a/limited"
"cpu.max" = "max"
[[event]]
at = "90ms"
cgroup = "/a/limited"
"cpu.max" = "1000 5000"
[[event]]
at = "120ms"
cgroup = "/idle"
"cpu.idle" = false
"cpu.weight" = 50
[[event]]
at = "150ms"
cgroup = "/a"
"cpu.idle" = true
[[event]]
at = "180ms"
cgroup = "/a"
"cpu.idle" = false
"cpu.max" = "3000 10000"
"#;

#[test]
fn everything_at_once() {
    for cpus in SIZES {
        scenario("mixed", MIXED, cpus, 13);
    }
}
