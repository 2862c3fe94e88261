//! Rules of load tracking that have changed.
//!
//! Sources: "sched: Fix pick_next_task_fair() vs try_to_wake_up() race", Peter Zijlstra, 2024
//! (6.12); "sched/fair: Decay task PELT values during wakeup migration", Vincent Donnefort, 2022
//! (6.0); "sched/fair: Fix unfairness caused by stalled tg_load_avg_contrib when the last task
//! migrates out", xupengbo, 2025 (6.18 stable, 6.12 stable); "sched/fair: Allow decaying util_est
//! when util_avg > CPU capa", Pierre Gondois, 2024 (6.16).

/// Which utilisation of a task that goes to sleep its estimate takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UtilEstUpdate {
    /// What the dequeue has brought up to date (up to 6.11).
    AfterDequeue,
    /// What it was at the last update before, up to a tick ago.
    BeforeDequeue,
}

/// What has changed in load tracking.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoadRules {
    /// When the estimate of a task's utilisation is made.
    pub util_est_update: UtilEstUpdate,
    /// Whether a queue stays on the list of those that are aged until what it has published is
    /// gone, too (2025).
    pub leaf_published: bool,
    /// Whether the estimate of a task's utilisation falls also while that is above the capacity of
    /// its CPU (6.16).
    pub util_est_above: bool,
    /// Whether a sleeper that leaves an idle CPU is aged by the time that this has idled (6.0).
    pub pelt_lag: bool,
}

impl LoadRules {
    /// As in Linux 6.18.
    pub const LINUX_6_18: Self = Self {
        util_est_update: UtilEstUpdate::BeforeDequeue,
        leaf_published: true,
        util_est_above: true,
        pelt_lag: true,
    };
}
