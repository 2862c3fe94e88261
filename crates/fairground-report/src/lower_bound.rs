//! What is known of a metric where open requests leave it without a value.

use std::collections::BTreeMap;

use crate::catalogue::MetricInfo;
use crate::number::Number;
use crate::result::{Run, Variant};

impl Run {
    /// The metric's value; where open requests leave it unknown, what it is at least.
    pub(crate) fn at_least(&self, metric: &str) -> Number {
        let bounds = self.open_requests.iter();
        let bound = || bounds.clone().find_map(|o| o.at_least.get(metric).copied());
        self.metric(metric).or_else(bound)
    }
}

/// For each metric that some run has no value of: its mean with what those runs have at least, if
/// that is known of all.
pub(crate) fn lower_bounds(info: &[MetricInfo], variant: &Variant) -> BTreeMap<String, f64> {
    let bound = |info: &MetricInfo| {
        let runs = || variant.runs.iter();
        if runs().all(|run| run.metric(&info.name).is_some()) {
            return None;
        }
        let values: Option<Vec<f64>> = runs().map(|run| run.at_least(&info.name)).collect();
        let values = values?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some((info.name.clone(), mean))
    };
    info.iter().filter_map(bound).collect()
}
