//! Steps of kernel code that are still to be done, and what they are of.

use fairground::host::KickWork;
use fairground::sched::Later;
use fairground::task::{Placed, Prev, WakeKind};
use fairground::value::TaskId;

use crate::cache::Ps;
use crate::costs::KernelOp;

/// A step of kernel code that is still to be done on a CPU. Each is one event, so that other CPUs
/// can act between two of them.
#[derive(Debug)]
pub enum Todo {
    /// Wakes a task: decides where it goes.
    Wake {
        /// Whom.
        task: TaskId,
        /// How.
        kind: WakeKind,
        /// Who ran on the waking CPU; `None` = it was idle.
        waker: Option<TaskId>,
        /// In atomic context: an interrupt, or a system call that holds a lock for all it wakes.
        atomic: bool,
    },
    /// Enqueues the last of `CpuState::leaving` where it was placed.
    Enqueue {
        /// Where.
        placed: Placed,
        /// How it was woken.
        kind: WakeKind,
    },
    /// `futex(FUTEX_WAIT)` of the running task on a mutex: compares its word, then waits.
    FutexWait {
        /// The mutex.
        mutex: u32,
        /// Whether it has not yet spun for the bucket's lock.
        first: bool,
    },
    /// A read or write of the running task wants the mutex of a pipe.
    LockPipe {
        /// The pipe.
        chan: u32,
        /// Which of the two.
        end: End,
        /// How far it has come.
        attempt: Attempt,
    },
    /// A read or write of the running task has found nothing, or no room: it looks again and waits.
    WaitInPipe {
        /// The pipe.
        chan: u32,
        /// Which of the two.
        end: End,
    },
    /// What a read or write of a pipe by the running task does after it has woken others.
    EndPipeCall {
        /// The pipe.
        chan: u32,
        /// Which of the two.
        end: End,
    },
    /// The running task has released the mutex of a pipe, for which somebody has begun to wait
    /// meanwhile.
    WakePipeWaiter {
        /// The pipe.
        chan: u32,
    },
    /// The running task's `send` to a unix socket goes on with its next message.
    SendMore {
        /// The socket.
        chan: u32,
    },
    /// Gives up the CPU.
    Schedule(Prev),
    /// The balancing softirq.
    Softirq(KickWork),
    /// Long work of a system call, a piece at a time: interrupts come between the pieces.
    Long(Long),
    /// The rest of a call into the engine, which has what it waited for.
    Later(Later),
    /// The end of a timer interrupt whose wake-ups came before.
    TimerTail,
}

impl Todo {
    /// Whether it can be a step of a system call.
    pub fn is_of_call(&self) -> bool {
        let ends = matches!(
            self,
            Self::Wake { .. }
                | Self::Schedule(_)
                | Self::WakePipeWaiter { .. }
                | Self::FutexWait { .. }
        );
        ends || self.is_preemptible()
    }

    /// Whether the running task can be preempted before this step: it is one of its system call,
    /// holds no lock and serves no interrupt.
    pub fn is_preemptible(&self) -> bool {
        match self {
            Self::Wake { atomic, .. } => !atomic,
            // Nobody is preempted who spins for a lock.
            Self::FutexWait { first, .. } => *first,
            Self::LockPipe { .. } | Self::WaitInPipe { .. } | Self::EndPipeCall { .. } => true,
            Self::SendMore { .. } | Self::Long(_) => true,
            // In the midst of a wake-up, on the way to sleep, in an interrupt or softirq.
            Self::Enqueue { .. } | Self::Schedule(_) => false,
            Self::Softirq(_) | Self::Later(_) | Self::TimerTail => false,
            Self::WakePipeWaiter { .. } => false,
        }
    }
}

/// The long part of a system call of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Long {
    /// What it is.
    pub op: KernelOp,
    /// How much of it is left.
    pub left: Ps,
    /// What follows.
    pub then: Then,
}

/// What follows the long part of a system call of the running task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// A child, from this template, is there.
    Forked(u32),
    /// The new image is loaded.
    Executed,
    /// The task has nothing left.
    Exited,
}

/// An end of a channel, with an open file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Messages are taken out.
    Read,
    /// Messages are put in.
    Write,
}

impl End {
    /// The system call.
    pub(super) fn op(self) -> KernelOp {
        match self {
            Self::Read => KernelOp::PipeRead,
            Self::Write => KernelOp::PipeWrite,
        }
    }
}

/// How far a task that wants the mutex of a pipe has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// It spins for the mutex, or will if it is not free.
    Spin,
    /// It may not spin, and sleeps if the mutex is not free.
    Sleep,
}
