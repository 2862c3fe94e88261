//! Hogs in groups with quotas on a machine of two CPUs that ticks: what they get, what `cpu.stat`
//! says, and that every queue's state follows from that of its parent, for both ways of throttling.
//! The cases are those of the recordings e1 to e8 of a 6.18 kernel, without its filler task.

use fairground::cx::Cx;
use fairground::event::{QuotaStep, QuotaWork};
use fairground::host::{Host, Kick, KickWork, StopWork, Timer};
use fairground::policy::{Features, QuotaExpiry, Throttle};
use fairground::rq::Rq;
use fairground::sched::{self, Moved};
use fairground::shared::CpuStat;
use fairground::system::System;
use fairground::task::{Placed, Prev, Task, WakeKind};
use fairground::topology::{CpuPlace, Machine, Topology};
use fairground::value::{CfsId, Cpu, CpuMask, TaskId, TgId};

const MS: u64 = 1_000_000;
const STEP: u64 = MS / 5;
const TICK: u64 = 4 * MS;
const BOTH: [Throttle; 2] = [Throttle::WholeQueue, Throttle::AtUserReturn];

#[derive(Default)]
struct Requests {
    now: u64,
    timers: Vec<(Timer, u64)>,
    kicks: Vec<(Cpu, Kick)>,
    parked: Vec<Task>,
    /// What the quotas made of work.
    worked: Vec<QuotaWork>,
}

impl Host for Requests {
    fn clock(&mut self) -> u64 {
        self.now
    }
    fn resched(&mut self, _: Cpu) {}
    fn park(&mut self, task: Task) {
        self.parked.push(task);
    }
    fn start_timer(&mut self, timer: Timer, at_ns: u64) {
        self.cancel_timer(timer);
        self.timers.push((timer, at_ns));
    }
    fn cancel_timer(&mut self, timer: Timer) {
        self.timers.retain(|(t, _)| *t != timer);
    }
    fn kick(&mut self, cpu: Cpu, work: Kick) {
        self.kicks.push((cpu, work));
    }
    fn random(&mut self) -> u32 {
        7_000_000
    }
    fn quota(&mut self, work: QuotaWork, _: u64) {
        self.worked.push(work);
    }
}

struct Box2 {
    sys: System,
    rqs: Vec<Rq>,
    host: Requests,
    moving: Vec<Task>,
}

impl Box2 {
    fn new(throttle: Throttle) -> Self {
        let features = Features {
            throttle,
            ..Features::default()
        };
        let place = |core| CpuPlace {
            core,
            cluster: core,
            capacity: 1024,
            ..CpuPlace::default()
        };
        let machine = Machine {
            cpus: vec![place(0), place(1)],
            ..Machine::default()
        };
        let now = 1000 * MS;
        let sys = System::new(features, Topology::build(&machine).expect("a machine"));
        Self {
            rqs: (0..2).map(|c| Rq::new(&sys, Cpu(c), now)).collect(),
            sys,
            host: Requests {
                now,
                ..Requests::default()
            },
            moving: Vec::new(),
        }
    }

    fn on<T>(&mut self, cpu: u32, f: impl FnOnce(&mut Cx<Requests>, &mut Vec<Rq>) -> T) -> T {
        let mut cx = Cx::new(&self.sys, &mut self.host, Cpu(cpu), &mut self.moving);
        f(&mut cx, &mut self.rqs)
    }

    fn hog(&mut self, tg: TgId, cpu: u32) -> TaskId {
        let id = self.sys.add_task(tg);
        let base_slice_ns = self.sys.features.tunables.base_slice_ns;
        let mut task = Task::new(id, tg, base_slice_ns);
        task.body.cpus_allowed = self.sys.cpus();
        let placed = Placed {
            cpu: Cpu(cpu),
            migrated: false,
        };
        self.on(cpu, |cx, rqs| {
            sched::sched_fork(cx, rqs, &mut task, None);
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Fork);
        });
        id
    }

    fn set_quota(&mut self, tg: TgId, quota: Option<u64>, period: u64) {
        self.on(0, |cx, rqs| {
            sched::set_bandwidth(cx, rqs, tg, quota, period, 0).expect("a limit");
        });
    }

    fn run(&mut self, ns: u64) {
        let until = self.host.now + ns;
        while self.host.now < until {
            self.host.now += STEP;
            let now = self.host.now;
            while let Some(at) = self.host.timers.iter().position(|(_, at)| *at <= now) {
                let (timer, _) = self.host.timers.remove(at);
                self.on(0, |cx, rqs| sched::run_timer(cx, rqs, timer));
            }
            for cpu in 0..2 {
                if now.is_multiple_of(TICK) {
                    self.on(cpu, sched::sched_tick);
                }
            }
            self.settle();
            self.check();
        }
    }

    /// Kicks, switches and returns to user space, until nothing is left to do.
    fn settle(&mut self) {
        loop {
            if let Some((cpu, kick)) = self.host.kicks.pop() {
                if let Kick::Run(work @ KickWork::Unthrottle) = kick {
                    self.on(cpu.0, |cx, rqs| sched::run_kick(cx, rqs, work));
                }
                continue;
            }
            let Some(cpu) = (0..2).find(|c| self.has_work(*c)) else {
                return;
            };
            if self.rqs[cpu].need_resched {
                let _ = self.on(cpu as u32, |cx, rqs| {
                    sched::schedule(cx, rqs, Prev::Runnable)
                });
            } else {
                self.on(cpu as u32, sched::exit_to_user);
            }
        }
    }

    fn has_work(&self, cpu: usize) -> bool {
        let rq = &self.rqs[cpu];
        let curr = rq.curr.and_then(|c| rq.body[c.idx()].as_ref());
        rq.need_resched || curr.is_some_and(|b| b.throttle_work)
    }

    /// The running task of `cpu` sleeps.
    fn sleep(&mut self, cpu: u32) {
        let _ = self.on(cpu, |cx, rqs| sched::schedule(cx, rqs, Prev::Sleeps));
        self.settle();
    }

    /// What the quota of `tg` made of work in a step: how often, groups visited, tasks.
    fn worked(&self, tg: TgId, step: QuotaStep) -> [u32; 3] {
        let all = self.host.worked.iter();
        let all = all.filter(|w| (w.tg, w.step) == (tg, step));
        all.fold([0; 3], |[n, groups, tasks], w| {
            [n + 1, groups + w.groups, tasks + w.tasks]
        })
    }

    fn stat(&self, tg: TgId) -> CpuStat {
        self.sys.tg[tg.idx()].cpu_stat()
    }

    /// Verifies: throttle counts add up along the tree; a whole throttled queue is not counted
    /// above; the load-tracking clock stands only while throttled; limbo only holds tasks that are
    /// not queued; nobody waits in limbo of a queue that may run.
    fn check(&self) {
        for rq in &self.rqs {
            let mut counted = vec![0; rq.cfs.len()];
            for (i, q) in rq.cfs.iter().enumerate().skip(1) {
                let above = &rq.cfs[q.parent.idx()];
                let count = above.throttle_count + u32::from(q.throttled);
                assert_eq!(q.throttle_count, count);
                assert!(q.throttle_count > 0 || !q.pelt_clock_throttled);
                assert!(q.throttle_count > 0 || q.limbo.is_none());
                assert!(!q.throttled || q.runtime_remaining <= 0 || q.unthrottle_queued);
                let whole = self.sys.features.throttle == Throttle::WholeQueue;
                if !(whole && q.throttled) {
                    counted[q.parent.idx()] += q.h_nr_queued;
                }
                let se = q.se.expect("a group has an entity");
                let off = q.nr_queued == 0 || (whole && q.throttled);
                assert_eq!(rq.se[se.idx()].on_rq, !off, "queue {i}");
                let mut at = q.limbo;
                while let Some(task) = at {
                    let body = rq.body[task.idx()].as_ref().expect("a task");
                    assert!(body.throttled && !rq.se[task.idx()].on_rq);
                    assert_eq!(rq.se[task.idx()].cfs_rq, CfsId(i as u32));
                    at = body.limbo_next;
                }
            }
            for (slot, se) in rq.se.iter().enumerate() {
                if rq.body[slot].is_some() && se.on_rq {
                    counted[se.cfs_rq.idx()] += 1;
                }
            }
            for (q, counted) in rq.cfs.iter().zip(counted) {
                assert_eq!(q.h_nr_queued, counted);
            }
            assert_eq!(rq.nr_running, rq.cfs[0].h_nr_queued + u32::from(rq.stopper));
        }
    }
}

fn near(ns: u64, expect_ms: u64, within_ms: u64) {
    let off = ns.abs_diff(expect_ms * MS);
    assert!(off <= within_ms * MS, "{ns} ns, not {expect_ms} ms");
}

#[test]
fn one_hog_gets_its_quota() {
    for throttle in BOTH {
        let mut m = Box2::new(throttle);
        let above = m.sys.add_group(TgId::ROOT);
        let tg = m.sys.add_group(above);
        m.set_quota(tg, Some(50 * MS), 100 * MS);
        m.hog(tg, 1);
        m.run(2000 * MS);
        let stat = m.stat(tg);
        near(stat.usage_ns, 1000, 54);
        assert!((19..=20).contains(&stat.nr_periods), "{stat:?}");
        assert!((19..=20).contains(&stat.nr_throttled), "{stat:?}");
        near(stat.throttled_ns, 944, 60);
        assert_eq!(m.stat(above).usage_ns, stat.usage_ns);
    }
}

#[test]
fn two_cpus_share_one_quota_to_the_millisecond() {
    for throttle in BOTH {
        let mut m = Box2::new(throttle);
        let tg = m.sys.add_group(TgId::ROOT);
        m.set_quota(tg, Some(50 * MS), 100 * MS);
        m.hog(tg, 0);
        m.hog(tg, 1);
        m.hog(tg, 1);
        m.run(2000 * MS);
        let stat = m.stat(tg);
        near(stat.usage_ns, 1000, 58);
        assert!(stat.nr_throttled >= 19, "{stat:?}");
        near(stat.throttled_ns, 2900, 150);
    }
}

#[test]
fn each_level_has_its_own_pool() {
    for throttle in BOTH {
        let mut m = Box2::new(throttle);
        let p = m.sys.add_group(TgId::ROOT);
        let (k, l) = (m.sys.add_group(p), m.sys.add_group(p));
        m.set_quota(p, Some(80 * MS), 100 * MS);
        m.set_quota(k, Some(30 * MS), 50 * MS);
        m.hog(k, 1);
        m.hog(l, 0);
        m.run(2000 * MS);
        near(m.stat(p).usage_ns, 1600, 90);
        assert!(m.stat(k).usage_ns <= 40 * 30 * MS + 34 * MS);
        assert_eq!(m.stat(l).nr_periods, 0);
        assert!(m.stat(p).nr_throttled >= 18);
    }
}

#[test]
fn without_quota_again_everybody_runs() {
    for throttle in BOTH {
        let mut m = Box2::new(throttle);
        let tg = m.sys.add_group(TgId::ROOT);
        let below = m.sys.add_group(tg);
        m.set_quota(tg, Some(5 * MS), 100 * MS);
        m.hog(below, 0);
        m.hog(below, 1);
        m.run(50 * MS);
        assert!(
            m.rqs
                .iter()
                .all(|rq| rq.curr.is_none() && rq.cfs[1].throttled)
        );
        let before = m.stat(tg).usage_ns;
        m.set_quota(tg, None, 100 * MS);
        m.run(100 * MS);
        near(m.stat(tg).usage_ns - before, 200, 10);
        assert!(!m.sys.bandwidth_used());
        assert!(m.host.timers.is_empty(), "the timer rests without a limit");
    }
}

#[test]
fn the_period_timer_rests_while_nobody_runs() {
    for throttle in BOTH {
        let mut m = Box2::new(throttle);
        let tg = m.sys.add_group(TgId::ROOT);
        m.set_quota(tg, Some(50 * MS), 100 * MS);
        m.hog(tg, 1);
        m.run(20 * MS);
        m.sleep(1);
        m.run(1000 * MS);
        assert!(m.host.timers.is_empty());
        assert!(m.stat(tg).nr_periods <= 3);
        assert_eq!(m.stat(tg).nr_throttled, 0);
        let left = m.rqs[1].cfs[1].runtime_remaining;
        assert!(left <= MS as i64, "{left} ns kept by an empty queue");
    }
}

/// A task that wakes after the timer has rested for a second. From 3.16 to 4.17 the pool's deadline
/// is old then, and what is left of a slice of 5 ms is lost at the next tick: four draw 20 ms, and
/// the first one pays for 4 ms of running, less the 1 ms that the queue kept over the rest. Where
/// that 1 ms has expired (`Period`), slices end at ticks otherwise.
#[test]
fn after_a_rest_each_tick_takes_a_slice_away() {
    let drawn = [QuotaExpiry::Off, QuotaExpiry::Drift, QuotaExpiry::Period].map(|expiry| {
        let mut m = Box2::new(Throttle::WholeQueue);
        m.sys.features.quota_expiry = expiry;
        let tg = m.sys.add_group(TgId::ROOT);
        m.set_quota(tg, Some(50 * MS), 100 * MS);
        m.hog(tg, 1);
        m.run(20 * MS);
        m.sleep(1);
        m.run(1000 * MS);
        let task = m.host.parked.pop().expect("it sleeps");
        let (cpu, migrated) = (Cpu(1), false);
        m.on(1, |cx, rqs| {
            let placed = Placed { cpu, migrated };
            sched::enqueue_woken(cx, rqs, task, placed, WakeKind::Wake);
        });
        m.run(20 * MS);
        50 - m.sys.tg[tg.idx()].bandwidth.peek_runtime() / MS
    });
    assert_eq!(drawn, [24, 28, 21], "ms for 20 ms of running");
}

/// A hog in limbo that may not stay on its CPU goes at once, or, if it was running when it lost the
/// permission, with the stopper; on the other CPU it waits for runtime like anybody.
#[test]
fn a_task_in_limbo_follows_its_affinity() {
    let only = |cpu| {
        let mut mask = CpuMask::empty();
        mask.set(Cpu(cpu));
        mask
    };
    for by_stopper in [false, true] {
        let mut m = Box2::new(Throttle::AtUserReturn);
        let tg = m.sys.add_group(TgId::ROOT);
        m.set_quota(tg, Some(50 * MS), 100 * MS);
        let task = m.hog(tg, 0);
        if by_stopper {
            m.run(20 * MS);
            let moved = m.on(0, |cx, rqs| sched::set_affinity(cx, rqs, task, only(1)));
            assert_eq!(moved, Moved::Asked);
            m.host.kicks.clear();
        }
        m.run(80 * MS);
        assert!(m.rqs[0].curr.is_none(), "it is in limbo");
        if by_stopper {
            let _ = m.on(0, |cx, rqs| sched::run_stopper(cx, rqs, StopWork::Migrate));
        } else {
            let moved = m.on(0, |cx, rqs| sched::set_affinity(cx, rqs, task, only(1)));
            assert_eq!(moved, Moved::To(Cpu(1)));
        }
        m.check();
        m.run(1000 * MS);
        assert!(m.rqs[0].body.iter().all(Option::is_none));
        assert!(m.rqs[1].body.iter().flatten().any(|b| b.id == task));
        near(m.stat(tg).usage_ns, 550, 54);
    }
}

/// A task that changes its own CPUs leaves its queue and comes back: its group's weight is computed
/// again, and it runs on with its request, as a new stretch.
#[test]
fn a_running_task_comes_back_to_its_queue_when_its_cpus_change() {
    let mut m = Box2::new(Throttle::AtUserReturn);
    let tg = m.sys.add_group(TgId::ROOT);
    m.hog(tg, 0);
    m.hog(tg, 0);
    m.run(30 * MS);
    let slot = m.rqs[0].curr.expect("one of them runs");
    let task = m.rqs[0].body[slot.idx()].as_ref().expect("a task").id;
    let both = CpuMask::first_n(2);
    let mut requests = Vec::new();
    for _ in 0..2 {
        let moved = m.on(0, |cx, rqs| sched::set_affinity(cx, rqs, task, both));
        assert_eq!(moved, Moved::Stays);
        let (rq, se) = (&m.rqs[0], &m.rqs[0].se[slot.idx()]);
        let on = (rq.curr, rq.cfs[1].curr, rq.cfs[1].nr_queued);
        assert_eq!(on, (Some(slot), Some(slot), 2), "it runs on");
        assert_eq!(se.prev_sum_exec_runtime, se.sum_exec_runtime, "a stretch");
        requests.push((se.vruntime, se.deadline));
        m.check();
    }
    let off = |a: u64, b: u64| (a.wrapping_sub(b) as i64).abs();
    let [first, second] = [requests[0], requests[1]];
    assert!(off(first.0, second.0) < 10 && off(first.1, second.1) < 10);
}

#[test]
fn a_task_in_limbo_can_change_its_group() {
    let mut m = Box2::new(Throttle::AtUserReturn);
    let (tg, other) = (m.sys.add_group(TgId::ROOT), m.sys.add_group(TgId::ROOT));
    m.set_quota(tg, Some(5 * MS), 100 * MS);
    m.set_quota(other, Some(90 * MS), 100 * MS);
    m.sys.open_group(other);
    // Somebody outside keeps the CPU busy: a change of group alone does not wake an idle CPU.
    let (a, b, filler) = (m.hog(tg, 0), m.hog(tg, 0), m.hog(TgId::ROOT, 0));
    m.run(50 * MS);
    assert_eq!(m.rqs[0].curr_task(), Some(filler));
    assert_eq!(m.rqs[0].nr_running, 1);
    assert!(m.on(0, |cx, rqs| sched::set_group(cx, rqs, a, other)));
    m.settle();
    m.check();
    assert_eq!(m.rqs[0].nr_running, 2);
    m.run(40 * MS);
    near(m.stat(other).usage_ns, 20, 4);
    assert!(m.on(0, |cx, rqs| sched::set_group(cx, rqs, b, other)));
    m.run(40 * MS);
    assert!(m.on(0, |cx, rqs| sched::set_group(cx, rqs, b, tg)));
    m.run(300 * MS);
    assert!(m.stat(tg).usage_ns > 10 * MS);
}

/// A limited group with three below it, and below one of these another one; two hogs on one CPU and
/// one on the other. Each period throttles two queues and lets them run again: five groups each
/// time, whether they have tasks or not, and three tasks off and back.
#[test]
fn the_work_of_throttling_is_told() {
    for throttle in BOTH {
        let mut m = Box2::new(throttle);
        let tg = m.sys.add_group(TgId::ROOT);
        let below = [0; 3].map(|_| m.sys.add_group(tg));
        let lowest = m.sys.add_group(below[1]);
        m.set_quota(tg, Some(50 * MS), 100 * MS);
        for (group, cpu) in [(below[0], 0), (lowest, 0), (below[2], 1)] {
            m.hog(group, cpu);
        }
        // Up to the middle of a period, in which all are throttled.
        m.run(1057 * MS);
        let stat = m.stat(tg);
        // The first one ends 7 ms after the start: too early for throttling.
        assert_eq!((stat.nr_periods, stat.nr_throttled), (11, 10), "{stat:?}");
        let (off, on) = (QuotaStep::Throttle, QuotaStep::Unthrottle);
        let per_task = throttle == Throttle::AtUserReturn;
        let with_queue = if per_task { 0 } else { 3 * 11 };
        assert_eq!(m.worked(tg, off), [22, 5 * 22, with_queue], "{throttle:?}");
        assert_eq!(m.worked(tg, on), [20, 5 * 20, 3 * 10], "{throttle:?}");
        let alone = if per_task { 3 * 11 } else { 0 };
        let put_off = m.worked(tg, QuotaStep::PutOff);
        assert_eq!(put_off, [alone, 0, alone], "{throttle:?}");
        assert_eq!(m.worked(tg, QuotaStep::Distribute), [10, 0, 0]);
        let sum = m.host.worked.len();
        assert_eq!(sum, 22 + 20 + alone as usize + 10, "no other group");
    }
}

/// The recordings made without a filler (one run each): e1 20, 19, 944 ms; e2 101, 100, 494.6 ms.
/// The phase of the period is free, so counts may differ by one.
#[test]
fn throttled_time_as_recorded() {
    for (quota, period, window, expect) in [
        (50 * MS, 100 * MS, 2000 * MS, (20, 19, 944)),
        (5 * MS, 10 * MS, 1000 * MS, (101, 100, 494)),
    ] {
        let mut m = Box2::new(Throttle::AtUserReturn);
        let above = m.sys.add_group(TgId::ROOT);
        let tg = m.sys.add_group(above);
        m.set_quota(tg, Some(quota), period);
        m.hog(tg, 1);
        m.run(window);
        let stat = m.stat(tg);
        println!("{expect:?} {stat:?}");
        assert!(stat.nr_periods.abs_diff(expect.0) <= 1, "{stat:?}");
        assert!(stat.nr_throttled.abs_diff(expect.1) <= 1, "{stat:?}");
        near(stat.throttled_ns, expect.2, 20);
    }
}
