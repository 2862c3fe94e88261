//! Hierarchical load: what a task weighs at the root.
//!
//! Units: unscaled load. The root's `h_load` is its load average; a group's queue has the part of
//! its parent's that its entity has there (`math/shares.rs`).

use crate::cx::Cx;
use crate::host::Host;
use crate::math::shares;
use crate::place::{Access, Func, Kind, Object, cfs_rq as q, se as e, tg as t};
use crate::rq::Rq;
use crate::shared::TaskGroup;
use crate::value::{CfsId, SeId, TgId};

/// Load of a task seen from the root.
///
/// On demand, it refreshes the queue's share first; else it uses what [`update_h_load`] left.
pub fn task_h_load<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> u64 {
    let cfs = rq.se[task.idx()].cfs_rq;
    rq.h_load_calls += 1;
    if cx.features().h_load.is_on_demand() {
        update_cfs_rq_h_load(cx, rq, cfs);
    }
    cx.touch(rq.se_object(task), e::AVG, Access::Read);
    cx.touch(rq.cfs_object(cfs), q::AVG | q::H_LOAD, Access::Read);
    let queue = &rq.cfs[cfs.idx()];
    shares::task_h_load(
        rq.se[task.idx()].avg.load_avg,
        queue.h_load,
        queue.avg.load_avg,
    )
}

/// The walk over all groups before a balance, where the decision asks for it: once a jiffy.
pub fn update_h_load<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if !cx.features().h_load.walks_all_groups() {
        return;
    }
    let now = cx.jiffies() + 1;
    if rq.h_load_throttle == now {
        return;
    }
    rq.h_load_throttle = now;
    walk_down(cx, rq);
}

/// Refreshes the share of `cfs`: up to the first queue that was refreshed in this jiffy, leaving a
/// trail, and down again along it.
fn update_cfs_rq_h_load<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let now = cx.jiffies() + 1;
    let outer = cx.host.enter(Func::UpdateCfsRqHLoad);
    cx.touch(rq.cfs_object(cfs), q::H_LOAD, Access::Read);
    if rq.cfs[cfs.idx()].last_h_load_update == now {
        cx.host.leave(outer);
        return;
    }
    let mut at = cfs;
    rq.cfs[at.idx()].h_load_next = None;
    while rq.cfs[at.idx()].last_h_load_update != now {
        let Some(se) = rq.cfs[at.idx()].se else {
            let root = &mut rq.cfs[at.idx()];
            root.h_load = root.avg.load_avg;
            root.last_h_load_update = now;
            break;
        };
        at = rq.se[se.idx()].cfs_rq;
        rq.h_load_walks += 1;
        rq.cfs[at.idx()].h_load_next = Some(se);
        cx.touch(rq.cfs_object(at), q::H_LOAD | q::AVG, Access::Update);
    }
    while let Some(se) = rq.cfs[at.idx()].h_load_next {
        let queue = &rq.cfs[at.idx()];
        let entity = &rq.se[se.idx()];
        cx.touch(rq.se_object(se), e::AVG | e::MY_Q, Access::Read);
        let load = shares::h_load_child(queue.h_load, entity.avg.load_avg, queue.avg.load_avg);
        let Some(below) = entity.my_q else { break };
        let queue = &mut rq.cfs[below.idx()];
        queue.h_load = load;
        queue.last_h_load_update = now;
        cx.touch(rq.cfs_object(below), q::H_LOAD, Access::Write);
        at = below;
    }
    cx.host.leave(outer);
}

/// Visits all groups, each before those below it.
fn walk_down<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let sys = cx.sys;
    let mut next = Some(TgId::ROOT);
    while let Some(tg) = next {
        let outer = cx.host.enter(Func::TgLoadDown);
        tg_load_down(cx, rq, tg);
        cx.host.leave(outer);
        next = next_in_tree_order(&sys.tg, tg);
    }
}

/// The way back from the last child is found by the parents, so there is no recursion.
fn next_in_tree_order(groups: &[TaskGroup], tg: TgId) -> Option<TgId> {
    let mut at = tg;
    let mut done = None;
    loop {
        let group = &groups[at.idx()];
        // Children are in the order in which they were made, so by number.
        let n = done.map_or(0, |d| group.children.partition_point(|child| *child <= d));
        if let Some(&child) = group.children.get(n) {
            return Some(child);
        }
        done = Some(at);
        at = group.parent?;
    }
}

fn tg_load_down<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) {
    let group = &cx.sys.tg[tg.idx()];
    cx.touch(group.object(), t::TREE | t::CHILDREN, Access::Read);
    group.look_up_entity(rq.cpu, cx.host);
    group.look_up_queue(rq.cpu, cx.host);
    if let Some(parent) = group.parent {
        let (queue, _) = places(rq, parent);
        cx.touch(queue, q::H_LOAD | q::AVG, Access::Read);
    }
    let (queue, entity) = places(rq, tg);
    if tg == TgId::ROOT {
        cx.touch(queue, q::AVG, Access::Read);
    } else {
        cx.touch(entity, e::AVG, Access::Read);
    }
    cx.touch(queue, q::H_LOAD, Access::Write);
    let Some(cfs) = rq.cfs_of(tg) else {
        return; // no load, and nobody who could ask for it
    };
    let queue = &rq.cfs[cfs.idx()];
    let load = match queue.se {
        None => queue.avg.load_avg,
        Some(se) => {
            let parent = &rq.cfs[queue.parent.idx()];
            let load = rq.se[se.idx()].avg.load_avg;
            shares::h_load_child(parent.h_load, load, parent.avg.load_avg)
        }
    };
    rq.cfs[cfs.idx()].h_load = load;
}

/// Queue and entity of a group on this CPU, whether they are in use or not: the kernel allocates
/// them for every group on every CPU, so walking over them costs their lines.
fn places(rq: &Rq, tg: TgId) -> (Object, Object) {
    let place = |kind, b| Object {
        kind,
        a: rq.cpu.0,
        b,
    };
    (place(Kind::CfsRq, tg.0), place(Kind::GroupSe, tg.0))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::fair::group::set_task_rq;
    use crate::lab::on_a_small_stack;
    use crate::policy::{Features, HLoad};
    use crate::testing::Bench;

    /// Root with a task and group a; a with a task and group b; b with a task. Averages by hand.
    fn bench(h_load: HLoad) -> (Bench, SeId) {
        let features = Features {
            h_load,
            ..Features::default()
        };
        let mut bench = Bench::new(1, features);
        let a = bench.sys.add_group(TgId::ROOT);
        let b = bench.sys.add_group(a);
        let _ = bench.sys.add_group(a);
        let task = bench.task(b);
        let task = bench.on(0, |cx, rq| {
            let slot = rq.take_in(task);
            set_task_rq(cx, rq, slot, b);
            slot
        });
        let rq = &mut bench.rqs[0];
        rq.cfs[0].avg.load_avg = 2047;
        rq.cfs[1].avg.load_avg = 1535;
        rq.cfs[2].avg.load_avg = 299;
        for (cfs, load) in [(1, 1024), (2, 512)] {
            if let Some(se) = rq.cfs[cfs].se {
                rq.se[se.idx()].avg.load_avg = load;
            }
        }
        rq.se[task.idx()].avg.load_avg = 100;
        (bench, task)
    }

    #[test]
    fn eager_and_on_demand_agree() {
        // 2047 * 1024 / 2048 = 1023; 1023 * 512 / 1536 = 341; 341 * 100 / 300 = 113
        let (mut bench, task) = bench(HLoad::OnDemand);
        assert_eq!(bench.on(0, |cx, rq| task_h_load(cx, rq, task)), 113);
        let (mut bench, task) = self::bench(HLoad::Eager);
        assert_eq!(bench.on(0, |cx, rq| task_h_load(cx, rq, task)), 0);
        bench.on(0, update_h_load);
        assert_eq!(bench.on(0, |cx, rq| task_h_load(cx, rq, task)), 113);
    }

    #[test]
    fn eager_visits_all_groups_once_a_jiffy() {
        let (mut bench, _) = bench(HLoad::Eager);
        let visits = |bench: &Bench| {
            let is_visit = |f: &&Func| **f == Func::TgLoadDown;
            bench.host.entered.iter().filter(is_visit).count()
        };
        bench.on(0, update_h_load);
        bench.on(0, update_h_load);
        assert_eq!(visits(&bench), 4); // the unused group too
        bench.host.now += bench.sys.features.tick_ns();
        bench.on(0, update_h_load);
        assert_eq!(visits(&bench), 8);
        let unused = |o: &Object| o.kind == Kind::CfsRq && o.b == 3;
        assert!(bench.host.touches.iter().any(|(o, ..)| unused(o)));
    }

    #[test]
    fn the_walk_is_in_tree_order_and_needs_no_deep_stack() {
        on_a_small_stack(|| {
            let mut bench = Bench::new(1, Features::default());
            bench.sys.features.h_load = HLoad::Eager;
            let [a, b] = [0, 1].map(|_| bench.sys.add_group(TgId::ROOT));
            let [c, d] = [a, a].map(|tg| bench.sys.add_group(tg));
            let mut deep = b;
            for _ in 0..2000 {
                deep = bench.sys.add_group(deep);
            }
            bench.on(0, update_h_load);
            let touches = bench.host.touches.iter();
            let visits = touches.filter(|(o, f, _)| o.kind == Kind::Tg && f.intersects(t::TREE));
            let visits: Vec<u32> = visits.map(|(o, ..)| o.a).collect();
            let first = [TgId::ROOT, a, c, d, b].map(|tg| tg.0);
            assert_eq!(visits[..5], first);
            assert_eq!((visits.len(), visits.last()), (2005, Some(&deep.0)));
        });
    }

    #[test]
    fn on_demand_refreshes_only_once_a_jiffy() {
        let (mut bench, task) = bench(HLoad::OnDemand);
        bench.on(0, |cx, rq| task_h_load(cx, rq, task));
        bench.rqs[0].cfs[0].avg.load_avg = 1;
        assert_eq!(bench.on(0, |cx, rq| task_h_load(cx, rq, task)), 113);
        bench.host.now += bench.sys.features.tick_ns();
        assert_eq!(bench.on(0, |cx, rq| task_h_load(cx, rq, task)), 56);
    }
}
