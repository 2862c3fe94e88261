//! What a reader must know of a run or of two sides before believing their numbers. A sweep says
//! the same of its points in words of its own (`sweep/beware.rs`).

mod few_periods;
mod few_values;
mod held;
mod not_sustained;
mod waiting;
mod words;

use std::collections::BTreeMap;

use crate::catalogue::{MetricInfo, is_own};
use crate::percentile::{few_beyond, too_few};
use crate::result::{Note, OfValues, Variant};
use few_periods::few_periods_note;
pub(crate) use few_periods::{few_periods, few_periods_of, fewest, has_few_periods};
pub(crate) use few_values::few_beyond_words;
use few_values::{few_beyond_notes, few_requests};
use held::held_notes;
pub(crate) use held::{held_from_above, held_words};
use not_sustained::not_sustained_notes;
pub(crate) use not_sustained::{not_sustained, too_short_for};
pub(crate) use waiting::{doubtful_usual, open_requests, still_waiting};
pub(crate) use words::other_periods_words;

/// The notes.
pub(crate) fn beware(variants: &[Variant], info: &[MetricInfo]) -> Vec<Note> {
    let mut notes: Vec<Note> = not_sustained_notes(variants);
    for variant in variants {
        let runs = variant.runs.len();
        let lacks = |(name, count): (&str, usize)| {
            Note::Values(OfValues::Lacking {
                metric: name.into(),
                whose: whose(variants, variant),
                lacking: count,
                runs,
            })
        };
        notes.extend(without_value(variant).into_iter().map(lacks));
    }
    notes.extend(held_notes(variants).into_iter().map(Note::Said));
    notes.extend(few_periods_note(variants));
    notes.extend(few_requests(variants, own(info)));
    let beyond = few_beyond_notes(variants, own(info));
    notes.extend(beyond.into_iter().map(Note::Said));
    notes
}

/// The same of replays of a recording: of these metrics of theirs, and of throttling.
pub fn beware_of_replays(variants: &[Variant], metrics: &[&str]) -> Vec<String> {
    let mut notes = doubtful_usual(variants.iter());
    notes.extend(held_notes(variants).into_iter().map(Note::Said));
    notes.extend(few_periods_note(variants));
    for metric in metrics {
        let all = || variants.iter();
        let largest = all().filter_map(|v| Some((v, too_few(v, metric)?)));
        let largest: Vec<(&Variant, u64)> = largest.collect();
        let few = all().filter_map(|v| Some((v, few_beyond(v, metric)?)));
        let few: Vec<(&Variant, (u64, u64))> = few.collect();
        if let Some(fewest) = largest.iter().map(|(_, n)| *n).min() {
            notes.push(Note::Values(OfValues::FewRequests {
                metric: (*metric).into(),
                whose: joined(variants, largest.iter().map(|(v, _)| *v)),
                fewest,
            }));
        } else if let Some(fewest) = few.iter().map(|(_, few)| *few).min() {
            let whose = joined(variants, few.iter().map(|(v, _)| *v));
            notes.push(Note::Said(few_beyond_words(metric, whose, fewest)));
        }
    }
    Note::sentences(&notes)
}

/// The names of some variants, where there are others.
fn joined<'a>(variants: &[Variant], some: impl Iterator<Item = &'a Variant>) -> Option<String> {
    let names: Vec<&str> = some.map(|v| &*v.name).collect();
    (variants.len() > 1).then(|| names.join(" and "))
}

/// How a note names a variant: not at all where there is no other.
fn whose(variants: &[Variant], variant: &Variant) -> Option<String> {
    (variants.len() > 1).then(|| variant.name.clone())
}

/// The metrics that have no value in so many runs of the variant, if no other note says why.
pub(crate) fn without_value(variant: &Variant) -> BTreeMap<&str, usize> {
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    let runs = variant.runs.len();
    for run in &variant.runs {
        let undecided =
            |name: &String| run.open_requests.iter().any(|o| o.undecided.contains(name));
        for (name, value) in &run.metrics {
            if value.is_none() && !undecided(name) {
                *missing.entry(name).or_default() += 1;
            }
        }
    }
    // That a group has none at all shows in its own table.
    missing.retain(|name, count| !name.starts_with('/') || *count < runs);
    missing
}

/// The metrics that the workload has of its own.
fn own(info: &[MetricInfo]) -> impl Iterator<Item = &str> {
    let names = info.iter().map(|info| info.name.as_str());
    names.filter(|name| is_own(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::MachineId;
    use crate::redo::Redo;
    use crate::result::{CpuStat, GroupStat, OpenRequests, QuotaWait, Run, RunResult, Setup};

    #[test]
    fn a_run_alone_is_no_base() {
        let setup = Setup {
            fairground: String::new(),
            machine: MachineId::default(),
            profile: String::new(),
            workload: Vec::new(),
            workload_metrics: Vec::new(),
            redo: Redo::default(),
        };
        let mut run = Run::new(1);
        run.set_metric("web.per_s", f64::NAN);
        run.open_requests = vec![OpenRequests {
            request: "web".into(),
            open: 4,
            ended: 2,
            undecided: vec!["web.latency_us.p99".into()],
            ..OpenRequests::default()
        }];
        let alone = Variant {
            runs: vec![run],
            ..Variant::default()
        };
        let said = RunResult::new(setup, alone).notes;
        let said: Vec<String> = said.into_iter().map(String::from).collect();
        let said = said.join("\n");
        assert!(
            said.contains("`web`: 4 of 6 requests had no answer"),
            "{said}"
        );
        assert!(
            said.contains("`web.per_s` has no value in 1 of 1 runs"),
            "{said}"
        );
        assert!(!said.contains("of base"), "{said}");
    }

    #[test]
    fn replays_have_the_notes_of_runs() {
        let side = |name: &str, wakeups: u64, nr_periods: u64| {
            let mut run = Run::new(1);
            for metric in ["w.p50", "w.p90", "w.p99"] {
                run.set_metric(metric, 5.0);
                run.samples.insert(metric.into(), wakeups);
            }
            run.groups = vec![GroupStat {
                path: "/a".into(),
                stat: CpuStat {
                    nr_periods,
                    ..CpuStat::default()
                },
                wait: Some(QuotaWait {
                    usual_is_unreliable: nr_periods > 0,
                    slow_ns: Some(1),
                    periods_waited: nr_periods,
                    ..QuotaWait::default()
                }),
                ..GroupStat::default()
            }];
            Variant {
                name: name.into(),
                runs: vec![run],
                ..Variant::default()
            }
        };
        let both = [side("replayed", 5000, 0), side("what if", 60, 5)];
        let said = beware_of_replays(&both, &["w.p50", "w.p90", "w.p99"]);
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].starts_with("what is usual in /a is unreliable"));
        assert!(said[1].starts_with("runs of what if have as few as 5 periods of /a"));
        assert!(said[2].starts_with("`w.p90` of what if stands on few: of 60 values"));
        assert!(said[3].starts_with("`w.p99` of what if is the largest value of a run"));
        assert!(beware_of_replays(&both[..1], &["w.p99"]).is_empty());
        let alone = beware_of_replays(&both[1..], &["w.p99"]);
        assert!(
            alone[1].starts_with("the run has 5 periods of /a"),
            "{alone:?}"
        );
        assert!(alone[2].starts_with("`w.p99` is the largest"), "{alone:?}");
    }
}
