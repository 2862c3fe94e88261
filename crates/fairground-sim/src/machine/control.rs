//! Holding a run to exact times: what a recording fixes and a benchmark leaves to chance.

use fairground::fair::bandwidth;
use fairground::value::{Cpu, CpuMask, TaskId};

use super::hrtimer::Hrtimer;
use super::idle::WokenBy;
use super::{Sim, Stuck};
use crate::cache::NS;
use crate::host::{BOOT_NS, Jiffies};
use crate::tails::{Held, Tails};
use crate::workload::program::Born;

impl Sim<'_> {
    /// The ticks of all CPUs fall on `phase_ns` and multiples of the tick after it.
    ///
    /// Since Linux 6.4 the tick is aligned to the clock, so a recording whose window starts on a
    /// multiple of the tick has phase 0.
    pub fn align_ticks(&mut self, phase_ns: u64) {
        self.tick_phase = phase_ns * NS % self.tick;
        self.host.jiffies = Jiffies::from_phase(self.tick_phase);
    }

    /// The quota periods of `group` end at `phase_ns` and whole periods after it.
    pub fn align_periods(&mut self, group: usize, phase_ns: u64) {
        let (tg, limit) = (self.groups[group], self.limits[group]);
        if limit.quota_ns.is_some() {
            let phase = (phase_ns + BOOT_NS) % limit.period_ns.max(1);
            self.host.begin(0, 0);
            self.engine(|cx, _| bandwidth::align_period(cx, tg, phase));
            self.drain_requests(0);
        }
    }

    /// Wake-ups take so much beyond the model.
    pub fn hold_to(&mut self, tails: Tails) {
        let held = Held::new(tails, self.cpus.len(), self.templates());
        self.host.held = Some(Box::new(held));
    }

    /// The initial task number `task` sleeps until `at_ns`, and its grid begins there.
    pub fn start_at(&mut self, task: usize, at_ns: u64) {
        let task = &mut self.tasks[task];
        task.born_ns = at_ns;
        task.grid_ns = at_ns;
        task.due_ns = at_ns;
    }

    /// The initial task number `task`, which does not exist yet, is created at `at_ns` by `cpu`.
    pub fn create_at(&mut self, task: usize, at_ns: u64, cpu: u32) {
        self.start_at(task, at_ns);
        let id = TaskId(task as u32);
        for state in &mut self.cpus {
            state.hrtimers.retain(|key, _| key.1 != Hrtimer::Wait(id));
        }
        let (cpu, at) = (cpu.min(self.cpus.len() as u32 - 1), at_ns * NS);
        self.host.begin(cpu, 0);
        self.set_wait(cpu, id, at, at);
    }

    /// The initial tasks come into being each on its CPU of `places`, if it may be there, and are
    /// held there until `until_ns`.
    ///
    /// # Errors
    /// [`Stuck`], as of any run.
    pub fn place(&mut self, places: &[Option<u32>], until_ns: u64) -> Result<(), Stuck> {
        let mut held = Vec::new();
        for (task, place) in (0..).map(TaskId).zip(places) {
            let allowed = self.allowed(task);
            let here = place.map(Cpu).filter(|cpu| allowed.has(*cpu));
            if let (Some(cpu), Some(parked)) = (here, &mut self.host.parked[task.idx()]) {
                parked.body.cpus_allowed = CpuMask::of(cpu);
                held.push((task, allowed));
            }
        }
        self.run_to(until_ns)?;
        self.open_affinity(held);
        Ok(())
    }

    /// Runs all events before `at_ns`.
    ///
    /// # Errors
    /// [`Stuck`], as of any run.
    pub fn run_to(&mut self, at_ns: u64) -> Result<(), Stuck> {
        while !self.ended && self.queue.next_at().is_some_and(|at| at < at_ns * NS) {
            self.one_event()?;
        }
        Ok(())
    }

    /// Whether anything happens before `at_ns`.
    pub(crate) fn is_due_before(&mut self, at_ns: u64) -> bool {
        self.queue.next_at().is_some_and(|at| at / NS < at_ns)
    }

    /// Sets the CPUs of tasks, as an interrupt on CPU 0 would.
    pub(crate) fn open_affinity(&mut self, tasks: impl IntoIterator<Item = (TaskId, CpuMask)>) {
        let at = self.now.max(self.cpus[0].busy_until);
        self.stop_user(0, at);
        self.host.begin(0, at);
        if self.cpus[0].idle.is_some() {
            self.leave_idle(0, WokenBy::Other);
        }
        for (task, mask) in tasks {
            self.allow(task, mask);
        }
        self.step_done(0);
        self.go_on(0);
    }

    /// Template of each task that ever existed, by task number.
    pub fn templates(&self) -> Vec<u32> {
        self.tasks.iter().map(|t| t.template).collect()
    }

    /// What each task that ever existed began with, by task number.
    pub fn born(&self) -> &[Born] {
        &self.born
    }
}
