//! Why a task enters or leaves a queue.

macro_rules! flags {
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $flag:ident = $bit:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name(u32);

        impl $name {
            /// No reason named.
            pub const NONE: Self = Self(0);
            $($(#[$fdoc])* pub const $flag: Self = Self(1 << $bit);)+

            /// Whether all flags of `other` are set.
            #[inline]
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Both sets.
            #[inline]
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// This set without the flags of `other`.
            #[inline]
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }
        }

        impl core::ops::BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.union(other)
            }
        }
    };
}

flags!(
    /// The kernel's `ENQUEUE_*`.
    Enqueue {
        /// A wake-up.
        WAKEUP = 0,
        /// The task came from another CPU.
        MIGRATED = 1,
        /// A new task.
        INITIAL = 2,
        /// It returns after a change of its parameters.
        RESTORE = 3,
        /// It is still queued as a delayed sleeper.
        DELAYED = 4,
        /// It returns from throttling.
        THROTTLE = 5,
    }
);

flags!(
    /// The kernel's `DEQUEUE_*`.
    Dequeue {
        /// It goes to sleep.
        SLEEP = 0,
        /// It leaves for a change of its parameters or of its group, and returns to this CPU.
        SAVE = 1,
        /// A delayed sleeper leaves for good.
        DELAYED = 2,
        /// It exits or is frozen: never delay.
        SPECIAL = 3,
        /// It is throttled.
        THROTTLE = 4,
        /// It moves: with `SAVE` to another group, without it to another CPU (its load average
        /// is then detached here: `TASK_ON_RQ_MIGRATING`).
        MOVE = 5,
    }
);

flags!(
    /// What `update_load_avg` does besides ageing.
    UpdateLoad {
        /// Publish the queue's load to its group.
        TG = 0,
        /// Attach a migrated entity.
        ATTACH = 1,
        /// Detach an entity that leaves for another CPU.
        DETACH = 2,
    }
);

/// Why an entity is made the running one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetNext {
    /// It was picked just now.
    Picked,
    /// It runs on, after a change for which it left its queue.
    RunsOn,
}

/// Where a task was until its CPU changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Migrates {
    /// Asleep: its load is still on the account of the queue on which it was last.
    FromSleep,
    /// On a queue, which has detached its load.
    FromQueue,
}

/// What has become of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QueueChange {
    /// A task has joined it.
    Joined,
    /// A task has left it.
    Left,
}
