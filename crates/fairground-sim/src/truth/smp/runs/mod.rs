//! Whole runs of the recording, simulated on the emulated guest.
//!
//! | file | subject |
//! | --- | --- |
//! | `guest` | the guest as a machine; `tcg-guest.toml` has its costs |
//! | `recorded`, `hogs` | `balance/run_*.json`: as written; simulated and compared |
//! | `forks`, `beside` | such a run as a workload; what is recorded beside it |
//! | `counters` | `nohz_kick.csv`; counting over a window |
//! | `group_counts` | `tg_load_avg.csv`, `h_load.csv` |
//! | `pelt_runs` | `pelt/run_*.json`: load as it builds up |
//! | `storm` | `fork/storm.csv`: how far new tasks spread |
//! | `measure` | from tracepoints to numbers |
//!
//! Times are bands of 50 %, as the README of the recording says: all virtual CPUs share one stream
//! of instructions, so kernel code takes as many times longer as CPUs are busy (`shared_stream`).

mod beside;
mod counters;
mod forks;
mod group_counts;
mod guest;
mod hogs;
mod measure;
mod pelt_runs;
mod recorded;
mod storm;

pub(super) use counters::kicks;
pub(super) use group_counts::{h_load, tg_load_avg};
pub(super) use hogs::check as hogs;
pub(super) use pelt_runs::check as pelt_runs;
pub(super) use recorded::at_root;
pub(super) use storm::check as storm;

use crate::truth::tolerance::Tolerance;
use crate::truth::{Row, Sample, Verdict};

/// How near is near enough; one table for all runs, a reason each.
pub struct Band {
    /// Name of the metric; in a row more may follow in brackets.
    pub metric: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Near enough.
    pub tolerance: Tolerance,
    /// Why.
    pub reason: &'static str,
}

/// The table.
pub const BANDS: &[Band] = &[
    Band {
        metric: "cpu_fraction",
        unit: "1",
        tolerance: Tolerance::Absolute(0.02),
        reason: "what groups are promised, over a second and more",
    },
    Band {
        metric: "cpu_use",
        unit: "1",
        tolerance: Tolerance::Absolute(0.02),
        reason: "as cpu_fraction; idle CPUs beside waiting tasks",
    },
    Band {
        metric: "tasks_apart",
        unit: "tasks",
        tolerance: Tolerance::Absolute(0.0),
        reason: "a run that has settled has one outcome, up to the order of CPUs",
    },
    Band {
        metric: "all_busy_ms",
        unit: "ms",
        tolerance: Tolerance::Relative(0.5, 8.0),
        reason: "good to 50 % (README of the recording), and to two ticks",
    },
    Band {
        metric: "migrations",
        unit: "moves",
        tolerance: Tolerance::Relative(0.5, 5.0),
        reason: "as times; a few moves come from the sampler, which is not simulated",
    },
    Band {
        metric: "distinct_cpus",
        unit: "CPUs",
        tolerance: Tolerance::Absolute(2.0),
        reason: "where CPUs were idle before the run is not recorded",
    },
    Band {
        metric: "kicks_per_s",
        unit: "1/s",
        tolerance: Tolerance::Relative(0.5, 5.0),
        reason: "as times",
    },
    Band {
        metric: "redundant_kicks",
        unit: "0 or 1",
        tolerance: Tolerance::Absolute(0.0),
        reason: "the direction: whether any kick finds all flags set",
    },
    Band {
        metric: "h_load_walks",
        unit: "1",
        tolerance: Tolerance::Absolute(0.25),
        reason: "1 if refreshes follow tasks, whatever the number of groups",
    },
    Band {
        metric: "queue_load",
        unit: "1",
        tolerance: Tolerance::Relative(0.1, 85.0),
        reason: "10 %, or a tick of phase, in which a running task gains or loses 85 of 1024",
    },
    Band {
        metric: "queue_util",
        unit: "1",
        tolerance: Tolerance::Relative(0.1, 85.0),
        reason: "as queue_load",
    },
    Band {
        metric: "tg_updates",
        unit: "updates",
        tolerance: Tolerance::Relative(0.25, 0.0),
        reason: "counts that follow the number of turns",
    },
];

/// A row. `what` is a metric of the table, with more in brackets where one case has several.
pub(super) fn row(case: &str, what: &str, recorded: &[f64], simulated: &[f64]) -> Row {
    let metric = what.split('[').next().unwrap_or(what);
    let band = BANDS.iter().find(|band| band.metric == metric);
    debug_assert!(band.is_some(), "{metric} is not in the table");
    let tolerance = band.map_or(Tolerance::Skipped("no tolerance"), |b| b.tolerance);
    let left = Sample::of(recorded);
    let right = Sample::of(simulated);
    let near = tolerance.holds(left.mean, right.mean, 0.0, 0.0);
    let low = recorded.iter().copied().fold(f64::INFINITY, f64::min);
    let high = recorded.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let in_range = (low..=high).contains(&right.mean);
    let spread = left.n > 1 && (in_range || (right.mean - left.mean).abs() <= 3.0 * left.sd);
    Row {
        case: case.to_string(),
        metric: what.to_string(),
        unit: band.map_or("", |b| b.unit),
        recorded: left,
        simulated: Some(right),
        tolerance: tolerance.allowed(left.mean, 0.0, 0.0),
        verdict: match (spread, near) {
            (true, _) => Verdict::Spread,
            (false, true) => Verdict::Tolerance,
            _ => Verdict::Miss,
        },
        reason: None,
    }
}

/// A row of a run on the machine `topology`, with what is assumed of that.
pub(super) fn on(topology: &str, row: Row) -> Row {
    Row {
        reason: row.reason.clone().or_else(|| guest::assumed(topology)),
        ..row
    }
}

/// A row that is not compared.
pub(super) fn skipped(case: &str, what: &str, recorded: &[f64], why: &str) -> Row {
    Row {
        simulated: None,
        verdict: Verdict::Skipped,
        reason: Some(why.to_string()),
        ..row(case, what, recorded, recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_by_spread_then_by_band() {
        let verdict = |recorded: &[f64], ours: f64| {
            row("c", "distinct_cpus[x]", recorded, &[ours, ours]).verdict
        };
        assert_eq!(verdict(&[4.0, 6.0], 5.5), Verdict::Spread);
        assert_eq!(verdict(&[4.0, 4.0], 5.9), Verdict::Tolerance);
        assert_eq!(verdict(&[4.0, 4.0], 6.1), Verdict::Miss);
        assert_eq!(verdict(&[4.0], 4.0), Verdict::Tolerance);
    }

    #[test]
    fn what_is_assumed_of_a_machine_is_told() {
        let of = |topology| on(topology, row("c", "kicks_per_s[x]", &[4.0], &[4.0])).reason;
        assert_eq!(of("2x8"), None);
        assert!(of("1x8").is_some_and(|r| r.contains("assumed") && r.contains("1x8")));
        let skipped = skipped("c", "kicks_per_s[x]", &[4.0], "why");
        assert_eq!(on("1x8", skipped).reason.as_deref(), Some("why"));
    }

    #[test]
    fn every_band_has_a_reason() {
        assert!(BANDS.iter().all(|band| !band.reason.is_empty()));
    }
}
