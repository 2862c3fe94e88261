//! What the format defines, measured in a simulated run from its tracepoints.
//!
//! The rules are those of the recorder, word for word: which stretch counts when it crosses the
//! start of the window, which wake-up gives a latency, what is a wait after a preemption. So are
//! its blind spots: where the recorded kernel does not report a switch, the simulated one is not
//! seen either ([`Context::blind`]).

use std::collections::BTreeMap;

use fairground::event::Event;
use fairground::value::TaskId;

use super::recorded::{CpuRun, Dist, GroupRun, Run, TaskRun};
use crate::host::TraceLine;

/// What a trace does not say.
pub struct Context<'a> {
    /// Name of each task by number; `None` for those that are not part of the case.
    pub names: &'a [Option<String>],
    /// Names that the result shall have, also if they never run.
    pub all: Vec<String>,
    /// Group in which each task of the case starts, by number; empty without groups.
    pub groups: &'a [Option<String>],
    /// Window, ns.
    pub window: (u64, u64),
    /// Lower edges of the bins of histograms, us.
    pub edges_us: &'a [f64],
    /// Number of CPUs.
    pub cpus: usize,
    /// The CPU whose switches from the idle task are not reported, if there is one. A task that
    /// such a switch starts counts from its wake-up, which then gives no latency; if that is not
    /// known, its time is nobody's.
    pub blind: Option<u32>,
}

#[derive(Default)]
struct Tally {
    cpu_us: f64,
    cpu_us_by_cpu: BTreeMap<u32, f64>,
    switches_voluntary: u64,
    switches_involuntary: u64,
    migrations: u64,
    wakeups: u64,
    wakeup_target_cpu: BTreeMap<u32, u64>,
    wakeup_new_target_cpu: BTreeMap<u32, u64>,
    latency: Vec<f64>,
    stretches: Vec<f64>,
    waits: Vec<f64>,
    preempted_at: Option<u64>,
}

#[derive(Clone, Copy, Default)]
struct CpuTally {
    switches: u64,
    idle_us: f64,
    workload_us: f64,
    other_us: f64,
}

struct Analysis<'a> {
    cx: &'a Context<'a>,
    tally: BTreeMap<&'a str, Tally>,
    /// Time by the group in which the tasks start, us.
    of_groups: BTreeMap<&'a str, f64>,
    cpus: BTreeMap<u32, CpuTally>,
    /// Running task and since when, by CPU.
    running: Vec<(Option<TaskId>, u64)>,
    /// CPUs on which the stopper runs: what comes next is no switch from the idle task.
    stopped: Vec<bool>,
    woken_at: BTreeMap<TaskId, u64>,
}

/// Measures one run.
#[must_use]
pub fn measure(trace: &[TraceLine], cx: &Context<'_>) -> Run {
    let mut a = Analysis {
        cx,
        tally: cx
            .all
            .iter()
            .map(|n| (n.as_str(), Tally::default()))
            .collect(),
        // A group whose tasks never run has no time; that is a number too.
        of_groups: (cx.groups.iter().flatten())
            .map(|path| (path.as_str(), 0.0))
            .collect(),
        cpus: (0..cx.cpus as u32)
            .map(|c| (c, CpuTally::default()))
            .collect(),
        running: vec![(None, 0); cx.cpus],
        stopped: vec![false; cx.cpus],
        woken_at: BTreeMap::new(),
    };
    for line in trace {
        a.event(line.at_ns, line.event);
    }
    for cpu in 0..cx.cpus {
        a.charge(cpu, cx.window.1.max(a.running[cpu].1));
    }
    a.finish()
}

impl<'a> Analysis<'a> {
    fn inside(&self, at: u64) -> bool {
        (self.cx.window.0..self.cx.window.1).contains(&at)
    }

    fn of(&mut self, task: TaskId) -> Option<&mut Tally> {
        let name = self.cx.names.get(task.idx())?.as_deref()?;
        Some(self.tally.entry(name).or_default())
    }

    /// The stretch of the task on `cpu` up to `to` is charged.
    fn charge(&mut self, cpu: usize, to: u64) {
        let (task, since) = self.running[cpu];
        let from = since.max(self.cx.window.0);
        let us = us(to.min(self.cx.window.1).saturating_sub(from));
        if us <= 0.0 {
            return;
        }
        let number = cpu as u32;
        let group = task.and_then(|t| self.cx.groups.get(t.idx())?.as_deref());
        if let Some(path) = group {
            *self.of_groups.entry(path).or_default() += us;
        }
        let whose = match task {
            None => &mut self.cpus.entry(number).or_default().idle_us,
            Some(task) => match self.of(task) {
                Some(tally) => {
                    tally.cpu_us += us;
                    *tally.cpu_us_by_cpu.entry(number).or_default() += us;
                    &mut self.cpus.entry(number).or_default().workload_us
                }
                None => &mut self.cpus.entry(number).or_default().other_us,
            },
        };
        *whose += us;
    }

    fn event(&mut self, at: u64, event: Event) {
        let inside = self.inside(at);
        match event {
            Event::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => {
                let stopped = std::mem::take(&mut self.stopped[cpu.idx()]);
                let blind = self.cx.blind == Some(cpu.0);
                if blind && prev.is_none() && !stopped {
                    return;
                }
                let unseen = prev.filter(|p| blind && self.running[cpu.idx()].0 != Some(*p));
                let whole = unseen.is_none_or(|task| self.switched_unseen(at, cpu.idx(), task));
                self.switch(at, cpu.idx(), (prev, prev_runnable, whole), next);
            }
            Event::Wakeup { task, cpu } | Event::WakeupNew { task, cpu } => {
                self.woken_at.entry(task).or_insert(at);
                let Some(tally) = self.of(task).filter(|_| inside) else {
                    return;
                };
                tally.wakeups += 1;
                let by_cpu = match event {
                    Event::Wakeup { .. } => &mut tally.wakeup_target_cpu,
                    _ => &mut tally.wakeup_new_target_cpu,
                };
                *by_cpu.entry(cpu.0).or_default() += 1;
            }
            Event::Migrate { task, from, .. } => {
                // The kernel's stopper takes the CPU from a task that it moves away.
                if self.running[from.idx()].0 == Some(task) {
                    self.switch(at, from.idx(), (Some(task), true, true), None);
                    self.stopped[from.idx()] = true;
                }
                if let Some(tally) = self.of(task).filter(|_| inside) {
                    tally.migrations += 1;
                }
            }
            Event::Waking { .. }
            | Event::Throttle { .. }
            | Event::Fork { .. }
            | Event::Nice { .. }
            | Event::Exit { .. } => {}
        }
    }

    /// `task` leaves `cpu` at `at`, but nobody has seen it start. Whether it is known when.
    fn switched_unseen(&mut self, at: u64, cpu: usize, task: TaskId) -> bool {
        let since = self.running[cpu].1;
        let mut woken = None;
        if self.of(task).is_some() {
            woken = self.woken_at.remove(&task).filter(|woken| *woken > since);
        }
        if let Some(woken) = woken {
            self.charge(cpu, woken);
        }
        self.running[cpu] = (Some(task), woken.unwrap_or(at));
        if let Some(tally) = self.of(task) {
            tally.preempted_at = None;
        }
        woken.is_some()
    }

    /// Task `prev` leaves `cpu`: still runnable or not, and after a stretch whose length is known
    /// or not.
    fn switch(
        &mut self,
        at: u64,
        cpu: usize,
        (prev, prev_runnable, whole): (Option<TaskId>, bool, bool),
        next: Option<TaskId>,
    ) {
        let inside = self.inside(at);
        let (t0, t1) = self.cx.window;
        self.charge(cpu, at);
        let since = self.running[cpu].1;
        if let Some(tally) = prev.and_then(|p| self.of(p)) {
            if inside {
                if prev_runnable {
                    tally.switches_involuntary += 1;
                } else {
                    tally.switches_voluntary += 1;
                }
                if since >= t0 && whole {
                    tally.stretches.push(us(at.saturating_sub(since)));
                }
            }
            tally.preempted_at = prev_runnable.then_some(at);
        }
        if inside {
            self.cpus.entry(cpu as u32).or_default().switches += 1;
        }
        if let Some(next) = next {
            let woken = self.woken_at.remove(&next);
            if let Some(tally) = self.of(next) {
                match (woken, tally.preempted_at) {
                    // The step of another CPU that woke it may be reckoned to end a little later.
                    (Some(woken), _) if woken >= t0 && at < t1 => {
                        tally.latency.push(us(at.saturating_sub(woken)));
                    }
                    (None, Some(out)) if inside => tally.waits.push(us(at.saturating_sub(out))),
                    _ => {}
                }
            }
        }
        self.running[cpu] = (next, at);
    }

    fn finish(self) -> Run {
        let cx = self.cx;
        let total: f64 = self.tally.values().map(|t| t.cpu_us).sum();
        let share = |us: f64| if total > 0.0 { us / total } else { 0.0 };
        let mut run = Run {
            window_us: us(cx.window.1 - cx.window.0),
            cpus: self.cpus.into_iter().map(|(c, t)| (c, t.run())).collect(),
            ..Run::default()
        };
        for (name, tally) in self.tally {
            let share = share(tally.cpu_us);
            let task = tally.run(share, cx.edges_us);
            run.tasks.insert(name.to_string(), task);
        }
        let mut groups: BTreeMap<String, f64> = BTreeMap::new();
        for (path, us) in self.of_groups {
            for path in above(path) {
                *groups.entry(path).or_default() += us;
            }
        }
        let of_group = |us| GroupRun {
            cpu_us: Some(us),
            cpu_share_of_workload: Some(share(us)),
            ..GroupRun::default()
        };
        run.groups = (groups.into_iter())
            .map(|(path, us)| (path, of_group(us)))
            .collect();
        run
    }
}

impl Tally {
    fn run(self, share: f64, edges_us: &[f64]) -> TaskRun {
        TaskRun {
            cpu_us: Some(self.cpu_us),
            cpu_share_of_workload: Some(share),
            cpu_us_by_cpu: Some(self.cpu_us_by_cpu),
            switches_voluntary: Some(self.switches_voluntary),
            switches_involuntary: Some(self.switches_involuntary),
            migrations: Some(self.migrations),
            wakeups: Some(self.wakeups),
            wakeup_target_cpu: Some(self.wakeup_target_cpu),
            wakeup_new_target_cpu: Some(self.wakeup_new_target_cpu),
            on_cpu_hist: Some(histogram(&self.stretches, edges_us)),
            wakeup_latency_us: Some(Dist::of(self.latency)),
            on_cpu_us: Some(Dist::of(self.stretches)),
            preempted_wait_us: Some(Dist::of(self.waits)),
            iterations: None,
            kernel: BTreeMap::new(),
        }
    }
}

impl CpuTally {
    fn run(self) -> CpuRun {
        CpuRun {
            switches: Some(self.switches),
            idle_us: Some(self.idle_us),
            workload_us: Some(self.workload_us),
            other_us: Some(self.other_us),
        }
    }
}

/// A group's path and those above it; the root is called `(all)` in results.
fn above(path: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut path = path;
    while let Some((up, name)) = path.rsplit_once('/') {
        if name.is_empty() {
            break;
        }
        paths.push(path.to_string());
        path = up;
    }
    paths.push("(all)".to_string());
    paths
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn histogram(sample: &[f64], edges: &[f64]) -> Vec<u64> {
    let mut bins = vec![0; edges.len()];
    for value in sample {
        let bin = edges.partition_point(|edge| edge <= value);
        if let Some(count) = bins.get_mut(bin.saturating_sub(1)) {
            *count += 1;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground::value::Cpu;

    fn size(of: Option<Dist>) -> Option<u64> {
        of.map(|d| d.n)
    }

    fn median(of: Option<Dist>) -> Option<f64> {
        of.and_then(|d| d.p50)
    }

    #[test]
    fn a_wait_after_a_preemption_and_a_latency_are_told_apart() {
        let (a, b) = (TaskId(0), TaskId(1));
        let switch = |at_ns, prev, prev_runnable, next| {
            let cpu = Cpu(0);
            let event = Event::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            };
            TraceLine::new(at_ns, 0, event)
        };
        let wake = |at_ns, task| TraceLine::new(at_ns, 0, Event::Wakeup { task, cpu: Cpu(0) });
        let trace = [
            switch(0, None, true, Some(a)),
            wake(2_000, b),
            switch(5_000, Some(a), true, Some(b)),
            switch(7_000, Some(b), false, Some(a)),
        ];
        let names = [Some("a".to_string()), Some("b".to_string())];
        let cx = Context {
            names: &names,
            all: vec!["a".into(), "b".into()],
            groups: &[Some("/g/h".to_string()), None],
            window: (1_000, 10_000),
            edges_us: &[0.0, 2.0],
            cpus: 1,
            blind: None,
        };
        let run = measure(&trace, &cx);
        let (a, b) = (&run.tasks["a"], &run.tasks["b"]);
        // The first stretch began before the window: its time counts, its length does not.
        assert_eq!(
            (a.cpu_us, size(a.on_cpu_us), a.switches_involuntary),
            (Some(7.0), Some(0), Some(1))
        );
        assert_eq!(median(a.preempted_wait_us), Some(2.0));
        assert_eq!(median(b.wakeup_latency_us), Some(3.0));
        assert_eq!(b.on_cpu_hist.as_deref(), Some(&[0, 1][..]));
        assert_eq!(run.groups["/g"].cpu_us, Some(7.0));
        assert_eq!(run.groups["(all)"].cpu_us, Some(7.0));
    }

    #[test]
    fn a_blind_cpu_takes_the_wake_up_for_the_start() {
        let (a, other) = (TaskId(0), TaskId(1));
        let line = |at_ns, event| TraceLine::new(at_ns, 0, event);
        let switch = |at_ns, prev, next| {
            let (cpu, prev_runnable) = (Cpu(0), false);
            let event = Event::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            };
            line(at_ns, event)
        };
        let wake = |at_ns, task| line(at_ns, Event::Wakeup { task, cpu: Cpu(0) });
        let trace = [
            switch(500, Some(a), None),
            wake(2_000, a),
            switch(5_000, None, Some(a)),
            switch(7_000, Some(a), None),
            wake(7_500, other),
            switch(8_000, None, Some(other)),
            switch(9_000, Some(other), None),
        ];
        let names = [Some("a".to_string()), None];
        let seen_by = |blind| {
            let cx = Context {
                names: &names,
                all: vec!["a".into()],
                groups: &[],
                window: (1_000, 10_000),
                edges_us: &[0.0],
                cpus: 1,
                blind,
            };
            let run = measure(&trace, &cx);
            let (a, cpu) = (run.tasks["a"].clone(), run.cpus[&0]);
            let (n, length) = (size(a.wakeup_latency_us), median(a.on_cpu_us));
            (n, length, cpu.switches, [cpu.idle_us, cpu.other_us])
        };
        let [seen, unseen] = [None, Some(0)].map(seen_by);
        let us = |idle, other| [Some(idle), Some(other)];
        assert_eq!(seen, (Some(1), Some(2.0), Some(4), us(6.0, 1.0)));
        assert_eq!(unseen, (Some(0), Some(5.0), Some(2), us(2.0, 0.0)));
    }
}
