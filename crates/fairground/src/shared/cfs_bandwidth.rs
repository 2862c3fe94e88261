//! A group's quota: the global pool that its queues draw from. Times in ns.
//!
//! Read first: `Documentation/scheduler/sched-bwc.rst`. Per period the pool gets `quota`; what
//! was left over stays, up to `burst` more than one quota. Queues take slices out of it and give
//! back what they do not need. Everything here changes only while `Lock::Bandwidth` of the group
//! is held, that is through [`Pool`]; so a load and a store of the atomics are enough.
//!
//! ```text
//!      quota              cpu.max: (quota, period); cpu.max.burst: burst
//!        | every period
//!        v
//!   [ runtime ] --draw--> cfs_rq.runtime_remaining on each CPU --charged while tasks run--> gone
//!        ^                      |
//!        +------give_back-------+   when the queue empties, above what it may keep
//! ```

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use super::{Relaxed, TgCpus};
use crate::host::{Host, Timer};
use crate::math::forward;
use crate::place::{Access, Fields, Kind, Lock, Object, cfs_rq as q, tg as f};
use crate::value::{Cpu, TgId};

/// `quota` of a group without a limit.
pub const RUNTIME_INF: u64 = u64::MAX;

/// What a queue draws at once (`sched_cfs_bandwidth_slice_us`, default 5 ms).
pub const BANDWIDTH_SLICE: u64 = 5_000_000;

/// What a queue that has emptied may keep, so that a task that comes back soon need not draw.
pub const MIN_CFS_RQ_RUNTIME: u64 = 1_000_000;

/// How long returned runtime is gathered before it is distributed.
pub const SLACK_PERIOD: u64 = 5_000_000;

/// Slack is not distributed if the next refill is nearer than this.
pub const MIN_EXPIRATION: u64 = 2_000_000;

/// Period of a group before one is set.
const DEFAULT_PERIOD: u64 = 100_000_000;

/// The period is not stretched to or beyond this.
const MAX_PERIOD: u64 = 1_000_000_000;

/// Until when runtime may be used, in kernels in which it expires (`runtime_expires`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deadline {
    /// End of the period, ns since the clock's zero.
    pub at: u64,
    /// How often the pool's deadline had been moved on (`expires_seq`).
    pub seq: u64,
}

/// `[any]` `cfs_bandwidth` of a task group.
#[derive(Debug)]
pub struct CfsBandwidth {
    quota: AtomicU64,
    pub(super) period: AtomicU64,
    burst: AtomicU64,
    runtime: AtomicU64,
    runtime_snap: AtomicU64,
    period_active: AtomicBool,
    period_expires: AtomicU64,
    runtime_expires: AtomicU64,
    expires_seq: AtomicU64,
    idle: AtomicBool,
    slack_started: AtomicBool,
    /// First and last queue of the list of throttled ones, as CPU + 1; 0 = none.
    first: AtomicU32,
    last: AtomicU32,
    stat: Stat,
}

#[derive(Debug, Default)]
struct Stat {
    nr_periods: AtomicU64,
    nr_throttled: AtomicU64,
    throttled_time: AtomicU64,
    nr_burst: AtomicU64,
    burst_time: AtomicU64,
}

/// A group's `cpu.stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuStat {
    /// Periods in which the group was active.
    pub nr_periods: u64,
    /// Periods at whose end a queue was throttled.
    pub nr_throttled: u64,
    /// Sum of the throttled time of all queues, ns.
    pub throttled_ns: u64,
    /// Periods in which more than the quota was used.
    pub nr_bursts: u64,
    /// Runtime used beyond the quota, ns.
    pub burst_ns: u64,
    /// Execution of the group's tasks and of those below, ns.
    pub usage_ns: u64,
}

impl Default for CfsBandwidth {
    fn default() -> Self {
        Self {
            quota: AtomicU64::new(RUNTIME_INF),
            period: AtomicU64::new(DEFAULT_PERIOD),
            burst: AtomicU64::new(0),
            runtime: AtomicU64::new(0),
            runtime_snap: AtomicU64::new(0),
            period_active: AtomicBool::new(false),
            period_expires: AtomicU64::new(0),
            runtime_expires: AtomicU64::new(0),
            expires_seq: AtomicU64::new(0),
            idle: AtomicBool::new(false),
            slack_started: AtomicBool::new(false),
            first: AtomicU32::new(0),
            last: AtomicU32::new(0),
            stat: Stat::default(),
        }
    }
}

impl CfsBandwidth {
    /// Runs `f` with the pool of group `tg` locked. `cpus` are the group's per-CPU words.
    pub fn locked<H: Host, T>(
        &self,
        tg: TgId,
        cpus: &TgCpus,
        host: &mut H,
        f: impl FnOnce(&mut Pool<'_, H>) -> T,
    ) -> T {
        host.lock(Lock::Bandwidth(tg));
        let out = f(&mut Pool {
            bw: self,
            cpus,
            tg,
            host,
        });
        host.unlock(Lock::Bandwidth(tg));
        out
    }

    /// Whether the group has a limit. Not a touch: those who ask in a hot path keep a copy.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.quota.load(Relaxed) != RUNTIME_INF
    }

    /// Runtime in the pool, for reports and checkers.
    #[must_use]
    pub fn peek_runtime(&self) -> u64 {
        self.runtime.load(Relaxed)
    }

    /// Quota and burst of a group with a limit, ns, for reports and checkers.
    #[must_use]
    pub fn peek_limit(&self) -> Option<(u64, u64)> {
        let quota = self.quota.load(Relaxed);
        (quota != RUNTIME_INF).then(|| (quota, self.burst.load(Relaxed)))
    }

    /// Whether the period timer runs, for reports and checkers.
    #[must_use]
    pub fn peek_period_active(&self) -> bool {
        self.period_active.load(Relaxed)
    }

    /// The end of the present period, or of the one at whose end the timer was left to rest, ns
    /// since the clock's zero; for reports and checkers.
    #[must_use]
    pub fn peek_period_expires(&self) -> u64 {
        self.period_expires.load(Relaxed)
    }

    /// The deadline of what is drawn now. Queues look at it without the lock.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline {
            at: self.runtime_expires.load(Relaxed),
            seq: self.expires_seq.load(Relaxed),
        }
    }

    /// The first throttled queue's CPU, for reports and checkers.
    #[must_use]
    pub fn peek_first_throttled(&self) -> Option<Cpu> {
        to_cpu(self.first.load(Relaxed))
    }

    /// `cpu.stat` without the usage, which is counted on each CPU.
    #[must_use]
    pub fn stat(&self) -> CpuStat {
        CpuStat {
            nr_periods: self.stat.nr_periods.load(Relaxed),
            nr_throttled: self.stat.nr_throttled.load(Relaxed),
            throttled_ns: self.stat.throttled_time.load(Relaxed),
            nr_bursts: self.stat.nr_burst.load(Relaxed),
            burst_ns: self.stat.burst_time.load(Relaxed),
            usage_ns: 0,
        }
    }
}

/// What the end of a period asks of the timer's handler.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeriodEnd {
    /// Nobody used runtime for a whole period, or there is no limit any more: let the timer rest.
    Rest,
    /// Go on; nobody waits.
    Continue,
    /// Queues are throttled: hand out the refilled runtime.
    Distribute,
}

/// The pool with its lock held. Each method reports the places it touches.
#[derive(Debug)]
pub struct Pool<'a, H: Host> {
    bw: &'a CfsBandwidth,
    cpus: &'a TgCpus,
    tg: TgId,
    host: &'a mut H,
}

impl<H: Host> Pool<'_, H> {
    /// `cpu.max` and `cpu.max.burst` are written: sets them and refills; starts the period timer if
    /// there is a limit. A timer that runs keeps its time.
    pub fn configure(&mut self, quota: u64, period: u64, burst: u64) {
        self.touch(f::BW_CONFIG, Access::Write);
        self.bw.period.store(period, Relaxed);
        self.bw.quota.store(quota, Relaxed);
        self.bw.burst.store(burst, Relaxed);
        self.refill();
        if quota != RUNTIME_INF {
            self.start_period();
        }
    }

    /// Sets the phase of the period timer, once; ns since the clock's zero. The kernel draws it at
    /// random when a group is made, so that the timers of many groups do not fire at once (6.4).
    pub fn set_phase(&mut self, phase: u64) {
        if self.bw.period_expires.load(Relaxed) == 0 {
            self.bw.period_expires.store(phase, Relaxed);
        }
    }

    /// The period timer fires at `phase` (ns since the clock's zero) and whole periods after it:
    /// for hosts that follow a recording.
    pub fn align(&mut self, phase: u64) {
        self.bw.period_expires.store(phase, Relaxed);
        if self.bw.peek_period_active() {
            let _ = self.forward_period();
            self.rearm_period(false);
        }
    }

    /// A queue with `remaining` ns wants to have `target` ns: takes what it lacks, or what is left.
    /// Starts the period timer if it rests.
    #[must_use]
    pub fn draw(&mut self, remaining: i64, target: u64) -> u64 {
        let lacks = (target as i64).saturating_sub(remaining).max(0) as u64;
        if !self.bw.is_limited() {
            return lacks;
        }
        self.start_period();
        self.touch(f::BW_RUNTIME, Access::Read);
        let runtime = self.bw.runtime.load(Relaxed);
        if runtime == 0 {
            return 0;
        }
        self.touch(f::BW_RUNTIME | f::BW_STATE, Access::Write);
        let amount = runtime.min(lacks);
        self.bw.runtime.store(runtime - amount, Relaxed);
        self.bw.idle.store(false, Relaxed);
        amount
    }

    /// The period timer's share for a throttled queue with `remaining` <= 0: what makes it
    /// positive, if there is enough. Also says what is left afterwards.
    #[must_use]
    pub fn grant(&mut self, remaining: i64) -> (u64, u64) {
        self.touch(f::BW_RUNTIME, Access::Update);
        let runtime = self.bw.runtime.load(Relaxed);
        let amount = ((1 - remaining).max(0) as u64).min(runtime);
        self.bw.runtime.store(runtime - amount, Relaxed);
        (amount, runtime - amount)
    }

    /// A queue gives back `amount`. If that is enough for somebody who waits, it will be
    /// distributed by the slack timer.
    pub fn give_back(&mut self, amount: u64) {
        if !self.bw.is_limited() {
            return;
        }
        self.touch(f::BW_RUNTIME, Access::Update);
        let runtime = self.bw.runtime.load(Relaxed).saturating_add(amount);
        self.bw.runtime.store(runtime, Relaxed);
        if runtime <= BANDWIDTH_SLICE {
            return;
        }
        self.touch(f::BW_LIST, Access::Read);
        if self.is_anyone_throttled() {
            self.start_slack();
        }
    }

    /// Adds a quota, counts what the last period used beyond its own, and cuts what is above
    /// quota + burst.
    pub fn refill(&mut self) {
        let quota = self.bw.quota.load(Relaxed);
        if quota == RUNTIME_INF {
            return;
        }
        self.touch(f::BW_CONFIG, Access::Read);
        self.touch(f::BW_RUNTIME | f::BW_STATE, Access::Update);
        let runtime = self.bw.runtime.load(Relaxed).saturating_add(quota);
        // `runtime_snap` is what there was after the last refill: more than what there is after
        // this one only if more than a quota has been used.
        let burst_used = self.bw.runtime_snap.load(Relaxed).saturating_sub(runtime);
        if burst_used > 0 {
            self.touch(f::BW_STATS, Access::Update);
            add(&self.bw.stat.burst_time, burst_used);
            add(&self.bw.stat.nr_burst, 1);
        }
        let most = quota.saturating_add(self.bw.burst.load(Relaxed));
        self.bw.runtime.store(runtime.min(most), Relaxed);
        self.bw.runtime_snap.store(runtime.min(most), Relaxed);
    }

    /// `overrun` periods have ended since the timer was last handled. However many there were,
    /// the pool is refilled once.
    pub fn end_period(&mut self, overrun: u64) -> PeriodEnd {
        self.touch(f::BW_CONFIG | f::BW_LIST, Access::Read);
        if !self.bw.is_limited() {
            return PeriodEnd::Rest;
        }
        let throttled = self.is_anyone_throttled();
        self.touch(f::BW_STATS, Access::Update);
        add(&self.bw.stat.nr_periods, overrun);
        self.refill();
        if self.bw.idle.load(Relaxed) && !throttled {
            return PeriodEnd::Rest;
        }
        if !throttled {
            // Set back by the first draw of the period that begins.
            self.bw.idle.store(true, Relaxed);
            return PeriodEnd::Continue;
        }
        add(&self.bw.stat.nr_throttled, overrun);
        PeriodEnd::Distribute
    }

    /// What was refilled has been handed out. While a queue waits, the timer does not rest.
    pub fn end_distribution(&mut self) {
        self.touch(f::BW_STATE, Access::Write);
        self.bw.idle.store(false, Relaxed);
    }

    /// What is drawn from now on is for the present period, whose end is its deadline.
    pub fn renew_deadline(&mut self) {
        self.touch(f::BW_STATE, Access::Update);
        add(&self.bw.expires_seq, 1);
        let at = self.bw.period_expires.load(Relaxed);
        self.bw.runtime_expires.store(at, Relaxed);
    }

    /// The deadline of what is drawn now.
    #[must_use]
    pub fn deadline(&mut self) -> Deadline {
        self.touch(f::BW_STATE, Access::Read);
        self.bw.deadline()
    }

    /// Moves the end of the period behind now; answers how many periods have ended.
    #[must_use]
    pub fn forward_period(&mut self) -> u64 {
        let (expires, overrun) = forward(
            self.bw.period_expires.load(Relaxed),
            self.bw.period.load(Relaxed),
            self.host.clock(),
        );
        self.touch(f::BW_TIMERS, Access::Update);
        self.bw.period_expires.store(expires, Relaxed);
        overrun
    }

    /// The handler of the period timer cannot keep up with the period: doubles quota, burst and
    /// period, which keeps the share.
    pub fn stretch_period(&mut self) {
        let period = self.bw.period.load(Relaxed) * 2;
        if period >= MAX_PERIOD {
            return;
        }
        self.touch(f::BW_CONFIG, Access::Update);
        self.bw.period.store(period, Relaxed);
        for word in [&self.bw.quota, &self.bw.burst] {
            word.store(word.load(Relaxed).saturating_mul(2), Relaxed);
        }
    }

    /// Whether somebody draws on the pool or waits for it, so that its timer must not rest.
    #[must_use]
    pub fn is_used(&self) -> bool {
        let drawn = || !self.bw.idle.load(Relaxed);
        self.bw.is_limited() && (self.is_anyone_throttled() || drawn())
    }

    /// Starts the timer for the present end of period again, or lets it rest.
    pub fn rearm_period(&mut self, rest: bool) {
        self.touch(f::BW_TIMERS | f::BW_STATE, Access::Update);
        self.bw.period_active.store(!rest, Relaxed);
        if !rest {
            let at = self.bw.period_expires.load(Relaxed);
            self.host.start_timer(Timer::Period(self.tg), at);
        }
    }

    /// The slack timer has fired: what there is to distribute, 0 if the refill is near or there
    /// is not a slice.
    #[must_use]
    pub fn end_slack(&mut self) -> u64 {
        self.touch(f::BW_STATE, Access::Write);
        self.touch(f::BW_TIMERS | f::BW_RUNTIME, Access::Read);
        self.bw.slack_started.store(false, Relaxed);
        let runtime = self.bw.runtime.load(Relaxed);
        let enough = self.bw.is_limited() && runtime > BANDWIDTH_SLICE;
        runtime * u64::from(enough && !self.refresh_within(MIN_EXPIRATION))
    }

    /// A queue is out of runtime: last in the order of distribution.
    pub fn push_throttled(&mut self, cpu: Cpu) {
        self.touch(f::BW_LIST, Access::Update);
        let (id, last) = (cpu.0 + 1, self.bw.last.load(Relaxed));
        let own = self.cpus.at(cpu);
        own.throttled_prev.store(last, Relaxed);
        own.throttled_next.store(0, Relaxed);
        self.touch_neighbour(last);
        self.link_after(last).store(id, Relaxed);
        self.bw.last.store(id, Relaxed);
    }

    /// A queue that was throttled for `throttled_time` ns may run again.
    pub fn remove_throttled(&mut self, cpu: Cpu, throttled_time: u64) {
        self.touch(f::BW_LIST | f::BW_STATS, Access::Update);
        add(&self.bw.stat.throttled_time, throttled_time);
        let own = self.cpus.at(cpu);
        let (prev, next) = (
            own.throttled_prev.load(Relaxed),
            own.throttled_next.load(Relaxed),
        );
        self.touch_neighbour(prev);
        self.touch_neighbour(next);
        self.link_after(prev).store(next, Relaxed);
        let back = match to_cpu(next) {
            Some(next) => &self.cpus.at(next).throttled_prev,
            None => &self.bw.last,
        };
        back.store(prev, Relaxed);
    }

    /// Whether the period timer runs.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.bw.peek_period_active()
    }

    /// Whether a queue is throttled.
    #[must_use]
    pub fn is_anyone_throttled(&self) -> bool {
        self.bw.first.load(Relaxed) != 0
    }

    /// The list is linked through the queues, those of other CPUs.
    fn touch_neighbour(&mut self, link: u32) {
        if let Some(cpu) = to_cpu(link) {
            let queue = Object {
                kind: Kind::CfsRq,
                a: cpu.0,
                b: self.tg.0,
            };
            self.host.touch(queue, q::THROTTLED_LIST, Access::Write);
        }
    }

    fn link_after(&self, prev: u32) -> &AtomicU32 {
        match to_cpu(prev) {
            Some(prev) => &self.cpus.at(prev).throttled_next,
            None => &self.bw.first,
        }
    }

    fn start_period(&mut self) {
        self.touch(f::BW_STATE, Access::Read);
        if !self.bw.period_active.load(Relaxed) {
            let _ = self.forward_period();
            self.rearm_period(false);
        }
    }

    fn start_slack(&mut self) {
        // A refill that is near will do the same for everybody.
        if self.refresh_within(SLACK_PERIOD + MIN_EXPIRATION) {
            return;
        }
        self.touch(f::BW_STATE, Access::Read);
        if !self.bw.slack_started.swap(true, Relaxed) {
            self.touch(f::BW_STATE | f::BW_TIMERS, Access::Update);
            let at = self.host.clock() + SLACK_PERIOD;
            self.host.start_timer(Timer::Slack(self.tg), at);
        }
    }

    fn refresh_within(&mut self, ns: u64) -> bool {
        self.bw.period_expires.load(Relaxed) < self.host.clock() + ns
    }

    fn touch(&mut self, fields: Fields, access: Access) {
        let object = Object {
            kind: Kind::Tg,
            a: self.tg.0,
            b: 0,
        };
        self.host.touch(object, fields, access);
    }
}

pub(super) fn to_cpu(link: u32) -> Option<Cpu> {
    link.checked_sub(1).map(Cpu)
}

fn add(word: &AtomicU64, n: u64) {
    word.store(word.load(Relaxed).wrapping_add(n), Relaxed);
}
