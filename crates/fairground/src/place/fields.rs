//! The fields of each structure, as bits of a set.
//!
//! One bit stands for the words that are always used together, so a function reports what it
//! reads in one call; a [`Layout`](super::Layout) spreads the set over lines.

use super::Kind;

/// A set of fields of one structure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fields(pub u64);

impl Fields {
    /// The single field with index `bit`.
    #[must_use]
    pub const fn bit(bit: u32) -> Self {
        Self(1 << bit)
    }

    /// Both sets together.
    #[inline]
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Index of the lowest field of the set.
    #[must_use]
    pub const fn lowest(self) -> u32 {
        self.0.trailing_zeros()
    }

    /// Whether the sets share a field.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl core::ops::BitOr for Fields {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

/// A field's name and what it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FieldName {
    /// Name as printed.
    pub name: &'static str,
    /// The words it stands for.
    pub what: &'static str,
}

/// A module for one structure: each row is a constant, the name printed, and the words it stands
/// for; the bit is the row's number.
macro_rules! fields {
    ($(#[$doc:meta])* $module:ident { $($field:ident $name:literal: $what:literal,)+ }) => {
        $(#[$doc])*
        pub mod $module {
            use super::{FieldName, Fields};

            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            enum Row { $($field),+ }

            $(#[doc = $what] pub const $field: Fields = Fields::bit(Row::$field as u32);)+

            pub(super) const NAMES: &[FieldName] =
                &[$(FieldName { name: $name, what: $what }),+];
        }
    };
}

fields! {
    /// Fields of `struct rq`.
    rq {
        LOCK "lock": "run-queue lock word",
        NR_RUNNING "nr_running": "tasks of all classes that are queued",
        CLOCK "clock": "clock, clock_task, clock_pelt",
        CURR "curr": "the running task",
        AVG_IDLE "avg_idle": "avg_idle, idle_stamp, max_idle_balance_cost",
        NEXT_BALANCE "next_balance": "next_balance",
        NOHZ_FLAGS "nohz_flags": "nohz_flags, reached by every kicker",
        NOHZ_TICK "nohz_tick": "nohz_tick_stopped",
        CAPACITY "capacity": "cpu_capacity",
        TTWU_PENDING "ttwu_pending": "ttwu_pending",
        WAKE_LIST "wake_list": "the list of queued remote wake-ups",
        LEAF_LIST "leaf_list": "head of leaf_cfs_rq_list",
        ACTIVE_BALANCE "active_balance": "active_balance, push_cpu",
        MISFIT "misfit": "misfit_task_load",
        IDLE_BALANCE "idle_balance": "nohz_idle_balance, idle_balance",
        CFS_TASKS "cfs_tasks": "head of the list of tasks in the order of balancing",
        NR_SWITCHES "nr_switches": "nr_switches and other statistics",
        BLOCKED "blocked": "has_blocked_load, last_blocked_load_update_tick",
        OTHERS "others": "avg_rt, avg_dl, avg_irq",
    }
}

fields! {
    /// Fields of `struct cfs_rq`.
    cfs_rq {
        LOAD "load": "load.weight, inv_weight",
        NR_QUEUED "nr_queued": "nr_queued, h_nr_queued, h_nr_runnable, h_nr_idle",
        AVG_VRUNTIME "avg_vruntime": "avg_vruntime, avg_load",
        MIN_VRUNTIME "min_vruntime": "min_vruntime or zero_vruntime",
        TASKS_TIMELINE "tasks_timeline": "root and leftmost of the tree",
        CURR "curr": "curr",
        NEXT "next": "next and other buddies",
        AVG "avg": "avg: sums and averages",
        AVG_LAST_UPDATE "avg_last_update": "avg.last_update_time",
        REMOVED "removed": "removed.lock and removed load",
        LAST_UPDATE_TG "last_update_tg": "last_update_tg_load_avg",
        TG_CONTRIB "tg_contrib": "tg_load_avg_contrib",
        PROPAGATE "propagate": "propagate, prop_runnable_sum",
        H_LOAD "h_load": "h_load, last_h_load_update, h_load_next",
        RQ "rq": "back pointer to the rq",
        ON_LIST "on_list": "on_list",
        LEAF_NODE "leaf_node": "leaf_cfs_rq_list links",
        TG "tg": "back pointer to the task group",
        IDLE "idle": "cpu.idle of the group",
        RUNTIME_ENABLED "runtime_enabled": "runtime_enabled",
        RUNTIME_REMAINING "runtime_remaining":
            "runtime_remaining; before 5.4 runtime_expires beside it",
        THROTTLED_PELT_IDLE "throttled_pelt_idle": "throttled_pelt_idle",
        THROTTLED_CLOCK "throttled_clock": "throttled_clock and its sums",
        THROTTLED_CLOCK_PELT "throttled_clock_pelt": "throttled_clock_pelt and its sum",
        THROTTLED "throttled": "throttled",
        THROTTLE_COUNT "throttle_count": "throttle_count, pelt_clock_throttled",
        THROTTLED_LIST "throttled_list": "throttled_list and the limbo list",
        NR_SPREAD "nr_spread": "statistics words of the debug build",
    }
}

fields! {
    /// Fields of `struct sched_entity`.
    se {
        LOAD "load": "load.weight, inv_weight",
        RUN_NODE "run_node": "tree links",
        DEADLINE "deadline": "deadline",
        MIN_VRUNTIME "min_vruntime": "min_vruntime, min_slice of the subtree",
        GROUP_NODE "group_node": "cfs_tasks link",
        ON_RQ "on_rq": "on_rq, sched_delayed, rel_deadline, custom_slice",
        EXEC_START "exec_start": "exec_start",
        SUM_EXEC "sum_exec": "sum_exec_runtime, prev_sum_exec_runtime",
        VRUNTIME "vruntime": "vruntime",
        VLAG "vlag": "vlag or vprot",
        SLICE "slice": "slice",
        NR_MIGRATIONS "nr_migrations": "nr_migrations",
        DEPTH "depth": "depth",
        PARENT "parent": "parent",
        CFS_RQ "cfs_rq": "cfs_rq",
        MY_Q "my_q": "my_q",
        RUNNABLE_WEIGHT "runnable_weight": "runnable_weight",
        AVG "avg": "avg: sums and averages",
    }
}

fields! {
    /// Fields of `struct task_struct` outside its entity.
    task {
        STATE "state": "__state, on_rq",
        ON_CPU "on_cpu": "on_cpu",
        CPU "cpu": "the CPU it is on, wake_cpu, recent_used_cpu",
        WAKEE "wakee": "wakee_flips, last_wakee, decay stamp",
        ALLOWED "allowed": "cpus_mask, nr_cpus_allowed",
        PRIO "prio": "prio, policy",
        PI_LOCK "pi_lock": "pi_lock",
        SCHED_GROUP "sched_group": "sched_task_group",
        WAKE_ENTRY "wake_entry": "link of the remote wake-up list",
        THREAD "thread": "saved registers, stack, mm",
        THREAD_INFO "thread_info": "thread_info.flags: TIF_NEED_RESCHED, TIF_POLLING_NRFLAG",
    }
}

fields! {
    /// Fields of `struct task_group` and its `cfs_bandwidth`.
    tg {
        SHARES "shares": "shares, idle",
        LOAD_AVG "load_avg": "load_avg",
        TREE "tree": "parent, siblings",
        CFS_ARRAYS "cfs_arrays": "where the arrays of per-CPU queues and entities are",
        BW_LOCK "bw_lock": "cfs_bandwidth.lock",
        BW_CONFIG "bw_config": "quota, period, burst",
        BW_RUNTIME "bw_runtime": "runtime",
        BW_STATE "bw_state":
            "runtime_snap, idle, period_active, slack_started; before 5.4 runtime_expires",
        BW_TIMERS "bw_timers": "period_timer, slack_timer",
        BW_LIST "bw_list": "throttled_cfs_rq list",
        BW_STATS "bw_stats": "nr_periods, nr_throttled, throttled_time, nr_burst, burst_time",
        CHILDREN "children": "children",
    }
}

fields! {
    /// Part of a group's two arrays of pointers, those of 16 CPUs.
    tg_arrays {
        CFS_RQ_LOW "cfs_rq": "cfs_rq[] of the first 8 of these CPUs",
        CFS_RQ_HIGH "cfs_rq+8": "cfs_rq[] of the last 8",
        SE_LOW "se": "se[] of the first 8 of these CPUs",
        SE_HIGH "se+8": "se[] of the last 8",
    }
}

fields! {
    /// Fields of `struct sched_domain_shared`.
    llc {
        NR_BUSY_CPUS "nr_busy_cpus": "nr_busy_cpus",
        HAS_IDLE_CORES "has_idle_cores": "has_idle_cores",
        NR_IDLE_SCAN "nr_idle_scan": "nr_idle_scan",
    }
}

fields! {
    /// Fields of `struct root_domain`.
    rd {
        OVERLOAD "overload": "overload",
        OVERUTILIZED "overutilized": "overutilized",
        SPAN "span": "span, online",
    }
}

fields! {
    /// Fields of the `nohz` structure.
    nohz {
        IDLE_CPUS_MASK "idle_cpus_mask": "idle_cpus_mask",
        NR_CPUS "nr_cpus": "nr_cpus",
        HAS_BLOCKED "has_blocked": "has_blocked, needs_update",
        NEXT_BALANCE "next_balance": "next_balance",
        NEXT_BLOCKED "next_blocked": "next_blocked",
        BALANCE_RUNNING "balance_running":
            "sched_balance_running, a static variable outside the structure",
    }
}

fields! {
    /// Fields of `struct sched_domain`.
    sd {
        FIXED "fixed": "span, flags, groups, limits",
        LAST_BALANCE "last_balance": "last_balance, balance_interval, nr_balance_failed",
        NEWIDLE "newidle": "max_newidle_lb_cost, newidle statistics",
    }
}

fields! {
    /// Fields of `struct sched_group` and its capacity.
    sg {
        FIXED "fixed": "cpumask, weight, capacity limits",
        CAPACITY "capacity": "capacity, next_update",
        IMBALANCE "imbalance": "imbalance",
    }
}

fields! {
    /// The kernel's clock words that everybody reads.
    time {
        JIFFIES "jiffies": "jiffies_64, on a line of its own, written by one CPU at each tick",
    }
}

/// The fields of a kind of structure, by bit index.
#[must_use]
pub const fn field_names(kind: Kind) -> &'static [FieldName] {
    match kind {
        Kind::Rq => rq::NAMES,
        Kind::CfsRq => cfs_rq::NAMES,
        Kind::GroupSe | Kind::TaskSe => se::NAMES,
        Kind::Task | Kind::IdleTask => task::NAMES,
        Kind::Tg => tg::NAMES,
        Kind::TgArrays => tg_arrays::NAMES,
        Kind::Llc => llc::NAMES,
        Kind::Rd => rd::NAMES,
        Kind::Nohz => nohz::NAMES,
        Kind::Sd => sd::NAMES,
        Kind::Sg => sg::NAMES,
        Kind::Time => time::NAMES,
    }
}
