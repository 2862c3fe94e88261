//! What programs and administrators do, at random.

use fairground::rq::Rq;
use fairground::sched::{self, Deactivated, EnqueueAt, Moved};
use fairground::task::{Policy, Prev, Task, WakeKind};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

use crate::kernel::{Kernel, MS, Stage, TaskState};

/// So many fair tasks at a time, and groups in all.
const MOST_TASKS: usize = 14;
const MOST_GROUPS: usize = 9;
/// With as few fair tasks, none exits.
const FEW_TASKS: usize = 4;

impl Kernel {
    /// One random action.
    pub fn act(&mut self) {
        let cpu = self.any_cpu();
        let what = self.chance.below(if self.has_higher { 125 } else { 100 });
        if self.log {
            let current: Vec<_> = self.cpus.iter().map(|c| c.current).collect();
            eprintln!("{} action {what} cpu {cpu} {current:?}", self.board.now);
        }
        let alive = self.fair_alive();
        let most = if self.pinned {
            3 * MOST_TASKS
        } else {
            MOST_TASKS
        };
        match what {
            0..=4 if alive.len() < most => self.spawn(cpu),
            5..=29 => self.may_sleep(cpu),
            55..=56 if alive.len() > FEW_TASKS && self.cpus[cpu].current.is_some() => {
                self.leave(cpu, Prev::Exits);
            }
            57..=59 => self.yields(cpu),
            60..=62 if self.cpus[cpu].current.is_some() => {
                let _ = self.call(cpu, sched::sched_exec);
            }
            93..=99 => self.act_on_group(cpu),
            100.. => self.act_on_higher(cpu),
            _ if !alive.is_empty() => {
                let id = self.chance.of(&alive);
                self.act_on(what, cpu, id);
            }
            _ => {}
        }
    }

    /// Something is done to a fair task, whatever it does itself.
    fn act_on(&mut self, what: u64, cpu: usize, id: TaskId) {
        match what {
            30..=54 => {
                let again = self.tasks[id.idx()].stage == Stage::Runnable;
                if self.tasks[id.idx()].stage == Stage::Sleeps || again && self.chance.percent(10) {
                    self.wake(cpu, id);
                }
            }
            63..=72 => self.set_affinity(cpu, id),
            73..=80 => self.set_nice(cpu, id),
            81..=84 => self.set_slice(cpu, id),
            85..=91 => self.set_group(cpu, id),
            92 => self.deactivate(cpu, id),
            _ => {}
        }
    }

    /// Fair tasks that are not dead.
    pub fn fair_alive(&self) -> Vec<TaskId> {
        let alive = |t: &&TaskState| t.priority.is_none() && t.stage != Stage::Dead;
        self.tasks.iter().filter(alive).map(|t| t.id).collect()
    }

    fn may_sleep(&mut self, cpu: usize) {
        let runs = self.cpus[cpu].current.is_some();
        // One that is about to be preempted may sleep before that, or not.
        if runs && (!self.board.resched[cpu] || self.chance.percent(50)) {
            let stops = self.chance.percent(5);
            self.leave(cpu, if stops { Prev::Stops } else { Prev::Sleeps });
        }
    }

    /// The task that runs on `cpu` stops to run by itself.
    pub fn leave(&mut self, cpu: usize, prev: Prev) {
        let id = self.cpus[cpu].current.expect("somebody runs");
        self.tasks[id.idx()].stage = match prev {
            Prev::Exits => Stage::Dead,
            _ => Stage::Sleeps,
        };
        self.reschedule(cpu, prev);
        if prev == Prev::Exits && !self.is_higher(id) {
            let task = self.board.parked.remove(&id).expect("parked at once");
            self.call(cpu, |cx, _| sched::task_dead(cx, task));
        }
        if prev == Prev::Stops && !self.is_higher(id) {
            assert!(self.board.parked.contains_key(&id), "not delayed");
        }
    }

    fn yields(&mut self, cpu: usize) {
        if self.cpus[cpu].current.is_some() {
            self.cpus[cpu].goes_last = self.runs_higher(cpu).is_some();
            self.call(cpu, sched::sched_yield);
            self.reschedule(cpu, Prev::Runnable);
        }
    }

    /// At least one CPU of the machine, and sometimes one that it does not have.
    pub fn some_cpus(&mut self) -> CpuMask {
        if self.pinned {
            return self.few_cpus();
        }
        if self.chance.percent(40) {
            return self.sys.cpus();
        }
        let mut mask = CpuMask::of(Cpu(self.any_cpu() as u32));
        for cpu in self.sys.cpus().iter() {
            if self.chance.percent(50) {
                mask.set(cpu);
            }
        }
        if self.chance.percent(5) {
            mask.set(Cpu(100));
        }
        mask
    }

    /// Few of the first CPUs, every other one of the last: most tasks of those may not go to a CPU
    /// that looks for some, but to another of its group.
    fn few_cpus(&mut self) -> CpuMask {
        let mut mask = CpuMask::empty();
        for cpu in self.sys.cpus().iter() {
            if self.chance.percent(if cpu.0 < 4 { 10 } else { 50 }) {
                mask.set(cpu);
            }
        }
        match mask.is_empty() {
            true => self.sys.cpus(),
            false => mask,
        }
    }

    fn some_policy(&mut self) -> (Policy, i8) {
        let policy = match self.chance.below(5) {
            0 => Policy::Batch,
            1 => Policy::Idle,
            _ => Policy::Normal,
        };
        (policy, self.chance.below(40) as i8 - 20)
    }

    fn some_group(&mut self) -> TgId {
        self.chance.of(&self.groups)
    }

    fn base_slice(&self) -> u64 {
        self.sys.features.tunables.base_slice_ns
    }

    fn spawn(&mut self, cpu: usize) {
        let (tg, base) = (self.some_group(), self.base_slice());
        let mut task = Task::new(self.sys.add_task(tg), tg, base);
        task.body.cpus_allowed = self.some_cpus();
        let (policy, nice) = self.some_policy();
        task.set_scheduler(policy, nice);
        if self.chance.percent(30) {
            let slice = self.chance.below(60) * MS;
            task.set_slice(Some(slice), base);
        }
        let parent = self.cpus[cpu].current.filter(|_| self.chance.percent(70));
        let in_kernel = self.chance.percent(10);
        self.fork(cpu, task, parent, in_kernel);
    }

    /// A plain task begins.
    pub fn start(&mut self, cpu: usize, tg: TgId, allowed: CpuMask, nice: i8) {
        let mut task = Task::new(self.sys.add_task(tg), tg, self.base_slice());
        task.body.cpus_allowed = allowed;
        task.set_scheduler(Policy::Normal, nice);
        self.fork(cpu, task, None, false);
        self.serve_all(100);
    }

    fn fork(&mut self, cpu: usize, mut task: Task, parent: Option<TaskId>, in_kernel: bool) {
        let allowed = task.body.cpus_allowed;
        self.tasks.push(TaskState {
            id: task.body.id,
            stage: Stage::Runnable,
            allowed,
            tg: task.body.tg,
            ran_ns: 0,
            in_kernel,
            priority: None,
        });
        let kind = WakeKind::Fork;
        let placed = self.call(cpu, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, parent);
            sched::select_cpu(cx, &mut task, parent, kind)
        });
        assert!(allowed.has(placed.cpu), "placed where it may not be");
        self.call(cpu, |cx, rqs| {
            sched::enqueue_woken(cx, rqs, task, placed, kind);
        });
    }

    /// A fair task is woken by `cpu`, for the task there or in an interrupt.
    pub fn wake(&mut self, cpu: usize, id: TaskId) {
        let kind = match self.chance.percent(30) {
            true => WakeKind::Sync,
            false => WakeKind::Wake,
        };
        let waker = self.cpus[cpu].current.filter(|_| self.chance.percent(60));
        if self.call(cpu, |cx, rqs| sched::wake_queued(cx, rqs, id, kind)) {
            self.tasks[id.idx()].stage = Stage::Runnable;
            return;
        }
        let mut task = self.board.parked.remove(&id).expect("with the host");
        let (placed, at) = self.call(cpu, |cx, _| {
            let placed = sched::select_cpu(cx, &mut task, waker, kind);
            (placed, sched::ttwu_queue_wakelist(cx, id, placed.cpu))
        });
        let to = placed.cpu;
        let state = &mut self.tasks[id.idx()];
        assert!(state.allowed.has(to), "placed where it may not be");
        match at {
            EnqueueAt::Waker => {
                state.stage = Stage::Runnable;
                self.call(cpu, |cx, rqs| {
                    sched::enqueue_woken(cx, rqs, task, placed, kind);
                });
            }
            EnqueueAt::Target => {
                state.stage = Stage::Listed(to.idx());
                self.cpus[to.idx()]
                    .wake_list
                    .push_back((task, placed, kind));
            }
        }
    }

    /// Does something to a task that the host has, asleep or on a list of wake-ups.
    fn on_mine(&mut self, cpu: usize, id: TaskId, f: impl FnOnce(&mut Self, usize, &mut Task)) {
        if let Some(mut task) = self.board.parked.remove(&id) {
            f(self, cpu, &mut task);
            self.board.parked.insert(id, task);
            return;
        }
        let Stage::Listed(list) = self.tasks[id.idx()].stage else {
            panic!("{id:?} is nowhere");
        };
        let waits = |entry: &(Task, _, _)| entry.0.body.id == id;
        let at = self.cpus[list].wake_list.iter().position(waits);
        let at = at.expect("on that list");
        let (mut task, placed, kind) = self.cpus[list].wake_list.remove(at).expect("there");
        f(self, cpu, &mut task);
        self.cpus[list].wake_list.insert(at, (task, placed, kind));
    }

    fn set_affinity(&mut self, cpu: usize, id: TaskId) {
        let mask = self.some_cpus();
        match self.call(cpu, |cx, rqs| sched::set_affinity(cx, rqs, id, mask)) {
            Moved::Parked => self.on_mine(cpu, id, |kernel, cpu, task| {
                let by = Cpu(cpu as u32);
                assert!(sched::set_affinity_parked(&kernel.sys, by, task, mask));
            }),
            Moved::To(to) => assert!(mask.has(to)),
            Moved::Stays | Moved::Asked => {}
            Moved::NoCpu => panic!("it has a CPU of the machine"),
        }
        self.tasks[id.idx()].allowed = mask;
    }

    fn set_nice(&mut self, cpu: usize, id: TaskId) {
        let (policy, nice) = self.some_policy();
        if !self.call(cpu, |cx, rqs| sched::set_nice(cx, rqs, id, policy, nice)) {
            self.on_mine(cpu, id, |kernel, cpu, task| {
                kernel.call(cpu, |cx, rqs| {
                    sched::set_nice_parked(cx, rqs, task, policy, nice);
                });
            });
        }
    }

    fn set_slice(&mut self, cpu: usize, id: TaskId) {
        let own = self.chance.percent(60);
        let slice = own.then(|| self.chance.below(60) * MS);
        if !self.call(cpu, |cx, rqs| sched::set_slice(cx, rqs, id, slice)) {
            self.on_mine(cpu, id, |kernel, _, task| {
                sched::set_slice_parked(&kernel.sys, task, slice);
            });
        }
    }

    fn set_group(&mut self, cpu: usize, id: TaskId) {
        let tg = self.some_group();
        self.sys.open_group(tg);
        if !self.call(cpu, |cx, rqs| sched::set_group(cx, rqs, id, tg)) {
            self.on_mine(cpu, id, |kernel, cpu, task| {
                kernel.call(cpu, |cx, rqs| sched::set_group_parked(cx, rqs, task, tg));
            });
        }
        self.tasks[id.idx()].tg = tg;
    }

    /// Somebody stops or ends a task that may not be running.
    fn deactivate(&mut self, cpu: usize, id: TaskId) {
        let before = self.call(cpu, |cx, rqs| sched::task_state(cx, rqs, id));
        let on = (0..self.nr_cpus()).find(|cpu| self.cpus[*cpu].current == Some(id));
        let done = self.call(cpu, |cx, rqs| sched::deactivate_task(cx, rqs, id));
        let cpu_of = on.map(|cpu| Cpu(cpu as u32));
        assert_eq!(
            before == sched::TaskState::Parked,
            done == Deactivated::Parked
        );
        match done {
            Deactivated::Runs(at) => {
                assert_eq!((Some(at), before), (cpu_of, sched::TaskState::Running(at)))
            }
            Deactivated::Parked => assert_eq!(on, None),
            Deactivated::Left => {
                assert_eq!(on, None);
                self.tasks[id.idx()].stage = Stage::Sleeps;
                if self.fair_alive().len() > FEW_TASKS && self.chance.percent(50) {
                    let task = self.board.parked.remove(&id).expect("parked at once");
                    self.tasks[id.idx()].stage = Stage::Dead;
                    self.call(cpu, |cx, _| sched::task_dead(cx, task));
                }
            }
        }
    }

    /// Somebody writes to a control file of a group, or makes one.
    fn act_on_group(&mut self, cpu: usize) {
        let tg = self.some_group();
        let what = self.chance.below(5);
        let throttled = |rq: &Rq| rq.cfs.iter().any(|cfs| cfs.throttled);
        self.weighs_throttled |= matches!(what, 1 | 2) && self.rqs.iter().any(throttled);
        match what {
            0 => {
                if self.groups.len() < MOST_GROUPS {
                    let new = self.sys.add_group(tg);
                    self.groups.push(new);
                }
            }
            1 => {
                let weight = self.chance.of(&[1, 10, 100, 300, 10_000]);
                let _ = self.call(cpu, |cx, rqs| sched::set_cpu_weight(cx, rqs, tg, weight));
            }
            2 => {
                let idle = self.chance.percent(40);
                let _ = self.call(cpu, |cx, rqs| sched::set_idle(cx, rqs, tg, idle));
            }
            _ => {
                let period = self.chance.of(&[5, 10, 20, 100]) * MS;
                let limited = self.chance.percent(60);
                let quota = limited.then(|| (self.chance.below(20) + 1) * MS);
                let bursts = self.chance.percent(30);
                let burst = quota.filter(|_| bursts).unwrap_or(0) / 2;
                let set = self.call(cpu, |cx, rqs| {
                    sched::set_bandwidth(cx, rqs, tg, quota, period, burst)
                });
                assert_eq!(set.is_err(), tg == TgId::ROOT);
            }
        }
    }
}
