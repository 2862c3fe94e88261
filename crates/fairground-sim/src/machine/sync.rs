//! Semaphores, futexes, barriers and services; what mutexes share with them.
//!
//! All live on a line each in user memory; only who has to wait or to wake enters the kernel
//! (`futex.rs`).

use std::collections::{BTreeMap, VecDeque};

use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::task::{Stage, Wait};
use super::waitable::{Table, Waitable};
use crate::cache::{Access, LineId, NS};
use crate::costs::KernelOp;
use crate::workload::program::Workload;

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
    /// By task; as long as needed.
    own: Vec<Waitable>,
    requests: Vec<VecDeque<TaskId>>,
    /// Those that a server has taken off the list in shared memory and will serve before it looks
    /// again.
    taken: Vec<VecDeque<TaskId>>,
    /// The last point of each timer's series, ns: of all tasks, or of each that uses it.
    pub(super) timers: BTreeMap<(u32, Option<TaskId>), u64>,
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
            own: Vec::new(),
            requests: workload.services.iter().map(|_| VecDeque::new()).collect(),
            taken: workload.services.iter().map(|_| VecDeque::new()).collect(),
            timers: BTreeMap::new(),
            stamps: 0,
        }
    }
}

impl Sim<'_> {
    pub(super) fn waitable(&mut self, table: Table, index: u32) -> &mut Waitable {
        let table = match table {
            Table::Sem => &mut self.sync.sems,
            Table::Futex => &mut self.sync.futexes,
            Table::Mutex => &mut self.sync.mutexes,
            Table::Barrier => &mut self.sync.barriers,
            Table::Service => &mut self.sync.services,
            Table::Own => {
                let own = &mut self.sync.own;
                own.resize_with(own.len().max(index as usize + 1), Waitable::default);
                own
            }
        };
        &mut table[index as usize]
    }

    /// The task's atomic operation on the object's word.
    pub(super) fn atomic(&mut self, table: Table, index: u32) {
        if self.host.calls_are_free {
            return;
        }
        let line = self.word_line(table, index);
        self.host.op(KernelOp::UserAtomic);
        self.touch(KernelOp::UserAtomic, line, 1, Access::Rmw);
    }

    /// The line of the object's word.
    pub(super) fn word_line(&mut self, table: Table, index: u32) -> LineId {
        if let Some(line) = self.waitable(table, index).line {
            return line;
        }
        let line = self.host.cache.alloc_named(("[user]", "lock"), 1, 0);
        self.waitable(table, index).line = Some(line);
        line
    }

    pub(super) fn sem_wait(&mut self, cpu: u32, id: TaskId, s: u32) {
        self.atomic(Table::Sem, s);
        let sem = self.waitable(Table::Sem, s);
        if sem.value > 0 {
            sem.value -= 1;
            return self.advance(id);
        }
        self.wait_on(cpu, id, (Table::Sem, s), Wait::Sem(s), Stage::Again);
    }

    pub(super) fn sem_post(&mut self, cpu: u32, id: TaskId, s: u32) {
        self.atomic(Table::Sem, s);
        self.waitable(Table::Sem, s).value += 1;
        if !self.waitable(Table::Sem, s).waiters.is_empty() {
            self.wake_some(cpu, (Table::Sem, s), 1);
        }
        self.advance(id);
    }

    pub(super) fn futex_wait(&mut self, cpu: u32, id: TaskId, f: u32) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.advance(id);
        }
        self.atomic(Table::Futex, f);
        self.wait_on(cpu, id, (Table::Futex, f), Wait::Futex(f), Stage::Granted);
    }

    pub(super) fn futex_wake(&mut self, cpu: u32, id: TaskId, f: u32, n: u32) {
        self.atomic(Table::Futex, f);
        let woken = self.wake_some(cpu, (Table::Futex, f), n);
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
            return self.wait_on(
                cpu,
                id,
                (Table::Barrier, b),
                Wait::Barrier(b),
                Stage::Granted,
            );
        }
        barrier.value = 0;
        if parties > 1 {
            self.wake_some(cpu, (Table::Barrier, b), u32::MAX);
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
        if self.by_futex(service) {
            return self.accept_by_futex(cpu, id, service);
        }
        self.enter_syscall(id, KernelOp::SocketRecv);
        self.atomic(Table::Service, service);
        if let Some(caller) = self.sync.requests[service as usize].pop_front() {
            self.tasks[id.idx()].serving = Some(caller);
            return self.advance(id);
        }
        self.waitable(Table::Service, service).waiters.push_back(id);
        self.block(cpu, id, Wait::Request(service), Stage::Again);
    }

    /// The list is a stack that the server takes whole, in one update: the latest caller is served
    /// first, who comes meanwhile after all of these.
    fn accept_by_futex(&mut self, cpu: u32, id: TaskId, service: u32) {
        let s = service as usize;
        if self.sync.taken[s].is_empty() {
            self.atomic(Table::Service, service);
            let list = std::mem::take(&mut self.sync.requests[s]);
            self.sync.taken[s].extend(list.into_iter().rev());
            self.tasks[id.idx()].took_ns = self.host.at / NS;
        }
        let Some(caller) = self.sync.taken[s].pop_front() else {
            let of = (Table::Service, service);
            return self.wait_on(cpu, id, of, Wait::Request(service), Stage::Again);
        };
        self.tasks[id.idx()].serving = Some(caller);
        self.advance(id);
    }

    fn by_futex(&self, service: u32) -> bool {
        self.workload.futex_services.binary_search(&service).is_ok()
    }

    /// The request goes to a list in shared memory; the server is woken if it waits. Only then, and
    /// if the answer has not come meanwhile, the caller waits on a futex of its own.
    fn call_by_futex(&mut self, cpu: u32, id: TaskId, service: u32) {
        match self.tasks[id.idx()].stage {
            Stage::Start => {
                self.atomic(Table::Service, service);
                self.sync.requests[service as usize].push_back(id);
                self.tasks[id.idx()].stage = Stage::Again;
                if !self.waitable(Table::Service, service).waiters.is_empty() {
                    self.wake_some(cpu, (Table::Service, service), 1);
                }
            }
            Stage::Again => {
                let wait = Wait::Answer(service);
                self.wait_on(cpu, id, (Table::Own, id.0), wait, Stage::Granted);
            }
            Stage::Granted => self.advance(id),
        }
    }

    /// The answer is in the caller's futex, on which it waits or will look.
    fn reply_by_futex(&mut self, cpu: u32, id: TaskId) {
        if let Some(caller) = self.tasks[id.idx()].serving.take() {
            let own = (Table::Own, caller.0);
            self.atomic(own.0, own.1);
            if self.wake_some(cpu, own, 1) == 0 {
                self.tasks[caller.idx()].stage = Stage::Granted;
            }
        }
        self.advance(id);
    }

    pub(super) fn reply(&mut self, cpu: u32, id: TaskId, service: u32, bytes: u32) {
        if self.by_futex(service) {
            return self.reply_by_futex(cpu, id);
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
    use super::*;
    use crate::machine::testing::{server, with};
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// So many callers, and the server of a service in shared memory, the last of the tasks.
    fn with_callers(callers: u32, act: impl FnOnce(&mut Sim<'_>)) {
        let text = format!(
            "duration = \"1ms\"\nservices = [\"s\"]\n[[task]]\nname = \"caller\"\n\
             count = {callers}\nsteps = [{{ request = \"s\", bytes = 1 }}]\n\
             [[task]]\nname = \"server\"\n\
             steps = [{{ serve = \"s\" }}, {{ reply = \"s\", bytes = 1 }}]\n"
        );
        let parsed = Scenario::parse("test.toml", &text).unwrap();
        let mut workload = parsed.workload(&Env { cpus: 8 }).unwrap();
        workload.futex_services.push(0);
        with(&server(8), &workload, &[], act);
    }

    #[test]
    fn a_list_in_shared_memory_is_taken_whole_and_the_latest_is_served_first() {
        with_callers(3, |sim| {
            let server = TaskId(3);
            sim.sync.requests[0] = [0, 1].map(TaskId).into();
            let (mut served, mut took) = (Vec::new(), Vec::new());
            for at in [1_000_000, 2_000_000, 3_000_000] {
                sim.host.begin(0, at);
                sim.accept(0, server, 0);
                served.extend(sim.tasks[server.idx()].serving.take());
                took.push(sim.tasks[server.idx()].took_ns);
                if at == 1_000_000 {
                    sim.sync.requests[0].push_back(TaskId(2));
                }
            }
            assert_eq!(served, [1, 0, 2].map(TaskId));
            // The first two wake up late from when the list was taken.
            assert!(took[0] == took[1] && took[1] < took[2], "{took:?}");
        });
    }

    /// A caller that is answered between waking the server and waiting does not wait, nor is woken.
    #[test]
    fn an_answer_may_come_before_its_caller_waits() {
        with_callers(1, |sim| {
            let (caller, answers) = (TaskId(0), TaskId(1));
            for waits in [false, true] {
                sim.tasks[caller.idx()].stage = Stage::Again;
                sim.tasks[answers.idx()].serving = Some(caller);
                sim.host.begin(0, 1_000_000);
                if waits {
                    sim.call_by_futex(0, caller, 0);
                }
                let woken = sim.cpus[1].todo.len();
                sim.host.begin(1, 2_000_000);
                sim.reply_by_futex(1, answers);
                assert_eq!(sim.tasks[caller.idx()].stage, Stage::Granted);
                assert_eq!(sim.cpus[1].todo.len() - woken, usize::from(waits));
            }
        });
    }
}
