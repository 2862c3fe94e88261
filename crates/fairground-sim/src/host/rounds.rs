//! Rounds of a spinning CPU's loop: it looks, pauses (`cpu_relax()`), and looks again.

use super::{Place, SimHost};
use crate::cache::Ps;

/// How long a pause takes. On x86 that is `PAUSE`; where the kernel waits for the line instead
/// (`WFE` of arm64) there is none.
#[derive(Clone, Copy, Debug)]
pub struct Rounds(pub Ps);

impl Rounds {
    /// The first look at or after `at` of a CPU that has looked at `since`. What a look takes is
    /// left out: it hits until the word is written.
    #[inline]
    pub fn seen(self, since: Ps, at: Ps) -> Ps {
        match at.saturating_sub(since) {
            0 => since,
            waited if self.0 == 0 => since + waited,
            waited => since + waited.next_multiple_of(self.0),
        }
    }
}

impl SimHost {
    /// Rounds of a CPU that spins.
    #[must_use]
    pub fn rounds(&self) -> Rounds {
        self.prices.rounds
    }

    /// The executing CPU spins in `place` until it sees what happens at `until`.
    #[inline]
    pub fn spin_until(&mut self, place: Place, until: Ps) {
        self.wait_until(place, self.rounds().seen(self.at, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_seen_at_the_next_look() {
        let rounds = Rounds(40);
        assert_eq!(rounds.seen(100, 90), 100, "it was free");
        assert_eq!(rounds.seen(100, 100), 100);
        assert_eq!(rounds.seen(100, 101), 140);
        assert_eq!(rounds.seen(100, 140), 140);
        assert_eq!(rounds.seen(100, 141), 180);
        assert_eq!(Rounds(0).seen(100, 141), 141);
    }
}
