//! From reuse time to stack distance, by the distribution of reuse times.
//!
//! Of the `t` touches since a line's last one, some went to lines that were touched twice. A touch
//! made `i` steps ago was the last one of its line iff that line's next reuse takes more than `i`
//! steps. So the expected number of different lines, the stack distance, is
//!
//!   D(t) = sum over i = 1..t of P(reuse time > i)       (StatStack: Eklov and Hagersten 2010)
//!
//! The distribution is a histogram with eight buckets to each power of two, halved at every
//! rebuild so that it follows the load. Integers only.

/// Buckets: reuse times from 8 to 2^29.
const BUCKETS: usize = 208;
/// Touches between two rebuilds.
const REBUILD: u32 = 2048;

#[derive(Clone)]
pub(super) struct Reuse {
    seen: [u32; BUCKETS],
    /// Lines never seen before: infinite reuse time.
    never: u32,
    since: u32,
    /// D at the lower edge of each bucket.
    distance: [u32; BUCKETS],
}

impl Reuse {
    /// Without history every touch counts: D(t) = t.
    pub fn new() -> Self {
        let distance = std::array::from_fn(edge);
        Self {
            seen: [0; BUCKETS],
            never: 0,
            since: 0,
            distance,
        }
    }

    /// A touch after `age` others.
    pub fn saw(&mut self, age: u32) {
        self.seen[bucket(age)] += 1;
        self.tick(1);
    }

    /// A touch after `age` others; their expected stack distance.
    #[inline]
    pub fn saw_at(&mut self, age: u32) -> u32 {
        self.saw(age);
        self.distance(age)
    }

    /// `n` touches of lines that were never seen.
    pub fn saw_new(&mut self, n: u32) {
        self.never = self.never.saturating_add(n).min(1 << 30);
        self.tick(n);
    }

    /// Expected stack distance of a line touched `age` steps ago.
    pub fn distance(&self, age: u32) -> u32 {
        let b = bucket(age);
        let Some(next) = self.distance.get(b + 1) else {
            return u32::MAX;
        };
        let part = u64::from(age.saturating_sub(edge(b))) * u64::from(next - self.distance[b]);
        self.distance[b] + (part >> width_log2(b)) as u32
    }

    fn tick(&mut self, n: u32) {
        self.since = self.since.saturating_add(n);
        if self.since < REBUILD {
            return;
        }
        self.since = 0;
        let seen: u64 = self.seen.iter().map(|n| u64::from(*n)).sum();
        let total = (seen + u64::from(self.never)).max(1);
        let mut longer = total;
        for b in 0..BUCKETS - 1 {
            let here = u64::from(self.seen[b]);
            // Times are counted at the upper end of their bucket: exact for walks in a cycle,
            // where all are equal, and up to a sixteenth too far for even spreads.
            let times = longer << width_log2(b);
            self.distance[b + 1] = self.distance[b] + (times / total) as u32;
            longer -= here;
        }
        self.never /= 2;
        self.seen.iter_mut().for_each(|n| *n /= 2);
    }
}

fn bucket(age: u32) -> usize {
    let age = age.max(8);
    let log = 31 - age.leading_zeros();
    let index = (log as usize - 3) * 8 + (age >> (log - 3) & 7) as usize;
    index.min(BUCKETS - 1)
}

/// Ages that one bucket holds, log2.
fn width_log2(b: usize) -> u32 {
    (b >> 3) as u32
}

/// Lower end of a bucket.
fn edge(b: usize) -> u32 {
    (8 + (b & 7) as u32) << (b >> 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_and_edges_agree() {
        for age in (8..5000).chain([1 << 20, (1 << 24) + 12345]) {
            let b = bucket(age);
            assert!(edge(b) <= age && age < edge(b + 1), "{age}");
            assert_eq!(edge(b + 1) - edge(b), 1 << width_log2(b));
        }
    }

    #[test]
    fn a_cycle_has_the_distance_of_its_length() {
        let mut r = Reuse::new();
        (0..20_000).for_each(|_| r.saw(1000));
        assert!(
            (990..=1010).contains(&r.distance(1000)),
            "{}",
            r.distance(1000)
        );
        // Beyond the cycle nothing new comes.
        assert!(r.distance(100_000) < 1100);
        (0..100_000).for_each(|_| r.saw_new(1));
        assert!(r.distance(100_000) > 95_000);
    }
}
