//! What an idle CPU keeps, what wakes it up, and what is not idle time.

use std::sync::atomic::Ordering::Relaxed;

#[path = "crude/mod.rs"]
mod crude;

use crude::{Crude, flat, places};
use fairground::host::StopWork;
use fairground::sched;
use fairground::task::Prev;
use fairground::topology::CpuPlace;
use fairground::value::{Cpu, CpuMask, TgId};

const CPU: Cpu = Cpu(0);

/// A group's entity that is ahead when the last of its tasks sleeps stays, in no count of tasks. It
/// leaves when it is picked, so the pick must not be left out for want of tasks.
#[test]
fn an_idle_cpu_keeps_no_empty_group() {
    let mut m = Crude::new(&flat(2)).idle();
    let tg = m.sys.add_group(TgId::ROOT);
    m.hog(CPU, CpuMask::of(CPU));
    let member = m.hog_of(tg, CPU, CpuMask::of(CPU));
    let is_delayed = |m: &Crude| {
        let mut all = m.rqs[0].se.iter();
        all.any(|se| se.my_q.is_some() && se.sched_delayed)
    };
    for _ in 0..200 {
        m.ticks(1);
        if m.rqs[0].curr_task() == Some(member) {
            m.host.now += 3_000_000;
            m.sleep(CPU);
            if is_delayed(&m) {
                break;
            }
            m.wake(CPU, member);
        }
    }
    assert!(is_delayed(&m) && m.rqs[0].nr_running == 1);
    m.sleep(CPU);
    for _ in 0..5000 {
        m.host.now += 4_000_000;
        for cpu in m.sys.cpus().iter() {
            m.on(cpu, sched::sched_tick);
            m.settle();
        }
    }
    let (rq, root) = (&m.rqs[0], &m.rqs[0].cfs[0]);
    assert_eq!((rq.curr, rq.nr_running, root.nr_queued), (None, 0, 0));
    assert_eq!((root.load.weight, root.avg.load_avg), (0, 0));
    assert!(!rq.has_blocked_load);
}

/// On a slow CPU load-tracking time lags behind, and catches up when the CPU is idle: there that
/// would be time in which nobody ran.
#[test]
fn the_stopper_is_not_idle_time() {
    let m = places(2, |c| CpuPlace {
        core: c,
        cluster: c,
        capacity: if c == 0 { 1024 } else { 400 },
        ..CpuPlace::default()
    });
    let mut m = Crude::new(&m).idle();
    let id = m.hog(Cpu(1), CpuMask::of(Cpu(1)));
    m.ticks(1000);
    let slot = m.sys.task[id.idx()].slot.load(Relaxed) as usize;
    let util = |m: &Crude| m.rqs[1].se[slot].avg.util_avg;
    let before = util(&m);
    // It finds nothing to do.
    m.host.creep_ns = 500;
    let _ = m.on(Cpu(1), |cx, rqs| {
        sched::run_stopper(cx, rqs, StopWork::Migrate)
    });
    m.host.creep_ns = 0;
    m.ticks(1);
    assert!(util(&m) + 20 > before, "{before} -> {}", util(&m));
}

/// The host tells of its end (`task_dead`); else the CPU would be taken for busy for a while.
#[test]
fn the_load_of_who_has_exited_leaves() {
    let mut m = Crude::new(&flat(1)).idle();
    m.hog(CPU, CpuMask::of(CPU));
    m.ticks(500);
    m.schedule(CPU, Prev::Exits);
    m.settle();
    let dead = m.host.parked.pop().expect("within that call");
    m.on(CPU, |cx, _| sched::task_dead(cx, dead));
    m.host.now += 1_100_000;
    m.hog(CPU, CpuMask::of(CPU));
    let avg = &m.rqs[0].cfs[0].avg;
    assert!(avg.load_avg < 1100 && avg.util_avg < 600, "{avg:?}");
}

#[test]
fn who_leaves_a_throttled_group_runs_on_an_idle_cpu() {
    let mut m = Crude::new(&flat(1)).idle();
    let tg = m.sys.add_group(TgId::ROOT);
    m.on(CPU, |cx, rqs| {
        sched::set_bandwidth(cx, rqs, tg, Some(1_000_000), 1_000_000_000, 0).expect("a quota");
    });
    let id = m.hog_of(tg, CPU, CpuMask::of(CPU));
    for _ in 0..10 {
        m.ticks(1);
        m.on(CPU, sched::exit_to_user);
        m.settle();
    }
    assert_eq!((m.rqs[0].curr, m.rqs[0].nr_running), (None, 0), "throttled");
    assert!(m.on(CPU, |cx, rqs| sched::set_group(cx, rqs, id, TgId::ROOT)));
    m.settle();
    assert_eq!(m.rqs[0].curr_task(), Some(id));
}
