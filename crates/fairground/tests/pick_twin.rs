//! Every pick against a full scan in exact arithmetic, over random histories of one queue.
//!
//! The scan knows only the paper's rule: of the entities that have received no more than their
//! due, the one with the earliest deadline; and the running one first while it is protected. Sums
//! are 128-bit, so nothing rounds and nothing overflows. After each step the queue's own sums and
//! counts are made anew and compared.

mod lab;

use std::collections::BTreeSet;

use fairground::fair::{Enqueue, entity, preempt, task};
use fairground::math::weight::scale_load_down;
use fairground::policy::{DelayDequeue, Features, RunToParity, WakeupPreemption};
use fairground::rq::Rq;
use fairground::task::{Policy, SchedEntity};
use fairground::value::{CfsId, SeId, TaskId};
use lab::{Lab, Spec};
use proptest::prelude::*;

/// The entities of the root queue, the running one last and flagged.
fn queued(rq: &Rq) -> (Vec<SeId>, Option<SeId>) {
    let q = &rq.cfs[0];
    let curr = q.curr.filter(|c| rq.se[c.idx()].on_rq);
    (rq.nodes.iter(&q.tree).map(SeId).collect(), curr)
}

fn weight(se: &SchedEntity) -> i128 {
    i128::from(scale_load_down(se.load.weight))
}

/// `W (V - v)` of an entity: not negative = eligible.
fn room(rq: &Rq, all: &[SeId], of: SeId) -> i128 {
    let base = rq.se[of.idx()].vruntime;
    let key = |s: &SeId| i128::from(rq.se[s.idx()].vruntime.wrapping_sub(base) as i64);
    all.iter().map(|s| weight(&rq.se[s.idx()]) * key(s)).sum()
}

/// Who may be picked: one, or several with equal deadlines.
fn scan(rq: &Rq, parity: RunToParity, gone: &BTreeSet<u32>) -> Vec<SeId> {
    let (mut tree, curr) = queued(rq);
    tree.retain(|s| !gone.contains(&s.0));
    let curr = curr.filter(|c| !gone.contains(&c.0));
    let all: Vec<SeId> = tree.iter().copied().chain(curr).collect();
    if all.len() <= 1 {
        return all;
    }
    let eligible = |s: &SeId| room(rq, &all, *s) >= 0;
    let curr = curr.filter(eligible);
    if curr.is_some_and(|c| parity.protects(&rq.se[c.idx()])) {
        return curr.into_iter().collect();
    }
    let deadline = |s: &SeId| {
        rq.se[s.idx()]
            .deadline
            .wrapping_sub(rq.se[all[0].idx()].deadline)
    };
    let earliest = |of: &[SeId]| of.iter().map(|s| deadline(s) as i64).min();
    tree.retain(eligible);
    match (earliest(&tree), curr) {
        (Some(e), Some(c)) if (deadline(&c) as i64) < e => vec![c],
        (Some(e), _) => {
            tree.retain(|s| deadline(s) as i64 == e);
            tree
        }
        (None, c) => c.into_iter().collect(),
    }
}

/// Picks, with the delayed sleepers that the scan meets first taken out, and compares.
fn check_pick(lab: &mut Lab) {
    let parity = lab.sys.features.run_to_parity;
    lab.with(|cx, rq| entity::update_curr(cx, rq, CfsId::ROOT));
    let rq = &lab.rq;
    let mut gone = BTreeSet::new();
    let expected = loop {
        let picks = scan(rq, parity, &gone);
        // With equal deadlines any order is right; the histories make them rarely.
        if picks.len() > 1 {
            break None;
        }
        match picks.first() {
            Some(p) if rq.se[p.idx()].sched_delayed => gone.insert(p.0),
            other => break Some(other.map(|p| rq.task_id(*p))),
        };
    };
    lab.schedule();
    if let Some(expected) = expected {
        assert_eq!(lab.rq.curr_task(), expected);
    }
}

/// What a queue says of itself equals what its entities say.
fn check_laws(lab: &Lab) {
    let rq = &lab.rq;
    let q = &rq.cfs[0];
    let (tree, curr) = queued(rq);
    let all: Vec<SeId> = tree.iter().copied().chain(curr).collect();
    rq.nodes.check(&q.tree).expect("the tree is in order");
    assert_eq!(q.nr_queued as usize, all.len());
    assert_eq!(rq.nr_running, q.nr_queued);
    let delayed = all.iter().filter(|s| rq.se[s.idx()].sched_delayed).count();
    assert_eq!(q.h_nr_runnable as usize, all.len() - delayed);
    let load: u64 = all.iter().map(|s| rq.se[s.idx()].load.weight).sum();
    assert_eq!(q.load.weight, load);
    let key = |s: &SeId| rq.se[s.idx()].vruntime.wrapping_sub(q.zero_vruntime) as i64;
    let sum: i128 = tree
        .iter()
        .map(|s| weight(&rq.se[s.idx()]) * i128::from(key(s)))
        .sum();
    assert_eq!(i128::from(q.avg_vruntime.sum), sum);
    let slices = all.iter().map(|s| rq.se[s.idx()].slice_ns).min();
    let min_slice = entity::cfs_rq_min_slice(rq, CfsId::ROOT);
    assert_eq!(slices.unwrap_or(u64::MAX), min_slice);
    let slices = all.iter().map(|s| rq.se[s.idx()].slice_ns).max();
    let max_slice = entity::cfs_rq_max_slice(rq, CfsId::ROOT);
    assert_eq!(slices.unwrap_or(0), max_slice);
    assert_eq!(q.curr, rq.curr);
    for task in &lab.host.parked {
        assert!(!task.se.on_rq && !task.se.sched_delayed);
        let features = &lab.sys.features;
        let tick_ns = features.tick_ns();
        let limit = features
            .lag_limit
            .ns(task.se.slice_ns, || SLICE_NS_MAX, tick_ns);
        let lag = i128::from(task.se.vlag) * weight(&task.se) / 1024;
        assert!(lag.unsigned_abs() <= u128::from(limit) + 1);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Spawn(i8, Option<u64>, bool),
    Run(u64),
    /// Runs for so long, then sleeps: ahead of the others by then, it is delayed.
    Sleep(u64),
    Wake(usize),
    Yield,
    Renice(usize, Policy, i8),
    Slice(usize, Option<u64>),
}

/// No slice is longer, ns.
const SLICE_NS_MAX: u64 = 20_000_000;

fn slices() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (100_000..SLICE_NS_MAX).prop_map(Some)]
}

fn steps() -> impl Strategy<Value = Step> {
    let policy = prop_oneof![
        Just(Policy::Normal),
        Just(Policy::Batch),
        Just(Policy::Idle)
    ];
    prop_oneof![
        3 => (-20i8..20, slices(), any::<bool>()).prop_map(|(n, s, new)| Step::Spawn(n, s, new)),
        8 => (1u64..9_000_000).prop_map(Step::Run),
        4 => (0u64..5_000_000).prop_map(Step::Sleep),
        5 => any::<prop::sample::Index>().prop_map(|i| Step::Wake(i.index(64))),
        1 => Just(Step::Yield),
        1 => (0usize..64, policy, -20i8..20).prop_map(|(i, p, n)| Step::Renice(i, p, n)),
        1 => (0usize..64, slices()).prop_map(|(i, s)| Step::Slice(i, s)),
    ]
}

fn apply(lab: &mut Lab, step: &Step) {
    let tasks = lab.sys.task.len();
    let slot_of = |lab: &Lab, i: usize| lab.slot(TaskId((i % tasks.max(1)) as u32));
    match *step {
        Step::Spawn(nice, slice_ns, new) if tasks < 12 => {
            let spec = Spec {
                nice,
                slice_ns,
                ..Spec::default()
            };
            let flags = if new {
                Enqueue::INITIAL
            } else {
                Enqueue::WAKEUP
            };
            lab.spawn(spec, flags);
        }
        Step::Run(ns) => lab.run(ns),
        Step::Sleep(ns) => {
            lab.run(ns);
            if lab.rq.curr.is_some() {
                lab.sleep();
            }
        }
        Step::Wake(i) if tasks > 0 => {
            lab.wake(TaskId((i % tasks) as u32));
        }
        Step::Yield if lab.rq.curr.is_some() => lab.with(preempt::yield_task_fair),
        Step::Renice(i, policy, nice) => {
            if let Some(slot) = slot_of(lab, i) {
                let _ = lab.with(|cx, rq| task::set_task_weight(cx, rq, slot, policy, nice));
            }
        }
        Step::Slice(i, slice) => {
            if let Some(slot) = slot_of(lab, i) {
                lab.with(|cx, rq| task::set_task_slice(cx, rq, slot, slice));
            }
        }
        _ => {}
    }
}

fn check_history(features: Features, history: &[Step]) {
    let mut lab = Lab::new(features);
    for step in history {
        apply(&mut lab, step);
        check_pick(&mut lab);
        check_laws(&lab);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn linux_6_18(history in prop::collection::vec(steps(), 1..120)) {
        check_history(Features::default(), &history);
    }

    #[test]
    fn other_protection(
        parity in prop_oneof![Just(RunToParity::Off), Just(RunToParity::OwnSlice)],
        delay in prop_oneof![Just(DelayDequeue::Off), Just(DelayDequeue::Keep)],
        preempt in prop_oneof![Just(WakeupPreemption::Off), Just(WakeupPreemption::On)],
        history in prop::collection::vec(steps(), 1..120),
    ) {
        let features = Features {
            run_to_parity: parity,
            delay_dequeue: delay,
            wakeup_preemption: preempt,
            ..Features::default()
        };
        check_history(features, &history);
    }
}
