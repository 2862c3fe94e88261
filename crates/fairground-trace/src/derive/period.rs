//! When the quota periods of a group end, as far as it shows: there its threads that were
//! throttled get a CPU again, at once or at the next tick. Units: nanoseconds.

use rustc_hash::FxHashMap;

use crate::event::{Event, State};
use crate::walk::{Fact, ThreadId, Walk};

/// A shorter wait after a preemption is no throttling.
const WAIT_NS: u64 = 100_000;
/// From a timer to the switch that it causes, at most.
const NEAR_NS: u64 = 100_000;
/// Fewer returns say nothing.
const FEW: usize = 4;

/// When threads that had been preempted got a CPU again, by thread id of the kernel.
#[derive(Clone, Debug, Default)]
pub struct Returns(FxHashMap<u32, Vec<u64>>);

impl Returns {
    /// Of events in order of time.
    #[must_use]
    pub fn of(events: &[Event], cpus: u32) -> Self {
        let mut all = Self::default();
        let mut out: FxHashMap<ThreadId, u64> = FxHashMap::default();
        Walk::over(events, cpus, |threads, fact| match fact {
            Fact::Out {
                thread, at, state, ..
            } => {
                out.remove(&thread);
                if state == State::Runnable {
                    out.insert(thread, at);
                }
            }
            Fact::In { thread, at, .. } => {
                let waited = out.remove(&thread).map_or(0, |from| at - from);
                let tid = threads[thread].tid;
                if waited >= WAIT_NS {
                    all.0.entry(tid).or_default().push(at);
                }
            }
            _ => {}
        });
        all
    }

    /// When periods of `period_ns` end, modulo the period, if the returns of these threads show it;
    /// ticks of `tick_ns` fall at `tick_at` modulo the tick.
    #[must_use]
    pub fn phase(
        &self,
        tids: impl Iterator<Item = u32>,
        period_ns: u64,
        (tick_ns, tick_at): (u64, u64),
    ) -> Option<u64> {
        let returns = tids.filter_map(|tid| self.0.get(&tid)).flatten();
        // Since when the period can have ended, and until when.
        let mut edges: Vec<(u64, i32)> = Vec::new();
        let mut n = 0;
        for at in returns {
            let after_tick = (at + tick_ns - tick_at) % tick_ns;
            let room = if after_tick < NEAR_NS {
                tick_ns
            } else {
                NEAR_NS
            };
            let from = at.saturating_sub(room) % period_ns;
            n += 1;
            edges.push((from, 1));
            edges.push((from + room, -1));
            // The same one period earlier, for those that reach beyond the end.
            if from + room > period_ns {
                edges.push((0, 1));
                edges.push((from + room - period_ns, -1));
            }
        }
        edges.sort_unstable();
        let (mut open, mut most, mut best) = (0, 0, (0, 0));
        for pair in edges.windows(2) {
            open += pair[0].1;
            if open > most {
                (most, best) = (open, (pair[0].0, pair[1].0));
            }
        }
        let shows = n >= FEW && most as usize * 2 > n;
        shows.then_some(best.0.midpoint(best.1) % period_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(at: &[u64]) -> Option<u64> {
        let mut all = Returns::default();
        all.0.insert(7, at.to_vec());
        all.phase([7, 8].into_iter(), 10_000_000, (4_000_000, 0))
    }

    #[test]
    fn returns_at_ticks_and_between_them_show_the_period() {
        // Periods end at 3 ms; the next ticks are at 4 or 16 ms.
        let at_ticks: Vec<u64> = (0..20)
            .map(|k| (10 * k + 3_u64).next_multiple_of(4))
            .collect();
        let found = phase(
            &at_ticks
                .iter()
                .map(|ms| ms * 1_000_000 + 5_000)
                .collect::<Vec<_>>(),
        );
        assert!(
            (2_000_000..=4_100_000).contains(&found.unwrap()),
            "{found:?}"
        );
        let between: Vec<u64> = (0..9).map(|k| k * 10_000_000 + 3_020_000).collect();
        let found = phase(&between).unwrap();
        assert!((2_920_000..=3_020_000).contains(&found), "{found}");
        let scattered: Vec<u64> = (1..40).map(|n| n * 4_317_101).collect();
        assert_eq!((phase(&scattered), phase(&between[..3])), (None, None));
    }
}
