//! `futex(2)`: the hash bucket of an object and the entries of those that wait there.
//!
//! A waiter counts itself in the bucket, takes its lock, compares the word, and queues an entry
//! that stands on its stack (`futex_q`). A waker looks at the count, and if it is not zero takes
//! the lock, unlinks those it wakes, and wakes them when it has given the lock back. Count, lock
//! and head of the list are on one line. An entry is two: the links with the pointer to the lock,
//! which the waker clears and the woken reads; and what it is compared by.
//!
//! Who wakes and finds the lock taken spins within its step; nothing that others do meanwhile
//! matters to it, for the word was changed before. Who waits has a step of its own after it has
//! spun, to compare the word as it is then.

use fairground::place::task;
use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::task::{Stage, Wait};
use super::waitable::Table;
use crate::cache::{Access, Ps};
use crate::costs::KernelOp;
use crate::host::Place;

/// Lines of an entry: its links, what it is compared by.
const LINKS: u32 = 0;
const KEY: u32 = 1;
const LINES: [&str; 2] = ["list", "key"];

impl Sim<'_> {
    fn bucket(&mut self, op: KernelOp, (table, index): (Table, u32), access: Access) {
        if self.host.calls_are_free {
            return;
        }
        let line = match self.waitable(table, index).bucket.line {
            Some(line) => line,
            None => {
                let line = self
                    .host
                    .cache
                    .alloc_named(("futex_hash_bucket", "lock,chain"), 1, 0);
                self.waitable(table, index).bucket.line = Some(line);
                line
            }
        };
        self.touch(op, line, 1, access);
    }

    /// When the lock is free for who comes now.
    fn bucket_is_free(&mut self, (table, index): (Table, u32)) -> Ps {
        let at = self.host.at;
        match self.host.calls_are_free {
            true => at,
            false => self.waitable(table, index).bucket.lock.earliest(at),
        }
    }

    fn lock_bucket(&mut self, op: KernelOp, of: (Table, u32)) {
        let free = self.bucket_is_free(of);
        self.host.spin_until(Place::Op(op), free);
        self.waitable(of.0, of.1).bucket.held_since = free;
        self.bucket(op, of, Access::Rmw);
    }

    fn unlock_bucket(&mut self, op: KernelOp, of: (Table, u32)) {
        self.bucket(op, of, Access::Store);
        let at = self.host.at;
        let bucket = &mut self.waitable(of.0, of.1).bucket;
        let held = at.saturating_sub(bucket.held_since);
        bucket.lock.acquire(bucket.held_since, held);
    }

    /// A line of the entry on a task's stack.
    fn entry(&mut self, op: KernelOp, id: TaskId, line: u32, access: Access) {
        if self.host.calls_are_free {
            return;
        }
        let first = match self.tasks[id.idx()].futex_q {
            Some(first) => first,
            None => {
                let first = self.host.cache.alloc_object("futex_q", &LINES, 0);
                self.tasks[id.idx()].futex_q = Some(first);
                first
            }
        };
        self.touch(op, first + line, 1, access);
    }

    /// `futex(FUTEX_WAIT)` whose word is as it should be.
    pub(super) fn wait_on(
        &mut self,
        cpu: u32,
        id: TaskId,
        of: (Table, u32),
        wait: Wait,
        then: Stage,
    ) {
        const OP: KernelOp = KernelOp::FutexWait;
        self.system_call(OP);
        self.bucket(OP, of, Access::Rmw);
        self.lock_bucket(OP, of);
        self.futex_queue(id, of);
        self.unlock_bucket(OP, of);
        self.futex_way_back(true);
        self.block(cpu, id, wait, then);
    }

    /// What `futex(FUTEX_WAIT)` takes after the comparison, all of it before the sleep if there is
    /// one.
    pub(super) fn futex_way_back(&mut self, sleeps: bool) {
        self.host.op(KernelOp::FutexWaitEnd);
        if sleeps {
            self.host.op(KernelOp::FutexQueue);
        }
    }

    /// `futex(FUTEX_WAIT)` after its way into the kernel: counts the caller and waits for the lock.
    /// Whether it has it; if not, it is to be asked again at the end of the step.
    pub(super) fn futex_q_lock(&mut self, of: (Table, u32), first: bool) -> bool {
        const OP: KernelOp = KernelOp::FutexWait;
        if first {
            self.bucket(OP, of, Access::Rmw);
        }
        let coming = &mut self.waitable(of.0, of.1).bucket.coming;
        *coming += u32::from(first);
        let free = self.bucket_is_free(of);
        if free > self.host.at {
            self.host.spin_until(Place::Op(OP), free);
            return false;
        }
        self.waitable(of.0, of.1).bucket.coming -= 1;
        self.lock_bucket(OP, of);
        true
    }

    /// With the lock taken: queues the caller if the word is what it should be, else it is counted
    /// no longer.
    pub(super) fn futex_wait_end(&mut self, id: TaskId, of: (Table, u32), waits: bool) {
        const OP: KernelOp = KernelOp::FutexWait;
        if waits {
            self.futex_queue(id, of);
        }
        self.unlock_bucket(OP, of);
        if !waits {
            self.bucket(OP, of, Access::Rmw);
        }
        self.futex_way_back(waits);
        self.leave_kernel();
    }

    /// Queues a task that will sleep: behind all of its priority, before those of lower ones, which
    /// is what fair tasks are to real-time tasks (`futex_queue`).
    fn futex_queue(&mut self, id: TaskId, (table, index): (Table, u32)) {
        const OP: KernelOp = KernelOp::FutexWait;
        let priority = |sim: &Self, id| sim.real_time(id).map_or(0, |rt| rt.priority);
        let mine = priority(self, id);
        let mut waiters = std::mem::take(&mut self.waitable(table, index).waiters);
        self.entry(OP, id, KEY, Access::Store);
        self.entry(OP, id, LINKS, Access::Store);
        if let (Some(&first), Some(&last)) = (waiters.front(), waiters.back()) {
            self.entry(OP, first, LINKS, Access::Load);
            self.entry(OP, last, LINKS, Access::Store);
        }
        let at = waiters.partition_point(|w| priority(self, *w) >= mine);
        waiters.insert(at, id);
        self.waitable(table, index).waiters = waiters;
    }

    /// A task that was woken finds its entry taken off the list (`futex_unqueue`).
    pub(super) fn futex_unqueue(&mut self, id: TaskId) {
        if std::mem::take(&mut self.tasks[id.idx()].unqueued) {
            self.entry(KernelOp::FutexWait, id, LINKS, Access::Load);
        }
    }

    /// `futex(FUTEX_WAKE)` for up to `n` waiters; how many it woke.
    pub(super) fn wake_some(&mut self, cpu: u32, of: (Table, u32), n: u32) -> u32 {
        const OP: KernelOp = KernelOp::FutexWake;
        self.system_call(OP);
        self.bucket(OP, of, Access::Load);
        let waitable = self.waitable(of.0, of.1);
        if waitable.waiters.is_empty() && waitable.bucket.coming == 0 {
            return 0;
        }
        self.lock_bucket(OP, of);
        let mut woken = Vec::new();
        while (woken.len() as u32) < n
            && let Some(next) = self.take_waiter(of)
        {
            woken.push(next);
        }
        self.unlock_bucket(OP, of);
        for next in &woken {
            self.queue_wake_unlocked(cpu, *next, WakeKind::Wake);
        }
        woken.len() as u32
    }

    /// The first waiter goes on the list of those to wake (`futex_wake_mark`), and is counted no
    /// longer.
    fn take_waiter(&mut self, of: (Table, u32)) -> Option<TaskId> {
        const OP: KernelOp = KernelOp::FutexWake;
        let next = self.waitable(of.0, of.1).waiters.pop_front()?;
        self.entry(OP, next, LINKS, Access::Load);
        self.entry(OP, next, KEY, Access::Load);
        self.entry(OP, next, LINKS, Access::Store);
        if let Some(&then) = self.waitable(of.0, of.1).waiters.front() {
            self.entry(OP, then, LINKS, Access::Store);
        }
        self.tasks[next.idx()].unqueued = true;
        self.bucket(OP, of, Access::Rmw);
        // A reference to the task, its place on the list of those to wake (`wake_q_add`), and the
        // reference back when it is awake.
        let touches = if self.host.calls_are_free { 0 } else { 3 };
        for _ in 0..touches {
            let access = fairground::place::Access::Rmw;
            self.host
                .touch_task(Place::Op(OP), next, task::WAKE_ENTRY, access);
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{server, with};
    use crate::spec::Scenario;
    use crate::workload::{Env, Workload};

    fn scenario(text: &str) -> Workload {
        let parsed = Scenario::parse("test.toml", text);
        let made = parsed.and_then(|s| s.workload(&Env { cpus: 8 }));
        made.unwrap_or_else(|e| panic!("{e:?}"))
    }

    /// Who wants to wait and finds the lock taken has a step of its own when it is free, and is
    /// counted meanwhile, so that a waker does not pass by.
    #[test]
    fn a_waiter_spins_for_the_lock_of_the_bucket_and_is_counted() {
        let text = "duration = \"1ms\"\nmutexes = [\"m\"]\n\
             [[task]]\nname = \"t\"\nsteps = [{ lock = \"m\" }, { unlock = \"m\" }]\n";
        with(&server(8), &scenario(text), &[], |sim| {
            const OP: KernelOp = KernelOp::FutexWake;
            let of = (Table::Mutex, 0);
            sim.host.begin(0, 1_000_000);
            sim.lock_bucket(OP, of);
            sim.host.at += 5_000_000;
            sim.unlock_bucket(OP, of);
            let released = sim.host.at;
            sim.host.begin(1, 2_000_000);
            assert!(!sim.futex_q_lock(of, true));
            let looks = sim.host.at;
            assert!(looks >= released, "{looks}: released at {released}");
            assert_eq!(sim.waitable(of.0, of.1).bucket.coming, 1);
            sim.host.begin(1, looks);
            assert!(sim.futex_q_lock(of, false));
            assert_eq!(sim.waitable(of.0, of.1).bucket.coming, 0);
        });
    }

    #[test]
    fn the_most_urgent_waiter_of_a_futex_is_the_first() {
        let waiter = |name: &str, start: &str, how: &str| {
            format!(
                "[[task]]\nname = \"{name}\"\nstart = \"{start}\"\n{how}\n\
                 steps = [{{ lock = \"m\" }}, {{ unlock = \"m\" }}]\n"
            )
        };
        let fifo = |priority| format!("policy = \"fifo\"\npriority = {priority}");
        let text = "duration = \"20ms\"\nmutexes = [\"m\"]\n[[task]]\nname = \"owner\"\n\
             steps = [{ lock = \"m\" }, { run = \"10ms\" }, { unlock = \"m\" }]\n"
            .to_owned()
            + &waiter("fair", "1ms", "")
            + &waiter("nice", "2ms", "nice = -20")
            + &waiter("low", "3ms", &fifo(10))
            + &waiter("high", "4ms", &fifo(20))
            + &waiter("late", "5ms", &fifo(10));
        with(&server(8), &scenario(&text), &[], |sim| {
            sim.run_to(8_000_000).unwrap();
            let order: Vec<_> = sim
                .waitable(Table::Mutex, 0)
                .waiters
                .iter()
                .copied()
                .collect();
            assert_eq!(order, [4, 3, 5, 1, 2].map(TaskId));
        });
    }
}
