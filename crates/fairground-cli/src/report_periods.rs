//! `--report`: the periods of groups with a limit, in parts.

use fairground_report::html::{PeriodRow, Periods};
use fairground_sim::outcome::Outcome;
use fairground_sim::watch::quota::{Period, QuotaWait};
use fairground_sim::workload::Workload;
use fairground_trace::Recording;
use fairground_trace::simulated::{Throttle, throttled};
use fairground_trace::walk::{Fact, Walk};

/// Parts of a period.
const PARTS: usize = 100;
/// Most groups of a run.
const GROUPS_MAX: usize = 4;

/// Of the groups that waited for quota in most periods.
pub fn periods(
    outcome: &Outcome,
    workload: &Workload,
    recording: &Recording,
    group_of: &dyn Fn(u32) -> u32,
    throttles: &[Throttle],
) -> Vec<Periods> {
    let watched = outcome.watched.iter().flat_map(|w| &w.quota);
    let mut waits: Vec<&QuotaWait> = watched.filter(|w| w.waited() > 0).collect();
    waits.sort_by_key(|w| (std::cmp::Reverse((w.slow(), w.waited())), &w.path));
    waits.truncate(GROUPS_MAX);
    let mut all: Vec<Periods> = waits.iter().map(|w| empty(w)).collect();
    let above: Vec<Vec<usize>> = (0..workload.cgroups.len() as u32)
        .map(|group| shown_above(group, workload, &waits))
        .collect();
    Walk::over(&recording.events, recording.cpus, |threads, fact| {
        if let Fact::Ran {
            thread, from, to, ..
        } = fact
        {
            let group = group_of(threads[thread].tid) as usize;
            for shown in above.get(group).into_iter().flatten() {
                add(&mut all[*shown], (from, to), |row| &mut row.used);
            }
        }
    });
    let end = recording.span().1;
    for (group, from, to) in throttled(throttles, end) {
        let path = workload.cgroups.get(group as usize).map(|g| &g.path);
        if let Some(shown) = waits.iter().position(|w| Some(&w.path) == path) {
            add(&mut all[shown], (from, to), |row| &mut row.throttled);
        }
    }
    all
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

fn empty(wait: &QuotaWait) -> Periods {
    let row = |period: &Period| PeriodRow {
        from_ns: period.from_ns,
        used: vec![0; PARTS],
        throttled: vec![0; PARTS],
        ran_ns: period.ran_ns,
        waits: period.waits,
        slow: wait.slow_ns().map(|_| wait.is_slow(period)),
    };
    Periods {
        group: wait.path.clone(),
        period_ns: wait.period_ns,
        rows: drawn(wait).map(row).collect(),
    }
}

/// All of one length, as written last: they are drawn one below the other.
fn drawn(wait: &QuotaWait) -> impl Iterator<Item = &Period> {
    let is_so_long = |period: &&Period| period.length_ns == wait.period_ns;
    wait.periods.iter().filter(is_so_long)
}

/// Adds a span to the parts of the periods that it falls into.
fn add(periods: &mut Periods, (from, to): (u64, u64), row: fn(&mut PeriodRow) -> &mut Vec<u32>) {
    let length = periods.period_ns;
    let part = length.div_ceil(PARTS as u64).max(1);
    let first = periods.rows.partition_point(|r| r.from_ns + length <= from);
    for one in periods.rows[first..].iter_mut() {
        let begin = one.from_ns;
        if begin >= to {
            break;
        }
        for (n, value) in row(one).iter_mut().enumerate() {
            let (a, b) = (begin + n as u64 * part, begin + (n as u64 + 1) * part);
            let common = to.min(b).saturating_sub(from.max(a));
            *value += (common * 1000 / part) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_falls_into_the_parts_of_its_periods() {
        let wait = QuotaWait {
            period_ns: 1000,
            periods: [500, 1500]
                .map(|from_ns| Period {
                    from_ns,
                    length_ns: 1000,
                    ..Default::default()
                })
                .to_vec(),
            ..QuotaWait::default()
        };
        let mut periods = empty(&wait);
        add(&mut periods, (1485, 1525), |row| &mut row.used);
        let [first, second] = &periods.rows[..] else {
            panic!("two periods");
        };
        assert_eq!(
            (first.used[97], first.used[98], first.used[99]),
            (0, 500, 1000)
        );
        assert_eq!(second.used[..4], [1000, 1000, 500, 0]);
        assert!(first.throttled.iter().all(|t| *t == 0));
    }
}
