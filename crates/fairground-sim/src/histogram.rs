//! Histograms of durations. Units: nanoseconds.
use hdrhistogram::Histogram;

/// An empty one that takes every value, to three digits: 0.1 % error. It grows with its values, so
/// one of short durations stays small, and none is cut off, however long the run.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new(3).unwrap_or_else(|_| unreachable!("three digits are valid"))
}

/// Adds a value.
#[inline]
pub(crate) fn record(to: &mut Histogram<u64>, ns: u64) {
    let recorded = to.record(ns);
    debug_assert!(recorded.is_ok(), "a resizing histogram takes every value");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_longer_than_a_minute_is_told_like_the_rest() {
        let mut all = histogram();
        let long = 1_000_000_000_000_000;
        for ns in [0, 1, 1500, 59_000_000_000, 120_000_000_000, long] {
            record(&mut all, ns);
            assert!(all.max().abs_diff(ns) <= ns / 1000, "{ns}: {}", all.max());
        }
        assert_eq!(all.len(), 6);
        assert_eq!(all.value_at_quantile(0.5), 1500);
    }
}
