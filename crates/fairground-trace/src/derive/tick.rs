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
/// Fewer do not tell one rate from another: all of them may be at every fourth tick by chance.
const FEW_FOR_HZ: usize = 8;
/// At least this share of all must be at ticks beyond those that are there by chance.
const BEYOND_CHANCE: f64 = 0.15;
/// Ticks of this share of the most are all ticks. With slices of some ticks a kernel of 1000 Hz
/// preempts at most at half of the ticks of 250 Hz.
const AS_MANY: f64 = 0.8;
/// Chance makes a pattern of ticks out of none less often than this.
const BY_CHANCE: f64 = 1e-3;

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

/// Ticks a second, if it shows: the rarest ticks at which about as many preemptions fall, beyond
/// chance, as at those at which most do.
#[must_use]
pub fn hz(preempted_at: &[u64]) -> Option<u32> {
    let at = apart(preempted_at);
    if at.len() < FEW_FOR_HZ {
        return None;
    }
    let beyond = HZ.map(|hz| (hz, beyond_chance(&at, length(hz))));
    let most = beyond.iter().map(|b| b.1).fold(0.0, f64::max);
    let mut beyond = beyond.into_iter();
    let rarest = beyond.find(|(_, share)| *share >= AS_MANY * most);
    rarest.filter(|_| most >= BEYOND_CHANCE).map(|(hz, _)| hz)
}

/// Without what comes right after another one: a tick preempts on several CPUs at once, and what
/// does so by itself does not do it independently.
fn apart(preempted_at: &[u64]) -> Vec<u64> {
    let mut at = preempted_at.to_vec();
    at.sort_unstable();
    let mut last = None;
    at.retain(|at| {
        let first = last.is_none_or(|last| at - last >= NEAR_NS);
        last = if first { Some(*at) } else { last };
        first
    });
    at
}

/// The share of `at` that is at ticks beyond those that are there by chance; 0 if chance alone may
/// have brought so many together.
fn beyond_chance(at: &[u64], tick_ns: u64) -> f64 {
    let chance = NEAR_NS as f64 / tick_ns as f64;
    let (_, share) = densest(at, tick_ns);
    let near = (share * at.len() as f64).round() as usize;
    // Any of them may be the first of the densest; the others are there by chance.
    let rates = HZ.len() as f64;
    if at.len() as f64 * rates * at_least(near - 1, at.len() - 1, chance) > BY_CHANCE {
        return 0.0;
    }
    (share - chance) / (1.0 - chance)
}

/// How probable it is that of `n`, each of which is there by `chance`, `least` or more are: at most
/// `(n p / k)^k e^(k - n p)` for `k` above `n p`, by Chernoff's bound.
fn at_least(least: usize, n: usize, chance: f64) -> f64 {
    let (k, mean) = (least as f64, n as f64 * chance);
    if k <= mean {
        return 1.0;
    }
    (k * (mean / k).ln() + k - mean).exp()
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
        // Slices of three ticks, and nearly as many preemptions that are at none.
        for n in [40, 80, 400] {
            let (mut at, others) = (Vec::new(), [3_310_977, 5_170_331]);
            at.extend((1..n).map(|n| n * 12_000_000 + 700_000));
            at.extend((1..n / 2).flat_map(|n| others.map(|every| n * every)));
            assert_eq!(hz(&at), Some(250), "{n}");
        }
        let scattered: Vec<u64> = (1..40).map(|n| n * 4_317_101).collect();
        assert_eq!((hz(&scattered), phase(&scattered, 4_000_000)), (None, None));
        assert_eq!(hz(&[]), None);
        assert_eq!(hz(&at_ticks(4_000_000)[..6]), None);
    }

    #[test]
    fn chance_alone_makes_no_tick() {
        let mut state = 1_u64;
        let mut random = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % 1_000_000_000
        };
        for n in [8, 12, 20, 40, 100, 1000] {
            for _ in 0..200 {
                let at: Vec<u64> = (0..n).map(|_| random()).collect();
                assert_eq!(hz(&at), None, "{n}");
            }
        }
        // What happens at once on several CPUs is one thing.
        let at: Vec<u64> = (0..4).flat_map(|_| [random(); 4]).collect();
        assert_eq!(hz(&at), None);
    }

    #[test]
    fn a_bound_is_no_less_than_the_probability() {
        let exact = |least: u64, n: u64, p: f64| -> f64 {
            let of = |k: u64| {
                let ways: f64 = (0..k).map(|i| (n - i) as f64 / (i + 1) as f64).product();
                ways * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
            };
            (least..=n).map(of).sum()
        };
        for (least, n, p) in [(0, 9, 0.1), (3, 20, 0.1), (9, 20, 0.1), (7, 7, 0.025)] {
            let bound = at_least(least as usize, n as usize, p);
            assert!(bound > exact(least, n, p) - 1e-9, "{least} of {n}");
        }
    }
}
