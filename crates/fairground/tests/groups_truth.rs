//! Groups on one CPU against a recorded 6.18.44 kernel (HZ 250, two CPUs, base slice 1.4 ms).
//!
//! The recordings are the cases c1 to c4 of `kernel-truth`: `summary` of `result.json`, mean
//! `cpu_share_of_workload` over five runs (stdev up to 0.0018).

mod lab;

use std::sync::atomic::Ordering::Relaxed;

use fairground::fair::Enqueue;
use fairground::policy::Features;
use fairground::value::TgId;
use lab::{Lab, Spec};

/// A machine with the groups `(parent, shares)`, by index + 1; the parent comes before.
fn lab(groups: &[(usize, u64)]) -> Lab {
    let features = Features {
        hz: 250,
        ..Features::default()
    };
    let mut lab = Lab::new(features);
    for (parent, shares) in groups {
        let tg = lab.sys.add_group(TgId(*parent as u32));
        lab.sys.tg[tg.idx()].shares.store(shares << 10, Relaxed);
    }
    lab
}

/// Runs hogs `(group, nice, recorded share)` for `ms` after they settled, and compares.
fn check(case: &str, mut lab: Lab, ms: u64, hogs: &[(usize, i8, f64)]) {
    for (group, nice, _) in hogs {
        let spec = Spec {
            tg: TgId(*group as u32),
            nice: *nice,
            ..Spec::default()
        };
        lab.sys.open_group(spec.tg);
        lab.spawn(spec, Enqueue::WAKEUP);
        lab.run(1_000_000);
    }
    lab.run(250_000_000);
    let before = lab.ran.clone();
    lab.run(ms * 1_000_000);
    let ran: Vec<u64> = lab.ran.iter().zip(before).map(|(a, b)| a - b).collect();
    let total: u64 = ran.iter().sum();
    for (i, (_, _, recorded)) in hogs.iter().enumerate() {
        let share = ran[i] as f64 / total as f64;
        let off = (share - recorded).abs();
        assert!(off < 0.005, "{case} hog {i}: {share:.4} for {recorded:.4}");
    }
}

#[test]
fn c1_two_groups() {
    let groups = lab(&[(0, 1024), (1, 1024), (1, 512)]);
    let hogs = [(2, 0, 0.6667), (3, 0, 0.3333)];
    check("c1-groups-1024-512-1-1", groups, 1600, &hogs);
}

#[test]
fn c2_more_tasks_get_no_more() {
    let groups = lab(&[(0, 1024), (1, 1024), (1, 512)]);
    let hogs = [
        (2, 0, 0.6663),
        (3, 0, 0.0830),
        (3, 0, 0.0840),
        (3, 0, 0.0838),
        (3, 0, 0.0828),
    ];
    check("c2-groups-1024-512-1-4", groups, 2000, &hogs);
}

#[test]
fn c3_three_deep() {
    // kt, P, X, P/Q, P/R, P/Q/S, P/Q/T
    let groups = lab(&[
        (0, 1024),
        (1, 1024),
        (1, 512),
        (2, 1024),
        (2, 512),
        (4, 2048),
        (4, 1024),
    ]);
    let hogs = [
        (6, 0, 0.147_895),
        (6, 0, 0.148_711),
        (7, 5, 0.148_13),
        (5, 0, 0.222_165),
        (3, 0, 0.333_099),
    ];
    check("c3-nested-3-deep", groups, 2400, &hogs);
}

#[test]
fn c4_a_task_beside_a_group() {
    let groups = lab(&[(0, 1024), (1, 1024)]);
    let hogs = [(0, 0, 0.4999), (2, 0, 0.2503), (2, 0, 0.2498)];
    check("c4-root-hog-vs-group", groups, 1600, &hogs);
}
