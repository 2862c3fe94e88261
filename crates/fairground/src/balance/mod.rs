//! Load balancing: which queue gives tasks to which, when, and how many.
//!
//! Decisions read what CPUs publish and change nothing; moving is detaching from one queue, then
//! attaching to another, each under its own lock.

pub mod active;
mod balance_rq;
pub mod busiest;
pub mod domains;
pub mod env;
pub mod imbalance;
pub mod interval;
mod moving;
pub mod newidle;
pub mod nohz;
pub mod stats;
pub(crate) mod stopper;
pub mod trigger;

pub use balance_rq::reset_interval;
pub use busiest::{
    find_busiest, need_active_balance, sched_balance_find_src_group, sched_balance_find_src_rq,
    should_we_balance,
};
pub use env::{
    BusiestGroup, IdleType, LbEnv, MigrationType, NR_MIGRATE_BREAK, SdLbStats, SgLbStats,
};
pub use interval::{Pace, get_sd_balance_interval, update_next_balance};
pub use moving::detach_tasks;
pub use stats::{update_group_capacity, update_sd_lb_stats};
