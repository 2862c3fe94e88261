//! The tracepoints that are read, and the fields that each must have.

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Switch,
    Waking,
    Wakeup,
    WakeupNew,
    Migrate,
    Fork,
    Exit,
    Runtime,
}

/// Our events and the fields that they need, in the order in which the decoder has them.
pub const OURS: &[(&str, Which, &[&str])] = &[
    (
        "sched_switch",
        Which::Switch,
        &[
            "prev_comm",
            "prev_pid",
            "prev_prio",
            "prev_state",
            "next_comm",
            "next_pid",
            "next_prio",
        ],
    ),
    (
        "sched_waking",
        Which::Waking,
        &["comm", "pid", "prio", "target_cpu"],
    ),
    (
        "sched_wakeup",
        Which::Wakeup,
        &["comm", "pid", "prio", "target_cpu"],
    ),
    (
        "sched_wakeup_new",
        Which::WakeupNew,
        &["comm", "pid", "prio", "target_cpu"],
    ),
    (
        "sched_migrate_task",
        Which::Migrate,
        &["comm", "pid", "orig_cpu", "dest_cpu"],
    ),
    (
        "sched_process_fork",
        Which::Fork,
        &["parent_pid", "child_comm", "child_pid"],
    ),
    ("sched_process_exit", Which::Exit, &["comm", "pid"]),
    (RUNTIME, Which::Runtime, &["pid", "runtime"]),
];

/// No event of a recording: it says how long the current thread has run, which matters only where
/// the switch to it is missing.
pub const RUNTIME: &str = "sched_stat_runtime";

/// Whether an event is one that is read.
pub fn is_ours(name: &str) -> bool {
    OURS.iter().any(|(n, ..)| *n == name)
}
