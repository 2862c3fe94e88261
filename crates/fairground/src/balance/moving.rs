//! Taking tasks off the busiest queue and putting them on another, each under its own lock.
//!
//! Not modelled: NUMA locality of tasks, per-CPU kernel threads, core scheduling cookies.

use super::env::{IdleType, LbEnv, MigrationType, NR_MIGRATE_BREAK};
use crate::cx::Cx;
use crate::event::Migration;
use crate::fair::{h_load, vtime};
use crate::host::{Host, Rqs};
use crate::math::pelt::task_util_est;
use crate::place::{
    Access, Func, Kind, Object, cfs_rq as fcfs, rq as frq, se as fse, task as ftask,
};
use crate::rq::Rq;
use crate::sched::{attach_moved, detach_for_move};
use crate::shared::Relaxed;
use crate::task::{Policy, Task};
use crate::value::{Cpu, SeId, TgId};

/// Takes tasks off the locked busiest queue into `cx.moving`, until the imbalance is consumed or
/// enough tasks were looked at; their number.
pub(super) fn detach_tasks<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, env: &mut LbEnv<'_>) -> u32 {
    cx.touch(rq.object(), frq::NR_RUNNING, Access::Read);
    if rq.nr_running <= 1 {
        env.all_pinned = false;
        return 0;
    }
    if cx.features().h_load.walks_all_groups() {
        h_load::update_h_load(cx, rq);
    }
    let mut detached = 0;
    while env.imbalance > 0 {
        // Stealing all would make this queue the next victim.
        if env.idle.is_idle() && rq.nr_running <= 1 {
            break;
        }
        let Some(slot) = coldest(rq) else { break };
        env.loops += 1;
        if env.loops > env.loop_max {
            break;
        }
        if env.loops > env.loop_break {
            env.loop_break += NR_MIGRATE_BREAK;
            env.need_break = true;
            break;
        }
        let moved = can_migrate_task(cx, rq, env, slot)
            && consume(cx, rq, env, slot)
            && detach(cx, rq, env, slot);
        if !moved {
            rq.lb_order.move_front(slot);
            cx.touch(rq.se_object(slot), fse::GROUP_NODE, Access::Update);
            continue;
        }
        detached += 1;
        // Looking for work is a source of latency, so a preemptible kernel is content with one.
        if env.idle == IdleType::NewlyIdle && cx.features().load_balance.newidle_moves_one {
            break;
        }
    }
    env.sd.state.lb_gained[env.idle.idx()].fetch_add(u64::from(detached), Relaxed);
    detached
}

/// Takes the first task that may go to `env.dst_cpu` (active balancing).
pub(super) fn detach_one_task<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    env: &mut LbEnv<'_>,
) -> Option<Task> {
    let mut at = rq.lb_order.back();
    while let Some(slot) = at {
        at = rq.lb_order.before(slot);
        if rq.se[slot.idx()].on_rq && can_migrate_task(cx, rq, env, slot) {
            let task = detach_for_move(cx, rq, slot, env.dst_cpu)?;
            env.sd.state.lb_gained[env.idle.idx()].fetch_add(1, Relaxed);
            return Some(task);
        }
    }
    None
}

/// Puts the tasks of `cx.moving` on the queue of `to`.
pub(super) fn attach_tasks<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    from: Cpu,
    to: Cpu,
    why: Migration,
) {
    let outer = cx.host.enter(Func::AttachTasks);
    let mut tasks = core::mem::take(cx.moving);
    cx.with_rq(rqs, to, |cx, rq| {
        cx.update_rq_clock(rq);
        while let Some(task) = tasks.pop() {
            attach_moved(cx, rq, task, from, why);
        }
    });
    *cx.moving = tasks;
    cx.host.leave(outer);
}

/// The task that is looked at next: the last of `cfs_tasks`. Those in limbo are not on it.
#[inline]
fn coldest(rq: &Rq) -> Option<SeId> {
    let mut slot = rq.lb_order.back()?;
    while !rq.se[slot.idx()].on_rq {
        slot = rq.lb_order.before(slot)?;
    }
    Some(slot)
}

fn detach<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, env: &LbEnv<'_>, slot: SeId) -> bool {
    match detach_for_move(cx, rq, slot, env.dst_cpu) {
        Some(task) => {
            cx.moving.push(task);
            true
        }
        None => false,
    }
}

/// Whether a queued task may go to `env.dst_cpu`; notes what affinity prevents.
fn can_migrate_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, env: &mut LbEnv<'_>, slot: SeId) -> bool {
    let Some(body) = rq.body[slot.idx()].as_ref() else {
        return false;
    };
    let (id, tg, allowed) = (body.id, body.tg, body.cpus_allowed);
    let idle_policy = body.policy == Policy::Idle;
    let task = Object {
        kind: Kind::Task,
        a: id.0,
        b: 0,
    };
    cx.touch(
        task,
        ftask::ALLOWED | ftask::ON_CPU | ftask::PRIO,
        Access::Read,
    );
    let read = fse::ON_RQ | fse::EXEC_START | fse::CFS_RQ | fse::GROUP_NODE;
    cx.touch(rq.se_object(slot), read, Access::Read);
    if rq.se[slot.idx()].sched_delayed && env.migration_type != MigrationType::Load {
        return false;
    }
    if throttled(cx, rq, tg, slot, env.dst_cpu) {
        return false;
    }
    let failed = env.sd.state.nr_balance_failed.load(Relaxed);
    let prefers_eligible = cx.features().load_balance.prefers_eligible(failed);
    if prefers_eligible && ineligible_on_dst(cx, rq, tg, slot, env.dst_cpu) {
        return false;
    }
    if !allowed.has(env.dst_cpu) {
        note_pinned(env, &allowed);
        return false;
    }
    env.all_pinned = false;
    if rq.curr == Some(slot) {
        return false;
    }
    env.active_lb || failed > env.sd.cache_nice_tries || !task_hot(cx, rq, env, slot, idle_policy)
}

/// A task that may not go to `dst_cpu` may perhaps go to another CPU of the local group.
fn note_pinned(env: &mut LbEnv<'_>, allowed: &crate::value::CpuMask) {
    env.some_pinned = true;
    if env.idle == IdleType::NewlyIdle || env.new_dst_cpu.is_some() || env.active_lb {
        return;
    }
    env.new_dst_cpu = env.dst_grpmask.and(&env.cpus).and(allowed).first();
}

/// Whether a quota keeps the task from running here (old kernels) or there.
fn throttled<H: Host>(cx: &mut Cx<H>, rq: &Rq, tg: TgId, slot: SeId, dst: Cpu) -> bool {
    if tg == TgId::ROOT {
        return false;
    }
    let here = rq.se[slot.idx()].cfs_rq;
    if cx.features().throttle.pins_waiting_tasks() {
        cx.touch(rq.cfs_object(here), fcfs::THROTTLE_COUNT, Access::Read);
        if rq.cfs[here.idx()].throttled_hierarchy() {
            return true;
        }
    }
    let sys = cx.sys;
    let mut at = Some(tg);
    while let Some(id) = at {
        let group = &sys.tg[id.idx()];
        if let Some(throttled) = group.throttled_hierarchy(dst, cx.host) {
            return throttled;
        }
        at = group.parent;
    }
    false
}

/// Whether the task has had more than its share here, while its group has tasks there: moving it
/// would only make others wait (`task_is_ineligible_on_dst_cpu`).
fn ineligible_on_dst<H: Host>(cx: &mut Cx<H>, rq: &Rq, tg: TgId, slot: SeId, dst: Cpu) -> bool {
    let sys = cx.sys;
    if !sys.features.place.lag || !sys.tg[tg.idx()].queued_on(dst, cx.host) {
        return false;
    }
    cx.touch(rq.se_object(slot), fse::VRUNTIME, Access::Read);
    !vtime::entity_eligible(rq, rq.se[slot.idx()].cfs_rq, slot)
}

/// Whether the task's data is likely still in the caches that the destination does not share.
fn task_hot<H: Host>(
    cx: &mut Cx<H>,
    rq: &Rq,
    env: &LbEnv<'_>,
    slot: SeId,
    idle_policy: bool,
) -> bool {
    if idle_policy || env.sd.flags.share_cpucapacity {
        return false;
    }
    let se = &rq.se[slot.idx()];
    let dst = &cx.sys.cpu[env.dst_cpu.idx()];
    if rq.cfs[se.cfs_rq.idx()].next == Some(slot) && dst.nr_running.load(Relaxed) != 0 {
        return true;
    }
    let since = rq.clock.task.wrapping_sub(se.exec_start) as i64;
    since < cx.sys.features.newidle.migration_cost_ns as i64
}

/// Takes the task off the imbalance; false if it would move too much.
fn consume<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, env: &mut LbEnv<'_>, slot: SeId) -> bool {
    let failed = env.sd.state.nr_balance_failed.load(Relaxed);
    let amount: u64 = match env.migration_type {
        // Deep trees can make the load zero; the imbalance must fall all the same.
        MigrationType::Load => h_load::task_h_load(cx, rq, slot).max(1),
        MigrationType::Util => {
            cx.touch(rq.se_object(slot), fse::AVG, Access::Read);
            task_util_est(&rq.se[slot.idx()].avg)
        }
        MigrationType::Task => 1,
        MigrationType::Misfit => {
            cx.touch(rq.se_object(slot), fse::AVG, Access::Read);
            let util = task_util_est(&rq.se[slot.idx()].avg);
            if fits_capacity(util, rq.clock.capacity) {
                return false;
            }
            env.imbalance.unsigned_abs()
        }
    };
    let bounded = matches!(
        env.migration_type,
        MigrationType::Load | MigrationType::Util
    );
    if bounded && shr_bound(amount, failed) as i64 > env.imbalance {
        return false;
    }
    env.imbalance -= amount as i64;
    true
}

/// `value >> shift`, where every failed attempt makes a big task look half as big.
const fn shr_bound(value: u64, shift: u32) -> u64 {
    value >> if shift < 63 { shift } else { 63 }
}

/// Whether utilisation leaves a fifth of the capacity free.
const fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}
