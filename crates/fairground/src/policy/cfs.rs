//! Slices, latency and granularity, scaled by the number of CPUs.
//!
//! Source: Documentation/scheduler/sched-design-CFS.rst; debugfs `sched/tunable_scaling`.

/// What the slice of CFS is a part of.
///
/// Source: changelogs "sched,fair: Alternative sched_slice()" (Peter Zijlstra, `ALT_PERIOD` and
/// `BASE_SLICE`, in 5.13) and "sched/fair: Limit sched slice duration" (Vincent
/// Guittot, 2023-01, in 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CfsSlice {
    /// A period for the entities of the queue that it is on, however short the slice comes out (up
    /// to 5.12).
    Level,
    /// A period for all tasks of the CPU, at least the granularity, and at a tick at most the
    /// latency (6.3).
    Cpu,
}

/// How tunables grow with the number of CPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TunableScaling {
    /// Not at all.
    None,
    /// By `1 + log2(cpus)`, at most 8 CPUs counted: the default.
    Log,
    /// By the number of CPUs.
    Linear,
}

/// The tunables before scaling, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CfsTunables {
    /// `base_slice` of EEVDF.
    pub base_slice_ns: u64,
    /// `base_slice` before scaling, set by [`scaled`](Self::scaled).
    pub quantum_ns: u64,
    /// `sched_latency` of CFS.
    pub latency_ns: u64,
    /// `sched_min_granularity` of CFS.
    pub min_granularity_ns: u64,
    /// `sched_wakeup_granularity` of CFS.
    pub wakeup_granularity_ns: u64,
    /// Scaling rule.
    pub scaling: TunableScaling,
    /// Slices of CFS.
    pub cfs_slice: CfsSlice,
}

impl CfsTunables {
    /// As in Linux 6.18, and of CFS before.
    pub const LINUX_6_18: Self = Self {
        base_slice_ns: 700_000,
        quantum_ns: 700_000,
        latency_ns: 6_000_000,
        min_granularity_ns: 750_000,
        wakeup_granularity_ns: 1_000_000,
        scaling: TunableScaling::Log,
        cfs_slice: CfsSlice::Cpu,
    };

    /// The granularity of an idle entity beside others, ns, whatever the number of CPUs ("sched:
    /// reduce sched slice for SCHED_IDLE entities", Josh Don, 2021, for 5.16).
    pub const IDLE_MIN_GRANULARITY_NS: u64 = 750_000;

    /// What a sleeper is credited with before it is halved, ns; `idle` = of the idle policy, which
    /// counts since 5.16 ("sched: reduce sched slice for SCHED_IDLE entities").
    #[inline]
    #[must_use]
    pub const fn sleeper_ns(&self, idle: bool) -> u64 {
        match self.cfs_slice {
            CfsSlice::Cpu if idle => self.min_granularity_ns,
            CfsSlice::Cpu | CfsSlice::Level => self.latency_ns,
        }
    }

    /// The period in which each of `nr` entities should run once, ns: the latency, until that would
    /// cut slices below the granularity.
    #[inline]
    #[must_use]
    pub const fn period_ns(&self, nr: u64) -> u64 {
        if nr > self.nr_latency() {
            nr * self.min_granularity_ns
        } else {
            self.latency_ns
        }
    }

    /// How many entities fit into the latency (`sched_nr_latency`).
    #[inline]
    #[must_use]
    pub const fn nr_latency(&self) -> u64 {
        self.latency_ns.div_ceil(self.min_granularity_ns)
    }

    /// The factor for `cpus` CPUs.
    #[must_use]
    pub fn factor(&self, cpus: usize) -> u64 {
        let cpus = (cpus.max(1) as u64).min(8);
        match self.scaling {
            TunableScaling::None => 1,
            TunableScaling::Log => 1 + u64::from(cpus.ilog2()),
            TunableScaling::Linear => cpus,
        }
    }

    /// The values in effect on a machine of `cpus` CPUs.
    #[must_use]
    pub fn scaled(&self, cpus: usize) -> Self {
        let by = self.factor(cpus);
        Self {
            base_slice_ns: self.base_slice_ns * by,
            quantum_ns: self.base_slice_ns,
            latency_ns: self.latency_ns * by,
            min_granularity_ns: self.min_granularity_ns * by,
            wakeup_granularity_ns: self.wakeup_granularity_ns * by,
            scaling: TunableScaling::None,
            cfs_slice: self.cfs_slice,
        }
    }
}
