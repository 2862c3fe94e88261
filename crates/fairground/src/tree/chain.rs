//! The short form: a chain of right children, whose extremes are those of a node and of all after
//! it; and the ways from one form to the other. Why: head of [`tree`](super).
//!
//! Inserting and removing are inlined wherever they are used: most queues are short, and beside the
//! few instructions of a short queue a call and its saved registers are much.

use super::{CHAIN_AGAIN, Key, NIL, Node, Nodes, Tree};
use crate::math::eevdf::{vruntime_before, vruntime_min};

/// Searches the place of a node with `key` from the end, as most deadlines are late, and links it
/// in.
#[inline(always)]
pub(super) fn insert(nodes: &mut [Node], t: &mut Tree, node: u32, key: Key) {
    let (mut parent, mut right) = (t.chain_end, NIL);
    while parent != NIL {
        let p = &nodes[parent as usize];
        if !vruntime_before(key.order, p.key.order) {
            break;
        }
        (parent, right) = (p.parent, parent);
    }
    if right == NIL {
        t.chain_end = node;
    } else {
        link_before(nodes, node, right);
    }
    t.len += 1;
    nodes[node as usize].parent = parent;
    if parent == NIL {
        (t.root, t.leftmost) = (node, node);
        return;
    }
    nodes[parent as usize].right = node;
    // Those above hear of the new entity, until somebody's minima are as low already.
    let mut at = parent;
    while at != NIL {
        let n = &mut nodes[at as usize];
        let slice_within = n.min_slice <= key.slice && key.slice <= n.max_slice;
        if !vruntime_before(key.vruntime, n.min_vruntime) && slice_within {
            return;
        }
        n.min_vruntime = vruntime_min(key.vruntime, n.min_vruntime);
        n.min_slice = key.slice.min(n.min_slice);
        n.max_slice = key.slice.max(n.max_slice);
        at = n.parent;
    }
}

/// Links a node, whose minima are its own values, before `right`.
#[inline]
fn link_before(nodes: &mut [Node], node: u32, right: u32) {
    let r = &mut nodes[right as usize];
    r.parent = node;
    let (min_vruntime, min_slice, max_slice) = (r.min_vruntime, r.min_slice, r.max_slice);
    let n = &mut nodes[node as usize];
    n.right = right;
    n.min_vruntime = vruntime_min(n.min_vruntime, min_vruntime);
    n.min_slice = n.min_slice.min(min_slice);
    n.max_slice = n.max_slice.max(max_slice);
}

/// Links a node out.
#[inline(always)]
pub(super) fn remove(nodes: &mut [Node], t: &mut Tree, node: u32) {
    let Node { right, parent, .. } = nodes[node as usize];
    t.len -= 1;
    if right == NIL {
        t.chain_end = parent;
    } else {
        nodes[right as usize].parent = parent;
    }
    if parent == NIL {
        (t.root, t.leftmost) = (right, right);
        return;
    }
    nodes[parent as usize].right = right;
    let (mut at, mut below) = (parent, right);
    while at != NIL {
        let n = &nodes[at as usize];
        let (mut min_vruntime, mut min_slice) = (n.key.vruntime, n.key.slice);
        let mut max_slice = n.key.slice;
        if below != NIL {
            let b = &nodes[below as usize];
            min_vruntime = vruntime_min(min_vruntime, b.min_vruntime);
            min_slice = min_slice.min(b.min_slice);
            max_slice = max_slice.max(b.max_slice);
        }
        let n = &mut nodes[at as usize];
        let same_slices = n.min_slice == min_slice && n.max_slice == max_slice;
        if n.min_vruntime == min_vruntime && same_slices {
            return;
        }
        (n.min_vruntime, n.min_slice) = (min_vruntime, min_slice);
        n.max_slice = max_slice;
        (at, below) = (n.parent, at);
    }
}

impl Nodes {
    #[cold]
    #[inline(never)]
    pub(super) fn chain_to_balanced(&mut self, t: &mut Tree) {
        let mut at = t.root;
        *t = Tree::default();
        while at != NIL {
            let Node { right, key, .. } = *self.at(at);
            *self.at_mut(at) = Node::alone(key);
            self.balanced_insert(t, at);
            at = right;
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn balanced_to_chain(&mut self, t: &mut Tree) {
        let mut order = [NIL; CHAIN_AGAIN as usize];
        let mut at = t.leftmost;
        for place in &mut order {
            *place = at;
            at = self.successor(at);
        }
        *t = Tree::default();
        for node in order {
            let key = self.at(node).key;
            *self.at_mut(node) = Node::alone(key);
            insert(&mut self.nodes, t, node, key);
        }
    }
}
