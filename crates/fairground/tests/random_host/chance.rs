//! Random numbers of a run: the same for the same seed.

/// An xorshift generator.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        let mut out = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        // Seeds are small: their first numbers are alike.
        for _ in 0..8 {
            out.next();
        }
        out
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// One of several; the list is not empty.
    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.index(list.len())]
    }
}
