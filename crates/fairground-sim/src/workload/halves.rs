//! How long requests took in the first half of the measured time and in the second. Where requests
//! come faster than they are answered, each waits for more others than the one before it, so the
//! second half is slower, however long the run. Units: nanoseconds.

use super::time::{Ns, Until};

/// One half, of one kind of request: those that ended in it with their duration, and those that
/// were open at its end with their age. So both halves lack the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Half {
    /// How many.
    pub requests: u64,
    /// How long they took together.
    pub sum_ns: Ns,
}

impl Half {
    fn add(&mut self, ns: Ns) {
        self.requests += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Mean, us; `None` of none.
    #[must_use]
    pub fn mean_us(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.sum_ns as f64 / self.requests as f64 / 1e3)
    }
}

/// The middle of the measured time, if it is known beforehand when that ends.
pub(super) fn middle_ns(warmup_ns: Ns, duration: Until) -> Option<Ns> {
    let Until::Time(end_ns) = duration else {
        return None;
    };
    let window_ns = end_ns.checked_sub(warmup_ns)?;
    Some(warmup_ns + window_ns / 2)
}

/// A request that began at `start` ended at `end`, in the measured time, or was still open then.
pub(super) fn add(halves: &mut [Half; 2], middle: Ns, start: Ns, end: Ns) {
    let [first, second] = halves;
    if end < middle {
        first.add(end.saturating_sub(start));
        return;
    }
    second.add(end.saturating_sub(start));
    // It was open in the middle.
    if start < middle {
        first.add(middle - start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_open_in_the_middle_is_in_both_halves() {
        let mut halves = [Half::default(); 2];
        for (start, end) in [(0, 40), (60, 100), (80, 130), (150, 160)] {
            add(&mut halves, 100, start, end);
        }
        let [first, second] = halves;
        assert_eq!((first.requests, first.sum_ns), (3, 40 + 40 + 20));
        assert_eq!((second.requests, second.sum_ns), (3, 40 + 50 + 10));
        assert_eq!(Half::default().mean_us(), None);
    }

    #[test]
    fn a_run_without_a_known_end_has_no_middle() {
        assert_eq!(middle_ns(100, Until::AllExit), None);
        assert_eq!(middle_ns(100, Until::Time(300)), Some(200));
    }
}
