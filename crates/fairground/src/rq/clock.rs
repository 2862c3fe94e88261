//! The clocks of a run queue: wall, task and load-tracking time.

use crate::math::pelt::LOAD_AVG_MAX;
use crate::value::SCHED_CAPACITY_SCALE;

/// The least time, ns, at which a host's clock begins: one unit of load tracking, in which a time
/// of 0 says that there was no update yet.
pub const CLOCK_BEGINS: u64 = 1024;

/// What a CPU does while its clocks advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runs {
    /// A task of whatever class runs.
    Work,
    /// Nobody does.
    IdleTask,
}

/// Clocks of one run queue, ns.
///
/// ```text
/// clock       follows the scheduler clock
/// task        clock without time spent in interrupts (no time here)
/// pelt        task scaled by the CPU's capacity and frequency; while the CPU is idle it jumps to
///             task, and what a slow CPU did not deliver before is lost idle time
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct RqClock {
    /// `rq->clock`.
    pub clock: u64,
    /// `rq->clock_task`.
    pub task: u64,
    /// `rq->clock_pelt`.
    pub pelt: u64,
    /// Idle time that did not advance `pelt` because the CPU was overloaded before.
    pub lost_idle_time: u64,
    /// `clock` at the last entry into idle.
    pub idle: u64,
    /// `pelt` at the last entry into idle.
    pub pelt_idle: u64,
    /// How far load tracking's time has been hurried ahead of `task`
    /// ([`System::hurry_load_time`](crate::system::System::hurry_load_time)); 0 in the kernel.
    pub ahead: u64,
    /// Capacity of the CPU, 1024 = biggest.
    pub capacity: u64,
}

impl RqClock {
    /// Clocks of a CPU of the given capacity at `now`.
    #[must_use]
    pub fn new(now: u64, capacity: u64) -> Self {
        Self {
            clock: now,
            task: now,
            pelt: now,
            capacity,
            ..Self::default()
        }
    }

    /// Advances all clocks to `now`, at which load tracking is `ahead`.
    #[inline]
    pub fn advance(&mut self, now: u64, ahead: u64, runs: Runs) {
        let delta = now.saturating_sub(self.clock);
        if delta == 0 {
            return;
        }
        self.clock = now;
        self.task += delta;
        let hurried = ahead.saturating_sub(self.ahead);
        self.ahead = ahead;
        match runs {
            Runs::IdleTask => self.stamp_idle(),
            Runs::Work => self.pelt += scaled(delta + hurried, self.capacity),
        }
    }

    /// The load-tracking time without the lost idle time (`rq_clock_pelt`).
    #[inline]
    #[must_use]
    pub fn pelt(&self) -> u64 {
        self.pelt - self.lost_idle_time
    }

    /// Entry into idle: a CPU that was busy for a whole window had no idle time to give, so the
    /// difference between `task` and `pelt` is lost rather than counted as idle
    /// (`update_idle_rq_clock_pelt`). `util_sum` is that of all classes.
    pub fn enter_idle(&mut self, util_sum: u64) {
        let saturated = ((LOAD_AVG_MAX - 1024) << 10) - LOAD_AVG_MAX;
        if util_sum >= saturated {
            self.lost_idle_time += self.task + self.ahead - self.pelt;
        }
        self.stamp_idle();
    }

    fn stamp_idle(&mut self) {
        self.pelt = self.task + self.ahead;
        self.idle = self.clock;
        self.pelt_idle = self.pelt();
    }
}

/// `passed` ns as a CPU of this capacity counts them (`cap_scale`). A product that is too long is
/// that of a clock which has jumped by more than 208 days.
#[inline]
fn scaled(passed: u64, capacity: u64) -> u64 {
    match passed.checked_mul(capacity) {
        Some(product) => product / SCHED_CAPACITY_SCALE,
        None => {
            (u128::from(passed) * u128::from(capacity) / u128::from(SCHED_CAPACITY_SCALE)) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_any_length_is_scaled_as_a_short_one() {
        for (passed, capacity, expected) in [
            (1_000, 512, 500),
            ((1 << 54) - 1, 1024, (1 << 54) - 1),
            (1 << 54, 1024, 1 << 54),
            (1 << 54, 512, 1 << 53),
            (u64::MAX, 1024, u64::MAX),
            (u64::MAX, 1, u64::MAX >> 10),
        ] {
            assert_eq!(scaled(passed, capacity), expected, "{passed} {capacity}");
        }
    }
}
