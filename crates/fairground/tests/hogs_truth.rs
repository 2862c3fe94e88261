//! Hogs on one CPU against a recorded 6.18.44 kernel (HZ 250, two CPUs, base slice 1.4 ms).
//!
//! The recordings are the cases a1 to a5 of `kernel-truth`: `summary` of `result.json`, mean
//! `cpu_share_of_workload` over five runs, and the median length of a stretch of execution. A
//! stretch is whole ticks; the shares of unequal weights are not their ratio, because a tick is
//! long against a slice.

mod lab;

use fairground::fair::Enqueue;
use fairground::policy::Features;
use lab::{Lab, Spec, nice};

/// One hog: what it is, its recorded share, and its recorded median stretch in ticks.
struct Hog {
    spec: Spec,
    share: f64,
    median_ticks: Option<u64>,
}

fn hog(n: i8, share: f64, median_ticks: Option<u64>) -> Hog {
    Hog {
        spec: nice(n),
        share,
        median_ticks,
    }
}

const SETTLE_NS: u64 = 250_000_000;
const TICK_NS: u64 = 4_000_000;

/// Runs the case for `ms` of window and compares. The hogs wake 1 ms after each other.
fn check(case: &str, ms: u64, hogs: &[Hog]) {
    let features = Features {
        hz: 250,
        ..Features::default()
    };
    let mut lab = Lab::new(features);
    assert_eq!(lab.sys.features.tunables.base_slice_ns, 1_400_000);
    for h in hogs {
        lab.spawn(h.spec, Enqueue::WAKEUP);
        lab.run(1_000_000);
    }
    lab.run(SETTLE_NS);
    let before = lab.ran.clone();
    lab.stretches.iter_mut().for_each(Vec::clear);
    lab.run(ms * 1_000_000);
    let ran: Vec<u64> = lab.ran.iter().zip(before).map(|(a, b)| a - b).collect();
    let total: u64 = ran.iter().sum();
    for (i, h) in hogs.iter().enumerate() {
        let share = ran[i] as f64 / total as f64;
        let off = (share - h.share).abs();
        assert!(off < 0.005, "{case} hog {i}: {share:.4} for {:.4}", h.share);
        if let Some(ticks) = h.median_ticks {
            let mut runs = lab.stretches[i].clone();
            runs.sort_unstable();
            assert_eq!(runs[runs.len() / 2], ticks * TICK_NS, "{case} hog {i}");
        }
    }
}

#[test]
fn a1_equal() {
    let (a, b) = (hog(0, 0.499_446, Some(1)), hog(0, 0.500_554, Some(1)));
    check("a1-hogs-0-0", 1200, &[a, b]);
}

#[test]
fn a2_nice_0_and_5() {
    let (a, b) = (hog(0, 0.752_542, Some(3)), hog(5, 0.247_458, Some(1)));
    check("a2-hogs-0-5", 1600, &[a, b]);
}

#[test]
fn a3_nice_minus_5_and_10() {
    // The median stretch of the first varies between runs (stdev 13 ms).
    let (a, b) = (hog(-5, 0.964_969, None), hog(10, 0.035_031, Some(1)));
    check("a3-hogs-m5-10", 2400, &[a, b]);
}

#[test]
fn a4_three() {
    let hogs = [
        hog(0, 0.288_973, Some(1)),
        hog(3, 0.149_094, Some(1)),
        hog(-3, 0.561_933, Some(1)),
    ];
    check("a4-hogs-0-3-m3", 1600, &hogs);
}

#[test]
fn a5_own_slices() {
    let own = |ms: u64, share| Hog {
        spec: Spec {
            slice_ns: Some(ms * 1_000_000),
            ..Spec::default()
        },
        share,
        median_ticks: Some(1),
    };
    check(
        "a5-hogs-slice-3ms-12ms",
        1200,
        &[own(3, 0.498_84), own(12, 0.501_16)],
    );
}
