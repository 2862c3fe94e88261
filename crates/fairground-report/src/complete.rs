//! From variants to whole results: sorts their runs, compares them, and notes what to beware of.

use std::collections::BTreeSet;

use crate::catalogue::{Catalogue, MetricInfo};
use crate::compare::compare_metrics;
use crate::differing::{differing, in_vain};
use crate::groups::cut_groups;
use crate::notes::{beware, doubtful_usual, open_requests, still_waiting};
use crate::result::{Compare, Note, OfSeeds, Run, RunResult, SameCounts, Setup, Variant};
use crate::stats::finite;
use crate::throttled_by;

impl RunResult {
    /// Completes `base` (whatever its name was) to a result.
    pub fn new(setup: Setup, base: Variant) -> Self {
        let mut variants = vec![base];
        let (metric_info, mut notes) = complete(&setup, &mut variants, &["base"]);
        notes.extend(beware(&variants, &metric_info));
        notes.extend(variants[0].told.iter().cloned().map(Note::Said));
        Self {
            fairground: setup.fairground,
            machine: setup.machine,
            profile: setup.profile,
            workload: setup.workload,
            variants,
            changes: Vec::new(),
            metric_info,
            redo: setup.redo,
            notes,
        }
    }
}

impl Compare {
    /// Names the variants `base` and `patch` and compares them, metric by metric.
    pub fn new(setup: Setup, base: Variant, patch: Variant) -> Self {
        Self::of(setup, base, patch, true)
    }

    /// The same of variants whose setups may differ in more than they say themselves.
    pub(crate) fn of(setup: Setup, base: Variant, patch: Variant, alike: bool) -> Self {
        let mut variants = vec![base, patch];
        let (metric_info, mut notes) = complete(&setup, &mut variants, &["base", "patch"]);
        notes.extend(beware(&variants, &metric_info));
        let [base, patch] = [&variants[0], &variants[1]];
        let comparison = compare_metrics(&metric_info, base, patch, &mut notes);
        let only = base.told.iter().filter(|said| !patch.told.contains(said));
        notes.extend(patch.told.iter().chain(only).cloned().map(Note::Said));
        if patch.counts_as(base) {
            let why = match alike {
                true if differing(base, patch).is_empty() => SameCounts::Alike,
                true if in_vain(base, patch) => SameCounts::InVain,
                _ => SameCounts::NotReached,
            };
            notes.push(Note::Seeds(OfSeeds::SameCounts(why)));
        }
        Self {
            fairground: setup.fairground,
            machine: setup.machine,
            patch_machine: None,
            profile: setup.profile,
            workload: setup.workload,
            variants,
            comparison,
            metric_info,
            redo: setup.redo,
            notes,
        }
    }
}

/// Names and sorts the variants; gives the catalogue rows they use and what to note about them.
pub(crate) fn complete(
    setup: &Setup,
    variants: &mut [Variant],
    names: &[&str],
) -> (Vec<MetricInfo>, Vec<Note>) {
    let mut notes = Vec::new();
    let mut used = BTreeSet::new();
    let alone = variants.len() == 1;
    for (variant, &name) in variants.iter_mut().zip(names) {
        variant.name = name.into();
        let whose = (!alone).then(|| name.to_string());
        drop_repeated_seeds(variant, &whose, &mut notes);
        variant.runs.iter_mut().for_each(Run::sort_lines);
        drop_not_finite(variant);
        notes.extend(still_waiting(variant, whose.clone()));
        notes.extend(open_requests(variant, &whose));
        used.extend(variant.metric_names().into_iter().map(String::from));
    }
    notes.extend(doubtful_usual(variants.iter()));
    cut_groups(variants);
    throttled_by::cut(variants);
    let catalogue = Catalogue::new(setup.workload_metrics.iter().cloned());
    let mut info: Vec<MetricInfo> = catalogue
        .rows()
        .iter()
        .filter(|row| used.remove(&row.name))
        .cloned()
        .collect();
    info.extend(used.into_iter().map(|name| MetricInfo {
        name,
        unit: String::new(),
        better: None,
        description: "Not in the catalogue.".into(),
    }));
    (info, notes)
}

/// A seed's second run is the first one again. Kept, it would narrow the interval for nothing.
fn drop_repeated_seeds(variant: &mut Variant, whose: &Option<String>, notes: &mut Vec<Note>) {
    let (mut seen, mut told) = (BTreeSet::new(), BTreeSet::new());
    variant.runs.retain(|run| {
        let is_new = seen.insert(run.seed);
        if !is_new && told.insert(run.seed) {
            notes.push(Note::Seeds(OfSeeds::Repeated {
                whose: whose.clone(),
                seed: run.seed,
            }));
        }
        is_new
    });
}

/// Turns what is not finite into `None`.
fn drop_not_finite(variant: &mut Variant) {
    for run in &mut variant.runs {
        for value in run.metrics.values_mut() {
            *value = value.and_then(finite);
        }
        for cost in run.functions.values_mut() {
            cost.share = cost.share.and_then(finite);
        }
    }
}
