//! What a simulated run says beyond the scheduler's tracepoints: when each thread was in user
//! space, its calls, and the timers that it set for itself.
//!
//! With these a replay knows what a thread computed to the nanosecond, without the kernel's share,
//! and what ended each sleep. They are read from text that a simulated run has written, whose
//! machine and kernel are known; of a real machine the kernel's share would have to be that of the
//! simulated one.

use fairground_sim::costs::KernelOp;
use fairground_sim::samples::{ThreadEvent, ThreadEventKind};
use rustc_hash::FxHashSet;

use crate::act::Act;
use crate::event::{Context, Event, Kind, Timer, Told};

/// `sched_yield` on x86-64.
pub const NR_SCHED_YIELD: u32 = 24;

/// Of a simulated run; `None` of what has no probe.
#[must_use]
pub fn told(told: ThreadEvent, tid: u32) -> Option<Event> {
    let what = match told.what {
        ThreadEventKind::Act(op) => Told::Act(Act::of(op)?),
        ThreadEventKind::UserEnter => Told::UserEnter,
        ThreadEventKind::UserExit => Told::UserExit,
        ThreadEventKind::Worked(instructions) => Told::Worked { instructions },
        ThreadEventKind::Call(op) => Told::Call { nr: nr(op) },
        ThreadEventKind::Timer {
            soft_ns,
            slack_ns,
            relative,
        } => Told::Timer(Timer {
            soft_ns,
            slack_ns: u32::try_from(slack_ns).unwrap_or(u32::MAX),
            relative,
        }),
    };
    Some(Event {
        at_ns: told.at_ns,
        cpu: told.cpu,
        tid,
        context: Context::Unknown,
        kind: Kind::Told(what),
    })
}

/// The number of the system call on x86-64.
fn nr(op: KernelOp) -> u32 {
    match op {
        KernelOp::PipeRead => 0,
        KernelOp::PipeWrite => 1,
        KernelOp::Poll => 7,
        KernelOp::Yield => NR_SCHED_YIELD,
        KernelOp::SocketSend | KernelOp::UdpSend | KernelOp::TcpSend => 44,
        KernelOp::SocketRecv | KernelOp::UdpRecv | KernelOp::TcpRecv => 45,
        KernelOp::CloneThread | KernelOp::ForkProcess => 56,
        KernelOp::Exec => 59,
        KernelOp::ExitThread => 60,
        KernelOp::Wait => 61,
        KernelOp::Nanosleep => 230,
        KernelOp::ExitProcess => 231,
        KernelOp::SetSched => 314,
        _ => 202,
    }
}

/// Whether anything is told.
#[must_use]
pub fn is_told(events: &[Event]) -> bool {
    events.iter().any(|e| matches!(e.kind, Kind::Told(_)))
}

/// Says of wake-ups, in order of time, whether the current thread did them, in a call, or an
/// interrupt that met it.
pub fn contexts(events: &mut [Event]) {
    let mut calls: FxHashSet<u32> = FxHashSet::default();
    for event in events {
        match event.kind {
            Kind::Told(Told::Call { .. }) => drop(calls.insert(event.tid)),
            Kind::Told(Told::UserEnter) => drop(calls.remove(&event.tid)),
            _ if event.context != Context::Unknown => {}
            Kind::Waking { .. } | Kind::Wakeup { .. } | Kind::WakeupNew { .. } => {
                event.context = if calls.contains(&event.tid) {
                    Context::Task
                } else {
                    Context::Interrupt
                };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_in_a_call_wakes_and_who_is_not_was_met_by_an_interrupt() {
        let waking = Kind::Waking {
            tid: 9,
            prio: 120,
            cpu: 0,
        };
        let event = |tid: u32, kind: Kind| Event {
            at_ns: 0,
            cpu: 0,
            tid,
            context: Context::Unknown,
            kind,
        };
        let told = |tid, told| event(tid, Kind::Told(told));
        let mut events = [
            told(7, Told::UserEnter),
            event(7, waking),
            told(7, Told::UserExit),
            told(7, Told::Call { nr: 1 }),
            event(7, waking),
            event(8, waking),
            told(7, Told::UserEnter),
            event(7, waking),
        ];
        assert!(is_told(&events) && !is_told(&events[1..2]));
        contexts(&mut events);
        let wakes = events.iter().filter(|e| e.kind == waking);
        let found: Vec<Context> = wakes.map(|e| e.context).collect();
        let (task, interrupt) = (Context::Task, Context::Interrupt);
        assert_eq!(found, [interrupt, task, interrupt, interrupt]);
    }
}
