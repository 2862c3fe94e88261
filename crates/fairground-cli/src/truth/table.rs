//! Recorded numbers beside simulated ones, and how to get them again.

use std::fmt::Write as _;

use fairground_report::{AssumedFigure, Redo, foot_text};
use fairground_sim::truth::{Row, Sample, Verdict, reasons};

/// A line for each number, of cases or whole runs.
pub fn table<'a>(rows: impl Iterator<Item = &'a Row>) -> String {
    let mut text = format!(
        "{:<9} {:<26} {:<44} {:>25} {:>25} {:>10} {:<7} {}\n",
        "verdict", "case", "metric", "recorded", "simulated", "tolerance", "unit", "why"
    );
    for row in rows {
        let sample = |s: Sample| match s.n {
            0 => "-".to_string(),
            _ => format!("{} ± {}", number(s.mean), number(s.sd)),
        };
        let why = reasons::of(row);
        let why = match row.verdict {
            Verdict::Miss => why.map_or(reasons::NOT_EXPLAINED, |r| &r.id),
            Verdict::Skipped => row.reason.as_deref().unwrap_or_default(),
            _ => "",
        };
        let line = format!(
            "{:<9} {:<26} {:<44} {:>25} {:>25} {:>10} {:<7} {why}",
            row.verdict.name(),
            row.case,
            row.metric,
            sample(row.recorded),
            row.simulated.map_or("-".to_string(), sample),
            row.tolerance.map_or("-".to_string(), number),
            row.unit,
        );
        let _ = writeln!(text, "{}", line.trim_end());
        if let Some(reason) = row
            .reason
            .as_ref()
            .filter(|_| row.verdict != Verdict::Skipped)
        {
            let _ = writeln!(text, "{:<9} {reason}", "");
        }
    }
    text
}

/// About four digits, also of small and large numbers.
fn number(x: f64) -> String {
    match x.abs() {
        a if a >= 1000.0 || a.fract() == 0.0 => format!("{x:.0}"),
        a if a >= 10.0 => format!("{x:.1}"),
        _ => format!("{x:.4}"),
    }
}

/// The command that was typed, the seeds, and what is not modelled.
pub fn redo(seeds: Vec<u64>, assumed: Vec<AssumedFigure>) -> String {
    let words: Vec<String> = std::env::args().collect();
    foot_text(&Redo::new(&words, seeds, assumed), &[])
}
