//! Hierarchical load: what a task weighs at the root.
//!
//! Units: unscaled load. The root's `h_load` is its load average; a group's queue has the part of
//! its parent's that its entity has there (`math/shares.rs`).
//!
//! The kernel keeps it in the queue for a jiffy, whoever asked first: balancing with the queue
//! locked, or a wake-up on any CPU without its lock. Here it is in [`TgCpu`], beside the averages
//! that the owner publishes of each level.

use crate::cx::Cx;
use crate::host::Host;
use crate::math::shares;
use crate::place::{Access, Func, Kind, Object, cfs_rq as q, se as e, tg as t};
use crate::rq::Rq;
use crate::shared::{Relaxed, TaskGroup, TgCpu};
use crate::system::System;
use crate::value::{Cpu, SeId, TaskId, TgId};

/// Load, seen from the root, of a task on a queue that the caller holds.
///
/// On demand, it refreshes the queue's share first; else it uses what [`update_h_load`] left.
pub fn task_h_load<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> u64 {
    let cfs = rq.se[task.idx()].cfs_rq;
    let side = Side {
        cpu: rq.cpu,
        root_load: rq.cfs[0].avg.load_avg,
    };
    rq.h_load_calls += 1;
    let (h_load, walked) = side.h_load(cx, rq.cfs[cfs.idx()].tg);
    rq.h_load_walks += walked;
    cx.touch(rq.se_object(task), e::AVG, Access::Read);
    cx.touch(rq.cfs_object(cfs), q::AVG | q::H_LOAD, Access::Read);
    let load_avg = rq.se[task.idx()].avg.load_avg;
    shares::task_h_load(load_avg, h_load, rq.cfs[cfs.idx()].avg.load_avg)
}

/// A task whose queue is not locked.
pub(crate) struct Unlocked {
    /// Who it is; `None`: the idle task.
    pub id: Option<TaskId>,
    /// Its group.
    pub tg: TgId,
    /// The CPU that it is on.
    pub cpu: Cpu,
    /// Its own load average.
    pub load_avg: u64,
}

/// The same of a task without the lock of its queue.
pub(crate) fn peek_task_h_load<H: Host>(cx: &mut Cx<H>, task: Unlocked) -> u64 {
    let sys = cx.sys;
    let Unlocked {
        id,
        tg,
        cpu,
        load_avg,
    } = task;
    if let Some(TaskId(a)) = id {
        let entity = Object {
            kind: Kind::TaskSe,
            a,
            b: 0,
        };
        cx.touch(entity, e::CFS_RQ | e::AVG, Access::Read);
    }
    if !sys.tg[tg.idx()].is_open() {
        return 0;
    }
    let root_load = sys.cpu[cpu.idx()].load_avg.load(Relaxed);
    let side = Side { cpu, root_load };
    let (h_load, _) = side.h_load(cx, tg);
    cx.touch(side.queue(tg), q::AVG | q::H_LOAD, Access::Read);
    shares::task_h_load(load_avg, h_load, side.queue_load(sys, tg))
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

/// The queues of one CPU, as who asks sees them.
#[derive(Clone, Copy)]
struct Side {
    cpu: Cpu,
    /// Load average of the root queue: as it is for the owner, as published for others.
    root_load: u64,
}

impl Side {
    /// `h_load` of the queue of `tg`, and over how many entities the way up to it went.
    fn h_load<H: Host>(self, cx: &mut Cx<H>, tg: TgId) -> (u64, u64) {
        if !cx.features().h_load.is_on_demand() {
            let left = self.words(cx.sys, tg);
            return (left.map_or(0, |words| words.h_load.load(Relaxed)), 0);
        }
        let stamp = cx.jiffies() + 1;
        let outer = cx.host.enter(Func::UpdateCfsRqHLoad);
        cx.touch(self.queue(tg), q::H_LOAD, Access::Read);
        let found = match self.fresh(cx.sys, tg, stamp) {
            Some(h_load) => (h_load, 0),
            None => self.update_cfs_rq_h_load(cx, tg, stamp),
        };
        cx.host.leave(outer);
        found
    }

    /// Brings the queue of `tg` and those above it up to this jiffy: up to the nearest one that is,
    /// or the root, and down again. The touches are those of the kernel, which leaves a trail
    /// (`h_load_next`) in the queues on its way up.
    fn update_cfs_rq_h_load<H: Host>(self, cx: &mut Cx<H>, tg: TgId, stamp: u64) -> (u64, u64) {
        let sys = cx.sys;
        let (mut at, mut walked) = (tg, 0);
        cx.touch(self.queue(tg), q::H_LOAD, Access::Update);
        let mut h_load = loop {
            if let Some(h_load) = self.fresh(sys, at, stamp) {
                break h_load;
            }
            let Some(parent) = sys.tg[at.idx()].parent else {
                self.keep(sys, at, self.root_load, stamp);
                break self.root_load;
            };
            at = parent;
            walked += 1;
            cx.touch(self.queue(at), q::H_LOAD | q::AVG, Access::Update);
        };
        while let Some(below) = below_on_way_to(sys, at, tg) {
            cx.touch(self.entity(below), e::AVG | e::MY_Q, Access::Read);
            let se_load_avg = self
                .words(sys, below)
                .map_or(0, |w| w.se_load_avg.load(Relaxed));
            h_load = shares::h_load_child(h_load, se_load_avg, self.queue_load(sys, at));
            cx.touch(self.queue(below), q::H_LOAD, Access::Write);
            self.keep(sys, below, h_load, stamp);
            at = below;
        }
        (h_load, walked)
    }

    fn fresh(self, sys: &System, tg: TgId, stamp: u64) -> Option<u64> {
        let words = self.words(sys, tg)?;
        (words.h_load_stamp.load(Relaxed) == stamp).then(|| words.h_load.load(Relaxed))
    }

    fn keep(self, sys: &System, tg: TgId, h_load: u64, stamp: u64) {
        if let Some(words) = self.words(sys, tg) {
            words.h_load.store(h_load, Relaxed);
            words.h_load_stamp.store(stamp, Relaxed);
        }
    }

    fn queue_load(self, sys: &System, tg: TgId) -> u64 {
        if tg == TgId::ROOT {
            return self.root_load;
        }
        let words = self.words(sys, tg);
        words.map_or(0, |w| w.queue_load_avg.load(Relaxed))
    }

    /// `None` where the group never had a queue: nothing there has any load.
    #[inline]
    fn words(self, sys: &System, tg: TgId) -> Option<&TgCpu> {
        sys.tg[tg.idx()].words(self.cpu)
    }

    /// The queue of a group, whether it is in use or not: the kernel allocates it, and the entity,
    /// for every group on every CPU, so walking over them costs their lines.
    fn queue(self, tg: TgId) -> Object {
        self.place(Kind::CfsRq, tg)
    }

    fn entity(self, tg: TgId) -> Object {
        self.place(Kind::GroupSe, tg)
    }

    fn place(self, kind: Kind, tg: TgId) -> Object {
        Object {
            kind,
            a: self.cpu.0,
            b: tg.0,
        }
    }
}

/// The child of `from` at or above `tg`; `None` if that is `from` itself.
///
/// It is looked for from below, each time anew. The kernel's trail is in the queues, but several
/// CPUs may be on their way here; remembering it on the stack would need one that is as deep as
/// groups are.
fn below_on_way_to(sys: &System, from: TgId, tg: TgId) -> Option<TgId> {
    let mut at = tg;
    let mut below = None;
    while at != from {
        below = Some(at);
        at = sys.tg[at.idx()].parent?;
    }
    below
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
    let side = Side {
        cpu: rq.cpu,
        root_load: rq.cfs[0].avg.load_avg,
    };
    if let Some(parent) = group.parent {
        cx.touch(side.queue(parent), q::H_LOAD | q::AVG, Access::Read);
    }
    if tg == TgId::ROOT {
        cx.touch(side.queue(tg), q::AVG, Access::Read);
    } else {
        cx.touch(side.entity(tg), e::AVG, Access::Read);
    }
    cx.touch(side.queue(tg), q::H_LOAD, Access::Write);
    let Some(cfs) = rq.cfs_of(tg) else {
        return; // no load, and nobody who could ask for it
    };
    let queue = &rq.cfs[cfs.idx()];
    let load = match queue.se {
        None => queue.avg.load_avg,
        Some(se) => {
            let parent = &rq.cfs[queue.parent.idx()];
            let above = parent.words.h_load.load(Relaxed);
            let load = rq.se[se.idx()].avg.load_avg;
            shares::h_load_child(above, load, parent.avg.load_avg)
        }
    };
    queue.words.h_load.store(load, Relaxed);
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
        for (cfs, of_queue, of_entity) in [(1, 1535, 1024), (2, 299, 512)] {
            rq.cfs[cfs].avg.load_avg = of_queue;
            rq.cfs[cfs].words.publish_load(of_queue, of_entity);
            if let Some(se) = rq.cfs[cfs].se {
                rq.se[se.idx()].avg.load_avg = of_entity;
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

    /// Queues whose load at the root is brought up to now, from the root down, once a jiffy.
    #[test]
    fn deep_groups_need_no_deep_stack() {
        on_a_small_stack(|| {
            for (h_load, levels) in [(HLoad::OnDemand, 2001), (HLoad::Eager, 0)] {
                let mut bench = Bench::new(1, Features::default());
                bench.sys.features.h_load = h_load;
                let mut tg = TgId::ROOT;
                for _ in 0..2000 {
                    tg = bench.sys.add_group(tg);
                }
                bench.start(0, tg);
                bench.host.touches.clear();
                for _ in 0..2 {
                    bench.call(0, |cx, _| peek_task_h_load(cx, unlocked(tg, 1024)));
                }
                let touches = bench.host.touches.iter();
                let writes = touches
                    .filter(|(_, fields, access)| *fields == q::H_LOAD && *access == Access::Write);
                assert!(writes.map(|(o, ..)| o.b).eq(1..levels.max(1)), "{h_load:?}");
            }
        });
    }

    const fn unlocked(tg: TgId, load_avg: u64) -> Unlocked {
        Unlocked {
            id: None,
            tg,
            cpu: Cpu(0),
            load_avg,
        }
    }

    /// Whoever asks first in a jiffy decides: a wake-up without the lock, or who holds the queue.
    #[test]
    fn there_is_one_memory_of_a_queue() {
        let ask = |bench: &mut Bench, task: SeId, peeks: bool| match peeks {
            true => bench.call(0, |cx, _| peek_task_h_load(cx, unlocked(TgId(2), 100))),
            false => bench.on(0, |cx, rq| task_h_load(cx, rq, task)),
        };
        for h_load in [HLoad::OnDemand, HLoad::Eager] {
            for peeks in [true, false] {
                let (mut bench, task) = bench(h_load);
                bench.on(0, update_h_load);
                assert_eq!(ask(&mut bench, task, peeks), 113);
                bench.rqs[0].cfs[0].avg.load_avg = 1;
                assert_eq!(ask(&mut bench, task, !peeks), 113, "{h_load:?}");
            }
        }
    }
}
