//! Load balancing: which queue gives tasks to which, when, and how many.
//!
//! Decisions read what CPUs publish and change nothing; moving is detaching from one queue, then
//! attaching to another, each under its own lock.

pub mod active;
pub mod domains;
pub mod env;
pub mod newidle;
pub mod nohz;

pub use env::{
    BusiestGroup, GroupType, IdleType, LbEnv, MigrationType, NR_MIGRATE_BREAK, SdLbStats, SgLbStats,
};
