//! Where kernel code, and a task in user mode, give up the CPU (`preempt=` of the command line).
//!
//! Sources: "sched: Add Lazy preemption model", Peter Zijlstra, 2024, for 6.13; before that
//! `CONFIG_PREEMPT_NONE`, `CONFIG_PREEMPT_VOLUNTARY` and `CONFIG_PREEMPT`;
//! `Documentation/locking/preempt-locking.rst` for where kernel code can be preempted.

/// The mode of preemption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preemption {
    /// Kernel code gives up the CPU at few places, or to sleep. So a task that sends itself to
    /// another CPU goes to sleep, and the stopper wakes it.
    None,
    /// Also where it may sleep: there the stopper preempts.
    Voluntary,
    /// Wherever preemption is not disabled (no spin lock is held, no interrupt served), so in the
    /// midst of a system call. But what the fair class asks for waits: for the return to user
    /// space, or for the next tick, which asks in earnest. No interrupt is sent for it.
    Lazy,
    /// Wherever preemption is not disabled, for whoever asks.
    Full,
}

impl Preemption {
    /// Whether kernel code that may sleep looks whether it should make room.
    #[inline]
    #[must_use]
    pub const fn gives_up_in_kernel(self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether kernel code is preempted at the end of an interrupt or of a wake-up, if no spin
    /// lock is held there.
    #[inline]
    #[must_use]
    pub const fn preempts_kernel(self) -> bool {
        matches!(self, Self::Lazy | Self::Full)
    }

    /// Whether a fair task makes room for another at the next occasion only
    /// (`TIF_NEED_RESCHED_LAZY`).
    #[inline]
    #[must_use]
    pub const fn is_lazy(self) -> bool {
        matches!(self, Self::Lazy)
    }
}
