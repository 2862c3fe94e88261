//! Load balancing as seen from outside: hogs that start on one CPU must spread.

mod crude;

use std::sync::atomic::Ordering::Relaxed;

use crude::{Crude, flat, places, two_packages};
use fairground::host::StopWork;
use fairground::policy::{Features, PROFILES, find_profile};
use fairground::sched;
use fairground::task::Prev;
use fairground::topology::CpuPlace;
use fairground::value::{Cpu, CpuMask, TgId};

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
    for rq in &*m.rqs {
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

/// A task alone on a CPU of half the capacity, beside an idle whole one.
#[test]
fn a_hog_too_big_for_its_cpu_goes_to_a_bigger_one() {
    let unequal = |small: u32| {
        places(2, |cpu| CpuPlace {
            core: cpu,
            cluster: cpu,
            capacity: if cpu == 0 { small } else { 1024 },
            ..CpuPlace::default()
        })
    };
    for (small, may_run, at_the_end) in [
        (512, CpuMask::first_n(2), [0, 1]),
        (512, CpuMask::of(Cpu(0)), [1, 0]),
        (1024, CpuMask::first_n(2), [1, 0]),
    ] {
        let mut m = Crude::new(&unequal(small)).idle();
        m.hog(Cpu(0), may_run);
        m.ticks(TICKS_400_MS);
        assert_eq!(m.nr_running(), at_the_end, "{small}, {may_run:?}");
    }
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

/// The whole quota of a group is in the hands of one CPU; another one runs dry and pulls a task of
/// the group, which is throttled as soon as it arrives.
#[test]
fn a_cpu_that_cannot_run_what_it_has_pulled_looks_again() {
    for (profile, searches) in [("linux-6.12-lts", 2), ("linux-3.10", 1)] {
        let mut features = Features::of_profile(find_profile(profile).unwrap());
        features.newidle.proportional = false;
        let mut m = Crude::with(&flat(2), features).idle();
        let (tg, all) = (m.sys.add_group(TgId::ROOT), CpuMask::first_n(2));
        m.sys.open_group(tg);
        m.on(Cpu(0), |cx, rqs| {
            sched::set_bandwidth(cx, rqs, tg, Some(5_000_000), 100_000_000, 0).expect("a limit");
        });
        for _ in 0..3 {
            m.hog_of(tg, Cpu(0), all);
        }
        m.hog(Cpu(1), all);
        let newly_idle = |m: &Crude| {
            let sd = &m.sys.topology.domains(Cpu(1))[0];
            sd.state.lb_count[2].load(Relaxed)
        };
        let before = newly_idle(&m);
        m.host.now += 2_000_000;
        m.schedule(Cpu(1), Prev::Sleeps);
        m.settle();
        assert_eq!(m.nr_running(), [2, 0], "{profile}");
        assert_eq!(newly_idle(&m) - before, searches, "{profile}");
        let idles = m.rqs[1].idle_stamp != 0;
        assert_eq!(
            idles,
            searches == 2,
            "{profile}: the last one found nothing"
        );
    }
}

/// The stopper pushes the only task of CPU 0 to CPU 1, and the search of CPU 0, which is dry then,
/// brings it back.
#[test]
fn a_task_that_is_pushed_and_pulled_back_runs() {
    let mut features = Features::default();
    let set = [
        ("lb_order", "newest"),
        ("migration_cost_ns", "0"),
        ("newidle_gate", "migration-cost-only"),
        ("newidle_proportional", "off"),
    ];
    features.set_all(&set).expect("decisions");
    let mut m = Crude::with(&flat(2), features).idle();
    let pushed = m.hog(Cpu(0), CpuMask::first_n(2));
    m.hog(Cpu(1), CpuMask::first_n(2));
    m.host.now += 5_000_000;
    m.on(Cpu(0), |cx, rqs| {
        cx.with_rq(rqs, Cpu(0), |_, rq| {
            (rq.active_balance, rq.push_cpu) = (true, Cpu(1));
        });
    });
    let migrations = m.host.migrations;
    let switch = m.on(Cpu(0), |cx, rqs| {
        sched::run_stopper(cx, rqs, StopWork::ActiveBalance)
    });
    assert_eq!(m.host.migrations - migrations, 2, "there and back");
    assert_eq!(switch.next, Some(pushed));
    assert!(m.sys.task[pushed.idx()].on_cpu.load(Relaxed));
}

#[test]
fn hogs_in_groups_spread_whenever_their_load_is_computed() {
    for h_load in ["eager", "on-demand"] {
        let mut features = Features::default();
        features.set("h_load", h_load).expect("a decision");
        let mut m = Crude::with(&two_packages(16), features).idle();
        let outer = m.sys.add_group(TgId::ROOT);
        let inner = m.sys.add_group(outer);
        for n in 0..24 {
            let tg = [TgId::ROOT, outer, inner][n % 3];
            m.hog_of(tg, Cpu(0), CpuMask::first_n(16));
        }
        m.ticks(2 * TICKS_400_MS);
        let running = m.nr_running();
        assert!(running.iter().all(|n| *n >= 1), "{h_load}: {running:?}");
        assert_eq!(running.iter().sum::<u32>(), 24);
    }
}

/// Tasks of several groups sleep and wake at random on a machine that balances: nobody is lost,
/// and the counts of every queue stay those of its tasks.
#[test]
fn random_lives_lose_nobody() {
    for profile in PROFILES {
        let features = Features::of_profile(profile);
        let mut m = Crude::with(&two_packages(8), features).idle();
        let outer = m.sys.add_group(TgId::ROOT);
        let inner = m.sys.add_group(outer);
        for n in 0..24 {
            let tg = [TgId::ROOT, outer, inner][n as usize % 3];
            let few = CpuMask::of(Cpu(n % 8)).or(&CpuMask::of(Cpu(n * 5 % 8)));
            let allowed = if n % 4 == 0 { few } else { CpuMask::first_n(8) };
            m.hog_of(tg, Cpu(n % 8), allowed);
        }
        let mut asleep = Vec::new();
        let mut seed = 7_u32;
        let mut random = |n: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % n
        };
        for _ in 0..3000 {
            m.host.now += 1000 * random(3000) as u64;
            let cpu = Cpu(random(8) as u32);
            match random(4) {
                0 => m.ticks(1),
                1 if !asleep.is_empty() => {
                    let id = asleep.swap_remove(random(asleep.len()));
                    m.wake(cpu, id);
                }
                _ => asleep.extend(m.sleep(cpu)),
            }
            check_counts(&m, profile.name);
        }
        for id in asleep.drain(..) {
            m.wake(Cpu(0), id);
        }
        m.ticks(TICKS_400_MS);
        let running = m.nr_running();
        assert_eq!(
            running.iter().sum::<u32>(),
            24,
            "{}: {running:?}",
            profile.name
        );
        assert!(
            running.iter().all(|n| *n >= 1),
            "{}: {running:?}",
            profile.name
        );
        assert!(m.host.parked.is_empty());
        assert!(m.host.migrations > 200, "{} moves", m.host.migrations);
    }
}

fn check_counts(m: &Crude, profile: &str) {
    let mut kept = m.host.parked.len();
    for rq in &*m.rqs {
        let tasks = || rq.body.iter().zip(&rq.se).filter(|(b, _)| b.is_some());
        kept += tasks().count();
        let queued = tasks().filter(|(_, se)| se.on_rq).count();
        assert_eq!(rq.nr_running as usize, queued, "{profile}: {:?}", rq.cpu);
        assert_eq!(
            rq.cfs[0].h_nr_queued as usize, queued,
            "{profile}: {:?}",
            rq.cpu
        );
        assert_eq!(rq.lb_order.iter().count(), queued);
        let allowed = |b: &fairground::task::TaskBody| b.cpus_allowed.has(rq.cpu);
        assert!(rq.body.iter().flatten().all(|b| allowed(b)), "{profile}");
    }
    assert_eq!(kept, 24, "{profile}: each task is in one keeping");
}
