//! One operation of a program.

use fairground::event::Event;
use fairground::place::{Access, task as ftask};
use fairground::sched::{self, Moved};
use fairground::shared::OnRq;
use fairground::task::{Policy, Prev};
use fairground::value::{Cpu, CpuMask, TaskId};

use super::task::{Stage, Wait};
use super::todo::Todo;
use super::{Sim, on_its_way};
use crate::cache::{NS, Ps};
use crate::costs::KernelOp;
use crate::host::Place;
use crate::workload::program::{FOREVER, KERNEL_PROCESS, Op, PickBy};

impl Sim<'_> {
    /// The running task of `cpu` returns to user space and goes on with its program, up to the next
    /// stretch of computing or the next operation of the kernel.
    pub(super) fn run_task(&mut self, cpu: u32) {
        let c = cpu as usize;
        let Some(id) = self.cpus[c].curr else { return };
        self.futex_unqueue(id);
        if self.resume_call(cpu, id) {
            self.step_done(cpu);
            self.go_on(cpu);
            return;
        }
        // Whoever returns to user space looks at its flags, which another CPU may have written.
        let curr = self.rqs[c].curr_object();
        self.host
            .touch_in(Place::Syscall, curr, ftask::THREAD_INFO, Access::Read);
        if !self.is_in_call(id) {
            self.engine(sched::exit_to_user);
        }
        if self.rqs[c].need_resched {
            self.step_done(cpu);
            self.go_on(cpu);
            return;
        }
        self.tell_beginning(cpu, id);
        let (from, in_user) = loop {
            let task = &mut self.tasks[id.idx()];
            let begin = (self.host.at, task.stage == Stage::Start);
            if task.run_left > 0 {
                self.start_user(cpu, id);
                return;
            }
            if self.host.at / NS < task.born_ns && task.pc == 0 && task.stage == Stage::Start {
                self.sleep_until_born(cpu, id);
                break begin;
            }
            if task.execs {
                self.execve(cpu, id);
                break begin;
            }
            let ops = &self.workload.programs[task.program as usize].ops;
            let Some(op) = ops.get(task.pc as usize).copied() else {
                self.begin_act(id, Op::Exit);
                self.exit(cpu, id);
                break begin;
            };
            if !self.bookkeeping(id, op) {
                self.begin_act(id, op);
                self.operation(cpu, id, op);
                if self.stays_at_word(id, op) {
                    self.tell_call(cpu, id, begin.0, begin.1);
                    continue;
                }
                break begin;
            }
        };
        self.tell_call(cpu, id, from, in_user);
        self.step_done(cpu);
        self.go_on(cpu);
    }

    /// Whether the task has slept within a system call that it has still to finish, or is a thread
    /// of the kernel: neither is at the return to user space, where a quota stops a task (6.18).
    fn is_in_call(&self, id: TaskId) -> bool {
        let task = &self.tasks[id.idx()];
        if task.mm == KERNEL_PROCESS {
            return true;
        }
        if task.stage != Stage::Again {
            return false;
        }
        match self.workload.programs[task.program as usize]
            .ops
            .get(task.pc as usize)
        {
            Some(Op::Read { .. } | Op::Write { .. } | Op::Send { .. }) => true,
            Some(Op::Recv { inet, .. }) => self.inets[*inet as usize].reader_sleeps_in_recv(),
            _ => false,
        }
    }

    fn start_user(&mut self, cpu: u32, id: TaskId) {
        self.fetch_working_set(cpu, id);
        self.step_done(cpu);
        let left = self.tasks[id.idx()].run_left;
        let at = self.cpus[cpu as usize].busy_until;
        match self.begin_user(cpu, at, left) {
            // Without an end.
            Ps::MAX => {
                let state = &mut self.cpus[cpu as usize];
                state.work_stamp = state.work_stamp.wrapping_add(1);
            }
            done => self.push_work(cpu, done),
        }
        // Requests of the last steps (a switch asked for, a step left behind) come first.
        if self.cpus[cpu as usize].has_steps() || self.rqs[cpu as usize].need_resched {
            self.push_work(cpu, at);
        }
    }

    /// Operations that are only bookkeeping; true if `op` was one.
    fn bookkeeping(&mut self, id: TaskId, op: Op) -> bool {
        if let Op::Work { unit, n } = op {
            self.user_work(id, unit, n);
            return true;
        }
        let now = self.now_ns();
        let task = &mut self.tasks[id.idx()];
        match op {
            Op::Run(dur) => task.run_left = dur.draw(|| task.rng.bits()) * NS,
            Op::Hog => {
                task.run_left = Ps::MAX;
                return true;
            }
            Op::LoopStart { count } => {
                task.loops[usize::from(task.depth)] = count;
                task.depth += 1;
            }
            Op::LoopEnd { start } => {
                let left = &mut task.loops[usize::from(task.depth) - 1];
                if *left != FOREVER {
                    *left -= 1;
                }
                if *left > 0 {
                    task.pc = start;
                } else {
                    task.depth -= 1;
                }
            }
            Op::Mark(k) => {
                self.marks.mark(k, now);
                self.end_if_done(k);
            }
            Op::ReqStart(k) => task.open_request(k, now),
            Op::ReqStartDue(k) => task.open_request(k, task.due_ns.min(now)),
            Op::ReqStartCaller(k) => {
                let took = task.took_ns;
                if let Some(caller) = task.serving {
                    self.tasks[caller.idx()].open_request(k, took);
                }
            }
            Op::ReqEnd(k) => {
                let start = task.close_request(k);
                if self.marks.request(k, start, now) {
                    task.ended += 1;
                    task.ended_ns += now.saturating_sub(start);
                }
            }
            Op::Pick { first, of, by } => {
                let nth = match by {
                    PickBy::Random => task.rng.below(u64::from(of)),
                    PickBy::Ticket => task.ticket % u64::from(of),
                };
                task.picked = first + nth as u32;
            }
            Op::Leave { end, when } if !when.takes_time() => self.leave_at_once(id, end, when),
            _ => return false,
        }
        self.tasks[id.idx()].pc += 1;
        true
    }

    /// The operation of `id` is complete.
    pub(super) fn advance(&mut self, id: TaskId) {
        let task = &mut self.tasks[id.idx()];
        task.pc += 1;
        task.stage = Stage::Start;
    }

    fn operation(&mut self, cpu: u32, id: TaskId, op: Op) {
        match op {
            Op::Sleep(_) | Op::SleepTicks(_) => self.sleep(cpu, id, op),
            Op::SleepUntilTaskTime(_) | Op::StartAt(_) | Op::SleepUntilRunTime(_) => {
                self.sleep(cpu, id, op)
            }
            Op::Period(_) | Op::Pace(_) => self.period(cpu, id, op),
            Op::Timer { .. } => self.timer(cpu, id, op),
            Op::Busy(ns) => self.busy_for(id, ns),
            Op::ReadClock => self.clock_gettime(id),
            Op::Touch { first, of, how } => self.touch_word(id, first, of, how),
            Op::Leave { end, when } => self.leave(id, end, when),
            Op::LockPicked => self.mutex_lock(cpu, id, self.tasks[id.idx()].picked),
            Op::UnlockPicked => self.mutex_unlock(cpu, id, self.tasks[id.idx()].picked),
            Op::CondBarrier { barrier, mutex } => self.cond_barrier(cpu, id, barrier, mutex),
            Op::CondWait { cond, mutex } => self.cond_wait(cpu, id, cond, mutex),
            Op::CondSignal { cond, all } => self.cond_signal(cpu, id, cond, all),
            Op::PinChild { mask } => self.pin_child(id, mask),
            Op::Write { chan, bytes } => self.write(cpu, id, chan, bytes),
            Op::Read { chan, bytes } => self.read(cpu, id, chan, bytes),
            Op::Poll { chan } => self.poll(cpu, id, chan),
            Op::Send { inet, bytes } => self.send_inet(cpu, id, inet, bytes),
            Op::Recv { inet, bytes } => self.recv_inet(cpu, id, inet, bytes),
            Op::SemWait(s) => self.sem_wait(cpu, id, s),
            Op::SemPost(s) => self.sem_post(cpu, id, s),
            Op::FutexWait(f) => self.futex_wait(cpu, id, f),
            Op::FutexWake { futex, n } => self.futex_wake(cpu, id, futex, n),
            Op::LockCpu(set) => self.lock_cpu(cpu, id, set),
            Op::UnlockCpu(set) => self.unlock_cpu(id, set),
            Op::Lock(m) => self.mutex_lock(cpu, id, m),
            Op::Unlock(m) => self.mutex_unlock(cpu, id, m),
            Op::Barrier(b) => self.barrier(cpu, id, b),
            Op::Call { service, bytes } => self.call(cpu, id, service, bytes),
            Op::Accept(s) => self.accept(cpu, id, s),
            Op::Reply { service, bytes } => self.reply(cpu, id, service, bytes),
            Op::Yield => self.sys_sched_yield(cpu, id),
            Op::Fork { template } => self.fork(cpu, template),
            Op::Exec => self.execve(cpu, id),
            Op::Join => self.join(cpu, id),
            Op::SetNice(_)
            | Op::SetPolicy { .. }
            | Op::SetAffinity(_)
            | Op::SetCgroup(_)
            | Op::SetSlice(_) => {
                self.set_attribute(cpu, id, op);
            }
            Op::Exit => self.exit(cpu, id),
            Op::Run(_)
            | Op::Hog
            | Op::Work { .. }
            | Op::Pick { .. }
            | Op::LoopStart { .. }
            | Op::LoopEnd { .. }
            | Op::Mark(_)
            | Op::ReqStart(_)
            | Op::ReqStartDue(_)
            | Op::ReqStartCaller(_)
            | Op::ReqEnd(_) => debug_assert!(false, "{op:?} is bookkeeping"),
        }
    }

    fn sys_sched_yield(&mut self, cpu: u32, id: TaskId) {
        self.enter_syscall(id, KernelOp::Yield);
        if self.real_time(id).is_some() {
            self.real_time_yields(cpu);
        } else {
            self.engine(sched::sched_yield);
        }
        self.cpus[cpu as usize]
            .todo
            .push_back(Todo::Schedule(Prev::Runnable));
        self.advance(id);
    }

    fn set_attribute(&mut self, cpu: u32, id: TaskId, op: Op) {
        self.enter_syscall(id, KernelOp::SetSched);
        if self.tasks[id.idx()].stage == Stage::Granted {
            return self.advance(id);
        }
        if self.real_time(id).is_some() {
            return self.set_real_time_attribute(cpu, id, op);
        }
        let (mut moved, mut kept) = (Moved::Stays, true);
        match op {
            Op::SetNice(nice) => {
                let policy = self.attributes(id).map_or(Policy::Normal, |own| own.0);
                kept = self.engine(|cx, rqs| sched::set_nice(cx, rqs, id, policy, nice));
                self.host.note(Event::Nice { task: id, nice });
            }
            Op::SetPolicy { policy, nice } => {
                let policy = super::life::policy(policy);
                kept = self.engine(|cx, rqs| sched::set_nice(cx, rqs, id, policy, nice));
                self.host.note(Event::Nice { task: id, nice });
            }
            Op::SetSlice(ns) => {
                let slice = (ns > 0).then_some(ns);
                kept = self.engine(|cx, rqs| sched::set_slice(cx, rqs, id, slice));
            }
            Op::SetAffinity(mask) => {
                let group = self.tasks[id.idx()].cgroup;
                let allowed = self.in_cpuset(mask, group);
                // Refused (EINVAL) where its group's cpuset has none of them: nothing changes.
                if !allowed.is_empty() {
                    self.tasks[id.idx()].affinity = Some(mask);
                    moved = self.engine(|cx, rqs| sched::set_affinity(cx, rqs, id, allowed));
                }
            }
            Op::SetCgroup(group) => {
                self.host.op(KernelOp::CgroupAttach);
                let tg = self.groups[group as usize];
                self.sys.open_group(tg);
                let before = self.cpuset[self.tasks[id.idx()].cgroup as usize];
                self.tasks[id.idx()].cgroup = group;
                kept = self.engine(|cx, rqs| sched::set_group(cx, rqs, id, tg));
                if self.cpuset[group as usize] != before {
                    let allowed = self.allowed(id);
                    moved = self.engine(|cx, rqs| sched::set_affinity(cx, rqs, id, allowed));
                }
            }
            _ => debug_assert!(false, "{op:?} sets nothing"),
        }
        let runs = kept && matches!(moved, Moved::Stays | Moved::Asked);
        debug_assert!(runs, "the caller does");
        if moved == Moved::Asked && !self.sys.features.preempt.gives_up_in_kernel() {
            // It waits for the stopper, which is not looked for before the task sleeps.
            self.cpus[cpu as usize].moving = Some(id);
            return self.block(cpu, id, Wait::Migration, Stage::Granted);
        }
        self.advance(id);
    }

    /// Restricts the child that `id` created last to the CPUs of a mask.
    fn pin_child(&mut self, id: TaskId, mask: u32) {
        self.enter_syscall(id, KernelOp::SetSched);
        if let Some(&child) = self.tasks[id.idx()].children.last() {
            self.tasks[child.idx()].affinity = Some(mask);
            let allowed = self.allowed(child);
            self.allow(child, allowed);
        }
        self.advance(id);
    }

    /// Sets where a task may run; it moves at once if it is runnable, and when it wakes up if it
    /// sleeps. Who enqueues one on its way asks for its move.
    pub(super) fn allow(&mut self, id: TaskId, allowed: CpuMask) {
        let cpu = Cpu(self.host.cpu);
        let parked = |sys, task| sched::set_affinity_parked(sys, cpu, task, allowed);
        if self.real_time(id).is_some() {
            return self.allow_real_time(id, allowed);
        }
        let done = if let Some(task) = &mut self.host.parked[id.idx()] {
            parked(&self.sys, task)
        } else if self.sys.task[id.idx()].on_rq() != OnRq::No {
            let moved = self.engine(|cx, rqs| sched::set_affinity(cx, rqs, id, allowed));
            moved != Moved::NoCpu
        } else {
            let on_its_way = on_its_way(&mut self.cpus, id);
            on_its_way.is_none_or(|task| parked(&self.sys, task))
        };
        debug_assert!(done, "masks of a workload have a CPU");
    }

    /// The CPUs that a task may use: its own choice, in its group's cpuset.
    pub(super) fn allowed(&self, id: TaskId) -> CpuMask {
        let task = &self.tasks[id.idx()];
        match task.affinity {
            Some(mask) => self.mask(mask, task.cgroup),
            None => self.cpuset[task.cgroup as usize],
        }
    }

    /// The CPUs of a mask that a group may use.
    fn in_cpuset(&self, mask: u32, group: u32) -> CpuMask {
        let own: CpuMask = self.workload.masks[mask as usize]
            .iter()
            .filter(|c| (**c as usize) < self.cpus.len())
            .map(|c| Cpu(*c))
            .collect();
        own.and(&self.cpuset[group as usize])
    }

    /// The same; the group's, if that leaves none, as for a task that has its mask when it comes
    /// into the group.
    pub(super) fn mask(&self, mask: u32, group: u32) -> CpuMask {
        let both = self.in_cpuset(mask, group);
        if both.is_empty() {
            self.cpuset[group as usize]
        } else {
            both
        }
    }
}
