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

    /// What `rq` handed out is not used any more; `unlock` or `end_lockless` of that queue follows.
    /// A host whose queues are behind mutexes drops the guard here, and needs no `unsafe`.
    #[inline]
    fn release(&mut self, _cpu: Cpu) {}
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
