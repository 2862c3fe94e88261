//! Whether the running task gives way: wake-up, tick, yield, fork.
//!
//! `Resched::Yes` means that `rq.need_resched` is set, by this call or before; the host has to
//! know. What may wait (`rq.need_resched_lazy`) it need not know.

use super::buddy::{Buddy, clear_buddies, se_is_idle, set_buddy};
use super::entity::{update_curr, update_curr_inlined};
use super::group::update_cfs_group_inlined;
use super::load::update_load_avg_inlined;
use super::misfit::update_misfit_status;
use super::pick::{eligible_buddy, pick_eevdf};
use super::place::touch_avg_vruntime;
use super::resched::{resched_curr, resched_curr_lazy};
use super::vtime::{avg_vruntime, cfs_rq_min_slice, entity_eligible};
use super::{cfs_rules, task::dequeue_entities, task::touch_task};
use crate::cx::Cx;
use crate::fair::{Dequeue, UpdateLoad};
use crate::host::Host;
use crate::math::eevdf::deadline_before;
use crate::place::{Access, Func, cfs_rq as fq, rq as frq, se as fse, task as ft};
use crate::policy::Features;
use crate::rq::Rq;
use crate::task::{Policy, Resched, WakeKind};
use crate::value::{CfsId, SeId};

/// Whether a task that was just enqueued preempts the running one (`check_preempt_wakeup_fair`).
#[doc(alias = "check_preempt_wakeup")]
pub fn wakeup_preempt_fair<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    woken: SeId,
    kind: WakeKind,
) -> Resched {
    let Some(curr) = rq.curr.filter(|c| *c != woken) else {
        return answer(rq);
    };
    let outer = cx.host.enter(Func::WakeupPreempt);
    cx.touch(rq.object(), frq::CURR, Access::Read);
    cx.touch(rq.se_object(curr), fse::CFS_RQ, Access::Read);
    if wants_preemption(cx, rq, curr, woken, kind) {
        resched_curr_lazy(cx, rq);
    }
    cx.host.leave(outer);
    answer(rq)
}

#[inline]
fn answer(rq: &Rq) -> Resched {
    if rq.need_resched {
        Resched::Yes
    } else {
        Resched::No
    }
}

fn wants_preemption<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    curr: SeId,
    woken: SeId,
    kind: WakeKind,
) -> bool {
    if is_throttled(cx, rq, woken) {
        return false;
    }
    let features = &cx.sys.features;
    let marks = features.next_buddy.marks_woken() && !features.buddy_rules.are_eevdf();
    if marks && kind != WakeKind::Fork && !rq.se[woken.idx()].sched_delayed {
        set_buddy(rq, woken, Buddy::Next);
    }
    cx.touch(rq.curr_object(), ft::THREAD_INFO, Access::Read);
    if rq.need_resched {
        return false;
    }
    let idle_rule = features.idle_preemption;
    let normal = has_policy(rq, woken, Policy::Normal);
    if idle_rule.compares_tasks() {
        touch_policies(cx, rq, [curr, woken]);
        if has_policy(rq, curr, Policy::Idle) && !has_policy(rq, woken, Policy::Idle) {
            return true;
        }
        if !normal {
            return false;
        }
    }
    if !features.wakeup_preemption.is_on() {
        return false;
    }
    let (se, pse) = find_matching_se(cx, rq, curr, woken);
    touch_policies(cx, rq, [se, pse]);
    match (se_is_idle(rq, se), se_is_idle(rq, pse)) {
        (true, false) => {
            if idle_rule.ends_protection() {
                features.run_to_parity.cancel(&mut rq.se[se.idx()]);
            }
            return true;
        }
        (false, true) => return false,
        _ => {}
    }
    if !normal {
        return false;
    }
    let cfs = rq.se[se.idx()].cfs_rq;
    update_curr(cx, rq, cfs);
    touch_compared(cx, rq, se, pse);
    if features.pick.by_deadline() {
        return is_best_pick(cx, rq, (se, pse), kind);
    }
    let preempts = cfs_rules::preempts(cx, rq, se, pse);
    if preempts {
        cfs_rules::mark_preemption(cx, rq, cfs, se, pse);
    }
    preempts
}

/// Whether the woken entity `pse` is whom the queue would pick now, where `se` runs; a shorter
/// slice of it may lift the protection of the running one.
fn is_best_pick<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    (se, pse): (SeId, SeId),
    kind: WakeKind,
) -> bool {
    let features = &cx.sys.features;
    let (parity, eevdf) = (features.run_to_parity, features.buddy_rules.are_eevdf());
    let cfs = rq.se[se.idx()].cfs_rq;
    let (curr, woken) = (&rq.se[se.idx()], &rq.se[pse.idx()]);
    let lifts = features.wakeup_preemption.by_slice()
        && woken.slice_ns < curr.slice_ns
        && parity.is_lifted(|| {
            entity_eligible(rq, cfs, pse)
                && (deadline_before(woken.deadline, curr.deadline) || !entity_eligible(rq, cfs, se))
        });
    if lifts && parity.loses_at_once() {
        parity.cancel(&mut rq.se[se.idx()]);
    }
    if eevdf && !lifts && goes_without(features, rq, pse, kind) {
        return false;
    }
    if pick_awake(cx, rq, cfs, !lifts) == Some(pse) {
        if lifts {
            parity.cancel(&mut rq.se[se.idx()]);
        }
        return true;
    }
    if lifts || eevdf {
        let min_slice = cfs_rq_min_slice(rq, cfs);
        parity.shorten(&mut rq.se[se.idx()], min_slice);
    }
    false
}

/// Whether the woken entity, whose slice is not shorter, is not even compared: nobody has waited
/// for what a new task does, and a waker that will sleep soon makes room by itself for who is its
/// queue's buddy now. Marks the woken one as that.
///
/// By the posting such a waker is preempted once it has run for a part of the migration cost since
/// it was last charged; it has just been charged ([`update_curr`]), so that never comes.
fn goes_without(features: &Features, rq: &mut Rq, pse: SeId, kind: WakeKind) -> bool {
    let woken = &rq.se[pse.idx()];
    if kind == WakeKind::Fork || woken.sched_delayed {
        return true;
    }
    let earlier = |next: SeId| deadline_before(rq.se[next.idx()].deadline, woken.deadline);
    let next = rq.cfs[woken.cfs_rq.idx()].next;
    if !features.next_buddy.marks_woken() || next.is_some_and(earlier) {
        return false;
    }
    set_buddy(rq, pse, Buddy::Next);
    kind == WakeKind::Sync
}

/// Whom the queue would pick, delayed sleepers that it meets first having left, by decision.
fn pick_awake<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId, protect: bool) -> Option<SeId> {
    let features = &cx.sys.features;
    let buddies = features.buddy_rules.are_eevdf();
    loop {
        let buddy = buddies.then(|| eligible_buddy(features, rq, cfs)).flatten();
        let picked = buddy.or_else(|| pick_eevdf(features, rq, cfs, protect))?;
        if !rq.se[picked.idx()].sched_delayed || !features.wakeup_delayed.leaves() {
            return Some(picked);
        }
        dequeue_entities(cx, rq, picked, Dequeue::SLEEP | Dequeue::DELAYED);
    }
}

fn has_policy(rq: &Rq, task: SeId, policy: Policy) -> bool {
    let body = rq.body[task.idx()].as_deref();
    body.is_some_and(|b| b.policy == policy)
}

/// A throttled task has not really been enqueued.
fn is_throttled<H: Host>(cx: &Cx<H>, rq: &Rq, woken: SeId) -> bool {
    if cx.features().throttle.is_per_task() {
        return rq.body[woken.idx()].as_ref().is_some_and(|b| b.throttled);
    }
    rq.cfs[rq.se[woken.idx()].cfs_rq.idx()].throttled_hierarchy()
}

/// The two entities, above or at the given ones, that compete on one queue.
fn find_matching_se<H: Host>(cx: &mut Cx<H>, rq: &Rq, mut a: SeId, mut b: SeId) -> (SeId, SeId) {
    let up = |id: SeId| rq.se[id.idx()].parent.unwrap_or(id);
    let depth = |id: SeId| rq.se[id.idx()].depth;
    let read = fse::CFS_RQ | fse::DEPTH | fse::PARENT;
    cx.touch(rq.se_object(a), read, Access::Read);
    cx.touch(rq.se_object(b), read, Access::Read);
    while depth(a) > depth(b) {
        a = up(a);
        cx.touch(rq.se_object(a), read, Access::Read);
    }
    while depth(b) > depth(a) {
        b = up(b);
        cx.touch(rq.se_object(b), read, Access::Read);
    }
    while rq.se[a.idx()].cfs_rq != rq.se[b.idx()].cfs_rq {
        (a, b) = (up(a), up(b));
        cx.touch(rq.se_object(a), read, Access::Read);
        cx.touch(rq.se_object(b), read, Access::Read);
    }
    (a, b)
}

/// Where an entity's policy is: a task's in the task, a group's in its queue (`cpu.idle`).
fn touch_policies<H: Host>(cx: &mut Cx<H>, rq: &Rq, entities: [SeId; 2]) {
    for id in entities {
        let se = &rq.se[id.idx()];
        match se.my_q {
            Some(group) => {
                cx.touch(se.object(rq.cpu), fse::MY_Q, Access::Read);
                cx.touch(rq.cfs_object(group), fq::IDLE, Access::Read);
            }
            None => touch_task(cx, rq.task_id(id), ft::PRIO, Access::Read),
        }
    }
}

/// What the comparison of the running with the woken entity looks at.
fn touch_compared<H: Host>(cx: &mut Cx<H>, rq: &Rq, se: SeId, pse: SeId) {
    let fields = fse::DEADLINE | fse::SLICE | fse::VRUNTIME;
    cx.touch(rq.se_object(se), fields | fse::VLAG, Access::Read);
    cx.touch(rq.se_object(pse), fields, Access::Read);
    let cfs = rq.se[se.idx()].cfs_rq;
    cx.touch(
        rq.cfs_object(cfs),
        fq::AVG_VRUNTIME | fq::TASKS_TIMELINE | fq::MIN_VRUNTIME | fq::CURR,
        Access::Read,
    );
}

/// The tick for the running task at every level.
#[inline(never)]
pub fn task_tick_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) -> Resched {
    let outer = cx.host.enter(Func::TaskTick);
    let mut at = rq.curr;
    while let Some(id) = at {
        at = entity_tick(cx, rq, id);
    }
    let curr = rq.curr;
    update_misfit_status(cx, rq, curr);
    cx.host.leave(outer);
    answer(rq)
}

/// The tick at the level of `curr`; the entity above.
#[inline(always)]
fn entity_tick<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, curr: SeId) -> Option<SeId> {
    let se = &rq.se[curr.idx()];
    let (cfs, below, above) = (se.cfs_rq, se.my_q, se.parent);
    update_curr_inlined(cx, rq, cfs);
    update_load_avg_inlined(cx, rq, cfs, curr, UpdateLoad::TG);
    if let Some(below) = below {
        update_cfs_group_inlined(cx, rq, curr, below);
    }
    // Pulls the reference of the keys along, also while nobody joins or leaves.
    avg_vruntime(rq, cfs);
    if !cx.features().vruntime_base.moves_with_charge() {
        touch_avg_vruntime(cx, rq, cfs);
    }
    if !cx.features().pick.by_deadline()
        && rq.cfs[cfs.idx()].nr_queued > 1
        && cfs_rules::check_preempt_tick(cx, rq, cfs, curr)
    {
        resched_curr(cx, rq);
    }
    above
}

/// `sched_yield` of the running task: it gives up the rest of its request, by decision with what
/// it is behind the queue's virtual time; under CFS it is not the next one. The caller reschedules.
pub fn yield_task_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq) {
    let Some(curr) = rq.curr.filter(|_| rq.nr_running > 1) else {
        return;
    };
    let cfs = rq.se[curr.idx()].cfs_rq;
    clear_buddies(rq, cfs, curr);
    if yield_charges(cx, rq) {
        update_curr(cx, rq, cfs);
    }
    cx.touch(
        rq.se_object(curr),
        fse::VRUNTIME | fse::DEADLINE,
        Access::Update,
    );
    if !cx.features().pick.by_deadline() {
        set_buddy(rq, curr, Buddy::Skip);
        return;
    }
    let eligible = entity_eligible(rq, cfs, curr);
    let yielding = cx.features().yielding;
    yielding.give_up(&mut rq.se[curr.idx()], eligible);
}

/// Whether a yield of the running task reads the clock and charges it: always, but for batch tasks
/// of CFS, which the switch that follows charges.
pub fn yield_charges<H: Host>(cx: &Cx<H>, rq: &Rq) -> bool {
    let running = rq.curr.and_then(|curr| rq.body[curr.idx()].as_ref());
    cx.features().pick.by_deadline() || running.is_none_or(|task| task.policy != Policy::Batch)
}

/// After a change of weight.
pub fn prio_changed_fair<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, task: SeId) -> Resched {
    if !rq.se[task.idx()].on_rq || rq.cfs[0].nr_queued == 1 {
        return answer(rq);
    }
    if rq.curr == Some(task) {
        resched_curr(cx, rq);
        return Resched::Yes;
    }
    wakeup_preempt_fair(cx, rq, task, WakeKind::Wake)
}

#[cfg(test)]
mod tests {
    use crate::fair::Enqueue;
    use crate::lab::{Lab, Spec, nice};
    use crate::policy::{
        BuddyRules, DelayDequeue, Features, IdlePreemption, NextBuddy, Pick, PlaceNew, RunToParity,
        WakeupDelayed, WakeupPreemption,
    };
    use crate::task::{Policy, WakeKind};
    use crate::value::{TaskId, TgId};

    const MS: u64 = 1_000_000;

    fn own_slice(us: u64) -> Spec {
        Spec {
            slice_ns: Some(us * 1000),
            ..Spec::default()
        }
    }

    fn lab(parity: RunToParity, preemption: WakeupPreemption) -> Lab {
        Lab::new(Features {
            run_to_parity: parity,
            wakeup_preemption: preemption,
            ..Features::default()
        })
    }

    /// A hog with a slice of 10 ms has run 1 ms; a task with `slice_us` wakes. Who runs?
    fn woken(mut lab: Lab, slice_us: u64) -> u32 {
        lab.spawn(own_slice(10_000), Enqueue::WAKEUP);
        lab.run(MS);
        lab.spawn(own_slice(slice_us), Enqueue::WAKEUP);
        lab.rq.curr_task().expect("two hogs").0
    }

    #[test]
    fn a_shorter_slice_preempts_where_that_counts() {
        use {RunToParity as P, WakeupPreemption as W};
        assert_eq!(woken(lab(P::ShortestSlice, W::OnShorterSlice), 500), 1);
        assert_eq!(woken(lab(P::OwnSlice, W::OnShorterSlice), 500), 1);
        assert_eq!(woken(lab(P::OwnSlice, W::On), 500), 0);
        assert_eq!(woken(lab(P::ShortestSlice, W::Off), 500), 0);
        assert_eq!(woken(lab(P::ShortestSlice, W::OnShorterSlice), 20_000), 0);
    }

    /// Task 0 has run 1 ms and sleeps, delayed; task 1 has run 1.2 ms since. Task 2 wakes,
    /// eligible, with a later deadline than task 0. Who runs, and how many are queued?
    fn past_a_delayed_sleeper(wakeup_delayed: WakeupDelayed) -> (Option<TaskId>, u32) {
        let mut lab = Lab::new(Features {
            wakeup_delayed,
            ..Features::default()
        });
        let run = |lab: &mut Lab, us: u64| {
            lab.host.now += us * 1000; // no tick in between
            lab.tick_at += us * 1000;
        };
        lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
        lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
        run(&mut lab, 1_000);
        assert!(!lab.sleep());
        run(&mut lab, 1_200);
        lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
        (lab.rq.curr_task(), lab.rq.cfs[0].nr_queued)
    }

    #[test]
    fn a_delayed_sleeper_does_not_keep_a_wake_up_from_preempting() {
        let [blocks, leaves] = [WakeupDelayed::Blocks, WakeupDelayed::Leaves];
        assert_eq!(past_a_delayed_sleeper(blocks), (Some(TaskId(1)), 3));
        assert_eq!(past_a_delayed_sleeper(leaves), (Some(TaskId(2)), 2));
    }

    /// Task 0, with a slice of 3 ms, has run 1 ms, unprotected. A new task begins with half of its
    /// request, so its deadline is the earlier one: who runs, if it is queued with `flags`?
    fn joined(buddy_rules: BuddyRules, slice_us: u64, flags: Enqueue) -> u32 {
        let mut lab = Lab::new(Features {
            buddy_rules,
            run_to_parity: RunToParity::Off,
            ..Features::default()
        });
        lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
        lab.run(MS);
        lab.spawn(own_slice(slice_us), flags);
        lab.rq.curr_task().expect("two hogs").0
    }

    #[test]
    fn a_fork_preempts_by_a_shorter_slice_only() {
        use BuddyRules::{Cfs, Eevdf};
        assert_eq!(joined(Cfs, 3_000, Enqueue::INITIAL), 1);
        assert_eq!(joined(Eevdf, 3_000, Enqueue::INITIAL), 0);
        assert_eq!(joined(Eevdf, 2_900, Enqueue::INITIAL), 1);
    }

    /// Placed at fork, a new task is placed again as it joins, like anybody: a whole request.
    #[test]
    fn before_6_12_a_fork_began_with_a_whole_request() {
        for (new, halves) in [(PlaceNew::AtFork, false), (PlaceNew::AtEnqueue, true)] {
            let mut lab = Lab::new(Features::default());
            lab.sys.features.place.new = new;
            let slot = lab.spawn(own_slice(3_000), Enqueue::INITIAL);
            let se = &lab.rq.se[slot.idx()];
            assert_eq!(se.deadline - se.vruntime == 3 * MS / 2, halves, "{new:?}");
        }
    }

    /// A woken task of 1 ms has an earlier deadline than the buddy, whose slice is 3 ms and who
    /// would be picked next.
    #[test]
    fn a_wake_up_compares_with_the_buddy_by_the_rules_of_eevdf() {
        let preempts = |buddy_rules| {
            let mut lab = Lab::new(Features {
                buddy_rules,
                ..Features::default()
            });
            lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
            let buddy = lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
            lab.run(MS);
            lab.rq.cfs[0].next = Some(buddy);
            lab.spawn(own_slice(1_000), Enqueue::WAKEUP);
            lab.rq.curr_task() != Some(TaskId(0))
        };
        assert!(preempts(BuddyRules::Cfs));
        assert!(!preempts(BuddyRules::Eevdf));
    }

    /// Task 0 has run 1 ms of its slice of 3, unprotected; task 1 of the same slice was owed
    /// service when it slept, and wakes as `kind`: who runs, and is task 1 the buddy, or did run?
    fn woken_as(kind: WakeKind) -> (Option<TaskId>, bool) {
        let mut lab = Lab::new(Features {
            next_buddy: NextBuddy::On,
            run_to_parity: RunToParity::Off,
            ..Features::default()
        });
        lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
        lab.run(MS);
        let mut task = lab.task(own_slice(3_000));
        task.se.vlag = MS as i64 / 2;
        let slot = lab.enter_as(task, Enqueue::WAKEUP, kind);
        let marked = lab.rq.cfs[0].next == Some(slot) || lab.rq.curr == Some(slot);
        (lab.rq.curr_task(), marked)
    }

    #[test]
    fn a_waker_that_sleeps_soon_is_not_preempted_by_its_buddy() {
        assert_eq!(woken_as(WakeKind::Wake), (Some(TaskId(1)), true));
        assert_eq!(woken_as(WakeKind::Sync), (Some(TaskId(0)), true));
    }

    #[test]
    fn protection_lasts_for_the_shortest_slice_queued() {
        // Picked while alone, then somebody with a later deadline and a slice of 3 ms joins.
        let mut lab = lab(RunToParity::ShortestSlice, WakeupPreemption::OnShorterSlice);
        lab.spawn(own_slice(3_000), Enqueue::WAKEUP);
        lab.spawn(own_slice(10_000), Enqueue::WAKEUP);
        let slot = lab.rq.curr.expect("two hogs");
        let se = &lab.rq.se[slot.idx()];
        assert_eq!(se.vprot.wrapping_sub(se.vruntime), 3 * MS);
        lab.run(20 * MS);
        // Its own 10 ms end in the third stretch: before, its deadline is the earlier one.
        assert_eq!(lab.stretches[1], [3 * MS, 3 * MS, 4 * MS]);
    }

    #[test]
    fn a_yield_gives_up_the_request() {
        let mut lab = lab(RunToParity::ShortestSlice, WakeupPreemption::OnShorterSlice);
        let a = lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        let deadline = lab.rq.se[a.idx()].deadline;
        lab.with(super::yield_task_fair);
        assert_eq!(lab.rq.se[a.idx()].vruntime, deadline);
        lab.schedule();
        assert_eq!(lab.rq.curr_task(), Some(TaskId(1)));
        // Not eligible any more, so the next yield takes nothing.
        lab.with(super::yield_task_fair);
        lab.schedule();
        let before = lab.rq.se[a.idx()].vruntime;
        if lab.rq.curr == Some(a) {
            lab.with(super::yield_task_fair);
        }
        assert!(lab.rq.se[a.idx()].vruntime.wrapping_sub(before) <= 2 * MS);
    }

    #[test]
    fn idle_work_gives_way_and_never_takes() {
        let mut lab = Lab::new(Features::default());
        let idle = Spec {
            policy: Policy::Idle,
            ..Spec::default()
        };
        lab.spawn(idle, Enqueue::WAKEUP);
        lab.spawn(nice(19), Enqueue::WAKEUP);
        assert_eq!(lab.rq.curr_task(), Some(TaskId(1)));
        lab.spawn(idle, Enqueue::WAKEUP);
        assert_eq!(lab.rq.curr_task(), Some(TaskId(1)));
        assert_eq!(lab.rq.cfs[0].h_nr_idle, 2);
    }

    const IDLE: Spec = Spec {
        policy: Policy::Idle,
        tg: TgId::ROOT,
        nice: 0,
        slice_ns: None,
    };

    /// A hog of `SCHED_IDLE`, protected up to its deadline, has run 0.1 ms; another task wakes.
    #[test]
    fn before_6_15_idle_work_kept_its_protection() {
        for (rule, runs) in [
            (IdlePreemption::Entities, 0),
            (IdlePreemption::Unprotected, 1),
        ] {
            let mut lab = lab(RunToParity::OwnSlice, WakeupPreemption::On);
            lab.sys.features.idle_preemption = rule;
            lab.spawn(IDLE, Enqueue::WAKEUP);
            lab.run(MS / 10);
            lab.spawn(nice(0), Enqueue::WAKEUP);
            assert_eq!(lab.rq.curr_task(), Some(TaskId(runs)), "{rule:?}");
        }
    }

    /// By the rules of CFS: a hog of `SCHED_IDLE` in a group that is not idle is ahead by less than
    /// the granularity.
    #[test]
    fn before_6_12_policies_of_tasks_counted_across_groups() {
        for (rule, runs) in [(IdlePreemption::Tasks, 1), (IdlePreemption::Entities, 0)] {
            let mut lab = Lab::new(Features {
                pick: Pick::Cfs,
                delay_dequeue: DelayDequeue::Off,
                idle_preemption: rule,
                ..Features::default()
            });
            let tg = lab.sys.add_group(TgId::ROOT);
            lab.sys.open_group(tg);
            lab.spawn(Spec { tg, ..IDLE }, Enqueue::WAKEUP);
            lab.run(MS / 2);
            lab.spawn(nice(0), Enqueue::WAKEUP);
            assert_eq!(lab.rq.curr_task(), Some(TaskId(runs)), "{rule:?}");
        }
    }

    #[test]
    fn batch_does_not_preempt() {
        let mut lab = Lab::new(Features::default());
        let batch = Spec {
            policy: Policy::Batch,
            ..own_slice(200)
        };
        lab.spawn(own_slice(10_000), Enqueue::WAKEUP);
        lab.run(MS / 2);
        lab.spawn(batch, Enqueue::WAKEUP);
        assert_eq!(lab.rq.curr_task(), Some(TaskId(0)));
    }

    #[test]
    fn a_batch_task_of_cfs_is_not_charged_by_its_yield() {
        for (policy, charged) in [(Policy::Normal, MS / 4), (Policy::Batch, 0)] {
            let mut lab = Lab::new(Features {
                pick: Pick::Cfs,
                delay_dequeue: DelayDequeue::Off,
                ..Features::default()
            });
            let yields = Spec { policy, ..nice(0) };
            let slot = lab.spawn(yields, Enqueue::WAKEUP);
            lab.spawn(nice(0), Enqueue::WAKEUP);
            assert_eq!(lab.rq.curr, Some(slot));
            let before = lab.rq.se[slot.idx()].sum_exec_runtime;
            lab.run(MS / 4);
            lab.with(super::yield_task_fair);
            let ran = lab.rq.se[slot.idx()].sum_exec_runtime - before;
            assert_eq!(ran, charged, "{policy:?}");
        }
    }

    #[test]
    fn a_new_nice_value_counts_from_now_on() {
        let mut lab = Lab::new(Features::default());
        let a = lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.run(1000 * MS);
        let _ =
            lab.with(|cx, rq| crate::fair::task::set_task_weight(cx, rq, a, Policy::Normal, -5));
        let before = lab.ran.clone();
        lab.run(8000 * MS);
        let (x, y) = (lab.ran[0] - before[0], lab.ran[1] - before[1]);
        let share = x as f64 / (x + y) as f64;
        assert!((share - 3121.0 / 4145.0).abs() < 0.005, "{share}");
    }

    /// Recorded on 6.12.117: a task that gives itself nice 5 in its first turn keeps the CPU for
    /// the tick.
    #[test]
    fn a_new_nice_value_renews_the_protection_of_6_12() {
        let parity = RunToParity::OwnSlice;
        let mut lab = lab(parity, WakeupPreemption::On);
        let a = lab.spawn(nice(0), Enqueue::WAKEUP);
        lab.spawn(nice(0), Enqueue::WAKEUP);
        let _ = lab.with(|cx, rq| crate::fair::task::set_task_weight(cx, rq, a, Policy::Normal, 5));
        assert_eq!(lab.rq.curr, Some(a));
        assert!(parity.protects(&lab.rq.se[a.idx()]));
    }
}
