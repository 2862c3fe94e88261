//! One CPU of the simulated machine, outside the scheduler: what it is doing and what waits for it.

use std::collections::{BTreeMap, VecDeque};

use fairground::host::StopWork;
use fairground::task::{Placed, Task, WakeKind};
use fairground::value::TaskId;

use super::due::Due;
use super::hrtimer::Hrtimer;
use super::todo::Todo;
use crate::cache::Ps;

/// What an idle CPU is in.
#[derive(Clone, Copy, Debug)]
pub struct IdleStay {
    /// Index of the idle state.
    pub state: u8,
    /// Since when.
    pub since: Ps,
    /// Time to the next timer at the beginning, ns; 0 = a run begins in it, nobody has looked.
    pub timer_ns: u64,
}

impl IdleStay {
    /// Whether a governor chose its state: not of a CPU that has had nothing to do since the run
    /// began.
    pub fn is_chosen(self) -> bool {
        self.timer_ns > 0
    }
}

/// What other CPUs have sent and this one has not seen yet. Messages of one kind that are on their
/// way together arrive as one, as in the interrupt controller; kinds do not wait for each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    /// A reschedule interrupt is on its way.
    pub reschedule: bool,
    /// The idle loop's flags were written: it will see that without an interrupt.
    pub polled: bool,
    /// The remote wake-up list is not empty.
    pub wakeups: bool,
    /// Balance for idle CPUs.
    pub idle_balance: bool,
    /// Unthrottle.
    pub unthrottle: bool,
    /// Set the timer for the end of a turn.
    pub hrtick: bool,
}

impl Pending {
    /// Whether the list of functions to call is not empty: whoever finds it so sends no interrupt.
    pub fn calls(self) -> bool {
        self.wakeups || self.idle_balance || self.unthrottle || self.hrtick
    }
}

/// State of one CPU.
///
/// In the order of use: what each event looks at comes first.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CpuState {
    /// Kernel code runs until then.
    pub busy_until: Ps,
    /// Latest `Due::Work`.
    pub work_stamp: u32,
    /// Latest `Due::Tick`.
    pub tick_stamp: u32,
    /// The running task computes in user mode since then.
    pub user_since: Option<Ps>,
    /// The running task spins in the queue for a mutex since then, and others will say when it is
    /// the first there.
    pub spins_since: Option<Ps>,
    /// The line of a mutex that it has released had to be fetched from a spinner, which was not
    /// known at the time: its next step begins this much later.
    pub owes: Ps,
    /// The running task.
    pub curr: Option<TaskId>,
    /// When its tick comes, if it is on.
    pub tick_at: Ps,
    /// Time spent not idle.
    pub busy: Ps,
    /// End of the last stretch that is counted in `busy`.
    pub counted_to: Ps,
    /// A tick is programmed.
    pub tick_on: bool,
    /// The tick has ended the turn of the idle loop before (`tick_nohz_idle_got_tick`).
    pub got_tick: bool,
    /// The scheduler was told that the tick is stopped.
    pub nohz: bool,
    /// Sent by others, not yet seen.
    pub pending: Pending,
    /// The CPU is idle.
    pub idle: Option<IdleStay>,
    /// It has come out of an idle state, and its next step is the first since.
    pub came_out: bool,
    /// Time that a hypervisor takes.
    pub gaps: super::gaps::Gaps,
    /// Steps to be done before user code goes on.
    pub todo: VecDeque<Todo>,
    /// Work for the stopper. It takes over where the task would return to user space and, where
    /// kernel code is preempted, between the steps of a system call, which wait with the task.
    pub stops: VecDeque<StopWork>,
    /// Interrupts that wait for the end of the running step.
    pub irqs: VecDeque<Due>,
    /// Timers that this CPU has to serve, by when they must fire; with when they may.
    pub hrtimers: BTreeMap<(Ps, Hrtimer), Ps>,
    /// The task that went through memory last (the footprint of its template), and how much it has
    /// gone through since another did.
    pub gone_through: (Option<TaskId>, u64),
    /// Woken tasks that this CPU has placed and has to enqueue: the last one first, as each is
    /// enqueued before whatever was to be done before.
    pub leaving: Vec<Task>,
    /// Woken tasks that this CPU should enqueue itself.
    pub wake_list: VecDeque<(Task, Placed, WakeKind)>,
    /// The task that sleeps until the stopper has moved it.
    pub moving: Option<TaskId>,
    /// The governor of its idle states.
    pub menu: super::menu::Menu,
    /// When the last timer of TCP that was set here would fire.
    pub tcp_timer: Ps,
    /// Its real-time tasks.
    pub rt: super::real_time::RtRq,
}

impl CpuState {
    /// A CPU that has done nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the CPU is in an interrupt, between two steps of it.
    pub fn irqs_off(&self) -> bool {
        matches!(self.todo.front(), Some(Todo::Later(later)) if later.irqs_off())
    }

    /// When the kernel code that runs at `at` is over, if any does, or the gap in which the CPU
    /// does not execute.
    #[inline]
    pub fn busy_after(&self, at: Ps) -> Option<Ps> {
        if self.busy_until > at {
            return Some(self.busy_until);
        }
        if self.idle.is_some() {
            return None;
        }
        self.gaps.end(at)
    }

    /// The CPU has not been idle up to `to`, of which the part after `warmup` counts.
    #[inline]
    pub fn count_busy(&mut self, to: Ps, warmup: Ps) {
        if to > self.counted_to {
            let from = self.counted_to.max(warmup);
            self.busy += to.saturating_sub(from);
            self.counted_to = to;
        }
    }

    /// Whether steps of kernel code or interrupts wait for the CPU.
    #[inline]
    pub fn has_steps(&self) -> bool {
        !self.todo.is_empty() || !self.stops.is_empty() || !self.irqs.is_empty()
    }

    /// A task that was placed is enqueued next.
    pub fn enqueue_next(&mut self, task: Task, placed: Placed, kind: WakeKind) {
        self.leaving.push(task);
        self.todo.push_front(Todo::Enqueue { placed, kind });
    }

    /// `task` goes through `bytes` of a working set of `set` bytes, again and again; how much of
    /// that is not in the caches from its last turn. After another task all of it is fetched again.
    pub fn goes_through(&mut self, task: TaskId, bytes: u64, set: u64) -> u64 {
        let (last, seen) = &mut self.gone_through;
        if *last != Some(task) {
            (*last, *seen) = (Some(task), 0);
        }
        let fresh = bytes.min(set.saturating_sub(*seen));
        *seen += fresh;
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_is_fetched_once_until_another_runs() {
        let mut cpu = CpuState::new();
        let (a, b) = (TaskId(1), TaskId(2));
        assert_eq!(cpu.goes_through(a, 60, 100), 60);
        assert_eq!(cpu.goes_through(a, 60, 100), 40);
        assert_eq!(cpu.goes_through(a, 60, 100), 0);
        assert_eq!(cpu.goes_through(b, 60, u64::MAX), 60);
        assert_eq!(cpu.goes_through(a, 60, 100), 60);
    }
}
