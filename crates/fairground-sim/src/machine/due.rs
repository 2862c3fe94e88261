//! Everything that can become due, in order of time, then of insertion.

use std::cmp::Reverse;

use dary_heap::QuaternaryHeap;
use fairground::host::Timer;

use crate::cache::Ps;

/// Something that becomes due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// The CPU goes on with what it does, if `stamp` is still its latest.
    Work {
        /// The CPU.
        cpu: u32,
        /// See [`super::cpu::CpuState`].
        stamp: u32,
    },
    /// The CPU's tick, if `stamp` is still its latest.
    Tick {
        /// The CPU.
        cpu: u32,
        /// See [`super::cpu::CpuState`].
        stamp: u32,
    },
    /// An interrupt from another CPU, or a wake-up of a polling idle loop, arrives.
    Ipi {
        /// The CPU.
        cpu: u32,
    },
    /// A task's timed wait ends; the interrupt comes to the CPU that set the timer.
    Wait {
        /// The CPU.
        cpu: u32,
        /// The task.
        task: u32,
    },
    /// A timer of the engine, if `stamp` is still its latest.
    Timer {
        /// Which.
        timer: Timer,
        /// Counts settings of this timer.
        stamp: u32,
        /// The CPU that set it.
        cpu: u32,
    },
    /// A control file is written.
    Write {
        /// Index into the workload's events.
        event: u32,
    },
    /// The run is over.
    End,
}

impl Due {
    /// Whether it is an interrupt of the executing CPU's own timer.
    #[inline]
    pub fn is_timer(self) -> bool {
        matches!(
            self,
            Self::Tick { .. } | Self::Timer { .. } | Self::Wait { .. }
        )
    }
}

/// The queue.
#[derive(Debug, Default)]
pub struct Queue {
    heap: QuaternaryHeap<Reverse<(Ps, u64, Slot)>>,
    next: u64,
}

/// Keeps `Due` out of the comparison: the sequence number is unique.
#[derive(Clone, Copy, Debug)]
struct Slot(Due);

impl PartialEq for Slot {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Slot {}
impl PartialOrd for Slot {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Slot {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl Queue {
    /// Enters `due` at `at`.
    #[inline]
    pub fn push(&mut self, at: Ps, due: Due) {
        self.next += 1;
        self.heap.push(Reverse((at, self.next, Slot(due))));
    }

    /// When the earliest is due.
    pub fn next_at(&self) -> Option<Ps> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// The earliest.
    #[inline]
    pub fn pop(&mut self) -> Option<(Ps, Due)> {
        self.heap.pop().map(|Reverse((at, _, slot))| (at, slot.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_out_in_order_of_insertion() {
        let mut q = Queue::default();
        for cpu in 0..100 {
            q.push(u64::from(cpu / 10), Due::Ipi { cpu });
        }
        let order: Vec<_> = std::iter::from_fn(|| q.pop()).map(|(_, d)| d).collect();
        let want: Vec<_> = (0..100).map(|cpu| Due::Ipi { cpu }).collect();
        assert_eq!(order, want);
    }
}
