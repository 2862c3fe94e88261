//! What a context switch writes to address spaces. No rule of the scheduler, and the engine does
//! not ask; but it is done with the run queue locked.

/// When a CPU leaves the mask of CPUs that have an address space loaded (x86).
///
/// Source: "x86/mm/tlb: Update mm_cpumask lazily", Rik van Riel, 2024 (Linux 6.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MmCpumask {
    /// When it loads another one (up to 6.13): two atomic writes, to a line each.
    EachSwitch,
    /// When it is next asked to flush for it: a switch back finds its bit set, and only reads.
    Lazy,
}
