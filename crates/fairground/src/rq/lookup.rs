//! How the engine reaches a run queue.

use alloc::vec::Vec;

use super::Rq;
use crate::value::Cpu;

/// Where the host keeps the run queues, one for each CPU.
///
/// `rq` hands out the reference and locks nothing. It is called between `lock` and `unlock` of
/// that queue ([`Host::lock`](crate::host::Host::lock)), or between `begin_lockless` and
/// `end_lockless`, and what it hands out is not used any more when the latter is called.
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
