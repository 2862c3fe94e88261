//! Idle states: which one, how long the way out takes, and whether the tick stops.
//!
//! The governor predicts the length of the stay as the `menu` governor does: the typical length of
//! the last eight stays if they are alike, and at most the time to the next timer, corrected by
//! how much of that time stays of this order have lasted before. It takes the deepest state
//! whose target residency fits. Exit latencies of the machine file are the worst cases that the
//! governor believes; COSTMODEL's rule for the real cost is the table value for shallow states
//! and 40 % of it for those of 100 us and more.

use std::sync::atomic::Ordering::Relaxed;

use fairground::place::Access;
use fairground::sched;

use super::Sim;
use super::cpu::IdleStay;
use crate::cache::{NS, Ps};
use crate::host::Place;
use crate::machine_file::{IdleState, Machine};

/// One, for correction factors.
pub const UNITY: u32 = 1 << 16;
/// Weight of the past in a correction factor, as in the governor.
const CORRECTION_DECAY: u32 = 8;
/// A CPU without a timer of a task still has those of the kernel (watchdogs run every half second).
const NO_TIMER_NS: u64 = 500_000_000;

/// The order of magnitude of a time to the next timer: below 10 us, 100 us, ... 100 ms, more.
fn bucket(timer_ns: u64) -> usize {
    (timer_ns.max(1000).ilog10() as usize - 3).min(5)
}

/// The idle states of a machine.
#[derive(Debug)]
pub struct IdleTable {
    states: Vec<IdleState>,
    /// Whether idle CPUs watch `need_resched` (monitor/mwait), so that no interrupt is needed.
    polls: bool,
}

impl IdleTable {
    /// From the machine file. x86 states entered by `mwait` (POLL, C1 and deeper) watch the flag;
    /// `HLT` of a guest and `WFI` need an interrupt.
    pub fn new(machine: &Machine) -> Self {
        let states = machine.idle_states();
        let polls = machine.arch == "x86_64"
            && !states
                .iter()
                .any(|s| s.name.starts_with("HLT") || s.name.starts_with("WFI"));
        Self { states, polls }
    }

    /// Whether a polling idle CPU is woken by a store.
    pub fn polls(&self) -> bool {
        self.polls
    }

    /// Time from the wake-up to the first instruction, for a state.
    fn exit(&self, state: u8) -> Ps {
        let worst = self
            .states
            .get(state as usize)
            .map_or(0, |s| s.exit_latency_ns);
        let real = if worst >= 100_000 {
            worst * 2 / 5
        } else {
            worst
        };
        real * NS
    }

    /// What placement sees of a state: 0 without an idle driver (a guest that halts), else the
    /// table's exit latency plus one, ns.
    fn shown_latency(&self, state: u8) -> u64 {
        if self.polls {
            self.states
                .get(state as usize)
                .map_or(0, |s| s.exit_latency_ns + 1)
        } else {
            0
        }
    }

    fn deepest(&self, predicted_ns: u64) -> u8 {
        let fits = |s: &IdleState| s.target_residency_ns <= predicted_ns;
        self.states.iter().rposition(fits).unwrap_or(0) as u8
    }
}

impl Sim<'_> {
    /// The executing CPU found nothing to run and goes idle.
    pub(super) fn enter_idle(&mut self, cpu: u32) {
        self.host.op(crate::costs::KernelOp::IdleLoop);
        let at = self.host.at;
        let next = self.cpus[cpu as usize].next_timer;
        let timer_ns = if next > at {
            (next - at) / NS
        } else {
            NO_TIMER_NS
        };
        let factor = self.cpus[cpu as usize].idle_correction[bucket(timer_ns)];
        let corrected = timer_ns.saturating_mul(u64::from(factor)) / u64::from(UNITY);
        let predicted = self.typical_idle(cpu).min(corrected);
        let stop_tick = predicted >= self.tick / NS;
        let state = self.idle.deepest(predicted);
        if stop_tick {
            let c = &mut self.cpus[cpu as usize];
            c.tick_on = false;
            if self.do_timer == Some(cpu) {
                self.do_timer = None;
            }
            let c = &mut self.cpus[cpu as usize];
            if !c.nohz {
                c.nohz = true;
                self.engine(sched::nohz_enter_idle);
            }
        }
        self.touch_idle_flags(cpu);
        let c = &mut self.cpus[cpu as usize];
        c.idle = Some(IdleStay {
            state,
            since: self.host.at,
            timer_ns,
        });
        let shown = self.idle.shown_latency(state);
        self.sys.cpu[cpu as usize]
            .idle_exit_latency
            .store(shown, Relaxed);
        c.work_stamp = c.work_stamp.wrapping_add(1);
    }

    /// Something wakes an idle CPU at the host's time: pays the way out.
    pub(super) fn leave_idle(&mut self, cpu: u32) {
        let Some(stay) = self.cpus[cpu as usize].idle.take() else {
            return;
        };
        let at = self.host.at;
        let c = &mut self.cpus[cpu as usize];
        c.counted_to = c.counted_to.max(at);
        let length = (at.saturating_sub(stay.since) / NS).min(u64::from(u32::MAX)) as u32;
        c.idle_history[usize::from(c.idle_next)] = length;
        c.idle_next = (c.idle_next + 1) % 8;
        self.sys.cpu[cpu as usize]
            .idle_exit_latency
            .store(0, Relaxed);
        let measured = u64::from(length).min(stay.timer_ns);
        let share = (measured * u64::from(UNITY) / stay.timer_ns.max(1)) as u32;
        let factor = &mut self.cpus[cpu as usize].idle_correction[bucket(stay.timer_ns)];
        *factor = (*factor - *factor / CORRECTION_DECAY + share / CORRECTION_DECAY).max(1);
        let exit = self.idle.exit(stay.state);
        self.host.spend(Place::IdleExit, exit);
        self.touch_idle_flags(cpu);
        // Nobody may have counted while this CPU slept (`tick_nohz_update_jiffies`).
        if !self.cpus[cpu as usize].tick_on {
            self.count_jiffies();
        }
    }

    /// The idle loop looks at `TIF_NEED_RESCHED` and sets or clears `TIF_POLLING_NRFLAG`, once for
    /// the loop and once for the state, on the way in and on the way out. Whoever woke this CPU has
    /// the line; it comes back with the first look on the way out.
    fn touch_idle_flags(&mut self, cpu: u32) {
        let place = Place::Op(crate::costs::KernelOp::IdleLoop);
        self.host.touch_idle_flags(place, cpu, Access::Read);
        self.host.touch_idle_flags(place, cpu, Access::Rmw);
        self.host.touch_idle_flags(place, cpu, Access::Rmw);
    }

    /// The tick goes on when a CPU has a task again.
    pub(super) fn restart_tick(&mut self, cpu: u32) {
        if self.cpus[cpu as usize].nohz {
            self.cpus[cpu as usize].nohz = false;
            self.engine(sched::nohz_exit_idle);
        }
        if !self.cpus[cpu as usize].tick_on {
            self.cpus[cpu as usize].tick_on = true;
            self.program_tick(cpu, self.host.at);
        }
    }

    /// The typical length of the last eight stays, ns: their mean, or, if they scatter, the mean
    /// without the longest, and so on (as `menu` does); none = no pattern.
    fn typical_idle(&self, cpu: u32) -> u64 {
        let mut seen = self.cpus[cpu as usize].idle_history;
        seen.sort_unstable();
        if seen[0] == 0 {
            return u64::MAX;
        }
        for n in (6..=8).rev() {
            let kept = &seen[..n];
            let mean = kept.iter().map(|v| u64::from(*v)).sum::<u64>() / n as u64;
            let square = |v: &u32| u128::from(u64::from(*v).abs_diff(mean)).pow(2);
            let variance = kept.iter().map(square).sum::<u128>() / n as u128;
            if variance * 36 <= u128::from(mean).pow(2) || variance <= 400_000_000 {
                return mean;
            }
        }
        u64::MAX
    }
}
