//! Birth and death of tasks.

use fairground::event::Event;
use fairground::fair::load;
use fairground::sched;
use fairground::task::{Policy, Prev, Task, WakeKind};
use fairground::value::TaskId;

use super::Sim;
use super::cpu::Todo;
use super::due::Due;
use super::task::{Life, SimTask, Stage, Wait};
use crate::cache::NS;
use crate::costs::KernelOp;
use crate::rng::{Purpose, generator};
use crate::workload::program::{self, ForkPlacement, Until};

impl Sim<'_> {
    /// A task of the start, made by nobody in particular on `cpu`; they begin as far apart as a
    /// shell takes to create them.
    pub(super) fn create_initial(&mut self, template: u32, cpu: u32) {
        self.host.begin(cpu, 0);
        let id = self.create(template, None);
        self.living += 1;
        let at = u64::from(id.0) * self.clone_cost(template);
        self.tasks[id.idx()].born_ns += at / NS;
        self.tasks[id.idx()].grid_ns += at / NS;
        self.queue.push(at, Due::Wait { cpu, task: id.0 });
    }

    pub(super) fn fork(&mut self, cpu: u32, parent: TaskId, template: u32) {
        let spec = &self.workload.templates[template as usize];
        let exec = spec.placement == ForkPlacement::ForkExec;
        let op = if spec.thread {
            KernelOp::CloneThread
        } else {
            KernelOp::ForkProcess
        };
        self.enter_syscall(parent, op);
        let child = self.create(template, Some(parent));
        if exec {
            self.host.op(KernelOp::Exec);
        }
        self.tasks[parent.idx()].children.push(child);
        self.host.note(Event::Fork {
            parent: Some(parent),
            child,
        });
        self.queue_wake(cpu, child, WakeKind::Fork);
        self.advance(parent);
    }

    fn clone_cost(&self, template: u32) -> u64 {
        let thread = self.workload.templates[template as usize].thread;
        let op = if thread {
            KernelOp::CloneThread
        } else {
            KernelOp::ForkProcess
        };
        self.host.op_price(op)
    }

    fn create(&mut self, template: u32, parent: Option<TaskId>) -> TaskId {
        let spec = &self.workload.templates[template as usize];
        let of_parent = parent.map(|p| &self.tasks[p.idx()]);
        let cgroup = spec.cgroup.or(of_parent.map(|t| t.cgroup)).unwrap_or(0);
        let mm = match (spec.thread, parent) {
            (false, Some(_)) => {
                self.next_mm += 1;
                self.next_mm
            }
            _ => spec.process,
        };
        let tg = self.groups[cgroup as usize];
        let id = self.sys.add_task(tg);
        let base = self.sys.features.tunables.base_slice_ns;
        let mut task = Task::new(id, tg, base);
        task.set_scheduler(policy(spec.policy), spec.nice);
        task.set_slice(spec.slice_ns, base);
        task.body.cpus_allowed = match spec.affinity {
            Some(mask) => self.mask(mask, cgroup),
            None => self.cpuset[cgroup as usize],
        };
        self.engine(|cx, _| sched::sched_fork(cx, &mut task));
        self.host.parked.push(Some(task));
        let born_ns = self.now_ns() + spec.start_ns;
        let seed = self.seed;
        self.tasks.push(SimTask {
            template,
            program: spec.program,
            pc: 0,
            loops: [0; program::LOOP_DEPTH_MAX],
            depth: 0,
            stage: Stage::Start,
            left: 0,
            life: Life::New,
            wait: Wait::None,
            woken: false,
            run_left: 0,
            rng: generator(seed, Purpose::Task(id.0)),
            born_ns,
            grid_ns: born_ns,
            due_ns: born_ns,
            requests: vec![0; self.workload.requests.len()],
            ended: 0,
            ended_ns: 0,
            ticket: 0,
            picked: 0,
            serving: None,
            locked_cpu: 0,
            parent,
            children: Vec::new(),
            mm,
            cgroup,
            warm_ns: 0,
            off_cpu_at: 0,
            cpu_ns: 0,
            on_cpu: None,
        });
        debug_assert_eq!(self.tasks.len(), self.host.parked.len());
        id
    }

    pub(super) fn exit(&mut self, cpu: u32, id: TaskId) {
        let task = &self.tasks[id.idx()];
        let thread = self.workload.templates[task.template as usize].thread;
        let parent = task.parent;
        self.enter_syscall(
            id,
            if thread {
                KernelOp::ExitThread
            } else {
                KernelOp::ExitProcess
            },
        );
        self.tasks[id.idx()].life = Life::Exited;
        self.host.note(Event::Exit { task: id });
        if let Some(parent) = parent {
            let children = &mut self.tasks[parent.idx()].children;
            let first = children.first() == Some(&id);
            children.retain(|c| *c != id);
            let waits = self.tasks[parent.idx()].wait == Wait::Children;
            if waits && (first || !thread) {
                // A joining thread sleeps on a futex; `wait` is woken as by one who will sleep.
                let kind = if thread {
                    WakeKind::Wake
                } else {
                    WakeKind::Sync
                };
                self.queue_wake(cpu, parent, kind);
            }
        } else {
            self.living -= 1;
            if self.living == 0 && self.workload.duration == Until::AllExit {
                self.queue.push(self.host.at, Due::End);
            }
        }
        self.cpus[cpu as usize]
            .todo
            .push_back(Todo::Schedule(Prev::Exits));
    }

    pub(super) fn join(&mut self, cpu: u32, id: TaskId) {
        self.enter_syscall(id, KernelOp::Wait);
        if self.tasks[id.idx()].children.is_empty() {
            return self.advance(id);
        }
        self.block(cpu, id, Wait::Children, Stage::Again);
    }

    /// A task that exited has left its CPU: its load leaves with it.
    pub(super) fn bury(&mut self, id: TaskId) {
        let Some(mut task) = self.host.parked[id.idx()].take() else {
            debug_assert!(false, "{}", crate::host::no_task(id));
            return;
        };
        let cpu = self.task_cpu(id);
        self.engine(|cx, _| load::remove_entity_load_avg(cx, &mut task, cpu));
        self.tasks[id.idx()].cpu_ns = task.se.sum_exec_runtime;
    }
}

/// The engine's name of a policy.
pub(super) fn policy(policy: program::Policy) -> Policy {
    match policy {
        program::Policy::Normal => Policy::Normal,
        program::Policy::Batch => Policy::Batch,
        program::Policy::Idle => Policy::Idle,
    }
}
