//! What totals are totals of.
//!
//! A run of `hackbench -l 100` ends when its work is done, so its wake-ups and misses are those of
//! that work. A run of `netperf -l 8ms` ends at a time. A patch that makes each transaction cheaper
//! gets more of them done by then, and with them come more wake-ups, switches and line transfers:
//! the totals grow because each transaction is better. So where runs say how much they got done,
//! the verdict on a total is that on its quotient, run by run:
//!
//! ```text
//!   q_i = total_i / done_i       for each seed; compared as any other metric (`stats.rs`)
//! ```
//!
//! The totals stay in the table as what they are.

use super::sides::{Difference, Sides};
use crate::catalogue::is_total;
use crate::number::Number;
use crate::result::{Comparison, Note, OfWork, PerUnit, Run, Variant, Verdict, Work};

/// What the totals of two sides are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A run, which ends when its work is done.
    Run,
    /// A time in which units of this were done.
    Unit(String),
    /// A time, and nothing says what was done.
    Time,
    /// Not the same on both sides.
    Others([String; 2]),
}

impl Run {
    /// The total per unit of work.
    fn per_unit(&self, metric: &str) -> Number {
        let done = self.work.as_ref()?.done.filter(|done| *done > 0.0)?;
        let quotient = self.metric(metric)? / done;
        quotient.is_finite().then_some(quotient)
    }
}

impl Basis {
    pub fn of(base: &Variant, patch: &Variant) -> Self {
        match (Self::of_one(base), Self::of_one(patch)) {
            (base, patch) if base == patch => base,
            (base, patch) => Self::Others([base, patch].map(|basis| match basis {
                Self::Run => "run".into(),
                Self::Unit(unit) => unit,
                Self::Time | Self::Others(_) => "stretch of time".into(),
            })),
        }
    }

    fn of_one(variant: &Variant) -> Self {
        let mut all = variant.runs.iter().map(|run| &run.work);
        match all.next() {
            None | Some(None) => Self::Run,
            Some(Some(work)) => work.unit.clone().map_or(Self::Time, Self::Unit),
        }
    }

    /// Whether a verdict on this metric would be of nothing.
    pub fn withholds(&self, metric: &str) -> bool {
        matches!(self, Self::Others(_)) && is_total(metric)
    }

    /// How the sides differ in `metric` per unit of work, if that is how it is judged.
    pub fn judge(&self, metric: &str, base: &Variant, patch: &Variant) -> Option<Difference> {
        let is_per_unit = matches!(self, Self::Unit(_)) && is_total(metric);
        let quotients = || Sides::of(base, patch, |run| run.per_unit(metric));
        is_per_unit.then(|| quotients().difference(None, false))
    }

    /// The numbers of such a difference.
    pub fn row(&self, found: &Difference) -> Option<PerUnit> {
        let Self::Unit(unit) = self else {
            return None;
        };
        Some(PerUnit {
            unit: unit.clone(),
            base: found.base.map(|s| s.mean),
            patch: found.patch.map(|s| s.mean),
            change_pct: found.change_pct(),
            ci95_pct: found.ci95_pct(),
            diff: found.change.map(|c| c.diff),
            ci95_diff: found.ci95_diff(),
            base_sd: found.base.and_then(|s| s.sd),
            patch_sd: found.patch.and_then(|s| s.sd),
            method: found.method,
            interval: found.interval(),
        })
    }

    /// What to know of the totals among `rows`.
    pub fn note(&self, rows: &[Comparison], base: &Variant, patch: &Variant) -> Option<Note> {
        let totals = || rows.iter().filter(|row| is_total(&row.metric));
        totals().next()?;
        let of = match self {
            Self::Run => return None,
            Self::Others(sides) => OfWork::Others(sides.clone()),
            Self::Unit(unit) => {
                let runs = [base, patch].map(idle_runs);
                if runs == [0, 0] {
                    return None;
                }
                let unit = unit.clone();
                OfWork::Nothing { unit, runs }
            }
            Self::Time => {
                let judged = totals().filter(|row| row.verdict != Verdict::Noise);
                let names: Vec<String> = judged.map(|row| row.metric.clone()).collect();
                if names.is_empty() {
                    return None;
                }
                OfWork::Uncounted(names)
            }
        };
        Some(Note::Work(of))
    }
}

/// How many runs got nothing done of what they count.
pub(crate) fn idle_runs(variant: &Variant) -> usize {
    let works = variant.runs.iter().filter_map(|run| run.work.as_ref());
    let nothing = |work: &&Work| work.unit.is_some() && !work.done.is_some_and(|n| n > 0.0);
    works.filter(nothing).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{Better, Catalogue, MetricInfo};
    use crate::compare::compare_metrics;
    use crate::result::Method;

    /// Runs that did so many transactions, each with so many line transfers and a wake-up.
    fn side(unit: Option<&str>, runs: &[(f64, f64)]) -> Variant {
        let run = |(seed, (done, transfers)): (u64, &(f64, f64))| {
            let mut run = Run::new(seed);
            run.set_metric("line_transfers", done * transfers);
            run.set_metric("wakeups", *done);
            run.set_metric("wakeup_latency_us.p50", *transfers);
            let unit = unit.map(String::from);
            run.work = Some(Work {
                done: unit.is_some().then_some(*done),
                unit,
            });
            run
        };
        Variant {
            runs: (1..).zip(runs).map(run).collect(),
            ..Variant::default()
        }
    }

    fn rows(base: &Variant, patch: &Variant) -> (Vec<Comparison>, String) {
        let catalogue = Catalogue::new([]);
        let of = |name: &str| catalogue.get(name).unwrap().clone();
        let names = ["line_transfers", "wakeups", "wakeup_latency_us.p50"];
        let info: Vec<MetricInfo> = names.map(of).into();
        let mut notes = Vec::new();
        let rows = compare_metrics(&info, base, patch, &mut notes);
        let notes: Vec<String> = notes.into_iter().map(String::from).collect();
        (rows, notes.join("\n"))
    }

    fn words(base: &Variant, patch: &Variant) -> Vec<&'static str> {
        rows(base, patch).0.iter().map(Comparison::word).collect()
    }

    const BASE: [(f64, f64); 3] = [(1000.0, 5.0), (1010.0, 5.1), (990.0, 4.9)];
    /// Twice the transactions with four fifths of the transfers each.
    const PATCH: [(f64, f64); 3] = [(2000.0, 4.0), (2030.0, 4.1), (1970.0, 3.9)];

    #[test]
    fn more_work_in_the_same_time_is_not_worse() {
        let unit = Some("transaction");
        let (base, patch) = (side(unit, &BASE), side(unit, &PATCH));
        let (all, notes) = rows(&base, &patch);
        let [transfers, wakeups, latency] = &all[..] else {
            panic!("three rows")
        };
        assert!(transfers.change_pct.is_some_and(|pct| pct > 55.0), "total");
        let per = transfers.per.as_ref().expect("per transaction");
        assert_eq!(per.label(), "per transaction");
        assert!((per.base.unwrap() - 5.0).abs() < 1e-9, "{per:?}");
        assert!((per.change_pct.unwrap() + 20.0).abs() < 1e-9, "{per:?}");
        assert_eq!(per.method, Method::PairedT);
        assert_eq!(transfers.word(), "better");
        // As many wake-ups per transaction as before, though twice as many of them.
        assert_eq!((wakeups.better, wakeups.word()), (None, "noise"));
        assert!(wakeups.change_pct.is_some_and(|pct| pct > 90.0));
        assert_eq!((latency.per.is_none(), latency.word()), (true, "better"));
        assert_eq!(notes, "");
        assert_eq!(words(&patch, &base)[0], "worse", "and the other way round");
    }

    /// Pairs: the quotients of a seed are held against each other, not means of all.
    #[test]
    fn quotients_are_compared_seed_by_seed() {
        let unit = Some("transaction");
        let base = side(unit, &[(10.0, 1.0), (1000.0, 5.0), (100.0, 9.0)]);
        let patch = side(unit, &[(20.0, 0.9), (2000.0, 4.9), (200.0, 8.9)]);
        assert_eq!(words(&base, &patch)[0], "better", "by 0.1 in each");
    }

    #[test]
    fn totals_of_given_work_are_judged_as_they_are() {
        let given = |runs: &[(f64, f64)]| {
            let mut variant = side(None, runs);
            variant.runs.iter_mut().for_each(|run| run.work = None);
            variant
        };
        let (base, patch) = (given(&BASE), given(&PATCH));
        let (all, notes) = rows(&base, &patch);
        assert!(all.iter().all(|row| row.per.is_none()) && notes.is_empty());
        assert_eq!(words(&base, &patch), ["worse", "differs", "better"]);
    }

    #[test]
    fn where_nothing_counts_the_work_it_is_said() {
        let (base, patch) = (side(None, &BASE), side(None, &PATCH));
        let (all, notes) = rows(&base, &patch);
        assert_eq!(all[0].word(), "worse");
        let said = "`line_transfers`: totals of runs that end at a time";
        assert!(notes.starts_with(said), "{notes}");
        assert_eq!(rows(&base, &base).1, "", "no verdict to warn of");
    }

    #[test]
    fn totals_of_other_units_have_no_verdict() {
        let base = side(Some("transaction"), &BASE);
        let patch = side(Some("send"), &PATCH);
        let (all, notes) = rows(&base, &patch);
        assert_eq!((all[0].word(), all[1].word()), ("-", "-"));
        assert_eq!(all[2].word(), "better", "no total");
        let said = "totals of base are per transaction, those of patch per send: no verdict";
        assert_eq!(notes, said);
        let mut given = patch;
        given.runs.iter_mut().for_each(|run| run.work = None);
        assert!(rows(&base, &given).1.contains("those of patch per run"));
    }

    #[test]
    fn a_run_that_did_nothing_leaves_no_interval() {
        let unit = Some("transaction");
        let mut idle = PATCH;
        idle[2].0 = 0.0;
        let (base, patch) = (side(unit, &BASE), side(unit, &idle));
        let (all, notes) = rows(&base, &patch);
        assert_eq!(all[0].word(), "-");
        assert!(
            notes.contains("in 0 runs of base and in 1 of patch"),
            "{notes}"
        );
        let (all, _) = rows(&base, &side(unit, &[(0.0, 0.0); 3]));
        assert_eq!(all[0].word(), "no value");
    }

    /// What is counted in the window of a run is a total; nothing else is.
    #[test]
    fn totals_are_counts_and_sums() {
        for metric in crate::catalogue::ALWAYS.iter().filter(|m| m.per_work) {
            assert!(["count", "ns"].contains(&metric.unit), "{}", metric.name);
            assert_ne!(metric.better, Some(Better::Higher), "{}", metric.name);
        }
        assert!(is_total("lock_wait_ns") && is_total("idle_waste_long"));
        for other in [
            "busy_pct",
            "sim_time_s",
            "idle_waste_us.max",
            "nr_throttled",
        ] {
            assert!(!is_total(other), "{other}");
        }
    }
}
