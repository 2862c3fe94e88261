//! Tasks that sleep beside hogs on one CPU, against a recorded 6.18.44 kernel (HZ 250, two CPUs,
//! base slice 1.4 ms).
//!
//! The recordings are the cases b1 to b5 and c5 of `kernel-truth`, `summary` of `result.json`.
//! Compared are the share of the sleeper and whether its median wake-up preempts at once
//! (recorded: about 2 us) or waits for a tick: the distribution has these two modes. Switching
//! costs nothing here.

mod lab;

use fairground::fair::Enqueue;
use fairground::policy::Features;
use fairground::value::{TaskId, TgId};
use lab::{Lab, Spec, nice};

/// Runs for `run_ns`, then sleeps for `sleep_ns`, or until the next period starts.
struct Sleeper {
    id: TaskId,
    run_ns: u64,
    sleep_ns: u64,
    periodic: bool,
    left: u64,
    woken_at: u64,
    wakes_at: Option<u64>,
    waits: Vec<u64>,
    waiting: bool,
}

impl Sleeper {
    fn step(&mut self, lab: &mut Lab) {
        let now = lab.host.now;
        if self.wakes_at.is_some_and(|at| at <= now) {
            self.wakes_at = None;
            (self.left, self.woken_at, self.waiting) = (self.run_ns, now, true);
            lab.wake(self.id);
        }
        let runs = lab.rq.curr_task() == Some(self.id);
        if runs && self.waiting {
            self.waits.push(now - self.woken_at);
            self.waiting = false;
        }
        if runs && self.left == 0 {
            let next_period = self.woken_at + self.sleep_ns;
            let at = if self.periodic {
                next_period
            } else {
                now + self.sleep_ns
            };
            self.wakes_at = Some(at.max(now));
            lab.sleep();
        }
    }
}

struct Case {
    name: &'static str,
    /// Nice value and group: 1 = kt, 2 = kt/A, 3 = kt/B, of equal weight.
    hogs: &'static [(i8, u32)],
    sleeper: Spec,
    run_us: u64,
    sleep_us: u64,
    periodic: bool,
    share: f64,
    /// `None` where recorded runs differ.
    at_once: Option<bool>,
}

fn check(case: &Case) {
    let features = Features {
        hz: 250,
        ..Features::default()
    };
    let mut lab = Lab::new(features);
    for parent in [0, 1, 1] {
        let tg = lab.sys.add_group(TgId(parent));
        lab.sys.open_group(tg);
    }
    for (n, tg) in case.hogs {
        let spec = Spec {
            nice: *n,
            tg: TgId(*tg),
            ..Spec::default()
        };
        lab.spawn(spec, Enqueue::WAKEUP);
        lab.run(1_000_000);
    }
    lab.run(4_300_000);
    let slot = lab.spawn(case.sleeper, Enqueue::WAKEUP);
    let mut s = Sleeper {
        id: lab.rq.task_id(slot),
        run_ns: case.run_us * 1000,
        sleep_ns: case.sleep_us * 1000,
        periodic: case.periodic,
        left: case.run_us * 1000,
        woken_at: lab.host.now,
        wakes_at: None,
        waits: Vec::new(),
        waiting: true,
    };
    let (start, before) = (lab.host.now, lab.ran.iter().sum::<u64>());
    let end = start + 1_600_000_000;
    while lab.host.now < end {
        s.step(&mut lab);
        let runs = lab.rq.curr_task() == Some(s.id);
        let now = lab.host.now;
        let mut next = lab.tick_at.min(s.wakes_at.unwrap_or(end)).min(end);
        if runs {
            next = next.min(now + s.left);
        }
        lab.run(next - now);
        if runs {
            s.left -= next - now;
        }
    }
    let total = lab.ran.iter().sum::<u64>() - before;
    let share = lab.ran[s.id.idx()] as f64 / total as f64;
    let name = case.name;
    assert!(
        (share - case.share).abs() < 0.01,
        "{name}: {share:.4} for {:.4}",
        case.share
    );
    s.waits.sort_unstable();
    let median = s.waits[s.waits.len() / 2];
    if let Some(at_once) = case.at_once {
        assert_eq!(median == 0, at_once, "{name}: {median} ns");
    }
}

#[test]
fn b1_hog_and_run_2_sleep_8() {
    check(&Case {
        name: "b1-hog-run2-sleep8",
        hogs: &[(0, 0)],
        sleeper: nice(0),
        run_us: 2000,
        sleep_us: 8000,
        periodic: false,
        share: 0.1687,
        at_once: Some(true),
    });
}

#[test]
fn b2_hog_and_short_periods() {
    check(&Case {
        name: "b2-hog-run02-period5",
        hogs: &[(0, 0)],
        sleeper: nice(0),
        run_us: 200,
        sleep_us: 5000,
        periodic: true,
        share: 0.0417,
        at_once: Some(true),
    });
}

#[test]
fn b3_two_hogs_and_a_heavy_sleeper() {
    check(&Case {
        name: "b3-2hogs-sleeper-m5",
        hogs: &[(0, 0), (0, 0)],
        sleeper: nice(-5),
        run_us: 1000,
        sleep_us: 10_000,
        periodic: false,
        share: 0.0867,
        at_once: Some(true),
    });
}

#[test]
fn b4_a_light_sleeper_waits() {
    check(&Case {
        name: "b4-hog-sleeper-10",
        hogs: &[(0, 0)],
        sleeper: nice(10),
        run_us: 1000,
        sleep_us: 9000,
        periodic: false,
        share: 0.0846,
        at_once: Some(false),
    });
}

#[test]
fn b5_a_short_slice_preempts() {
    check(&Case {
        name: "b5-short-slice-sleeper",
        hogs: &[(0, 0)],
        sleeper: Spec {
            slice_ns: Some(200_000),
            ..Spec::default()
        },
        run_us: 500,
        sleep_us: 4700,
        periodic: false,
        share: 0.0927,
        at_once: Some(true),
    });
}

#[test]
fn c5_a_sleeper_in_a_group() {
    check(&Case {
        name: "c5-sleeper-in-group",
        hogs: &[(0, 2), (0, 3)],
        sleeper: Spec {
            tg: TgId(2),
            ..Spec::default()
        },
        // As measured: median on the CPU 1010 us, a sleep ends 2 to 4 us late. Without that, 7 ms
        // lock into a phase with the ticks of 4 ms, and the share is 0.115 or 0.125 for good.
        run_us: 1010,
        sleep_us: 6004,
        periodic: false,
        share: 0.0999,
        at_once: None,
    });
}
