//! Identities: small integers that index one table each.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index into its table.
            #[inline]
            #[must_use]
            pub const fn idx(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A logical CPU, 0 .. number of CPUs.
    Cpu
);
id!(
    /// A task, by its place in [`System::task`](crate::system::System).
    TaskId
);
id!(
    /// A task group; 0 is the root group.
    TgId
);
id!(
    /// A scheduling entity's slot in one CPU's [`Rq`](crate::rq::Rq); means nothing elsewhere.
    SeId
);
id!(
    /// One group's queue in one CPU's [`Rq`](crate::rq::Rq); 0 is the root `cfs_rq`.
    CfsId
);
id!(
    /// A last-level cache domain.
    LlcId
);
id!(
    /// A sched group in the arena of the [`Topology`](crate::topology::Topology).
    GroupId
);

impl TgId {
    /// The root task group.
    pub const ROOT: TgId = TgId(0);
}

impl CfsId {
    /// The root queue of every `Rq`.
    pub const ROOT: CfsId = CfsId(0);
}

impl TaskId {
    /// No task: the idle task where a task is asked for.
    pub const NONE: TaskId = TaskId(u32::MAX);
}
