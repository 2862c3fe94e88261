//! A run of a recording, measured as the recording is.

use fairground_sim::exact::Traced;
use fairground_sim::outcome::Outcome;
use rustc_hash::FxHashSet;

use super::beyond::Ran;
use super::done::Done;
use super::early::{Course, Early, Whose};
use super::{Replay, Run};
use crate::derive::Derived;
use crate::measure::{Measured, Until, measure_until};
use crate::simulated;

impl Replay<'_> {
    /// What came of a run.
    pub(super) fn measured(&self, derived: Derived, traced: Traced, cpus: u32) -> Run {
        let who = self.identities(&derived, &traced.born);
        let mut events =
            simulated::told_recording(&traced.outcome.trace, &traced.thread_events, cpus, &who);
        if self.recording.from_waking {
            events.without_wakeups();
        }
        events.names.take_ids(&self.recording.names);
        let lead = derived.lead_ns;
        let (start_ns, end_ns) = self.logs.span;
        let done = Done::of(&self.logs, &derived, &traced.passed);
        let undone = done.undone(&self.logs, &derived);
        let stopped_ns = (!undone.is_empty()).then(|| self.logs.longest_ns());
        let end = match (self.logs.is_cut(), stopped_ns) {
            (true, _) => lead + (end_ns - start_ns),
            (false, Some(ns)) => lead + ns,
            (false, None) => done.last(&events),
        };
        let end = end.max(lead + 1);
        let same = cpus == self.recording.cpus;
        let sights = same.then_some(&self.recorded.sights[..]);
        let until = Until {
            half_ns: (end_ns - start_ns) / 2,
            threads: Some(&done.going_on),
        };
        let mut measured = measure_until(&events.events, cpus, (lead, end), sights, &until);
        let throttles = simulated::throttles(&traced.outcome.trace);
        let ran = Ran {
            derived: &derived,
            logs: &self.logs,
            born: &traced.born,
            done: &done,
            events: &events.events,
            throttles: &throttles,
            cpus,
            window: (lead, end),
        };
        let beyond_ns = ran.beyond_ns(measured.half);
        let [early, waited] = self.early(&ran, &undone);
        let unfinished = undone.len() + self.as_recorded(&mut measured, &derived, &done);
        events.format = "replay";
        Run {
            derived,
            measured,
            elapsed_ns: end - lead,
            unfinished,
            undone,
            stopped_ns,
            beyond_ns,
            early,
            waited,
            events,
            who,
            throttles,
            stacks: traced.stacks,
            outcome: Outcome {
                trace: Vec::new(),
                ..traced.outcome
            },
        }
    }

    /// What threads of groups do early, and what they could do early.
    fn early(&self, ran: &Ran<'_>, undone: &FxHashSet<u32>) -> [Vec<Early>; 2] {
        if ran.derived.workload.cgroups.len() <= 1 {
            return [Vec::new(), Vec::new()];
        }
        let whose = Whose {
            derived: ran.derived,
            logs: &self.logs,
            born: ran.born,
        };
        let early = match self.logs.told {
            true => Vec::new(),
            false => {
                let ends = Some(&ran.done.at);
                let replay = Course::of(ran.events, ran.cpus, ran.window, ends);
                whose.early(&self.course, &replay, undone)
            }
        };
        [early, whose.waited(&self.course)]
    }

    /// Leaves out what the recording does not have. Gives the threads that had not done what they
    /// are told to have done.
    fn as_recorded(&self, measured: &mut Measured, derived: &Derived, done: &Done) -> usize {
        let mut unfinished = 0;
        for (thread, log) in self.logs.logs.iter().enumerate() {
            let tid = self.logs.threads[thread].tid;
            let recorded = self.recorded.threads.get(&tid);
            let Some(t) = measured.threads.get_mut(&tid) else {
                continue;
            };
            // Wake-ups that are not in the recording have no latency there.
            if recorded.is_some_and(|r| r.latency_ns.is_empty()) {
                t.latency_ns.clear();
                t.half_latency_ns = Default::default();
            }
            // Its program ends with a sleep that the recording does not have.
            if log.awake_at_end && !self.logs.told && !done.going_on.contains_key(&tid) {
                t.voluntary = t.voluntary.saturating_sub(1);
            }
            // It comes to its first operation by a wake-up of the replay's.
            if log.awake_at_start && !t.latency_ns.is_empty() {
                t.latency_ns.remove(0);
            }
            let told = self.logs.told && t.cpu_ns < derived.demand_ns[thread];
            unfinished += usize::from(told);
        }
        unfinished
    }
}
