//! The rules of CFS (up to 6.5): slices by latency, credit for sleepers, buddies.
//!
//! Sources: Documentation/scheduler/sched-design-CFS.rst; changelogs of `GENTLE_FAIR_SLEEPERS`,
//! `START_DEBIT`, `LAST_BUDDY`, `NEXT_BUDDY`; debugfs `sched/` of Linux 5.8 to 6.5.
//!
//! A queue's `min_vruntime` never goes back; what joins is placed near it, and what leaves for
//! another queue leaves relative to it.

use super::buddy::{Buddy, clear_buddies, se_is_idle, set_buddy};
use super::vtime::queued_curr;
use crate::cx::Cx;
use crate::fair::Enqueue;
use crate::host::Host;
use crate::math::eevdf::{vruntime_before, vruntime_max, vruntime_min};
use crate::math::weight::{LoadWeight, calc_delta, calc_delta_fair};
use crate::policy::{CfsSlice, CfsTunables};
use crate::rq::Rq;
use crate::shared::Relaxed;
use crate::task::{Policy, SchedEntity, Task};
use crate::value::{CfsId, Cpu, SeId, TgId};

/// Advances the floor of virtual time to the least of the queued, never back.
pub(crate) fn update_min_vruntime(rq: &mut Rq, cfs: CfsId) {
    let q = &rq.cfs[cfs.idx()];
    let first = rq.nodes.first(&q.tree).map(|id| rq.nodes.key(id).vruntime);
    let curr = queued_curr(rq, cfs).map(|c| rq.se[c.idx()].vruntime);
    let least = match (curr, first) {
        (Some(a), Some(b)) => vruntime_min(a, b),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return,
    };
    let q = &mut rq.cfs[cfs.idx()];
    q.min_vruntime = vruntime_max(q.min_vruntime, least);
    // Who leaves this queue asleep for another CPU looks here, without a lock.
    q.words.min_vruntime.store(q.min_vruntime, Relaxed);
}

/// Places an entity: where it was relative to the floor if it comes from elsewhere; with some
/// credit if it slept; one slice late if it is new.
pub(crate) fn place<H: Host>(cx: &Cx<H>, rq: &mut Rq, cfs: CfsId, id: SeId, flags: Enqueue) {
    let features = &cx.sys.features;
    let floor = rq.cfs[cfs.idx()].min_vruntime;
    if !flags.has(Enqueue::WAKEUP) || flags.has(Enqueue::MIGRATED) {
        let se = &mut rq.se[id.idx()];
        se.vruntime = se.vruntime.wrapping_add(floor);
    }
    let at = if flags.has(Enqueue::INITIAL) {
        if features.place.places_at_fork() {
            return; // it came with a distance from the floor, from there
        }
        let slice = sched_slice(&features.tunables, rq, id);
        let debit = calc_delta_fair(slice, &rq.se[id.idx()].load);
        features.place.initial_vruntime(floor, debit)
    } else if flags.has(Enqueue::WAKEUP) {
        let credit = features.tunables.sleeper_ns(se_is_idle(rq, id));
        floor.wrapping_sub(features.place.sleeper_credit(credit))
    } else {
        return;
    };
    let se = &mut rq.se[id.idx()];
    se.vruntime = vruntime_max(se.vruntime, at);
}

/// Places a new task beside its `parent`, which runs on this CPU and was just charged: no earlier
/// than the parent, and one slice late. What it takes along is its distance from the floor.
pub(crate) fn place_beside<H: Host>(
    cx: &Cx<H>,
    rq: &Rq,
    parent: SeId,
    child: &mut SchedEntity,
    idle: bool,
) {
    let cfs = rq.se[parent.idx()].cfs_rq;
    let features = &cx.sys.features;
    let floor = rq.cfs[cfs.idx()].min_vruntime;
    let slice = slice_at(&features.tunables, rq, cfs, &child.load, [false, idle]);
    let debit = calc_delta_fair(slice, &child.load);
    let late = features.place.initial_vruntime(floor, debit);
    let at = vruntime_max(rq.se[parent.idx()].vruntime, late);
    child.vruntime = at.wrapping_sub(floor);
}

/// An entity leaves awake: what it takes along is its distance from the floor.
pub(crate) fn make_relative(rq: &mut Rq, cfs: CfsId, id: SeId) {
    let se = &mut rq.se[id.idx()];
    se.vruntime = se.vruntime.wrapping_sub(rq.cfs[cfs.idx()].min_vruntime);
}

/// A sleeping task, which is with the host, leaves `from` for another CPU
/// (`migrate_task_rq_fair`). Nothing where entities are placed by lag.
pub fn migrate_asleep<H: Host>(cx: &Cx<H>, task: &mut Task, from: Cpu) {
    let tg = &cx.sys.tg[task.body.tg.idx()];
    if cx.features().pick.by_deadline() {
        return;
    }
    let Some(words) = tg.words(from) else {
        return;
    };
    let floor = words.min_vruntime.load(Relaxed);
    task.se.vruntime = task.se.vruntime.wrapping_sub(floor);
}

/// A sleeping task, which is with the host, changes its group, both seen from `cpu`: it keeps its
/// distance from the floor, and the credit of a sleeper counts from the old one
/// (`detach_task_cfs_rq`). Nothing where entities are placed by lag, nor for one that never ran.
pub fn change_group_asleep<H: Host>(cx: &Cx<H>, task: &mut Task, cpu: Cpu, to: TgId) {
    let features = cx.features();
    if features.pick.by_deadline() || task.se.sum_exec_runtime == 0 {
        return;
    }
    let floor = |tg: TgId| {
        let words = cx.sys.tg[tg.idx()].words(cpu);
        words.map_or(0, |w| w.min_vruntime.load(Relaxed))
    };
    let (old, new) = (floor(task.body.tg), floor(to));
    let credit = features
        .tunables
        .sleeper_ns(task.body.policy == Policy::Idle);
    let earliest = old.wrapping_sub(features.place.sleeper_credit(credit));
    let at = vruntime_max(task.se.vruntime, earliest);
    task.se.vruntime = at.wrapping_sub(old).wrapping_add(new);
}

/// The real time that an entity gets within a period, ns: by weight on each level.
pub(crate) fn sched_slice(tunables: &CfsTunables, rq: &Rq, id: SeId) -> u64 {
    let se = &rq.se[id.idx()];
    let idle = se_is_idle(rq, id);
    slice_at(tunables, rq, se.cfs_rq, &se.load, [se.on_rq, idle])
}

/// The same of an entity of weight `own`, idle or not, that is on the queue `cfs`, or about to join
/// it.
fn slice_at(
    tunables: &CfsTunables,
    rq: &Rq,
    cfs: CfsId,
    own: &LoadWeight,
    [on_rq, idle]: [bool; 2],
) -> u64 {
    let q = &rq.cfs[cfs.idx()];
    let beside_normal = idle && q.h_nr_idle < q.h_nr_queued;
    let nr = match tunables.cfs_slice {
        CfsSlice::Level => rq.cfs[cfs.idx()].nr_queued,
        CfsSlice::Cpu => rq.cfs[0].h_nr_queued,
    };
    let mut slice = tunables.period_ns(u64::from(nr) + u64::from(!on_rq));
    let (mut cfs, mut own, mut on_rq) = (cfs, own, on_rq);
    loop {
        let mut load: LoadWeight = rq.cfs[cfs.idx()].load;
        if !on_rq {
            load.add(own.weight);
        }
        slice = calc_delta(slice, own.weight, &load);
        let Some(above) = rq.cfs[cfs.idx()].se.map(|id| &rq.se[id.idx()]) else {
            break;
        };
        (cfs, own, on_rq) = (above.cfs_rq, &above.load, above.on_rq);
    }
    match tunables.cfs_slice {
        CfsSlice::Level => slice,
        CfsSlice::Cpu if beside_normal => slice.max(CfsTunables::IDLE_MIN_GRANULARITY_NS),
        CfsSlice::Cpu => slice.max(tunables.min_granularity_ns),
    }
}

/// Whether the running entity has had its slice, or somebody is a slice behind it.
pub(crate) fn check_preempt_tick<H: Host>(cx: &Cx<H>, rq: &mut Rq, cfs: CfsId, curr: SeId) -> bool {
    let tunables = &cx.sys.features.tunables;
    let se = &rq.se[curr.idx()];
    let slice = sched_slice(tunables, rq, curr);
    let ideal = match tunables.cfs_slice {
        CfsSlice::Level => slice,
        CfsSlice::Cpu => slice.min(tunables.latency_ns),
    };
    let ran = se.sum_exec_runtime - se.prev_sum_exec_runtime;
    if ran > ideal {
        clear_buddies(rq, cfs, curr);
        return true;
    }
    if ran < tunables.min_granularity_ns {
        return false;
    }
    let first = rq.nodes.first(&rq.cfs[cfs.idx()].tree);
    first.is_some_and(|first| {
        let ahead = se.vruntime.wrapping_sub(rq.nodes.key(first).vruntime) as i64;
        ahead > ideal as i64
    })
}

/// Whether `se` is so far behind `curr` that it should run instead.
pub(crate) fn preempts<H: Host>(cx: &Cx<H>, rq: &Rq, curr: SeId, se: SeId) -> bool {
    let behind = behind(rq, curr, se);
    behind > 0 && behind > wakeup_gran(cx, rq, se)
}

/// Remembers the woken entity, so that it is picked, and the preempted task, so that it goes on
/// if the other one sleeps soon.
pub(crate) fn mark_preemption<H: Host>(
    cx: &Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    curr: SeId,
    woken: SeId,
) {
    set_buddy(rq, woken, Buddy::Next);
    let crowded = u64::from(rq.cfs[cfs.idx()].nr_queued) >= cx.features().tunables.nr_latency();
    if crowded && rq.se[curr.idx()].on_rq && rq.se[curr.idx()].my_q.is_none() {
        set_buddy(rq, curr, Buddy::Last);
    }
}

/// The next to run: least vruntime, unless a buddy is near enough.
pub(crate) fn pick_next<H: Host>(cx: &Cx<H>, rq: &Rq, cfs: CfsId) -> Option<SeId> {
    let q = &rq.cfs[cfs.idx()];
    let curr = queued_curr(rq, cfs);
    let left = earlier(rq, curr, rq.nodes.first(&q.tree).map(SeId))?;
    let near = |se: &SeId| !preempts(cx, rq, *se, left);
    if let Some(buddy) = q.next.filter(near) {
        return Some(buddy);
    }
    if let Some(buddy) = q.last.filter(near) {
        return Some(buddy);
    }
    if q.skip != Some(left) {
        return Some(left);
    }
    let second = if curr == Some(left) {
        rq.nodes.first(&q.tree).map(SeId)
    } else {
        earlier(rq, curr, rq.nodes.next(left.0).map(SeId))
    };
    second.filter(near).or(Some(left))
}

/// `curr` if its vruntime is less than that of `queued`, or nothing is queued.
fn earlier(rq: &Rq, curr: Option<SeId>, queued: Option<SeId>) -> Option<SeId> {
    match (curr, queued) {
        (Some(c), Some(q))
            if !vruntime_before(rq.se[c.idx()].vruntime, rq.se[q.idx()].vruntime) =>
        {
            Some(q)
        }
        (Some(c), _) => Some(c),
        (None, q) => q,
    }
}

fn behind(rq: &Rq, curr: SeId, se: SeId) -> i64 {
    let (curr, se) = (&rq.se[curr.idx()], &rq.se[se.idx()]);
    curr.vruntime.wrapping_sub(se.vruntime) as i64
}

fn wakeup_gran<H: Host>(cx: &Cx<H>, rq: &Rq, se: SeId) -> i64 {
    let gran = cx.features().tunables.wakeup_granularity_ns;
    calc_delta_fair(gran, &rq.se[se.idx()].load) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Lab, Spec, nice};
    use crate::policy::{DelayDequeue, Features, Pick, find_profile};
    use crate::sched;
    use crate::task::{Placed, Prev, WakeKind};
    use crate::testing::Bench;
    use crate::value::TaskId;

    fn cfs(hz: u32) -> Lab {
        Lab::new(Features {
            hz,
            pick: Pick::Cfs,
            delay_dequeue: DelayDequeue::Off,
            ..Features::default()
        })
    }

    fn share(lab: &Lab, of: usize) -> f64 {
        lab.ran[of] as f64 / lab.ran.iter().sum::<u64>() as f64
    }

    #[test]
    fn weights_share_by_ratio() {
        let mut lab = cfs(1000);
        lab.spawn(nice(0), Enqueue::INITIAL);
        lab.spawn(nice(5), Enqueue::INITIAL);
        lab.run(10_000_000_000);
        let ratio = 1024.0 / (1024.0 + 335.0);
        assert!((share(&lab, 0) - ratio).abs() < 0.005, "{}", share(&lab, 0));
    }

    /// Of a queue's own period up to 5.12, without a floor; of the CPU's since.
    #[test]
    fn a_slice_is_cut_short_by_the_granularity_since_it_is_of_all_tasks() {
        let slice = |cfs_slice, nr| {
            let mut lab = cfs(1000);
            lab.sys.features.tunables.cfs_slice = cfs_slice;
            let light = lab.spawn(nice(10), Enqueue::INITIAL);
            for _ in 1..nr {
                lab.spawn(nice(0), Enqueue::INITIAL);
            }
            sched_slice(&lab.sys.features.tunables, &lab.rq, light)
        };
        // 110 of 1134 of 12 ms.
        assert_eq!(slice(CfsSlice::Level, 2) / 1000, 1164);
        assert_eq!(slice(CfsSlice::Cpu, 2) / 1000, 1500);
    }

    #[test]
    fn latency_is_divided_until_the_granularity_stops_it() {
        let tunables = cfs(1000).sys.features.tunables;
        assert_eq!(tunables.latency_ns, 12_000_000); // two CPUs: factor 2
        assert_eq!(tunables.period_ns(8), 12_000_000);
        assert_eq!(tunables.period_ns(9), 9 * 1_500_000);
        let mut lab = cfs(1000);
        let a = lab.spawn(nice(0), Enqueue::INITIAL);
        lab.spawn(nice(0), Enqueue::INITIAL);
        lab.spawn(nice(0), Enqueue::INITIAL);
        assert_eq!(sched_slice(&tunables, &lab.rq, a), 3_999_999);
    }

    #[test]
    fn a_sleeper_gets_half_the_latency_and_no_more() {
        let mut lab = cfs(1000);
        lab.spawn(nice(0), Enqueue::INITIAL);
        let late = lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.run(1);
        while lab.rq.curr != Some(late) {
            lab.run(1_000_000);
        }
        let id = lab.rq.task_id(late);
        assert!(lab.sleep(), "nobody is delayed");
        lab.run(500_000_000);
        lab.with(|cx, rq| super::super::entity::update_curr(cx, rq, CfsId::ROOT));
        let floor = lab.rq.cfs[0].min_vruntime;
        let slot = lab.wake(id);
        let credit = floor.wrapping_sub(lab.rq.se[slot.idx()].vruntime);
        assert_eq!(credit, 6_000_000);
        assert_eq!(
            lab.rq.curr,
            Some(slot),
            "6 ms behind is beyond the granularity"
        );
    }

    #[test]
    fn who_yields_is_skipped_once() {
        let mut lab = cfs(1000);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.with(crate::fair::preempt::yield_task_fair);
        lab.schedule();
        assert_eq!(lab.rq.curr_task(), Some(TaskId(1)));
        assert_eq!(lab.rq.cfs[0].skip, Some(SeId(0)));
    }

    /// A parent on CPU 0 that forks a child for CPU 1, by the rules of 6.5; the child.
    fn forked(bench: &mut Bench, parent: TaskId) -> Task {
        let mut child = bench.task(TgId::ROOT);
        bench.call(0, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut child, Some(parent));
        });
        child
    }

    #[test]
    fn a_child_begins_a_slice_late_and_never_before_its_parent() {
        let features = Features::of_profile(find_profile("linux-6.5").unwrap());
        let mut bench = Bench::new(2, features);
        let parent = bench.start(0, TgId::ROOT);
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        bench.host.now += 3_000_000;
        let child = forked(&mut bench, parent);
        // Half of 12 ms, less what products of inverse weights lose.
        let late = child.se.vruntime;
        assert!((5_999_990..=6_000_000).contains(&late), "{late}");
        // With somebody on the queue who has not run, the parent is far ahead of the floor.
        bench.start(0, TgId::ROOT);
        bench.host.now += 40_000_000;
        let child = forked(&mut bench, parent);
        let ahead = bench.on(0, |_, rq| {
            let curr = rq.curr.expect("the parent runs");
            rq.se[curr.idx()].vruntime - rq.cfs[0].min_vruntime
        });
        assert!(ahead > 30_000_000);
        assert_eq!(child.se.vruntime, ahead);
        // What it took along counts from the floor of the queue that it joins.
        let placed = Placed {
            cpu: Cpu(1),
            migrated: true,
        };
        let id = child.body.id;
        bench.call(1, |cx, rqs| {
            sched::enqueue_woken(cx, rqs, child, placed, WakeKind::Fork);
        });
        let slot = bench.sys.task[id.idx()].slot.load(Relaxed) as usize;
        assert_eq!(bench.rqs[1].se[slot].vruntime, ahead);
    }

    #[test]
    fn a_sleeper_that_changes_its_group_keeps_its_distance_from_the_floor() {
        let features = Features::of_profile(find_profile("linux-6.5").unwrap());
        let mut bench = Bench::new(1, features);
        let tg = bench.sys.add_group(TgId::ROOT);
        bench.sys.open_group(tg);
        let words = |tg: TgId| &bench.sys.tg[tg.idx()].cpu(Cpu(0)).min_vruntime;
        words(TgId::ROOT).store(90_000_000, Relaxed);
        words(tg).store(5_000_000, Relaxed);
        let mut task = bench.task(TgId::ROOT);
        task.se.sum_exec_runtime = 1;
        for (vruntime, after) in [(91_000_000, 6_000_000), (0, 2_000_000)] {
            (task.se.vruntime, task.body.tg) = (vruntime, TgId::ROOT);
            bench.call(0, |cx, rqs| {
                sched::set_group_parked(cx, rqs, &mut task, tg);
            });
            assert_eq!(task.se.vruntime, after);
        }
    }

    #[test]
    fn an_idle_entity_beside_others_gets_shorter_slices() {
        let mut lab = cfs(1000);
        let idle = Spec {
            policy: Policy::Idle,
            ..Spec::default()
        };
        let first = lab.spawn(idle, Enqueue::INITIAL);
        lab.spawn(idle, Enqueue::INITIAL);
        let tunables = lab.sys.features.tunables;
        assert_eq!(sched_slice(&tunables, &lab.rq, first), 5_999_999);
        lab.spawn(nice(0), Enqueue::INITIAL);
        let slice = sched_slice(&tunables, &lab.rq, first);
        assert_eq!(slice, CfsTunables::IDLE_MIN_GRANULARITY_NS);
    }

    #[test]
    fn the_floor_never_goes_back() {
        let mut lab = cfs(250);
        for n in [0, 3, -4] {
            lab.spawn(nice(n), Enqueue::INITIAL);
        }
        let mut floor = 0;
        for _ in 0..300 {
            lab.run(3_700_000);
            assert!(lab.rq.cfs[0].min_vruntime >= floor);
            floor = lab.rq.cfs[0].min_vruntime;
            let id = lab.rq.curr_task().expect("hogs");
            lab.sleep();
            lab.run(900_000);
            lab.wake(id);
        }
        assert!(floor > 0);
    }

    #[test]
    fn a_move_keeps_the_distance_from_the_floor() {
        let mut lab = cfs(1000);
        let a = lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.spawn(Spec::default(), Enqueue::WAKEUP);
        lab.run(50_000_000);
        let before = lab.rq.se[a.idx()]
            .vruntime
            .wrapping_sub(lab.rq.cfs[0].min_vruntime);
        let ran = lab.rq.curr == Some(a);
        let _ = lab.with(|cx, rq| {
            super::super::task::set_task_weight(cx, rq, a, crate::task::Policy::Batch, 0)
        });
        let after = lab.rq.se[a.idx()]
            .vruntime
            .wrapping_sub(lab.rq.cfs[0].min_vruntime);
        assert_eq!((before, lab.rq.curr == Some(a)), (after, ran));
    }
}
