//! How long requests took in the first half of the measured time and in the second, and how many
//! were open before, between and after them. Where requests come faster than they are answered,
//! each waits for more others than the one before it, so the second half is slower, and more are
//! open at the end of each. Units: nanoseconds.

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

/// Both halves of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halves {
    /// What each has.
    pub half: [Half; 2],
    /// Requests that were open at the beginning of the measured time, in its middle and at its end.
    pub open: [u64; 3],
    /// Tasks that asked, of those requests that ended in the measured time or were open at its end:
    /// as many as requests if each is sent by a task of its own, few if clients wait for an answer
    /// before they ask again.
    pub askers: u64,
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

impl Halves {
    /// A request that began at `start` ended at `end`, in the time measured from `first` on.
    pub(super) fn ended(&mut self, first: Ns, middle: Ns, start: Ns, end: Ns) {
        self.open[0] += u64::from(start < first);
        self.open[1] += u64::from(start < middle && end >= middle);
        let [one, two] = &mut self.half;
        if end < middle {
            one.add(end.saturating_sub(start));
            return;
        }
        two.add(end.saturating_sub(start));
        // It was open in the middle.
        if start < middle {
            one.add(middle - start);
        }
    }

    /// It was still open at `end`, that of the run.
    pub(super) fn left_open(&mut self, first: Ns, middle: Ns, start: Ns, end: Ns) {
        self.ended(first, middle, start, end);
        self.open[2] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_open_in_the_middle_is_in_both_halves() {
        let mut halves = Halves::default();
        for (start, end) in [(0, 40), (60, 100), (80, 130)] {
            halves.ended(20, 100, start, end);
        }
        halves.left_open(20, 100, 150, 160);
        assert_eq!(halves.open, [1, 2, 1]);
        let [first, second] = halves.half;
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
