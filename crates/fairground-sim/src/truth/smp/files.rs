//! A directory of record files: the kind of each is told by its place and name.

use std::collections::BTreeMap;
use std::path::Path;

use super::file::{File, KINDS, Kind};
use super::machine::Guest;
use crate::glob::fits;
use crate::limited;
use crate::truth::{BYTES_MAX, TruthError};

/// Directories of the format.
const DIRS: [&str; 5] = ["topology", "fork", "wake", "balance", "pelt"];

fn file_stem(file: &str) -> &str {
    file.split_once('.').map_or(file, |(stem, _)| stem)
}

/// Whether `dir` looks like a recording in this format.
#[must_use]
pub fn is_recording(dir: &Path) -> bool {
    let tables = KINDS.iter().filter(|row| row.0.is_empty());
    let table = |row: &(&str, &str, &str, Kind)| dir.join(format!("{}{}", row.1, row.2)).is_file();
    DIRS.iter().any(|d| dir.join(d).is_dir()) || tables.into_iter().any(table)
}

/// All files of a recording.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Shown before each name in messages.
    prefix: String,
    texts: BTreeMap<String, String>,
}

impl Recording {
    /// From texts by name relative to the recording, such as `wake/decisions_2x8.jsonl`.
    #[must_use]
    pub fn new(texts: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            prefix: String::new(),
            texts: texts.into_iter().collect(),
        }
    }

    /// Reads all files below `dir`. Beside them: those that cannot be read or have no place in the
    /// format, and why. Texts for people (`*.md`) and hidden files are passed by.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn read(dir: &Path) -> Result<(Self, Vec<TruthError>), TruthError> {
        let mut recording = Self {
            prefix: format!("{}/", dir.display()),
            texts: BTreeMap::new(),
        };
        let mut refused = recording.read_dir(dir, "")?;
        for sub in DIRS {
            if dir.join(sub).is_dir() {
                refused.extend(recording.read_dir(&dir.join(sub), sub)?);
            }
        }
        Ok((recording, refused))
    }

    fn read_dir(&mut self, dir: &Path, under: &str) -> Result<Vec<TruthError>, TruthError> {
        let failed = |path: &Path, source| TruthError::Read {
            path: path.display().to_string(),
            source,
        };
        let entries = std::fs::read_dir(dir).and_then(Iterator::collect);
        let mut entries: Vec<std::fs::DirEntry> = entries.map_err(|e| failed(dir, e))?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        let mut refused = Vec::new();
        for entry in entries {
            let path = entry.path();
            let Some(file) = path.file_name().and_then(|f| f.to_str()) else {
                refused.push(unknown(&path));
                continue;
            };
            let for_people = file.starts_with('.') || file.ends_with(".md");
            if for_people || (under.is_empty() && DIRS.contains(&file) && path.is_dir()) {
                continue;
            }
            let name = match under {
                "" => file.to_string(),
                under => format!("{under}/{file}"),
            };
            if Kind::of(&name).is_none() {
                refused.push(unknown(&path));
                continue;
            }
            match limited::read_text(&path, BYTES_MAX) {
                Ok(text) => drop(self.texts.insert(name, text)),
                Err(e) => refused.push(failed(&path, e)),
            }
        }
        Ok(refused)
    }

    /// Names of the files that fit `glob` (`*` and `?`), as a whole or without the directory.
    ///
    /// # Errors
    /// When none fits.
    pub fn names(&self, glob: &str) -> Result<Vec<&str>, TruthError> {
        let fit = |name: &&str| {
            let last = name.rsplit('/').next().unwrap_or(name);
            fits(glob, name) || fits(glob, last)
        };
        let names: Vec<&str> = self.texts.keys().map(String::as_str).filter(fit).collect();
        if names.is_empty() {
            return Err(TruthError::NoCase {
                dir: self.prefix.clone(),
                glob: glob.to_string(),
            });
        }
        Ok(names)
    }

    /// Text of a file.
    pub(super) fn file<'a>(&'a self, name: &'a str) -> Result<File<'a>, TruthError> {
        let shown = format!("{}{name}", self.prefix);
        match (Kind::of(name), self.texts.get(name)) {
            (Some(kind), Some(text)) => Ok(File {
                name,
                shown,
                kind,
                text,
            }),
            _ => Err(unknown(Path::new(&shown))),
        }
    }

    /// The file `name`, if it was recorded.
    pub(super) fn file_if_there<'a>(&'a self, name: &'a str) -> Option<File<'a>> {
        self.file(name).ok()
    }

    /// The machine that a file was recorded on: its name is a part of the file's.
    pub(super) fn machine(&self, file: &File<'_>) -> Result<Guest, TruthError> {
        let stem = file_stem(file.name.rsplit('/').next().unwrap_or(file.name));
        let mut parts = stem.split('_').rev();
        let found = parts.find_map(|part| self.guest(part));
        found.unwrap_or_else(|| {
            let known: Vec<_> = self.topologies().collect();
            Err(file.error(
                1,
                format!(
                    "no part of the file's name is a machine of topology/ ({})",
                    known.join(", ")
                ),
            ))
        })
    }

    /// The machine called `name`; without a file of its own if the name says all (2x8x2: nodes,
    /// cores, threads).
    pub(super) fn guest(&self, name: &str) -> Option<Result<Guest, TruthError>> {
        let path = format!("topology/{name}.json");
        if self.texts.contains_key(&path) {
            return Some(self.file(&path).and_then(|file| Guest::read(&file)));
        }
        Guest::by_name(name).map(Ok)
    }

    fn topologies(&self) -> impl Iterator<Item = &str> {
        let names = self.texts.keys();
        names.filter_map(|n| n.strip_prefix("topology/")?.strip_suffix(".json"))
    }
}

fn unknown(path: &Path) -> TruthError {
    let names: Vec<_> = KINDS
        .iter()
        .map(|(dir, start, end, _)| match (*dir, start.ends_with('_')) {
            ("", _) => format!("{start}{end}"),
            ("topology", _) => format!("{dir}/*{end}"),
            (_, true) => format!("{dir}/{start}*{end}"),
            _ => format!("{dir}/{start}{end}"),
        })
        .collect();
    TruthError::Format {
        path: path.display().to_string(),
        what: format!("not a file of the format: expected {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_kind() {
        for (name, kind) in [
            ("topology/4x4.json", Some(Kind::Topology)),
            ("fork/decisions_bg_2x8.jsonl", Some(Kind::Choice)),
            ("fork/storm.csv", Some(Kind::Storm)),
            ("balance/run_x_2x8.json", Some(Kind::Run)),
            ("pelt/run_x_2x8.json", Some(Kind::PeltRun)),
            ("tg_load_avg.csv", Some(Kind::TgLoadAvg)),
            ("tg_load.csv", None),
            ("tg_load_avg_2.csv", None),
            ("fork/decisions_2x8.json", None),
            ("fork/run_2x8.json", None),
            ("topology/.json", None),
        ] {
            assert_eq!(Kind::of(name), kind, "{name}");
        }
    }
}
