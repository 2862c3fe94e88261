//! On which cache line each field of each structure is.
//!
//! A layout is data: for each field its byte offset and size in one build of one kernel. Two
//! fields on one line are one line, so false sharing and capacity misses follow from this table.

use super::layout_rq::{RQ, RQ_HOT_TOGETHER};
use super::{Fields, Kind};

/// Where the fields of one structure are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StructLayout {
    /// Size of one instance in bytes.
    pub size: u32,
    /// For each field, by bit index: offset of its first byte, and its length in bytes.
    pub fields: &'static [(u32, u32)],
}

/// One complete table: a row for each [`Kind`], in the order of [`Kind::ALL`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Name as in `--set layout=NAME`.
    pub name: &'static str,
    /// One row for each kind.
    pub structs: [StructLayout; 14],
}

impl Layout {
    /// The row of `kind`.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> &StructLayout {
        &self.structs[kind as usize]
    }

    /// Number of lines that one instance of `kind` takes with lines of `line_bytes`.
    #[must_use]
    pub const fn lines(&self, kind: Kind, line_bytes: u32) -> u32 {
        self.of(kind).size.div_ceil(line_bytes)
    }

    /// The fields of `kind` that lie, wholly or in part, on line `line` of an instance.
    #[must_use]
    pub fn fields_on_line(&self, kind: Kind, line: u32, line_bytes: u32) -> Fields {
        let (from, to) = (line * line_bytes, (line + 1) * line_bytes);
        let mut set = 0;
        for (bit, (offset, len)) in self.of(kind).fields.iter().enumerate() {
            if *offset < to && offset + len > from {
                set |= 1 << bit;
            }
        }
        Fields(set)
    }
}

/// The layout of Linux 6.15, x86-64, with group scheduling and bandwidth control.
///
/// `cfs_rq`, `sched_entity`: member by member from the structures' public definition, natural
/// alignment, `avg` and `removed` aligned to a cache line. The other structures are too large and
/// too dependent on the configuration for that: which of their members share a line is kept,
/// unused lines between are left out.
pub const LINUX_6_15: Layout = Layout {
    name: "linux-6.15",
    structs: [
        RQ,
        CFS_RQ_6_15,
        SE_6_15,
        SE_6_15,
        TASK,
        TG,
        LLC,
        RD,
        NOHZ,
        SD,
        SG,
        TASK,
        TIME,
        TG_ARRAYS,
    ],
};

/// Linux 6.15 with `cfs_rq` and `sched_entity` in the order of patch `cfs-rq-reorder`.
///
/// From the description of the change: `curr`, `rq`, `tg`, `throttle_count` and `runtime_enabled`
/// move to the first lines; `propagate` and `idle` share one; `on_list` stands beside the
/// throttled clocks; `runtime_remaining` and `throttled_pelt_idle` move out of the hot lines.
pub const REORDERED: Layout = Layout {
    name: "reordered",
    structs: [
        RQ,
        CFS_RQ_REORDERED,
        SE_REORDERED,
        SE_REORDERED,
        TASK,
        TG,
        LLC,
        RD,
        NOHZ,
        SD,
        SG,
        TASK,
        TIME,
        TG_ARRAYS,
    ],
};

/// Linux 6.15 with `rq` in the order of patch `rq-reorder`.
///
/// From the description of the change: what a balance reads of other CPUs without their lock
/// (`nr_running`, `ttwu_pending`, `cpu_capacity`, `curr`, `idle`) begins the structure on a line of
/// its own; the lock, `nr_switches` and the words of `nohz` have the next; all clocks share one.
pub const RQ_REORDERED: Layout = Layout {
    name: "rq-reordered",
    structs: [
        RQ_HOT_TOGETHER,
        CFS_RQ_6_15,
        SE_6_15,
        SE_6_15,
        TASK,
        TG,
        LLC,
        RD,
        NOHZ,
        SD,
        SG,
        TASK,
        TIME,
        TG_ARRAYS,
    ],
};

/// The engine's own structures: what one CPU owns packed, what others read on lines of its own.
pub const ENGINE: Layout = Layout {
    name: "engine",
    structs: [
        RQ,
        CFS_RQ_ENGINE,
        SE_ENGINE,
        SE_ENGINE,
        TASK,
        TG,
        LLC,
        RD,
        NOHZ,
        SD,
        SG,
        TASK,
        TIME,
        TG_ARRAYS,
    ],
};

impl Layout {
    /// All tables.
    pub const ALL: [&'static Layout; 4] = [&LINUX_6_15, &REORDERED, &RQ_REORDERED, &ENGINE];
}

const CFS_RQ_6_15: StructLayout = StructLayout {
    size: 512,
    fields: &[
        (0, 16),   // load
        (16, 16),  // nr_queued
        (32, 16),  // avg_vruntime
        (48, 8),   // min_vruntime
        (72, 16),  // tasks_timeline
        (88, 8),   // curr
        (96, 8),   // next
        (136, 52), // avg
        (128, 8),  // avg_last_update
        (192, 32), // removed
        (256, 8),  // last_update_tg
        (264, 8),  // tg_contrib
        (272, 16), // propagate
        (288, 24), // h_load
        (312, 8),  // rq
        (320, 4),  // on_list
        (328, 16), // leaf_node
        (344, 8),  // tg
        (352, 4),  // idle
        (356, 4),  // runtime_enabled
        (360, 8),  // runtime_remaining
        (368, 8),  // throttled_pelt_idle
        (376, 8),  // throttled_clock
        (384, 32), // throttled_clock_pelt
        (416, 4),  // throttled
        (420, 4),  // throttle_count
        (424, 32), // throttled_list
        (104, 8),  // nr_spread
    ],
};

const CFS_RQ_REORDERED: StructLayout = StructLayout {
    size: 448,
    fields: &[
        (0, 16),   // load
        (16, 16),  // nr_queued
        (64, 16),  // avg_vruntime
        (80, 8),   // min_vruntime
        (88, 16),  // tasks_timeline
        (32, 8),   // curr
        (104, 8),  // next
        (136, 52), // avg
        (128, 8),  // avg_last_update
        (192, 32), // removed
        (256, 8),  // last_update_tg
        (264, 8),  // tg_contrib
        (112, 12), // propagate
        (272, 24), // h_load
        (40, 8),   // rq
        (320, 4),  // on_list
        (296, 16), // leaf_node
        (48, 8),   // tg
        (124, 4),  // idle
        (60, 4),   // runtime_enabled
        (368, 8),  // runtime_remaining
        (376, 8),  // throttled_pelt_idle
        (328, 8),  // throttled_clock
        (336, 32), // throttled_clock_pelt
        (324, 4),  // throttled
        (56, 4),   // throttle_count
        (384, 32), // throttled_list
        (416, 8),  // nr_spread
    ],
};

const CFS_RQ_ENGINE: StructLayout = StructLayout {
    size: 384,
    fields: &[
        (0, 16),   // load
        (16, 16),  // nr_queued
        (40, 16),  // avg_vruntime
        (56, 8),   // min_vruntime
        (64, 16),  // tasks_timeline
        (32, 8),   // curr
        (80, 8),   // next
        (136, 52), // avg
        (128, 8),  // avg_last_update
        (320, 32), // removed
        (200, 8),  // last_update_tg
        (192, 8),  // tg_contrib
        (104, 16), // propagate
        (208, 24), // h_load
        (92, 4),   // rq
        (102, 1),  // on_list
        (232, 16), // leaf_node
        (88, 4),   // tg
        (103, 1),  // idle
        (100, 1),  // runtime_enabled
        (120, 8),  // runtime_remaining
        (296, 8),  // throttled_pelt_idle
        (256, 8),  // throttled_clock
        (264, 32), // throttled_clock_pelt
        (101, 1),  // throttled
        (96, 4),   // throttle_count
        (248, 8),  // throttled_list
        (352, 8),  // nr_spread
    ],
};

const SE_6_15: StructLayout = StructLayout {
    size: 256,
    fields: &[
        (0, 16),   // load
        (16, 24),  // run_node
        (40, 8),   // deadline
        (48, 16),  // min_vruntime
        (64, 16),  // group_node
        (80, 4),   // on_rq
        (88, 8),   // exec_start
        (96, 16),  // sum_exec
        (112, 8),  // vruntime
        (120, 8),  // vlag
        (128, 8),  // slice
        (136, 8),  // nr_migrations
        (144, 4),  // depth
        (152, 8),  // parent
        (160, 8),  // cfs_rq
        (168, 8),  // my_q
        (176, 8),  // runnable_weight
        (192, 60), // avg
    ],
};

const SE_REORDERED: StructLayout = StructLayout {
    size: 256,
    fields: &[
        (40, 16),  // load
        (64, 24),  // run_node
        (88, 8),   // deadline
        (96, 16),  // min_vruntime
        (152, 16), // group_node
        (36, 4),   // on_rq
        (128, 8),  // exec_start
        (136, 16), // sum_exec
        (56, 8),   // vruntime
        (112, 8),  // vlag
        (120, 8),  // slice
        (168, 8),  // nr_migrations
        (32, 4),   // depth
        (0, 8),    // parent
        (8, 8),    // cfs_rq
        (16, 8),   // my_q
        (24, 8),   // runnable_weight
        (192, 60), // avg
    ],
};

const SE_ENGINE: StructLayout = StructLayout {
    size: 256,
    fields: &[
        (0, 12),   // load
        (192, 16), // run_node
        (24, 8),   // deadline
        (208, 16), // min_vruntime
        (112, 8),  // group_node
        (56, 4),   // on_rq
        (48, 8),   // exec_start
        (64, 16),  // sum_exec
        (16, 8),   // vruntime
        (32, 8),   // vlag
        (40, 8),   // slice
        (104, 8),  // nr_migrations
        (60, 4),   // depth
        (88, 4),   // parent
        (80, 4),   // cfs_rq
        (84, 4),   // my_q
        (96, 8),   // runnable_weight
        (128, 60), // avg
    ],
};

const TASK: StructLayout = StructLayout {
    size: 512,
    fields: &[
        (24, 8),    // state
        (32, 4),    // on_cpu
        (40, 16),   // cpu
        (64, 24),   // wakee
        (192, 24),  // allowed
        (96, 16),   // prio
        (256, 8),   // pi_lock
        (128, 8),   // sched_group
        (264, 8),   // wake_entry
        (320, 128), // thread
        (0, 8),     // thread_info
    ],
};

// The words of `cgroup_subsys_state` are left out. `load_avg` begins a line; that nothing else is
// on it nobody said.
const TG: StructLayout = StructLayout {
    size: 448,
    fields: &[
        (16, 12),   // shares
        (64, 8),    // load_avg
        (104, 24),  // tree
        (0, 16),    // cfs_arrays
        (152, 4),   // bw_lock
        (160, 16),  // bw_config
        (176, 8),   // bw_runtime
        (192, 20),  // bw_state, behind burst
        (216, 128), // bw_timers
        (344, 16),  // bw_list
        (360, 32),  // bw_stats
        (128, 16),  // children
    ],
};

// Two arrays of pointers to what was allocated one by one.
const TG_ARRAYS: StructLayout = StructLayout {
    size: 256,
    fields: &[
        (0, 64),   // cfs_rq
        (64, 64),  // cfs_rq+8
        (128, 64), // se
        (192, 64), // se+8
    ],
};

const LLC: StructLayout = StructLayout {
    size: 64,
    fields: &[
        (4, 4),  // nr_busy_cpus
        (8, 4),  // has_idle_cores
        (12, 4), // nr_idle_scan
    ],
};

const RD: StructLayout = StructLayout {
    size: 128,
    fields: &[
        (0, 1),   // overload
        (1, 1),   // overutilized
        (64, 64), // span
    ],
};

const NOHZ: StructLayout = StructLayout {
    size: 192,
    fields: &[
        (0, 64),  // idle_cpus_mask
        (64, 4),  // nr_cpus
        (68, 8),  // has_blocked
        (80, 8),  // next_balance
        (88, 8),  // next_blocked
        (128, 4), // balance_running
    ],
};

const SD: StructLayout = StructLayout {
    size: 320,
    fields: &[
        (0, 64),  // fixed
        (64, 16), // last_balance
        (80, 24), // newidle
    ],
};

const SG: StructLayout = StructLayout {
    size: 128,
    fields: &[
        (0, 64),  // fixed
        (64, 32), // capacity
        (96, 4),  // imbalance
    ],
};

const TIME: StructLayout = StructLayout {
    size: 64,
    fields: &[
        (0, 8), // jiffies
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::field_names;

    #[test]
    fn fields_lie_inside_and_apart() {
        for layout in Layout::ALL {
            for kind in Kind::ALL {
                let row = layout.of(kind);
                assert_eq!(row.fields.len(), field_names(kind).len(), "{kind:?}");
                for (i, (from, len)) in row.fields.iter().enumerate() {
                    assert!(*len > 0 && from + len <= row.size, "{kind:?} field {i}");
                    for (other, l) in &row.fields[i + 1..] {
                        assert!(
                            from + len <= *other || other + l <= *from,
                            "{kind:?} field {i}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_group_load_begins_a_line_that_ends_with_the_parent() {
        use crate::place::tg;
        let on = |line| LINUX_6_15.fields_on_line(Kind::Tg, line, 64);
        assert_eq!(on(1), tg::LOAD_AVG | tg::TREE);
        assert!(on(2).intersects(tg::CHILDREN) && on(2).intersects(tg::BW_LOCK));
    }

    #[test]
    fn what_a_balance_reads_of_a_queue_is_on_one_line_after_the_change() {
        use crate::place::rq;
        let read = rq::NR_RUNNING | rq::CURR | rq::TTWU_PENDING | rq::CAPACITY;
        let lines = |layout: &Layout, fields: Fields| {
            let on = |line: &u32| {
                layout
                    .fields_on_line(Kind::Rq, *line, 64)
                    .intersects(fields)
            };
            (0..layout.lines(Kind::Rq, 64)).filter(on).count()
        };
        assert_eq!(lines(&LINUX_6_15, read), 4);
        assert_eq!(lines(&RQ_REORDERED, read), 1);
        assert_eq!(RQ_REORDERED.fields_on_line(Kind::Rq, 0, 64), read);
        assert_eq!(
            (
                lines(&LINUX_6_15, rq::CLOCK),
                lines(&RQ_REORDERED, rq::CLOCK)
            ),
            (2, 1)
        );
    }
}
