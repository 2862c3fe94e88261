//! Where a task may run, whenever that changes.

use std::collections::VecDeque;

#[path = "crude/mod.rs"]
mod crude;

use crude::{Crude, places};
use fairground::sched::{self, Moved};
use fairground::task::{Task, WakeKind};
use fairground::topology::{CpuPlace, Machine};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};

/// Two CPUs that share nothing, so that a mask decides where a task goes.
fn apart() -> Machine {
    places(2, |c| CpuPlace {
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
    let mut m = Crude::new(&apart()).idle();
    let id = sleeper(&mut m, Cpu(0));
    let at = m.host.parked.iter().position(|t| t.body.id == id).unwrap();
    assert!(sched::set_affinity_parked(
        &m.sys,
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
    let mut m = Crude::new(&apart()).idle();
    sleeper(&mut m, Cpu(0));
    let (all, task) = (m.sys.cpus(), &mut m.host.parked[0]);
    for none in [CpuMask::empty(), CpuMask::of(Cpu(100))] {
        assert!(!sched::set_affinity_parked(&m.sys, task, none));
        assert_eq!(task.body.cpus_allowed, all);
    }
}

/// Between the choice of its CPU and its coming there no queue keeps a task, so nobody can ask the
/// stopper to move it: whoever enqueues it does.
#[test]
fn a_task_on_a_wake_list_goes_where_it_may() {
    let mut m = Crude::new(&apart()).idle();
    let id = sleeper(&mut m, Cpu(1));
    let (mut task, kind) = (m.host.parked.remove(0), WakeKind::Wake);
    let placed = m.on(Cpu(0), |cx, _| sched::select_cpu(cx, &mut task, None, kind));
    assert_eq!(placed.cpu, Cpu(1));
    let only = CpuMask::of(Cpu(0));
    let moved = m.on(Cpu(0), |cx, rqs| sched::set_affinity(cx, rqs, id, only));
    assert_eq!(moved, Moved::Parked);
    assert!(sched::set_affinity_parked(&m.sys, &mut task, only));
    let mut list: VecDeque<_> = [(task, placed, kind)].into();
    m.on(Cpu(1), |cx, rqs| {
        sched::sched_ttwu_pending(cx, rqs, &mut list);
    });
    m.settle();
    assert_eq!(m.rqs[0].curr_task(), Some(id));
    assert_eq!(m.nr_running(), [1, 0]);
}
