//! What an idle CPU keeps.

#[path = "crude/mod.rs"]
mod crude;

use crude::{Crude, flat};
use fairground::sched;
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
