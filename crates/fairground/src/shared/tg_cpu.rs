//! What other CPUs leave for, or read of, one group's queue on one CPU.
//!
//! The kernel allocates this for every CPU when a group is made. Here the words of a CPU come to be
//! with the queue there, or when something is first left for it: of 10 000 groups on 224 CPUs most
//! never have a queue on most CPUs. That needs a cell that can be filled through a shared
//! reference, which `core` does not have without `unsafe`; so it is the standard library's, by
//! the crate's feature `std`. Without it all words exist from the group's first task on, and those
//! that are not yet in use are treated as if they did not: what the engine does is the same.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering::{Acquire, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::Relaxed;
use crate::host::Host;
use crate::place::{Access, Object, cfs_rq as q};
use crate::value::Cpu;

/// The words of one group by CPU.
#[derive(Debug, Default)]
pub struct TgCpus {
    slots: Box<[Slot]>,
}

impl TgCpus {
    /// Of a machine with `nr_cpus` CPUs, none in use.
    #[must_use]
    pub fn new(nr_cpus: usize) -> Self {
        Self {
            slots: (0..nr_cpus).map(|_| Slot::default()).collect(),
        }
    }

    /// Whether there are no CPUs: the group has never had a task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The words of `cpu`, if they are in use.
    #[inline]
    #[must_use]
    pub fn get(&self, cpu: Cpu) -> Option<&TgCpu> {
        self.slots.get(cpu.idx())?.get()
    }

    /// The words of `cpu`, in use from now on. `cpu` is one of the machine.
    ///
    /// # Panics
    /// If the group has never been opened (`System::open_group`).
    #[must_use]
    pub fn at(&self, cpu: Cpu) -> &Arc<TgCpu> {
        let slot = self.slots.get(cpu.idx());
        slot.expect("System::open_group first").make()
    }

    /// All that are in use.
    pub fn iter(&self) -> impl Iterator<Item = &TgCpu> {
        self.slots.iter().filter_map(Slot::get)
    }
}

#[cfg(feature = "std")]
#[derive(Debug, Default)]
struct Slot(std::sync::OnceLock<Arc<TgCpu>>);

#[cfg(feature = "std")]
impl Slot {
    #[inline]
    fn get(&self) -> Option<&TgCpu> {
        self.0.get().map(|words| &**words)
    }

    fn make(&self) -> &Arc<TgCpu> {
        self.0.get_or_init(Arc::default)
    }
}

#[cfg(not(feature = "std"))]
#[derive(Debug, Default)]
struct Slot {
    words: Arc<TgCpu>,
    used: AtomicBool,
}

#[cfg(not(feature = "std"))]
impl Slot {
    #[inline]
    fn get(&self) -> Option<&TgCpu> {
        self.used.load(Relaxed).then(|| &*self.words)
    }

    fn make(&self) -> &Arc<TgCpu> {
        self.used.store(true, Relaxed);
        &self.words
    }
}

/// `[pub]`, or `[any]` where an accessor says so: what other CPUs leave for, or read of, one
/// group's queue on one CPU. The queue has a hand on it too ([`CfsRq::words`](crate::rq::CfsRq)).
///
/// In the order of use: what each update of the queue writes is on one host line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct TgCpu {
    /// `cfs_rq.avg.last_update_time`, for tasks that leave asleep.
    last_update_time: AtomicU64,
    /// Execution of the group's tasks, and of those below, on this CPU, ns.
    pub(super) usage: AtomicU64,
    /// `cfs_rq.avg.load_avg` of a group below the root, written by the owner.
    pub queue_load_avg: AtomicU64,
    /// `load_avg` of the entity that stands for the queue above, written by the owner.
    pub se_load_avg: AtomicU64,
    removed_nr: AtomicU32,
    /// Something is on the queue (`nr_queued != 0`), written by the owner.
    pub(super) queued: AtomicBool,
    /// CFS only: `cfs_rq.min_vruntime`, for tasks that leave asleep.
    pub min_vruntime: AtomicU64,
    /// PELT time for which the queue was throttled, as of when it last became empty
    /// (`throttled_pelt_idle`); `u64::MAX` = its clock stands still.
    pub throttled_pelt_idle: AtomicU64,
    removed_load: AtomicU64,
    removed_util: AtomicU64,
    removed_runnable: AtomicU64,
    /// List of throttled queues, as CPU + 1; changed under the group's bandwidth lock.
    pub(super) throttled_prev: AtomicU32,
    /// The same, forwards.
    pub(super) throttled_next: AtomicU32,
    /// `cfs_rq.throttle_count` + 1, as the owner has published it; 0 = there is no queue yet.
    pub(super) throttle_count: AtomicU32,
    /// `h_load` as whoever asked first in a jiffy computed it; see
    /// [`fair::h_load`](crate::fair::h_load).
    pub h_load: AtomicU64,
    /// Jiffy of that, plus one; 0 = never.
    pub h_load_stamp: AtomicU64,
}

impl TgCpu {
    /// What wakers need for the hierarchical load of a task that last ran here.
    pub fn publish_load(&self, queue_load_avg: u64, se_load_avg: u64) {
        self.publish_queue_load(queue_load_avg);
        self.publish_entity_load(se_load_avg);
    }

    /// To be called by the owner whenever the load average of the queue changes.
    #[inline]
    pub(crate) fn publish_queue_load(&self, load_avg: u64) {
        self.queue_load_avg.store(load_avg, Relaxed);
    }

    /// To be called by the owner whenever the load average of the group's entity changes.
    #[inline]
    pub(crate) fn publish_entity_load(&self, load_avg: u64) {
        self.se_load_avg.store(load_avg, Relaxed);
    }
}

/// Averages of tasks that left asleep (`cfs_rq->removed`): unscaled load, capacity scale.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// Sum of their `load_avg`.
    pub load: u64,
    /// Sum of their `util_avg`.
    pub util: u64,
    /// Sum of their `runnable_avg`.
    pub runnable: u64,
}

impl TgCpu {
    /// The owner publishes how many throttled queues there are at or above.
    pub(crate) fn publish_throttle(&self, throttle_count: u32) {
        self.throttle_count.store(throttle_count + 1, Relaxed);
    }

    /// The owner publishes that the queue has got its first entity, or lost its last.
    #[inline]
    pub(crate) fn publish_queued(&self, queued: bool) {
        self.queued.store(queued, Relaxed);
    }

    /// The owner counts execution.
    #[inline]
    pub(crate) fn charge(&self, delta: u64) {
        let usage = self.usage.load(Relaxed);
        self.usage.store(usage.wrapping_add(delta), Relaxed);
    }

    /// The owner has aged its queue to `now` (PELT clock, ns). Part of its store to
    /// `avg.last_update_time`, which it reports itself.
    #[inline]
    pub(crate) fn set_last_update_time(&self, now: u64) {
        self.last_update_time.store(now, Relaxed);
    }

    /// PELT clock up to which the queue was aged, ns.
    #[inline]
    pub fn last_update_time<H: Host + ?Sized>(&self, queue: Object, host: &mut H) -> u64 {
        host.touch(queue, q::AVG_LAST_UPDATE, Access::Read);
        self.last_update_time.load(Relaxed)
    }

    /// The owner's queue has become empty with `throttled` ns of PELT time spent throttled.
    #[inline]
    pub(crate) fn set_throttled_pelt_idle<H: Host + ?Sized>(
        &self,
        queue: Object,
        throttled: u64,
        host: &mut H,
    ) {
        host.touch(queue, q::THROTTLED_PELT_IDLE, Access::Write);
        self.throttled_pelt_idle.store(throttled, Relaxed);
    }

    /// PELT time for which the queue was throttled, ns; `u64::MAX` = its clock stands still.
    #[inline]
    pub fn throttled_pelt_idle<H: Host + ?Sized>(&self, queue: Object, host: &mut H) -> u64 {
        host.touch(queue, q::THROTTLED_PELT_IDLE, Access::Read);
        self.throttled_pelt_idle.load(Relaxed)
    }

    /// Leaves the averages of a sleeping task for the owner to subtract. Any CPU may write; the
    /// number comes last, so who sees it sees the averages.
    pub fn add_removed<H: Host + ?Sized>(&self, queue: Object, task: Removed, host: &mut H) {
        host.touch(queue, q::REMOVED, Access::Rmw);
        self.removed_load.fetch_add(task.load, Relaxed);
        self.removed_util.fetch_add(task.util, Relaxed);
        self.removed_runnable.fetch_add(task.runnable, Relaxed);
        self.removed_nr.fetch_add(1, Release);
    }

    /// What was left since the last look. That the owner looks it reports itself, with what else
    /// it reads of the queue, as every update of a queue comes by here.
    #[inline]
    pub(crate) fn take_removed<H: Host + ?Sized>(
        &self,
        queue: Object,
        host: &mut H,
    ) -> Option<Removed> {
        if self.removed_nr.load(Relaxed) == 0 {
            return None;
        }
        host.touch(queue, q::REMOVED, Access::Rmw);
        // First, so what comes meanwhile is counted again, if also taken now.
        self.removed_nr.swap(0, Acquire);
        Some(Removed {
            load: self.removed_load.swap(0, Relaxed),
            util: self.removed_util.swap(0, Relaxed),
            runnable: self.removed_runnable.swap(0, Relaxed),
        })
    }
}
