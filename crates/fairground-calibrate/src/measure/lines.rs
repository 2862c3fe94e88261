//! Cache lines: their hand-over between two CPUs, and atomic updates alone and contended.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{batches, both, on};
use crate::measure::memory::chain;

/// A word on lines of its own: 128 bytes, since some processors fetch lines in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Alone(AtomicU64);

/// What is done to the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// `fetch_add`.
    Add,
    /// A load, and a compare-and-swap until it succeeds.
    CasLoop,
    /// A load and a store, without the word being held between.
    Store,
}

/// Steps of arithmetic that take about 25 ns at 3 GHz: updates of kernel paths are that far apart
/// at the least.
pub(crate) const SPACED: u32 = 12;

/// Hand-over of a modified line for a compare-and-swap, ns: half of a round trip.
pub(crate) fn transfer(cpus: (u32, u32), count: u32, turns: u32) -> io::Result<Vec<f64>> {
    let word = Alone::default();
    let swap = |from: u64| {
        while word
            .0
            .compare_exchange(from, from + 1, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {}
    };
    let all = u64::from(turns) * (u64::from(count) + 1);
    let left = || {
        let mut next = 0;
        batches(count, turns * 2, || {
            for _ in 0..turns {
                swap(2 * next);
                next += 1;
            }
        })
    };
    let right = || (0..all).for_each(|i| swap(2 * i + 1));
    Ok(both(cpus, left, right)?.0)
}

/// Updates of a word that nobody else uses, `space` steps of arithmetic apart, ns each.
pub(crate) fn alone(cpu: u32, update: Update, space: u32, count: u32) -> io::Result<Vec<f64>> {
    const OPS: u32 = 2000;
    let word = Alone::default();
    on(cpu, || {
        let mut x = 1;
        batches(count, OPS, || {
            for _ in 0..OPS {
                x = chain(x, space);
                apply(&word, update);
            }
            black_box(x);
        })
    })
}

/// The same while another CPU does so too: ns each, and the other's operations for each of ours.
pub(crate) fn contended(
    cpus: (u32, u32),
    update: Update,
    space: u32,
    count: u32,
) -> io::Result<Vec<(f64, f64)>> {
    const OPS: u32 = 400;
    const REPORT: u64 = 16;
    let (word, others, stop) = (Alone::default(), Alone::default(), AtomicBool::new(false));
    let left = || {
        let (mut x, mut before) = (1, 0);
        let mut ratios = Vec::new();
        let times = batches(count, OPS, || {
            for _ in 0..OPS {
                x = chain(x, space);
                apply(&word, update);
            }
            black_box(x);
            let now = others.0.load(Ordering::Relaxed);
            ratios.push((now - before) as f64 / f64::from(OPS));
            before = now;
        });
        stop.store(true, Ordering::Relaxed);
        // The first ratio is that of the batch that is dropped.
        times.into_iter().zip(ratios.into_iter().skip(1)).collect()
    };
    let right = || {
        let (mut x, mut done) = (1, 0);
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..REPORT {
                x = chain(x, space);
                apply(&word, update);
            }
            done += REPORT;
            others.0.store(done, Ordering::Relaxed);
        }
        black_box(x);
    };
    Ok(both(cpus, left, right)?.0)
}

#[inline]
fn apply(word: &Alone, update: Update) {
    let word = &word.0;
    match update {
        Update::Add => {
            black_box(word.fetch_add(1, Ordering::AcqRel));
        }
        Update::CasLoop => {
            let mut seen = word.load(Ordering::Relaxed);
            while let Err(now) =
                word.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed)
            {
                seen = now;
            }
        }
        Update::Store => word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed),
    }
}
