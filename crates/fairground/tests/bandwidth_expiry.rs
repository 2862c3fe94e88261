//! Runtime that ends with the period, against a ledger that writes the period on each drawn slice.

#[path = "crude/mod.rs"]
mod crude;

use crude::{Crude, flat};
use fairground::fair::expiry;
use fairground::host::{Host, Kick, Timer};
use fairground::policy::{Expiry, Features, QuotaExpiry};
use fairground::sched;
use fairground::shared::{
    BANDWIDTH_SLICE, CfsBandwidth, Deadline, MIN_CFS_RQ_RUNTIME, PeriodEnd, Pool, TgCpus,
};
use fairground::task::{Task, WakeKind};
use fairground::value::{Cpu, CpuMask, TaskId, TgId};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
/// No multiple of a period: an extended deadline does not come to be another one's by chance.
const TICK: u64 = 3_999_999;
const TG: TgId = TgId(1);
const ALL: [QuotaExpiry; 3] = [QuotaExpiry::Off, QuotaExpiry::Drift, QuotaExpiry::Period];

#[derive(Default)]
struct Clock {
    now: u64,
    period_at: Option<u64>,
}

impl Host for Clock {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, _: Task) {}
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        assert_eq!(timer, Timer::Period(TG));
        self.period_at = Some(at_ns);
    }
    fn cancel_timer(&mut self, _: Timer) {}
    fn kick(&mut self, _: Cpu, _: Kick) {}
    fn random(&mut self) -> u32 {
        0
    }
}

/// What a queue has: in the engine's words, and in the ledger's.
#[derive(Clone, Copy, Default)]
struct Queue {
    remaining: i64,
    expires: Deadline,
    /// The ledger: runtime left, and for which of the pool's periods it was drawn.
    left: i64,
    of: u64,
}

struct Twin {
    expiry: QuotaExpiry,
    bw: CfsBandwidth,
    host: Clock,
    queues: [Queue; 4],
    quota: u64,
    /// The ledger: what is in the pool; which period its runtime is for, and when that ends.
    bucket: u64,
    period: u64,
    ends: u64,
    active: bool,
    lost: u64,
}

impl Twin {
    fn new(expiry: QuotaExpiry, quota: u64, period_ns: u64) -> Self {
        let mut twin = Self {
            expiry,
            bw: CfsBandwidth::default(),
            host: Clock::default(),
            queues: [Queue::default(); 4],
            quota,
            bucket: quota,
            period: 1,
            ends: period_ns,
            active: true,
            lost: 0,
        };
        twin.pool(|p| {
            p.configure(quota, period_ns, 0);
            expiry::begin_period(p, expiry);
        });
        twin
    }

    fn pool<T>(&mut self, f: impl FnOnce(&mut Pool<'_, Clock>) -> T) -> T {
        self.bw.locked(TG, &TgCpus::default(), &mut self.host, f)
    }

    /// A task of the queue has run for `ns`; the queue draws if it must.
    fn charge(&mut self, i: usize, ns: u64) {
        let (expiry, now) = (self.expiry, self.host.now);
        let mut q = self.queues[i];
        q.remaining -= ns as i64;
        if q.remaining > 0 {
            match expiry.judge(now, q.expires, self.bw.deadline()) {
                Expiry::Keep => {}
                Expiry::Extend => q.expires.at += TICK,
                Expiry::Expire => q.remaining = 0,
            }
        }
        if q.remaining <= 0 {
            let lacks = (q.remaining, BANDWIDTH_SLICE);
            let got = self.pool(|p| expiry::draw(p, expiry, &mut q.expires, lacks));
            q.remaining += got as i64;
        }
        self.queues[i] = q;
        self.write_down(i, ns);
    }

    /// The same in the ledger.
    fn write_down(&mut self, i: usize, ns: u64) {
        let q = &mut self.queues[i];
        q.left -= ns as i64;
        let lost = match self.expiry {
            QuotaExpiry::Off => false,
            QuotaExpiry::Period => q.of != self.period,
            QuotaExpiry::Drift => q.of == self.period && self.host.now >= self.ends,
        };
        if q.left > 0 && lost {
            self.lost += q.left as u64;
            q.left = 0;
        }
        if q.left <= 0 {
            let got = ((BANDWIDTH_SLICE as i64 - q.left) as u64).min(self.bucket);
            self.bucket -= got;
            q.left += got as i64;
            if !self.active && self.expiry == QuotaExpiry::Period {
                self.period += 1;
                self.ends = self.host.period_at.expect("a draw has started the timer");
            }
            self.active = true;
            q.of = self.period;
        }
    }

    /// The queue has nothing to run.
    fn empty(&mut self, i: usize) {
        let (expiry, mut q) = (self.expiry, self.queues[i]);
        let slack = q.remaining - MIN_CFS_RQ_RUNTIME as i64;
        if slack > 0 {
            q.remaining -= slack;
            self.pool(|p| expiry::give_back(p, expiry, q.expires, slack as u64));
            q.left -= slack;
            if expiry == QuotaExpiry::Off || q.of == self.period {
                self.bucket += slack as u64;
            } else {
                self.lost += slack as u64;
            }
        }
        self.queues[i] = q;
    }

    fn advance(&mut self, ns: u64) {
        let until = self.host.now + ns;
        while let Some(at) = self.host.period_at.filter(|at| *at <= until) {
            self.host.now = at;
            self.host.period_at = None;
            let expiry = self.expiry;
            let end = self.pool(|p| {
                let overrun = p.forward_period();
                let end = p.end_period(overrun);
                if end != PeriodEnd::Rest {
                    expiry::begin_period(p, expiry);
                }
                p.rearm_period(end == PeriodEnd::Rest);
                end
            });
            self.bucket = self.quota;
            self.active = end != PeriodEnd::Rest;
            if let Some(ends) = self.host.period_at {
                (self.period, self.ends) = (self.period + 1, ends);
            }
        }
        self.host.now = until;
    }

    fn check(&self) {
        assert_eq!(self.bw.peek_runtime(), self.bucket);
        for q in &self.queues {
            assert_eq!(q.remaining, q.left, "{:?}", self.expiry);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Charge { queue: usize, ns: u64 },
    Empty { queue: usize },
    Wait { ns: u64 },
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => (0..4usize, 0..8 * MS).prop_map(|(queue, ns)| Op::Charge { queue, ns }),
        2 => (0..4usize).prop_map(|queue| Op::Empty { queue }),
        2 => (0..90 * MS).prop_map(|ns| Op::Wait { ns }),
        1 => (0..500 * MS).prop_map(|ns| Op::Wait { ns }),
    ];
    prop::collection::vec(op, 1..200)
}

proptest! {
    /// Word for word the ledger: what each queue has, and what is in the pool.
    #[test]
    fn a_slice_ends_as_its_period_says(
        quota in 1..120u64, period in 5..150u64, ops in ops(), kind in 0..3usize,
    ) {
        let mut twin = Twin::new(ALL[kind], quota * MS, period * MS);
        for op in ops {
            match op {
                Op::Charge { queue, ns } => twin.charge(queue, ns),
                Op::Empty { queue } => twin.empty(queue),
                Op::Wait { ns } => twin.advance(ns),
            }
            twin.check();
        }
        prop_assert!(ALL[kind] != QuotaExpiry::Off || twin.lost == 0);
    }
}

/// Four CPUs run 0.2 ms each in each period of 10 ms, with a quota of 4 ms. Three keep 1 ms each,
/// the last one gets what is left and keeps 0.2: enough for the next periods, or gone with each.
#[test]
fn short_bursts_on_many_cpus_lose_a_slice_a_period() {
    let lost = ALL.map(|expiry| {
        let mut twin = Twin::new(expiry, 4 * MS, 10 * MS);
        for _ in 0..20 {
            for cpu in 0..4 {
                twin.charge(cpu, 0);
                twin.charge(cpu, MS / 5);
                twin.empty(cpu);
            }
            twin.check();
            twin.advance(10 * MS);
        }
        twin.lost / MS
    });
    assert_eq!(lost, [0, 0, 60], "of 16 ms of use");
}

/// A task that seldom runs, in a group of its own whose timer rests meanwhile: with the wrong test
/// for drift each charge in the period after the rest takes away what was drawn.
#[test]
fn after_a_rest_drift_loses_what_it_draws() {
    let lost = ALL.map(|expiry| {
        let mut twin = Twin::new(expiry, 20 * MS, 100 * MS);
        for _ in 0..10 {
            twin.charge(0, 0);
            for _ in 0..5 {
                twin.advance(MS);
                twin.charge(0, MS);
            }
            twin.empty(0);
            twin.check();
            twin.advance(1000 * MS);
        }
        twin.lost / MS
    });
    assert_eq!(lost[0], 0);
    assert!(lost[1] > 100, "{} ms", lost[1]);
    assert!(lost[2] <= 10, "{} ms", lost[2]);
}

/// Two CPUs with runtime that ends with its period. Nothing happens by itself but ticks.
struct Waiting {
    m: Crude,
    /// Whose runtime expires.
    tg: TgId,
    /// A task of it that sleeps on the second CPU.
    sleeper: TaskId,
}

impl Waiting {
    /// Two tasks of a group with 5 ms in 20 wait on the first CPU; `above` it may be a quota.
    fn new(above: Option<u64>) -> Self {
        let features = Features {
            quota_expiry: QuotaExpiry::Period,
            ..Features::default()
        };
        let mut m = Crude::with(&flat(2), features).idle();
        let parent = m.sys.add_group(TgId::ROOT);
        let tg = m.sys.add_group(parent);
        let sleeper = m.hog_of(tg, Cpu(1), CpuMask::of(Cpu(1)));
        m.sleep(Cpu(1));
        let quotas = above.map(|quota| (parent, quota, 1000 * MS));
        for (tg, quota, period) in quotas.into_iter().chain([(tg, 5 * MS, 20 * MS)]) {
            m.on(Cpu(0), |cx, rqs| {
                sched::set_bandwidth(cx, rqs, tg, Some(quota), period, 0).expect("a quota");
                fairground::fair::bandwidth::align_period(cx, tg, 0);
            });
        }
        for _ in 0..2 {
            m.hog_of(tg, Cpu(0), CpuMask::of(Cpu(0)));
        }
        let mut waiting = Self { m, tg, sleeper };
        waiting.runs_out();
        waiting
    }

    /// Until those on the first CPU are in limbo.
    fn runs_out(&mut self) {
        for _ in 0..10 {
            self.m.ticks(1);
            self.both_leave();
        }
        assert_eq!(self.m.rqs[0].nr_running, 0, "all wait for quota");
    }

    fn both_leave(&mut self) {
        for _ in 0..2 {
            self.m.on(Cpu(0), sched::exit_to_user);
            self.m.settle();
        }
    }

    fn period(&mut self, cpu: Cpu, tg: TgId, at: u64) {
        self.m.host.now = at;
        self.m.on(cpu, |cx, rqs| {
            sched::run_timer(cx, rqs, Timer::Period(tg));
        });
    }

    /// The second CPU takes all that the new period has.
    fn others_draw(&mut self) {
        let (id, kind) = (self.sleeper, WakeKind::Wake);
        let mut task = self.m.host.parked.remove(0);
        assert_eq!(task.body.id, id);
        self.m.on(Cpu(1), |cx, rqs| {
            let placed = sched::select_cpu(cx, &mut task, None, kind);
            sched::enqueue_woken(cx, rqs, task, placed, kind);
        });
        let pool = &self.m.sys.tg[self.tg.idx()].bandwidth;
        assert_eq!(pool.peek_runtime(), 0);
    }
}

/// What was granted is of the last period when the CPU gets round to it.
#[test]
fn runtime_that_expires_before_its_queue_runs_again_is_gone() {
    let mut w = Waiting::new(None);
    let tg = w.tg;
    let begin = w.m.host.now - w.m.host.now % (20 * MS) + 20 * MS;
    w.period(Cpu(1), tg, begin);
    w.period(Cpu(1), tg, begin + 20 * MS);
    w.others_draw();
    w.m.settle();
    assert_eq!(w.m.rqs[0].nr_running, 0);
    w.period(Cpu(0), tg, begin + 40 * MS);
    w.m.settle();
    assert_eq!(w.m.rqs[0].nr_running, 2);
}

/// The queue stands still for a quota above it, and meanwhile its own runtime expires: the first
/// task that comes back throttles it, and the other waits on.
#[test]
fn runtime_that_expires_below_a_throttled_group_is_gone() {
    let mut w = Waiting::new(Some(3 * MS / 2));
    let (tg, above) = (w.tg, TgId(w.tg.0 - 1));
    let begin = w.m.host.now - w.m.host.now % (1000 * MS) + 1000 * MS;
    w.period(Cpu(1), tg, begin);
    w.others_draw();
    // The debt is more than one quota.
    for at in [begin, begin + 1000 * MS] {
        w.period(Cpu(0), above, at);
    }
    w.m.settle();
    let queue = w.m.rqs[0].cfs_of(tg).expect("made").idx();
    assert!(w.m.rqs[0].cfs[queue].throttled);
    assert_eq!(w.m.rqs[0].nr_running, 1, "one in limbo still");
    w.both_leave();
    w.period(Cpu(0), tg, w.m.host.now);
    w.m.settle();
    assert_eq!(w.m.rqs[0].nr_running, 2);
}
