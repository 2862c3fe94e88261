//! Whether and how a wake-up preempts, and how it reaches another CPU.

/// `WAKEUP_PREEMPTION` and `PREEMPT_SHORT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WakeupPreemption {
    /// Never.
    Off,
    /// When the woken entity is the better pick.
    On,
    /// Also against slice protection if its slice is shorter (6.12 and later).
    OnShorterSlice,
}

impl WakeupPreemption {
    /// Whether a wake-up preempts at all.
    #[inline]
    #[must_use]
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a shorter slice counts against protection (`PREEMPT_SHORT`).
    #[inline]
    #[must_use]
    pub const fn by_slice(self) -> bool {
        matches!(self, Self::OnShorterSlice)
    }
}

/// `NEXT_BUDDY` and `PICK_BUDDY`: who is preferred at the next pick of a queue, if eligible.
///
/// Source: "sched/fair: Untangle NEXT_BUDDY and pick_next_task()", Peter Zijlstra, 6.14.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextBuddy {
    /// Nobody (6.6 to 6.13 as released).
    Off,
    /// A group one of whose tasks has gone to sleep (6.14 and later, stable kernels, and CFS).
    Group,
    /// That, and a woken entity.
    On,
}

impl NextBuddy {
    /// Whether the pick looks at the buddy.
    #[inline]
    #[must_use]
    pub const fn is_picked(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a wake-up makes its entity the buddy.
    #[inline]
    #[must_use]
    pub const fn marks_woken(self) -> bool {
        matches!(self, Self::On)
    }
}

/// What buddies and forks are to a wake-up.
///
/// Source: postings "sched/fair: Reimplement NEXT_BUDDY to align with EEVDF goals" (Mel Gorman,
/// 2025-11-12) and "sched/fair: Revert force wakeup preemption" (Vincent Guittot, 2026-01-23): both
/// in 6.19, and since May 2026 in 6.18-stable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BuddyRules {
    /// As under CFS (6.6 to 6.18 as released): a fork preempts like any wake-up, and a wake-up
    /// looks at no buddy but marks its own.
    Cfs,
    /// A fork preempts by a shorter slice only; a wake-up compares with the queue's buddy, too,
    /// marks its own if it is the earlier one, and leaves who runs the shortest slice at most.
    Eevdf,
}

impl BuddyRules {
    /// Whether these are the rules made for EEVDF.
    #[inline]
    #[must_use]
    pub const fn are_eevdf(self) -> bool {
        matches!(self, Self::Eevdf)
    }
}

/// `TTWU_QUEUE`: wake-ups of CPUs that share no cache go through a remote list and an IPI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TtwuQueue {
    /// The waker always takes the remote queue's lock.
    Direct,
    /// Across caches the remote CPU enqueues (up to 5.19).
    CrossCache,
    /// Across caches, or to an idle CPU, the remote CPU enqueues (6.0 and later).
    Remote,
}

impl TtwuQueue {
    /// Whether the target CPU enqueues the task itself: `share_cache` with the waker's CPU,
    /// `same` CPU, `empty` queue there (`ttwu_queue_cond`).
    #[inline]
    pub fn queues(self, share_cache: bool, same: bool, empty: impl FnOnce() -> bool) -> bool {
        match self {
            Self::Direct => false,
            Self::CrossCache => !share_cache,
            Self::Remote => !share_cache || (!same && empty()),
        }
    }
}

/// A wake-up of a task that is just being switched out on another CPU.
///
/// Source: "sched/core: Optimize ttwu() spinning on p->on_cpu", Peter Zijlstra, and
/// "sched/core: Offload wakee task activation if it the wakee is descheduling", Mel Gorman, both
/// 5.8; "sched: Fix the check of nr_running at queue wakelist", Tianchen Ding, 6.0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TtwuOnCpu {
    /// The waker spins until the task is off its CPU (up to 5.7).
    Spin,
    /// The CPU that switches enqueues it, where remote wake-ups may do so (5.8 and later).
    WakeList,
}

impl TtwuOnCpu {
    /// Whether the CPU on which the task still is enqueues it: `nr_running` there, with the task
    /// gone from its queue. Up to 5.19 one other task did not matter.
    #[inline]
    pub fn queues(
        self,
        list: TtwuQueue,
        share_cache: bool,
        same: bool,
        nr_running: impl FnOnce() -> u32,
    ) -> bool {
        match (self, list) {
            (Self::Spin, _) | (_, TtwuQueue::Direct) => false,
            (_, TtwuQueue::CrossCache) => !share_cache || (!same && nr_running() <= 1),
            (_, TtwuQueue::Remote) => list.queues(share_cache, same, || nr_running() == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_that_switches_enqueues_if_it_has_nothing_else() {
        let queues = |how: TtwuOnCpu, list, nr| how.queues(list, true, false, || nr);
        assert!(!queues(TtwuOnCpu::Spin, TtwuQueue::Remote, 0));
        assert!(queues(TtwuOnCpu::WakeList, TtwuQueue::Remote, 0));
        assert!(!queues(TtwuOnCpu::WakeList, TtwuQueue::Remote, 1));
        assert!(queues(TtwuOnCpu::WakeList, TtwuQueue::CrossCache, 1));
        assert!(!queues(TtwuOnCpu::WakeList, TtwuQueue::CrossCache, 2));
        assert!(!queues(TtwuOnCpu::WakeList, TtwuQueue::Direct, 0));
    }
}
