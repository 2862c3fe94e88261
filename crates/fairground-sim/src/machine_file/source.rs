//! Where a machine comes from: it is built in, or in a file.

use super::{BUILTIN, MAX_FILE_BYTES, Machine, MachineError, hwloc};
use crate::limited;
use crate::workload::nearest::nearest;

impl Machine {
    /// Reads a built-in id, the path of a machine file (`.toml`), or the path of `lstopo --of xml`
    /// output (`.xml`, or `FILE.xml@ID` to take the latencies from a built-in machine).
    ///
    /// # Errors
    /// Any [`MachineError`].
    pub fn from_path_or_id(arg: &str) -> Result<Self, MachineError> {
        let Some((path, base)) = Self::file_of(arg) else {
            return Self::builtin(arg);
        };
        let base = base.map(Self::builtin).transpose()?;
        let looks_like_path = path.contains(['/', '.']) || std::path::Path::new(path).exists();
        if !looks_like_path {
            return Err(unknown(arg));
        }
        let text = read_limited(path)?;
        let machine = if path.ends_with(".xml") || text.trim_start().starts_with('<') {
            hwloc::from_xml(path, &text, base.as_ref())?
        } else {
            Self::from_toml(path, &text)?
        };
        // Here, where the file has a name: a run would only say which CPUs.
        match fairground::topology::Topology::build(&crate::machine::topology_of(&machine)) {
            Ok(_) => Ok(machine),
            Err(source) => {
                let path = path.into();
                Err(MachineError::Places { path, source })
            }
        }
    }

    /// The file that `arg` asks for, and the built-in machine whose latencies it takes
    /// (`FILE.xml@ID`); none if `arg` is a built-in machine.
    #[must_use]
    pub fn file_of(arg: &str) -> Option<(&str, Option<&str>)> {
        if BUILTIN.iter().any(|(id, _)| *id == arg) {
            return None;
        }
        match arg.rsplit_once('@') {
            Some((path, base)) if path.ends_with(".xml") => Some((path, Some(base))),
            _ => Some((arg, None)),
        }
    }
}

fn read_limited(path: &str) -> Result<String, MachineError> {
    let io = |source| MachineError::Io {
        path: path.into(),
        source,
    };
    let text = limited::read_text(path.as_ref(), MAX_FILE_BYTES).map_err(|e| match e.kind() {
        std::io::ErrorKind::FileTooLarge => too_large(path),
        _ => io(e),
    })?;
    if text.trim().is_empty() {
        return Err(MachineError::Empty { path: path.into() });
    }
    Ok(text)
}

pub(super) fn too_large(path: &str) -> MachineError {
    MachineError::TooLarge {
        path: path.into(),
        limit: MAX_FILE_BYTES,
    }
}

pub(super) fn unknown(name: &str) -> MachineError {
    MachineError::UnknownId {
        name: name.into(),
        nearest: nearest(name, Machine::builtin_ids()).map(str::to_owned),
        known: Machine::builtin_ids().collect::<Vec<_>>().join(", "),
    }
}
