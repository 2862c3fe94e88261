//! The way into the kernel and back, and who is told of it.

use fairground::value::TaskId;

use super::Sim;
use super::task::Stage;
use crate::cache::{NS, Ps};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::samples::{ThreadEventKind, ThreadTrace};
use crate::workload::program::Op;

impl Sim<'_> {
    /// A system call begins.
    pub(super) fn system_call(&mut self, op: KernelOp) {
        self.leave_user(op);
        self.host.op(op);
    }

    /// The way into the kernel and back, paid at once: what others do in between changes nothing.
    pub(super) fn leave_user(&mut self, op: KernelOp) {
        self.enter_kernel(op);
        self.leave_kernel();
    }

    /// The way into the kernel, half of the emptiest system call.
    pub(super) fn enter_kernel(&mut self, op: KernelOp) {
        if let Some(trace) = &mut self.host.thread_trace {
            trace.call.get_or_insert((self.host.at, op));
        }
        let all = self.host.prices.syscall;
        self.host.spend(Place::Syscall, all - all / 2);
    }

    /// The other half.
    pub(super) fn leave_kernel(&mut self) {
        let half = self.host.prices.syscall / 2;
        self.host.spend_more(Place::Syscall, half);
    }

    /// `op` begins, if it has not begun yet, for those who keep such things.
    pub(super) fn begin_act(&mut self, id: TaskId, op: Op) {
        let task = &self.tasks[id.idx()];
        let Some(trace) = self
            .host
            .thread_trace
            .as_mut()
            .filter(|_| task.stage == Stage::Start)
        else {
            return;
        };
        trace.act = match op {
            Op::LockPicked => Some(Op::Lock(task.picked)),
            Op::UnlockPicked => Some(Op::Unlock(task.picked)),
            op if ThreadTrace::is_act(op) => Some(op),
            _ => None,
        };
    }

    /// A step of a task's program begins. One that comes to run after its start does not sleep
    /// until then, but its time counts from there.
    pub(super) fn tell_beginning(&mut self, cpu: u32, id: TaskId) {
        let at = self.host.at;
        let Some(trace) = &mut self.host.thread_trace else {
            return;
        };
        (trace.call, trace.act) = (None, None);
        let task = &self.tasks[id.idx()];
        let starts = self.workload.templates[task.template as usize].start_ns > 0;
        if trace.begins(id) && starts && task.born_ns <= at / NS {
            trace.act(cpu, id, (at, at), Op::StartAt(task.born_ns));
        }
    }

    /// What began at `from`, if that was in user space, for those who keep such things.
    pub(super) fn tell_call(&mut self, cpu: u32, id: TaskId, from: Ps, in_user: bool) {
        let at = self.host.at;
        let Some(trace) = &mut self.host.thread_trace else {
            return;
        };
        let call = trace.call.take();
        let to = call.map_or(at, |(at, _)| at);
        match trace.act.take() {
            Some(op) => trace.act(cpu, id, (from, to), op),
            None if in_user => trace.user(cpu, id, (from, to), to - from),
            None => {}
        }
        if let Some((at, op)) = call {
            trace.note(cpu, id, at, ThreadEventKind::Call(op));
        }
    }

    /// A system call begins, unless the task comes back from a wait inside it.
    pub(super) fn enter_syscall(&mut self, id: TaskId, op: KernelOp) {
        if self.tasks[id.idx()].stage == Stage::Start {
            self.system_call(op);
        } else {
            self.host.op(KernelOp::WaitQueue);
        }
    }
}
