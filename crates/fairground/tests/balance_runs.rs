//! Load balancing as seen from outside: hogs that start on one CPU must spread.

mod crude;

use crude::{Crude, flat, two_packages};
use fairground::task::Prev;
use fairground::value::{Cpu, CpuMask};

const TICKS_400_MS: u32 = 100;

#[test]
fn sixteen_hogs_end_up_one_on_each_cpu() {
    for machine in [flat(16), two_packages(16)] {
        let mut m = Crude::new(&machine).idle();
        for _ in 0..16 {
            m.hog(Cpu(0), CpuMask::first_n(16));
        }
        assert_eq!(m.nr_running()[0], 16);
        m.ticks(TICKS_400_MS);
        assert_eq!(m.nr_running(), [1; 16]);
        let settled = m.host.migrations;
        m.ticks(TICKS_400_MS);
        assert_eq!(m.host.migrations, settled, "balanced is left alone");
    }
}

#[test]
fn twenty_hogs_keep_sixteen_cpus_busy() {
    for machine in [flat(16), two_packages(16)] {
        let mut m = Crude::new(&machine).idle();
        for _ in 0..20 {
            m.hog(Cpu(5), CpuMask::first_n(16));
        }
        m.ticks(TICKS_400_MS);
        for _ in 0..TICKS_400_MS {
            m.ticks(1);
            let running = m.nr_running();
            assert!(running.iter().all(|n| *n >= 1), "{running:?}");
            assert_eq!(running.iter().sum::<u32>(), 20);
        }
    }
}

#[test]
fn three_hogs_share_two_cpus() {
    let mut m = Crude::new(&flat(2)).idle();
    let hogs: Vec<_> = (0..3).map(|_| m.hog(Cpu(0), CpuMask::first_n(2))).collect();
    m.ticks(TICKS_400_MS);
    let before = m.host.migrations;
    m.ticks(10 * TICKS_400_MS);
    assert!(m.host.migrations > before, "the third hog changes sides");
    let mut ran = Vec::new();
    for rq in &m.rqs {
        for (se, body) in rq.se.iter().zip(&rq.body) {
            ran.extend(body.as_ref().map(|b| (b.id, se.sum_exec_runtime)));
        }
    }
    ran.sort();
    assert_eq!(ran.iter().map(|r| r.0).collect::<Vec<_>>(), hogs);
    let least = ran.iter().map(|r| r.1).min();
    assert!(least > Some(2_000_000_000), "of 4.4 s on two CPUs: {ran:?}");
}

#[test]
fn pinned_hogs_stay_and_the_interval_grows() {
    let mut m = Crude::new(&flat(4)).idle();
    for _ in 0..4 {
        m.hog(Cpu(0), CpuMask::of(Cpu(0)));
    }
    m.hog(Cpu(1), CpuMask::first_n(4));
    m.ticks(4 * TICKS_400_MS);
    assert_eq!(m.nr_running()[0], 4);
    assert_eq!(m.nr_running().iter().sum::<u32>(), 5);
    let sd = &m.sys.topology.domains(Cpu(1))[0];
    let interval = sd
        .state
        .balance_interval_ms
        .load(std::sync::atomic::Ordering::Relaxed);
    assert!(interval > sd.min_interval_ms, "{interval} ms");
}

#[test]
fn a_cpu_that_runs_dry_pulls_at_once() {
    let mut m = Crude::new(&flat(2)).idle();
    m.hog(Cpu(0), CpuMask::first_n(2));
    m.hog(Cpu(1), CpuMask::first_n(2));
    m.hog(Cpu(0), CpuMask::first_n(2));
    m.ticks(1);
    assert_eq!(m.nr_running(), [2, 1]);
    // Old enough not to be hot, and no softirq in between.
    m.host.now += 2_000_000;
    m.schedule(Cpu(1), Prev::Sleeps);
    m.settle();
    assert_eq!(m.nr_running(), [1, 1]);
}
