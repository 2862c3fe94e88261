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

/// `(a * b) >> shift` with a 128-bit product; the low 64 bits of the result.
#[inline]
pub(crate) const fn mul_shift(a: u64, b: u32, shift: u32) -> u64 {
    ((a as u128 * b as u128) >> shift) as u64
}
