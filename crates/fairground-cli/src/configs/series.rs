//! The counts that a configuration goes through, by the rules of the suites: what MMTests' scripts
//! and LKP's job files make of the number of CPUs.

use fairground_sim::machine_file::Topology;
use serde::Deserialize;

/// What a series depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// CPUs.
    pub cpus: u32,
    /// NUMA nodes with CPUs.
    pub nodes: u32,
    /// CPUs of a core.
    pub core: u32,
    /// CPUs that share a last-level cache.
    pub llc: u32,
}

impl Shape {
    /// Of a machine.
    pub fn new(topology: &Topology) -> Self {
        let cpus = topology.nr_cpus() as u32;
        let mut nodes: Vec<u32> = topology.cpus.iter().map(|place| place.numa_node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let each = |parts: usize| cpus / (parts as u32).max(1);
        Self {
            cpus,
            nodes: (nodes.len() as u32).max(1),
            core: each(topology.nr_cores()),
            llc: each(topology.nr_llcs()),
        }
    }

    /// CPUs of a node.
    fn node(self) -> u32 {
        self.cpus / self.nodes
    }
}

/// A count, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Count {
    /// This many.
    Fixed(u32),
    /// A part of the machine.
    Of(Part),
}

/// So many percent of the CPUs, `less` fewer, but `most`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    percent: f64,
    #[serde(default)]
    of: Whole,
    #[serde(default)]
    less: u32,
    most: Option<u32>,
}

/// What a percentage is of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Whole {
    /// All CPUs.
    #[default]
    Cpus,
    /// The CPUs of a NUMA node.
    Node,
}

impl Count {
    /// On a machine.
    pub fn on(self, shape: Shape) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Of(part) => {
                let whole = match part.of {
                    Whole::Cpus => shape.cpus,
                    Whole::Node => shape.node(),
                };
                // Of whole CPUs; the suites round down.
                let share = (f64::from(whole) * part.percent / 100.0) as u32;
                let count = share.saturating_sub(part.less);
                count.min(part.most.unwrap_or(u32::MAX)).max(1)
            }
        }
    }

    /// As `4 x CPUs, at most 296`.
    pub fn words(self) -> String {
        let Self::Of(part) = self else {
            return self.on(Shape::NONE).to_string();
        };
        let whole = match part.of {
            Whole::Cpus => "CPUs",
            Whole::Node => "CPUs of a node",
        };
        let mut words = match part.percent {
            100.0 => whole.to_string(),
            percent if percent > 100.0 && percent % 100.0 == 0.0 => {
                format!("{} x {whole}", percent / 100.0)
            }
            percent => format!("{percent} % of the {whole}"),
        };
        if part.less > 0 {
            words += &format!(" - {}", part.less);
        }
        if let Some(most) = part.most {
            words += &format!(", at most {most}");
        }
        words
    }
}

impl Shape {
    const NONE: Self = Self {
        cpus: 1,
        nodes: 1,
        core: 1,
        llc: 1,
    };
}

/// Counts from the least to the most.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Series {
    /// Four steps within each of core, cache, node, machine, twice and four times the machine.
    Topology {
        /// The least.
        from: Count,
        /// The most.
        to: Count,
    },
    /// Steps of 2 and 6, or of 3, 9 and 31.
    LargeStride {
        /// The least.
        from: Count,
        /// The most.
        to: Count,
    },
    /// Powers of two, and the most.
    PowersOfTwo {
        /// The least.
        from: Count,
        /// The most.
        to: Count,
    },
    /// These.
    List {
        /// The counts.
        values: Vec<Count>,
    },
}

impl Series {
    /// The counts on a machine.
    pub fn on(&self, shape: Shape) -> Vec<u32> {
        let (from, to, mut all) = match self {
            Self::List { values } => {
                let mut all: Vec<u32> = Vec::new();
                for count in values.iter().map(|value| value.on(shape)) {
                    if !all.contains(&count) {
                        all.push(count);
                    }
                }
                return all;
            }
            Self::Topology { from, to } => {
                let to = to.on(shape);
                (from.on(shape), to, topology(shape, to))
            }
            Self::LargeStride { from, to } => {
                let (from, to) = (from.on(shape), to.on(shape));
                (from, to, large_stride(shape.cpus, from, to))
            }
            Self::PowersOfTwo { from, to } => {
                let (from, to) = (from.on(shape), to.on(shape));
                let doubled = std::iter::successors(Some(from.max(1)), |n| n.checked_mul(2));
                (from, to, doubled.take_while(|n| *n <= to).collect())
            }
        };
        all.extend([from, to]);
        all.retain(|count| (from..=to).contains(count));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// As `1 to 2 x CPUs in large strides`.
    pub fn words(&self) -> String {
        let (from, to, how) = match self {
            Self::List { values } => {
                let words: Vec<String> = values.iter().map(|count| count.words()).collect();
                return words.join("; ");
            }
            Self::Topology { from, to } => (from, to, "by the topology"),
            Self::LargeStride { from, to } => (from, to, "in large strides"),
            Self::PowersOfTwo { from, to } => (from, to, "by powers of two"),
        };
        format!("{} to {}; {how}", from.words(), to.words())
    }
}

/// From one level of the machine to the next in four equal steps. MMTests computes a step to one
/// decimal, cut off, and cuts the decimals off each count.
fn topology(shape: Shape, to: u32) -> Vec<u32> {
    let Shape {
        cpus, core, llc, ..
    } = shape;
    let levels = [
        (1, core),
        (core, llc),
        (llc, shape.node()),
        (shape.node(), cpus),
        (cpus, 2 * cpus),
        (cpus, 4 * cpus),
        (4 * cpus, to),
    ];
    let mut all = Vec::new();
    for (from, to) in levels {
        if to <= from {
            continue;
        }
        let step_tenths = (to - from) * 10 / 4;
        let tenths = (from * 10..=to * 10).step_by(step_tenths.max(1) as usize);
        all.extend(tenths.map(|count| count / 10));
    }
    all
}

/// The steps that MMTests' tables have had for long: 1, 4, 7, 12, 21, 30, 48, 79, 110, ...
fn large_stride(cpus: u32, from: u32, to: u32) -> Vec<u32> {
    let steps = |from: u32, step: u32, to: u32| (from..=to).step_by(step as usize);
    let mut all: Vec<u32> = Vec::new();
    if to > 32 {
        all.extend(steps(from, 3, 8));
        all.extend(steps(12, 9, 32));
        if to > cpus.saturating_mul(8) {
            all.extend(steps(48, 31, cpus));
            let last = (to - 2 * cpus) / 8;
            all.extend(steps(2 * cpus, if last > 0 { last } else { 31 }, to));
        } else {
            all.extend(steps(48, 31, to));
        }
    } else if to > 8 {
        all.extend(steps(from, 2, 8));
        all.extend(steps(12, 6, to));
    } else {
        all.extend(steps(from, 2, to));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_sim::machine_file::Machine;

    const SMALL: Shape = Shape {
        cpus: 8,
        nodes: 1,
        core: 2,
        llc: 8,
    };

    fn of_cpus(percent: f64, most: Option<u32>) -> Count {
        Count::Of(Part {
            percent,
            of: Whole::Cpus,
            less: 0,
            most,
        })
    }

    fn machine(id: &str) -> Shape {
        Shape::new(&Machine::builtin(id).expect("built in").topology)
    }

    #[test]
    fn the_topology_is_walked_in_four_steps_a_level() {
        let series = Series::Topology {
            from: Count::Fixed(1),
            to: of_cpus(400.0, Some(296)),
        };
        let small = [1, 2, 3, 5, 6, 8, 10, 12, 14, 16, 20, 26, 32];
        // 1 to 2; 2 to 8 by 1.5; 8 to 16 by 2; 8 to 32 by 6.
        let mut expected = small.to_vec();
        expected.retain(|n| ![20, 26].contains(n));
        expected.extend([20, 26]);
        expected.sort_unstable();
        assert_eq!(series.on(SMALL), expected);
        let large = series.on(machine("spr-8480-2s"));
        // Nothing above 296 groups: 224 to 448 by 56, 224 to 896 by 168.
        assert_eq!(large, [1, 2, 29, 57, 84, 112, 140, 168, 196, 224, 280, 296]);
    }

    #[test]
    fn large_strides_are_those_of_the_published_tables() {
        let series = |percent| Series::LargeStride {
            from: Count::Fixed(1),
            to: of_cpus(percent, None),
        };
        assert_eq!(series(200.0).on(SMALL), [1, 3, 5, 7, 12, 16]);
        assert_eq!(series(100.0).on(SMALL), [1, 3, 5, 7, 8]);
        let shape = machine("icx-8358-2s");
        assert_eq!(
            series(200.0).on(shape),
            [1, 4, 7, 12, 21, 30, 48, 79, 110, 141, 172, 203, 234, 256]
        );
        // Beyond 8 x CPUs an eighth of what is left at a time.
        let futexes = [
            1, 4, 7, 12, 16, 21, 30, 78, 140, 202, 264, 326, 388, 450, 512,
        ];
        assert_eq!(series(6400.0).on(SMALL), futexes);
    }

    #[test]
    fn powers_of_two_end_with_the_most() {
        let series = Series::PowersOfTwo {
            from: Count::Fixed(1),
            to: Count::Of(Part {
                percent: 100.0,
                of: Whole::Node,
                less: 1,
                most: None,
            }),
        };
        assert_eq!(series.on(SMALL), [1, 2, 4, 7]);
        assert_eq!(
            series.on(machine("spr-8480-2s")),
            [1, 2, 4, 8, 16, 32, 64, 111]
        );
        assert_eq!(series.words(), "1 to CPUs of a node - 1; by powers of two");
    }

    #[test]
    fn percentages_are_rounded_down_and_not_repeated() {
        let series = Series::List {
            values: vec![Count::Fixed(1), of_cpus(12.5, None), of_cpus(1600.0, None)],
        };
        assert_eq!(series.on(SMALL), [1, 128]);
        assert_eq!(series.on(machine("spr-8480-2s")), [1, 28, 3584]);
        assert_eq!(series.words(), "1; 12.5 % of the CPUs; 16 x CPUs");
    }
}
