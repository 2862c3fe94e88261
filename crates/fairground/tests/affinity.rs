//! Where a task may run, whenever that changes.

use std::collections::VecDeque;

#[path = "crude/mod.rs"]
mod crude;

use crude::{Crude, places};
use fairground::sched::{self, Moved};
use fairground::task::{Policy, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

/// CPUs that share nothing, so that a mask decides where a task goes.
fn apart(cpus: u32) -> Machine {
    places(cpus, |c| CpuPlace {
        core: c,
        cluster: c,
        llc: c,
        package: c,
        node: c,
        capacity: 1024,
    })
}

/// A task that has run on a CPU and sleeps.
fn sleeper(m: &mut Crude, cpu: Cpu) -> TaskId {
    let id = m.hog(cpu, m.sys.cpus());
    m.ticks(1);
    assert_eq!(m.sleep(cpu), Some(id));
    id
}

/// CPUs of a mask that the machine does not have index no array.
#[test]
fn a_mask_may_name_cpus_that_there_are_not() {
    let wide: CpuMask = [1, 100].map(Cpu).into_iter().collect();
    let mut m = Crude::new(&apart(2)).idle();
    let id = sleeper(&mut m, Cpu(0));
    let at = m.host.parked.iter().position(|t| t.body.id == id).unwrap();
    assert!(sched::set_affinity_parked(
        &m.sys,
        Cpu(0),
        &mut m.host.parked[at],
        wide
    ));
    m.wake(Cpu(0), id);
    assert_eq!(m.rqs[1].curr_task(), Some(id));
    // The same of one that a queue keeps, and of a new one.
    let kept = m.hog(Cpu(0), m.sys.cpus());
    let _ = m.on(Cpu(0), |cx, rqs| sched::set_affinity(cx, rqs, kept, wide));
    m.settle();
    m.ticks(1);
    for cpu in m.sys.cpus().iter() {
        m.sleep(cpu);
    }
    m.ticks(1000);
    m.wake(Cpu(0), kept);
    assert_eq!(m.rqs[1].curr_task(), Some(kept));
    let mut new = Task::new(m.sys.add_task(TgId::ROOT), TgId::ROOT, 3_000_000);
    new.body.cpus_allowed = wide;
    let placed = m.on(Cpu(0), |cx, rqs| {
        sched::sched_fork(cx, rqs, &mut new, None);
        sched::select_cpu(cx, &mut new, None, WakeKind::Fork)
    });
    assert_eq!(placed.cpu, Cpu(1));
}

#[test]
fn a_mask_without_a_cpu_of_the_machine_is_refused() {
    let mut m = Crude::new(&apart(2)).idle();
    sleeper(&mut m, Cpu(0));
    let (all, task) = (m.sys.cpus(), &mut m.host.parked[0]);
    for none in [CpuMask::empty(), CpuMask::of(Cpu(100))] {
        assert!(!sched::set_affinity_parked(&m.sys, Cpu(0), task, none));
        assert_eq!(task.body.cpus_allowed, all);
    }
}

/// Between the choice of its CPU and its coming there no queue keeps a task, so nobody can ask the
/// stopper to move it: whoever enqueues it does.
#[test]
fn a_task_on_a_wake_list_goes_where_it_may() {
    let mut m = Crude::new(&apart(2)).idle();
    let id = sleeper(&mut m, Cpu(1));
    let (mut task, kind) = (m.host.parked.remove(0), WakeKind::Wake);
    let placed = m.on(Cpu(0), |cx, _| sched::select_cpu(cx, &mut task, None, kind));
    assert_eq!(placed.cpu, Cpu(1));
    let only = CpuMask::of(Cpu(0));
    let moved = m.on(Cpu(0), |cx, rqs| sched::set_affinity(cx, rqs, id, only));
    assert_eq!(moved, Moved::Parked);
    assert!(sched::set_affinity_parked(&m.sys, Cpu(0), &mut task, only));
    let mut list: VecDeque<_> = [(task, placed, kind)].into();
    m.on(Cpu(1), |cx, rqs| {
        sched::sched_ttwu_pending(cx, rqs, &mut list);
    });
    m.settle();
    assert_eq!(m.rqs[0].curr_task(), Some(id));
    assert_eq!(m.nr_running(), [1, 0]);
}

fn mask<const N: usize>(cpus: [u32; N]) -> CpuMask {
    cpus.map(Cpu).into_iter().collect()
}

/// Four CPUs, on the first of which one runs and so many wait.
fn waiting(n: usize) -> (Crude, TaskId, Vec<TaskId>) {
    let mut m = Crude::new(&apart(4)).idle();
    let ids: Vec<TaskId> = (0..=n).map(|_| m.hog(Cpu(0), mask([0]))).collect();
    let runs = m.rqs[0].curr_task().expect("there are some");
    let wait = ids.into_iter().filter(|id| *id != runs).collect();
    (m, runs, wait)
}

fn set(m: &mut Crude, from: u32, id: TaskId, allowed: CpuMask) -> Moved {
    m.on(Cpu(from), |cx, rqs| {
        sched::set_affinity(cx, rqs, id, allowed)
    })
}

/// Not where the CPU that it leaves has got to.
#[test]
fn a_cpu_spreads_whom_it_sends_away_wherever_they_are() {
    let (mut m, _, ids) = waiting(4);
    let others = mask([1, 2, 3]);
    let to = |cpu| Moved::To(Cpu(cpu));
    assert_eq!(set(&mut m, 2, ids[0], others), to(3));
    assert_eq!(set(&mut m, 2, ids[1], others), to(1));
    assert_eq!(set(&mut m, 1, ids[2], others), to(2));
    assert_eq!(set(&mut m, 2, ids[3], others), to(2));
}

#[test]
fn the_stopper_takes_a_running_task_where_who_asked_chose() {
    let (mut m, runs, ids) = waiting(1);
    let others = mask([1, 2, 3]);
    assert_eq!(set(&mut m, 2, runs, others), Moved::Asked);
    // CPU 2 has chosen, though the task has not gone yet.
    assert_eq!(set(&mut m, 2, ids[0], others), Moved::To(Cpu(1)));
    m.settle();
    assert_eq!(m.rqs[3].curr_task(), Some(runs));
    // Of two that asked the last has its will.
    assert_eq!(set(&mut m, 0, runs, mask([0, 1])), Moved::Asked);
    assert_eq!(set(&mut m, 1, runs, mask([0, 2])), Moved::Asked);
    m.settle();
    assert_eq!(m.rqs[2].curr_task(), Some(runs));
}

/// The CPU is chosen before it is known whether the task has to leave.
#[test]
fn a_choice_that_moves_nobody_counts_but_no_change_is_none() {
    let (mut m, runs, ids) = waiting(1);
    let all = m.sys.cpus();
    assert_eq!(m.sleep(Cpu(0)), Some(runs));
    let others = mask([1, 2, 3]);
    for _ in 0..2 {
        // From 2 to 3.
        assert_eq!(set(&mut m, 2, ids[0], all), Moved::Stays);
    }
    let asleep = m.host.parked.iter_mut().find(|t| t.body.id == runs);
    let asleep = asleep.expect("it sleeps");
    for _ in 0..2 {
        // From 3 to 1.
        assert!(sched::set_affinity_parked(&m.sys, Cpu(2), asleep, others));
    }
    let waits = m.hog(Cpu(0), mask([0]));
    assert_ne!(m.rqs[0].curr_task(), Some(waits));
    assert_eq!(set(&mut m, 2, waits, others), Moved::To(Cpu(2)));
}

/// As Linux does: the group of the idle CPU is overloaded by what is pinned beside it, and has the
/// greater load. With equal weights it has the smaller one, and the CPU takes tasks.
#[test]
fn a_cpu_may_idle_beside_heavy_pinned_tasks_though_others_wait() {
    let two_caches = places(4, |c| CpuPlace {
        core: c,
        cluster: c,
        llc: c / 2,
        ..CpuPlace::default()
    });
    for (nice, idles) in [(-20, true), (0, false)] {
        let mut m = Crude::new(&two_caches).idle();
        for _ in 0..4 {
            let id = m.hog(Cpu(0), CpuMask::of(Cpu(0)));
            m.on(Cpu(0), |cx, rqs| {
                assert!(sched::set_nice(cx, rqs, id, Policy::Normal, nice));
            });
        }
        let (far, all): (CpuMask, _) = ([2, 3].map(Cpu).into_iter().collect(), m.sys.cpus());
        let others: Vec<TaskId> = (0..6).map(|at| m.hog(Cpu(2 + at % 2), far)).collect();
        m.ticks(250);
        for id in others {
            let kept = m.on(Cpu(2), |cx, rqs| sched::set_affinity(cx, rqs, id, all));
            assert_eq!(kept, Moved::Stays);
        }
        m.ticks(2_500);
        assert_eq!(m.nr_running()[1] == 0, idles, "{:?}", m.nr_running());
    }
}
