//! Condition variables of the C library, and the barrier that is made of one.
//!
//! A waiter releases its mutex and sleeps on a futex whose word each signal changes, so none is
//! lost between the two; here both are one step. Whoever is woken takes the mutex as contended
//! (`pthread_cond_wait`). A signal for which nobody waits is a look at the variable.

use fairground::value::TaskId;

use super::Sim;
use super::task::{Stage, Wait};
use super::waitable::Table;
use crate::cache::Access;
use crate::costs::KernelOp;

impl Sim<'_> {
    pub(super) fn cond_wait(&mut self, cpu: u32, id: TaskId, cond: u32, mutex: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.lock_contended(cpu, id, mutex);
        }
        self.atomic(Table::Futex, cond);
        self.release(cpu, mutex);
        let of = (Table::Futex, cond);
        self.wait_on(cpu, id, of, Wait::Futex(cond), Stage::Granted);
    }

    pub(super) fn cond_signal(&mut self, cpu: u32, id: TaskId, cond: u32, all: bool) {
        let of = (Table::Futex, cond);
        if self.waitable(of.0, of.1).waiters.is_empty() {
            let line = self.word_line(of.0, of.1);
            self.host.op(KernelOp::UserAtomic);
            self.touch(KernelOp::UserAtomic, line, 1, Access::Load);
        } else {
            self.atomic(of.0, of.1);
            self.wake_some(cpu, of, if all { u32::MAX } else { 1 });
        }
        self.advance(id);
    }

    pub(super) fn cond_barrier(&mut self, cpu: u32, id: TaskId, b: u32, m: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.lock_contended(cpu, id, m);
        }
        self.atomic(Table::Barrier, b);
        let parties = self.workload.barriers[b as usize];
        let barrier = self.waitable(Table::Barrier, b);
        barrier.value += 1;
        if barrier.value >= parties {
            barrier.value = 0;
            self.wake_some(cpu, (Table::Barrier, b), u32::MAX);
            return self.advance(id);
        }
        self.release(cpu, m);
        let of = (Table::Barrier, b);
        self.wait_on(cpu, id, of, Wait::Barrier(b), Stage::Granted);
    }
}
