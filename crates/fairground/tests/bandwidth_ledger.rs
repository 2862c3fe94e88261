//! The quota pool against a slow ledger, and the laws of a token bucket.

use fairground::host::{Host, Kick, Timer};
use fairground::place::Lock;
use fairground::shared::{CfsBandwidth, PeriodEnd, Pool, TgCpus};
use fairground::task::Task;
use fairground::value::{Cpu, TgId};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const TG: TgId = TgId(1);

#[derive(Default)]
struct Clock {
    now: u64,
    period_at: Option<u64>,
    slack_at: Option<u64>,
    held: bool,
}

impl Host for Clock {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        match timer {
            Timer::Period(TG) => self.period_at = Some(at_ns),
            Timer::Slack(TG) => self.slack_at = Some(at_ns),
            other => panic!("{other:?}"),
        }
    }
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
    fn lock(&mut self, lock: Lock) {
        assert_eq!((lock, self.held), (Lock::Bandwidth(TG), false));
        self.held = true;
    }
    fn unlock(&mut self, lock: Lock) {
        assert_eq!((lock, self.held), (Lock::Bandwidth(TG), true));
        self.held = false;
    }
}

/// A pool whose timer fires when its time has come, and the ledger beside it.
struct Twin {
    bw: CfsBandwidth,
    host: Clock,
    quota: u64,
    burst: u64,
    period: u64,
    /// The ledger: what is in the bucket, and what went out, net, since the last refill.
    bucket: u64,
    used: i64,
    active: bool,
    idle: bool,
    refills: u64,
    bursts: (u64, u64),
}

impl Twin {
    fn new(quota: u64, period: u64, burst: u64) -> Self {
        let mut twin = Self {
            bw: CfsBandwidth::default(),
            host: Clock::default(),
            quota,
            burst,
            period,
            bucket: quota,
            used: 0,
            active: true,
            idle: false,
            refills: 1,
            bursts: (0, 0),
        };
        twin.pool(|p| p.configure(quota, period, burst));
        twin
    }

    fn pool<T>(&mut self, f: impl FnOnce(&mut Pool<'_, Clock>) -> T) -> T {
        self.bw.locked(TG, &TgCpus::default(), &mut self.host, f)
    }

    fn draw(&mut self, remaining: i64, target: u64) -> u64 {
        let got = self.pool(|p| p.draw(remaining, target));
        let lacks = (target as i64 - remaining).max(0) as u64;
        let expect = lacks.min(self.bucket);
        assert_eq!(got, expect);
        if self.bucket > 0 {
            self.idle = false;
        }
        self.active = true;
        self.bucket -= got;
        self.used += got as i64;
        got
    }

    fn give_back(&mut self, amount: u64) {
        self.pool(|p| p.give_back(amount));
        self.bucket += amount;
        self.used -= amount as i64;
    }

    /// Time passes; the timer is handled where it fires.
    fn advance(&mut self, ns: u64) {
        let until = self.host.now + ns;
        while let Some(at) = self.host.period_at.filter(|at| *at <= until) {
            self.host.now = at;
            self.host.period_at = None;
            self.end_of_period();
        }
        self.host.now = until;
    }

    fn end_of_period(&mut self) {
        let (overrun, end) = self.pool(|p| {
            let overrun = p.forward_period();
            (overrun, p.end_period(overrun))
        });
        assert_eq!(overrun, 1);
        self.pool(|p| p.rearm_period(end == PeriodEnd::Rest));
        self.refills += 1;
        if self.used > self.quota as i64 {
            self.bursts.0 += 1;
            self.bursts.1 += (self.used - self.quota as i64) as u64;
        }
        self.used = 0;
        self.bucket = (self.bucket + self.quota).min(self.quota + self.burst);
        assert_eq!(
            end == PeriodEnd::Rest,
            self.idle,
            "rests after an idle period"
        );
        self.active = !self.idle;
        self.idle = true;
    }

    fn check(&self) {
        assert_eq!(self.bw.peek_runtime(), self.bucket);
        assert_eq!(self.bw.peek_period_active(), self.active);
        assert_eq!(self.host.period_at.is_some(), self.active);
        if let Some(at) = self.host.period_at {
            assert!(at > self.host.now && at <= self.host.now + self.period);
            assert_eq!(at % self.period, 0, "the phase does not drift");
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Draw { remaining: i64, target: u64 },
    GiveBack { part: u8 },
    Wait { ns: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (-20 * MS as i64..2 * MS as i64, prop_oneof![Just(5 * MS), Just(1)])
            .prop_map(|(remaining, target)| Op::Draw { remaining, target }),
        1 => (0u8..=100).prop_map(|part| Op::GiveBack { part }),
        2 => (0..300 * MS).prop_map(|ns| Op::Wait { ns }),
    ];
    prop::collection::vec(op, 1..200)
}

fn settings() -> impl Strategy<Value = (u64, u64, u64)> {
    (1..200u64, 1..150u64, 0..=100u64)
        .prop_map(|(quota, period, burst)| (quota * MS, period * MS, quota * MS * burst / 100))
}

proptest! {
    /// Word for word the ledger: what each draw gets, what is left, how many bursts of what size,
    /// when the timer runs. Nothing is lost and nothing comes from nowhere.
    #[test]
    fn the_pool_is_a_token_bucket((quota, period, burst) in settings(), ops in ops()) {
        let mut twin = Twin::new(quota, period, burst);
        let mut outside = 0u64;
        let mut given = 0u64;
        for op in ops {
            match op {
                Op::Draw { remaining, target } => {
                    let got = twin.draw(remaining, target);
                    outside += got;
                    given += got;
                }
                Op::GiveBack { part } => {
                    // Only what came from the present period, so that the cap can be checked.
                    let back = outside.min(twin.used.max(0) as u64) * u64::from(part) / 100;
                    twin.give_back(back);
                    outside -= back;
                    given -= back;
                }
                Op::Wait { ns } => twin.advance(ns),
            }
            twin.check();
            prop_assert!(twin.bucket <= quota + burst);
            prop_assert!(given + twin.bucket <= quota * twin.refills);
        }
        let group = twin.bw;
        prop_assert!(group.peek_runtime() <= quota + burst);
    }

    /// Any stretch of n period ends lets out at most n quotas and what can have been saved:
    /// one quota and the burst.
    #[test]
    fn a_hungry_group_gets_its_quota_and_no_more(
        (quota, period, burst) in settings(),
        cpus in 1usize..16,
        pauses in prop::collection::vec(0u64..6, 1..12),
    ) {
        let mut twin = Twin::new(quota, period, burst);
        let mut at_refill = vec![(twin.refills, 0u64)];
        let mut consumed = 0u64;
        for pause in pauses {
            twin.advance(pause * period);
            for _ in 0..3 * cpus {
                loop {
                    let got = twin.draw(0, 5 * MS);
                    consumed += got;
                    if got == 0 { break }
                }
                at_refill.push((twin.refills, consumed));
                twin.advance(period / cpus as u64);
            }
        }
        for (i, a) in at_refill.iter().enumerate() {
            for b in &at_refill[i..] {
                let most = quota * (b.0 - a.0) + quota + burst;
                prop_assert!(b.1 - a.1 <= most, "{} in {} refills", b.1 - a.1, b.0 - a.0);
            }
        }
    }
}

#[test]
fn bursts_are_counted_where_they_are_used() {
    // 20 ms per 100 ms, burst 20 ms; 35 ms of work in each second period: all of it is granted.
    let mut twin = Twin::new(20 * MS, 100 * MS, 20 * MS);
    let mut granted = Vec::new();
    for _ in 0..5 {
        twin.advance(100 * MS);
        granted.push((0..7).map(|_| twin.draw(0, 5 * MS)).sum::<u64>());
        twin.advance(100 * MS);
    }
    assert_eq!(granted, [35 * MS; 5]);
    assert_eq!(twin.bursts, (5, 75 * MS));
    let (n, time) = bursts(&twin.bw);
    assert_eq!((n, time), twin.bursts);
}

/// `cpu.stat` of the pool alone.
fn bursts(bw: &CfsBandwidth) -> (u64, u64) {
    let stat = bw.stat();
    (stat.nr_bursts, stat.burst_ns)
}

#[test]
fn missed_periods_count_but_refill_once() {
    let mut twin = Twin::new(10 * MS, 10 * MS, 0);
    assert_eq!(twin.draw(0, 10 * MS), 10 * MS);
    twin.host.now = 45 * MS;
    let overrun = twin.pool(|p| {
        let overrun = p.forward_period();
        let _ = p.end_period(overrun);
        overrun
    });
    assert_eq!((overrun, twin.bw.peek_runtime()), (4, 10 * MS));
    assert_eq!(twin.bw.stat().nr_periods, 4);
}

#[test]
fn the_period_is_stretched_below_a_second() {
    let mut twin = Twin::new(300 * MS, 300 * MS, 0);
    twin.pool(|p| p.stretch_period());
    twin.pool(|p| p.refill());
    assert_eq!(twin.bw.peek_runtime(), 600 * MS, "the quota is doubled too");
    twin.pool(|p| p.stretch_period());
    twin.pool(|p| p.refill());
    assert_eq!(twin.bw.peek_runtime(), 600 * MS, "1.2 s would be too long");
}

#[test]
fn without_a_limit_there_is_always_enough() {
    let mut host = Clock::default();
    let bw = CfsBandwidth::default();
    let got = bw.locked(TG, &TgCpus::default(), &mut host, |p| p.draw(-7, 5 * MS));
    assert_eq!((got, host.period_at), (5 * MS + 7, None));
}

#[test]
fn slack_waits_for_enough_and_not_for_a_refill_that_is_near() {
    let (mut host, bw) = (Clock::default(), CfsBandwidth::default());
    let cpus = TgCpus::new(3);
    let mut at = |now: u64, f: &mut dyn FnMut(&mut Pool<'_, Clock>)| {
        host.now = now;
        host.slack_at = None;
        bw.locked(TG, &cpus, &mut host, |p| f(p));
        host.slack_at
    };
    at(0, &mut |p| p.configure(20 * MS, 100 * MS, 0));
    at(0, &mut |p| assert_eq!(p.draw(0, 20 * MS), 20 * MS));
    let back = |ms: u64| move |p: &mut Pool<'_, Clock>| p.give_back(ms * MS);
    assert_eq!(at(MS, &mut back(6)), None, "nobody waits");
    at(MS, &mut |p| assert_eq!(p.draw(0, 6 * MS), 6 * MS));
    at(MS, &mut |p| p.push_throttled(Cpu(1)));
    assert_eq!(at(MS, &mut back(5)), None, "not more than a slice");
    assert_eq!(at(2 * MS, &mut back(1)), Some(7 * MS));
    assert_eq!(at(3 * MS, &mut back(1)), None, "it is on its way");
    at(7 * MS, &mut |p| assert_eq!(p.end_slack(), 7 * MS));
    assert_eq!(
        at(94 * MS, &mut back(1)),
        None,
        "the refill comes within 7 ms"
    );
    assert_eq!(at(92 * MS, &mut back(1)), Some(97 * MS));
    at(99 * MS, &mut |p| {
        assert_eq!(p.end_slack(), 0, "it comes within 2 ms")
    });
}

#[test]
fn queues_wait_in_the_order_in_which_they_were_throttled() {
    let (mut host, bw) = (Clock::default(), CfsBandwidth::default());
    let cpus = TgCpus::new(4);
    bw.locked(TG, &cpus, &mut host, |p| {
        for cpu in [2, 0, 3, 1] {
            p.push_throttled(Cpu(cpu));
        }
        assert_eq!(bw.peek_first_throttled(), Some(Cpu(2)));
        for (cpu, first) in [(0, Some(2)), (2, Some(3)), (1, Some(3)), (3, None)] {
            p.remove_throttled(Cpu(cpu), MS);
            assert_eq!(bw.peek_first_throttled(), first.map(Cpu));
        }
        p.push_throttled(Cpu(0));
        p.remove_throttled(Cpu(0), 0);
        assert!(!p.is_anyone_throttled());
    });
    assert_eq!(bw.stat().throttled_ns, 4 * MS);
}
