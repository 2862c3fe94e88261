//! Semaphores, futexes, barriers and services; what mutexes share with them.
//!
//! All live on a line each in user memory; only who has to wait or to wake enters the kernel, and
//! there touches the line of the object's hash bucket.

use std::collections::VecDeque;

use fairground::place::task;
use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::task::{Stage, Wait};
use crate::cache::{Access, LineId};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::workload::program::Workload;

/// One object that tasks wait on.
#[derive(Debug, Default)]
pub struct Waitable {
    /// Semaphore: its value. Mutex: its state. Barrier: arrived.
    pub(super) value: u32,
    pub(super) waiters: VecDeque<TaskId>,
    line: Option<LineId>,
    /// The futex hash bucket: its lock and count of waiters.
    bucket: Option<LineId>,
}

/// All of them, by the workload's tables.
#[derive(Debug, Default)]
pub struct Sync {
    sems: Vec<Waitable>,
    futexes: Vec<Waitable>,
    mutexes: Vec<Waitable>,
    /// Lines of the mutexes, by offset from the first.
    pub(super) mutex_lines: Vec<Option<LineId>>,
    barriers: Vec<Waitable>,
    services: Vec<Waitable>,
    requests: Vec<VecDeque<TaskId>>,
    /// Source of timer stamps.
    pub stamps: u32,
}

impl Sync {
    /// Everything free.
    pub fn new(workload: &Workload) -> Self {
        let many = |n: usize| (0..n).map(|_| Waitable::default()).collect::<Vec<_>>();
        let sems = workload.sems.iter().map(|v| Waitable {
            value: *v,
            ..Waitable::default()
        });
        Self {
            sems: sems.collect(),
            futexes: many(workload.n_futexes as usize),
            mutexes: many(workload.n_mutexes as usize),
            mutex_lines: Vec::new(),
            barriers: many(workload.barriers.len()),
            services: many(workload.services.len()),
            requests: workload.services.iter().map(|_| VecDeque::new()).collect(),
            stamps: 0,
        }
    }
}

/// Which table.
#[derive(Clone, Copy)]
pub(super) enum Table {
    Sem,
    Futex,
    Mutex,
    Barrier,
    Service,
}

impl Sim<'_> {
    pub(super) fn waitable(&mut self, table: Table, index: u32) -> &mut Waitable {
        let table = match table {
            Table::Sem => &mut self.sync.sems,
            Table::Futex => &mut self.sync.futexes,
            Table::Mutex => &mut self.sync.mutexes,
            Table::Barrier => &mut self.sync.barriers,
            Table::Service => &mut self.sync.services,
        };
        &mut table[index as usize]
    }

    /// The task's atomic operation on the object's word.
    pub(super) fn atomic(&mut self, table: Table, index: u32) {
        if self.host.calls_are_free {
            return;
        }
        let line = match self.waitable(table, index).line {
            Some(line) => line,
            None => {
                let line = self.host.cache.alloc_lines(1, 0);
                self.waitable(table, index).line = Some(line);
                line
            }
        };
        self.host.op(KernelOp::UserAtomic);
        self.touch(KernelOp::UserAtomic, line, 1, Access::Rmw);
    }

    pub(super) fn enter_futex(&mut self, op: KernelOp) {
        self.system_call(op);
    }

    /// Touches the hash bucket of the object: a waiter counts itself and takes the lock, a waker
    /// looks at the count first.
    pub(super) fn bucket(&mut self, op: KernelOp, table: Table, index: u32, access: Access) {
        if self.host.calls_are_free {
            return;
        }
        let line = match self.waitable(table, index).bucket {
            Some(line) => line,
            None => {
                let line = self.host.cache.alloc_lines(1, 0);
                self.waitable(table, index).bucket = Some(line);
                line
            }
        };
        self.touch(op, line, 1, access);
    }

    pub(super) fn wait_on(
        &mut self,
        cpu: u32,
        id: TaskId,
        table: Table,
        index: u32,
        wait: Wait,
        then: Stage,
    ) {
        self.enter_futex(KernelOp::FutexWait);
        // Counts itself, then the bucket's lock.
        self.bucket(KernelOp::FutexWait, table, index, Access::Rmw);
        self.bucket(KernelOp::FutexWait, table, index, Access::Rmw);
        self.queue_waiter(id, table, index);
        self.block(cpu, id, wait, then);
    }

    /// Queues a task that will sleep: behind all of its priority, before those of lower ones, which
    /// is what fair tasks are to real-time tasks (`futex_queue`).
    pub(super) fn queue_waiter(&mut self, id: TaskId, table: Table, index: u32) {
        let priority = |sim: &Self, id| sim.real_time(id).map_or(0, |rt| rt.priority);
        let mine = priority(self, id);
        let waiters = std::mem::take(&mut self.waitable(table, index).waiters);
        let at = waiters.partition_point(|w| priority(self, *w) >= mine);
        let list = &mut self.waitable(table, index).waiters;
        *list = waiters;
        list.insert(at, id);
    }

    /// `futex(FUTEX_WAKE)` for up to `n` waiters; how many it woke.
    pub(super) fn wake_some(&mut self, cpu: u32, table: Table, index: u32, n: u32) -> u32 {
        self.enter_futex(KernelOp::FutexWake);
        self.bucket(KernelOp::FutexWake, table, index, Access::Load);
        if self.waitable(table, index).waiters.is_empty() {
            return 0;
        }
        self.bucket(KernelOp::FutexWake, table, index, Access::Rmw);
        for woken in 0..n {
            if !self.wake_one(cpu, table, index) {
                return woken;
            }
        }
        n
    }

    fn wake_one(&mut self, cpu: u32, table: Table, index: u32) -> bool {
        let Some(next) = self.waitable(table, index).waiters.pop_front() else {
            return false;
        };
        // Off the bucket's count; a reference to the task, its place on the list of those to wake
        // (`wake_q_add`), and the reference back when it is awake.
        self.bucket(KernelOp::FutexWake, table, index, Access::Rmw);
        let touches = if self.host.calls_are_free { 0 } else { 3 };
        for _ in 0..touches {
            let place = Place::Op(KernelOp::FutexWake);
            self.host.touch_task(
                place,
                next,
                task::WAKE_ENTRY,
                fairground::place::Access::Rmw,
            );
        }
        self.queue_wake_unlocked(cpu, next, WakeKind::Wake);
        true
    }

    pub(super) fn sem_wait(&mut self, cpu: u32, id: TaskId, s: u32) {
        self.atomic(Table::Sem, s);
        let sem = self.waitable(Table::Sem, s);
        if sem.value > 0 {
            sem.value -= 1;
            return self.advance(id);
        }
        self.wait_on(cpu, id, Table::Sem, s, Wait::Sem(s), Stage::Again);
    }

    pub(super) fn sem_post(&mut self, cpu: u32, id: TaskId, s: u32) {
        self.atomic(Table::Sem, s);
        self.waitable(Table::Sem, s).value += 1;
        if !self.waitable(Table::Sem, s).waiters.is_empty() {
            self.wake_some(cpu, Table::Sem, s, 1);
        }
        self.advance(id);
    }

    pub(super) fn futex_wait(&mut self, cpu: u32, id: TaskId, f: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.advance(id);
        }
        self.atomic(Table::Futex, f);
        self.wait_on(cpu, id, Table::Futex, f, Wait::Futex(f), Stage::Granted);
    }

    pub(super) fn futex_wake(&mut self, cpu: u32, id: TaskId, f: u32, n: u32) {
        self.atomic(Table::Futex, f);
        let woken = self.wake_some(cpu, Table::Futex, f, n);
        self.tasks[id.idx()].woken_others += u64::from(woken);
        self.advance(id);
    }

    pub(super) fn barrier(&mut self, cpu: u32, id: TaskId, b: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.advance(id);
        }
        self.atomic(Table::Barrier, b);
        let parties = self.workload.barriers[b as usize];
        let barrier = self.waitable(Table::Barrier, b);
        barrier.value += 1;
        if barrier.value < parties {
            return self.wait_on(cpu, id, Table::Barrier, b, Wait::Barrier(b), Stage::Granted);
        }
        barrier.value = 0;
        if parties > 1 {
            self.wake_some(cpu, Table::Barrier, b, u32::MAX);
        }
        self.advance(id);
    }

    pub(super) fn call(&mut self, cpu: u32, id: TaskId, service: u32, bytes: u32) {
        if self.by_futex(service) {
            return self.call_by_futex(cpu, id, service);
        }
        if self.tasks[id.idx()].stage != Stage::Start {
            self.host.copy(KernelOp::SocketRecv, bytes);
            return self.advance(id);
        }
        self.enter_syscall(id, KernelOp::SocketSend);
        self.host.copy(KernelOp::SocketSend, bytes);
        self.atomic(Table::Service, service);
        self.sync.requests[service as usize].push_back(id);
        // As data that arrives in a socket wakes its reader.
        if let Some(server) = self.waitable(Table::Service, service).waiters.pop_front() {
            self.queue_wake(cpu, server, WakeKind::Sync);
        }
        self.block(cpu, id, Wait::Answer(service), Stage::Granted);
    }

    pub(super) fn accept(&mut self, cpu: u32, id: TaskId, service: u32) {
        let by_futex = self.by_futex(service);
        if !by_futex {
            self.enter_syscall(id, KernelOp::SocketRecv);
        }
        self.atomic(Table::Service, service);
        if let Some(caller) = self.sync.requests[service as usize].pop_front() {
            self.tasks[id.idx()].serving = Some(caller);
            return self.advance(id);
        }
        if by_futex {
            self.enter_futex(KernelOp::FutexWait);
        }
        self.waitable(Table::Service, service).waiters.push_back(id);
        self.block(cpu, id, Wait::Request(service), Stage::Again);
    }

    fn by_futex(&self, service: u32) -> bool {
        self.workload.futex_services.binary_search(&service).is_ok()
    }

    /// The request goes to a list in shared memory; the server is woken if it waits, and the caller
    /// waits on a futex of its own.
    fn call_by_futex(&mut self, cpu: u32, id: TaskId, service: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.advance(id);
        }
        self.atomic(Table::Service, service);
        self.sync.requests[service as usize].push_back(id);
        if !self.waitable(Table::Service, service).waiters.is_empty() {
            self.enter_futex(KernelOp::FutexWake);
            self.wake_one(cpu, Table::Service, service);
        }
        self.enter_futex(KernelOp::FutexWait);
        self.block(cpu, id, Wait::Answer(service), Stage::Granted);
    }

    pub(super) fn reply(&mut self, cpu: u32, id: TaskId, service: u32, bytes: u32) {
        if self.by_futex(service) {
            self.enter_futex(KernelOp::FutexWake);
            if let Some(caller) = self.tasks[id.idx()].serving.take() {
                self.queue_wake_unlocked(cpu, caller, WakeKind::Wake);
            }
            return self.advance(id);
        }
        self.enter_syscall(id, KernelOp::SocketSend);
        self.host.copy(KernelOp::SocketSend, bytes);
        self.atomic(Table::Service, service);
        if let Some(caller) = self.tasks[id.idx()].serving.take() {
            self.queue_wake(cpu, caller, WakeKind::Sync);
        }
        self.advance(id);
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::testing::{server, with};
    use crate::spec::Scenario;
    use crate::workload::Env;
    use fairground::value::TaskId;

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
        let parsed = Scenario::parse("test.toml", &text);
        let made = parsed.and_then(|s| s.workload(&Env { cpus: 8 }));
        let workload = made.unwrap_or_else(|e| panic!("{e:?}"));
        with(&server(8), &workload, &[], |sim| {
            sim.run_to(8_000_000).unwrap();
            let order: Vec<_> = sim.sync.mutexes[0].waiters.iter().copied().collect();
            assert_eq!(order, [4, 3, 5, 1, 2].map(TaskId));
        });
    }
}
