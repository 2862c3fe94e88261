//! What `--explain` is asked: `TASK@TIME`.

use fairground_sim::workload::duration::{parse_length_ns, unit_ns};

/// `TASK@TIME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Name or thread id.
    pub who: String,
    /// From the start of the run.
    pub at_ns: u64,
}

impl Asked {
    /// Reads `TASK@TIME`; a number without a unit is in seconds, as in `perf script`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        const EXPECTED: &str = "expected TASK@TIME, e.g. hackbench@1.5ms or 1003@0.0015";
        let (who, at) = text.rsplit_once('@').ok_or(EXPECTED)?;
        if who.is_empty() {
            return Err(EXPECTED.into());
        }
        let at_ns = time(at)?;
        Ok(Self {
            who: who.into(),
            at_ns,
        })
    }
}

/// Reads a time, ns; a number without a unit is in seconds, as in `perf script`.
///
/// # Errors
/// What was expected.
pub fn time(text: &str) -> Result<u64, String> {
    const EXPECTED: &str = "expected a time, e.g. 1.5ms, 0.0015 (seconds) or 1500us";
    let end = text.find(|c: char| c.is_ascii_alphabetic() || c == 'µ');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = if unit.is_empty() { "s" } else { unit };
    let factor =
        unit_ns(unit).ok_or_else(|| format!("`{unit}` is no unit of time: s, ms, us or ns"))?;
    let number: f64 = number.trim().parse().map_err(|_| EXPECTED)?;
    let ns = number * factor;
    if !(0.0..1e18).contains(&ns) {
        return Err(EXPECTED.into());
    }
    Ok(ns.round() as u64)
}

/// Reads how long to measure, ns: as [`parse_length_ns`], and more than 0.
///
/// # Errors
/// What was expected.
pub fn measured(text: &str) -> Result<u64, String> {
    match parse_length_ns(text)? {
        0 => Err("expected a time above 0, e.g. 2s".into()),
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let at = |text: &str| Asked::parse(text).map(|a| (a.who, a.at_ns));
        assert_eq!(at("hog@1.5ms"), Ok(("hog".into(), 1_500_000)));
        assert_eq!(at("a@b@2"), Ok(("a@b".into(), 2_000_000_000)));
        assert_eq!(at("1003@7us"), Ok(("1003".into(), 7_000)));
        for bad in ["hog", "hog@", "@1s", "hog@-1s", "hog@1h", "hog@fast"] {
            assert!(at(bad).is_err(), "{bad}");
        }
    }
}
