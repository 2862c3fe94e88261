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
    Features::of_profile(fairground::policy::find_profile(profile).unwrap())
}

/// Runs `workload` with a look at all laws every `every` events, under all profiles.
fn lawful(what: &str, cpus: usize, workload: &Workload, every: u64) {
    lawful_on(&machine(cpus), what, workload, every);
}

fn lawful_on(machine: &Machine, what: &str, workload: &Workload, every: u64) {
    let cpus = machine.topology.nr_cpus();
    for profile in PROFILES {
        let setup = Setup {
            machine,
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
    lawful(name, cpus, &read(name, text, cpus), every);
}

fn read(name: &str, text: &str, cpus: usize) -> Workload {
    let env = Env { cpus: cpus as u32 };
    let workload = Scenario::parse(name, text).and_then(|s| s.workload(&env));
    workload.unwrap_or_else(|e| panic!("{name}: {e:?}"))
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
            "hogs --tasks 5 --duration 60ms --tree 1:3 --weight 1,100,10000",
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

/// A bit of everything that a scenario can say.
const MIXED: &str = include_str!("data/mixed.toml");

#[test]
fn everything_at_once() {
    for cpus in SIZES {
        scenario("mixed", MIXED, cpus, 13);
    }
}

/// Real-time tasks of both kinds: bound and free, in a limited group, that fork, yield, go to other
/// CPUs and groups, and use up what they may of a second.
const REAL_TIME: &str = r#"
name = "real-time"
duration = "1200ms"
pipes = ["p"]
semaphores = { s = 0 }

[[cgroup]]
path = "/limited"
"cpu.max" = "3000 10000"

[[task]]
name = "ticker"
count = 3
policy = "fifo"
priority = 50
cgroup = "/limited"
steps = [{ loop = "forever", steps = [
    { run = "exp 300us" }, { period = "2ms" }, { post = "s" },
] }]

[[task]]
name = "burner"
policy = "rr"
priority = 10
count = 2
start = "10ms"
steps = [
    { run = "90ms" }, "yield", { affinity = [0] }, { run = "200ms" }, { affinity = "all" },
    { cgroup = "/limited" }, "hog",
]

[[task]]
name = "parent"
policy = "rr"
priority = 20
steps = [{ loop = 20, steps = [{ fork = "child", n = 2 }, "join", { sleep = "3ms" }] }]

[[task]]
name = "child"
template = true
steps = [{ run = "exp 500us" }, { write = "p", bytes = 1 }]

[[task]]
name = "reader"
steps = [{ loop = "forever", steps = [{ read = "p", bytes = 1 }, { run = "100us" }] }]

[[task]]
name = "waiter"
count = 2
cgroup = "/limited"
steps = [{ loop = "forever", steps = [{ wait = "s" }, { run = "200us" }] }]

[[task]]
name = "hog"
count = 3
steps = ["hog"]
"#;

#[test]
fn real_time_tasks_beside_fair_ones() {
    for cpus in SIZES {
        scenario("real-time", REAL_TIME, cpus, 29);
    }
}

#[test]
fn cpus_that_differ_in_capacity() {
    let mut machine = machine(8);
    for (cpu, place) in machine.topology.cpus.iter_mut().enumerate() {
        place.capacity = [1024, 1024, 600, 300][cpu % 4];
    }
    for (name, text) in [("mixed", MIXED), ("real-time", REAL_TIME)] {
        lawful_on(&machine, name, &read(name, text, 8), 31);
    }
}

/// Each as the first and as the other, with everything that a program can name.
#[test]
fn two_workloads_at_once() {
    let env = Env { cpus: 4 };
    let of = |argv: &str| {
        let argv: Vec<&str> = argv.split(' ').collect();
        Workload::from_argv(&argv, &env).unwrap()
    };
    let tools = [
        "cyclictest -t 3 -p 2 --priospread -l 4",
        "hackbench --pipe --threads -g 1 -f 2 -l 3",
        "schbench -m 1 -t 2 -r 2ms",
        "sysbench threads --threads=3 --time=2ms",
        "sysbench mutex --threads=2 --mutex-num=4 --mutex-locks=20",
        "sysbench oltp_read_only --threads=2 --time=2ms",
        "netperf -t TCP_RR --pairs 2 -l 2ms",
        "perf bench futex wake -t 4",
        "ebizzy -t 2 -S 1ms",
    ];
    for (i, first) in tools.iter().enumerate() {
        let other = tools[(i * 4 + 3) % tools.len()];
        let both = of(first).beside(of(other)).unwrap();
        lawful(&both.argv.join(" "), 4, &both, 43);
    }
    let limited = read("mixed", MIXED, 4).beside(of(tools[0])).unwrap();
    lawful("mixed beside cyclictest", 4, &limited, 43);
}
