//! One step of kernel code on a CPU, then the next.

use fairground::host::StopWork;
use fairground::place::{Access, Func, task};
use fairground::sched::{self, EnqueueAt, HigherComes};
use fairground::task::{Placed, Prev, WakeKind};
use fairground::value::{Cpu, TaskId};

use super::Sim;
use super::idle::WokenBy;
use super::task::{Life, Stage, Wait};
use super::todo::Todo;
use crate::cache::Ps;
use crate::costs::KernelOp;
use crate::host::Place;

impl Sim<'_> {
    /// `cpu` goes on at `at`: with a step that waits, with a switch, with user code, or idle.
    pub(super) fn work(&mut self, cpu: u32, at: Ps) {
        let c = cpu as usize;
        if !self.cpus[c].irqs.is_empty() && self.interrupt_waits(cpu, at) {
            return;
        }
        if self.cpus[c].user_since.is_some() {
            if self.still_computes(cpu, at) {
                return;
            }
            self.stop_user(cpu, at);
        }
        self.stop_spin(cpu, at);
        if self.cpus[c].idle.is_some() {
            return self.come_out(cpu, at, WokenBy::Other);
        }
        self.host.begin(cpu, at);
        let owed = std::mem::take(&mut self.cpus[c].owes);
        if owed > 0 {
            self.host.stall(Place::Op(KernelOp::MutexSpin), owed);
        }
        // What woke it may have been called off meanwhile.
        if self.end_idle_state(cpu) && (self.cpus[c].irqs_off() || self.has_nothing_to_do(cpu)) {
            self.step_done(cpu);
            return self.go_on(cpu);
        }
        if self.sys.features.preempt.preempts_kernel() {
            self.preempt_call(c);
        }
        if let Some(todo) = self.cpus[c].todo.pop_front() {
            self.do_todo(cpu, todo);
        } else if let Some(work) = self.cpus[c].stops.pop_front() {
            self.stop(cpu, work);
        } else if self.rqs[c].need_resched || self.cpus[c].curr.is_none() {
            if self.rqs[c].need_resched && self.cpus[c].curr.is_none() {
                // The idle loop ends (`tick_nohz_idle_exit`), then comes the switch.
                let out = self.host.prices.idle_loop_exit;
                self.host.spend(Place::IdleExit, out);
                self.restart_tick(cpu);
            }
            self.end_wake_up(cpu);
            self.switch(cpu, Prev::Runnable);
        } else {
            if let Some(held) = &mut self.host.held {
                held.take(cpu);
            }
            self.run_task(cpu);
            return;
        }
        self.step_done(cpu);
        self.host.counters.in_timer = false;
        self.go_on(cpu);
    }

    /// Whether `cpu` goes idle, or back to idle.
    pub(super) fn has_nothing_to_do(&self, cpu: u32) -> bool {
        let state = &self.cpus[cpu as usize];
        let idle = state.curr.is_none() && !state.has_steps();
        idle && !self.rqs[cpu as usize].need_resched && !state.pending.wakeups
    }

    /// Whoever is to make room does so in the midst of its system call, if nothing forbids it: the
    /// rest of it waits for its next turn (`preempt_schedule`, `preempt_schedule_irq`).
    fn preempt_call(&mut self, c: usize) {
        let state = &mut self.cpus[c];
        let asked = self.rqs[c].need_resched || !state.stops.is_empty();
        let Some(id) = state.curr.filter(|_| asked) else {
            return;
        };
        let spins = match state.todo.front() {
            Some(Todo::LockPipe { chan, .. }) => {
                self.chans[*chan as usize].lines.mutex.spins(c as u32, id)
            }
            _ => false,
        };
        let can = state.todo.front().is_some_and(Todo::is_preemptible) && !spins;
        let task = &mut self.tasks[id.idx()];
        // Who has said that it will sleep does so.
        if can && task.life == Life::Runnable {
            debug_assert!(state.todo.iter().all(Todo::is_of_call), "{:?}", state.todo);
            task.kept.append(&mut state.todo);
        }
    }

    /// Serves the first interrupt that waits, if it may come now. Whether nothing else is to be
    /// done.
    fn interrupt_waits(&mut self, cpu: u32, at: Ps) -> bool {
        let c = cpu as usize;
        let mut waited = false;
        while !self.cpus[c].irqs_off()
            && let Some(due) = self.cpus[c].irqs.pop_front()
        {
            if !self.is_stale(due) {
                self.interrupt(cpu, at, due);
                return true;
            }
            waited = true;
        }
        waited && self.cpus[c].idle.is_some()
    }

    #[inline(never)]
    fn do_todo(&mut self, cpu: u32, todo: Todo) {
        match todo {
            Todo::Wake {
                task, kind, waker, ..
            } => self.wake(cpu, task, kind, waker),
            Todo::Enqueue { placed, kind } => self.enqueue(cpu, placed, kind),
            Todo::FutexWait { mutex, first } => self.futex_wait_setup(cpu, mutex, first),
            Todo::LockPipe { chan, end, attempt } => self.try_lock_pipe(cpu, chan, end, attempt),
            Todo::WaitInPipe { chan, end } => self.wait_in_pipe(cpu, chan, end),
            Todo::EndPipeCall { chan, end } => self.end_pipe_call(cpu, chan, end),
            Todo::WakePipeWaiter { chan } => self.wake_pipe_waiter(cpu, chan as usize),
            Todo::SendMore { chan } => self.send_more(cpu, chan),
            Todo::Schedule(prev) => self.give_up(cpu, prev),
            Todo::Long(rest) => self.long(cpu, rest),
            Todo::TimerTail => self.program_timer(),
            Todo::Softirq(kick) => {
                let rest = self.engine(|cx, rqs| sched::begin_kick(cx, rqs, kick));
                self.wait_for_words(cpu, rest);
            }
            Todo::Later(later) => self.go_on_later(cpu, later),
        }
    }

    fn stop(&mut self, cpu: u32, work: StopWork) {
        // In, and out again: the stopper is a thread of its own.
        self.host
            .spend(Place::SwitchTo, 2 * self.host.prices.switch);
        let switch = self.engine(|cx, rqs| sched::run_stopper(cx, rqs, work));
        self.switched(cpu, switch.prev, switch.next);
        if work != StopWork::Migrate {
            return;
        }
        self.stop_real_time(cpu);
        if let Some(task) = self.cpus[cpu as usize].moving.take() {
            self.cpus[cpu as usize].todo.push_back(Todo::Wake {
                task,
                kind: WakeKind::Wake,
                waker: None,
                atomic: true,
            });
        }
    }

    /// The running task blocks or exits, unless it was woken meanwhile.
    fn give_up(&mut self, cpu: u32, prev: Prev) {
        let Some(id) = self.cpus[cpu as usize].curr else {
            debug_assert!(false, "nobody to give up the CPU");
            return;
        };
        let task = &mut self.tasks[id.idx()];
        if prev == Prev::Sleeps && task.woken {
            task.woken = false;
            task.life = Life::Runnable;
            return;
        }
        if prev == Prev::Sleeps {
            self.host.op(KernelOp::SleepStart);
        }
        self.switch(cpu, prev);
    }

    /// What comes between a wake-up and the switch that follows, as a recorded machine shows it.
    fn end_wake_up(&mut self, cpu: u32) {
        if let Some(held) = &mut self.host.held {
            let tail = held.take(cpu);
            self.host.spend(Place::Other, tail);
        }
    }

    fn switch(&mut self, cpu: u32, prev: Prev) {
        if self.has_real_time && self.switch_real_time(cpu, prev) {
            return;
        }
        let switch = self.engine(|cx, rqs| sched::schedule(cx, rqs, prev));
        self.switched(cpu, switch.prev, switch.next);
        if self.has_real_time && switch.next.is_none() && self.real_time_waits(cpu) {
            // Fair tasks had the CPU to themselves, and have nothing to do.
            self.switch_real_time(cpu, Prev::Runnable);
        }
    }

    /// The scheduler has chosen `next`.
    pub(super) fn switched(&mut self, cpu: u32, prev: Option<TaskId>, next: Option<TaskId>) {
        let c = cpu as usize;
        if prev == next {
            self.cpus[c].curr = next;
            return;
        }
        self.host.finish_task_switch();
        if next.is_some() {
            self.host.op(KernelOp::NotifyResume);
        }
        if let Some(id) = prev {
            let at = self.host.at;
            self.tasks[id.idx()].off_cpu_at = at;
            self.tasks[id.idx()].on_cpu = None;
            if self.tasks[id.idx()].life == Life::Exited {
                self.release_task(id);
            }
        }
        self.cpus[c].curr = next;
        if let Some(id) = next {
            self.tasks[id.idx()].on_cpu = Some(cpu);
            self.tasks[id.idx()].comes_back = true;
            self.restart_tick(cpu);
        }
    }

    /// Wakes a task: finds out where it is and, if it sleeps, where it should run.
    fn wake(&mut self, cpu: u32, id: TaskId, kind: WakeKind, waker: Option<TaskId>) {
        let task = &mut self.tasks[id.idx()];
        match task.life {
            Life::Blocked if task.on_cpu.is_some() => {
                // Still on its way to sleep: it will see that it need not.
                task.woken = true;
                task.wait = Wait::None;
                let queued = task.real_time.is_some()
                    || self.engine(|cx, rqs| sched::wake_queued(cx, rqs, id, kind));
                debug_assert!(queued, "task {} runs", id.0);
                self.host.op(KernelOp::WakeEnd);
                return;
            }
            Life::Blocked => {}
            Life::New => {
                task.life = Life::Waking;
                self.start_new(id);
                return;
            }
            Life::Runnable | Life::Waking | Life::Exited => return,
        }
        task.life = Life::Waking;
        task.wait = Wait::None;
        let off_cpu_at = task.off_cpu_at;
        if task.real_time.is_some() {
            return self.wake_real_time(id, HigherComes::Woken);
        }
        if self.engine(|cx, rqs| sched::wake_queued(cx, rqs, id, kind)) {
            self.tasks[id.idx()].life = Life::Runnable;
            self.host.op(KernelOp::WakeEnd);
            return;
        }
        // It may still be about to be switched out on another CPU (`p->on_cpu`).
        let leaves = off_cpu_at > self.host.at;
        let asked = leaves && self.engine(|cx, _| sched::ttwu_on_cpu(cx, id)) == EnqueueAt::Target;
        let Some(mut task) = self.host.parked[id.idx()].take() else {
            debug_assert!(false, "{}", crate::host::no_task(id));
            return;
        };
        if asked {
            let placed = Placed {
                cpu: self.task_cpu(id),
                migrated: false,
            };
            let list = &mut self.cpus[placed.cpu.idx()].wake_list;
            list.push_back((task, placed, kind));
            return self.host.op(KernelOp::WakeEnd);
        }
        self.host
            .spin_until(Place::Func(Func::TryToWakeUp), off_cpu_at);
        let placed = self.engine(|cx, _| sched::select_cpu(cx, &mut task, waker, kind));
        self.cpus[cpu as usize].enqueue_next(task, placed, kind);
    }

    fn start_new(&mut self, id: TaskId) {
        if self.real_time(id).is_some() {
            return self.wake_real_time(id, HigherComes::New);
        }
        let Some(mut task) = self.host.parked[id.idx()].take() else {
            debug_assert!(false, "{}", crate::host::no_task(id));
            return;
        };
        let kind = WakeKind::Fork;
        let waker = self.tasks[id.idx()].parent;
        let placed = self.engine(|cx, _| sched::select_cpu(cx, &mut task, waker, kind));
        let cpu = self.host.cpu as usize;
        self.cpus[cpu].enqueue_next(task, placed, kind);
    }

    fn enqueue(&mut self, cpu: u32, placed: Placed, kind: WakeKind) {
        let Some(task) = self.cpus[cpu as usize].leaving.pop() else {
            debug_assert!(false, "nobody to enqueue");
            return;
        };
        let id = task.body.id;
        if kind != WakeKind::Fork {
            let at = self.engine(|cx, _| sched::ttwu_queue_wakelist(cx, id, placed.cpu));
            if at == EnqueueAt::Target {
                self.cpus[placed.cpu.idx()]
                    .wake_list
                    .push_back((task, placed, kind));
                return self.host.op(KernelOp::WakeEnd);
            }
        }
        self.tasks[id.idx()].life = Life::Runnable;
        self.engine(|cx, rqs| sched::enqueue_woken(cx, rqs, task, placed, kind));
        self.host.op(KernelOp::WakeEnd);
    }

    /// Sends a wake-up to `id` as a step of the executing CPU, after those that wait already; the
    /// lock of a wait queue is held.
    pub(super) fn queue_wake(&mut self, cpu: u32, id: TaskId, kind: WakeKind) {
        self.push_wake(cpu, id, kind, true);
    }

    /// The same with no lock held, as by a futex (`wake_up_q`).
    pub(super) fn queue_wake_unlocked(&mut self, cpu: u32, id: TaskId, kind: WakeKind) {
        self.push_wake(cpu, id, kind, false);
    }

    fn push_wake(&mut self, cpu: u32, id: TaskId, kind: WakeKind, atomic: bool) {
        let waker = self.cpus[cpu as usize].curr;
        self.cpus[cpu as usize].todo.push_back(Todo::Wake {
            task: id,
            kind,
            waker,
            atomic,
        });
    }

    /// The running task goes to sleep for `wait`; the operation goes on at stage `then`.
    pub(super) fn block(&mut self, cpu: u32, id: TaskId, wait: Wait, then: Stage) {
        // `set_current_state`: a waker must not see the condition as it was and the state as it is.
        let place = Place::Op(KernelOp::WaitQueue);
        self.host.touch_task(place, id, task::STATE, Access::Rmw);
        let task = &mut self.tasks[id.idx()];
        task.life = Life::Blocked;
        task.wait = wait;
        task.stage = then;
        self.cpus[cpu as usize]
            .todo
            .push_back(Todo::Schedule(Prev::Sleeps));
    }

    /// The CPU on which a task was last.
    pub(crate) fn task_cpu(&self, id: TaskId) -> Cpu {
        Cpu(self.sys.task[id.idx()]
            .cpu
            .load(std::sync::atomic::Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use fairground::task::WakeKind;
    use fairground::value::TaskId;

    use super::*;
    use crate::cache::NS;
    use crate::machine::testing::{at_5ms, server};

    #[test]
    fn a_wake_up_before_the_sleep_is_traced_and_takes_time() {
        at_5ms(&server(2), "hogs --tasks 2 --duration 10ms", &[], |sim| {
            for cpu in [0, 1] {
                let id = sim.cpus[cpu].curr.expect("a hog");
                sim.tasks[id.idx()].life = Life::Blocked;
                let (at, wakeups) = (sim.host.at, sim.host.counters.wakeups);
                sim.wake(0, id, WakeKind::Wake, sim.cpus[0].curr);
                assert_eq!(sim.host.counters.wakeups, wakeups + 1);
                assert!(sim.host.at > at + 10 * NS);
                assert!(sim.tasks[id.idx()].woken);
            }
        });
    }

    /// How long a wake-up of a task takes that needs 20 us more to get off its CPU, and whether
    /// that CPU is to enqueue it.
    fn wake_one_that_leaves(how: &str) -> (Ps, bool) {
        let set = [("ttwu_on_cpu", how)];
        at_5ms(
            &server(2),
            "sleepers --tasks 1 --duration 20ms --period 100ms",
            &set,
            |sim| {
                let id = TaskId(0);
                assert!(sim.host.parked[0].is_some(), "it sleeps");
                let cpu = sim.task_cpu(id);
                let waker = 1 - cpu.0;
                let at = sim.now;
                sim.host.begin(waker, at);
                sim.tasks[0].off_cpu_at = at + 20_000 * NS;
                sim.wake(waker, id, WakeKind::Wake, None);
                let listed = !sim.cpus[cpu.idx()].wake_list.is_empty();
                (sim.host.at - at, listed)
            },
        )
    }

    #[test]
    fn a_task_that_is_switched_out_is_left_to_its_cpu_or_waited_for() {
        let (took, listed) = wake_one_that_leaves("wake-list");
        assert!(listed && took < 5_000 * NS, "{took}");
        let (took, listed) = wake_one_that_leaves("spin");
        assert!(!listed && took >= 20_000 * NS, "{took}");
    }
}
