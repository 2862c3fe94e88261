//! The fair class on one CPU: everything here works on one `&mut Rq` whose clock was updated.
//!
//! `task` walks the levels, `entity` works on one of them; `load`, `group` and `throttle` are
//! what an entity's change means for load tracking, group weight and quota; `preempt` answers
//! whether the running task should give way.

pub mod bandwidth;
pub mod blocked;
mod buddy;
pub mod cfs_rules;
mod change;
mod counts;
pub(crate) mod curr;
mod dequeue;
pub mod entity;
pub mod expiry;
mod flags;
pub mod group;
pub mod h_load;
pub(crate) mod hrtick;
pub(crate) mod keep;
pub mod leaf;
mod limbo;
pub(crate) mod links;
pub mod load;
pub(crate) mod misfit;
pub(crate) mod others;
mod pick;
pub(crate) mod place;
pub mod preempt;
mod propagate;
mod removed;
pub(crate) mod resched;
mod reweight;
mod runtime;
pub mod task;
pub mod throttle;
mod throttle_clock;
mod throttle_walk;
pub mod util_est;
pub(crate) mod vtime;

pub(crate) use flags::QueueChange;
pub use flags::{Dequeue, Enqueue, Migrates, SetNext, UpdateLoad};
