//! Operations of the kernel: system calls, switches, round trips, wake-ups, gaps.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::getppid;
use rustix::thread::sched_yield;
use rustix::time::{ClockId, clock_getres};

use super::{batches, both, on};

/// The cheapest system call, ns.
pub(crate) fn syscall(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 2000;
    let call = || {
        for _ in 0..OPS {
            black_box(getppid());
        }
    };
    on(cpu, || batches(count, OPS, call))
}

/// A read of the monotonic clock in user space, ns.
pub(crate) fn clock(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 2000;
    let read = || {
        for _ in 0..OPS {
            black_box(Instant::now());
        }
    };
    on(cpu, || batches(count, OPS, read))
}

/// `sched_yield` with nothing else to run, ns.
pub(crate) fn yield_alone(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 1000;
    on(cpu, || {
        batches(count, OPS, || (0..OPS).for_each(|_| sched_yield()))
    })
}

/// One `sched_yield` each of two threads on one CPU, ns: two switches.
pub(crate) fn yield_pair(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 500;
    let stop = AtomicBool::new(false);
    let left = || {
        let times = batches(count, OPS, || (0..OPS).for_each(|_| sched_yield()));
        stop.store(true, Ordering::Relaxed);
        times
    };
    let right = || {
        while !stop.load(Ordering::Relaxed) {
            sched_yield();
        }
    };
    Ok(both((cpu, cpu), left, right)?.0)
}

/// A byte written to a pipe and read back by the same thread, ns.
pub(crate) fn pipe_alone(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 500;
    let (reader, writer) = io::pipe()?;
    on(cpu, || {
        let mut failed = Ok(());
        let times = batches(count, OPS, || {
            for _ in 0..OPS {
                // The bare system calls: the library's own work is not the kernel's.
                let done = rustix::io::write(&writer, &[0])
                    .and_then(|_| rustix::io::read(&reader, &mut [0_u8; 1]));
                if let Err(e) = done {
                    failed = Err(e.into());
                }
            }
        });
        failed.map(|()| times)
    })?
}

/// A byte to the other thread and one back, through two pipes, ns.
pub(crate) fn pipe_round_trip(cpus: (u32, u32), count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 200;
    let (mut from_left, mut to_right) = io::pipe()?;
    let (mut from_right, mut to_left) = io::pipe()?;
    let left = move || {
        let mut failed = Ok(());
        let times = batches(count, OPS, || {
            for _ in 0..OPS {
                let done = to_right
                    .write_all(&[0])
                    .and_then(|()| from_right.read_exact(&mut [0]));
                if done.is_err() {
                    failed = done;
                }
            }
        });
        // The pipes are closed here, which ends the other thread.
        failed.map(|()| times)
    };
    let right = move || {
        let mut byte = [0];
        while from_left.read_exact(&mut byte).is_ok() && to_left.write_all(&byte).is_ok() {}
    };
    both(cpus, left, right)?.0
}

/// From before a write to a pipe until the thread that waits for it on an idle CPU has it, ns each.
pub(crate) fn wake_latency(cpus: (u32, u32), count: u32) -> io::Result<Vec<f64>> {
    let (mut reader, mut writer) = io::pipe()?;
    let start = Instant::now();
    let written = AtomicU64::new(0);
    let left = move || -> io::Result<()> {
        for _ in 0..count {
            std::thread::sleep(Duration::from_micros(150));
            let now = start.elapsed().as_nanos() as u64;
            written.store(now, Ordering::Release);
            writer.write_all(&now.to_ne_bytes())?;
        }
        Ok(())
    };
    let right = move || {
        let (mut bytes, mut times) = ([0; 8], Vec::new());
        while reader.read_exact(&mut bytes).is_ok() {
            let now = start.elapsed().as_nanos() as u64;
            times.push(now.saturating_sub(u64::from_ne_bytes(bytes)) as f64);
        }
        times
    };
    let (wrote, times) = both(cpus, left, right)?;
    wrote.map(|()| times)
}

/// What a busy loop of `millis` ms misses: gaps of 1 to 100 us (longer ones are other programs), ns
/// each.
pub(crate) fn gaps(cpu: u32, millis: u64) -> io::Result<Vec<f64>> {
    on(cpu, || {
        let (start, mut gaps) = (Instant::now(), Vec::new());
        let mut before = start;
        while before.duration_since(start) < Duration::from_millis(millis) {
            let now = Instant::now();
            let gap = now.duration_since(before).as_nanos();
            if (1000..100_000).contains(&gap) {
                gaps.push(gap as f64);
            }
            before = now;
        }
        gaps
    })
}

/// Ticks a second: the coarse clock advances once a tick.
pub(crate) fn hz() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let ns = tick.tv_sec * 1_000_000_000 + tick.tv_nsec;
    let hz = (1_000_000_000.0 / ns.max(1) as f64).round();
    if (10.0..=10_000.0).contains(&hz) {
        hz as u32
    } else {
        0
    }
}
