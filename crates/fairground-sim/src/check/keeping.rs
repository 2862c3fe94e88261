//! Verifies that every task is in exactly one keeping: a run queue's slot, the host's shelf, the
//! wake-up list of a CPU, a step that will enqueue it, or, once it has exited, none; that the words
//! that wakers read say so; and that machine and engine agree on who runs where.

use std::sync::atomic::Ordering::Relaxed;

use fairground::rq::HigherClass;
use fairground::shared::OnRq;
use fairground::value::{SeId, TaskId};

use super::{Verdict, holds};
use crate::machine::Sim;
use crate::machine::cpu::CpuState;
use crate::machine::task::Life;
use crate::machine::todo::Todo;

const LAW: &str = "every task is in one keeping";
const RUNNING: &str = "machine and engine agree on who runs";

pub(super) fn check(sim: &Sim<'_>) -> Verdict {
    holds!(LAW, sim.moving.is_empty(), "tasks are between two queues");
    let mut kept = vec![0u32; sim.tasks.len()];
    for rq in &sim.rqs {
        let mut listed = 0;
        for (slot, body) in rq.body.iter().enumerate() {
            let Some(body) = body else { continue };
            kept[body.id.idx()] += 1;
            listed += usize::from(rq.se[slot].on_rq);
            let words = &sim.sys.task[body.id.idx()];
            let told = (
                words.on_rq(),
                words.cpu.load(Relaxed),
                words.slot.load(Relaxed),
            );
            let is = (OnRq::Queued, rq.cpu.0, slot as u32);
            holds!(LAW, told == is, "task {}: {told:?} for {is:?}", body.id.0);
            in_slot(sim, rq, SeId(slot as u32), body.id)?;
        }
        let order = rq.lb_order.iter().count();
        holds!(
            LAW,
            order == listed,
            "CPU {}: {order} on the list of {listed} queued tasks",
            rq.cpu.0
        );
    }
    for id in sim.host.parked.iter().flatten().map(|t| t.body.id) {
        kept[id.idx()] += 1;
        if sim.tasks[id.idx()].real_time.is_some() {
            real_time(sim, id)?;
        } else {
            elsewhere(sim, id, &[Life::New, Life::Blocked])?;
        }
    }
    for cpu in &sim.cpus {
        for (task, ..) in &cpu.wake_list {
            kept[task.body.id.idx()] += 1;
            elsewhere(sim, task.body.id, &[Life::Waking])?;
        }
        for task in &cpu.leaving {
            kept[task.body.id.idx()] += 1;
            elsewhere(sim, task.body.id, &[Life::Waking])?;
        }
        let enqueues = |t: &&Todo| matches!(t, Todo::Enqueue { .. });
        let (leaving, steps) = (cpu.leaving.len(), cpu.todo.iter().filter(enqueues).count());
        holds!(
            LAW,
            leaving == steps,
            "{leaving} tasks to enqueue in {steps} steps"
        );
    }
    for (id, n) in kept.iter().enumerate() {
        let life = sim.tasks[id].life;
        let gone = life == Life::Exited && *n == 0;
        holds!(LAW, *n == 1 || gone, "task {id} is in {n} places, {life:?}");
    }
    running(sim)
}

/// A task in a run queue's slot.
fn in_slot(sim: &Sim<'_>, rq: &fairground::rq::Rq, slot: SeId, id: TaskId) -> Verdict {
    let (task, se) = (&sim.tasks[id.idx()], &rq.se[slot.idx()]);
    let throttled = rq.body[slot.idx()].as_ref().is_some_and(|b| b.throttled);
    let runs = rq.curr == Some(slot);
    let fits = match task.life {
        Life::Runnable => throttled || (se.on_rq && !se.sched_delayed),
        Life::Blocked => runs || se.sched_delayed,
        Life::Exited => runs,
        Life::New | Life::Waking => false,
    };
    let state = (se.on_rq, se.sched_delayed, throttled, runs);
    holds!(
        LAW,
        fits,
        "task {} is {:?}, but (queued, delayed, throttled, runs) = {state:?}",
        id.0,
        task.life
    );
    Ok(())
}

/// A real-time task, which the host always has: it runs on one CPU or waits for it, or neither.
fn real_time(sim: &Sim<'_>, id: TaskId) -> Verdict {
    let task = &sim.tasks[id.idx()];
    let waits = |state: &CpuState| state.rt.waiting().filter(|t| *t == id).count();
    let waiting: usize = sim.cpus.iter().map(waits).sum();
    let here = waiting + usize::from(task.on_cpu.is_some());
    let fits = match task.life {
        Life::Runnable => here == 1,
        Life::Blocked | Life::Exited => waiting == 0,
        Life::New | Life::Waking => here == 0,
    };
    holds!(
        LAW,
        fits,
        "real-time task {} is {:?} in {here} places",
        id.0,
        task.life
    );
    Ok(())
}

/// A task that is in no run queue.
fn elsewhere(sim: &Sim<'_>, id: TaskId, lives: &[Life]) -> Verdict {
    let life = sim.tasks[id.idx()].life;
    let queued = sim.sys.task[id.idx()].on_rq() != OnRq::No;
    holds!(LAW, !queued, "task {} counts as queued, but is not", id.0);
    holds!(
        LAW,
        lives.contains(&life),
        "task {} is {life:?}, not {lives:?}",
        id.0
    );
    Ok(())
}

fn running(sim: &Sim<'_>) -> Verdict {
    for (cpu, (state, rq)) in sim.cpus.iter().zip(&sim.rqs).enumerate() {
        let there = match rq.higher {
            Some(HigherClass::RealTime(id)) => Some(id),
            Some(HigherClass::Stop) | None => rq.curr_task(),
        };
        let here = state.curr;
        holds!(RUNNING, here == there, "CPU {cpu}: {here:?} and {there:?}");
        let stopped = rq.higher == Some(HigherClass::Stop);
        holds!(RUNNING, !stopped, "CPU {cpu}: the stopper never ends");
        let idle = state.idle.is_some();
        holds!(
            RUNNING,
            !idle || here.is_none(),
            "CPU {cpu} is idle with {here:?}"
        );
        let in_user = state.user_since.is_some();
        holds!(
            RUNNING,
            !in_user || here.is_some(),
            "CPU {cpu}: user code of nobody"
        );
    }
    for (id, task) in sim.tasks.iter().enumerate() {
        let at = task.on_cpu.map(|c| sim.cpus[c as usize].curr);
        let there = at.is_none_or(|curr| curr == Some(TaskId(id as u32)));
        holds!(
            RUNNING,
            there,
            "task {id} thinks it runs on {:?}",
            task.on_cpu
        );
        let flag = sim.sys.task[id].on_cpu.load(Relaxed);
        holds!(RUNNING, flag == at.is_some(), "task {id}: on_cpu is {flag}");
    }
    Ok(())
}
