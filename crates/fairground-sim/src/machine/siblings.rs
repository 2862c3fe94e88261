//! Programs on the threads of one core: how fast they get on beside each other.
//!
//! The event at the end of a stretch of computing is set for a sibling that goes on as it does.
//! If the sibling begins to execute meanwhile, the event comes too early and is set again; if it
//! goes idle or waits, the event is moved up there and then.

use super::Sim;
use super::task::Stage;
use crate::cache::Ps;

/// A stretch of computing whose end is known to be this much too late is left as it is.
const LATE: Ps = 50_000;

impl Sim<'_> {
    /// A stretch of computing begins on `cpu` at `at`, of `left` on a core of its own: when it is
    /// over.
    pub(super) fn begin_user(&mut self, cpu: u32, at: Ps, left: Ps) -> Ps {
        self.cpus[cpu as usize].user_since = Some(at);
        if let Some(smt) = &mut self.host.smt {
            smt.begin_user(cpu, at);
        }
        match left {
            Ps::MAX => Ps::MAX,
            left => self.done_at(cpu, at, left),
        }
    }

    /// When the task of `cpu` has computed for `left` more than it has at `at`.
    fn done_at(&mut self, cpu: u32, at: Ps, left: Ps) -> Ps {
        let left = self.host.pace.time_on(cpu, left);
        match &self.host.smt {
            Some(smt) => at + smt.time_for(cpu, at, left),
            None => self.cpus[cpu as usize].gaps.after(at, left),
        }
    }

    /// What the task of `cpu` has got done from `since`, when its stretch began, to `at`.
    #[inline]
    pub(super) fn advanced(&self, cpu: u32, since: Ps, at: Ps) -> Ps {
        let executed = match &self.host.smt {
            Some(smt) => smt.progress(cpu, at),
            None => self.cpus[cpu as usize].gaps.advance(since, at),
        };
        self.host.pace.done_on(cpu, executed)
    }

    /// What the task of `cpu` has still to compute at `at`, if it computes and nothing else waits
    /// for the CPU.
    #[inline]
    fn left_to_compute(&self, cpu: u32, at: Ps) -> Option<Ps> {
        let state = &self.cpus[cpu as usize];
        let since = state.user_since?;
        let left = self.tasks[state.curr?.idx()].run_left;
        if left == Ps::MAX || state.has_steps() || self.rqs[cpu as usize].need_resched {
            return None;
        }
        Some(left.saturating_sub(self.advanced(cpu, since, at)))
    }

    /// The stretch of computing on `cpu` is not over at `at`, where it should be: the sibling came
    /// in between. Its end is set again.
    pub(super) fn still_computes(&mut self, cpu: u32, at: Ps) -> bool {
        if self.host.smt.is_none() {
            return false;
        }
        match self.left_to_compute(cpu, at) {
            None | Some(0) => false,
            Some(left) => {
                let done = self.done_at(cpu, at, left);
                self.push_work(cpu, done);
                true
            }
        }
    }

    /// `cpu` has done a step: its sibling's program may be done earlier now.
    pub(super) fn tell_sibling(&mut self, cpu: u32) {
        let state = &self.cpus[cpu as usize];
        let task = state.curr.map(|id| &self.tasks[id.idx()]);
        // It spins in user mode for the lock of a CPU, with `PAUSE`.
        let spins = task.is_some_and(|t| t.stage == Stage::Again && t.run_left == Ps::MAX)
            || state.spins_since.is_some();
        let began = self.host.began;
        let gained = self.host.end_step(state.idle.is_none() && !spins);
        if gained < LATE {
            return;
        }
        let sibling = self.host.smt.as_ref().and_then(|smt| smt.sibling(cpu));
        let Some(other) = sibling else { return };
        let Some(since) = self.cpus[other as usize].user_since else {
            return;
        };
        // It can be over before the step is, of which much may be waiting.
        let from = began.max(since);
        if let Some(left) = self.left_to_compute(other, from) {
            let done = self.done_at(other, from, left);
            self.push_work(other, done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::with;
    use crate::machine_file::Machine;
    use crate::spec::Scenario;
    use crate::workload::Env;

    const SLOW: u32 = 400;

    /// What becomes of a scenario after some ms on two cores, of which the second is slow.
    fn after<T>(ms: u64, text: &str, act: impl FnOnce(&mut Sim<'_>) -> T) -> T {
        let machine = Machine::builtin("kunpeng920-6426-2s").unwrap();
        let mut machine = machine.shrunk(2).unwrap();
        machine.topology.cpus[1].capacity = SLOW;
        let text = format!("duration = \"9s\"\n[[task]]\nname = \"a\"\n{text}");
        let scenario = Scenario::parse("s.toml", &text).unwrap();
        let workload = scenario.workload(&Env { cpus: 2 }).unwrap();
        with(&machine, &workload, &[], |sim| {
            sim.run_to(ms * 1_000_000).unwrap();
            act(sim)
        })
    }

    /// The time that a program takes on the slow CPU by that on the fast one.
    fn slower(steps: &str) -> f64 {
        let of = |cpu: u32| {
            let text = format!("affinity = [{cpu}]\nsteps = [{steps}]");
            after(9000, &text, |sim| sim.tasks[0].cpu_ns as f64)
        };
        of(1) / of(0)
    }

    #[test]
    fn a_slow_cpu_takes_longer_for_user_and_kernel_code() {
        let times = f64::from(crate::machine_file::FULL_CAPACITY) / f64::from(SLOW);
        let user = slower("{ run = \"100ms\" }");
        assert!((user / times - 1.0).abs() < 0.01, "{user}");
        // Waits for lines are as long on either.
        let kernel = slower("{ loop = 1000, steps = [\"yield\"] }");
        assert!((0.85..1.05).contains(&(kernel / times)), "{kernel}");
    }

    #[test]
    fn who_is_too_big_for_a_slow_cpu_goes_to_an_idle_fast_one() {
        let text = "affinity = [1]\nsteps = [{ run = \"40ms\" }, { affinity = \"all\" }, \"hog\"]";
        let on = |ms| after(ms, text, |sim| sim.tasks[0].on_cpu);
        assert_eq!((on(90), on(400)), (Some(1), Some(0)));
    }
}
