//! Rules of load tracking that have changed.
//!
//! Sources: "sched: Fix pick_next_task_fair() vs try_to_wake_up() race", Peter Zijlstra, 2024
//! (6.12); "sched/fair: Decay task PELT values during wakeup migration", Vincent Donnefort, 2022
//! (6.0); "sched/fair: Fix unfairness caused by stalled tg_load_avg_contrib when the last task
//! migrates out", xupengbo, 2025 (6.18 stable, 6.12 stable); "sched/fair: Allow decaying util_est
//! when util_avg > CPU capa", Pierre Gondois, 2024 (6.16). The width of the runnable sum is that of
//! the stable series 6.12.117 and 6.18.44.

/// Which utilisation of a task that goes to sleep its estimate takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UtilEstUpdate {
    /// What the dequeue has brought up to date (up to 6.11).
    AfterDequeue,
    /// What it was at the last update before, up to a tick ago.
    BeforeDequeue,
}

/// How much of the runnable sum below a group's entity takes over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunnableSum {
    /// Its lower half: with some 88 runnable tasks and more on a CPU it is too small.
    Bits32,
    /// All of it (6.12 stable).
    Bits64,
}

impl RunnableSum {
    /// The sum as it is kept.
    #[inline]
    #[must_use]
    pub const fn kept(self, sum: u64) -> u64 {
        match self {
            Self::Bits32 => sum & u32::MAX as u64,
            Self::Bits64 => sum,
        }
    }
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
    /// How wide the runnable sum of a group's entity is.
    pub runnable_sum: RunnableSum,
}

impl LoadRules {
    /// As in Linux 6.18.
    pub const LINUX_6_18: Self = Self {
        util_est_update: UtilEstUpdate::BeforeDequeue,
        leaf_published: true,
        util_est_above: true,
        pelt_lag: true,
        runnable_sum: RunnableSum::Bits32,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue's runnable average is 1024 for each runnable task, its divider some 47 000 at most.
    #[test]
    fn with_88_runnable_tasks_and_more_32_bits_are_too_few() {
        let sum = |tasks: u64| tasks * 1024 * 47_742;
        let fits = |tasks| RunnableSum::Bits32.kept(sum(tasks)) == sum(tasks);
        assert!(fits(87) && !fits(88));
        assert_eq!(RunnableSum::Bits64.kept(sum(88)), sum(88));
    }
}
