//! Sleeps of a program: for a time, until a time, until a tick.

use fairground::value::TaskId;

use super::Sim;
use super::task::{Stage, Wait};
use crate::cache::NS;
use crate::costs::KernelOp;
use crate::samples::ThreadEventKind;
use crate::workload::program::Op;

impl Sim<'_> {
    /// A sleep begins, or the task comes back from it.
    pub(super) fn sleep(&mut self, cpu: u32, id: TaskId, op: Op) {
        let now = self.now_ns();
        let task = &mut self.tasks[id.idx()];
        if task.stage != Stage::Start {
            return self.advance(id);
        }
        let due = match op {
            Op::Sleep(dur) => now + dur.draw(|| task.rng.bits()),
            Op::SleepTicks(dur) => {
                let at = (now + dur.draw(|| task.rng.bits())) * NS;
                // The tick's own interrupt comes first.
                self.tick_after(at) / NS + 1
            }
            Op::SleepUntilTaskTime(ns) => task.born_ns + ns,
            Op::StartAt(at_ns) => {
                (task.born_ns, task.grid_ns) = (at_ns, at_ns);
                at_ns
            }
            Op::SleepUntilRunTime(at_ns) => at_ns,
            _ => return debug_assert!(false, "{op:?} is no sleep"),
        };
        self.wait_until(cpu, id, due);
    }

    pub(super) fn period(&mut self, cpu: u32, id: TaskId, op: Op) {
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.advance(id);
        }
        let now = self.now_ns();
        let task = &mut self.tasks[id.idx()];
        let (every, stays) = match op {
            Op::Pace(every) => (every, true),
            Op::Period(every) => (every, false),
            _ => return debug_assert!(false, "{op:?} has no grid"),
        };
        let due = task.grid_ns + every.draw(|| task.rng.bits());
        task.grid_ns = if due > now || stays { due } else { now };
        let point = task.grid_ns;
        self.wait_for_point(cpu, id, point);
    }

    /// The next point of a timer's own series.
    pub(super) fn timer(&mut self, cpu: u32, id: TaskId, op: Op) {
        let Op::Timer {
            timer,
            shared,
            every,
            stays,
        } = op
        else {
            return debug_assert!(false, "{op:?} is no timer");
        };
        if self.tasks[id.idx()].stage != Stage::Start {
            return self.advance(id);
        }
        let (now, begin) = (self.now_ns(), self.tasks[id.idx()].born_ns);
        let of = (timer, (!shared).then_some(id));
        let last = self.sync.timers.entry(of).or_insert(begin);
        let due = last.saturating_add(every);
        *last = if due > now || stays { due } else { now };
        let point = *last;
        self.wait_for_point(cpu, id, point);
    }

    /// Waits for a point of a series, or goes on if it is past: what is measured from it counts
    /// from that point.
    fn wait_for_point(&mut self, cpu: u32, id: TaskId, point_ns: u64) {
        if point_ns > self.now_ns() {
            return self.wait_until(cpu, id, point_ns);
        }
        self.tasks[id.idx()].due_ns = point_ns;
        self.goes_on(id);
    }

    /// The time that a task would wait for is over: a look, and no system call.
    fn goes_on(&mut self, id: TaskId) {
        self.host.op(KernelOp::UserAtomic);
        if let Some(trace) = &mut self.host.thread_trace {
            trace.act.get_or_insert(Op::SleepUntilTaskTime(0));
        }
        self.advance(id);
    }

    fn wait_until(&mut self, cpu: u32, id: TaskId, due_ns: u64) {
        let now = self.now_ns();
        self.tasks[id.idx()].due_ns = due_ns.max(now);
        if due_ns <= now {
            return self.goes_on(id);
        }
        self.sleep_until(cpu, id, due_ns, Stage::Granted);
    }

    /// Before its first operation, until the time that its own time counts from.
    pub(super) fn sleep_until_born(&mut self, cpu: u32, id: TaskId) {
        let born_ns = self.tasks[id.idx()].born_ns;
        if let Some(trace) = &mut self.host.thread_trace {
            trace.act = Some(Op::StartAt(born_ns));
        }
        self.sleep_until(cpu, id, born_ns, Stage::Start);
    }

    fn sleep_until(&mut self, cpu: u32, id: TaskId, due_ns: u64, then: Stage) {
        let asked = self.host.at;
        self.enter_syscall(id, KernelOp::Nanosleep);
        self.arm(cpu, id, due_ns);
        if let Some(trace) = &mut self.host.thread_trace {
            let task = &self.tasks[id.idx()];
            let program = &self.workload.programs[task.program as usize];
            let op = program.ops.get(task.pc as usize);
            let timer = ThreadEventKind::Timer {
                soft_ns: due_ns,
                slack_ns: task.timer_slack_ns,
                relative: matches!(op, Some(Op::Sleep(_))) && then != Stage::Start,
            };
            trace.note(cpu, id, asked, timer);
        }
        self.block(cpu, id, Wait::Time, then);
    }
}
