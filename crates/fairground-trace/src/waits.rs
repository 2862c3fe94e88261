//! How long woken threads have waited for an idle CPU of late: where a recording does not have
//! such a switch, it took as long. Units: nanoseconds.

/// So many of the last ones count.
const LAST: usize = 15;
/// Longer ones waited for something else.
const PROMPT_NS: u64 = 100_000;

/// The last ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waits {
    last: [u64; LAST],
    next: usize,
}

impl Waits {
    /// One more.
    pub fn see(&mut self, ns: u64) {
        if ns <= PROMPT_NS {
            self.last[self.next] = ns;
            self.next = (self.next + 1) % LAST;
        }
    }

    /// Their median; zero before half of them are known.
    #[must_use]
    pub fn usual(&self) -> u64 {
        let mut sorted = self.last;
        sorted.sort_unstable();
        sorted[LAST / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_last_prompt_ones_is_usual() {
        let mut waits = Waits::default();
        assert_eq!(waits.usual(), 0);
        (0..7).for_each(|_| waits.see(600));
        assert_eq!(waits.usual(), 0);
        (0..7).for_each(|_| waits.see(700));
        waits.see(4_000_000);
        assert_eq!(waits.usual(), 600);
        (0..8).for_each(|_| waits.see(800));
        assert_eq!(waits.usual(), 800);
    }
}
