//! The long form: an AVL tree with subtree minima.
//!
//! Inserting and removing are calls, so that the code around them is that of a short queue.

use super::{NIL, Node, Nodes, Tree};
use crate::math::eevdf::{vruntime_before, vruntime_min};

impl Nodes {
    /// Descends, lowering minima on the way, and hangs the node, which has its key, below a leaf.
    #[inline(never)]
    pub(super) fn balanced_insert(&mut self, t: &mut Tree, node: u32) {
        let key = self.at(node).key;
        let (mut parent, mut at) = (NIL, t.root);
        let (mut before, mut leftmost) = (false, true);
        while at != NIL {
            let n = self.at_mut(at);
            n.min_vruntime = vruntime_min(n.min_vruntime, key.vruntime);
            n.min_slice = n.min_slice.min(key.slice);
            n.max_slice = n.max_slice.max(key.slice);
            parent = at;
            before = vruntime_before(key.order, n.key.order);
            leftmost &= before;
            at = if before { n.left } else { n.right };
        }
        self.at_mut(node).parent = parent;
        t.len += 1;
        if leftmost {
            t.leftmost = node;
        }
        if parent == NIL {
            t.root = node;
            return;
        }
        let p = self.at_mut(parent);
        let link = if before { &mut p.left } else { &mut p.right };
        *link = node;
        self.grown(t, parent);
    }

    #[inline(never)]
    pub(super) fn balanced_remove(&mut self, t: &mut Tree, node: u32) {
        if t.leftmost == node {
            t.leftmost = self.successor(node);
        }
        t.len -= 1;
        let Node {
            left,
            right,
            parent,
            ..
        } = *self.at(node);
        if left != NIL && right != NIL {
            self.replace_by_successor(t, node);
            return;
        }
        let child = if left != NIL { left } else { right };
        self.replace_child(t, parent, node, child);
        if child != NIL {
            self.at_mut(child).parent = parent;
        }
        self.repair(t, parent, NIL);
    }

    /// Puts the successor of `node`, which has two children, in its place.
    ///
    /// The successor inherits height and minima, as the nodes above know them: this way the
    /// repair can see whether they change. But they contain the leaving node, so the repair
    /// must not stop before it has been there.
    #[inline]
    fn replace_by_successor(&mut self, t: &mut Tree, node: u32) {
        let gone = *self.at(node);
        let heir = self.successor(node);
        let Node {
            parent: heir_parent,
            right: heir_right,
            ..
        } = *self.at(heir);
        let mut from = heir;
        if heir != gone.right {
            from = heir_parent;
            self.at_mut(heir_parent).left = heir_right;
            if heir_right != NIL {
                self.at_mut(heir_right).parent = heir_parent;
            }
            self.at_mut(heir).right = gone.right;
            self.at_mut(gone.right).parent = heir;
        }
        let h = self.at_mut(heir);
        h.left = gone.left;
        h.parent = gone.parent;
        h.height = gone.height;
        h.min_vruntime = gone.min_vruntime;
        h.min_slice = gone.min_slice;
        h.max_slice = gone.max_slice;
        self.at_mut(gone.left).parent = heir;
        self.replace_child(t, gone.parent, node, heir);
        self.repair(t, from, heir);
    }

    #[inline]
    fn replace_child(&mut self, t: &mut Tree, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            t.root = new;
            return;
        }
        let p = self.at_mut(parent);
        let link = if p.left == old {
            &mut p.left
        } else {
            &mut p.right
        };
        *link = new;
    }

    /// After inserting: restores heights from `at` upwards. The minima are right already.
    #[inline]
    fn grown(&mut self, t: &mut Tree, mut at: u32) {
        while at != NIL {
            let n = *self.at(at);
            let (left, right) = (self.at(n.left).height, self.at(n.right).height);
            if left.abs_diff(right) > 1 {
                // One rotation gives the subtree its old height back: nothing to do above.
                self.rebalance(t, at);
                return;
            }
            let height = 1 + left.max(right);
            if height == n.height {
                return;
            }
            self.at_mut(at).height = height;
            at = n.parent;
        }
    }

    /// After removing: restores heights and minima from `at` upwards, until a node at or above
    /// `through` comes out as it was.
    #[inline]
    fn repair(&mut self, t: &mut Tree, mut at: u32, through: u32) {
        let mut passed = through == NIL;
        while at != NIL {
            passed |= at == through;
            let old = *self.at(at);
            let (left, right) = (self.at(old.left).height, self.at(old.right).height);
            let top = if left.abs_diff(right) > 1 {
                self.rebalance(t, at)
            } else {
                self.update(at);
                at
            };
            let new = self.at(top);
            let same = new.height == old.height
                && new.min_vruntime == old.min_vruntime
                && (new.min_slice, new.max_slice) == (old.min_slice, old.max_slice);
            if same && passed {
                return;
            }
            at = new.parent;
        }
    }

    /// Turns the subtree at `at`, one of whose sides is two higher, and returns its new top.
    /// Heights and minima of the turned nodes are right afterwards.
    #[inline]
    fn rebalance(&mut self, t: &mut Tree, at: u32) -> u32 {
        let n = *self.at(at);
        if self.at(n.left).height > self.at(n.right).height {
            let l = *self.at(n.left);
            if self.at(l.right).height > self.at(l.left).height {
                self.rotate_left(t, n.left);
            }
            self.rotate_right(t, at)
        } else {
            let r = *self.at(n.right);
            if self.at(r.left).height > self.at(r.right).height {
                self.rotate_right(t, n.right);
            }
            self.rotate_left(t, at)
        }
    }

    /// Lifts the left child of `at` above it.
    #[inline]
    fn rotate_right(&mut self, t: &mut Tree, at: u32) -> u32 {
        let Node {
            left: top, parent, ..
        } = *self.at(at);
        let moved = self.at(top).right;
        self.at_mut(at).left = moved;
        self.at_mut(top).right = at;
        self.lifted(t, at, top, moved, parent);
        top
    }

    /// Lifts the right child of `at` above it.
    #[inline]
    fn rotate_left(&mut self, t: &mut Tree, at: u32) -> u32 {
        let Node {
            right: top, parent, ..
        } = *self.at(at);
        let moved = self.at(top).left;
        self.at_mut(at).right = moved;
        self.at_mut(top).left = at;
        self.lifted(t, at, top, moved, parent);
        top
    }

    /// The part of a rotation that both directions share.
    #[inline]
    fn lifted(&mut self, t: &mut Tree, at: u32, top: u32, moved: u32, parent: u32) {
        if moved != NIL {
            self.at_mut(moved).parent = at;
        }
        self.at_mut(at).parent = top;
        self.at_mut(top).parent = parent;
        self.replace_child(t, parent, at, top);
        self.update(at);
        self.update(top);
    }

    /// Recomputes height and minima of `at` from its children.
    #[inline]
    pub(super) fn update(&mut self, at: u32) {
        let n = *self.at(at);
        let (mut min_vruntime, mut min_slice) = (n.key.vruntime, n.key.slice);
        let (mut max_slice, mut height) = (n.key.slice, 0);
        for child in [n.left, n.right] {
            if child != NIL {
                let c = self.at(child);
                min_vruntime = vruntime_min(min_vruntime, c.min_vruntime);
                min_slice = min_slice.min(c.min_slice);
                max_slice = max_slice.max(c.max_slice);
                height = height.max(c.height);
            }
        }
        let n = self.at_mut(at);
        n.min_vruntime = min_vruntime;
        n.min_slice = min_slice;
        n.max_slice = max_slice;
        n.height = height + 1;
    }
}
