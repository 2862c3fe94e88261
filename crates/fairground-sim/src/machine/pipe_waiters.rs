//! Those who sleep for the mutex of a pipe.
//!
//! A spinner that should reschedule does so at once, still runnable, and then has no second
//! chance to spin: if the mutex is taken when it runs again it puts itself on the list of waiters
//! and sleeps. As long as somebody is on the list each release goes the slow way: it takes the
//! list's lock and wakes the first waiter, even if that one is awake already and only waits for a
//! CPU. Others may take the mutex meanwhile. When the first waiter runs and finds it taken it
//! spins without a queue, and the owner hands the mutex over to it; if it loses its CPU before, the
//! mutex is nobody else's until it runs again, and all who come sleep, as one does not spin for an
//! owner that is not running.
//!
//! Sources: `Documentation/locking/mutex-design.rst`; "locking/mutex: Add lock handoff to avoid
//! starvation" and "Enable optimistic spinning of woken waiter" (4.10).

use fairground::place::{self, task};
use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::pipe_mutex::OWNER;
use super::task::{Life, Wait};
use super::todo::{Attempt, End, Todo};
use crate::cache::Access;
use crate::costs::KernelOp;
use crate::host::Place;

/// Word of the mutex's line: the list of waiters and its lock.
const WAIT_LIST: u8 = 1 << 2;

impl Sim<'_> {
    /// Whether the CPU should do something else (`need_resched`).
    pub(super) fn is_asked_for(&self, cpu: u32) -> bool {
        self.rqs[cpu as usize].need_resched || !self.cpus[cpu as usize].stops.is_empty()
    }

    /// Whether the mutex has been handed to a task that does not run.
    pub(super) fn owner_sleeps(&self, c: usize) -> bool {
        let promised = self.chans[c].lines.mutex.promised;
        promised.is_some_and(|id| self.tasks[id.idx()].on_cpu.is_none())
    }

    /// Who may not spin any more makes room if it is asked for, and sleeps if the mutex is taken
    /// after that.
    pub(super) fn stop_spinning(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        self.try_again(cpu, chan, end, Attempt::Sleep);
        self.make_room(cpu, id);
    }

    /// What is left of the call waits for the next turn of the task, if the CPU is asked for.
    fn make_room(&mut self, cpu: u32, id: TaskId) {
        if self.is_asked_for(cpu) {
            let todo = &mut self.cpus[cpu as usize].todo;
            debug_assert!(todo.iter().all(Todo::is_of_call), "{todo:?}");
            self.tasks[id.idx()].kept.append(todo);
        }
    }

    /// The last attempt before the sleep, with the list locked.
    pub(super) fn wait_for_pipe(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        let c = chan as usize;
        let line = self.chans[c].lines.lock;
        self.touch(KernelOp::MutexSpin, line, WAIT_LIST, Access::Rmw);
        if self.chans[c].lines.mutex.is_free(self.host.at) {
            self.take_pipe(c, end.op());
            self.watch_owner(c);
            return self.pipe_locked(cpu, id, chan, end);
        }
        let at = self.host.at;
        let mutex = &mut self.chans[c].lines.mutex;
        mutex.waiters.push_back(id);
        let (owner, held) = (mutex.owner, mutex.free_at > at);
        if mutex.waiters.len() == 1 {
            // Tells the owner (`MUTEX_FLAG_WAITERS`), whose release was simulated without.
            self.touch(KernelOp::MutexSpin, line, OWNER, Access::Rmw);
            if held {
                let todo = &mut self.cpus[owner as usize].todo;
                todo.push_front(Todo::WakePipeWaiter { chan });
                let after = self.cpus[owner as usize].busy_until.max(self.now);
                self.push_work(owner, after);
            }
        }
        self.sleep_for_pipe(cpu, id, chan, end);
    }

    /// The rest of the call waits with the task.
    fn sleep_for_pipe(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        self.try_again(cpu, chan, end, Attempt::Sleep);
        let todo = &mut self.cpus[cpu as usize].todo;
        debug_assert!(todo.iter().all(Todo::is_of_call), "{todo:?}");
        let task = &mut self.tasks[id.idx()];
        task.kept.append(todo);
        let stage = task.stage;
        self.block(cpu, id, Wait::PipeMutex(chan), stage);
    }

    /// A waiter runs again.
    pub(super) fn look_as_waiter(&mut self, cpu: u32, id: TaskId, chan: u32, end: End) {
        let (c, at) = (chan as usize, self.host.at);
        let line = self.chans[c].lines.lock;
        let mutex = &mut self.chans[c].lines.mutex;
        let is_first = mutex.waiters.front() == Some(&id);
        let is_mine = mutex.promised.is_none_or(|other| other == id);
        if mutex.free_at <= at && is_mine {
            mutex.promised = None;
            mutex.waiters.retain(|other| *other != id);
            self.touch(KernelOp::MutexSpin, line, WAIT_LIST, Access::Rmw);
            self.take_pipe(c, end.op());
            self.tell_spinner(c);
            return self.pipe_locked(cpu, id, chan, end);
        }
        if !is_first {
            return self.sleep_for_pipe(cpu, id, chan, end);
        }
        if mutex.promised.is_none() {
            mutex.promised = Some(id);
            self.touch(KernelOp::MutexSpin, line, OWNER, Access::Rmw);
        }
        self.try_again(cpu, chan, end, Attempt::Sleep);
        if self.is_asked_for(cpu) {
            self.make_room(cpu, id);
            // An owner that does not run is not spun for.
            return self.tell_spinner(c);
        }
        self.see_release(c);
    }

    /// The first spinner, if it waits for whom the mutex was promised to, looks again.
    fn tell_spinner(&mut self, c: usize) {
        let Some(first) = self.chans[c].lines.mutex.spinners.front().copied() else {
            return;
        };
        self.watch_owner(c);
        if self.cpus[first as usize].spins_since.is_some() {
            self.push_work(first, self.host.at);
        }
    }

    /// A release with waiters: the first of them is woken, with the list locked until it is on the
    /// list of those to wake (`wake_q_add`).
    pub(super) fn wake_pipe_waiter(&mut self, cpu: u32, c: usize) {
        let mutex = &self.chans[c].lines.mutex;
        let Some(first) = mutex.waiters.front().copied() else {
            return;
        };
        let line = self.chans[c].lines.lock;
        self.touch(KernelOp::MutexSpin, line, WAIT_LIST, Access::Rmw);
        let place = Place::Op(KernelOp::MutexSpin);
        // Its link, a reference to it, and the reference back.
        for _ in 0..3 {
            self.host
                .touch_task(place, first, task::WAKE_ENTRY, place::Access::Rmw);
        }
        if self.tasks[first.idx()].life == Life::Blocked {
            return self.queue_wake(cpu, first, WakeKind::Wake);
        }
        // It is awake, which is seen with its lock held.
        let fields = task::STATE | task::PI_LOCK;
        self.host
            .touch_task(place, first, fields, place::Access::Rmw);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::NS;
    use crate::machine::testing::{at_5ms, on, server};

    /// Five tasks a CPU, so many are asked for while they spin.
    const CROWD: &str = "hackbench -g 2 -f 5 --threads --pipe -l 2000";

    #[test]
    fn who_sleeps_for_a_pipe_gets_it() {
        on(&server(4), CROWD, &[], |sim| {
            let mut slept = 0;
            while !sim.has_ended() {
                sim.one_event().unwrap();
                let waits = sim.tasks.iter().map(|task| task.wait);
                slept += waits.filter(|w| matches!(w, Wait::PipeMutex(_))).count();
            }
            assert!(slept > 0, "some sleep");
            for chan in &sim.chans {
                let mutex = &chan.lines.mutex;
                assert!(mutex.waiters.is_empty() && mutex.promised.is_none());
            }
        });
    }

    /// A pipe that a task of the CPU with number 0 has for 2 us more, and a task of the other CPU
    /// that may not spin for it.
    fn sleeper(act: impl FnOnce(&mut Sim<'_>, TaskId)) {
        at_5ms(&server(2), CROWD, &[], |sim| {
            while sim.cpus[1].curr.is_none() || !sim.cpus[1].todo.is_empty() {
                sim.one_event().unwrap();
            }
            let id = sim.cpus[1].curr.unwrap();
            let at = sim.now;
            let mutex = &mut sim.chans[3].lines.mutex;
            (mutex.free_at, mutex.owner) = (at + 2_000 * NS, 0);
            mutex.spinners.clear();
            sim.host.begin(1, at);
            sim.wait_for_pipe(1, id, 3, End::Write);
            act(sim, id);
        });
    }

    #[test]
    fn an_owner_is_told_of_the_first_who_sleeps() {
        sleeper(|sim, id| {
            assert_eq!(sim.tasks[id.idx()].wait, Wait::PipeMutex(3));
            let told = |sim: &Sim<'_>| {
                let todo = sim.cpus[0].todo.iter();
                todo.filter(|t| matches!(t, Todo::WakePipeWaiter { chan: 3 }))
                    .count()
            };
            assert_eq!(told(sim), 1);
            sim.host.begin(0, sim.now + 2_000 * NS);
            sim.cpus[0].todo.clear();
            sim.wake_pipe_waiter(0, 3);
            assert!(
                matches!(sim.cpus[0].todo.front(), Some(Todo::Wake { task, .. }) if *task == id)
            );
        });
    }

    #[test]
    fn a_mutex_is_kept_for_the_first_waiter_that_found_it_taken() {
        sleeper(|sim, id| {
            let at = sim.now + 1_000 * NS;
            sim.host.begin(1, at);
            sim.look_as_waiter(1, id, 3, End::Write);
            let mutex = &sim.chans[3].lines.mutex;
            assert_eq!(mutex.promised, Some(id));
            assert!(!mutex.is_free(at + 1_000_000 * NS), "nobody else's");
            sim.tasks[id.idx()].on_cpu = None;
            assert!(sim.owner_sleeps(3), "not to be spun for");
            sim.tasks[id.idx()].on_cpu = Some(1);
            sim.host.begin(1, sim.host.at.max(at + 3_000 * NS));
            sim.look_as_waiter(1, id, 3, End::Write);
            let mutex = &sim.chans[3].lines.mutex;
            assert!(mutex.promised.is_none() && mutex.waiters.is_empty());
        });
    }
}
