//! Notes as sentences.

use std::collections::BTreeMap;
use std::fmt;

use super::few_periods::PERIODS_MIN;
use crate::number::number;
use crate::percentile::needs;
use crate::result::{Note, OfMetric, OfSaved, OfSeeds, OfValues, OfWaiting, OfWork, SameCounts};

/// What the sides of a comparison are called.
const SIDES: [&str; 2] = ["base", "patch"];

/// Most groups that a note on few periods names.
const GROUPS_NAMED: usize = 3;

impl Note {
    /// The same of a comparison whose sides have other names than base and patch.
    pub(crate) fn of_sides(&self, sides: [&str; 2]) -> String {
        match self {
            Self::Seeds(of) => of.words(sides),
            Self::Work(of) => of.words(sides),
            Self::Metric(of) => of.words(sides),
            other => other.to_string(),
        }
    }

    /// The sentences of notes.
    pub(crate) fn sentences(notes: &[Self]) -> Vec<String> {
        notes.iter().map(Self::to_string).collect()
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said(sentence) => f.write_str(sentence),
            Self::Of { whose, note } => write!(f, "{whose}: {note}"),
            Self::Saved(of) => of.fmt(f),
            Self::Seeds(of) => f.write_str(&of.words(SIDES)),
            Self::Work(of) => f.write_str(&of.words(SIDES)),
            Self::Metric(of) => f.write_str(&of.words(SIDES)),
            Self::Values(of) => of.fmt(f),
            Self::Waiting(of) => of.fmt(f),
        }
    }
}

impl fmt::Display for OfSaved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differ { what, base, patch } => {
                write!(
                    f,
                    "the results differ in {what}: base {base}, patch {patch}"
                )
            }
            Self::LeftOut {
                file,
                taken,
                other,
                sets,
            } => write!(
                f,
                "the {file} result is a comparison: its {taken} is taken, its {other} ({}) is \
                 left out",
                sets.join(", ")
            ),
        }
    }
}

impl OfSeeds {
    fn words(&self, [base, patch]: [&str; 2]) -> String {
        match self {
            Self::One(side) => {
                let who = match side {
                    None => "one run per variant has".to_string(),
                    Some(side) => format!("{} has one run, which has", [base, patch][*side]),
                };
                format!("{who} no spread, so there is no interval and no verdict; give more seeds")
            }
            // The t distribution with one degree of freedom.
            Self::Two => "two runs tell almost nothing about a difference: an interval is 12.7 \
                          standard errors to each side, and noise does not mean that there is \
                          none; with 5 runs it is 2.8, so take 5 or more"
                .into(),
            Self::Others => {
                format!("{base} and {patch} ran with different seeds: independent samples, Welch")
            }
            Self::Repeated { whose, seed } => match whose {
                Some(whose) => format!("{whose} ran seed {seed} more than once; it counts once"),
                None => format!("seed {seed} was run more than once; it counts once"),
            },
            Self::SameCounts(SameCounts::Alike) => {
                format!("{base} and {patch} make the same decisions, so all differences are 0")
            }
            Self::SameCounts(SameCounts::InVain) => format!(
                "{base} and {patch} differ only in decisions that have no part in either, so all \
                 differences are 0"
            ),
            Self::SameCounts(SameCounts::NotReached) => format!(
                "{base} and {patch} are the same in every count of every run: this workload did \
                 not reach what differs between them"
            ),
        }
    }
}

impl OfWork {
    fn words(&self, [base, patch]: [&str; 2]) -> String {
        match self {
            Self::Uncounted(totals) => format!(
                "{}: totals of runs that end at a time, and nothing counts all that was done by \
                 then. Who does more in it has more of them, so see what else changed",
                quoted(totals)
            ),
            Self::Others([of_base, of_patch]) => format!(
                "totals of {base} are per {of_base}, those of {patch} per {of_patch}: no verdict"
            ),
            Self::Nothing {
                unit,
                runs: [of_base, of_patch],
            } => format!(
                "nothing was done ({unit}) in {of_base} runs of {base} and in {of_patch} of \
                 {patch}: totals per {unit} are of the seeds that have some on both sides, without \
                 an interval"
            ),
        }
    }
}

impl OfMetric {
    fn words(&self, [base, patch]: [&str; 2]) -> String {
        match self {
            Self::OtherGroups { metric, groups } => format!(
                "`{metric}` is of all groups with a limit, but one side alone limits {}: no \
                 verdict",
                groups.join(", ")
            ),
            Self::OtherPeriods { metrics, groups } => format!(
                "{} in {patch} than in {base}: neither better nor worse",
                other_periods_words(metrics, groups)
            ),
            Self::OwnYardsticks { metric, groups } => format!(
                "`{metric}`: {base} and {patch} were made apart, and each took its own usual time \
                 for what is slow in {}: no verdict; compare them in one command, or give both \
                 the same --slow",
                groups.join(", ")
            ),
            Self::Coincidence(metric) => format!(
                "`{metric}` differs by the same in both seeds, which is chance where it varies \
                 from seed to seed: no interval"
            ),
            Self::Dropped {
                metric,
                have: [in_base, in_patch],
                runs,
                both,
            } => format!(
                "`{metric}` has a value in {in_base} of {runs} runs of {base} and in {in_patch} of \
                 {patch}: means and change are of the {both} seeds that have both, without an \
                 interval, for it is no chance who has none"
            ),
            Self::FromZero {
                metric,
                unit,
                diff,
                ci95_diff,
            } => {
                let interval = match ci95_diff {
                    [lo @ Some(_), hi @ Some(_)] => {
                        format!(", 95 % CI [{}, {}],", number(*lo), number(*hi))
                    }
                    _ => String::new(),
                };
                let diff = number(*diff);
                format!(
                    "`{metric}` is 0 in {base}, so its change of {diff} {unit}{interval} has no \
                     percentage"
                )
            }
            Self::FromZeros(metrics) => format!(
                "{} are 0 in {base}, so their changes have no percentage; the JSON has their \
                 intervals (`ci95_diff`)",
                quoted(metrics)
            ),
        }
    }
}

impl fmt::Display for OfValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacking {
                metric,
                whose,
                lacking,
                runs,
            } => write!(
                f,
                "`{metric}`{} has no value in {lacking} of {runs} runs, which its mean leaves out",
                of(whose)
            ),
            Self::NotSustained { whose, kinds } => {
                f.write_str(&not_sustained_words(kinds, whose.as_deref()))
            }
            Self::TooShort { whose, kinds } => write!(
                f,
                "too short: {}`{}` takes about as long as the measured time, and its clients wait \
                 for an answer before they ask again, so what it takes is what the run leaves it; \
                 a longer run has more of them",
                by(whose.as_deref()),
                kinds.join("`, `")
            ),
            Self::FewPeriods { runs_have, groups } => {
                f.write_str(&few_periods_words(groups, runs_have))
            }
            Self::FewRequests {
                metric,
                whose,
                fewest,
            } => f.write_str(&few_words(metric, &of(whose), *fewest)),
        }
    }
}

impl fmt::Display for OfWaiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnreliableUsual(groups) => write!(
                f,
                "what is usual in {} is unreliable: more than a tenth of the stretches waited for \
                 quota, so it is of the periods with least work, or of work that gathered while it \
                 waited. Say with --slow TIME what is slow; compare with --base \
                 '/GROUP/cpu.max=max', or replay with --set of that, shows what is usual without \
                 the limit",
                groups.join(", ")
            ),
            Self::NothingUsual(groups) => f.write_str(&nothing_usual_words(groups)),
            Self::Still {
                whose,
                all,
                runs: [runs, of_runs],
            } => write!(
                f,
                "`wakeup_latency_us`{} lacks {} of {} wake-ups in {runs} of {of_runs} runs: they \
                 had not led to a switch by the end, the longest for {:.3} ms",
                of(whose),
                all.waiting,
                all.wakeups,
                ms(all.longest_ns)
            ),
            Self::Open {
                whose,
                all,
                runs: [runs, of_runs],
            } => write!(
                f,
                "`{}`{}: {} of {} requests had no answer by the end of {runs} of {of_runs} runs, \
                 the oldest for {:.3} ms, so nobody knows {}",
                all.request,
                of(whose),
                all.open,
                all.open + all.ended,
                ms(all.longest_ns),
                quoted(&all.undecided)
            ),
        }
    }
}

/// The words on groups of these runs (`runs of base have`), of which there is one, each with its
/// own number: `2 periods of /a, 10 of /a/b`.
fn few_periods_words(groups: &BTreeMap<String, u64>, runs_have: &str) -> String {
    let mut by_number: Vec<(u64, &str)> = groups.iter().map(|(path, n)| (*n, &**path)).collect();
    by_number.sort_unstable();
    let mut list = String::new();
    let mut last = None;
    for (number, path) in by_number.iter().take(GROUPS_NAMED) {
        list += &match last.replace(number) {
            None if *number == 1 => format!("1 period of {path}"),
            None => format!("{number} periods of {path}"),
            Some(same) if same == number => format!(", {path}"),
            Some(_) => format!(", {number} of {path}"),
        };
    }
    let more = groups.len().saturating_sub(GROUPS_NAMED);
    let differ = by_number.first().map(|g| g.0) != by_number.last().map(|g| g.0);
    list += &match more {
        0 => String::new(),
        _ if differ => format!(", few of {more} more"),
        _ => format!(", {more} more"),
    };
    format!(
        "{runs_have} {list}: what is said of throttling is chance below {PERIODS_MIN}; a longer \
         run helps, or a shorter period"
    )
}

/// Why counts of periods are not held against each other, but for where they are of another length.
pub(crate) fn other_periods_words(metrics: &[String], groups: &[String]) -> String {
    format!(
        "{} {} periods of {}, which are of another length",
        quoted(metrics),
        if metrics.len() == 1 {
            "counts"
        } else {
            "count"
        },
        groups.join(", ")
    )
}

/// The note on loads that are not sustained. `whose`: by which variants or points, where there are
/// several.
fn not_sustained_words(kinds: &[String], whose: Option<&str>) -> String {
    format!(
        "not sustained: {}`{}` took longer in the second half of the measured time than in the \
         first, beyond chance. Requests come faster than they are answered, and latencies grow \
         with the length of the run; or it has not settled: then a longer warm-up says so",
        by(whose),
        kinds.join("`, `")
    )
}

/// `in patch, `, where there is another.
fn by(whose: Option<&str>) -> String {
    whose.map_or(String::new(), |whose| format!("{whose}, "))
}

/// The percentile of `of_whom` (` of base`) is of as few as `fewest` values.
fn few_words(metric: &str, of_whom: &str, fewest: u64) -> String {
    let needed = needs(metric).unwrap_or(0);
    format!(
        "`{metric}`{of_whom} is the largest value of a run, not a percentile: there are as few \
         as {fewest} in a run, and it needs {needed}; a longer run helps, more seeds do not"
    )
}

/// The words on groups in which nothing is usual.
fn nothing_usual_words(groups: &[String]) -> String {
    format!(
        "nothing is usual in {}: in a run no stretch ended in a sleep, so which periods are \
         harmless or slow has no value (`-`). A quota takes the throughput of tasks that never \
         sleep; they have no latency that it could make worse",
        groups.join(", ")
    )
}

/// `a`, `b`.
fn quoted(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// ` of base`, where there is another.
fn of(whose: &Option<String>) -> String {
    let of = whose.as_ref().map(|whose| format!(" of {whose}"));
    of.unwrap_or_default()
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_side_needs_no_name() {
        let lacks = |whose: Option<&str>| {
            let whose = whose.map(String::from);
            let (metric, lacking, runs) = ("web.p99".into(), 1, 3);
            let of = OfValues::Lacking {
                metric,
                whose,
                lacking,
                runs,
            };
            of.to_string()
        };
        assert!(lacks(None).starts_with("`web.p99` has no value in 1 of 3 runs"));
        assert!(lacks(Some("base")).starts_with("`web.p99` of base has no value"));
    }
}
