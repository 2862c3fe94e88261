//! A host that does everything at random, to see whether the engine keeps its books.
//!
//! Driven: machines of 2 to 4 CPUs of several shapes, and larger ones whose parts differ, so that
//! some CPUs have fewer domains than others; every profile, and every published change alone, with
//! and without it. Fair tasks of all policies in groups with weights and quotas are started, woken
//! (by other CPUs too), sleep, stop, yield, replace their image, exit, and change affinity, group,
//! nice value and slice, whatever they do at that moment. In three of four runs there are tasks of
//! a class above as well, whose queues the host has: they preempt, take turns, leave a turn to fair
//! tasks, move, and are interrupted by the stopper. Interrupts come in any order, some late, kicks
//! may be merged, and in one of five runs clocks differ.
//!
//! Checked after each step (`checks.rs`): each task is in one place; counts, weights and loads of
//! each queue are the sums of what is there; what is published is so; who runs was charged for that
//! time and for no other; of two classes the right one runs, and what the higher one uses of a CPU
//! is known and taken off its capacity; no CPU idles while somebody waits; who is throttled will be
//! let go. At the end everybody exits, loads decay to nothing, and capacities come back.
//!
//! Two more tests hold quotas (`quota.rs`) and shares (`shares.rs`) against arithmetic.
//!
//! The plain test makes the same runs every time: some seconds in a debug build, 20 at most. For
//! others, best with `--release` and `CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true`:
//!
//! ```text
//! RANDOM_HOST_SEEDS    number of seeds for each setting
//! RANDOM_HOST_SEED     the first of them; a failure prints it, with the setting
//! RANDOM_HOST_SETTING  only this profile, or "PATCH" or "without PATCH"
//! RANDOM_HOST_STEPS    number of steps of a run
//! RANDOM_HOST_LOG      set: each action and switch is printed
//! ```

#[path = "random_host/actions.rs"]
mod actions;
#[path = "random_host/board.rs"]
mod board;
#[path = "random_host/chance.rs"]
mod chance;
#[path = "random_host/checks.rs"]
mod checks;
#[path = "random_host/higher.rs"]
mod higher;
#[path = "random_host/kernel.rs"]
mod kernel;
#[path = "random_host/quota.rs"]
mod quota;
#[path = "random_host/shares.rs"]
mod shares;

use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fairground::policy::{CATALOGUE, Features, PROFILES};
use fairground::topology::{CpuPlace, Machine};
use kernel::{Kernel, MS};

/// Steps of a run, if not said otherwise.
const STEPS: u64 = 300;
/// Failures after which no more are looked for.
const ENOUGH: usize = 8;

/// A number from the environment.
fn asked(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

/// What machines are like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Small,
    Uneven,
}

/// 2 to 4 CPUs, each a core; two threads a core; two nodes; big ones and little ones.
fn machine(kind: u64) -> Machine {
    let place = |cpu: u32| {
        let own = CpuPlace {
            core: cpu,
            cluster: cpu,
            ..CpuPlace::default()
        };
        match kind / 3 % 4 {
            0 => own,
            1 => CpuPlace {
                core: cpu / 2,
                cluster: cpu / 2,
                ..own
            },
            2 => CpuPlace {
                llc: cpu / 2,
                package: cpu / 2,
                node: cpu / 2,
                ..own
            },
            _ => CpuPlace {
                capacity: if cpu.is_multiple_of(2) { 1024 } else { 400 },
                ..own
            },
        }
    };
    Machine {
        cpus: (0..2 + (kind % 3) as u32).map(place).collect(),
        ..Machine::default()
    }
}

/// Five to nine CPUs, of which some have fewer domains than others.
fn uneven(kind: u64) -> Machine {
    // Core, cluster, cache, node.
    let places: &[[u32; 4]] = match kind % 5 {
        // A core has two threads, the others one; two caches in each node.
        0 => &[
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 0, 0],
            [2, 2, 1, 0],
            [3, 3, 1, 0],
            [4, 4, 2, 1],
            [5, 5, 2, 1],
            [6, 6, 3, 1],
            [7, 7, 3, 1],
        ],
        // A cluster of two cores of two threads, and a core that is in none.
        1 => &[
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 0, 0, 0],
            [1, 0, 0, 0],
            [2, 2, 0, 0],
            [3, 3, 1, 0],
            [4, 4, 1, 0],
        ],
        // In a node all that there is, in the other cores with caches of their own.
        2 => &[
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 0, 0],
            [2, 2, 1, 1],
            [3, 3, 2, 1],
        ],
        // A core has a cache of its own beside one of two cores of two threads.
        3 => &[
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 0, 0],
            [2, 2, 1, 0],
            [3, 3, 2, 1],
            [4, 4, 2, 1],
            [5, 5, 2, 1],
            [6, 6, 2, 1],
        ],
        // A node of one CPU.
        _ => &[
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 1, 0],
            [2, 2, 2, 1],
            [2, 2, 2, 1],
            [3, 3, 3, 2],
        ],
    };
    let place = |[core, cluster, llc, node]: &[u32; 4]| CpuPlace {
        core: *core,
        cluster: *cluster,
        llc: *llc,
        package: *node,
        node: *node,
        capacity: 0,
    };
    Machine {
        cpus: places.iter().map(place).collect(),
        ..Machine::default()
    }
}

fn run(seed: u64, shape: Shape, features: Features, steps: u64) {
    let log = env::var_os("RANDOM_HOST_LOG").is_some();
    let mut kernel = match shape {
        Shape::Small => Kernel::new(seed, &machine(seed / 7), features, log),
        Shape::Uneven => Kernel::new(seed, &uneven(seed / 2), features, log),
    };
    if shape == Shape::Uneven && seed.is_multiple_of(2) {
        (kernel.has_higher, kernel.pinned) = (false, true);
    }
    for _ in 0..steps {
        for _ in 0..kernel.chance.below(4) {
            kernel.act();
            if kernel.chance.percent(70) {
                kernel.serve_all(80);
            }
        }
        let ns = match kernel.chance.below(10) {
            0 => 0,
            1..=6 => kernel.chance.below(MS / 2),
            7 | 8 => kernel.chance.below(5 * MS),
            _ => kernel.chance.below(40 * MS),
        };
        kernel.advance(ns);
        kernel.check();
    }
    kernel.serve_all(100);
    kernel.drain();
}

/// Runs some seeds of each setting; says which have failed.
fn try_all(settings: Vec<(String, Features)>, shape: Shape, seeds: u64) {
    let only = env::var("RANDOM_HOST_SETTING").ok();
    let seeds = asked("RANDOM_HOST_SEEDS").unwrap_or(seeds);
    let steps = asked("RANDOM_HOST_STEPS").unwrap_or(STEPS);
    let mut failed: Vec<String> = Vec::new();
    for (at, (name, features)) in (0..).zip(settings) {
        if only.as_ref().is_some_and(|only| *only != name) {
            continue;
        }
        // Each setting has other seeds, so that together they meet all shapes of a machine.
        let first = asked("RANDOM_HOST_SEED").unwrap_or(1 + at * seeds);
        for seed in first..first + seeds {
            let run = AssertUnwindSafe(|| run(seed, shape, features.clone(), steps));
            if catch_unwind(run).is_err() {
                let again = format!("RANDOM_HOST_SEED={seed} RANDOM_HOST_SETTING='{name}'");
                eprintln!("again: RANDOM_HOST_SEEDS=1 {again}");
                failed.push(again);
            }
            assert!(failed.len() < ENOUGH, "failed:\n{}", failed.join("\n"));
        }
    }
    assert!(failed.is_empty(), "failed:\n{}", failed.join("\n"));
}

fn profiles() -> Vec<(String, Features)> {
    let of = |p: &fairground::policy::Profile| (String::from(p.name), Features::of_profile(p));
    PROFILES.iter().map(of).collect()
}

#[test]
fn the_books_are_kept_under_every_profile() {
    try_all(profiles(), Shape::Small, 120);
}

#[test]
fn the_books_are_kept_where_chains_of_domains_differ_in_length() {
    try_all(profiles(), Shape::Uneven, 25);
}

#[test]
fn the_books_are_kept_with_and_without_every_change() {
    let mut settings = Vec::new();
    for patch in CATALOGUE {
        let mut features = Features::default();
        patch.undo(&mut features);
        settings.push((format!("without {}", patch.name), features.clone()));
        patch.apply(&mut features);
        settings.push((patch.name.into(), features));
    }
    try_all(settings, Shape::Small, 30);
}

#[test]
fn a_group_gets_its_quota_and_no_more() {
    each_seed(40, quota::check);
}

#[test]
fn everybody_gets_a_share_by_weight() {
    each_seed(12, shares::check);
}

fn each_seed(seeds: u64, check: fn(u64)) {
    let first = asked("RANDOM_HOST_SEED").unwrap_or(1);
    let seeds = asked("RANDOM_HOST_SEEDS").unwrap_or(seeds);
    (first..first + seeds).for_each(check);
}
