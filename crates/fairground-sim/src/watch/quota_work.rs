//! What throttling made CPUs do for a group: queues, groups and tasks by period, and for how long
//! interrupts were off.
//!
//! A walk over the groups below a queue is done where the queue is, under its lock: where it is
//! throttled, and since 6.3 where it is unthrottled, which is an interrupt if another CPU's timer
//! has handed out the quota. That timer's handler is the other long stretch without interrupts.

use fairground::event::{QuotaStep, QuotaWork};
use hdrhistogram::Histogram;

use crate::cache::{NS, Ps};
use crate::histogram::{histogram, record};

/// What a quota made a CPU do, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worked {
    /// From then on.
    pub since: Ps,
    /// Until then.
    pub until: Ps,
    /// Where.
    pub cpu: u32,
    /// What.
    pub work: QuotaWork,
}

impl Worked {
    pub fn new((since, until): (Ps, Ps), cpu: u32, work: QuotaWork) -> Self {
        Self {
            since,
            until,
            cpu,
            work,
        }
    }
}

/// What was done in one period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Queues that were throttled, each that of one CPU.
    pub throttled: u32,
    /// Queues that were unthrottled.
    pub unthrottled: u32,
    /// Groups visited by both.
    pub walked: u32,
    /// Tasks that were taken off.
    pub put_off: u32,
    /// Tasks that were put back.
    pub put_back: u32,
    /// How long the period timer's handler took to hand out the quota, ns.
    pub timer_ns: u64,
}

/// The measured time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Queues that were throttled, each that of one CPU.
    pub throttled: u64,
    /// Queues that were unthrottled.
    pub unthrottled: u64,
    /// Groups visited by both.
    pub walked: u64,
    /// Tasks that were taken off.
    pub put_off: u64,
    /// Tasks that were put back.
    pub put_back: u64,
    /// Groups visited in a period in which any were: median, 99th percentile and most.
    pub walked_in: [u64; 3],
    /// Tasks taken off and put back in such a period.
    pub moved_in: [u64; 3],
    /// The period timer's handler, where it handed out quota.
    pub timer: IrqsOff,
    /// Throttling one queue.
    pub throttle: IrqsOff,
    /// Unthrottling one queue.
    pub unthrottle: IrqsOff,
}

/// Stretches without interrupts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IrqsOff {
    /// How many.
    pub times: u64,
    /// Median, 99th percentile and longest, ns.
    pub ns: [u64; 3],
    /// On which CPU the longest was, and when it began, ns since the start of the run.
    pub longest: Option<(u32, u64)>,
}

/// What is known up to now.
#[derive(Debug)]
pub(super) struct Ledger {
    work: Work,
    timer: Stretches,
    throttle: Stretches,
    unthrottle: Stretches,
}

#[derive(Debug)]
struct Stretches {
    ns: Histogram<u64>,
    longest: (Ps, Option<(u32, u64)>),
}

impl Counts {
    /// Adds what took `ns`.
    pub(super) fn add(&mut self, work: QuotaWork, ns: u64) {
        self.walked += work.groups;
        match work.step {
            QuotaStep::Throttle => self.throttled += 1,
            QuotaStep::Unthrottle => self.unthrottled += 1,
            QuotaStep::Distribute => self.timer_ns = self.timer_ns.max(ns),
            QuotaStep::PutOff => {}
        }
        match work.step {
            QuotaStep::Unthrottle => self.put_back += work.tasks,
            _ => self.put_off += work.tasks,
        }
    }
}

impl Ledger {
    pub fn new() -> Self {
        Self {
            work: Work::default(),
            timer: Stretches::new(),
            throttle: Stretches::new(),
            unthrottle: Stretches::new(),
        }
    }

    /// Counts what was done in the measured time.
    pub fn see(&mut self, done: &Worked) {
        let (sum, work) = (&mut self.work, done.work);
        sum.walked += u64::from(work.groups);
        let (count, tasks) = match work.step {
            QuotaStep::Throttle => (Some(&mut sum.throttled), &mut sum.put_off),
            QuotaStep::Unthrottle => (Some(&mut sum.unthrottled), &mut sum.put_back),
            QuotaStep::PutOff | QuotaStep::Distribute => (None, &mut sum.put_off),
        };
        *tasks += u64::from(work.tasks);
        if let Some(count) = count {
            *count += 1;
        }
        match work.step {
            QuotaStep::Throttle => self.throttle.add(done),
            QuotaStep::Unthrottle => self.unthrottle.add(done),
            QuotaStep::Distribute => self.timer.add(done),
            QuotaStep::PutOff => {}
        }
    }

    /// What came of it; `rows` are the periods of the measured time.
    pub fn end<'a>(self, rows: impl Iterator<Item = &'a Counts>) -> Work {
        let (mut walked, mut moved) = (Vec::new(), Vec::new());
        for row in rows.filter(|row| row.throttled + row.unthrottled > 0) {
            walked.push(u64::from(row.walked));
            moved.push(u64::from(row.put_off + row.put_back));
        }
        Work {
            walked_in: quantiles(walked),
            moved_in: quantiles(moved),
            timer: self.timer.end(),
            throttle: self.throttle.end(),
            unthrottle: self.unthrottle.end(),
            ..self.work
        }
    }
}

impl Stretches {
    fn new() -> Self {
        Self {
            ns: histogram(),
            longest: (0, None),
        }
    }

    fn add(&mut self, done: &Worked) {
        let took = done.until - done.since;
        record(&mut self.ns, took / NS);
        if self.longest.1.is_none() || took > self.longest.0 {
            self.longest = (took, Some((done.cpu, done.since / NS)));
        }
    }

    fn end(self) -> IrqsOff {
        let (took, longest) = self.longest;
        let quantile = |q| self.ns.value_at_quantile(q).min(took / NS);
        IrqsOff {
            times: self.ns.len(),
            ns: [quantile(0.5), quantile(0.99), took / NS],
            longest,
        }
    }
}

/// The median, the 99th percentile and the greatest of some numbers; zero of none.
fn quantiles(mut all: Vec<u64>) -> [u64; 3] {
    all.sort_unstable();
    let at = |permille: usize| {
        let rank = (all.len() * permille).div_ceil(1000);
        all.get(rank.max(1) - 1).copied().unwrap_or(0)
    };
    [at(500), at(990), at(1000)]
}
