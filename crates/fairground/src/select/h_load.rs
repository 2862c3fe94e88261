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

/// Brings `h_load` of one queue and those above it up to this jiffy.
fn refresh_h_load<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu, stamp: u64) -> u64 {
    let words = words(cx, tg, cpu);
    if let Some(words) = words.filter(|w| w.h_load_stamp.load(Relaxed) == stamp) {
        touch_queue(cx, tg, cpu, Access::Read);
        return words.h_load.load(Relaxed);
    }
    let h_load = match cx.sys.tg[tg.idx()].parent {
        None => cx.sys.cpu[cpu.idx()].load_avg.load(Relaxed),
        Some(parent) => {
            let above = refresh_h_load(cx, parent, cpu, stamp);
            let entity = place(Kind::GroupSe, tg, cpu);
            cx.touch(entity, se::AVG, Access::Read);
            part_of_parent(cx, words, parent, cpu, above)
        }
    };
    touch_queue(cx, tg, cpu, Access::Update);
    if let Some(words) = words {
        words.h_load.store(h_load, Relaxed);
        words.h_load_stamp.store(stamp, Relaxed);
    }
    h_load
}

fn current_h_load<H: Host>(cx: &Cx<H>, tg: TgId, cpu: Cpu) -> u64 {
    match cx.sys.tg[tg.idx()].parent {
        None => cx.sys.cpu[cpu.idx()].load_avg.load(Relaxed),
        Some(parent) => {
            let above = current_h_load(cx, parent, cpu);
            part_of_parent(cx, words(cx, tg, cpu), parent, cpu, above)
        }
    }
}

fn part_of_parent<H: Host>(
    cx: &Cx<H>,
    words: Option<&TgCpu>,
    parent: TgId,
    cpu: Cpu,
    above: u64,
) -> u64 {
    let se_load_avg = words.map_or(0, |w| w.se_load_avg.load(Relaxed));
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
