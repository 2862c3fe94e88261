//! Figures with their origin, as a machine file holds them.

use std::collections::BTreeMap;

use crate::sample::Spread;

/// How sure a figure is, in the words of machines/README.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conf {
    /// Measured here.
    Measured,
    /// Arithmetic on what was measured here.
    Derived,
    /// Measured here, but not what was asked for, or impossible beside others.
    Doubtful,
    /// Not measured: it is another machine's.
    Estimate,
}

impl Conf {
    /// The word in machine files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Derived => "derived",
            // The format has no word for it; what it must not pass for is a measurement.
            Self::Doubtful | Self::Estimate => "estimate",
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Table and key: `transfer.same_socket`, `cache.l2.latency`.
    pub path: String,
    /// Value, with its range where there is one.
    pub value: Spread,
    /// `ns`, `cycles`, ...
    pub unit: &'static str,
    /// How sure.
    pub conf: Conf,
    /// How it was measured, or why it was not.
    pub note: String,
}

/// The machine that stands in for what cannot be measured.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// Its name.
    pub id: String,
    /// Its figures by path.
    pub figures: BTreeMap<String, f64>,
}

/// All figures of a machine, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    list: Vec<Figure>,
}

impl Figures {
    /// Adds a measured one.
    pub fn measured(&mut self, path: &str, value: Spread, unit: &'static str, note: &str) {
        self.add(path, value, unit, Conf::Measured, note.into());
    }

    /// Adds one that follows from measured ones.
    pub fn derived(&mut self, path: &str, v: f64, unit: &'static str, note: &str) {
        let value = Spread { v, lo: v, hi: v };
        self.add(path, value, unit, Conf::Derived, note.into());
    }

    /// Adds the first of `paths` that `base` has, under the name of the first; false if it has
    /// none.
    pub fn from_base(
        &mut self,
        base: &Base,
        paths: &[&str],
        unit: &'static str,
        why: &str,
    ) -> bool {
        let found = paths
            .iter()
            .find_map(|p| base.figures.get(*p).map(|v| (*p, *v)));
        let (Some((from, v)), Some(path)) = (found, paths.first()) else {
            return false;
        };
        let what = if from == *path {
            String::new()
        } else {
            format!(" ({from})")
        };
        let note = format!("{why}; value of {}{what}", base.id);
        self.add(path, Spread { v, lo: v, hi: v }, unit, Conf::Estimate, note);
        true
    }

    /// Makes a measured one doubtful, and says why.
    pub fn doubt(&mut self, path: &str, why: &str) {
        for figure in self.list.iter_mut().filter(|f| f.path == path) {
            figure.conf = Conf::Doubtful;
            figure.note = format!("{}; {why}", figure.note);
        }
    }

    /// One by path.
    pub fn get(&self, path: &str) -> Option<&Figure> {
        self.list.iter().find(|f| f.path == path)
    }

    /// All, in the order in which they came.
    pub fn iter(&self) -> impl Iterator<Item = &Figure> {
        self.list.iter()
    }

    fn add(&mut self, path: &str, value: Spread, unit: &'static str, conf: Conf, note: String) {
        self.list.push(Figure {
            path: path.into(),
            value,
            unit,
            conf,
            note,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_the_base_says_so() {
        let base = Base {
            id: "other".into(),
            figures: BTreeMap::from([("transfer.same_socket".into(), 55.0)]),
        };
        let mut figures = Figures::default();
        let paths = ["transfer.cross_socket", "transfer.same_socket"];
        assert!(figures.from_base(&base, &paths, "ns", "one CPU allowed"));
        assert!(!figures.from_base(&base, &["alu.div64"], "cycles", "x"));
        let f = figures.get("transfer.cross_socket").unwrap();
        assert_eq!((f.value.v, f.conf), (55.0, Conf::Estimate));
        assert_eq!(
            f.note,
            "one CPU allowed; value of other (transfer.same_socket)"
        );
    }
}
