//! The mutex of a pipe, as those who want it meet.
//!
//! Whoever finds it free takes it by one swap of its owner. Whoever finds it taken has tried that
//! swap, which takes the line although it fails, queues behind the other spinners (`osq_lock`) and,
//! as the first of them, reads the owner over and over until there is none: then it swaps, and
//! leaves the queue. Between the release and that swap lies the time in which the spinner sees it,
//! and whoever comes by then takes the mutex first; often the task that has just released it.
//! So each look and each attempt is a step of its own, in order of time with those of
//! others; between two looks it pauses. Owners are never preempted inside, whatever the mode of
//! preemption: a step of an owner has its release in it. A spinner that should reschedule does so,
//! and then sleeps for the mutex if it is taken (`pipe_waiters.rs`).

use std::collections::VecDeque;

use fairground::value::TaskId;

use super::Sim;
use super::todo::{Attempt, End, Todo};
use crate::cache::{Access, Ps};
use crate::costs::KernelOp;
use crate::host::Place;

/// Words of the line of the mutex: the owner, the tail of the spinners' queue.
pub(super) const OWNER: u8 = 1;
const SPINNERS: u8 = 1 << 1;
/// What a swap that fails writes.
const NOTHING: u8 = 0;

/// Who has the mutex of a pipe, and who spins for it.
#[derive(Debug, Default)]
pub struct PipeMutex {
    /// When it is free; a step that holds it is simulated up to its release at once.
    pub(super) free_at: Ps,
    /// The CPU that had it last.
    pub(super) owner: u32,
    /// The release has fetched the line from a spinner.
    watched: bool,
    /// CPUs in the order in which they came.
    pub(super) spinners: VecDeque<u32>,
    /// Tasks that sleep for it, and the first of them also when it has been woken.
    pub(super) waiters: VecDeque<TaskId>,
    /// The waiter whose it is from `free_at` on, and nobody else's (`MUTEX_FLAG_HANDOFF`).
    pub(super) promised: Option<TaskId>,
}

impl PipeMutex {
    /// Whether a task of this CPU must have the mutex, or stop waiting for it, before it can be
    /// preempted.
    pub fn spins(&self, cpu: u32, id: TaskId) -> bool {
        self.spinners.contains(&cpu) || self.waiters.contains(&id)
    }

    /// Whether whoever comes can take it.
    pub(super) fn is_free(&self, at: Ps) -> bool {
        self.free_at <= at && self.promised.is_none()
    }
}

impl Sim<'_> {
    /// The next step of `cpu` is another attempt or look.
    pub(super) fn try_again(&mut self, cpu: u32, chan: u32, end: End, attempt: Attempt) {
        let todo = &mut self.cpus[cpu as usize].todo;
        todo.push_front(Todo::LockPipe { chan, end, attempt });
    }

    /// An attempt to take the mutex, or a look at its owner.
    pub(super) fn try_lock_pipe(&mut self, cpu: u32, chan: u32, end: End, attempt: Attempt) {
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "nobody to lock a pipe");
            return;
        };
        let c = chan as usize;
        let mutex = &self.chans[c].lines.mutex;
        if mutex.waiters.contains(&id) {
            return self.look_as_waiter(cpu, id, chan, end);
        }
        let free = mutex.is_free(self.host.at);
        if mutex.spinners.contains(&cpu) {
            return self.look_as_spinner(cpu, id, chan, end, free);
        }
        if attempt == Attempt::Sleep {
            return self.wait_for_pipe(cpu, id, chan, end);
        }
        if free {
            self.take_pipe(c, end.op());
            self.watch_owner(c);
            return self.pipe_locked(cpu, id, chan, end);
        }
        let line = self.chans[c].lines.lock;
        self.host.op(KernelOp::MutexSpin);
        self.touch(KernelOp::MutexSpin, line, NOTHING, Access::Rmw);
        if self.is_asked_for(cpu) || self.owner_sleeps(c) {
            return self.stop_spinning(cpu, id, chan, end);
        }
        self.queue_to_spin(cpu, c);
        // Others may have come before its first look.
        self.look_as_spinner(cpu, id, chan, end, false);
    }

    /// `cpu` goes to the end of the queue of spinners.
    fn queue_to_spin(&mut self, cpu: u32, c: usize) {
        let line = self.chans[c].lines.lock;
        let spinners = &mut self.chans[c].lines.mutex.spinners;
        let last = spinners.back().copied();
        spinners.push_back(cpu);
        self.init_node(cpu);
        self.touch(KernelOp::MutexSpin, line, SPINNERS, Access::Rmw);
        if let Some(prev) = last {
            self.queue_behind(cpu, prev);
        }
    }

    /// The first of the spinners takes the mutex or looks at its owner; the others wait for their
    /// turn. Who is asked for gives up (`osq_lock`, `mutex_spin_on_owner`).
    fn look_as_spinner(&mut self, cpu: u32, id: TaskId, chan: u32, end: End, free: bool) {
        let c = chan as usize;
        let mutex = &self.chans[c].lines.mutex;
        let first = mutex.spinners.front() == Some(&cpu);
        if first && free {
            self.take_pipe(c, end.op());
            self.leave_spinners(cpu, c);
            self.watch_owner(c);
            return self.pipe_locked(cpu, id, chan, end);
        }
        let promised = mutex.promised.is_some();
        if self.is_asked_for(cpu) || first && self.owner_sleeps(c) {
            self.leave_spinners(cpu, c);
            return self.stop_spinning(cpu, id, chan, end);
        }
        self.try_again(cpu, chan, end, Attempt::Spin);
        if first && !promised {
            return self.see_release(c);
        }
        // Whoever is before it will say when it is its turn.
        self.cpus[cpu as usize].spins_since = Some(self.host.at);
    }

    /// `cpu` leaves the queue of spinners, with or without the mutex (`osq_unlock`,
    /// `osq_lock`'s way back).
    fn leave_spinners(&mut self, cpu: u32, c: usize) {
        let line = self.chans[c].lines.lock;
        let spinners = &mut self.chans[c].lines.mutex.spinners;
        let Some(nth) = spinners.iter().position(|s| *s == cpu) else {
            return debug_assert!(false, "CPU {cpu} does not spin");
        };
        spinners.remove(nth);
        let prev = nth.checked_sub(1).map(|prev| spinners[prev]);
        let next = spinners.get(nth).copied();
        match (prev, next) {
            (None, next) => {
                self.touch(KernelOp::MutexSpin, line, SPINNERS, Access::Rmw);
                if let Some(next) = next {
                    let seen = self.hand_over(cpu, next);
                    self.push_work(next, seen);
                }
            }
            (Some(prev), next) => {
                if next.is_none() {
                    self.touch(KernelOp::MutexSpin, line, SPINNERS, Access::Rmw);
                }
                self.unqueue(cpu, prev, next);
            }
        }
    }

    /// The first spinner reads the owner until it is nobody. The owner has to fetch the line for
    /// its release, and the spinner to see that.
    pub(super) fn see_release(&mut self, c: usize) {
        let line = self.chans[c].lines.lock;
        let mutex = &mut self.chans[c].lines.mutex;
        if !std::mem::replace(&mut mutex.watched, true) {
            let (owner, at) = (mutex.owner, mutex.free_at);
            let (op, word) = (KernelOp::MutexSpin, (line, OWNER));
            let done = self
                .host
                .touch_aside(op, owner, word, Access::Rmw, at)
                .done_at;
            mutex.free_at = mutex.free_at.max(done);
            self.cpus[owner as usize].owes += done.saturating_sub(at);
        }
        let place = Place::Op(KernelOp::MutexSpin);
        self.host
            .spin_until(place, self.chans[c].lines.mutex.free_at);
        self.touch(KernelOp::MutexSpin, line, OWNER, Access::Load);
        // It pauses once more before it tries (`mutex_optimistic_spin`).
        let pause = self.host.rounds().0;
        self.host.stall(place, pause);
    }

    /// Who is first in the queue now reads the owner that the executing CPU has become.
    pub(super) fn watch_owner(&mut self, c: usize) {
        let lines = &mut self.chans[c].lines;
        let Some(first) = lines.mutex.spinners.front().copied() else {
            return;
        };
        lines.mutex.watched = true;
        let (line, at) = (lines.lock, self.host.at);
        let (op, word) = (KernelOp::MutexSpin, (line, OWNER));
        self.host.touch_aside(op, first, word, Access::Load, at);
    }

    pub(super) fn take_pipe(&mut self, c: usize, op: KernelOp) {
        let (line, at) = (self.chans[c].lines.lock, self.host.at);
        let mutex = &mut self.chans[c].lines.mutex;
        debug_assert!(mutex.free_at <= at, "it is held until {}", mutex.free_at);
        // Until the release is known.
        mutex.free_at = Ps::MAX;
        mutex.watched = false;
        self.touch(op, line, OWNER, Access::Rmw);
        self.host.cache.leave_line_to_lock(line);
        self.read_ring(c, op);
    }

    pub(super) fn unlock_pipe(&mut self, cpu: u32, c: usize, op: KernelOp) {
        self.touch(op, self.chans[c].lines.lock, OWNER, Access::Rmw);
        let mutex = &mut self.chans[c].lines.mutex;
        mutex.free_at = self.host.at;
        mutex.owner = cpu;
        if !mutex.waiters.is_empty() {
            self.wake_pipe_waiter(cpu, c);
        }
    }

    pub(super) fn pipe_locked(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        match end {
            End::Read => self.read_locked(cpu, id, chan),
            End::Write => self.write_locked(cpu, id, chan),
        }
    }

    /// `cpu`, if it has spun in the queue, has done so up to `at`.
    #[inline]
    pub(super) fn stop_spin(&mut self, cpu: u32, at: Ps) {
        let state = &mut self.cpus[cpu as usize];
        if let Some(since) = state.spins_since.take() {
            state.count_busy(at, self.warmup);
            let counted = at.saturating_sub(since.max(self.warmup));
            let place = Place::Op(KernelOp::MutexSpin);
            self.host.profile.add_elsewhere(place, counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{on, server};

    /// Eight writers and eight readers that have ended, each on a CPU of its own.
    fn hackbench(act: impl FnOnce(&mut Sim<'_>)) {
        let argv = "hackbench -g 1 -f 8 --threads --pipe -l 30";
        on(&server(16), argv, &[], |sim| {
            sim.run().unwrap();
            act(sim);
        });
    }

    #[test]
    fn nobody_is_left_spinning() {
        hackbench(|sim| {
            // One byte starts all tasks, and nobody reads it.
            let left = sim.chans.iter().filter(|chan| !chan.is_empty()).count();
            assert!(left <= 1, "{left} pipes are not empty");
            let mut mutexes = sim.chans.iter().map(|chan| &chan.lines.mutex);
            assert!(mutexes.all(|mutex| mutex.spinners.is_empty()));
            assert!(sim.cpus.iter().all(|cpu| cpu.spins_since.is_none()));
        });
    }

    /// Who releases a mutex that another spins for waits for its line, once.
    #[test]
    fn a_release_fetches_the_line_from_who_spins() {
        hackbench(|sim| {
            let (c, at) = (0, sim.now + 1_000_000);
            sim.host.begin(0, at);
            sim.take_pipe(c, KernelOp::PipeWrite);
            sim.unlock_pipe(0, c, KernelOp::PipeWrite);
            let free_at = sim.chans[c].lines.mutex.free_at;
            assert_eq!(sim.cpus[0].owes, 0, "as far as is known");
            sim.host.begin(5, at + 1000);
            sim.queue_to_spin(5, c);
            sim.see_release(c);
            let owes = sim.cpus[0].owes;
            assert_eq!(sim.chans[c].lines.mutex.free_at, free_at + owes);
            assert!(owes > 40_000, "{owes} ps");
            let looked = sim.host.at;
            sim.see_release(c);
            assert_eq!(sim.cpus[0].owes, owes, "it has fetched it");
            let pause = sim.host.rounds().0;
            assert!(pause > 0 && sim.host.at >= looked + pause);
        });
    }

    #[test]
    fn spinning_is_time_that_the_cpu_is_busy() {
        hackbench(|sim| {
            let spun = sim.host.profile.self_ps_of(Place::Op(KernelOp::MutexSpin));
            assert!(spun > 0, "writers meet");
            assert_eq!(sim.busy(), sim.host.profile.total_ps());
        });
    }
}
