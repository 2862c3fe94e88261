//! Runtime that ends with the period for which it was drawn
//! ([`QuotaExpiry`]): kernels before 5.4. All times in ns.

use crate::cx::Cx;
use crate::host::Host;
use crate::place::{Access, cfs_rq as f, tg};
use crate::policy::{Expiry, QuotaExpiry};
use crate::rq::Rq;
use crate::shared::{Deadline, Pool};
use crate::value::CfsId;

/// A queue that is charged loses runtime whose deadline has passed. Debts stay.
pub(super) fn expire_cfs_rq_runtime<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    let expiry = cx.sys.features.quota_expiry;
    if !expiry.has_deadlines() || rq.cfs[cfs.idx()].runtime_remaining <= 0 {
        return;
    }
    let (object, now) = (rq.cfs_object(cfs), rq.clock.clock);
    cx.touch(object, f::RUNTIME_REMAINING, Access::Read);
    let queue = &mut rq.cfs[cfs.idx()];
    if now < queue.runtime_expires.at {
        return;
    }
    let group = &cx.sys.tg[queue.tg.idx()];
    cx.touch(group.object(), tg::BW_STATE, Access::Read);
    match expiry.judge(now, queue.runtime_expires, group.bandwidth.deadline()) {
        Expiry::Keep => {}
        Expiry::Extend => {
            queue.runtime_expires.at += cx.sys.features.tick_ns();
            cx.touch(object, f::RUNTIME_REMAINING, Access::Write);
        }
        Expiry::Expire => queue.runtime_remaining = 0,
    }
}

/// A queue with `remaining` ns draws what it lacks of `target`; its deadline is the pool's then.
pub fn draw<H: Host>(
    pool: &mut Pool<'_, H>,
    expiry: QuotaExpiry,
    own: &mut Deadline,
    (remaining, target): (i64, u64),
) -> u64 {
    let starts = !pool.is_active();
    let amount = pool.draw(remaining, target);
    if starts && expiry.renews_at_start() {
        pool.renew_deadline();
    }
    take_deadline(pool, expiry, own);
    amount
}

/// What a queue has just been given is for the pool's deadline. One that was extended stays so.
pub fn take_deadline<H: Host>(pool: &mut Pool<'_, H>, expiry: QuotaExpiry, own: &mut Deadline) {
    if !expiry.has_deadlines() {
        return;
    }
    let group = pool.deadline();
    if group.seq != own.seq {
        *own = group;
    }
}

/// A queue has emptied and gives back `amount`. What is of an earlier period is lost instead.
pub fn give_back<H: Host>(pool: &mut Pool<'_, H>, expiry: QuotaExpiry, own: Deadline, amount: u64) {
    if !expiry.has_deadlines() || expiry.can_return(own, pool.deadline()) {
        pool.give_back(amount);
    }
}

/// The period of a pool has begun, or its limit has been set.
pub fn begin_period<H: Host>(pool: &mut Pool<'_, H>, expiry: QuotaExpiry) {
    if expiry.has_deadlines() {
        pool.renew_deadline();
    }
}
