//! The simulated machine.
pub mod cache;
pub mod costs;
pub mod host;
pub mod machine;
pub mod machine_file;
pub mod outcome;
pub mod rng;
pub mod spec;
pub mod truth;
pub mod workload;
