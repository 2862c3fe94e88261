//! A runtime on two CPUs: threads that compute, threads that sleep and wake, a group with a quota.
//!
//! `runtime.rs` is the part to copy into a kernel, hypervisor or executor. This file is the toy
//! program that runs on it, and checks what came of it:
//!
//! ```text
//! cargo run -p fairground --example two_cpus
//! ```

extern crate alloc;

mod runtime;

use fairground::policy::Features;
use fairground::task::Prev;
use fairground::topology::{CpuPlace, Machine};
use fairground::value::{Cpu, TaskId, TgId};
use runtime::Runtime;

/// What a thread does over and over: compute, then sleep. One that does not sleep never ends.
struct Thread {
    name: &'static str,
    id: TaskId,
    compute_ns: u64,
    sleep_ns: u64,
    /// Of its present turn.
    left_ns: u64,
    asleep_until: Option<u64>,
    ran_ns: u64,
}

const MS: u64 = 1_000_000;
const SECONDS: u64 = 4;

fn main() {
    let machine = Machine {
        cpus: (0..2)
            .map(|core| CpuPlace {
                core,
                cluster: core,
                ..CpuPlace::default()
            })
            .collect(),
        ..Machine::default()
    };
    let mut runtime = Runtime::new(&machine, Features::default());
    let limited = runtime.add_group(Some(30 * MS));
    // Name, group, nice, computes, sleeps.
    let plan = [
        ("computes", TgId::ROOT, 0, u64::MAX, 0),
        ("computes, nice 5", TgId::ROOT, 5, u64::MAX, 0),
        ("2 ms in 10 ms", TgId::ROOT, 0, 2 * MS, 8 * MS),
        ("0.3 CPUs at most", limited, 0, u64::MAX, 0),
    ];
    let mut threads = Vec::new();
    for (name, tg, nice, compute_ns, sleep_ns) in plan {
        let id = runtime.spawn(Cpu(0), tg, nice, runtime.cpus());
        threads.push(Thread {
            name,
            id,
            compute_ns,
            sleep_ns,
            left_ns: compute_ns,
            asleep_until: None,
            ran_ns: 0,
        });
    }
    let end = runtime.now_ns() + SECONDS * 1000 * MS;
    while runtime.now_ns() < end {
        step(&mut runtime, &mut threads);
    }
    let mut all = 0;
    for thread in &threads {
        println!("{:18} {:6.3} s", thread.name, thread.ran_ns as f64 / 1e9);
        all += thread.ran_ns;
    }
    let share = |n: usize| threads[n].ran_ns as f64 / (SECONDS * 1000 * MS) as f64;
    assert!(all > 2 * SECONDS * 990 * MS, "no CPU is idle for long");
    assert!(
        (0.15..0.2).contains(&share(2)),
        "who sleeps waits a little each time"
    );
    assert!((share(3) - 0.3).abs() < 0.02, "the quota holds");
    assert!(
        share(0) > share(1),
        "the rest goes by weight, as far as two CPUs allow"
    );
}

/// Time goes on to the next event: a tick, a timer of the engine, the end of a turn or of a sleep.
fn step(runtime: &mut Runtime, threads: &mut [Thread]) {
    let now = runtime.now_ns();
    let running: Vec<(Cpu, usize)> = runtime
        .cpus()
        .iter()
        .filter_map(|cpu| {
            let id = runtime.current(cpu)?;
            Some((cpu, threads.iter().position(|t| t.id == id)?))
        })
        .collect();
    let ends = running
        .iter()
        .map(|(_, t)| now.saturating_add(threads[*t].left_ns));
    let wakes = threads.iter().filter_map(|t| t.asleep_until);
    let to = ends.chain(wakes).fold(runtime.next_ns(), u64::min);
    for (_, t) in &running {
        let thread = &mut threads[*t];
        thread.ran_ns += to - now;
        thread.left_ns = thread.left_ns.saturating_sub(to - now);
    }
    runtime.advance(to);
    for (cpu, t) in running {
        let thread = &mut threads[t];
        // Still there after the tick? Then its turn is over, and it sleeps.
        if thread.left_ns == 0 && runtime.current(cpu) == Some(thread.id) {
            thread.left_ns = thread.compute_ns;
            thread.asleep_until = Some(to + thread.sleep_ns);
            runtime.leave(cpu, Prev::Sleeps);
        }
    }
    for thread in threads.iter_mut() {
        if thread.asleep_until.is_some_and(|at| at <= to) {
            thread.asleep_until = None;
            runtime.wake(Cpu(0), None, thread.id);
        }
    }
}
