//! Messages between CPUs: who sends an interrupt, which, and what the receiver does.
//!
//! A CPU learns in three ways that there is something for it ([`Ipi`]). Its idle loop sees a write
//! to its flags, if it watches them (monitor/mwait); otherwise one of two interrupts is sent. Of
//! each only one is on its way at a time.

use fairground::host::{Kick, KickWork};
use fairground::place::Access;
use fairground::sched;
use fairground::value::Cpu;

use super::Sim;
use super::due::{Due, Ipi};
use super::task::Life;
use super::todo::Todo;
use crate::cache::Ps;
use crate::costs::KernelOp;
use crate::host::Place;

impl Sim<'_> {
    #[inline(never)]
    pub(super) fn ipi(&mut self, cpu: u32, kind: Ipi) {
        match kind {
            Ipi::Reschedule => self.cpus[cpu as usize].pending.reschedule = false,
            Ipi::CallFunction => self.call_functions(cpu),
            // The idle loop has been left, or has not been entered.
            Ipi::Polled => self.see_polled(cpu),
        }
    }

    /// The idle loop that was woken by a write to its flags calls what is queued on its way out
    /// (`flush_smp_call_function_queue`).
    pub(super) fn see_polled(&mut self, cpu: u32) {
        let polled = std::mem::take(&mut self.cpus[cpu as usize].pending.polled);
        if polled && self.cpus[cpu as usize].pending.calls() {
            self.call_functions(cpu);
        }
    }

    fn call_functions(&mut self, cpu: u32) {
        self.host.op(KernelOp::IpiBody);
        let pending = &mut self.cpus[cpu as usize].pending;
        let calls = *pending;
        (pending.wakeups, pending.idle_balance) = (false, false);
        (pending.unthrottle, pending.hrtick) = (false, false);
        if calls.unthrottle {
            self.engine(|cx, rqs| sched::run_kick(cx, rqs, KickWork::Unthrottle));
        }
        if calls.hrtick {
            self.engine(|cx, rqs| sched::run_kick(cx, rqs, KickWork::Hrtick));
        }
        // After the functions, so whoever is woken finds its group unthrottled.
        if calls.wakeups {
            let mut list = std::mem::take(&mut self.cpus[cpu as usize].wake_list);
            for (task, ..) in &list {
                self.tasks[task.body.id.idx()].life = Life::Runnable;
            }
            self.engine(|cx, rqs| sched::sched_ttwu_pending(cx, rqs, &mut list));
            self.cpus[cpu as usize].wake_list = list;
        }
        if calls.idle_balance {
            let rest = self.engine(|cx, rqs| sched::begin_kick(cx, rqs, KickWork::IdleBalance));
            self.wait_for_words(cpu, rest);
        }
    }

    pub(super) fn kick(&mut self, from: u32, to: Cpu, work: Kick, at: Ps) {
        let state = &mut self.cpus[to.idx()];
        let first = !state.pending.calls();
        match work {
            Kick::Wakeups => state.pending.wakeups = true,
            Kick::Run(KickWork::IdleBalance) => state.pending.idle_balance = true,
            Kick::Run(KickWork::Unthrottle) => state.pending.unthrottle = true,
            Kick::Run(KickWork::Hrtick) => state.pending.hrtick = true,
            Kick::Run(work @ KickWork::BalanceSoftirq) => {
                // Raised once, and run after what goes on now: an interrupt, or the softirq itself.
                let raised = |t: &Todo| matches!(t, Todo::Softirq(_));
                if !state.todo.iter().any(raised) {
                    let goes_on = |t: &Todo| matches!(t, Todo::Later(_));
                    let after = state.todo.iter().take_while(|t| goes_on(t)).count();
                    state.todo.insert(after, Todo::Softirq(work));
                }
                return;
            }
            Kick::Stop(work) => {
                state.stops.push_back(work);
                return self.send_reschedule(from, to.0, self.host.at);
            }
        }
        if first {
            self.send_call(from, to.0, at);
        }
    }

    /// `TIF_NEED_RESCHED` of what runs on `to` has been set: an interrupt makes it look, unless its
    /// idle loop does anyway.
    pub(super) fn send_reschedule(&mut self, from: u32, to: u32, at: Ps) {
        if from == to {
            return;
        }
        if self.polls(to) {
            self.cpus[to as usize].pending.polled = true;
            let kind = Ipi::Polled;
            self.queue.push(at, Due::Ipi { cpu: to, kind });
        } else if !self.cpus[to as usize].pending.reschedule {
            self.cpus[to as usize].pending.reschedule = true;
            self.send(from, to, at, Ipi::Reschedule);
        }
    }

    /// The first function was queued for `to` (`send_call_function_single_ipi`): its idle task's
    /// flags say whether it polls them; if so, they are written instead of an interrupt: it is
    /// asked to switch, whether or not there will be anything to switch to (`set_nr_if_polling`).
    fn send_call(&mut self, from: u32, to: u32, at: Ps) {
        let kind = Ipi::CallFunction;
        if from == to {
            return self.queue.push(at, Due::Ipi { cpu: to, kind });
        }
        if self.polls(to) {
            let rq = &mut self.rqs[to as usize];
            (rq.need_resched, rq.resched_sent) = (true, true);
            self.host
                .touch_idle_flags(Place::IpiSend, to, Access::CasLoop);
            self.cpus[to as usize].pending.polled = true;
            let kind = Ipi::Polled;
            self.queue.push(self.host.at, Due::Ipi { cpu: to, kind });
        } else {
            self.host.touch_idle_flags(Place::IpiSend, to, Access::Read);
            self.send(from, to, self.host.at, kind);
        }
    }

    /// Whether `cpu` is in an idle state in which it watches its flags, and others rely on it.
    fn polls(&self, cpu: u32) -> bool {
        if self.sys.features.polling_ipi {
            return false;
        }
        let stay = self.cpus[cpu as usize].idle.as_ref();
        stay.is_some_and(|stay| self.idle.polls(stay.state))
    }

    fn send(&mut self, from: u32, to: u32, at: Ps, kind: Ipi) {
        let places = &self.distance.cpus;
        let distance = places[from as usize].distance(&places[to as usize]) as usize;
        self.host.counters.ipis += 1;
        self.host.stall(Place::IpiSend, self.host.prices.ipi_send);
        self.queue
            .push(at + self.ipi[distance], Due::Ipi { cpu: to, kind });
    }
}

#[cfg(test)]
mod tests {
    use fairground::host::{Kick, KickWork};
    use fairground::value::Cpu;

    use crate::machine::testing::{at_5ms, server};

    /// Interrupts that CPU 0 sends for a list of messages to CPU 1, which runs a task.
    fn sent(messages: &[Option<Kick>]) -> u64 {
        at_5ms(&server(2), "hogs --tasks 2 --duration 10ms", &[], |sim| {
            assert!(sim.cpus[1].idle.is_none(), "the second hog runs");
            let (at, before) = (sim.now, sim.host.counters.ipis);
            for message in messages {
                match message {
                    None => sim.send_reschedule(0, 1, at),
                    Some(work) => sim.kick(0, Cpu(1), *work, at),
                }
            }
            sim.host.counters.ipis - before
        })
    }

    #[test]
    fn one_interrupt_of_each_kind_is_on_its_way() {
        let (wake, unthrottle) = (Some(Kick::Wakeups), Some(Kick::Run(KickWork::Unthrottle)));
        assert_eq!(sent(&[None]), 1);
        assert_eq!(sent(&[None, None]), 1);
        assert_eq!(sent(&[wake, unthrottle, wake]), 1, "one list of functions");
        assert_eq!(sent(&[wake, None]), 2, "kinds do not stand for each other");
        assert_eq!(sent(&[None, wake, None, unthrottle]), 2);
    }

    #[test]
    fn an_idle_cpu_that_watches_its_flags_is_interrupted_only_by_old_kernels() {
        for (value, interrupts) in [("off", 0), ("on", 1)] {
            let sets = [("polling_ipi", value)];
            let sent = at_5ms(&server(2), "hogs --tasks 1 --duration 10ms", &sets, |sim| {
                let idle = u32::from(sim.cpus[0].idle.is_none());
                assert!(sim.cpus[idle as usize].idle.is_some(), "one hog, two CPUs");
                let (at, before) = (sim.now, sim.host.counters.ipis);
                sim.send_reschedule(1 - idle, idle, at);
                sim.host.counters.ipis - before
            });
            assert_eq!(sent, interrupts, "polling_ipi={value}");
        }
    }
}
