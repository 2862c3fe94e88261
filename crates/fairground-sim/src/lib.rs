//! The simulated machine.
pub mod cache;
pub mod machine_file;
pub mod spec;
pub mod workload;
