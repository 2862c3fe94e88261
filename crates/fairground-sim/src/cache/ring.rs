//! Servers that remember when they were busy.

use super::Ps;

/// Intervals kept. Adjacent ones are merged, so a saturated server needs one.
const KEPT: usize = 4;

/// The last busy intervals of a server, in time order, not overlapping.
///
/// A plain "free at" would make a request that arrives out of order wait for one that is later
/// in simulated time. A request older than what is remembered is served at once (history lists of
/// Graphite and Sniper do the same).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ring {
    n: u8,
    busy: [(Ps, Ps); KEPT],
}

impl Ring {
    /// Start of the first gap of `hold` at or after `now`; nothing is booked.
    pub fn first_gap(&self, now: Ps, hold: Ps) -> Ps {
        self.find(now, hold).0
    }

    /// Books the first gap of `hold` at or after `now`; returns its start. What was over at
    /// `horizon` may be forgotten.
    #[inline]
    pub fn book(&mut self, now: Ps, hold: Ps, horizon: Ps) -> Ps {
        let n = usize::from(self.n);
        let [first, second, third, last] = self.busy;
        if n == KEPT && last.1 < now && first.1 <= horizon {
            // As nearly always: it comes after all that is remembered, and the oldest is over.
            self.busy = [second, third, last, (now, now + hold)];
            return now;
        }
        let (start, at) = self.find(now, hold);
        let end = start + hold;
        let joins_before = at > 0 && self.busy[at - 1].1 == start;
        let joins_after = at < n && self.busy[at].0 == end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.busy[at - 1].1 = self.busy[at].1;
                self.busy.copy_within(at + 1..n, at);
                self.n -= 1;
            }
            (true, false) => self.busy[at - 1].1 = end,
            (false, true) => self.busy[at].0 = start,
            (false, false) if n < KEPT => {
                self.busy.copy_within(at..n, at + 1);
                self.busy[at] = (start, end);
                self.n += 1;
            }
            (false, false) => self.insert_full(horizon, at, (start, end)),
        }
        start
    }

    /// The oldest interval is forgotten if it is over. If none is over, the smaller error is made:
    /// the smallest gap is closed, which makes who comes in it wait for nothing, or the shortest
    /// interval is forgotten, which serves who comes in it at once. So no error is longer than a
    /// hold, and handlers that book far ahead do not make the time between them seem busy.
    #[cold]
    fn insert_full(&mut self, horizon: Ps, at: usize, new: (Ps, Ps)) {
        if at > 0 && self.busy[0].1 <= horizon {
            self.busy.copy_within(1..at, 0);
            self.busy[at - 1] = new;
            return;
        }
        let mut all = [(0, 0); KEPT + 1];
        all[..at].copy_from_slice(&self.busy[..at]);
        all[at] = new;
        all[at + 1..].copy_from_slice(&self.busy[at..]);
        let gap = |i: &usize| all[i + 1].0 - all[*i].1;
        let length = |i: &usize| all[*i].1 - all[*i].0;
        let closed = (0..KEPT).min_by_key(gap).unwrap_or(0);
        let forgotten = (0..=KEPT).min_by_key(length).unwrap_or(0);
        if gap(&closed) <= length(&forgotten) {
            all[closed].1 = all[closed + 1].1;
            all.copy_within(closed + 2.., closed + 1);
        } else {
            all.copy_within(forgotten + 1.., forgotten);
        }
        self.busy.copy_from_slice(&all[..KEPT]);
    }

    /// Whether nothing is booked after `now`.
    #[inline]
    fn is_over(&self, now: Ps) -> bool {
        let last = usize::from(self.n).checked_sub(1);
        last.and_then(|last| self.busy.get(last))
            .is_none_or(|busy| busy.1 <= now)
    }

    /// Start of the first fitting gap, and the index of the interval behind it.
    #[inline]
    fn find(&self, now: Ps, hold: Ps) -> (Ps, usize) {
        let n = usize::from(self.n);
        if self.is_over(now) {
            return (now, n);
        }
        let mut start = now;
        for (i, (from, to)) in self.busy[..n].iter().enumerate() {
            if start + hold <= *from {
                return (start, i);
            }
            start = start.max(*to);
        }
        (start, n)
    }
}

/// A first-come server, for locks and other things that one CPU holds at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resource {
    ring: Ring,
    /// Requests served.
    pub acquisitions: u64,
    /// Requests that waited.
    pub contended: u64,
    /// Sum of waiting times.
    pub wait: Ps,
    /// Sum of holding times.
    pub held: Ps,
}

impl Resource {
    /// Holds the resource for `hold` from the first time at or after `now` when it is free for that
    /// long; returns that time. Calls may come slightly out of time order.
    pub fn acquire(&mut self, now: Ps, hold: Ps) -> Ps {
        let start = self.ring.book(now, hold, now);
        self.acquisitions += 1;
        self.contended += u64::from(start > now);
        self.wait += start - now;
        self.held += hold;
        start
    }

    /// When a request at `now` would start that holds it for as long as others did on average;
    /// books nothing.
    #[inline]
    pub fn earliest(&self, now: Ps) -> Ps {
        if self.ring.is_over(now) {
            return now;
        }
        let mean = self.held.checked_div(self.acquisitions).unwrap_or(0);
        self.ring.first_gap(now, mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_request_takes_an_earlier_gap() {
        let mut r = Resource::default();
        assert_eq!(r.acquire(100, 10), 100);
        assert_eq!(r.acquire(130, 10), 130);
        assert_eq!(r.acquire(105, 20), 110); // exactly fits
        assert_eq!(r.acquire(100, 5), 140); // 100..140 is one block now
        assert_eq!(r.acquire(50, 50), 50);
        assert_eq!(r.acquire(90, 1), 145);
        assert_eq!((r.contended, r.held), (3, 96));
    }

    #[test]
    fn intervals_never_overlap() {
        let mut x = 1u64;
        let mut ring = Ring::default();
        for i in 0..10_000u64 {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let now = i * 20 + (x >> 33) % 300;
            let hold = 1 + (x >> 50) % 40;
            assert!(ring.book(now, hold, now) >= now);
            let b = &ring.busy[..usize::from(ring.n)];
            assert!(
                b.iter().all(|i| i.0 < i.1) && b.windows(2).all(|w| w[0].1 < w[1].0),
                "{b:?}"
            );
        }
    }
}
