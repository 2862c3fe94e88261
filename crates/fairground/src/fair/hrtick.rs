//! A timer for the end of the running task's turn (`HRTICK`).
//!
//! Without it a turn ends at the first tick after the slice is used up. With it the turn is as long
//! as the slice, for the price of setting the hardware's timer at nearly every switch.

use super::cfs_rules;
use super::resched::{resched_curr, resched_curr_lazy};
use crate::cx::Cx;
use crate::fair::{QueueChange, preempt};
use crate::host::{Host, Kick, KickWork, Timer};
use crate::rq::{Rq, Rqs};
use crate::value::SeId;

/// Nobody is interrupted after less, ns: neither a slice that makes no sense nor many timers.
const SHORTEST_NS: i64 = 10_000;

/// `task`, which runs or will run now, has a turn that ends if it is not alone.
#[inline]
pub(crate) fn hrtick_start_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    if cx.features().hrtick.is_on() {
        start(cx, rq, task);
    }
}

#[inline(never)]
fn start<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) {
    if rq.cfs[0].h_nr_queued <= 1 {
        return;
    }
    let features = cx.features();
    let by_deadline = features.pick.by_deadline();
    let slice_ns = match by_deadline {
        true => rq.se[task.idx()].slice_ns,
        false => cfs_rules::sched_slice(&features.tunables, rq, task),
    };
    let se = &rq.se[task.idx()];
    let left = features.hrtick.left_ns(se, slice_ns, by_deadline);
    if left < 0 {
        if rq.curr == Some(task) {
            resched_curr(cx, rq);
        }
        return;
    }
    rq.hrtick_at = cx.host.clock() + left.max(SHORTEST_NS) as u64;
    // Only its own CPU can set its timer.
    if rq.cpu == cx.cpu {
        cx.host.start_timer(Timer::Hrtick(rq.cpu), rq.hrtick_at);
    } else {
        cx.host.kick(rq.cpu, Kick::Run(KickWork::Hrtick));
    }
}

/// Somebody has joined the queue or left it, and the running task's turn may end otherwise now.
#[inline]
pub(crate) fn hrtick_update<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, change: QueueChange) {
    let features = cx.features();
    if !features.hrtick.is_on() {
        return;
    }
    let Some(curr) = rq.curr.filter(|_| rq.higher.is_none()) else {
        return;
    };
    let wanted = if !features.hrtick.follows_queue() {
        change == QueueChange::Joined && rq.hrtick_at == 0
    } else if features.pick.by_deadline() {
        true
    } else {
        // With many others the slice is the shortest there is, however many.
        let nr_queued = rq.cfs[rq.se[curr.idx()].cfs_rq.idx()].nr_queued;
        u64::from(nr_queued) < features.tunables.nr_latency()
    };
    if wanted {
        start(cx, rq, curr);
    }
}

/// A new choice begins.
#[inline]
pub(crate) fn hrtick_clear<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if cx.features().hrtick.follows_queue() {
        cancel(cx, rq);
    }
}

/// The CPU idles.
#[inline]
pub(crate) fn hrtick_idle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if cx.features().hrtick.is_on() {
        cancel(cx, rq);
    }
}

fn cancel<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if core::mem::take(&mut rq.hrtick_at) != 0 {
        cx.host.cancel_timer(Timer::Hrtick(rq.cpu));
    }
}

/// The timer has fired (`hrtick`): a tick for the running task, which makes room.
pub(crate) fn hrtick<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        rq.hrtick_at = 0;
        cx.update_rq_clock(rq);
        if rq.curr.is_some() {
            let _ = preempt::task_tick_fair(cx, rq);
            resched_curr_lazy(cx, rq);
        }
    });
}

/// Another CPU wants the timer of this one set (`__hrtick_start`).
pub(crate) fn hrtick_kicked<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        if rq.hrtick_at != 0 {
            cx.host.start_timer(Timer::Hrtick(cpu), rq.hrtick_at);
        }
    });
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::policy::{Features, Hrtick};
    use crate::sched;
    use crate::task::{Placed, Prev, WakeKind};
    use crate::testing::Bench;
    use crate::value::{Cpu, TgId};

    /// A new task is queued on CPU 0 by `waker`.
    fn join(bench: &mut Bench, waker: u32) {
        let mut task = bench.task(TgId::ROOT);
        let placed = Placed {
            cpu: Cpu(0),
            migrated: false,
        };
        bench.call(waker, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
    }

    fn schedule(bench: &mut Bench, prev: Prev) {
        let _ = bench.call(0, |cx, rqs| sched::schedule(cx, rqs, prev));
    }

    /// Settings of CPU 0's timer since the last look; `None` = it was withdrawn.
    fn set(bench: &mut Bench) -> Vec<Option<u64>> {
        let timers = core::mem::take(&mut bench.host.timers);
        assert!(timers.iter().all(|t| t.0 == Timer::Hrtick(Cpu(0))));
        timers.into_iter().map(|t| t.1).collect()
    }

    /// Two CPUs, the first of which runs one of two hogs; and its slice, ns.
    fn two_hogs(hrtick: Hrtick) -> (Bench, u64) {
        let mut bench = Bench::new(
            2,
            Features {
                hrtick,
                ..Features::default()
            },
        );
        join(&mut bench, 0);
        schedule(&mut bench, Prev::Runnable);
        assert_eq!(set(&mut bench), [], "alone");
        join(&mut bench, 0);
        let slice_ns = bench.sys.features.tunables.base_slice_ns;
        (bench, slice_ns)
    }

    #[test]
    fn a_timer_ends_the_turn_of_who_is_not_alone() {
        for hrtick in [Hrtick::Slice, Hrtick::Deadline] {
            let (mut bench, slice_ns) = two_hogs(hrtick);
            // A new task has half a request.
            let left = match hrtick {
                Hrtick::Deadline => slice_ns / 2,
                _ => slice_ns,
            };
            let at = bench.host.now + left;
            assert_eq!(set(&mut bench), [Some(at)], "{hrtick:?}");
            let first = bench.rqs[0].curr;
            bench.host.now = at;
            bench.call(0, |cx, rqs| {
                sched::run_timer(cx, rqs, Timer::Hrtick(Cpu(0)));
            });
            assert!(bench.rqs[0].need_resched, "{hrtick:?}");
            schedule(&mut bench, Prev::Runnable);
            assert_ne!(bench.rqs[0].curr, first, "{hrtick:?}");
            assert_eq!(set(&mut bench), [Some(at + left)], "{hrtick:?}");
        }
    }

    #[test]
    fn without_it_no_timer_is_set() {
        let (mut bench, slice_ns) = two_hogs(Hrtick::Off);
        bench.host.now += 2 * slice_ns;
        schedule(&mut bench, Prev::Runnable);
        assert_eq!(set(&mut bench), []);
    }

    #[test]
    fn who_joins_sets_the_slice_again_but_leaves_a_deadline_alone() {
        for (hrtick, again) in [(Hrtick::Slice, true), (Hrtick::Deadline, false)] {
            let (mut bench, _) = two_hogs(hrtick);
            let at = set(&mut bench);
            bench.host.now += 100_000;
            join(&mut bench, 0);
            let expected = if again { at } else { Vec::new() };
            assert_eq!(set(&mut bench), expected, "{hrtick:?}");
        }
    }

    #[test]
    fn another_cpu_asks_the_own_one_to_set_it() {
        let (mut bench, slice_ns) = two_hogs(Hrtick::Slice);
        set(&mut bench);
        let at = bench.host.now + slice_ns;
        join(&mut bench, 1);
        assert_eq!(set(&mut bench), []);
        assert_eq!(bench.host.kicks, [(Cpu(0), Kick::Run(KickWork::Hrtick))]);
        bench.call(0, |cx, rqs| sched::run_kick(cx, rqs, KickWork::Hrtick));
        assert_eq!(set(&mut bench), [Some(at)]);
    }

    #[test]
    fn a_choice_withdraws_the_slice_and_idling_both() {
        for hrtick in [Hrtick::Slice, Hrtick::Deadline] {
            let (mut bench, _) = two_hogs(hrtick);
            set(&mut bench);
            schedule(&mut bench, Prev::Exits);
            let withdrawn = set(&mut bench).contains(&None);
            assert_eq!(withdrawn, hrtick == Hrtick::Slice, "{hrtick:?}");
            schedule(&mut bench, Prev::Exits);
            assert!(bench.rqs[0].curr.is_none());
            assert_eq!(bench.rqs[0].hrtick_at, 0, "{hrtick:?}");
        }
    }
}
