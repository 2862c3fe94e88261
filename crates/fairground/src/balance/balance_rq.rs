//! One balancing attempt of one CPU at one level (`sched_balance_rq`).
//!
//! ```text
//! should this CPU balance? -> busiest group -> busiest queue -> detach some tasks there
//!    -> attach them here -> more, after a pause, or for another CPU of the group
//!    -> without the CPUs whose tasks are all pinned: again
//!    -> nothing moved, several times: the stopper there pushes the running task
//! ```

use super::busiest::{
    need_active_balance, sched_balance_find_src_group, sched_balance_find_src_rq,
    should_we_balance, voluntary_active_balance,
};
use super::env::{IdleType, LbEnv, MigrationType, NR_MIGRATE_BREAK};
use super::moving::{attach_tasks, detach_tasks};
use super::stopper::wake_stopper;
use crate::cx::Cx;
use crate::event::Migration;
use crate::fair::h_load;
use crate::host::{Host, StopWork};
use crate::place::{Access, Func, Kind, Object, rq as frq, sd as fsd, sg as fsg};
use crate::rq::Rqs;
use crate::shared::Relaxed;
use crate::topology::SchedDomain;
use crate::value::Cpu;

/// Longest interval to which pinned tasks stretch balancing, ms.
const MAX_PINNED_INTERVAL_MS: u64 = 512;

/// What an attempt came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Attempt {
    /// Tasks pulled.
    pub pulled: u32,
    /// False if another CPU balances this level: higher levels are its business too.
    pub goes_on: bool,
}

/// Pulls tasks to `dst` within its domain `level`. The executing CPU may act for an idle `dst`.
pub(super) fn sched_balance_rq<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    dst: Cpu,
    level: usize,
    idle: IdleType,
) -> Attempt {
    let outer = cx.host.enter(Func::BalanceRq);
    let sys = cx.sys;
    let mut env = LbEnv::new(sys, level, dst, idle, &sys.cpus());
    env.dst_grpmask = env.local_group(sys).balance_mask;
    touch_sd(cx, dst, level, fsd::FIXED, Access::Read);
    env.sd.state.lb_count[idle.idx()].fetch_add(1, Relaxed);
    let mut serialized = false;
    let (end, goes_on) = attempt(cx, rqs, &mut env, &mut serialized);
    let pulled = settle(cx, rqs, &mut env, level, dst, end);
    if serialized {
        sys.nohz.end_serialized(cx.host);
    }
    cx.host.leave(outer);
    Attempt { pulled, goes_on }
}

/// How an attempt ended.
enum End {
    /// Nothing to do.
    Balanced,
    /// The tasks of every queue worth pulling from are pinned.
    AllPinned,
    /// There was an imbalance, and that many tasks were moved.
    Tried(u32),
}

/// `serialized` is set if this CPU is the only one now that balances such a level.
fn attempt<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    env: &mut LbEnv<'_>,
    serialized: &mut bool,
) -> (End, bool) {
    let newidle = env.idle == IdleType::NewlyIdle;
    let rule = cx.features().load_balance.serialize;
    loop {
        if !should_we_balance(cx, env) {
            return (End::Balanced, false);
        }
        if env.sd.flags.serialize && rule.in_attempt(newidle) && !*serialized {
            if !cx.sys.nohz.try_start_serialized(cx.host) {
                return (End::Balanced, true);
            }
            *serialized = true;
        }
        let (state, idle) = (&env.sd.state, env.idle.idx());
        let Some(busiest) = sched_balance_find_src_group(cx, env) else {
            state.lb_nobusyg[idle].fetch_add(1, Relaxed);
            return (End::Balanced, true);
        };
        let Some(src) = sched_balance_find_src_rq(cx, env, busiest.group) else {
            state.lb_nobusyq[idle].fetch_add(1, Relaxed);
            return (End::Balanced, true);
        };
        let found = u64::try_from(env.imbalance).unwrap_or(0);
        state.lb_imbalance[idle][env.migration_type as usize].fetch_add(found, Relaxed);
        debug_assert!(src != env.dst_cpu);
        env.src_cpu = src;
        env.all_pinned = true;
        let nr_running = cx.sys.cpu[src.idx()].nr_running.load(Relaxed);
        if nr_running <= 1 {
            return (End::Tried(0), true);
        }
        env.loop_max = cx.features().load_balance.nr_migrate.min(nr_running);
        // Before the lock, so that the walk does not lengthen its holding. The kernel (up to 3.11)
        // walked another CPU's queues with no lock at all.
        cx.with_rq_lockless(rqs, src, h_load::update_h_load);
        let moved = pull(cx, rqs, env);
        if env.some_pinned && env.imbalance > 0 {
            // Affinity kept a task there: lets the level above see this group as imbalanced.
            set_group_imbalance(cx, env, true);
        }
        if !env.all_pinned {
            return (End::Tried(moved), true);
        }
        // All are pinned there: another queue, if one outside the own group is left.
        env.cpus.clear(src);
        if env.cpus.is_subset(&env.dst_grpmask) {
            return (End::AllPinned, true);
        }
        env.loops = 0;
        env.loop_break = NR_MIGRATE_BREAK;
    }
}

/// Moves tasks from `env.src_cpu` to `env.dst_cpu`, and those that may not go there to another
/// CPU of the local group; their number.
fn pull<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, env: &mut LbEnv<'_>) -> u32 {
    let src = env.src_cpu;
    let mut all = 0;
    loop {
        let moved = cx.with_rq(rqs, src, |cx, rq| {
            cx.update_rq_clock(rq);
            cx.span(Func::DetachTasks, |cx| detach_tasks(cx, rq, env))
        });
        if moved > 0 {
            attach_tasks(cx, rqs, src, env.dst_cpu, Migration::Balance);
            all += moved;
        }
        if core::mem::take(&mut env.need_break) {
            continue;
        }
        if env.imbalance <= 0 {
            return all;
        }
        let Some(other) = env.new_dst_cpu.take() else {
            return all;
        };
        env.cpus.clear(env.dst_cpu);
        env.dst_cpu = other;
        env.loops = 0;
        env.loop_break = NR_MIGRATE_BREAK;
    }
}

/// Notes, or forgets, at the level above that affinity spoilt balancing at this one.
fn set_group_imbalance<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>, value: bool) {
    let topology = &cx.sys.topology;
    let Some(parent) = topology.domains(env.owner).get(env.sd.level as usize + 1) else {
        return;
    };
    let id = parent.groups[0];
    let imbalance = &topology.group(id).state.imbalance;
    let object = Object {
        kind: Kind::Sg,
        a: id.0,
        b: 0,
    };
    if !value {
        cx.touch(object, fsg::IMBALANCE, Access::Read);
        if !imbalance.load(Relaxed) {
            return;
        }
    }
    cx.touch(object, fsg::IMBALANCE, Access::Write);
    imbalance.store(value, Relaxed);
}

/// Failures, intervals and active balancing after an attempt; tasks pulled.
fn settle<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    env: &mut LbEnv<'_>,
    level: usize,
    dst: Cpu,
    end: End,
) -> u32 {
    let state = &env.sd.state;
    // Statistics are behind a static key that is off.
    touch_sd(cx, dst, level, fsd::LAST_BALANCE, Access::Update);
    match end {
        End::Tried(0) => {
            state.lb_failed[env.idle.idx()].fetch_add(1, Relaxed);
            // Newly idle CPUs try often, and misfits say nothing about load: neither should make
            // the others move hot tasks.
            if env.idle != IdleType::NewlyIdle && env.migration_type != MigrationType::Misfit {
                state.nr_balance_failed.fetch_add(1, Relaxed);
            }
            if need_active_balance(cx, env) {
                let Some(started) = start_active_balance(cx, rqs, env.src_cpu, dst) else {
                    stretch_interval(env);
                    return 0;
                };
                env.all_pinned = false;
                after_push(cx, env, started);
            } else {
                reset_interval(env.sd);
            }
            0
        }
        End::Tried(moved) => {
            state.nr_balance_failed.store(0, Relaxed);
            reset_interval(env.sd);
            moved
        }
        End::Balanced | End::AllPinned => {
            // Pinned tasks leave the flag, so that the level above can try.
            if matches!(end, End::Balanced) && !env.all_pinned {
                set_group_imbalance(cx, env, false);
            }
            state.lb_balanced[env.idle.idx()].fetch_add(1, Relaxed);
            state.nr_balance_failed.store(0, Relaxed);
            stretch_interval(env);
            0
        }
    }
}

/// The interval after the running task was to be pushed; `started` = the stopper was asked now.
fn after_push<H: Host>(cx: &mut Cx<H>, env: &LbEnv<'_>, started: bool) {
    let (sd, rule) = (env.sd, cx.features().load_balance.active);
    if !rule.backs_off() {
        if !started || need_active_balance(cx, env) {
            reset_interval(sd);
        }
        return;
    }
    let tries = sd.cache_nice_tries + 1;
    sd.state.nr_balance_failed.store(tries, Relaxed);
    if !started || voluntary_active_balance(cx, env) {
        reset_interval(sd);
        return;
    }
    let interval = &sd.state.balance_interval_ms;
    if interval.load(Relaxed) < sd.max_interval_ms {
        interval.store(interval.load(Relaxed) * 2, Relaxed);
    }
}

/// Asks the stopper of `src` to push a task to `dst`; whether it was asked now, `None` if the
/// running task may not go there.
fn start_active_balance<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    src: Cpu,
    dst: Cpu,
) -> Option<bool> {
    let started = cx.with_rq(rqs, src, |cx, rq| {
        cx.touch(rq.object(), frq::CURR | frq::ACTIVE_BALANCE, Access::Read);
        // The idle task and the stopper are bound to their CPU.
        let body = rq.curr.and_then(|slot| rq.body[slot.idx()].as_ref());
        if !body.is_some_and(|b| b.cpus_allowed.has(dst)) {
            return None;
        }
        if rq.active_balance {
            return Some(false);
        }
        cx.touch(rq.object(), frq::ACTIVE_BALANCE, Access::Write);
        rq.active_balance = true;
        rq.push_cpu = dst;
        Some(true)
    })?;
    if started {
        cx.with_rq(rqs, src, |cx, rq| {
            cx.update_rq_clock(rq);
            wake_stopper(cx, rq, StopWork::ActiveBalance);
        });
    }
    Some(started)
}

/// After an attempt that found something to do, the domain balances as often as it may.
pub fn reset_interval(sd: &SchedDomain) {
    sd.state
        .balance_interval_ms
        .store(sd.min_interval_ms, Relaxed);
}

/// Balanced, or nothing can be done: try again later and later. Newly idle attempts come at any
/// time, so they do not count.
fn stretch_interval(env: &LbEnv<'_>) {
    if env.idle == IdleType::NewlyIdle || env.migration_type == MigrationType::Misfit {
        return;
    }
    let interval = env.sd.state.balance_interval_ms.load(Relaxed);
    let pinned = env.all_pinned && interval < MAX_PINNED_INTERVAL_MS;
    if pinned || interval < env.sd.max_interval_ms {
        env.sd
            .state
            .balance_interval_ms
            .store(interval * 2, Relaxed);
    }
}

pub(super) fn touch_sd<H: Host>(
    cx: &mut Cx<H>,
    cpu: Cpu,
    level: usize,
    fields: crate::place::Fields,
    access: Access,
) {
    let object = Object {
        kind: Kind::Sd,
        a: cpu.0,
        b: level as u32,
    };
    cx.touch(object, fields, access);
}
