//! What a run leaves behind for its workload. Times are in nanoseconds.

use super::halves::{self, Halves};
use super::time::{Ns, Until};
use crate::histogram::{histogram, record};
use hdrhistogram::Histogram;

/// Marks 0 and 1 of every workload that has words are the start and the end of its own clock.
pub const MARK_START: u32 = 0;
/// See [`MARK_START`].
pub const MARK_END: u32 = 1;

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
    /// What each half of the measured time had; of little meaning where it has no middle.
    pub halves: Vec<Halves>,
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
    /// Empty tables for so many marks and kinds of request, of a run that is measured from
    /// `warmup_ns` on until `duration`.
    pub fn new(marks: usize, requests: usize, warmup_ns: Ns, duration: Until) -> Self {
        Self {
            marks: vec![MarkStat::default(); marks],
            requests: (0..requests).map(|_| histogram()).collect(),
            exact: vec![Durations::default(); requests],
            open: vec![Vec::new(); requests],
            halves: vec![Halves::default(); requests],
            order: Vec::new(),
            tasks: Vec::new(),
            elapsed_ns: 0,
            user_ns: 0,
            fetch_ns: 0,
            busy_ns: 0,
            capacity_ns: 0,
            warmup_ns,
            middle_ns: halves::middle_ns(warmup_ns, duration),
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
            if let Some(middle) = self.middle_ns {
                self.halves[k as usize].ended(self.warmup_ns, middle, start, end);
            }
        }
        counts
    }

    /// A request of kind `k` that began at `start` is open at the end of the run.
    pub fn left_open(&mut self, k: u32, start: Ns, end: Ns) {
        let ages = &mut self.open[k as usize];
        let age = end.saturating_sub(start);
        ages.insert(ages.partition_point(|a| *a <= age), age);
        if let Some(middle) = self.middle_ns {
            self.halves[k as usize].left_open(self.warmup_ns, middle, start, end);
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
