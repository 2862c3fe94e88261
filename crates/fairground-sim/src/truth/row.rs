//! What a comparison says: a row for each metric, with a verdict, and sums of verdicts.

use serde::Serialize;

use super::tolerance::Tolerance;

/// A sample of runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Mean; of no run it is no number, `null` in JSON.
    pub mean: f64,
    /// Standard deviation (n-1), 0 for one run; of no run as the mean.
    pub sd: f64,
    /// Number of runs.
    pub n: usize,
}

impl Sample {
    /// Of nothing.
    pub const NONE: Self = Self {
        mean: f64::NAN,
        sd: f64::NAN,
        n: 0,
    };

    /// Of some values.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        if n == 0 {
            return Self::NONE;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let sd = if n > 1 {
            (squares / (n - 1) as f64).sqrt()
        } else {
            0.0
        };
        Self { mean, sd, n }
    }
}

/// What the comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Inside three recorded standard deviations or the recorded range.
    Spread,
    /// Inside the tolerance.
    Tolerance,
    /// Neither.
    Miss,
    /// Not compared.
    Skipped,
}

impl Verdict {
    /// Its name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spread => "spread",
            Self::Tolerance => "tolerance",
            Self::Miss => "miss",
            Self::Skipped => "skipped",
        }
    }
}

/// Numbers of rows by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Inside the recorded spread.
    pub spread: usize,
    /// Inside the tolerance.
    pub tolerance: usize,
    /// Neither.
    pub miss: usize,
    /// Not compared.
    pub skipped: usize,
}

impl Tally {
    /// Of some rows.
    #[must_use]
    pub fn of<'a>(rows: impl Iterator<Item = &'a Row>) -> Self {
        let mut tally = Self::default();
        for row in rows {
            *match row.verdict {
                Verdict::Spread => &mut tally.spread,
                Verdict::Tolerance => &mut tally.tolerance,
                Verdict::Miss => &mut tally.miss,
                Verdict::Skipped => &mut tally.skipped,
            } += 1;
        }
        tally
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let compared = self.spread + self.tolerance + self.miss;
        let all = compared + self.skipped;
        let percent = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
        write!(
            f,
            "{all} metrics, {} spread, {} tolerance, {} miss, {} skipped; {:.1} % of those \
             compared are not missed, {:.1} % of all are skipped",
            self.spread,
            self.tolerance,
            self.miss,
            self.skipped,
            percent(compared - self.miss, compared),
            percent(self.skipped, all),
        )
    }
}

/// A metric of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Name of the case.
    pub case: String,
    /// Path of the number in a run; tasks that are alike in a case on two CPUs are ranked.
    pub metric: String,
    /// Unit.
    pub unit: &'static str,
    /// The kernel.
    pub recorded: Sample,
    /// The simulator.
    pub simulated: Option<Sample>,
    /// Allowed difference, in the unit.
    pub tolerance: Option<f64>,
    /// Verdict.
    pub verdict: Verdict,
    /// Why it is not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Row {
    /// A number that is not compared, and why.
    #[must_use]
    pub fn skipped(
        case: &str,
        metric: &str,
        unit: &'static str,
        recorded: Sample,
        reason: String,
    ) -> Self {
        Self {
            case: case.to_string(),
            metric: metric.to_string(),
            unit,
            recorded,
            simulated: None,
            tolerance: None,
            verdict: Verdict::Skipped,
            reason: Some(reason),
        }
    }

    /// A number that hangs on no window and no tick; `values` are those of the recorded runs, or
    /// the least and the most of them.
    #[must_use]
    pub fn judged(
        case: &str,
        metric: &str,
        unit: &'static str,
        values: &[f64],
        recorded: Sample,
        simulated: Sample,
        tolerance: Tolerance,
    ) -> Self {
        let verdict = if in_spread(values, recorded, simulated.mean) {
            Verdict::Spread
        } else if tolerance.holds(recorded.mean, simulated.mean, 0.0, 0.0) {
            Verdict::Tolerance
        } else {
            Verdict::Miss
        };
        Self {
            case: case.to_string(),
            metric: metric.to_string(),
            unit,
            recorded,
            simulated: Some(simulated),
            tolerance: tolerance.allowed(recorded.mean, 0.0, 0.0),
            verdict,
            reason: None,
        }
    }
}

/// Inside three standard deviations of the recorded mean, or between the recorded extremes.
#[must_use]
pub fn in_spread(recorded: &[f64], sample: Sample, simulated: f64) -> bool {
    let least = recorded.iter().copied().fold(f64::INFINITY, f64::min);
    let most = recorded.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Values were rounded to 1e-6 when they were written.
    (simulated - sample.mean).abs() <= 3.0 * sample.sd + 1e-6 || (least..=most).contains(&simulated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_mean() {
        let none = serde_json::to_string(&Sample::of(&[])).expect("JSON");
        assert_eq!(none, r#"{"mean":null,"sd":null,"n":0}"#);
    }

    #[test]
    fn spread_is_three_deviations_or_the_range() {
        let values = [1.0, 1.0, 1.0, 5.0];
        let s = Sample::of(&values);
        assert!(in_spread(&values, s, 4.9));
        assert!(in_spread(&values, s, 8.0) && !in_spread(&values, s, 8.1));
        let one = Sample::of(&[2.0]);
        assert!(in_spread(&[2.0], one, 2.0) && !in_spread(&[2.0], one, 2.1));
    }
}
