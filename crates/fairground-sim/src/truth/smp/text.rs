//! Reading the texts of a recording: lines, numbers and lists of CPUs, each error with its place.

use fairground::value::{Cpu, CpuMask, MAX_CPUS};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error, Unexpected};

use super::files::File;
use crate::truth::TruthError;

/// Largest number that a record may have where the engine multiplies it: far above every load
/// average and capacity, and small enough that no product overflows.
const AMOUNT_MAX: u64 = 1 << 36;
const TASKS_MAX: u32 = 1 << 20;

impl File<'_> {
    /// An error at a line (from 1) of this file.
    pub(super) fn error(&self, line: usize, what: impl std::fmt::Display) -> TruthError {
        TruthError::Format {
            path: format!("{}:{line}", self.shown),
            what: what.to_string(),
        }
    }

    /// The records of a file with one JSON object a line, with their lines.
    pub(super) fn json_lines<T: DeserializeOwned>(
        &self,
    ) -> impl Iterator<Item = Result<(usize, T), TruthError>> {
        let lines = self.text.lines().enumerate();
        let lines = lines.filter(|(_, text)| !text.trim().is_empty());
        lines.map(|(at, text)| match json(text) {
            Ok(record) => Ok((at + 1, record)),
            Err(what) => Err(self.error(at + 1, what)),
        })
    }

    /// The whole file as one JSON value.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, TruthError> {
        json_with_line(self.text).map_err(|(line, what)| self.error(line, what))
    }

    /// The rows of a CSV file with a head, with their lines.
    pub(super) fn rows<T: DeserializeOwned>(&self) -> Result<Vec<(usize, T)>, TruthError> {
        let mut reader = csv::Reader::from_reader(self.text.as_bytes());
        let head = reader.headers().map_err(|e| self.error(1, e))?.clone();
        if head.iter().all(str::is_empty) {
            return Err(self.error(1, "no head of columns"));
        }
        let mut rows = Vec::new();
        let mut record = csv::StringRecord::new();
        loop {
            let line = usize::try_from(reader.position().line()).unwrap_or(usize::MAX);
            let more = reader.read_record(&mut record);
            let more = more.map_err(|e| self.error(line, plain(&e)))?;
            if !more {
                return Ok(rows);
            }
            let row = record.deserialize(Some(&head));
            rows.push((line, row.map_err(|e| self.error(line, plain(&e)))?));
        }
    }
}

/// The error of a row without the position that the reader adds: the line is told already.
fn plain(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("{len} columns instead of {expected_len}")
        }
        _ => error.to_string(),
    }
}

fn json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    json_with_line(text).map_err(|(_, what)| what)
}

/// The value, or the line of the error and what it is, with the path of the key.
fn json_with_line<T: DeserializeOwned>(text: &str) -> Result<T, (usize, String)> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|e| {
        let path = e.path().to_string();
        let inner = e.into_inner();
        let what = match path.as_str() {
            "." => inner.to_string(),
            path => format!("{path}: {inner}"),
        };
        (inner.line().max(1), what)
    })?;
    json.end().map_err(|e| (e.line().max(1), e.to_string()))?;
    Ok(value)
}

/// A number that the engine may multiply.
pub(super) fn amount<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let n = u64::deserialize(d)?;
    if n > AMOUNT_MAX {
        let most = format!("a number up to {AMOUNT_MAX}");
        return Err(D::Error::invalid_value(
            Unexpected::Unsigned(n),
            &most.as_str(),
        ));
    }
    Ok(n)
}

/// 0 or 1.
pub(super) fn bit<'de, D: Deserializer<'de>>(d: D) -> Result<bool, D::Error> {
    match u64::deserialize(d)? {
        0 => Ok(false),
        1 => Ok(true),
        n => Err(D::Error::invalid_value(Unexpected::Unsigned(n), &"0 or 1")),
    }
}

/// A number of tasks, of which those of all CPUs can be summed.
pub(super) fn tasks<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    let n = u32::deserialize(d)?;
    if n > TASKS_MAX {
        let most = format!("a number of tasks up to {TASKS_MAX}");
        return Err(D::Error::invalid_value(
            Unexpected::Unsigned(n.into()),
            &most.as_str(),
        ));
    }
    Ok(n)
}

/// A number of tasks in a row of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Tasks(#[serde(deserialize_with = "tasks")] pub u32);

/// An amount in a row of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Amount(#[serde(deserialize_with = "amount")] pub u64);

/// 0 or 1 in a row of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Bit(#[serde(deserialize_with = "bit")] pub bool);

/// CPUs as in `0-3,8`.
pub(super) fn cpu_list(text: &str) -> Result<CpuMask, String> {
    // The kernel prints something between two commas; who writes by hand may not.
    let cpus = match text.split(',').any(str::is_empty) {
        false => crate::spec::cpu_list(text).ok(),
        true => None,
    };
    let fit = |cpus: &Vec<u32>| cpus.iter().all(|cpu| (*cpu as usize) < MAX_CPUS);
    let cpus = cpus.filter(fit);
    let cpus = cpus.ok_or_else(|| format!("'{text}' is not a list of CPUs like 0-3,8"))?;
    Ok(cpus.into_iter().map(Cpu).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_as_the_kernel_prints_them() {
        let mask = cpu_list("0-2,5").expect("a list");
        assert_eq!(mask.iter().map(|c| c.0).collect::<Vec<_>>(), [0, 1, 2, 5]);
        for wrong in ["", "a", "3-1", "0-512", "1,,2", "-1"] {
            assert!(cpu_list(wrong).is_err(), "{wrong}");
        }
    }
}
