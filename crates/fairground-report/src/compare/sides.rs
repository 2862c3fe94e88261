//! One number on two sides, by seed, and how the sides differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::number::Number;
use crate::result::{Method, Run, Variant};
use crate::stats::{
    Change, Interval, Summary, paired_change_to_scale, summary, welch_change_to_scale,
};

/// The finite values of base and patch.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    base: BTreeMap<u64, f64>,
    patch: BTreeMap<u64, f64>,
    /// The sides have the same seeds.
    paired: bool,
    /// Some runs of a side have a value and others have none.
    lopsided: bool,
    /// Runs of base and patch that have a value.
    pub have: [usize; 2],
}

/// How they differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    pub base: Option<Summary>,
    pub patch: Option<Summary>,
    pub change: Option<Change>,
    pub method: Method,
    /// Two seeds differ by the same though neither side is the same in both: an interval of no
    /// width would be of chance.
    pub coincides: bool,
}

/// Whether both ran with the same seeds, so that runs are paired.
pub(crate) fn same_seeds(base: &Variant, patch: &Variant) -> bool {
    seeds(base) == seeds(patch)
}

fn seeds(variant: &Variant) -> BTreeSet<u64> {
    variant.runs.iter().map(|run| run.seed).collect()
}

impl Sides {
    /// `value` of each run. Of runs in pairs of which some lack it, the seeds that have both: the
    /// means are of what is compared.
    pub fn of(base: &Variant, patch: &Variant, value: impl Fn(&Run) -> Number) -> Self {
        let values = |variant: &Variant| -> BTreeMap<u64, f64> {
            let runs = variant.runs.iter();
            runs.filter_map(|run| Some((run.seed, value(run)?)))
                .collect()
        };
        let lacks = |variant: &Variant, values: &BTreeMap<u64, f64>| {
            !values.is_empty() && values.len() < seeds(variant).len()
        };
        let (base_values, patch_values) = (values(base), values(patch));
        let lopsided = lacks(base, &base_values) || lacks(patch, &patch_values);
        let mut sides = Self {
            have: [base_values.len(), patch_values.len()],
            base: base_values,
            patch: patch_values,
            paired: same_seeds(base, patch),
            lopsided,
        };
        let both = sides.in_both();
        if sides.drops_some() && !both.is_empty() {
            sides.base.retain(|seed, _| both.contains(seed));
            sides.patch.retain(|seed, _| both.contains(seed));
        }
        sides
    }

    /// Whether pairs are left out because a side of them has no value.
    pub fn drops_some(&self) -> bool {
        self.paired && self.lopsided
    }

    /// The seeds that have a value on both sides.
    pub fn in_both(&self) -> BTreeSet<u64> {
        let in_both = |seed: &u64| self.patch.contains_key(seed);
        self.base.keys().copied().filter(in_both).collect()
    }

    /// How they differ; nothing can be above `whole`. Without an interval where the values are a
    /// selection, which is no chance: those without are the ones in which nothing was ever served;
    /// or if it is `withheld`.
    pub fn difference(&self, whole: Option<f64>, withheld: bool) -> Difference {
        let list = |values: &BTreeMap<u64, f64>| values.values().copied().collect::<Vec<f64>>();
        let (base, patch) = (list(&self.base), list(&self.patch));
        let summaries = [summary(&base), summary(&patch)];
        let pair = |(seed, b): (&u64, &f64)| Some((*b, *self.patch.get(seed)?));
        let pairs: Vec<(f64, f64)> = self.base.iter().filter_map(pair).collect();
        let coincides = self.paired && is_coincidence(&pairs);
        let change = match self.paired {
            true => paired_change_to_scale(&pairs),
            false => welch_change_to_scale(&base, &patch),
        };
        let base_mean = summaries[0].map_or(0.0, |s| s.mean);
        let change = change.map(|change| change.up_to(whole, base_mean));
        let change = change.map(|change| match self.lopsided || withheld || coincides {
            true => change.without_interval(),
            false => change,
        });
        let method = match change.and_then(|c| c.ci95) {
            None => Method::None,
            Some(_) if self.paired => Method::PairedT,
            Some(_) => Method::WelchT,
        };
        let [base, patch] = summaries;
        Difference {
            base,
            patch,
            change,
            method,
            coincides,
        }
    }
}

fn is_coincidence(pairs: &[(f64, f64)]) -> bool {
    let [(b1, p1), (b2, p2)] = pairs else {
        return false;
    };
    b1 != b2 && p1 - b1 == p2 - b2 && p1 != b1
}

impl Difference {
    /// Whether there is a difference, and one that a reader would see: no verdict stands beside
    /// 0.00 %.
    pub fn tells(&self) -> bool {
        let seen = |change: &Change| change.pct.is_none_or(|pct| pct.abs() >= 0.005);
        self.change
            .is_some_and(|change| change.excludes_zero() && seen(&change))
    }

    /// What the interval is of.
    pub fn interval(&self) -> Interval {
        self.change.map_or(Interval::default(), |c| c.interval)
    }

    /// Change and interval, in percent and in the unit.
    pub fn change_pct(&self) -> Number {
        self.change.and_then(|c| c.pct)
    }

    /// Ends of the interval in percent.
    pub fn ci95_pct(&self) -> [Number; 2] {
        ends(self.change.and_then(|c| c.ci95_pct))
    }

    /// Ends of the interval.
    pub fn ci95_diff(&self) -> [Number; 2] {
        ends(self.change.and_then(|c| c.ci95))
    }
}

fn ends(ci: Option<[f64; 2]>) -> [Number; 2] {
    ci.map_or([None; 2], |[lo, hi]| [Some(lo), Some(hi)])
}
