//! For how long threads that the recording's end had cut off computed on (`crate::derive::cut`)
//! while others waited that still had recorded work to do. Nobody recorded that computing, so what
//! it holds up is no finding. Units: nanoseconds.
//!
//! A thread waits if it is runnable, its quota is not used up, and it may use the CPU that the
//! other one has.

use fairground_sim::workload::program::Born;
use rustc_hash::FxHashMap;

use super::done::Done;
use crate::derive::{Derived, Logs};
use crate::event::{Event, State};
use crate::simulated::Throttle;
use crate::walk::{Fact, Walk};

/// A stretch of time.
type Span = (u64, u64);

/// A run of a recording.
pub(super) struct Ran<'a> {
    /// What ran.
    pub derived: &'a Derived,
    /// Whose.
    pub logs: &'a Logs,
    /// As what each task began: affinity and group.
    pub born: &'a [Born],
    /// When they had done what was recorded.
    pub done: &'a Done,
    /// What happened.
    pub events: &'a [Event],
    /// Queues that were throttled.
    pub throttles: &'a [Throttle],
    /// CPUs of the machine.
    pub cpus: u32,
    /// What is measured.
    pub window: Span,
}

/// A thread with recorded work that waited for a CPU.
#[derive(Clone, Copy)]
struct Wait {
    born: Born,
    cpu: u32,
    span: Span,
}

impl Ran<'_> {
    /// How long that was up to `half`, and in all.
    pub fn beyond_ns(&self, half: u64) -> [u64; 2] {
        if self.logs.told || self.done.going_on.is_empty() {
            return [0; 2];
        }
        let (on, waits) = self.seen();
        let throttled = self.throttled();
        let mut held: Vec<Span> = Vec::new();
        for wait in &waits {
            for part in self.held_up(wait, &on) {
                held.extend(self.with_quota(wait, part, &throttled));
            }
        }
        let held = merged(held);
        let until = |end: u64| {
            let inside = |(a, b): &Span| b.min(&end).saturating_sub(*a.max(&self.window.0));
            held.iter().map(inside).sum()
        };
        [until(half.min(self.window.1)), until(self.window.1)]
    }

    /// When threads computed on, by CPU, and who waited meanwhile.
    fn seen(&self) -> (Vec<Vec<Span>>, Vec<Wait>) {
        let end = self.window.1;
        let first = self.done.going_on.values().copied().min().unwrap_or(end);
        let of_tid = self.with_work();
        let mut on = vec![Vec::new(); self.cpus as usize];
        let mut waits = Vec::new();
        let mut since: FxHashMap<u32, (u32, u64)> = FxHashMap::default();
        let mut close = |tid: u32, (cpu, from): (u32, u64), to: u64| {
            let to = self.done.at.get(&tid).map_or(to, |done| to.min(*done));
            let from = from.max(first);
            let born = of_tid.get(&tid).filter(|_| from < to);
            waits.extend(born.map(|born| Wait {
                born: *born,
                cpu,
                span: (from, to),
            }));
        };
        Walk::to(self.events, self.cpus, end, |threads, fact| match fact {
            Fact::Ran {
                thread,
                cpu,
                from,
                to,
            } => {
                let Some(done) = self.done.going_on.get(&threads[thread].tid) else {
                    return;
                };
                let span = (from.max(*done), to.min(end));
                if span.0 < span.1 {
                    on[cpu as usize].push(span);
                }
            }
            Fact::Runnable { thread, cpu, at }
            | Fact::Out {
                thread,
                cpu,
                at,
                state: State::Runnable,
            } => {
                since.insert(threads[thread].tid, (cpu, at));
            }
            Fact::Migrated { thread, to, at } => {
                let tid = threads[thread].tid;
                if let Some(waited) = since.get(&tid).copied() {
                    close(tid, waited, at);
                    since.insert(tid, (to, at));
                }
            }
            Fact::In { thread, at, .. } => {
                let tid = threads[thread].tid;
                if let Some(waited) = since.remove(&tid) {
                    close(tid, waited, at);
                }
            }
            _ => {}
        });
        for (tid, waited) in since {
            close(tid, waited, end);
        }
        (on, waits)
    }

    /// Threads with recorded work, by their ids.
    fn with_work(&self) -> FxHashMap<u32, Born> {
        let thread = |born: &Born| self.derived.threads[born.template as usize];
        let born = self.born.iter().copied();
        born.filter(|born| self.derived.ops[thread(born)] > 0)
            .map(|born| (self.logs.threads[thread(&born)].tid, born))
            .collect()
    }

    /// The parts of a wait in which a thread computed on where this one may run.
    fn held_up(&self, wait: &Wait, on: &[Vec<Span>]) -> Vec<Span> {
        let workload = &self.derived.workload;
        let mask = wait.born.affinity;
        let mask = mask.map(|mask| &workload.masks[mask as usize]);
        let may = |cpu: u32| mask.is_none_or(|mask| mask.is_empty() || mask.contains(&cpu));
        let (from, to) = wait.span;
        let of_cpu = |(_, spans): (u32, &Vec<Span>)| {
            let first = spans.partition_point(|span| span.1 <= from);
            let met = spans[first..].iter().take_while(|span| span.0 < to);
            met.map(|(a, b)| (*a.max(&from), *b.min(&to)))
                .collect::<Vec<_>>()
        };
        let cpus = (0..).zip(on).filter(|(cpu, _)| may(*cpu));
        cpus.flat_map(of_cpu).collect()
    }

    /// Stretches in which each queue was throttled.
    fn throttled(&self) -> FxHashMap<(u32, u32), Vec<Span>> {
        let mut all: FxHashMap<(u32, u32), Vec<Span>> = FxHashMap::default();
        for &(at, cpu, group, throttled) in self.throttles {
            let spans = all.entry((group, cpu)).or_default();
            let open = spans.last_mut().filter(|last| last.1 == u64::MAX);
            match (throttled, open) {
                (true, None) => spans.push((at, u64::MAX)),
                (false, Some(last)) => last.1 = at,
                (true, Some(_)) | (false, None) => {}
            }
        }
        all
    }

    /// What is left of a part of a wait without the time in which a group of the thread's, or one
    /// above, had no quota left there.
    fn with_quota(
        &self,
        wait: &Wait,
        part: Span,
        throttled: &FxHashMap<(u32, u32), Vec<Span>>,
    ) -> Vec<Span> {
        let workload = &self.derived.workload;
        let mut left = vec![part];
        let mut group = wait.born.cgroup;
        while group != 0 {
            for out in throttled.get(&(group, wait.cpu)).into_iter().flatten() {
                left = left
                    .into_iter()
                    .flat_map(|span| without(span, *out))
                    .collect();
            }
            group = workload.cgroups[group as usize].parent;
        }
        left
    }
}

/// A span without another one.
fn without((from, to): Span, (start, end): Span) -> impl Iterator<Item = Span> {
    let parts = [(from, to.min(start)), (from.max(end), to)];
    parts.into_iter().filter(|(a, b)| a < b)
}

/// The same time, each part of it once.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut all: Vec<Span> = Vec::new();
    for (from, to) in spans {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_once_and_not_without_quota() {
        assert_eq!(
            merged(vec![(5, 9), (0, 2), (1, 3), (9, 10)]),
            [(0, 3), (5, 10)]
        );
        let left = |out: Span| without((10, 20), out).collect::<Vec<_>>();
        assert_eq!(left((12, 15)), [(10, 12), (15, 20)]);
        assert_eq!(left((0, 15)), [(15, 20)]);
        assert_eq!(left((15, u64::MAX)), [(10, 15)]);
        assert_eq!(left((5, 30)), []);
        assert_eq!(left((0, 5)), [(10, 20)]);
        assert_eq!(left((25, 30)), [(10, 20)]);
    }
}
