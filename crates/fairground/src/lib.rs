//! The Linux fair scheduler as a library that owns no clock, no thread and no file.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate self as fairground;
#[cfg(test)]
extern crate std;

pub mod balance;
pub mod cx;
pub mod event;
pub mod fair;
pub mod host;
#[cfg(test)]
#[path = "../tests/lab/mod.rs"]
mod lab;
pub mod math;
pub mod place;
pub mod policy;
pub mod rq;
pub mod sched;
pub mod select;
pub mod shared;
pub mod system;
pub mod task;
#[cfg(test)]
mod testing;
pub mod topology;
pub mod tree;
pub mod value;
