//! Latency histogram: fixed memory however many wake-ups, mergeable, 3 significant digits.

use hdrhistogram::Histogram;

use crate::result::Run;

/// Distribution of latencies in ns; percentiles are within 0.1 % of the exact ones.
#[derive(Clone, Debug)]
pub struct Latency {
    /// `None` only if the histogram could not be made, which its constants rule out.
    histogram: Option<Histogram<u64>>,
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// An empty distribution.
    pub fn new() -> Self {
        Self {
            histogram: Histogram::new(3).ok(),
        }
    }

    /// Records one latency.
    pub fn record_ns(&mut self, ns: u64) {
        if let Some(histogram) = &mut self.histogram {
            // Fails only for what cannot be indexed, beyond 2^62 ns: that is 146 years.
            let recorded = histogram.record(ns);
            debug_assert!(recorded.is_ok());
        }
    }

    /// Adds all latencies of `other`.
    pub fn merge(&mut self, other: &Self) {
        if let (Some(mine), Some(theirs)) = (&mut self.histogram, &other.histogram) {
            // Fails only if `theirs` holds what cannot be recorded here; both grow by themselves.
            let merged = mine.add(theirs);
            debug_assert!(merged.is_ok());
        }
    }

    /// How many were recorded.
    pub fn len(&self) -> u64 {
        self.histogram.as_ref().map_or(0, Histogram::len)
    }

    /// Whether none was recorded.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The percentile (0 to 100) in us; `None` if nothing was recorded.
    pub fn percentile_us(&self, percentile: f64) -> Option<f64> {
        let histogram = self.histogram.as_ref().filter(|h| !h.is_empty())?;
        Some(histogram.value_at_percentile(percentile) as f64 / 1000.0)
    }

    /// Sets `NAME.p50` and `NAME.p99`; `null` if nothing was recorded.
    pub fn set_metrics(&self, run: &mut Run, name: &str) {
        for percentile in [50.0, 99.0] {
            let value = self.percentile_us(percentile).unwrap_or(f64::NAN);
            run.set_metric(format!("{name}.p{percentile}"), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let (mut odd, mut even) = (Latency::new(), Latency::new());
        for ns in 1..=1_000_000u64 {
            if ns % 2 == 0 {
                even.record_ns(ns)
            } else {
                odd.record_ns(ns)
            }
        }
        odd.merge(&even);
        assert_eq!(odd.len(), 1_000_000);
        for (percentile, exact_us) in [(50.0, 500.0), (99.0, 990.0), (100.0, 1000.0)] {
            let got = odd.percentile_us(percentile).unwrap();
            assert!((got / exact_us - 1.0).abs() < 1e-3, "p{percentile}: {got}");
        }
    }

    #[test]
    fn nothing_recorded_is_no_number() {
        let mut run = Run::new(1);
        Latency::new().set_metrics(&mut run, "wakeup_latency_us");
        assert_eq!(run.metrics["wakeup_latency_us.p50"], None);
        assert_eq!(run.metrics["wakeup_latency_us.p99"], None);
    }
}
