//! The calls that a kernel would make by itself: switches, work that was asked for, time.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

use fairground::cx::Cx;
use fairground::host::{Kick, Timer};
use fairground::policy::Features;
use fairground::rq::{CLOCK_BEGINS, Rq};
use fairground::sched;
use fairground::shared::OnRq;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

use crate::board::Board;
use crate::chance::Chance;
use crate::higher::Used;

pub const MS: u64 = 1_000_000;
/// Late interrupts come this much later, ns.
const LATE_NS: u64 = 50_000;
/// Clocks differ by up to twice this, ns.
const SKEW_NS: u64 = 50_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    Runnable,
    Sleeps,
    /// On the wake-up list of this CPU.
    Listed(usize),
    Dead,
}

/// What the host knows of a task.
pub struct TaskState {
    pub id: TaskId,
    pub stage: Stage,
    pub allowed: CpuMask,
    pub tg: TgId,
    /// How long it has run, by the clock of its queues, until it was last switched out.
    pub ran_ns: u64,
    /// It returns to user space seldom.
    pub in_kernel: bool,
    /// Of a task of a class above the fair one.
    pub priority: Option<u8>,
}

/// What the host knows of a CPU.
#[derive(Default)]
pub struct CpuState {
    pub current: Option<TaskId>,
    /// When `current` began to run, by the clock of the queue.
    pub since: u64,
    /// When it took itself off the queue, as a task of a throttled group does on its way to user
    /// space, if it has since `since`; also if it was put back.
    pub left_at: Option<u64>,
    pub wake_list: VecDeque<(Task, Placed, WakeKind)>,
    pub tickless: bool,
    /// Tasks of a higher class that wait here, the longest-waiting first.
    pub waiting: Vec<TaskId>,
    /// The tasks of a higher class have used up their part of the time.
    pub fair_turn: bool,
    /// By tasks of a higher class.
    pub used: Used,
    /// The task of a higher class that runs goes last of its priority.
    pub goes_last: bool,
}

pub struct Kernel {
    pub sys: System,
    pub rqs: Vec<Rq>,
    pub board: Board,
    pub cpus: Vec<CpuState>,
    pub tasks: Vec<TaskState>,
    pub groups: Vec<TgId>,
    pub chance: Chance,
    /// There are tasks of a higher class.
    pub has_higher: bool,
    /// A group's weight was written while a queue was throttled.
    pub weighs_throttled: bool,
    /// Tasks may be on few CPUs, mostly on the last ones.
    pub pinned: bool,
    pub log: bool,
    moving: Vec<Task>,
    tick_at: u64,
}

impl Kernel {
    /// On `cpus` cores without siblings.
    pub fn of_cores(seed: u64, cpus: u32) -> Self {
        let place = |core| CpuPlace {
            core,
            cluster: core,
            ..CpuPlace::default()
        };
        let machine = Machine {
            cpus: (0..cpus).map(place).collect(),
            ..Machine::default()
        };
        Self::new(seed, &machine, Features::default(), false)
    }

    pub fn new(seed: u64, machine: &Machine, features: Features, log: bool) -> Self {
        let topology = Topology::build(machine).expect("a machine");
        let sys = System::new(features, topology);
        let mut chance = Chance::new(seed);
        let cpus = sys.nr_cpus();
        let early = CLOCK_BEGINS + SKEW_NS;
        let now = chance.of(&[early, 1_000 * MS, 1_000 * MS, 1 << 50]);
        let skew = match seed % 5 {
            0 => (0..cpus)
                .map(|_| chance.below(2 * SKEW_NS) as i64 - SKEW_NS as i64)
                .collect(),
            _ => vec![0; cpus],
        };
        let mut out = Self {
            rqs: sys.cpus().iter().map(|c| Rq::new(&sys, c, now)).collect(),
            board: Board::new(now, skew, chance.percent(50), seed),
            cpus: (0..cpus).map(|_| CpuState::default()).collect(),
            tasks: Vec::new(),
            groups: vec![TgId::ROOT],
            weighs_throttled: false,
            has_higher: !seed.is_multiple_of(4),
            pinned: false,
            chance,
            log,
            moving: Vec::new(),
            tick_at: now + sys.features.tick_ns(),
            sys,
        };
        for cpu in 0..cpus {
            out.reschedule(cpu, Prev::Runnable);
        }
        out
    }

    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    pub fn any_cpu(&mut self) -> usize {
        self.chance.index(self.cpus.len())
    }

    pub fn is_higher(&self, id: TaskId) -> bool {
        self.tasks[id.idx()].priority.is_some()
    }

    /// `cpu` calls the engine.
    pub fn call<T>(
        &mut self,
        cpu: usize,
        f: impl FnOnce(&mut Cx<'_, Board>, &mut Vec<Rq>) -> T,
    ) -> T {
        self.board.cpu = cpu;
        let mut cx = Cx::new(
            &self.sys,
            &mut self.board,
            Cpu(cpu as u32),
            &mut self.moving,
        );
        let out = f(&mut cx, &mut self.rqs);
        assert!(self.moving.is_empty() && self.board.holds_nothing());
        self.note_who_left();
        out
    }

    fn note_who_left(&mut self) {
        for (state, rq) in self.cpus.iter_mut().zip(&self.rqs) {
            let entity = rq.curr.map(|curr| &rq.se[curr.idx()]);
            if let Some(se) = entity.filter(|se| !se.on_rq) {
                state.left_at.get_or_insert(se.exec_start);
            }
        }
    }

    /// A switch on `cpu`; `prev` says what becomes of the task that runs.
    pub fn reschedule(&mut self, cpu: usize, prev: Prev) {
        self.board.resched[cpu] = false;
        let mut until = self.switch_clock(cpu);
        let was = self.cpus[cpu].current;
        let ran_higher = was.is_some_and(|id| self.is_higher(id));
        let next = self.next_higher(cpu, prev);
        let switch = self.call(cpu, |cx, rqs| match next {
            Some(next) => sched::switch_to_higher(cx, rqs, prev, next),
            None if ran_higher => sched::switch_from_higher(cx, rqs, prev),
            None => sched::schedule(cx, rqs, prev),
        });
        if self.log {
            let asked = self.board.resched[cpu];
            eprintln!("  cpu {cpu} {prev:?} {switch:?}, asked again: {asked}");
        }
        assert_eq!(switch.prev, was, "who ran on CPU {cpu}");
        if prev == Prev::Runnable && !ran_higher {
            // It is put back last, after a search for work, which reads the clock.
            until.0 = self.rqs[cpu].clock.clock;
        }
        self.charge(cpu, until);
        assert!(next.is_none() || switch.next == next);
        self.switched(cpu, switch.next);
    }

    /// The clock that a switch goes by: the one that was read when the switch was asked for, if the
    /// engine says so, else that of now; and when the task that runs has left the queue.
    fn switch_clock(&self, cpu: usize) -> (u64, Option<u64>) {
        let rq = &self.rqs[cpu];
        let clock = match rq.skip_clock {
            true => rq.clock.clock,
            false => rq.clock.clock.max(self.board.clock_of(cpu)),
        };
        (clock, self.cpus[cpu].left_at)
    }

    /// The task that ran is switched out. If it has left the queue before, what is left of its time
    /// is charged if another of its queue is looked at, and not if somebody changes its attributes;
    /// so the host takes what the engine says, within these bounds.
    fn charge(&mut self, cpu: usize, (clock, left_at): (u64, Option<u64>)) {
        let higher = self.runs_higher(cpu).is_some();
        self.cpus[cpu].used.advance(clock, higher);
        let state = &self.cpus[cpu];
        let Some(id) = state.current else { return };
        let task = &self.tasks[id.idx()];
        let full = task.ran_ns + (clock - state.since);
        let least = left_at.map_or(full, |at| task.ran_ns + (at - state.since));
        let charged = self.charged(id).filter(|_| left_at.is_some());
        self.tasks[id.idx()].ran_ns = charged.unwrap_or(full).clamp(least, full);
    }

    /// What a fair task was charged in all, if it has not exited.
    fn charged(&self, id: TaskId) -> Option<u64> {
        let words = &self.sys.task[id.idx()];
        if words.on_rq() == OnRq::Queued {
            let (cpu, slot) = (words.cpu.load(Relaxed), words.slot.load(Relaxed));
            return Some(self.rqs[cpu as usize].se[slot as usize].sum_exec_runtime);
        }
        self.board
            .parked
            .get(&id)
            .map(|task| task.se.sum_exec_runtime)
    }

    /// How long a task has run.
    pub fn ran_until_now(&self, id: TaskId) -> u64 {
        let runs = |cpu: &usize| self.cpus[*cpu].current == Some(id);
        let on = (0..self.nr_cpus()).find(runs);
        let since = on.map(|cpu| {
            self.board
                .clock_of(cpu)
                .saturating_sub(self.cpus[cpu].since)
        });
        self.tasks[id.idx()].ran_ns + since.unwrap_or(0)
    }

    fn switched(&mut self, cpu: usize, next: Option<TaskId>) {
        self.cpus[cpu].current = next;
        self.cpus[cpu].since = self.rqs[cpu].clock.clock;
        self.cpus[cpu].left_at = None;
        if let Some(id) = next {
            let stage = self.tasks[id.idx()].stage;
            assert_eq!(stage, Stage::Runnable, "{id:?} was picked");
            for (other, state) in self.cpus.iter().enumerate() {
                let twice = other != cpu && state.current == next;
                assert!(!twice, "{id:?} on CPUs {cpu} and {other}");
            }
            self.cpus[cpu].tickless = false;
        } else if !self.cpus[cpu].tickless && self.chance.percent(80) {
            self.call(cpu, sched::nohz_enter_idle);
            self.cpus[cpu].tickless = true;
        }
        self.after_switch(cpu);
    }

    /// `cpu` does what was asked of it, in any order.
    pub fn serve(&mut self, cpu: usize) {
        loop {
            let kicks = self.board.kicks[cpu].len();
            let resched = self.board.resched[cpu];
            if resched && (kicks == 0 || self.chance.percent(40)) {
                self.reschedule(cpu, Prev::Runnable);
                continue;
            }
            if kicks == 0 {
                break;
            }
            let at = self.chance.index(kicks);
            let kick = self.board.kicks[cpu].remove(at).expect("one of them");
            if self.log {
                eprintln!("  cpu {cpu} {kick:?}");
            }
            self.do_work(cpu, kick);
        }
    }

    fn do_work(&mut self, cpu: usize, kick: Kick) {
        match kick {
            Kick::Wakeups => {
                let mut list = std::mem::take(&mut self.cpus[cpu].wake_list);
                for (task, ..) in &list {
                    self.tasks[task.body.id.idx()].stage = Stage::Runnable;
                }
                self.call(cpu, |cx, rqs| {
                    sched::sched_ttwu_pending(cx, rqs, &mut list);
                });
                assert!(list.is_empty());
            }
            Kick::Stop(work) => {
                let until = self.switch_clock(cpu);
                let was = self.cpus[cpu].current;
                let higher = was.filter(|id| self.is_higher(*id));
                // Of a switch between tasks of a higher class the stopper knows nothing.
                self.board.resched[cpu] &= higher.is_some();
                let switch = self.call(cpu, |cx, rqs| sched::run_stopper(cx, rqs, work));
                assert_eq!(switch.prev, was);
                self.charge(cpu, until);
                assert!(higher.is_none() || switch.next == higher, "handed back");
                self.switched(cpu, switch.next);
            }
            Kick::Run(work) => self.call(cpu, |cx, rqs| sched::run_kick(cx, rqs, work)),
        }
    }

    /// Each CPU does what was asked of it, with this probability each time that it is looked at.
    pub fn serve_all(&mut self, percent: u64) {
        for _ in 0..20 {
            for cpu in 0..self.nr_cpus() {
                if self.chance.percent(percent) {
                    self.serve(cpu);
                }
            }
            let left = |cpu: usize| self.board.resched[cpu] || !self.board.kicks[cpu].is_empty();
            if percent < 100 || !(0..self.nr_cpus()).any(left) {
                break;
            }
        }
    }

    /// Time passes: timers, some of them late, and ticks.
    pub fn advance(&mut self, ns: u64) {
        let end = self.board.now + ns;
        while self.board.now < end {
            let timers = self.board.timers.values().copied();
            let next = timers.fold(self.tick_at, u64::min).min(end);
            self.board.now = self.board.now.max(next);
            self.run_timers();
            self.tick_if_due();
            let percent = if self.chance.percent(90) { 100 } else { 50 };
            self.serve_all(percent);
            for cpu in 0..self.nr_cpus() {
                let id = self.cpus[cpu].current;
                let in_kernel = id.is_some_and(|id| self.tasks[id.idx()].in_kernel);
                if id.is_some() && (!in_kernel || self.chance.percent(30)) {
                    self.call(cpu, sched::exit_to_user);
                }
            }
            self.serve_all(95);
        }
    }

    fn run_timers(&mut self) {
        let now = self.board.now;
        if self.chance.percent(10) {
            for at in self.board.timers.values_mut().filter(|at| **at <= now) {
                *at = now + LATE_NS;
            }
            return;
        }
        let timers = self.board.timers.iter().filter(|(_, at)| **at <= now);
        let due: Vec<Timer> = timers.map(|(timer, _)| *timer).collect();
        for timer in due {
            // An earlier one may have withdrawn it.
            if self.board.timers.remove(&timer).is_none() {
                continue;
            }
            let cpu = match timer {
                Timer::Hrtick(cpu) => cpu.idx(),
                Timer::Period(_) | Timer::Slack(_) => self.any_cpu(),
            };
            self.call(cpu, |cx, rqs| sched::run_timer(cx, rqs, timer));
        }
    }

    fn tick_if_due(&mut self) {
        if self.board.now < self.tick_at {
            return;
        }
        self.tick_at += self.sys.features.tick_ns();
        for cpu in 0..self.nr_cpus() {
            if !self.cpus[cpu].tickless {
                self.call(cpu, sched::sched_tick);
            }
        }
    }
}
