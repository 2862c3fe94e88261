//! How a change of load below reaches the levels above, and the group.
//!
//! A group's entity `se` on this CPU stands for the queue below it, `gcfs`. Utilisation and
//! runnable time are the same thing for both, so the entity takes over the queue's averages. Load
//! is not: the queue's is a sum of its tasks' weights, the entity's is the entity's own weight
//! times the part of time in which at least one of them was runnable. That part cannot be
//! known from the sums, as the tasks' times may overlap or not; it is estimated, see
//! [`update_tg_cfs_load`].

use super::leaf::list_add_leaf_cfs_rq;
use super::load::{at_least, se_weight, update_load_avg};
use super::throttle::cfs_rq_clock_pelt;
use crate::cx::Cx;
use crate::fair::UpdateLoad;
use crate::host::Host;
use crate::math::pelt::{CAPACITY_SHIFT, SchedAvg, get_pelt_divider};
use crate::math::weight::scale_load_down;
use crate::place::{Access, cfs_rq as q, se as e};
use crate::policy::RunnableSum;
use crate::rq::{CfsRq, Rq};
use crate::task::SchedEntity;
use crate::value::{CfsId, Cpu, SeId};

/// Notes that the load of `queue` changed by something else than time: by `runnable_sum` units.
#[inline]
pub(crate) fn add_tg_cfs_propagate(queue: &mut CfsRq, runnable_sum: i64) {
    queue.propagate = true;
    queue.prop_runnable_sum = queue.prop_runnable_sum.wrapping_add(runnable_sum);
}

/// Takes the noted change of the queue `below` that `se` stands for over into `se` and its queue
/// `cfs`, and notes it there for the level above.
#[inline(never)]
pub(crate) fn propagate_entity_load_avg<H: Host>(
    cx: &mut Cx<H>,
    rq: &mut Rq,
    cfs: CfsId,
    se: SeId,
    below: CfsId,
) {
    cx.touch_mixed(rq.cfs_object(below), q::AVG | q::LOAD, q::PROPAGATE);
    cx.touch(rq.cfs_object(cfs), q::AVG | q::PROPAGATE, Access::Update);
    cx.touch(rq.se_object(se), e::AVG, Access::Update);
    let gcfs = &mut rq.cfs[below.idx()];
    let runnable_sum = core::mem::take(&mut gcfs.prop_runnable_sum);
    gcfs.propagate = false;
    let below = Below {
        avg: gcfs.avg,
        weight: scale_load_down(gcfs.load.weight),
    };
    let queue = &mut rq.cfs[cfs.idx()];
    let entity = &mut rq.se[se.idx()];
    add_tg_cfs_propagate(queue, runnable_sum);
    update_tg_cfs_util(&mut queue.avg, &mut entity.avg, &below.avg);
    let width = cx.features().load.runnable_sum;
    update_tg_cfs_runnable(width, &mut queue.avg, &mut entity.avg, &below.avg);
    update_tg_cfs_load(&mut queue.avg, entity, &below, runnable_sum);
}

/// A task was attached to, or detached from, its queue without being enqueued: takes the change
/// up to the root, and has the queues aged from now on.
pub(crate) fn propagate_entity_cfs_rq<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, se: SeId) {
    let whole_queue = !cx.features().throttle.is_per_task();
    let mut cfs = rq.se[se.idx()].cfs_rq;
    if whole_queue && rq.cfs[cfs.idx()].throttled {
        return;
    }
    if !rq.cfs[cfs.idx()].pelt_clock_throttled {
        list_add_leaf_cfs_rq(cx, rq, cfs);
    }
    while let Some(above) = rq.cfs[cfs.idx()].se {
        cfs = rq.se[above.idx()].cfs_rq;
        update_load_avg(cx, rq, cfs, above, UpdateLoad::TG);
        if whole_queue && rq.cfs[cfs.idx()].throttled {
            return;
        }
        if !rq.cfs[cfs.idx()].pelt_clock_throttled {
            list_add_leaf_cfs_rq(cx, rq, cfs);
        }
    }
}

/// Publishes the queue's load to its group, if the rule of the day lets it
/// ([`TgLoadAvg`](crate::policy::TgLoadAvg)).
///
/// The sum is one word for all CPUs: each addition takes its line from whoever wrote last.
#[inline(always)]
pub fn update_tg_load_avg<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) {
    if cfs != CfsId::ROOT {
        publish_load_avg(cx, rq.cpu, &mut rq.cfs[cfs.idx()]);
    }
}

#[inline(always)]
fn publish_load_avg<H: Host>(cx: &mut Cx<H>, cpu: Cpu, queue: &mut CfsRq) {
    let (tg, object) = (queue.tg, queue.object(cpu));
    let rule = cx.features().tg_load_avg;
    let mut now = 0;
    let mut reads = q::TG | q::TG_CONTRIB | q::AVG;
    if rule.reads_clock() {
        now = cx.host.clock();
        if !rule.is_due(now, queue.last_update_tg_load_avg) {
            cx.touch(object, q::TG | q::LAST_UPDATE_TG, Access::Read);
            return;
        }
        reads = reads | q::LAST_UPDATE_TG;
    }
    cx.touch(object, reads, Access::Read);
    let (load, contrib) = (queue.avg.load_avg, queue.tg_load_avg_contrib);
    if !rule.is_worth(load, contrib) {
        return;
    }
    let sys = cx.sys;
    sys.tg[tg.idx()].add_load_avg(load.wrapping_sub(contrib) as i64, cx.host);
    queue.tg_load_avg_contrib = load;
    let mut written = q::TG_CONTRIB;
    if rule.reads_clock() {
        queue.last_update_tg_load_avg = now;
        written = written | q::LAST_UPDATE_TG;
    }
    cx.touch(object, written, Access::Write);
}

/// The queue was aged while empty: tells those who leave it asleep how far its clock is behind
/// (`update_idle_cfs_rq_clock_pelt`).
pub(crate) fn update_idle_cfs_rq_clock_pelt<H: Host>(cx: &mut Cx<H>, rq: &Rq, cfs: CfsId) {
    let queue = &rq.cfs[cfs.idx()];
    let throttled = if queue.pelt_clock_throttled {
        u64::MAX
    } else {
        queue.throttled_clock_pelt_time
    };
    let object = queue.object(rq.cpu);
    queue
        .words
        .set_throttled_pelt_idle(object, throttled, cx.host);
}

/// What is needed of the queue below an entity.
struct Below {
    avg: SchedAvg,
    /// Unscaled weight.
    weight: u64,
}

/// The entity's utilisation becomes the queue's; the queue above changes by the difference.
fn update_tg_cfs_util(queue: &mut SchedAvg, se: &mut SchedAvg, below: &SchedAvg) {
    let delta_avg = below.util_avg as i64 - se.util_avg as i64;
    if delta_avg == 0 {
        return;
    }
    se.util_avg = below.util_avg;
    let new_sum = (se.util_avg * get_pelt_divider(queue)) as u32;
    let delta_sum = i64::from(new_sum) - i64::from(se.util_sum);
    se.util_sum = new_sum;
    queue.util_avg = add_positive(queue.util_avg, delta_avg);
    queue.util_sum = add_positive(u64::from(queue.util_sum), delta_sum) as u32;
    queue.util_sum = at_least(u64::from(queue.util_sum), queue.util_avg) as u32;
}

/// The same for the runnable part, whose new sum has as many bits as `width` says.
fn update_tg_cfs_runnable(
    width: RunnableSum,
    queue: &mut SchedAvg,
    se: &mut SchedAvg,
    below: &SchedAvg,
) {
    let delta_avg = below.runnable_avg as i64 - se.runnable_avg as i64;
    if delta_avg == 0 {
        return;
    }
    se.runnable_avg = below.runnable_avg;
    let new_sum = width.kept(se.runnable_avg * get_pelt_divider(queue));
    let delta_sum = new_sum.wrapping_sub(se.runnable_sum) as i64;
    se.runnable_sum = new_sum;
    queue.runnable_avg = add_positive(queue.runnable_avg, delta_avg);
    queue.runnable_sum = add_positive(queue.runnable_sum, delta_sum);
    queue.runnable_sum = at_least(queue.runnable_sum, queue.runnable_avg);
}

/// The entity's load after the queue below changed by `change` units of runnable time.
///
/// # Derivation
///
/// Let `r` be the decayed time in which the entity was runnable (its `load_sum`), `M` the most it
/// can be (the divider). Entities `i` below, of weights `w_i`, were runnable for `r_i`.
///
/// ```text
///     max r_i  <=  r  <=  min(sum r_i, M)
/// ```
///
/// - Somebody came (`change > 0`): assume that its time did not overlap: `r + change`, at most
///   `M`.
/// - Somebody left: the queue has `sum w_i r_i` and `sum w_i` of those that are queued; assume
///   that all were runnable for the same time, then it is the quotient; but leaving cannot make
///   `r` greater.
/// - It was runnable at least while it was running, and that is known.
fn update_tg_cfs_load(queue: &mut SchedAvg, se: &mut SchedEntity, below: &Below, change: i64) {
    if change == 0 {
        return;
    }
    let weight = se_weight(se);
    let avg = &mut se.avg;
    let divider = get_pelt_divider(queue);
    let estimate = if change >= 0 {
        (avg.load_sum as i64)
            .wrapping_add(change)
            .min(divider as i64) as u64
    } else {
        let mean = below.avg.load_sum.checked_div(below.weight).unwrap_or(0);
        avg.load_sum.min(mean)
    };
    let running_sum = u64::from(avg.util_sum) >> CAPACITY_SHIFT;
    let runnable_sum = estimate.max(running_sum);
    let load_sum = weight * runnable_sum;
    let load_avg = load_sum / divider;
    let delta_avg = load_avg as i64 - avg.load_avg as i64;
    if delta_avg == 0 {
        return;
    }
    let delta_sum = load_sum as i64 - (weight * avg.load_sum) as i64;
    avg.load_sum = runnable_sum;
    avg.load_avg = load_avg;
    queue.load_avg = add_positive(queue.load_avg, delta_avg);
    queue.load_sum = add_positive(queue.load_sum, delta_sum);
    queue.load_sum = at_least(queue.load_sum, queue.load_avg);
}

/// `value + delta`, not below zero.
#[inline]
fn add_positive(value: u64, delta: i64) -> u64 {
    if delta < 0 {
        value.saturating_sub(delta.unsigned_abs())
    } else {
        value.wrapping_add(delta as u64)
    }
}

/// Ages `cfs` to its own clock (blocked update): see [`super::load::update_cfs_rq_load_avg`].
pub(crate) fn age_queue<H: Host>(cx: &mut Cx<H>, rq: &mut Rq, cfs: CfsId) -> bool {
    let now = cfs_rq_clock_pelt(rq, cfs);
    super::load::update_cfs_rq_load_avg(cx, rq, now, cfs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::group::ensure_cfs;
    use crate::place::Kind;
    use crate::policy::{Features, TgLoadAvg};
    use crate::testing::Bench;
    use crate::value::TgId;

    fn publish(bench: &mut Bench, load: u64) -> (i64, u32, usize) {
        let (reads, touches) = (bench.host.clock_reads, bench.host.touches.len());
        bench.on(0, |cx, rq| {
            let cfs = ensure_cfs(cx, rq, TgId(1));
            rq.cfs[cfs.idx()].avg.load_avg = load;
            update_tg_load_avg(cx, rq, cfs);
        });
        let published = bench.sys.tg[1].peek_load_avg();
        let shared = bench.host.touches[touches..].iter();
        let shared = shared.filter(|(o, _, access)| o.kind == Kind::Tg && *access == Access::Rmw);
        // One read of the clock is for the run queue.
        (
            published,
            bench.host.clock_reads - reads - 1,
            shared.count(),
        )
    }

    fn bench(tg_load_avg: TgLoadAvg) -> Bench {
        let features = Features {
            tg_load_avg,
            ..Features::default()
        };
        let mut bench = Bench::new(1, features);
        let tg = bench.sys.add_group(TgId::ROOT);
        bench.sys.open_group(tg);
        bench
    }

    #[test]
    fn publishes_every_change_beyond_a_64th() {
        let mut bench = bench(TgLoadAvg::ON_CHANGE);
        assert_eq!(publish(&mut bench, 640), (640, 0, 1));
        assert_eq!(publish(&mut bench, 650), (640, 0, 0));
        assert_eq!(publish(&mut bench, 651), (651, 0, 1));
        assert_eq!(publish(&mut bench, 0), (0, 0, 1));
    }

    #[test]
    fn publishes_at_most_once_a_millisecond() {
        let mut bench = bench(TgLoadAvg::RATE_LIMITED);
        assert_eq!(publish(&mut bench, 640), (640, 1, 1));
        bench.host.now += 999_999;
        assert_eq!(publish(&mut bench, 700), (640, 1, 0));
        bench.host.now += 1;
        assert_eq!(publish(&mut bench, 700), (700, 1, 1));
    }

    #[test]
    fn the_runnable_sum_stays_between_its_bounds() {
        let mut queue = SchedAvg::default();
        let divider = get_pelt_divider(&queue);
        let mut se = SchedEntity::default();
        se.load.set(1 << 20);
        let below = Below {
            avg: SchedAvg {
                load_sum: 3000 * 1024,
                ..SchedAvg::default()
            },
            weight: 1024,
        };
        let mut change = |se: &mut SchedEntity, by| {
            update_tg_cfs_load(&mut queue, se, &below, by);
            (se.avg.load_sum, queue.load_avg)
        };
        assert_eq!(change(&mut se, 0), (0, 0));
        assert_eq!(change(&mut se, 5000), (5000, 5000 * 1024 / divider));
        assert_eq!(change(&mut se, i64::MAX / 2), (divider, 1024));
        // Somebody left: what is below was runnable for 3000 on average.
        assert_eq!(change(&mut se, -1), (3000, 3000 * 1024 / divider));
        // But it ran for 4000.
        se.avg.util_sum = 4000 << CAPACITY_SHIFT;
        assert_eq!(change(&mut se, -1), (4000, 4000 * 1024 / divider));
    }
}
