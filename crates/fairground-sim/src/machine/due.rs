//! What can become due.

use fairground::host::Timer;

use crate::cache::Ps;

/// How a CPU is told that there is something for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ipi {
    /// The interrupt that makes it look at its flags (`RESCHEDULE_VECTOR`).
    Reschedule,
    /// The interrupt that makes it call queued functions (`CALL_FUNCTION_SINGLE_VECTOR`).
    CallFunction,
    /// No interrupt: its idle loop sees that the flags were written.
    Polled,
}

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
    /// A message from another CPU arrives.
    Ipi {
        /// The CPU.
        cpu: u32,
        /// Which.
        kind: Ipi,
    },
    /// A task's timed wait must end; the interrupt comes to the CPU that set the timer.
    Wait {
        /// The CPU.
        cpu: u32,
        /// The task.
        task: u32,
        /// When: a timer that was set again is another one.
        must: Ps,
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
    /// A CPU's turn is over, if `stamp` is still the latest.
    Turn {
        /// See [`super::turns`].
        stamp: u32,
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
