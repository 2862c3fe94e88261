//! What load balancing moves, and when it insists: rules that changed since 3.10.

/// Which task is too big for what is left of an imbalance of load or utilisation.
///
/// Sources: "sched/fair: Rework load_balance()", Vincent Guittot, 2019, for 5.5; "sched/fair: Relax
/// constraint on task's load during load balance", the same, 2020, for 5.10; "sched/fair: Use all
/// little CPUs for CPU-bound workloads", Pierre Gondois, 2023, for 6.8.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BigTask {
    /// Half of its load is more than that (up to 5.4).
    Half,
    /// The same, but only until attempts have failed (5.5 to 5.9).
    HalfUntilFailed,
    /// Its load, halved for each failed attempt, is more (5.10 to 6.7).
    ShiftLoad,
    /// The same of its utilisation (6.8 and later).
    Shift,
}

impl BigTask {
    /// Whether a task of `load` is too big for `imbalance` after `failed` attempts in a row, of
    /// which `tries` do not count yet (`cache_nice_tries`).
    #[inline]
    #[must_use]
    pub const fn by_load(self, load: u64, imbalance: i64, failed: u32, tries: u32) -> bool {
        let looks = match self {
            Self::HalfUntilFailed if failed > tries => return false,
            Self::Half | Self::HalfUntilFailed => load / 2,
            Self::ShiftLoad | Self::Shift => shr_bound(load, failed),
        };
        looks as i64 > imbalance
    }

    /// The same for a task of utilisation `util`.
    #[inline]
    #[must_use]
    pub const fn by_util(self, util: u64, imbalance: i64, failed: u32) -> bool {
        let looks = match self {
            Self::Shift => shr_bound(util, failed),
            Self::Half | Self::HalfUntilFailed | Self::ShiftLoad => util,
        };
        looks as i64 > imbalance
    }
}

/// `value >> shift`, where every failed attempt makes a big task look half as big.
const fn shr_bound(value: u64, shift: u32) -> u64 {
    value >> if shift < 63 { shift } else { 63 }
}

/// What balancing makes of the threads of a core.
///
/// Sources: "sched/fair: Let low-priority cores help high-priority busy SMT cores" and the rest of
/// that series, Ricardo Neri, 2023, for 6.5; "sched/fair: Determine active load balance for SMT
/// sched groups" and the rest of that series, Tim Chen and Ricardo Neri, 2023, for 6.6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LbSmt {
    /// Nothing: the first idle CPU balances; of groups that are alike the first is the busiest; and
    /// where tasks are to be spread over groups, a busy CPU pulls too (up to 6.4).
    None,
    /// The same, but of fully busy groups that are alike the last is the busiest (6.5).
    Ties,
    /// Idle cores balance first, a core with two tasks is busier than one with one, and tasks are
    /// spread by cores (6.6 and later).
    Cores,
}

impl LbSmt {
    /// Whether cores count, not only CPUs.
    #[inline]
    #[must_use]
    pub const fn knows_cores(self) -> bool {
        matches!(self, Self::Cores)
    }

    /// Whether the last of fully busy groups that are alike is the busiest.
    #[inline]
    #[must_use]
    pub const fn takes_last_of_busy(self) -> bool {
        !matches!(self, Self::None)
    }
}

/// When balancing that has failed to move a task has the running one pushed, and how it goes on.
///
/// Sources: "sched/fair: Reduce cases for active balance", Vincent Guittot, 2021, for 5.12;
/// "sched/fair: Clean up active balance nr_balance_failed trickery", Valentin Schneider, 2021, for
/// 5.13.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LbActive {
    /// After enough failures of any kind; then attempts count as nearly enough, and the domain
    /// waits longer (up to 5.11).
    OnFailures,
    /// Only if tasks are counted, not load; the domain goes on as after any other attempt.
    OnTasks,
}

impl LbActive {
    /// Whether `failed` attempts are enough, with `tries` those that do not count yet
    /// (`cache_nice_tries`), where `counts_tasks`.
    #[inline]
    #[must_use]
    pub const fn insists(self, counts_tasks: bool, failed: u32, tries: u32) -> bool {
        (counts_tasks || self.backs_off()) && failed > tries + 2
    }

    /// Whether a push makes the domain wait longer.
    #[inline]
    #[must_use]
    pub const fn backs_off(self) -> bool {
        matches!(self, Self::OnFailures)
    }
}

/// Which tasks of a queue balancing looks at first.
///
/// Sources: "sched/fair: Search a task from the tail of the queue", Uladzislau Rezki, 2017, for
/// 4.15; "sched: Rework pick_next_task()", Peter Zijlstra, 2024, for 6.12.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LbOrder {
    /// Those that were enqueued last (up to 4.14).
    Newest,
    /// Those that have not run for longest; who is picked again counts as one that others have run
    /// before (up to 6.11).
    ColdestPick,
    /// The same, but who is found running is left where it is (6.12 and later).
    ColdestSwitch,
}

impl LbOrder {
    /// Whether a pick puts a task behind all others, `again` being the one that ran.
    #[inline]
    #[must_use]
    pub const fn pick_reorders(self, again: bool) -> bool {
        match self {
            Self::Newest => false,
            Self::ColdestPick => true,
            Self::ColdestSwitch => !again,
        }
    }

    /// Whether the tasks that were enqueued last come first.
    #[inline]
    #[must_use]
    pub const fn newest_first(self) -> bool {
        matches!(self, Self::Newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_of_twice_the_imbalance_was_not_too_big() {
        let load = |rule: BigTask, failed| rule.by_load(2047, 1023, failed, 1);
        assert!(!load(BigTask::Half, 0));
        assert!(BigTask::Half.by_load(2048, 1023, 9, 1));
        assert!(BigTask::HalfUntilFailed.by_load(2048, 1023, 1, 1));
        assert!(!BigTask::HalfUntilFailed.by_load(9999, 1023, 2, 1));
        assert!(load(BigTask::ShiftLoad, 0) && !load(BigTask::ShiftLoad, 1));
    }

    #[test]
    fn utilisation_is_relaxed_by_failures_in_new_kernels_only() {
        assert!(BigTask::ShiftLoad.by_util(600, 400, 3));
        assert!(!BigTask::Shift.by_util(600, 400, 1));
    }

    #[test]
    fn failures_to_move_load_push_in_old_kernels_only() {
        assert!(LbActive::OnFailures.insists(false, 4, 1));
        assert!(!LbActive::OnTasks.insists(false, 4, 1));
        assert!(LbActive::OnTasks.insists(true, 4, 1));
        assert!(!LbActive::OnFailures.insists(true, 3, 1));
    }
}
