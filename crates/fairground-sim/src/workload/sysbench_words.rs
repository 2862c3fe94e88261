//! The report of sysbench 1.0, from what the simulated run measured.
use std::fmt::Write;

use super::metric::{Marks, stddev};
use super::words::{MARK_END, MARK_START};

/// What sysbench prints.
#[derive(Clone, Debug, PartialEq)]
pub struct SysbenchWords {
    /// The lines before the statistics.
    pub head: String,
    /// What a test prints of its own.
    pub speed: Speed,
    /// Templates of the worker threads are `0..workers`.
    pub workers: u32,
    /// Percentile of the latency, 0 for none.
    pub percentile: u32,
}

/// A test's own lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speed {
    /// None.
    None,
    /// Events per second.
    Cpu,
    /// Operations and bytes per second.
    Memory {
        /// Bytes of a block; 0 if none are transferred.
        block: u64,
    },
}

impl SysbenchWords {
    /// The tool's output; empty if the run never finished.
    pub fn print(&self, marks: &Marks) -> String {
        let (Some(start), Some(end)) = (
            marks.marks.get(MARK_START as usize),
            marks.marks.get(MARK_END as usize),
        ) else {
            return String::new();
        };
        let Some(latency) = marks.requests.first() else {
            return String::new();
        };
        if start.seen == 0 || end.seen == 0 {
            return String::new();
        }
        let total_s = end.last_ns.saturating_sub(start.first_ns) as f64 / 1e9;
        let events = latency.len();
        let mut out = self.head.clone();
        self.speed(&mut out, events, total_s);
        let _ = write!(
            out,
            "\n\nGeneral statistics:\n    total time:                          {total_s:.4}s\n    \
             total number of events:              {events}\n\nLatency (ms):"
        );
        let sum_ns: u64 = marks.tasks.iter().map(|t| t.request_ns).sum();
        let mut row = |name: &str, ms: f64| {
            let _ = write!(out, "\n{name:>12}: {ms:>37.2}");
        };
        let ms = |ns: u64| if events == 0 { 0.0 } else { ns as f64 / 1e6 };
        row("min", ms(latency.min()));
        row("avg", ms(sum_ns.checked_div(events).unwrap_or(0)));
        row("max", ms(latency.max()));
        if self.percentile == 0 {
            row_disabled(&mut out);
        } else {
            let quantile = f64::from(self.percentile) / 100.0;
            let slot = slot_ms(ms(latency.value_at_quantile(quantile)));
            let _ = write!(out, "\n{:>11}th percentile:{slot:>26.2}", self.percentile);
        }
        let _ = write!(out, "\n{:>12}: {:>37.2}", "sum", ms(sum_ns));
        self.fairness(&mut out, marks);
        out
    }

    fn speed(&self, out: &mut String, events: u64, total_s: f64) {
        let per_s = events as f64 / total_s;
        let _ = match self.speed {
            Speed::None => Ok(()),
            Speed::Cpu => write!(out, "\nCPU speed:\n    events per second: {per_s:>8.2}"),
            Speed::Memory { block } => {
                let mib = block as f64 / 1024.0 / 1024.0;
                let first = write!(
                    out,
                    "\nTotal operations: {events} ({per_s:>8.2} per second)"
                );
                first.and_then(|()| match block {
                    0 => Ok(()),
                    _ => write!(
                        out,
                        "\n\n{:.2} MiB transferred ({:.2} MiB/sec)",
                        events as f64 * mib,
                        per_s * mib
                    ),
                })
            }
        };
    }

    fn fairness(&self, out: &mut String, marks: &Marks) {
        let workers = || marks.of(0, self.workers);
        let n = workers().count().max(1) as f64;
        let events = workers().map(|t| t.requests as f64);
        let times = workers().map(|t| t.request_ns as f64 / 1e9);
        let (events_avg, time_avg) = (
            events.clone().sum::<f64>() / n,
            times.clone().sum::<f64>() / n,
        );
        let _ = write!(
            out,
            "\n\nThreads fairness:\n    events (avg/stddev):           {events_avg:.4}/{:.2}\n    \
             execution time (avg/stddev):   {time_avg:.4}/{:.2}",
            stddev(events).unwrap_or(0.0),
            stddev(times).unwrap_or(0.0)
        );
    }
}

fn row_disabled(out: &mut String) {
    out.push_str("\n         percentile stats:               disabled");
}

/// The value that sysbench has for a latency: its histogram has 1024 slots whose logarithms are
/// equally far apart from 0.001 ms to 100 s.
fn slot_ms(ms: f64) -> f64 {
    let (low, high) = (libm::log(0.001), libm::log(100_000.0));
    let step = (high - low) / 1023.0;
    let slot = ((libm::log(ms.max(0.001)) - low) / step + 0.5).floor();
    libm::exp(slot.min(1023.0) * step + low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_that_sysbench_can_print() {
        // From outputs of the real tool.
        for (ms, printed) in [(0.2390, "0.24"), (959.0, "960.30"), (23.2, "23.10")] {
            assert_eq!(format!("{:.2}", slot_ms(ms)), printed);
        }
    }
}
