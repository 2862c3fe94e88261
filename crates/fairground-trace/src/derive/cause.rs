//! What wakes a sleeper, where the recording leaves it open.
//!
//! A timer's interrupt executes `sched_waking` while some thread is current that has nothing to do
//! with it. Raw recordings have a flag for that; the text of `perf script` has not. What decides
//! there is how regular the sleeps are, whether one thread is always the one that wakes, and which
//! threads are met more often than by chance (`chance.rs`).

use rustc_hash::{FxHashMap, FxHashSet};

use super::chance::{self, Places};
use super::log::{Block, Logs, Step};
use super::process::is_kernel;
use super::tick::Tick;
use crate::event::Names;
use crate::walk::{Thread, ThreadId, Waker};

/// How a thread is woken when no thread does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// After a time from when it fell asleep, as `nanosleep` does.
    AfterSleep,
    /// At a point in time, whatever it did before: a period, or an event from outside.
    AtTime,
}

/// What is known of one thread's wake-ups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Causes {
    /// Wake-ups whose context is not known are a timer's.
    pub perhaps_is_timer: bool,
    /// Threads that do wake it, in order, where enough wake-ups tell: all others are met by chance.
    pub wakers: Option<Vec<ThreadId>>,
    /// What its timers do.
    pub timer: Timer,
    /// Wake-ups that a tick did are at that point in time, whatever else its timers do.
    pub ticks: Option<Tick>,
}

impl Causes {
    /// Whether a wake-up at `at` whose context is not known, while `waker` was current, is a
    /// timer's.
    #[must_use]
    pub fn is_timer(&self, at: u64, waker: ThreadId) -> bool {
        let by_chance = match &self.wakers {
            Some(wakers) => wakers.binary_search(&waker).is_err(),
            None => self.perhaps_is_timer,
        };
        by_chance || self.is_tick(at)
    }

    /// The tick that wakes it at `at`, if one does.
    #[must_use]
    pub fn tick(&self, at: u64) -> Option<u64> {
        self.ticks.and_then(|t| t.of(at))
    }

    /// Whether what wakes it at `at` is a tick.
    #[must_use]
    pub fn is_tick(&self, at: u64) -> bool {
        self.ticks.is_some_and(|t| t.is_at(at))
    }
}

/// Sleeps whose lengths differ by less than this share are a timer's.
const REGULAR: f64 = 0.02;
/// Shorter sleeps are no evidence: they end soon whatever ends them, ns.
const SHORT_NS: f64 = 20_000.0;
/// Of so many releases one must be a wake-up that was seen.
const PARTNER_SHARE: usize = 8;
/// Fewer sleeps say nothing about regularity.
const FEW: usize = 4;
/// Pairs of threads that wake each other: what the first does before it sleeps releases the
/// second even if that was only preempted and needed no wake-up. Without this, a partner that was
/// preempted in the recording would run ahead on a machine with more CPUs.
#[must_use]
pub fn partners(logs: &Logs, causes: &[Causes]) -> FxHashSet<(ThreadId, ThreadId)> {
    let mut wakes: FxHashMap<(ThreadId, ThreadId), (usize, usize)> = FxHashMap::default();
    for (thread, log) in logs.logs.iter().enumerate() {
        for step in &log.steps {
            match step {
                Step::Wake {
                    thread: wakee,
                    perhaps,
                    at,
                } if !perhaps || !causes[*wakee].is_timer(*at, thread) => {
                    wakes.entry((thread, *wakee)).or_default().0 += 1;
                }
                Step::Release(other) => wakes.entry((thread, *other)).or_default().1 += 1,
                _ => {}
            }
        }
    }
    let mutual = |seen: usize, released: usize| seen * PARTNER_SHARE >= released;
    let pairs = wakes.into_iter();
    pairs
        .filter(|(_, (seen, released))| *seen > 0 && mutual(*seen, *released))
        .map(|(pair, _)| pair)
        .collect()
}

/// Wake-ups of which the recording does not say whether the current thread did them, and how many
/// of these are taken for an interrupt's.
#[must_use]
pub fn guessed(logs: &Logs, causes: &[Causes]) -> (usize, usize) {
    let (mut met, mut interrupts) = (0, 0);
    for (log, causes) in logs.logs.iter().zip(causes) {
        for woken in log.blocks().filter_map(|b| b.woken) {
            if let (at, Waker::Perhaps(waker)) = woken {
                met += 1;
                interrupts += usize::from(causes.is_timer(at, waker));
            }
        }
    }
    (met, interrupts)
}

/// Decides for every thread.
#[must_use]
pub fn causes(logs: &Logs, names: &Names, tick: Option<Tick>) -> Vec<Causes> {
    let places = Places::of(logs);
    let of = |(thread, about): (ThreadId, &Thread)| {
        // Timers of the kernel's own threads fire at ticks, however long the thread has slept.
        let ticks = tick.filter(|_| is_kernel(&names.get(about.tid)));
        of_thread(logs, ticks, thread, &places)
    };
    logs.threads.iter().enumerate().map(of).collect()
}

fn of_thread(logs: &Logs, ticks: Option<Tick>, thread: ThreadId, places: &Places) -> Causes {
    let log = &logs.logs[thread];
    let ended: Vec<(&Block, u64, Waker)> = log
        .blocks()
        .filter_map(|b| b.woken.map(|(at, by)| (b, at, by)))
        .collect();
    let mut by_thread: FxHashMap<ThreadId, usize> = FxHashMap::default();
    let (mut perhaps, mut interrupts, mut idle) = (0, 0, 0);
    for (_, _, by) in &ended {
        match by {
            Waker::Perhaps(waker) => {
                perhaps += 1;
                *by_thread.entry(*waker).or_default() += 1;
            }
            Waker::Interrupt | Waker::Unseen => interrupts += 1,
            Waker::Thread(_) => {}
        }
        idle += usize::from(*by == Waker::Interrupt);
    }
    let open = |by: &Waker| !matches!(by, Waker::Thread(_));
    let timed: Vec<_> = ended.iter().filter(|(_, _, by)| open(by)).collect();
    let sleeps = spread(timed.iter().map(|(b, at, _)| at - b.from).collect());
    let periods = timed.windows(2).map(|w| w[1].1 - w[0].1).collect();
    let periods = spread(periods);
    let timer = if sleeps.width <= periods.width {
        Timer::AfterSleep
    } else {
        Timer::AtTime
    };
    let regular = sleeps.is_regular() || periods.is_regular();
    let main = by_thread
        .iter()
        .max_by_key(|(t, n)| (**n, usize::MAX - **t));
    // One thread that always does it, and sleeps about as often itself, is the cause; a thread
    // that computes throughout is only who happened to run.
    let steady = main.is_some_and(|(waker, n)| {
        let its_sleeps = logs.logs[*waker].blocks().count();
        n * 10 >= (perhaps + interrupts) * 9 && its_sleeps * 2 >= *n
    });
    let by_timer = regular && !steady;
    let tells = perhaps > 0 && !by_timer;
    let wakers = tells.then(|| chance::wakers(logs, thread, (&by_thread, idle), places));
    let wakers = wakers.flatten().map(|mut wakers| {
        wakers.extend(main.filter(|_| steady).map(|(waker, _)| *waker));
        wakers.sort_unstable();
        wakers.dedup();
        wakers
    });
    Causes {
        perhaps_is_timer: perhaps > 0 && (by_timer || interrupts > perhaps),
        wakers,
        timer,
        ticks,
    }
}

/// The middle of a sample and how wide its middle half is.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    n: usize,
    median: f64,
    width: f64,
}

impl Spread {
    fn is_regular(self) -> bool {
        self.n >= FEW && self.median > SHORT_NS && self.width < REGULAR * self.median
    }
}

fn spread(mut sample: Vec<u64>) -> Spread {
    let n = sample.len();
    if n == 0 {
        return Spread::default();
    }
    sample.sort_unstable();
    let at = |quarter: usize| sample[(n - 1) * quarter / 4] as f64;
    Spread {
        n,
        median: at(2),
        width: at(3) - at(1),
    }
}
