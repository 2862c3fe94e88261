//! Updates that leave neither an event nor a line: the balancing softirq after a tick.
//!
//! Load balancing of a CPU begins with an update of all its queues and their entities
//! (`sched_balance_update_blocked_averages`). It comes some us after the tick's own update, so
//! mostly inside a period, and leaves no line; but in which pieces a period is counted decides how
//! the next line is rounded. It is one instant for all queues of the CPU. So it is looked for
//! where a line does not come out, and taken only if one and the same instant makes every line
//! come out that has it in its open period, those that were equal without it too.

use std::collections::{BTreeMap, BTreeSet};

use fairground::math::pelt::{PERIOD, SchedAvg};

use super::records::{Kind, Record};
use super::solve::{Fit, Stretch, Transition};

/// The tick's update and the softirq after it are done this long after the tick.
const PASS_NS: i64 = 50_000;

/// The way from a record to the next of its owner.
pub(super) struct Leg<'a> {
    pub from: &'a Record,
    pub to: &'a Record,
    /// What the first record may have left.
    pub starts: Vec<SchedAvg>,
    /// What may have been done.
    pub stretches: Vec<Stretch>,
    /// Whether an update without a line may have rounded.
    pub round: bool,
    /// How it comes out.
    pub fit: Fit,
}

impl Leg<'_> {
    /// How it comes out if that was done.
    pub fn fit_with(&self, stretches: &[Stretch]) -> Fit {
        let fit = |start: &SchedAvg| {
            let transition = Transition {
                kind: self.to.kind,
                weight: self.to.weight >> 10,
                from: *start,
                to: self.to.avg,
                stretches,
            };
            transition.fit()
        };
        self.starts.iter().map(fit).min().unwrap_or(Fit::No)
    }

    /// Whether it comes out with an update of all queues at `clock` (1024 ns) of load tracking.
    fn with_pass(&self, clock: i64) -> bool {
        let unit = clock - units(self.from);
        if unit <= 0 || clock >= units(self.to) {
            // It was over when the first line came, or is the second one.
            return self.fit == Fit::Equal;
        }
        let left = PERIOD.cast_signed() - i64::from(self.from.avg.period_contrib);
        // Beyond its period it would be a line.
        if unit >= left {
            return false;
        }
        let pass = Stretch {
            optional: false,
            ..Stretch::keep(unit..=unit)
        };
        (1..=self.stretches.len()).any(|place| {
            let mut stretches = self.stretches.clone();
            stretches.insert(place, pass.clone());
            self.fit_with(&stretches) == Fit::Equal
        })
    }
}

/// Its clock in units of load tracking.
fn units(record: &Record) -> i64 {
    (record.avg.last_update_time >> 10).cast_signed()
}

/// The tick just before a record, or in the period that it left open.
pub(super) fn tick(from: &Record, tick_ns: i64) -> Option<i64> {
    let left_ns = (PERIOD.cast_signed() - i64::from(from.avg.period_contrib)) << 10;
    let before = from.t_ns.div_euclid(tick_ns) * tick_ns;
    if from.t_ns - before < PASS_NS {
        return Some(before);
    }
    Some(before + tick_ns).filter(|next| *next < from.t_ns + left_ns)
}

/// Looks for the passes that make legs come out.
pub(super) fn settle(legs: &mut [Leg], tick_ns: i64) {
    // Of a CPU, a tick, and a clock: a group that was throttled has one of its own.
    let mut together: BTreeMap<(u32, i64, i64), Vec<usize>> = BTreeMap::new();
    for (i, leg) in legs.iter().enumerate() {
        let tick = tick(leg.from, tick_ns).filter(|_| leg.to.kind != Kind::Task);
        if let Some(tick) = tick {
            let clock = (units(leg.from) - (leg.from.t_ns >> 10)) >> 8;
            together
                .entry((leg.to.cpu, tick, clock))
                .or_default()
                .push(i);
        }
    }
    for ((_, tick, _), members) in together {
        if members.iter().all(|i| legs[*i].fit == Fit::Equal) {
            continue;
        }
        let mut common: Option<BTreeSet<i64>> = None;
        let mut mended = Vec::new();
        for i in members {
            let leg = &legs[i];
            let first = units(leg.from) + ((tick - leg.from.t_ns) >> 10);
            let instants = first - 8..first + (PASS_NS >> 10);
            let good: BTreeSet<i64> = instants.filter(|at| leg.with_pass(*at)).collect();
            if good.is_empty() && leg.fit != Fit::Equal {
                // Something else happened to it.
                continue;
            }
            mended.push(i);
            common = Some(match common {
                Some(all) => &all & &good,
                None => good,
            });
        }
        if common.is_some_and(|all| !all.is_empty()) {
            for i in mended {
                legs[i].fit = Fit::Equal;
            }
        }
    }
}
