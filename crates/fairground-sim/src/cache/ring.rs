//! Servers that remember when they were busy.

use super::Ps;

/// Earlier intervals beyond which those that are over are forgotten.
const KEPT: usize = 3;
/// Intervals kept at most.
const MOST: usize = 256;

/// The busy intervals of a server that a request may still come before, in time order, not
/// overlapping.
///
/// A plain "free at" would make a request that arrives out of order wait for one that is later
/// in simulated time. A request older than what is remembered is served at once (history lists of
/// Graphite and Sniper do the same).
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Ring {
    /// The latest, which nearly all requests come into or behind: a saturated server needs no
    /// other. `(0, 0)`: none.
    last: (Ps, Ps),
    earlier: Vec<(Ps, Ps)>,
}

impl Ring {
    /// Start of the first gap of `hold` at or after `now`; nothing is booked.
    pub fn first_gap(&self, now: Ps, hold: Ps) -> Ps {
        if now >= self.last.0 {
            return now.max(self.last.1);
        }
        find(self.earlier.iter().chain([&self.last]), now, hold)
    }

    /// Books the first gap of `hold` at or after `now`; returns its start. Few will ask for an
    /// earlier time, so of what is over then only some is kept.
    #[inline]
    pub fn book(&mut self, now: Ps, hold: Ps) -> Ps {
        if now >= self.last.0 {
            return self.behind(now, hold, now);
        }
        self.among(now, |busy| {
            let start = find(busy.iter(), now, hold);
            let at = busy.partition_point(|(from, _)| *from < start);
            (start, insert(busy, at, start, start + hold))
        })
    }

    /// The first time at or after `now` when the server is idle.
    #[inline]
    pub fn idle_at(&self, now: Ps) -> Ps {
        if now >= self.last.0 {
            return now.max(self.last.1);
        }
        let at = self.earlier.partition_point(|(_, to)| *to <= now);
        match self.earlier.get(at) {
            Some((from, to)) if *from <= now => *to,
            _ => now,
        }
    }

    /// The server works for `hold` on a request that comes at `now`, from when it is idle; returns
    /// that time. Where a later request has been booked before this one is done, the rest is work
    /// for the idle time behind it: requests come out of order, and no idle time is lost for it.
    /// Nobody will ask for a time before `horizon`.
    #[inline]
    pub fn work(&mut self, now: Ps, hold: Ps, horizon: Ps) -> Ps {
        if now >= self.last.0 {
            return self.behind(now, hold, horizon);
        }
        let start = self.idle_at(now);
        self.among(horizon, |busy| {
            let at = busy.partition_point(|(_, to)| *to <= start);
            // Without the intervals that the work reaches, and with one that covers them.
            let (mut end, mut next) = (start + hold, at);
            while let Some((from, to)) = busy.get(next)
                && *from <= end
            {
                end += to - from;
                next += 1;
            }
            let reached = busy.drain(at..next).count();
            (start, insert(busy, at, start, end) && reached == 0)
        })
    }

    /// For a request that comes into the latest interval or behind it.
    #[inline(always)]
    fn behind(&mut self, now: Ps, hold: Ps, horizon: Ps) -> Ps {
        let (_, to) = self.last;
        if now <= to {
            self.last.1 = to + hold;
            return to;
        }
        let before = std::mem::replace(&mut self.last, (now, now + hold));
        let is_one = to > 0;
        if is_one && (to > horizon || self.earlier.len() < KEPT) {
            self.earlier.push(before);
            if self.earlier.len() > KEPT {
                self.forget(horizon);
            }
        } else if !self.earlier.is_empty() {
            // In order, so with the latest all are over.
            self.earlier.clear();
        }
        now
    }

    /// Lets `change` see and change all intervals, and say whether there is one more.
    #[cold]
    fn among(&mut self, horizon: Ps, change: impl FnOnce(&mut Vec<(Ps, Ps)>) -> (Ps, bool)) -> Ps {
        self.earlier.push(self.last);
        let (start, grown) = change(&mut self.earlier);
        self.last = self.earlier.pop().unwrap_or_default();
        if grown && self.earlier.len() > KEPT {
            self.forget(horizon);
        }
        start
    }

    /// Forgets what is over. If there is still too much, the smaller error is made:
    /// the smallest gap is closed, which makes who comes in it wait for nothing, or the shortest
    /// interval is forgotten, which serves who comes in it at once.
    #[cold]
    fn forget(&mut self, horizon: Ps) {
        // In order, so if the first is not over none is.
        if self.earlier.first().is_some_and(|(_, to)| *to <= horizon) {
            let over = self.earlier.partition_point(|(_, to)| *to <= horizon);
            self.earlier.drain(..over);
        }
        if self.earlier.len() < MOST {
            return;
        }
        self.earlier.push(self.last);
        let busy = &mut self.earlier;
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
        self.last = busy.pop().unwrap_or_default();
    }
}

/// Adds an interval before the one at `at`, as a part of its neighbours where it touches them;
/// whether there is one more then.
fn insert(busy: &mut Vec<(Ps, Ps)>, at: usize, from: Ps, to: Ps) -> bool {
    let joins_before = at > 0 && busy[at - 1].1 == from;
    let joins_after = busy.get(at).is_some_and(|next| next.0 == to);
    match (joins_before, joins_after) {
        (true, true) => {
            busy[at - 1].1 = busy[at].1;
            busy.remove(at);
        }
        (true, false) => busy[at - 1].1 = to,
        (false, true) => busy[at].0 = from,
        (false, false) => busy.insert(at, (from, to)),
    }
    !joins_before && !joins_after
}

/// Start of the first gap of `hold` at or after `now`.
fn find<'a>(busy: impl Iterator<Item = &'a (Ps, Ps)>, now: Ps, hold: Ps) -> Ps {
    let mut start = now;
    for (from, to) in busy.skip_while(|(_, to)| *to <= now) {
        if start + hold <= *from {
            return start;
        }
        start = start.max(*to);
    }
    start
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
        let start = self.ring.book(now, hold);
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
        if self.ring.last.1 <= now {
            return now;
        }
        let mean = self.held.checked_div(self.acquisitions).unwrap_or(0);
        self.ring.first_gap(now, mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ring: &Ring) -> Vec<(Ps, Ps)> {
        [&ring.earlier[..], &[ring.last]].concat()
    }

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
        assert_eq!(all(&ring), [(100, 130)]);
        assert_eq!(ring.work(90, 5, 0), 90);
        assert_eq!(ring.work(120, 5, 0), 130);
        let mut x = 1u64;
        let (mut ring, mut sum) = (Ring::default(), 0);
        for i in 0..10_000u64 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1);
            let (now, hold) = (i * 20 + (x >> 33) % 3000, 1 + (x >> 50) % 40);
            assert!(ring.work(now, hold, 0) >= now);
            sum += hold;
            let b = all(&ring);
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
            assert!(ring.book(now, hold) >= now);
            let b = all(&ring);
            assert!(
                b.iter().all(|i| i.0 < i.1) && b.windows(2).all(|w| w[0].1 < w[1].0),
                "{b:?}"
            );
        }
    }
}
