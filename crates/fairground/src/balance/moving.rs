//! Taking tasks off the busiest queue and putting them on another, each under its own lock.
//!
//! Not modelled: NUMA locality of tasks, per-CPU kernel threads, core scheduling cookies.

use super::env::{IdleType, LbEnv, MigrationType, NR_MIGRATE_BREAK, capacity_of};
use crate::cx::Cx;
use crate::event::Migration;
use crate::fair::keep::{attach_moved, detach_for_move};
use crate::fair::throttle::is_throttled_on;
use crate::fair::{h_load, links, vtime};
use crate::host::Host;
use crate::math::fits_capacity;
use crate::math::pelt::task_util_est;
use crate::place::{Access, Func, Kind, Object, cfs_rq as fq, rq as frq, se as fse, task as ftask};
use crate::policy::LbOrder;
use crate::rq::{Rq, Rqs};
use crate::shared::Relaxed;
use crate::task::{Policy, Task};
use crate::value::{Cpu, SeId, TgId};

/// Takes tasks off the locked busiest queue into `cx.moving`, until the imbalance is consumed or
/// enough tasks were looked at; their number.
pub fn detach_tasks<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, env: &mut LbEnv<'_>) -> u32 {
    debug_assert!(cx.moving.is_empty(), "a task of nobody is in `moving`");
    cx.touch(rq.object(), frq::NR_RUNNING, Access::Read);
    if rq.nr_running <= 1 {
        env.all_pinned = false;
        return 0;
    }
    let mut detached = 0;
    let order = cx.features().load_balance.order;
    while env.imbalance > 0 {
        let first = first_candidate(cx, rq, order);
        // Stealing all would make this queue the next victim.
        if env.idle.is_idle() && rq.nr_running <= 1 {
            break;
        }
        let Some(slot) = first else { break };
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
            if order.newest_first() {
                links::move_back(cx, rq, slot);
            } else {
                links::move_front(cx, rq, slot);
            }
            continue;
        }
        detached += 1;
        if env.hot {
            env.sd.state.lb_hot_gained[env.idle.idx()].fetch_add(1, Relaxed);
        }
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
    let order = cx.features().load_balance.order;
    let mut at = first_candidate(cx, rq, order);
    while let Some(slot) = at {
        at = candidate_after(rq, order, slot);
        if can_migrate_task(cx, rq, env, slot) {
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

/// Also whether there is any at all (`list_empty`).
fn first_candidate<H: Host>(cx: &mut Cx<H>, rq: &Rq, order: LbOrder) -> Option<SeId> {
    cx.touch(rq.object(), frq::CFS_TASKS, Access::Read);
    if order.newest_first() {
        return rq.lb_order.front();
    }
    rq.lb_order.back()
}

#[inline]
fn candidate_after(rq: &Rq, order: LbOrder, slot: SeId) -> Option<SeId> {
    if order.newest_first() {
        return rq.lb_order.after(slot);
    }
    rq.lb_order.before(slot)
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
    // Each question reads what it needs when it is asked: of most tasks of throttled queues
    // little more is read than that they are.
    let se = rq.se_object(slot);
    cx.touch(se, fse::ON_RQ | fse::GROUP_NODE, Access::Read);
    let asleep = rq.se[slot.idx()].sched_delayed;
    let stays = asleep && !cx.features().load_balance.counts.sleepers();
    if stays && env.migration_type != MigrationType::Load {
        return false;
    }
    if throttled(cx, rq, tg, task, env.dst_cpu) {
        return false;
    }
    let failed = env.sd.state.nr_balance_failed.load(Relaxed);
    let prefers_eligible = cx.features().load_balance.prefers_eligible(failed);
    if prefers_eligible && ineligible_on_dst(cx, rq, tg, slot, env.dst_cpu) {
        return false;
    }
    cx.touch(task, ftask::ALLOWED, Access::Read);
    if !allowed.has(env.dst_cpu) {
        note_pinned(env, &allowed);
        return false;
    }
    env.all_pinned = false;
    cx.touch(task, ftask::ON_CPU, Access::Read);
    if rq.curr == Some(slot) {
        return false;
    }
    if env.active_lb {
        env.hot = false;
        return true;
    }
    cx.touch(task, ftask::PRIO, Access::Read);
    env.hot = task_hot(cx, rq, env, slot, idle_policy);
    !env.hot || failed > env.sd.cache_nice_tries
}

/// A task that may not go to `dst_cpu` may perhaps go to another CPU of the local group.
fn note_pinned(env: &mut LbEnv<'_>, allowed: &crate::value::CpuMask) {
    env.some_pinned = true;
    if env.idle == IdleType::NewlyIdle || env.new_dst_cpu.is_some() || env.active_lb {
        return;
    }
    env.new_dst_cpu = env.dst_grpmask.and(&env.cpus).and(allowed).first();
}

/// Whether a quota keeps the task from running here (old kernels) or there. Nothing is read where
/// no group has a quota (`cfs_bandwidth_used` is a static key).
fn throttled<H: Host>(cx: &mut Cx<H>, rq: &Rq, tg: TgId, task: Object, dst: Cpu) -> bool {
    if tg == TgId::ROOT || !cx.sys.bandwidth_used() {
        return false;
    }
    cx.touch(task, ftask::SCHED_GROUP, Access::Read);
    if cx.features().throttle.pins_waiting_tasks() && is_throttled_on(cx, tg, rq.cpu) {
        return true;
    }
    is_throttled_on(cx, tg, dst)
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
    let sibling = env.sd.flags.share_cpucapacity && !cx.features().load_balance.hot_for_sibling;
    if idle_policy || sibling {
        return false;
    }
    let se = &rq.se[slot.idx()];
    let dst = &cx.sys.cpu[env.dst_cpu.idx()];
    if dst.nr_running.load(Relaxed) != 0 {
        let queue = &rq.cfs[se.cfs_rq.idx()];
        cx.touch(rq.se_object(slot), fse::CFS_RQ, Access::Read);
        cx.touch(rq.cfs_object(se.cfs_rq), fq::NEXT, Access::Read);
        if [queue.next, queue.last].contains(&Some(slot)) {
            return true;
        }
    }
    cx.touch(rq.se_object(slot), fse::EXEC_START, Access::Read);
    let since = rq.clock.task.wrapping_sub(se.exec_start) as i64;
    since < cx.sys.features.newidle.migration_cost_ns as i64
}

/// Takes the task off the imbalance; false if it is too big for it, or fits where it is.
fn consume<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, env: &mut LbEnv<'_>, slot: SeId) -> bool {
    let failed = env.sd.state.nr_balance_failed.load(Relaxed);
    let rule = cx.features().load_balance.big_task;
    let (amount, too_big) = match env.migration_type {
        MigrationType::Load => {
            // Deep trees can make the load zero; the imbalance must fall all the same.
            let load = h_load::task_h_load(cx, rq, slot).max(1);
            let tries = env.sd.cache_nice_tries;
            (load, rule.by_load(load, env.imbalance, failed, tries))
        }
        MigrationType::Util => {
            cx.touch(rq.se_object(slot), fse::AVG, Access::Read);
            let util = task_util_est(&rq.se[slot.idx()].avg);
            (util, rule.by_util(util, env.imbalance, failed))
        }
        MigrationType::Task => (1, false),
        MigrationType::Misfit => {
            cx.touch(rq.se_object(slot), fse::AVG, Access::Read);
            let util = task_util_est(&rq.se[slot.idx()].avg);
            let fits = fits_capacity(util, capacity_of(cx.sys, rq.cpu));
            (env.imbalance.unsigned_abs(), fits)
        }
    };
    if too_big {
        return false;
    }
    env.imbalance -= amount as i64;
    true
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::fair::group::ensure_cfs;
    use crate::host::StopWork;
    use crate::place::{Fields, cfs_rq};
    use crate::policy::Features;
    use crate::sched;
    use crate::task::{Placed, Prev, WakeKind};
    use crate::testing::Bench;
    use crate::value::CpuMask;

    /// Four CPUs with one cache; CPU 0 runs the first of `allowed.len()` hogs.
    fn bench(features: Features, allowed: &[CpuMask]) -> Bench {
        let mut bench = Bench::nodes(1, 4, features);
        for mask in allowed {
            fork(&mut bench, TgId::ROOT, mask);
        }
        bench.host.now += 10_000_000; // nobody is hot
        bench
    }

    /// A new task on CPU 0, which runs the first.
    fn fork(bench: &mut Bench, tg: TgId, allowed: &CpuMask) {
        let mut task = bench.task(tg);
        task.body.cpus_allowed = *allowed;
        let placed = Placed {
            cpu: Cpu(0),
            migrated: false,
        };
        bench.call(0, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
            if rqs[0].curr.is_none() {
                let _ = sched::schedule(cx, rqs, Prev::Runnable);
            }
        });
    }

    fn free(n: usize) -> Vec<CpuMask> {
        alloc::vec![CpuMask::first_n(4); n]
    }

    /// Detaches for CPU 1; ids of the tasks taken, and what the attempt has noted.
    fn detach(
        bench: &mut Bench,
        idle: IdleType,
        set: impl Fn(&mut LbEnv<'_>),
    ) -> (Vec<u32>, Noted) {
        bench.on(0, |cx, rq| {
            let sys = cx.sys;
            let mut env = LbEnv::new(sys, 0, Cpu(1), idle, &sys.cpus());
            env.dst_grpmask = CpuMask::first_n(4).and_not(&CpuMask::of(Cpu(0)));
            env.loop_max = 32;
            env.all_pinned = true;
            env.migration_type = MigrationType::Task;
            set(&mut env);
            let n = detach_tasks(cx, rq, &mut env);
            let ids: Vec<u32> = cx.moving.drain(..).map(|t| t.body.id.0).collect();
            assert_eq!(ids.len(), n as usize);
            let noted = Noted {
                all_pinned: env.all_pinned,
                new_dst: env.new_dst_cpu.map(|c| c.0),
                left: env.imbalance,
            };
            (ids, noted)
        })
    }

    #[derive(PartialEq, Eq, Debug)]
    struct Noted {
        all_pinned: bool,
        new_dst: Option<u32>,
        left: i64,
    }

    #[test]
    fn the_walk_over_all_groups_comes_before_the_lock() {
        let features = Features {
            h_load: crate::policy::HLoad::Eager,
            ..Features::default()
        };
        let mut bench = bench(features, &free(3));
        bench.host.entered.clear();
        let attempt = bench.call(1, |cx, rqs| {
            super::super::balance_rq::sched_balance_rq(cx, rqs, Cpu(1), 0, IdleType::Idle)
        });
        assert!(attempt.pulled > 0);
        let at = |func| bench.host.entered.iter().position(|f| *f == func);
        assert!(at(Func::TgLoadDown).is_some());
        assert!(at(Func::TgLoadDown) < at(Func::DetachTasks));
    }

    #[test]
    fn the_oldest_waiting_tasks_go_and_the_running_one_stays() {
        let mut bench = bench(Features::default(), &free(5));
        let (ids, noted) = detach(&mut bench, IdleType::Idle, |env| env.imbalance = 2);
        assert_eq!(ids, [1, 2]);
        assert!(!noted.all_pinned && noted.left == 0);
    }

    #[test]
    fn before_4_15_the_newest_went() {
        let mut features = Features::default();
        features.load_balance.order = LbOrder::Newest;
        let mut bench = bench(features, &free(5));
        let (ids, _) = detach(&mut bench, IdleType::Idle, |env| env.imbalance = 2);
        assert_eq!(ids, [4, 3]);
        // Who may not go is put behind all others.
        let here = CpuMask::of(Cpu(0));
        let mut allowed = free(5);
        allowed[4] = here;
        let mut features = Features::default();
        features.load_balance.order = LbOrder::Newest;
        let mut bench = self::bench(features, &allowed);
        let (ids, _) = detach(&mut bench, IdleType::Idle, |env| env.imbalance = 2);
        assert_eq!(ids, [3, 2]);
        let last = bench.rqs[0]
            .lb_order
            .back()
            .map(|s| bench.rqs[0].task_id(s).0);
        assert_eq!(last, Some(4));
    }

    #[test]
    fn before_5_10_a_task_was_hot_for_its_sibling_too() {
        for (rule, moved) in [(false, 1), (true, 0)] {
            let mut features = Features::default();
            features.load_balance.hot_for_sibling = rule;
            let mut bench = bench(features, &free(2));
            let just_now = bench.host.now;
            bench.rqs[0]
                .se
                .iter_mut()
                .for_each(|se| se.exec_start = just_now);
            bench.sys.topology.domains[1][0].flags.share_cpucapacity = true;
            let (ids, _) = detach(&mut bench, IdleType::Idle, |env| env.imbalance = 1);
            assert_eq!(ids.len(), moved, "{rule}");
        }
    }

    #[test]
    fn an_idle_cpu_leaves_one_task_behind() {
        let mut bench = bench(Features::default(), &free(3));
        let (ids, noted) = detach(&mut bench, IdleType::Idle, |env| env.imbalance = 9);
        assert_eq!((ids.len(), noted.left), (2, 7));
    }

    #[test]
    fn a_newly_idle_cpu_takes_one_by_decision() {
        for (moves_one, taken) in [(true, 1), (false, 3)] {
            let mut features = Features::default();
            features.load_balance.newidle_moves_one = moves_one;
            let mut bench = bench(features, &free(5));
            let (ids, _) = detach(&mut bench, IdleType::NewlyIdle, |env| env.imbalance = 3);
            assert_eq!(ids.len(), taken);
        }
    }

    #[test]
    fn load_is_consumed_and_too_much_is_not_taken() {
        let mut bench = bench(Features::default(), &free(5));
        let load = |env: &mut LbEnv<'_>| {
            env.migration_type = MigrationType::Load;
            env.imbalance = 2400;
        };
        let (ids, noted) = detach(&mut bench, IdleType::Idle, load);
        // The hierarchical load is that of the jiffy, so the second of five
        // weighs 5/4 of the first.
        assert_eq!(ids.len(), 2, "{noted:?}");
        assert!((0..200).contains(&noted.left), "{noted:?}");
    }

    #[test]
    fn failures_make_big_tasks_look_small() {
        let mut bench = bench(Features::default(), &free(5));
        let load = |env: &mut LbEnv<'_>| {
            env.migration_type = MigrationType::Load;
            env.imbalance = 300;
        };
        assert_eq!(detach(&mut bench, IdleType::Idle, load).0.len(), 0);
        let sd = &bench.sys.topology.domains(Cpu(1))[0];
        sd.state.nr_balance_failed.store(2, Relaxed);
        let (ids, noted) = detach(&mut bench, IdleType::Idle, load);
        assert_eq!(ids.len(), 1);
        assert!(noted.left < 0);
    }

    #[test]
    fn hot_tasks_stay_until_attempts_have_failed() {
        let mut bench = bench(Features::default(), &free(3));
        bench.host.now += 1_000_000;
        bench.call(0, |cx, rqs| {
            // The running task is put back now, and is hot; it is the last to be looked at.
            let _ = sched::schedule(cx, rqs, Prev::Runnable);
        });
        let (cold, _) = detach(&mut bench, IdleType::Busy, |env| env.imbalance = 3);
        assert_eq!(cold.len(), 1);
        let sd = &bench.sys.topology.domains(Cpu(1))[0];
        sd.state
            .nr_balance_failed
            .store(sd.cache_nice_tries + 1, Relaxed);
        let (hot, _) = detach(&mut bench, IdleType::Busy, |env| env.imbalance = 3);
        assert_eq!(hot.len(), 1);
    }

    #[test]
    fn pinned_tasks_name_another_cpu_of_the_group_or_nobody() {
        let two = CpuMask::of(Cpu(0)).or(&CpuMask::of(Cpu(2)));
        let mut bench1 = bench(Features::default(), &[two; 3]);
        let (ids, noted) = detach(&mut bench1, IdleType::Idle, |env| env.imbalance = 1);
        assert_eq!(ids, [0; 0]);
        let expected = Noted {
            all_pinned: true,
            new_dst: Some(2),
            left: 1,
        };
        assert_eq!(noted, expected);
        let (_, noted) = detach(&mut bench1, IdleType::NewlyIdle, |env| env.imbalance = 1);
        assert_eq!(
            noted.new_dst, None,
            "a newly idle CPU pulls for itself alone"
        );
    }

    /// What is read of the waiting task of a group, and whether it is moved to CPU 1, where its
    /// group is `throttled`; some group has a quota or not.
    fn looks_at(quota: bool, throttled: bool) -> (usize, usize, usize) {
        let mut bench = bench(Features::default(), &free(1));
        let [tg, other] = [0; 2].map(|_| bench.sys.add_group(TgId::ROOT));
        bench.sys.open_group(tg);
        fork(&mut bench, tg, &CpuMask::first_n(4));
        if quota {
            bench.call(0, |cx, rqs| {
                sched::set_bandwidth(cx, rqs, other, Some(1 << 20), 1 << 24, 0).expect("a quota");
            });
        }
        let there = bench.on(1, |cx, rq| ensure_cfs(cx, rq, tg));
        let count = u32::from(throttled);
        bench.rqs[1].cfs[there.idx()].words.publish_throttle(count);
        bench.host.now += 10_000_000;
        bench.host.touches.clear();
        let once = |env: &mut LbEnv<'_>| (env.imbalance, env.loop_max) = (1, 2);
        let (ids, _) = detach(&mut bench, IdleType::Idle, once);
        let touched = |wanted: &dyn Fn(&Object, Fields) -> bool| {
            let touches = bench.host.touches.iter();
            touches.filter(|(o, fields, _)| wanted(o, *fields)).count()
        };
        let queue = bench.sys.tg[tg.idx()].queue(Cpu(1));
        let counts = touched(&|o, f| *o == queue && f.intersects(cfs_rq::THROTTLE_COUNT));
        let masks = touched(&|o, f| o.kind == Kind::Task && f.intersects(ftask::ALLOWED));
        (counts, masks, ids.len())
    }

    #[test]
    fn of_a_task_whose_group_is_throttled_there_no_more_is_read() {
        // One mask is that of the running task, which is looked at first.
        assert_eq!(looks_at(true, true), (1, 1, 0));
        assert_eq!(looks_at(true, false), (1, 2, 1));
        // Without any quota nobody asks.
        assert_eq!(looks_at(false, false), (0, 2, 1));
    }

    #[test]
    fn a_pause_comes_after_thirty_two() {
        let mut bench = bench(Features::default(), &free(40));
        let all = |env: &mut LbEnv<'_>| {
            env.imbalance = 100;
            env.loop_max = 39;
        };
        let (ids, noted) = detach(&mut bench, IdleType::Idle, all);
        // One of the 32 that were looked at runs.
        assert_eq!((ids.len(), noted.left), (31, 69));
    }

    #[test]
    fn the_stopper_pushes_what_ran() {
        let mut bench = bench(Features::default(), &free(1));
        bench.rqs[0].active_balance = true;
        bench.rqs[0].push_cpu = Cpu(3);
        let switches = bench.rqs[0].nr_switches;
        let switch = bench.call(0, |cx, rqs| {
            sched::run_stopper(cx, rqs, StopWork::ActiveBalance)
        });
        assert_eq!(switch.next, None);
        let counted = bench.rqs[0].nr_switches - switches;
        assert_eq!(counted, 1, "from the stopper to the idle task");
        assert_eq!((bench.rqs[0].nr_running, bench.rqs[3].nr_running), (0, 1));
        assert!(!bench.rqs[0].active_balance);
        assert!(bench.host.rescheds.contains(&Cpu(3)));
        let sd = &bench.sys.topology.domains(Cpu(3))[0];
        assert_eq!(sd.state.alb_pushed.load(Relaxed), 1);
    }
}
