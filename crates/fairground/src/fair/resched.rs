//! Asking for a switch.

use super::limbo::is_throttled;
use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, Object, rq as f, task as ft};
use crate::rq::Rq;
use crate::task::Resched;
use crate::value::Cpu;

/// Asks for a switch on the CPU of `rq` (`resched_curr`): once, until it happens.
///
/// The flag is in the `thread_info` of the task that runs there, which its own CPU reads at every
/// return to user space, so it is read before it is written. The own CPU sets the bit; another one
/// has to know at the same moment whether the idle loop there polls the word
/// (`set_nr_and_not_polling`), which on x86 is a loop around compare-and-exchange. The host is told
/// when the queue is released ([`Cx::with_rq`]) and decides whether an interrupt is needed.
pub(crate) fn resched_curr<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    cx.touch(rq.object(), f::CURR, Access::Read);
    let curr = rq.curr_object();
    cx.touch(curr, ft::THREAD_INFO, Access::Read);
    if !rq.need_resched {
        rq.need_resched = true;
        set_flag(cx, rq.cpu, curr);
    }
}

/// The same on behalf of a fair task that may wait for the next occasion (`resched_curr_lazy`), by
/// decision: then the host is not told. An idle CPU is asked in earnest.
pub(crate) fn resched_curr_lazy<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    if rq.curr.is_none() || !cx.features().preempt.is_lazy() {
        return resched_curr(cx, rq);
    }
    cx.touch(rq.object(), f::CURR, Access::Read);
    let curr = rq.curr_object();
    cx.touch(curr, ft::THREAD_INFO, Access::Read);
    if !rq.need_resched && !rq.need_resched_lazy {
        rq.need_resched_lazy = true;
        set_flag(cx, rq.cpu, curr);
    }
}

#[inline(never)]
fn set_flag<H: Host>(cx: &mut Cx<H>, cpu: Cpu, curr: Object) {
    let how = if cpu == cx.cpu {
        Access::Rmw
    } else {
        Access::CasLoop
    };
    cx.touch(curr, ft::THREAD_INFO, how);
}

/// Acts on an answer about the queue that gave it.
pub(crate) fn resched_if<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, answer: Resched) {
    if answer.is_yes() {
        resched_curr(cx, rq);
    }
}

/// After a queue event with a fresh clock that asked for a switch: the switch need not read the
/// clock again (`rq_clock_skip_update` in `wakeup_preempt`). Not in the midst of a switch away from
/// a task that has left: that switch reads the clock itself, and it is the next one that would not.
pub(crate) fn skip_clock(rq: &mut Rq) {
    let goes_on = match rq.curr {
        Some(curr) => rq.se[curr.idx()].on_rq || is_throttled(rq, curr),
        None => rq.is_idle(),
    };
    rq.skip_clock |= rq.need_resched && goes_on;
}

#[cfg(test)]
mod tests {
    use crate::policy::{Features, Preemption};
    use crate::sched;
    use crate::task::{Placed, Policy, Prev, WakeKind};
    use crate::testing::Bench;
    use crate::value::{Cpu, TgId};

    /// A task of the idle policy runs on CPU 1, and CPU 0 wakes another one there.
    fn woken_remotely(preempt: Preemption) -> Bench {
        let features = Features {
            preempt,
            ..Features::default()
        };
        let mut bench = Bench::new(2, features);
        let sleeper = bench.start(1, TgId::ROOT);
        let _ = bench.call(1, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let _ = bench.call(1, |cx, rqs| sched::schedule(cx, rqs, Prev::Stops));
        let _ = bench.start(1, TgId::ROOT);
        let _ = bench.call(1, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        let runs = bench.rqs[1].curr.expect("the second");
        let body = bench.rqs[1].body[runs.idx()].as_mut();
        body.expect("a task").policy = Policy::Idle;
        bench.host.rescheds.clear();
        let task = bench.host.parked.pop().expect("it has stopped");
        assert_eq!(task.body.id, sleeper);
        let placed = Placed {
            cpu: Cpu(1),
            migrated: false,
        };
        bench.call(0, |cx, rqs| {
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Wake);
        });
        bench
    }

    #[test]
    fn a_lazy_request_sends_nothing_and_waits_for_the_next_tick() {
        let bench = woken_remotely(Preemption::Voluntary);
        assert_eq!(bench.host.rescheds, [Cpu(1)]);
        let mut bench = woken_remotely(Preemption::Lazy);
        let asked = |bench: &Bench| {
            let rq = &bench.rqs[1];
            (rq.need_resched_lazy, rq.need_resched)
        };
        assert!(bench.host.rescheds.is_empty());
        assert_eq!(asked(&bench), (true, false));
        bench.call(1, sched::sched_tick);
        assert_eq!(asked(&bench), (true, true));
        assert_eq!(bench.host.rescheds, [Cpu(1)]);
        let _ = bench.call(1, |cx, rqs| sched::schedule(cx, rqs, Prev::Runnable));
        assert_eq!(asked(&bench), (false, false));
    }

    #[test]
    fn the_return_to_user_space_heeds_a_lazy_request() {
        let mut bench = woken_remotely(Preemption::Lazy);
        bench.call(1, sched::exit_to_user);
        assert!(bench.rqs[1].need_resched);
        assert_eq!(bench.host.rescheds, [Cpu(1)]);
    }

    #[test]
    fn an_idle_cpu_is_asked_in_earnest() {
        let features = Features {
            preempt: Preemption::Lazy,
            ..Features::default()
        };
        let mut bench = Bench::new(2, features);
        bench.start(1, TgId::ROOT);
        assert!(bench.rqs[1].need_resched);
    }
}
