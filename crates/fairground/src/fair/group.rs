//! Groups on one CPU: their queue, their weight, their share.

use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::fence;

use super::cfs_rules;
use super::entity::reweight_entity;
use super::load::{attach_task_cfs_rq, detach_task_cfs_rq, update_load_avg};
use super::task::{dequeue_task_fair, enqueue_task_fair, put_prev_task_fair, set_next_task_fair};
use super::throttle::init_throttle;
use crate::cx::Cx;
use crate::fair::{Dequeue, Enqueue, SetNext, UpdateLoad};
use crate::host::Host;
use crate::math::shares::calc_group_shares;
use crate::math::weight::{LoadWeight, NICE_0_LOAD};
use crate::place::{Access, Fields, Func, Kind, Object, cfs_rq as q, se as e, task as t};
use crate::rq::Rq;
use crate::shared::Relaxed;
use crate::task::{Resched, SchedEntity, Task};
use crate::value::{CfsId, Cpu, SeId, TaskId, TgId};

/// The queue of `tg` on this CPU, made now (with those above it) if it is the first use.
///
/// The kernel makes it when the group is made, and its entity has been ageing with nothing to
/// decay since then. So the entity starts attached, in the phase of its queue.
pub fn ensure_cfs<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) -> CfsId {
    // The topmost that is missing first.
    loop {
        if let Some(cfs) = rq.cfs_of(tg) {
            return cfs;
        }
        let sys = cx.sys;
        let mut missing = tg;
        let parent = loop {
            let above = sys.tg[missing.idx()].parent.unwrap_or(TgId::ROOT);
            match rq.cfs_of(above) {
                Some(cfs) => break cfs,
                None => missing = above,
            }
        };
        make_cfs(cx, rq, missing, parent);
    }
}

/// Recomputes the weight of a group entity from the group load that was published; nothing for a
/// task.
#[inline(never)]
pub fn update_cfs_group<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, se: SeId) {
    if let Some(below) = rq.se[se.idx()].my_q {
        update_cfs_group_inlined(cx, rq, se, below);
    }
}

/// [`update_cfs_group`] of a group's entity, whose queue is `below`; without a call, for the tick,
/// which does little else.
#[inline(always)]
pub(crate) fn update_cfs_group_inlined<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    se: SeId,
    below: CfsId,
) {
    let outer = cx.host.enter(Func::UpdateCfsGroup);
    let (queue, entity) = (&rq.cfs[below.idx()], &rq.se[se.idx()]);
    let object = queue.object(rq.cpu);
    let features = cx.features();
    // The entity of a group that became empty can be a delayed sleeper, whose lag is counted in its
    // weight.
    let keeps_empty = features.delays_dequeue();
    let freezes = features.throttle.freezes_group_weight() && cx.sys.bandwidth_used();
    let throttle_count = if freezes {
        q::THROTTLE_COUNT
    } else {
        Fields(0)
    };
    let kept = (keeps_empty && queue.load.weight == 0) || (freezes && queue.throttled_hierarchy());
    if kept {
        cx.touch(object, q::LOAD | throttle_count, Access::Read);
        cx.host.leave(outer);
        return;
    }
    let reads = q::LOAD | throttle_count | q::TG | q::AVG | q::TG_CONTRIB;
    cx.touch(object, reads, Access::Read);
    let (tg, sys) = (queue.tg, cx.sys);
    let (shares, tg_load_avg) = sys.tg[tg.idx()].shares_and_load(cx.host);
    let shares = calc_group_shares(
        shares,
        queue.load.weight,
        queue.avg.load_avg,
        tg_load_avg as u64,
        queue.tg_load_avg_contrib,
    );
    cx.touch(entity.object(rq.cpu), e::LOAD | e::MY_Q, Access::Read);
    let (cfs, old) = (entity.cfs_rq, entity.load.weight);
    if old != shares {
        reweight_entity(cx, rq, cfs, se, shares);
    }
    cx.host.leave(outer);
}

/// A group weight has changed (in [`TaskGroup::shares`](crate::shared::TaskGroup)): refresh its
/// entities on this CPU, up to the root.
pub fn set_shares<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) {
    let mut at = rq.cfs_of(tg);
    while let Some(se) = at.and_then(|cfs| rq.cfs[cfs.idx()].se) {
        let cfs = rq.se[se.idx()].cfs_rq;
        update_load_avg(cx, rq, cfs, se, UpdateLoad::TG);
        update_cfs_group(cx, rq, se);
        at = Some(cfs);
    }
}

/// `cpu.idle` of a group has changed ([`TaskGroup::set_idle`](crate::shared::TaskGroup::set_idle)
/// was called): fix the counts of idle tasks of the queues above, and the weights.
///
/// An idle group's tasks all count as idle above it, whatever their policy.
pub fn set_idle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId, idle: bool) {
    let Some(own) = rq.cfs_of(tg) else {
        return;
    };
    if rq.cfs[own.idx()].idle == idle {
        return;
    }
    cx.touch(rq.cfs_object(own), q::IDLE | q::NR_QUEUED, Access::Update);
    let queue = &mut rq.cfs[own.idx()];
    queue.idle = idle;
    let not_idle = queue.h_nr_queued - queue.h_nr_idle;
    let mut at = own;
    while let Some(se) = rq.cfs[at.idx()].se {
        if !rq.se[se.idx()].on_rq {
            break;
        }
        at = rq.se[se.idx()].cfs_rq;
        cx.touch(rq.cfs_object(at), q::IDLE | q::NR_QUEUED, Access::Update);
        let above = &mut rq.cfs[at.idx()];
        above.h_nr_idle = if idle {
            above.h_nr_idle + not_idle
        } else {
            above.h_nr_idle.saturating_sub(not_idle)
        };
        if above.idle {
            break; // counted as idle above that anyway
        }
    }
    set_shares(cx, rq, tg);
}

/// Moves a task, running, queued, delayed or asleep in the keeping of `rq`, to another group
/// (`sched_move_task`).
pub fn move_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, to: TgId) -> Resched {
    let Some(body) = &rq.body[task.idx()] else {
        return Resched::No;
    };
    let (id, throttled) = (body.id, body.throttled);
    let queued = rq.se[task.idx()].on_rq || throttled;
    let running = rq.curr == Some(task);
    if queued {
        dequeue_task_fair(cx, rq, task, Dequeue::SAVE | Dequeue::MOVE);
    }
    if running {
        put_prev_task_fair(cx, rq, task);
    }
    let object = Object {
        kind: Kind::Task,
        a: id.0,
        b: 0,
    };
    cx.touch(object, t::SCHED_GROUP, Access::Update);
    task_change_group_fair(cx, rq, task, to);
    if queued {
        enqueue_task_fair(cx, rq, task, Enqueue::RESTORE);
    }
    if running {
        // Its protection was in the virtual time of the queue that it has left.
        cx.sys.features.run_to_parity.cancel(&mut rq.se[task.idx()]);
        set_next_task_fair(cx, rq, task, SetNext::RunsOn);
    }
    // One that comes out of limbo finds an idle CPU, which would not look for it. (The kernel's
    // `sched_move_task` asks for a switch only if the task runs, as far as known.)
    let waits = rq.is_idle() && rq.se[task.idx()].on_rq;
    if running || waits {
        Resched::Yes
    } else {
        Resched::No
    }
}

/// The same of a task that is with the host and was last on the CPU of `rq`. One whose load is on
/// no account, because it is new or has left its CPU asleep, comes to that of its group's queue
/// when it is enqueued.
pub fn move_parked_task<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: &mut Task, to: TgId) {
    cfs_rules::change_group_asleep(cx, task, rq.cpu, to);
    let attached = task.se.avg.last_update_time != 0;
    let Some(from) = rq.cfs_of(task.body.tg).filter(|_| attached) else {
        task.se.avg.last_update_time = 0;
        task.body.tg = to;
        return;
    };
    let se = core::mem::take(&mut task.se);
    task.se = rq.with_guest(se, |rq, slot| {
        rq.se[slot.idx()].cfs_rq = from;
        task_change_group_fair(cx, rq, slot, to);
    });
    task.body.tg = to;
}

/// Takes the averages of a task, which is on no queue, from the account of its group's queue here
/// to that of another group's (`task_change_group_fair`).
fn task_change_group_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, to: TgId) {
    detach_task_cfs_rq(cx, rq, task);
    rq.se[task.idx()].avg.last_update_time = 0;
    set_task_rq(cx, rq, task, to);
    attach_task_cfs_rq(cx, rq, task);
}

/// A task is pointed at queue and entity of its group on `cpu` (`set_task_rq`), and is one level
/// below that entity.
pub(crate) fn look_up<H: Host>(cx: &mut Cx<H>, cpu: Cpu, tg: TgId) {
    let group = &cx.sys.tg[tg.idx()];
    group.look_up_queue(cpu, cx.host);
    group.look_up_entity(cpu, cx.host);
    if tg != TgId::ROOT {
        let entity = Object {
            kind: Kind::GroupSe,
            a: cpu.0,
            b: tg.0,
        };
        cx.touch(entity, e::DEPTH, Access::Read);
    }
}

/// A task that is on no queue is to run on `cpu` (`set_task_cpu`, `__set_task_cpu`).
pub(crate) fn set_task_cpu<H: Host>(cx: &mut Cx<H>, id: TaskId, tg: TgId, cpu: Cpu) {
    look_up(cx, cpu, tg);
    let place = |kind| Object {
        kind,
        a: id.0,
        b: 0,
    };
    cx.touch(place(Kind::Task), t::SCHED_GROUP, Access::Read);
    cx.touch(place(Kind::Task), t::CPU, Access::Write);
    let pointers = e::CFS_RQ | e::PARENT | e::DEPTH | e::NR_MIGRATIONS;
    cx.touch(place(Kind::TaskSe), pointers, Access::Write);
    cx.sys.task[id.idx()].cpu.store(cpu.0, Relaxed);
}

/// Points a task, which is on no queue, at the queue of its group `to` on this CPU.
pub fn set_task_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId, to: TgId) {
    look_up(cx, rq.cpu, to);
    let cfs = ensure_cfs(cx, rq, to);
    let parent = rq.cfs[cfs.idx()].se;
    let depth = parent.map_or(0, |p| rq.se[p.idx()].depth + 1);
    if let Some(body) = &mut rq.body[task.idx()] {
        body.tg = to;
    }
    let entity = &mut rq.se[task.idx()];
    entity.cfs_rq = cfs;
    entity.parent = parent;
    entity.depth = depth;
    let written = e::CFS_RQ | e::PARENT | e::DEPTH;
    cx.touch(rq.se_object(task), written, Access::Write);
}

fn make_cfs<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId, parent: CfsId) {
    let above = &rq.cfs[parent.idx()].avg;
    let mut se = SchedEntity {
        // Groups have a weight from the start; their share follows with the first task.
        load: LoadWeight::new(NICE_0_LOAD),
        slice_ns: cx.features().tunables.base_slice_ns,
        ..SchedEntity::default()
    };
    se.avg.last_update_time = above.last_update_time;
    se.avg.period_contrib = above.period_contrib;
    let group = &cx.sys.tg[tg.idx()];
    let words = group.cpu(rq.cpu).clone();
    // Before the group's `idle` is read: see `on_its_queues`.
    fence(SeqCst);
    words.publish_load(0, 0);
    let cfs = rq.add_cfs(tg, words, parent, se);
    rq.cfs[cfs.idx()].idle = group.idle.load(Relaxed);
    init_throttle(cx, rq, cfs);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::blocked::update_blocked_averages;
    use crate::fair::preempt::task_tick_fair;
    use crate::fair::task::pick_next_task_fair;
    use crate::math::weight::{WEIGHT_IDLEPRIO, scale_load};
    use crate::policy::Features;
    use crate::task::Policy;
    use crate::testing::Bench;

    fn start(bench: &mut Bench, cpu: u32, tg: TgId) -> SeId {
        let mut task = bench.task(tg);
        crate::fair::load::init_entity_runnable_average(&mut task.se);
        bench.on(cpu, |cx, rq| {
            let slot = rq.take_in(task);
            set_task_rq(cx, rq, slot, tg);
            enqueue_task_fair(cx, rq, slot, Enqueue::INITIAL);
            slot
        })
    }

    fn run(bench: &mut Bench, ms: u64) {
        for _ in 0..ms {
            bench.host.now += 1_000_000;
            for cpu in 0..bench.rqs.len() as u32 {
                bench.on(cpu, |cx, rq| {
                    let tick = match rq.curr {
                        Some(_) => task_tick_fair(cx, rq),
                        None => Resched::Yes,
                    };
                    if tick.is_yes() || rq.need_resched {
                        rq.need_resched = false;
                        rq.curr = pick_next_task_fair(cx, rq, rq.curr);
                    }
                });
            }
        }
    }

    fn entity(bench: &Bench, cpu: usize, tg: TgId) -> &SchedEntity {
        let rq = &bench.rqs[cpu];
        let cfs = rq.cfs_of(tg).expect("made");
        let se = rq.cfs[cfs.idx()].se.expect("a group");
        &rq.se[se.idx()]
    }

    #[test]
    fn the_weight_follows_the_load_on_other_cpus() {
        let mut bench = Bench::new(2, Features::default());
        let a = bench.sys.add_group(TgId::ROOT);
        let b = bench.sys.add_group(a);
        for cpu in [0, 0, 1] {
            start(&mut bench, cpu, b);
        }
        run(&mut bench, 1000);
        let weights = [0, 1].map(|cpu| entity(&bench, cpu, b).load.weight as i64);
        for (weight, thirds) in weights.into_iter().zip([2, 1]) {
            let off = weight - NICE_0_LOAD as i64 * thirds / 3;
            assert!(off.abs() < 20 << 10, "{weights:?}");
        }
        // a sees b's two entities, and has the same problem once more.
        let above = [0, 1].map(|cpu| entity(&bench, cpu, a).load.weight as i64);
        assert!((above[0] - above[1] * 2).abs() < 40 << 10, "{above:?}");
        assert_eq!(bench.sys.tg[b.idx()].peek_load_avg() / 100, 30);
    }

    #[test]
    fn a_running_and_a_queued_task_change_their_group() {
        let mut bench = Bench::new(1, Features::default());
        let a = bench.sys.add_group(TgId::ROOT);
        let b = bench.sys.add_group(TgId::ROOT);
        bench.sys.open_group(b);
        let tasks = [start(&mut bench, 0, a), start(&mut bench, 0, a)];
        run(&mut bench, 500);
        let util = bench.rqs[0].cfs[0].avg.util_avg;
        for task in tasks {
            let running = bench.rqs[0].curr == Some(task);
            let answer = bench.on(0, |cx, rq| move_task(cx, rq, task, b));
            assert_eq!(answer.is_yes(), running);
        }
        let rq = &bench.rqs[0];
        let [from, to] = [a, b].map(|tg| &rq.cfs[rq.cfs_of(tg).expect("made").idx()]);
        assert_eq!(
            (from.nr_queued, from.h_nr_queued, from.load.weight),
            (0, 0, 0)
        );
        assert_eq!((to.nr_queued, to.h_nr_queued, rq.nr_running), (2, 2, 2));
        // Each leaves at most one unit by rounding.
        assert!(
            from.avg.util_avg <= 2 && from.avg.load_avg <= 2,
            "{:?}",
            from.avg
        );
        assert!(to.avg.util_avg.abs_diff(util) <= 2, "{:?}", to.avg);
        assert!(rq.cfs[0].avg.util_avg.abs_diff(util) <= 2);
        run(&mut bench, 100);
        bench.on(0, update_blocked_averages);
        assert_eq!(bench.sys.tg[a.idx()].peek_load_avg(), 0);
        assert!(bench.sys.tg[b.idx()].peek_load_avg() > 1900);
    }

    #[test]
    fn an_idle_group_weighs_little_and_counts_as_idle() {
        let mut bench = Bench::new(1, Features::default());
        let a = bench.sys.add_group(TgId::ROOT);
        let b = bench.sys.add_group(a);
        start(&mut bench, 0, b);
        let idle = start(&mut bench, 0, b);
        bench.on(0, |cx, rq| {
            let _ = crate::fair::task::set_task_weight(cx, rq, idle, Policy::Idle, 0);
        });
        run(&mut bench, 10);
        let idle_counts = |bench: &Bench| [0, 1, 2].map(|cfs| bench.rqs[0].cfs[cfs].h_nr_idle);
        assert_eq!(idle_counts(&bench), [1, 1, 1]);
        bench.sys.tg[b.idx()].set_idle(true);
        bench.on(0, |cx, rq| set_idle(cx, rq, b, true));
        assert_eq!(idle_counts(&bench), [2, 2, 1]);
        let weight = entity(&bench, 0, b).load.weight;
        assert!(weight <= scale_load(u64::from(WEIGHT_IDLEPRIO)), "{weight}");
        bench.sys.tg[b.idx()].set_idle(false);
        bench.on(0, |cx, rq| set_idle(cx, rq, b, false));
        assert_eq!(idle_counts(&bench), [1, 1, 1]);
        assert!(entity(&bench, 0, b).load.weight > 1000 << 10);
    }
}
