//! What a run leaves behind for its workload ([`Marks`]), and how a reported value is made of it
//! ([`MetricDef`]). Times are in nanoseconds; values are in the unit that the metric names.
use super::halves::{self, Half};
use super::percentile::{Percentile, at_least, percentile};
use super::program::{Ns, Workload};
use crate::histogram::{histogram, record};
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
            From::CpuS => marks.tasks.iter().map(|t| t.cpu_ns as f64).sum::<f64>() / 1e9,
            From::CpuOfS { first, end } => times(marks, first, end).sum::<f64>() / 1e9,
            From::CpuShare { first, end } => {
                let all: f64 = marks.tasks.iter().map(|t| t.cpu_ns as f64).sum();
                times(marks, first, end).sum::<f64>() / all
            }
            From::Cpus { first, end } => times(marks, first, end).sum::<f64>() / 1e9 / elapsed_s,
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

/// Passes of one mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkStat {
    /// Passes since the warm-up.
    pub count: u64,
    /// Time of the first pass of all (warm-up included).
    pub first_ns: Ns,
    /// Time of the last pass.
    pub last_ns: Ns,
    /// Passes of all time; 0 says that the times above mean nothing.
    pub seen: u64,
}

/// CPU time of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskTime {
    /// Template that it was made from.
    pub template: u32,
    /// Time that the task was charged since the warm-up (its `sum_exec_runtime`).
    pub cpu_ns: Ns,
    /// Requests that it ended since the warm-up.
    pub requests: u64,
    /// Sum of their durations.
    pub request_ns: Ns,
}

/// Durations of the requests of a kind, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Sum of them.
    pub sum_ns: Ns,
    /// The shortest; 0 of none.
    pub min_ns: Ns,
    /// The longest; 0 of none.
    pub max_ns: Ns,
    /// The last; 0 of none.
    pub last_ns: Ns,
}

impl Durations {
    /// The end of a slot of a histogram of these durations, which may be above all that is in it.
    pub(super) fn within(&self, ns: Ns) -> Ns {
        ns.clamp(self.min_ns, self.max_ns)
    }

    fn add(&mut self, ns: Ns) {
        self.min_ns = if self.count == 0 {
            ns
        } else {
            self.min_ns.min(ns)
        };
        self.max_ns = self.max_ns.max(ns);
        self.last_ns = ns;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.count += 1;
    }

    /// Mean, ns; `None` of none.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// How many requests [`Marks::order`] keeps.
pub const ORDER_MAX: usize = 1000;

/// What a run measured, filled by the machine.
#[derive(Clone, Debug)]
pub struct Marks {
    /// One per mark of the workload.
    pub marks: Vec<MarkStat>,
    /// One histogram of durations in nanoseconds per kind of request.
    pub requests: Vec<Histogram<u64>>,
    /// Sum and extremes of the same durations, which a histogram has to three digits only.
    pub exact: Vec<Durations>,
    /// Ages of the requests of each kind that are open at the end, sorted, ns.
    open: Vec<Vec<Ns>>,
    /// Durations by half of the measured time; of little meaning where it has no middle.
    pub halves: Vec<[Half; 2]>,
    /// Durations of the first [`ORDER_MAX`] requests of kind 0 in the order of their ends, ns.
    pub order: Vec<Ns>,
    /// One per task that ever existed, in the order of creation.
    pub tasks: Vec<TaskTime>,
    /// From the end of the warm-up to the end of the run.
    pub elapsed_ns: Ns,
    /// Time of all CPUs together since the warm-up: in user code, not idle, and all of it.
    pub user_ns: Ns,
    /// Part of it: tasks fetch their working sets, ns at the pace of a core with one busy thread.
    pub fetch_ns: Ns,
    /// See `user_ns`.
    pub busy_ns: Ns,
    /// See `user_ns`.
    pub capacity_ns: Ns,
    warmup_ns: Ns,
    /// The middle of the measured time, if it has one.
    middle_ns: Option<Ns>,
}

impl Marks {
    /// Empty tables of the right size for `workload`.
    pub fn new(workload: &Workload) -> Self {
        Self {
            marks: vec![MarkStat::default(); workload.marks.len()],
            requests: workload.requests.iter().map(|_| histogram()).collect(),
            exact: vec![Durations::default(); workload.requests.len()],
            open: vec![Vec::new(); workload.requests.len()],
            halves: vec![[Half::default(); 2]; workload.requests.len()],
            order: Vec::new(),
            tasks: Vec::new(),
            elapsed_ns: 0,
            user_ns: 0,
            fetch_ns: 0,
            busy_ns: 0,
            capacity_ns: 0,
            warmup_ns: workload.warmup_ns,
            middle_ns: halves::middle_ns(workload),
        }
    }

    /// A task passed mark `k` at `now`.
    pub fn mark(&mut self, k: u32, now: Ns) {
        let m = &mut self.marks[k as usize];
        if m.seen == 0 {
            m.first_ns = now;
        }
        m.seen += 1;
        m.last_ns = now;
        m.count += u64::from(now >= self.warmup_ns);
    }

    /// A request of kind `k` ended. It counts if that was after the warm-up, as a mark does that is
    /// passed then, whenever it began; whether it did. A tool that throws away what it counted so
    /// far does the same. To leave out those that began in the warm-up would leave out the long
    /// ones more often than the short ones, and all where none is shorter than the window.
    pub fn request(&mut self, k: u32, start: Ns, end: Ns) -> bool {
        let counts = end >= self.warmup_ns;
        if counts {
            let took = end.saturating_sub(start);
            if k == 0 && self.order.len() < ORDER_MAX {
                self.order.push(took);
            }
            self.exact[k as usize].add(took);
            record(&mut self.requests[k as usize], took);
            self.halve(k, start, end);
        }
        counts
    }

    /// A request of kind `k` that began at `start` is open at the end of the run.
    pub fn left_open(&mut self, k: u32, start: Ns, end: Ns) {
        let ages = &mut self.open[k as usize];
        let age = end.saturating_sub(start);
        ages.insert(ages.partition_point(|a| *a <= age), age);
        self.halve(k, start, end);
    }

    fn halve(&mut self, k: u32, start: Ns, end: Ns) {
        if let Some(middle) = self.middle_ns {
            halves::add(&mut self.halves[k as usize], middle, start, end);
        }
    }

    /// Whether [`Marks::halves`] means anything.
    pub fn has_middle(&self) -> bool {
        self.middle_ns.is_some()
    }

    /// Ages of the requests of a kind that are open at the end, sorted, ns.
    pub fn ages(&self, k: u32) -> &[Ns] {
        self.open.get(k as usize).map_or(&[], Vec::as_slice)
    }

    /// The tasks that were made from templates `first..end`.
    pub(super) fn of(&self, first: u32, end: u32) -> impl Iterator<Item = &TaskTime> + Clone {
        let of = move |t: &&TaskTime| (first..end).contains(&t.template);
        self.tasks.iter().filter(of)
    }
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

fn times(marks: &Marks, first: u32, end: u32) -> impl Iterator<Item = f64> + '_ {
    marks.of(first, end).map(|t| t.cpu_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(warmup_ns: Ns) -> Marks {
        let mut w = Workload::new("test", Vec::new());
        w.requests = vec!["request".into()];
        w.marks = vec!["done".into()];
        w.warmup_ns = warmup_ns;
        Marks::new(&w)
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
