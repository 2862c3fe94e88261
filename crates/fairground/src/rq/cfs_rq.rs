//! One group's queue on one CPU.

use alloc::sync::Arc;

use super::RqClock;
use crate::math::eevdf::AvgVruntime;
use crate::math::pelt::SchedAvg;
use crate::math::weight::LoadWeight;
use crate::place::{Kind, Object};
use crate::shared::{Deadline, TgCpu};
use crate::tree::Tree;
use crate::value::{CfsId, Cpu, SeId, TgId};

/// `[own]` A fair queue: a tree of entities by virtual deadline (EEVDF) or virtual run time (CFS).
///
/// In the order of use: a tick is on the first three host lines, and so is a choice, but for the
/// buddies of CFS.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CfsRq {
    /// What other CPUs leave for it or read of it: those of its group for this CPU.
    pub words: Arc<TgCpu>,
    /// Sum of the weights of the queued entities, the running one included.
    pub load: LoadWeight,
    /// Queued entities, the running one included.
    pub nr_queued: u32,
    /// Queued tasks at or below, delayed ones included.
    pub h_nr_queued: u32,
    /// Runnable tasks at or below: without delayed ones.
    pub h_nr_runnable: u32,
    /// Its group.
    pub tg: TgId,
    /// The running entity.
    pub curr: Option<SeId>,
    /// Sum of PELT time spent throttled.
    pub throttled_clock_pelt_time: u64,
    /// Its load-tracking clock stands still (throttled and empty).
    pub pelt_clock_throttled: bool,
    /// Change below that the entity must take over.
    pub propagate: bool,
    /// `cpu.idle` of the group.
    pub idle: bool,
    /// On the list of leaf queues.
    pub on_list: bool,
    /// The group has a quota.
    pub runtime_enabled: bool,
    /// Out of runtime.
    pub throttled: bool,
    /// On the list `Rq::unthrottle_first` of those that have got runtime from another CPU.
    pub unthrottle_queued: bool,
    /// Weighted sum of keys of the entities in the tree, relative to `zero_vruntime`.
    pub avg_vruntime: AvgVruntime,
    /// Reference point of virtual time (`zero_vruntime`; `min_vruntime` before 6.18.4 and in CFS).
    pub zero_vruntime: u64,
    /// The queued entities, without the running one.
    pub tree: Tree,
    /// Buddy that was asked to run next.
    pub next: Option<SeId>,
    /// When its load was last published to the group, ns of the scheduler clock.
    pub last_update_tg_load_avg: u64,
    /// What it has published.
    pub tg_load_avg_contrib: u64,
    /// Load tracking of the queue.
    pub avg: SchedAvg,
    /// Queued tasks of `SCHED_IDLE` or of idle groups at or below.
    pub h_nr_idle: u32,
    /// The queue above; the root has itself.
    pub parent: CfsId,
    /// The entity that stands for it above; `None` for the root.
    pub se: Option<SeId>,
    /// Throttled queues at or above.
    pub throttle_count: u32,
    /// PELT clock when throttled.
    pub throttled_clock_pelt: u64,
    /// Runnable sum to take over with the change that `propagate` notes.
    pub prop_runnable_sum: i64,
    /// Monotonic floor of virtual time (CFS, and EEVDF before 6.18.4).
    pub min_vruntime: u64,
    /// Buddy that was preempted last (CFS).
    pub last: Option<SeId>,
    /// Buddy that yielded (CFS).
    pub skip: Option<SeId>,
    /// Local runtime left, ns; negative = debt.
    pub runtime_remaining: i64,
    /// Links of that list.
    pub leaf_prev: Option<CfsId>,
    /// Links of that list.
    pub leaf_next: Option<CfsId>,
    /// `rq` clock when it was throttled; 0 = not.
    pub throttled_clock: u64,
    /// Tasks dequeued by throttling, first of a list through `TaskBody::limbo_next`.
    pub limbo: Option<SeId>,
    /// Next of that list.
    pub unthrottle_next: Option<CfsId>,
    /// The deadline for which its runtime was drawn (before 5.4).
    pub runtime_expires: Deadline,
}

#[cfg(target_pointer_width = "64")]
const _: () = {
    assert!(core::mem::offset_of!(CfsRq, unthrottle_queued) < 64);
    assert!(core::mem::offset_of!(CfsRq, avg) == 128);
};

impl CfsRq {
    /// The root queue of a CPU.
    #[must_use]
    pub fn root(words: Arc<TgCpu>) -> Self {
        Self {
            words,
            ..Self::default()
        }
    }

    /// This queue, of `cpu`, as a place.
    #[inline]
    #[must_use]
    pub fn object(&self, cpu: Cpu) -> Object {
        Object {
            kind: Kind::CfsRq,
            a: cpu.0,
            b: self.tg.0,
        }
    }

    /// Its load-tracking clock, ns: that of its CPU without the time it spent throttled.
    #[inline]
    #[must_use]
    pub fn clock_pelt(&self, clock: &RqClock) -> u64 {
        let now = if self.pelt_clock_throttled {
            self.throttled_clock_pelt
        } else {
            clock.pelt()
        };
        now - self.throttled_clock_pelt_time
    }

    /// A queue of `tg`, below `parent`, represented by `se`.
    #[must_use]
    pub fn new(tg: TgId, words: Arc<TgCpu>, parent: CfsId, se: SeId) -> Self {
        Self {
            tg,
            words,
            parent,
            se: Some(se),
            ..Self::default()
        }
    }

    /// Whether tasks at or below are kept from running by a quota (`throttled_hierarchy`).
    #[must_use]
    pub fn throttled_hierarchy(&self) -> bool {
        self.throttle_count > 0
    }
}
