//! Clock values that cannot be: a recorder that wrote over its buffer, a file with a changed byte.
//! Times are in nanoseconds.

use crate::event::Event;

/// Events that come late to the file are milliseconds late. Who is further from those around it on
/// its CPU has a damaged time.
const FAR_NS: u64 = 1_000_000_000;
/// The first or last event of all is damaged if nothing else is so far from anything, and all the
/// rest together lasts so many times less.
const ALONE_NS: u64 = 10_000_000_000;
const ALONE_TIMES: u64 = 10;
/// A kernel's own threads run more often than this.
const GAP_NS: u64 = 30 * SECOND_NS;
const SECOND_NS: u64 = 1_000_000_000;
const WHOLE_NS: u64 = 100_000_000;
/// Fewer say nothing about what is usual.
const FEW: usize = 32;

/// What a look at the order of events finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Events that are older than one before them on their CPU.
    pub backwards: u64,
    /// Events that are older than the very one before them on their CPU.
    pub descents: u64,
    /// One is so much older that a time is damaged.
    pub far: bool,
    /// All are in order of time.
    pub sorted: bool,
}

impl Order {
    /// Of events in the order of the file.
    pub fn of(events: &[Event], cpus: u32) -> Self {
        let mut seen = vec![(0_u64, 0_u64); cpus as usize];
        let mut order = Self {
            sorted: true,
            ..Self::default()
        };
        let mut before = 0;
        for event in events {
            let (latest, last) = &mut seen[event.cpu as usize];
            order.descents += u64::from(event.at_ns < *last);
            if event.at_ns < *latest {
                order.backwards += 1;
                order.far |= event.at_ns + FAR_NS < *latest;
            }
            *latest = (*latest).max(event.at_ns);
            *last = event.at_ns;
            order.sorted &= event.at_ns >= before;
            before = event.at_ns;
        }
        order
    }

    /// Whether times do not count on at all, as of `perf script --deltatime`: between two
    /// differences each way is as likely.
    pub fn runs_back(self, events: usize) -> bool {
        events >= FEW && self.descents * 4 > events as u64
    }
}

/// Leaves out events whose time is damaged; how many.
///
/// Of each CPU the longest sequence in order is right; what is not in it and far from its
/// neighbours there is damaged. (A rule that takes the first time for right would lose all that
/// follows a jump forward.)
pub fn leave_out_damaged(events: &mut Vec<Event>, cpus: u32) -> u64 {
    let mut by_cpu: Vec<Vec<u32>> = vec![Vec::new(); cpus as usize];
    for (i, event) in events.iter().enumerate() {
        by_cpu[event.cpu as usize].push(i as u32);
    }
    let mut damaged = vec![false; events.len()];
    for of_cpu in &by_cpu {
        let times: Vec<u64> = of_cpu.iter().map(|i| events[*i as usize].at_ns).collect();
        let (mut kept, mut low) = (longest_in_order(&times).into_iter().peekable(), 0);
        for (at, i) in of_cpu.iter().enumerate() {
            if kept.next_if_eq(&at).is_some() {
                low = times[at];
                continue;
            }
            let high = kept.peek().map_or(u64::MAX, |next| times[*next]);
            let beyond = times[at].saturating_sub(high.max(low));
            let beyond = match high {
                // Behind the last that is right.
                u64::MAX => times[at].abs_diff(low),
                _ => beyond.max(low.saturating_sub(times[at])),
            };
            damaged[*i as usize] = beyond > FAR_NS;
        }
    }
    let before = events.len();
    let mut damaged = damaged.into_iter();
    events.retain(|_| !damaged.next().unwrap_or(false));
    (before - events.len()) as u64
}

/// Indices of a longest sequence that never goes back.
fn longest_in_order(times: &[u64]) -> Vec<usize> {
    // For each length, where the sequence of that length ends that can be gone on with best.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(times.len());
    for (i, time) in times.iter().enumerate() {
        let length = ends.partition_point(|end| times[*end] <= *time);
        before.push(length.checked_sub(1).map(|l| ends[l]));
        match ends.get_mut(length) {
            Some(end) => *end = i,
            None => ends.push(i),
        }
    }
    let mut found: Vec<usize> =
        std::iter::successors(ends.last().copied(), |i| before[*i]).collect();
    found.reverse();
    found
}

/// Leaves out the first or last of sorted events if it stands alone; how many.
pub fn leave_out_alone(events: &mut Vec<Event>) -> u64 {
    let before = events.len();
    if let [.., from, to] = events[..]
        && alone(events, events[0].at_ns, from.at_ns, to.at_ns)
    {
        events.pop();
    }
    if let [from, to, .., last] = events[..]
        && alone(
            events,
            to.at_ns,
            last.at_ns,
            last.at_ns + (to.at_ns - from.at_ns),
        )
    {
        events.remove(0);
    }
    (before - events.len()) as u64
}

/// Cuts out times at which nothing happens on any CPU for long: how many such times, and how long
/// together. A simulation would go through all of it tick by tick; two files that were joined have
/// such a time, and so have a few events with one damaged clock. What is cut has ticks of 1, 4 and
/// 10 ms and usual periods of groups as a whole, so that others stay where they were.
pub fn cut_gaps(events: &mut [Event]) -> (u64, u64) {
    let (mut gaps, mut cut) = (0, 0);
    let mut before = events.first().map_or(0, |e| e.at_ns);
    for event in events {
        let gap = event.at_ns - before;
        before = event.at_ns;
        if gap > GAP_NS {
            gaps += 1;
            cut += gap / WHOLE_NS * WHOLE_NS;
        }
        event.at_ns -= cut;
    }
    (gaps, cut)
}

/// Whether what is at `alone` is far beyond all that lasts from `first` to `last`.
fn alone(events: &[Event], first: u64, last: u64, alone: u64) -> bool {
    let away = alone - last;
    events.len() >= FEW && away > ALONE_NS && away / ALONE_TIMES > last - first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Kind};

    fn events(times: impl IntoIterator<Item = u64>) -> Vec<Event> {
        let at = |(n, at_ns): (usize, u64)| Event {
            at_ns,
            cpu: n as u32 % 2,
            tid: 1,
            context: Context::Unknown,
            kind: Kind::Exit { tid: 1 },
        };
        times.into_iter().enumerate().map(at).collect()
    }

    #[test]
    fn a_jump_forth_and_back_costs_the_event_that_jumped() {
        let second = 1_000_000_000;
        let usual = |n: u64| 5000 * second + n * 1_000_000;
        for (at, wrong) in [(40, 10_000 * second), (41, 3), (0, 9000 * second), (99, 1)] {
            let times = (0..100).map(|n| if n == at { wrong } else { usual(n) });
            let mut all = events(times);
            let order = Order::of(&all, 2);
            assert!(order.far && !order.runs_back(all.len()), "{at}");
            assert_eq!(leave_out_damaged(&mut all, 2), 1, "{at}");
            let again = Order::of(&all, 2);
            assert!(again.sorted && again.backwards == 0, "{at}");
        }
    }

    #[test]
    fn what_is_a_little_late_is_no_damage() {
        let times = (0..100).map(|n| 1_000_000_000 + n * 1_000_000 - (n % 3) * 2_000_000);
        let mut all = events(times);
        let order = Order::of(&all, 2);
        assert!(!order.far && order.backwards > 0 && !order.sorted);
        assert_eq!(leave_out_damaged(&mut all, 2), 0);
    }

    #[test]
    fn one_at_either_end_that_is_far_beyond_all_is_left_out() {
        let hour = 3_600_000_000_000;
        let usual = |n: u64| hour + n * 1_000_000;
        let mut last = events((0..100).map(usual).chain([hour * 9]));
        assert_eq!(leave_out_alone(&mut last), 1);
        let mut first = events([7].into_iter().chain((0..100).map(usual)));
        assert_eq!(leave_out_alone(&mut first), 1);
        let mut few = events([7, usual(1)]);
        assert_eq!(leave_out_alone(&mut few), 0);
        // Two that belong together are an end.
        let mut two = events((0..100).map(usual).chain([hour * 9, hour * 9 + 1]));
        assert_eq!(leave_out_alone(&mut two), 0);
    }

    #[test]
    fn times_without_any_event_are_cut_out() {
        let second = SECOND_NS;
        let usual = |n: u64| 7 * second + n * 1_000_000;
        let far = [90_000 * second + 5, 90_000 * second + 6];
        let mut all = events((0..100).map(usual).chain(far));
        let (gaps, cut) = cut_gaps(&mut all);
        assert_eq!((gaps, cut % WHOLE_NS), (1, 0));
        assert_eq!(all[99].at_ns, usual(99));
        let [.., a, b] = all[..] else {
            panic!("two more");
        };
        assert!(a.at_ns - usual(99) < WHOLE_NS && b.at_ns == a.at_ns + 1);
        assert_eq!(a.at_ns % WHOLE_NS, 5);
        let mut slow = events((0..10).map(|n| n * 30 * second));
        assert_eq!(cut_gaps(&mut slow), (0, 0));
    }

    #[test]
    fn differences_do_not_count_on() {
        let times = (0..100_u64).map(|n| n * 7919 % 1000);
        let order = Order::of(&events(times), 2);
        assert!(order.runs_back(100), "{order:?}");
    }
}
