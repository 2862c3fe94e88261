//! Whether a result is that of its case, and holds something to compare with.

use std::collections::BTreeSet;

use super::case::Case;
use super::recorded::{KIDS, Recorded, Run};
use super::{benchmark, contents, traced};

/// A recorded window may differ from the case's by this part: clocks and their rounding.
pub(super) const WINDOW_PART: f64 = 0.01;

impl Recorded {
    /// Whether it is the result of `case`, and holds something to compare with.
    pub(super) fn fits(&self, case: &Case) -> Result<(), String> {
        if self.case != case.name {
            let (ours, theirs) = (&self.case, &case.name);
            return Err(format!("case: '{ours}', but case.json is of '{theirs}'"));
        }
        if case.is_benchmark() {
            let printed = benchmark::untraced(&self.own_untraced_runs);
            let summary = self.own_untraced_summary.as_object();
            if printed.is_empty() && summary.is_none_or(|s| s.is_empty()) {
                return Err(
                    "own_untraced_runs: no number, expected what the benchmark printed \
                            in at least one run"
                        .into(),
                );
            }
        } else if self.runs.is_empty() {
            return Err("runs: none, expected at least one recorded run".into());
        }
        contents::edges(&self.hist_edges_us)?;
        let of_case: BTreeSet<&str> = match case.is_benchmark() {
            true => traced::TASKS.into(),
            false => case.tasks.iter().map(|t| t.name.as_str()).collect(),
        };
        for (i, run) in self.runs.iter().enumerate() {
            run.fits(&of_case, case.duration_us)
                .and_then(|()| contents::check(run, case, &self.hist_edges_us))
                .map_err(|e| format!("runs[{i}].{e}"))?;
        }
        Ok(())
    }
}

impl Run {
    /// Whether it has the tasks of its case, and no others but the threads that they create, and is
    /// as long: counts of a window of another length are compared with nothing.
    fn fits(&self, of_case: &BTreeSet<&str>, duration_us: Option<u64>) -> Result<(), String> {
        if self.tasks.is_empty() {
            return Err("tasks: none, expected the tasks of the case".into());
        }
        let here: BTreeSet<&str> = self.tasks.keys().map(String::as_str).collect();
        if let Some(missing) = of_case.difference(&here).next() {
            return Err(format!(
                "tasks: no '{missing}', which is a task of the case"
            ));
        }
        let strange = here.difference(of_case).find(|name| **name != KIDS);
        if let Some(name) = strange {
            return Err(format!("tasks.{name}: the case has no such task"));
        }
        if !(self.window_us.is_finite() && self.window_us > 0.0) {
            let us = self.window_us;
            return Err(format!("window_us: {us}, expected more than 0"));
        }
        match duration_us {
            Some(us) if (self.window_us - us as f64).abs() > WINDOW_PART * us as f64 => {
                Err(format!(
                    "window_us: {}, expected the case's duration_us ({us})",
                    self.window_us
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded::TaskRun;
    use super::*;

    #[test]
    fn a_window_is_as_long_as_its_case() {
        let run = |us| Run {
            window_us: us,
            tasks: [("t".to_string(), TaskRun::default())].into(),
            ..Run::default()
        };
        let fits = |us, duration| run(us).fits(&["t"].into(), duration);
        assert_eq!(fits(4000.4, Some(4000)), Ok(()));
        assert_eq!(fits(25_000.0, None), Ok(()), "a benchmark has no length");
        let error = fits(8000.0, Some(4000)).expect_err("twice as long");
        assert_eq!(
            error,
            "window_us: 8000, expected the case's duration_us (4000)"
        );
    }
}
