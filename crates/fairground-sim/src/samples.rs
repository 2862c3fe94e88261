//! What a run is asked for beside the scheduler's tracepoints: groups at equal distances, waits,
//! and what threads do in between.

use fairground::place::{Lock, Object};
use fairground::value::{TaskId, TgId};

use crate::cache::{NS, Name, Ps};
use crate::costs::KernelOp;
use crate::host::MmLine;
use crate::machine::Sim;
use crate::workload::program::{Dur, Op};

/// A group at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupState {
    /// When, ns.
    pub at_ns: u64,
    /// The group.
    pub group: u32,
    /// Published load.
    pub load_avg: i64,
    /// Utilisation of its queues on all CPUs.
    pub util_avg: u64,
    /// Weight of its entities on all CPUs, where they are queued: 1024 is nice 0.
    pub weight: u64,
    /// Runtime left in the pool, ns; `None` without a limit.
    pub runtime_ns: Option<u64>,
    /// Queues that are throttled.
    pub throttled: u32,
}

/// A wait for a lock, or for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The CPU.
    pub cpu: u32,
    /// From, ns.
    pub from_ns: u64,
    /// To, ns.
    pub to_ns: u64,
    /// For what.
    pub what: Waited,
}

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// A lock, until its holder let go.
    Lock(Lock),
    /// The lines of this structure.
    Line(Object),
    /// A line of the `mm_struct` that a switch comes to or leaves.
    Mm(MmLine),
    /// A line that is no structure of the scheduler's, by its name, if it has one, and in the
    /// course of what.
    Other(Option<Name>, KernelOp),
}

/// Waits that are kept.
#[derive(Debug, Default)]
pub struct Waits {
    /// Shorter ones are not.
    pub least: Ps,
    /// In the order of their ends on each CPU.
    pub all: Vec<Wait>,
}

impl Waits {
    /// `cpu` waited.
    pub fn note(&mut self, cpu: u32, from: Ps, to: Ps, what: Waited) {
        if to - from >= self.least {
            self.all.push(Wait {
                cpu,
                from_ns: from / NS,
                to_ns: to / NS,
                what,
            });
        }
    }
}

/// What a thread did between two tracepoints of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadEvent {
    /// When, ns.
    pub at_ns: u64,
    /// The CPU.
    pub cpu: u32,
    /// Who.
    pub task: TaskId,
    /// What.
    pub what: ThreadEventKind,
}

/// Tracepoints of other parts of the kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ThreadEventKind {
    /// It goes on in user space (`context_tracking:user_enter`).
    UserEnter,
    /// It leaves user space, by a call or for an interrupt (`context_tracking:user_exit`).
    UserExit,
    /// What it got done there, if that is not the time that it took: the sibling or the hypervisor
    /// took a part, or whole nanoseconds do not say it. Ns on a core of its own (a counter of
    /// instructions).
    Worked(u64),
    /// It begins this operation, of those that are not its own affair: a probe in the program.
    Act(Op),
    /// It calls the kernel (`raw_syscalls:sys_enter`).
    Call(KernelOp),
    /// It sets a timer for itself (`timer:hrtimer_start`).
    Timer {
        /// From when on it may fire, ns.
        soft_ns: u64,
        /// How much later it may, ns.
        slack_ns: u64,
        /// It asked for a time from now on.
        relative: bool,
    },
}

/// What threads did, as it is kept.
#[derive(Debug, Default)]
pub struct ThreadTrace {
    /// When the call began that is carried out, and which it is.
    pub call: Option<(Ps, KernelOp)>,
    /// The operation that was begun.
    pub act: Option<Op>,
    /// Which tasks have run.
    begun: Vec<bool>,
    /// What of each task's work is less than a nanosecond and not in the trace yet.
    rest: Vec<Ps>,
    /// In the order in which steps came.
    pub all: Vec<ThreadEvent>,
}

impl ThreadTrace {
    /// Whether `task` runs for the first time.
    pub fn begins(&mut self, task: TaskId) -> bool {
        if self.begun.len() <= task.idx() {
            self.begun.resize(task.idx() + 1, false);
        }
        !std::mem::replace(&mut self.begun[task.idx()], true)
    }

    /// `task` was in user space and got so much done there, be it nothing between two calls.
    pub fn user(&mut self, cpu: u32, task: TaskId, (from, to): (Ps, Ps), work: Ps) {
        self.note(cpu, task, from, ThreadEventKind::UserEnter);
        let ns = self.whole(task, work);
        if ns != to / NS - from / NS {
            self.note(cpu, task, to, ThreadEventKind::Worked(ns));
        }
        self.note(cpu, task, to, ThreadEventKind::UserExit);
    }

    /// `task` began an operation at `from`, and was in user space up to `to` in the course of it.
    pub fn act(&mut self, cpu: u32, task: TaskId, (from, to): (Ps, Ps), op: Op) {
        if to > from {
            self.note(cpu, task, from, ThreadEventKind::UserEnter);
        }
        self.note(cpu, task, from, ThreadEventKind::Act(op));
        if to > from {
            self.note(cpu, task, to, ThreadEventKind::UserExit);
        }
    }

    /// Whether an operation is an event: those that meet other threads in memory or in a queue, and
    /// those whose time in user space is no computing, which a sibling would slow down. The others
    /// are in the scheduler's tracepoints, or a timer's, or computing.
    #[must_use]
    pub fn is_act(op: Op) -> bool {
        match op {
            Op::Write { .. } | Op::Read { .. } | Op::Poll { .. } => true,
            Op::Send { .. } | Op::Recv { .. } => true,
            Op::SemWait(_) | Op::SemPost(_) | Op::FutexWait(_) | Op::FutexWake { .. } => true,
            Op::LockCpu(_) | Op::UnlockCpu(_) | Op::Lock(_) | Op::Unlock(_) => true,
            Op::CondBarrier { .. } | Op::CondWait { .. } | Op::CondSignal { .. } => true,
            Op::Barrier(_) | Op::Touch { .. } => true,
            Op::Call { .. } | Op::Accept(_) | Op::Reply { .. } => true,
            Op::Leave { when, .. } => when.takes_time(),
            // One that is drawn, or that does not move, shows in the timer that it sets.
            Op::Period(every) => matches!(every, Dur::Const(_)),
            Op::ReadClock | Op::Busy(_) => true,
            Op::PinChild { .. } | Op::SetAffinity(_) | Op::SetNice(_) => true,
            Op::SetPolicy { .. } | Op::SetSlice(_) | Op::SetCgroup(_) | Op::Exec => true,
            Op::Join | Op::Exit => true,
            _ => false,
        }
    }

    /// Whole nanoseconds of `work`; the rest comes with the next, so that the pieces of a stretch
    /// are together as long as it is.
    fn whole(&mut self, task: TaskId, work: Ps) -> u64 {
        if self.rest.len() <= task.idx() {
            self.rest.resize(task.idx() + 1, 0);
        }
        let work = self.rest[task.idx()] + work;
        self.rest[task.idx()] = work % NS;
        work / NS
    }

    /// Takes one in.
    pub fn note(&mut self, cpu: u32, task: TaskId, at: Ps, what: ThreadEventKind) {
        self.all.push(ThreadEvent {
            at_ns: at / NS,
            cpu,
            task,
            what,
        });
    }
}

/// All groups now.
pub(crate) fn groups(sim: &Sim<'_>, to: &mut Vec<GroupState>) {
    let at_ns = sim.now / NS;
    let mut states: Vec<GroupState> = (0..)
        .zip(&sim.sys.tg)
        .map(|(group, tg)| GroupState {
            at_ns,
            group,
            load_avg: tg.peek_load_avg(),
            runtime_ns: tg
                .bandwidth
                .is_limited()
                .then(|| tg.bandwidth.peek_runtime()),
            ..GroupState::default()
        })
        .collect();
    for rq in &sim.rqs {
        for queue in &rq.cfs {
            let Some(state) = states.get_mut(TgId::idx(queue.tg)) else {
                continue;
            };
            state.util_avg += queue.avg.util_avg;
            state.throttled += u32::from(queue.throttled);
            if let Some(se) = queue.se.map(|se| &rq.se[se.idx()]).filter(|se| se.on_rq) {
                state.weight += fairground::math::weight::scale_load_down(se.load.weight);
            }
        }
    }
    to.extend(states);
}
