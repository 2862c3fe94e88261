//! Affinity as far as it shows: kernel threads by name; other threads that waited for the only CPU
//! on which they ever ran, or were woken there, though another was free.

use rustc_hash::FxHashMap;

use super::log::Logs;
use crate::event::{Event, Kind, Names};
use crate::walk::ThreadId;

/// Waiting so long beside a free CPU is no accident: periodic balancing would have moved it, ns.
const WAITED_NS: u64 = 20_000_000;
/// So many wake-ups to its busy CPU beside an idle one are no accident either: the choice of a CPU
/// takes an idle one.
const WOKEN: u64 = 16;
/// A CPU that is idle for this share of the recording is free.
const IDLE_SHARE: f64 = 0.2;

/// The CPU to which each thread seems bound.
#[must_use]
pub fn pins(logs: &Logs, names: &Names, busy_ns: &[u64]) -> Vec<Option<u32>> {
    let span = (logs.span.1 - logs.span.0).max(1) as f64;
    let free: Vec<bool> = busy_ns
        .iter()
        .map(|busy| 1.0 - *busy as f64 / span > IDLE_SHARE)
        .collect();
    (0..logs.logs.len())
        .map(|thread| {
            let name = names.get(logs.threads[thread].tid);
            // A name says whatever somebody wrote into it: only CPUs of the recording count.
            of_kernel_thread(&name)
                .filter(|cpu| (*cpu as usize) < free.len())
                .or_else(|| shown(logs, thread, &free))
        })
        .collect()
}

/// The CPU, one of `cpus`, on which each thread id was first heard of.
#[must_use]
pub fn places(events: &[Event], cpus: u32) -> FxHashMap<u32, u32> {
    let mut places = FxHashMap::default();
    let mut see = |tid: u32, cpu: u32| {
        if tid != 0 && cpu < cpus {
            places.entry(tid).or_insert(cpu);
        }
    };
    for event in events {
        match event.kind {
            Kind::Waking { tid, cpu, .. } | Kind::Wakeup { tid, cpu, .. } => see(tid, cpu),
            Kind::Migrate { tid, from, .. } => see(tid, from),
            Kind::Switch { prev, next, .. } => {
                see(prev, event.cpu);
                see(next, event.cpu);
            }
            _ => {}
        }
        see(event.tid, event.cpu);
    }
    places
}

fn shown(logs: &Logs, thread: ThreadId, free: &[bool]) -> Option<u32> {
    let log = &logs.logs[thread];
    let &[only] = &log.ran_on[..] else {
        return None;
    };
    let elsewhere = free
        .iter()
        .enumerate()
        .any(|(c, free)| *free && c as u32 != only);
    let shows = log.waited >= WAITED_NS || log.woken_beside_idle >= WOKEN;
    (elsewhere && shows).then_some(only)
}

/// `kworker/3:1H`, `ksoftirqd/3`, `cpuhp/3`: not `kworker/u8:2`, which may run anywhere.
fn of_kernel_thread(name: &str) -> Option<u32> {
    const PER_CPU: &[&str] = &["kworker", "ksoftirqd", "cpuhp", "rcuc", "rcuop", "watchdog"];
    let (kind, rest) = name.split_once('/')?;
    if !PER_CPU.contains(&kind) {
        return None;
    }
    rest.split(':').next()?.parse().ok()
}

/// The stopper: the scheduler's own thread, which the simulated machine has too.
#[must_use]
pub fn is_stopper(name: &str) -> bool {
    name.starts_with("migration/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_threads_of_one_cpu_are_known_by_name() {
        assert_eq!(of_kernel_thread("kworker/3:1H"), Some(3));
        assert_eq!(of_kernel_thread("ksoftirqd/12"), Some(12));
        assert_eq!(of_kernel_thread("kworker/u8:2"), None);
        assert_eq!(of_kernel_thread("nginx/3"), None);
        assert!(is_stopper("migration/1"));
    }

    #[test]
    fn a_thread_is_where_it_is_first_mentioned() {
        let waking = |at_ns, tid, cpu| Event {
            at_ns,
            cpu: 0,
            tid: 5,
            context: crate::event::Context::Unknown,
            kind: Kind::Waking {
                tid,
                prio: 120,
                cpu,
            },
        };
        let events = [waking(1, 7, 1), waking(2, 7, 0), waking(3, 8, 4_000_000)];
        let mut found: Vec<_> = places(&events, 2).into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [(5, 0), (7, 1)]);
    }
}
