//! A task as the machine sees it: where its program stands and what it waits for.

use std::collections::VecDeque;

use fairground::value::TaskId;

use super::todo::Todo;
use crate::cache::{LineId, Ps};
use crate::rng::Generator;
use crate::workload::program::{LOOP_DEPTH_MAX, RealTime};

/// Whether it can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Created, not yet started.
    New,
    /// Runnable or running.
    Runnable,
    /// Asleep (its wait says for what), or about to sleep.
    Blocked,
    /// A wake-up has begun.
    Waking,
    /// Gone.
    Exited,
}

/// What a task waits for; index into the workload's table of such things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Nothing.
    None,
    /// A point in time.
    Time,
    /// Data in a channel.
    Data(u32),
    /// Room in a channel.
    Room(u32),
    /// A channel that can be read.
    Poll(u32),
    /// Data in a socket.
    Received(u32),
    /// Room in the send buffer of a socket.
    Sendable(u32),
    /// A semaphore.
    Sem(u32),
    /// A futex.
    Futex(u32),
    /// A mutex.
    Mutex(u32),
    /// The mutex of a pipe.
    PipeMutex(u32),
    /// A barrier.
    Barrier(u32),
    /// The stopper, which moves it to a CPU where it may run.
    Migration,
    /// The exit of children.
    Children,
    /// A request to a service.
    Request(u32),
    /// The answer of a service.
    Answer(u32),
}

/// How far an operation that can block has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stage {
    /// Not begun.
    #[default]
    Start,
    /// It has waited, or is a later part.
    Again,
    /// What it waited for was handed over by whoever woke it.
    Granted,
}

/// One task, in the order of use.
#[derive(Debug)]
#[repr(C)]
pub struct SimTask {
    /// Computing left of the current `Run`; `Ps::MAX` for a hog.
    pub run_left: Ps,
    /// Start of its time, ns: `start_ns`, of a child from its fork on, but not before it is made.
    pub born_ns: u64,
    /// Its program.
    pub program: u32,
    /// Next operation.
    pub pc: u32,
    /// Its template.
    pub template: u32,
    /// Bytes that the operation still has to move.
    pub left: u32,
    /// What it waits for.
    pub wait: Wait,
    /// How far the operation at `pc` is.
    pub stage: Stage,
    /// Whether it can run.
    pub life: Life,
    /// It was woken before it had gone to sleep.
    pub woken: bool,
    /// Its first operation is `execve`.
    pub execs: bool,
    /// Number of open loops.
    pub depth: u8,
    /// Address space.
    pub mm: u32,
    /// The CPU on which it is current.
    pub on_cpu: Option<u32>,
    /// When it was switched out for the last time.
    pub off_cpu_at: Ps,
    /// The rest of a system call in which it gave up the CPU or was preempted.
    pub kept: VecDeque<Todo>,
    /// It was switched to since it computed last.
    pub comes_back: bool,
    /// The first of the lines that stand for its working set.
    pub samples: Option<LineId>,
    /// What is still to be fetched of it before it computes on; part of `run_left`.
    pub fetch_left: Ps,
    /// Turns left of each open loop.
    pub loops: [u64; LOOP_DEPTH_MAX],
    /// The task's own random numbers.
    pub rng: Generator,
    /// Next point of its periodic grid, ns.
    pub grid_ns: u64,
    /// Until when it computes ([`Op::Busy`](crate::workload::op::Op::Busy)), ns.
    pub busy_until_ns: Option<u64>,
    /// When its last timed wait was due, ns.
    pub due_ns: u64,
    /// Begin of the last request, by kind, ns.
    pub requests: Vec<u64>,
    /// Which of the first 64 kinds have one that is open.
    pub open: u64,
    /// Of which of them it had any.
    pub asked: u64,
    /// Requests ended since the warm-up.
    pub ended: u64,
    /// Sum of their durations, ns.
    pub ended_ns: u64,
    /// How many units the budget had given before the one that this task took last.
    pub ticket: u64,
    /// Whom its `FutexWake`s have woken and no `When::Woken` has seen yet.
    pub woken_others: u64,
    /// The mutex that it picked.
    pub picked: u32,
    /// Caller whose request it serves.
    pub serving: Option<TaskId>,
    /// When it took the list, in shared memory, of those it serves, ns.
    pub took_ns: u64,
    /// Its entry in a futex's bucket, once it has waited for one.
    pub futex_q: Option<LineId>,
    /// A waker has taken that off the list, and the task has not seen it yet.
    pub unqueued: bool,
    /// The CPU whose lock (`Op::LockCpu`) it holds.
    pub locked_cpu: u32,
    /// Who created it.
    pub parent: Option<TaskId>,
    /// Children that live.
    pub children: Vec<TaskId>,
    /// Mask in the workload's table that it has chosen.
    pub affinity: Option<u32>,
    /// Group in the workload's table.
    pub cgroup: u32,
    /// CPU time charged before the end of the warm-up, ns.
    pub warm_ns: u64,
    /// CPU time charged in all, ns, filled when it exits.
    pub cpu_ns: u64,
    /// How much later than asked its timers may fire, ns.
    pub timer_slack_ns: u64,
    /// It is of the real-time class.
    pub real_time: Option<RealTime>,
    /// What is left of its turn, ns (`SCHED_RR`).
    pub turn_left_ns: u64,
}

impl SimTask {
    /// A request of kind `k` begins at `at_ns`.
    pub fn open_request(&mut self, k: u32, at_ns: u64) {
        self.requests[k as usize] = at_ns;
        self.open |= 1u64.checked_shl(k).unwrap_or(0);
        self.asked |= self.open;
    }

    /// It ends; when it began, ns.
    pub fn close_request(&mut self, k: u32) -> u64 {
        self.open &= !1u64.checked_shl(k).unwrap_or(0);
        self.requests[k as usize]
    }

    /// Goes on behind the `LoopEnd` at `end`, which closes the innermost open loop. The caller adds
    /// one to `pc`.
    pub fn leave_loop(&mut self, end: u32) {
        self.depth -= 1;
        self.pc = end;
    }
}
