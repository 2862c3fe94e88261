//! Waiting for quota, and whether it made anybody slow.
//!
//! A stretch of a task is the time from a wake-up to its next sleep: what it was woken for, done. A
//! part of it may be waiting while a queue above the task is throttled. A stretch that waited for
//! quota made its task slow if it took longer, by a tenth, than what is usual; and so did the
//! periods in which it waited. What waits behind a stretch (a request that no worker is free for)
//! is not seen.
//!
//! Usual is what 99 % of a group's stretches take that touch no period in which a task waited for
//! quota. To subtract the waiting from the others is not enough: work gathers while a task waits,
//! and the task then does it without a sleep, in one long stretch. Where many waited, untouched
//! periods are those with little work, or there are none: usual is too short, or too long after
//! all, and is said to be unreliable.
//!
//! A task that never sleeps has no stretch that ends: a quota takes its throughput, not latency.

use hdrhistogram::Histogram;

use super::kept_off::{self, KeptOff};
pub use super::quota_rows::Period;
use super::quota_rows::{PeriodTimer, Rows, Untouched};
use super::quota_work::{self, Work, Worked};
use super::{Change, Who};
use crate::cache::{NS, Ps};
use crate::histogram::{histogram, record};
use crate::workload::program::Workload;

/// Waiting for quota in the measured time, of one group with a limit and those below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuotaWait {
    /// Path of the group.
    pub path: String,
    /// Length of its periods as written last, ns.
    pub period_ns: u64,
    /// Stretches from a wake-up to the next sleep.
    pub stretches: u64,
    /// Stretches in which the task waited for quota.
    pub delayed: u64,
    /// What 99 % of those take at most that touch no period with waiting for quota, ns. Where these
    /// are fewer than [`UNTOUCHED_MIN`]: of all, without their waiting.
    pub usual_ns: u64,
    /// More than a tenth of the stretches waited for quota in the run that `usual_ns` is from.
    pub unreliable: bool,
    /// What takes longer is slow, if that was said; else what takes a tenth longer than usual.
    pub limit_ns: Option<u64>,
    /// How long stretches that waited for quota did so: median, 99th percentile and longest, ns.
    pub delay_ns: [u64; 3],
    /// The stretch that waited longest.
    pub longest: Option<Delayed>,
    /// The periods that ended in the measured time.
    pub periods: Vec<Period>,
    /// Those of them with waiting that `nr_periods` lacks: a write of `max` cut them off.
    pub uncounted: u64,
    /// What throttling the group's queues made CPUs do.
    pub work: Work,
}

/// From so many stretches that touch no period with waiting a 99th percentile is taken.
pub const UNTOUCHED_MIN: u64 = 100;

/// Slow is what takes longer than usual by more than one part in so many, an assumption.
const SLOWER: u64 = 10;
/// What is usual is unreliable where more than one stretch in so many waited for quota.
const UNRELIABLE: u64 = 10;

/// A stretch that waited for quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delayed {
    /// Who.
    pub who: Who,
    /// Its wake-up, ns since the start of the run.
    pub from_ns: u64,
    /// Until it slept again, ns.
    pub took_ns: u64,
    /// How much of that it waited for quota, ns.
    pub waited_ns: u64,
    /// When the longest of these waits began, ns since the start of the run.
    pub held_from_ns: u64,
}

impl QuotaWait {
    /// What takes longer is slow, ns. `None` where no stretch has ended: what is usual is not
    /// known, and nothing is slow.
    #[must_use]
    pub fn slow_ns(&self) -> Option<u64> {
        let usual = (self.usual_ns > 0).then(|| self.usual_ns + self.usual_ns / SLOWER);
        self.limit_ns.or(usual)
    }

    /// Whether waiting for quota made somebody slow in a period.
    #[must_use]
    pub fn is_slow(&self, period: &Period) -> bool {
        let limit = self.slow_ns();
        limit.is_some_and(|limit| period.slowest_ns > limit)
    }

    /// Periods in which a task waited for quota.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.periods.iter().filter(|p| p.waits > 0).count() as u64
    }

    /// Those of them in which that made somebody slow.
    #[must_use]
    pub fn slow(&self) -> u64 {
        self.periods.iter().filter(|p| self.is_slow(p)).count() as u64
    }
}

/// What is known up to now.
#[derive(Debug)]
pub(super) struct Ledger {
    groups: Vec<Group>,
    /// By number of a group: those of `groups` at and above it.
    above: Vec<Vec<usize>>,
    tasks: Vec<TaskState>,
    /// By CPU: who waits there for quota.
    held_on: Vec<Vec<u32>>,
    /// Whose tasks were kept off by whom.
    kept_off: kept_off::Ledger,
    /// Lists of who waits for quota on a CPU, seen so far.
    lists: u64,
    from: Ps,
}

#[derive(Debug)]
struct Group {
    number: u32,
    rows: Rows,
    /// Stretches without their waiting.
    all: Histogram<u64>,
    untouched: Untouched,
    delay: Histogram<u64>,
    /// Stretches that waited and had not ended when the run did.
    unfinished: u64,
    longest: Option<(u32, Delayed)>,
    work: quota_work::Ledger,
}

#[derive(Clone, Debug, Default)]
struct TaskState {
    group: u32,
    runs_since: Option<Ps>,
    awake_since: Option<Ps>,
    /// It waits for quota: since when, on which CPU, of which of `groups`.
    held: Option<(Ps, u32, usize)>,
    /// What it has waited for quota in this stretch, by group.
    waits: Vec<Waits>,
    /// It has slept before.
    sleeps: bool,
    /// The last of [`Ledger::lists`] that it was in.
    listed: u64,
}

/// Waits of one stretch for the quota of one group.
#[derive(Clone, Debug, Default)]
struct Waits {
    /// Which of [`Ledger::groups`].
    of: usize,
    /// All together.
    delay: Ps,
    /// The longest: when it began, and how long it was.
    longest: (Ps, Ps),
    /// The group's periods in which it waited, in order.
    rows: Vec<usize>,
}

impl Waits {
    fn add(&mut self, since: Ps, at: Ps, (first, last): (usize, usize)) {
        self.delay += at - since;
        if at - since > self.longest.1 {
            self.longest = (since, at - since);
        }
        let known = self.rows.last().map_or(0, |row| row + 1);
        self.rows.extend(first.max(known)..=last);
    }
}

impl Ledger {
    /// `timer` answers how the period timer of a group stands at the start of the run.
    pub fn new(workload: &Workload, from: Ps, timer: &dyn Fn(u32) -> PeriodTimer) -> Self {
        // With those that only the other side limits: this one shows what is usual without a limit.
        let limited = workload.counted_groups();
        let group = |number: &u32| Group {
            number: *number,
            rows: Rows::new(timer(*number)),
            all: histogram(),
            untouched: Untouched::new(),
            delay: histogram(),
            unfinished: 0,
            longest: None,
            work: quota_work::Ledger::new(),
        };
        let above = (0..workload.cgroups.len() as u32).map(|g| {
            let parent = |g: &u32| (*g > 0).then(|| workload.cgroups[*g as usize].parent);
            std::iter::successors(Some(g), parent)
                .filter_map(|g| limited.binary_search(&g).ok())
                .collect()
        });
        Self {
            above: above.collect(),
            groups: limited.iter().map(group).collect(),
            tasks: Vec::new(),
            held_on: Vec::new(),
            kept_off: kept_off::Ledger::new(from),
            lists: 0,
            from,
        }
    }

    /// `cpu.max` of `group` was written.
    pub fn write(&mut self, at: Ps, group: u32, timer: PeriodTimer) {
        if let Some(group) = self.place_of(group) {
            self.groups[group].rows.write(at, timer);
        }
    }

    /// Throttling has made a CPU do something.
    pub fn worked(&mut self, done: &Worked) {
        let from = self.from;
        let Some(group) = self.place_of(done.work.tg.0) else {
            return;
        };
        let group = &mut self.groups[group];
        let (row, _) = group.rows.add(done.since, done.since, |_, _| {});
        group.rows.all()[row]
            .work
            .add(done.work, (done.until - done.since) / NS);
        if done.since >= from {
            group.work.see(done);
        }
    }

    pub fn see(&mut self, at: Ps, change: &Change) {
        if self.groups.is_empty() {
            return;
        }
        match change {
            Change::Wake {
                task,
                group,
                cpu,
                waiting,
            } => {
                let state = self.task(*task);
                state.group = *group;
                if state.awake_since.is_none() {
                    state.awake_since = Some(at);
                }
                if state.runs_since.is_none() {
                    self.hold(at, *task, *cpu, waiting.held);
                }
            }
            Change::Switch { cpu, prev, next } => {
                if let Some((task, waiting)) = prev {
                    self.stop(at, *task);
                    match waiting {
                        Some(waiting) => self.hold(at, *task, *cpu, waiting.held),
                        None => self.sleep(at, *task),
                    }
                }
                if let Some((task, group)) = next {
                    self.release(at, *task);
                    let state = self.task(*task);
                    (state.group, state.runs_since) = (*group, Some(at));
                }
            }
            Change::Move { task, cpu, waiting } => {
                // Who ran has been put off its CPU by the stopper.
                self.stop(at, *task);
                if self.task(*task).awake_since.is_some() {
                    self.hold(at, *task, *cpu, waiting.held);
                }
            }
            Change::Hold { cpu, held } => self.hold_all(at, *cpu, held),
        }
    }

    /// What came of it up to `end`; `workload` has the tree of groups.
    pub fn end(
        mut self,
        end: Ps,
        workload: &Workload,
        timer: &dyn Fn(u32) -> PeriodTimer,
        path: &dyn Fn(u32) -> String,
        names: &dyn Fn(u32) -> Who,
    ) -> (Vec<QuotaWait>, Vec<KeptOff>) {
        for task in 0..self.tasks.len() as u32 {
            self.stop(end, task);
            self.release(end, task);
            // Who sleeps now and then is slow already, if it is; who computes is not.
            let state = &self.tasks[task as usize];
            if let Some(since) = state.awake_since.filter(|_| state.sleeps) {
                for waits in &state.waits {
                    self.groups[waits.of].unfinished += 1;
                }
                self.mark(task, since, end - since);
            }
        }
        let measured = (self.from, end);
        let kept_off = self.kept_off.end(workload, path);
        let groups = self.groups.into_iter();
        let end = |g: Group| {
            let (timer, path) = (timer(g.number), path(g.number));
            g.end(measured, timer, path, names)
        };
        (groups.map(end).collect(), kept_off)
    }

    /// Which of `groups`, which are in order, has this number.
    fn place_of(&self, number: u32) -> Option<usize> {
        self.groups.binary_search_by_key(&number, |g| g.number).ok()
    }

    fn task(&mut self, task: u32) -> &mut TaskState {
        let task = task as usize;
        if self.tasks.len() <= task {
            self.tasks.resize(task + 1, TaskState::default());
        }
        &mut self.tasks[task]
    }

    /// Of the tasks that wait on `cpu` these wait for quota from now on.
    fn hold_all(&mut self, at: Ps, cpu: u32, held: &[(u32, u32)]) {
        self.lists += 1;
        let list = self.lists;
        for (task, _) in held {
            self.task(*task).listed = list;
        }
        let before = self.held_on.get(cpu as usize).cloned().unwrap_or_default();
        for task in before {
            if self.task(task).listed != list {
                self.release(at, task);
            }
        }
        for (task, by) in held {
            let state = self.task(*task);
            if state.awake_since.is_some() && state.runs_since.is_none() {
                self.hold(at, *task, cpu, Some(*by));
            }
        }
    }

    /// A task that waits on `cpu` does so for the quota of `by` from now on, or for none.
    fn hold(&mut self, at: Ps, task: u32, cpu: u32, by: Option<u32>) {
        let by = by.and_then(|by| self.place_of(by));
        if let (Some((_, on, of)), Some(by)) = (self.task(task).held, by)
            && (on, of) == (cpu, by)
        {
            return;
        }
        self.release(at, task);
        if let Some(by) = by {
            self.task(task).held = Some((at, cpu, by));
            let group = &mut self.groups[by];
            group.untouched.hold(group.rows.row(at));
            if self.held_on.len() <= cpu as usize {
                self.held_on.resize(cpu as usize + 1, Vec::new());
            }
            self.held_on[cpu as usize].push(task);
        }
    }

    /// A task does not wait for quota any more.
    fn release(&mut self, at: Ps, task: u32) {
        let Some((since, cpu, by)) = self.task(task).held.take() else {
            return;
        };
        self.held_on[cpu as usize].retain(|t| *t != task);
        let of = self.tasks[task as usize].group;
        let group = &mut self.groups[by];
        self.kept_off.add(of, group.number, since, at);
        group.untouched.release(group.rows.row(at));
        let (first, last) = group.rows.add(since, at, |row, ns| row.waited_ns += ns);
        let last = last.max(first + 1) - 1;
        for row in &mut group.rows.all()[first..=last] {
            row.waits += 1;
        }
        let waits = &mut self.tasks[task as usize].waits;
        match waits.iter_mut().find(|w| w.of == by) {
            Some(known) => known.add(since, at, (first, last)),
            None => {
                let mut new = Waits {
                    of: by,
                    ..Waits::default()
                };
                new.add(since, at, (first, last));
                waits.push(new);
            }
        }
    }

    /// A task does not run any more.
    fn stop(&mut self, at: Ps, task: u32) {
        let state = self.task(task);
        let (group, Some(since)) = (state.group, state.runs_since.take()) else {
            return;
        };
        let above = self.above.get(group as usize);
        for group in above.into_iter().flatten() {
            let rows = &mut self.groups[*group].rows;
            rows.add(since, at, |row, ns| row.ran_ns += ns);
        }
    }

    /// A task sleeps: a stretch is over.
    fn sleep(&mut self, at: Ps, task: u32) {
        self.release(at, task);
        let state = self.task(task);
        state.sleeps = true;
        let Some(since) = state.awake_since.take() else {
            return;
        };
        let delay: Ps = state.waits.iter().map(|w| w.delay).sum();
        let group = state.group as usize;
        if at >= self.from {
            let took = at - since;
            for group in self.above.get(group).into_iter().flatten() {
                let group = &mut self.groups[*group];
                record(&mut group.all, took.saturating_sub(delay) / NS);
                if delay == 0 {
                    let rows = (group.rows.row(since), group.rows.row(at));
                    group.untouched.add(rows, took / NS);
                }
            }
            self.mark(task, since, took);
        }
        self.task(task).waits.clear();
    }

    /// A stretch took so long; the periods in which it waited for quota remember that.
    fn mark(&mut self, task: u32, since: Ps, took: Ps) {
        let waits = &self.tasks[task as usize].waits;
        for waits in waits.iter().filter(|w| w.delay >= NS) {
            let group = &mut self.groups[waits.of];
            for row in &waits.rows {
                let row = &mut group.rows.all()[*row];
                if row.waits > 0 {
                    row.slowest_ns = row.slowest_ns.max(took / NS);
                }
            }
            record(&mut group.delay, waits.delay / NS);
            let longest = group.longest.as_ref().map_or(0, |(_, l)| l.waited_ns);
            if waits.delay / NS > longest {
                let found = Delayed {
                    who: Who::default(),
                    from_ns: since / NS,
                    took_ns: took / NS,
                    waited_ns: waits.delay / NS,
                    held_from_ns: waits.longest.0 / NS,
                };
                group.longest = Some((task, found));
            }
        }
    }
}

impl Group {
    fn end(
        self,
        (from, end): (Ps, Ps),
        timer: PeriodTimer,
        path: String,
        names: &dyn Fn(u32) -> Who,
    ) -> QuotaWait {
        let (rows, uncounted) = self.rows.end(from, end, timer);
        let longest_ns = self.longest.as_ref().map_or(0, |(_, l)| l.waited_ns);
        // The histogram knows values to three digits only, and rounds up.
        let quantile = |q| self.delay.value_at_quantile(q).min(longest_ns);
        let untouched = self.untouched.end();
        let usual = match untouched.len() {
            UNTOUCHED_MIN.. => &untouched,
            _ => &self.all,
        };
        let stretches = self.all.len() + self.unfinished;
        QuotaWait {
            work: self.work.end(rows.iter().map(|row| &row.work)),
            path,
            period_ns: timer.length / NS,
            stretches,
            delayed: self.delay.len(),
            usual_ns: usual.value_at_quantile(0.99),
            unreliable: self.delay.len() * UNRELIABLE > stretches,
            limit_ns: None,
            delay_ns: [quantile(0.5), quantile(0.99), longest_ns],
            longest: self.longest.map(|(task, longest)| Delayed {
                who: names(task),
                ..longest
            }),
            periods: rows,
            uncounted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{May, Waiting};
    use crate::workload::program::Cgroup;

    const MS: Ps = 1_000_000 * NS;
    /// A group with a limit, and one with a limit in it.
    const POD: u32 = 1;
    const APP: u32 = 2;

    fn workload() -> Workload {
        let mut w = Workload::new("test", Vec::new());
        w.cgroups.push(Cgroup::new("/pod", 0));
        w.cgroups.push(Cgroup::new("/pod/app", POD));
        for group in &mut w.cgroups[1..] {
            (group.quota_ns, group.period_ns) = (Some(5_000_000), 10_000_000);
        }
        w
    }

    fn ledger() -> Ledger {
        Ledger::new(&workload(), 0, &|_| timer(10 * MS))
    }

    fn timer(expires: Ps) -> PeriodTimer {
        PeriodTimer {
            length: 10 * MS,
            expires,
            active: true,
            limited: true,
        }
    }

    fn wake(l: &mut Ledger, at: Ps, held: Option<u32>) {
        let waiting = Waiting {
            may: May::Anywhere,
            held,
        };
        let (task, group, cpu) = (0, APP, 0);
        let change = Change::Wake {
            task,
            group,
            cpu,
            waiting,
        };
        l.see(at, &change);
    }

    fn runs(l: &mut Ledger, at: Ps) {
        let (cpu, prev, next) = (0, None, Some((0, APP)));
        l.see(at, &Change::Switch { cpu, prev, next });
    }

    /// It has to wait for the quota of a group, or goes to sleep.
    fn stops(l: &mut Ledger, at: Ps, held: Option<u32>) {
        let waiting = held.map(|_| Waiting {
            may: May::Anywhere,
            held,
        });
        let (cpu, prev, next) = (0, Some((0, waiting)), None);
        l.see(at, &Change::Switch { cpu, prev, next });
    }

    fn end(l: Ledger, at: Ps) -> [QuotaWait; 2] {
        let path = |g: u32| g.to_string();
        let (found, _) = l.end(at, &workload(), &|_| timer(at + 1), &path, &|_| {
            Who::default()
        });
        found.try_into().expect("two groups")
    }

    #[test]
    fn only_periods_in_which_somebody_waited_are_slow() {
        let mut l = ledger();
        // Three short stretches, so that the long one is not usual.
        for at in [0, 2, 4] {
            wake(&mut l, at * MS, None);
            runs(&mut l, at * MS);
            stops(&mut l, (at + 1) * MS, None);
        }
        // From 6 to 90 ms, of which 1 ms waiting in the first period and 4 ms in the last.
        wake(&mut l, 6 * MS, Some(APP));
        runs(&mut l, 7 * MS);
        stops(&mut l, 85 * MS, Some(APP));
        runs(&mut l, 89 * MS);
        stops(&mut l, 90 * MS, None);
        let [pod, app] = end(l, 100 * MS);
        assert_eq!((pod.waited(), pod.slow(), pod.delayed), (0, 0, 0));
        assert_eq!((app.stretches, app.delayed, app.periods.len()), (4, 1, 9));
        let by = |limit_ns| QuotaWait {
            limit_ns: Some(limit_ns),
            ..app.clone()
        };
        assert_eq!((app.waited(), by(1_000_000).slow()), (2, 2));
        let longest = app.longest.as_ref().expect("one");
        assert_eq!(longest.waited_ns, 5_000_000);
        assert_eq!(longest.from_ns, 6_000_000);
        assert_eq!(longest.held_from_ns, 85_000_000, "its longest wait");
        assert_eq!(app.delay_ns[2], 5_000_000, "not rounded");
    }

    #[test]
    fn each_group_has_its_own_part_of_a_stretch() {
        let mut l = ledger();
        wake(&mut l, 0, Some(POD));
        runs(&mut l, 3 * MS);
        stops(&mut l, 4 * MS, Some(APP));
        runs(&mut l, 24 * MS);
        stops(&mut l, 25 * MS, None);
        let [pod, app] = end(l, 30 * MS);
        assert_eq!(
            (pod.delayed, pod.delay_ns[2], pod.waited()),
            (1, 3_000_000, 1)
        );
        assert_eq!(
            (app.delayed, app.delay_ns[2], app.waited()),
            (1, 20_000_000, 2)
        );
        assert!(pod.usual_ns.abs_diff(2_000_000) < 2000, "without either");
    }

    #[test]
    fn where_no_stretch_has_ended_nothing_is_slow() {
        let mut l = ledger();
        l.from = 2 * MS;
        wake(&mut l, 0, None);
        runs(&mut l, 0);
        stops(&mut l, MS, None);
        wake(&mut l, 3 * MS, None);
        runs(&mut l, 3 * MS);
        stops(&mut l, 5 * MS, Some(APP));
        let [_, app] = end(l, 40 * MS);
        assert_eq!((app.stretches, app.delayed), (1, 1));
        assert_eq!((app.slow_ns(), app.slow()), (None, 0));
        assert!(app.waited() > 0);
    }
}
