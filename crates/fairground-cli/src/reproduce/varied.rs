//! What is assumed, each at both ends of its range, for `--sensitivity`.

use std::collections::BTreeSet;

use fairground::policy::Features;
use fairground_sim::machine_file::{CostScale, Machine};

use super::experiment::Experiment;
use crate::failure::Failure;

/// One figure at one end of its range.
#[derive(Clone, Debug, PartialEq)]
pub enum Varied {
    /// A figure of the machine file by path.
    Figure(String, End),
    /// What is assumed outside the machine files: its name, and the factors on it.
    Scaled(&'static str, CostScale),
    /// No longer service when very many requests queue on one line.
    NoKnee,
    /// Ticks a second.
    Hz(u32),
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The smallest plausible value.
    Low,
    /// The greatest.
    High,
}

/// Outstanding requests of a line from which on its service takes longer.
const KNEE: &str = "atomics.ingress_limit";

/// By how much longer. While it is 0 there is no knee, wherever it would begin.
const KNEE_SLOPE: &str = "atomics.ingress_slope";

impl Varied {
    /// As the table names it.
    pub fn name(&self) -> String {
        match self {
            Self::Figure(path, End::Low) => format!("{path} low"),
            Self::Figure(path, End::High) => format!("{path} high"),
            Self::Scaled(name, _) => (*name).to_string(),
            Self::NoKnee => "no knee".into(),
            Self::Hz(hz) => format!("HZ {hz}"),
        }
    }

    /// The machine with it. One that it cannot change stays equal, its hash too, so nothing is
    /// simulated once more and nothing is counted as varied.
    ///
    /// # Errors
    /// A value that the machine refuses.
    pub fn apply(&self, machine: &Machine, features: &mut Features) -> Result<Machine, Failure> {
        let (path, value) = match self {
            Self::Scaled(_, scale) => return Ok(machine.with_cost_scale(*scale)),
            Self::Hz(hz) => {
                crate::plan::set(features, "hz", &hz.to_string())?;
                return Ok(machine.clone());
            }
            Self::NoKnee => (KNEE, Some(0.0)),
            Self::Figure(path, end) => (path.as_str(), end.of(machine, path)),
        };
        let varies = path != KNEE || machine.figure(KNEE_SLOPE).is_some_and(|f| f.v > 0.0);
        match (machine.figure(path), value) {
            (Some(figure), Some(value)) if varies && value != figure.v => {
                machine.with_figure(path, value).map_err(Failure::new)
            }
            _ => Ok(machine.clone()),
        }
    }
}

impl End {
    /// The figure there: half or twice as much where its file gives no range.
    fn of(self, machine: &Machine, path: &str) -> Option<f64> {
        let figure = machine.figure(path)?;
        Some(match self {
            Self::Low => figure.lo.unwrap_or(figure.v / 2.0),
            Self::High => figure.hi.unwrap_or(figure.v * 2.0),
        })
    }
}

/// Factors on what no machine file has. Ways out of idle states that a driver's table promises: 30
/// or 50 % of it instead of 40, and where the least counts instead (C1), 0.75 or 1.25 us for 1.
const SCALED: [(&str, CostScale); 10] = {
    const ONE: CostScale = CostScale::NONE;
    [
        (
            "scheduler costs x0.5",
            CostScale {
                scheduler: 0.5,
                ..ONE
            },
        ),
        (
            "scheduler costs x2",
            CostScale {
                scheduler: 2.0,
                ..ONE
            },
        ),
        ("other kernel costs x0.5", CostScale { kernel: 0.5, ..ONE }),
        ("other kernel costs x2", CostScale { kernel: 2.0, ..ONE }),
        (
            "occupancy of a load x0.5",
            CostScale {
                load_occupancy: 0.5,
                ..ONE
            },
        ),
        (
            "occupancy of a load x2",
            CostScale {
                load_occupancy: 2.0,
                ..ONE
            },
        ),
        (
            "hidden part of a miss x0.5",
            CostScale {
                load_overlap: 0.5,
                ..ONE
            },
        ),
        (
            "hidden part of a miss x1.5",
            CostScale {
                load_overlap: 1.5,
                ..ONE
            },
        ),
        (
            "way out of idle x0.75",
            CostScale {
                idle_exit: 0.75,
                ..ONE
            },
        ),
        (
            "way out of idle x1.25",
            CostScale {
                idle_exit: 1.25,
                ..ONE
            },
        ),
    ]
};

/// Everything that is assumed of the experiment's machines: what concerns all code first, then
/// the figures of their files.
///
/// # Errors
/// A machine that does not exist.
pub fn all(experiment: &Experiment) -> Result<Vec<Varied>, Failure> {
    let mut paths = BTreeSet::new();
    for run in &experiment.runs {
        let machine = Machine::from_path_or_id(&run.machine).map_err(Failure::new)?;
        let numbers = machine.assumed().into_iter();
        let numbers = numbers.filter(|(_, f)| f.v.is_finite());
        paths.extend(numbers.map(|(path, _)| path.to_string()));
    }
    let mut all: Vec<Varied> = SCALED
        .map(|(name, scale)| Varied::Scaled(name, scale))
        .into();
    all.extend([Varied::Hz(250), Varied::Hz(1000), Varied::NoKnee]);
    let both = |path: &String| [End::Low, End::High].map(|end| Varied::Figure(path.clone(), end));
    all.extend(paths.iter().flat_map(both));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(varied: &Varied, machine: &Machine) -> Machine {
        let mut features = Features::default();
        varied
            .apply(machine, &mut features)
            .ok()
            .expect("a machine")
    }

    #[test]
    fn a_knee_without_a_slope_is_nothing_to_vary_but_its_slope_is() {
        let machine = Machine::from_path_or_id("spr-8480-2s").expect("a machine");
        let slope = |end| Varied::Figure(KNEE_SLOPE.into(), end);
        let limit = Varied::Figure(KNEE.into(), End::High);
        for varied in [Varied::NoKnee, slope(End::Low), limit.clone()] {
            let same = applied(&varied, &machine);
            assert_eq!(same.hash(), machine.hash(), "{varied:?}");
        }
        let steep = applied(&slope(End::High), &machine);
        assert_eq!(steep.figure(KNEE_SLOPE).map(|f| f.v), Some(1.0));
        for varied in [Varied::NoKnee, limit] {
            assert_ne!(applied(&varied, &steep).hash(), steep.hash(), "{varied:?}");
        }
    }
}
