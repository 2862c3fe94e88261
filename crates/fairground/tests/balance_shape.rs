//! Shape of whole runs beside those recorded on Linux 6.12.117 (16 CPUs in two NUMA nodes, 250
//! ticks a second, `PREEMPT_VOLUNTARY`). The crude machine has neither the costs nor the phases of
//! the recorded one, so counts agree within limits that each test names.

mod crude;

use core::sync::atomic::Ordering::Relaxed;

use crude::Crude;
use fairground::policy::{Features, find_profile};
use fairground::sched;
use fairground::topology::{CpuPlace, Machine};
use fairground::value::{Cpu, CpuMask};

fn recorded_kernel() -> Features {
    let mut features = Features::of_profile(find_profile("linux-6.12-lts").expect("a row"));
    features.load_balance.newidle_moves_one = false;
    features
}

fn two_nodes_of_eight() -> Machine {
    let mut machine = crude::places(16, |cpu| CpuPlace {
        core: cpu,
        cluster: cpu,
        llc: cpu / 8,
        package: cpu / 8,
        node: cpu / 8,
        capacity: 1024,
    });
    machine.distance = vec![vec![10, 20], vec![20, 10]];
    machine
}

/// (busy CPUs, kicks in a second as recorded with and without the early test)
const KICKS: [(u32, u64, u64); 4] = [(1, 96, 96), (2, 100, 115), (4, 101, 100), (8, 146, 128)];

/// Kicks in a second with `busy` CPUs of two pinned hogs each; every `phases`-th idle CPU is due
/// in the same tick.
fn kicks(busy: u32, phases: u64) -> u64 {
    let mut m = Crude::with(&two_nodes_of_eight(), recorded_kernel()).idle();
    for cpu in m.sys.cpus().iter() {
        let jiffies = m.sys.features.jiffies(m.host.now) + u64::from(cpu.0) % phases;
        for sd in m.sys.topology.domains(cpu) {
            sd.state.last_balance.store(jiffies, Relaxed);
        }
        m.sys.cpu[cpu.idx()].set_next_balance(cpu, jiffies, &mut m.host);
    }
    for cpu in 0..busy {
        for _ in 0..2 {
            m.hog(Cpu(cpu), CpuMask::of(Cpu(cpu)));
        }
    }
    m.ticks(250);
    let before = m.sys.nohz.kicks.load(Relaxed);
    m.ticks(250);
    m.sys.nohz.kicks.load(Relaxed) - before
}

/// When the next kick is due depends on how the phases of the idle CPUs' intervals lie, and the
/// record does not say: between all in one phase and all apart. Where most CPUs idle it must be
/// near the former (within a quarter), because their first idle balance was one and the same.
#[test]
fn idle_balancers_are_kicked_about_as_often() {
    for (busy, with_test, without) in KICKS {
        let (together, apart) = (kicks(busy, 1), kicks(busy, 4));
        assert!((together..=apart).contains(&with_test));
        assert!((together..=apart).contains(&without));
        if busy < 8 {
            let near = |recorded: u64| recorded * 4 <= together * 5;
            assert!(near(with_test) && near(without), "{busy} busy: {together}");
        }
    }
}

/// Moves until each CPU has a hog, and the time from their release on, ms, of two recorded runs.
const SPREAD: [(u32, u32); 2] = [(39, 117), (40, 230)];

/// All hogs are held on CPU 0 for 152 ms, so that intervals have grown, then let go. Within a tenth
/// of what was recorded, as nothing but phases makes the two recorded runs differ.
#[test]
fn sixteen_hogs_spread_in_about_as_many_moves() {
    let mut m = Crude::with(&two_nodes_of_eight(), recorded_kernel()).idle();
    let hogs: Vec<_> = (0..16)
        .map(|_| m.hog(Cpu(0), CpuMask::of(Cpu(0))))
        .collect();
    m.ticks(38);
    for id in hogs {
        m.on(Cpu(0), |cx, rqs| {
            let _ = sched::set_affinity(cx, rqs, id, CpuMask::first_n(16));
        });
    }
    let mut ticks = 0;
    while m.nr_running() != [1; 16] && ticks < 250 {
        m.ticks(1);
        ticks += 1;
    }
    let about = |ours: u32, [least, most]: [u32; 2]| {
        let within = least * 9 / 10..=most * 11 / 10;
        assert!(within.contains(&ours), "{ours}, recorded {least} to {most}");
    };
    about(m.host.migrations, SPREAD.map(|(moves, _)| moves));
    about(4 * ticks, SPREAD.map(|(_, ms)| ms));
}
