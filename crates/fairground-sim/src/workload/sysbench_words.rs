//! The report of sysbench 1.0, from what the simulated run measured.
use std::fmt::Write;

use super::marks::{Durations, MARK_END, MARK_START, Marks, TaskTime};
use super::metric::stddev;

/// What sysbench prints.
#[derive(Clone, Debug, PartialEq)]
pub struct SysbenchWords {
    /// The lines before the statistics.
    pub head: String,
    /// What a test prints of its own.
    pub speed: Speed,
    /// Templates of the worker threads.
    pub workers: Workers,
    /// Percentile of the latency, 0 for none.
    pub percentile: u32,
}

/// Which templates are those of worker threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workers {
    /// One past the last.
    pub end: u32,
    /// The last of each so many is one.
    pub every: u32,
}

impl Workers {
    fn has(self, task: &TaskTime) -> bool {
        task.template < self.end && task.template % self.every == self.every - 1
    }
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
    /// Statements. The test is one of a window of time, not from its own start to its end.
    Oltp {
        /// Statements of a transaction that read.
        reads: u32,
        /// BEGIN and COMMIT.
        other: u32,
    },
}

impl SysbenchWords {
    /// The tool's output; empty if the run never finished.
    pub fn print(&self, marks: &Marks) -> String {
        let (Some(total_s), Some(latency)) = (self.total_s(marks), marks.exact.first()) else {
            return String::new();
        };
        let events = latency.count;
        let mut out = self.head.clone();
        self.speed(&mut out, events, total_s);
        let _ = write!(
            out,
            "\n\nGeneral statistics:\n    total time:                          {total_s:.4}s\n    \
             total number of events:              {events}\n\nLatency (ms):"
        );
        let mut row = |name: &str, ms: f64| {
            let _ = write!(out, "\n{name:>12}: {ms:>39.2}");
        };
        row("min", ms(latency.min_ns as f64));
        row("avg", ms(latency.mean_ns().unwrap_or(0.0)));
        row("max", ms(latency.max_ns as f64));
        if self.percentile == 0 {
            row_disabled(&mut out);
        } else {
            let slot = self.percentile_ms(marks, latency);
            let _ = write!(out, "\n{:>11}th percentile: {slot:>27.2}", self.percentile);
        }
        let _ = write!(out, "\n{:>12}: {:>39.2}", "sum", ms(latency.sum_ns as f64));
        self.fairness(&mut out, marks);
        out
    }

    /// Length of the test.
    fn total_s(&self, marks: &Marks) -> Option<f64> {
        if matches!(self.speed, Speed::Oltp { .. }) {
            return (marks.elapsed_ns > 0).then(|| marks.elapsed_ns as f64 / 1e9);
        }
        let start = marks.marks.get(MARK_START as usize)?;
        let end = marks.marks.get(MARK_END as usize)?;
        let finished = start.seen > 0 && end.seen > 0;
        finished.then(|| end.last_ns.saturating_sub(start.first_ns) as f64 / 1e9)
    }

    /// The slot of the latency with rank n * p / 100, rounded to nearest as the tool does.
    fn percentile_ms(&self, marks: &Marks, latency: &Durations) -> f64 {
        let rank = (latency.count * u64::from(self.percentile) + 50) / 100;
        let mut below = 0;
        let found = marks.requests.first().and_then(|h| {
            h.iter_recorded().find_map(|v| {
                below += v.count_at_value();
                (below >= rank).then(|| v.value_iterated_to())
            })
        });
        let exact = |ns: u64| ns.clamp(latency.min_ns, latency.max_ns);
        match found {
            // Of no latency at all it is the first slot.
            Some(ns) if rank > 0 => slot_ms(ms(exact(ns) as f64)),
            _ => slot_ms(0.0),
        }
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
            Speed::Oltp { reads, other } => {
                let [read, rest] = [reads, other].map(|n| u64::from(n) * events);
                let total = read + rest;
                let counted = |n: u64| format!("{n:<6} ({:.2} per sec.)", n as f64 / total_s);
                write!(
                    out,
                    "\nSQL statistics:\n    queries performed:\n        \
                     read:                            {read}\n        \
                     write:                           0\n        \
                     other:                           {rest}\n        \
                     total:                           {total}\n    \
                     transactions:                        {}\n    \
                     queries:                             {}\n    \
                     ignored errors:                      {}\n    \
                     reconnects:                          {}",
                    counted(events),
                    counted(total),
                    counted(0),
                    counted(0),
                )
            }
        };
    }

    fn fairness(&self, out: &mut String, marks: &Marks) {
        let workers = || marks.tasks.iter().filter(|t| self.workers.has(t));
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

fn ms(ns: f64) -> f64 {
    ns / 1e6
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
    use crate::workload::program::Workload;

    /// The tool adds half before it cuts: the 95th percentile of ten is the tenth (9.5 + 0.5), of
    /// nine the ninth (8.55 + 0.5), and of 25 the 24th (23.75 + 0.5).
    #[test]
    fn the_rank_of_a_percentile_is_rounded_to_nearest() {
        let words = |percentile| SysbenchWords {
            head: String::new(),
            speed: Speed::None,
            workers: Workers { end: 1, every: 1 },
            percentile,
        };
        let printed = |n: u64, percentile| {
            let mut w = Workload::new("test", Vec::new());
            w.requests = vec!["event".into()];
            let mut marks = w.empty_marks();
            (1..=n).for_each(|i| {
                marks.request(0, 0, i * 1_000_000);
            });
            words(percentile).percentile_ms(&marks, &marks.exact[0])
        };
        for (n, percentile, rank) in [
            (10, 95, 10.0),
            (9, 95, 9.0),
            (25, 95, 24.0),
            (23, 95, 22.0),
            (21, 50, 11.0),
        ] {
            let slot = printed(n, percentile);
            assert_eq!(slot, slot_ms(rank), "{n} {percentile}: {slot}");
        }
        assert_eq!(printed(1, 40), slot_ms(0.0));
    }

    #[test]
    fn percentiles_are_those_that_sysbench_can_print() {
        // From outputs of the real tool.
        for (ms, printed) in [(0.2390, "0.24"), (959.0, "960.30"), (23.2, "23.10")] {
            assert_eq!(format!("{:.2}", slot_ms(ms)), printed);
        }
    }
}
