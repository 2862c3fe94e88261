//! Files that a command reads: no output may replace one of them.

use std::path::{Path, PathBuf};

use fairground_sim::machine_file::Machine;

use crate::failure::Failure;

/// Files that are read, and directories all of whose files are.
#[derive(Clone, Debug, Default)]
pub struct Inputs(Vec<PathBuf>);

impl Inputs {
    /// Of these files and directories.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self(paths.into_iter().map(Into::into).collect())
    }

    /// Of the machine of this name, too.
    pub fn add_machine(&mut self, name: &str) {
        self.0.extend(machine_file(name).map(PathBuf::from));
    }

    /// All that `other` has, too.
    pub fn add(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
    }

    /// What `option` names, a regular file if it exists, is none of them.
    ///
    /// # Errors
    /// It is.
    pub fn spare(&self, option: &str, output: &Path) -> Result<(), Failure> {
        // What does not exist yet is read by nobody.
        let Ok(place) = output.canonicalize() else {
            return Ok(());
        };
        let in_full = |input: &PathBuf| input.canonicalize().ok();
        let read = |input: &&PathBuf| in_full(input).is_some_and(|read| place.starts_with(read));
        let Some(input) = self.0.iter().find(read) else {
            return Ok(());
        };
        let replaced: &Path = if input.is_dir() { output } else { input };
        let message = format!(
            "{option} would replace `{}`, which is read",
            replaced.display()
        );
        Err(Failure::with_help(message, "give another file"))
    }
}

/// The file that is read for a machine of this name, as `Machine::from_path_or_id` takes it apart;
/// none for one that is built in.
pub fn machine_file(name: &str) -> Option<&str> {
    if Machine::builtin_ids().any(|id| id == name) {
        return None;
    }
    match name.rsplit_once('@') {
        Some((path, _)) if path.ends_with(".xml") => Some(path),
        _ => Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_from_its_file_if_it_has_one() {
        for (name, file) in [
            ("spr-8480-2s", None),
            ("m.toml", Some("m.toml")),
            ("a.xml@spr-8480-2s", Some("a.xml")),
            ("me@home.toml", Some("me@home.toml")),
        ] {
            assert_eq!(machine_file(name), file, "{name}");
        }
    }
}
