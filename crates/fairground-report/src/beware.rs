//! What a reader must know of a run or of two sides before believing their numbers. A sweep says
//! the same of its points in words of its own (`sweep/beware.rs`).

use std::collections::BTreeMap;

use crate::catalogue::{MetricInfo, is_own};
use crate::few_beyond::few_beyond_notes;
use crate::few_periods::few_periods_note;
use crate::note::{Note, OfValues};
use crate::requests::{few_requests, not_sustained_note};
use crate::result::Variant;
use crate::throttled_by::held_notes;

/// The notes.
pub(crate) fn beware(variants: &[Variant], info: &[MetricInfo]) -> Vec<Note> {
    let mut notes: Vec<Note> = not_sustained_note(variants).into_iter().collect();
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

/// How a note names a variant: not at all where there is no other.
pub(crate) fn whose(variants: &[Variant], variant: &Variant) -> Option<String> {
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
    use crate::machine::MachineId;
    use crate::redo::Redo;
    use crate::result::{Run, RunResult, Setup, Variant};
    use crate::watched::OpenRequests;

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
}
