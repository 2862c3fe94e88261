//! Which machine was simulated, as data and as people read it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which machine was simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineId {
    /// Name of the machine file.
    pub id: String,
    /// Hash of the machine file's content, and of what was changed in it, as by `--cpus`.
    pub hash: String,
    /// What it consists of; not in files of versions that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<MachineParts>,
}

/// How many of what a machine consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineParts {
    /// CPUs as the kernel counts them: hardware threads.
    pub cpus: u64,
    /// Cores.
    pub cores: u64,
    /// Sockets.
    pub sockets: u64,
    /// Last-level caches.
    pub llcs: u64,
}

impl MachineId {
    /// Name and the begin of the hash.
    #[must_use]
    pub fn short(&self) -> String {
        let hash: String = self.hash.chars().take(12).collect();
        format!("{} ({hash})", self.id)
    }

    /// The same with what it consists of:
    /// `spr-8480-2s (c311fd8c3f17), 224 CPUs, 2 sockets, 2 LLCs`.
    #[must_use]
    pub fn with_parts(&self) -> String {
        match &self.topology {
            Some(parts) => format!("{}, {}", self.short(), parts.words()),
            None => self.short(),
        }
    }

    /// Whether it is the same machine, whatever is known of what it consists of.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (&self.id, &self.hash) == (&other.id, &other.hash)
    }
}

impl MachineParts {
    /// `224 CPUs, 2 sockets, 2 LLCs`.
    #[must_use]
    pub fn words(&self) -> String {
        let one = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let Self {
            cpus,
            sockets,
            llcs,
            ..
        } = *self;
        let parts = [one(cpus, "CPU"), one(sockets, "socket"), one(llcs, "LLC")];
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_shown_with_what_it_consists_of() {
        let mut machine = MachineId {
            id: "m".into(),
            hash: "0123456789abcdef".into(),
            topology: Some(MachineParts {
                cpus: 16,
                cores: 8,
                sockets: 1,
                llcs: 2,
            }),
        };
        let words = "m (0123456789ab), 16 CPUs, 1 socket, 2 LLCs";
        assert_eq!(machine.with_parts(), words);
        let known = machine.clone();
        machine.topology = None;
        assert_eq!(machine.with_parts(), "m (0123456789ab)");
        assert!(machine.is(&known), "an older file says less of it");
    }
}
