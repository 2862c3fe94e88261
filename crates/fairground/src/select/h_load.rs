//! Hierarchical load of a task whose queue the caller does not hold.
//!
//! The kernel's `task_h_load` reads the queue of another CPU without its lock. Here the owner
//! publishes the two averages of each level in [`TgCpu`](crate::shared::TgCpu), and the result
//! is kept beside them for one jiffy, as the kernel keeps it in the queue. The queue's own copy
//! (`CfsRq::h_load`, for its holder) may have been computed at another moment of the same jiffy.

use crate::cx::Cx;
use crate::host::Host;
use crate::math::shares;
use crate::place::{Access, Func, Kind, Object, cfs_rq as f, se};
use crate::shared::{Relaxed, TgCpu};
use crate::system::System;
use crate::value::{Cpu, TgId};

/// Load, seen from the root, of a task of `tg` on `cpu` whose own load average is `load_avg`.
pub(super) fn task_h_load<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu, load_avg: u64) -> u64 {
    let sys = cx.sys;
    if !sys.tg[tg.idx()].is_open() {
        return 0;
    }
    let queue_load_avg = queue_load(cx, tg, cpu);
    let h_load = if cx.features().h_load.walks_all_groups() {
        // Balancing has left the value in the queue; it is only read. What is computed here is
        // as of now, not of that moment.
        touch_queue(cx, tg, cpu, Access::Read);
        current_h_load(cx, tg, cpu)
    } else {
        let stamp = cx.jiffies() + 1;
        let outer = cx.host.enter(Func::UpdateCfsRqHLoad);
        let h_load = refresh_h_load(cx, tg, cpu, stamp);
        cx.host.leave(outer);
        h_load
    };
    shares::task_h_load(load_avg, h_load, queue_load_avg)
}

/// Brings `h_load` of one queue and those above it up to this jiffy: from the nearest one that is,
/// or the root, down.
fn refresh_h_load<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu, stamp: u64) -> u64 {
    let sys = cx.sys;
    let mut from = tg;
    let mut h_load = loop {
        let fresh = |w: &&TgCpu| w.h_load_stamp.load(Relaxed) == stamp;
        if let Some(words) = words(cx, from, cpu).filter(fresh) {
            touch_queue(cx, from, cpu, Access::Read);
            break words.h_load.load(Relaxed);
        }
        match sys.tg[from.idx()].parent {
            Some(parent) => from = parent,
            None => {
                let root = sys.cpu[cpu.idx()].load_avg.load(Relaxed);
                keep(cx, from, cpu, root, stamp);
                break root;
            }
        }
    };
    while let Some(below) = below_on_way_to(sys, from, tg) {
        cx.touch(place(Kind::GroupSe, below, cpu), se::AVG, Access::Read);
        h_load = part_of_parent(cx, below, from, cpu, h_load);
        keep(cx, below, cpu, h_load, stamp);
        from = below;
    }
    h_load
}

fn keep<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu, h_load: u64, stamp: u64) {
    touch_queue(cx, tg, cpu, Access::Update);
    if let Some(words) = words(cx, tg, cpu) {
        words.h_load.store(h_load, Relaxed);
        words.h_load_stamp.store(stamp, Relaxed);
    }
}

fn current_h_load<H: Host>(cx: &Cx<H>, tg: TgId, cpu: Cpu) -> u64 {
    let mut from = TgId::ROOT;
    let mut h_load = cx.sys.cpu[cpu.idx()].load_avg.load(Relaxed);
    while let Some(below) = below_on_way_to(cx.sys, from, tg) {
        h_load = part_of_parent(cx, below, from, cpu, h_load);
        from = below;
    }
    h_load
}

/// The child of `from` at or above `tg`; `None` if that is `from` itself.
///
/// It is looked for from below, each time anew. The kernel leaves a trail in the queues on its way
/// up, but several CPUs may be on their way here; remembering it on the stack would need one that
/// is as deep as groups are.
fn below_on_way_to(sys: &System, from: TgId, tg: TgId) -> Option<TgId> {
    let mut at = tg;
    let mut below = None;
    while at != from {
        below = Some(at);
        at = sys.tg[at.idx()].parent?;
    }
    below
}

fn part_of_parent<H: Host>(cx: &Cx<H>, tg: TgId, parent: TgId, cpu: Cpu, above: u64) -> u64 {
    let se_load_avg = words(cx, tg, cpu).map_or(0, |w| w.se_load_avg.load(Relaxed));
    shares::h_load_child(above, se_load_avg, peek_queue_load(cx, parent, cpu))
}

fn queue_load<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu) -> u64 {
    let object = place(Kind::CfsRq, tg, cpu);
    cx.touch(object, f::AVG, Access::Read);
    peek_queue_load(cx, tg, cpu)
}

fn peek_queue_load<H: Host>(cx: &Cx<H>, tg: TgId, cpu: Cpu) -> u64 {
    if tg == TgId::ROOT {
        cx.sys.cpu[cpu.idx()].load_avg.load(Relaxed)
    } else {
        words(cx, tg, cpu).map_or(0, |w| w.queue_load_avg.load(Relaxed))
    }
}

/// `None` where the group never had a queue: nothing there has any load.
#[inline]
fn words<'a, H: Host>(cx: &Cx<'a, H>, tg: TgId, cpu: Cpu) -> Option<&'a TgCpu> {
    cx.sys.tg[tg.idx()].words(cpu)
}

fn touch_queue<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu, access: Access) {
    let object = place(Kind::CfsRq, tg, cpu);
    cx.touch(object, f::H_LOAD, access);
}

fn place(kind: Kind, tg: TgId, cpu: Cpu) -> Object {
    Object {
        kind,
        a: cpu.0,
        b: tg.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::on_a_small_stack;
    use crate::place::Access::Update;
    use crate::policy::{Features, HLoad};
    use crate::testing::Bench;

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
                    bench.call(0, |cx, _| task_h_load(cx, tg, Cpu(0), 1024));
                }
                let touches = bench.host.touches.iter();
                let updates =
                    touches.filter(|(_, fields, access)| (*fields, *access) == (f::H_LOAD, Update));
                assert!(updates.map(|(o, ..)| o.b).eq(0..levels), "{h_load:?}");
            }
        });
    }

    /// Root 2047, of which the group's entity has 1024; its queue 299, of which the task has 100.
    #[test]
    fn a_task_has_its_part_of_its_groups_part() {
        for h_load in [HLoad::OnDemand, HLoad::Eager] {
            let mut bench = Bench::new(1, Features::default());
            bench.sys.features.h_load = h_load;
            let tg = bench.sys.add_group(TgId::ROOT);
            bench.start(0, tg);
            bench.sys.cpu[0].load_avg.store(2047, Relaxed);
            let words = bench.sys.tg[tg.idx()].cpu(Cpu(0));
            words.se_load_avg.store(1024, Relaxed);
            words.queue_load_avg.store(299, Relaxed);
            // 2047 * 1024 / 2048 = 1023; 1023 * 100 / 300 = 341
            let load = bench.call(0, |cx, _| task_h_load(cx, tg, Cpu(0), 100));
            assert_eq!(load, 341, "{h_load:?}");
        }
    }
}
