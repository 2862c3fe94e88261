//! The table of what throttling made CPUs do.

use super::groups::{by_group, more_than_shown, shown};
use crate::number::{count, few, number};
use crate::result::{IrqsOff, QuotaWork, Variant};

/// What throttling the queues of each group with a limit made CPUs do; nothing if none was
/// throttled.
pub fn work_text(variants: &[Variant]) -> String {
    const HEADER: [&str; 9] = [
        "queues",
        "walked",
        "a period",
        "moved",
        "timer p50 us",
        "p99",
        "max",
        "queue p99",
        "max",
    ];
    let mut any = false;
    let groups = shown(variants);
    let text = by_group("throttling", &HEADER, variants, groups, |variant, path| {
        let means = WorkMeans::of(variant, path?)?;
        any |= means.throttled > 0.0;
        Some(means.cells())
    });
    if any {
        text + &more_than_shown(variants)
    } else {
        String::new()
    }
}

/// Means over the runs of a variant.
pub(crate) struct WorkMeans {
    pub throttled: f64,
    pub unthrottled: f64,
    pub walked: f64,
    /// In a period: median and 99th percentile.
    pub walked_in: [f64; 2],
    pub put_off: f64,
    pub put_back: f64,
    /// In a period: median and 99th percentile.
    pub moved_in: [f64; 2],
    /// Median, 99th percentile and longest, us; none if there was none.
    pub timer_us: [Option<f64>; 3],
    pub throttle_us: [Option<f64>; 3],
    pub unthrottle_us: [Option<f64>; 3],
    /// The longest of the timer in all runs: us, CPU, ns since the start of the run, seed.
    pub longest: Option<(f64, u32, u64, u64)>,
}

impl WorkMeans {
    /// Of a group, if it was watched.
    pub fn of(variant: &Variant, path: &str) -> Option<Self> {
        let groups = variant
            .runs
            .iter()
            .flat_map(|run| run.groups.iter().map(|g| (run.seed, g)));
        let found = groups.filter(|(_, g)| g.path == path);
        let found: Vec<(u64, &QuotaWork)> = found
            .filter_map(|(s, g)| Some((s, g.work.as_ref()?)))
            .collect();
        let mean = |of: &dyn Fn(&QuotaWork) -> u64| {
            found.iter().map(|(_, w)| of(w)).sum::<u64>() as f64 / found.len() as f64
        };
        // Only runs in which there were some have a length of them.
        let us = |of: fn(&QuotaWork) -> IrqsOff| {
            let some: Vec<IrqsOff> = found.iter().map(|(_, w)| of(w)).collect();
            let some: Vec<IrqsOff> = some.into_iter().filter(|i| i.times > 0).collect();
            let mean = |ns: fn(&IrqsOff) -> Option<u64>| {
                let sum: u64 = some.iter().filter_map(ns).sum();
                (!some.is_empty()).then(|| sum as f64 / some.len() as f64 / 1e3)
            };
            [
                |i: &IrqsOff| i.took.p50_ns,
                |i: &IrqsOff| i.took.p99_ns,
                |i: &IrqsOff| i.took.max_ns,
            ]
            .map(mean)
        };
        let longest = found.iter().filter_map(|(seed, w)| {
            let (cpu, from) = (w.timer.cpu?, w.timer.from_ns?);
            Some((w.timer.took.max_ns?, cpu, from, *seed))
        });
        let longest = longest.max_by_key(|(ns, _, _, seed)| (*ns, std::cmp::Reverse(*seed)));
        (!found.is_empty()).then(|| Self {
            throttled: mean(&|w| w.throttled),
            unthrottled: mean(&|w| w.unthrottled),
            walked: mean(&|w| w.walked),
            walked_in: [
                mean(&|w| w.walked_in_period.p50),
                mean(&|w| w.walked_in_period.p99),
            ],
            put_off: mean(&|w| w.put_off),
            put_back: mean(&|w| w.put_back),
            moved_in: [
                mean(&|w| w.moved_in_period.p50),
                mean(&|w| w.moved_in_period.p99),
            ],
            timer_us: us(|w| w.timer),
            throttle_us: us(|w| w.throttle),
            unthrottle_us: us(|w| w.unthrottle),
            longest: longest.map(|(ns, cpu, from, seed)| (ns as f64 / 1e3, cpu, from, seed)),
        })
    }

    fn cells(&self) -> Vec<String> {
        let [p50, p99, max] = self.timer_us;
        let [_, queue_p99, queue_max] = self.unthrottle_us;
        vec![
            count(self.throttled),
            count(self.walked),
            few(self.walked_in[0]),
            count(self.put_off + self.put_back),
            number(p50),
            number(p99),
            number(max),
            number(queue_p99),
            number(queue_max),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Delay, GroupStat, Quantiles, Run};

    fn run(seed: u64, throttled: u64) -> Run {
        let took = Delay::of(throttled, [4_000, 30_000, 31_000 + 1_000 * seed]);
        let off = IrqsOff {
            times: throttled,
            took,
            cpu: (throttled > 0).then_some(7),
            from_ns: (throttled > 0).then_some(100_000_000),
        };
        Run {
            groups: vec![GroupStat {
                path: "/g0".into(),
                work: Some(QuotaWork {
                    throttled,
                    unthrottled: throttled,
                    walked: 26 * throttled,
                    put_off: 2 * throttled,
                    put_back: 2 * throttled,
                    walked_in_period: Quantiles {
                        p50: 26,
                        p99: 52,
                        max: 52,
                    },
                    timer: off,
                    unthrottle: off,
                    ..QuotaWork::default()
                }),
                ..GroupStat::default()
            }],
            ..Run::new(seed)
        }
    }

    fn side(name: &str, runs: Vec<Run>) -> Variant {
        Variant {
            name: name.into(),
            runs,
            ..Variant::default()
        }
    }

    #[test]
    fn lengths_are_of_the_runs_that_have_some() {
        let base = side("base", vec![run(1, 10), run(2, 0), run(3, 20)]);
        let means = WorkMeans::of(&base, "/g0").expect("it was watched");
        assert_eq!((means.throttled, means.walked), (10.0, 260.0));
        assert_eq!(means.timer_us, [Some(4.0), Some(30.0), Some(33.0)]);
        assert_eq!(means.longest, Some((34.0, 7, 100_000_000, 3)));
        let text = work_text(&[base, side("patch", vec![Run::new(1)])]);
        assert!(text.contains("10     260        26     40"), "{text}");
        assert!(text.lines().all(|l| l.len() < 100), "{text}");
    }

    #[test]
    fn without_throttling_there_is_no_table() {
        let base = side("base", vec![run(1, 0)]);
        assert_eq!(work_text(&[base]), "");
        assert_eq!(work_text(&[side("base", vec![Run::new(1)])]), "");
    }
}
