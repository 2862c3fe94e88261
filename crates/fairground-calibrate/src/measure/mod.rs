//! The measurements. Each runs in threads of its own that are pinned to given CPUs, so the caller's
//! affinity stays; each gives the times of short batches, ns an operation (`sample` makes values of
//! them).

pub(crate) mod groups;
pub(crate) mod kernel;
pub(crate) mod lines;
pub(crate) mod memory;

use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs that this process may use, in ascending order.
pub(crate) fn allowed() -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(None)?;
    let cpus = 0..CpuSet::MAX_CPU;
    Ok(cpus.filter(|c| set.is_set(*c)).map(|c| c as u32).collect())
}

/// Runs `f` on `cpu`.
pub(crate) fn on<T: Send>(cpu: u32, f: impl FnOnce() -> T + Send) -> io::Result<T> {
    let run = || pin(cpu).map(|()| f());
    std::thread::scope(|s| joined(s.spawn(run)))
}

/// Runs `left` on `a` and `right` on `b`, from the moment when both are there.
pub(crate) fn both<A: Send, B: Send>(
    (a, b): (u32, u32),
    left: impl FnOnce() -> A + Send,
    right: impl FnOnce() -> B + Send,
) -> io::Result<(A, B)> {
    let here = Barrier::new(2);
    let failed = AtomicBool::new(false);
    // Neither may start alone: it would wait for the other for ever.
    let arrive = |cpu| -> io::Result<()> {
        let pinned = pin(cpu);
        failed.fetch_or(pinned.is_err(), Ordering::Relaxed);
        here.wait();
        pinned?;
        if failed.load(Ordering::Relaxed) {
            return Err(io::Error::other("the other CPU cannot be used"));
        }
        Ok(())
    };
    std::thread::scope(|s| {
        let second = s.spawn(|| arrive(b).map(|()| right()));
        let first = joined(s.spawn(|| arrive(a).map(|()| left())));
        let second = joined(second);
        Ok((first?, second?))
    })
}

/// Times `count` calls of `f`, which makes `ops` operations each; ns an operation. A first call
/// warms caches and is dropped.
pub(crate) fn batches(count: u32, ops: u32, mut f: impl FnMut()) -> Vec<f64> {
    f();
    let one = |_| {
        let start = Instant::now();
        f();
        start.elapsed().as_nanos() as f64 / f64::from(ops)
    };
    (0..count).map(one).collect()
}

fn pin(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(io::Error::other("a CPU number above 1023"));
    }
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}

fn joined<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
