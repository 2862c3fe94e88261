//! Names of what programs use, for messages: an operation knows a mutex by its number only.
use std::collections::BTreeMap;

/// What a scenario calls the things its programs use, by their index: for messages only.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Labels {
    /// Pipes and sockets.
    pub chans: BTreeMap<u32, String>,
    /// Semaphores.
    pub sems: BTreeMap<u32, String>,
    /// Futexes.
    pub futexes: BTreeMap<u32, String>,
    /// Mutexes.
    pub mutexes: BTreeMap<u32, String>,
    /// Barriers.
    pub barriers: BTreeMap<u32, String>,
}

impl Labels {
    /// The name of thing `i` in quotes, or its number where the workload has no name for it.
    #[must_use]
    pub fn of(names: &BTreeMap<u32, String>, i: u32) -> String {
        names
            .get(&i)
            .map_or(i.to_string(), |name| format!("`{name}`"))
    }
}
