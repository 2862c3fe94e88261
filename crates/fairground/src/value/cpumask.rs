//! A set of CPUs as a fixed bit array, copied by value.

use super::Cpu;

/// The largest number of CPUs of one machine.
pub const MAX_CPUS: usize = 512;
const WORDS: usize = MAX_CPUS / 64;

/// A set of CPUs. They are below [`MAX_CPUS`]: to add, remove or ask for another one panics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CpuMask([u64; WORDS]);

impl CpuMask {
    /// The empty set.
    #[must_use]
    pub const fn empty() -> Self {
        Self([0; WORDS])
    }

    /// CPUs `0..n`; all [`MAX_CPUS`] if `n` is greater, which debug assertions refuse.
    #[must_use]
    pub const fn first_n(n: usize) -> Self {
        debug_assert!(n <= MAX_CPUS);
        let mut mask = Self::empty();
        let mut i = 0;
        while i < WORDS {
            let left = n.saturating_sub(i * 64);
            mask.0[i] = if left >= 64 {
                u64::MAX
            } else {
                (1 << left) - 1
            };
            i += 1;
        }
        mask
    }

    /// The set whose word `i` (CPUs `64 * i ..`) is `word(i)`.
    #[must_use]
    pub fn from_words(word: impl Fn(usize) -> u64) -> Self {
        Self(core::array::from_fn(word))
    }

    /// The set of one CPU.
    #[must_use]
    pub const fn of(cpu: Cpu) -> Self {
        let mut mask = Self::empty();
        mask.set(cpu);
        mask
    }

    /// Adds `cpu`.
    #[inline]
    pub const fn set(&mut self, cpu: Cpu) {
        self.0[cpu.idx() / 64] |= 1 << (cpu.0 % 64);
    }

    /// Removes `cpu`.
    #[inline]
    pub const fn clear(&mut self, cpu: Cpu) {
        self.0[cpu.idx() / 64] &= !(1 << (cpu.0 % 64));
    }

    /// Whether `cpu` is in the set.
    #[inline]
    #[must_use]
    pub const fn has(&self, cpu: Cpu) -> bool {
        self.0[cpu.idx() / 64] >> (cpu.0 % 64) & 1 == 1
    }

    /// The common CPUs.
    #[inline]
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let mut out = *self;
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a &= b;
        }
        out
    }

    /// The CPUs of either.
    #[inline]
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let mut out = *self;
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
        out
    }

    /// The CPUs of this set that are not in `other`.
    #[inline]
    #[must_use]
    pub fn and_not(&self, other: &Self) -> Self {
        let mut out = *self;
        for (a, b) in out.0.iter_mut().zip(&other.0) {
            *a &= !b;
        }
        out
    }

    /// Whether the sets have a CPU in common.
    #[inline]
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether every CPU of this set is in `other`.
    #[inline]
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a & !b == 0)
    }

    /// Number of CPUs.
    #[inline]
    #[must_use]
    pub fn weight(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    /// Whether the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }

    /// The lowest CPU.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<Cpu> {
        self.next_from(0)
    }

    /// The lowest CPU that is not below `from`.
    #[inline]
    #[must_use]
    pub fn next_from(&self, from: u32) -> Option<Cpu> {
        let mut i = from as usize / 64;
        if i >= WORDS {
            return None;
        }
        let mut word = self.0[i] & (u64::MAX << (from % 64));
        loop {
            if word != 0 {
                return Some(Cpu(i as u32 * 64 + word.trailing_zeros()));
            }
            i += 1;
            if i >= WORDS {
                return None;
            }
            word = self.0[i];
        }
    }

    /// The CPUs in ascending order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let cpu = self.next_from(from)?;
            from = cpu.0 + 1;
            Some(cpu)
        })
    }

    /// The CPUs in ascending order, starting at `start` and wrapping around once.
    #[inline]
    pub fn iter_wrap(&self, start: Cpu) -> impl Iterator<Item = Cpu> + '_ {
        let (mut from, mut wrapped) = (start.0, false);
        core::iter::from_fn(move || {
            loop {
                match self.next_from(from) {
                    Some(cpu) if wrapped && cpu >= start => return None,
                    Some(cpu) => {
                        from = cpu.0 + 1;
                        return Some(cpu);
                    }
                    None if wrapped => return None,
                    None => {
                        wrapped = true;
                        from = 0;
                    }
                }
            }
        })
    }
}

impl FromIterator<Cpu> for CpuMask {
    fn from_iter<I: IntoIterator<Item = Cpu>>(iter: I) -> Self {
        let mut mask = Self::empty();
        iter.into_iter().for_each(|cpu| mask.set(cpu));
        mask
    }
}

impl core::fmt::Debug for CpuMask {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter().map(|c| c.0)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn wraps_once_from_any_start() {
        let mask: CpuMask = [1, 3, 70].map(Cpu).into_iter().collect();
        let order = |start| mask.iter_wrap(Cpu(start)).map(|c| c.0).collect::<Vec<_>>();
        assert_eq!(order(0), [1, 3, 70]);
        assert_eq!(order(3), [3, 70, 1]);
        assert_eq!(order(71), [1, 3, 70]);
    }

    #[test]
    fn first_n_holds_exactly_n() {
        const SOME: CpuMask = CpuMask::first_n(70);
        const LAST: bool = CpuMask::of(Cpu(511)).has(Cpu(511));
        assert!(SOME.has(Cpu(69)) && !SOME.has(Cpu(70)) && LAST);
        for n in [0, 1, 63, 64, 65, 224, 512] {
            assert_eq!(CpuMask::first_n(n).weight() as usize, n);
        }
    }
}
