//! A task group: its weight, its published load, its quota.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};

use super::{CfsBandwidth, Relaxed};
use crate::host::Host;
use crate::place::{Access, Kind, Object, tg as f};
use crate::value::{CfsId, Cpu, TgId};

/// A task group (`cpu` cgroup).
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

/// What other CPUs leave for, or read of, one group's queue on one CPU.
#[derive(Debug, Default)]
pub struct TgCpu {
    /// `cfs_rq.avg.last_update_time`, for tasks that leave asleep.
    pub last_update_time: AtomicU64,
    /// Accumulated PELT time throttled while idle (`throttled_pelt_idle`).
    pub throttled_pelt_idle: AtomicU64,
    /// Tasks that left asleep since the queue last looked.
    pub removed_nr: AtomicU32,
    /// Their load.
    pub removed_load: AtomicU64,
    /// Their utilisation.
    pub removed_util: AtomicU64,
    /// Their runnable average.
    pub removed_runnable: AtomicU64,
    /// Order in which the queue was throttled; 0 = it is not.
    pub throttled_seq: AtomicU64,
    /// Runtime granted by an unthrottle that the owner has not yet seen, ns; 0 = none.
    pub granted: AtomicI64,
    /// Id of the queue in its CPU's `Rq`, by which its touches are named; written by the owner.
    pub cfs: AtomicU32,
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
    pub fn publish_load(&self, cfs: CfsId, queue_load_avg: u64, se_load_avg: u64) {
        self.cfs.store(cfs.0, Relaxed);
        self.queue_load_avg.store(queue_load_avg, Relaxed);
        self.se_load_avg.store(se_load_avg, Relaxed);
    }
}

impl TaskGroup {
    pub(crate) fn root(nr_cpus: usize) -> Self {
        let mut tg = Self::new(TgId::ROOT, 0);
        tg.parent = None;
        tg.open(nr_cpus);
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

    pub(crate) fn open(&mut self, nr_cpus: usize) {
        if self.cpu.is_empty() {
            self.cpu = (0..nr_cpus).map(|_| TgCpu::default()).collect();
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

    /// The published load, for reports and checkers: not a touch of the scheduler.
    #[must_use]
    pub fn peek_load_avg(&self) -> i64 {
        self.load_avg.load(Relaxed)
    }
}
