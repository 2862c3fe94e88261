//! Mutexes as the C library makes them of a word and a futex.
//!
//! The word is free, locked, or locked with somebody who may wait. Locking is one
//! compare-and-swap if it is free. Whoever finds it taken marks it contended and calls
//! `futex(FUTEX_WAIT)`, which compares the word once more under the lock of the hash bucket: an
//! owner that has unlocked meanwhile makes it return at once (`EAGAIN`), so short critical
//! sections cost system calls but hardly any sleep. A task that comes back from the wait takes
//! the mutex as contended, so its unlock calls `futex(FUTEX_WAKE)` even if nobody waits any more.
//! Nothing is handed over: a woken task competes with those that run, and there is no spinning
//! (`PTHREAD_MUTEX_TIMED_NP`).

use fairground::value::TaskId;

use super::Sim;
use super::task::{Stage, Wait};
use super::todo::Todo;
use super::waitable::Table;
use crate::cache::{Access, LineId};
use crate::costs::KernelOp;

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const CONTENDED: u32 = 2;

impl Sim<'_> {
    pub(super) fn mutex_lock(&mut self, cpu: u32, id: TaskId, m: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.lock_contended(cpu, id, m);
        }
        self.mutex_atomic(m);
        let word = &mut self.waitable(Table::Mutex, m).value;
        match *word {
            FREE => {
                *word = LOCKED;
                self.advance(id);
            }
            CONTENDED => self.futex_wait_begin(cpu, id, m),
            _ => self.lock_contended(cpu, id, m),
        }
    }

    /// Exchanges the word for "contended": the mutex is the caller's if it was free.
    pub(super) fn lock_contended(&mut self, cpu: u32, id: TaskId, m: u32) {
        self.mutex_atomic(m);
        let word = &mut self.waitable(Table::Mutex, m).value;
        if std::mem::replace(word, CONTENDED) == FREE {
            return self.advance(id);
        }
        self.futex_wait_begin(cpu, id, m);
    }

    /// Enters the kernel; the word is compared in a step of its own, so that the owner can unlock
    /// meanwhile.
    fn futex_wait_begin(&mut self, cpu: u32, id: TaskId, m: u32) {
        self.enter_kernel(KernelOp::FutexWait);
        self.host.op(KernelOp::FutexWait);
        self.tasks[id.idx()].stage = Stage::Again;
        let todo = Todo::FutexWait {
            mutex: m,
            first: true,
        };
        self.cpus[cpu as usize].todo.push_back(todo);
    }

    /// Compares the word under the bucket's lock, as soon as that is free, and goes to sleep, or
    /// returns.
    pub(super) fn futex_wait_setup(&mut self, cpu: u32, m: u32, first: bool) {
        let of = (Table::Mutex, m);
        if !self.futex_q_lock(of, first) {
            let todo = Todo::FutexWait {
                mutex: m,
                first: false,
            };
            return self.cpus[cpu as usize].todo.push_front(todo);
        }
        self.touch_mutex(KernelOp::FutexWait, m, Access::Load);
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "nobody to wait");
            return;
        };
        let waits = self.waitable(Table::Mutex, m).value == CONTENDED;
        self.futex_wait_end(id, of, waits);
        if waits {
            self.block(cpu, id, Wait::Mutex(m), Stage::Again);
        }
    }

    pub(super) fn mutex_unlock(&mut self, cpu: u32, id: TaskId, m: u32) {
        self.release(cpu, m);
        self.advance(id);
    }

    /// Unlocks, and wakes one if any may wait.
    pub(super) fn release(&mut self, cpu: u32, m: u32) {
        self.mutex_atomic(m);
        let word = &mut self.waitable(Table::Mutex, m).value;
        if std::mem::replace(word, FREE) == CONTENDED {
            self.wake_some(cpu, (Table::Mutex, m), 1);
        }
    }

    fn mutex_atomic(&mut self, m: u32) {
        self.host.op(KernelOp::UserAtomic);
        self.touch_mutex(KernelOp::UserAtomic, m, Access::Rmw);
    }

    fn touch_mutex(&mut self, op: KernelOp, m: u32, access: Access) {
        let (line, word) = self.mutex_line(m);
        self.touch(op, line, 1 << word, access);
    }

    /// The line of a mutex, and which eighth of it.
    fn mutex_line(&mut self, m: u32) -> (LineId, u8) {
        let line_bytes = self.host.places.line_bytes();
        let stride = match self.workload.mutex_stride {
            64 => line_bytes,
            stride => stride,
        };
        let at = u64::from(m) * u64::from(stride);
        let nth = (at / u64::from(line_bytes)) as usize;
        let word = (at % u64::from(line_bytes) * 8 / u64::from(line_bytes)) as u8;
        let lines = &mut self.sync.mutex_lines;
        if lines.len() <= nth {
            lines.resize(nth + 1, None);
        }
        let line = match lines[nth] {
            Some(line) => line,
            None => {
                let line = self.host.cache.alloc_named(("[user]", "mutexes"), 1, 0);
                self.sync.mutex_lines[nth] = Some(line);
                line
            }
        };
        (line, word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::task::Life;
    use crate::machine::testing::{server, with};
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// An owner that unlocks while another is on its way to wait is seen: the word is compared when
    /// it is looked at, and who does not sleep pays for less.
    #[test]
    fn who_finds_the_word_changed_does_not_sleep() {
        let text = "duration = \"1ms\"\nmutexes = [\"m\"]\n\
             [[task]]\nname = \"t\"\nsteps = [\"hog\"]\n";
        let parsed = Scenario::parse("test.toml", text).unwrap();
        let workload = parsed.workload(&Env { cpus: 8 }).unwrap();
        let wait = |unlocks: bool| {
            with(&server(8), &workload, &[], |sim| {
                // After the way out of the deepest idle state.
                sim.run_to(500_000).unwrap();
                let id = TaskId(0);
                let cpu = (0..8).find(|c| sim.cpus[*c].curr == Some(id)).unwrap();
                sim.waitable(Table::Mutex, 0).value = CONTENDED;
                sim.host.begin(cpu as u32, 1_000_000);
                sim.futex_wait_begin(cpu as u32, id, 0);
                let compares = sim.host.at;
                if unlocks {
                    sim.waitable(Table::Mutex, 0).value = FREE;
                }
                sim.futex_wait_setup(cpu as u32, 0, true);
                let sleeps = sim.tasks[id.idx()].life == Life::Blocked;
                (sleeps, sim.host.at - compares, compares)
            })
        };
        let (sleeper, other) = (wait(false), wait(true));
        assert_eq!((sleeper.0, other.0), (true, false));
        assert!(sleeper.1 > other.1, "{sleeper:?} {other:?}");
        assert_eq!(sleeper.2, other.2);
    }
}
