//! A group with a quota gets it, and no more, in the long run and in each window of a period.

use fairground::sched;
use fairground::task::Prev;
use fairground::value::TgId;

use crate::kernel::{Kernel, MS, Stage};

/// Windows that are looked at.
const WINDOWS: u64 = 200;
/// A CPU may run on for as long as its slice of runtime lasts, and as its next tick is away.
const SLACK_NS: u64 = 10 * MS;

struct Limit {
    period: u64,
    quota: u64,
    burst: u64,
}

/// A group with a quota that has a group below it, two hogs in each, and two hogs beside them, on
/// 2 to 4 CPUs.
fn limited(seed: u64) -> (Kernel, Limit) {
    let cpus = 2 + (seed % 3) as u32;
    let mut kernel = Kernel::of_cores(seed, cpus);
    let group = kernel.sys.add_group(TgId::ROOT);
    let below = kernel.sys.add_group(group);
    kernel.groups.extend([group, below]);
    let period = kernel.chance.of(&[10, 20, 50, 100]) * MS;
    let quota = (1 + kernel.chance.below(period / MS * u64::from(cpus))) * MS;
    let bursts = kernel.chance.percent(50);
    let burst = kernel.chance.below(quota / MS + 1) * MS * u64::from(bursts);
    let set = kernel.call(0, |cx, rqs| {
        sched::set_bandwidth(cx, rqs, group, Some(quota), period, burst)
    });
    assert!(set.is_ok());
    for tg in [group, group, below, below, TgId::ROOT, TgId::ROOT] {
        let all = kernel.sys.cpus();
        kernel.start(0, tg, all, 0);
    }
    kernel.advance(1000 * MS);
    let limit = Limit {
        period,
        quota,
        burst,
    };
    (kernel, limit)
}

/// What the tasks with a limit have used until now.
fn used(kernel: &Kernel) -> u64 {
    let limited = kernel.tasks.iter().filter(|t| t.tg != TgId::ROOT);
    limited.map(|t| kernel.ran_until_now(t.id)).sum()
}

/// A period, in which the tasks with a limit sleep now and then.
fn sleepy(kernel: &mut Kernel, period: u64) {
    for _ in 0..8 {
        kernel.advance(period / 8);
        for task in 0..kernel.tasks.len() {
            let id = kernel.tasks[task].id;
            if kernel.tasks[task].stage == Stage::Sleeps && kernel.chance.percent(50) {
                kernel.wake(0, id);
            }
        }
        for cpu in 0..kernel.nr_cpus() {
            let current = kernel.cpus[cpu].current;
            let limited = current.is_some_and(|id| kernel.tasks[id.idx()].tg != TgId::ROOT);
            if limited && kernel.chance.percent(20) {
                kernel.leave(cpu, Prev::Sleeps);
            }
        }
        kernel.serve_all(100);
        kernel.check();
    }
}

pub fn check(seed: u64) {
    let (mut kernel, limit) = limited(seed);
    let sleeps = kernel.chance.percent(50);
    let (begin, before) = (kernel.board.now, used(&kernel));
    let slack = SLACK_NS * kernel.nr_cpus() as u64;
    for _ in 0..WINDOWS {
        let before = used(&kernel);
        match sleeps {
            true => sleepy(&mut kernel, limit.period),
            false => kernel.advance(limit.period),
        }
        kernel.check();
        // A window may have the end of one period and the beginning of the next.
        let most = 2 * limit.quota + limit.burst;
        let used = used(&kernel) - before;
        assert!(
            used <= most + slack,
            "{used} of {most} in a window, seed {seed}"
        );
    }
    let (passed, used) = (kernel.board.now - begin, used(&kernel) - before);
    let periods = passed / limit.period;
    let most = limit.quota * (periods + 1) + limit.burst;
    assert!(used <= most + slack, "{used} of {most}, seed {seed}");
    // Beside two hogs outside, a third of the CPUs is the group's by its weight.
    if !sleeps && limit.quota * 3 <= limit.period * kernel.nr_cpus() as u64 {
        let want = limit.quota * periods;
        assert!(used * 100 >= want * 93, "{used} of {want}, seed {seed}");
    }
}
