//! Which tasks are taken off the busiest queue, and what is left of the amount after each.
//!
//! A record tells of the tasks that were taken: in which turn, their averages. Of those passed by
//! it tells nothing, so here they may not leave the queue. What the engine decides is what is left
//! to decide: whether each may go at its size, what it takes off the amount, and when to stop.

use std::collections::BTreeSet;

use fairground::balance::{LbEnv, MigrationType, detach_tasks, reset_interval};
use fairground::cx::Cx;
use fairground::rq::Rq;
use fairground::sched;
use fairground::shared::OnRq;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};
use std::sync::atomic::Ordering::Relaxed;

use super::machine::Guest;
use super::record::{Busiest, Detached, Record, Unit};
use super::row::Count;
use super::state::{self, Quiet};

/// Most tasks that the kernel looks at in one attempt (`sysctl_sched_nr_migrate`).
const TURNS_MAX: u32 = 32;

/// When it happens, ns: nobody is cache-hot.
const NOW_NS: u64 = 2_000_000_000;

const SEVERAL: &str = "tasks that may not go to the pulling CPU went to others of its group";
const MISFIT: &str = "a misfit takes the whole amount, whatever it is";
const QUEUE_LOAD: &str = "the load of the queue is not recorded: it is one of a group's";
const GROUPED: &str = "tasks are in groups, whose load there is not recorded, or no run tells it";

/// Counts of a file.
pub(super) struct Counts {
    detached: Count,
    interval: Count,
    sys: System,
    /// Runs whose tasks are all at the root.
    at_root: BTreeSet<String>,
}

impl Counts {
    pub(super) fn new(
        case: &str,
        guest: &Guest,
        changes: &[(&str, &str)],
        at_root: BTreeSet<String>,
    ) -> Self {
        let mut sys = state::system(guest, changes);
        for _ in 0..=TURNS_MAX {
            sys.add_task(TgId::ROOT);
        }
        Self {
            detached: Count::new(case, "detached"),
            interval: Count::new(case, "interval_after"),
            sys,
            at_root,
        }
    }

    pub(super) fn counts(self) -> [Count; 2] {
        [self.detached, self.interval]
    }

    /// Replays the taking of tasks.
    pub(super) fn record(&mut self, line: usize, r: &Record) -> Result<(), String> {
        if r.moved != r.detached.len() as u64 {
            let n = r.detached.len();
            return Err(format!("moved: {}, but {n} tasks in detached", r.moved));
        }
        let env = r.env(&self.sys)?;
        if let Some(after) = r.balance_interval_after {
            // Whatever an attempt did, if it did something the interval starts again.
            reset_interval(env.sd);
            let ours = env.sd.state.balance_interval_ms.load(Relaxed);
            let what = || format!("{ours} ms instead of {after}");
            self.interval.compare(ours == after, line, what);
        }
        let (Some(busiest), Some(first)) = (&r.busiest, r.detached.first()) else {
            return Ok(());
        };
        let turns = turns(r)?;
        let src = first.src;
        if src as usize >= self.sys.nr_cpus() || r.detached.iter().any(|d| d.src != src) {
            return Err(format!(
                "detached: not all from one CPU of the machine ({src})"
            ));
        }
        let elsewhere = |d: &Detached| d.dst != r.dst_cpu;
        let load = match busiest.migration_type {
            Unit::Load => queue_load(r, busiest),
            _ => Some(0),
        };
        let at_root = busiest.migration_type != Unit::Load || self.at_root.contains(&r.case);
        match (busiest.migration_type, load) {
            (Unit::Misfit, _) => self.detached.skip(MISFIT),
            _ if r.detached.iter().any(elsewhere) => self.detached.skip(SEVERAL),
            (_, None) => self.detached.skip(QUEUE_LOAD),
            _ if !at_root => self.detached.skip(GROUPED),
            (_, Some(load)) => {
                let attempt = Attempt {
                    r,
                    busiest,
                    src: Cpu(src),
                    turns: &turns,
                    load,
                };
                let ours = attempt.replay(&self.sys, env);
                let lefts = r.detached.iter().map(|d| d.imbalance_left);
                let theirs: Vec<_> = turns.taken.iter().copied().zip(lefts).collect();
                self.detached.compare(ours == theirs, line, || {
                    format!("turns and rests {ours:?} instead of {theirs:?}")
                });
            }
        }
        Ok(())
    }
}

/// The turns of an attempt.
struct Turns {
    /// Turns in which a task was taken, counted from 1.
    taken: Vec<u32>,
    /// All.
    of: u32,
}

fn turns(r: &Record) -> Result<Turns, String> {
    let mut taken = Vec::new();
    let mut all = None;
    for d in &r.detached {
        let wrong = || format!("detached.loop: '{}' is not like 3/16", d.turn);
        let (turn, of) = d.turn.split_once('/').ok_or_else(wrong)?;
        let turn: u32 = turn.parse().map_err(|_| wrong())?;
        let of: u32 = of.parse().map_err(|_| wrong())?;
        let in_order = taken.last().is_none_or(|last| *last < turn);
        if turn == 0 || turn > of || of > TURNS_MAX || *all.get_or_insert(of) != of || !in_order {
            return Err(wrong());
        }
        taken.push(turn);
    }
    Ok(Turns {
        taken,
        of: all.unwrap_or(0),
    })
}

/// Load of the queue that tasks are taken from, if it is recorded: its group is that one CPU.
fn queue_load(r: &Record, busiest: &Busiest) -> Option<u64> {
    let first = busiest.group_first_cpu;
    let row = r.groups.iter().find(|row| row.1 == first)?;
    (row.2 == 1).then_some(row.5.0)
}

/// What is replayed of one attempt.
struct Attempt<'a> {
    r: &'a Record,
    busiest: &'a Busiest,
    src: Cpu,
    turns: &'a Turns,
    /// Load of the queue.
    load: u64,
}

impl Attempt<'_> {
    /// The turns in which the engine takes tasks, and what is left of the amount after each. It is
    /// asked twice: turn by turn, to see what is left, and at once, to see when it stops.
    fn replay(&self, sys: &System, env: LbEnv<'_>) -> Vec<(u32, i64)> {
        let each = self.detach(sys, env, 1);
        let at_once = self.detach(sys, env, self.turns.of);
        let ids = |taken: &[(u32, i64)]| taken.iter().map(|t| t.0).collect::<Vec<_>>();
        match ids(&each) == ids(&at_once) {
            true => each,
            false => at_once,
        }
    }

    /// With so many turns a call; what is left is told after each call.
    fn detach(&self, sys: &System, mut env: LbEnv<'_>, step: u32) -> Vec<(u32, i64)> {
        let mut rqs: Vec<Rq> = (0..sys.nr_cpus() as u32)
            .map(|cpu| Rq::new(sys, Cpu(cpu), NOW_NS))
            .collect();
        let mut moving = Vec::with_capacity(64);
        let mut host = Quiet { now: NOW_NS };
        let mut cx = Cx::new(sys, &mut host, self.src, &mut moving);
        // Each attempt happens at the same instant: nothing of the one before is remembered.
        let memo = &sys.tg[0].cpu(self.src).h_load_stamp;
        memo.store(0, Relaxed);
        self.fill(&mut cx, &mut rqs);
        self.prepare(&mut env);
        let mut taken = Vec::new();
        let mut turn = 0;
        while turn < self.turns.of {
            turn += step;
            env.loop_max = turn;
            env.need_break = false;
            cx.with_rq(&mut rqs, self.src, |cx, rq| {
                env.loops = turn - step;
                detach_tasks(cx, rq, &mut env)
            });
            taken.extend(cx.moving.drain(..).map(|t| (t.body.id.0, env.imbalance)));
        }
        taken
    }

    /// Task 0 runs, and is looked at last; task n is looked at in turn n.
    fn fill(&self, cx: &mut Cx<'_, Quiet>, rqs: &mut Vec<Rq>) {
        let waiting = match self.turns.taken.last() {
            Some(last) if *last == self.turns.of => self.turns.of,
            _ => self.turns.of - 1,
        };
        for id in 0..=waiting {
            let free = self.turns.taken.contains(&id);
            enqueue(cx, rqs, self.src, TaskId(id), free);
            if id == 0 {
                let _ = sched::schedule(cx, rqs, Prev::Runnable);
            }
        }
        let rq = &mut rqs[self.src.idx()];
        if let Some(running) = rq.curr {
            rq.lb_order.move_front(running);
        }
        average(rq, self.busiest, self.r, self.turns, self.load);
    }

    fn prepare(&self, env: &mut LbEnv<'_>) {
        let failed = &env.sd.state.nr_balance_failed;
        failed.store(self.r.nr_balance_failed, Relaxed);
        env.src_cpu = self.src;
        env.migration_type = match self.busiest.migration_type {
            Unit::Load => MigrationType::Load,
            Unit::Util => MigrationType::Util,
            Unit::Task => MigrationType::Task,
            Unit::Misfit => MigrationType::Misfit,
        };
        env.imbalance = self.busiest.imbalance;
    }
}

fn enqueue(cx: &mut Cx<'_, Quiet>, rqs: &mut Vec<Rq>, src: Cpu, id: TaskId, free: bool) {
    let mut task = Task::new(id, TgId::ROOT, cx.features().tunables.base_slice_ns);
    task.body.cpus_allowed = if free {
        cx.sys.cpus()
    } else {
        CpuMask::of(src)
    };
    let placed = Placed {
        cpu: src,
        migrated: false,
    };
    // The queue of the record before, which kept it, is gone.
    cx.sys.task[id.idx()].set_on_rq(OnRq::No);
    sched::sched_fork(cx, rqs, &mut task, None);
    sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
}

/// Gives the queue and the tasks their recorded averages. The estimate of a task's utilisation is
/// not recorded; where it was the greater, it is what was taken off.
fn average(rq: &mut Rq, busiest: &Busiest, r: &Record, turns: &Turns, load: u64) {
    rq.cfs[0].avg.load_avg = load;
    let mut left = busiest.imbalance;
    for (turn, d) in turns.taken.iter().zip(&r.detached) {
        let taken = left.wrapping_sub(d.imbalance_left);
        left = d.imbalance_left;
        let is_it = |slot: &usize| rq.body[*slot].as_ref().is_some_and(|b| b.id.0 == *turn);
        let Some(slot) = (0..rq.body.len()).find(is_it) else {
            continue;
        };
        let avg = &mut rq.se[slot].avg;
        avg.load_avg = d.load_avg;
        avg.util_avg = d.util_avg;
        let estimate = u64::try_from(taken).unwrap_or(0);
        avg.util_est = match estimate > d.util_avg {
            true => u32::try_from(estimate).unwrap_or(u32::MAX),
            false => 0,
        };
    }
}
