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
        self.0
            .extend(Machine::file_of(name).map(|(path, _)| path.into()));
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
