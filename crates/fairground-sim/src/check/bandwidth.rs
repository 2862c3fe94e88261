//! Verifies bandwidth control: no more runtime exists than quota, burst and one slice for each
//! queue; the list of throttled queues holds just these; each queue counts the throttled ones at
//! and above it; tasks in limbo are those that are marked; and while somebody is throttled, the
//! timer that ends it is set.

use fairground::host::Timer;
use fairground::rq::Rq;
use fairground::shared::BANDWIDTH_SLICE;
use fairground::value::{CfsId, TgId};

use super::{Verdict, holds};
use crate::machine::Sim;

const RUNTIME: &str = "no more runtime than quota, burst and slices";
const THROTTLED: &str = "lists and counts of throttled queues agree";
const LIMBO: &str = "throttled tasks wait in the limbo of their queue";
const TIMER: &str = "who is throttled has a timer to wait for";

pub(super) fn check_pools(sim: &Sim<'_>) -> Verdict {
    for (id, group) in sim.sys.tg.iter().enumerate() {
        let tg = TgId(id as u32);
        let queues = || {
            let queue = |rq: &'_ Rq| rq.cfs_of(tg).map(|c| (rq.cpu, c));
            sim.rqs.iter().filter_map(queue)
        };
        let of = |(cpu, cfs): (fairground::value::Cpu, CfsId)| &sim.rqs[cpu.idx()].cfs[cfs.idx()];
        let mut listed = Vec::new();
        let mut at = group.bandwidth.peek_first_throttled();
        while let Some(cpu) = at {
            listed.push(cpu);
            holds!(
                THROTTLED,
                listed.len() <= sim.rqs.len(),
                "group {id}: a ring"
            );
            at = group.next_throttled(Some(cpu));
        }
        listed.sort_unstable_by_key(|c| c.0);
        let marked: Vec<_> = queues().filter(|q| of(*q).throttled).map(|q| q.0).collect();
        holds!(
            THROTTLED,
            listed == marked,
            "group {id}: {listed:?}, not {marked:?}"
        );
        let Some((quota, burst)) = group.bandwidth.peek_limit() else {
            holds!(THROTTLED, marked.is_empty(), "group {id} has no limit");
            continue;
        };
        let local: i64 = queues().map(|q| of(q).runtime_remaining.max(0)).sum();
        let pool = group.bandwidth.peek_runtime();
        let most = quota + burst + queues().count() as u64 * (BANDWIDTH_SLICE + 1);
        let all = pool + local as u64;
        holds!(
            RUNTIME,
            all <= most,
            "group {id}: {pool} + {local} of {most}"
        );
        if !marked.is_empty() {
            let set = sim.timers.contains_key(&Timer::Period(tg));
            let active = group.bandwidth.peek_period_active();
            holds!(
                TIMER,
                set && active,
                "group {id}: active {active}, set {set}"
            );
        }
    }
    Ok(())
}

pub(super) fn check_queues(rq: &Rq) -> Verdict {
    let mut limbo = 0;
    for queue in &rq.cfs {
        let of = (rq.cpu.0, queue.tg.0);
        let (mut above, mut at) = (0, queue);
        loop {
            above += u32::from(at.throttled);
            if at.se.is_none() {
                break;
            }
            at = &rq.cfs[at.parent.idx()];
        }
        let count = queue.throttle_count;
        holds!(
            THROTTLED,
            count == above,
            "{of:?}: counts {count} of {above}"
        );
        let mut next = queue.limbo;
        while let Some(slot) = next {
            limbo += 1;
            holds!(LIMBO, limbo <= rq.body.len(), "{of:?}: a ring");
            let Some(body) = rq.body[slot.idx()].as_ref() else {
                return Err((LIMBO, format!("{of:?}: slot {} is free", slot.0)));
            };
            let se = &rq.se[slot.idx()];
            let waits = body.throttled && !se.on_rq && rq.cfs[se.cfs_rq.idx()].tg == queue.tg;
            holds!(
                LIMBO,
                waits && above > 0,
                "{of:?}: task {} in it",
                body.id.0
            );
            next = body.limbo_next;
        }
    }
    let marked = rq.body.iter().flatten().filter(|b| b.throttled).count();
    holds!(
        LIMBO,
        limbo == marked,
        "CPU {}: {limbo} of {marked}",
        rq.cpu.0
    );
    Ok(())
}
