//! Quota of a group over all CPUs: setting it, the period and slack timers, distribution.
//!
//! None of these is called with a run queue held; they take one after the other. Distribution
//! goes through the throttled queues in the order in which they were throttled and gives each
//! just enough to run; the queue of another CPU is asked to unthrottle itself there
//! ([`KickWork::Unthrottle`]), so that the walk over its groups is not done by the timer.

use core::fmt;

use super::expiry;
use super::throttle::unthrottle_cfs_rq;
use crate::cx::Cx;
use crate::event::{QuotaStep, QuotaWork};
use crate::host::{Host, Kick, KickWork};
use crate::place::{Access, Func, Kind, Object, cfs_rq as f};
use crate::rq::{Rq, Rqs};
use crate::shared::{PeriodEnd, RUNTIME_INF};
use crate::value::{CfsId, Cpu, TgId};

/// Shortest period and smallest quota, ns.
pub const MIN_BANDWIDTH_NS: u64 = 1_000_000;

/// Longest period, ns.
pub const MAX_PERIOD_NS: u64 = 1_000_000_000;

/// Largest quota, and largest sum of quota and burst, ns (`max_cfs_runtime`): what as a share of
/// the shortest period fits 44 bits.
pub const MAX_CFS_RUNTIME_NS: u64 = ((1 << 44) - 1) * 1000;

/// Why a group cannot have a limit: the kernel's `EINVAL`. Nothing was changed.
#[non_exhaustive]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BandwidthError {
    /// The root group has none.
    Root,
    /// The period is not from 1 ms to 1 s.
    Period,
    /// The quota is below 1 ms or above [`MAX_CFS_RUNTIME_NS`].
    Quota,
    /// The burst is above the quota, or both together above [`MAX_CFS_RUNTIME_NS`].
    Burst,
}

impl fmt::Display for BandwidthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "the root group has no limit",
            Self::Period => "a period is from 1 ms to 1 s",
            Self::Quota => "a quota is from 1 ms to about 203 days",
            Self::Burst => "a burst is at most the quota, and both together about 203 days",
        })
    }
}

impl core::error::Error for BandwidthError {}

/// Writes a group's `cpu.max` and `cpu.max.burst` (ns); `quota` `None` = `max`
/// (`tg_set_cfs_bandwidth`). One CPU at a time calls it for a group: whether it had a quota is read
/// before it is written, and groups with one are counted.
///
/// A queue without runtime is noticed at its CPU's next tick or switch (without `hrtick`), and a
/// CPU draws up to 5 ms at a time. So a group exceeds quota and burst, once, by up to a tick and 5
/// ms for each CPU that it runs on, and pays for it in the periods after: in the mean the quota
/// holds as far as no CPU has to pay for longer than the group is observed.
///
/// Every write fills the pool and lets go who waits for it, that of the same values too
/// (`__refill_cfs_bandwidth_runtime`): a group whose limit is written again and again has none. A
/// host that applies a configuration anew compares it with
/// [`TaskGroup::cpu_max`](crate::shared::TaskGroup::cpu_max) first.
///
/// # Errors
/// [`BandwidthError`], and nothing was changed.
#[doc(alias = "tg_set_cfs_bandwidth")]
pub fn set_bandwidth<H: Host, R: Rqs + ?Sized>(
    cx: &mut Cx<H>,
    rqs: &mut R,
    tg: TgId,
    quota_ns: Option<u64>,
    period_ns: u64,
    burst_ns: u64,
) -> Result<(), BandwidthError> {
    check(tg, quota_ns, period_ns, burst_ns)?;
    let sys = cx.sys;
    let (group, expiry) = (&sys.tg[tg.idx()], sys.features.quota_expiry);
    let was_limited = group.bandwidth.is_limited();
    if quota_ns.is_some() && !was_limited {
        sys.bandwidth_usage_inc();
    }
    let mut draw = || u64::from(cx.host.random()) % PHASE_SPAN;
    let phase = match sys.features.period_phase.is_common() {
        true => sys.common_period_phase(draw),
        false => draw(),
    };
    group.with_pool(cx.host, |pool| {
        pool.set_phase(phase);
        pool.configure(quota_ns.unwrap_or(RUNTIME_INF), period_ns, burst_ns);
        expiry::begin_period(pool, expiry);
    });
    for cpu in 0..sys.nr_cpus() as u32 {
        cx.with_rq(rqs, Cpu(cpu), |cx, rq| {
            set_runtime_enabled(cx, rq, tg, quota_ns.is_some());
        });
    }
    if quota_ns.is_none() && was_limited {
        sys.bandwidth_usage_dec();
    }
    Ok(())
}

fn check(
    tg: TgId,
    quota_ns: Option<u64>,
    period_ns: u64,
    burst_ns: u64,
) -> Result<(), BandwidthError> {
    if tg == TgId::ROOT {
        return Err(BandwidthError::Root);
    }
    if !(MIN_BANDWIDTH_NS..=MAX_PERIOD_NS).contains(&period_ns) {
        return Err(BandwidthError::Period);
    }
    match quota_ns {
        Some(quota_ns) if !(MIN_BANDWIDTH_NS..=MAX_CFS_RUNTIME_NS).contains(&quota_ns) => {
            Err(BandwidthError::Quota)
        }
        Some(quota_ns) if burst_ns > quota_ns || quota_ns + burst_ns > MAX_CFS_RUNTIME_NS => {
            Err(BandwidthError::Burst)
        }
        _ => Ok(()),
    }
}

/// The periods of `tg` end at `phase` (ns since the clock's zero) and multiples of the period after
/// it: what a host does that follows a recording. Left alone, the phase is drawn at random.
pub fn align_period<H: Host>(cx: &mut Cx<H>, tg: TgId, phase: u64) {
    let (group, expiry) = (&cx.sys.tg[tg.idx()], cx.sys.features.quota_expiry);
    group.with_pool(cx.host, |pool| {
        pool.align(phase);
        expiry::begin_period(pool, expiry);
    });
}

/// The phase of a new group's period timer is drawn from its first period, which is the default.
const PHASE_SPAN: u64 = 100_000_000;

/// The period timer of a group has fired: refill, count, distribute, restart or stop.
pub fn period_timer<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId) {
    let outer = cx.host.enter(Func::PeriodTimer);
    let (since, mut distributed) = (cx.host.moment(), false);
    let (sys, mut rest) = (cx.sys, false);
    let group = &sys.tg[tg.idx()];
    // Distribution may take so long that the next period has ended meanwhile.
    let mut turns = 0;
    loop {
        let end = group.with_pool(cx.host, |pool| match pool.forward_period() {
            0 => None,
            overrun => {
                let end = pool.end_period(overrun);
                // A timer that is left to rest begins no period.
                if end != PeriodEnd::Rest {
                    expiry::begin_period(pool, sys.features.quota_expiry);
                }
                Some(end)
            }
        });
        let Some(end) = end else { break };
        rest = end == PeriodEnd::Rest;
        if end == PeriodEnd::Distribute {
            while group.bandwidth.peek_runtime() > 0 && distribute_cfs_runtime(cx, rqs, tg) {}
            group.with_pool(cx.host, |pool| pool.end_distribution());
            distributed = true;
        }
        turns += 1;
        if turns > MOST_TURNS {
            group.with_pool(cx.host, |pool| pool.stretch_period());
            turns = 0;
        }
    }
    // Since it was found that it may rest, a CPU may have drawn or a queue been throttled, and have
    // taken it for active.
    group.with_pool(cx.host, |pool| pool.rearm_period(rest && !pool.is_used()));
    cx.host.leave(outer);
    if distributed {
        let work = QuotaWork {
            tg,
            step: QuotaStep::Distribute,
            groups: 0,
            tasks: 0,
        };
        cx.host.quota(work, since);
    }
}

/// Turns of the period timer's handler after which quota and period are stretched.
const MOST_TURNS: u32 = 3;

/// The slack timer of a group has fired: distribute what was returned.
pub fn slack_timer<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId) {
    let outer = cx.host.enter(Func::SlackTimer);
    let sys = cx.sys;
    let slack = sys.tg[tg.idx()].with_pool(cx.host, |pool| pool.end_slack());
    if slack > 0 {
        distribute_cfs_runtime(cx, rqs, tg);
    }
    cx.host.leave(outer);
}

/// Unthrottles the queues of this CPU that another one has given runtime (`KickWork::Unthrottle`).
pub fn unthrottle_kicked<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R) {
    let cpu = cx.cpu;
    cx.with_rq(rqs, cpu, |cx, rq| {
        cx.update_rq_clock(rq);
        while let Some(cfs) = pop_unthrottle(rq) {
            if rq.cfs[cfs.idx()].throttled {
                unthrottle_cfs_rq(cx, rq, cfs);
            }
        }
    });
}

/// Gives runtime to throttled queues; true if some are left without.
fn distribute_cfs_runtime<H: Host, R: Rqs + ?Sized>(cx: &mut Cx<H>, rqs: &mut R, tg: TgId) -> bool {
    let group = &cx.sys.tg[tg.idx()];
    let (mut throttled, mut exhausted, mut own) = (false, false, false);
    let mut at = group.next_throttled(None);
    while let Some(cpu) = at {
        // The queue says whose lock is to be taken.
        cx.touch(group.queue(cpu), f::RQ | f::THROTTLED_LIST, Access::Read);
        if exhausted {
            throttled = true;
            break;
        }
        cx.with_rq(rqs, cpu, |cx, rq| match grant(cx, rq, tg) {
            Grant::None => {}
            Grant::TooLittle => (exhausted, throttled) = (true, true),
            Grant::Enough { cfs, left } => {
                exhausted = left == 0;
                if cpu == cx.cpu {
                    own = true;
                } else {
                    push_unthrottle(cx, rq, cfs);
                }
            }
        });
        at = group.next_throttled(Some(cpu));
    }
    // Not while walking along the list: unthrottling takes the queue off it.
    if own {
        let cpu = cx.cpu;
        cx.with_rq(rqs, cpu, |cx, rq| {
            cx.update_rq_clock(rq);
            if let Some(cfs) = rq.cfs_of(tg)
                && rq.cfs[cfs.idx()].throttled
            {
                unthrottle_cfs_rq(cx, rq, cfs);
            }
        });
    }
    throttled
}

enum Grant {
    /// It needs nothing (any more).
    None,
    /// The pool is empty.
    TooLittle,
    /// It can run; `left` is in the pool.
    Enough { cfs: CfsId, left: u64 },
}

fn grant<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId) -> Grant {
    let Some(cfs) = rq.cfs_of(tg) else {
        return Grant::None;
    };
    let state = f::THROTTLED | f::THROTTLED_LIST | f::RUNTIME_REMAINING;
    cx.touch(rq.cfs_object(cfs), state, Access::Read);
    let queue = &mut rq.cfs[cfs.idx()];
    if !queue.throttled || queue.unthrottle_queued {
        return Grant::None;
    }
    cx.touch(queue.object(rq.cpu), f::RUNTIME_REMAINING, Access::Write);
    debug_assert!(queue.runtime_remaining <= 0);
    let (sys, remaining) = (cx.sys, queue.runtime_remaining);
    let own = &mut queue.runtime_expires;
    let (amount, left) = sys.tg[tg.idx()].with_pool(cx.host, |pool| {
        expiry::take_deadline(pool, sys.features.quota_expiry, own);
        pool.grant(remaining)
    });
    queue.runtime_remaining += amount as i64;
    if queue.runtime_remaining > 0 {
        Grant::Enough { cfs, left }
    } else {
        Grant::TooLittle
    }
}

fn push_unthrottle<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    rq.cfs[cfs.idx()].unthrottle_queued = true;
    match rq.unthrottle_last.replace(cfs) {
        Some(last) => rq.cfs[last.idx()].unthrottle_next = Some(cfs),
        None => {
            rq.unthrottle_first = Some(cfs);
            cx.host.kick(rq.cpu, Kick::Run(KickWork::Unthrottle));
        }
    }
}

fn pop_unthrottle(rq: &mut Rq) -> Option<CfsId> {
    let cfs = rq.unthrottle_first?;
    let queue = &mut rq.cfs[cfs.idx()];
    queue.unthrottle_queued = false;
    rq.unthrottle_first = queue.unthrottle_next.take();
    if rq.unthrottle_first.is_none() {
        rq.unthrottle_last = None;
    }
    Some(cfs)
}

fn set_runtime_enabled<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, tg: TgId, enabled: bool) {
    let cfs = rq.cfs_of(tg);
    let object = Object {
        kind: Kind::CfsRq,
        a: rq.cpu.0,
        b: tg.0,
    };
    let fields = f::RUNTIME_ENABLED | f::RUNTIME_REMAINING | f::THROTTLED;
    cx.touch(object, fields, Access::Update);
    let Some(cfs) = cfs else { return };
    let queue = &mut rq.cfs[cfs.idx()];
    queue.runtime_enabled = enabled;
    queue.runtime_remaining = cx.sys.features.throttle.first_runtime();
    if queue.throttled {
        cx.update_rq_clock(rq);
        unthrottle_cfs_rq(cx, rq, cfs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::tg as tg_f;
    use crate::policy::Features;
    use crate::testing::Bench;

    #[test]
    fn the_first_group_draws_the_phase_that_all_have_in_common() {
        let bench = Bench::new(1, Features::default());
        let phases = [7, 9].map(|drawn| bench.sys.common_period_phase(|| drawn));
        assert_eq!(phases, [7, 7]);
    }

    #[test]
    fn an_empty_pool_is_read_and_not_written() {
        const MS: u64 = MIN_BANDWIDTH_NS;
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        bench
            .call(0, |cx, rqs| {
                set_bandwidth(cx, rqs, tg, Some(MS), 10 * MS, 0)
            })
            .unwrap();
        let mut writes = |want: u64| {
            bench.host.touches.clear();
            let drawn = bench.on(0, |cx, _| {
                cx.sys.tg[tg.idx()].with_pool(cx.host, |pool| pool.draw(0, want))
            });
            let pool = tg_f::BW_RUNTIME | tg_f::BW_STATE;
            let touches = bench.host.touches.iter();
            let writes = touches.filter(|(_, f, a)| f.intersects(pool) && *a == Access::Write);
            (drawn, writes.count())
        };
        assert_eq!(writes(2 * MS), (MS, 1));
        assert_eq!(writes(2 * MS), (0, 0));
    }

    #[test]
    fn what_is_no_limit_is_refused_and_leaves_nothing_behind() {
        use BandwidthError::{Burst, Period, Quota, Root};
        const MS: u64 = MIN_BANDWIDTH_NS;
        let mut bench = Bench::new(1, Features::default());
        let tg = bench.sys.add_group(TgId::ROOT);
        let set = |bench: &mut Bench, tg, quota, period, burst| {
            bench.call(0, |cx, rqs| {
                set_bandwidth(cx, rqs, tg, quota, period, burst)
            })
        };
        let refused = [
            (TgId::ROOT, Some(20 * MS), 100 * MS, 0, Root),
            (tg, Some(20 * MS), 0, 0, Period),
            (tg, Some(20 * MS), u64::MAX, 0, Period),
            (tg, None, MS - 1, 0, Period),
            (tg, Some(MS - 1), 100 * MS, 0, Quota),
            (tg, Some(MAX_CFS_RUNTIME_NS + 1), 100 * MS, 0, Quota),
            (tg, Some(u64::MAX), 100 * MS, 0, Quota),
            (tg, Some(20 * MS), 100 * MS, 21 * MS, Burst),
            (tg, Some(MAX_CFS_RUNTIME_NS), 100 * MS, 1, Burst),
            (tg, Some(20 * MS), 100 * MS, u64::MAX, Burst),
        ];
        for (tg, quota, period, burst, why) in refused {
            assert_eq!(set(&mut bench, tg, quota, period, burst), Err(why));
            assert!(!bench.sys.bandwidth_used(), "{why:?}");
        }
        for (quota, period, burst) in [
            (Some(MS), MAX_PERIOD_NS, MS),
            (Some(MAX_CFS_RUNTIME_NS), MS, 0),
            (Some(3 * MAX_PERIOD_NS), MAX_PERIOD_NS, 0),
        ] {
            assert_eq!(set(&mut bench, tg, quota, period, burst), Ok(()));
            assert!(bench.sys.bandwidth_used());
        }
        assert_eq!(set(&mut bench, tg, None, 100 * MS, 20 * MS), Ok(()));
        assert!(!bench.sys.bandwidth_used());
    }
}
