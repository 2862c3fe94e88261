//! The Linux fair scheduler as a library.
#![no_std]
extern crate alloc;
pub mod math;
pub mod tree;
