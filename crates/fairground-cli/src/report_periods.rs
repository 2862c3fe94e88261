//! `--report`: the periods of groups with a limit, in parts.

use fairground_report::html::{PeriodRow, Periods};
use fairground_sim::watch::quota::{Period, QuotaWait};
use fairground_sim::workload::Workload;
use fairground_trace::Recording;
use fairground_trace::simulated::{Throttle, throttled};
use fairground_trace::walk::{Fact, Walk};

/// Parts of a period.
const PARTS: usize = 100;
/// Most groups of a run.
const GROUPS_MAX: usize = 4;

/// What the periods of a run are drawn from.
pub struct Source<'a> {
    /// Waiting of its groups, with what is usual there.
    pub waits: &'a [QuotaWait],
    /// What ran.
    pub workload: &'a Workload,
    /// What happened.
    pub recording: &'a Recording,
    /// Times in the page count from here, ns.
    pub origin_ns: u64,
    /// The number of a thread's group.
    pub group_of: &'a dyn Fn(u32) -> u32,
    /// Throttled queues: when, CPU, group, whether from then on.
    pub throttles: &'a [Throttle],
}

/// Of the groups that waited for quota in most periods; those of each length are apart, as they are
/// drawn one below the other.
pub fn periods(source: &Source<'_>) -> Vec<Periods> {
    let (workload, recording) = (source.workload, source.recording);
    let mut waits: Vec<&QuotaWait> = source.waits.iter().filter(|w| w.waited() > 0).collect();
    waits.sort_by_key(|w| (std::cmp::Reverse((w.slow(), w.waited())), &w.path));
    waits.truncate(GROUPS_MAX);
    let origin_ns = source.origin_ns;
    let mut all: Vec<Vec<Periods>> = waits.iter().map(|w| by_length(w, origin_ns)).collect();
    let above: Vec<Vec<usize>> = (0..workload.cgroups.len() as u32)
        .map(|group| shown_above(group, workload, &waits))
        .collect();
    Walk::over(&recording.events, recording.cpus, |threads, fact| {
        if let Fact::Ran {
            thread, from, to, ..
        } = fact
        {
            let group = (source.group_of)(threads[thread].tid) as usize;
            for shown in above.get(group).into_iter().flatten() {
                add(&mut all[*shown], (from, to), |row| &mut row.used);
            }
        }
    });
    let end = recording.span().1;
    for (group, from, to) in throttled(source.throttles, end) {
        let path = workload.cgroups.get(group as usize).map(|g| &g.path);
        if let Some(shown) = waits.iter().position(|w| Some(&w.path) == path) {
            add(&mut all[shown], (from, to), |row| &mut row.throttled);
        }
    }
    all.into_iter().flatten().collect()
}

/// Which of the shown groups are at or above a group.
fn shown_above(group: u32, workload: &Workload, shown: &[&QuotaWait]) -> Vec<usize> {
    let parent = |g: &u32| (*g > 0).then(|| workload.cgroups[*g as usize].parent);
    std::iter::successors(Some(group), parent)
        .filter_map(|g| {
            let path = &workload.cgroups[g as usize].path;
            shown.iter().position(|w| w.path == *path)
        })
        .collect()
}

/// The periods of a group without what happened in them, those of the first length first.
fn by_length(wait: &QuotaWait, origin_ns: u64) -> Vec<Periods> {
    let row = |period: &Period| PeriodRow {
        from_ns: period.from_ns,
        to_ns: period.to_ns,
        used: vec![0; PARTS],
        throttled: vec![0; PARTS],
        ran_ns: period.ran_ns,
        waits: period.waits,
        slow: wait.slow_ns().map(|_| wait.is_slow(period)),
    };
    let mut all: Vec<Periods> = Vec::new();
    for period in &wait.periods {
        let known = all.iter().position(|p| p.period_ns == period.length_ns);
        let known = known.unwrap_or_else(|| {
            all.push(Periods {
                group: wait.path.clone(),
                period_ns: period.length_ns,
                origin_ns,
                rows: Vec::new(),
            });
            all.len() - 1
        });
        all[known].rows.push(row(period));
    }
    all
}

/// Adds a span to the parts of the periods that it falls into.
fn add(all: &mut [Periods], (from, to): (u64, u64), row: fn(&mut PeriodRow) -> &mut Vec<u32>) {
    for periods in all {
        let part = periods.period_ns.div_ceil(PARTS as u64).max(1);
        let first = periods.rows.partition_point(|r| r.to_ns <= from);
        for one in periods.rows[first..].iter_mut() {
            let begin = one.from_ns;
            if begin >= to {
                break;
            }
            let to = to.min(one.to_ns);
            for (n, value) in row(one).iter_mut().enumerate() {
                let (a, b) = (begin + n as u64 * part, begin + (n as u64 + 1) * part);
                let common = to.min(b).saturating_sub(from.max(a));
                *value += (common * 1000 / part) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(periods: &[[u64; 3]]) -> QuotaWait {
        let period = |&[from_ns, to_ns, length_ns]: &[u64; 3]| Period {
            from_ns,
            to_ns,
            length_ns,
            ..Default::default()
        };
        QuotaWait {
            periods: periods.iter().map(period).collect(),
            ..QuotaWait::default()
        }
    }

    #[test]
    fn a_span_falls_into_the_parts_of_its_periods() {
        let mut all = by_length(&wait(&[[500, 1500, 1000], [1500, 2500, 1000]]), 0);
        add(&mut all, (1485, 1525), |row| &mut row.used);
        let [first, second] = &all[0].rows[..] else {
            panic!("two periods");
        };
        assert_eq!(
            (first.used[97], first.used[98], first.used[99]),
            (0, 500, 1000)
        );
        assert_eq!(second.used[..4], [1000, 1000, 500, 0]);
        assert!(first.throttled.iter().all(|t| *t == 0));
    }

    #[test]
    fn periods_of_every_length_are_kept_and_end_where_the_next_begins() {
        let written = wait(&[
            [0, 1000, 1000],
            [1000, 1300, 1000],
            [1300, 1500, 200],
            [1500, 2500, 1000],
        ]);
        let mut all = by_length(&written, 0);
        let begins = |p: &Periods| p.rows.iter().map(|r| r.from_ns).collect::<Vec<_>>();
        let found: Vec<_> = all.iter().map(|p| (p.period_ns, begins(p))).collect();
        assert_eq!(found, [(1000, vec![0, 1000, 1500]), (200, vec![1300])]);
        add(&mut all, (900, 1700), |row| &mut row.used);
        let parts = |row: &PeriodRow| row.used.iter().sum::<u32>();
        let used: Vec<_> = all[0].rows.iter().map(parts).collect();
        assert_eq!(used, [10_000, 30_000, 20_000]);
        assert_eq!(parts(&all[1].rows[0]), 100_000);
    }
}
