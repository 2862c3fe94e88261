//! Measures the computer it runs on, without root, and writes what it found as a machine file.
//!
//! ```text
//!   /sys ─► sysfs ─► shape ───────────────┐
//!                      │                  ▼
//!                   pairs ─► measure ─► figure ─► file (the text of machines/README.md)
//!                              │            ▲
//!                           sample      Base: what was not measured, and where it is from
//! ```
//!
//! The crate does not know the simulator: [`Base`] is handed in, and whoever asked reads the text
//! back. Times are nanoseconds as `f64`; CPU numbers are those of the operating system.
#![forbid(unsafe_code)]

mod figure;
mod file;
mod levels;
mod measure;
mod pairs;
mod plan;
mod sample;
mod shape;
mod stand_in;
mod steps;
mod sysfs;

pub use figure::{Base, Conf, Figure, Figures};
pub use file::{kernel_version, text};
pub use pairs::{Class, Pair, all as all_pairs, sampled as sampled_pairs};
pub use plan::{Calibration, Options, Progress, calibrate};
pub use sample::{Spread, contended_extra, per_level, quiet, spread};
pub use shape::{Numbering, Shape};
pub use sysfs::{Cache, Cpu, Idle, Node, System, cpu_list};

/// Why there is no machine file.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A file of the system does not say what was expected, or cannot be read.
    #[error("{path}: {found}; expected {expected}")]
    System {
        /// The file.
        path: String,
        /// What it says, or why it cannot be read.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The system refused something that every measurement needs.
    #[error("{what}: {source}")]
    Refused {
        /// What was refused.
        what: String,
        /// The system's reason.
        source: std::io::Error,
    },
}
