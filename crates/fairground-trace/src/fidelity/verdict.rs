//! Verdicts: whether a replay is near enough to its recording, for each quantity by a fixed limit.

use super::{CPU_PCT, Fidelity, LATENCY_PCT, Pair, SMALL_SHARE, SWITCHES_PCT, ThreadRow};

/// Length. What a what-if is to show is often 5 to 10 % of it (docs/replay.md, "Verdicts").
pub const ELAPSED_PCT: f64 = 5.0;
/// Busy share of each CPU, percentage points.
pub const BUSY_POINTS: f64 = 5.0;
/// CPU time of each thread in the first half.
pub const HALF_PCT: f64 = 5.0;

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// CPU time of each thread; of all together, where no thread has a share that counts.
    CpuTime,
    /// Switches of both kinds.
    Switches,
    /// Median of the wake-up latency.
    Latency,
    /// The same in the second half, to which nothing is fitted.
    LateLatency,
    /// Length.
    Elapsed,
    /// Busy share of each CPU that both sides have.
    Busy,
    /// CPU time of each thread in the first half: who got the CPU when.
    FirstHalf,
}

/// A verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// On what.
    pub item: Item,
    /// What is furthest from the recording; `None`: there is nothing to compare.
    pub furthest: Option<Furthest>,
}

/// Of all threads or CPUs the one that is furthest off.
#[derive(Clone, Debug, PartialEq)]
pub struct Furthest {
    /// Which, if there are several.
    pub of: Option<String>,
    /// Both sides.
    pub pair: Pair,
    /// How far it is off, in the unit of the limit; infinite where the recording has none of it.
    pub off: f64,
}

impl Item {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 7] = [
        Self::CpuTime,
        Self::Switches,
        Self::Latency,
        Self::LateLatency,
        Self::Elapsed,
        Self::Busy,
        Self::FirstHalf,
    ];

    /// For programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CpuTime => "cpu_time",
            Self::Switches => "switches",
            Self::Latency => "wakeup_latency_p50",
            Self::LateLatency => "second_half_latency_p50",
            Self::Elapsed => "elapsed",
            Self::Busy => "busy_share",
            Self::FirstHalf => "first_half_cpu_time",
        }
    }

    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::CpuTime => "CPU time of each thread",
            Self::Switches => "switches",
            Self::Latency => "wake-up latency p50",
            Self::LateLatency => "  p50 in the second half (not fitted)",
            Self::Elapsed => "elapsed",
            Self::Busy => "busy share of each CPU",
            Self::FirstHalf => "CPU time in the first half",
        }
    }

    /// How near it must come, in per cent of the recorded value, or in points.
    #[must_use]
    pub fn limit(self) -> f64 {
        match self {
            Self::CpuTime => CPU_PCT,
            Self::Switches => SWITCHES_PCT,
            Self::Latency | Self::LateLatency => LATENCY_PCT,
            Self::Elapsed => ELAPSED_PCT,
            Self::Busy => BUSY_POINTS,
            Self::FirstHalf => HALF_PCT,
        }
    }

    /// Whether the limit is in percentage points: the value is a share itself.
    #[must_use]
    pub fn is_points(self) -> bool {
        self == Self::Busy
    }

    /// How far two values are apart, in the unit of the limit.
    #[must_use]
    pub fn off(self, pair: Pair) -> f64 {
        match self.is_points() {
            true => pair.replayed - pair.recorded,
            false => pair.diff_pct(),
        }
    }
}

impl Verdict {
    /// Whether all are near enough; `None`: nothing to compare.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        let limit = self.item.limit();
        self.furthest.as_ref().map(|f| f.off.abs() <= limit)
    }
}

impl Fidelity {
    /// The verdict on one quantity.
    #[must_use]
    pub fn verdict(&self, item: Item) -> Verdict {
        let one = |pair: Pair| vec![(None, pair)];
        let all = match item {
            Item::CpuTime => self.of_threads(|t| t.cpu_ms, |_| true),
            Item::Switches => one(self.switches()),
            Item::Latency => self.latency_us.map_or(Vec::new(), |l| one(l[0])),
            Item::LateLatency => self.late_latency_us.map_or(Vec::new(), one),
            Item::Elapsed => one(self.elapsed_ms),
            Item::Busy => {
                let both = self.cpus[0].min(self.cpus[1]);
                let cpus = self.busy_pct.iter().take(both).enumerate();
                cpus.map(|(cpu, p)| (Some(format!("CPU {cpu}")), *p))
                    .collect()
            }
            Item::FirstHalf => {
                // A thread that did next to nothing then may be off by any share of that.
                let all: f64 = self.threads.iter().map(|t| t.half_ms.recorded).sum();
                let matters = |p: Pair| p.recorded.max(p.replayed) >= SMALL_SHARE * all;
                self.of_threads(|t| t.half_ms, matters)
            }
        };
        let furthest = all.into_iter().map(|(of, pair)| Furthest {
            of,
            pair,
            off: item.off(pair),
        });
        Verdict {
            item,
            furthest: furthest.max_by(|a, b| a.off.abs().total_cmp(&b.off.abs())),
        }
    }

    /// A value of each thread that counts, where it matters; of all together if none counts.
    fn of_threads(
        &self,
        value: impl Fn(&ThreadRow) -> Pair,
        matters: impl Fn(Pair) -> bool,
    ) -> Vec<(Option<String>, Pair)> {
        let counting: Vec<&ThreadRow> = self.threads.iter().filter(|t| t.counts).collect();
        if counting.is_empty() {
            let sum = |f: fn(Pair) -> f64| self.threads.iter().map(|t| f(value(t))).sum();
            let all = Pair {
                recorded: sum(|p| p.recorded),
                replayed: sum(|p| p.replayed),
            };
            return vec![(None, all)];
        }
        let some = counting.into_iter().filter(|t| matters(value(t)));
        some.map(|t| (Some(t.name.clone()), value(t))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(recorded: f64, replayed: f64) -> Pair {
        Pair { recorded, replayed }
    }

    #[test]
    fn a_verdict_is_on_what_is_furthest_off_and_within_the_limit_is_met() {
        let mut f = Fidelity::example(&[
            ("a (7)", pair(100.0, 100.9), pair(50.0, 52.5)),
            ("b (8)", pair(100.0, 98.9), pair(0.1, 0.9)),
            ("c (9)", pair(100.0, 100.0), pair(50.0, 47.4)),
        ]);
        let told = |f: &Fidelity, item: Item| {
            let verdict = f.verdict(item);
            let of = verdict.furthest.as_ref().and_then(|f| f.of.clone());
            (verdict.met(), of.unwrap_or_default())
        };
        assert_eq!(told(&f, Item::CpuTime), (Some(false), "b (8)".into()));
        // What b did in the first half is too little to be off by nine times as much.
        assert_eq!(told(&f, Item::FirstHalf), (Some(false), "c (9)".into()));
        f.threads[2].half_ms.replayed = 47.6;
        assert_eq!(told(&f, Item::FirstHalf).0, Some(true));
        f.threads[1].half_ms.replayed = 1.1;
        assert_eq!(told(&f, Item::FirstHalf), (Some(false), "b (8)".into()));
        assert_eq!(told(&f, Item::Latency).0, None);
        assert_eq!(told(&f, Item::Elapsed).0, Some(true));
        f.elapsed_ms.replayed = 105.1;
        assert_eq!(told(&f, Item::Elapsed).0, Some(false));
    }

    /// 10 % of a CPU that is busy for half of the time are 5 points.
    #[test]
    fn busy_shares_are_compared_in_points_on_cpus_that_both_have() {
        let mut f = Fidelity::example(&[]);
        f.busy_pct[0] = pair(50.0, 55.0);
        f.busy_pct.push(pair(0.0, 40.0));
        f.cpus = [1, 2];
        assert_eq!(f.verdict(Item::Busy).met(), Some(true));
        f.cpus = [2, 2];
        let verdict = f.verdict(Item::Busy);
        let furthest = verdict.furthest.as_ref().expect("a CPU");
        assert_eq!(furthest.of.as_deref(), Some("CPU 1"));
        assert_eq!((furthest.off, verdict.met()), (40.0, Some(false)));
    }
}
