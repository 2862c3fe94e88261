//! CPUs in parallel: each CPU is an OS thread, each run queue is behind a mutex. No `unsafe`.
//!
//! `host.rs` is the part to copy. This file is the load that runs on it, and checks what came of
//! it: threads that compute, clients that wake a server and sleep, a group with a quota.
//!
//! ```text
//! cargo run -p fairground --example parallel
//! ```
#![forbid(unsafe_code)]

mod host;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use fairground::rq::CLOCK_BEGINS;
use fairground::sched;
use fairground::value::{Cpu, TaskId, TgId};
use host::{CPUS, Core, MS, Shared, State, Work, locked};

const RUN_MS: u64 = 1500;
const QUOTA_NS: u64 = 30 * MS;
const PERIOD_NS: u64 = 100 * MS;
/// What a CPU draws from the pool at a time (`sched_cfs_bandwidth_slice`).
const SLICE_NS: u64 = 5 * MS;

/// Group and work of each thread. Ids are handed out in this order.
fn load() -> Vec<(usize, Work)> {
    let mut load = vec![(0, Work::Computes); 4];
    load.extend([(1, Work::Computes); 2]);
    for _ in 0..3 {
        let server = TaskId(load.len() as u32);
        load.extend([(0, Work::Answers), (0, Work::Asks(server))]);
    }
    load
}

fn main() {
    let load = load();
    let (shared, ids, tgs) = Shared::new(&load, 2);
    let limited = tgs[1];
    let mut cores: Vec<Core> = (0..CPUS).map(|c| Core::new(&shared, Cpu(c))).collect();
    cores[0]
        .call(|cx, rqs| sched::set_bandwidth(cx, rqs, limited, Some(QUOTA_NS), PERIOD_NS, 0))
        .expect("a quota of 1 ms or more");
    for (id, (tg, _)) in ids.iter().zip(&load) {
        cores[0].spawn(*id, tgs[*tg]);
    }
    let mut cores: Vec<Core> = thread::scope(|scope| {
        let running: Vec<_> = cores
            .into_iter()
            .map(|core| scope.spawn(|| core.run()))
            .collect();
        thread::sleep(Duration::from_millis(RUN_MS));
        shared.stop.store(true, Ordering::Relaxed);
        let joined = running.into_iter().map(|core| core.join());
        joined
            .map(|core| core.expect("a CPU has panicked"))
            .collect()
    });
    check(&mut cores[0], &ids, limited);
}

/// What must hold when all CPUs have stopped, however busy the computer was.
fn check(core: &mut Core<'_>, ids: &[TaskId], limited: TgId) {
    let shared = core.shared;
    let on_list = |id: TaskId| {
        let lists = shared.inboxes.iter().map(|inbox| locked(&inbox.wake_list));
        lists
            .map(|l| l.iter().filter(|w| w.0.body.id == id).count())
            .sum::<usize>()
    };
    for id in ids {
        let thread = &shared.threads[id.idx()];
        let ran = core.call(|cx, rqs| sched::task_sched_runtime(cx, rqs, *id));
        let parked = locked(&thread.parked)
            .as_ref()
            .map(|t| t.se.sum_exec_runtime);
        let state = *locked(&thread.state);
        let keepers = usize::from(ran.is_some()) + usize::from(parked.is_some()) + on_list(*id);
        assert_eq!(keepers, 1, "{id:?} is in one keeping");
        assert!(
            parked.is_none() || state == State::Asleep,
            "{id:?} was woken, and is parked"
        );
        let turns = thread.turns.load(Ordering::Relaxed);
        assert!(turns > 0, "{id:?} never ran");
        let ms = ran.or(parked).unwrap_or(0) / MS;
        println!("task {:2}: {ms:4} ms, {turns:5} turns, {state:?}", id.0);
    }
    let stat = shared.sys.tg[limited.idx()].cpu_stat();
    let passed_ns = shared.now_ns() - CLOCK_BEGINS;
    let allowed_ns = passed_ns / PERIOD_NS * QUOTA_NS;
    // In the period that is not over there is a quota too, and each CPU may have overrun by a tick
    // and a slice, which it pays for in the periods after.
    let beyond_ns = QUOTA_NS + u64::from(CPUS) * (SLICE_NS + shared.sys.features.tick_ns());
    println!(
        "limited group: {} ms, of {} ms in {} whole periods and up to {} ms beyond",
        stat.usage_ns / MS,
        allowed_ns / MS,
        passed_ns / PERIOD_NS,
        beyond_ns / MS,
    );
    println!(
        "throttled in {} of {} periods",
        stat.nr_throttled, stat.nr_periods
    );
    // A CPU whose OS thread waits charges that time to whoever runs on it.
    assert!(stat.usage_ns > allowed_ns / 4, "it gets its quota");
    assert!(stat.usage_ns < 2 * allowed_ns + 200 * MS, "and no more");
}
