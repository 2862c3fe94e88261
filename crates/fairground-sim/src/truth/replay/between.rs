//! What was done between two records of the same owner, as far as the events say.

use std::collections::BTreeSet;

use super::passes;
use super::records::{Kind, Record};
use super::reweight::reweights;
use super::script::Moment;
use super::solve::{Doing, LONGEST, Stretch};
use super::{BEFORE_NS, NEAR_NS, Replay, below, weights};

/// Clocks that are further from an event than this are not its CPU's.
const NEAR_UNITS: i64 = 16;

impl Replay<'_> {
    pub(super) fn tick_ns(&self) -> i64 {
        self.case.machine.tick_ns().cast_signed()
    }

    /// Whether an update that left no record may have rounded the sums: in the period that `from`
    /// left open there is an event of the CPU, or a tick.
    pub(super) fn may_round(&self, from: &Record, to: &Record) -> bool {
        let left_ns = (1024 - i64::from(from.avg.period_contrib)) << 10;
        let open = from.t_ns - BEFORE_NS..(from.t_ns + left_ns + NEAR_NS).min(to.t_ns);
        let tick_ns = self.tick_ns();
        let tick = (open.start + tick_ns - 1).div_euclid(tick_ns) * tick_ns;
        let moments = self.script.moments.get(&to.cpu);
        let mut events = moments.into_iter().flatten().map(|m| m.t_ns);
        open.contains(&tick) || events.any(|t| open.contains(&t))
    }

    /// What the events say was done between two records.
    pub(super) fn stretches(&self, from: &Record, to: &Record) -> Vec<Stretch> {
        let mut out: Vec<Stretch> = Vec::new();
        let mut first = vec![Doing {
            load: 0,
            running: false,
        }];
        // Who of those inside is queued, and who has the CPU.
        let mut before = (BTreeSet::new(), 0);
        let moments = self.script.moments.get(&to.cpu);
        for moment in moments.into_iter().flatten() {
            let queued = moment
                .queued
                .iter()
                .copied()
                .filter(|pid| self.inside(*pid, to));
            let curr = if self.inside(moment.curr, to) {
                moment.curr
            } else {
                0
            };
            let now = (queued.collect::<BTreeSet<u32>>(), curr);
            let options = || self.options(from, to, moment, &now);
            if moment.t_ns <= from.t_ns - BEFORE_NS {
                first = options();
            } else if moment.t_ns < to.t_ns {
                // A delayed dequeue ends with a pick, which may be that of others.
                let pick = moment.switch && now.0.is_empty() && (from.delayed || to.delayed);
                let options = options();
                let same = options == *out.last().map_or(&first, |s| &s.options);
                if now != before || pick || !same {
                    let begins = *self.units(from, to, moment.t_ns).start()
                        ..=*self.units(from, to, moment.latest_ns).end();
                    let optional = same || pick;
                    out.push(Stretch {
                        begins,
                        options,
                        optional,
                        reweight: None,
                    });
                }
            }
            before = now;
        }
        // What changes nothing matters in the first period only: beyond, it would be a record.
        let left = 1024 - i64::from(from.avg.period_contrib);
        out.retain(|s| !s.optional || from.delayed || to.delayed || *s.begins.start() < left);
        self.delayed(from, to, &mut out);
        let first = Stretch {
            begins: 0..=0,
            options: first,
            optional: false,
            reweight: None,
        };
        std::iter::once(first).chain(out).collect()
    }

    /// Updates that are no event. A tick in the open period; and what lines of the queues and
    /// entities below say: an update goes up to the root, so theirs was one of this owner too, at
    /// the same clock, and a queue changes where the entity of a group in it takes a new weight.
    pub(super) fn unreported(&self, all: &[Record], from: &Record, to: &Record) -> Vec<Stretch> {
        let tick = passes::tick(from, self.tick_ns()).filter(|tick| *tick > from.t_ns);
        let tick = tick.map(|tick| Stretch::keep(self.units(from, to, tick)));
        let left = 1024 - i64::from(from.avg.period_contrib);
        let unit = |r: &Record| {
            let after = r
                .avg
                .last_update_time
                .wrapping_sub(from.avg.last_update_time);
            after.cast_signed() >> 10
        };
        let inside = |unit: i64| unit > 0 && unit < left && to.kind != Kind::Task;
        let end = unit(to);
        let earlier = |unit: i64| unit > 0 && unit < end;
        let lines = from.line - 1..to.line - 2;
        let inner = all[lines.clone()].iter().filter(|r| {
            r.cpu == to.cpu && r.kind != Kind::Task && r.id != to.id && below(&r.id, &to.id)
        });
        let mut units: Vec<i64> = inner.map(unit).filter(|u| inside(*u)).collect();
        units.dedup();
        let units = units.into_iter().map(|u| Stretch::keep(u..=u));
        let mut out: Vec<Stretch> = tick.into_iter().chain(units).collect();
        if to.kind == Kind::Queue {
            let children = reweights(all, from, lines).filter(|(old, _)| earlier(unit(old)));
            out.extend(children.map(|(old, reweight)| {
                let changed = reweight.old != reweight.new;
                // It comes or goes with it, mostly.
                let without = from.weight - old.weight.min(from.weight);
                let weights = [from.weight, to.weight, without].map(|w| Doing {
                    load: w >> 10,
                    running: w > 0,
                });
                Stretch {
                    options: weights.to_vec(),
                    reweight: changed.then_some(reweight),
                    ..Stretch::keep(unit(old)..=unit(old))
                }
            }));
        }
        out
    }

    /// A task that slept may stay queued, until it is picked: at a switch, or at a tick that leaves
    /// the CPU to the same task, which is no event.
    fn delayed(&self, from: &Record, to: &Record, out: &mut Vec<Stretch>) {
        let [asleep] = &mut out[..] else {
            return;
        };
        let off = Doing {
            load: 0,
            running: false,
        };
        if to.kind != Kind::Task || to.on_rq || asleep.options != [off] {
            return;
        }
        asleep.options.push(Doing { load: 1, ..off });
        let began = asleep.begins.clone();
        let tick_ns = self.tick_ns();
        let first = (from.t_ns.div_euclid(tick_ns) + 1) * tick_ns;
        for tick in (first..to.t_ns).step_by(tick_ns as usize).take(LONGEST - 2) {
            let begins =
                *self.units(from, to, tick).start()..=*self.units(from, to, tick + NEAR_NS).end();
            if begins.start() > began.end() {
                out.push(Stretch {
                    begins,
                    options: vec![off],
                    optional: true,
                    reweight: None,
                });
            }
        }
    }

    /// The units after `from` around an event. Clock and wall differ by what interrupts took; lines
    /// of the CPU just before the event say which clock there was.
    fn units(&self, from: &Record, to: &Record, t_ns: i64) -> std::ops::RangeInclusive<i64> {
        let after = |clock: u64| clock.wrapping_sub(from.avg.last_update_time).cast_signed();
        let since = |r: &Record| t_ns - r.t_ns + after(r.avg.last_update_time);
        let (a, b) = (since(from), since(to));
        let mut least = (a.min(b) - 9_000) >> 10;
        let mut most = (a.max(b) + 2_500) >> 10;
        let clocks = self.clocks.get(&to.cpu).map_or(&[][..], Vec::as_slice);
        // The first line with the clock of `from` is nearer to it than `from`.
        let same = clocks
            .iter()
            .find(|(_, clock)| *clock == from.avg.last_update_time);
        most = most.max(same.map_or(0, |(t, _)| (t_ns - t + 2_500) >> 10));
        let near = clocks.partition_point(|(t, _)| *t < t_ns - NEAR_NS);
        for (t, clock) in &clocks[near..] {
            let unit = after(*clock) >> 10;
            // A group that was throttled has a clock of its own.
            if *t > t_ns || !(least - NEAR_UNITS..most + NEAR_UNITS).contains(&unit) {
                continue;
            }
            least = least.min(unit);
            most = most.max(unit);
        }
        least.max(0)..=most.max(0)
    }

    fn options(
        &self,
        from: &Record,
        to: &Record,
        moment: &Moment,
        inside: &(BTreeSet<u32>, u32),
    ) -> Vec<Doing> {
        let (queued, running) = (!inside.0.is_empty(), inside.1 != 0);
        let of = |load| Doing {
            load,
            running: running && load > 0,
        };
        if to.kind != Kind::Queue {
            let mut options = vec![of(u64::from(queued))];
            // A task in delayed dequeue is queued though asleep, one of a throttled group is not
            // though runnable; of a group's entity, its own record says it.
            let late = from.delayed || to.delayed || to.kind == Kind::Group;
            if !queued && late {
                options.push(of(1));
            }
            if queued && to.kind == Kind::Group && !(from.on_rq && to.on_rq) {
                options.push(of(0));
            }
            return options;
        }
        let mut weights: BTreeSet<u64> = [from.weight, to.weight].map(|w| w >> 10).into();
        let mine = self.case.tasks.iter().filter(|t| t.cgroup == to.id);
        let here = mine.filter(|t| {
            let mut queued = moment.queued.iter().filter_map(|pid| self.names.get(pid));
            queued.any(|name| *name == t.name)
        });
        weights.extend(weights::sums(here));
        if !queued {
            weights.insert(0);
        }
        weights.into_iter().map(of).collect()
    }
}
