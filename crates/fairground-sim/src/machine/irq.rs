//! Interrupts: the tick, messages from other CPUs, timers.

use fairground::place::{Access, Kind, Object, time};
use fairground::sched::{self, BandwidthError, Later};

use super::Sim;
use super::due::{Due, Ipi};
use super::idle::WokenBy;
use super::todo::Todo;
use crate::cache::{self, Ps};
use crate::costs::KernelOp;
use crate::host::{Place, Request};

/// A group's `cpu.max` and `cpu.max.burst` as last written.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Runtime of a period; `None` = no limit.
    pub quota_ns: Option<u64>,
    /// Length of a period.
    pub period_ns: u64,
    /// Unused runtime that may be kept.
    pub burst_ns: u64,
}

impl Sim<'_> {
    /// An interrupt arrives at `cpu`. It waits for the end of a running step.
    pub(super) fn interrupt(&mut self, cpu: u32, at: Ps, due: Due) {
        let state = &mut self.cpus[cpu as usize];
        if let Some(later) = state.busy_after(at) {
            // It comes first at the end of the step, before whatever else the CPU would do.
            state.irqs.push_back(due);
            if state.idle.is_some() || state.user_since.is_some() || state.spins_since.is_some() {
                self.push_work(cpu, later);
            }
            return;
        }
        if state.irqs_off() {
            return state.irqs.push_back(due);
        }
        debug_assert!(!self.is_stale(due), "{due:?}");
        if self.cpus[cpu as usize].idle.is_some() {
            self.cpus[cpu as usize].irqs.push_front(due);
            let by = match due {
                Due::Tick { .. } => WokenBy::Tick,
                _ => WokenBy::Other,
            };
            return self.come_out(cpu, at, by);
        }
        self.stop_user(cpu, at);
        self.stop_spin(cpu, at);
        self.host.begin(cpu, at);
        let polled = matches!(due, Due::Ipi { kind, .. } if kind == Ipi::Polled);
        if !polled {
            self.host.spend(Place::Irq, self.host.prices.irq);
        }
        self.end_idle_state(cpu);
        if due.is_timer() {
            self.host.spend(Place::Irq, self.host.prices.timer_irq);
        }
        let mut rest = None;
        match due {
            Due::Tick { .. } => rest = self.tick(cpu),
            Due::Ipi { kind, .. } => self.ipi(cpu, kind),
            Due::Wait { .. } | Due::Timer { .. } => {}
            Due::Write { event } => self.control_write(event),
            Due::Work { .. } | Due::Turn { .. } | Due::End => {
                debug_assert!(false, "{due:?} is no interrupt");
            }
        }
        if rest.is_some() {
            self.wait_for_words(cpu, rest);
        } else if due.is_timer() {
            self.host.counters.in_timer = true;
            self.expire(cpu);
        }
        self.step_done(cpu);
        self.host.counters.in_timer = false;
        self.go_on(cpu);
    }

    /// After an interrupt or a step: more steps, a switch, user code, or back to idle.
    pub(super) fn go_on(&mut self, cpu: u32) {
        let state = &self.cpus[cpu as usize];
        let at = state.busy_until;
        if state.spins_since.is_some() && state.irqs.is_empty() {
            return;
        }
        if self.has_nothing_to_do(cpu) {
            self.host.begin(cpu, at);
            self.enter_idle(cpu);
            self.step_done(cpu);
            return;
        }
        self.push_work(cpu, at);
    }

    /// The first tick after `at`: ticks of all CPUs fall on one grid, whose first is `tick_phase`.
    pub(super) fn tick_after(&self, at: Ps) -> Ps {
        let since = at.checked_sub(self.tick_phase);
        self.tick_phase + since.map_or(0, |since| (since / self.tick + 1) * self.tick)
    }

    /// Sets the next tick of `cpu` after `at`.
    pub(super) fn program_tick(&mut self, cpu: u32, at: Ps) {
        let tick_at = self.tick_after(at);
        let state = &mut self.cpus[cpu as usize];
        state.tick_stamp = state.tick_stamp.wrapping_add(1);
        let stamp = state.tick_stamp;
        state.tick_at = tick_at;
        self.queue.push_tick(tick_at, cpu, stamp);
    }

    /// The tick, up to where it waits for words that others use too.
    fn tick(&mut self, cpu: u32) -> Option<Later> {
        self.host.spend(Place::Tick, self.host.prices.tick);
        // One CPU has the duty, until it stops its tick; then the next that ticks takes it.
        if *self.do_timer.get_or_insert(cpu) == cpu {
            self.count_jiffies();
        }
        self.settle_at_tick();
        let rest = self.engine(sched::begin_tick);
        if self.has_real_time {
            self.real_time_tick(cpu);
        }
        let rest = self.unless_alone(rest);
        self.program_tick(cpu, self.host.at);
        rest
    }

    /// What is left of a call is the next step, at the time at which it has what it waited for:
    /// others may act before.
    pub(super) fn wait_for_words(&mut self, cpu: u32, rest: Option<Later>) {
        let rest = self.unless_alone(rest);
        let todo = &mut self.cpus[cpu as usize].todo;
        todo.extend(rest.map(Todo::Later));
        todo.rotate_right(usize::from(rest.is_some()));
    }

    /// What others may act before: all that is left, but where CPUs take turns nothing.
    fn unless_alone(&mut self, mut rest: Option<Later>) -> Option<Later> {
        while self.turns.is_some()
            && let Some(later) = rest
        {
            rest = self.engine(|cx, rqs| sched::go_on(cx, rqs, later));
        }
        rest
    }

    /// A call goes on. With the trigger the tick ends, and the other timers of its interrupt come.
    pub(super) fn go_on_later(&mut self, cpu: u32, later: Later) {
        let rest = self.engine(|cx, rqs| sched::go_on(cx, rqs, later));
        self.wait_for_words(cpu, rest);
        if rest.is_none() && matches!(later, Later::Trigger(_)) {
            self.host.counters.in_timer = true;
            self.expire(cpu);
        }
    }

    /// Writes the count of jiffies if it has moved on (`tick_do_update_jiffies64`).
    pub(super) fn count_jiffies(&mut self) {
        let now = self.jiffies_now();
        if now > self.jiffies {
            self.jiffies = now;
            let word = Object {
                kind: Kind::Time,
                a: 0,
                b: 0,
            };
            self.host
                .touch_in(Place::Tick, word, time::JIFFIES, Access::Update);
        }
    }

    /// Acts on what the engine asked for during the last call.
    #[inline]
    pub(super) fn drain_requests(&mut self, cpu: u32) {
        if !self.host.requests.is_empty() {
            self.act_on_requests(cpu);
        }
    }

    #[inline(never)]
    fn act_on_requests(&mut self, cpu: u32) {
        let mut requests = std::mem::take(&mut self.host.requests);
        for (at, request) in requests.drain(..) {
            match request {
                Request::Resched(to) => self.send_reschedule(cpu, to.0, at),
                Request::Kick(to, work) => self.kick(cpu, to, work, at),
                Request::Start(timer, at_ns) => {
                    self.start_engine_timer(cpu, timer, at_ns, self.host.counters.in_timer);
                }
                Request::Cancel(timer) => {
                    self.withdraw_engine_timer(cpu, timer, self.host.counters.in_timer)
                }
            }
        }
        self.host.requests = requests;
    }

    #[inline(never)]
    fn control_write(&mut self, event: u32) {
        use crate::workload::program::CgroupWrite;
        let event = self.workload.events[event as usize];
        let tg = self.groups[event.cgroup as usize];
        let before = self.limits[event.cgroup as usize];
        self.host.op(KernelOp::CgroupAttach);
        match event.write {
            CgroupWrite::Max {
                quota_ns,
                period_ns,
            } => {
                let limit = &mut self.limits[event.cgroup as usize];
                // The burst stays, also without a quota. The kernel refuses a quota below it, and
                // so do those who read such a write.
                (limit.quota_ns, limit.period_ns) = (quota_ns, period_ns);
            }
            CgroupWrite::Burst(ns) => self.limits[event.cgroup as usize].burst_ns = ns,
            CgroupWrite::Shares(shares) => {
                let shares = fairground::math::weight::group_shares(shares);
                // Refused if the group is idle, as by the kernel; so nothing has changed.
                let _ = self.engine(|cx, rqs| sched::set_shares(cx, rqs, tg, shares));
                return;
            }
            CgroupWrite::Idle(idle) => {
                let done = self.engine(|cx, rqs| sched::set_idle(cx, rqs, tg, idle));
                debug_assert_eq!(done, Ok(()), "not the root");
                return;
            }
        }
        if self.set_limit(event.cgroup).is_err() {
            self.limits[event.cgroup as usize] = before;
        }
        self.watch_limit(event.cgroup);
    }

    /// Writes a group's quota to the scheduler.
    pub(super) fn set_limit(&mut self, group: u32) -> Result<(), BandwidthError> {
        let tg = self.groups[group as usize];
        let Limit {
            quota_ns,
            period_ns,
            burst_ns,
        } = self.limits[group as usize];
        self.engine(|cx, rqs| sched::set_bandwidth(cx, rqs, tg, quota_ns, period_ns, burst_ns))
    }

    /// Touches a line of the machine's own (a channel, a futex) for `op`.
    pub(super) fn touch(&mut self, op: KernelOp, line: u32, words: u8, access: cache::Access) {
        self.host.touch_line(op, line, words, access);
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::testing::{on, server};

    #[test]
    fn ticks_are_at_the_phase_and_every_period_after_it() {
        on(&server(2), "hogs --tasks 1 --duration 10ms", &[], |sim| {
            (sim.tick_phase, sim.tick) = (30, 100);
            let after = [0, 29, 30, 129, 130].map(|at| sim.tick_after(at));
            assert_eq!(after, [30, 30, 130, 130, 230]);
        });
    }
}
