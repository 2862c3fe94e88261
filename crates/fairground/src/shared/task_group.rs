//! A task group: its weight, its published load, its quota.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use super::cfs_bandwidth::to_cpu;
use super::{CfsBandwidth, CpuStat, Pool, Relaxed};
use crate::host::Host;
use crate::math::weight::{NICE_0_LOAD, WEIGHT_IDLEPRIO, scale_load};
use crate::place::{Access, Fields, Kind, Object, cfs_rq as q, tg as f};
use crate::value::{Cpu, TgId};

/// A task group (`cpu` cgroup): its place in the tree `[set]`, the rest `[any]`.
#[derive(Debug)]
pub struct TaskGroup {
    /// The group above; `None` for the root.
    pub parent: Option<TgId>,
    /// The groups below.
    pub children: Vec<TgId>,
    /// Levels below the root.
    pub depth: u32,
    /// Weight, in load units (nice 0 = 1024 << 10).
    pub shares: AtomicU64,
    /// `cpu.idle`.
    pub idle: AtomicBool,
    load_avg: AtomicI64,
    /// Quota.
    pub bandwidth: CfsBandwidth,
    cpu: Box<[TgCpu]>,
}

/// `[pub]`, or `[any]` where an accessor says so: what other CPUs leave for, or read of, one
/// group's queue on one CPU.
#[derive(Debug, Default)]
pub struct TgCpu {
    /// `cfs_rq.avg.last_update_time`, for tasks that leave asleep.
    last_update_time: AtomicU64,
    /// CFS only: `cfs_rq.min_vruntime`, for tasks that leave asleep.
    pub min_vruntime: AtomicU64,
    /// PELT time for which the queue was throttled, as of when it last became empty
    /// (`throttled_pelt_idle`); `u64::MAX` = its clock stands still.
    pub throttled_pelt_idle: AtomicU64,
    removed_nr: AtomicU32,
    removed_load: AtomicU64,
    removed_util: AtomicU64,
    removed_runnable: AtomicU64,
    /// List of throttled queues, as CPU + 1; changed under the group's bandwidth lock.
    pub(super) throttled_prev: AtomicU32,
    /// The same, forwards.
    pub(super) throttled_next: AtomicU32,
    /// `cfs_rq.throttle_count` + 1, as the owner has published it; 0 = there is no queue yet.
    throttle_count: AtomicU32,
    /// Execution of the group's tasks, and of those below, on this CPU, ns.
    usage: AtomicU64,
    /// The group.
    tg: TgId,
    /// Something is on the queue (`nr_queued != 0`), written by the owner.
    queued: AtomicBool,
    /// `cfs_rq.avg.load_avg` of a group below the root, written by the owner.
    pub queue_load_avg: AtomicU64,
    /// `load_avg` of the entity that stands for the queue above, written by the owner.
    pub se_load_avg: AtomicU64,
    /// `h_load` as a waker on any CPU last computed it; see [`select`](crate::select).
    pub h_load: AtomicU64,
    /// Jiffy of that, plus one; 0 = never.
    pub h_load_stamp: AtomicU64,
}

impl TgCpu {
    /// What wakers need for the hierarchical load of a task that last ran here. To be called by
    /// the owner whenever either average changes.
    #[inline]
    pub fn publish_load(&self, queue_load_avg: u64, se_load_avg: u64) {
        self.queue_load_avg.store(queue_load_avg, Relaxed);
        self.se_load_avg.store(se_load_avg, Relaxed);
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

    /// The queue of the group on `cpu`, as a place.
    #[inline]
    #[must_use]
    pub fn queue(&self, cpu: Cpu) -> Object {
        Object {
            kind: Kind::CfsRq,
            a: cpu.0,
            b: self.tg.0,
        }
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

    /// Leaves the averages of a sleeping task for the owner to subtract. Any CPU may write.
    pub fn add_removed<H: Host + ?Sized>(&self, queue: Object, task: Removed, host: &mut H) {
        host.touch(queue, q::REMOVED, Access::Rmw);
        self.removed_load.fetch_add(task.load, Relaxed);
        self.removed_util.fetch_add(task.util, Relaxed);
        self.removed_runnable.fetch_add(task.runnable, Relaxed);
        self.removed_nr.fetch_add(1, Relaxed);
    }

    /// What was left since the last look. `also` are fields of the queue that the owner reads
    /// with it: one report for all, as every update of a queue comes by here.
    #[inline]
    pub(crate) fn take_removed<H: Host + ?Sized>(
        &self,
        queue: Object,
        also: Fields,
        host: &mut H,
    ) -> Option<Removed> {
        host.touch(queue, also | q::REMOVED, Access::Read);
        if self.removed_nr.load(Relaxed) == 0 {
            return None;
        }
        host.touch(queue, q::REMOVED, Access::Rmw);
        self.removed_nr.store(0, Relaxed);
        Some(Removed {
            load: self.removed_load.swap(0, Relaxed),
            util: self.removed_util.swap(0, Relaxed),
            runnable: self.removed_runnable.swap(0, Relaxed),
        })
    }
}

impl TaskGroup {
    pub(crate) fn root(nr_cpus: usize) -> Self {
        let mut tg = Self::new(TgId::ROOT, 0);
        tg.parent = None;
        tg.open(TgId::ROOT, nr_cpus);
        tg
    }

    pub(crate) fn new(parent: TgId, depth: u32) -> Self {
        Self {
            parent: Some(parent),
            children: Vec::new(),
            depth,
            shares: AtomicU64::new(1024 << 10),
            idle: AtomicBool::new(false),
            load_avg: AtomicI64::new(0),
            bandwidth: CfsBandwidth::default(),
            cpu: Box::default(),
        }
    }

    pub(crate) fn open(&mut self, id: TgId, nr_cpus: usize) {
        if self.cpu.is_empty() {
            let words = |_| TgCpu {
                tg: id,
                ..TgCpu::default()
            };
            self.cpu = (0..nr_cpus).map(words).collect();
        }
    }

    /// Whether a task was ever in the group or below.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.cpu.is_empty()
    }

    /// The per-CPU words; only of a group that is open.
    #[inline]
    #[must_use]
    pub fn cpu(&self, cpu: Cpu) -> &TgCpu {
        &self.cpu[cpu.idx()]
    }

    /// All per-CPU words, by CPU; empty while the group is not open.
    #[must_use]
    pub fn cpus(&self) -> &[TgCpu] {
        &self.cpu
    }

    /// Whether something is on the group's queue on `cpu`. Any CPU may ask.
    #[must_use]
    pub fn queued_on<H: Host>(&self, cpu: Cpu, host: &mut H) -> bool {
        let Some(own) = self.cpu.get(cpu.idx()) else {
            return false;
        };
        host.touch(own.queue(cpu), q::NR_QUEUED, Access::Read);
        own.queued.load(Relaxed)
    }

    /// Whether the group's queue on `cpu` is throttled itself or by one above it; `None` if there
    /// is no such queue yet, and those above decide. Any CPU may ask.
    #[must_use]
    pub fn throttled_hierarchy<H: Host>(&self, cpu: Cpu, host: &mut H) -> Option<bool> {
        let own = self.cpu.get(cpu.idx())?;
        let count = own.throttle_count.load(Relaxed).checked_sub(1)?;
        host.touch(own.queue(cpu), q::THROTTLE_COUNT, Access::Read);
        Some(count > 0)
    }

    /// Runs `f` with the group's pool locked.
    pub fn with_pool<H: Host, T>(
        &self,
        id: TgId,
        host: &mut H,
        f: impl FnOnce(&mut Pool<'_, H>) -> T,
    ) -> T {
        self.bandwidth.locked(id, &self.cpu, host, f)
    }

    /// The throttled queue after that on `after`, first of all if `None`.
    #[must_use]
    pub fn next_throttled(&self, after: Option<Cpu>) -> Option<Cpu> {
        match after {
            None => self.bandwidth.peek_first_throttled(),
            Some(cpu) => to_cpu(self.cpu[cpu.idx()].throttled_next.load(Relaxed)),
        }
    }

    /// `cpu.stat`, for reports: not a touch of the scheduler.
    #[must_use]
    pub fn cpu_stat(&self) -> CpuStat {
        CpuStat {
            usage_ns: self.cpu.iter().map(|c| c.usage.load(Relaxed)).sum(),
            ..self.bandwidth.stat()
        }
    }

    /// Adds `delta` to the group's published load. Any CPU may write.
    #[inline]
    pub fn add_load_avg<H: Host + ?Sized>(&self, id: TgId, delta: i64, host: &mut H) {
        host.touch(
            Object {
                kind: Kind::Tg,
                a: id.0,
                b: 0,
            },
            f::LOAD_AVG,
            Access::Rmw,
        );
        self.load_avg.fetch_add(delta, Relaxed);
    }

    /// The group's published load.
    #[inline]
    #[must_use]
    pub fn load_avg<H: Host + ?Sized>(&self, id: TgId, host: &mut H) -> i64 {
        host.touch(
            Object {
                kind: Kind::Tg,
                a: id.0,
                b: 0,
            },
            f::LOAD_AVG,
            Access::Read,
        );
        self.load_avg.load(Relaxed)
    }

    /// `cpu.idle` is written: the group weighs as little as a `SCHED_IDLE` task, or as much as a
    /// new group again. Every CPU has to take it up then ([`set_idle`](crate::fair::group)).
    pub fn set_idle(&self, idle: bool) {
        let weight = if idle {
            scale_load(WEIGHT_IDLEPRIO as u64)
        } else {
            NICE_0_LOAD
        };
        self.idle.store(idle, Relaxed);
        self.shares.store(weight, Relaxed);
    }

    /// The group's weight (scaled) and its published load.
    #[inline]
    #[must_use]
    pub fn shares_and_load<H: Host + ?Sized>(&self, id: TgId, host: &mut H) -> (u64, i64) {
        host.touch(
            Object {
                kind: Kind::Tg,
                a: id.0,
                b: 0,
            },
            f::SHARES | f::LOAD_AVG,
            Access::Read,
        );
        (self.shares.load(Relaxed), self.load_avg.load(Relaxed))
    }

    /// The published load, for reports and checkers: not a touch of the scheduler.
    #[must_use]
    pub fn peek_load_avg(&self) -> i64 {
        self.load_avg.load(Relaxed)
    }
}
