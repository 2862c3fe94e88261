//! Tracepoints of a simulated run in the form of recorded ones.

use std::collections::BTreeMap;

use fairground::event::Event as SimEvent;
use fairground::value::TaskId;
use fairground_sim::host::TraceLine;
use fairground_sim::samples::ThreadEvent;
use fairground_sim::workload::Workload;
use fairground_sim::workload::program::Born;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::event::{Context, Event, Kind, Names, State};
use crate::recording::Recording;
use crate::told;

/// Who a simulated task is to the outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Thread id.
    pub tid: u32,
    /// Priority, 120 for nice 0.
    pub prio: i16,
    /// Name.
    pub comm: String,
    /// The thread that its process is named by, if that is known.
    pub process: Option<u32>,
}

/// The first thread id of simulated tasks: those below belong to the kernel on a real machine.
pub const FIRST_TID: u32 = 1000;

/// Who the tasks of a run of `workload` are, from what each began with.
#[must_use]
pub fn identities(workload: &Workload, born: &[Born]) -> Vec<Identity> {
    let mut leaders: FxHashMap<u32, u32> = FxHashMap::default();
    let identity = |(tid, born): (u32, &Born)| {
        let forked = (tid - FIRST_TID) as usize >= workload.initial.len();
        let template = &workload.templates[born.template as usize];
        let leader = match template.thread || !forked {
            true => *leaders.entry(template.process).or_insert(tid),
            false => tid,
        };
        Identity {
            tid,
            prio: match born.real_time {
                Some(rt) => 99 - i16::from(rt.priority),
                None => 120 + i16::from(born.nice),
            },
            comm: template.name.clone(),
            process: Some(leader),
        }
    };
    (FIRST_TID..).zip(born).map(identity).collect()
}

/// The same with what threads did in between.
#[must_use]
pub fn told_recording(
    trace: &[TraceLine],
    told: &[ThreadEvent],
    cpus: u32,
    who: &[Identity],
) -> Recording {
    let mut recording = recording(trace, cpus, who);
    if told.is_empty() {
        return recording;
    }
    let tid = |task: TaskId| who.get(task.idx()).map_or(0, |w| w.tid);
    let told = told.iter().filter_map(|t| told::told(*t, tid(t.task)));
    recording.events.extend(told);
    recording.events.sort_by_key(|e| e.at_ns);
    told::contexts(&mut recording.events);
    recording
}

/// The events of `trace` on `cpus` CPUs; `who` has an identity for each task by number.
#[must_use]
pub fn recording(trace: &[TraceLine], cpus: u32, who: &[Identity]) -> Recording {
    let mut names = Names::default();
    for identity in who {
        names.see(identity.tid, identity.comm.as_bytes());
        names.see_process(identity.tid, identity.process.unwrap_or(0));
    }
    let mut current: Vec<Option<TaskId>> = vec![None; cpus as usize];
    let mut prio: Vec<i16> = who.iter().map(|w| w.prio).collect();
    let mut forked = FxHashSet::default();
    let mut recording = Recording {
        cpus,
        names,
        ..Recording::new("simulated run")
    };
    for line in trace {
        if let SimEvent::Nice { task, nice } = line.event
            && let Some(prio) = prio.get_mut(task.idx())
        {
            *prio = 120 + i16::from(nice);
        }
        let of = |task: TaskId| match (who.get(task.idx()), prio.get(task.idx())) {
            (Some(who), Some(prio)) => (who.tid, *prio),
            _ => (0, 120),
        };
        if let SimEvent::Migrate { task, from, .. } = line.event
            && let Some(slot) = current.get_mut(from.idx())
            && *slot == Some(task)
        {
            // The stopper has taken the CPU from it, and is no task that a switch could name.
            *slot = None;
            recording.push(Event {
                at_ns: line.at_ns,
                cpu: from.0,
                tid: of(task).0,
                context: Context::Unknown,
                kind: switch(Some(of(task)), true, None),
            });
        }
        let on = current.get(line.cpu as usize).copied().flatten();
        if let SimEvent::Switch { next, .. } = line.event
            && let Some(slot) = current.get_mut(line.cpu as usize)
        {
            *slot = next;
        }
        let event = |kind: Kind| Event {
            at_ns: line.at_ns,
            cpu: line.cpu,
            tid: on.map_or(0, |task| of(task).0),
            context: Context::Unknown,
            kind,
        };
        match line.event {
            SimEvent::Fork { child, .. } => drop(forked.insert(child)),
            // Nobody that runs has created it.
            SimEvent::WakeupNew { task, .. } if forked.insert(task) => {
                let child = of(task).0;
                recording.push(event(Kind::Fork { parent: 0, child }));
            }
            _ => {}
        }
        if let Some(kind) = kind(line.event, of) {
            recording.push(event(kind));
        }
    }
    mark_exits(&mut recording.events);
    recording.sort();
    recording
}

/// When a group's queue ran out of quota and got some again: time (ns), CPU, group, whether it is
/// throttled from then on.
pub type Throttle = (u64, u32, u32, bool);

/// From when to when queues were throttled, by group, ns; until `end` where it has none.
#[must_use]
pub fn throttled(changes: &[Throttle], end: u64) -> Vec<(u32, u64, u64)> {
    let mut since = BTreeMap::new();
    let mut ended = Vec::new();
    for (at, cpu, group, on) in changes {
        if *on {
            since.entry((*cpu, *group)).or_insert(*at);
        } else if let Some(from) = since.remove(&(*cpu, *group)) {
            ended.push((*group, from, *at));
        }
    }
    let rest = since.into_iter();
    ended.extend(rest.map(|((_, group), from)| (group, from, end)));
    ended
}

/// All of them in a run.
#[must_use]
pub fn throttles(trace: &[TraceLine]) -> Vec<Throttle> {
    let throttle = |line: &TraceLine| match line.event {
        SimEvent::Throttle { cpu, tg, throttled } => {
            Some((line.at_ns, cpu.0, tg.idx() as u32, throttled))
        }
        _ => None,
    };
    trace.iter().filter_map(throttle).collect()
}

/// What a simulated tracepoint is called outside; quota has none.
fn kind(event: SimEvent, of: impl Fn(TaskId) -> (u32, i16)) -> Option<Kind> {
    Some(match event {
        // From the stopper, which is no thread here, to the idle task.
        SimEvent::Switch {
            prev: None,
            next: None,
            ..
        } => return None,
        SimEvent::Switch {
            prev,
            prev_runnable,
            next,
            ..
        } => switch(prev.map(&of), prev_runnable, next.map(&of)),
        SimEvent::Waking { task, prev_cpu } => {
            let (tid, prio) = of(task);
            Kind::Waking {
                tid,
                prio,
                cpu: prev_cpu.0,
            }
        }
        SimEvent::Wakeup { task, cpu } => {
            let (tid, prio) = of(task);
            Kind::Wakeup {
                tid,
                prio,
                cpu: cpu.0,
            }
        }
        SimEvent::WakeupNew { task, cpu } => {
            let (tid, prio) = of(task);
            Kind::WakeupNew {
                tid,
                prio,
                cpu: cpu.0,
            }
        }
        SimEvent::Migrate { task, from, to, .. } => Kind::Migrate {
            tid: of(task).0,
            from: from.0,
            to: to.0,
        },
        SimEvent::Fork { parent, child } => Kind::Fork {
            parent: parent.map_or(0, |p| of(p).0),
            child: of(child).0,
        },
        SimEvent::Exit { task } => Kind::Exit { tid: of(task).0 },
        SimEvent::Throttle { .. } | SimEvent::Nice { .. } => return None,
    })
}

fn switch(prev: Option<(u32, i16)>, runnable: bool, next: Option<(u32, i16)>) -> Kind {
    let (prev_tid, prev_prio) = prev.unwrap_or((0, 120));
    let (next, next_prio) = next.unwrap_or((0, 120));
    Kind::Switch {
        prev: prev_tid,
        prev_prio,
        state: if runnable || prev.is_none() {
            State::Runnable
        } else {
            State::Blocked(b'S')
        },
        next,
        next_prio,
    }
}

/// The switch away from a task that has exited says so.
fn mark_exits(events: &mut [Event]) {
    let mut exiting = FxHashSet::default();
    for event in events {
        match &mut event.kind {
            Kind::Exit { tid } => drop(exiting.insert(*tid)),
            Kind::Switch {
                prev,
                state: state @ State::Blocked(_),
                ..
            } if exiting.remove(prev) => {
                *state = State::Dead;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use fairground::event::Migration;
    use fairground::value::Cpu;

    use super::*;

    #[test]
    fn whom_the_stopper_moves_has_left_its_cpu() {
        let who = [7, 8].map(|tid| Identity {
            tid,
            prio: 120,
            comm: format!("t{tid}"),
            process: None,
        });
        let (a, b) = (TaskId(0), TaskId(1));
        let switch_to = |task| SimEvent::Switch {
            cpu: Cpu(0),
            prev: None,
            prev_runnable: false,
            next: Some(task),
        };
        let migrate = |task| SimEvent::Migrate {
            task,
            from: Cpu(0),
            to: Cpu(1),
            why: Migration::Active,
        };
        let events = [switch_to(a), migrate(b), migrate(a), switch_to(b)];
        let trace: Vec<TraceLine> = (1..)
            .zip(events)
            .map(|(at_ns, event)| TraceLine::new(at_ns, 0, event))
            .collect();
        let events = recording(&trace, 2, &who).events;
        let moved = |tid| Kind::Migrate {
            tid,
            from: 0,
            to: 1,
        };
        let found: Vec<_> = events.iter().map(|e| (e.at_ns, e.tid, e.kind)).collect();
        let between = |prev, next| switch(prev, true, next);
        let (a, b) = ((7, 120), (8, 120));
        assert_eq!(
            found,
            [
                (1, 0, between(None, Some(a))),
                (2, 7, moved(8)),
                (3, 7, between(Some(a), None)),
                (3, 0, moved(7)),
                (4, 0, between(None, Some(b))),
            ]
        );
    }
}
