//! When an idle CPU stops its tick: before it chooses an idle state, or where there is no choice.
//!
//! Sources: "sched: idle: Select idle state before stopping the tick", Rafael J. Wysocki, 2018
//! (554c8aa8ecad, 4.17); "sched: idle: Consolidate the handling of two special cases", the same,
//! 2026 (f4c31b07b136), which the stable series 6.12 and 6.18 have too.

/// What a CPU does with its tick as it goes idle. The last two are for CPUs without an idle driver
/// or with one state only; where there is a choice, the governor has the tick stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTick {
    /// Stops it before anything is chosen, so always (up to 4.16). The governor then sees how long
    /// the CPU could sleep, and has no say.
    BeforeChoice,
    /// Stops it at once.
    Stop,
    /// Lets it go on, until it has ended a turn of the idle loop.
    AfterTick,
}

impl IdleTick {
    /// Whether the governor is asked for a state only, with the tick stopped already.
    #[inline]
    #[must_use]
    pub const fn is_before_choice(self) -> bool {
        matches!(self, Self::BeforeChoice)
    }

    /// Whether the tick is stopped now; `by_tick` = it has ended the turn of the idle loop before
    /// this one, `stopped` = it is stopped already.
    #[inline]
    #[must_use]
    pub const fn stops(self, by_tick: bool, stopped: bool) -> bool {
        match self {
            Self::BeforeChoice | Self::Stop => true,
            Self::AfterTick => by_tick || stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_came_says_that_more_would() {
        let after = |by_tick, stopped| IdleTick::AfterTick.stops(by_tick, stopped);
        assert!(!after(false, false));
        assert!(after(true, false) && after(false, true));
        assert!(IdleTick::Stop.stops(false, false));
        assert!(IdleTick::BeforeChoice.stops(false, false));
    }
}
