//! The stopper: work that needs the running task out of the way.

use super::switch::switch_to;
use crate::balance::active;
use crate::cx::Cx;
use crate::event::Migration;
use crate::fair::keep::{attach_moved, detach_for_move, is_movable};
use crate::fair::task;
use crate::host::{Host, Kick};
use crate::place::{Access, Func, task as ftask};
use crate::rq::{Rq, Rqs};
use crate::select::update_idle_core;
use crate::task::{Placed, Switch};
use crate::value::{Cpu, SeId};

/// Runs the stopper on the executing CPU: puts the running task back into its queue, does
/// `work` ([`Kick::ActiveBalance`] or [`Kick::Migrate`]), and picks again.
pub fn run_stopper<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, work: Kick) -> Switch {
    let cpu = cx.cpu;
    let outer = cx.host.enter(Func::Schedule);
    let prev = cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        let prev = rq.curr;
        if let Some(slot) = prev {
            task::put_prev_task_fair(cx, rq, slot);
        }
        // The switch to the stopper heeds what was asked of the task that ran.
        cx.touch(rq.curr_object(), ftask::THREAD_INFO, Access::Rmw);
        prev.map(|slot| {
            let out = (slot, rq.task_id(slot));
            rq.curr = None;
            rq.stopped = true;
            out
        })
    });
    cx.host.leave(outer);
    match work {
        Kick::ActiveBalance => active::active_load_balance_push(cx, rqs),
        _ => migrate_disallowed(cx, rqs),
    }
    let outer = cx.host.enter(Func::Schedule);
    let switch = cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        rq.stopped = false;
        let next = if rq.nr_running > 0 {
            task::pick_next_task_fair(cx, rq, None)
        } else {
            None
        };
        // The one that ran may have left for another CPU; if it is here, this is its switch.
        let here =
            prev.filter(|(slot, id)| rq.body[slot.idx()].as_ref().is_some_and(|b| b.id == *id));
        let mut out = switch_to(cx, rq, here.map(|(slot, _)| slot), next);
        out.prev = prev.map(|(_, id)| id);
        if next.is_none() {
            rq.clock.enter_idle(&rq.cfs[0].avg);
            if here.is_none() {
                // From the stopper to the idle task.
                update_idle_core(cx, cpu);
                rq.nr_switches += 1;
            }
        }
        out
    });
    cx.host.leave(outer);
    switch
}

/// Moves away every task of the executing CPU that is not allowed here any more, or that wants to
/// replace its image elsewhere.
fn migrate_disallowed<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let outer = cx.host.enter(Func::MigrationStop);
    let from = cx.cpu;
    loop {
        let moved = cx.with_rq(rqs, from, |cx, rq| {
            let (slot, to, why) = next_to_move(cx, rq)?;
            if !is_movable(rq, slot) {
                return None;
            }
            detach_for_move(cx, rq, slot, to).map(|task| (task, to, why))
        });
        let Some((task, to, why)) = moved else { break };
        let placed = Placed {
            cpu: to,
            migrated: true,
        };
        cx.with_rq(rqs, placed.cpu, |cx, rq| {
            cx.update_rq_clock(rq);
            attach_moved(cx, rq, task, from, why);
        });
    }
    cx.host.leave(outer);
}

fn next_to_move<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Option<(SeId, Cpu, Migration)> {
    if let Some((slot, to)) = rq.exec_dest.take() {
        return Some((slot, to, Migration::Placement));
    }
    let cpu = rq.cpu;
    let slot = rq.lb_order.iter().find(|slot| {
        let allowed = rq.body[slot.idx()]
            .as_ref()
            .map(|b| b.cpus_allowed.has(cpu));
        allowed == Some(false) && is_movable(rq, *slot)
    })?;
    let allowed = rq.body[slot.idx()]
        .as_ref()?
        .cpus_allowed
        .and(&cx.sys.cpus());
    Some((slot, next_allowed(rq, &allowed)?, Migration::Affinity))
}

/// A CPU of `allowed`, a different one each time (`cpumask_any_and_distribute`).
pub(super) fn next_allowed(rq: &mut Rq, allowed: &crate::value::CpuMask) -> Option<Cpu> {
    let cpu = allowed.iter_wrap(Cpu(rq.distribute_prev.0 + 1)).next()?;
    rq.distribute_prev = cpu;
    Some(cpu)
}
