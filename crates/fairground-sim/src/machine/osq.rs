//! The queue of those who spin for a mutex (`osq_lock`): each has a node of its CPU, on a line of
//! its own, and spins on a word of it until the one before hands over.
//!
//! A spinner that comes behind another writes its node's address into the other's node. A spinner
//! that leaves the queue has the mutex by then: it fetches its node back to read that address, and
//! writes the word on which the next one spins. Design: J. Mellor-Crummey, M. Scott, "Algorithms
//! for scalable synchronization" (TOCS 1991); `Documentation/locking/mutex-design.rst`. A node has
//! two pointers, the word and the CPU's number, 24 bytes.

use super::Sim;
use crate::cache::{Access, Cache, LineId, Name, Ps};
use crate::costs::KernelOp;

const NODE: Name = ("optimistic_spin_node", "next,prev,locked");
/// Word of the node's address of who is next.
const NEXT: u8 = 1;
/// Word of the one before.
const PREV: u8 = 1 << 1;
/// Word on which the owner of a node spins.
const LOCKED: u8 = 1 << 2;

/// The nodes, by CPU; none where nobody can spin.
#[derive(Debug, Default)]
pub struct OsqNodes(Vec<LineId>);

impl OsqNodes {
    /// Of `cpus` CPUs, if there is a mutex to spin for.
    pub fn new(used: bool, cpus: usize, cache: &mut Cache) -> Self {
        let used = if used { cpus } else { 0 };
        Self((0..used).map(|_| cache.alloc_named(NODE, 1, 0)).collect())
    }
}

impl Sim<'_> {
    fn touch_node(&mut self, cpu: u32, word: u8, access: Access) {
        let line = self.osq_nodes.0[cpu as usize];
        self.touch(KernelOp::MutexSpin, line, word, access);
    }

    /// The executing CPU prepares its node.
    pub(super) fn init_node(&mut self, cpu: u32) {
        self.touch_node(cpu, NEXT | LOCKED, Access::Store);
    }

    /// It has found `prev` to be the last in the queue, and spins behind it.
    pub(super) fn queue_behind(&mut self, cpu: u32, prev: u32) {
        self.touch_node(cpu, PREV, Access::Store);
        self.touch_node(prev, NEXT, Access::Store);
        self.touch_node(cpu, LOCKED, Access::Load);
    }

    /// It leaves the queue to `next`. When that CPU sees it.
    pub(super) fn hand_over(&mut self, cpu: u32, next: u32) -> Ps {
        self.touch_node(cpu, NEXT, Access::Rmw);
        let (line, at) = (self.osq_nodes.0[next as usize], self.host.at);
        let (op, host) = (KernelOp::MutexSpin, &mut self.host);
        let stored = host.touch_aside(op, cpu, (line, LOCKED), Access::Store, at);
        let stored = at + stored.wait + stored.latency;
        let seen = host.touch_aside(op, next, (line, LOCKED), Access::Load, stored);
        let seen = seen.done_at;
        let since = self.cpus[next as usize].spins_since.unwrap_or(seen);
        self.host.rounds().seen(since, seen)
    }

    /// It leaves the queue from behind `prev`, which gets `next` behind it: nobody may come or go
    /// beside it meanwhile, so both pointers are taken away before they are set anew.
    pub(super) fn unqueue(&mut self, cpu: u32, prev: u32, next: Option<u32>) {
        self.touch_node(prev, NEXT, Access::Rmw);
        if let Some(next) = next {
            self.touch_node(cpu, NEXT, Access::Rmw);
            self.touch_node(next, PREV, Access::Store);
            self.touch_node(prev, NEXT, Access::Store);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::machine::testing::{at_5ms, server};

    const PIPES: &str = "hackbench -g 1 -f 8 --threads --pipe -l 10000";

    /// The node of a spinner that leaves was written by the one behind, so it has to be fetched,
    /// and what is written has to come to that one.
    #[test]
    fn leaving_the_queue_to_another_fetches_the_own_node() {
        at_5ms(&server(8), PIPES, &[], |sim| {
            let start = sim.now;
            sim.host.begin(2, start);
            sim.init_node(2);
            let alone = sim.host.at - start;
            sim.host.begin(5, start + 1_000_000);
            sim.init_node(5);
            sim.queue_behind(5, 2);
            let left = start + 3_000_000;
            sim.host.begin(2, left);
            let seen = sim.hand_over(2, 5);
            let fetching = sim.host.at - left;
            assert!(alone < 10_000, "{alone} ps for a node that nobody else has");
            assert!(fetching > 40_000, "{fetching} ps");
            assert!(seen > sim.host.at + 40_000, "{seen}, {}", sim.host.at);
        });
    }
}
