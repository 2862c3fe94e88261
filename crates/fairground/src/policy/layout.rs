//! Field order of `cfs_rq` and `sched_entity` (patch `cfs-rq-reorder`), or of `rq` (`rq-reorder`).
//!
//! Sources: "sched/fair: Reorder scheduling related structs to reduce cache misses", Zecheng Li,
//! 2025; "sched: Reorder some fields in struct rq", Blake Jones, 2025.

use crate::place::{ENGINE, LINUX_6_15, Layout, REORDERED, RQ_REORDERED};

/// Which layout table is in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LayoutId {
    /// As in Linux 6.15.
    Linux615,
    /// Hot fields of `cfs_rq` and `sched_entity` together.
    Reordered,
    /// Hot fields of `rq` together.
    RqReordered,
    /// The engine's own structures.
    Engine,
}

impl LayoutId {
    /// The table.
    #[must_use]
    pub const fn layout(self) -> &'static Layout {
        match self {
            Self::Linux615 => &LINUX_6_15,
            Self::Reordered => &REORDERED,
            Self::RqReordered => &RQ_REORDERED,
            Self::Engine => &ENGINE,
        }
    }
}
