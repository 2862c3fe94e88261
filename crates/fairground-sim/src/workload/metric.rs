//! How a reported value is made of what a run leaves behind ([`Marks`]). Times are in nanoseconds;
//! values are in the unit that the metric names.
use super::marks::{Durations, Marks};
use super::percentile::{Percentile, at_least, percentile};
use super::time::Ns;
use hdrhistogram::Histogram;

/// Percentiles that latencies are reported at, by the last part of their names: in 1/1000.
pub const PERCENTILES: [(&str, u32); 5] = [
    ("p50", 500),
    ("p90", 900),
    ("p95", 950),
    ("p99", 990),
    ("p99_9", 999),
];

/// Which direction of a metric is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Lower is better (time, latency).
    Lower,
    /// Higher is better (throughput).
    Higher,
    /// Neither: a fact, no verdict.
    Neither,
}

/// A reported value.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricDef {
    /// Name with the workload in front ("hackbench.time_s").
    pub name: String,
    /// Unit as printed ("s", "us", "1/s", "1").
    pub unit: String,
    /// Which direction is good.
    pub better: Better,
    /// How it is computed.
    pub from: From,
}

/// Source of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum From {
    /// From the first pass of one mark to the last pass of another, in seconds.
    SpanS {
        /// Begin: its first time.
        start: u32,
        /// End: its last time.
        end: u32,
    },
    /// The same span in microseconds, divided by a number of operations.
    SpanUsPer {
        /// Begin: its first time.
        start: u32,
        /// End: its last time.
        end: u32,
        /// Operations in the span.
        ops: u64,
    },
    /// Operations per second of the span.
    OpsPerSpanS {
        /// Begin: its first time.
        start: u32,
        /// End: its last time.
        end: u32,
        /// Operations in the span, or an amount in the unit of the metric, as of half a MiB.
        ops: f64,
    },
    /// Passes of a mark.
    Count(u32),
    /// Passes of a mark per second of the measured time.
    CountPerS(u32),
    /// Passes of a mark per second of the measured time, times a factor: rates of one of many
    /// clients, or of what one pass moves.
    ScaledPerS {
        /// Mark.
        mark: u32,
        /// What one pass counts.
        factor: f64,
    },
    /// Requests of a kind per second of the measured time.
    RequestsPerS(u32),
    /// Requests of a kind that ended.
    Requests(u32),
    /// Requests of a kind per second of a span.
    RequestsPerSpanS {
        /// Begin: its first time.
        start: u32,
        /// End: its last time.
        end: u32,
        /// Kind of request.
        request: u32,
    },
    /// Standard deviation of the number of requests, of all kinds, that the tasks made from
    /// templates `first..end` ended.
    RequestsStddev {
        /// First template.
        first: u32,
        /// One past the last template.
        end: u32,
    },
    /// Mean duration of a kind of request, in microseconds.
    RequestMeanUs(u32),
    /// A quantile of the duration of a kind of request, in microseconds: to three digits, but never
    /// beyond the shortest and the longest, which are exact. Of those that ended, as tools have it.
    RequestQuantileUs {
        /// Kind of request.
        request: u32,
        /// Quantile in 1/1000: 990 is the 99th percentile, 1000 the maximum.
        permille: u32,
    },
    /// The same of those that ended and those that are open at the end (`percentile.rs`).
    LatencyQuantileUs {
        /// Kind of request.
        request: u32,
        /// Quantile in 1/1000.
        permille: u32,
    },
    /// CPU time of all tasks of the workload in seconds.
    CpuS,
    /// CPU time of the tasks made from templates `first..end`, in seconds.
    CpuOfS {
        /// First template.
        first: u32,
        /// One past the last template.
        end: u32,
    },
    /// CPU time of the tasks made from templates `first..end`, as a share of that of all.
    CpuShare {
        /// First template.
        first: u32,
        /// One past the last template.
        end: u32,
    },
    /// CPU time of the tasks made from templates `first..end` per elapsed time: how many CPUs they
    /// used on average.
    Cpus {
        /// First template.
        first: u32,
        /// One past the last template.
        end: u32,
    },
    /// Jain's index of the CPU times of the tasks from templates `first..end`: 1 is equal shares,
    /// 1/n is one task that has all.
    Fairness {
        /// First template.
        first: u32,
        /// One past the last template.
        end: u32,
    },
    /// Share of all CPUs' time in percent, as `top` shows it.
    CpuTime(CpuTime),
    /// Share of user time in which working sets were fetched, in percent.
    FetchPct,
    /// Measured time in seconds: from the end of the warm-up to the end of the run.
    ElapsedS,
}

impl From {
    /// The value, `None` if the run has nothing to say (the mark was never passed, no request
    /// ended, no time went by).
    pub fn value(self, marks: &Marks) -> Option<f64> {
        let elapsed_s = marks.elapsed_ns as f64 / 1e9;
        let value = match self {
            From::SpanS { start, end } => span_ns(marks, start, end)? / 1e9,
            From::SpanUsPer { start, end, ops } => span_ns(marks, start, end)? / 1e3 / ops as f64,
            From::OpsPerSpanS { start, end, ops } => ops / (span_ns(marks, start, end)? / 1e9),
            From::Count(k) => marks.marks.get(k as usize)?.count as f64,
            From::CountPerS(k) => marks.marks.get(k as usize)?.count as f64 / elapsed_s,
            From::ScaledPerS { mark, factor } => {
                factor * marks.marks.get(mark as usize)?.count as f64 / elapsed_s
            }
            From::RequestsPerS(k) => marks.requests.get(k as usize)?.len() as f64 / elapsed_s,
            From::Requests(k) => marks.requests.get(k as usize)?.len() as f64,
            From::RequestsPerSpanS {
                start,
                end,
                request,
            } => {
                let ended = marks.requests.get(request as usize)?.len() as f64;
                ended / (span_ns(marks, start, end)? / 1e9)
            }
            From::RequestsStddev { first, end } => {
                stddev(marks.of(first, end).map(|t| t.requests as f64))?
            }
            From::RequestMeanUs(k) => marks.exact.get(k as usize)?.mean_ns()? / 1e3,
            From::RequestQuantileUs { request, permille } => {
                quantile_ns(marks, request, permille)? as f64 / 1e3
            }
            From::LatencyQuantileUs { request, permille } => {
                match latency(marks, request, permille)? {
                    Percentile::Known(ns) => ns as f64 / 1e3,
                    Percentile::AtLeast(_) => return None,
                }
            }
            From::CpuS => sum(marks.tasks.iter().map(|t| t.cpu_ns as f64)) / 1e9,
            From::CpuOfS { first, end } => sum(times(marks, first, end)) / 1e9,
            From::CpuShare { first, end } => {
                let all: f64 = marks.tasks.iter().map(|t| t.cpu_ns as f64).sum();
                sum(times(marks, first, end)) / all
            }
            From::Cpus { first, end } => sum(times(marks, first, end)) / 1e9 / elapsed_s,
            From::Fairness { first, end } => {
                let sum: f64 = times(marks, first, end).sum();
                let squares: f64 = times(marks, first, end).map(|t| t * t).sum();
                sum * sum / (squares * times(marks, first, end).count() as f64)
            }
            From::CpuTime(part) => {
                let ns = match part {
                    CpuTime::User => marks.user_ns,
                    CpuTime::System => marks.busy_ns.saturating_sub(marks.user_ns),
                    CpuTime::Idle => marks.capacity_ns.saturating_sub(marks.busy_ns),
                };
                100.0 * ns as f64 / marks.capacity_ns as f64
            }
            From::FetchPct => 100.0 * marks.fetch_ns as f64 / marks.user_ns as f64,
            From::ElapsedS => elapsed_s,
        };
        value.is_finite().then_some(value)
    }

    /// Whether it is a quantile of this kind of request.
    pub fn is_quantile_of(self, kind: u32) -> bool {
        match self {
            From::RequestQuantileUs { request, .. } => request == kind,
            From::LatencyQuantileUs { request, .. } => request == kind,
            _ => false,
        }
    }
}

/// What a workload does over and over, of which more is done in a run if each takes less.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// One of it, as in "per transaction".
    pub unit: String,
    /// How many were done in the measured time.
    pub from: From,
}

impl Work {
    /// Shorthand.
    pub fn new(unit: &str, from: From) -> Self {
        let unit = unit.into();
        Self { unit, from }
    }
}

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuTime {
    /// "us": user code.
    User,
    /// "sy": kernel code, interrupts included.
    System,
    /// "id": idle.
    Idle,
}

impl MetricDef {
    /// Shorthand.
    pub fn new(name: impl Into<String>, unit: &str, better: Better, from: From) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            better,
            from,
        }
    }

    /// How much of its computing is fetching working sets, under this name.
    pub fn fetching(name: impl Into<String>) -> Self {
        Self::new(name, "%", Better::Lower, From::FetchPct)
    }

    /// The value, `None` if the run has nothing to say ([`From::value`]).
    pub fn value(&self, marks: &Marks) -> Option<f64> {
        self.from.value(marks)
    }

    /// What the value is at least, if open requests are why it is not known, us: where there is a
    /// value, it is one of those that ended, and too good.
    pub fn bound(&self, marks: &Marks) -> Option<f64> {
        let (request, permille, known) = match self.from {
            From::LatencyQuantileUs { request, permille } => {
                let found = latency(marks, request, permille)?;
                (request, permille, matches!(found, Percentile::Known(_)))
            }
            From::RequestQuantileUs { request, permille } => {
                let ages = marks.ages(request);
                let value_ns = quantile_ns(marks, request, permille)?;
                let older = ages.len() - ages.partition_point(|age| *age <= value_ns);
                let all = marks.exact.get(request as usize)?.count + ages.len() as u64;
                let allowed = (1000 - u64::from(permille)) * all;
                (request, permille, older as u64 * 1000 <= allowed)
            }
            _ => return None,
        };
        let (ended, exact) = of_kind(marks, request)?;
        let bound = || at_least(ended, exact, marks.ages(request), permille) as f64 / 1e3;
        (!known).then(bound)
    }

    /// How many requests stand behind a quantile; `None` of another value.
    pub fn samples(&self, marks: &Marks) -> Option<u64> {
        match self.from {
            From::RequestQuantileUs { request, .. } => Some(of_kind(marks, request)?.0.len()),
            From::LatencyQuantileUs { request, .. } => {
                Some(of_kind(marks, request)?.0.len() + marks.ages(request).len() as u64)
            }
            _ => None,
        }
    }

    /// How many events of the measured time the value counts; `None` if it is of another kind, as
    /// a mean is: how far that spreads its samples say, not their number.
    pub fn events(&self, marks: &Marks) -> Option<u64> {
        let ended = |k: u32| marks.requests.get(k as usize).map(Histogram::len);
        match self.from {
            From::Count(k) | From::CountPerS(k) | From::ScaledPerS { mark: k, .. } => {
                marks.marks.get(k as usize).map(|m| m.count)
            }
            From::RequestsPerS(k) | From::Requests(k) => ended(k),
            From::RequestsPerSpanS { request, .. } => ended(request),
            _ => None,
        }
    }
}

/// Standard deviation of a whole population.
pub(super) fn stddev(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
    (n > 0.0).then(|| (squares / n).sqrt())
}

fn span_ns(marks: &Marks, start: u32, end: u32) -> Option<f64> {
    let (a, b) = (
        marks.marks.get(start as usize)?,
        marks.marks.get(end as usize)?,
    );
    let passed = a.seen > 0 && b.seen > 0 && b.last_ns >= a.first_ns;
    passed.then(|| (b.last_ns - a.first_ns) as f64)
}

fn of_kind(marks: &Marks, request: u32) -> Option<(&Histogram<u64>, &Durations)> {
    let k = request as usize;
    Some((marks.requests.get(k)?, marks.exact.get(k)?))
}

fn latency(marks: &Marks, request: u32, permille: u32) -> Option<Percentile> {
    let (ended, exact) = of_kind(marks, request)?;
    percentile(ended, exact, marks.ages(request), permille)
}

fn quantile_ns(marks: &Marks, request: u32, permille: u32) -> Option<Ns> {
    let (histogram, exact) = of_kind(marks, request)?;
    if exact.count == 0 {
        return None;
    }
    if permille == 1000 {
        return Some(exact.max_ns);
    }
    Some(exact.within(histogram.value_at_quantile(f64::from(permille) / 1e3)))
}

/// Zero if there is nothing; the library's sum is -0 then.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

fn times(marks: &Marks, first: u32, end: u32) -> impl Iterator<Item = f64> + '_ {
    marks.of(first, end).map(|t| t.cpu_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::program::Workload;

    fn marks(warmup_ns: Ns) -> Marks {
        let mut w = Workload::new("test", Vec::new());
        w.requests = vec!["request".into()];
        w.marks = vec!["done".into()];
        w.warmup_ns = warmup_ns;
        w.empty_marks()
    }

    fn value(from: From, marks: &Marks) -> Option<f64> {
        MetricDef::new("m", "us", Better::Lower, from).value(marks)
    }

    #[test]
    fn a_request_counts_when_the_mark_at_its_end_does() {
        let mut marks = marks(1000);
        for (start, end) in [(0, 999), (0, 1000), (500, 1500), (1200, 1500)] {
            marks.mark(0, end);
            marks.request(0, start, end);
        }
        assert_eq!(marks.marks[0].count, 3);
        assert_eq!(value(From::Requests(0), &marks), Some(3.0));
        assert_eq!(value(From::RequestMeanUs(0), &marks), Some(2.3 / 3.0));
    }

    #[test]
    fn tasks_that_never_ran_had_no_time_without_a_sign() {
        let marks = marks(0);
        let (first, end) = (0, 1);
        for from in [From::CpuS, From::CpuOfS { first, end }] {
            let value = value(from, &marks);
            assert!(value.is_some_and(|v| v == 0.0 && v.is_sign_positive()));
        }
    }

    #[test]
    fn mean_and_extremes_are_exact() {
        let quantile = |permille| From::RequestQuantileUs {
            request: 0,
            permille,
        };
        let mut marks = marks(0);
        assert_eq!(value(From::RequestMeanUs(0), &marks), None);
        assert_eq!(value(quantile(1000), &marks), None);
        // A histogram with three digits has slots of 64 ns here.
        marks.request(0, 0, 120_999);
        for permille in [500, 950, 1000] {
            assert_eq!(value(quantile(permille), &marks), Some(120.999));
        }
        assert_eq!(value(From::RequestMeanUs(0), &marks), Some(120.999));
        marks.request(0, 0, 120_001);
        assert_eq!(value(From::RequestMeanUs(0), &marks), Some(120.5));
        assert_eq!(marks.exact[0].min_ns, 120_001);
    }
}
