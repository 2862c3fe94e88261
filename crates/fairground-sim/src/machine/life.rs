//! Birth and death of tasks.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use fairground::event::Event;
use fairground::sched;
use fairground::task::{Policy, Prev, Task, WakeKind};
use fairground::value::TaskId;

use super::Sim;
use super::due::Due;
use super::hrtimer::DEFAULT_SLACK_NS;
use super::real_time;
use super::task::{Life, SimTask, Stage, Wait};
use super::todo::{Long, Then, Todo};
use crate::cache::{NS, Ps};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::rng::{Purpose, generator};
use crate::workload::program::{self, Born, ForkPlacement, Inherits, Until};

/// How much of a long system call is done without a look at interrupts: about as long as the
/// model's other steps. In the kernel they are let in nearly everywhere.
const LONG_PIECE: Ps = 2_000 * NS;

impl Sim<'_> {
    /// A task of the start, made by nobody in particular on `cpu`; they begin as far apart as a
    /// shell takes to create them.
    pub(super) fn create_initial(&mut self, template: u32, cpu: u32) {
        self.host.begin(cpu, 0);
        let id = self.create(template, None);
        let at = u64::from(id.0) * self.host.op_price(self.clone_op(template));
        // Its `start_ns` is a time of the run, however many are made before it.
        let start_ns = self.workload.templates[template as usize].start_ns;
        let made_ns = self.tasks[id.idx()].born_ns - start_ns + at / NS;
        self.start_at(id.idx(), start_ns.max(made_ns));
        self.set_wait(cpu, id, at, at);
    }

    pub(super) fn fork(&mut self, cpu: u32, template: u32) {
        let op = self.clone_op(template);
        self.begin_long(cpu, op, Then::Forked(template));
    }

    /// `execve`: first the CPU that is best for a task with nothing in caches (the stopper of this
    /// one moves it there), then the new image.
    pub(super) fn execve(&mut self, cpu: u32, id: TaskId) {
        if self.tasks[id.idx()].stage == Stage::Start {
            self.leave_user(KernelOp::Exec);
            self.tasks[id.idx()].stage = Stage::Again;
            if self.engine(sched::sched_exec).is_some() {
                return;
            }
        }
        self.push_long(cpu, KernelOp::Exec, Then::Executed);
    }

    fn begin_long(&mut self, cpu: u32, op: KernelOp, then: Then) {
        self.leave_user(op);
        self.push_long(cpu, op, then);
    }

    fn push_long(&mut self, cpu: u32, op: KernelOp, then: Then) {
        let left = self.host.op_price(op);
        self.host.profile.count(Place::Op(op));
        let todo = &mut self.cpus[cpu as usize].todo;
        todo.push_back(Todo::Long(Long { op, left, then }));
    }

    /// The task that runs on `cpu` goes on with a system call in which it had given up the CPU or
    /// was preempted; true if there was one.
    pub(super) fn resume_call(&mut self, cpu: u32, id: TaskId) -> bool {
        let kept = &mut self.tasks[id.idx()].kept;
        if kept.is_empty() {
            return false;
        }
        self.cpus[cpu as usize].todo.append(kept);
        true
    }

    /// A piece of the long part of a system call of the task that runs on `cpu`.
    pub(super) fn long(&mut self, cpu: u32, Long { op, left, then }: Long) {
        let piece = left.min(LONG_PIECE);
        self.host.spend_more(Place::Op(op), piece);
        let left = left - piece;
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "{op:?} of nobody");
            return;
        };
        if left > 0 {
            let rest = Long { op, left, then };
            let todo = &mut self.cpus[cpu as usize].todo;
            if looks_at_resched(op) && self.rqs[cpu as usize].need_resched {
                self.tasks[id.idx()].kept.push_back(Todo::Long(rest));
                return todo.push_back(Todo::Schedule(Prev::Runnable));
            }
            return todo.push_front(Todo::Long(rest));
        }
        match then {
            Then::Forked(template) => self.forked(cpu, id, template),
            Then::Executed => {
                if !std::mem::take(&mut self.tasks[id.idx()].execs) {
                    self.tasks[id.idx()].pc += 1;
                }
                self.tasks[id.idx()].stage = Stage::Start;
            }
            Then::Exited => self.exited(cpu, id),
        }
    }

    fn forked(&mut self, cpu: u32, parent: TaskId, template: u32) {
        let child = self.create(template, Some(parent));
        let placement = self.workload.templates[template as usize].placement;
        self.tasks[child.idx()].execs = placement == ForkPlacement::ForkExec;
        self.tasks[parent.idx()].children.push(child);
        self.host.note(Event::Fork {
            parent: Some(parent),
            child,
        });
        self.queue_wake_unlocked(cpu, child, WakeKind::Fork);
        self.advance(parent);
    }

    fn clone_op(&self, template: u32) -> KernelOp {
        if self.workload.templates[template as usize].thread {
            KernelOp::CloneThread
        } else {
            KernelOp::ForkProcess
        }
    }

    /// The address space of a task that is made: of its own, if it is a process that was forked.
    fn mm_of(&mut self, template: u32, parent: Option<TaskId>) -> u32 {
        let spec = &self.workload.templates[template as usize];
        if spec.thread || parent.is_none() {
            return spec.process;
        }
        self.next_mm += 1;
        self.next_mm
    }

    fn create(&mut self, template: u32, parent: Option<TaskId>) -> TaskId {
        let spec = &self.workload.templates[template as usize];
        let born = self.attributes_at_birth(template, parent);
        let inherited = parent.map_or(DEFAULT_SLACK_NS, |p| self.tasks[p.idx()].timer_slack_ns);
        let timer_slack_ns = spec.timer_slack_ns.unwrap_or(inherited);
        let mm = self.mm_of(template, parent);
        let mut task = self.new_task(&born);
        let id = task.body.id;
        self.engine(|cx, rqs| sched::sched_fork(cx, rqs, &mut task, parent));
        self.host.parked.push(Some(task));
        let user = mm != program::KERNEL_PROCESS;
        self.host.mms.made(user.then_some(mm));
        self.born.push(born);
        if let Some(held) = &mut self.host.held {
            held.made(template);
        }
        let born_ns = self.now_ns() + spec.start_ns;
        self.living += u32::from(template < self.workload.beside_from);
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
            rng: generator(self.seed, Purpose::Task(id.0)),
            born_ns,
            grid_ns: born_ns,
            busy_until_ns: None,
            due_ns: born_ns,
            requests: vec![0; self.workload.requests.len()],
            open: 0,
            asked: 0,
            ended: 0,
            ended_ns: 0,
            ticket: 0,
            woken_others: 0,
            picked: 0,
            serving: None,
            took_ns: 0,
            futex_q: None,
            unqueued: false,
            locked_cpu: 0,
            parent,
            children: Vec::new(),
            mm,
            affinity: born.affinity,
            cgroup: born.cgroup,
            warm_ns: 0,
            off_cpu_at: 0,
            cpu_ns: 0,
            on_cpu: None,
            execs: false,
            comes_back: false,
            samples: None,
            fetch_left: 0,
            kept: VecDeque::new(),
            // Timers of real-time tasks have none.
            timer_slack_ns: born.real_time.map_or(timer_slack_ns, |_| 0),
            real_time: born.real_time,
            turn_left_ns: real_time::TURN_NS,
        });
        debug_assert_eq!(self.tasks.len(), self.host.parked.len());
        id
    }

    /// A task of the engine's, as its scheduling begins.
    fn new_task(&mut self, born: &Born) -> Task {
        let tg = self.groups[born.cgroup as usize];
        let base = self.sys.features.tunables.base_slice_ns;
        let mut task = Task::new(self.sys.add_task(tg), tg, base);
        task.set_scheduler(policy(born.policy), born.nice);
        task.set_slice(born.slice_ns, base);
        task.body.cpus_allowed = match born.affinity {
            Some(mask) => self.mask(mask, born.cgroup),
            None => self.cpuset[born.cgroup as usize],
        };
        task
    }

    /// Policy, nice value, slice and CPUs of a new task, its creator's or its own.
    fn attributes_at_birth(&self, template: u32, parent: Option<TaskId>) -> Born {
        let spec = &self.workload.templates[template as usize];
        let mut born = Born::of(template, spec);
        let inherits = spec.inherits;
        let Some(creator) = parent else {
            return born;
        };
        let of_creator = &self.tasks[creator.idx()];
        born.cgroup = spec.cgroup.unwrap_or(of_creator.cgroup);
        if inherits == Inherits::default() {
            return born;
        }
        if inherits.policy && of_creator.real_time.is_some() {
            born.real_time = of_creator.real_time;
        } else if let Some((policy, nice, slice_ns)) = self.attributes(creator) {
            if inherits.policy {
                born.policy = words_of(policy);
                born.real_time = None;
            }
            if inherits.nice {
                born.nice = nice;
            }
            if inherits.slice {
                born.slice_ns = slice_ns;
            }
        }
        if inherits.affinity {
            born.affinity = of_creator.affinity;
        }
        born
    }

    /// Policy, nice value and own slice of a task that is on a queue.
    pub(super) fn attributes(&self, id: TaskId) -> Option<(Policy, i8, Option<u64>)> {
        let shared = &self.sys.task[id.idx()];
        let (cpu, slot) = (shared.cpu.load(Relaxed), shared.slot.load(Relaxed) as usize);
        let rq = self.rqs.get(cpu as usize)?;
        let body = rq.body.get(slot)?.as_ref().filter(|b| b.id == id)?;
        let se = rq.se.get(slot)?;
        Some((
            body.policy,
            body.nice,
            se.custom_slice.then_some(se.slice_ns),
        ))
    }

    pub(super) fn exit(&mut self, cpu: u32, id: TaskId) {
        let task = &self.tasks[id.idx()];
        let op = if self.workload.templates[task.template as usize].thread {
            KernelOp::ExitThread
        } else {
            KernelOp::ExitProcess
        };
        self.begin_long(cpu, op, Then::Exited);
    }

    fn exited(&mut self, cpu: u32, id: TaskId) {
        let task = &self.tasks[id.idx()];
        let thread = self.workload.templates[task.template as usize].thread;
        let parent = task.parent;
        self.tasks[id.idx()].life = Life::Exited;
        self.host.note(Event::Exit { task: id });
        if let Some(parent) = parent {
            let children = &mut self.tasks[parent.idx()].children;
            let first = children.first() == Some(&id);
            children.retain(|c| *c != id);
            let waits = self.tasks[parent.idx()].wait == Wait::Children;
            if waits && (first || !thread) {
                // A joining thread sleeps on a futex. `wait` is woken synchronously, but
                // `select_task_rq_fair` does not heed that of a waker that exits.
                self.queue_wake(cpu, parent, WakeKind::Wake);
            }
        }
        let template = self.tasks[id.idx()].template;
        self.living -= u32::from(template < self.workload.beside_from);
        if self.living == 0 && self.workload.duration == Until::AllExit {
            self.queue.push(self.host.at, Due::End);
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
    pub(super) fn release_task(&mut self, id: TaskId) {
        let Some(task) = self.host.parked[id.idx()].take() else {
            debug_assert!(false, "{}", crate::host::no_task(id));
            return;
        };
        self.tasks[id.idx()].cpu_ns = task.se.sum_exec_runtime;
        if self.real_time(id).is_none() {
            self.engine(|cx, _| sched::task_dead(cx, task));
        }
    }
}

/// Whether a system call gives up the CPU between its pieces if it should (`cond_resched`): copying
/// and freeing page tables, and copying arguments, but not the work on a thread.
fn looks_at_resched(op: KernelOp) -> bool {
    matches!(
        op,
        KernelOp::ForkProcess | KernelOp::Exec | KernelOp::ExitProcess
    )
}

/// A program's name of a policy.
fn words_of(policy: Policy) -> program::Policy {
    match policy {
        Policy::Normal => program::Policy::Normal,
        Policy::Batch => program::Policy::Batch,
        Policy::Idle => program::Policy::Idle,
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
