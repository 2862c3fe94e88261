//! Affinity as far as it shows: kernel threads by name; other threads that waited for the first CPU
//! on which they ran, or were woken there, though another was idle. Who is seen elsewhere later was
//! let go until then.

use rustc_hash::FxHashMap;

use super::log::{Log, Logs};
use crate::event::{Event, Kind, Names};

/// Waiting so long beside a free CPU is no accident: periodic balancing would have moved it, ns.
const WAITED_NS: u64 = 20_000_000;
/// So many wake-ups to its busy CPU beside an idle one are no accident either: the choice of a CPU
/// takes an idle one.
const WOKEN: u64 = 16;
/// The CPU to which each of the threads on `cpus` CPUs seems bound, at first or throughout.
#[must_use]
pub fn pins(logs: &Logs, names: &Names, cpus: u32) -> Vec<Option<u32>> {
    (0..logs.logs.len())
        .map(|thread| {
            let name = names.get(logs.threads[thread].tid);
            // A name says whatever somebody wrote into it: only CPUs of the recording count.
            of_kernel_thread(&name)
                .filter(|cpu| *cpu < cpus)
                .or_else(|| shown(&logs.logs[thread]))
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

fn shown(log: &Log) -> Option<u32> {
    let beside = log.beside_idle;
    let shows = beside.waited_ns >= WAITED_NS || beside.woken >= WOKEN;
    log.ran_on.first().copied().filter(|_| shows)
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
    fn who_waits_beside_an_idle_cpu_is_bound_until_it_moves() {
        let ms = 1_000_000;
        let switch = |at_ns: u64, cpu: u32, prev: u32, next: u32| Event {
            at_ns,
            cpu,
            tid: prev,
            context: crate::event::Context::Unknown,
            kind: Kind::Switch {
                prev,
                prev_prio: 120,
                state: crate::event::State::Runnable,
                next,
                next_prio: 120,
            },
        };
        let mut events: Vec<Event> = (0..12)
            .map(|n| switch(n * 4 * ms, 0, 7 + n as u32 % 2, 8 - n as u32 % 2))
            .collect();
        events.push(switch(50 * ms, 1, 0, 8));
        let logs = Logs::of(&events, 2);
        let pins = pins(&logs, &Names::default(), 2);
        let of = |tid: u32| logs.threads.iter().position(|t| t.tid == tid).unwrap();
        assert_eq!((pins[of(7)], pins[of(8)]), (Some(0), Some(0)));
        let moved = |tid: u32| {
            logs.logs[of(tid)]
                .steps
                .contains(&super::super::Step::Moved)
        };
        assert_eq!((moved(7), moved(8)), (false, true));
        // Beside a busy CPU it says nothing.
        let mut busy = events.clone();
        busy.insert(0, switch(0, 1, 0, 9));
        let logs = Logs::of(&busy, 2);
        assert!(
            super::pins(&logs, &Names::default(), 2)
                .iter()
                .all(Option::is_none)
        );
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
