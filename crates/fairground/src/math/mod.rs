//! Pure functions of the scheduler, each with its derivation: weights, load tracking, group
//! shares and the virtual time of EEVDF.
//!
//! Nothing in here knows a run queue, a host or a clock; time is an argument. Arithmetic is the
//! fixed point of the Linux fair scheduler, truncation and wrapping included, because the
//! results are held against recordings of a real kernel bit for bit.

pub mod eevdf;
pub mod pelt;
pub mod shares;
pub mod weight;

/// A task fits if this many per 1024 of it, i.e. 25 % more than it needs, are there.
const CAPACITY_MARGIN: u64 = 1280;

/// Whether utilisation `util` leaves a fifth of `capacity` free (both 0 to 1024).
///
/// Source: Documentation/scheduler/sched-capacity.rst.
#[inline]
#[must_use]
pub const fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * CAPACITY_MARGIN < capacity * 1024
}

/// The first time after `now` that is a whole number of periods after `expires`, and that number
/// (`hrtimer_forward`).
#[must_use]
pub(crate) fn forward(expires: u64, period: u64, now: u64) -> (u64, u64) {
    match now.checked_sub(expires) {
        None => (expires, 0),
        Some(late) => {
            let n = late / period.max(1) + 1;
            (expires + n * period.max(1), n)
        }
    }
}

/// `(a * b) >> shift` with a 128-bit product; the low 64 bits of the result.
#[inline]
pub(crate) const fn mul_shift(a: u64, b: u32, shift: u32) -> u64 {
    ((a as u128 * b as u128) >> shift) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_must_stay_free() {
        assert!(fits_capacity(819, 1024));
        assert!(!fits_capacity(820, 1024));
        assert!(!fits_capacity(0, 0));
    }
}
