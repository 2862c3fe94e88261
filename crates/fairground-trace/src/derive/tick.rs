//! The tick of the recorded kernel, as far as it shows: who leaves a CPU to which nobody has come
//! mostly does so at a tick. Units: nanoseconds.

/// Ticks a second that kernels are built with, rarest ticks first.
const HZ: [u32; 4] = [100, 250, 300, 1000];
/// What lies so near together is at one tick.
const NEAR_NS: u64 = 100_000;
/// What the tick wakes comes so long before the preemptions by which it shows, at the most.
const EARLY_NS: u64 = 10_000;
/// Fewer preemptions say nothing.
const FEW: usize = 4;
/// At least this share of all must be at ticks: by chance it would be a tenth.
const SHARE: f64 = 0.25;
/// The same of less than twice as many as are few.
const SHARE_OF_FEW: f64 = 0.6;

/// When ticks fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// From one to the next.
    pub every_ns: u64,
    /// When, modulo that.
    pub phase_ns: u64,
}

impl Tick {
    /// Whether what happens at `at` is done by a tick.
    #[must_use]
    pub fn is_at(self, at: u64) -> bool {
        self.since(at) < NEAR_NS
    }

    /// The tick that does what happens at `at`, if one does.
    #[must_use]
    pub fn of(self, at: u64) -> Option<u64> {
        self.is_at(at)
            .then(|| (at + EARLY_NS).saturating_sub(self.since(at)))
    }

    /// From when on a tick might have done what happens at `at`, for so long.
    fn since(self, at: u64) -> u64 {
        let every = self.every_ns.max(1);
        (at + every + EARLY_NS - self.phase_ns % every) % every
    }
}

/// Ticks a second, if it shows: the rarest ticks at which as many preemptions fall as at all
/// milliseconds.
#[must_use]
pub fn hz(preempted_at: &[u64]) -> Option<u32> {
    let share = |hz: u32| densest(preempted_at, length(hz)).1;
    let most = share(1000);
    if !is_enough(preempted_at, most) {
        return None;
    }
    // 300 Hz does not divide a millisecond.
    let most = most.max(share(300));
    HZ.into_iter().find(|hz| share(*hz) >= 0.9 * most)
}

/// When ticks of `tick_ns` fall, modulo the tick; `None` if it does not show.
#[must_use]
pub fn phase(preempted_at: &[u64], tick_ns: u64) -> Option<u64> {
    let tick_ns = tick_ns.max(1);
    let (begin, share) = densest(preempted_at, tick_ns);
    is_enough(preempted_at, share).then_some(begin)
}

fn is_enough(preempted_at: &[u64], share: f64) -> bool {
    let n = preempted_at.len();
    n >= FEW && share >= if n < 2 * FEW { SHARE_OF_FEW } else { SHARE }
}

fn length(hz: u32) -> u64 {
    1_000_000_000 / u64::from(hz)
}

/// Where most of `at`, modulo `tick_ns`, lie near together, and their share of all. The first
/// quarter of them, so that one that is there by chance does not decide.
fn densest(at: &[u64], tick_ns: u64) -> (u64, f64) {
    let mut phases: Vec<u64> = at.iter().map(|at| at % tick_ns).collect();
    phases.sort_unstable();
    let n = phases.len();
    let (mut best, mut most) = (0, 0);
    let mut end = 0;
    for (i, begin) in phases.iter().enumerate() {
        end = end.max(i);
        while end < i + n {
            let turn = if end >= n { tick_ns } else { 0 };
            if phases[end % n] + turn - begin >= NEAR_NS {
                break;
            }
            end += 1;
        }
        if end - i > most {
            (best, most) = (phases[(i + (end - i) / 4) % n], end - i);
        }
    }
    (best, most as f64 / n.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tick_does_is_near_it() {
        let tick = Tick {
            every_ns: 4_000_000,
            phase_ns: 1_000_000,
        };
        assert_eq!(tick.of(9_000_000), Some(9_000_000));
        assert_eq!(tick.of(8_995_000), Some(9_000_000));
        assert_eq!(tick.of(9_080_000), Some(9_000_000));
        assert_eq!((tick.of(9_200_000), tick.of(8_980_000)), (None, None));
    }

    fn at_ticks(tick_ns: u64) -> Vec<u64> {
        let ticks = (1..40).map(|n| n * tick_ns * (1 + n % 3) + 1_700_000 + n * 100);
        let others = (1..20).map(|n| n * 7_310_977);
        ticks.chain(others).collect()
    }

    #[test]
    fn the_tick_shows_where_preemptions_are() {
        assert_eq!(hz(&at_ticks(4_000_000)), Some(250));
        assert_eq!(hz(&at_ticks(1_000_000)), Some(1000));
        assert_eq!(hz(&at_ticks(10_000_000)), Some(100));
        assert_eq!(hz(&at_ticks(3_333_333)), Some(300));
        let found = phase(&at_ticks(4_000_000), 4_000_000).unwrap();
        assert!((1_700_000..1_702_000).contains(&found), "{found}");
        let scattered: Vec<u64> = (1..40).map(|n| n * 4_317_101).collect();
        assert_eq!((hz(&scattered), phase(&scattered, 4_000_000)), (None, None));
        assert_eq!(hz(&[]), None);
    }
}
