//! From tracepoints to where tasks were, how often they moved and what they got.

use std::collections::BTreeSet;

use fairground::event::Event;
use fairground::value::TaskId;

use crate::host::TraceLine;

/// What a task did in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ran {
    /// On a CPU, ns.
    pub run_ns: u64,
    /// Its CPU at the end.
    pub cpu: u32,
    /// Moves since its birth.
    pub migrations: u64,
}

/// First placements of new tasks, in order: when (ns), which task, which CPU.
pub(super) fn placements(trace: &[TraceLine]) -> Vec<(u64, TaskId, u32)> {
    let new = |line: &TraceLine| match line.event {
        Event::WakeupNew { task, cpu } => Some((line.at_ns, task, cpu.0)),
        _ => None,
    };
    trace.iter().filter_map(new).collect()
}

/// What each of `tasks` did between `from_ns` and `to_ns`.
pub(super) fn window(trace: &[TraceLine], tasks: &[TaskId], from_ns: u64, to_ns: u64) -> Vec<Ran> {
    let mut ran = vec![Ran::default(); tasks.len()];
    let mut since = vec![None; tasks.len()];
    let place = |task: TaskId| tasks.iter().position(|t| *t == task);
    let within = |since: u64, to: u64| to.min(to_ns).saturating_sub(since.max(from_ns));
    for line in trace.iter().filter(|line| line.at_ns <= to_ns) {
        match line.event {
            Event::Switch { prev, next, .. } => {
                if let Some(i) = prev.and_then(place)
                    && let Some(since) = since[i].take()
                {
                    ran[i].run_ns += within(since, line.at_ns);
                }
                if let Some(i) = next.and_then(place) {
                    since[i] = Some(line.at_ns);
                }
            }
            Event::Migrate { task, to, .. } => {
                if let Some(i) = place(task) {
                    // The stopper takes a running task off its CPU without a switch that is told.
                    if let Some(since) = since[i].take() {
                        ran[i].run_ns += within(since, line.at_ns);
                    }
                    ran[i].migrations += 1;
                    ran[i].cpu = to.0;
                }
            }
            Event::WakeupNew { task, cpu } => {
                if let Some(i) = place(task) {
                    ran[i].cpu = cpu.0;
                }
            }
            _ => {}
        }
    }
    for (ran, since) in ran.iter_mut().zip(since) {
        ran.run_ns += since.map_or(0, |since| within(since, to_ns));
    }
    ran
}

/// When as many CPUs have a task as can have one, after `from`. `moves` are births and migrations
/// in order: when, task, CPU.
pub(super) fn all_busy<T: Copy + PartialOrd>(
    moves: impl Iterator<Item = (T, i64, u32)>,
    cpus: usize,
    from: T,
) -> Option<T> {
    let mut at: std::collections::BTreeMap<i64, u32> = std::collections::BTreeMap::new();
    let mut done = None;
    for (when, task, cpu) in moves {
        at.insert(task, cpu);
        let busy: BTreeSet<u32> = at.values().copied().collect();
        match busy.len() >= cpus {
            true => done = done.or(Some(if when > from { when } else { from })),
            // A CPU that was left again before the beginning does not count.
            false if when <= from => done = None,
            false => {}
        }
    }
    done
}

/// Number of tasks of each CPU that has one, most first.
pub(super) fn load(cpus: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts = std::collections::BTreeMap::new();
    for cpu in cpus {
        *counts.entry(cpu).or_insert(0) += 1;
    }
    let mut counts: Vec<u32> = counts.into_values().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

/// Tasks that would have to be elsewhere for two such lists to be equal.
pub(super) fn apart(a: &[u32], b: &[u32]) -> f64 {
    let n = a.len().max(b.len());
    let at = |v: &[u32], i: usize| v.get(i).copied().unwrap_or(0);
    let sum: u32 = (0..n).map(|i| at(a, i).abs_diff(at(b, i))).sum();
    f64::from(sum) / 2.0
}

#[cfg(test)]
mod tests {
    use fairground::event::Migration;
    use fairground::value::Cpu;

    use super::*;

    /// Active balancing moves the running task: what it ran before counts.
    #[test]
    fn what_a_task_ran_before_it_was_pushed_counts() {
        let task = TaskId(7);
        let switch = |cpu, prev, next| Event::Switch {
            cpu: Cpu(cpu),
            prev,
            prev_runnable: false,
            next,
        };
        let push = Event::Migrate {
            task,
            from: Cpu(0),
            to: Cpu(1),
            why: Migration::Active,
        };
        let trace = [
            (100, 0, switch(0, None, Some(task))),
            (400, 0, push),
            (401, 0, switch(0, None, None)),
            (450, 1, switch(1, None, Some(task))),
        ]
        .map(|(at_ns, cpu, event)| TraceLine::new(at_ns, cpu, event));
        let ran = window(&trace, &[task], 200, 1000);
        let expected = Ran {
            run_ns: 200 + 550,
            cpu: 1,
            migrations: 1,
        };
        assert_eq!(ran, [expected]);
    }

    #[test]
    fn loads_are_compared_up_to_order() {
        let a = load([3, 3, 5, 7].into_iter());
        assert_eq!(a, [2, 1, 1]);
        assert!(apart(&a, &load([0, 1, 2, 2].into_iter())) == 0.0);
        assert!(apart(&a, &load([0, 1, 2, 4].into_iter())) == 1.0);
    }

    #[test]
    fn all_are_busy_when_the_last_gets_one() {
        let moves = [(1, 1, 0), (2, 2, 0), (5, 2, 1), (6, 1, 1), (8, 2, 0)];
        assert_eq!(all_busy(moves.into_iter(), 2, 3), Some(5));
        assert_eq!(all_busy(moves.into_iter(), 2, 7), Some(8));
        assert_eq!(all_busy(moves.into_iter(), 3, 3), None);
    }
}
