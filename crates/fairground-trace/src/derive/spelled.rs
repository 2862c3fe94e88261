//! How attributes spell what files of groups hold: as the kernel shows it, and as scenarios and the
//! command line have it (`20ms/100ms`, `"0-3,8"`, 1 for true). A number of CPUs is refused, with
//! how what it means is written.

use fairground_sim::spec::cpu_list;
use fairground_sim::workload::cpu_counts::{limit_hint, weight_hint};
use fairground_sim::workload::limit_words::time;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// What may stand behind a key.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a text, true or false, or a list of CPUs"
)]
enum Word {
    Whole(i64),
    Number(f64),
    Flag(bool),
    Text(String),
    Cpus(Vec<u32>),
}

impl Word {
    /// As it was written.
    fn raw(&self) -> String {
        match self {
            Self::Whole(n) => n.to_string(),
            Self::Number(x) => x.to_string(),
            Self::Flag(is) => is.to_string(),
            Self::Text(text) => text.clone(),
            Self::Cpus(list) => format!("{list:?}"),
        }
    }
}

/// `cpu.max`: a text, which is read where it is used.
pub(super) fn max<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let word = Word::deserialize(from)?;
    if let Word::Text(text) = word {
        return Ok(Some(text));
    }
    let raw = word.raw();
    let told = limit_hint(&raw).map(|hint| format!("cpu.max: {hint}"));
    let told = told.unwrap_or(format!(
        "cpu.max `{raw}`: expected a text like \"20ms/100ms\""
    ));
    Err(D::Error::custom(told))
}

/// `cpu.max.burst`, in microseconds.
pub(super) fn burst<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    const EXPECTED: &str = "expected microseconds, or a time with a unit like \"20ms\"";
    let word = Word::deserialize(from)?;
    let us = match &word {
        Word::Whole(us) => u64::try_from(*us).map_err(|_| EXPECTED.to_string()),
        Word::Text(text) => time(text).map(|ns| ns / 1000),
        _ => Err(EXPECTED.into()),
    };
    let told = |e| D::Error::custom(format!("cpu.max.burst `{}`: {e}", word.raw()));
    us.map(Some).map_err(told)
}

/// `cpu.weight`; its range is checked where the line is known, too.
pub(super) fn weight<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let word = Word::deserialize(from)?;
    if let Word::Whole(n) = word
        && let Ok(weight) = u64::try_from(n)
    {
        return Ok(Some(weight));
    }
    let raw = word.raw();
    let told = weight_hint(&raw).map(|hint| format!("cpu.weight: {hint}"));
    let told = told.unwrap_or(format!("cpu.weight `{raw}`: expected 1 to 10000"));
    Err(D::Error::custom(told))
}

/// `cpu.idle`.
pub(super) fn idle<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match Word::deserialize(from)? {
        Word::Flag(is) => Ok(is),
        Word::Whole(bit @ 0..=1) => Ok(bit == 1),
        other => Err(D::Error::custom(format!(
            "cpu.idle `{}`: expected true, false, 0 or 1",
            other.raw()
        ))),
    }
}

/// A set of CPUs.
pub(super) fn cpus<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u32>>, D::Error> {
    let list = match Word::deserialize(from)? {
        Word::Cpus(list) => Ok(list),
        Word::Text(text) => cpu_list(&text),
        other => cpu_list(&other.raw()),
    };
    list.map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use fairground_sim::spec::Source;

    use crate::derive::Attributes;

    fn read(key: &str, value: &str) -> Result<Attributes, String> {
        let text = format!("[[cgroup]]\npath = \"/a\"\n\"{key}\" = {value}\n");
        Attributes::read(&Source::new("a.toml", &text)).map_err(|e| e.to_string())
    }

    #[test]
    fn files_are_read_as_scenarios_write_them() {
        const MS: u64 = 1_000_000;
        let group = |key: &str, value: &str| read(key, value).unwrap().cgroups.remove(0);
        for (value, limit) in [
            ("20ms/100ms", (Some(20 * MS), 100 * MS)),
            ("20ms", (Some(20 * MS), 100 * MS)),
            ("20000 50000", (Some(20 * MS), 50 * MS)),
            ("max", (None, 100 * MS)),
        ] {
            let value = format!("\"{value}\"");
            assert_eq!(group("cpu.max", &value).limit(), Ok(limit), "{value}");
        }
        let burst = format!("\"5ms\"\n{}", "\"cpu.max\" = \"20ms\"");
        assert_eq!(group("cpu.max.burst", &burst).burst_us, Some(5000));
        assert!(group("cpu.idle", "1").idle && !group("cpu.idle", "0").idle);
        assert!(group("cpu.idle", "true").idle);
        for value in ["\"0-1,4\"", "[0, 1, 4]"] {
            assert_eq!(group("cpuset.cpus", value).cpus, Some(vec![0, 1, 4]));
        }
        let thread = "[[thread]]\ncomm = \"x\"\ncpus = \"2-3\"\n";
        let known = Attributes::parse(thread).unwrap();
        assert_eq!(known.threads[0].cpus, Some(vec![2, 3]));
        // And written as ever.
        let known = read("cpuset.cpus", "\"0-1\"").unwrap();
        assert_eq!(Attributes::parse(&known.text()), Ok(known));
    }

    #[test]
    fn a_number_of_cpus_is_refused_with_what_it_means() {
        for (key, value, told) in [
            (
                "cpu.max",
                "\"500m\"",
                "a limit is a time per period: 50ms/100ms",
            ),
            (
                "cpu.max",
                "0.5",
                "cpu.max: `0.5` is a number of CPUs; a limit is a time per period: 50ms",
            ),
            ("cpu.max", "2", "a limit is a time per period: 200ms/100ms"),
            ("cpu.max", "\"50%\"", "50ms/100ms"),
            ("cpu.max", "20000", "expected a text like"),
            (
                "cpu.weight",
                "\"500m\"",
                "a weight of 20 (linear) or 59 (quadratic",
            ),
            ("cpu.weight", "-1", "expected 1 to 10000"),
            ("cpu.weight", "20000", "expected 1 to 10000"),
            ("cpu.max.burst", "\"5 fast\"", "cpu.max.burst `5 fast`: "),
            ("cpu.max.burst", "-1", "expected microseconds"),
            ("cpu.idle", "2", "expected true, false, 0 or 1"),
            ("cpuset.cpus", "\"4-1\"", "'4-1' is no range of CPUs"),
        ] {
            let error = read(key, value).unwrap_err();
            let place = error.starts_with("a.toml:3: ");
            assert!(place && error.contains(told), "{key} {value}: {error}");
        }
    }
}
