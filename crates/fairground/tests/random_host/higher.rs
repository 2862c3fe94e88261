//! Tasks of a class above the fair one: the host has their queues, order and turns.

use fairground::sched::{self, HigherComes, ToRunning};
use fairground::task::Prev;
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

use crate::kernel::{Kernel, Stage, TaskState};

/// So many at a time.
const MOST: usize = 5;
/// Priorities from 0 to below this, so that some are alike.
const PRIORITIES: u64 = 4;

/// How much of a CPU tasks of a higher class use: the average that load tracking approximates,
/// without its periods and integers.
#[derive(Clone, Copy, Default)]
pub struct Used {
    /// 1024 = all of it.
    util: f64,
    /// Until when, by the clock of the queue.
    until: u64,
}

impl Used {
    /// Time has passed, in which one ran or not. Half is forgotten in 32 periods of 2^20 ns.
    pub fn advance(&mut self, clock: u64, ran: bool) {
        let periods = (clock - self.until) as f64 / f64::from(1 << 20);
        let keeps = 0.5_f64.powf(periods / 32.0);
        let new = if ran { 1024.0 } else { 0.0 };
        self.util = self.util * keeps + new * (1.0 - keeps);
        self.until = clock;
    }

    pub fn util(&self) -> f64 {
        self.util
    }
}

impl Kernel {
    /// The task of a higher class that is to run on `cpu` next; the one that runs is put back if it
    /// stays runnable.
    pub fn next_higher(&mut self, cpu: usize, prev: Prev) -> Option<TaskId> {
        let last = std::mem::take(&mut self.cpus[cpu].goes_last);
        let runs = self.runs_higher(cpu).filter(|_| prev == Prev::Runnable);
        if let Some(id) = runs {
            let at = if last {
                self.cpus[cpu].waiting.len()
            } else {
                0
            };
            self.cpus[cpu].waiting.insert(at, id);
        }
        if self.cpus[cpu].fair_turn {
            return None;
        }
        let here = |id: &TaskId| self.tasks[id.idx()].allowed.has(Cpu(cpu as u32));
        let may_run = self.cpus[cpu].waiting.iter().copied().filter(here);
        // The first of the highest priority: `max_by_key` takes the last.
        let next = may_run.rev().max_by_key(|id| self.priority(*id))?;
        self.cpus[cpu].waiting.retain(|id| *id != next);
        Some(next)
    }

    fn priority(&self, id: TaskId) -> u8 {
        self.tasks[id.idx()].priority.expect("of a higher class")
    }

    pub fn runs_higher(&self, cpu: usize) -> Option<TaskId> {
        self.cpus[cpu].current.filter(|id| self.is_higher(*id))
    }

    /// Whether one that waits on `cpu` could run there at once.
    pub fn higher_is_ready(&self, cpu: usize) -> bool {
        let here = |id: &TaskId| self.tasks[id.idx()].allowed.has(Cpu(cpu as u32));
        self.cpus[cpu].waiting.iter().any(here)
    }

    /// What a kernel finds when it picks: who may not be here is pushed away; no CPU idles, and by
    /// the stopper's choice no fair task runs, while one of a higher class waits.
    pub fn after_switch(&mut self, cpu: usize) {
        let waiting = self.cpus[cpu].waiting.clone();
        for id in waiting {
            if !self.tasks[id.idx()].allowed.has(Cpu(cpu as u32)) {
                self.move_higher(cpu, cpu, id);
            }
        }
        let idles = self.cpus[cpu].current.is_none();
        self.cpus[cpu].fair_turn &= !idles;
        let stands_back = self.cpus[cpu].fair_turn || self.runs_higher(cpu).is_some();
        if self.higher_is_ready(cpu) && !stands_back {
            self.call(cpu, sched::resched_higher);
        }
    }

    fn some_cpu_of(&mut self, id: TaskId) -> usize {
        let cpus: Vec<Cpu> = self.tasks[id.idx()].allowed.iter().collect();
        self.chance.of(&cpus).idx()
    }

    /// It comes to the queue of a CPU that it may use, by what `by` does.
    fn queue_higher(&mut self, by: usize, id: TaskId, comes: HigherComes) {
        let cpu = self.some_cpu_of(id);
        let mine = self.priority(id);
        let runs = self.runs_higher(cpu);
        let to_running = match runs.is_some_and(|other| mine > self.priority(other)) {
            true => ToRunning::Preempts,
            false => ToRunning::Waits,
        };
        self.cpus[cpu].waiting.push(id);
        self.tasks[id.idx()].stage = Stage::Runnable;
        let cpu = Cpu(cpu as u32);
        self.call(by, |cx, rqs| {
            sched::enqueue_higher(cx, rqs, cpu, id, comes, to_running);
        });
    }

    /// One that waits on `from` goes to a CPU that it may use.
    fn move_higher(&mut self, by: usize, from: usize, id: TaskId) {
        self.cpus[from].waiting.retain(|other| *other != id);
        self.call(by, |cx, rqs| {
            sched::dequeue_higher(cx, rqs, Cpu(from as u32));
        });
        self.queue_higher(by, id, HigherComes::Moved);
    }

    /// Those that are not dead.
    pub fn higher_alive(&self) -> Vec<TaskId> {
        let alive = |t: &&TaskState| t.priority.is_some() && t.stage != Stage::Dead;
        self.tasks.iter().filter(alive).map(|t| t.id).collect()
    }

    fn spawn_higher(&mut self, by: usize) {
        let id = self.sys.add_task(TgId::ROOT);
        let allowed = self.some_cpus().and(&self.sys.cpus());
        let priority = self.chance.below(PRIORITIES) as u8;
        self.tasks.push(TaskState {
            id,
            stage: Stage::Runnable,
            allowed,
            tg: TgId::ROOT,
            ran_ns: 0,
            in_kernel: false,
            priority: Some(priority),
        });
        self.queue_higher(by, id, HigherComes::New);
    }

    pub fn wake_higher(&mut self, by: usize, id: TaskId) {
        if self.tasks[id.idx()].stage == Stage::Sleeps {
            self.queue_higher(by, id, HigherComes::Woken);
        }
    }

    fn set_affinity_higher(&mut self, by: usize, id: TaskId, allowed: CpuMask) {
        self.tasks[id.idx()].allowed = allowed.and(&self.sys.cpus());
        for cpu in 0..self.nr_cpus() {
            if self.tasks[id.idx()].allowed.has(Cpu(cpu as u32)) {
                continue;
            }
            if self.cpus[cpu].waiting.contains(&id) {
                return self.move_higher(by, cpu, id);
            }
            // It goes by itself: another is picked, and it is pushed away.
            if self.cpus[cpu].current == Some(id) {
                return self.call(cpu, sched::resched_higher);
            }
        }
    }

    /// Something random with such tasks.
    pub fn act_on_higher(&mut self, cpu: usize) {
        let alive = self.higher_alive();
        if alive.is_empty() || (alive.len() < MOST && self.chance.percent(20)) {
            return self.spawn_higher(cpu);
        }
        let id = self.chance.of(&alive);
        match self.chance.below(10) {
            0..=3 => self.wake_higher(cpu, id),
            4 | 5 => {
                let from = self.any_cpu();
                let waiting = &self.cpus[from].waiting;
                if let Some(id) = waiting.first().copied() {
                    self.move_higher(cpu, from, id);
                }
            }
            6 => {
                let allowed = self.some_cpus();
                self.set_affinity_higher(cpu, id, allowed);
            }
            7 => {
                self.cpus[cpu].fair_turn ^= true;
                self.call(cpu, sched::resched_higher);
            }
            8 => {
                self.cpus[cpu].goes_last = self.runs_higher(cpu).is_some();
                self.call(cpu, sched::resched_higher);
            }
            _ => {
                // Soon on its way out, as one that has done its work.
                if self.runs_higher(cpu).is_some() {
                    self.leave(cpu, Prev::Sleeps);
                }
            }
        }
    }
}
