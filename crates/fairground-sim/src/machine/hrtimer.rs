//! High-resolution timers: each CPU serves those that were set on it.
//!
//! A timer has a time from which it may fire and one at which it must: in between lies the slack of
//! the task that waits (`PR_SET_TIMERSLACK`, 50 us unless set). The hardware is set to the earliest
//! time at which some timer must fire; whatever interrupt of a timer comes before takes along all
//! that may fire, in the order of the times at which they must. Timers of the engine have no slack.
//! The tick is one of them in the kernel; here it has an event of its own, and takes others along.

use fairground::host::{Host, Timer};
use fairground::sched;
use fairground::task::WakeKind;
use fairground::value::TaskId;

use super::Sim;
use super::due::Due;
use super::task::{Life, Wait};
use super::todo::Todo;
use crate::cache::{NS, Ps};
use crate::costs::KernelOp;
use crate::host::{BOOT_NS, Place};

/// Slack of a task that has not set its own (`init_task.timer_slack_ns`), ns.
pub const DEFAULT_SLACK_NS: u64 = 50_000;

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Hrtimer {
    /// A task's timed wait.
    Wait(TaskId),
    /// The engine's.
    Engine(Timer),
}

/// A timer of the engine that is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Armed {
    /// Counts settings.
    pub stamp: u32,
    cpu: u32,
    at: Ps,
}

impl Sim<'_> {
    /// Sets the timer of a task's timed wait on the executing CPU.
    pub(super) fn arm(&mut self, cpu: u32, id: TaskId, due_ns: u64) {
        let may = (due_ns * NS).max(self.host.at);
        let must = may + self.tasks[id.idx()].timer_slack_ns * NS;
        if must < self.next_interrupt(cpu) {
            self.program_timer();
        }
        self.set_wait(cpu, id, may, must);
    }

    /// The same for a task that nobody on this CPU has asked for.
    pub(super) fn set_wait(&mut self, cpu: u32, id: TaskId, may: Ps, must: Ps) {
        let timers = &mut self.cpus[cpu as usize].hrtimers;
        timers.insert((must, Hrtimer::Wait(id)), may);
        let task = id.0;
        self.queue.push(must, Due::Wait { cpu, task, must });
    }

    /// Sets a timer of the engine on the executing CPU; `tail` = its interrupt sets the hardware at
    /// its end anyway.
    pub(super) fn start_engine_timer(&mut self, cpu: u32, timer: Timer, at_ns: u64, tail: bool) {
        self.cancel_engine_timer(timer);
        let at = (at_ns.saturating_sub(BOOT_NS) * NS).max(self.host.at);
        self.sync.stamps = self.sync.stamps.wrapping_add(1);
        let stamp = self.sync.stamps;
        if !tail && at < self.next_interrupt(cpu) {
            self.program_timer();
        }
        self.timers.insert(timer, Armed { stamp, cpu, at });
        let timers = &mut self.cpus[cpu as usize].hrtimers;
        timers.insert((at, Hrtimer::Engine(timer)), at);
        self.queue.push(at, Due::Timer { timer, stamp, cpu });
    }

    /// Withdraws a timer of the engine on the executing CPU. If it was the next to come, the
    /// hardware is set to the one behind it, unless the interrupt that goes on does so at its
    /// `tail`.
    pub(super) fn withdraw_engine_timer(&mut self, cpu: u32, timer: Timer, tail: bool) {
        let next = self.next_interrupt(cpu);
        self.cancel_engine_timer(timer);
        if !tail && self.next_interrupt(cpu) != next {
            self.program_timer();
        }
    }

    fn cancel_engine_timer(&mut self, timer: Timer) {
        if let Some(Armed { cpu, at, .. }) = self.timers.remove(&timer) {
            let timers = &mut self.cpus[cpu as usize].hrtimers;
            timers.remove(&(at, Hrtimer::Engine(timer)));
        }
    }

    /// Whether an interrupt that waited has nothing to do any more: an earlier one took it along,
    /// or its timer was set again or withdrawn.
    pub(super) fn is_stale(&self, due: Due) -> bool {
        match due {
            Due::Wait { cpu, task, must } => {
                let timers = &self.cpus[cpu as usize].hrtimers;
                !timers.contains_key(&(must, Hrtimer::Wait(TaskId(task))))
            }
            Due::Timer { timer, stamp, .. } => {
                self.timers.get(&timer).is_none_or(|a| a.stamp != stamp)
            }
            _ => false,
        }
    }

    /// When the hardware of `cpu` is set to interrupt.
    pub(super) fn next_interrupt(&self, cpu: u32) -> Ps {
        let state = &self.cpus[cpu as usize];
        let tick = if state.tick_on {
            state.tick_at
        } else {
            Ps::MAX
        };
        tick.min(self.next_hrtimer(cpu))
    }

    /// When the first timer of `cpu` other than the tick must fire.
    pub(super) fn next_hrtimer(&self, cpu: u32) -> Ps {
        let first = self.cpus[cpu as usize].hrtimers.first_key_value();
        first.map_or(Ps::MAX, |(key, _)| key.0)
    }

    /// Sets the hardware's timer, where that has a price.
    pub(super) fn program_timer(&mut self) {
        let mut price = self.host.prices.timer_program;
        if let Some(held) = &mut self.host.held {
            price = held.cheaper(self.host.cpu, price);
        }
        if price > 0 {
            self.host.spend(Place::Irq, price);
        }
    }

    /// In a timer's interrupt: whatever may fire by now does. The wake-ups are the next steps, and
    /// after them the hardware is set to the next timer.
    pub(super) fn expire(&mut self, cpu: u32) {
        let mut woken = 0;
        while let Some(first) = self.cpus[cpu as usize].hrtimers.first_entry() {
            if *first.get() > self.host.at {
                break;
            }
            let ((_, timer), _) = first.remove_entry();
            self.host.op(KernelOp::HrtimerFire);
            match timer {
                Hrtimer::Wait(id) => woken += usize::from(self.end_wait(cpu, id, woken)),
                Hrtimer::Engine(timer) => {
                    self.timers.remove(&timer);
                    self.engine(|cx, rqs| sched::run_timer(cx, rqs, timer));
                }
            }
        }
        if woken == 0 {
            self.program_timer();
        } else if self.host.prices.timer_program > 0 {
            let todo = &mut self.cpus[cpu as usize].todo;
            todo.insert(woken, Todo::TimerTail);
        }
    }

    fn end_wait(&mut self, cpu: u32, id: TaskId, place: usize) -> bool {
        let task = &mut self.tasks[id.idx()];
        if task.wait != Wait::Time && task.life != Life::New {
            return false;
        }
        task.wait = Wait::None;
        let wake = Todo::Wake {
            task: id,
            kind: WakeKind::Wake,
            waker: self.cpus[cpu as usize].curr,
            atomic: true,
        };
        self.cpus[cpu as usize].todo.insert(place, wake);
        true
    }

    /// Jiffies at the host's time.
    pub(super) fn jiffies_now(&mut self) -> u64 {
        self.host.jiffies(self.sys.features.tick_ns())
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::testing::{on, server};

    /// Switches of two CPUs in 56 ms, at ticks of 4 ms: one with a hog, one with three that take
    /// turns.
    fn switches(hrtick: &str) -> u64 {
        let set = [("hrtick", hrtick), ("hz", "250")];
        on(&server(2), "hogs --tasks 4 --duration 56ms", &set, |sim| {
            sim.run().unwrap();
            sim.rqs.iter().map(|rq| rq.nr_switches).sum()
        })
    }

    /// A slice is 1.4 ms: turns are as long, not up to the tick.
    #[test]
    fn turns_end_with_the_slice_where_a_timer_ends_them() {
        let by_tick = switches("off");
        let expected = by_tick * 40 / 14;
        for hrtick in ["slice", "deadline"] {
            let switches = switches(hrtick);
            let near = expected * 9 / 10..=expected * 11 / 10;
            assert!(near.contains(&switches), "{hrtick}: {switches}, {by_tick}");
        }
    }
}
