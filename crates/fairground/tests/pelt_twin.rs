//! Load tracking and group shares against a recorded kernel (every line, exactly), and load
//! tracking against exact arithmetic (within a stated error).

use std::{collections::BTreeMap, fs, path::Path};

use fairground::math::pelt::{
    LOAD_AVG_MAX, SchedAvg, get_pelt_divider, update_load_avg_blocked_se, update_load_avg_cfs_rq,
    update_load_avg_se,
};
use fairground::math::shares::calc_group_shares;
use proptest::prelude::*;

/// Calls `check` with the name and the columns of each line of the files that start so.
fn each_record(start: &str, mut check: impl FnMut(&str, &[&str])) -> usize {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/pelt");
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let mut records = 0;
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with(start) {
            continue;
        }
        for (number, line) in fs::read_to_string(&file)
            .unwrap()
            .lines()
            .enumerate()
            .skip(1)
        {
            let place = format!("{name}:{}", number + 1);
            check(&place, &line.split(',').collect::<Vec<_>>());
            records += 1;
        }
    }
    records
}

fn number(column: &str) -> u64 {
    column.parse().unwrap()
}

/// Sums of a state from five columns: last update, period part, load, runnable, util.
fn sums(columns: &[&str]) -> SchedAvg {
    SchedAvg {
        last_update_time: number(columns[0]),
        period_contrib: number(columns[1]) as u32,
        load_sum: number(columns[2]),
        runnable_sum: number(columns[3]),
        util_sum: number(columns[4]) as u32,
        ..SchedAvg::default()
    }
}

/// Averages from three columns: load, runnable, util.
fn averages(sa: &mut SchedAvg, columns: &[&str]) {
    sa.load_avg = number(columns[0]);
    sa.runnable_avg = number(columns[1]);
    sa.util_avg = number(columns[2]);
}

/// The averages before a call are not recorded. Where no period ended, they must stay; this is
/// checked where the line before on the same entity, at the same weight, left the very sums.
#[test]
fn every_recorded_update() {
    let mut left: BTreeMap<String, SchedAvg> = BTreeMap::new();
    let (mut new_averages, mut same_averages) = (0, 0);
    let records = each_record("updates_", |place, c| {
        let (now, load, runnable) = (number(c[5]), number(c[6]), number(c[7]));
        let (running, weight) = (number(c[8]) != 0, number(c[9]));
        let file = place.split(':').next().unwrap();
        let entity = [file, c[2], c[3], c[4], c[9]].join(",");
        let before = sums(&c[10..15]);
        let known = left.get(&entity).copied().filter(|sa| {
            let (load_avg, runnable_avg, util_avg) = (sa.load_avg, sa.runnable_avg, sa.util_avg);
            *sa == SchedAvg {
                load_avg,
                runnable_avg,
                util_avg,
                ..before
            }
        });
        let mut sa = known.unwrap_or(before);
        let decayed = match c[1] {
            "se" => update_load_avg_se(now, &mut sa, load != 0, runnable, running, weight),
            "blocked_se" => update_load_avg_blocked_se(now, &mut sa, weight),
            "cfs_rq" => update_load_avg_cfs_rq(now, &mut sa, load, runnable, running),
            other => panic!("{place}: {other}"),
        };
        let mut recorded = sums(&c[15..20]);
        averages(&mut recorded, &c[20..23]);
        left.insert(entity, recorded);
        new_averages += u32::from(decayed);
        same_averages += u32::from(!decayed && known.is_some());
        if !decayed && known.is_none() {
            (recorded.load_avg, recorded.runnable_avg, recorded.util_avg) = (0, 0, 0);
        }
        assert_eq!(sa, recorded, "{place}: {c:?}");
    });
    assert_eq!((records, new_averages, same_averages), (4492, 3537, 622));
}

#[test]
fn every_recorded_group_weight() {
    let records = each_record("group_shares_", |place, c| {
        let n: Vec<u64> = c[3..].iter().map(|column| number(column)).collect();
        let shares = calc_group_shares(n[0], n[1], n[2], n[4], n[3]);
        assert_eq!(shares, n[7], "{place}: {c:?}");
    });
    assert_eq!(records, 1491);
}

/// The definition, in real numbers: activity of `n` periods ago counts `y^n`.
#[derive(Default)]
struct Exact {
    sum: f64,
    part: u64,
}

impl Exact {
    fn y() -> f64 {
        0.5f64.powf(1.0 / 32.0)
    }

    /// Unit by unit of 1024 ns: slow and obvious.
    fn run(&mut self, units: u64, active: bool) {
        for _ in 0..units {
            self.sum += f64::from(u8::from(active));
            self.part += 1;
            if self.part == 1024 {
                self.part = 0;
                self.sum *= Self::y();
            }
        }
    }

    /// Sum divided by what an endlessly active one would have.
    fn average(&self) -> f64 {
        let past = 1024.0 * Self::y() / (1.0 - Self::y());
        1024.0 * self.sum / (past + self.part as f64)
    }
}

// Error of `util_avg` against the definition. Each period costs `util_sum` (which counts 1024
// per unit) up to 2 units by rounding down, remembered 1 / (1 - y) = 47 periods: below 0.01 % in
// all. What counts is that whole periods are summed as LOAD_AVG_MAX * (1 - y^p) - 1024, with the
// maximum itself 0.1 % below the exact one (47742 : 47788), and that each such call rounds down
// by up to 3 whole units (3 / 46718 of 1024 = 0.07 after division), again for 47 periods at most:
// 0.07 * 47 = 3.1. Add 1 for the final division and 1 for the maximum: 5.1.
// (2000 random runs stayed below 2.)
const UTIL_ERROR: f64 = 5.1;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn stays_near_the_definition(
        steps in prop::collection::vec((1u64..20_000, any::<bool>()), 1..60)
    ) {
        let (mut sa, mut exact, mut now) = (SchedAvg::default(), Exact::default(), 0);
        for (units, active) in steps {
            now += units << 10;
            let periods = update_load_avg_se(now, &mut sa, active, 1, active, 1024);
            exact.run(units, active);
            prop_assert_eq!(u64::from(sa.period_contrib), exact.part);
            if periods {
                let error = sa.util_avg as f64 - exact.average();
                prop_assert!(error.abs() <= UTIL_ERROR, "{} at {:?}", error, sa);
                prop_assert_eq!(sa.load_avg, sa.load_sum * 1024 / get_pelt_divider(&sa));
            }
            prop_assert!(sa.load_sum <= LOAD_AVG_MAX);
        }
    }
}
