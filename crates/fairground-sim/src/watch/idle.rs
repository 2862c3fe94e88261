//! CPUs that were idle while tasks waited: what work conservation would not allow.
//!
//! A task counts as waiting in vain while it is runnable, does not run, is not held back by a
//! quota, and some CPU that it may use is idle. A CPU that is idle with a task of its own is about
//! to switch to it: neither of the two counts. What is lost at a moment is the smaller number of
//! such tasks and such CPUs.
//!
//! The kernel does not promise that this never happens: balancing is periodic, cache-hot tasks are
//! left where they are for a while, and an imbalance between NUMA nodes is allowed for as long as
//! it lasts. `check::waiting` holds a run to what it does promise.

use fairground::topology::Topology;
use fairground::value::{Cpu, CpuMask};

use super::{Change, May, Waiting, Who};
use crate::cache::{NS, Ps};

/// Bounds of [`IdleWaste::waits`], ns.
pub const LONGER_THAN_NS: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// What was lost in the measured time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleWaste {
    /// Time of all CPUs, ns.
    pub capacity_ns: u64,
    /// Time of CPUs that were idle while a task waited that could have run there, ns.
    pub cpu_ns: u64,
    /// The part of it in which they shared the last-level cache, ns.
    pub near_ns: u64,
    /// Stretches in which one task waited in vain for longer than [`LONGER_THAN_NS`].
    pub waits: [u64; 4],
    /// The longest.
    pub longest: Option<Longest>,
}

/// A stretch in which one task waited in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Longest {
    /// Who.
    pub who: Who,
    /// Where it waited when the stretch began.
    pub cpu: u32,
    /// A CPU that was idle then.
    pub idle_cpu: u32,
    /// Whether the two share the last-level cache.
    pub near: bool,
    /// From when, ns since the start of the run.
    pub from_ns: u64,
    /// How long, ns.
    pub ns: u64,
}

/// What is known up to now.
#[derive(Debug)]
pub(super) struct Ledger {
    cpus: Vec<CpuState>,
    tasks: Vec<TaskState>,
    span: Vec<CpuMask>,
    /// Idle CPUs without a task of their own, all and by cache.
    idle: CpuMask,
    idle_near: Vec<u32>,
    idle_all: u32,
    /// Tasks that wait behind others: those that may run everywhere, and those that may not.
    free: Vec<u32>,
    bound: Vec<u32>,
    free_near: Vec<u32>,
    from: Ps,
    /// What counts has begun.
    open: bool,
    last: Ps,
    lost: Ps,
    lost_near: Ps,
    waits: [u64; 4],
    longest: Option<(u32, Longest)>,
}

#[derive(Debug)]
struct CpuState {
    idle: bool,
    counts: bool,
    llc: usize,
    waiters: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct TaskState {
    runs: bool,
    /// Where it waits.
    cpu: Option<u32>,
    may: May,
    held: bool,
    /// In `free` or `bound`, and where.
    stuck: Option<usize>,
    /// Since when in vain, on which CPU it waited, and which was idle then.
    vain: Option<(Ps, u32, u32)>,
}

const AWAY: TaskState = TaskState {
    runs: false,
    cpu: None,
    may: May::Anywhere,
    held: false,
    stuck: None,
    vain: None,
};

impl Ledger {
    pub fn new(topology: &Topology, from: Ps) -> Self {
        let cpus = topology.nr_cpus();
        let state = |cpu: usize| CpuState {
            idle: true,
            counts: true,
            llc: topology.llc_of[cpu].idx(),
            waiters: Vec::new(),
        };
        let cpus: Vec<CpuState> = (0..cpus).map(state).collect();
        let span = topology.llc_span.clone();
        Self {
            tasks: Vec::new(),
            idle: CpuMask::first_n(cpus.len()),
            idle_near: span.iter().map(CpuMask::weight).collect(),
            idle_all: cpus.len() as u32,
            free: Vec::new(),
            bound: Vec::new(),
            free_near: vec![0; span.len()],
            span,
            cpus,
            from,
            open: false,
            last: from,
            lost: 0,
            lost_near: 0,
            waits: [0; 4],
            longest: None,
        }
    }

    pub fn see(&mut self, at: Ps, change: &Change) {
        self.count_up_to(at);
        self.open(at);
        match change {
            Change::Wake {
                task, cpu, waiting, ..
            } => {
                // Who runs has only been kept from going to sleep.
                if !self.task(*task).runs {
                    self.wait(at, *task, *cpu, waiting);
                }
            }
            Change::Switch { cpu, prev, next } => {
                self.cpus[*cpu as usize].idle = next.is_none();
                if let Some((task, waiting)) = prev {
                    self.task(*task).runs = false;
                    if let Some(waiting) = waiting {
                        self.wait(at, *task, *cpu, waiting);
                    }
                }
                if let Some((task, _)) = next {
                    self.leave(at, *task);
                    self.task(*task).runs = true;
                }
                self.settle(at, *cpu);
            }
            Change::Move { task, cpu, waiting } => {
                // Who ran has been put off its CPU by the stopper; who is asleep only stands there.
                let state = self.task(*task);
                if std::mem::take(&mut state.runs) || state.cpu.is_some() {
                    self.wait(at, *task, *cpu, waiting);
                }
            }
            Change::Hold { cpu, held } => {
                for i in 0..self.cpus[*cpu as usize].waiters.len() {
                    let task = self.cpus[*cpu as usize].waiters[i];
                    self.task(task).held = held.iter().any(|(t, _)| *t == task);
                }
                self.settle(at, *cpu);
            }
        }
    }

    /// What came of it up to `end`; `capacity` is the time of all CPUs.
    pub fn end(mut self, end: Ps, capacity: Ps, names: &dyn Fn(u32) -> Who) -> IdleWaste {
        self.count_up_to(end);
        self.open(end);
        let open: Vec<u32> = self.free.iter().chain(&self.bound).copied().collect();
        for task in open {
            self.close(end, task);
        }
        let longest = self.longest.map(|(task, longest)| Longest {
            who: names(task),
            ..longest
        });
        IdleWaste {
            capacity_ns: capacity / NS,
            cpu_ns: self.lost / NS,
            near_ns: self.lost_near / NS,
            waits: self.waits,
            longest,
        }
    }

    /// Once, when what counts has begun: stretches from before begin there, where each task waits
    /// by then and beside a CPU that is idle by then.
    fn open(&mut self, at: Ps) {
        if self.open || at <= self.from {
            return;
        }
        self.open = true;
        for i in 0..self.tasks.len() {
            let state = self.tasks[i];
            let here = state.cpu.zip(self.idle_beside(&state));
            if let (Some(_), Some((cpu, idle))) = (state.vain, here) {
                self.tasks[i].vain = Some((self.from, cpu, idle));
            }
        }
    }

    fn task(&mut self, task: u32) -> &mut TaskState {
        let task = task as usize;
        if self.tasks.len() <= task {
            self.tasks.resize(task + 1, AWAY);
        }
        &mut self.tasks[task]
    }

    /// Adds what was lost since the last change.
    fn count_up_to(&mut self, at: Ps) {
        let span = at.saturating_sub(self.last);
        if span == 0 {
            return;
        }
        self.last = at;
        if self.idle_all == 0 || self.free.len() + self.bound.len() == 0 {
            return;
        }
        let in_vain = |task: &&u32| self.tasks[**task as usize].vain.is_some();
        let bound = self.bound.iter().filter(in_vain).count();
        let tasks = (self.free.len() + bound) as u64;
        self.lost += span * tasks.min(u64::from(self.idle_all));
        let mut near = self.free_near.clone();
        for task in self.bound.iter().filter(in_vain) {
            if let Some(llc) = self.llc_with_idle(*task) {
                near[llc] += 1;
            }
        }
        let pairs = near.iter().zip(&self.idle_near);
        let near: u32 = pairs.map(|(tasks, cpus)| *tasks.min(cpus)).sum();
        self.lost_near += span * u64::from(near);
    }

    /// The cache below which a task waits, if it may use an idle CPU there.
    fn llc_with_idle(&self, task: u32) -> Option<usize> {
        let state = &self.tasks[task as usize];
        let llc = self.cpus[state.cpu? as usize].llc;
        let idle = self.idle.and(&self.span[llc]);
        state.may.allows_one_of(&idle).then_some(llc)
    }

    /// A task waits on `cpu` now, wherever it was.
    fn wait(&mut self, at: Ps, task: u32, cpu: u32, waiting: &Waiting) {
        let state = *self.task(task);
        if state.may != waiting.may {
            self.unstick(at, task);
        }
        if let Some(before) = state.cpu.filter(|before| *before != cpu) {
            self.cpus[before as usize].waiters.retain(|t| *t != task);
            self.move_near(task, before, cpu);
            self.task(task).cpu = Some(cpu);
            self.cpus[cpu as usize].waiters.push(task);
            self.settle(at, before);
        } else if state.cpu.is_none() {
            self.task(task).cpu = Some(cpu);
            self.cpus[cpu as usize].waiters.push(task);
        }
        let state = self.task(task);
        (state.may, state.held) = (waiting.may, waiting.held.is_some());
        self.settle(at, cpu);
    }

    fn move_near(&mut self, task: u32, from: u32, to: u32) {
        let state = &self.tasks[task as usize];
        if state.stuck.is_some() && state.may == May::Anywhere {
            self.free_near[self.cpus[from as usize].llc] -= 1;
            self.free_near[self.cpus[to as usize].llc] += 1;
        }
    }

    /// A task does not wait any more. The caller settles its CPU.
    fn leave(&mut self, at: Ps, task: u32) {
        let Some(cpu) = self.task(task).cpu else {
            return;
        };
        self.unstick(at, task);
        self.task(task).cpu = None;
        self.cpus[cpu as usize].waiters.retain(|t| *t != task);
        self.settle(at, cpu);
    }

    /// After a change on `cpu`: which of its tasks wait behind others, and whether it is idle
    /// without a task of its own.
    fn settle(&mut self, at: Ps, cpu: u32) {
        let idle = self.cpus[cpu as usize].idle;
        let waiters = &self.cpus[cpu as usize].waiters;
        let counts = idle && waiters.iter().all(|t| self.tasks[*t as usize].held);
        let counted = self.cpus[cpu as usize].counts;
        self.cpus[cpu as usize].counts = counts;
        // First, so that none of its own tasks takes it for the idle CPU beside which it waits.
        if counted && !counts {
            self.count_cpu(at, cpu, false);
        }
        let mut served = !idle;
        for i in 0..self.cpus[cpu as usize].waiters.len() {
            let task = self.cpus[cpu as usize].waiters[i];
            let state = self.tasks[task as usize];
            let stuck = !state.held && served && state.may != May::Here;
            served |= !state.held;
            match (state.stuck.is_some(), stuck) {
                (false, true) => self.stick(at, task),
                (true, false) => self.unstick(at, task),
                _ => {}
            }
        }
        if counts && !counted {
            self.count_cpu(at, cpu, true);
        }
    }

    /// A CPU is idle without a task of its own from now on, or not.
    fn count_cpu(&mut self, at: Ps, cpu: u32, counts: bool) {
        let llc = self.cpus[cpu as usize].llc;
        if counts {
            self.idle.set(Cpu(cpu));
            self.idle_near[llc] += 1;
            self.idle_all += 1;
        } else {
            self.idle.clear(Cpu(cpu));
            self.idle_near[llc] -= 1;
            self.idle_all -= 1;
        }
        for i in 0..self.bound.len() {
            self.look(at, self.bound[i]);
        }
        // The first one that is there, or the last one that was.
        if self.idle_all == u32::from(counts) {
            for i in 0..self.free.len() {
                self.look(at, self.free[i]);
            }
        }
    }

    /// A task waits behind others from now on.
    fn stick(&mut self, at: Ps, task: u32) {
        let state = self.tasks[task as usize];
        let list = if state.may == May::Anywhere {
            if let Some(cpu) = state.cpu {
                self.free_near[self.cpus[cpu as usize].llc] += 1;
            }
            &mut self.free
        } else {
            &mut self.bound
        };
        list.push(task);
        let place = list.len() - 1;
        self.tasks[task as usize].stuck = Some(place);
        self.look(at, task);
    }

    /// It does not any more.
    fn unstick(&mut self, at: Ps, task: u32) {
        self.close(at, task);
        let state = self.tasks[task as usize];
        let Some(place) = self.tasks[task as usize].stuck.take() else {
            return;
        };
        let list = if state.may == May::Anywhere {
            if let Some(cpu) = state.cpu {
                self.free_near[self.cpus[cpu as usize].llc] -= 1;
            }
            &mut self.free
        } else {
            &mut self.bound
        };
        list.swap_remove(place);
        if let Some(moved) = list.get(place) {
            self.tasks[*moved as usize].stuck = Some(place);
        }
    }

    /// Begins or ends a stretch of waiting in vain.
    fn look(&mut self, at: Ps, task: u32) {
        let state = self.tasks[task as usize];
        let in_vain = state.may.allows_one_of(&self.idle);
        match state.vain {
            None if in_vain => {
                let idle = self.idle_beside(&state);
                self.tasks[task as usize].vain =
                    state.cpu.zip(idle).map(|(cpu, idle)| (at, cpu, idle));
            }
            Some(_) if !in_vain => self.close(at, task),
            _ => {}
        }
    }

    /// An idle CPU that a task may use, below the same cache if there is one.
    fn idle_beside(&self, state: &TaskState) -> Option<u32> {
        let idle = match state.may {
            May::Within(mask) => self.idle.and(&mask),
            _ => self.idle,
        };
        let llc = self.cpus[state.cpu? as usize].llc;
        let near = idle.and(&self.span[llc]).first();
        near.or_else(|| idle.first()).map(|cpu| cpu.0)
    }

    fn close(&mut self, at: Ps, task: u32) {
        let Some((since, cpu, idle_cpu)) = self.tasks[task as usize].vain.take() else {
            return;
        };
        let since = since.max(self.from);
        let ns = at.saturating_sub(since) / NS;
        for (count, bound) in self.waits.iter_mut().zip(LONGER_THAN_NS) {
            *count += u64::from(ns > bound);
        }
        let longest = self.longest.as_ref().map_or(0, |(_, l)| l.ns);
        if ns > longest {
            let llc = |cpu: u32| self.cpus[cpu as usize].llc;
            let found = Longest {
                who: Who::default(),
                cpu,
                idle_cpu,
                near: llc(cpu) == llc(idle_cpu),
                from_ns: since / NS,
                ns,
            };
            self.longest = Some((task, found));
        }
    }
}

impl May {
    fn allows_one_of(&self, cpus: &CpuMask) -> bool {
        match self {
            Self::Anywhere => !cpus.is_empty(),
            Self::Here => false,
            Self::Within(mask) => mask.intersects(cpus),
        }
    }
}

#[cfg(test)]
mod tests {
    use fairground::topology::{CpuPlace, Machine};

    use super::*;

    const US: Ps = 1000 * NS;

    /// Four CPUs, two for each cache.
    fn ledger() -> Ledger {
        ledger_from(0)
    }

    /// The same, of which what was before `from` does not count.
    fn ledger_from(from: Ps) -> Ledger {
        let place = |n: u32| CpuPlace {
            core: n,
            llc: n / 2,
            package: n / 2,
            ..CpuPlace::default()
        };
        let machine = Machine {
            cpus: (0..4).map(place).collect(),
            ..Machine::default()
        };
        Ledger::new(&Topology::build(&machine).expect("a machine"), from)
    }

    fn wake(task: u32, cpu: u32, may: May) -> Change {
        let waiting = Waiting { may, held: None };
        let group = 0;
        Change::Wake {
            task,
            group,
            cpu,
            waiting,
        }
    }

    fn switch(cpu: u32, prev: Option<u32>, next: Option<u32>) -> Change {
        let prev = prev.map(|p| (p, None));
        let next = next.map(|n| (n, 0));
        Change::Switch { cpu, prev, next }
    }

    fn moved(task: u32, cpu: u32) -> Change {
        let (may, held) = (May::Anywhere, None);
        let waiting = Waiting { may, held };
        Change::Move { task, cpu, waiting }
    }

    fn who(task: u32) -> Who {
        let name = format!("t{task}");
        Who { task, name }
    }

    /// CPU 0 runs task 0, and task 1 waits there from 10 us on.
    fn one_waits(may: May) -> Ledger {
        let mut l = ledger();
        l.see(0, &wake(0, 0, May::Anywhere));
        l.see(US, &switch(0, None, Some(0)));
        l.see(10 * US, &wake(1, 0, may));
        l
    }

    #[test]
    fn a_task_that_waits_beside_an_idle_cpu_is_counted_until_it_runs() {
        let mut l = one_waits(May::Anywhere);
        l.see(1510 * US, &switch(0, Some(0), Some(1)));
        let found = l.end(2000 * US, 4 * 2000 * US, &who);
        assert_eq!((found.cpu_ns, found.near_ns), (1_500_000, 1_500_000));
        assert_eq!(found.waits, [1, 1, 1, 0]);
        let longest = found.longest.unwrap();
        assert_eq!((longest.cpu, longest.idle_cpu, longest.near), (0, 1, true));
        assert_eq!((longest.from_ns, longest.ns), (10_000, 1_500_000));
        assert_eq!(longest.who, who(1));
    }

    #[test]
    fn a_cpu_on_its_way_to_its_task_is_not_idle_and_its_task_does_not_wait() {
        let mut l = ledger();
        l.see(0, &wake(0, 0, May::Anywhere));
        l.see(50 * US, &switch(0, None, Some(0)));
        let found = l.end(100 * US, 400 * US, &who);
        assert_eq!((found.cpu_ns, found.waits[0]), (0, 0));
    }

    #[test]
    fn affinity_is_heard() {
        let found = one_waits(May::Here).end(100 * US, 400 * US, &who);
        assert_eq!(found.cpu_ns, 0);
        // Only CPUs of the other cache.
        let far = May::Within(CpuMask::of(Cpu(0)).or(&CpuMask::of(Cpu(3))));
        let mut l = one_waits(far);
        l.see(20 * US, &wake(2, 3, May::Anywhere));
        l.see(30 * US, &switch(3, None, Some(2)));
        let found = l.end(100 * US, 400 * US, &who);
        // CPU 3 was idle for 10 us, then on its way to task 2.
        assert_eq!((found.cpu_ns, found.near_ns), (10_000, 0));
        assert_eq!(found.longest.unwrap().idle_cpu, 3);
    }

    /// It waited on CPU 0 beside idle CPU 1 before, and since then on CPU 2 beside CPU 3.
    #[test]
    fn a_wait_from_before_what_counts_is_told_as_it_is_there() {
        let mut l = ledger_from(25 * US);
        for (task, cpu) in [(0, 0), (2, 2)] {
            l.see(0, &wake(task, cpu, May::Anywhere));
            l.see(US, &switch(cpu, None, Some(task)));
        }
        l.see(10 * US, &wake(1, 0, May::Anywhere));
        l.see(15 * US, &wake(3, 1, May::Anywhere));
        l.see(16 * US, &switch(1, None, Some(3)));
        l.see(20 * US, &moved(1, 2));
        l.see(50 * US, &switch(2, Some(2), Some(1)));
        let longest = l.end(100 * US, 400 * US, &who).longest.unwrap();
        assert_eq!((longest.cpu, longest.idle_cpu, longest.near), (2, 3, true));
        assert_eq!((longest.from_ns, longest.ns), (25_000, 25_000));
    }

    #[test]
    fn who_is_held_back_by_a_quota_does_not_wait_in_vain() {
        let mut l = one_waits(May::Anywhere);
        let held = vec![(1, 7)];
        l.see(20 * US, &Change::Hold { cpu: 0, held });
        let held = Vec::new();
        l.see(60 * US, &Change::Hold { cpu: 0, held });
        l.see(65 * US, &switch(0, Some(0), Some(1)));
        let found = l.end(100 * US, 400 * US, &who);
        assert_eq!(found.cpu_ns, 15_000);
    }

    /// Idle CPU 0 has two tasks again at once; the second waits behind the first, which CPU 0 is
    /// about to run.
    #[test]
    fn a_cpu_whose_tasks_are_let_go_is_not_the_idle_one() {
        let mut l = ledger();
        for task in [0, 1] {
            l.see(0, &wake(task, 0, May::Anywhere));
        }
        let held = vec![(0, 7), (1, 7)];
        l.see(0, &Change::Hold { cpu: 0, held });
        let held = Vec::new();
        l.see(50 * US, &Change::Hold { cpu: 0, held });
        l.see(53 * US, &switch(0, None, Some(0)));
        l.see(80 * US, &switch(0, Some(0), Some(1)));
        let longest = l.end(100 * US, 400 * US, &who).longest.unwrap();
        assert_eq!((longest.cpu, longest.idle_cpu, longest.near), (0, 1, true));
        assert_eq!((longest.from_ns, longest.ns), (50_000, 30_000));
    }

    #[test]
    fn no_more_is_lost_than_there_are_idle_cpus() {
        let mut l = one_waits(May::Anywhere);
        for task in 2..12 {
            l.see(10 * US, &wake(task, 0, May::Anywhere));
        }
        // Eleven wait; two caches with one and two idle CPUs.
        let found = l.end(20 * US, 80 * US, &who);
        assert_eq!((found.cpu_ns, found.near_ns), (30_000, 10_000));
    }

    #[test]
    fn moving_to_another_busy_cpu_goes_on_waiting() {
        let mut l = one_waits(May::Anywhere);
        l.see(20 * US, &wake(2, 2, May::Anywhere));
        l.see(21 * US, &switch(2, None, Some(2)));
        l.see(30 * US, &moved(1, 2));
        l.see(50 * US, &switch(2, Some(2), Some(1)));
        let found = l.end(100 * US, 400 * US, &who);
        assert_eq!(found.cpu_ns, 40_000);
        assert_eq!(
            (found.longest.as_ref().unwrap().cpu, found.waits[0]),
            (0, 1)
        );
        assert_eq!(found.near_ns, 40_000);
    }

    /// The stopper has moved the only task of its CPU to one that is busy, and is done.
    #[test]
    fn a_cpu_that_its_stopper_leaves_dry_is_idle() {
        let mut l = ledger();
        for cpu in 0..4 {
            l.see(0, &wake(cpu, cpu, May::Anywhere));
            l.see(US, &switch(cpu, None, Some(cpu)));
        }
        l.see(20 * US, &moved(0, 2));
        l.see(22 * US, &switch(0, None, None));
        l.see(52 * US, &switch(2, Some(2), Some(0)));
        let found = l.end(100 * US, 400 * US, &who);
        assert_eq!(found.cpu_ns, 30_000);
    }
}
