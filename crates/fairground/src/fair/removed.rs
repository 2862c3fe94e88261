//! A task that sleeps changes its CPU: its load leaves the old queue without that queue's lock.
//!
//! The waker ages the task to the queue's last update and leaves the averages in a box that
//! several CPUs reach ([`TgCpu`](crate::shared::TgCpu)); the queue subtracts them when it is next
//! updated. All functions work on a [`Task`] that is with the host.

use super::{cfs_rules, leaf};
use crate::cx::Cx;
use crate::fair::Migrates;
use crate::host::Host;
use crate::math::pelt;
use crate::place::{Access, Kind, Object, cfs_rq as q, rq as r, se as e, task as t};
use crate::shared::{Relaxed, Removed, TgCpu};
use crate::task::Task;
use crate::value::Cpu;

use super::load::se_weight;

/// Ages a sleeping task, which is with the host, to the last update of its queue on `cpu`.
pub fn sync_entity_load_avg<H: Host>(cx: &mut Cx<H>, task: &mut Task, cpu: Cpu) {
    if let Some((words, queue)) = queue_of(cx, task, cpu) {
        let now = words.last_update_time(queue, cx.host);
        age_blocked(cx, task, now);
    }
}

/// Leaves the averages of a sleeping task to be removed by the queue it slept on.
///
/// A task that is on no queue's account (new, or already removed) has nothing to leave.
pub fn remove_entity_load_avg<H: Host>(cx: &mut Cx<H>, task: &mut Task, cpu: Cpu) {
    if task.se.avg.last_update_time == 0 {
        return;
    }
    sync_entity_load_avg(cx, task, cpu);
    if let Some((words, queue)) = queue_of(cx, task, cpu) {
        let avg = &task.se.avg;
        let removed = Removed {
            load: avg.load_avg,
            util: avg.util_avg,
            runnable: avg.runnable_avg,
        };
        words.add_removed(queue, removed, cx.host);
    }
}

/// A task that no queue keeps changes its CPU, away from `from`.
pub fn migrate_task_rq_fair<H: Host>(cx: &mut Cx<H>, task: &mut Task, from: Cpu, how: Migrates) {
    let asleep = how == Migrates::FromSleep;
    if asleep && task.se.avg.last_update_time != 0 {
        remove_entity_load_avg(cx, task, from);
        if cx.features().load.pelt_lag {
            migrate_se_pelt_lag(cx, task, from);
        }
    }
    if asleep {
        cfs_rules::migrate_asleep(cx, task, from);
    }
    // Tells the queue to come that this is not on its account.
    task.se.avg.last_update_time = 0;
}

/// Ages a task to what the time is on the queue that it leaves, if that CPU is idle.
///
/// An idle CPU updates nothing, so its last update can be long ago; without this the task would
/// arrive as busy as it was then.
///
/// ```text
///     queue updated     CPU became idle                                    now
///          lut --------------- pelt_idle ............................. ?
///                              clock_idle ------------------------- sched clock
///     now_pelt = pelt_idle - throttled + (clock - clock_idle)
/// ```
///
/// If the queue was updated after the CPU became idle, that update is taken.
fn migrate_se_pelt_lag<H: Host>(cx: &mut Cx<H>, task: &mut Task, from: Cpu) {
    let sys = cx.sys;
    let shared = &sys.cpu[from.idx()];
    if leaf::load_avg_is_decayed(&task.se.avg) {
        return;
    }
    let group = &sys.tg[task.body.tg.idx()];
    cx.touch(group.queue(from), q::RQ, Access::Read);
    cx.read_rq(from, r::CURR);
    let (kind, a) = match shared.curr_task.load(Relaxed).checked_sub(1) {
        Some(task) => (Kind::Task, task),
        None => (Kind::IdleTask, from.0),
    };
    let current = Object { kind, a, b: 0 };
    cx.touch(current, t::STATE, Access::Read); // `is_idle_task`
    if !shared.curr_is_idle.load(Relaxed) {
        return;
    }
    let Some((words, queue)) = queue_of(cx, task, from) else {
        return;
    };
    let throttled = words.throttled_pelt_idle(queue, cx.host);
    if throttled == u64::MAX {
        return; // its clock stands still
    }
    cx.read_rq(from, r::CLOCK);
    let idle_since = shared.clock_pelt_idle.load(Relaxed).wrapping_sub(throttled);
    let updated = words.last_update_time(queue, cx.host);
    let now = if idle_since < updated {
        updated
    } else {
        // The clocks of two CPUs can differ a little.
        let load_time = |clock: u64| clock + sys.load_time_ahead(clock);
        let idle = load_time(shared.clock_idle.load(Relaxed));
        let idle_for = load_time(cx.host.clock()).saturating_sub(idle);
        idle_since.wrapping_add(idle_for)
    };
    age_blocked(cx, task, now);
}

/// The words of the queue that the task sleeps on, and the queue as a place.
#[inline]
fn queue_of<'a, H: Host>(cx: &Cx<'a, H>, task: &Task, cpu: Cpu) -> Option<(&'a TgCpu, Object)> {
    let group = &cx.sys.tg[task.body.tg.idx()];
    Some((group.words(cpu)?, group.queue(cpu)))
}

/// Decays a task that is on no queue.
#[inline]
fn age_blocked<H: Host>(cx: &mut Cx<H>, task: &mut Task, now: u64) {
    let object = Object {
        kind: Kind::TaskSe,
        a: task.body.id.0,
        b: 0,
    };
    cx.touch(object, e::AVG, Access::Update);
    let weight = se_weight(&task.se);
    pelt::update_load_avg_blocked_se(now, &mut task.se.avg, weight);
}
