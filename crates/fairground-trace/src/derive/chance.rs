//! Who of the threads that were current at the wake-ups of a sleeper has woken it, and who was met
//! by an interrupt that did.
//!
//! An interrupt meets whoever is there: idle CPUs as often as they are idle, each thread in
//! proportion to its time on the CPUs where the interrupts are. So
//!
//! ```text
//!   rate      = wake-ups on idle CPUs / idle time       nobody wakes from there but an interrupt
//!   by chance = rate * the thread's time
//! ```
//!
//! and a thread that was current more than twice as often does wake. Where CPUs are never idle the
//! rate is what two fifths of the time is below: threads that never were current at a wake-up of
//! this one count with theirs, so few threads that wake it do not set the rate. Who computes most
//! of the time by itself would; but who wakes another does so at the same point of what it does, as
//! just before it sleeps, and an interrupt meets it anywhere.

use rustc_hash::FxHashMap;

use super::log::{Logs, Step};
use crate::walk::ThreadId;

/// Fewer wake-ups say nothing.
const FEW: usize = 8;
/// Idle CPUs say something if so many wake-ups would meet one by chance.
const FEW_IDLE: f64 = 4.0;
/// Fewer by one thread are taken together.
const FEW_BY_ONE: usize = 4;
/// Who is current so many times as often as by chance does wake, if that is so many standard
/// deviations more.
const TIMES: f64 = 2.0;
const DEVIATIONS: f64 = 3.0;
/// So many different ones that were current a few times each were met by chance, if no CPU is idle.
const MANY: usize = 4;
/// The share of the time that has a lower rate than chance has, where no CPU is idle.
const BELOW: f64 = 0.4;
/// Places further than this from being spread evenly are not met by chance; by chance it is seldom
/// more than the second over the root of their number.
const SPREAD: f64 = 0.3;
const SPREAD_OF_FEW: f64 = 1.4;

/// Where threads that seem to wake others are in their computing, from one sleep of theirs to the
/// next, as a share of that; by who is woken and who seems to wake.
#[derive(Clone, Debug, Default)]
pub struct Places(FxHashMap<(ThreadId, ThreadId), Vec<f64>>);

impl Places {
    /// Of all threads.
    #[must_use]
    pub fn of(logs: &Logs) -> Self {
        let mut places = Self::default();
        let mut pending: Vec<(ThreadId, u64)> = Vec::new();
        for (waker, log) in logs.logs.iter().enumerate() {
            let mut ran = 0;
            for step in log.steps.iter().map(Some).chain([None]) {
                match step {
                    Some(Step::Run(ns)) => ran += ns,
                    Some(Step::Wake {
                        thread,
                        perhaps: true,
                        ..
                    }) => pending.push((*thread, ran)),
                    Some(Step::Block(_)) | None => {
                        let all = std::mem::take(&mut ran).max(1) as f64;
                        for (thread, at) in pending.drain(..) {
                            let of_pair = places.0.entry((thread, waker)).or_default();
                            of_pair.push(at as f64 / all);
                        }
                    }
                    Some(_) => {}
                }
            }
        }
        places
    }

    /// Whether they are too far from being spread evenly for chance (by Kolmogorov and Smirnov's
    /// measure).
    fn are_uneven(&self, thread: ThreadId, wakers: impl Iterator<Item = ThreadId>) -> bool {
        let of = wakers.filter_map(|waker| self.0.get(&(thread, waker)));
        let mut sorted: Vec<f64> = of.flatten().copied().collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len().max(1) as f64;
        let apart = sorted.iter().enumerate().map(|(i, place)| {
            let (below, up_to) = (i as f64 / n, (i + 1) as f64 / n);
            (place - below).abs().max((place - up_to).abs())
        });
        apart.fold(0.0, f64::max) > SPREAD.max(SPREAD_OF_FEW / n.sqrt())
    }
}

/// Of those that were current at wake-ups of `thread`, with how often each was, and how often
/// nobody was: who does wake it. `None`: too few say anything.
#[must_use]
pub fn wakers(
    logs: &Logs,
    thread: ThreadId,
    (current, idle): (&FxHashMap<ThreadId, usize>, usize),
    places: &Places,
) -> Option<Vec<ThreadId>> {
    let all = current.values().sum::<usize>() + idle;
    if all < FEW {
        return None;
    }
    let of = logs.exposure(thread);
    let mut seen: Vec<(ThreadId, f64, f64)> = current
        .iter()
        .map(|(waker, n)| (*waker, *n as f64, of.share(*waker)))
        .collect();
    // Rarest first, for its time.
    seen.sort_by(|a, b| (a.1 * b.2).total_cmp(&(b.1 * a.2)).then(a.0.cmp(&b.0)));
    let by_idle = all as f64 * of.idle() >= FEW_IDLE;
    let rate = match by_idle {
        true => idle as f64 / of.idle(),
        false => rate_below(&seen, of.share(thread)),
    };
    let is_few = |s: &&(ThreadId, f64, f64)| (s.1 as usize) < FEW_BY_ONE;
    let few = || seen.iter().filter(is_few);
    let few_wake = match by_idle {
        true => {
            let share: f64 = few().map(|s| s.2).sum();
            is_more(few().map(|s| s.1).sum(), rate * share)
        }
        false => few().count() < MANY || places.are_uneven(thread, few().map(|s| s.0)),
    };
    let wakes = |s: &&(ThreadId, f64, f64)| {
        if is_few(s) {
            return few_wake;
        }
        let same_place = || places.are_uneven(thread, std::iter::once(s.0));
        is_more(s.1, rate * s.2) || (!by_idle && same_place())
    };
    Some(seen.iter().filter(wakes).map(|s| s.0).collect())
}

/// Whether so many wake-ups are more than chance would have.
fn is_more(n: f64, by_chance: f64) -> bool {
    n > TIMES * by_chance && n > by_chance + DEVIATIONS * by_chance.sqrt()
}

/// The rate below which a share of the time is that others than the sleeper had.
fn rate_below(seen: &[(ThreadId, f64, f64)], own: f64) -> f64 {
    let others: f64 = seen.iter().map(|s| s.2).sum();
    // Who was never current has the rate 0.
    let mut below = (1.0 - own - others).max(0.0);
    let end = BELOW * (1.0 - own);
    if below >= end {
        return 0.0;
    }
    for (_, n, share) in seen {
        below += share;
        if below >= end {
            return n / share.max(f64::MIN_POSITIVE);
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_that_wake_do_not_set_the_rate() {
        // Ten that compute, each met twice, and one that wakes twenty times in little time.
        let mut seen: Vec<_> = (0..10).map(|n| (n, 2.0, 0.09)).collect();
        seen.push((10, 20.0, 0.05));
        assert!((rate_below(&seen, 0.0) - 2.0 / 0.09).abs() < 1e-9);
        // Nobody else is ever met.
        assert!(rate_below(&seen[10..], 0.0).abs() < 1e-9);
    }

    #[test]
    fn places_before_a_sleep_are_not_spread() {
        let of = |places: Vec<f64>| {
            let all = Places([((0, 1), places)].into_iter().collect());
            all.are_uneven(0, std::iter::once(1))
        };
        assert!(of(vec![0.9; 20]));
        assert!(!of((0..20).map(|n| f64::from(n) / 20.0).collect()));
    }
}
