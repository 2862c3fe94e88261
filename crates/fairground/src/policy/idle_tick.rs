//! When an idle CPU stops its tick where no governor has anything to choose.
//!
//! Source: "sched: idle: Consolidate the handling of two special cases", Rafael J. Wysocki, 2026
//! (f4c31b07b136), which the stable series 6.12 and 6.18 have too.

/// What a CPU does with its tick as it goes idle, without an idle driver or with one state only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleTick {
    /// Stops it at once.
    Stop,
    /// Lets it go on, until it has ended a turn of the idle loop.
    AfterTick,
}

impl IdleTick {
    /// Whether the tick is stopped now; `by_tick` = it has ended the turn of the idle loop before
    /// this one, `stopped` = it is stopped already.
    #[inline]
    #[must_use]
    pub const fn stops(self, by_tick: bool, stopped: bool) -> bool {
        match self {
            Self::Stop => true,
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
    }
}
