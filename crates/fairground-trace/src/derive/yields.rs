//! `sched_yield`, which has no tracepoint: a thread leaves its CPU, runnable, though nobody came to
//! it, and no tick was due. Units: nanoseconds.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
