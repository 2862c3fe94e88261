//! One transition: from a recorded state, over what happened in between, to the next.
//!
//! The events tell the time of a change to some us; load tracking counts units of 1024 ns of its
//! own clock. So the instant of each change between two records is looked for among the units
//! around its event. With the instants, sums of up to 2^36 must come out to the last bit.

use std::ops::RangeInclusive;

use fairground::fair::load;
use fairground::math::pelt::{
    SchedAvg, get_pelt_divider, update_load_avg_blocked_se, update_load_avg_cfs_rq,
    update_load_avg_se,
};
use fairground::math::weight::LoadWeight;
use fairground::task::SchedEntity;

use super::records::Kind;

/// What an entity or queue does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doing {
    /// 1 for an entity that is queued; unscaled weight of a queue.
    pub load: u64,
    /// It, or somebody in it, has the CPU.
    pub running: bool,
}

/// A stretch of a transition.
#[derive(Clone, Debug)]
pub struct Stretch {
    /// Units after the first record at which it may begin; of the first stretch 0.
    pub begins: RangeInclusive<i64>,
    /// What may be done in it; nothing: what was done before goes on after an update.
    pub options: Vec<Doing>,
    /// Whether it may be that nothing was updated at its beginning.
    pub optional: bool,
    /// The entity of a group in the queue that takes a new weight at its beginning.
    pub reweight: Option<Reweight>,
}

/// An entity in a queue, at the instant at which its weight changes.
#[derive(Clone, Copy, Debug)]
pub struct Reweight {
    /// Its averages.
    pub avg: SchedAvg,
    /// Scaled weight before.
    pub old: u64,
    /// Scaled weight after.
    pub new: u64,
}

impl Reweight {
    /// What becomes of the queue, by the engine's own functions.
    pub fn apply(&self, mut queue: SchedAvg) -> SchedAvg {
        let mut se = SchedEntity {
            avg: self.avg,
            load: LoadWeight::new(self.old),
            ..SchedEntity::default()
        };
        load::dequeue_load_avg(&mut queue, &se);
        se.load = LoadWeight::new(self.new);
        se.avg.load_avg = (self.new >> 10) * se.avg.load_sum / get_pelt_divider(&se.avg);
        load::enqueue_load_avg(&mut queue, &se);
        queue
    }
}

impl Stretch {
    /// An update, or none, that changes nothing.
    pub fn keep(begins: RangeInclusive<i64>) -> Self {
        Self {
            begins,
            options: Vec::new(),
            optional: true,
            reweight: None,
        }
    }
}

/// How well a transition comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// To the last bit.
    Equal,
    /// Within one unit of 1024 ns: an update inside a period, which leaves no record, rounds.
    Unit,
    /// Not.
    No,
}

/// A transition between two records.
pub struct Transition<'a> {
    /// Whose.
    pub kind: Kind,
    /// Unscaled weight of the entity.
    pub weight: u64,
    /// State that the first record left.
    pub from: SchedAvg,
    /// State of the second.
    pub to: SchedAvg,
    /// What happened in between, in order.
    pub stretches: &'a [Stretch],
}

impl Transition<'_> {
    /// Whether the engine's functions lead from the first state to the second.
    #[must_use]
    pub fn fit(&self) -> Fit {
        let mut best = Fit::No;
        for doing in self.stretches.first().into_iter().flat_map(|s| &s.options) {
            self.search(self.from, *doing, 1, &mut best);
        }
        best
    }

    /// From `now` on `doing`; the stretch `index` is next.
    fn search(&self, now: SchedAvg, doing: Doing, index: usize, best: &mut Fit) {
        let Some(next) = self.stretches.get(index) else {
            let end = self.update(now, self.to.last_update_time, doing);
            *best = self.same(&end, doing).min(*best);
            return;
        };
        if next.optional {
            self.search(now, doing, index + 1, best);
        }
        for unit in next.begins.clone() {
            let at = self.from.last_update_time.wrapping_add_signed(unit << 10);
            if *best == Fit::Equal || at > self.to.last_update_time {
                return;
            }
            if at >= now.last_update_time {
                let then = self.update(now, at, doing);
                let then = next.reweight.map_or(then, |r| r.apply(then));
                if next.options.is_empty() || next.reweight.is_some() {
                    self.search(then, doing, index + 1, best);
                }
                for option in &next.options {
                    self.search(then, *option, index + 1, best);
                }
            }
        }
    }

    fn update(&self, mut avg: SchedAvg, now: u64, doing: Doing) -> SchedAvg {
        let (load, running) = (doing.load, doing.running);
        match self.kind {
            Kind::Queue => update_load_avg_cfs_rq(now, &mut avg, load, 0, running),
            _ if load == 0 => update_load_avg_blocked_se(now, &mut avg, self.weight),
            _ => update_load_avg_se(now, &mut avg, true, 0, running, self.weight),
        };
        avg
    }

    /// All that is recorded. The number of runnable tasks is not.
    fn same(&self, avg: &SchedAvg, doing: Doing) -> Fit {
        let to = &self.to;
        let near = |a: u64, b: u64, least: u64| a.abs_diff(b) <= least;
        if (avg.last_update_time, avg.period_contrib) != (to.last_update_time, to.period_contrib) {
            Fit::No
        } else if (avg.load_sum, avg.util_sum) == (to.load_sum, to.util_sum)
            && (avg.load_avg, avg.util_avg) == (to.load_avg, to.util_avg)
        {
            Fit::Equal
        } else if near(avg.load_sum, to.load_sum, doing.load.max(1))
            && near(avg.util_sum.into(), to.util_sum.into(), 1024)
            && near(avg.load_avg, to.load_avg, 1)
            && near(avg.util_avg, to.util_avg, 1)
        {
            Fit::Unit
        } else {
            Fit::No
        }
    }
}

/// More changes than this between two records are not looked for: too many instants would do.
pub const LONGEST: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_is_seen() {
        let doing = |load, running| vec![Doing { load, running }];
        let from = SchedAvg {
            load_sum: 40_000,
            util_sum: 20_000_000,
            ..SchedAvg::default()
        };
        let mut to = from;
        update_load_avg_se(300 << 10, &mut to, true, 0, true, 1024);
        update_load_avg_se(5000 << 10, &mut to, true, 0, false, 1024);
        let stretch = |begins, running| Stretch {
            begins,
            options: doing(1, running),
            optional: false,
            reweight: None,
        };
        let stretches = [stretch(0..=0, true), stretch(297..=303, false)];
        let mut t = Transition {
            kind: Kind::Task,
            weight: 1024,
            from,
            to,
            stretches: &stretches,
        };
        assert_eq!(t.fit(), Fit::Equal);
        t.to.load_sum += 1;
        assert_eq!(t.fit(), Fit::Unit);
        t.to.load_sum += 1;
        assert_eq!(t.fit(), Fit::No);
        t.to.load_sum -= 2;
        t.to.util_avg += 2;
        assert_eq!(t.fit(), Fit::No);
    }
}
