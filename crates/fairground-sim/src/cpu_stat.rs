//! What groups with a limit used and how they were throttled, in the words of `cpu.stat`, and what
//! groups used that have a weight of their own.
//!
//! The counters are the scheduler's own (`fairground::shared::CpuStat`); a run remembers what they
//! were at the end of the warm-up. As in the kernel, throttled time is added when a queue may run
//! again, and is the sum over the group's queues: one for each CPU.

use fairground::shared::CpuStat;
use fairground::value::TgId;

use crate::machine::Sim;
use crate::workload::program::{Cgroup, CgroupWrite, Ns, Workload};

/// One group over the measured window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStat {
    /// Its path.
    pub path: String,
    /// Whether it is one of those that metrics are about: it has a limit, here or in the variant
    /// that this run is held against.
    pub counted: bool,
    /// Whether a group above it is counted, too, and its usage part of that one's.
    pub nested: bool,
    /// `cpu.max` as written last: quota, `None` = max.
    pub quota_ns: Option<Ns>,
    /// `cpu.max` as written last: period.
    pub period_ns: Ns,
    /// `cpu.max.burst` as written last.
    pub burst_ns: Ns,
    /// `cpu.weight` as written last, in units of `cpu.shares`.
    pub shares: u64,
    /// `cpu.idle` as written last.
    pub idle: bool,
    /// The counters.
    pub stat: CpuStat,
}

impl Workload {
    /// Groups with a limit, at the start or by a later write.
    #[must_use]
    pub fn limited(&self) -> Vec<u32> {
        let at_start = (0..)
            .zip(&self.cgroups)
            .filter(|(_, g)| g.quota_ns.is_some());
        let later = self.events.iter().filter(|event| {
            let limits = |write| {
                matches!(
                    write,
                    CgroupWrite::Max {
                        quota_ns: Some(_),
                        ..
                    }
                )
            };
            limits(event.write)
        });
        let mut groups: Vec<u32> = at_start.map(|(i, _)| i).collect();
        groups.extend(later.map(|event| event.cgroup));
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Groups whose counters are kept: those of `watched`, those with a limit, and those whose
    /// `cpu.max` is written during the run.
    #[must_use]
    pub fn counted_groups(&self) -> Vec<u32> {
        let mut groups = self.limited();
        groups.extend(&self.watched);
        let later = self.events.iter();
        let later = later.filter(|event| matches!(event.write, CgroupWrite::Max { .. }));
        groups.extend(later.map(|event| event.cgroup));
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Groups with another weight than a new one, at the start or by a later write, and idle ones.
    #[must_use]
    pub fn weighed(&self) -> Vec<u32> {
        let new = Cgroup::new("", 0).shares;
        let at_start = (0..).zip(&self.cgroups);
        let at_start = at_start.filter(|(_, g)| g.shares != new || g.idle);
        let later = self.events.iter().filter(|event| match event.write {
            CgroupWrite::Shares(written) => written != new,
            CgroupWrite::Idle(now) => now,
            _ => false,
        });
        let mut groups: Vec<u32> = at_start.map(|(i, _)| i).collect();
        groups.extend(later.map(|event| event.cgroup));
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// Groups of which a result tells what they used: those that are counted, and those with a
    /// weight of their own in this workload or in `compared`.
    fn told_groups(&self) -> Vec<u32> {
        let mut groups = self.counted_groups();
        groups.extend(self.weighed());
        groups.extend(&self.compared);
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// `cpu.weight` of all groups as written last, in units of shares, and their `cpu.idle`.
    fn last_weights(&self) -> Vec<(u64, bool)> {
        let mut all: Vec<(u64, bool)> = self.cgroups.iter().map(|g| (g.shares, g.idle)).collect();
        for event in &self.events {
            let (shares, idle) = &mut all[event.cgroup as usize];
            match event.write {
                CgroupWrite::Shares(written) => *shares = written,
                CgroupWrite::Idle(now) => {
                    // A group that is no longer idle has the weight of a new one.
                    if *idle && !now {
                        *shares = Cgroup::new("", 0).shares;
                    }
                    *idle = now;
                }
                _ => {}
            }
        }
        all
    }
}

impl Sim<'_> {
    /// The counters of all groups that are told of, since boot.
    pub(crate) fn cpu_stats(&self) -> Vec<(u32, CpuStat)> {
        let stat = |g: u32| (g, self.sys.tg[TgId(g).idx()].cpu_stat());
        self.workload.told_groups().into_iter().map(stat).collect()
    }

    /// What came of it since the warm-up.
    pub(crate) fn group_stats(&self) -> Vec<GroupStat> {
        let all = self.cpu_stats();
        if all.is_empty() {
            return Vec::new();
        }
        let counted = self.workload.counted_groups();
        let is_counted = |g: u32| counted.binary_search(&g).is_ok();
        let (cgroups, weights) = (&self.workload.cgroups, self.workload.last_weights());
        let above = |g: u32| {
            std::iter::successors(Some(g), |g| (*g > 0).then(|| cgroups[*g as usize].parent))
        };
        let one = |(i, (g, now)): (usize, &(u32, CpuStat))| {
            let limit = self.limits[*g as usize];
            let (shares, idle) = weights[*g as usize];
            GroupStat {
                path: cgroups[*g as usize].path.clone(),
                counted: is_counted(*g),
                nested: above(*g).skip(1).any(is_counted),
                quota_ns: limit.quota_ns,
                period_ns: limit.period_ns,
                burst_ns: limit.burst_ns,
                shares,
                idle,
                stat: since(now, self.warm_stats.get(i).map(|(_, stat)| stat)),
            }
        };
        all.iter().enumerate().map(one).collect()
    }
}

fn since(now: &CpuStat, before: Option<&CpuStat>) -> CpuStat {
    let before = before.copied().unwrap_or_default();
    CpuStat {
        nr_periods: now.nr_periods - before.nr_periods,
        nr_throttled: now.nr_throttled - before.nr_throttled,
        throttled_ns: now.throttled_ns - before.throttled_ns,
        nr_bursts: now.nr_bursts - before.nr_bursts,
        burst_ns: now.burst_ns - before.burst_ns,
        usage_ns: now.usage_ns - before.usage_ns,
    }
}

/// The metrics of all groups that are counted together; none if no group is. Microseconds are whole
/// ones of each group, as `cpu.stat` shows them, so that a sum by hand is the same. Usage below a
/// group that is counted itself is in that one's.
pub(crate) fn metrics(groups: &[GroupStat]) -> Vec<(String, Option<f64>)> {
    let counted = || groups.iter().filter(|g| g.counted);
    if counted().next().is_none() {
        return Vec::new();
    }
    let sum = |count: fn(&CpuStat) -> u64| counted().map(|g| count(&g.stat)).sum::<u64>() as f64;
    let tops = counted().filter(|g| !g.nested);
    let usage = tops.map(|g| g.stat.usage_ns / 1000).sum::<u64>() as f64;
    let (periods, throttled) = (sum(|s| s.nr_periods), sum(|s| s.nr_throttled));
    // No period, none throttled.
    let share = if periods > 0.0 {
        100.0 * throttled / periods
    } else {
        0.0
    };
    let all = [
        ("throttled_pct", share),
        ("throttled_usec", sum(|s| s.throttled_ns / 1000)),
        ("nr_throttled", throttled),
        ("nr_periods", periods),
        ("nr_bursts", sum(|s| s.nr_bursts)),
        ("burst_usec", sum(|s| s.burst_ns / 1000)),
        ("usage_usec", usage),
    ];
    all.map(|(name, value)| (name.to_string(), Some(value)))
        .to_vec()
}

#[cfg(test)]
mod tests {
    use fairground::policy::Features;

    use super::*;
    use crate::machine::Setup;
    use crate::machine_file::Machine;
    use crate::outcome::{self, Outcome};
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// Hogs on two CPUs under a profile.
    fn hogs(profile: &str, line: &str) -> Outcome {
        let argv: Vec<String> = line.split(' ').map(String::from).collect();
        let workload = Workload::from_argv(&argv, &Env { cpus: 2 }).unwrap();
        let features = Features::of_profile(fairground::policy::find_profile(profile).unwrap());
        on_guest(features, &workload)
    }

    fn on_guest(features: Features, workload: &Workload) -> Outcome {
        let machine = Machine::builtin("spr-guest-2cpu").unwrap();
        let setup = Setup {
            machine: &machine,
            features,
            workload,
            seed: 1,
            trace: false,
        };
        outcome::run(&setup).unwrap()
    }

    fn metric(outcome: &Outcome, name: &str) -> f64 {
        let found = outcome.metrics.iter().find(|(n, _)| n == name);
        found.and_then(|(_, value)| *value).unwrap()
    }

    #[test]
    fn the_counters_are_those_of_arithmetic() {
        // After a warm-up, so that the window does not begin with part of a period: ten of them,
        // each with 20 ms of running and 80 ms of waiting. A tick more or less at either end.
        let line = "hogs --tasks 1 --duration 1s --warmup 250ms --cpu-max 20ms/100ms";
        for profile in ["linux-6.18", "linux-6.12-lts"] {
            let done = hogs(profile, line);
            assert_eq!(metric(&done, "nr_periods"), 10.0, "{profile}");
            assert_eq!(metric(&done, "nr_throttled"), 10.0, "{profile}");
            assert_eq!(metric(&done, "throttled_pct"), 100.0, "{profile}");
            let throttled = metric(&done, "throttled_usec");
            assert!((throttled - 800e3).abs() < 5e3, "{profile}: {throttled}");
            let usage = metric(&done, "usage_usec");
            assert!((usage - 200e3).abs() < 5e3, "{profile}: {usage}");
            assert_eq!(metric(&done, "nr_bursts"), 0.0);
            assert_eq!(done.groups.len(), 1);
            assert_eq!(done.groups[0].quota_ns, Some(20_000_000));
        }
    }

    #[test]
    fn throttled_time_is_that_of_all_queues() {
        // Two CPUs use up 40 ms in 20 ms, and wait for 80 ms each.
        let line = "hogs --tasks 2 --duration 1s --warmup 250ms --cpu-max 40ms/100ms";
        let done = hogs("linux-6.18", line);
        assert_eq!(metric(&done, "nr_throttled"), 10.0);
        let throttled = metric(&done, "throttled_usec");
        assert!((throttled - 1600e3).abs() < 20e3, "{throttled}");
    }

    #[test]
    fn a_limit_that_is_never_reached_throttles_nothing() {
        let line = "hogs --tasks 1 --duration 1s --warmup 250ms --cpu-max 200ms/100ms";
        let done = hogs("linux-6.18", line);
        assert_eq!(metric(&done, "nr_periods"), 10.0);
        assert_eq!(metric(&done, "nr_throttled"), 0.0);
        assert_eq!(metric(&done, "throttled_usec"), 0.0);
        let usage = metric(&done, "usage_usec");
        assert!((usage - 1e6).abs() < 5e3, "{usage}");
    }

    /// Two hogs each in two groups on two CPUs, one with three times the weight of the other.
    #[test]
    fn a_weight_is_told_with_what_it_gives() {
        let tasks = |group: &str| {
            format!(
                "[[task]]\nname = \"{group}\"\ncount = 2\ncgroup = \"/{group}\"\n\
                 steps = [\"hog\"]\n"
            )
        };
        let scenario = format!(
            "name = \"weights\"\nduration = \"500ms\"\n[[cgroup]]\npath = \"/a\"\n\
             \"cpu.weight\" = 300\n[[cgroup]]\npath = \"/b\"\n{}{}",
            tasks("a"),
            tasks("b")
        );
        let scenario = Scenario::parse("weights.toml", &scenario).unwrap();
        let workload = scenario.workload(&Env { cpus: 2 }).unwrap();
        let done = on_guest(Features::default(), &workload);
        let [group] = &done.groups[..] else {
            panic!("one has a weight of its own: {:?}", done.groups);
        };
        assert_eq!(
            (&*group.path, group.shares, group.counted),
            ("/a", 3072, false)
        );
        let share = group.stat.usage_ns as f64 / 1e9;
        assert!(
            (share - 0.75).abs() < 0.02,
            "of two CPUs for 0.5 s: {share}"
        );
        assert!(done.metrics.iter().all(|(name, _)| name != "usage_usec"));
    }

    #[test]
    fn without_a_limit_there_are_no_counters() {
        let done = hogs("linux-6.18", "hogs --tasks 1 --duration 10ms");
        assert!(done.groups.is_empty());
        assert!(done.metrics.iter().all(|(name, _)| name != "nr_periods"));
    }
}
