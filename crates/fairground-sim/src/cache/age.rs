//! Capacity: which lines are still there.
//!
//! No cache content is kept. Each core, and each L3 domain, has one counter; a line remembers its
//! value at the last touch. The difference is the line's *age*, from which [`Reuse`] estimates
//! the LRU stack distance `d`, the number of different lines touched since. The counter advances
//!
//! * at each fill, for a new line goes on top of the stack, and
//! * at each hit on a line older than `recent`, which moves to the top from far below.
//!
//! Hits near the top do not advance it: they do not push others down, by more than `recent`.
//! (Counting fills only would let more lines be resident than there is room for: a cycle over 1.2 C
//! lines would settle at no misses at all.)
//!
//! A cache of `S` sets and `W` ways, lines placed at random, has lost a line of stack distance `d`
//! if `W` or more of the `d` lines fell into its set:
//!
//!   P(gone | d) = P(X >= W),  X ~ Binomial(d, 1/S)      (Smith 1978; Hill and Smith 1989)
//!
//! For `W` = 1 that is close to `1 - exp(-d/C)`, for large `W` a cliff at `C`. A seeded hash throws
//! the dice.

use super::kinds::Place;
use super::params::Params;
use super::reuse::Reuse;
use super::tops;
use crate::rng::{SPLITMIX64_STEP, mix};

pub(super) struct Ages {
    cores: Vec<u32>,
    /// By core, one more than its counter when its caches were last flushed.
    flushed: Vec<u32>,
    /// The tag of a line that the core touches now, by core; see [`tops`].
    tags: Vec<u32>,
    /// The core that executes, and its tag.
    executing: (usize, u32),
    epoch_shift: u32,
    l3s: Vec<u32>,
    core_reuse: Vec<Reuse>,
    l3_reuse: Vec<Reuse>,
    l1_lines: u32,
    recent: u32,
    l3_recent: u32,
    l2: Survival,
    l3: Survival,
    seed: u64,
}

impl Ages {
    pub fn new(p: &Params, seed: u64) -> Self {
        Self {
            cores: vec![0; p.cores.len()],
            flushed: vec![0; p.cores.len()],
            tags: (0..p.cores.len() as u32).collect(),
            executing: (0, 0),
            epoch_shift: tops::epoch_shift(p.recent),
            l3s: vec![0; p.nr_llcs],
            core_reuse: vec![Reuse::new(); p.cores.len()],
            l3_reuse: vec![Reuse::new(); p.nr_llcs],
            l1_lines: p.l1_lines,
            recent: p.recent,
            l3_recent: p.l3_lines / 16,
            l2: Survival::new(p.l2_lines, p.l2_ways),
            l3: Survival::new(p.l3_lines, p.l3_ways),
            seed,
        }
    }

    #[inline]
    pub fn core_fills(&self, core: usize) -> u32 {
        self.cores[core]
    }

    #[inline]
    pub fn l3_fills(&self, llc: usize) -> u32 {
        self.l3s[llc]
    }

    /// The tag of a line that the core touches now.
    #[inline(always)]
    pub fn tag(&self, core: u16) -> Option<u32> {
        self.tags.get(usize::from(core)).copied()
    }

    /// `core` executes from now on.
    #[inline]
    pub fn execute(&mut self, core: usize) {
        self.executing = (core, self.tags[core]);
    }

    /// The tag of a line that the executing core touches now.
    #[inline(always)]
    pub fn tag_now(&self) -> u32 {
        self.executing.1
    }

    fn fill(&mut self, core: usize, lines: u32) {
        let fills = self.cores[core].wrapping_add(lines);
        self.cores[core] = fills;
        self.tags[core] = tops::tag(core as u16, fills, self.epoch_shift);
        if core == self.executing.0 {
            self.executing.1 = self.tags[core];
        }
    }

    pub fn advance(&mut self, core: usize, llc: usize, lines: u32) {
        self.fill(core, lines);
        self.l3s[llc] = self.l3s[llc].wrapping_add(lines);
        self.core_reuse[core].saw_new(lines);
        self.l3_reuse[llc].saw_new(lines);
    }

    /// The core's private caches lose all that is in them. No line of before is near the top of the
    /// stack any more, so that hits look at it again.
    pub fn flush(&mut self, core: usize) {
        self.flushed[core] = self.cores[core].wrapping_add(1);
        self.fill(core, self.recent + 1);
    }

    /// Whether a line touched `age` steps ago was there before the core's caches were flushed.
    #[inline]
    fn was_flushed(&self, core: usize, age: u32) -> bool {
        age > self.cores[core].wrapping_sub(self.flushed[core])
    }

    /// A fill of the core's caches with a line that it never had.
    #[inline]
    pub fn miss(&mut self, core: usize) -> Place {
        self.fill(core, 1);
        self.core_reuse[core].saw_new(1);
        Place::Gone
    }

    /// A fill with a line that another core took away.
    #[inline]
    pub fn refill(&mut self, core: usize, stamp: u32) {
        let age = self.cores[core].wrapping_sub(stamp);
        if age > self.recent {
            self.fill(core, 1);
            self.core_reuse[core].saw(age);
        }
    }

    /// Looks for a line in the core's caches, and puts it on top of the stack.
    #[inline]
    pub fn look(&mut self, core: usize, stamp: u32, line: u32) -> Place {
        let age = self.cores[core].wrapping_sub(stamp);
        if age <= self.recent {
            return Place::L1;
        }
        self.look_deep(core, age, line)
    }

    /// [`Ages::look`] for a line that was not touched of late.
    #[inline(never)]
    fn look_deep(&mut self, core: usize, age: u32, line: u32) -> Place {
        let flushed = self.was_flushed(core, age);
        self.fill(core, 1);
        let distance = self.core_reuse[core].saw_at(age);
        if flushed {
            return Place::Gone;
        }
        if distance < self.l1_lines {
            return Place::L1;
        }
        let dice = || self.dice(line, core as u64, self.cores[core]);
        match self.l2.gone(distance, dice) {
            true => Place::Gone,
            false => Place::L2,
        }
    }

    /// Whether a core's private caches still hold a line (seen from outside: nothing moves).
    #[inline]
    pub fn core_has(&self, core: usize, stamp: u32, line: u32) -> bool {
        let age = self.cores[core].wrapping_sub(stamp);
        let dice = || self.dice(line, core as u64, stamp);
        let lost = |age| self.l2.gone(self.core_reuse[core].distance(age), dice);
        age <= self.recent || !self.was_flushed(core, age) && !lost(age)
    }

    /// Whether an L3 domain still holds a line.
    #[inline]
    pub fn l3_has(&self, llc: usize, stamp: u32, line: u32) -> bool {
        let age = self.l3s[llc].wrapping_sub(stamp);
        age <= self.l3_recent || {
            let distance = self.l3_reuse[llc].distance(age);
            let dice = || self.dice(line, !(llc as u64), self.l3s[llc]);
            !self.l3.gone(distance, dice)
        }
    }

    /// The line goes on top of the domain's stack; `new` if the domain never had it.
    #[inline]
    pub fn l3_touch(&mut self, llc: usize, stamp: u32, new: bool) {
        let age = self.l3s[llc].wrapping_sub(stamp);
        if new {
            self.l3_reuse[llc].saw_new(1);
        } else if age > self.l3_recent {
            self.l3_reuse[llc].saw(age);
        } else {
            return;
        }
        self.l3s[llc] = self.l3s[llc].wrapping_add(1);
    }

    /// Two dice for `core` at `line` at this time.
    #[inline]
    pub fn throw(&self, line: u32, core: usize, now: u64) -> Dice {
        Dice {
            counter: self.seed ^ (u64::from(line) << 32 | u64::from(now as u32)),
            place: core as u64 | (now >> 32) << 16,
        }
    }

    #[inline]
    fn dice(&self, line: u32, place: u64, counter: u32) -> u32 {
        dice(
            self.seed ^ (u64::from(line) << 32 | u64::from(counter)),
            place,
        )
    }
}

/// Two dice of 16 bits, thrown when they are looked at.
#[derive(Clone, Copy)]
pub(super) struct Dice {
    counter: u64,
    place: u64,
}

impl Dice {
    /// Whether a line stays.
    #[inline]
    pub fn stays(self) -> u16 {
        dice(self.counter, self.place) as u16
    }

    /// If it does not, whose it is.
    #[inline]
    pub fn which(self) -> u16 {
        dice(self.counter, !self.place) as u16
    }
}

/// 16 bits.
#[inline]
fn dice(counter: u64, place: u64) -> u32 {
    let z = counter.wrapping_add(place.wrapping_mul(SPLITMIX64_STEP));
    (mix(z) >> 48) as u32
}

/// P(gone | stack distance), tabulated: in steps of capacity / 32, probabilities in 1/65536.
struct Survival {
    lines: u32,
    table: [u32; Self::STEPS],
}

impl Survival {
    const STEPS: usize = 128;

    fn new(lines: u32, ways: u32) -> Self {
        let ways = ways.min(lines).max(1);
        let sets = f64::from((lines / ways).max(1));
        let mut table = [0; Self::STEPS];
        for (i, gone) in table.iter_mut().enumerate() {
            let d = ((i as f64 + 0.5) * f64::from(lines) / 32.0).floor();
            *gone = ((1.0 - stays(d, sets, ways)) * 65536.0)
                .round()
                .clamp(0.0, 65536.0) as u32;
        }
        Self { lines, table }
    }

    /// Whether a line of that stack distance is gone, if it comes to that by the dice of 16 bits.
    #[inline]
    fn gone(&self, distance: u32, dice: impl FnOnce() -> u32) -> bool {
        let step = (u64::from(distance) * 32 / u64::from(self.lines)) as usize;
        match self.table.get(step) {
            None => true,
            Some(0) => false,
            Some(p) => dice() < *p,
        }
    }
}

/// P(X < ways), X ~ Binomial(d, 1/sets). Only + - * / , so equal on every platform.
fn stays(d: f64, sets: f64, ways: u32) -> f64 {
    if sets <= 1.0 {
        return f64::from(u8::from(d < f64::from(ways)));
    }
    let (p, q) = (1.0 / sets, 1.0 - 1.0 / sets);
    let (mut term, mut base, mut n) = (1.0, q, d as u64);
    while n > 0 {
        if n & 1 == 1 {
            term *= base;
        }
        base *= base;
        n >>= 1;
    }
    let mut sum = 0.0;
    for k in 0..ways {
        let k = f64::from(k);
        if k > d {
            break;
        }
        sum += term;
        term *= (d - k) / (k + 1.0) * (p / q);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_is_a_smoothed_cliff_at_the_capacity() {
        let s = Survival::new(32768, 16);
        assert!(s.table.windows(2).all(|w| w[0] <= w[1]));
        let p = |x: f64| f64::from(s.table[(x * 32.0) as usize]) / 65536.0;
        assert!(p(0.4) < 0.01 && p(1.6) > 0.95, "{} {}", p(0.4), p(1.6));
        assert!((0.4..0.65).contains(&p(1.0)));
        // One way: 1 - (1 - 1/C)^d.
        let direct = Survival::new(1024, 1);
        let one = f64::from(direct.table[32]) / 65536.0;
        assert!((one - (1.0 - (-1.016f64).exp())).abs() < 0.01, "{one}");
    }
}
