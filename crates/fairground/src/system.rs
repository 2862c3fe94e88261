//! Everything that more than one CPU reaches: built once, then changed only through atomics.
//!
//! | part | kind | who writes |
//! | --- | --- | --- |
//! | `features`, `topology` | fixed `[set]` | the builder |
//! | `cpu` | published `[pub]` | the CPU's queue holder (`Rq::publish`), flags by anyone |
//! | `tg`, `llc`, `rd`, `nohz`, `task` | shared `[any]` | any CPU |

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::policy::Features;
use crate::shared::{CpuShared, LlcShared, Nohz, Relaxed, RootDomain, TaskGroup, TaskShared};
use crate::topology::{CpuPlace, Topology};
use crate::value::{Cpu, CpuMask, TaskId, TgId};

/// Properties of the machine that decide which code runs, the kernel's static keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MachineTraits {
    /// Cores have several threads (`sched_smt_active`).
    pub smt: bool,
    /// There are clusters of cores (`sched_cluster_active`).
    pub clusters: bool,
    /// CPUs differ in capacity (`sched_asym_cpucap_active`).
    pub asym_capacity: bool,
}

impl MachineTraits {
    fn of(topology: &Topology) -> Self {
        let first = topology.places.first().map(|p| p.capacity);
        let mut domains = topology.domains.iter().flatten();
        Self {
            smt: topology.smt_active(),
            clusters: domains.any(|sd| sd.flags.cluster),
            asym_capacity: topology.places.iter().any(|p| Some(p.capacity) != first),
        }
    }
}

/// The shared state of one machine. `Sync`, and no lock inside.
#[derive(Debug)]
pub struct System {
    /// The chosen behaviour. `[set]`: what [`System::new`] has checked and scaled. Writing to it
    /// later goes round [`Features::check`], and misses what was made from it, so it is for tests
    /// that change one decision.
    pub features: Features,
    /// CPUs and domains.
    pub topology: Topology,
    /// What kind of machine that is.
    pub traits: MachineTraits,
    /// Words of each CPU that others read.
    pub cpu: Vec<CpuShared>,
    /// Task groups; 0 is the root.
    pub tg: Vec<TaskGroup>,
    /// Words of each task that others read.
    pub task: Vec<TaskShared>,
    /// Last-level caches.
    pub llc: Vec<LlcShared>,
    /// The root domain.
    pub rd: RootDomain,
    /// Idle balancing.
    pub nohz: Nohz,
    /// Groups with a quota. While there are none, nothing of bandwidth control is looked at: the
    /// kernel patches its code (a static key), so that reading this is not a touch.
    bandwidth_users: AtomicU32,
    /// Where the period timers of all groups fire, where they do so together: ns from a multiple of
    /// the period; `u64::MAX` = not known yet.
    period_phase: AtomicU64,
    /// See [`System::hurry_vruntime`].
    vruntime_shift: AtomicU32,
    /// See [`System::hurry_load_time`].
    load_hurry: [Hurry; 2],
}

/// A stretch of the scheduler clock, ns, in which load tracking's time runs `2^shift` times as
/// fast.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hurry {
    /// Its begin.
    pub from: u64,
    /// Its end.
    pub until: u64,
    /// 0 is the kernel's pace; 16 at most.
    pub shift: u32,
}

impl System {
    /// A machine with the root group and no tasks; scales the tunables by its number of CPUs.
    ///
    /// # Panics
    /// If the topology has no CPU, which one that was built always has, or a decision has a value
    /// that it does not take ([`Features::check`]), which those set by name never have.
    #[must_use]
    pub fn new(mut features: Features, mut topology: Topology) -> Self {
        assert_eq!(features.check(), Ok(()));
        let n = topology.nr_cpus();
        assert!(n > 0, "a machine has a CPU");
        topology.limit_domains(features.load_balance.limits);
        features.tunables = features.tunables.scaled(n);
        let traits = MachineTraits::of(&topology);
        let cost_ns = features.newidle.migration_cost_ns;
        let words = |(cpu, place): (u32, &CpuPlace)| {
            let words = CpuShared::default().init_max_idle_balance_cost(cost_ns);
            words.capacity.store(place.capacity.into(), Relaxed);
            words.distribute_after(Cpu(cpu))
        };
        let llc = |span: &CpuMask| LlcShared::new(span.weight(), traits.smt);
        Self {
            features,
            cpu: (0..).zip(&topology.places).map(words).collect(),
            tg: alloc::vec![TaskGroup::root(n)],
            task: Vec::new(),
            llc: topology.llc_span.iter().map(llc).collect(),
            traits,
            rd: RootDomain::default(),
            nohz: Nohz::new(),
            bandwidth_users: AtomicU32::new(0),
            period_phase: AtomicU64::new(u64::MAX),
            vruntime_shift: AtomicU32::new(0),
            load_hurry: [Hurry::default(); 2],
            topology,
        }
    }

    /// Number of CPUs.
    #[must_use]
    pub fn nr_cpus(&self) -> usize {
        self.cpu.len()
    }

    /// All CPUs.
    #[must_use]
    pub fn cpus(&self) -> CpuMask {
        CpuMask::first_n(self.nr_cpus())
    }

    /// Whether any group has a quota (`cfs_bandwidth_used`).
    #[inline]
    #[must_use]
    pub fn bandwidth_used(&self) -> bool {
        self.bandwidth_users.load(Relaxed) > 0
    }

    pub(crate) fn bandwidth_usage_inc(&self) {
        self.bandwidth_users.fetch_add(1, Relaxed);
    }

    /// The phase that the period timers of all groups have in common, ns; the first group to have a
    /// quota `draw`s it.
    pub(crate) fn common_period_phase(&self, draw: impl FnOnce() -> u64) -> u64 {
        let known = self.period_phase.load(Relaxed);
        if known != u64::MAX {
            return known;
        }
        let phase = draw();
        self.period_phase.store(phase, Relaxed);
        phase
    }

    pub(crate) fn bandwidth_usage_dec(&self) {
        self.bandwidth_users.fetch_sub(1, Relaxed);
    }

    /// From now on virtual time runs `2^shift` times as fast as run time. For hosts that bring a
    /// machine nearer to where minutes would bring it: what waiting tasks and sleepers come to have
    /// ahead of others grows so much faster. 0 is the kernel's.
    pub fn hurry_vruntime(&self, shift: u32) {
        self.vruntime_shift.store(shift.min(16), Relaxed);
    }

    #[inline]
    pub(crate) fn vruntime_shift(&self) -> u32 {
        self.vruntime_shift.load(Relaxed)
    }

    /// Load tracking's time runs faster in these two stretches, which are to come. For hosts that
    /// bring a machine nearer to where seconds would bring it: averages over 32 ms, and what
    /// the balancer and wake-ups conclude from them, come to their steady values sooner.
    pub fn hurry_load_time(&mut self, stretches: [Hurry; 2]) {
        self.load_hurry = stretches;
    }

    /// How far load tracking's time is ahead of the scheduler clock at `clock`, ns.
    #[inline]
    pub(crate) fn load_time_ahead(&self, clock: u64) -> u64 {
        let gained = |h: &Hurry| {
            let passed = clock.min(h.until).saturating_sub(h.from);
            (passed << h.shift.min(16)) - passed
        };
        gained(&self.load_hurry[0]) + gained(&self.load_hurry[1])
    }

    /// Adds a group below `parent` with the default weight. What it needs for each CPU comes when
    /// it is opened ([`open_group`](Self::open_group)), and with its queue there.
    #[must_use = "it is the only way to the group, which cannot be removed"]
    pub fn add_group(&mut self, parent: TgId) -> TgId {
        let id = TgId(self.tg.len() as u32);
        let depth = self.tg[parent.idx()].depth + 1;
        self.tg.push(TaskGroup::new(id, parent, depth));
        self.tg[parent.idx()].children.push(id);
        id
    }

    /// Adds the shared words of a new task of `tg`, and the per-CPU words of that group and of
    /// those above it if it is the first.
    pub fn add_task(&mut self, tg: TgId) -> TaskId {
        let id = TaskId(self.task.len() as u32);
        self.task.push(TaskShared::default());
        self.open_group(tg);
        id
    }

    /// Makes the per-CPU words of `tg` and of the groups above it, before a task enters it.
    pub fn open_group(&mut self, tg: TgId) {
        let n = self.nr_cpus();
        let mut tg = tg;
        loop {
            let group = &mut self.tg[tg.idx()];
            group.open(n);
            match group.parent {
                Some(parent) => tg = parent,
                None => return,
            }
        }
    }

    /// Counts `ns` that a task of a higher class has run, in the `cpu.stat` of its group and of
    /// those above. No quota is drawn for it: `cpu.max` limits fair tasks only.
    pub fn charge_higher(&self, tg: TgId, ns: u64) {
        let mut tg = Some(tg);
        while let Some(group) = tg.map(|tg| &self.tg[tg.idx()]) {
            group.charge_higher(ns);
            tg = group.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rq::{RqClock, Runs};
    use crate::sched::{sched_tick, schedule, set_bandwidth};
    use crate::task::Prev;
    use crate::testing::Bench;
    use crate::topology::{CpuPlace, Machine};

    #[test]
    fn load_tracking_runs_faster_only_in_its_stretches() {
        let one = Machine {
            cpus: alloc::vec![CpuPlace::default()],
            ..Machine::default()
        };
        let mut sys = System::new(
            Features::default(),
            Topology::build(&one).expect("a machine"),
        );
        assert_eq!(sys.load_time_ahead(u64::MAX >> 8), 0);
        let stretch = |from, until, shift| Hurry { from, until, shift };
        sys.hurry_load_time([stretch(1000, 1100, 4), stretch(1100, 1300, 2)]);
        let ahead = [0, 1000, 1001, 1100, 1101, 1300, 9000].map(|at| sys.load_time_ahead(at));
        assert_eq!(ahead, [0, 0, 15, 1500, 1503, 2100, 2100]);
    }

    /// As `cpu.stat` counts it, and `cpu.max` does not.
    #[test]
    fn time_of_a_higher_class_is_charged_to_the_group_and_those_above_but_draws_no_quota() {
        let mut bench = Bench::new(1, Features::default());
        let outer = bench.sys.add_group(TgId::ROOT);
        let [inner, beside] = [(); 2].map(|()| bench.sys.add_group(outer));
        let (quota, period) = (10_000_000, 100_000_000);
        bench.call(0, |cx, rqs| {
            for tg in [outer, inner] {
                set_bandwidth(cx, rqs, tg, Some(quota), period, 0).expect("a quota");
            }
        });
        let runtime =
            |sys: &System| [outer, inner].map(|tg| sys.tg[tg.idx()].bandwidth.peek_runtime());
        let before = runtime(&bench.sys);
        bench.sys.charge_higher(inner, 70_000_000);
        bench.sys.charge_higher(outer, 5_000_000);
        let charged = [inner, outer, TgId::ROOT, beside].map(|tg| {
            let stat = bench.sys.tg[tg.idx()].cpu_stat();
            assert_eq!(stat.nr_throttled, 0);
            stat.usage_ns
        });
        assert_eq!(charged, [70_000_000, 75_000_000, 75_000_000, 0]);
        assert_eq!(runtime(&bench.sys), before);
        // Beside fair tasks of the group it is added to theirs, and they still get the quota.
        bench.start(0, inner);
        let _ = bench.call(0, |cx, rqs| schedule(cx, rqs, Prev::Runnable));
        bench.host.now += 4_000_000;
        bench.call(0, sched_tick);
        let usage = |tg: TgId| bench.sys.tg[tg.idx()].cpu_stat().usage_ns;
        assert_eq!([inner, outer].map(usage), [74_000_000, 79_000_000]);
        let slot = bench.rqs[0].curr.expect("runs").idx();
        let body = bench.rqs[0].body[slot].as_deref().expect("a task");
        assert!(!body.throttle_work);
    }

    /// Else the first tick would divide by zero.
    #[test]
    #[should_panic(expected = "BadValue")]
    fn a_machine_without_ticks_is_not_built() {
        let features = Features {
            hz: 0,
            ..Features::default()
        };
        let _ = System::new(features, Topology::default());
    }

    #[test]
    fn a_hurried_clock_is_ahead_by_the_same_whether_its_cpu_was_busy_or_idle() {
        let (mut busy, mut idle) = (RqClock::new(1000, 1024), RqClock::new(1000, 1024));
        for (at, ahead) in [(1010, 150), (1100, 1500), (2000, 1500)] {
            busy.advance(at, ahead, Runs::Work);
            idle.advance(at, ahead, Runs::IdleTask);
        }
        assert_eq!((busy.pelt(), idle.pelt()), (3500, 3500));
        assert_eq!(
            (busy.task, idle.task),
            (2000, 2000),
            "run time is not hurried"
        );
    }
}
