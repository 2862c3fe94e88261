//! Turns: an emulator that runs all virtual CPUs one after the other on one host thread.
//!
//! QEMU with `-icount` counts a fixed time for each instruction. A virtual CPU has its turn until
//! it halts or its budget is used up, which is its share, one of as many as there are CPUs, of the
//! time to the next timer of any CPU. So turns get shorter towards a timer. Meanwhile the clock
//! goes on for all: an interrupt, or the end of a computation that waits for the clock, is seen by
//! a CPU when its turn comes, and kernel code that is not done at the end of a turn goes on in the
//! next one. A step is simulated as a whole when it begins, so its clock reckons with the turns of
//! others that will cut it: as many as now have something to do, each as long as its own.

use super::Sim;
use super::due::Due;
use crate::cache::{NS, Ps};
use crate::host::Turn;

/// The longest time that a timer is looked ahead: the emulator has one of its own every tenth of a
/// second.
const LOOK_AHEAD: Ps = 100_000_000 * NS;

/// Who has the stream of instructions.
#[derive(Debug)]
pub(super) struct Turns {
    /// The CPU whose turn it is; none if all halt.
    holder: Option<u32>,
    /// Counts turns.
    stamp: u32,
    /// When this turn's budget is used up.
    until: Ps,
    /// The timer from which the budget was reckoned.
    timer: Ps,
    /// When after the beginning of the run, and once a tick from then on, a timer comes that is
    /// none of the CPUs'.
    beside: Option<Ps>,
    /// What has become due for each CPU and waits for its turn.
    waiting: Vec<Vec<Due>>,
    /// Kernel code of each CPU that was begun and is still to be executed.
    left: Vec<Ps>,
}

impl Turns {
    pub(super) fn new(cpus: usize) -> Self {
        Self {
            holder: None,
            stamp: 0,
            until: 0,
            timer: 0,
            beside: None,
            waiting: vec![Vec::new(); cpus],
            left: vec![0; cpus],
        }
    }

    /// Whether `cpu` has its turn; if another has, `due` is kept. `None` if all halt.
    fn keep(&mut self, cpu: u32, due: Due) -> Option<bool> {
        let holder = self.holder?;
        if holder != cpu {
            self.waiting[cpu as usize].push(due);
        }
        Some(holder == cpu)
    }
}

impl Sim<'_> {
    /// The emulator has a timer of its own once a tick, the first `at_ns` after the beginning.
    pub(crate) fn set_timer_beside(&mut self, at_ns: u64) {
        if let Some(turns) = &mut self.turns {
            turns.beside = Some(at_ns * NS);
        }
    }

    /// Whether `due` can be handled at `at`. If another CPU has its turn, it is kept until that of
    /// its own CPU.
    pub(super) fn has_turn(&mut self, at: Ps, due: Due) -> bool {
        let cpu = match due {
            Due::Work { cpu, .. }
            | Due::Tick { cpu, .. }
            | Due::Ipi { cpu, .. }
            | Due::Wait { cpu, .. }
            | Due::Timer { cpu, .. } => cpu,
            Due::Write { .. } => 0,
            Due::Turn { stamp } => {
                self.end_turn(at, stamp);
                return false;
            }
            Due::End => return true,
        };
        match self.turns.as_mut().and_then(|turns| turns.keep(cpu, due)) {
            Some(holds) => holds,
            None => {
                let live = self.is_live(due);
                if live {
                    self.begin_turn(cpu, at);
                }
                live
            }
        }
    }

    /// The turn of `cpu` ends with the step that it has just done, if it halts or has set a timer
    /// that is earlier than all others: the emulator looks for the next one again.
    pub(super) fn may_end_turn(&mut self, cpu: u32) {
        let state = &self.cpus[cpu as usize];
        let (at, halts) = (state.busy_until, state.idle.is_some());
        let armed = self.next_interrupt(cpu);
        let Some(turns) = self.turns.as_mut().filter(|t| t.holder == Some(cpu)) else {
            return;
        };
        if at < armed && armed < turns.timer {
            turns.until = turns.until.min(at);
        } else if !halts {
            return;
        }
        let stamp = turns.stamp;
        self.queue.push(at, Due::Turn { stamp });
    }

    fn begin_turn(&mut self, cpu: u32, at: Ps) {
        let n = self.cpus.len() as Ps;
        let armed = (0..self.cpus.len() as u32).map(|cpu| self.next_interrupt(cpu));
        let next = armed.filter(|next| *next > at).min().unwrap_or(Ps::MAX);
        let mut timer = next.min(at + LOOK_AHEAD);
        if let Some(beside) = self.turns.as_ref().and_then(|t| t.beside) {
            let past = (at + self.tick - beside % self.tick) % self.tick;
            timer = timer.min(at + self.tick - past);
        }
        let ahead = timer - at;
        let budget = if ahead < n * NS { ahead } else { ahead / n };
        let others = (0..self.cpus.len() as u32).filter(|o| *o != cpu && self.wants_turn(*o));
        let others = others.count() as Ps;
        let Some(turns) = &mut self.turns else {
            return;
        };
        turns.holder = Some(cpu);
        turns.stamp = turns.stamp.wrapping_add(1);
        (turns.until, turns.timer) = (at + budget, timer);
        let stamp = turns.stamp;
        self.host.turn = Some(Turn {
            cpu,
            until: at + budget,
            length: budget.max(1),
            others,
        });
        self.queue.push(turns.until, Due::Turn { stamp });
        let left = std::mem::take(&mut turns.left[cpu as usize]);
        let waiting = std::mem::take(&mut turns.waiting[cpu as usize]);
        if left > 0 {
            self.cpus[cpu as usize].busy_until = at + left;
            if self.cpus[cpu as usize].idle.is_some() {
                self.may_end_turn(cpu);
            }
        }
        for due in waiting {
            if self.is_live(due) {
                self.queue.push(at, due);
            }
        }
    }

    /// The turn that `stamp` counts is over, if its budget is used up or its CPU has halted.
    fn end_turn(&mut self, at: Ps, stamp: u32) {
        let Some(turns) = &self.turns else {
            return;
        };
        let Some(holder) = turns.holder.filter(|_| turns.stamp == stamp) else {
            return;
        };
        let state = &self.cpus[holder as usize];
        let done = state.busy_until <= at;
        let halted = state.idle.is_some() && state.irqs.is_empty() && done;
        if at < turns.until && !halted {
            return;
        }
        let left = state.busy_until.saturating_sub(at);
        let n = self.cpus.len() as u32;
        let after = (1..=n).map(|i| (holder + i) % n);
        if let Some(turns) = &mut self.turns {
            turns.left[holder as usize] = left;
            turns.holder = None;
        }
        let next = after.into_iter().find(|cpu| self.wants_turn(*cpu));
        if let Some(cpu) = next {
            self.begin_turn(cpu, at);
        }
    }

    /// Whether a CPU has instructions to execute.
    fn wants_turn(&self, cpu: u32) -> bool {
        let c = cpu as usize;
        let state = &self.cpus[c];
        let turns = self.turns.as_ref();
        let due = |t: &Turns| t.left[c] > 0 || t.waiting[c].iter().any(|due| self.is_live(*due));
        state.idle.is_none() || !state.irqs.is_empty() || turns.is_some_and(due)
    }

    /// Whether something that became due still has to be done.
    fn is_live(&self, due: Due) -> bool {
        match due {
            Due::Work { cpu, stamp } => self.cpus[cpu as usize].work_stamp == stamp,
            Due::Tick { cpu, stamp } => {
                let state = &self.cpus[cpu as usize];
                state.tick_stamp == stamp && state.tick_on
            }
            _ => !self.is_stale(due),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::on;
    use crate::machine_file::Machine;

    const MS: Ps = 1_000_000 * NS;

    /// 16 CPUs of an emulator.
    fn on_guest(argv: &str, act: impl FnOnce(&mut Sim<'_>)) {
        let toml = include_str!("../truth/smp/runs/tcg-guest.toml");
        let machine = Machine::from_toml("guest", toml).unwrap();
        on(&machine, argv, &[("hz", "250")], |sim| {
            sim.align_ticks(0);
            act(sim);
        });
    }

    /// When each CPU serves the tick of 40 ms, in order.
    fn ticks(sim: &mut Sim<'_>) -> Vec<Ps> {
        sim.run_to(40_000_000).unwrap();
        let mut seen: Vec<_> = sim.cpus.iter().map(|c| c.tick_stamp).collect();
        let mut at = Vec::new();
        while sim.is_due_before(44_000_000) {
            sim.one_event().unwrap();
            for (cpu, seen) in sim.cpus.iter().zip(&mut seen) {
                if cpu.tick_stamp != *seen {
                    *seen = cpu.tick_stamp;
                    at.push(sim.now);
                }
            }
        }
        at
    }

    #[test]
    fn ticks_of_busy_cpus_come_a_turn_apart_and_turns_get_shorter() {
        on_guest("hogs --tasks 16 --duration 60ms", |sim| {
            let at = ticks(sim);
            assert_eq!(at.len(), 16, "{at:?}");
            assert!(at[0] >= 40 * MS && at[0] < 40 * MS + MS / 10);
            for pair in at[1..].windows(2) {
                let turn = (44 * MS - pair[0]) / 16;
                assert!((pair[1] - pair[0]).abs_diff(turn) <= turn / 100, "{at:?}");
            }
        });
    }

    #[test]
    fn a_timer_of_the_emulator_shortens_turns() {
        on_guest("hogs --tasks 16 --duration 60ms", |sim| {
            sim.set_timer_beside(2_000_000);
            let at = ticks(sim);
            let turn = (42 * MS - at[1]) / 16;
            assert!((at[2] - at[1]).abs_diff(turn) <= turn / 100, "{at:?}");
        });
    }

    #[test]
    fn nobody_has_a_turn_when_all_sleep() {
        let argv = "sleepers --tasks 1 --duration 60ms --period 20ms";
        on_guest(argv, |sim| {
            sim.run_to(35_000_000).unwrap();
            let turns = sim.turns.as_ref().unwrap();
            assert!(turns.holder.is_none() && turns.left.iter().all(|left| *left == 0));
        });
    }
}
