//! What the tracepoints say about one stretch of a task: runnable, perhaps moved, running, away.

use std::collections::{BTreeMap, BTreeSet};

use fairground::event::{Event, Migration};
use fairground::value::{Cpu, TaskId, TgId};

use crate::host::TraceLine;

/// One stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// How it became runnable.
    pub start: Start,
    /// When.
    pub start_ns: u64,
    /// Number of the event in which it did.
    pub start_event: u64,
    /// When it was on a queue, and on which; `None` after a preemption.
    pub enqueued: Option<(u64, u32)>,
    /// Groups whose queues on its CPU were throttled when it had to leave it (of any task; empty
    /// for another start).
    pub throttled: Vec<TgId>,
    /// Where it was moved to on the way.
    pub moves: Vec<Move>,
    /// Number of the event, time and CPU of the switch to it.
    pub switched_in: Option<(u64, u64, u32)>,
    /// Whom it took the place of; `None` is the idle task.
    pub instead_of: Option<TaskId>,
    /// Whether that one was still runnable.
    pub preempts: bool,
    /// When it left the CPU, and whether it was still runnable.
    pub out: Option<(u64, bool)>,
}

/// How a task became runnable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It was woken.
    Woken {
        /// Number of the event.
        event: u64,
        /// The CPU that did it.
        cpu: u32,
        /// Who ran there; `None`: nobody, an interrupt woke it.
        by: Option<TaskId>,
        /// Whether a timer's interrupt woke it, whoever ran there.
        by_timer: bool,
        /// Where it was last.
        prev: Cpu,
    },
    /// It was created.
    New {
        /// Number of the event.
        event: u64,
        /// The CPU that did it.
        cpu: u32,
        /// Who ran there.
        by: Option<TaskId>,
        /// Whether it was made when a timer came, whoever ran there.
        by_timer: bool,
    },
    /// It had to leave its CPU.
    Preempted {
        /// For whom; `None` is the idle task.
        by: Option<TaskId>,
        /// Which.
        cpu: u32,
    },
    /// The stopper moved it while it ran.
    Pushed {
        /// From where.
        from: u32,
        /// To where.
        to: u32,
        /// For what: active balancing, a change of its affinity, or exec (a placement).
        why: Migration,
    },
}

/// A move to another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// When.
    pub at_ns: u64,
    /// From where.
    pub from: Cpu,
    /// To where.
    pub to: Cpu,
    /// What moved it.
    pub why: Migration,
}

impl Start {
    /// The CPU that acted.
    pub fn cpu(&self) -> Option<u32> {
        match self {
            Self::Woken { cpu, .. } | Self::New { cpu, .. } => Some(*cpu),
            Self::Pushed { from, .. } => Some(*from),
            Self::Preempted { .. } => None,
        }
    }
}

/// Of the tasks that are meant, the first that is runnable or runs at the time in question, else
/// the first at all; of that the last stretch that began by then, else its first.
pub fn find(lines: &[(u64, TraceLine)], meant: &[TaskId], at_ns: u64) -> Option<(TaskId, Episode)> {
    let mut some = None;
    for task in meant {
        let all = all(lines, *task);
        let last = all.iter().rposition(|e| e.start_ns <= at_ns);
        let Some(found) = all.into_iter().nth(last.unwrap_or(0)) else {
            continue;
        };
        let lasts = found.out.is_none_or(|(out, _)| out >= at_ns);
        if last.is_some() && lasts {
            return Some((*task, found));
        }
        some = some.or(Some((*task, found)));
    }
    some
}

/// When `task` last left a CPU before event `number`, ns; 0 if it never did.
pub fn left_before(lines: &[(u64, TraceLine)], task: TaskId, number: u64) -> u64 {
    let leaves = |event: Event| match event {
        Event::Switch { prev, .. } => prev == Some(task),
        _ => false,
    };
    let before = lines.iter().take_while(|(n, _)| *n < number);
    let last = before.filter(|(_, line)| leaves(line.event)).last();
    last.map_or(0, |(_, line)| line.at_ns)
}

fn all(lines: &[(u64, TraceLine)], task: TaskId) -> Vec<Episode> {
    let mut walk = Walk {
        task,
        all: Vec::new(),
        current: BTreeMap::new(),
        throttled: BTreeSet::new(),
    };
    for (number, line) in lines {
        walk.line(*number, line);
    }
    walk.all
}

struct Walk {
    task: TaskId,
    all: Vec<Episode>,
    current: BTreeMap<u32, Option<TaskId>>,
    throttled: BTreeSet<(u32, TgId)>,
}

impl Walk {
    fn begin(&mut self, start: Start, number: u64, line: &TraceLine) -> &mut Episode {
        self.all.push(Episode {
            start,
            start_ns: line.at_ns,
            start_event: number,
            enqueued: None,
            throttled: Vec::new(),
            moves: Vec::new(),
            switched_in: None,
            instead_of: None,
            preempts: false,
            out: None,
        });
        let last = self.all.len() - 1;
        &mut self.all[last]
    }

    fn line(&mut self, number: u64, line: &TraceLine) {
        let by = self.current.get(&line.cpu).copied().flatten();
        let at_ns = line.at_ns;
        let (event, on) = (number, line.cpu);
        match line.event {
            Event::Waking { task, prev_cpu } if task == self.task => {
                let (cpu, prev) = (on, prev_cpu);
                let start = Start::Woken {
                    event,
                    cpu,
                    by,
                    by_timer: line.by_timer,
                    prev,
                };
                self.begin(start, number, line);
            }
            Event::WakeupNew { task, cpu } if task == self.task => {
                let start = Start::New {
                    event,
                    cpu: on,
                    by,
                    by_timer: line.by_timer,
                };
                self.begin(start, number, line).enqueued = Some((at_ns, cpu.0));
            }
            Event::Wakeup { task, cpu } if task == self.task => {
                if let Some(last) = self.all.last_mut() {
                    last.enqueued = Some((at_ns, cpu.0));
                }
            }
            Event::Migrate {
                task,
                from,
                to,
                why,
            } if task == self.task => {
                let moved = Move {
                    at_ns,
                    from,
                    to,
                    why,
                };
                self.moved(number, line, moved);
            }
            Event::Switch {
                cpu,
                prev,
                prev_runnable,
                next,
            } => self.switch(number, line, cpu.0, (prev, prev_runnable), next),
            Event::Throttle { cpu, tg, throttled } => {
                match throttled {
                    true => self.throttled.insert((cpu.0, tg)),
                    false => self.throttled.remove(&(cpu.0, tg)),
                };
            }
            _ => {}
        }
    }

    /// The switch to the stopper, which puts the running task back on its queue, is not traced: of
    /// one that runs, the move is the first that is told.
    fn moved(&mut self, number: u64, line: &TraceLine, moved: Move) {
        let Some(last) = self.all.last_mut() else {
            return;
        };
        match (last.switched_in, last.out) {
            (None, _) => last.moves.push(moved),
            (Some(_), None) => {
                last.out = Some((moved.at_ns, true));
                let start = Start::Pushed {
                    from: moved.from.0,
                    to: moved.to.0,
                    why: moved.why,
                };
                self.begin(start, number, line).enqueued = Some((moved.at_ns, moved.to.0));
            }
            // Asleep, and still queued.
            (Some(_), Some(_)) => {}
        }
    }

    fn switch(
        &mut self,
        number: u64,
        line: &TraceLine,
        cpu: u32,
        (prev, runnable): (Option<TaskId>, bool),
        next: Option<TaskId>,
    ) {
        self.current.insert(cpu, next);
        if next == Some(self.task)
            && let Some(last) = self.all.last_mut()
        {
            last.switched_in = Some((number, line.at_ns, cpu));
            // Who was woken before it was off its CPU has left that since.
            last.out = None;
            last.instead_of = prev;
            last.preempts = runnable && prev.is_some();
        }
        if prev == Some(self.task) {
            if let Some(last) = self.all.last_mut() {
                last.out = Some((line.at_ns, runnable));
            }
            if runnable {
                let there = self.throttled.range((cpu, TgId(0))..=(cpu, TgId(u32::MAX)));
                let throttled = there.map(|(_, tg)| *tg).collect();
                self.begin(Start::Preempted { by: next, cpu }, number, line)
                    .throttled = throttled;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stopper takes the CPU without a switch that is traced: the move ends the stretch. A
    /// sleeper that balancing moves while it pays its lag has ended it before.
    #[test]
    fn a_move_of_one_that_runs_begins_the_next_stretch() {
        let task = TaskId(0);
        let switch = |cpu, prev, next| Event::Switch {
            cpu: Cpu(cpu),
            prev,
            prev_runnable: false,
            next,
        };
        let migrate = |from, to, why| Event::Migrate {
            task,
            from: Cpu(from),
            to: Cpu(to),
            why,
        };
        let cpu = Cpu(0);
        let events = [
            (5, 1, Event::WakeupNew { task, cpu }),
            (10, 0, switch(0, None, Some(task))),
            (50, 0, migrate(0, 2, Migration::Active)),
            (51, 0, switch(0, None, None)),
            (60, 2, switch(2, None, Some(task))),
            (70, 2, switch(2, Some(task), None)),
            (80, 3, migrate(2, 3, Migration::Balance)),
        ];
        let lines = events.map(|(at_ns, cpu, event)| (at_ns, TraceLine::new(at_ns, cpu, event)));
        let all = all(&lines, task);
        let told: Vec<_> = all
            .iter()
            .map(|e| (e.start_ns, e.switched_in.map(|s| s.1), e.out))
            .collect();
        let first = (5, Some(10), Some((50, true)));
        assert_eq!(told, [first, (50, Some(60), Some((70, false)))]);
        let pushed = Start::Pushed {
            from: 0,
            to: 2,
            why: Migration::Active,
        };
        assert_eq!((all[1].start, all[1].enqueued), (pushed, Some((50, 2))));
        assert!(all.iter().all(|e| e.moves.is_empty()));
    }
}
