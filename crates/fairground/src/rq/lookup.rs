//! How the engine reaches a run queue.

use alloc::vec::Vec;

use super::Rq;
use crate::value::Cpu;

/// Where the host keeps the run queues, one for each CPU.
///
/// `rq` is called with the queue's lock held (by [`Cx::with_rq`](crate::cx::Cx::with_rq)) or for
/// the calling CPU's own words. A simulator indexes a vector; a kernel hands out a lock guard.
pub trait Rqs {
    /// The run queue of `cpu`.
    fn rq(&mut self, cpu: Cpu) -> &mut Rq;
}

impl Rqs for Vec<Rq> {
    #[inline]
    fn rq(&mut self, cpu: Cpu) -> &mut Rq {
        &mut self[cpu.idx()]
    }
}

impl Rqs for [Rq] {
    #[inline]
    fn rq(&mut self, cpu: Cpu) -> &mut Rq {
        &mut self[cpu.idx()]
    }
}
