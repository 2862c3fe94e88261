//! The order in which load balancing looks at the tasks of a queue (`rq->cfs_tasks`).
//!
//! A doubly linked list through tables by slot, so that every operation takes constant time: the
//! list is reordered at each switch. The newest enqueued and the last picked are at the front,
//! balancing takes from the back, where the coldest are.

use alloc::vec::Vec;

use crate::value::SeId;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// Towards the front.
    prev: u32,
    /// Towards the back.
    next: u32,
}

/// The queued tasks of one run queue, delayed sleepers included, in the order of load balancing.
#[derive(Debug)]
pub struct LbList {
    links: Vec<Link>,
    front: u32,
    back: u32,
}

impl LbList {
    pub(super) const fn new() -> Self {
        Self {
            links: Vec::new(),
            front: NIL,
            back: NIL,
        }
    }

    /// Makes room for slots below `slots`.
    pub(super) fn reserve(&mut self, slots: usize) {
        self.links.reserve(slots.saturating_sub(self.links.len()));
    }

    /// Adds a slot that is not in the list.
    pub fn push_front(&mut self, slot: SeId) {
        let link = Link {
            prev: NIL,
            next: NIL,
        };
        if self.links.len() <= slot.idx() {
            self.links.resize(slot.idx() + 1, link);
        }
        self.links[slot.idx()] = Link {
            prev: NIL,
            next: self.front,
        };
        match self.front {
            NIL => self.back = slot.0,
            front => self.links[front as usize].prev = slot.0,
        }
        self.front = slot.0;
    }

    /// Takes out a slot that is in the list.
    pub fn remove(&mut self, slot: SeId) {
        let Link { prev, next } = self.links[slot.idx()];
        match prev {
            NIL => self.front = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            NIL => self.back = prev,
            next => self.links[next as usize].prev = prev,
        }
    }

    /// A slot of the list was picked to run, or could not be moved.
    #[inline]
    pub fn move_front(&mut self, slot: SeId) {
        if self.front != slot.0 {
            self.remove(slot);
            self.push_front(slot);
        }
    }

    /// Adds a slot, which has been in the list before, behind all others.
    pub fn push_back(&mut self, slot: SeId) {
        self.links[slot.idx()] = Link {
            prev: self.back,
            next: NIL,
        };
        match self.back {
            NIL => self.front = slot.0,
            back => self.links[back as usize].next = slot.0,
        }
        self.back = slot.0;
    }

    /// The newest, or the last picked.
    #[inline]
    #[must_use]
    pub fn front(&self) -> Option<SeId> {
        some(self.front)
    }

    /// The one behind `slot`.
    #[inline]
    #[must_use]
    pub fn after(&self, slot: SeId) -> Option<SeId> {
        some(self.links[slot.idx()].next)
    }

    /// The coldest: the first one that balancing looks at.
    #[inline]
    #[must_use]
    pub fn back(&self) -> Option<SeId> {
        some(self.back)
    }

    /// The one in front of `slot`.
    #[inline]
    #[must_use]
    pub fn before(&self, slot: SeId) -> Option<SeId> {
        some(self.links[slot.idx()].prev)
    }

    /// All, from front to back.
    pub fn iter(&self) -> impl Iterator<Item = SeId> + '_ {
        let mut at = self.front;
        core::iter::from_fn(move || {
            let slot = some(at)?;
            at = self.links[slot.idx()].next;
            Some(slot)
        })
    }
}

const fn some(slot: u32) -> Option<SeId> {
    if slot == NIL { None } else { Some(SeId(slot)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(list: &LbList) -> Vec<u32> {
        let order: Vec<u32> = list.iter().map(|s| s.0).collect();
        let mut back = Vec::new();
        let mut at = list.back();
        while let Some(slot) = at {
            back.push(slot.0);
            at = list.before(slot);
        }
        back.reverse();
        assert_eq!(order, back, "both directions agree");
        order
    }

    #[test]
    fn newest_first_and_picked_first() {
        let mut list = LbList::new();
        for slot in [0, 1, 5, 2] {
            list.push_front(SeId(slot));
        }
        assert_eq!(order(&list), [2, 5, 1, 0]);
        list.move_front(SeId(1));
        list.move_front(SeId(1));
        assert_eq!(order(&list), [1, 2, 5, 0]);
        list.move_front(SeId(0));
        assert_eq!(order(&list), [0, 1, 2, 5]);
    }

    #[test]
    fn empties_and_fills_again() {
        let mut list = LbList::new();
        for slot in [3, 1] {
            list.push_front(SeId(slot));
        }
        list.remove(SeId(3));
        list.remove(SeId(1));
        assert_eq!(list.back(), None);
        list.push_front(SeId(3));
        assert_eq!(order(&list), [3]);
    }
}
