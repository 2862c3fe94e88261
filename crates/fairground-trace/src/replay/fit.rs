//! What is fitted: CPU time per operation, timers, births, the way from a wake-up to the switch.

use crate::derive::cause::{Causes, Timer};
use crate::derive::tails::{self, Prompt, median};
use crate::derive::{Log, Logs, Step};
use crate::event::Kind;
use crate::fidelity::Fidelity;
use crate::walk::Waker;
use fairground_sim::host::Stack;

use super::{Replay, Run};

/// No operation takes longer of the simulated kernel beyond the recorded time.
const OP_NS: u64 = 2_000;
/// A timer that fires later than this is another one.
const LATE_NS: u64 = 200_000;

impl Replay<'_> {
    /// How far the threads' CPU times are off: as a share of all, and by which share of its own the
    /// one for which that is most, as it will be told. Where none has a share of the CPU time that
    /// counts, as of a hundred busy ones, the two are the same.
    pub(super) fn off(&self, run: &Run) -> (f64, f64) {
        let mut sum = 0;
        for (tid, recorded) in &self.recorded.threads {
            let replayed = run.measured.threads.get(tid).map_or(0, |t| t.cpu_ns);
            sum += replayed.abs_diff(recorded.cpu_ns);
        }
        let told = Fidelity::new(&self.recorded, run, &self.recording.names);
        let average = sum as f64 / self.recorded.cpu_ns().max(1) as f64;
        let worst = told.worst().map(|t| t.cpu_ms.diff_pct().abs() / 100.0);
        (average, worst.unwrap_or(average))
    }

    /// Takes off what the simulated kernel has charged beyond the recorded time, or a part of it.
    pub(super) fn adjust(&mut self, run: &Run, part: i64) {
        if self.logs.told && self.free_calls {
            let again = Logs::of(&run.events.events, run.events.cpus);
            return self.births(&again, run.derived.lead_ns);
        }
        let wake_ns = wake_ns(run);
        for (thread, log) in self.logs.logs.iter().enumerate() {
            let tid = self.logs.threads[thread].tid;
            let Some(t) = run.measured.threads.get(&tid) else {
                continue;
            };
            let (ops, cpu_ns) = (run.derived.ops[thread].max(1), log.cpu_ns.max(1));
            let (per_wake, per_op, per_run) = (
                &mut self.trim.per_wake_ns[thread],
                &mut self.trim.per_op_ns[thread],
                &mut self.trim.per_run_ppm[thread],
            );
            let over = (t.cpu_ns as i64 - log.cpu_ns as i64) / part;
            let part_of = |ns: u64, ppm: u64| (u128::from(ns) * u128::from(ppm) / 1_000_000) as u64;
            let wakes = run.derived.wakes[thread];
            let before = *per_wake * wakes + *per_op * ops + part_of(cpu_ns, *per_run);
            let all = before.saturating_add_signed(over).min(cpu_ns);
            // Fewer may wake in the replay, where those are awake whom they should.
            *per_wake = wake_ns.min(all / wakes.max(1));
            let all = all - *per_wake * wakes;
            // What is more than operations cost goes with the time: ticks and interrupts.
            *per_op = (all / ops).min(OP_NS);
            let rest = u128::from(all - *per_op * ops);
            *per_run = (rest * 1_000_000 / u128::from(cpu_ns)) as u64;
        }
        let again = Logs::of(&run.events.events, run.events.cpus);
        self.births(&again, run.derived.lead_ns);
        let late = lateness(&self.logs, &again, &self.causes, run.derived.lead_ns);
        self.trim.sleep_ns = self.trim.sleep_ns.saturating_add_signed(late.0 / part);
        self.trim.time_ns = self.trim.time_ns.saturating_add_signed(late.1 / part);
    }

    /// Puts in what wake-ups of the recording's first half took beyond those of `run`.
    pub(super) fn adjust_tails(&mut self, run: &Run) {
        let half = run.measured.first_half();
        let replayed = Prompt::of(&run.events.events, run.events.cpus, half);
        let threads = run.derived.threads.iter();
        let tids: Vec<u32> = threads.map(|t| self.logs.threads[*t].tid).collect();
        tails::adjust(&mut self.trim.tails, &self.prompt, &replayed, &tids);
    }

    /// Threads that nobody creates come into being when an interrupt has been served.
    fn births(&mut self, again: &Logs, lead: u64) {
        let born = |logs: &Logs, from: u64| -> rustc_hash::FxHashMap<u32, i64> {
            let mut born = rustc_hash::FxHashMap::default();
            for (about, log) in logs.threads.iter().zip(&logs.logs) {
                if about.forked && log.parent.is_none() {
                    let at = about.born_ns as i64 - from as i64;
                    born.entry(about.tid).or_insert(at);
                }
            }
            born
        };
        let (recorded, replayed) = (born(&self.logs, self.logs.span.0), born(again, lead));
        for (thread, about) in self.logs.threads.iter().enumerate() {
            if let (Some(a), Some(b)) = (recorded.get(&about.tid), replayed.get(&about.tid)) {
                let late = &mut self.trim.birth_ns[thread];
                *late = late.saturating_add_signed(b - a);
            }
        }
    }
}

/// What a wake-up takes of the CPU that does it, on average.
fn wake_ns(run: &Run) -> u64 {
    let roots = [
        "try_to_wake_up",
        "ttwu_do_activate",
        "ttwu_queue_wakelist",
        "send_IPI",
    ];
    let of = |stack: &&Stack| stack.functions.first().is_some_and(|f| roots.contains(f));
    let all: u64 = run.stacks.iter().filter(of).map(|s| s.self_ns).sum();
    let wakes = run.events.events.iter();
    let wakes = wakes.filter(|e| matches!(e.kind, Kind::Waking { .. }));
    all / (wakes.count() as u64).max(1)
}

/// How much later timed waits end in `again` than in `logs`: medians of those after a sleep, and of
/// those at a time.
fn lateness(logs: &Logs, again: &Logs, causes: &[Causes], lead: u64) -> (i64, i64) {
    let mut by_tid = rustc_hash::FxHashMap::default();
    for (i, thread) in again.threads.iter().enumerate() {
        by_tid.insert(thread.tid, i);
    }
    let (mut sleeps, mut times) = (Vec::new(), Vec::new());
    for (thread, log) in logs.logs.iter().enumerate() {
        let Some(other) = by_tid.get(&logs.threads[thread].tid) else {
            continue;
        };
        let waits = |log: &Log, from: u64| -> Vec<(u64, u64, Waker)> {
            let ended = log.steps.iter().filter_map(|step| match step {
                Step::Block(b) => b.woken.map(|(at, by)| (b.from, at, by)),
                _ => None,
            });
            ended.filter(|(_, at, _)| *at > from).collect()
        };
        let start = logs.span.0;
        let (recorded, replayed) = (waits(log, start), waits(&again.logs[*other], lead));
        for (a, b) in recorded.iter().zip(&replayed) {
            let timed = match a.2 {
                Waker::Thread(_) => false,
                Waker::Perhaps(waker) => causes[thread].is_timer(a.1, waker),
                Waker::Interrupt | Waker::Unseen => true,
            };
            if !timed {
                continue;
            }
            let causes = &causes[thread];
            if causes.is_tick(a.1) {
                continue;
            }
            let slept = causes.timer == Timer::AfterSleep && a.0 > start;
            let (late, to) = if slept {
                ((b.1 - b.0) as i64 - (a.1 - a.0) as i64, &mut sleeps)
            } else {
                let late = (b.1 as i64 - lead as i64) - (a.1 as i64 - start as i64);
                (late, &mut times)
            };
            // No timer is so late: these are not the same two sleeps.
            if late.unsigned_abs() <= LATE_NS {
                to.push(late);
            }
        }
    }
    (median(&sleeps), median(&times))
}
