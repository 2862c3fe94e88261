//! The row of each decision point.

use super::{
    BigTask, BuddyRules, CfsSlice, Decision, DelayDequeue, DomainLimits, FileRef, FileRefLine,
    HLoad, Hrtick, IdlePreemption, IdleSearch, IdleSwitch, IdleTick, IdlestStats, IdlestTie,
    IlbCsd, IlbKick, IlbPick, InitUtil, LagLimit, LayoutId, LbActive, LbCounts, LbOrder,
    LbSerialize, LbSmt, Menu, MmCpumask, NewidleGate, NextBuddy, NumaImbalance, OtherClasses,
    PeriodPhase, Pick, PipeTimes, PipeWakeWriter, PlaceNew, Preemption, QuotaExpiry, RecentUsedCpu,
    RunToParity, ScanBudget, Throttle, ThrottledClock, TtwuOnCpu, TtwuQueue, TunableScaling,
    UtilEstUpdate, VruntimeBase, WakeupDelayed, WakeupPreemption, Yielding,
};
use alloc::string::{String, ToString};

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

pub(super) static DECISIONS: [Decision; 80] = [
    named!("pick", "whom to pick", "eevdf, cfs", f, f.pick,
        "eevdf" => Pick::Eevdf, "cfs" => Pick::Cfs),
    named!("vruntime_base", "what virtual times of a queue are relative to", "least, mean",
        f, f.vruntime_base, "least" => VruntimeBase::Least, "mean" => VruntimeBase::Mean),
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
    named!("place_new", "when a new task gets its place", "at-fork, at-enqueue", f, f.place.new,
        "at-fork" => PlaceNew::AtFork, "at-enqueue" => PlaceNew::AtEnqueue),
    named!("yield", "what a task gives up that yields (EEVDF)", "deadline, vruntime",
        f, f.yielding,
        "deadline" => Yielding::Deadline, "vruntime" => Yielding::Vruntime),
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
    named!("idle_preemption", "what a wake-up does to a running task of the idle policy",
        "tasks, entities, unprotected", f, f.idle_preemption,
        "tasks" => IdlePreemption::Tasks, "entities" => IdlePreemption::Entities,
        "unprotected" => IdlePreemption::Unprotected),
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
    named!("ilb_csd", "what ends the work of an asked idle balancer", "checks-resched, idle-only",
        f, f.ilb_csd,
        "checks-resched" => IlbCsd::ChecksResched, "idle-only" => IlbCsd::IdleOnly),
    named!("ilb_pick", "which idle CPU balances", "first, wrap", f, f.ilb_pick,
        "first" => IlbPick::First, "wrap" => IlbPick::Wrap),
    named!("idle_switch", "an idle CPU that is asked to reschedule with nothing queued",
        "chooses, stays", f, f.idle_switch,
        "chooses" => IdleSwitch::Chooses, "stays" => IdleSwitch::Stays),
    named!("idle_tick", "the tick of an idle CPU without a choice of states", "stop, after-tick",
        f, f.idle_tick,
        "stop" => IdleTick::Stop, "after-tick" => IdleTick::AfterTick),
    named!("menu", "what the governor of idle states makes of the last stays",
        "longest, skip-timers, both-ends", f, f.menu,
        "longest" => Menu::Longest, "skip-timers" => Menu::SkipTimers,
        "both-ends" => Menu::BothEnds),
    named!("file_ref", "how threads take a reference to an open file", "inc-not-zero, add",
        f, f.files.count,
        "inc-not-zero" => FileRef::IncNotZero, "add" => FileRef::Add),
    named!("file_ref_line", "what is on the line of an open file's count", "fields, own",
        f, f.files.count_line,
        "fields" => FileRefLine::Fields, "own" => FileRefLine::Own),
    named!("pipe_times", "which pipes keep the times of their last read and write",
        "each-call, fifos", f, f.files.pipe_times,
        "each-call" => PipeTimes::EachCall, "fifos" => PipeTimes::Fifos),
    number!(
        "pipe_tmp_pages",
        "emptied pages that a pipe keeps for the next writes",
        "0..=2",
        (0..=2),
        f,
        f.files.pipe_tmp_pages
    ),
    named!("pipe_wake_writer", "when a read of a full pipe wakes a writer", "was-full, freed",
        f, f.files.pipe_wake_writer,
        "was-full" => PipeWakeWriter::WasFull, "freed" => PipeWakeWriter::Freed),
    flag!(
        "pipe_ring_lock",
        "each pipe buffer takes the lock of the readers' wait queue",
        f,
        f.files.pipe_ring_lock
    ),
    named!("mm_cpumask", "when a CPU leaves the mask of an address space", "each-switch, lazy",
        f, f.mm_cpumask,
        "each-switch" => MmCpumask::EachSwitch, "lazy" => MmCpumask::Lazy),
    named!("idlest_stats", "which CPUs of a group fork and exec look at", "all-cpus, allowed",
        f, f.idlest_stats,
        "all-cpus" => IdlestStats::AllCpus, "allowed" => IdlestStats::Allowed),
    named!("idlest_tie", "tie-break of the fork path", "first-group, group-util, nr-running",
        f, f.idlest_tie,
        "first-group" => IdlestTie::FirstGroup, "group-util" => IdlestTie::GroupUtil,
        "nr-running" => IdlestTie::NrRunning),
    named!("throttle", "how quota is enforced", "whole-queue, at-user-return", f, f.throttle,
        "whole-queue" => Throttle::WholeQueue, "at-user-return" => Throttle::AtUserReturn),
    named!("throttled_clock", "when the throttled time of a queue begins", "at-throttle, waiting",
        f, f.throttled_clock,
        "at-throttle" => ThrottledClock::AtThrottle, "waiting" => ThrottledClock::Waiting),
    named!("period_phase", "when the period timers of groups fire", "common, random",
        f, f.period_phase,
        "common" => PeriodPhase::Common, "random" => PeriodPhase::Random),
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
    flag!(
        "wa_prev_idle",
        "wake-affine: an idle previous CPU is the choice, whatever the loads",
        f,
        f.wake_affine.prev_idle
    ),
    named!("idle_search", "in which order a wake-up looks for an idle CPU",
        "core-cpu-thread, thread-then-scan, cluster-first", f, f.idle_search,
        "core-cpu-thread" => IdleSearch::CoreCpuThread,
        "thread-then-scan" => IdleSearch::ThreadThenScan,
        "cluster-first" => IdleSearch::ClusterFirst),
    named!("scan_budget", "CPUs looked at for an idle one", "util, prop, all, core-or-target",
        f, f.scan_budget,
        "util" => ScanBudget::Util, "prop" => ScanBudget::Prop, "all" => ScanBudget::All,
        "core-or-target" => ScanBudget::CoreOrTarget),
    named!("recent_used_cpu", "which CPU a wake-up tries besides target and previous one",
        "off, waker, prev", f, f.recent_used_cpu,
        "off" => RecentUsedCpu::Off, "waker" => RecentUsedCpu::Waker,
        "prev" => RecentUsedCpu::Prev),
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
    named!("lb_order", "which tasks of a queue balancing looks at first",
        "newest, coldest-pick, coldest-switch", f, f.load_balance.order,
        "newest" => LbOrder::Newest, "coldest-pick" => LbOrder::ColdestPick,
        "coldest-switch" => LbOrder::ColdestSwitch),
    named!("lb_big_task", "which task is too big for what is left of an imbalance",
        "half, half-until-failed, shift-load, shift", f, f.load_balance.big_task,
        "half" => BigTask::Half, "half-until-failed" => BigTask::HalfUntilFailed,
        "shift-load" => BigTask::ShiftLoad, "shift" => BigTask::Shift),
    named!("lb_smt", "what balancing makes of the threads of a core", "none, ties, cores",
        f, f.load_balance.smt,
        "none" => LbSmt::None, "ties" => LbSmt::Ties, "cores" => LbSmt::Cores),
    named!("lb_counts", "which tasks balancing counts: delayed sleepers, too?", "queued, runnable",
        f, f.load_balance.counts,
        "queued" => LbCounts::Queued, "runnable" => LbCounts::Runnable),
    named!("lb_serialize", "who takes the word that lets one CPU at a time balance between nodes",
        "each-look, when-due, newidle-too", f, f.load_balance.serialize,
        "each-look" => LbSerialize::EachLook, "when-due" => LbSerialize::WhenDue,
        "newidle-too" => LbSerialize::NewidleToo),
    named!("lb_active", "when balancing has the running task pushed", "on-failures, on-tasks",
        f, f.load_balance.active,
        "on-failures" => LbActive::OnFailures, "on-tasks" => LbActive::OnTasks),
    flag!(
        "lb_util_in_cache",
        "room is counted in utilisation within a cache, too",
        f,
        f.load_balance.util_in_cache
    ),
    flag!(
        "lb_hot_for_sibling",
        "a task is cache-hot for another thread of its core, too",
        f,
        f.load_balance.hot_for_sibling
    ),
    named!("domain_limits", "intervals and margins of domains", "weight-16, weight-32, fixed",
        f, f.load_balance.limits,
        "weight-16" => DomainLimits::Weight16, "weight-32" => DomainLimits::Weight32,
        "fixed" => DomainLimits::Fixed),
    named!("init_util", "the weight in a new task's first utilisation", "scaled-weight, weight",
        f, f.init_util,
        "scaled-weight" => InitUtil::ScaledWeight, "weight" => InitUtil::Weight),
    flag!("util_est", "estimated utilisation", f, f.util_est),
    named!("util_est_update", "when a sleeper's utilisation is estimated", "after-dequeue, before",
        f, f.load.util_est_update,
        "after-dequeue" => UtilEstUpdate::AfterDequeue, "before" => UtilEstUpdate::BeforeDequeue),
    flag!(
        "leaf_published",
        "a queue is aged until what it has published is gone",
        f,
        f.load.leaf_published
    ),
    flag!(
        "pelt_lag",
        "a sleeper that leaves an idle CPU is aged by its idle time",
        f,
        f.load.pelt_lag
    ),
    named!("other_classes", "how the time of other classes and interrupts is averaged",
        "rt-avg, pelt", f, f.other_classes,
        "rt-avg" => OtherClasses::RtAvg, "pelt" => OtherClasses::Pelt),
    named!("preempt", "who gives up the CPU where: kernel code, and a task in user mode (preempt=)",
        "none, voluntary, lazy", f, f.preempt,
        "none" => Preemption::None, "voluntary" => Preemption::Voluntary,
        "lazy" => Preemption::Lazy),
    flag!(
        "sched_cluster",
        "a domain of the cores of a cluster",
        f,
        f.sched_cluster
    ),
    named!("layout", "field order", "linux-6.15, reordered, rq-reordered, engine", f, f.layout,
        "linux-6.15" => LayoutId::Linux615, "reordered" => LayoutId::Reordered,
        "rq-reordered" => LayoutId::RqReordered, "engine" => LayoutId::Engine),
    number!(
        "hz",
        "ticks a second",
        "100, 250, 300, 1000",
        [100, 250, 300, 1000],
        f,
        f.hz
    ),
];
