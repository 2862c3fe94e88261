//! A clock that jumps, as that of a machine which goes on from a snapshot. The host should have
//! taken the gap off; if it has not, nothing panics, and the gap is charged to who ran.

mod crude;

use crude::Crude;
use fairground::policy::{Features, PROFILES};
use fairground::sched;
use fairground::task::Policy;
use fairground::value::{Cpu, TgId};

const HOUR_NS: u64 = 3_600_000_000_000;
const DAY_NS: u64 = 24 * HOUR_NS;

/// Two CPUs with tasks of all weights, in a group with a quota, one of the least weight, and none.
fn busy(features: Features) -> Crude {
    let mut m = Crude::with(&crude::flat(2), features).idle();
    let [limited, light] = [(); 2].map(|()| m.sys.add_group(TgId::ROOT));
    let (quota, period) = (50_000_000, 100_000_000);
    m.on(Cpu(0), |cx, rqs| {
        sched::set_bandwidth(cx, rqs, limited, Some(quota), period, 0).expect("a quota");
        assert_eq!(sched::set_cpu_weight(cx, rqs, light, 1), Ok(()));
    });
    let all = m.sys.cpus();
    let policies = [
        (Policy::Normal, -20),
        (Policy::Normal, 19),
        (Policy::Idle, 0),
    ];
    for (at, tg) in (0..9).zip([limited, light, TgId::ROOT].into_iter().cycle()) {
        let id = m.hog_of(tg, Cpu(at % 2), all);
        let (policy, nice) = policies[at as usize / 3];
        m.on(Cpu(0), |cx, rqs| {
            assert!(sched::set_nice(cx, rqs, id, policy, nice));
        });
        m.settle();
    }
    m.ticks(50);
    m
}

#[test]
fn no_jump_panics_under_any_profile() {
    for profile in PROFILES {
        for days in [1, 100, 209, 3_650, 36_500] {
            let mut m = busy(Features::of_profile(profile));
            for _ in 0..3 {
                m.host.now += days * DAY_NS;
                m.ticks(50);
                if let Some(id) = m.sleep(Cpu(1)) {
                    m.wake(Cpu(0), id);
                }
            }
            assert!(m.nr_running().iter().sum::<u32>() > 0);
        }
    }
}

/// The other is half an hour behind the mean, at which a newcomer begins.
#[test]
fn who_waited_comes_first_after_a_jump() {
    let mut m = Crude::new(&crude::flat(1)).idle();
    let all = m.sys.cpus();
    let ids = [(); 2].map(|()| m.hog(Cpu(0), all));
    m.ticks(20);
    let ran = |m: &mut Crude, id| {
        m.on(Cpu(0), |cx, rqs| sched::task_sched_runtime(cx, rqs, id))
            .expect("queued")
    };
    let current = m.rqs[0].curr_task().expect("one runs");
    let other = ids.into_iter().find(|id| *id != current).expect("two");
    m.host.now += HOUR_NS;
    m.ticks(1);
    let newcomer = m.hog(Cpu(0), all);
    let before = [current, other, newcomer].map(|id| ran(&mut m, id));
    assert!(before[0] >= HOUR_NS);
    m.ticks(1_000);
    let after = [current, other, newcomer].map(|id| ran(&mut m, id));
    let got: Vec<u64> = (0..3).map(|i| (after[i] - before[i]) / 1_000_000).collect();
    assert!(got[0] <= 8 && got[1] >= 3_980 && got[2] <= 8, "ms: {got:?}");
}
