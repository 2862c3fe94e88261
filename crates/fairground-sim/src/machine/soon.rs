//! What is due within microseconds, in buckets of time.
//!
//! Nearly all that happens on a busy machine are steps that follow each other closely, on many CPUs
//! at once. A bucket is so short that few of them are in one, and a bit says whether any is, so
//! finding the next takes a look at a word or two. The nodes of a bucket are a ring in order of
//! time, then of insertion.

use super::due::Due;
use crate::cache::Ps;

/// A bucket is 2^this ps long: CPUs whose ticks come together are no more apart afterwards.
const SHIFT: u32 = 13;
const WORDS: usize = 64;
/// Together they are 34 us.
const BUCKETS: usize = 64 * WORDS;
const NONE: u32 = u32::MAX;
/// In place of the next node: it waits elsewhere.
const ELSEWHERE: u32 = u32::MAX - 1;

/// Something that is due, and when.
#[derive(Clone, Copy, Debug)]
struct Node {
    at: Ps,
    /// Of insertion.
    number: u64,
    due: Due,
    /// The next of the ring, or of those that are free; [`NONE`] if it waits for nothing.
    next: u32,
}

const EMPTY: Node = Node {
    at: 0,
    number: 0,
    due: Due::End,
    next: NONE,
};

/// The buckets from the present on, and their nodes.
#[derive(Debug)]
pub(super) struct Soon {
    /// The bucket of the present, counted from time zero.
    now: u64,
    /// The last node of each bucket, which leads to the first.
    last: Box<[u32; BUCKETS]>,
    /// Which buckets are not empty, and which words of these bits are not zero.
    full: [u64; WORDS],
    words: u64,
    /// First those of who has one for itself, then others.
    nodes: Vec<Node>,
    own: u32,
    free: u32,
}

impl Soon {
    /// Nothing; the first `own` nodes are for those that are set again and again.
    pub fn new(own: usize) -> Self {
        Self {
            now: 0,
            last: Box::new([NONE; BUCKETS]),
            full: [0; WORDS],
            words: 0,
            nodes: vec![EMPTY; own],
            own: own as u32,
            free: NONE,
        }
    }

    /// Whether `at` is soon.
    #[inline]
    pub fn reaches(&self, at: Ps) -> bool {
        (at >> SHIFT).wrapping_sub(self.now) < BUCKETS as u64
    }

    /// It is `at` now: nothing earlier is left, or will come.
    #[inline]
    pub fn pass(&mut self, at: Ps) {
        self.now = at >> SHIFT;
    }

    /// Whether an own node waits for its time, here or elsewhere.
    #[inline]
    pub fn waits(&self, own: u32) -> bool {
        self.nodes[own as usize].next != NONE
    }

    /// Sets an own node that waits for nothing. It comes into a bucket if it is due soon; else it
    /// has to wait elsewhere. Whether it is soon.
    #[inline(always)]
    pub fn set(&mut self, own: u32, at: Ps, number: u64, due: Due) -> bool {
        let soon = self.reaches(at);
        let node = &mut self.nodes[own as usize];
        debug_assert_eq!(node.next, NONE);
        (node.at, node.number, node.due) = (at, number, due);
        if soon {
            self.link(own, at);
        } else {
            node.next = ELSEWHERE;
        }
        soon
    }

    /// An own node that waited elsewhere has come to its time, which is the present then.
    pub fn come(&mut self, own: u32) -> (Ps, Due) {
        let node = &mut self.nodes[own as usize];
        debug_assert_eq!(node.next, ELSEWHERE);
        node.next = NONE;
        self.now = node.at >> SHIFT;
        (node.at, node.due)
    }

    /// Adds what has no node of its own, and is soon.
    pub fn add(&mut self, at: Ps, number: u64, due: Due) {
        debug_assert!(self.reaches(at));
        let node = match self.nodes.get(self.free as usize) {
            Some(node) => std::mem::replace(&mut self.free, node.next),
            None => {
                self.nodes.push(EMPTY);
                self.nodes.len() as u32 - 1
            }
        };
        let to = &mut self.nodes[node as usize];
        (to.at, to.number, to.due) = (at, number, due);
        self.link(node, at);
    }

    /// The bucket of the earliest.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        let now = self.now as usize % BUCKETS;
        let (word, bit) = (now / 64, now % 64);
        let here = self.full[word] & u64::MAX << bit;
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        // Round about: the last to be looked at is what is before the present in its own word.
        let later = self.words & (u64::MAX << 1 << word);
        let words = if later != 0 { later } else { self.words };
        let word = words.trailing_zeros() as usize;
        let bits = self.full.get(word)?;
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// When the first of a bucket is due, and the number of its insertion.
    #[inline]
    pub fn key(&self, bucket: usize) -> (Ps, u64) {
        let last = &self.nodes[self.last[bucket] as usize];
        let first = &self.nodes[last.next as usize];
        (first.at, first.number)
    }

    /// Takes the first out of the first bucket; it is the present then.
    #[inline(always)]
    pub fn take(&mut self, bucket: usize) -> (Ps, Due) {
        let last = self.last[bucket];
        let first = self.nodes[last as usize].next;
        self.unlink(bucket, last, first);
        let node = &mut self.nodes[first as usize];
        if first >= self.own {
            node.next = std::mem::replace(&mut self.free, first);
        }
        self.now = node.at >> SHIFT;
        (node.at, node.due)
    }

    /// An own node that waits does so no more. Whether it was in a bucket.
    pub fn withdraw(&mut self, own: u32) -> bool {
        let node = &mut self.nodes[own as usize];
        if node.next == ELSEWHERE {
            node.next = NONE;
            return false;
        }
        let bucket = bucket_of(node.at);
        let mut before = own;
        while self.nodes[before as usize].next != own {
            before = self.nodes[before as usize].next;
        }
        self.unlink(bucket, before, own);
        true
    }

    /// A node comes into the bucket of `at`, behind all that are due by then.
    #[inline(always)]
    fn link(&mut self, node: u32, at: Ps) {
        let bucket = bucket_of(at);
        let last = self.last[bucket];
        if last == NONE {
            self.nodes[node as usize].next = node;
            self.last[bucket] = node;
            self.full[bucket / 64] |= 1 << (bucket % 64);
            self.words |= 1 << (bucket / 64);
            return;
        }
        let mut before = last;
        if self.nodes[last as usize].at <= at {
            self.last[bucket] = node;
        } else {
            while let next = self.nodes[before as usize].next
                && self.nodes[next as usize].at <= at
            {
                before = next;
            }
        }
        let next = std::mem::replace(&mut self.nodes[before as usize].next, node);
        self.nodes[node as usize].next = next;
    }

    /// A node, which comes after `before`, leaves its bucket.
    #[inline]
    fn unlink(&mut self, bucket: usize, before: u32, node: u32) {
        let next = std::mem::replace(&mut self.nodes[node as usize].next, NONE);
        if next == node {
            self.last[bucket] = NONE;
            let word = &mut self.full[bucket / 64];
            *word &= !(1 << (bucket % 64));
            if *word == 0 {
                self.words &= !(1 << (bucket / 64));
            }
            return;
        }
        self.nodes[before as usize].next = next;
        if self.last[bucket] == node {
            self.last[bucket] = before;
        }
    }
}

#[inline]
fn bucket_of(at: Ps) -> usize {
    (at >> SHIFT) as usize % BUCKETS
}
