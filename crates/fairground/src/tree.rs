//! The queue of entities: a balanced binary search tree, augmented, in an arena, by index.
//!
//! What it must do: keep the entities of one queue in the order of their deadline (EEVDF) or
//! vruntime (CFS) and answer "the earliest deadline among those whose vruntime is at most V". For
//! that each node keeps the smallest vruntime of its subtree (see
//! [`Nodes::pick_earliest_eligible`]), and the smallest slice, which preemption by
//! shorter slices asks for.
//!
//! # Choice
//!
//! - **By index, many trees in one arena.** An entity is on at most one queue, so the node's
//!   number is the entity's slot, a queue is four words, and to move an entity to another queue
//!   allocates nothing. A `BTreeMap` would allocate, cannot be augmented, and needs a search to
//!   find an entity's successor.
//! - **A chain while short.** A chain of right children is a search tree too, with the same
//!   augmentation (the minimum of a node and of all after it), so every question runs the same
//!   code in both forms. Up to 32 entities it stays a chain, which is searched from
//!   its end, where most new deadlines belong, and never rotated. A balanced tree pays, even
//!   with four entities, for mispredicted turns of the descent and for rotations. Measured, for
//!   pick + remove + insert on one core of a 3 GHz class server: with 8 entities in turn 43 ns
//!   balanced and 12 ns as a chain, in random order 59 and 31 ns; with 32, random, 105 and 49 ns.
//! - **AVL when long.** Each change has to go up anyhow, to repair the augmented values; heights
//!   ride along in the same loop, with one kind of repair for inserting and removing. With 512
//!   entities 105 to 130 ns. Treaps, skip lists and pairing heaps have no worst case per
//!   operation; a sorted array moves kilobytes at 500.
//! - **Going up stops early**, as soon as a node's height and minima come out as they were.
//!   When inserting, the minima are lowered on the way down, so only heights are left to repair.
//!   Allowing a height difference of 2 saved nothing.
//! - **Slot 0 is a stand-in for "no child"** with height 0; so links need no sentinel
//!   values, and heights are read without a branch. Entity `id` is node `id + 1`.
//! - A node is one cache line of 64 bytes.
//!
//! Units: `order` and `vruntime` are virtual time in ns on a ring (only differences below 2^63
//! mean anything), `slice` is real time in ns.

mod balanced;
mod chain;

use alloc::vec::Vec;

use crate::math::eevdf::{vruntime_before, vruntime_min};

/// What the tree knows of an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// What the tree is sorted by: the deadline (EEVDF) or the vruntime (CFS); wraps.
    pub order: u64,
    /// Virtual time received; wraps. Its minimum is kept per subtree.
    pub vruntime: u64,
    /// Slice in ns. Its minimum is kept per subtree.
    pub slice: u64,
}

/// The tree of one queue. Its nodes are in a [`Nodes`], always the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    root: u32,
    leftmost: u32,
    /// The end of the chain; none when the tree is balanced (or empty).
    chain_end: u32,
    len: u32,
}

/// The arena: one node for each scheduling entity, by its slot.
#[derive(Clone, Debug)]
pub struct Nodes {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Node {
    key: Key,
    /// Smallest vruntime of this subtree.
    min_vruntime: u64,
    /// Smallest slice of this subtree.
    min_slice: u64,
    /// Largest slice of this subtree.
    max_slice: u64,
    left: u32,
    right: u32,
    parent: u32,
    /// Longest way down, counted in nodes, if balanced; 1 in a chain; 0 = in no tree. An AVL
    /// tree of 2^32 nodes has at most 46.
    height: u8,
}

impl Node {
    /// Without parent and children.
    #[inline]
    const fn alone(key: Key) -> Self {
        Self {
            key,
            min_vruntime: key.vruntime,
            min_slice: key.slice,
            max_slice: key.slice,
            left: NIL,
            right: NIL,
            parent: NIL,
            height: 1,
        }
    }
}

/// A chain that grows beyond this many entities is made a balanced tree.
const CHAIN_MAX: u32 = 32;

/// A balanced tree that shrinks to this many entities is made a chain. Far enough below
/// [`CHAIN_MAX`], so that a queue that breathes does not pay for both at each change.
const CHAIN_AGAIN: u32 = 16;

/// No node: the stand-in in slot 0.
const NIL: u32 = 0;

impl Tree {
    /// Number of entities.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether nobody is queued.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for Nodes {
    fn default() -> Self {
        Self::new()
    }
}

impl Nodes {
    /// An arena without entities.
    pub fn new() -> Self {
        Self {
            nodes: alloc::vec![Node::default()],
        }
    }

    /// Makes room for entity `id` (below `u32::MAX - 1`). The only call that allocates.
    pub fn ensure(&mut self, id: u32) {
        debug_assert!(id < u32::MAX - 1);
        let len = id as usize + 2;
        if self.nodes.len() < len {
            self.nodes.resize(len, Node::default());
        }
    }

    /// Adds entity `id`, which must have room and be in no tree. Among equal `order` it is the
    /// last: first come, first served.
    #[inline(always)]
    pub fn insert(&mut self, t: &mut Tree, id: u32, key: Key) {
        debug_assert!(!self.contains(id));
        let node = id + 1;
        *self.at_mut(node) = Node::alone(key);
        if t.chain_end == NIL && t.root != NIL {
            self.balanced_insert(t, node);
            return;
        }
        chain::insert(&mut self.nodes, t, node, key);
        if t.len > CHAIN_MAX {
            self.chain_to_balanced(t);
        }
    }

    /// Takes entity `id` out of `t`, where it must be.
    #[inline(always)]
    pub fn remove(&mut self, t: &mut Tree, id: u32) {
        debug_assert!(self.contains(id));
        let node = id + 1;
        if t.chain_end != NIL {
            chain::remove(&mut self.nodes, t, node);
        } else {
            self.balanced_remove(t, node);
            if t.len == CHAIN_AGAIN {
                self.balanced_to_chain(t);
            }
        }
        self.at_mut(node).height = 0;
    }

    /// Gives entity `id`, which must be in a tree, another slice. Its place stays the same.
    pub fn set_slice(&mut self, id: u32, slice: u64) {
        debug_assert!(self.contains(id));
        let mut at = id + 1;
        self.at_mut(at).key.slice = slice;
        while at != NIL {
            // Not `update`: the nodes of a chain have no heights.
            let n = self.at(at);
            let (left, right, before) = (n.left, n.right, (n.min_slice, n.max_slice));
            let (mut min_slice, mut max_slice) = (n.key.slice, n.key.slice);
            for child in [left, right] {
                if child != NIL {
                    let c = self.at(child);
                    min_slice = min_slice.min(c.min_slice);
                    max_slice = max_slice.max(c.max_slice);
                }
            }
            if (min_slice, max_slice) == before {
                return;
            }
            let n = self.at_mut(at);
            (n.min_slice, n.max_slice) = (min_slice, max_slice);
            at = n.parent;
        }
    }

    /// Whether entity `id` is in a tree.
    #[inline]
    pub fn contains(&self, id: u32) -> bool {
        self.nodes
            .get(id as usize + 1)
            .is_some_and(|n| n.height != 0)
    }

    /// The entity that may be at the root of a balanced tree: in a short one, which is a chain
    /// here, the second of three or more.
    #[inline]
    pub fn root(&self, t: &Tree) -> Option<u32> {
        if t.chain_end != NIL {
            let second = self.at(t.root).right;
            if second != NIL && self.at(second).right != NIL {
                return to_id(second);
            }
        }
        to_id(t.root)
    }

    /// The entity with the smallest `order`.
    #[inline]
    pub fn first(&self, t: &Tree) -> Option<u32> {
        to_id(t.leftmost)
    }

    /// The entity with the largest `order`. At most O(log n).
    #[inline]
    pub fn last(&self, t: &Tree) -> Option<u32> {
        let (mut last, mut at) = (t.chain_end, t.root);
        if last != NIL {
            return to_id(last);
        }
        while at != NIL {
            last = at;
            at = self.at(at).right;
        }
        to_id(last)
    }

    /// The entity after `id`, which must be in a tree.
    #[inline]
    pub fn next(&self, id: u32) -> Option<u32> {
        debug_assert!(self.contains(id));
        to_id(self.successor(id + 1))
    }

    /// The entity before `id`, which must be in a tree.
    #[inline]
    pub fn prev(&self, id: u32) -> Option<u32> {
        debug_assert!(self.contains(id));
        let mut node = id + 1;
        let mut at = self.at(node).left;
        if at != NIL {
            while self.at(at).right != NIL {
                at = self.at(at).right;
            }
            return to_id(at);
        }
        at = self.at(node).parent;
        while at != NIL && self.at(at).left == node {
            node = at;
            at = self.at(at).parent;
        }
        to_id(at)
    }

    /// The smallest vruntime.
    #[inline]
    pub fn min_vruntime(&self, t: &Tree) -> Option<u64> {
        (t.root != NIL).then(|| self.at(t.root).min_vruntime)
    }

    /// The smallest slice.
    #[inline]
    pub fn min_slice(&self, t: &Tree) -> Option<u64> {
        (t.root != NIL).then(|| self.at(t.root).min_slice)
    }

    /// The largest slice.
    #[inline]
    pub fn max_slice(&self, t: &Tree) -> Option<u64> {
        (t.root != NIL).then(|| self.at(t.root).max_slice)
    }

    /// The key with which `id` was last inserted.
    #[inline]
    pub fn key(&self, id: u32) -> &Key {
        &self.at(id + 1).key
    }

    /// The entity of smallest `order` among those whose vruntime is `eligible`. O(log n).
    ///
    /// `eligible` must be monotone: true for all smaller vruntimes where it is true for one.
    ///
    /// # Derivation
    ///
    /// At a node, all of the left subtree has an earlier deadline. It holds an eligible entity if
    /// and only if the one with its smallest vruntime is eligible, and that is known without
    /// looking. So: go left if there is one; else take the node if it is eligible; else go right.
    /// One way down, no way back.
    #[inline]
    pub fn pick_earliest_eligible(&self, t: &Tree, eligible: impl Fn(u64) -> bool) -> Option<u32> {
        let mut at = t.leftmost;
        // Often the very first one is eligible; it is the answer then.
        if at != NIL && eligible(self.at(at).key.vruntime) {
            return to_id(at);
        }
        at = t.root;
        while at != NIL {
            let n = self.at(at);
            if n.left != NIL && eligible(self.at(n.left).min_vruntime) {
                at = n.left;
            } else if eligible(n.key.vruntime) {
                break;
            } else {
                at = n.right;
            }
        }
        to_id(at)
    }

    /// The entities in order.
    pub fn iter(&self, t: &Tree) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.first(t), |&id| self.next(id))
    }

    #[inline]
    fn at(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    #[inline]
    fn at_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    #[inline]
    fn successor(&self, mut node: u32) -> u32 {
        let mut at = self.at(node).right;
        if at != NIL {
            while self.at(at).left != NIL {
                at = self.at(at).left;
            }
            return at;
        }
        at = self.at(node).parent;
        while at != NIL && self.at(at).right == node {
            node = at;
            at = self.at(at).parent;
        }
        at
    }
}

#[inline]
fn to_id(node: u32) -> Option<u32> {
    node.checked_sub(1)
}

const _: () = assert!(size_of::<Node>() == 64);

impl Nodes {
    /// Checks links, order, balance and minima of `t`; says what is wrong. For tests and the
    /// simulator's checkers; O(n).
    pub fn check(&self, t: &Tree) -> Result<(), &'static str> {
        let (mut count, mut previous) = (0, None::<u64>);
        for id in self.iter(t) {
            let n = self.at(id + 1);
            let (left, right) = (self.at(n.left), self.at(n.right));
            if previous.is_some_and(|p| vruntime_before(n.key.order, p)) {
                return Err("not sorted");
            }
            if t.chain_end != NIL {
                if n.left != NIL || n.height != 1 {
                    return Err("a chain with branches");
                }
            } else if left.height.abs_diff(right.height) > 1 {
                return Err("not balanced");
            } else if n.height != 1 + left.height.max(right.height) {
                return Err("wrong height");
            }
            let (mut min_vruntime, mut min_slice) = (n.key.vruntime, n.key.slice);
            let mut max_slice = n.key.slice;
            for child in [n.left, n.right].into_iter().filter(|&c| c != NIL) {
                let c = self.at(child);
                if c.parent != id + 1 {
                    return Err("a child with another parent");
                }
                min_vruntime = vruntime_min(min_vruntime, c.min_vruntime);
                min_slice = min_slice.min(c.min_slice);
                max_slice = max_slice.max(c.max_slice);
            }
            if (n.min_vruntime, n.min_slice) != (min_vruntime, min_slice) {
                return Err("wrong minimum");
            }
            if n.max_slice != max_slice {
                return Err("wrong maximum");
            }
            previous = Some(n.key.order);
            count += 1;
        }
        if t.len != count {
            return Err("wrong number");
        }
        if t.chain_end != NIL && (t.len > CHAIN_MAX || self.at(t.chain_end).right != NIL) {
            return Err("the end of a chain");
        }
        if t.root != NIL && self.at(t.root).parent != NIL {
            return Err("the root has a parent");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(order: u64) -> Key {
        Key {
            order,
            vruntime: order,
            slice: 1000,
        }
    }

    #[test]
    fn first_come_first_served() {
        let (mut nodes, mut t) = (Nodes::new(), Tree::default());
        for id in 0..10 {
            nodes.ensure(id);
            nodes.insert(&mut t, id, key(7));
        }
        assert!(nodes.iter(&t).eq(0..10));
        assert_eq!(
            (nodes.first(&t), nodes.last(&t), t.len()),
            (Some(0), Some(9), 10)
        );
    }

    #[test]
    fn another_slice_leaves_a_sound_tree() {
        for n in [5, 40] {
            let (mut nodes, mut t) = (Nodes::new(), Tree::default());
            for id in 0..n {
                nodes.ensure(id);
                nodes.insert(&mut t, id, key(u64::from(id)));
            }
            for (id, slice) in [(n - 1, 7), (2, 9), (0, 5), (0, 5000), (n - 1, 3)] {
                nodes.set_slice(id, slice);
                nodes.check(&t).unwrap();
            }
            assert_eq!(nodes.min_slice(&t), Some(3));
        }
    }

    #[test]
    fn two_trees_share_the_arena() {
        let mut nodes = Nodes::new();
        nodes.ensure(3);
        let (mut a, mut b) = (Tree::default(), Tree::default());
        nodes.insert(&mut a, 0, key(1));
        nodes.insert(&mut b, 1, key(2));
        nodes.insert(&mut b, 3, key(1));
        nodes.remove(&mut a, 0);
        nodes.insert(&mut b, 0, key(0));
        assert!(a.is_empty() && nodes.first(&a).is_none() && nodes.last(&a).is_none());
        assert_eq!((nodes.min_vruntime(&a), nodes.min_slice(&a)), (None, None));
        assert!(nodes.iter(&b).eq([0, 3, 1]));
        assert_eq!((nodes.prev(3), nodes.next(3)), (Some(0), Some(1)));
        assert!(!nodes.contains(2) && !nodes.contains(77));
        nodes.check(&b).unwrap();
    }

    #[test]
    fn order_across_the_wrap() {
        let (mut nodes, mut t) = (Nodes::new(), Tree::default());
        nodes.ensure(2);
        nodes.insert(&mut t, 0, key(3));
        nodes.insert(&mut t, 1, key(u64::MAX - 5));
        nodes.insert(&mut t, 2, key(0));
        assert!(nodes.iter(&t).eq([1, 2, 0]));
        assert_eq!(nodes.min_vruntime(&t), Some(u64::MAX - 5));
    }

    #[test]
    fn the_earliest_deadline_waits_until_it_is_eligible() {
        let (mut nodes, mut t) = (Nodes::new(), Tree::default());
        for (id, (order, vruntime)) in [(10, 9), (20, 5), (30, 1)].into_iter().enumerate() {
            nodes.ensure(id as u32);
            nodes.insert(
                &mut t,
                id as u32,
                Key {
                    order,
                    vruntime,
                    slice: 1,
                },
            );
        }
        let pick = |v| nodes.pick_earliest_eligible(&t, |vruntime| vruntime <= v);
        assert_eq!(
            [pick(9), pick(8), pick(4), pick(0)],
            [Some(0), Some(1), Some(2), None]
        );
    }
}
