//! Every switch as a named value, with the values it takes.

use super::{
    BuddyRules, CfsSlice, DelayDequeue, DomainLimits, Features, HLoad, Hrtick, IdleTick, IdlestTie,
    IlbKick, IlbPick, LagLimit, LayoutId, NewidleGate, NextBuddy, NumaImbalance, Pick, QuotaExpiry,
    RunToParity, ScanBudget, Throttle, TtwuOnCpu, TtwuQueue, TunableScaling, WakeupDelayed,
    WakeupPreemption,
};
use alloc::string::{String, ToString};
use core::fmt;

/// One decision point as a named value.
#[derive(Debug)]
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

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownDecision(name) => write!(f, "no decision is called `{name}`"),
            Self::BadValue {
                decision,
                value,
                values,
            } => write!(f, "`{decision}` cannot be `{value}`; it takes {values}"),
        }
    }
}

impl core::error::Error for SetError {}

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

    /// Sets decisions by name, in order.
    ///
    /// # Errors
    /// The first name or value that is unknown; what comes before it is set.
    pub fn set_all(&mut self, pairs: &[(&str, &str)]) -> Result<(), SetError> {
        pairs
            .iter()
            .try_for_each(|(name, value)| self.set(name, value))
    }

    /// Whether each decision has a value that it takes: fields can be set to others.
    ///
    /// # Errors
    /// The first that has not.
    pub fn check(&self) -> Result<(), SetError> {
        let mut same = self.clone();
        decisions()
            .iter()
            .try_for_each(|d| same.set(d.name, &(d.get)(self)))
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

static DECISIONS: [Decision; 49] = [
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
    named!("run_to_parity", "slice protection", "off, own-slice, shortest-slice",
        f, f.run_to_parity,
        "off" => RunToParity::Off, "own-slice" => RunToParity::OwnSlice,
        "shortest-slice" => RunToParity::ShortestSlice),
    named!("cfs_slice", "what a slice of CFS is a part of: its queue's period, or the CPU's",
        "level, cpu", f, f.tunables.cfs_slice,
        "level" => CfsSlice::Level, "cpu" => CfsSlice::Cpu),
    named!("hrtick", "what ends a turn: the next tick, or a timer (HRTICK)",
        "off, slice, deadline", f, f.hrtick,
        "off" => Hrtick::Off, "slice" => Hrtick::Slice, "deadline" => Hrtick::Deadline),
    named!("lag_limit", "how much lag an entity keeps", "own-slice, longest-slice", f, f.lag_limit,
        "own-slice" => LagLimit::OwnSlice, "longest-slice" => LagLimit::LongestSlice),
    named!("delay_dequeue", "sleepers that owe service", "off, keep, keep-zero", f, f.delay_dequeue,
        "off" => DelayDequeue::Off, "keep" => DelayDequeue::Keep,
        "keep-zero" => DelayDequeue::KeepZero),
    named!("wakeup_preemption", "preemption by a wake-up", "off, on, on-shorter-slice",
        f, f.wakeup_preemption,
        "off" => WakeupPreemption::Off, "on" => WakeupPreemption::On,
        "on-shorter-slice" => WakeupPreemption::OnShorterSlice),
    named!("wakeup_delayed", "a delayed sleeper in the way of a wake-up's preemption",
        "blocks, leaves", f, f.wakeup_delayed,
        "blocks" => WakeupDelayed::Blocks, "leaves" => WakeupDelayed::Leaves),
    named!("next_buddy", "who is preferred at the next pick of its queue", "off, group, on",
        f, f.next_buddy,
        "off" => NextBuddy::Off, "group" => NextBuddy::Group, "on" => NextBuddy::On),
    named!("buddy_rules", "what buddies and forks are to a wake-up", "cfs, eevdf",
        f, f.buddy_rules,
        "cfs" => BuddyRules::Cfs, "eevdf" => BuddyRules::Eevdf),
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
    named!("idle_tick", "the tick of an idle CPU without a choice of states", "stop, after-tick",
        f, f.idle_tick,
        "stop" => IdleTick::Stop, "after-tick" => IdleTick::AfterTick),
    named!("idlest_tie", "tie-break of the fork path", "first-group, group-util, nr-running",
        f, f.idlest_tie,
        "first-group" => IdlestTie::FirstGroup, "group-util" => IdlestTie::GroupUtil,
        "nr-running" => IdlestTie::NrRunning),
    named!("throttle", "how quota is enforced", "whole-queue, at-user-return", f, f.throttle,
        "whole-queue" => Throttle::WholeQueue, "at-user-return" => Throttle::AtUserReturn),
    named!("quota_expiry", "whether a drawn slice of quota ends with the period",
        "off, drift, period", f, f.quota_expiry,
        "off" => QuotaExpiry::Off, "drift" => QuotaExpiry::Drift,
        "period" => QuotaExpiry::Period),
    named!("ttwu_queue", "remote wake-up list", "direct, cross-cache, remote", f, f.ttwu_queue,
        "direct" => TtwuQueue::Direct, "cross-cache" => TtwuQueue::CrossCache,
        "remote" => TtwuQueue::Remote),
    named!("ttwu_on_cpu", "waking a task that is being switched out", "spin, wake-list",
        f, f.ttwu_on_cpu,
        "spin" => TtwuOnCpu::Spin, "wake-list" => TtwuOnCpu::WakeList),
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
    named!("scan_budget", "CPUs looked at for an idle one", "util, prop, all, core-or-target",
        f, f.scan_budget,
        "util" => ScanBudget::Util, "prop" => ScanBudget::Prop, "all" => ScanBudget::All,
        "core-or-target" => ScanBudget::CoreOrTarget),
    flag!(
        "recent_used_cpu",
        "wake-ups try the CPU used before the previous one",
        f,
        f.recent_used_cpu
    ),
    number!(
        "migration_cost_ns",
        "sched_migration_cost",
        "0..=100000000",
        (0..=100_000_000),
        f,
        f.newidle.migration_cost_ns
    ),
    named!("newidle_gate", "what makes a newly idle CPU look for work",
        "domain-cost, migration-cost, migration-cost-only", f, f.newidle.gate,
        "domain-cost" => NewidleGate::DomainCost,
        "migration-cost" => NewidleGate::MigrationCost,
        "migration-cost-only" => NewidleGate::MigrationCostOnly),
    named!("numa_imbalance", "imbalance tolerated between nodes", "imb-numa-nr, local-idle, none",
        f, f.numa_imbalance,
        "imb-numa-nr" => NumaImbalance::ImbNumaNr, "local-idle" => NumaImbalance::LocalIdle,
        "none" => NumaImbalance::None),
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
    flag!(
        "lb_repick_to_front",
        "a task that is picked again is the last that balancing looks at",
        f,
        f.load_balance.repick_to_front
    ),
    named!("domain_limits", "intervals and margins of domains", "weight-16, weight-32, fixed",
        f, f.load_balance.limits,
        "weight-16" => DomainLimits::Weight16, "weight-32" => DomainLimits::Weight32,
        "fixed" => DomainLimits::Fixed),
    flag!("util_est", "estimated utilisation", f, f.util_est),
    flag!(
        "preempt_voluntary",
        "kernel code gives up the CPU where it may sleep (CONFIG_PREEMPT_VOLUNTARY)",
        f,
        f.preempt_voluntary
    ),
    flag!(
        "sched_cluster",
        "a domain of the cores of a cluster",
        f,
        f.sched_cluster
    ),
    named!("layout", "field order", "linux-6.15, reordered, engine", f, f.layout,
        "linux-6.15" => LayoutId::Linux615, "reordered" => LayoutId::Reordered,
        "engine" => LayoutId::Engine),
    number!("hz", "ticks a second", "100..=1000", (100..=1000), f, f.hz),
];

#[cfg(test)]
mod tests {
    use super::*;

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
    fn what_a_decision_does_not_take_is_refused_with_what_it_takes() {
        let mut f = Features::default();
        let refused = f.set_all(&[("hz", "250"), ("hz", "0"), ("pick", "cfs")]);
        let text = refused.map_err(|e| e.to_string());
        assert_eq!(
            text,
            Err("`hz` cannot be `0`; it takes 100..=1000".to_string())
        );
        assert_eq!((f.hz, f.check()), (250, Ok(())));
        let unknown = f.set("pik", "cfs").map_err(|e| e.to_string());
        assert_eq!(unknown, Err("no decision is called `pik`".to_string()));
        f.hz = 0;
        assert!(f.check().is_err());
    }
}
