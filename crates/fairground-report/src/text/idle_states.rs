//! One line a side: which idle states its CPUs were in.

use super::head::labelled;
use crate::number::{count, number};
use crate::result::{IdleState, Variant};
use crate::stats::finite;

/// Shares below this, in percent of all CPU time, are not worth a place in the line.
const LEAST_PCT: f64 = 0.005;

/// By side, each state with its share of the time of all CPUs and its stays: means over the runs.
/// Empty if no CPU was idle to speak of, and where a machine has one state to be idle in.
pub fn idle_states_text(variants: &[Variant]) -> String {
    let lines = variants.iter().filter_map(|v| {
        let words = words(v)?;
        let side = (variants.len() > 1).then(|| format!("{}: ", v.name));
        Some(labelled("idle in", &(side.unwrap_or_default() + &words)))
    });
    lines.collect()
}

fn words(variant: &Variant) -> Option<String> {
    let states = idle_means(variant);
    let used: Vec<String> = states
        .iter()
        .filter(|s| s.pct >= LEAST_PCT)
        .map(|s| {
            let (share, stays) = (number(Some(s.pct)), count(s.usage));
            format!("{} {share}% of CPU time ({stays} stays)", s.name)
        })
        .collect();
    (states.len() > 1 && !used.is_empty()).then(|| used.join(", "))
}

/// An idle state: means over the runs of a side.
pub(crate) struct IdleMean<'a> {
    /// Its name.
    pub name: &'a str,
    /// Share of the time of all CPUs, percent.
    pub pct: f64,
    /// Stays.
    pub usage: f64,
    /// Mean length of a stay, us; `None` without one.
    pub stay_us: Option<f64>,
}

/// All states of the machine, shallowest first.
pub(crate) fn idle_means(variant: &Variant) -> Vec<IdleMean<'_>> {
    let Some(first) = variant.runs.first() else {
        return Vec::new();
    };
    let runs = variant.runs.len() as f64;
    let mean = |state: &'_ IdleState| {
        let of_runs = variant.runs.iter().flat_map(|r| &r.idle_states);
        let same = of_runs.filter(|s| s.name == state.name);
        same.fold((0.0, 0.0, 0.0), |(pct, usage, ns), s| {
            let pct = pct + 100.0 * s.share.unwrap_or(0.0);
            (pct, usage + s.usage as f64, ns + s.time_ns as f64)
        })
    };
    let of = |state| {
        let (pct, usage, ns) = mean(state);
        IdleMean {
            name: &state.name,
            pct: pct / runs,
            usage: usage / runs,
            stay_us: finite(ns / usage / 1e3),
        }
    };
    first.idle_states.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Run;

    fn run(seed: u64, states: &[(&str, u64, f64)]) -> Run {
        let state = |(name, usage, share): &(&str, u64, f64)| IdleState {
            name: (*name).into(),
            usage: *usage,
            time_ns: 0,
            share: Some(*share / 100.0),
        };
        Run {
            idle_states: states.iter().map(state).collect(),
            ..Run::new(seed)
        }
    }

    #[test]
    fn a_line_has_the_means_of_a_side_and_states_that_were_used() {
        let runs = vec![
            run(1, &[("POLL", 9, 0.001), ("C1", 10, 20.0), ("C6", 3, 50.0)]),
            run(2, &[("POLL", 1, 0.001), ("C1", 20, 30.0), ("C6", 1, 40.0)]),
        ];
        let side = |name: &str, runs| Variant {
            name: name.into(),
            runs,
            ..Variant::default()
        };
        let one = [side("base", runs.clone())];
        assert_eq!(
            idle_states_text(&one),
            "idle in   C1 25.00% of CPU time (15 stays), C6 45.00% of CPU time (2 stays)\n"
        );
        let busy = vec![run(1, &[("POLL", 0, 0.0), ("C1", 0, 0.0)])];
        let both = [side("base", busy), side("patch", runs)];
        let text = idle_states_text(&both);
        assert!(text.starts_with("idle in   patch: C1 25.00%"), "{text}");
        let guest = [side("base", vec![run(1, &[("HLT", 5, 50.0)])])];
        assert_eq!(idle_states_text(&guest), "", "there is nothing to choose");
    }
}
