//! Hardware threads that share a core: while both execute, each is slower.
//!
//! The machine file says what two threads of a core get done together, relative to one alone
//! (`alu.smt_throughput`, 1 to 2). While its sibling executes, a thread has half of that. While the
//! sibling is idle, spins with `PAUSE`, or waits for a line or a lock, it leaves the core to this
//! one. What is slowed down is executing, of programs and of kernel functions; the latencies of
//! lines are not of the core.
//!
//! A thread keeps how long it has executed so far. What a program has got done is a linear
//! function of that of the sibling, so it is known at any time without an event for each change,
//! and does not depend on when it is asked for. A step of kernel code goes on at the pace at which
//! it began.

use crate::cache::Ps;
use crate::machine_file::Machine;

/// One, of a pace.
const ONE: u64 = 1 << 16;
const NOBODY: u32 = u32::MAX;

/// One hardware thread.
#[derive(Clone, Copy, Debug)]
struct Thread {
    sibling: u32,
    /// It executes from `to` on, for all that is known.
    runs: bool,
    /// The last step of kernel code: from, to, and how much of it was executing.
    from: Ps,
    to: Ps,
    of_step: Ps,
    /// Time spent executing up to `to`.
    sum: Ps,
    /// When its last stretch of a program began, and how long the sibling had executed by then.
    user_from: Ps,
    beside_then: Ps,
}

impl Thread {
    fn new(sibling: u32) -> Self {
        Self {
            sibling,
            runs: false,
            from: 0,
            to: 0,
            of_step: 0,
            sum: 0,
            user_from: 0,
            beside_then: 0,
        }
    }

    /// How long it has executed up to `at` in the last step.
    #[inline(never)]
    fn up_to(&self, at: Ps) -> Ps {
        let (part, whole) = (self.to - at.max(self.from), (self.to - self.from).max(1));
        let not_yet = match self.of_step.checked_mul(part) {
            Some(product) => product / whole,
            None => (u128::from(self.of_step) * u128::from(part) / u128::from(whole)) as Ps,
        };
        self.sum - not_yet.min(self.sum)
    }
}

/// All threads of the machine.
#[derive(Debug)]
pub struct Smt {
    threads: Vec<Thread>,
    /// What a thread loses while its sibling executes, as a pace.
    lost: u64,
    /// How much longer it takes then.
    beside: u64,
}

impl Smt {
    /// Of `machine`; `None` if no two of its threads share a core, or not to their loss.
    pub fn new(machine: &Machine) -> Option<Self> {
        if machine.shares_one_stream() {
            return None;
        }
        let together = machine.value("alu.smt_throughput")?.clamp(1.0, 2.0);
        let lost = ((1.0 - together / 2.0) * ONE as f64).round() as u64;
        let places = &machine.topology.cpus;
        let sibling = |cpu: usize| {
            let other = |(i, p): &(usize, &crate::machine_file::CpuPlace)| {
                *i != cpu && p.core == places[cpu].core
            };
            let found = places.iter().enumerate().find(other);
            found.map_or(NOBODY, |(i, _)| i as u32)
        };
        let threads: Vec<_> = (0..places.len())
            .map(|cpu| Thread::new(sibling(cpu)))
            .collect();
        let some = lost > 0 && threads.iter().any(|t| t.sibling != NOBODY);
        some.then(|| Self::with(threads, lost))
    }

    fn with(threads: Vec<Thread>, lost: u64) -> Self {
        Self {
            threads,
            lost,
            beside: longer(lost),
        }
    }

    /// The thread that shares the core of `cpu`.
    pub fn sibling(&self, cpu: u32) -> Option<u32> {
        let sibling = self.threads[cpu as usize].sibling;
        (sibling != NOBODY).then_some(sibling)
    }

    /// `cpu` has done a step of kernel code, of which it has waited for `waited`; then it executes
    /// a program, or the next step, or nothing.
    pub fn step(&mut self, cpu: u32, from: Ps, to: Ps, waited: Ps, runs: bool) {
        let t = &mut self.threads[cpu as usize];
        if t.runs {
            t.sum += from.saturating_sub(t.to);
        }
        t.of_step = (to - from).saturating_sub(waited);
        t.sum += t.of_step;
        (t.from, t.to, t.runs) = (from, to, runs);
        let sibling = t.sibling;
        if sibling != NOBODY && from < self.threads[sibling as usize].user_from {
            // The sibling's program begins later, so only now is known what was before it.
            self.begin_user(sibling, self.threads[sibling as usize].user_from);
        }
    }

    /// A program begins on `cpu` at `at`.
    pub fn begin_user(&mut self, cpu: u32, at: Ps) {
        let beside_then = self.beside(cpu, at);
        let t = &mut self.threads[cpu as usize];
        (t.user_from, t.beside_then) = (at, beside_then);
    }

    /// How long the sibling of `cpu` has executed up to `at`.
    #[inline]
    fn beside(&self, cpu: u32, at: Ps) -> Ps {
        let sibling = self.threads[cpu as usize].sibling;
        if sibling == NOBODY {
            return 0;
        }
        let t = &self.threads[sibling as usize];
        if at >= t.to {
            return t.sum + if t.runs { at - t.to } else { 0 };
        }
        t.up_to(at)
    }

    /// By how much a step of `cpu` that begins at `at` is stretched, in 65536ths.
    pub fn stretch(&self, cpu: u32, at: Ps) -> u64 {
        let sibling = self.threads[cpu as usize].sibling;
        if sibling == NOBODY {
            return ONE;
        }
        let t = &self.threads[sibling as usize];
        if at < t.to {
            longer(self.lost * t.of_step / (t.to - t.from).max(1))
        } else if t.runs {
            self.beside
        } else {
            ONE
        }
    }

    /// What the program on `cpu` has got done since it began, at `at`.
    #[inline]
    pub fn progress(&self, cpu: u32, at: Ps) -> Ps {
        let t = &self.threads[cpu as usize];
        let took = at.saturating_sub(t.user_from);
        let shared = self.beside(cpu, at).saturating_sub(t.beside_then);
        took - self.lost_in(shared.min(took))
    }

    /// How long a program on `cpu` needs for `work` from `at` on, if its sibling goes on as it is
    /// known to.
    pub fn time_for(&self, cpu: u32, at: Ps, work: Ps) -> Ps {
        let sibling = self.threads[cpu as usize].sibling;
        if sibling == NOBODY {
            return work;
        }
        let t = &self.threads[sibling as usize];
        let (mut in_step, mut left) = (0, work);
        if at < t.to {
            // Up to the end of the sibling's step, then as after it.
            in_step = t.to - at;
            let done = in_step - self.lost_in((t.sum - t.up_to(at)).min(in_step));
            if work <= done {
                return scaled(work, in_step, done) + 2;
            }
            left -= done;
        }
        in_step
            + match t.runs {
                true => scaled(left, ONE, ONE - self.lost) + 2,
                false => left,
            }
    }

    /// What a thread loses while its sibling executes for `shared`.
    #[inline]
    fn lost_in(&self, shared: Ps) -> Ps {
        ((u128::from(shared) * u128::from(self.lost)) >> 16) as Ps
    }
}

/// `ps * of / by`.
fn scaled(ps: Ps, of: u64, by: u64) -> Ps {
    (u128::from(ps) * u128::from(of) / u128::from(by.max(1))) as Ps
}

/// By how much a step is stretched of which so much is lost.
#[inline]
fn longer(lost: u64) -> u64 {
    ONE * ONE / (ONE - lost.min(ONE / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CPUs 0 and 1 of one core, which together do 5/4 of what one does alone.
    fn pair() -> Smt {
        Smt::with(vec![Thread::new(1), Thread::new(0)], ONE * 3 / 8)
    }

    #[test]
    fn alone_a_thread_has_the_core_and_beside_another_its_part() {
        let mut smt = pair();
        assert_eq!(smt.stretch(0, 5), ONE);
        assert_eq!(smt.time_for(0, 5, 1000), 1000);
        smt.step(1, 100, 200, 0, true);
        assert_eq!(smt.stretch(0, 200), ONE * 8 / 5);
        assert_eq!(smt.time_for(0, 200, 1000), 1602);
        smt.begin_user(0, 200);
        assert_eq!(smt.progress(0, 1800), 1000);
    }

    #[test]
    fn waiting_leaves_the_core_to_the_other() {
        let mut smt = pair();
        // Half of the step is waiting, so the other loses half as much.
        smt.step(1, 1000, 2000, 500, false);
        assert_eq!(smt.stretch(0, 1500), ONE * ONE / (ONE - ONE * 3 / 16));
        assert_eq!(smt.beside(0, 1500) - smt.beside(0, 1000), 250);
        smt.begin_user(0, 1000);
        assert_eq!(smt.progress(0, 2000), 1000 - 187);
        assert_eq!(smt.stretch(0, 2000), ONE, "it is idle then");
        assert_eq!(smt.beside(0, 9000), 500);
    }

    #[test]
    fn a_change_in_the_middle_of_a_stretch_is_known_afterwards() {
        let mut smt = pair();
        smt.step(1, 0, 100, 0, true);
        smt.begin_user(0, 100);
        // It computes up to 900, then a step of 100, then it is idle.
        smt.step(1, 900, 1000, 0, false);
        assert_eq!(smt.progress(0, 2000), 1900 - 900 * 3 / 8);
        // A stretch that begins in its last step knows of its end.
        assert_eq!(smt.time_for(0, 900, 1000), 100 + 1000 - 63);
    }

    #[test]
    fn a_step_that_mostly_waits_takes_little_from_the_other() {
        let mut smt = pair();
        smt.step(1, 0, 1000, 800, true);
        smt.begin_user(0, 0);
        for work in [100, 500, 925, 926, 2000] {
            let took = smt.time_for(0, 0, work);
            let (before, done) = (smt.progress(0, took - 4), smt.progress(0, took));
            assert!(before < work && done >= work, "{work} in {took}: {done}");
        }
    }

    #[test]
    fn what_has_got_done_does_not_depend_on_when_it_is_asked_for() {
        // The program begins at the end of a step of its own that was simulated before all steps of
        // the sibling which begin meanwhile.
        let all = |early: bool| {
            let mut smt = pair();
            smt.step(1, 0, 100, 0, true);
            if early {
                smt.begin_user(0, 5000);
            }
            smt.step(1, 1000, 4000, 3000, false);
            smt.step(1, 4500, 5500, 500, true);
            if !early {
                smt.begin_user(0, 5000);
            }
            smt.step(1, 6000, 6100, 0, false);
            smt.progress(0, 9000)
        };
        assert_eq!(all(true), all(false));
        assert_eq!(all(true), 4000 - (250 + 500 + 100) * 3 / 8);
    }

    #[test]
    fn what_a_stretch_was_said_to_take_suffices() {
        let mut smt = pair();
        smt.step(1, 0, 70, 0, true);
        for work in [1, 2, 3, 7, 999, 12_345, 1 << 40] {
            smt.begin_user(0, 70);
            let took = smt.time_for(0, 70, work);
            let done = smt.progress(0, 70 + took);
            assert!(done >= work && done <= work + 3, "{work}: {done}");
        }
    }
}
