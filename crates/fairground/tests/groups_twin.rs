//! The counts of nested groups, made anew from their tasks after each step of random histories.

mod lab;

use fairground::fair::{Enqueue, group, preempt, task};
use fairground::policy::{Features, Pick, RunToParity, Throttle};
use fairground::rq::Rq;
use fairground::task::Policy;
use fairground::value::{CfsId, SeId, TaskId, TgId};
use lab::{Lab, Spec};
use proptest::prelude::*;

#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Sums {
    queued: u32,
    runnable: u32,
    idle: u32,
}

/// What is at and below a queue, by looking at every entity.
fn sums(rq: &Rq, cfs: CfsId) -> Sums {
    let mut out = Sums::default();
    for (slot, se) in rq.se.iter().enumerate() {
        if !se.on_rq || se.cfs_rq != cfs {
            continue;
        }
        let below = match (se.my_q, &rq.body[slot]) {
            (Some(q), _) => sums(rq, q),
            (None, Some(body)) => Sums {
                queued: 1,
                runnable: u32::from(!se.sched_delayed),
                idle: u32::from(body.policy == Policy::Idle),
            },
            (None, None) => continue,
        };
        let group_idle = se.my_q.is_some_and(|q| rq.cfs[q.idx()].idle);
        out.queued += below.queued;
        out.runnable += below.runnable;
        out.idle += if group_idle { below.queued } else { below.idle };
    }
    out
}

fn check_laws(lab: &Lab) {
    let rq = &lab.rq;
    for (i, q) in rq.cfs.iter().enumerate() {
        let id = CfsId(i as u32);
        let said = Sums {
            queued: q.h_nr_queued,
            runnable: q.h_nr_runnable,
            idle: q.h_nr_idle,
        };
        assert_eq!(said, sums(rq, id), "queue {i}");
        rq.nodes.check(&q.tree).expect("the tree is in order");
        let on: Vec<usize> = (0..rq.se.len())
            .filter(|s| rq.se[*s].on_rq && rq.se[*s].cfs_rq == id)
            .collect();
        assert_eq!(q.nr_queued as usize, on.len());
        let load: u64 = on.iter().map(|s| rq.se[*s].load.weight).sum();
        assert_eq!(q.load.weight, load);
        let curr = q.curr.filter(|c| rq.se[c.idx()].on_rq);
        assert_eq!(q.tree.len() + u32::from(curr.is_some()), q.nr_queued);
        // A group that holds something is queued itself.
        if let Some(se) = q.se {
            assert!(rq.se[se.idx()].on_rq || q.nr_queued == 0);
        }
    }
    assert_eq!(rq.nr_running, rq.cfs[0].h_nr_queued);
    // The running task's entity is the running one on each level, and nobody else is.
    let mut running: Vec<Option<SeId>> = vec![None; rq.cfs.len()];
    let mut at = rq.curr;
    while let Some(id) = at {
        running[rq.se[id.idx()].cfs_rq.idx()] = Some(id);
        at = rq.se[id.idx()].parent;
    }
    let said: Vec<Option<SeId>> = rq.cfs.iter().map(|q| q.curr).collect();
    assert_eq!(said, running);
}

#[derive(Clone, Debug)]
enum Step {
    Spawn(u32, Policy, i8),
    Run(u64),
    /// Runs for so long, then sleeps: ahead of the others by then, it is delayed.
    Sleep(u64),
    Wake(usize),
    Yield,
    Renice(usize, Policy, i8),
    Move(usize, u32),
    Idle(u32, bool),
}

const GROUPS: u32 = 6;

fn steps() -> impl Strategy<Value = Step> {
    let policy = || prop_oneof![4 => Just(Policy::Normal), 1 => Just(Policy::Idle)];
    prop_oneof![
        3 => (0..GROUPS, policy(), -20i8..20).prop_map(|(g, p, n)| Step::Spawn(g, p, n)),
        8 => (1u64..9_000_000).prop_map(Step::Run),
        5 => (0u64..5_000_000).prop_map(Step::Sleep),
        6 => (0usize..64).prop_map(Step::Wake),
        1 => Just(Step::Yield),
        1 => (0usize..64, policy(), -20i8..20).prop_map(|(i, p, n)| Step::Renice(i, p, n)),
        1 => (0usize..64, 0..GROUPS).prop_map(|(i, g)| Step::Move(i, g)),
        1 => (1..GROUPS, any::<bool>()).prop_map(|(g, idle)| Step::Idle(g, idle)),
    ]
}

fn apply(lab: &mut Lab, step: &Step) {
    let tasks = lab.sys.task.len();
    let slot_of = |lab: &Lab, i: usize| lab.slot(TaskId((i % tasks.max(1)) as u32));
    match *step {
        Step::Spawn(tg, policy, nice) if tasks < 16 => {
            let spec = Spec {
                tg: TgId(tg),
                policy,
                nice,
                ..Spec::default()
            };
            lab.spawn(spec, Enqueue::INITIAL);
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
        Step::Move(i, to) => {
            if let Some(slot) = slot_of(lab, i) {
                lab.sys.open_group(TgId(to));
                let _ = lab.with(|cx, rq| group::move_task(cx, rq, slot, TgId(to)));
            }
        }
        Step::Idle(tg, idle) => {
            lab.sys.tg[tg as usize].set_idle(idle);
            lab.with(|cx, rq| group::set_idle(cx, rq, TgId(tg), idle));
        }
        _ => {}
    }
}

/// Groups 1 and 2 below the root, 3 and 4 below 1, 5 below 3.
fn check_history(features: Features, history: &[Step]) {
    let mut lab = Lab::new(features);
    for parent in [0, 0, 1, 1, 3] {
        let _ = lab.sys.add_group(TgId(parent));
    }
    for step in history {
        apply(&mut lab, step);
        check_laws(&lab);
        lab.schedule();
        check_laws(&lab);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn linux_6_18(history in prop::collection::vec(steps(), 1..150)) {
        check_history(Features::default(), &history);
    }

    #[test]
    fn older(
        cfs in any::<bool>(),
        history in prop::collection::vec(steps(), 1..150),
    ) {
        let features = Features {
            pick: if cfs { Pick::Cfs } else { Pick::Eevdf },
            run_to_parity: RunToParity::OwnSlice,
            throttle: Throttle::WholeQueue,
            ..Features::default()
        };
        check_history(features, &history);
    }
}
