//! The clock of a CPU, division, pauses, and loads that depend on each other.

use std::hint::{black_box, spin_loop};
use std::io;

use super::{batches, on};

/// `steps` of arithmetic that depend on each other: three shifts and three exclusive ors each
/// (a xorshift generator), six cycles on processors that do either in one.
#[inline]
pub(crate) fn chain(mut x: u64, steps: u32) -> u64 {
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// Time of one step of [`chain`], ns.
pub(crate) fn chain_ns(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const STEPS: u32 = 20_000;
    let mut x = black_box(0x9e37_79b9);
    on(cpu, move || {
        batches(count, STEPS, || x = black_box(chain(x, STEPS)))
    })
}

/// A division of a large 64-bit number and one exclusive or, ns.
pub(crate) fn division_ns(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 5000;
    let divisor = black_box(3u64);
    on(cpu, move || {
        let mut x = u64::MAX;
        batches(count, OPS, || {
            for _ in 0..OPS {
                x = (x / divisor) ^ (u64::MAX << 8);
            }
            black_box(x);
        })
    })
}

/// A pause of a CPU that spins, ns.
pub(crate) fn pause_ns(cpu: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 1000;
    on(cpu, move || {
        batches(count, OPS, || {
            for _ in 0..OPS {
                spin_loop();
            }
        })
    })
}

/// Loads each of which gives the place of the next, in random order over `kib` KiB: ns each. `home`
/// is the CPU that touches the memory first, so that it is on that CPU's node.
pub(crate) fn loads(
    (cpu, home): (u32, u32),
    kib: u64,
    line: u32,
    count: u32,
    hops: u32,
) -> io::Result<Vec<f64>> {
    let stride = (line as usize / size_of::<u32>()).max(1);
    let lines = (kib as usize * 1024 / line as usize).max(2);
    let next = on(home, || cycle(lines, stride))?;
    on(cpu, || {
        let mut at = 0u32;
        // Once around small arrays, so that they are in the cache that is asked about.
        for _ in 0..lines.min(1 << 20) {
            at = next[at as usize];
        }
        batches(count, hops, || {
            for _ in 0..hops {
                at = next[at as usize];
            }
            black_box(at);
        })
    })
}

/// One cycle through all lines in random order (Sattolo's algorithm), with a fixed seed.
fn cycle(lines: usize, stride: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..lines as u32).collect();
    let mut x = 0x1234_5678_9abc_def1;
    for last in (1..lines).rev() {
        x = chain(x, 1);
        order.swap(last, (x % last as u64) as usize);
    }
    let mut next = vec![0u32; lines * stride];
    for (line, to) in order.iter().enumerate() {
        next[line * stride] = to * stride as u32;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_visits_every_line_once() {
        let next = cycle(100, 16);
        let (mut at, mut seen) = (0, vec![false; 1600]);
        for _ in 0..100 {
            assert!(!std::mem::replace(&mut seen[at], true));
            at = next[at] as usize;
        }
        assert_eq!(at, 0);
    }
}
