//! Waker or previous CPU: around which of the two a woken task is looked for a place.
//!
//! Sources: changelogs of 3.12 and 4.3 (flips of the wakee) and of 4.14 (`WA_IDLE`, `WA_WEIGHT`,
//! `WA_BIAS`); titles in `SOURCES.md`.

use super::Wakee;
use super::probe::{available_idle_cpu, capacity_of, cpu_load};
use crate::cx::Cx;
use crate::fair::h_load::{Unlocked, peek_task_h_load};
use crate::host::Host;
use crate::place::{Access, Func, Kind, Object, rq, task as f};
use crate::shared::{Relaxed, TaskShared};
use crate::topology::SchedDomain;
use crate::value::{Cpu, SCHED_CAPACITY_SCALE, TaskId, TgId};

/// Load average of an idle task: it was forked like any other, with the load of nice 0, and is
/// never updated. Counts when an interrupt on an idle CPU wakes synchronously.
const IDLE_TASK_LOAD_AVG: u64 = SCHED_CAPACITY_SCALE;

/// The words of the task that wakes: of the CPU's idle task if it is nobody.
#[inline]
fn waker_words<'a, H: Host>(cx: &Cx<'a, H>, waker: Option<TaskId>) -> &'a TaskShared {
    match waker {
        Some(task) => &cx.sys.task[task.idx()],
        None => &cx.sys.cpu[cx.cpu.idx()].idle_task,
    }
}

fn touch_wakee<H: Host>(cx: &mut Cx<H>, task: TaskId, access: Access) {
    let object = Object {
        kind: Kind::Task,
        a: task.0,
        b: 0,
    };
    cx.touch(object, f::WAKEE, access);
}

/// Counts how often the waker wakes somebody else than the last time.
pub(super) fn record_wakee<H: Host>(cx: &mut Cx<H>, waker: Option<TaskId>, wakee: TaskId) {
    let words = waker_words(cx, waker);
    let now = cx.jiffies();
    let mut access = Access::Read;
    if now > words.wakee_flip_decay.load(Relaxed) + u64::from(cx.features().hz) {
        let flips = words.wakee_flips.load(Relaxed) >> 1;
        words.wakee_flips.store(flips, Relaxed);
        words.wakee_flip_decay.store(now, Relaxed);
        access = Access::Update;
    }
    if words.last_wakee.load(Relaxed) != wakee.0 {
        let flips = words.wakee_flips.load(Relaxed);
        words.last_wakee.store(wakee.0, Relaxed);
        words.wakee_flips.store(flips.wrapping_add(1), Relaxed);
        access = Access::Update;
    }
    if let Some(task) = waker {
        touch_wakee(cx, task, access);
    }
}

/// Whether waker and wakee are one and many: then pulling all to one cache would crowd it.
pub(super) fn wake_wide<H: Host>(cx: &mut Cx<H>, waker: Option<TaskId>, wakee: TaskId) -> bool {
    touch_wakee(cx, wakee, Access::Read);
    let a = waker_words(cx, waker).wakee_flips.load(Relaxed);
    let b = cx.sys.task[wakee.idx()].wakee_flips.load(Relaxed);
    let llc_size = cx.sys.topology.llc_domain(cx.cpu).map_or(1, |sd| sd.weight);
    is_wide(a, b, llc_size)
}

/// The rule of `wake_wide`: the one with fewer flips has at least as many as the cache has CPUs,
/// the other that many times more.
#[inline]
fn is_wide(a: u32, b: u32, llc_size: u32) -> bool {
    let (slave, master) = (a.min(b), a.max(b));
    slave >= llc_size && u64::from(master) >= u64::from(slave) * u64::from(llc_size)
}

/// `this` (the waking CPU) or `prev`; `sd` is the domain that spans both.
pub(super) fn wake_affine<H: Host>(
    cx: &mut Cx<H>,
    sd: &SchedDomain,
    wakee: &Wakee,
    prev: Cpu,
    waker: Option<TaskId>,
    sync: bool,
) -> Cpu {
    cx.span(Func::WakeAffine, |cx| {
        let rules = cx.features().wake_affine;
        let this = cx.cpu;
        let mut target = None;
        if rules.idle {
            target = wake_affine_idle(cx, this, prev, sync);
        }
        if rules.weight && target.is_none() {
            target = wake_affine_weight(cx, sd, wakee, prev, waker, sync);
        }
        if target != Some(this) {
            return prev;
        }
        sd.state.ttwu_move_affine.fetch_add(1, Relaxed);
        this
    })
}

/// An idle CPU of the two, or the waking one if the waker is about to leave it.
fn wake_affine_idle<H: Host>(cx: &mut Cx<H>, this: Cpu, prev: Cpu, sync: bool) -> Option<Cpu> {
    // From an interrupt on an idle CPU: only within the cache, for the interrupt says nothing
    // about where the task's data is.
    if available_idle_cpu(cx, this) && cx.sys.topology.share_cache(this, prev) {
        let stays = available_idle_cpu(cx, prev);
        return Some(if stays { prev } else { this });
    }
    if sync {
        cx.read_rq(this, rq::NR_RUNNING);
        let words = &cx.sys.cpu[this.idx()];
        let queued = words.h_nr_queued.load(Relaxed);
        let delayed = queued.saturating_sub(words.h_nr_runnable.load(Relaxed));
        if words.nr_running.load(Relaxed).wrapping_sub(delayed) == 1 {
            return Some(this);
        }
    }
    let stays = cx.features().wake_affine.prev_idle && available_idle_cpu(cx, prev);
    stays.then_some(prev)
}

/// The waking CPU if it would be the less loaded one with the task (and without the waker, if
/// that is about to sleep).
fn wake_affine_weight<H: Host>(
    cx: &mut Cx<H>,
    sd: &SchedDomain,
    wakee: &Wakee,
    prev: Cpu,
    waker: Option<TaskId>,
    sync: bool,
) -> Option<Cpu> {
    let this = cx.cpu;
    let mut this_load = cpu_load(cx, this) as i64;
    if sync {
        let current = waker_h_load(cx, waker) as i64;
        if current > this_load {
            return Some(this);
        }
        this_load -= current;
    }
    let load = peek_task_h_load(cx, wakee.unlocked()) as i64;
    let prev_load = cpu_load(cx, prev) as i64 - load;
    this_load += load;

    let (this_factor, prev_factor) = cx.features().wake_affine.load_factors(sd.imbalance_pct);
    let this_eff = this_load * this_factor * capacity_of(cx, prev) as i64;
    let prev_eff = prev_load * prev_factor * capacity_of(cx, this) as i64;
    // Equal loads go to a synchronous waker's CPU, by decision to any.
    let ties = sync || cx.features().wake_affine.ties;
    (this_eff < prev_eff + i64::from(ties)).then_some(this)
}

fn waker_h_load<H: Host>(cx: &mut Cx<H>, waker: Option<TaskId>) -> u64 {
    let this = cx.cpu;
    let words = &cx.sys.cpu[this.idx()];
    let (tg, load_avg) = match waker {
        Some(_) => (
            TgId(words.curr_tg.load(Relaxed)),
            words.curr_load_avg.load(Relaxed),
        ),
        None => (TgId::ROOT, IDLE_TASK_LOAD_AVG),
    };
    let current = Unlocked {
        id: waker,
        tg,
        cpu: this,
        load_avg,
    };
    peek_task_h_load(cx, current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_many_needs_both_to_be_restless() {
        assert!(is_wide(64, 8, 8));
        assert!(is_wide(8, 64, 8));
        assert!(!is_wide(63, 8, 8));
        assert!(!is_wide(1000, 7, 8));
        assert!(!is_wide(0, 0, 1));
    }
}
