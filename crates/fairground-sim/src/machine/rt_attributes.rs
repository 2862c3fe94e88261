//! Changes of how a real-time task is scheduled: where it may run, and in which group it is.

use fairground::event::Migration;
use fairground::host::{Kick, StopWork};
use fairground::sched;
use fairground::task::Prev;
use fairground::value::{Cpu, CpuMask, TaskId};

use super::Sim;
use super::task::{Stage, Wait};
use crate::costs::KernelOp;
use crate::workload::program::Op;

impl Sim<'_> {
    /// The running real-time task changes where it may run, or its group, of which it would only be
    /// a part in another class. Nice value, slice and policy stay as they are (programs do not
    /// change the class).
    pub(super) fn set_real_time_attribute(&mut self, cpu: u32, id: TaskId, op: Op) {
        match op {
            Op::SetAffinity(mask) => self.tasks[id.idx()].affinity = Some(mask),
            Op::SetCgroup(group) => {
                self.host.op(KernelOp::CgroupAttach);
                // What it has run so far is of the group that it leaves.
                self.charge_real_time(cpu, id);
                let tg = self.groups[group as usize];
                self.sys.open_group(tg);
                self.tasks[id.idx()].cgroup = group;
                if let Some(task) = &mut self.host.parked[id.idx()] {
                    task.body.tg = tg;
                }
            }
            _ => {}
        }
        let allowed = self.allowed(id);
        self.allow_real_time(id, allowed);
        let waits = !self.sys.features.preempt.gives_up_in_kernel();
        if self.must_leave(cpu) == Some(id) && waits {
            // It sleeps until the stopper has looked, and is woken to another CPU.
            self.cpus[cpu as usize].moving = Some(id);
            return self.block(cpu, id, Wait::Migration, Stage::Granted);
        }
        self.advance(id);
    }

    /// Sets where a real-time task may run. If it waits on another CPU it goes at once; if it runs
    /// there the stopper sends it away; if it sleeps it is woken elsewhere.
    pub(super) fn allow_real_time(&mut self, id: TaskId, allowed: CpuMask) {
        let this = Cpu(self.host.cpu);
        let Some(task) = &mut self.host.parked[id.idx()] else {
            return;
        };
        let set = sched::set_affinity_parked(&self.sys, this, task, allowed);
        debug_assert!(set, "a mask has a CPU of the machine");
        let cpu = self.task_cpu(id).0;
        if allowed.has(Cpu(cpu)) {
            return;
        }
        if self.must_leave(cpu) == Some(id) {
            self.kick(
                this.0,
                Cpu(cpu),
                Kick::Stop(StopWork::Migrate),
                self.host.at,
            );
        } else if self.cpus[cpu as usize].rt.waiting().any(|task| task == id) {
            let to = self.chosen_for(id);
            self.move_real_time(id, cpu, to, Migration::Affinity);
        }
    }

    /// The stopper has the CPU: a real-time task that ran here and may not any more goes elsewhere.
    pub(super) fn stop_real_time(&mut self, cpu: u32) {
        let Some(id) = self.must_leave(cpu) else {
            return;
        };
        let to = self.chosen_for(id);
        self.switch_real_time(cpu, Prev::Runnable);
        self.move_real_time(id, cpu, to, Migration::Affinity);
    }

    /// The real-time task that runs on `cpu` and may not.
    fn must_leave(&self, cpu: u32) -> Option<TaskId> {
        let (id, _) = self.runs_real_time(cpu)?;
        (!self.allowed_of(id).has(Cpu(cpu))).then_some(id)
    }

    /// The CPU that was chosen when the task's mask was set.
    fn chosen_for(&self, id: TaskId) -> u32 {
        let task = self.host.parked[id.idx()].as_ref();
        let chosen = task.and_then(|t| t.body.dest_cpu.or(t.body.cpus_allowed.first()));
        chosen.unwrap_or(self.task_cpu(id)).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::testing::{server, with};
    use crate::spec::Scenario;
    use crate::workload::Env;

    /// Wake-ups and moves by affinity of a task in 20 ms, in turns of 1 ms on two CPUs.
    fn counted(how: &str, preempt: &str) -> (u64, u64) {
        let text = format!(
            "duration = \"1s\"\n[[task]]\nname = \"a\"\naffinity = [0]\n{how}\n\
             steps = [{{ loop = \"forever\", steps = [{{ affinity = [1] }}, {{ run = \"100us\" }}, \
             {{ affinity = [0] }}, {{ run = \"100us\" }}, {{ sleep = \"800us\" }}] }}]\n"
        );
        let parsed = Scenario::parse("test.toml", &text);
        let workload = parsed.and_then(|s| s.workload(&Env { cpus: 2 }));
        let workload = workload.unwrap_or_else(|e| panic!("{e:?}"));
        with(&server(2), &workload, &[("preempt", preempt)], |sim| {
            sim.run_to(20_000_000).unwrap();
            let counters = &sim.host.counters;
            (
                counters.wakeups,
                counters.migrations[Migration::Affinity as usize],
            )
        })
    }

    /// The class makes no difference to the stopper.
    #[test]
    fn who_sends_itself_away_is_moved_while_it_waits() {
        let fifo = "policy = \"fifo\"\npriority = 9";
        for preempt in ["voluntary", "lazy", "full"] {
            for how in [fifo, ""] {
                // One wake-up a turn, by its timer, and two moves.
                let (wakeups, moves) = counted(how, preempt);
                assert!(moves >= 30, "{preempt}, {how}: {moves} moves");
                assert!(
                    moves.abs_diff(2 * wakeups) <= 2,
                    "{preempt}, {how}: {wakeups}, {moves}"
                );
            }
        }
        // There it sleeps until the stopper has looked, twice a turn.
        let (wakeups, _) = counted(fifo, "none");
        assert!(wakeups >= 45, "{wakeups} wake-ups");
    }

    /// The one that waits where it was runs there at once.
    #[test]
    fn the_cpu_that_is_left_takes_the_next() {
        let text = "duration = \"1s\"\n[[task]]\nname = \"a\"\naffinity = [0]\n\
                    policy = \"fifo\"\npriority = 9\nsteps = [{ run = \"5ms\" }, \
                    { affinity = [1] }, \"hog\"]\n[[task]]\nname = \"b\"\naffinity = [0]\n\
                    policy = \"fifo\"\npriority = 5\nsteps = [\"hog\"]\n";
        let parsed = Scenario::parse("test.toml", text);
        let workload = parsed.and_then(|s| s.workload(&Env { cpus: 2 })).unwrap();
        let ms = with(&server(2), &workload, &[], |sim| {
            sim.run_to(100_000_000).unwrap();
            [0, 1].map(|id| sim.charged_ns(TaskId(id), sim.now) / 1_000_000)
        });
        assert!(ms[0] >= 98 && ms[1] >= 93, "{ms:?}");
    }
}
