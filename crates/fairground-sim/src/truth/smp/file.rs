//! One file of a recording: what kind it is, and its lines and rows, each error with its place.

use serde::de::DeserializeOwned;

use super::columns;
use crate::truth::TruthError;
use crate::truth::read_case::placed;

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `topology/NAME.json`
    Topology,
    /// `fork/decisions_*.jsonl`, `wake/decisions_*.jsonl`
    Choice,
    /// `fork/storm.csv`
    Storm,
    /// `balance/lb_decisions_*.jsonl`
    Attempts,
    /// `balance/intervals_*.csv`
    Intervals,
    /// `balance/run_*.json`
    Run,
    /// `pelt/updates_*.csv`
    Updates,
    /// `pelt/group_shares_*.csv`
    GroupShares,
    /// `pelt/events_*.csv`
    Events,
    /// `pelt/run_*.json`
    PeltRun,
    /// `tg_load_avg.csv`
    TgLoadAvg,
    /// `nohz_kick.csv`
    NohzKick,
    /// `h_load.csv`
    HLoad,
}

/// Place, beginning and end of the names of each kind.
pub(super) const KINDS: &[(&str, &str, &str, Kind)] = &[
    ("topology", "", ".json", Kind::Topology),
    ("fork", "decisions_", ".jsonl", Kind::Choice),
    ("wake", "decisions_", ".jsonl", Kind::Choice),
    ("fork", "storm", ".csv", Kind::Storm),
    ("balance", "lb_decisions_", ".jsonl", Kind::Attempts),
    ("balance", "intervals_", ".csv", Kind::Intervals),
    ("balance", "run_", ".json", Kind::Run),
    ("pelt", "updates_", ".csv", Kind::Updates),
    ("pelt", "group_shares_", ".csv", Kind::GroupShares),
    ("pelt", "events_", ".csv", Kind::Events),
    ("pelt", "run_", ".json", Kind::PeltRun),
    ("", "tg_load_avg", ".csv", Kind::TgLoadAvg),
    ("", "nohz_kick", ".csv", Kind::NohzKick),
    ("", "h_load", ".csv", Kind::HLoad),
];

impl Kind {
    /// The kind of the file at `name`, relative to the recording.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let (dir, file) = name.rsplit_once('/').unwrap_or(("", name));
        let fits = |(d, start, end, _): &&(&str, &str, &str, Self)| {
            let one = !start.is_empty() && !start.ends_with('_');
            let long_enough = file.len() > start.len() + end.len();
            *d == dir && file.starts_with(start) && file.ends_with(end) && (long_enough != one)
        };
        KINDS.iter().find(fits).map(|row| row.3)
    }
}

/// One file.
pub(super) struct File<'a> {
    /// Name relative to the recording.
    pub name: &'a str,
    /// Name in messages.
    pub shown: String,
    pub kind: Kind,
    pub text: &'a str,
}

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
                let unknown = head.iter().find(|name| !allowed::<T>(name));
                return match unknown.filter(|_| rows.is_empty()) {
                    Some(name) => Err(self.error(1, format!("unknown column '{name}'"))),
                    None => Ok(rows),
                };
            }
            let row = record.deserialize(Some(&head));
            rows.push((line, row.map_err(|e| self.error(line, plain(&e)))?));
        }
    }
}

/// Whether rows may have a column.
fn allowed<T: DeserializeOwned>(column: &str) -> bool {
    columns::of::<T>().is_none_or(|known| known.contains(&column))
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
        let line = e.inner().line();
        (line.max(1), placed(e))
    })?;
    json.end().map_err(|e| (e.line().max(1), e.to_string()))?;
    Ok(value)
}
