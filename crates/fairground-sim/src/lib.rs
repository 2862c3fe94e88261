//! The simulated machine: runs the scheduler of `fairground` on a machine that is a file, and
//! charges it for every function, line and lock.
//!
//! ```text
//!   machine file ─┐
//!   Features      ├─► machine::Sim ─► run ─► outcome: metrics, functions, lines, trace
//!   workload      │      │    ▲
//!   seed ─────────┘      ▼    │ requests, touches
//!                     fairground (as its Host: host::SimHost, prices: cache, costs)
//! ```
//!
//! Same input, same result, on every platform: integer picoseconds, one seeded generator per
//! purpose, no clock and no hasher of the system.
pub mod cache;
pub mod check;
pub mod costs;
pub mod cpu_stat;
pub mod exact;
pub mod explain;
pub mod glob;
mod histogram;
pub mod host;
pub mod limited;
pub mod machine;
pub mod machine_file;
pub mod moment;
pub mod open_requests;
pub mod outcome;
pub mod rng;
pub mod samples;
mod schedstat;
pub mod spec;
pub mod tails;
pub mod truth;
pub mod watch;
pub mod workload;
