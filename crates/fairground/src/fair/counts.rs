//! What tasks are in the counts of the queues above them (`h_nr_queued` and the like).

use crate::rq::Rq;
use crate::value::CfsId;

/// Tasks that come or go: one, or all of a throttled queue.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub queued: u32,
    pub runnable: u32,
    pub idle: u32,
}

impl Counts {
    /// All at and below a queue.
    pub fn of(rq: &Rq, cfs: CfsId) -> Self {
        let queue = &rq.cfs[cfs.idx()];
        Self {
            queued: queue.h_nr_queued,
            runnable: queue.h_nr_runnable,
            idle: queue.h_nr_idle,
        }
    }

    #[inline]
    fn add_to(self, rq: &mut Rq, cfs: CfsId) {
        let queue = &mut rq.cfs[cfs.idx()];
        queue.h_nr_queued += self.queued;
        queue.h_nr_runnable += self.runnable;
        queue.h_nr_idle += self.idle;
    }

    #[inline]
    fn sub_from(self, rq: &mut Rq, cfs: CfsId) {
        let queue = &mut rq.cfs[cfs.idx()];
        queue.h_nr_queued -= self.queued;
        queue.h_nr_runnable -= self.runnable;
        queue.h_nr_idle -= self.idle;
    }

    /// As the levels above `cfs` count them: in an idle group all are idle.
    #[inline]
    pub fn seen_above(self, rq: &Rq, cfs: CfsId) -> Self {
        let all = rq.cfs[cfs.idx()].idle;
        let idle = if all { self.queued } else { self.idle };
        Self { idle, ..self }
    }

    /// They come to `cfs`; what is left to add to the level above.
    #[inline]
    pub fn join(&mut self, rq: &mut Rq, cfs: CfsId) {
        self.add_to(rq, cfs);
        *self = self.seen_above(rq, cfs);
    }

    /// They leave `cfs`; what is left to take from the level above.
    #[inline]
    pub fn leave(&mut self, rq: &mut Rq, cfs: CfsId) {
        self.sub_from(rq, cfs);
        *self = self.seen_above(rq, cfs);
    }
}
