//! The short form: a chain of right children, whose minima are those of a node and of all after
//! it; and the ways from one form to the other. Why: head of [`tree`](super).

use super::{CHAIN_AGAIN, Key, NIL, Node, Nodes, Tree};
use crate::math::eevdf::{vruntime_before, vruntime_min};

impl Nodes {
    /// Searches its place from the end, as most deadlines are late, and links it in.
    #[inline]
    pub(super) fn chain_insert(&mut self, t: &mut Tree, node: u32, key: Key) {
        let (mut parent, mut right) = (t.chain_end, NIL);
        while parent != NIL {
            let p = self.at(parent);
            if !vruntime_before(key.order, p.key.order) {
                break;
            }
            (parent, right) = (p.parent, parent);
        }
        let (mut min_vruntime, mut min_slice) = (key.vruntime, key.slice);
        if right != NIL {
            let r = self.at_mut(right);
            r.parent = node;
            min_vruntime = vruntime_min(min_vruntime, r.min_vruntime);
            min_slice = min_slice.min(r.min_slice);
        } else {
            t.chain_end = node;
        }
        *self.at_mut(node) = Node {
            key,
            min_vruntime,
            min_slice,
            left: NIL,
            right,
            parent,
            height: 1,
        };
        t.len += 1;
        if parent == NIL {
            (t.root, t.leftmost) = (node, node);
            return;
        }
        self.at_mut(parent).right = node;
        self.lower_minima(parent, key.vruntime, key.slice);
    }

    /// Tells `at` and those above of a new entity, until somebody's minima are as low already.
    #[inline]
    fn lower_minima(&mut self, mut at: u32, vruntime: u64, slice: u64) {
        while at != NIL {
            let n = self.at_mut(at);
            if !vruntime_before(vruntime, n.min_vruntime) && slice >= n.min_slice {
                return;
            }
            n.min_vruntime = vruntime_min(vruntime, n.min_vruntime);
            n.min_slice = slice.min(n.min_slice);
            at = n.parent;
        }
    }

    #[inline]
    pub(super) fn chain_remove(&mut self, t: &mut Tree, node: u32) {
        let Node { right, parent, .. } = *self.at(node);
        t.len -= 1;
        if right == NIL {
            t.chain_end = parent;
        } else {
            self.at_mut(right).parent = parent;
        }
        if parent == NIL {
            (t.root, t.leftmost) = (right, right);
            return;
        }
        self.at_mut(parent).right = right;
        let (mut at, mut below) = (parent, right);
        while at != NIL {
            let n = self.at(at);
            let (mut min_vruntime, mut min_slice) = (n.key.vruntime, n.key.slice);
            if below != NIL {
                let b = self.at(below);
                min_vruntime = vruntime_min(min_vruntime, b.min_vruntime);
                min_slice = min_slice.min(b.min_slice);
            }
            let n = self.at_mut(at);
            if n.min_vruntime == min_vruntime && n.min_slice == min_slice {
                return;
            }
            (n.min_vruntime, n.min_slice) = (min_vruntime, min_slice);
            (at, below) = (n.parent, at);
        }
    }

    #[cold]
    pub(super) fn chain_to_balanced(&mut self, t: &mut Tree) {
        let mut at = t.root;
        *t = Tree::default();
        while at != NIL {
            let Node { right, key, .. } = *self.at(at);
            self.balanced_insert(t, at, key);
            at = right;
        }
    }

    #[cold]
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
            self.chain_insert(t, node, key);
        }
    }
}
