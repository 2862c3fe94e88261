//! Recorded against replayed: how faithful a replay is, by fixed rules. Units as named.

mod mean;
mod verdict;

pub use verdict::{BUSY_POINTS, ELAPSED_PCT, Furthest, HALF_PCT, Item, Verdict};

use std::collections::BTreeMap;

use crate::derive::pins::is_stopper;
use crate::event::Names;
use crate::measure::{Measured, ThreadTime};
use crate::replay::Run;

/// How near each must come.
pub const CPU_PCT: f64 = 1.0;
/// Switches.
pub const SWITCHES_PCT: f64 = 10.0;
/// Median of the wake-up latency.
pub const LATENCY_PCT: f64 = 15.0;
/// Threads with less than this share of all CPU time count together, by name.
pub(crate) const SMALL_SHARE: f64 = 0.01;

/// One value on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// In the recording.
    pub recorded: f64,
    /// In the replay.
    pub replayed: f64,
}

/// A thread, or all small ones of a name.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadRow {
    /// Name, with the thread's id if it is one.
    pub name: String,
    /// CPU time, ms.
    pub cpu_ms: Pair,
    /// CPU time in the first half, ms.
    pub half_ms: Pair,
    /// Switches away.
    pub switches: Pair,
    /// Whether the replay was stopped before it had done what was recorded.
    pub undone: bool,
    /// Whether it must come near: it has a share of the CPU time that matters, and is no stopper
    /// (`migration/N`), which a replay leaves to the simulated machine.
    pub counts: bool,
}

/// A replay beside its recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// Most CPU time first.
    pub threads: Vec<ThreadRow>,
    /// Length, ms.
    pub elapsed_ms: Pair,
    /// CPU time of all, ms.
    pub cpu_ms: Pair,
    /// Switches away from threads that sleep.
    pub voluntary: Pair,
    /// Switches away from runnable threads.
    pub involuntary: Pair,
    /// Wake-up latencies, us: 50, 90, 99 % and the number of them; `None` if either has none.
    pub latency_us: Option<[Pair; 3]>,
    /// The median of those in the second half, us: nothing is fitted to it.
    pub late_latency_us: Option<Pair>,
    /// The recording's medians of the first and the second half, us: how far it is like itself.
    pub halves_us: Option<(f64, f64)>,
    /// Between which values the recording's median lies at 95 %, us, and that of the second half:
    /// so far few wake-ups, or two kinds of them, leave it open.
    pub known_us: [Option<(f64, f64)>; 2],
    /// Wake-ups of the recording whose latency is known.
    pub wakeups: usize,
    /// Those of the replay, and those of its second half.
    pub replayed_wakeups: [usize; 2],
    /// Busy share of each CPU, %; 0 where a side does not have the CPU.
    pub busy_pct: Vec<Pair>,
    /// CPUs of each side.
    pub cpus: [usize; 2],
    /// The replay was stopped after so long, ms: its length and its CPU times are lower bounds.
    pub stopped_ms: Option<f64>,
    /// For how long threads that the recording's end had cut off computed on while others waited
    /// with recorded work, ms: in the first half of the recording's length, and in all.
    pub beyond_ms: [f64; 2],
    /// Names and ids of threads that had not done what was recorded then, most CPU time first.
    pub undone: Vec<String>,
}

impl Pair {
    /// The difference in per cent of the recorded value.
    #[must_use]
    pub fn diff_pct(self) -> f64 {
        if self.recorded == self.replayed {
            return 0.0;
        }
        100.0 * (self.replayed - self.recorded) / self.recorded
    }

    /// Whether the two are within `pct` per cent.
    #[must_use]
    pub fn within(self, pct: f64) -> bool {
        self.diff_pct().abs() <= pct
    }
}

impl Fidelity {
    /// Of a recording and a run of it.
    #[must_use]
    pub fn new(recorded: &Measured, run: &Run, names: &Names) -> Self {
        let replayed = &run.measured;
        let pair = |recorded: f64, replayed: f64| Pair { recorded, replayed };
        let of = |f: &dyn Fn(&Measured) -> f64| pair(f(recorded), f(replayed));
        let length = |m: &Measured| (m.window.1 - m.window.0).max(1) as f64;
        let latency = [50, 90, 99].map(|p| {
            let us = |m: &Measured| m.latency(p).map(|ns| ns as f64 / 1e3);
            Some(pair(us(recorded)?, us(replayed)?))
        });
        let latency_us = match latency {
            [Some(a), Some(b), Some(c)] => Some([a, b, c]),
            _ => None,
        };
        let half = |m: &Measured, half: usize| {
            let latency = m.half_latencies()[half];
            latency.map(|ns| ns as f64 / 1e3)
        };
        let late = half(recorded, 1).zip(half(replayed, 1));
        let cpus = recorded.busy_ns.len().max(replayed.busy_ns.len());
        let busy = |m: &Measured, cpu: usize| {
            let busy = m.busy_ns.get(cpu).copied().unwrap_or(0);
            100.0 * busy as f64 / length(m)
        };
        Self {
            threads: threads(recorded, run, names),
            cpus: [recorded.busy_ns.len(), replayed.busy_ns.len()],
            stopped_ms: run.stopped_ns.map(|ns| ns as f64 / 1e6),
            beyond_ms: run.beyond_ns.map(|ns| ns as f64 / 1e6),
            undone: undone(recorded, run, names),
            elapsed_ms: of(&|m| length(m) / 1e6),
            cpu_ms: of(&|m| m.cpu_ns() as f64 / 1e6),
            voluntary: of(&|m| m.switches().0 as f64),
            involuntary: of(&|m| m.switches().1 as f64),
            latency_us,
            late_latency_us: late.map(|(a, b)| pair(a, b)),
            halves_us: half(recorded, 0).zip(half(recorded, 1)),
            known_us: recorded
                .latency_intervals()
                .map(|known| known.map(|(a, b)| (a as f64 / 1e3, b as f64 / 1e3))),
            wakeups: recorded.wakeups()[0],
            replayed_wakeups: replayed.wakeups(),
            busy_pct: (0..cpus)
                .map(|c| pair(busy(recorded, c), busy(replayed, c)))
                .collect(),
        }
    }

    /// The thread whose CPU time is furthest off.
    #[must_use]
    pub fn worst(&self) -> Option<&ThreadRow> {
        let rows = self.threads.iter().filter(|t| t.counts);
        rows.max_by(|a, b| {
            let off = |t: &ThreadRow| t.cpu_ms.diff_pct().abs();
            off(a).total_cmp(&off(b))
        })
    }

    /// Switches of both kinds.
    #[must_use]
    pub fn switches(&self) -> Pair {
        Pair {
            recorded: self.voluntary.recorded + self.involuntary.recorded,
            replayed: self.voluntary.replayed + self.involuntary.replayed,
        }
    }

    /// Whether each is near enough: CPU time (of all together, where no thread has a share that
    /// counts), switches, latency, latency in the second half. `None`: nothing to compare.
    #[must_use]
    pub fn met(&self) -> [Option<bool>; 4] {
        [
            Item::CpuTime,
            Item::Switches,
            Item::Latency,
            Item::LateLatency,
        ]
        .map(|item| self.verdict(item).met())
    }
}

fn undone(recorded: &Measured, run: &Run, names: &Names) -> Vec<String> {
    let mut tids: Vec<u32> = run.undone.iter().copied().collect();
    let cpu_ns = |tid: &u32| recorded.threads.get(tid).map_or(0, |t| t.cpu_ns);
    tids.sort_unstable_by_key(|tid| (std::cmp::Reverse(cpu_ns(tid)), *tid));
    let name = |tid| format!("{} ({})", names.get(tid), names.id(tid));
    tids.into_iter().map(name).collect()
}

fn threads(recorded: &Measured, run: &Run, names: &Names) -> Vec<ThreadRow> {
    let replayed = &run.measured;
    let total = recorded.cpu_ns().max(1) as f64;
    let mut rows: BTreeMap<(bool, String), (ThreadTime, ThreadTime, bool)> = BTreeMap::new();
    let tids = recorded.threads.keys().chain(replayed.threads.keys());
    let mut tids: Vec<u32> = tids.copied().collect();
    tids.sort_unstable();
    tids.dedup();
    let none = ThreadTime::default();
    for tid in tids {
        let a = recorded.threads.get(&tid).unwrap_or(&none);
        let b = replayed.threads.get(&tid).unwrap_or(&none);
        let small = (a.cpu_ns as f64) < SMALL_SHARE * total;
        let name = names.get(tid);
        let name = if small {
            name
        } else {
            format!("{name} ({})", names.id(tid))
        };
        let (into_a, into_b, undone) = rows.entry((small, name)).or_default();
        *undone |= run.undone.contains(&tid);
        add(into_a, a);
        add(into_b, b);
    }
    let mut rows: Vec<ThreadRow> = rows
        .into_iter()
        .map(|((_, name), (a, b, undone))| {
            let pair = |f: fn(&ThreadTime) -> f64| Pair {
                recorded: f(&a),
                replayed: f(&b),
            };
            ThreadRow {
                cpu_ms: pair(|t| t.cpu_ns as f64 / 1e6),
                half_ms: pair(|t| t.first_half_ns as f64 / 1e6),
                switches: pair(|t| (t.voluntary + t.involuntary) as f64),
                undone,
                counts: a.cpu_ns as f64 >= SMALL_SHARE * total && !is_stopper(&name),
                name,
            }
        })
        .collect();
    rows.sort_by(|a, b| b.cpu_ms.recorded.total_cmp(&a.cpu_ms.recorded));
    rows
}

fn add(to: &mut ThreadTime, t: &ThreadTime) {
    to.cpu_ns += t.cpu_ns;
    to.first_half_ns += t.first_half_ns;
    to.voluntary += t.voluntary;
    to.involuntary += t.involuntary;
}

#[cfg(test)]
impl Fidelity {
    /// One CPU, busy for half of 100 ms, and threads that count: name, CPU time, first half.
    fn example(threads: &[(&str, Pair, Pair)]) -> Self {
        let pair = |x: f64| Pair {
            recorded: x,
            replayed: x,
        };
        let row = |(name, cpu_ms, half_ms): &(&str, Pair, Pair)| ThreadRow {
            name: (*name).into(),
            cpu_ms: *cpu_ms,
            half_ms: *half_ms,
            switches: pair(1.0),
            undone: false,
            counts: true,
        };
        Self {
            threads: threads.iter().map(row).collect(),
            elapsed_ms: pair(100.0),
            cpu_ms: pair(50.0),
            voluntary: pair(10.0),
            involuntary: pair(20.0),
            latency_us: None,
            late_latency_us: None,
            halves_us: None,
            known_us: [None; 2],
            wakeups: 0,
            replayed_wakeups: [0; 2],
            busy_pct: vec![pair(50.0)],
            cpus: [1, 1],
            stopped_ms: None,
            beyond_ms: [0.0; 2],
            undone: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_in_per_cent_of_the_recorded_value() {
        let pair = |recorded, replayed| Pair { recorded, replayed };
        assert!(pair(100.0, 101.0).within(1.0) && !pair(100.0, 101.1).within(1.0));
        assert!(pair(0.0, 0.0).within(0.0) && !pair(0.0, 1.0).within(50.0));
    }
}
