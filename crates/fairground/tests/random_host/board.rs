//! The host as the engine sees it: what was asked for is written on a board, and done later.

use std::collections::{BTreeMap, VecDeque};

use fairground::host::{Host, Kick, Timer};
use fairground::place::Lock;
use fairground::task::Task;
use fairground::value::{Cpu, TaskId, TgId};

use crate::chance::Chance;

/// What the engine has asked for, and who is with the host.
pub struct Board {
    /// Time since boot, ns.
    pub now: u64,
    /// How far the clock of each CPU is ahead of it, ns.
    pub skew: Vec<i64>,
    /// Who executes.
    pub cpu: usize,
    pub resched: Vec<bool>,
    pub kicks: Vec<VecDeque<Kick>>,
    pub timers: BTreeMap<Timer, u64>,
    pub parked: BTreeMap<TaskId, Task>,
    /// Kicks of one kind for one CPU are merged.
    merges: bool,
    chance: Chance,
    held: Option<Cpu>,
    pool: Option<TgId>,
}

impl Board {
    pub fn new(now: u64, skew: Vec<i64>, merges: bool, seed: u64) -> Self {
        let cpus = skew.len();
        Self {
            now,
            skew,
            cpu: 0,
            resched: vec![false; cpus],
            kicks: vec![VecDeque::new(); cpus],
            timers: BTreeMap::new(),
            parked: BTreeMap::new(),
            merges,
            chance: Chance::new(seed),
            held: None,
            pool: None,
        }
    }

    /// What the clock of `cpu` shows.
    pub fn clock_of(&self, cpu: usize) -> u64 {
        self.now.saturating_add_signed(self.skew[cpu])
    }

    pub fn holds_nothing(&self) -> bool {
        self.held.is_none() && self.pool.is_none()
    }

    fn hold(&mut self, cpu: Cpu) {
        assert!(self.holds_nothing(), "a second queue, or one after a pool");
        self.held = Some(cpu);
    }
}

impl Host for Board {
    fn clock(&mut self) -> u64 {
        self.clock_of(self.cpu)
    }
    fn resched(&mut self, cpu: Cpu) {
        self.resched[cpu.idx()] = true;
    }
    fn park(&mut self, task: Task) {
        let id = task.body.id;
        let other = self.parked.insert(id, task);
        assert!(other.is_none(), "{id:?} is parked twice");
    }
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        self.timers.insert(timer, at_ns);
    }
    fn cancel_timer(&mut self, timer: Timer) {
        self.timers.remove(&timer);
    }
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        let kicks = &mut self.kicks[cpu.idx()];
        if !(self.merges && kicks.contains(&work)) {
            kicks.push_back(work);
        }
    }
    fn random(&mut self) -> u32 {
        self.chance.next() as u32
    }
    fn lock(&mut self, lock: Lock) {
        match lock {
            Lock::Rq(cpu) => self.hold(cpu),
            Lock::Bandwidth(tg) => assert_eq!(self.pool.replace(tg), None),
        }
    }
    fn unlock(&mut self, lock: Lock) {
        match lock {
            Lock::Rq(cpu) => assert_eq!(self.held.take(), Some(cpu)),
            Lock::Bandwidth(tg) => assert_eq!(self.pool.take(), Some(tg)),
        }
    }
    fn begin_lockless(&mut self, cpu: Cpu) {
        self.hold(cpu);
    }
    fn end_lockless(&mut self, cpu: Cpu) {
        assert_eq!(self.held.take(), Some(cpu));
    }
}
