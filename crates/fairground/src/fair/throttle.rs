//! Throttling: what one queue does when its runtime is spent, and when it has some again.
//!
//! Two ways ([`Throttle`](crate::policy::Throttle)). Up to 6.17 the whole queue leaves the tree:
//! its group entity is dequeued, and those above that have nothing else. Since 6.18 the queue is
//! only marked: each of its tasks dequeues itself at its next return to user space and waits in
//! limbo (`limbo.rs`), so that no task is stopped while it holds a kernel lock. Runtime is in
//! `runtime.rs`, the queues below in `throttle_walk.rs`, pool and timers in `bandwidth.rs`.
//!
//! Sources: `Documentation/scheduler/sched-bwc.rst`; changelogs of "Defer throttle when task exits
//! to user" (6.18).

pub use super::limbo::{
    dequeue_throttled_task, enqueue_throttled_task, task_throttle_setup_work, throttle_cfs_rq_work,
};
pub use super::runtime::{account_cfs_rq_runtime, check_cfs_rq_runtime, return_cfs_rq_runtime};
pub use super::throttle_clock::{cfs_rq_clock_pelt, queue_emptied, record_throttle_clock};

use super::counts::Counts;
use super::resched::resched_curr;
use super::task::add_nr_running;
use super::throttle_walk::{Walked, tg_throttle_down, tg_unthrottle_up};
use super::{Dequeue, Enqueue, UpdateLoad, entity, expiry, leaf, load, runtime, throttle_clock};
use crate::cx::Cx;
use crate::event::{Event, QuotaStep, QuotaWork};
use crate::host::Host;
use crate::place::{Access, Func, cfs_rq as f};
use crate::policy::ThrottledClock;
use crate::rq::Rq;
use crate::value::{CfsId, Cpu, TgId};

/// A queue that was empty has got its first entity (call with `nr_queued == 1`, before
/// `list_add_leaf_cfs_rq`): throttles it if there is no runtime, and lets its load-tracking clock
/// go on.
pub fn check_enqueue_throttle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if !cx.sys.bandwidth_used() && rq.cfs[cfs.idx()].throttle_count == 0 {
        return;
    }
    runtime::check_first_runtime(cx, rq, cfs);
    throttle_clock::queue_filled(cx, rq, cfs);
}

/// Throttles a queue; false if it found runtime after all.
pub fn throttle_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> bool {
    let outer = cx.host.enter(Func::ThrottleCfsRq);
    let since = cx.host.moment();
    let walked = throttle(cx, rq, cfs);
    cx.host.leave(outer);
    tell(cx, rq.cfs[cfs.idx()].tg, QuotaStep::Throttle, since, walked);
    walked.is_some()
}

/// Lets a queue run again, unless its new runtime is already spent. If the CPU is idle and has
/// something to run now, `rq.need_resched` is set.
pub fn unthrottle_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let outer = cx.host.enter(Func::UnthrottleCfsRq);
    let since = cx.host.moment();
    let walked = unthrottle(cx, rq, cfs);
    cx.host.leave(outer);
    tell(
        cx,
        rq.cfs[cfs.idx()].tg,
        QuotaStep::Unthrottle,
        since,
        walked,
    );
}

/// Tells the host what a queue's throttling has made of work, if anything.
fn tell<H: Host>(cx: &mut Cx<H>, tg: TgId, step: QuotaStep, since: u64, walked: Option<Walked>) {
    if let Some(Walked { groups, tasks }) = walked {
        let work = QuotaWork {
            tg,
            step,
            groups,
            tasks,
        };
        cx.host.quota(work, since);
    }
}

/// A new queue takes over the quota of its group and the throttle state of its parent.
pub fn init_throttle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let now = rq.clock.pelt();
    let parent = rq.cfs[cfs.idx()].parent;
    let above = rq.cfs[parent.idx()].throttle_count;
    let queue = &mut rq.cfs[cfs.idx()];
    let tg = &cx.sys.tg[queue.tg.idx()];
    queue.runtime_enabled = tg.bandwidth.is_limited();
    queue.runtime_remaining = cx.sys.features.throttle.first_runtime();
    queue.throttle_count = above;
    queue.throttled_clock_pelt = now;
    queue.pelt_clock_throttled = above > 0;
    queue.words.publish_throttle(above);
}

/// Whether the hierarchy of `tg` is throttled on `cpu`, any CPU (`throttled_hierarchy`, asked by
/// load balancing before it moves a task there).
///
/// In the kernel the group's queue is there, used or not, and says so; here those above answer for
/// one that is not.
#[must_use]
pub(crate) fn is_throttled_on<H: Host>(cx: &mut Cx<H>, tg: TgId, cpu: Cpu) -> bool {
    let (sys, group) = (cx.sys, &cx.sys.tg[tg.idx()]);
    group.look_up_queue(cpu, cx.host);
    cx.touch(group.queue(cpu), f::THROTTLE_COUNT, Access::Read);
    let mut at = Some(tg);
    while let Some(tg) = at {
        let tg = &sys.tg[tg.idx()];
        if let Some(throttled) = tg.throttled_hierarchy(cpu) {
            return throttled;
        }
        at = tg.parent;
    }
    false
}

/// `None`: it found runtime after all.
fn throttle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> Option<Walked> {
    let (sys, cpu) = (cx.sys, rq.cpu);
    let queue = &mut rq.cfs[cfs.idx()];
    let (tg, remaining) = (queue.tg, queue.runtime_remaining);
    debug_assert!(!queue.throttled);
    // Runtime may have become available just now; and this starts the timer that will end it.
    let (expiry, own) = (sys.features.quota_expiry, &mut queue.runtime_expires);
    let found = sys.tg[tg.idx()].with_pool(cx.host, |pool| {
        let amount = expiry::draw(pool, expiry, own, (remaining, 1)) as i64;
        if remaining + amount <= 0 {
            pool.push_throttled(cpu);
        }
        amount
    });
    queue.runtime_remaining += found;
    cx.touch(
        rq.cfs_object(cfs),
        f::RUNTIME_REMAINING | f::THROTTLED | f::THROTTLED_LIST,
        Access::Update,
    );
    if remaining + found > 0 {
        return None;
    }
    sys.tg[tg.idx()].look_up_entity(cpu, cx.host);
    let mut walked = tg_throttle_down(cx, rq, tg);
    if !sys.features.throttle.is_per_task() {
        walked.tasks += rq.cfs[cfs.idx()].h_nr_queued;
        leave_parents(cx, rq, cfs);
    }
    let clock = rq.clock.clock;
    let queue = &mut rq.cfs[cfs.idx()];
    queue.throttled = true;
    debug_assert_eq!(queue.throttled_clock, 0);
    let waits = queue.nr_queued > 0 || sys.features.throttled_clock == ThrottledClock::AtThrottle;
    if !sys.features.throttle.is_per_task() && waits {
        queue.throttled_clock = clock;
    }
    let throttled = true;
    cx.host.event(Event::Throttle { cpu, tg, throttled });
    Some(walked)
}

/// `None`: its runtime is spent again.
fn unthrottle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> Option<Walked> {
    let (sys, cpu, clock) = (cx.sys, rq.cpu, rq.clock.clock);
    let per_task = sys.features.throttle.is_per_task();
    debug_assert!(rq.cfs[cfs.idx()].throttled);
    if per_task && rq.cfs[cfs.idx()].runtime_enabled {
        // What another CPU has granted may be of an earlier period by now, or be spent by tasks
        // that were still in the kernel.
        expiry::expire_cfs_rq_runtime(cx, rq, cfs);
        if rq.cfs[cfs.idx()].runtime_remaining <= 0 {
            return None;
        }
    }
    let queue = &mut rq.cfs[cfs.idx()];
    let tg = queue.tg;
    sys.tg[tg.idx()].look_up_entity(cpu, cx.host);
    queue.throttled = false;
    let since = core::mem::take(&mut queue.throttled_clock);
    let time = if since == 0 { 0 } else { clock - since };
    sys.tg[tg.idx()].with_pool(cx.host, |pool| pool.remove_throttled(cpu, time));
    cx.touch(
        rq.cfs_object(cfs),
        f::THROTTLED | f::THROTTLED_CLOCK | f::THROTTLED_LIST,
        Access::Update,
    );
    let throttled = false;
    cx.host.event(Event::Throttle { cpu, tg, throttled });
    let mut walked = tg_unthrottle_up(cx, rq, tg);
    if rq.cfs[cfs.idx()].load.weight == 0 {
        // Nothing to run, but something to decay: the leaf list needs the whole branch. The queues
        // above may have left it meanwhile.
        if rq.cfs[cfs.idx()].on_list {
            let above = rq.cfs[cfs.idx()].parent;
            leaf::list_add_leaf_cfs_rq(cx, rq, above);
        }
    } else if !per_task {
        walked.tasks += rq.cfs[cfs.idx()].h_nr_queued;
        join_parents(cx, rq, cfs);
    }
    if rq.is_idle() && rq.cfs[CfsId::ROOT.idx()].nr_queued > 0 {
        resched_curr(cx, rq);
    }
    Some(walked)
}

/// The group entity of a throttled queue leaves its parent, and so on up to the first parent that
/// has something else. Above, only counts change.
fn leave_parents<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let mut counts = Counts::of(rq, cfs).seen_above(rq, cfs);
    let mut se = rq.cfs[cfs.idx()].se;
    let mut leaving = true;
    while let Some(at) = se {
        let entity = &rq.se[at.idx()];
        let above = entity.cfs_rq;
        if !entity.on_rq {
            // Throttled further up, or about to be enqueued: the walk that does it counts.
            return;
        }
        if leaving {
            // SPECIAL: a throttled entity must not stay as a delayed sleeper.
            let delayed = entity.sched_delayed;
            let flags = Dequeue::SLEEP | Dequeue::SPECIAL;
            let flags = if delayed {
                flags | Dequeue::DELAYED
            } else {
                flags
            };
            entity::dequeue_entity(cx, rq, above, at, flags);
        } else {
            load::update_load_avg(cx, rq, above, at, UpdateLoad::NONE);
            load::se_update_runnable(rq, at);
        }
        counts.leave(rq, above);
        cx.touch(rq.cfs_object(above), f::NR_QUEUED, Access::Update);
        leaving &= rq.cfs[above.idx()].load.weight == 0;
        se = rq.se[at.idx()].parent;
    }
    rq.nr_running -= counts.queued;
}

/// The reverse: joins all parents, or those up to one that is throttled itself.
fn join_parents<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let mut counts = Counts::of(rq, cfs).seen_above(rq, cfs);
    let mut se = rq.cfs[cfs.idx()].se;
    let mut joining = true;
    while let Some(at) = se {
        let above = rq.se[at.idx()].cfs_rq;
        if joining && rq.se[at.idx()].sched_delayed {
            let flags = Dequeue::SLEEP | Dequeue::DELAYED;
            entity::dequeue_entity(cx, rq, above, at, flags);
        }
        joining &= !rq.se[at.idx()].on_rq;
        if joining {
            entity::enqueue_entity(cx, rq, above, at, Enqueue::WAKEUP);
        } else {
            load::update_load_avg(cx, rq, above, at, UpdateLoad::TG);
            load::se_update_runnable(rq, at);
        }
        counts.join(rq, above);
        cx.touch(rq.cfs_object(above), f::NR_QUEUED, Access::Update);
        if rq.cfs[above.idx()].throttled {
            return;
        }
        se = rq.se[at.idx()].parent;
    }
    add_nr_running(cx, rq, counts.queued);
}
