//! On which line each field of a run queue is.

use super::StructLayout;

/// BTF of a Linux 6.18, without the lines that nobody here uses.
pub(super) const RQ: StructLayout = StructLayout {
    size: 768,
    fields: &[
        (0, 4),     // lock
        (4, 4),     // nr_running
        (208, 88),  // clock: `clock` and its flags on one line, the others on the next
        (160, 24),  // curr
        (640, 24),  // avg_idle
        (192, 8),   // next_balance
        (100, 4),   // nohz_flags
        (96, 4),    // nohz_tick
        (336, 8),   // capacity
        (104, 4),   // ttwu_pending
        (704, 8),   // wake_list, a per-CPU word of its own
        (128, 24),  // leaf_list
        (368, 8),   // active_balance
        (360, 8),   // misfit
        (352, 2),   // idle_balance
        (432, 16),  // cfs_tasks
        (112, 8),   // nr_switches
        (24, 12),   // blocked
        (448, 192), // others
    ],
};

/// In the order of patch `rq-reorder`.
pub(super) const RQ_HOT_TOGETHER: StructLayout = StructLayout {
    size: 768,
    fields: &[
        (72, 4),    // lock
        (0, 4),     // nr_running
        (256, 56),  // clock
        (24, 16),   // curr
        (640, 24),  // avg_idle
        (184, 8),   // next_balance
        (80, 4),    // nohz_flags
        (76, 4),    // nohz_tick
        (16, 8),    // capacity
        (12, 4),    // ttwu_pending
        (704, 8),   // wake_list
        (128, 24),  // leaf_list
        (360, 8),   // active_balance
        (352, 8),   // misfit
        (344, 2),   // idle_balance
        (432, 16),  // cfs_tasks
        (64, 8),    // nr_switches
        (84, 12),   // blocked
        (448, 192), // others
    ],
};
