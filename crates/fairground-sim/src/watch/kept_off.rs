//! By whose quota the tasks of a group were kept off the CPU.
//!
//! `nr_throttled` of a group counts its own quota alone. Where a group above it has one, too, its
//! tasks wait as well when that one is used up, and nothing in the group's own `cpu.stat` says so.
//!
//! ```text
//!   /pod  40ms/100ms      a task of /pod/app waits in /pod/app, in /pod and in the root;
//!     /app  50ms/100ms    at each moment its wait is put down to the nearest of them whose queue
//!     /log  max           on its CPU is throttled, as in `explain` and in `quota`
//! ```
//!
//! So each wait has one cause, and the causes of a group add up. Where two queues above a task are
//! throttled at once, the nearest has all of it: a larger quota there may leave the task waiting
//! for the next one above. Times are summed over tasks: ten that wait for 1 ms have waited 10 ms.

use std::collections::BTreeMap;

use crate::cache::{NS, Ps};
use crate::workload::program::Workload;

/// For how long one group's quota kept the tasks of a group off the CPU, in the measured time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptOff {
    /// Path of the group whose tasks waited: its own and those of groups below.
    pub path: String,
    /// Path of the group whose quota was used up: the same, or one above.
    pub by: String,
    /// How long, ns, all tasks together.
    pub ns: u64,
}

/// What is known up to now.
#[derive(Debug)]
pub(super) struct Ledger {
    from: Ps,
    /// By the group that a task is in, and the one whose quota it waited for.
    waits: BTreeMap<(u32, u32), Ps>,
}

impl Ledger {
    /// Of waits after `from`.
    pub fn new(from: Ps) -> Self {
        Self {
            from,
            waits: BTreeMap::new(),
        }
    }

    /// A task of the group `of` waited for the quota of `by`.
    pub fn add(&mut self, of: u32, by: u32, since: Ps, at: Ps) {
        let waited = at.saturating_sub(since.max(self.from));
        if waited > 0 {
            *self.waits.entry((of, by)).or_default() += waited;
        }
    }

    /// All of it, in the order of the groups' numbers, and from a group upwards. A group with a
    /// limit has a row, maybe of 0, for its own quota and for each above: "not by its parent" is an
    /// answer, too. One without has a row where its tasks waited.
    pub fn end(self, workload: &Workload, path: &dyn Fn(u32) -> String) -> Vec<KeptOff> {
        let limited = workload.counted_groups();
        let is_limited = |g: u32| limited.binary_search(&g).is_ok();
        let mut all: BTreeMap<(u32, usize, u32), Ps> = BTreeMap::new();
        for group in &limited {
            for (up, by) in upwards(workload, *group).enumerate() {
                if is_limited(by) {
                    all.insert((*group, up, by), 0);
                }
            }
        }
        for ((of, by), waited) in self.waits {
            // A task that has just been moved to another group may still wait in the one before.
            let Some(up) = upwards(workload, of).position(|g| g == by) else {
                continue;
            };
            for (n, group) in upwards(workload, of).take(up + 1).enumerate() {
                *all.entry((group, up - n, by)).or_default() += waited;
            }
        }
        let told = |((group, _, by), waited): ((u32, usize, u32), Ps)| KeptOff {
            path: path(group),
            by: path(by),
            ns: waited / NS,
        };
        all.into_iter().map(told).collect()
    }
}

/// A group and all above it, up to the root.
fn upwards(workload: &Workload, group: u32) -> impl Iterator<Item = u32> {
    let parent = |g: &u32| (*g > 0).then(|| workload.cgroups[*g as usize].parent);
    std::iter::successors(Some(group), parent)
}

#[cfg(test)]
mod tests {
    use fairground::policy::Features;

    use super::*;
    use crate::machine::Setup;
    use crate::machine_file::Machine;
    use crate::outcome;
    use crate::spec::Scenario;
    use crate::workload::Env;
    use crate::workload::program::Cgroup;

    /// `/pod`, `/pod/app` and `/pod/log`, the first two with a quota.
    fn pod() -> Workload {
        let mut w = Workload::new("test", Vec::new());
        w.cgroups.push(Cgroup::new("/pod", 0));
        w.cgroups.push(Cgroup::new("/pod/app", 1));
        w.cgroups.push(Cgroup::new("/pod/log", 1));
        for group in &mut w.cgroups[1..3] {
            group.quota_ns = Some(5_000_000);
        }
        w
    }

    fn rows(ledger: Ledger) -> Vec<(u32, u32, u64)> {
        let rows = ledger.end(&pod(), &|g| g.to_string());
        let number = |text: &str| text.parse().unwrap();
        let row = |r: &KeptOff| (number(&r.path), number(&r.by), r.ns);
        rows.iter().map(row).collect()
    }

    #[test]
    fn waits_count_for_the_group_and_those_above_up_to_the_one_at_fault() {
        let mut ledger = Ledger::new(10 * NS);
        ledger.add(2, 2, 4 * NS, 13 * NS);
        ledger.add(2, 1, 20 * NS, 25 * NS);
        ledger.add(3, 1, 20 * NS, 22 * NS);
        ledger.add(1, 1, 30 * NS, 31 * NS);
        ledger.add(3, 1, 2 * NS, 9 * NS);
        // From 10 on: 3 for itself, 5 for the pod; the log 2; the pod 1 of its own and those 7.
        assert_eq!(rows(ledger), [(1, 1, 8), (2, 2, 3), (2, 1, 5), (3, 1, 2)]);
    }

    #[test]
    fn a_limited_group_that_never_waited_says_so_and_others_say_nothing() {
        assert_eq!(rows(Ledger::new(0)), [(1, 1, 0), (2, 2, 0), (2, 1, 0)]);
        // It waits in a group that it has left.
        let mut ledger = Ledger::new(0);
        ledger.add(3, 2, 0, 5 * NS);
        assert_eq!(rows(ledger), [(1, 1, 0), (2, 2, 0), (2, 1, 0)]);
    }

    /// One hog in `/pod/app`, alone on a machine of two CPUs: by hand each period of 100 ms has
    /// 100 ms less the smaller quota of waiting, and all of that is put down to the smaller one.
    #[test]
    fn the_tighter_of_two_limits_is_the_one_at_fault() {
        for (pod, app, by) in [(20, 50, "/pod"), (50, 20, "/pod/app")] {
            let text = format!(
                "name = \"nested\"\nduration = \"1s\"\nwarmup = \"250ms\"\n\
                 [[cgroup]]\npath = \"/pod\"\n\"cpu.max\" = \"{pod}ms/100ms\"\n\
                 [[cgroup]]\npath = \"/pod/app\"\n\"cpu.max\" = \"{app}ms/100ms\"\n\
                 [[task]]\nname = \"hog\"\ncgroup = \"/pod/app\"\nsteps = [\"hog\"]\n"
            );
            let scenario = Scenario::parse("nested.toml", &text).unwrap();
            let workload = scenario.workload(&Env { cpus: 2 }).unwrap();
            for profile in ["linux-6.18", "linux-6.12-lts"] {
                let profile = fairground::policy::find_profile(profile).unwrap();
                let setup = Setup {
                    machine: &Machine::builtin("spr-guest-2cpu").unwrap(),
                    features: Features::of_profile(profile),
                    workload: &workload,
                    seed: 1,
                    trace: false,
                };
                let watched = outcome::run_watched(&setup).unwrap().watched.unwrap();
                let of_app = watched.kept_off.iter().filter(|k| k.path == "/pod/app");
                let of_app: Vec<_> = of_app.collect();
                assert_eq!(of_app.len(), 2, "its own and the pod's");
                for kept in of_app {
                    let wanted = if kept.by == by { 800e6 } else { 0.0 };
                    let off = (kept.ns as f64 - wanted).abs();
                    assert!(off < 8e6, "{} ms by {}: {kept:?}", app, kept.by);
                }
            }
        }
    }
}
