//! Everything that is due, in order of time, then of insertion.

use std::cmp::Reverse;
use std::collections::VecDeque;

use dary_heap::QuaternaryHeap;

use super::due::Due;
use super::soon::Soon;
use crate::cache::Ps;

/// The queue.
///
/// A CPU has at most one step of work and one tick to come: the later setting of either replaces
/// the earlier. These are most of all events. Ticks are nearly always set in order of time, as
/// they fall on one grid, so they wait in a row; those that are replaced, or would be out of
/// order, say so by their number. What else is due within microseconds is in buckets. Of the rest,
/// steps, and ticks out of order, are leaves of a tree of which each node is the smaller of the two
/// below, and everything else is in a heap.
#[derive(Debug)]
pub struct Queue {
    /// A node for each leaf, too, with what it stands for.
    soon: Soon,
    ticks: VecDeque<Tick>,
    /// By CPU, the number of its tick in `ticks`; 0 if it has none there.
    tick_of: Vec<u64>,
    /// Root at 1, leaves in the second half: time (64 bits), sequence number (48), leaf (16). A
    /// leaf is a CPU, from the middle on its tick.
    tree: Vec<u128>,
    heap: QuaternaryHeap<Reverse<(Ps, u64, Slot)>>,
    /// Nothing but what is soon is due before.
    others: Ps,
    next: u64,
}

/// A tick in the row.
#[derive(Clone, Copy, Debug)]
struct Tick {
    at: Ps,
    number: u64,
    cpu: u32,
    stamp: u32,
}

const NEVER: u128 = u128::MAX;

/// In order of time, then of insertion; room for a leaf is left.
#[inline]
fn key((at, number): (Ps, u64)) -> u128 {
    u128::from(at) << 64 | u128::from(number) << 16
}

/// Keeps `Due` out of the comparison: the sequence number is unique.
#[derive(Clone, Copy, Debug)]
struct Slot(Due);

impl PartialEq for Slot {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Slot {}
impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Slot {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Queue {
    /// Nothing is due on any of `cpus` CPUs.
    pub fn new(cpus: usize) -> Self {
        let leaves = 2 * cpus.next_power_of_two();
        debug_assert!(leaves <= 1 << 16);
        Self {
            soon: Soon::new(leaves),
            ticks: VecDeque::new(),
            tick_of: vec![0; cpus],
            tree: vec![NEVER; 2 * leaves],
            heap: QuaternaryHeap::new(),
            others: 0,
            next: 0,
        }
    }

    /// Enters `due` at `at`.
    pub fn push(&mut self, at: Ps, due: Due) {
        match due {
            Due::Work { cpu, stamp } => self.push_work(at, cpu, stamp),
            Due::Tick { cpu, stamp } => self.push_tick(at, cpu, stamp),
            _ => {
                self.next += 1;
                if self.soon.reaches(at) {
                    return self.soon.add(at, self.next, due);
                }
                self.others = self.others.min(at);
                self.heap.push(Reverse((at, self.next, Slot(due))));
            }
        }
    }

    /// Enters a step.
    #[inline]
    pub fn push_work(&mut self, at: Ps, cpu: u32, stamp: u32) {
        self.next += 1;
        self.push_leaf(at, cpu, Due::Work { cpu, stamp });
    }

    /// Enters a tick.
    pub fn push_tick(&mut self, at: Ps, cpu: u32, stamp: u32) {
        self.next += 1;
        let leaf = self.tree.len() as u32 / 4 + cpu;
        let number = &mut self.tick_of[cpu as usize];
        if self.ticks.back().is_some_and(|last| last.at > at) {
            *number = 0;
            return self.push_tick_between(at, leaf, Due::Tick { cpu, stamp });
        }
        let was_leaf = *number == 0;
        *number = self.next;
        self.others = self.others.min(at);
        self.ticks.push_back(Tick {
            at,
            number: self.next,
            cpu,
            stamp,
        });
        if was_leaf && self.soon.waits(leaf) {
            self.withdraw(leaf);
        }
    }

    #[inline(never)]
    fn push_tick_between(&mut self, at: Ps, leaf: u32, due: Due) {
        self.push_leaf(at, leaf, due);
    }

    #[inline(always)]
    fn push_leaf(&mut self, at: Ps, leaf: u32, due: Due) {
        if self.soon.waits(leaf) {
            self.withdraw(leaf);
        }
        if !self.soon.set(leaf, at, self.next, due) {
            self.push_far(at, leaf);
        }
    }

    #[inline(never)]
    fn push_far(&mut self, at: Ps, leaf: u32) {
        self.others = self.others.min(at);
        self.set(leaf, key((at, self.next)) | u128::from(leaf));
    }

    #[inline(never)]
    fn withdraw(&mut self, leaf: u32) {
        if !self.soon.withdraw(leaf) {
            self.set(leaf, NEVER);
        }
    }

    /// When the earliest is due.
    pub fn next_at(&mut self) -> Option<Ps> {
        let first = self.first().into_iter().flatten().min();
        first.map(|key| (key >> 64) as Ps)
    }

    /// The earliest.
    #[inline]
    pub fn pop(&mut self) -> Option<(Ps, Due)> {
        let bucket = self.soon.first();
        let soon = bucket.map_or(Ps::MAX, |bucket| self.soon.key(bucket).0);
        match bucket {
            Some(bucket) if soon < self.others => Some(self.soon.take(bucket)),
            _ => self.pop_other(bucket, soon),
        }
    }

    /// [`Queue::pop`], where others may be earlier than what is soon.
    #[inline(never)]
    fn pop_other(&mut self, bucket: Option<usize>, soon: Ps) -> Option<(Ps, Due)> {
        let tick = self.first_tick().map_or(Ps::MAX, |tick| tick.at);
        let other = self.heap.peek().map_or(Ps::MAX, |Reverse((at, ..))| *at);
        let far = other.min((self.tree[1] >> 64) as Ps);
        self.others = tick.min(far);
        if tick < soon.min(far) {
            return self.take_tick();
        }
        match bucket {
            Some(bucket) if soon < self.others => Some(self.soon.take(bucket)),
            _ => self.pop_by_key(),
        }
    }

    /// [`Queue::pop`], for equal times as for all others.
    #[inline(never)]
    fn pop_by_key(&mut self) -> Option<(Ps, Due)> {
        let keys = self.first();
        let first = keys.iter().copied().flatten().min();
        match keys
            .iter()
            .position(|key| first.is_some() && *key == first)?
        {
            0 => self.soon.first().map(|bucket| self.soon.take(bucket)),
            1 => self.take_tick(),
            2 => {
                let leaf = self.tree[1] as u32 & 0xffff;
                self.set(leaf, NEVER);
                Some(self.soon.come(leaf))
            }
            _ => {
                let Reverse((at, _, slot)) = self.heap.pop()?;
                self.soon.pass(at);
                Some((at, slot.0))
            }
        }
    }

    /// Keys of the earliest in the buckets, in the row of ticks, in the tree and in the heap.
    fn first(&mut self) -> [Option<u128>; 4] {
        let tick = self.first_tick().map(|tick| key((tick.at, tick.number)));
        let leaf = self.tree[1];
        [
            self.soon.first().map(|bucket| key(self.soon.key(bucket))),
            tick,
            (leaf != NEVER).then_some(leaf & !0xffff),
            self.heap.peek().map(|Reverse((at, n, _))| key((*at, *n))),
        ]
    }

    /// The first of the row that nothing has replaced.
    #[inline]
    fn first_tick(&mut self) -> Option<&Tick> {
        while let Some(tick) = self.ticks.front()
            && self.tick_of[tick.cpu as usize] != tick.number
        {
            self.ticks.pop_front();
        }
        self.ticks.front()
    }

    #[inline]
    fn take_tick(&mut self) -> Option<(Ps, Due)> {
        let Tick { at, cpu, stamp, .. } = self.ticks.pop_front()?;
        self.soon.pass(at);
        Some((at, Due::Tick { cpu, stamp }))
    }

    fn set(&mut self, leaf: u32, mut key: u128) {
        let tree = &mut self.tree[..];
        let mut at = tree.len() / 2 + leaf as usize;
        while tree[at] != key {
            tree[at] = key;
            if at == 1 {
                return;
            }
            key = key.min(tree[at ^ 1]);
            at /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::due::Ipi;
    use super::*;

    #[test]
    fn equal_times_come_out_in_order_of_insertion() {
        let mut q = Queue::new(100);
        let due = |cpu: u32| match cpu % 3 {
            0 => Due::Ipi {
                cpu,
                kind: Ipi::Reschedule,
            },
            1 => Due::Work { cpu, stamp: 1 },
            _ => Due::Tick { cpu, stamp: 1 },
        };
        for cpu in 0..100 {
            q.push(u64::from(cpu / 10), due(cpu));
        }
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).map(|(_, d)| d).collect();
        let want: Vec<_> = (0..100).map(due).collect();
        assert_eq!(order, want);
    }

    #[test]
    fn a_later_setting_replaces_the_earlier() {
        let mut q = Queue::new(3);
        for (at, stamp) in [(5, 1), (9, 2)] {
            q.push(at, Due::Work { cpu: 2, stamp });
            q.push(at + 1, Due::Tick { cpu: 2, stamp });
        }
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).collect();
        let (cpu, stamp) = (2, 2);
        let want = [
            (9, Due::Work { cpu, stamp }),
            (10, Due::Tick { cpu, stamp }),
        ];
        assert_eq!(order, want);
    }

    #[test]
    fn events_come_as_from_a_sorted_list() {
        let mut q = Queue::new(5);
        // The list: time, number of insertion, what; a leaf's later setting replaces the earlier.
        let mut list: Vec<(Ps, u64, Due)> = Vec::new();
        let (mut seed, mut now) = (7u64, 0);
        for number in 0..20_000u64 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let dice = seed >> 33;
            if dice.is_multiple_of(2) {
                list.sort_by_key(|(at, number, _)| (*at, *number));
                let first = (!list.is_empty()).then(|| list.remove(0));
                let first = first.map(|(at, _, due)| (at, due));
                assert_eq!(q.next_at(), first.map(|(at, _)| at));
                assert_eq!(q.pop(), first);
                now = first.map_or(now, |(at, _)| at);
                continue;
            }
            let (cpu, stamp) = (dice as u32 / 8 % 5, number as u32);
            let due = match dice / 2 % 3 {
                0 => Due::Work { cpu, stamp },
                1 => Due::Tick { cpu, stamp },
                _ => Due::Ipi {
                    cpu,
                    kind: Ipi::Polled,
                },
            };
            list.retain(|(_, _, old)| match (old, due) {
                (Due::Work { cpu: a, .. }, Due::Work { cpu: b, .. })
                | (Due::Tick { cpu: a, .. }, Due::Tick { cpu: b, .. }) => *a != b,
                _ => true,
            });
            // Some within a bucket, some in one of those that are soon, some beyond.
            let at = now + ((dice / 64 % 50) << (dice / 4096 % 3 * 11));
            list.push((at, number, due));
            q.push(at, due);
        }
    }
}
