//! Spin locks in user memory, one for each CPU: whoever finds the lock of its CPU taken spins in
//! user mode until it is released. A holder that is preempted, throttled or moved keeps it, so the
//! next task on that CPU burns its time.

use fairground::value::TaskId;
use rustc_hash::FxHashMap;

use super::Sim;
use super::task::Stage;
use crate::cache::{Access, LineId, Ps};
use crate::costs::KernelOp;

/// Bytes from one lock to the next: a `pthread_mutex_t` of 40 bytes, aligned to 16.
const STRIDE_BYTES: u32 = 48;

/// The locks of one process.
#[derive(Debug, Default)]
pub struct CpuLocks {
    first: Option<LineId>,
    holders: FxHashMap<u32, TaskId>,
    /// CPU of the lock, and who spins for it.
    spinners: Vec<(u32, TaskId)>,
}

impl Sim<'_> {
    pub(super) fn lock_cpu(&mut self, cpu: u32, id: TaskId, set: u32) {
        self.touch_cpu_lock(cpu, set);
        let locks = &mut self.cpu_locks[set as usize];
        if locks.holders.contains_key(&cpu) {
            locks.spinners.push((cpu, id));
            let task = &mut self.tasks[id.idx()];
            task.stage = Stage::Again;
            task.run_left = Ps::MAX;
            return;
        }
        locks.holders.insert(cpu, id);
        self.tasks[id.idx()].locked_cpu = cpu;
        self.advance(id);
    }

    pub(super) fn unlock_cpu(&mut self, id: TaskId, set: u32) {
        let lock = self.tasks[id.idx()].locked_cpu;
        self.touch_cpu_lock(lock, set);
        let locks = &mut self.cpu_locks[set as usize];
        let held = locks.holders.remove(&lock);
        debug_assert_eq!(held, Some(id), "a lock is released by its holder");
        let waits = |s: &&(u32, TaskId)| s.0 == lock;
        let freed: Vec<TaskId> = locks.spinners.iter().filter(waits).map(|s| s.1).collect();
        locks.spinners.retain(|s| s.0 != lock);
        for spinner in freed {
            self.end_spin(spinner);
        }
        self.advance(id);
    }

    /// The lock that `spinner` waits for is free: it tries again, at once if it runs.
    fn end_spin(&mut self, spinner: TaskId) {
        self.tasks[spinner.idx()].run_left = 0;
        let Some(cpu) = self.tasks[spinner.idx()].on_cpu else {
            return;
        };
        if let Some(since) = self.cpus[cpu as usize].user_since {
            self.push_work(cpu, self.host.at.max(since));
        }
    }

    fn touch_cpu_lock(&mut self, cpu: u32, set: u32) {
        let first = match self.cpu_locks[set as usize].first {
            Some(line) => line,
            None => {
                let bytes = self.cpus.len() as u32 * STRIDE_BYTES;
                let line =
                    self.host
                        .cache
                        .alloc_named(("[user]", "lock of a CPU"), bytes.div_ceil(64), 0);
                self.cpu_locks[set as usize].first = Some(line);
                line
            }
        };
        self.host.op(KernelOp::UserAtomic);
        let at = cpu * STRIDE_BYTES;
        let word = 1u8 << (at % 64 / 8);
        self.touch(KernelOp::UserAtomic, first + at / 64, word, Access::Rmw);
    }
}
