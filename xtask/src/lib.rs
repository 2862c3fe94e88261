//! Checks of the repository, as a library so that a test can run them.
#![forbid(unsafe_code)]

pub mod docs;
pub mod examples;
pub mod tidy;
pub mod trust;
