//! Every patch and profile as one row each: the command line, the documentation, the manifest of
//! a result and the tests are made from these, and from the decisions of `decisions.rs`.

use super::{
    BuddyRules, CfsTunables, DelayDequeue, Features, HLoad, Hrtick, IdlePreemption, IdleSearch,
    IdleSwitch, IdleTick, IdlestStats, IdlestTie, IlbCsd, IlbKick, IlbPick, InitUtil, LagLimit,
    LayoutId, LoadBalance, LoadRules, Menu, MmCpumask, Newidle, NewidleGate, NextBuddy,
    NumaImbalance, OpenFiles, OtherClasses, PROFILES, PeriodPhase, Pick, PlaceEntity, Preemption,
    QuotaExpiry, RecentUsedCpu, Reweight, RunToParity, ScanBudget, TgLoadAvg, Throttle,
    ThrottledClock, TtwuOnCpu, TtwuQueue, VruntimeBase, WakeAffine, WakeupDelayed,
    WakeupPreemption, Yielding,
};

/// A published change: the decisions it sets on top of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Patch {
    /// Name for `--patch NAME`.
    pub name: &'static str,
    /// Number of its experiment (`reproduce`), if its author published tables.
    pub seed: Option<u8>,
    /// Where it was published, and the kernel that has it.
    pub origin: &'static str,
    /// One line.
    pub what: &'static str,
    /// What it sets.
    pub sets: &'static [(&'static str, &'static str)],
    /// What the kernel without it does: set for the base of a comparison, because the default
    /// profile already has most published changes.
    pub base: &'static [(&'static str, &'static str)],
}

/// A kernel version: what differs from the newest one.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name for `--profile NAME`.
    pub name: &'static str,
    /// One line.
    pub what: &'static str,
    /// What it sets on top of `linux-6.18`.
    pub sets: &'static [(&'static str, &'static str)],
}

impl Features {
    /// The behaviour of a kernel version.
    ///
    /// # Panics
    /// As [`Profile::apply`].
    #[must_use]
    pub fn of_profile(profile: &Profile) -> Self {
        let mut features = Self::default();
        profile.apply(&mut features);
        features
    }
}

impl Profile {
    /// Sets what this kernel does otherwise than the newest one.
    ///
    /// # Panics
    /// If it is no row of [`PROFILES`] and sets what does not exist.
    pub fn apply(&self, features: &mut Features) {
        set_row(features, self.sets);
    }
}

impl Patch {
    /// Applies the change.
    ///
    /// # Panics
    /// If it is no row of [`CATALOGUE`] and sets what does not exist.
    pub fn apply(&self, features: &mut Features) {
        set_row(features, self.sets);
    }

    /// Sets what the kernel without it does.
    ///
    /// # Panics
    /// As [`Patch::apply`].
    pub fn undo(&self, features: &mut Features) {
        set_row(features, self.base);
    }
}

fn set_row(features: &mut Features, row: &[(&str, &str)]) {
    let done = features.set_all(row);
    assert_eq!(done, Ok(()), "{row:?}");
}

/// The patch called `name`.
#[must_use]
pub fn find_patch(name: &str) -> Option<&'static Patch> {
    CATALOGUE.iter().find(|p| p.name == name)
}

/// The profile called `name`.
#[must_use]
pub fn find_profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|p| p.name == name)
}

/// Published changes.
pub static CATALOGUE: &[Patch] = &[
    Patch {
        name: "tg-load-avg-ratelimit",
        seed: Some(0),
        origin: "Aaron Lu, 2023-08-23; Linux 6.7 (1528c661c24b)",
        what: "publish a group's load at most once per ms and queue",
        sets: &[("tg_load_avg_period_ns", "1000000")],
        base: &[("tg_load_avg_period_ns", "0")],
    },
    Patch {
        name: "ilb-skip-redundant",
        seed: Some(1),
        origin: "Tim Chen, 2024-05-31; Linux 6.11 (f90cc919f9e5)",
        what: "do not write idle-balancer flags that are already set",
        sets: &[("ilb_kick", "skip-redundant")],
        base: &[("ilb_kick", "always")],
    },
    Patch {
        name: "idlest-util-tiebreak",
        seed: Some(2),
        origin: "Peter Puhov, 2020-06-16; Linux 5.9 (3edecfef0285)",
        what: "fork and exec: among groups with equally many idle CPUs take the least used",
        sets: &[("idlest_tie", "group-util")],
        base: &[("idlest_tie", "first-group")],
    },
    Patch {
        name: "lazy-h-load",
        seed: Some(3),
        origin: "Vladimir Davydov, 2013-07-13; Linux 3.12 (685207963be9)",
        what: "compute the hierarchical load of one queue when it is needed",
        sets: &[("h_load", "on-demand")],
        base: &[("h_load", "eager")],
    },
    Patch {
        name: "cfs-rq-reorder",
        seed: Some(4),
        origin: "Zecheng Li, 2025-06-02 (RFC v2)",
        what: "hot fields of cfs_rq and sched_entity together",
        sets: &[("layout", "reordered")],
        base: &[("layout", "linux-6.15")],
    },
    Patch {
        name: "rq-reorder",
        seed: None,
        origin: "Blake Jones, 2025-12-01; tip/sched/core of 2026-01-08 (89951fc1f820)",
        what: "what a balance reads of each other CPU on one line, its lock on the next",
        sets: &[("layout", "rq-reordered")],
        base: &[("layout", "linux-6.15")],
    },
    Patch {
        name: "quota-no-expiry",
        seed: None,
        origin: "Dave Chiluk, 2019-07-23; Linux 5.4 (de53fd7aedb1)",
        what: "what a CPU has drawn of a quota does not end with the period",
        sets: &[("quota_expiry", "off")],
        base: &[("quota_expiry", "period")],
    },
    Patch {
        name: "quota-drift-condition",
        seed: None,
        origin: "Xunlei Pang, 2018-06-20; Linux 4.18 (512ac999d275)",
        what: "it ends with the period, not only after the period timer has rested",
        sets: &[("quota_expiry", "period")],
        base: &[("quota_expiry", "drift")],
    },
    Patch {
        name: "wakeup-past-delayed",
        seed: None,
        origin: "Vincent Guittot, 2026-04-22; Linux 6.18-stable (ac8e69e69363)",
        what: "a delayed sleeper that is in the way of a wake-up's preemption leaves",
        sets: &[("wakeup_delayed", "leaves")],
        base: &[("wakeup_delayed", "blocks")],
    },
    Patch {
        name: "reweight-keeps-mean",
        seed: None,
        origin: "Peter Zijlstra, 2026-02-19; Linux 6.18.45 (revert of 6d71a9c61604)",
        what: "a running entity whose weight changes keeps its lag, and light groups their share",
        sets: &[("reweight", "keeps-mean")],
        base: &[("reweight", "as-joining")],
    },
    Patch {
        name: "next-buddy-eevdf",
        seed: None,
        origin: "Mel Gorman, 2025-11-12; Linux 6.19 and 6.18-stable (e837456fdca8, 15257cc2f905)",
        what: "forks preempt by a shorter slice only; wake-ups compare with the next buddy",
        sets: &[("buddy_rules", "eevdf")],
        base: &[("buddy_rules", "cfs")],
    },
    Patch {
        name: "lb-serialize-when-due",
        seed: None,
        origin: "Tim Chen, 2025-11-10; Linux 6.19 and 6.18.10 (3324b2180c17)",
        what: "the word for balancing between nodes is taken only when a balance is due",
        sets: &[("lb_serialize", "when-due")],
        base: &[("lb_serialize", "each-look")],
    },
    Patch {
        name: "lb-serialize-newidle",
        seed: None,
        origin: "Peter Zijlstra, 2025-11-12; Linux 6.19 and 6.18.10 (522fb20fbdbe)",
        what: "one CPU at a time balances between nodes when newly idle, too",
        sets: &[("lb_serialize", "newidle-too")],
        base: &[("lb_serialize", "when-due")],
    },
    Patch {
        name: "idlest-allowed-cpus",
        seed: None,
        origin: "Adam Li, 2025-10-11; Linux 6.19 and 6.18.39 (82d6e01a0699)",
        what: "fork and exec: CPUs that the task may not use do not count",
        sets: &[("idlest_stats", "allowed")],
        base: &[("idlest_stats", "all-cpus")],
    },
    Patch {
        name: "hrtick",
        seed: None,
        origin: "Peter Zijlstra, 2026-02-24; Linux 7.1 (558c18d3fbb6, 97015376642f, 9213aa4784cf)",
        what: "a timer ends a turn at its deadline, where the next tick would",
        sets: &[("hrtick", "deadline")],
        base: &[("hrtick", "off")],
    },
    Patch {
        name: "preempt-lazy",
        seed: None,
        origin: "Peter Zijlstra, 2024-10-07; Linux 6.13 (7c70cb94d29c), by preempt=lazy",
        what: "a fair task that should make room does so at the next tick or return to user space",
        sets: &[("preempt", "lazy")],
        base: &[("preempt", "voluntary")],
    },
];

/// The behaviour of Linux 6.18.
pub(super) fn linux_6_18() -> Features {
    Features {
        pick: Pick::Eevdf,
        vruntime_base: VruntimeBase::Mean,
        place: PlaceEntity::LINUX_6_18,
        run_to_parity: RunToParity::ShortestSlice,
        hrtick: Hrtick::Off,
        lag_limit: LagLimit::LongestSlice,
        reweight: Reweight::AsJoining,
        yielding: Yielding::Vruntime,
        delay_dequeue: DelayDequeue::KeepZero,
        wakeup_preemption: WakeupPreemption::OnShorterSlice,
        idle_preemption: IdlePreemption::Unprotected,
        wakeup_delayed: WakeupDelayed::Leaves,
        next_buddy: NextBuddy::Group,
        buddy_rules: BuddyRules::Eevdf,
        tunables: CfsTunables::LINUX_6_18,
        tg_load_avg: TgLoadAvg::RATE_LIMITED,
        h_load: HLoad::OnDemand,
        ilb_kick: IlbKick::SkipRedundant,
        ilb_csd: IlbCsd::IdleOnly,
        ilb_pick: IlbPick::First,
        idle_switch: IdleSwitch::Stays,
        idle_tick: IdleTick::AfterTick,
        polling_ipi: false,
        timer_pull: true,
        menu: Menu::BothEnds,
        files: OpenFiles::LINUX_6_18,
        mm_cpumask: MmCpumask::Lazy,
        idlest_tie: IdlestTie::GroupUtil,
        idlest_stats: IdlestStats::Allowed,
        throttle: Throttle::AtUserReturn,
        period_phase: PeriodPhase::Random,
        throttled_clock: ThrottledClock::Waiting,
        quota_expiry: QuotaExpiry::Off,
        ttwu_queue: TtwuQueue::Remote,
        ttwu_on_cpu: TtwuOnCpu::WakeList,
        wake_affine: WakeAffine {
            idle: true,
            weight: true,
            bias: true,
            prev_idle: true,
            ties: false,
        },
        sched_idle_cpu: true,
        scan_budget: ScanBudget::Util,
        idle_search: IdleSearch::ClusterFirst,
        recent_used_cpu: RecentUsedCpu::Prev,
        numa_imbalance: NumaImbalance::ImbNumaNr,
        newidle: Newidle {
            migration_cost_ns: 500_000,
            gate: NewidleGate::DomainCost,
            proportional: true,
        },
        load_balance: LoadBalance::LINUX_6_18,
        init_util: InitUtil::Weight,
        util_est: true,
        load: LoadRules::LINUX_6_18,
        other_classes: OtherClasses::Pelt,
        preempt: Preemption::Voluntary,
        sched_cluster: true,
        layout: LayoutId::Linux615,
        hz: 1000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::decisions;

    #[test]
    fn rows_set_what_they_say() {
        let rows = CATALOGUE.iter().flat_map(|p| p.sets.iter().chain(p.base));
        for (name, value) in rows.chain(PROFILES.iter().flat_map(|p| p.sets)) {
            let mut f = Features::default();
            f.set(name, value).expect("a row of the catalogue is valid");
            let d = decisions().iter().find(|d| d.name == *name).unwrap();
            assert_eq!((d.get)(&f), *value);
        }
    }

    #[test]
    fn a_patch_changes_its_base() {
        for p in CATALOGUE {
            let (mut base, mut patch) = (Features::default(), Features::default());
            p.undo(&mut base);
            p.apply(&mut patch);
            assert_ne!(base, patch, "{}", p.name);
        }
    }
}
