//! What the recorder itself does in a run: its main thread makes the threads of the case and tells
//! them when to start (`tools/record/ktload.c`), and a sampler reads values. Beside them run the
//! threads that a live system has.

use super::builder::{Builder, Turns};
use super::case::{PolicyWords, TaskWords};
use crate::workload::program::{Dur, FOREVER, Ns, Op, Policy, When};

const US: Ns = 1_000;
const MS: Ns = 1_000_000;

/// How long other threads of the recorded machine run at a time, ns, where a case does not say it
/// ([`Others`](super::others::Others)): kernel threads on the CPU of a case on one, where nothing
/// else was; and whatever came to cases on both. Means over all traces (8 and 35 us).
const KTHREAD_NS: Ns = 8 * US;
const STRANGER_NS: Ns = 35 * US;

/// Part of the wake-ups of others that come within 30 us after a tick: 83 of 141 on the CPU of
/// cases on one, 473 of 1161 on both, in all traces. They are of kernel threads, whose timers are
/// those of the timer wheel, which expire at ticks.
const AT_TICKS_ONE_CPU: f64 = 0.59;
const AT_TICKS_TWO_CPUS: f64 = 0.41;

/// The recorder makes its threads one by one, from a tick on, and naps this long before it looks
/// whether one is ready (`ktload.c`).
const NAP_UNTIL_READY_NS: Ns = 500 * US;

/// How long each thread takes it: the nap, and what creating and waking take in the traces.
pub(super) const CREATION_NS: Ns = 530 * US;

/// How long a thread that is ready naps before it looks whether it knows when to start.
const NAP_UNTIL_TOLD_NS: Ns = 1000 * US;

/// What mapping a thread's stack takes the recorder: forks are 526 us apart (median of 17 in the
/// traces), 516 without.
const STACK_NS: Ns = 10 * US;

/// What a new thread does besides its system calls, at most: it touches its stack and other memory
/// for the first time. From its fork to its first sleep it takes 12 to 95 us, half of the 32 in the
/// traces 25 to 56; without this 14.
const FIRST_TOUCHES_NS: Ns = 45 * US;

/// What the recorder does between telling the threads and its own sleep, in the traces: it reads
/// the counters of the machine.
const READS_COUNTERS_NS: Ns = 90 * US;

/// The CPU to which the recorder's main thread goes in cases that use no other.
const PUSHED: u32 = 1;

/// Longer than every window.
const HOUR_NS: Ns = 3_600_000 * MS;

/// When the sampler reads for the first time, us after T0.
pub(super) const FIRST_SAMPLE_US: u64 = 500;

/// A thread as the recorder makes it.
pub(super) struct Created {
    template: u32,
    /// Mark that the thread passes when it is ready.
    ready: u32,
}

impl Builder<'_> {
    /// A thread is born as its creator is. It sets group, CPUs, policy and slice itself, says that
    /// it is ready, and naps until it is told when to start.
    pub(super) fn task(&mut self, task: &TaskWords, turns: Turns) -> Result<Created, String> {
        let mut ops = vec![Op::Run(Dur::Uniform {
            lo: 0,
            hi: FIRST_TOUCHES_NS,
        })];
        match self.group(&task.cgroup)? {
            0 => {}
            group => ops.push(Op::SetCgroup(group)),
        }
        if let Some(cpus) = task.affinity.as_ref().filter(|cpus| !cpus.is_empty()) {
            ops.push(Op::SetAffinity(self.mask(cpus)));
        }
        let (policy, nice) = (policy(task.policy), task.nice);
        ops.push(Op::SetPolicy { policy, nice });
        if let Some(us) = task.slice_us.filter(|us| *us > 0) {
            ops.push(Op::SetSlice(us * US));
        }
        let ready = self.mark(format!("{} is ready", task.name));
        ops.push(Op::Mark(ready));
        nap_until(self.told, NAP_UNTIL_TOLD_NS, &mut ops);
        let start = self.t0_ns as i64 + task.start_us * US as i64;
        ops.push(Op::StartAt(start.max(0) as Ns));
        // Its own template goes in before those of the threads that it creates.
        let template = self.template(&task.name, None, Some(task.name.clone()));
        self.steps(&task.program, &mut ops, turns)?;
        let program = self.workload.templates[template as usize].program;
        self.workload.programs[program as usize].ops = ops;
        Ok(Created { template, ready })
    }

    /// The recorder's main thread makes the others, one after the other.
    pub(super) fn main(&mut self, threads: &[Created]) {
        let mut ops = Vec::new();
        for Created { template, ready } in threads {
            let template = *template;
            ops.push(Op::Run(Dur::Const(STACK_NS)));
            ops.push(Op::Fork { template });
            nap_until(*ready, NAP_UNTIL_READY_NS, &mut ops);
        }
        ops.push(Op::Mark(self.told));
        if self.case.cpus_used() == [PUSHED] {
            // It is to keep that CPU busy for a while, but the time for that is over.
            let (there, all) = (self.mask(&[PUSHED]), self.case.machine.cpus);
            let all = self.mask(&(0..all).collect::<Vec<_>>());
            ops.extend([Op::SetAffinity(there), Op::SetAffinity(all)]);
        }
        ops.push(Op::Run(Dur::Const(READS_COUNTERS_NS)));
        ops.push(Op::Sleep(Dur::Const(HOUR_NS)));
        self.own_thread("ktmain", None, ops);
    }

    /// Tasks outside the case that a live system has. Their times are random, the time that they
    /// take is the recorded one. On the sampler's CPU it is the sampler's reading.
    pub(super) fn strangers(&mut self, starts_ns: &mut Vec<Ns>) {
        let used = self.case.cpus_used();
        let sampled = |cpu: &u32| self.case.sampler.is_some_and(|s| s.cpu == *cpu);
        let share: f64 = used
            .iter()
            .filter(|c| !sampled(c))
            .map(|c| self.share(*c))
            .sum();
        if share <= 0.0 {
            return;
        }
        let (cpu, run) = match used[..] {
            [one] => (Some(one), KTHREAD_NS),
            _ => (None, STRANGER_NS),
        };
        let known = self.others.stretch_us;
        let run = known.map_or(run, |us| ((us * US as f64) as Ns).max(1));
        let at_ticks = match cpu {
            Some(_) => AT_TICKS_ONE_CPU,
            None => AT_TICKS_TWO_CPUS,
        };
        for (part, by_wheel) in [(at_ticks, true), (1.0 - at_ticks, false)] {
            let mean = (run as f64 / (share * part)) as Ns;
            // The next tick is half a tick away in the mean.
            let half_tick = self.case.machine.tick_ns() / 2;
            let sleep = match by_wheel {
                true => Op::SleepTicks(Dur::Exp {
                    mean: mean.saturating_sub(half_tick),
                }),
                false => Op::Sleep(Dur::Exp { mean }),
            };
            let ops = vec![
                Op::LoopStart { count: FOREVER },
                sleep,
                Op::Run(Dur::Exp { mean: run }),
                Op::LoopEnd { start: 0 },
            ];
            self.own_thread("other", cpu, ops);
            starts_ns.push(self.t0_ns - (3 * MS).min(self.t0_ns));
        }
    }

    /// What others took of a CPU; at most half of it.
    fn share(&self, cpu: u32) -> f64 {
        self.others.share.get(&cpu).copied().unwrap_or(0.0).min(0.5)
    }

    /// The recorder's own threads.
    pub(super) fn sampler(&mut self, starts_ns: &mut Vec<Ns>) {
        if let Some(sampler) = self.case.sampler {
            let every = sampler.every_us.max(1) * US;
            let read = (self.share(sampler.cpu) * every as f64) as Ns;
            let ops = vec![
                Op::LoopStart { count: FOREVER },
                Op::Run(Dur::Const(read)),
                Op::Period(Dur::Const(every)),
                Op::LoopEnd { start: 0 },
            ];
            self.own_thread("sampler", Some(sampler.cpu), ops);
            starts_ns.push(self.t0_ns + FIRST_SAMPLE_US * US);
        }
    }

    fn own_thread(&mut self, name: &str, cpu: Option<u32>, ops: Vec<Op>) {
        let template = self.template(name, cpu, None);
        let program = self.workload.templates[template as usize].program;
        self.workload.programs[program as usize].ops = ops;
        self.workload.initial.push(template);
    }
}

/// Naps of this length until somebody has passed the mark.
fn nap_until(mark: u32, nap_ns: Ns, ops: &mut Vec<Op>) {
    let start = ops.len() as u32;
    ops.push(Op::LoopStart { count: FOREVER });
    ops.push(Op::Leave {
        end: start + 3,
        when: When::Passed(mark),
    });
    ops.push(Op::Sleep(Dur::Const(nap_ns)));
    ops.push(Op::LoopEnd { start });
}

fn policy(words: PolicyWords) -> Policy {
    match words {
        PolicyWords::Other => Policy::Normal,
        PolicyWords::Batch => Policy::Batch,
        PolicyWords::Idle => Policy::Idle,
    }
}
