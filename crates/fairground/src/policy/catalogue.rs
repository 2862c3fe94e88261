//! Every switch, patch and profile as one row each: the command line, the documentation, the
//! manifest of a result and the tests are made from these.

use super::{
    CfsTunables, DelayDequeue, Features, HLoad, IdlestTie, IlbKick, IlbPick, LayoutId, LoadBalance,
    Newidle, NextBuddy, Pick, PlaceEntity, RunToParity, ScanBudget, TgLoadAvg, Throttle, TtwuQueue,
    TunableScaling, WakeAffine, WakeupPreemption,
};
use alloc::string::{String, ToString};

/// One decision point as a named value.
pub struct Decision {
    /// Name for `--set NAME=VALUE`.
    pub name: &'static str,
    /// What it decides.
    pub what: &'static str,
    /// The values it takes, for messages.
    pub values: &'static str,
    /// Reads it.
    pub get: fn(&Features) -> String,
    /// Sets it; false if the value is not one of `values`.
    pub set: fn(&mut Features, &str) -> bool,
}

/// A published change: the decisions it sets on top of a profile.
pub struct Patch {
    /// Name for `--patch NAME`.
    pub name: &'static str,
    /// Number of the founding change, if it is one.
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
pub struct Profile {
    /// Name for `--profile NAME`.
    pub name: &'static str,
    /// One line.
    pub what: &'static str,
    /// What it sets on top of `linux-6.18`.
    pub sets: &'static [(&'static str, &'static str)],
}

/// Why a setting was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetError {
    /// No decision has this name.
    UnknownDecision(String),
    /// The decision does not take this value.
    BadValue {
        /// The decision.
        decision: &'static str,
        /// The value given.
        value: String,
        /// The values it takes.
        values: &'static str,
    },
}

impl Features {
    /// Sets one decision by name.
    ///
    /// # Errors
    /// When the name or the value is unknown.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        let decision = decisions()
            .iter()
            .find(|d| d.name == name)
            .ok_or_else(|| SetError::UnknownDecision(name.to_string()))?;
        if (decision.set)(self, value) {
            return Ok(());
        }
        Err(SetError::BadValue {
            decision: decision.name,
            value: value.to_string(),
            values: decision.values,
        })
    }

    /// Sets a row of pairs, which the tests know to be valid.
    pub fn set_all(&mut self, pairs: &[(&str, &str)]) {
        for (name, value) in pairs {
            let done = self.set(name, value);
            debug_assert!(done.is_ok(), "catalogue rows are valid: {done:?}");
        }
    }
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
];

/// Kernel versions, newest first.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "linux-6.18",
        what: "Linux 6.18 (stable), the default",
        sets: &[],
    },
    Profile {
        name: "linux-6.12-lts",
        what: "Linux 6.12.117 with its backports",
        sets: &[
            ("lb_eligible_first", "off"),
            ("run_to_parity", "own-slice"),
            ("throttle", "whole-queue"),
            ("next_buddy", "off"),
        ],
    },
    Profile {
        name: "linux-6.9",
        what: "Linux 6.9: EEVDF without delayed dequeue, idle-balancer flags always written",
        sets: &[
            ("lb_eligible_first", "off"),
            ("run_to_parity", "own-slice"),
            ("throttle", "whole-queue"),
            ("next_buddy", "off"),
            ("delay_dequeue", "off"),
            ("place_rel_deadline", "off"),
            ("wakeup_preemption", "on"),
            ("base_slice_ns", "750000"),
            ("newidle_proportional", "off"),
            ("ilb_kick", "always"),
        ],
    },
    Profile {
        name: "linux-6.5",
        what: "Linux 6.5: CFS, group load published at every change",
        sets: &[
            ("lb_eligible_first", "off"),
            ("pick", "cfs"),
            ("throttle", "whole-queue"),
            ("delay_dequeue", "off"),
            ("wakeup_preemption", "on"),
            ("newidle_proportional", "off"),
            ("ilb_kick", "always"),
            ("tg_load_avg_period_ns", "0"),
        ],
    },
    Profile {
        name: "linux-5.8",
        what: "Linux 5.8: CFS, no tie-break in the slow path, scan by average idle time",
        sets: &[
            ("lb_eligible_first", "off"),
            ("pick", "cfs"),
            ("throttle", "whole-queue"),
            ("delay_dequeue", "off"),
            ("wakeup_preemption", "on"),
            ("newidle_proportional", "off"),
            ("ilb_kick", "always"),
            ("tg_load_avg_period_ns", "0"),
            ("idlest_tie", "first-group"),
            ("scan_budget", "prop"),
        ],
    },
    Profile {
        name: "linux-3.10",
        what: "Linux 3.10: CFS, h_load of all groups before each balance (decisions named here \
               only; load tracking and balancing are those of the newer kernels)",
        sets: &[
            ("lb_eligible_first", "off"),
            ("pick", "cfs"),
            ("throttle", "whole-queue"),
            ("delay_dequeue", "off"),
            ("wakeup_preemption", "on"),
            ("newidle_proportional", "off"),
            ("ilb_kick", "always"),
            ("tg_load_avg_period_ns", "0"),
            ("idlest_tie", "first-group"),
            ("scan_budget", "all"),
            ("h_load", "eager"),
            ("util_est", "off"),
        ],
    },
];

/// The behaviour of Linux 6.18.
pub(super) fn linux_6_18() -> Features {
    Features {
        pick: Pick::Eevdf,
        place: PlaceEntity::LINUX_6_18,
        run_to_parity: RunToParity::ShortestSlice,
        delay_dequeue: DelayDequeue::KeepZero,
        wakeup_preemption: WakeupPreemption::OnShorterSlice,
        next_buddy: NextBuddy::Group,
        tunables: CfsTunables {
            base_slice_ns: 700_000,
            quantum_ns: 700_000,
            latency_ns: 6_000_000,
            min_granularity_ns: 750_000,
            wakeup_granularity_ns: 1_000_000,
            scaling: TunableScaling::Log,
        },
        tg_load_avg: TgLoadAvg::RATE_LIMITED,
        h_load: HLoad::OnDemand,
        ilb_kick: IlbKick::SkipRedundant,
        ilb_pick: IlbPick::First,
        idlest_tie: IdlestTie::GroupUtil,
        throttle: Throttle::AtUserReturn,
        ttwu_queue: TtwuQueue::Remote,
        wake_affine: WakeAffine {
            idle: true,
            weight: true,
            bias: true,
        },
        scan_budget: ScanBudget::Util,
        newidle: Newidle {
            migration_cost_ns: 500_000,
            proportional: true,
        },
        load_balance: LoadBalance {
            nr_migrate: 32,
            newidle_moves_one: true,
            eligible_first: true,
        },
        util_est: true,
        attach_age_load: true,
        layout: LayoutId::Linux615,
        hz: 1000,
    }
}

fn switch(value: &str) -> Option<bool> {
    match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

const fn on_off(value: bool) -> &'static str {
    if value { "on" } else { "off" }
}

/// A decision that is one of a few named values.
macro_rules! named {
    ($name:literal, $what:literal, $values:literal, $f:ident, $place:expr,
     $($text:literal => $value:expr),+ $(,)?) => {
        Decision {
            name: $name,
            what: $what,
            values: $values,
            get: |$f| {
                $(if $place == $value { return $text.to_string(); })+
                String::new()
            },
            set: |$f, v| {
                match v {
                    $($text => $place = $value,)+
                    _ => return false,
                }
                true
            },
        }
    };
}

/// A decision that is a switch.
macro_rules! flag {
    ($name:literal, $what:literal, $f:ident, $place:expr) => {
        Decision {
            name: $name,
            what: $what,
            values: "on, off",
            get: |$f| on_off($place).to_string(),
            set: |$f, v| switch(v).map(|on| $place = on).is_some(),
        }
    };
}

/// A decision that is a number within limits.
macro_rules! number {
    ($name:literal, $what:literal, $values:literal, $range:expr, $f:ident, $place:expr) => {
        Decision {
            name: $name,
            what: $what,
            values: $values,
            get: |$f| $place.to_string(),
            set: |$f, v| match v.parse() {
                Ok(n) if $range.contains(&n) => {
                    $place = n;
                    true
                }
                _ => false,
            },
        }
    };
}

/// All decision points by name.
#[must_use]
pub fn decisions() -> &'static [Decision] {
    &DECISIONS
}

static DECISIONS: [Decision; 34] = [
    named!("pick", "whom to pick", "eevdf, cfs", f, f.pick,
        "eevdf" => Pick::Eevdf, "cfs" => Pick::Cfs),
    flag!(
        "place_lag",
        "keep lag over sleep (PLACE_LAG)",
        f,
        f.place.lag
    ),
    flag!(
        "place_deadline_initial",
        "half a slice for new tasks",
        f,
        f.place.deadline_initial
    ),
    flag!(
        "place_rel_deadline",
        "keep the rest of the deadline over a move",
        f,
        f.place.rel_deadline
    ),
    flag!(
        "gentle_fair_sleepers",
        "half the latency as sleeper credit (CFS)",
        f,
        f.place.gentle_sleepers
    ),
    flag!(
        "start_debit",
        "new tasks start one slice late (CFS)",
        f,
        f.place.start_debit
    ),
    named!("run_to_parity", "slice protection", "off, own-slice, shortest-slice", f, f.run_to_parity,
        "off" => RunToParity::Off, "own-slice" => RunToParity::OwnSlice,
        "shortest-slice" => RunToParity::ShortestSlice),
    named!("delay_dequeue", "sleepers that owe service", "off, keep, keep-zero", f, f.delay_dequeue,
        "off" => DelayDequeue::Off, "keep" => DelayDequeue::Keep,
        "keep-zero" => DelayDequeue::KeepZero),
    named!("wakeup_preemption", "preemption by a wake-up", "off, on, on-shorter-slice",
        f, f.wakeup_preemption,
        "off" => WakeupPreemption::Off, "on" => WakeupPreemption::On,
        "on-shorter-slice" => WakeupPreemption::OnShorterSlice),
    named!("next_buddy", "who is preferred at the next pick of its queue", "off, group, on",
        f, f.next_buddy,
        "off" => NextBuddy::Off, "group" => NextBuddy::Group, "on" => NextBuddy::On),
    number!(
        "base_slice_ns",
        "request size before scaling, ns",
        "100000..=100000000",
        (100_000..=100_000_000),
        f,
        f.tunables.base_slice_ns
    ),
    number!(
        "sched_latency_ns",
        "CFS latency before scaling, ns",
        "100000..=1000000000",
        (100_000..=1_000_000_000),
        f,
        f.tunables.latency_ns
    ),
    number!(
        "sched_min_granularity_ns",
        "CFS granularity before scaling, ns",
        "100000..=1000000000",
        (100_000..=1_000_000_000),
        f,
        f.tunables.min_granularity_ns
    ),
    number!(
        "sched_wakeup_granularity_ns",
        "CFS wake-up granularity before scaling, ns",
        "0..=1000000000",
        (0..=1_000_000_000),
        f,
        f.tunables.wakeup_granularity_ns
    ),
    named!("tunable_scaling", "growth of the tunables with CPUs", "none, log, linear",
        f, f.tunables.scaling,
        "none" => TunableScaling::None, "log" => TunableScaling::Log,
        "linear" => TunableScaling::Linear),
    number!(
        "tg_load_avg_period_ns",
        "shortest time between two publications of a queue's load",
        "0..=1000000000 (0 = every change)",
        (0..=1_000_000_000),
        f,
        f.tg_load_avg.period_ns
    ),
    named!("h_load", "when hierarchical load is computed", "eager, on-demand", f, f.h_load,
        "eager" => HLoad::Eager, "on-demand" => HLoad::OnDemand),
    named!("ilb_kick", "writing idle-balancer flags", "always, skip-redundant", f, f.ilb_kick,
        "always" => IlbKick::Always, "skip-redundant" => IlbKick::SkipRedundant),
    named!("ilb_pick", "which idle CPU balances", "first, wrap", f, f.ilb_pick,
        "first" => IlbPick::First, "wrap" => IlbPick::Wrap),
    named!("idlest_tie", "tie-break of the fork path", "first-group, group-util, nr-running",
        f, f.idlest_tie,
        "first-group" => IdlestTie::FirstGroup, "group-util" => IdlestTie::GroupUtil,
        "nr-running" => IdlestTie::NrRunning),
    named!("throttle", "how quota is enforced", "whole-queue, at-user-return", f, f.throttle,
        "whole-queue" => Throttle::WholeQueue, "at-user-return" => Throttle::AtUserReturn),
    named!("ttwu_queue", "remote wake-up list", "direct, remote", f, f.ttwu_queue,
        "direct" => TtwuQueue::Direct, "remote" => TtwuQueue::Remote),
    flag!(
        "wa_idle",
        "wake-affine: idle CPUs first",
        f,
        f.wake_affine.idle
    ),
    flag!(
        "wa_weight",
        "wake-affine: compare loads",
        f,
        f.wake_affine.weight
    ),
    flag!(
        "wa_bias",
        "wake-affine: bias to the previous CPU",
        f,
        f.wake_affine.bias
    ),
    named!("scan_budget", "CPUs looked at for an idle one", "util, prop, all", f, f.scan_budget,
        "util" => ScanBudget::Util, "prop" => ScanBudget::Prop, "all" => ScanBudget::All),
    number!(
        "migration_cost_ns",
        "sched_migration_cost",
        "0..=100000000",
        (0..=100_000_000),
        f,
        f.newidle.migration_cost_ns
    ),
    flag!(
        "newidle_proportional",
        "newly-idle attempts in proportion to success",
        f,
        f.newidle.proportional
    ),
    number!(
        "nr_migrate",
        "tasks looked at under one lock",
        "1..=1024",
        (1..=1024),
        f,
        f.load_balance.nr_migrate
    ),
    flag!(
        "newidle_moves_one",
        "a newly idle CPU pulls one task at most (CONFIG_PREEMPTION)",
        f,
        f.load_balance.newidle_moves_one
    ),
    flag!(
        "lb_eligible_first",
        "balancing moves tasks with lag left first",
        f,
        f.load_balance.eligible_first
    ),
    flag!("util_est", "estimated utilisation", f, f.util_est),
    named!("layout", "field order", "linux-6.15, reordered, engine", f, f.layout,
        "linux-6.15" => LayoutId::Linux615, "reordered" => LayoutId::Reordered,
        "engine" => LayoutId::Engine),
    number!("hz", "ticks a second", "100..=1000", (100..=1000), f, f.hz),
];

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_decision_reads_back_its_default() {
        let mut f = Features::default();
        for d in decisions() {
            let value = (d.get)(&f);
            assert!((d.set)(&mut f, &value), "{} = {value}", d.name);
        }
        assert_eq!(f, Features::default());
    }

    #[test]
    fn a_patch_changes_its_base() {
        for p in CATALOGUE {
            let (mut base, mut patch) = (Features::default(), Features::default());
            base.set_all(p.base);
            patch.set_all(p.sets);
            assert_ne!(base, patch, "{}", p.name);
        }
    }
}
