//! The options of `fairground sweep`.

use std::path::PathBuf;

use clap::Args;

use crate::how::How;
use crate::what::{What, name_and_value};

/// `fairground sweep`.
#[derive(Debug, Args)]
#[command(
    after_help = "For example, which limit and burst keep the 99th percentile below 20 ms:\n  \
    fairground sweep scenarios/web-server-cpu-max.toml \\\n    \
    --over cpu.max=110ms/100ms,130ms/100ms,200ms/100ms --over cpu.max.burst=0,100ms \\\n    \
    --target 'web.latency_us.p99<20ms'"
)]
pub struct SweepArgs {
    /// A scenario: TOML (docs/scenario.md), or JSON of rt-app
    #[arg(value_name = "SCENARIO", conflicts_with = "workload")]
    pub scenario: Option<PathBuf>,
    /// What is swept, with its values; with `;` between them if they have commas. A file of a
    /// cgroup (/web/cpu.max=20ms/100ms,40ms/100ms; without a path, of the one limited group), a
    /// decision of `list decisions`, cpus, machine, max-idle or profile [repeatable: the product is
    /// run]
    #[arg(long, value_name = "NAME=V1,V2,..", required = true, value_parser = over)]
    pub over: Vec<Over>,
    /// Show this metric of `list metrics` [repeatable; default: latency at p50 and p99,
    /// throughput, periods throttled, CPUs busy]
    #[arg(long, value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Which is the smallest point with METRIC<N or METRIC>N (also <= and >=), e.g.
    /// 'web.latency_us.p99<20ms' [repeatable: all of them]
    #[arg(long, value_name = "TARGET")]
    pub target: Vec<String>,
    #[command(flatten)]
    pub what: What,
    #[command(flatten)]
    pub how: How,
    /// The benchmark's command line, as people type it
    #[arg(last = true, value_name = "WORKLOAD")]
    pub workload: Vec<String>,
}

/// A name with its values, not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Over {
    /// A file of a cgroup, a decision, or what can be swept beside these.
    pub name: String,
    /// In the order in which they are run.
    pub values: Vec<String>,
}

/// `NAME=V1,V2`.
fn over(text: &str) -> Result<Over, String> {
    const EXPECTED: &str = "expected NAME=V1,V2,.., e.g. cpu.max=20ms/100ms,40ms/100ms";
    let (name, values) = name_and_value(text).ok_or(EXPECTED)?;
    let between = if values.contains(';') { ';' } else { ',' };
    let values: Vec<String> = values
        .split(between)
        .map(|v| v.trim().to_string())
        .collect();
    if name.trim().is_empty() || values.iter().any(String::is_empty) {
        return Err(EXPECTED.into());
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = values.iter().find(|value| !seen.insert(*value)) {
        return Err(format!("`{twice}` is there twice"));
    }
    Ok(Over {
        name: name.trim().into(),
        values,
    })
}
