//! What other CPUs do to a line while one is simulated.
//!
//! A step of a CPU is simulated as a whole: what other CPUs do up to its end comes afterwards. So a
//! core that has updated a word would always find it unchanged when it reads it again in the same
//! step, though with a hundred CPUs at that word the line is gone as soon as the update is done,
//! and the read queues for it again. Whether somebody came in between is not known yet, but how
//! often somebody comes is: [`Crowd`] counts, and dice decide.
//!
//! - Turns at a line come in the order of asking. So somebody came if an update had its turn since
//!   the own turn: with probability `1 - exp(-time / interval)`; or, where a queue waits, whose
//!   turns are regular, after half to one and a half intervals.
//! - Those who asked while the core waited for its own turn are behind it, and before its next
//!   touch. In a steady state they are as many as it found, so it waits as long again.
//!
//! - Nobody came as long as the line stays with a core that has got it: the request of whoever is
//!   next must reach that core first. In a tight loop a core of Sapphire Rapids updates a word
//!   three times before it loses the line (`rmw_burst_tight_loop` of the machine file), so what
//!   comes within two updates of the first is a hit: a lock that is given back at once.
//!
//! The update itself is not booked here, but when it is simulated. `tests/ladder_crowd.rs` has a
//! twin that has every request in its time.
//!
//! Two are no crowd, for they mostly answer each other. Locks are none: nobody else writes what
//! a lock protects, and whoever waits for one is simulated by the lock
//! (`Cache::leave_line_to_lock`).

mod meanwhile;

use super::block::NO_OWNER;
use super::{NS, Ps};

/// Updates in a window, of which the interval is the mean.
const WINDOW: u8 = 16;
/// A line that is updated more rarely stays with whoever has it: in a microsecond one in fifty
/// would lose it.
const RARELY: Ps = 50_000 * NS;

/// The updates of a line, of all cores.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Crowd {
    /// Mean interval between updates that others than a given core make, in the last full window.
    /// First: every load asks.
    interval: Ps,
    /// Begin of the window, and updates in it so far.
    mark: Ps,
    asks: u8,
    /// Reads in the window that found somebody else's update.
    reads: u16,
    /// Reads for each update in the last full window, in 1/256.
    ratio: u32,
    /// The core that updated last with the words, and another one before.
    last: (u16, u8),
    prev: (u16, u8),
    /// The core that touched last, how long from its turn on it has the line in any case, and when
    /// it asked.
    toucher: u16,
    holds: u32,
    touched: Ps,
    /// When it had its turn.
    turn: Ps,
    /// Cores of the window, by number modulo 64.
    cores: u64,
}

impl Default for Crowd {
    fn default() -> Self {
        Self {
            mark: 0,
            asks: 0,
            reads: 0,
            ratio: 0,
            last: (NO_OWNER, 0),
            prev: (NO_OWNER, 0),
            toucher: NO_OWNER,
            holds: 0,
            touched: 0,
            turn: 0,
            cores: 0,
            interval: Ps::MAX,
        }
    }
}

impl Crowd {
    /// `core` updates `words` of the line in a step that began at `began`.
    #[inline]
    pub fn ask(&mut self, core: usize, words: u8, began: Ps) {
        if usize::from(self.last.0) != core {
            self.prev = self.last;
        }
        self.last = (core as u16, words);
        if self.asks == 0 {
            (self.mark, self.cores, self.reads) = (began, 0, 0);
        }
        self.cores |= 1 << (core % 64);
        self.asks += 1;
        if self.asks > WINDOW {
            let n = u64::from(self.cores.count_ones());
            let window = began.saturating_sub(self.mark) * n;
            self.interval = match n {
                // Two who take turns: when the other comes depends on what this one does.
                1 | 2 => Ps::MAX,
                _ => window / (u64::from(WINDOW) * (n - 1)),
            };
            self.ratio = (u32::from(self.reads) << 8) / u32::from(WINDOW);
            self.asks = 0;
        }
    }

    /// `core` has its turn at `turn`, and from then the line for `holds` at least.
    pub fn takes_turn(&mut self, core: usize, turn: Ps, holds: Ps) {
        if usize::from(self.toucher) == core {
            (self.turn, self.holds) = (turn, holds.min(Ps::from(u32::MAX)) as u32);
        }
    }

    /// Somebody reads what another has updated.
    pub fn read(&mut self) {
        self.reads = self.reads.saturating_add(1);
    }

    /// Whether somebody in one of `domains` has read the line after its last update, with the
    /// probability that of both kinds a read came last.
    #[inline]
    fn read_last(&self, domains: u32, dice: impl FnOnce() -> u16) -> bool {
        let here = self.ratio / domains;
        here > 0 && u32::from(dice()) * (here + 256) < here << 16
    }

    /// The interval at `now`; longer than in the last window if this one has become so.
    fn interval(&self, now: Ps) -> Ps {
        let so_far = match self.asks {
            0 => 0,
            _ => now.saturating_sub(self.mark) / u64::from(WINDOW),
        };
        self.interval.max(so_far)
    }

    /// Whether the line stays with nobody.
    #[inline]
    pub fn is_one(&self) -> bool {
        self.interval < RARELY
    }
}

/// `-ln(u / 65536)` in 1/65536, for `u` from 1 to 65535: the time, in means, that an interval of an
/// exponential distribution lasts. By squaring, bit by bit, so equal on every platform.
const fn exponential(u: u32) -> u64 {
    let u = if u == 0 { 1 } else { u };
    let whole = u.ilog2();
    // The mantissa, from 1 to 2, in 1/2^31.
    let mut x = (u as u64) << (31 - whole);
    let mut log2 = (whole as u64) << 16;
    let mut bit = 16;
    while bit > 0 {
        bit -= 1;
        x = (x * x) >> 31;
        if x >> 32 != 0 {
            x >>= 1;
            log2 |= 1 << bit;
        }
    }
    // ln 2 in 1/65536 is 45426.
    (((16 << 16) - log2) * 45_426) >> 16
}

/// [`exponential`] of every 256th number, 65536 included. It falls as they rise.
const EXPONENTIALS: [u32; 257] = {
    let mut table = [0; 257];
    let mut i = 0;
    while i < table.len() {
        table[i] = exponential(i as u32 * 256) as u32;
        i += 1;
    }
    table
};

/// Whether `time` is less than [`exponential`] of `u`. The neighbours in the table mostly say so.
#[inline]
fn is_shorter(time: u64, u: u16) -> bool {
    let (above, below) = (
        EXPONENTIALS[usize::from(u >> 8)],
        EXPONENTIALS[usize::from(u >> 8) + 1],
    );
    time < u64::from(above) && (time < u64::from(below) || time < exponential(u.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_exponential() {
        let all = (1..=u16::MAX).map(|u| exponential(u.into()) as f64 / 65536.0);
        for (u, e) in (1..=u16::MAX).zip(all.clone()) {
            let exact = -(f64::from(u) / 65536.0).ln();
            assert!((e - exact).abs() < 1e-4, "{u}: {e} for {exact}");
        }
        let mean = all.sum::<f64>() / 65535.0;
        assert!((mean - 1.0).abs() < 1e-3, "{mean}");
    }

    #[test]
    fn a_time_is_shorter_as_the_interval_says() {
        for u in 0..=u16::MAX {
            let e = exponential(u.into());
            for time in [0, e / 2, e.saturating_sub(1), e, e + 1, 2 * e, 1 << 40] {
                assert_eq!(is_shorter(time, u), time < e, "{u} {time}");
            }
        }
    }

    #[test]
    fn partners_are_no_crowd() {
        let mut crowds = [Crowd::default(); 5];
        for (cores, crowd) in (1..).zip(&mut crowds) {
            for i in 0..=u64::from(WINDOW) {
                crowd.ask(i as usize % cores, 1, i * 1000);
            }
        }
        let intervals = crowds.map(|c| c.interval);
        assert_eq!(intervals, [Ps::MAX, Ps::MAX, 1500, 1333, 1250]);
        // Nobody came for a long time.
        crowds[2].ask(0, 1, 100_000);
        assert_eq!(crowds[2].interval(100_000 + 16 * 5000), 5000);
    }
}
