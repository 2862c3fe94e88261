//! When the hierarchical load of a group is computed (patch `lazy-h-load`).
//!
//! Source: "sched: Move h_load calculation to task_h_load()", Vladimir Davydov, 2013, for 3.12.

/// When `h_load` is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HLoad {
    /// For all groups of the CPU before each balance, at most once a jiffy (up to 3.11).
    Eager,
    /// For one queue and those above it, when a task's load is asked for, once a jiffy.
    OnDemand,
}

impl HLoad {
    /// Whether a balance starts with a walk over all groups.
    #[inline]
    #[must_use]
    pub const fn walks_all_groups(self) -> bool {
        matches!(self, Self::Eager)
    }

    /// Whether the load of a task is asked for where it is needed, rather than remembered.
    #[inline]
    #[must_use]
    pub const fn is_on_demand(self) -> bool {
        matches!(self, Self::OnDemand)
    }
}
