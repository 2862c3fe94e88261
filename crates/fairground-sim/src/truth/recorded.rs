//! `result.json`: what was measured, in every run. The simulated runs are brought into the same
//! form, so this is also the form of both sides of a comparison.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::read_case::placed;

/// Name of all spawned threads in the results.
pub const KIDS: &str = "kids";

/// A `result.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    /// Must be [`super::case::FORMAT`].
    pub format: String,
    /// Name of the case.
    pub case: String,
    /// Lower edges of the bins of all histograms, us.
    #[serde(default)]
    pub hist_edges_us: Vec<f64>,
    /// Runs, best first.
    #[serde(default)]
    pub runs: Vec<Run>,
    /// Mean and spread by path; computed again from `runs` here.
    #[serde(default)]
    pub summary: Value,
    /// A benchmark's own numbers without a tracer.
    #[serde(default)]
    pub own_untraced_runs: Value,
    /// Their mean and spread.
    #[serde(default)]
    pub own_untraced_summary: Value,
    /// Remarks.
    #[serde(default)]
    pub notes: Value,
}

/// One run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Length of the window, us.
    #[serde(default)]
    pub window_us: f64,
    /// By name.
    #[serde(default)]
    pub tasks: BTreeMap<String, TaskRun>,
    /// By path; `(all)` is everything.
    #[serde(default)]
    pub groups: BTreeMap<String, GroupRun>,
    /// By number.
    #[serde(default)]
    pub cpus: BTreeMap<u32, CpuRun>,
    /// CPU shares by phase and task.
    #[serde(default)]
    pub phases: BTreeMap<u32, BTreeMap<String, f64>>,
    /// Time of tasks outside the case, %.
    #[serde(default)]
    pub disturbance_pct: Option<f64>,
    /// Steal time, us.
    #[serde(default)]
    pub steal_us: f64,
    /// Time of tasks outside the case by CPU, or by their name, us.
    #[serde(default)]
    pub other_tasks_us: BTreeMap<String, f64>,
    /// Switches that the kernel did not report.
    #[serde(default)]
    pub unrecorded_switches: u64,
    /// Time that is either idle or not, by CPU, us.
    #[serde(default)]
    pub unseen_us: BTreeMap<String, f64>,
    /// Time given to the task seen next, by CPU, us.
    #[serde(default)]
    pub attributed_us: BTreeMap<String, f64>,
    /// A benchmark's own numbers.
    #[serde(default)]
    pub own: Value,
    /// A benchmark's number of threads.
    #[serde(default)]
    pub threads: Value,
}

/// One task in one run. What is not there was not recorded; an empty map is nothing on any CPU.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRun {
    /// Time on a CPU, us.
    #[serde(default)]
    pub cpu_us: Option<f64>,
    /// Part of the time of all tasks of the case.
    #[serde(default)]
    pub cpu_share_of_workload: Option<f64>,
    /// Time by CPU, us.
    #[serde(default)]
    pub cpu_us_by_cpu: Option<BTreeMap<u32, f64>>,
    /// Switches away while asleep.
    #[serde(default)]
    pub switches_voluntary: Option<u64>,
    /// Switches away while runnable.
    #[serde(default)]
    pub switches_involuntary: Option<u64>,
    /// Moves.
    #[serde(default)]
    pub migrations: Option<u64>,
    /// Wake-ups, first ones included.
    #[serde(default)]
    pub wakeups: Option<u64>,
    /// Wake-ups by CPU.
    #[serde(default)]
    pub wakeup_target_cpu: Option<BTreeMap<u32, u64>>,
    /// First wake-ups by CPU.
    #[serde(default)]
    pub wakeup_new_target_cpu: Option<BTreeMap<u32, u64>>,
    /// From the wake-up to the CPU, us.
    #[serde(default)]
    pub wakeup_latency_us: Option<Dist>,
    /// Stretches on a CPU, us.
    #[serde(default)]
    pub on_cpu_us: Option<Dist>,
    /// Stretches on a CPU as a histogram: the number in each bin.
    #[serde(default)]
    pub on_cpu_hist: Option<Vec<u64>>,
    /// From a switch away while runnable back to the CPU, us.
    #[serde(default)]
    pub preempted_wait_us: Option<Dist>,
    /// Turns of loops.
    #[serde(default)]
    pub iterations: Option<u64>,
    /// Lines of `/proc/PID/sched`.
    #[serde(default)]
    pub kernel: BTreeMap<String, f64>,
}

/// A sample in short.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dist {
    /// Size.
    pub n: u64,
    /// Mean.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Median: as all percentiles the smallest value that is >= p per cent of the sample.
    #[serde(default)]
    pub p50: Option<f64>,
    /// 90th percentile.
    #[serde(default)]
    pub p90: Option<f64>,
    /// 99th percentile.
    #[serde(default)]
    pub p99: Option<f64>,
    /// Largest.
    #[serde(default)]
    pub max: Option<f64>,
}

/// One group in one run. What is not there was not recorded.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupRun {
    /// Time of the tasks that start in it or below, us.
    #[serde(default)]
    pub cpu_us: Option<f64>,
    /// Part of the time of all tasks of the case.
    #[serde(default)]
    pub cpu_share_of_workload: Option<f64>,
    /// `cpu.stat` from 3 ms before the window to its end.
    #[serde(default)]
    pub cpu_stat: BTreeMap<String, f64>,
}

/// One CPU in one run. What is not there was not recorded.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuRun {
    /// Switches.
    #[serde(default)]
    pub switches: Option<u64>,
    /// Idle time, us.
    #[serde(default)]
    pub idle_us: Option<f64>,
    /// Time of the case's tasks, us.
    #[serde(default)]
    pub workload_us: Option<f64>,
    /// Time of other tasks, us.
    #[serde(default)]
    pub other_us: Option<f64>,
}

impl Recorded {
    /// Reads a result.
    ///
    /// # Errors
    /// A sentence with the path of the key, line and column.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut json = serde_json::Deserializer::from_str(text);
        let recorded: Self = serde_path_to_error::deserialize(&mut json).map_err(placed)?;
        json.end().map_err(|e| e.to_string())?;
        if recorded.format != super::case::FORMAT {
            return Err(format!("format: '{}' is not known", recorded.format));
        }
        Ok(recorded)
    }
}

impl Dist {
    /// Of a sample.
    #[must_use]
    pub fn of(mut sample: Vec<f64>) -> Self {
        if sample.is_empty() {
            return Self::default();
        }
        sample.sort_by(f64::total_cmp);
        let n = sample.len();
        let percentile = |p: usize| Some(sample[(p * n).div_ceil(100).max(1) - 1]);
        Self {
            n: n as u64,
            mean: Some(sample.iter().sum::<f64>() / n as f64),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: sample.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_smallest_value_that_reaches_it() {
        let d = Dist::of((1..=10).map(f64::from).collect());
        assert_eq!(
            (d.p50, d.p90, d.p99, d.max),
            (Some(5.0), Some(9.0), Some(10.0), Some(10.0))
        );
        assert_eq!(Dist::of(vec![3.0]).p50, Some(3.0));
    }
}
