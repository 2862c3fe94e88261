//! `sched_yield`, which has no tracepoint: a thread leaves its CPU, runnable, though nobody came to
//! it, and no tick was due. Units: nanoseconds.

use std::collections::BTreeMap;

use super::log::{Log, Step};
use super::tick::Tick;

/// So often it is no accident: an interrupt that came late, a wake-up that was lost.
const OFTEN: u64 = 16;

/// Which of the times at which a thread left its CPU by itself are yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// None.
    None,
    /// Those that are not at this tick.
    Beside(Tick),
    /// All: they come more often than ticks, and when these fall is not known.
    All,
}

impl Yields {
    /// Of a thread, where ticks fall if that is known, and how far they are apart.
    #[must_use]
    pub fn of(log: &Log, tick: Option<Tick>, tick_ns: u64) -> Self {
        let left = log.steps.iter().filter_map(|step| match step {
            Step::Left(at) => Some(*at),
            _ => None,
        });
        let (beside, yields) = match tick {
            Some(tick) => (
                left.filter(|at| !tick.is_at(*at)).count(),
                Self::Beside(tick),
            ),
            None => {
                let left: Vec<u64> = left.collect();
                let soon = left.windows(2).filter(|w| w[1] - w[0] < tick_ns / 2);
                (soon.count(), Self::All)
            }
        };
        let often = beside as u64 >= OFTEN.max(log.preempted_times / 4);
        if often { yields } else { Self::None }
    }

    /// Whether leaving at `at` was one.
    #[must_use]
    pub fn is_at(self, at: u64) -> bool {
        match self {
            Self::None => false,
            Self::Beside(tick) => !tick.is_at(at),
            Self::All => true,
        }
    }
}

/// A stretch of computing that is longer than so many turns of a thread that yields is no row of
/// them.
const TURNS: u64 = 16;

/// What a thread computed between two points at which it yielded or slept.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    kind: StretchKind,
}

/// What else takes time in it: whether it slept before, whether it goes to sleep, whom it wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct StretchKind {
    slept: bool,
    sleeps: bool,
    wakes: u64,
}

impl Yields {
    /// Where a thread that yields turn by turn has done so unseen, as nobody else wanted its CPU:
    /// by how much it has computed before, in order.
    #[must_use]
    pub fn unseen(self, log: &Log) -> Vec<u64> {
        if self == Self::None {
            return Vec::new();
        }
        let all = self.stretches(log);
        let mut lengths: BTreeMap<StretchKind, Vec<u64>> = BTreeMap::new();
        for s in &all {
            lengths.entry(s.kind).or_default().push(s.to - s.from);
        }
        // Unseen turns make a stretch longer, so a lower quartile says how long one of a kind is.
        let typical: BTreeMap<StretchKind, u64> = lengths
            .into_iter()
            .map(|(kind, mut of)| {
                of.sort_unstable();
                (kind, of[of.len() / 4])
            })
            .collect();
        let turn = typical.get(&StretchKind::default()).copied().unwrap_or(0);
        if turn == 0 {
            return Vec::new();
        }
        let rows = all.iter().flat_map(|s| {
            let length = s.to - s.from;
            let n = (length.saturating_sub(typical[&s.kind]) + turn / 2) / turn + 1;
            let n = if n > TURNS { 1 } else { n };
            (1..n).map(move |k| s.from + length / n * k)
        });
        rows.collect()
    }

    fn stretches(self, log: &Log) -> Vec<Stretch> {
        let (mut ran, mut from, mut kind) = (0, 0, StretchKind::default());
        let mut all = Vec::new();
        for step in &log.steps {
            match step {
                Step::Run(ns) => ran += ns,
                Step::Wake { .. } => kind.wakes += 1,
                Step::Left(at) if !self.is_at(*at) => {}
                Step::Left(_) | Step::Block(_) => {
                    kind.sleeps = matches!(step, Step::Block(_));
                    let to = ran;
                    all.push(Stretch { from, to, kind });
                    kind = StretchKind {
                        slept: kind.sleeps,
                        ..StretchKind::default()
                    };
                    from = ran;
                }
                _ => {}
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::log::Block;

    #[test]
    fn who_often_leaves_between_ticks_yields() {
        let tick = Tick {
            every_ns: 4_000_000,
            phase_ns: 0,
        };
        let log = |gap: u64, times: u64| {
            let mut log = Log::default();
            log.steps = (1..=times).map(|n| Step::Left(n * gap)).collect();
            log.preempted_times = times;
            log
        };
        let of = |gap, times, tick| Yields::of(&log(gap, times), tick, 4_000_000);
        assert_eq!(of(4_000_000, 100, Some(tick)), Yields::None);
        assert_eq!(of(4_000_000, 100, None), Yields::None);
        assert_eq!(of(70_000, 100, Some(tick)), Yields::Beside(tick));
        assert_eq!(of(70_000, 100, None), Yields::All);
        assert_eq!(of(70_000, 10, Some(tick)), Yields::None);
        assert!(Yields::Beside(tick).is_at(170_000) && !Yields::Beside(tick).is_at(8_000_100));
    }

    /// Turns of 100, of which some were not seen, and a sleep after 150; waking somebody takes 200.
    #[test]
    fn turns_that_were_not_seen_are_found_by_their_length() {
        let (mut log, mut at) = (Log::default(), 0);
        let mut stretch = |parts: &[u64], wakes: usize, end: Option<Step>| {
            for (i, ns) in parts.iter().enumerate() {
                at += ns;
                log.steps.push(Step::Run(*ns));
                if i < wakes {
                    let (thread, perhaps) = (1, false);
                    log.steps.push(Step::Wake {
                        thread,
                        perhaps,
                        at,
                    });
                }
            }
            log.steps.push(end.unwrap_or(Step::Left(at)));
        };
        let sleep = Step::Block(Block {
            from: 0,
            woken: None,
            timer: None,
            in_act: false,
        });
        for _ in 0..20 {
            stretch(&[100], 0, None);
            stretch(&[60, 240], 1, None);
            stretch(&[150], 0, Some(sleep));
        }
        // From a sleep to a yield and from a yield to a sleep it takes what it takes.
        assert!(Yields::All.unseen(&log).is_empty());
        let before = 20 * (100 + 300 + 150);
        log.steps.extend([100, 312].map(Step::Run));
        log.steps.push(Step::Left(0));
        assert_eq!(
            Yields::All.unseen(&log),
            [1, 2, 3].map(|k| before + 103 * k)
        );
        assert!(Yields::None.unseen(&log).is_empty());
        // So long a stretch is computing.
        log.steps.truncate(log.steps.len() - 3);
        log.steps.extend([Step::Run(2_000), Step::Left(0)]);
        assert!(Yields::All.unseen(&log).is_empty());
        assert!(Yields::All.unseen(&Log::default()).is_empty());
    }
}
