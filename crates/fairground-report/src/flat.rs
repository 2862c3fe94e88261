//! CSV: one line per run, one column per metric.

use crate::catalogue::MetricInfo;
use crate::result::{Compare, RunResult, Variant};

/// `variant,seed,METRIC...` with one line per run. A missing number is an empty field.
pub fn csv_of_run(result: &RunResult) -> String {
    rows(&result.metric_info, &result.variants)
}

/// As [`csv_of_run`], base first.
pub fn csv_of_compare(result: &Compare) -> String {
    rows(&result.metric_info, &result.variants)
}

fn rows(metrics: &[MetricInfo], variants: &[Variant]) -> String {
    let names = metrics.iter().map(|info| info.name.as_str());
    let metrics: Vec<&str> = names.collect();
    let head = ["variant", "seed"].iter().chain(&metrics);
    let mut records = vec![head.map(|&s| s.into()).collect()];
    for variant in variants {
        for run in &variant.runs {
            let mut record = vec![variant.name.clone(), run.seed.to_string()];
            let value = |name: &&str| run.metric(name).map_or(String::new(), |v| v.to_string());
            record.extend(metrics.iter().map(value));
            records.push(record);
        }
    }
    csv_of(records)
}

/// Records of one length as CSV.
pub(crate) fn csv_of(records: Vec<Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        let written = writer.write_record(record);
        debug_assert!(
            written.is_ok(),
            "all records have one length and a Vec takes all bytes"
        );
    }
    let bytes = writer.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}
