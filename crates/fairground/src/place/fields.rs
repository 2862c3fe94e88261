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
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
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
    fn bitor(self, other: Self) -> Self {
        self.and(other)
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

/// Fields of `struct rq`.
pub mod rq {
    use super::{FieldName, Fields};

    /// run-queue lock word
    pub const LOCK: Fields = Fields::bit(0);
    /// tasks of all classes that are queued
    pub const NR_RUNNING: Fields = Fields::bit(1);
    /// clock, clock_task, clock_pelt
    pub const CLOCK: Fields = Fields::bit(2);
    /// the running task
    pub const CURR: Fields = Fields::bit(3);
    /// avg_idle, idle_stamp, max_idle_balance_cost
    pub const AVG_IDLE: Fields = Fields::bit(4);
    /// next_balance
    pub const NEXT_BALANCE: Fields = Fields::bit(5);
    /// nohz_flags, reached by every kicker
    pub const NOHZ_FLAGS: Fields = Fields::bit(6);
    /// nohz_tick_stopped, has_blocked_load, last_blocked_load_update_tick
    pub const NOHZ_STATE: Fields = Fields::bit(7);
    /// cpu_capacity
    pub const CAPACITY: Fields = Fields::bit(8);
    /// ttwu_pending
    pub const TTWU_PENDING: Fields = Fields::bit(9);
    /// the list of queued remote wake-ups
    pub const WAKE_LIST: Fields = Fields::bit(10);
    /// head of leaf_cfs_rq_list
    pub const LEAF_LIST: Fields = Fields::bit(11);
    /// active_balance, push_cpu
    pub const ACTIVE_BALANCE: Fields = Fields::bit(12);
    /// misfit_task_load
    pub const MISFIT: Fields = Fields::bit(13);
    /// nr_switches and other statistics
    pub const NR_SWITCHES: Fields = Fields::bit(14);
    /// thread flags of the running task: need_resched, polling
    pub const NEED_RESCHED: Fields = Fields::bit(15);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "lock",
            what: "run-queue lock word",
        },
        FieldName {
            name: "nr_running",
            what: "tasks of all classes that are queued",
        },
        FieldName {
            name: "clock",
            what: "clock, clock_task, clock_pelt",
        },
        FieldName {
            name: "curr",
            what: "the running task",
        },
        FieldName {
            name: "avg_idle",
            what: "avg_idle, idle_stamp, max_idle_balance_cost",
        },
        FieldName {
            name: "next_balance",
            what: "next_balance",
        },
        FieldName {
            name: "nohz_flags",
            what: "nohz_flags, reached by every kicker",
        },
        FieldName {
            name: "nohz_state",
            what: "nohz_tick_stopped, has_blocked_load, last_blocked_load_update_tick",
        },
        FieldName {
            name: "capacity",
            what: "cpu_capacity",
        },
        FieldName {
            name: "ttwu_pending",
            what: "ttwu_pending",
        },
        FieldName {
            name: "wake_list",
            what: "the list of queued remote wake-ups",
        },
        FieldName {
            name: "leaf_list",
            what: "head of leaf_cfs_rq_list",
        },
        FieldName {
            name: "active_balance",
            what: "active_balance, push_cpu",
        },
        FieldName {
            name: "misfit",
            what: "misfit_task_load",
        },
        FieldName {
            name: "nr_switches",
            what: "nr_switches and other statistics",
        },
        FieldName {
            name: "need_resched",
            what: "thread flags of the running task: need_resched, polling",
        },
    ];
}

/// Fields of `struct cfs_rq`.
pub mod cfs_rq {
    use super::{FieldName, Fields};

    /// load.weight, inv_weight
    pub const LOAD: Fields = Fields::bit(0);
    /// nr_queued, h_nr_queued, h_nr_runnable, h_nr_idle
    pub const NR_QUEUED: Fields = Fields::bit(1);
    /// avg_vruntime, avg_load
    pub const AVG_VRUNTIME: Fields = Fields::bit(2);
    /// min_vruntime or zero_vruntime
    pub const MIN_VRUNTIME: Fields = Fields::bit(3);
    /// root and leftmost of the tree
    pub const TASKS_TIMELINE: Fields = Fields::bit(4);
    /// curr
    pub const CURR: Fields = Fields::bit(5);
    /// next and other buddies
    pub const NEXT: Fields = Fields::bit(6);
    /// avg: sums and averages
    pub const AVG: Fields = Fields::bit(7);
    /// avg.last_update_time
    pub const AVG_LAST_UPDATE: Fields = Fields::bit(8);
    /// removed.lock and removed load
    pub const REMOVED: Fields = Fields::bit(9);
    /// last_update_tg_load_avg
    pub const LAST_UPDATE_TG: Fields = Fields::bit(10);
    /// tg_load_avg_contrib
    pub const TG_CONTRIB: Fields = Fields::bit(11);
    /// propagate, prop_runnable_sum
    pub const PROPAGATE: Fields = Fields::bit(12);
    /// h_load, last_h_load_update, h_load_next
    pub const H_LOAD: Fields = Fields::bit(13);
    /// back pointer to the rq
    pub const RQ: Fields = Fields::bit(14);
    /// on_list
    pub const ON_LIST: Fields = Fields::bit(15);
    /// leaf_cfs_rq_list links
    pub const LEAF_NODE: Fields = Fields::bit(16);
    /// back pointer to the task group
    pub const TG: Fields = Fields::bit(17);
    /// cpu.idle of the group
    pub const IDLE: Fields = Fields::bit(18);
    /// runtime_enabled
    pub const RUNTIME_ENABLED: Fields = Fields::bit(19);
    /// runtime_remaining
    pub const RUNTIME_REMAINING: Fields = Fields::bit(20);
    /// throttled_pelt_idle
    pub const THROTTLED_PELT_IDLE: Fields = Fields::bit(21);
    /// throttled_clock and its sums
    pub const THROTTLED_CLOCK: Fields = Fields::bit(22);
    /// throttled_clock_pelt and its sum
    pub const THROTTLED_CLOCK_PELT: Fields = Fields::bit(23);
    /// throttled
    pub const THROTTLED: Fields = Fields::bit(24);
    /// throttle_count, pelt_clock_throttled
    pub const THROTTLE_COUNT: Fields = Fields::bit(25);
    /// throttled_list and the limbo list
    pub const THROTTLED_LIST: Fields = Fields::bit(26);
    /// statistics words of the debug build
    pub const NR_SPREAD: Fields = Fields::bit(27);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "load",
            what: "load.weight, inv_weight",
        },
        FieldName {
            name: "nr_queued",
            what: "nr_queued, h_nr_queued, h_nr_runnable, h_nr_idle",
        },
        FieldName {
            name: "avg_vruntime",
            what: "avg_vruntime, avg_load",
        },
        FieldName {
            name: "min_vruntime",
            what: "min_vruntime or zero_vruntime",
        },
        FieldName {
            name: "tasks_timeline",
            what: "root and leftmost of the tree",
        },
        FieldName {
            name: "curr",
            what: "curr",
        },
        FieldName {
            name: "next",
            what: "next and other buddies",
        },
        FieldName {
            name: "avg",
            what: "avg: sums and averages",
        },
        FieldName {
            name: "avg_last_update",
            what: "avg.last_update_time",
        },
        FieldName {
            name: "removed",
            what: "removed.lock and removed load",
        },
        FieldName {
            name: "last_update_tg",
            what: "last_update_tg_load_avg",
        },
        FieldName {
            name: "tg_contrib",
            what: "tg_load_avg_contrib",
        },
        FieldName {
            name: "propagate",
            what: "propagate, prop_runnable_sum",
        },
        FieldName {
            name: "h_load",
            what: "h_load, last_h_load_update, h_load_next",
        },
        FieldName {
            name: "rq",
            what: "back pointer to the rq",
        },
        FieldName {
            name: "on_list",
            what: "on_list",
        },
        FieldName {
            name: "leaf_node",
            what: "leaf_cfs_rq_list links",
        },
        FieldName {
            name: "tg",
            what: "back pointer to the task group",
        },
        FieldName {
            name: "idle",
            what: "cpu.idle of the group",
        },
        FieldName {
            name: "runtime_enabled",
            what: "runtime_enabled",
        },
        FieldName {
            name: "runtime_remaining",
            what: "runtime_remaining",
        },
        FieldName {
            name: "throttled_pelt_idle",
            what: "throttled_pelt_idle",
        },
        FieldName {
            name: "throttled_clock",
            what: "throttled_clock and its sums",
        },
        FieldName {
            name: "throttled_clock_pelt",
            what: "throttled_clock_pelt and its sum",
        },
        FieldName {
            name: "throttled",
            what: "throttled",
        },
        FieldName {
            name: "throttle_count",
            what: "throttle_count, pelt_clock_throttled",
        },
        FieldName {
            name: "throttled_list",
            what: "throttled_list and the limbo list",
        },
        FieldName {
            name: "nr_spread",
            what: "statistics words of the debug build",
        },
    ];
}

/// Fields of `struct sched_entity`.
pub mod se {
    use super::{FieldName, Fields};

    /// load.weight, inv_weight
    pub const LOAD: Fields = Fields::bit(0);
    /// tree links
    pub const RUN_NODE: Fields = Fields::bit(1);
    /// deadline
    pub const DEADLINE: Fields = Fields::bit(2);
    /// min_vruntime, min_slice of the subtree
    pub const MIN_VRUNTIME: Fields = Fields::bit(3);
    /// cfs_tasks link
    pub const GROUP_NODE: Fields = Fields::bit(4);
    /// on_rq, sched_delayed, rel_deadline, custom_slice
    pub const ON_RQ: Fields = Fields::bit(5);
    /// exec_start
    pub const EXEC_START: Fields = Fields::bit(6);
    /// sum_exec_runtime, prev_sum_exec_runtime
    pub const SUM_EXEC: Fields = Fields::bit(7);
    /// vruntime
    pub const VRUNTIME: Fields = Fields::bit(8);
    /// vlag or vprot
    pub const VLAG: Fields = Fields::bit(9);
    /// slice
    pub const SLICE: Fields = Fields::bit(10);
    /// nr_migrations
    pub const NR_MIGRATIONS: Fields = Fields::bit(11);
    /// depth
    pub const DEPTH: Fields = Fields::bit(12);
    /// parent
    pub const PARENT: Fields = Fields::bit(13);
    /// cfs_rq
    pub const CFS_RQ: Fields = Fields::bit(14);
    /// my_q
    pub const MY_Q: Fields = Fields::bit(15);
    /// runnable_weight
    pub const RUNNABLE_WEIGHT: Fields = Fields::bit(16);
    /// avg: sums and averages
    pub const AVG: Fields = Fields::bit(17);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "load",
            what: "load.weight, inv_weight",
        },
        FieldName {
            name: "run_node",
            what: "tree links",
        },
        FieldName {
            name: "deadline",
            what: "deadline",
        },
        FieldName {
            name: "min_vruntime",
            what: "min_vruntime, min_slice of the subtree",
        },
        FieldName {
            name: "group_node",
            what: "cfs_tasks link",
        },
        FieldName {
            name: "on_rq",
            what: "on_rq, sched_delayed, rel_deadline, custom_slice",
        },
        FieldName {
            name: "exec_start",
            what: "exec_start",
        },
        FieldName {
            name: "sum_exec",
            what: "sum_exec_runtime, prev_sum_exec_runtime",
        },
        FieldName {
            name: "vruntime",
            what: "vruntime",
        },
        FieldName {
            name: "vlag",
            what: "vlag or vprot",
        },
        FieldName {
            name: "slice",
            what: "slice",
        },
        FieldName {
            name: "nr_migrations",
            what: "nr_migrations",
        },
        FieldName {
            name: "depth",
            what: "depth",
        },
        FieldName {
            name: "parent",
            what: "parent",
        },
        FieldName {
            name: "cfs_rq",
            what: "cfs_rq",
        },
        FieldName {
            name: "my_q",
            what: "my_q",
        },
        FieldName {
            name: "runnable_weight",
            what: "runnable_weight",
        },
        FieldName {
            name: "avg",
            what: "avg: sums and averages",
        },
    ];
}

/// Fields of `struct task_struct` outside its entity.
pub mod task {
    use super::{FieldName, Fields};

    /// __state, on_rq
    pub const STATE: Fields = Fields::bit(0);
    /// on_cpu
    pub const ON_CPU: Fields = Fields::bit(1);
    /// the CPU it is on, wake_cpu, recent_used_cpu
    pub const CPU: Fields = Fields::bit(2);
    /// wakee_flips, last_wakee, decay stamp
    pub const WAKEE: Fields = Fields::bit(3);
    /// cpus_mask, nr_cpus_allowed
    pub const ALLOWED: Fields = Fields::bit(4);
    /// prio, policy
    pub const PRIO: Fields = Fields::bit(5);
    /// pi_lock
    pub const PI_LOCK: Fields = Fields::bit(6);
    /// util_est
    pub const UTIL_EST: Fields = Fields::bit(7);
    /// sched_task_group
    pub const SCHED_GROUP: Fields = Fields::bit(8);
    /// link of the remote wake-up list
    pub const WAKE_ENTRY: Fields = Fields::bit(9);
    /// saved registers, stack, mm
    pub const THREAD: Fields = Fields::bit(10);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "state",
            what: "__state, on_rq",
        },
        FieldName {
            name: "on_cpu",
            what: "on_cpu",
        },
        FieldName {
            name: "cpu",
            what: "the CPU it is on, wake_cpu, recent_used_cpu",
        },
        FieldName {
            name: "wakee",
            what: "wakee_flips, last_wakee, decay stamp",
        },
        FieldName {
            name: "allowed",
            what: "cpus_mask, nr_cpus_allowed",
        },
        FieldName {
            name: "prio",
            what: "prio, policy",
        },
        FieldName {
            name: "pi_lock",
            what: "pi_lock",
        },
        FieldName {
            name: "util_est",
            what: "util_est",
        },
        FieldName {
            name: "sched_group",
            what: "sched_task_group",
        },
        FieldName {
            name: "wake_entry",
            what: "link of the remote wake-up list",
        },
        FieldName {
            name: "thread",
            what: "saved registers, stack, mm",
        },
    ];
}

/// Fields of `struct task_group` and its `cfs_bandwidth`.
pub mod tg {
    use super::{FieldName, Fields};

    /// shares, idle
    pub const SHARES: Fields = Fields::bit(0);
    /// load_avg
    pub const LOAD_AVG: Fields = Fields::bit(1);
    /// parent, siblings, children
    pub const TREE: Fields = Fields::bit(2);
    /// the arrays of per-CPU queues and entities
    pub const CFS_ARRAYS: Fields = Fields::bit(3);
    /// cfs_bandwidth.lock
    pub const BW_LOCK: Fields = Fields::bit(4);
    /// quota, period, burst
    pub const BW_CONFIG: Fields = Fields::bit(5);
    /// runtime, runtime_snap, period_active
    pub const BW_RUNTIME: Fields = Fields::bit(6);
    /// period_timer, slack_timer
    pub const BW_TIMERS: Fields = Fields::bit(7);
    /// throttled_cfs_rq list
    pub const BW_LIST: Fields = Fields::bit(8);
    /// nr_periods, nr_throttled, throttled_time, nr_burst, burst_time
    pub const BW_STATS: Fields = Fields::bit(9);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "shares",
            what: "shares, idle",
        },
        FieldName {
            name: "load_avg",
            what: "load_avg",
        },
        FieldName {
            name: "tree",
            what: "parent, siblings, children",
        },
        FieldName {
            name: "cfs_arrays",
            what: "the arrays of per-CPU queues and entities",
        },
        FieldName {
            name: "bw_lock",
            what: "cfs_bandwidth.lock",
        },
        FieldName {
            name: "bw_config",
            what: "quota, period, burst",
        },
        FieldName {
            name: "bw_runtime",
            what: "runtime, runtime_snap, period_active",
        },
        FieldName {
            name: "bw_timers",
            what: "period_timer, slack_timer",
        },
        FieldName {
            name: "bw_list",
            what: "throttled_cfs_rq list",
        },
        FieldName {
            name: "bw_stats",
            what: "nr_periods, nr_throttled, throttled_time, nr_burst, burst_time",
        },
    ];
}

/// Fields of `struct sched_domain_shared`.
pub mod llc {
    use super::{FieldName, Fields};

    /// nr_busy_cpus
    pub const NR_BUSY_CPUS: Fields = Fields::bit(0);
    /// has_idle_cores
    pub const HAS_IDLE_CORES: Fields = Fields::bit(1);
    /// nr_idle_scan
    pub const NR_IDLE_SCAN: Fields = Fields::bit(2);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "nr_busy_cpus",
            what: "nr_busy_cpus",
        },
        FieldName {
            name: "has_idle_cores",
            what: "has_idle_cores",
        },
        FieldName {
            name: "nr_idle_scan",
            what: "nr_idle_scan",
        },
    ];
}

/// Fields of `struct root_domain`.
pub mod rd {
    use super::{FieldName, Fields};

    /// overload
    pub const OVERLOAD: Fields = Fields::bit(0);
    /// overutilized
    pub const OVERUTILIZED: Fields = Fields::bit(1);
    /// span, online
    pub const SPAN: Fields = Fields::bit(2);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "overload",
            what: "overload",
        },
        FieldName {
            name: "overutilized",
            what: "overutilized",
        },
        FieldName {
            name: "span",
            what: "span, online",
        },
    ];
}

/// Fields of the `nohz` structure.
pub mod nohz {
    use super::{FieldName, Fields};

    /// idle_cpus_mask
    pub const IDLE_CPUS_MASK: Fields = Fields::bit(0);
    /// nr_cpus
    pub const NR_CPUS: Fields = Fields::bit(1);
    /// has_blocked, needs_update
    pub const HAS_BLOCKED: Fields = Fields::bit(2);
    /// next_balance
    pub const NEXT_BALANCE: Fields = Fields::bit(3);
    /// next_blocked
    pub const NEXT_BLOCKED: Fields = Fields::bit(4);
    /// sched_balance_running, a static variable outside the structure
    pub const BALANCE_RUNNING: Fields = Fields::bit(5);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "idle_cpus_mask",
            what: "idle_cpus_mask",
        },
        FieldName {
            name: "nr_cpus",
            what: "nr_cpus",
        },
        FieldName {
            name: "has_blocked",
            what: "has_blocked, needs_update",
        },
        FieldName {
            name: "next_balance",
            what: "next_balance",
        },
        FieldName {
            name: "next_blocked",
            what: "next_blocked",
        },
        FieldName {
            name: "balance_running",
            what: "sched_balance_running, a static variable outside the structure",
        },
    ];
}

/// Fields of `struct sched_domain`.
pub mod sd {
    use super::{FieldName, Fields};

    /// span, flags, groups, limits
    pub const FIXED: Fields = Fields::bit(0);
    /// last_balance, balance_interval, nr_balance_failed
    pub const LAST_BALANCE: Fields = Fields::bit(1);
    /// max_newidle_lb_cost, newidle statistics
    pub const NEWIDLE: Fields = Fields::bit(2);
    /// lb statistics
    pub const STATS: Fields = Fields::bit(3);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "fixed",
            what: "span, flags, groups, limits",
        },
        FieldName {
            name: "last_balance",
            what: "last_balance, balance_interval, nr_balance_failed",
        },
        FieldName {
            name: "newidle",
            what: "max_newidle_lb_cost, newidle statistics",
        },
        FieldName {
            name: "stats",
            what: "lb statistics",
        },
    ];
}

/// Fields of `struct sched_group` and its capacity.
pub mod sg {
    use super::{FieldName, Fields};

    /// cpumask, weight, capacity limits
    pub const FIXED: Fields = Fields::bit(0);
    /// capacity, next_update
    pub const CAPACITY: Fields = Fields::bit(1);
    /// imbalance
    pub const IMBALANCE: Fields = Fields::bit(2);

    pub(super) const NAMES: &[FieldName] = &[
        FieldName {
            name: "fixed",
            what: "cpumask, weight, capacity limits",
        },
        FieldName {
            name: "capacity",
            what: "capacity, next_update",
        },
        FieldName {
            name: "imbalance",
            what: "imbalance",
        },
    ];
}

/// The fields of a kind of structure, by bit index.
#[must_use]
pub const fn field_names(kind: Kind) -> &'static [FieldName] {
    match kind {
        Kind::Rq => rq::NAMES,
        Kind::CfsRq => cfs_rq::NAMES,
        Kind::GroupSe | Kind::TaskSe => se::NAMES,
        Kind::Task => task::NAMES,
        Kind::Tg => tg::NAMES,
        Kind::Llc => llc::NAMES,
        Kind::Rd => rd::NAMES,
        Kind::Nohz => nohz::NAMES,
        Kind::Sd => sd::NAMES,
        Kind::Sg => sg::NAMES,
    }
}
