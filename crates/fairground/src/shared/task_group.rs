//! A task group: its weight, its published load, its quota.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use super::cfs_bandwidth::to_cpu;
use super::{CfsBandwidth, CpuStat, Pool, Relaxed, TgCpu, TgCpus};
use crate::host::Host;
use crate::math::weight::{NICE_0_LOAD, WEIGHT_IDLEPRIO, scale_load};
use crate::place::{Access, Fields, Kind, Object, cfs_rq as q, tg as f, tg_arrays as arrays};
use crate::value::{Cpu, TgId};

/// What `cpu.max` and `cpu.max.burst` of a group hold, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMax {
    /// `None`: no limit ("max").
    pub quota: Option<u64>,
    /// The period.
    pub period: u64,
    /// The burst.
    pub burst: u64,
}

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
    /// Execution of tasks of higher classes, of the group and below, ns.
    higher_ns: AtomicU64,
    /// Quota.
    pub bandwidth: CfsBandwidth,
    id: TgId,
    cpu: TgCpus,
}

impl TaskGroup {
    /// What `cpu.max` reads. Quota, period and burst can be longer than they were set: when the
    /// handler of the period timer cannot keep up, all are stretched alike.
    #[must_use]
    pub fn cpu_max(&self) -> CpuMax {
        let limit = self.bandwidth.peek_limit();
        CpuMax {
            quota: limit.map(|(quota, _)| quota),
            period: self.bandwidth.period.load(Relaxed),
            burst: limit.map_or(0, |(_, burst)| burst),
        }
    }

    /// The root, whose queues exist from the start.
    pub(crate) fn root(nr_cpus: usize) -> Self {
        let mut tg = Self::new(TgId::ROOT, TgId::ROOT, 0);
        tg.parent = None;
        tg.open(nr_cpus);
        for cpu in 0..nr_cpus {
            let _ = tg.cpu(Cpu(cpu as u32));
        }
        tg
    }

    pub(crate) fn new(id: TgId, parent: TgId, depth: u32) -> Self {
        Self {
            parent: Some(parent),
            children: Vec::new(),
            depth,
            shares: AtomicU64::new(1024 << 10),
            idle: AtomicBool::new(false),
            load_avg: AtomicI64::new(0),
            higher_ns: AtomicU64::new(0),
            bandwidth: CfsBandwidth::default(),
            id,
            cpu: TgCpus::default(),
        }
    }

    pub(crate) fn open(&mut self, nr_cpus: usize) {
        if self.cpu.is_empty() {
            self.cpu = TgCpus::new(nr_cpus);
        }
    }

    /// Whether the group has words for CPUs, so that tasks can be in it: it was opened
    /// ([`System::open_group`](crate::system::System::open_group)), or a group below was.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.cpu.is_empty()
    }

    /// The words of `cpu`, in use from now on; only of a group that is open.
    #[must_use]
    pub fn cpu(&self, cpu: Cpu) -> &Arc<TgCpu> {
        self.cpu.at(cpu)
    }

    /// The words of `cpu`, if the group ever had a queue there.
    #[inline]
    #[must_use]
    pub fn words(&self, cpu: Cpu) -> Option<&TgCpu> {
        self.cpu.get(cpu)
    }

    /// The queue of the group on `cpu`, as a place.
    #[inline]
    #[must_use]
    pub fn queue(&self, cpu: Cpu) -> Object {
        Object {
            kind: Kind::CfsRq,
            a: cpu.0,
            b: self.id.0,
        }
    }

    /// The group, as a place.
    #[inline]
    #[must_use]
    pub const fn object(&self) -> Object {
        Object {
            kind: Kind::Tg,
            a: self.id.0,
            b: 0,
        }
    }

    /// The group's queue on `cpu` is looked up (`tg->cfs_rq[cpu]`).
    #[inline]
    pub fn look_up_queue<H: Host + ?Sized>(&self, cpu: Cpu, host: &mut H) {
        self.look_up(cpu, arrays::CFS_RQ_LOW, arrays::CFS_RQ_HIGH, host);
    }

    /// The group's entity on `cpu` is looked up (`tg->se[cpu]`).
    #[inline]
    pub fn look_up_entity<H: Host + ?Sized>(&self, cpu: Cpu, host: &mut H) {
        self.look_up(cpu, arrays::SE_LOW, arrays::SE_HIGH, host);
    }

    fn look_up<H: Host + ?Sized>(&self, cpu: Cpu, low: Fields, high: Fields, host: &mut H) {
        host.touch(self.object(), f::CFS_ARRAYS, Access::Read);
        let part = Object {
            kind: Kind::TgArrays,
            a: cpu.0 / 16,
            b: self.id.0,
        };
        let half = if cpu.0 % 16 < 8 { low } else { high };
        host.touch(part, half, Access::Read);
    }

    /// Whether something is on the group's queue on `cpu`. Any CPU may ask.
    #[must_use]
    pub fn queued_on<H: Host>(&self, cpu: Cpu, host: &mut H) -> bool {
        if !self.is_open() {
            return false;
        }
        host.touch(self.queue(cpu), q::NR_QUEUED, Access::Read);
        self.words(cpu).is_some_and(|own| own.queued.load(Relaxed))
    }

    /// Whether the group's queue on `cpu` is throttled itself or by one above it; `None` if there
    /// is no such queue yet, and those above decide.
    #[must_use]
    pub fn throttled_hierarchy(&self, cpu: Cpu) -> Option<bool> {
        let count = self.words(cpu)?.throttle_count.load(Relaxed);
        Some(count.checked_sub(1)? > 0)
    }

    /// Runs `f` with the group's pool locked.
    pub fn with_pool<H: Host, T>(&self, host: &mut H, f: impl FnOnce(&mut Pool<'_, H>) -> T) -> T {
        self.bandwidth.locked(self.id, &self.cpu, host, f)
    }

    /// The throttled queue after that on `after`, first of all if `None`.
    #[must_use]
    pub fn next_throttled(&self, after: Option<Cpu>) -> Option<Cpu> {
        match after {
            None => self.bandwidth.peek_first_throttled(),
            Some(cpu) => to_cpu(self.words(cpu)?.throttled_next.load(Relaxed)),
        }
    }

    /// `cpu.stat`, for reports: not a touch of the scheduler.
    #[must_use]
    pub fn cpu_stat(&self) -> CpuStat {
        let fair: u64 = self.cpu.iter().map(|c| c.usage.load(Relaxed)).sum();
        CpuStat {
            usage_ns: fair + self.higher_ns.load(Relaxed),
            ..self.bandwidth.stat()
        }
    }

    pub(crate) fn charge_higher(&self, ns: u64) {
        self.higher_ns.fetch_add(ns, Relaxed);
    }

    /// Adds `delta` to the group's published load. Any CPU may write.
    #[inline]
    pub fn add_load_avg<H: Host + ?Sized>(&self, delta: i64, host: &mut H) {
        host.touch(self.object(), f::LOAD_AVG, Access::Rmw);
        self.load_avg.fetch_add(delta, Relaxed);
    }

    /// `cpu.idle` is written: the group weighs as little as a `SCHED_IDLE` task, or as much as a
    /// new group again. Every CPU has to take it up then: that is
    /// [`sched::set_idle`](crate::sched::set_idle), this alone is for a group without tasks.
    pub fn set_idle(&self, idle: bool) {
        if self.idle.load(Relaxed) == idle {
            // It keeps its weight.
            return;
        }
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
    pub fn shares_and_load<H: Host + ?Sized>(&self, host: &mut H) -> (u64, i64) {
        host.touch(self.object(), f::SHARES | f::LOAD_AVG, Access::Read);
        (self.shares.load(Relaxed), self.load_avg.load(Relaxed))
    }

    /// The published load, for reports and checkers: not a touch of the scheduler.
    #[must_use]
    pub fn peek_load_avg(&self) -> i64 {
        self.load_avg.load(Relaxed)
    }
}
