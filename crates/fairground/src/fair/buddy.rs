//! Buddies: entities that their queues should, or should not, pick next.

use crate::rq::{CfsRq, Rq};
use crate::task::Policy;
use crate::value::{CfsId, SeId};

/// Which of a queue's buddies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Buddy {
    /// Was woken, or is a group whose task went to sleep.
    Next,
    /// Was preempted last (CFS).
    Last,
    /// Has yielded (CFS).
    Skip,
}

impl Buddy {
    #[inline]
    fn of(self, q: &mut CfsRq) -> &mut Option<SeId> {
        match self {
            Self::Next => &mut q.next,
            Self::Last => &mut q.last,
            Self::Skip => &mut q.skip,
        }
    }
}

/// Whether an entity is of the idle policy: a task by its policy, a group by `cpu.idle`.
#[inline]
pub(crate) fn se_is_idle(rq: &Rq, se: SeId) -> bool {
    match rq.se[se.idx()].my_q {
        Some(q) => rq.cfs[q.idx()].idle,
        None => rq.body[se.idx()]
            .as_ref()
            .is_some_and(|b| b.policy == Policy::Idle),
    }
}

/// Marks `se` and the groups above it. Idle work is nobody's next buddy, nor last.
pub(crate) fn set_buddy(rq: &mut Rq, se: SeId, buddy: Buddy) {
    let mut at = Some(se);
    while let Some(se) = at {
        if buddy != Buddy::Skip && (!rq.se[se.idx()].on_rq || se_is_idle(rq, se)) {
            return;
        }
        let cfs = rq.se[se.idx()].cfs_rq;
        *buddy.of(&mut rq.cfs[cfs.idx()]) = Some(se);
        at = rq.se[se.idx()].parent;
    }
}

/// Forgets `se` as a buddy of any kind, and the chain of groups above that leads to it.
#[inline]
pub(crate) fn clear_buddies(rq: &mut Rq, cfs: CfsId, se: SeId) {
    let q = &rq.cfs[cfs.idx()];
    if q.next.is_none() && q.last.is_none() && q.skip.is_none() {
        return;
    }
    clear_marked(rq, cfs, se);
}

#[cold]
fn clear_marked(rq: &mut Rq, cfs: CfsId, se: SeId) {
    let q = &rq.cfs[cfs.idx()];
    for (buddy, marked) in [
        (Buddy::Next, q.next),
        (Buddy::Last, q.last),
        (Buddy::Skip, q.skip),
    ] {
        if marked == Some(se) {
            clear_chain(rq, se, buddy);
        }
    }
}

fn clear_chain(rq: &mut Rq, se: SeId, buddy: Buddy) {
    let mut at = Some(se);
    while let Some(se) = at {
        let cfs = rq.se[se.idx()].cfs_rq;
        let marked = buddy.of(&mut rq.cfs[cfs.idx()]);
        if *marked != Some(se) {
            return;
        }
        *marked = None;
        at = rq.se[se.idx()].parent;
    }
}
