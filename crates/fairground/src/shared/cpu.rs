//! What a CPU publishes about itself.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::{Relaxed, TaskShared};
use crate::value::{Cpu, CpuMask};

/// `[pub]` One CPU's words that others read; written by the holder of its queue, except where a
/// field says so. `load_avg` and its companions are those of the root `cfs_rq`.
///
/// In the order of use: what a scan over CPUs (placement, balancing) reads of each is the first
/// 64 bytes, and all that the holder publishes is within 128.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CpuShared {
    /// Root load average.
    pub load_avg: AtomicU64,
    /// Root runnable average.
    pub runnable_avg: AtomicU64,
    /// Root utilisation average.
    pub util_avg: AtomicU64,
    /// Capacity left for fair tasks (`cpu_capacity`, written by whoever balances for this CPU).
    pub capacity: AtomicU64,
    /// Root estimated utilisation.
    pub util_est: AtomicU32,
    /// `rq->nr_running`.
    pub nr_running: AtomicU32,
    /// Root `h_nr_runnable`.
    pub h_nr_runnable: AtomicU32,
    /// Root `h_nr_idle`.
    pub h_nr_idle: AtomicU32,
    /// Load of a misfit task.
    pub misfit_task_load: AtomicU64,
    /// The idle task is current.
    pub curr_is_idle: AtomicBool,
    /// A remote wake-up is on its way (written by the waker).
    pub ttwu_pending: AtomicBool,
    /// Some load has not decayed.
    pub has_blocked_load: AtomicBool,
    /// The tick is stopped and the CPU is in `nohz.idle_cpus_mask`.
    pub nohz_tick_stopped: AtomicBool,
    /// Root `h_nr_queued`.
    pub h_nr_queued: AtomicU32,
    /// Group of the running task.
    pub curr_tg: AtomicU32,
    /// `nohz_flags` (written by whoever kicks).
    pub(super) nohz_flags: AtomicU32,
    /// Load average of the running task; 0 while idle.
    pub curr_load_avg: AtomicU64,
    /// Since when idle, ns; 0 = not.
    pub idle_stamp: AtomicU64,
    /// Average idle period, ns.
    pub avg_idle: AtomicU64,
    /// Next periodic balance, jiffies (written by whoever balances for this CPU).
    pub(super) next_balance: AtomicU64,
    /// `rq->clock`, for the lag between load tracking clocks of a migrating task.
    pub clock_idle: AtomicU64,
    /// `rq->clock_pelt_idle`.
    pub clock_pelt_idle: AtomicU64,
    /// Jiffy of the last update of the blocked load.
    pub last_blocked_update: AtomicU64,
    /// Longest recent cost of a newly-idle balance over all levels, ns (written by whoever balances
    /// for this CPU).
    pub(super) max_idle_balance_cost: AtomicU64,
    /// Exit latency of the idle state the CPU is in, ns, plus one; 0 = not in one (written by
    /// the host).
    pub idle_exit_latency: AtomicU64,
    /// How much of the CPU the real-time class uses (`cpu_util_rt`), 1024 = all.
    pub util_avg_rt: AtomicU32,
    /// The running task, as its number + 1; 0: the idle one.
    pub curr_task: AtomicU32,
    /// `distribute_cpu_mask_prev` (only this CPU's own, whatever it executes; no lock).
    distribute_prev: AtomicU32,
    /// The idle task's words as a waker: wake-ups from interrupts count as its own (written by
    /// this CPU while idle).
    pub idle_task: TaskShared,
}

const _: () = {
    assert!(core::mem::offset_of!(CpuShared, misfit_task_load) + 8 <= 64);
    assert!(core::mem::offset_of!(CpuShared, ttwu_pending) < 64);
    assert!(core::mem::offset_of!(CpuShared, last_blocked_update) < 128);
};

impl CpuShared {
    /// Fair tasks in the queue, with or without those that sleep there (delayed dequeue).
    #[inline]
    #[must_use]
    pub fn h_nr(&self, with_sleepers: bool) -> u32 {
        let number = match with_sleepers {
            true => &self.h_nr_queued,
            false => &self.h_nr_runnable,
        };
        number.load(Relaxed)
    }

    /// The kernel's idle test: the idle task runs, nothing is queued and nothing is on its way.
    #[inline]
    #[must_use]
    pub fn idle_cpu(&self) -> bool {
        self.curr_is_idle.load(Relaxed)
            && self.nr_running.load(Relaxed) == 0
            && !self.ttwu_pending.load(Relaxed)
    }

    /// Only `SCHED_IDLE` work is queued.
    #[inline]
    #[must_use]
    pub fn sched_idle_cpu(&self) -> bool {
        let n = self.nr_running.load(Relaxed);
        n != 0 && n == self.h_nr_idle.load(Relaxed)
    }

    /// Of a CPU whose choices go on after `cpu`: the kernel's all begin with 0, but what has booted
    /// has chosen before.
    pub(crate) fn distribute_after(mut self, cpu: Cpu) -> Self {
        self.distribute_prev = cpu.0.into();
        self
    }

    /// A CPU of `allowed`, a different one each time (`cpumask_any_and_distribute`). Asked of the
    /// executing CPU: each goes on where it has got to, for whomever it chooses.
    pub(crate) fn any_and_distribute(&self, allowed: &CpuMask) -> Option<Cpu> {
        let after = Cpu(self.distribute_prev.load(Relaxed) + 1);
        let cpu = allowed.iter_wrap(after).next()?;
        self.distribute_prev.store(cpu.0, Relaxed);
        Some(cpu)
    }
}
