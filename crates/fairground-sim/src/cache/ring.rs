//! Servers that remember when they were busy.

use smallvec::SmallVec;

use super::Ps;

/// Intervals kept in place. Adjacent ones are merged, so a saturated server needs one.
const KEPT: usize = 4;
/// Intervals kept at most.
const MOST: usize = 256;

/// The busy intervals of a server that a request may still come before, in time order, not
/// overlapping.
///
/// A plain "free at" would make a request that arrives out of order wait for one that is later
/// in simulated time. A request older than what is remembered is served at once (history lists of
/// Graphite and Sniper do the same).
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    busy: SmallVec<[(Ps, Ps); KEPT]>,
}

impl Ring {
    /// Start of the first gap of `hold` at or after `now`; nothing is booked.
    pub fn first_gap(&self, now: Ps, hold: Ps) -> Ps {
        self.find(now, hold).0
    }

    /// Books the first gap of `hold` at or after `now`; returns its start. Nobody will ask for a
    /// time before `horizon`, so what is over then may be forgotten.
    #[inline]
    pub fn book(&mut self, now: Ps, hold: Ps, horizon: Ps) -> Ps {
        let n = self.busy.len();
        let (start, at) = self.find(now, hold);
        let end = start + hold;
        let joins_before = at > 0 && self.busy[at - 1].1 == start;
        let joins_after = at < n && self.busy[at].0 == end;
        match (joins_before, joins_after) {
            (true, true) => {
                self.busy[at - 1].1 = self.busy[at].1;
                self.busy.remove(at);
            }
            (true, false) => self.busy[at - 1].1 = end,
            (false, true) => self.busy[at].0 = start,
            (false, false) => {
                self.busy.insert(at, (start, end));
                if n >= KEPT {
                    self.forget(horizon);
                }
            }
        }
        start
    }

    /// The first time at or after `now` when the server is idle.
    #[inline]
    pub fn idle_at(&self, now: Ps) -> Ps {
        if self.is_over(now) {
            return now;
        }
        let at = self.busy.partition_point(|(_, to)| *to <= now);
        match self.busy[at] {
            (from, to) if from <= now => to,
            _ => now,
        }
    }

    /// The server works for `hold` on a request that comes at `now`, from when it is idle; returns
    /// that time. Where a later request has been booked before this one is done, the rest is work
    /// for the idle time behind it: requests come out of order, and no idle time is lost for it.
    /// Nobody will ask for a time before `horizon`.
    #[inline]
    pub fn work(&mut self, now: Ps, hold: Ps, horizon: Ps) -> Ps {
        if self.is_over(now) {
            match self.busy.last_mut() {
                Some((_, to)) if *to == now => *to += hold,
                _ => self.append(now, hold, horizon),
            }
            return now;
        }
        let start = self.idle_at(now);
        let at = self.busy.partition_point(|(_, to)| *to <= start);
        // Without the intervals that the work reaches, and with one that covers them.
        let (mut end, mut last) = (start + hold, at);
        while let Some((from, to)) = self.busy.get(last)
            && *from <= end
        {
            end += to - from;
            last += 1;
        }
        let joins = at > 0 && self.busy[at - 1].1 == start;
        let first = at - usize::from(joins);
        let from = if joins { self.busy[first].0 } else { start };
        if first < last {
            self.busy[first] = (from, end);
            self.busy.drain(first + 1..last);
        } else {
            self.busy.insert(first, (from, end));
            if self.busy.len() > KEPT {
                self.forget(horizon);
            }
        }
        start
    }

    /// Adds an interval behind all others.
    #[inline]
    fn append(&mut self, from: Ps, hold: Ps, horizon: Ps) {
        self.busy.push((from, from + hold));
        if self.busy.len() > KEPT {
            self.forget(horizon);
        }
    }

    /// Forgets what is over. If there is still too much, the smaller error is made:
    /// the smallest gap is closed, which makes who comes in it wait for nothing, or the shortest
    /// interval is forgotten, which serves who comes in it at once.
    #[cold]
    fn forget(&mut self, horizon: Ps) {
        // In order, so if the first is not over none is.
        if self.busy.first().is_some_and(|(_, to)| *to <= horizon) {
            let over = self.busy.partition_point(|(_, to)| *to <= horizon);
            self.busy.drain(..over);
        }
        if self.busy.len() <= MOST {
            return;
        }
        let busy = &mut self.busy;
        let gap = |busy: &[(Ps, Ps)], i: usize| busy[i + 1].0 - busy[i].1;
        let length = |busy: &[(Ps, Ps)], i: usize| busy[i].1 - busy[i].0;
        let closed = (0..busy.len() - 1).min_by_key(|i| gap(busy, *i));
        let forgotten = (0..busy.len()).min_by_key(|i| length(busy, *i));
        let (closed, forgotten) = (closed.unwrap_or(0), forgotten.unwrap_or(0));
        if gap(busy, closed) <= length(busy, forgotten) {
            busy[closed].1 = busy[closed + 1].1;
            busy.remove(closed + 1);
        } else {
            busy.remove(forgotten);
        }
    }

    /// Whether nothing is booked after `now`.
    #[inline]
    fn is_over(&self, now: Ps) -> bool {
        self.busy.last().is_none_or(|(_, to)| *to <= now)
    }

    /// Start of the first fitting gap, and the index of the interval behind it.
    #[inline]
    fn find(&self, now: Ps, hold: Ps) -> (Ps, usize) {
        let n = self.busy.len();
        if self.is_over(now) {
            return (now, n);
        }
        let from = self.busy.partition_point(|(_, to)| *to <= now);
        let mut start = now;
        for (i, (from, to)) in self.busy.iter().enumerate().skip(from) {
            if start + hold <= *from {
                return (start, i);
            }
            start = start.max(*to);
        }
        (start, n)
    }
}

/// A first-come server, for locks and other things that one CPU holds at a time.
#[derive(Clone, Debug, Default)]
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
    fn no_idle_time_is_lost() {
        let mut ring = Ring::default();
        assert_eq!(ring.work(100, 10, 0), 100);
        assert_eq!(ring.work(115, 10, 0), 115);
        // Five fit between, five come behind the second.
        assert_eq!(ring.work(100, 10, 0), 110);
        assert_eq!(&ring.busy[..], [(100, 130)]);
        assert_eq!(ring.work(90, 5, 0), 90);
        assert_eq!(ring.work(120, 5, 0), 130);
        let mut x = 1u64;
        let (mut ring, mut sum) = (Ring::default(), 0);
        for i in 0..10_000u64 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
            let (now, hold) = (i * 20 + (x >> 33) % 3000, 1 + (x >> 50) % 40);
            assert!(ring.work(now, hold, 0) >= now);
            sum += hold;
            let b = &ring.busy;
            assert!(b.iter().all(|i| i.0 < i.1) && b.windows(2).all(|w| w[0].1 < w[1].0));
            let booked: u64 = b.iter().map(|i| i.1 - i.0).sum();
            assert!(b.len() == MOST || booked == sum, "{booked} of {sum}");
        }
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
            let b = &ring.busy;
            assert!(
                b.iter().all(|i| i.0 < i.1) && b.windows(2).all(|w| w[0].1 < w[1].0),
                "{b:?}"
            );
        }
    }
}
