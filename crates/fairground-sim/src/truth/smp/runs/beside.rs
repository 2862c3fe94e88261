//! What is recorded beside a run: when each CPU was balanced last before it, and when threads that
//! are none of its tasks ran.
//!
//! Both are state that the run began with or was disturbed by, not decisions of it. A guest that
//! has run other cases before has domains that were balanced at different times and with stretched
//! intervals, and idle CPUs wake for kernel threads (grace periods of RCU, statistics of memory).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering::Relaxed;

use super::recorded::{LONGEST_S, Run, TICK_NS};
use crate::cache::NS;
use crate::machine::Sim;
use crate::truth::TruthError;
use crate::truth::smp::attempt;
use crate::truth::smp::file::File;
use crate::truth::smp::files::Recording;
use crate::truth::smp::tables::{DueRow, due_rows};
use crate::workload::program::Ns;

/// A thread that wakes at a tick is seen at work within this time, ns: its CPU waits for its turn.
const AT_TICK_NS: Ns = 1_000_000;

/// Longest interval of a domain, ms: pinned tasks stretch it to twice 512.
const INTERVAL_MAX_MS: u64 = 1024;

/// How a domain was when a run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Last {
    interval_ms: u64,
    /// How many ticks before the run's first placement it was balanced.
    jiffies: u64,
}

/// What a run began with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// By CPU and name of the domain.
    last: BTreeMap<(u32, String), Last>,
    /// Whether attempts to balance were recorded in it, which takes time: not if there is a file of
    /// them that has none of this run.
    pub attempts: bool,
    /// When another thread woke on a CPU, ns after the first placement.
    pub others: BTreeMap<u32, Vec<Ns>>,
}

impl Beside {
    /// Of `run`, which is in `file`.
    pub(super) fn of(
        recording: &Recording,
        file: &File<'_>,
        run: &Run,
    ) -> Result<Self, TruthError> {
        let key = format!("{}#{}", run.case, run.index);
        let mut beside = Self {
            attempts: true,
            ..Self::default()
        };
        let name = file.name.replace("/run_", "/intervals_");
        let name = name.replace(".json", ".csv");
        if let Some(table) = recording.file_if_there(&name) {
            beside.last(run, due_rows(&table, &key)?);
        }
        let name = file.name.replace("/run_", "/lb_decisions_");
        let name = name.replace(".json", ".jsonl");
        if let Some(table) = recording.file_if_there(&name) {
            let (any, newly_idle) = attempt::newly_idle(&table, &key)?;
            beside.attempts = any;
            beside.others(run, &newly_idle);
        }
        Ok(beside)
    }

    /// The first time that each domain was due tells when it was balanced before.
    fn last(&mut self, run: &Run, due: Vec<DueRow>) {
        let first = run.placements.first().map_or(0.0, |p| p.0);
        let jiffy = |t: f64| ((t + run.trace_clock_offset_s) * 1e9) as i64 / TICK_NS as i64;
        let mut seen = BTreeSet::new();
        for row in due {
            let key = (row.cpu, row.domain);
            if !seen.insert(key.clone()) {
                continue;
            }
            let after = jiffy(row.t) - jiffy(first);
            let before = row.jiffies_since_last.saturating_sub(after);
            if let Some(jiffies) = u64::try_from(before).ok().filter(|n| *n > 0) {
                let interval_ms = row.interval_ms.min(INTERVAL_MAX_MS);
                let last = Last {
                    interval_ms,
                    jiffies,
                };
                self.last.insert(key, last);
            }
        }
    }

    /// A CPU that looks for work when newly idle has run something. If it has no task of the run,
    /// that was another thread.
    fn others(&mut self, run: &Run, newly_idle: &[(f64, u32)]) {
        let first = run.placements.first().map_or(0.0, |p| p.0);
        let mut at: BTreeMap<i64, u32> = BTreeMap::new();
        let births = run.placements.iter().map(|(t, pid, cpu)| (*t, *pid, *cpu));
        let moves = run.migrations.iter().map(|(t, pid, _, to)| (*t, *pid, *to));
        let mut all: Vec<_> = births.chain(moves).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut all = all.into_iter().peekable();
        for &(t, cpu) in newly_idle {
            while let Some((_, pid, to)) = all.next_if(|m| m.0 <= t) {
                at.insert(pid, to);
            }
            let known = t >= first && t <= first + LONGEST_S;
            if !known || at.values().any(|on| *on == cpu) {
                continue;
            }
            let phase = ((t + run.trace_clock_offset_s) * 1e9) as Ns % TICK_NS;
            let back = if phase < AT_TICK_NS { phase } else { 0 };
            let ns = (((t - first) * 1e9) as Ns).saturating_sub(back);
            let times = self.others.entry(cpu).or_default();
            if times.last().is_none_or(|last| ns > last + AT_TICK_NS) {
                times.push(ns);
            }
        }
    }

    /// Gives the domains the state that they had before the first placement, which comes at
    /// `first_ns`.
    pub(super) fn begin(&self, sim: &mut Sim<'_>, first_ns: Ns) {
        let tick_ns = 1_000_000_000 / u64::from(sim.sys.features.hz);
        let now = sim.host.jiffies.at(first_ns * NS, tick_ns);
        for cpu in sim.sys.cpus().iter() {
            let mut next = None;
            for sd in sim.sys.topology.domains(cpu) {
                let name = sd.kind.name().to_string();
                let Some(last) = self.last.get(&(cpu.0, name)) else {
                    continue;
                };
                let then = now.saturating_sub(last.jiffies);
                let state = &sd.state;
                state.last_balance.store(then, Relaxed);
                state.balance_interval_ms.store(last.interval_ms, Relaxed);
                let due = then + (last.interval_ms * 1_000_000).div_ceil(tick_ns);
                next = Some(next.map_or(due, |next: u64| next.min(due)));
            }
            if let Some(next) = next {
                sim.sys.cpu[cpu.idx()].set_next_balance(cpu, next, &mut sim.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::smp::file::Kind;

    /// A run of two tasks on CPUs 0 and 3 from 1.0 s on, which is in the middle of a tick.
    const RUN: &str = r#"[{"case": "x", "index": 0, "topology": "2x8", "sets": [{"cgroup": "/",
        "shares": null, "count": 2, "allowed": "all", "nice": 0, "kind": "hog"}],
        "forked_from_cpu": "free", "tasks": {"7": 0, "8": 0}, "windows": [],
        "placements": [[1.0, 7, 0], [1.001, 8, 3]], "migrations": [], "active_balance": [],
        "trace_clock_offset_s": 0.002, "trace_covers_ms_of_window": "all",
        "cpu_fraction_by_set_after_first_window": {}, "final_cpu_load": {}}]"#;

    fn beside(name: &str, text: String) -> Beside {
        let recording = Recording::new([(name.to_string(), text)]);
        let run = &serde_json::from_str::<Vec<Run>>(RUN).unwrap()[0];
        let file = File {
            name: "balance/run_x_2x8.json",
            shown: String::new(),
            kind: Kind::Run,
            text: RUN,
        };
        Beside::of(&recording, &file, run).unwrap()
    }

    #[test]
    fn a_domain_was_balanced_as_long_ago_as_its_first_turn_says() {
        let head = "case,t,cpu,executed_by,domain,idle,busy,balance_interval_ms,\
                    interval_used_jiffies,jiffies_since_last\n";
        let rows = "y#0,1.003,2,1,MC,1,0,16,4,9\nx#0,1.003,2,1,MC,1,0,16,4,22\n\
                    x#0,1.011,2,1,MC,1,0,8,2,2\nx#0,1.011,3,1,MC,1,0,8,2,2\n";
        let found = beside("balance/intervals_x_2x8.csv", format!("{head}{rows}"));
        let last = Last {
            interval_ms: 16,
            jiffies: 21,
        };
        let cpu_2 = ((2, "MC".to_string()), last);
        assert_eq!(found.last, BTreeMap::from([cpu_2]), "CPU 3 was due later");
        assert!(found.attempts, "there is no file that says otherwise");
    }

    #[test]
    fn a_cpu_without_tasks_that_looks_for_work_has_run_another_thread() {
        let line = |t: f64, cpu: u32, idle: u32| {
            format!(
                "{{\"case\": \"x#0\", \"t\": {t}, \"by_cpu\": {cpu}, \"dst_cpu\": {cpu}, \
                 \"sd\": \"MC\", \"idle\": {idle}, \"nr_balance_failed\": 0, \
                 \"balance_interval\": 8, \"groups\": [], \"busiest\": null, \
                 \"detached\": [], \"moved\": 0, \"active\": 0}}\n"
            )
        };
        let text = line(1.0021, 5, 2) + &line(1.00215, 5, 2) + &line(1.0025, 3, 2);
        let text = text + &line(1.003, 6, 1) + &line(1.009, 6, 2);
        let found = beside("balance/lb_decisions_x_2x8.jsonl", text);
        // One that wakes at a tick is seen a little later; CPU 3 has a task.
        let expected = [(5, vec![2_000_000]), (6, vec![9_000_000])];
        let near = |a: &Ns, b: &Ns| a.abs_diff(*b) <= 1;
        assert_eq!(found.others.len(), expected.len(), "{found:?}");
        for (cpu, times) in expected {
            assert!(near(&found.others[&cpu][0], &times[0]), "{found:?}");
            assert_eq!(found.others[&cpu].len(), times.len());
        }
        assert!(found.attempts);
        let none = beside("balance/lb_decisions_x_2x8.jsonl", String::new());
        assert!(!none.attempts && none.others.is_empty());
    }
}
