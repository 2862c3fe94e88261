//! A task that does not run is stopped or ended by somebody else: a signal, a freezer, the abort of
//! a future.

use super::attributes::on_its_queue;
use crate::cx::Cx;
use crate::fair::Dequeue;
use crate::fair::task::{block_task, dequeue_entities, dequeue_task_fair, touch_task};
use crate::host::Host;
use crate::place::{Access, task as ftask};
use crate::rq::{Rq, Rqs};
use crate::shared::Relaxed;
use crate::value::{Cpu, SeId, TaskId};

/// What has become of a task that was to leave its queue.
#[must_use = "one that runs is still there"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deactivated {
    /// It has left, and came with [`Host::park`] within the call.
    Left,
    /// It runs there, or is being switched out, and nothing was changed: that CPU calls
    /// [`schedule`](super::schedule) with [`Prev::Stops`](crate::task::Prev::Stops) or
    /// [`Prev::Exits`](crate::task::Prev::Exits).
    Runs(Cpu),
    /// No `Rq` keeps it: it is asleep or on a list of remote wake-ups, so with the host already.
    Parked,
}

/// Takes a task that does not run off the `Rq` that keeps it, whether it waits for the CPU, waits
/// for the runtime of its group, or sleeps and is still queued: it goes to the host, as one that
/// was told [`Prev::Stops`](crate::task::Prev::Stops) does (`deactivate_task`). There it can stay,
/// be woken like any sleeper, or end by [`task_dead`](super::task_dead).
///
/// A host with CPUs in parallel holds its lock of the task meanwhile, as for a wake-up, and until
/// it has written down that the task is stopped: a task that was answered to run may be asleep a
/// moment later.
pub fn deactivate_task<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    id: TaskId,
) -> Deactivated {
    let done = on_its_queue(cx, rqs, id, |cx, rq, slot| {
        if runs(cx, rq, id, slot) {
            return Deactivated::Runs(rq.cpu);
        }
        touch_task(cx, id, ftask::STATE, Access::Update);
        if rq.se[slot.idx()].sched_delayed {
            // As if it were picked: this gives it to the host.
            dequeue_entities(cx, rq, slot, Dequeue::SLEEP | Dequeue::DELAYED);
        } else {
            dequeue_task_fair(cx, rq, slot, Dequeue::SLEEP | Dequeue::SPECIAL);
            block_task(cx, rq, slot);
        }
        Deactivated::Left
    });
    done.unwrap_or(Deactivated::Parked)
}

/// Whether a task runs, or the switch away from it is not over: the stopper has the CPU, or it
/// looks for work elsewhere.
pub(super) fn runs<H: Host>(cx: &Cx<H>, rq: &Rq, id: TaskId, slot: SeId) -> bool {
    rq.curr == Some(slot) || cx.sys.task[id.idx()].on_cpu.load(Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Features;
    use crate::sched::{
        TaskState, exit_to_user, sched_tick, schedule, set_bandwidth, task_dead, task_state,
        wake_queued,
    };
    use crate::task::{Prev, WakeKind};
    use crate::testing::Bench;
    use crate::value::TgId;

    fn switch(bench: &mut Bench, prev: Prev) {
        let _ = bench.call(0, |cx, rqs| schedule(cx, rqs, prev));
    }

    fn state(bench: &mut Bench, id: TaskId) -> TaskState {
        bench.call(0, |cx, rqs| task_state(cx, rqs, id))
    }

    /// It leaves, is with the host, and ends there; then nothing of anybody is left on the CPU.
    fn ends(bench: &mut Bench, id: TaskId) {
        let left = bench.call(0, |cx, rqs| deactivate_task(cx, rqs, id));
        assert_eq!(left, Deactivated::Left);
        assert_eq!(state(bench, id), TaskState::Parked);
        let again = bench.call(0, |cx, rqs| deactivate_task(cx, rqs, id));
        assert_eq!(again, Deactivated::Parked);
        let task = bench.host.parked.pop().expect("parked");
        assert_eq!(task.body.id, id);
        assert!(!task.se.on_rq && !task.se.sched_delayed && !task.body.throttled);
        bench.call(0, |cx, _| task_dead(cx, task));
    }

    fn nothing_is_left(bench: &mut Bench) {
        bench.host.now += 5_000_000_000;
        bench.call(0, sched_tick);
        bench.on(0, crate::fair::blocked::update_blocked_averages);
        let rq = &bench.rqs[0];
        assert_eq!(rq.nr_running, 0);
        for cfs in &rq.cfs {
            let counts = [cfs.nr_queued, cfs.h_nr_queued, cfs.h_nr_runnable];
            assert_eq!((counts, cfs.h_nr_idle, cfs.limbo), ([0; 3], 0, None));
            assert_eq!((cfs.load.weight, cfs.avg.util_est), (0, 0));
            let avg = &cfs.avg;
            assert_eq!([avg.load_avg, avg.util_avg, avg.runnable_avg], [0; 3]);
        }
    }

    #[test]
    fn one_that_waits_leaves_and_one_that_runs_is_told_of() {
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        let [first, second] = [(); 2].map(|()| bench.start(0, tg));
        switch(&mut bench, Prev::Runnable);
        bench.host.now += 10_000_000;
        let [runs, waits] = match bench.rqs[0].curr_task() == Some(first) {
            true => [first, second],
            false => [second, first],
        };
        assert_eq!(state(&mut bench, runs), TaskState::Running(Cpu(0)));
        assert_eq!(state(&mut bench, waits), TaskState::Queued(Cpu(0)));
        let stays = bench.call(0, |cx, rqs| deactivate_task(cx, rqs, runs));
        assert_eq!(stays, Deactivated::Runs(Cpu(0)));
        ends(&mut bench, waits);
        switch(&mut bench, Prev::Exits);
        let task = bench.host.parked.pop().expect("has exited");
        bench.call(0, |cx, _| task_dead(cx, task));
        nothing_is_left(&mut bench);
    }

    #[test]
    fn a_delayed_sleeper_leaves_with_what_it_owes() {
        let mut bench = Bench::new(1, Features::default());
        for _ in 0..2 {
            bench.start(0, TgId::ROOT);
        }
        switch(&mut bench, Prev::Runnable);
        let asleep = bench.rqs[0].curr_task().expect("one runs");
        bench.host.now += 5_000_000;
        switch(&mut bench, Prev::Sleeps);
        assert_eq!(state(&mut bench, asleep), TaskState::Delayed(Cpu(0)));
        let left = bench.call(0, |cx, rqs| deactivate_task(cx, rqs, asleep));
        assert_eq!(left, Deactivated::Left);
        let task = bench.host.parked.pop().expect("parked");
        assert!(task.se.vlag < 0, "{}", task.se.vlag);
        let kind = WakeKind::Wake;
        assert!(!bench.call(0, |cx, rqs| wake_queued(cx, rqs, asleep, kind)));
        bench.call(0, |cx, _| task_dead(cx, task));
        switch(&mut bench, Prev::Exits);
        let task = bench.host.parked.pop().expect("has exited");
        bench.call(0, |cx, _| task_dead(cx, task));
        nothing_is_left(&mut bench);
    }

    /// Of three in the list of those that wait for the quota, from each place.
    #[test]
    fn one_that_waits_for_quota_leaves_its_list() {
        for place in 0..3 {
            let mut bench = Bench::new(1, Features::default());
            let tg = bench.sys.add_group(TgId::ROOT);
            bench.call(0, |cx, rqs| {
                set_bandwidth(cx, rqs, tg, Some(1_000_000), 100_000_000, 0).expect("a quota");
            });
            let mut ids = [(); 3].map(|()| bench.start(0, tg)).to_vec();
            switch(&mut bench, Prev::Runnable);
            bench.host.now += 20_000_000;
            bench.call(0, sched_tick);
            for _ in 0..4 {
                bench.call(0, exit_to_user);
                switch(&mut bench, Prev::Runnable);
            }
            for id in &ids {
                assert_eq!(state(&mut bench, *id), TaskState::Throttled(Cpu(0)));
            }
            ends(&mut bench, ids.remove(place));
            for id in ids {
                ends(&mut bench, id);
            }
            bench.call(0, |cx, rqs| {
                set_bandwidth(cx, rqs, tg, None, 100_000_000, 0).expect("none");
            });
            nothing_is_left(&mut bench);
        }
    }
}
