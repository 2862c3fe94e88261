//! The context of one call into the engine.

use alloc::vec::Vec;
use core::fmt;

use crate::host::Host;
use crate::place::{Access, Fields, Func, Kind, Lock, Object, rq as f, task, time as f_time};
use crate::policy::Features;
use crate::rq::{Rq, Rqs, Runs};
use crate::shared::Relaxed;
use crate::system::System;
use crate::task::Task;
use crate::value::Cpu;

/// Who calls: the shared system, the host, and the CPU that executes.
#[non_exhaustive]
pub struct Cx<'a, H: Host> {
    /// Everything that several CPUs reach.
    pub sys: &'a System,
    /// The way out.
    pub host: &'a mut H,
    /// The executing CPU (`smp_processor_id()`).
    pub cpu: Cpu,
    /// Room for tasks on their way between two queues; empty between calls. A balance puts as many
    /// there as `features.load_balance.nr_migrate` (32) at most: with room for so many it allocates
    /// nothing.
    pub moving: &'a mut Vec<Task>,
}

impl<'a, H: Host> Cx<'a, H> {
    /// A call by `cpu`. `moving` is empty, and is again when the call is over; keep it for the
    /// next one, with its capacity.
    #[inline]
    pub fn new(sys: &'a System, host: &'a mut H, cpu: Cpu, moving: &'a mut Vec<Task>) -> Self {
        Self {
            sys,
            host,
            cpu,
            moving,
        }
    }
}

/// Whose call it is. The system is large, and a host need not be printable.
impl<H: Host> fmt::Debug for Cx<'_, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Cx");
        out.field("cpu", &self.cpu).field("moving", &self.moving);
        out.finish_non_exhaustive()
    }
}

impl<H: Host> Cx<'_, H> {
    /// The chosen behaviour.
    #[inline]
    #[must_use]
    pub fn features(&self) -> &Features {
        &self.sys.features
    }

    /// Runs `f` with the run queue of `cpu` locked, and publishes its words at the end. If
    /// `need_resched` has come to be set, by whatever was done to the queue, tells the host: once,
    /// until the CPU has switched.
    #[inline]
    pub fn with_rq<R: Rqs + ?Sized, T>(
        &mut self,
        rqs: &mut R,
        cpu: Cpu,
        f: impl FnOnce(&mut Self, &mut Rq) -> T,
    ) -> T {
        self.host.lock(Lock::Rq(cpu));
        let rq = rqs.rq(cpu);
        debug_assert_eq!(rq.cpu, cpu, "Rqs hands out the queue of another CPU");
        let out = f(self, rq);
        rq.publish(self.sys);
        let asks = rq.need_resched && !rq.resched_sent;
        rq.resched_sent |= asks;
        rqs.release(cpu);
        self.host.unlock(Lock::Rq(cpu));
        if asks {
            self.host.resched(cpu);
        }
        out
    }

    /// Runs `f` with the run queue of `cpu` where the kernel takes no lock, because nobody else
    /// writes the words that it reaches, or an old value is as good. Publishes nothing.
    #[inline]
    pub(crate) fn with_rq_lockless<R: Rqs + ?Sized, T>(
        &mut self,
        rqs: &mut R,
        cpu: Cpu,
        f: impl FnOnce(&mut Self, &mut Rq) -> T,
    ) -> T {
        self.host.begin_lockless(cpu);
        let out = f(self, rqs.rq(cpu));
        rqs.release(cpu);
        self.host.end_lockless(cpu);
        out
    }

    /// The kernel's count of ticks: a plain load of a word that one CPU writes at each tick.
    #[inline]
    pub fn jiffies(&mut self) -> u64 {
        let time = Object {
            kind: Kind::Time,
            a: 0,
            b: 0,
        };
        self.touch(time, f_time::JIFFIES, Access::Read);
        self.host.jiffies(self.sys.features.tick_ns())
    }

    /// Reports a touch.
    #[inline]
    pub fn touch(&mut self, object: Object, fields: Fields, access: Access) {
        self.host.touch(object, fields, access);
    }

    /// Reports that one function reads `reads` and updates `updates` of an object.
    #[inline]
    pub fn touch_mixed(&mut self, object: Object, reads: Fields, updates: Fields) {
        self.host.touch_mixed(object, reads, updates);
    }

    /// Reports that words of `cpu`'s `rq` are read.
    #[inline]
    pub fn read_rq(&mut self, cpu: Cpu, fields: Fields) {
        self.touch(Object::rq(cpu), fields, Access::Read);
    }

    /// The idle test of any CPU (`idle_cpu`): each word is read only if those before it say idle,
    /// so a busy CPU is known by who runs there.
    #[inline]
    pub fn idle_cpu(&mut self, cpu: Cpu) -> bool {
        let words = &self.sys.cpu[cpu.idx()];
        self.read_rq(cpu, f::CURR);
        if !words.curr_is_idle.load(Relaxed) {
            return false;
        }
        self.read_rq(cpu, f::NR_RUNNING);
        if words.nr_running.load(Relaxed) != 0 {
            return false;
        }
        self.read_rq(cpu, f::TTWU_PENDING);
        !words.ttwu_pending.load(Relaxed)
    }

    /// Runs `f` inside the named function.
    #[inline]
    pub fn span<T>(&mut self, func: Func, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.host.enter(func);
        let out = f(self);
        self.host.leave(outer);
        out
    }

    /// Updates the clocks of `rq` from the host's clock (`update_rq_clock`).
    #[inline]
    pub fn update_rq_clock(&mut self, rq: &mut Rq) {
        let now = self.host.clock();
        // Clocks of CPUs may differ a little; a host whose clock was set back loses run time.
        debug_assert!(
            now.saturating_add(100_000_000) >= rq.clock.clock,
            "the clock went back"
        );
        self.touch_mixed(rq.object(), f::CURR, f::CLOCK);
        self.touch(rq.curr_object(), task::STATE, Access::Read); // `is_idle_task`
        let ahead = self.sys.load_time_ahead(now);
        let runs = match rq.is_idle() {
            true => Runs::IdleTask,
            false => Runs::Work,
        };
        rq.clock.advance(now, ahead, runs);
    }
}
